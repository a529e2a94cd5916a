/* Tests of store/pretrained: a model in a folder, in all the ways in which
 * others write one, is the model that it is. */
#include "kernels/storage.h"
#include "store/checkpoint.h"
#include "store/hf_config.h"
#include "store/pretrained.h"
#include "support/on_device.h"
#include "support/tiny_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- a checkpoint, written again in another way ---- */

/* SAID_HEAD: one of its own, as config.json says */
typedef enum head { NO_HEAD, TIED_HEAD, OWN_HEAD, SAID_HEAD } head;

typedef struct manner {
    pl_tensor_dtype dtype;
    int bare_names; /* without "transformer." */
    int buffers;    /* with attn.bias and attn.masked_bias */
    head head;
    int files;
} manner;

typedef struct rewriting {
    const pl_safetensors *st;
    const manner *how;
    int file;
    pl_heap heap;
} rewriting;

enum { EXTRA = 3 };

/* Which tensor of `st` stands at i of the output; -1: one of the extras. */
static long source_index(const rewriting *r, size_t i)
{
    return i < r->st->count ? (long)i : -1;
}

static const pl_tensor_info *wte(const rewriting *r)
{
    return pl_safetensors_find(r->st, "transformer.wte.weight");
}

static void describe(void *context, size_t i, pl_tensor_info *info)
{
    const rewriting *r = context;
    const manner *how = r->how;
    long at = source_index(r, i);
    if ((int)(i % (size_t)how->files) != r->file)
        return;
    if (at >= 0) {
        const pl_tensor_info *from = &r->st->tensors[at];
        *info = *from;
        info->dtype = how->dtype;
        if (how->bare_names)
            memmove(info->name, from->name + 12, strlen(from->name + 12) + 1);
        return;
    }
    size_t extra = i - r->st->count;
    if (extra == 0 && how->head != NO_HEAD) {
        *info = *wte(r);
        info->dtype = how->dtype;
        snprintf(info->name, sizeof info->name, "lm_head.weight");
    } else if (extra == 1 && how->buffers) {
        snprintf(info->name, sizeof info->name, "h.0.attn.bias");
        info->dtype = PL_TENSOR_BOOL;
        info->rank = 4;
        info->dims[0] = info->dims[1] = 1;
        info->dims[2] = info->dims[3] = 13;
    } else if (extra == 2 && how->buffers) {
        snprintf(info->name, sizeof info->name, "h.0.attn.masked_bias");
        info->dtype = PL_TENSOR_F32;
        info->rank = 1;
        info->dims[0] = 1;
    }
}

static pl_status read_data(void *context, size_t i, size_t at, void *out,
                           size_t bytes, pl_error *ignored)
{
    const rewriting *r = context;
    long source = source_index(r, i);
    size_t size = pl_tensor_dtype_bytes(r->how->dtype), count = bytes / size;
    pl_error err = { 0 };
    (void)ignored;
    if (source < 0 && i - r->st->count > 0) {
        memset(out, 1, bytes);
        return PL_OK;
    }
    const pl_tensor_info *info = source < 0 ? wte(r) : &r->st->tensors[source];
    for (size_t k = 0; k < count; k++) {
        float value;
        size_t element = at / size + k;
        if (pl_safetensors_read(r->st, info, element * sizeof value, &value,
                                sizeof value, &err))
            fail_msg("%s", err.text);
        if (source < 0 && r->how->head >= OWN_HEAD && element == 7)
            value += 1.0f;
        double wide = (double)value;
        if (r->how->dtype == PL_TENSOR_F64)
            memcpy((char *)out + k * size, &wide, size);
        else
            pl_storage_put(out, k, value,
                           r->how->dtype == PL_TENSOR_F16    ? PL_STORE_F16
                           : r->how->dtype == PL_TENSOR_BF16 ? PL_STORE_BF16
                                                             : PL_STORE_F32);
    }
    return PL_OK;
}

static void write_file(rewriting *r, const char *path)
{
    static char slice[4096];
    pl_error err = { 0 };
    pl_tensor_source source = { .context = r,
                                .count = r->st->count + EXTRA,
                                .describe = describe,
                                .read = read_data };
    if (pl_safetensors_write(path, &source, slice, sizeof slice, &err))
        fail_msg("%s", err.text);
}

/* Writes <run>/gpt2 from <run>/out/latest. */
static void rewrite(const tiny_run *run, const manner *how)
{
    pl_safetensors st;
    pl_error err = { 0 };
    pl_heap heap = pl_heap_make(1 << 20);
    rewriting r = { .st = &st, .how = how };
    size_t bytes;
    char *config = scratch_read(
        scratch_path(&run->folder, "out/latest/config.json"), &bytes);
    if (how->head == SAID_HEAD) {
        static const char tied[] = "\"tie_word_embeddings\": true";
        char *at = strstr(config, tied);
        assert_non_null(at);
        memcpy(at + sizeof tied - 1 - 4, "null", 4); /* as long as "true" */
        memcpy(at, "\"tie_word_embeddings\":false", sizeof tied - 1);
    }
    scratch_remove(scratch_path(&run->folder, "gpt2"));
    if (pl_folder_make(scratch_path(&run->folder, "gpt2"), &err) ||
        pl_safetensors_open(
            &st, scratch_path(&run->folder, "out/latest/model.safetensors"),
            &heap, &err))
        fail_msg("%s", err.text);
    scratch_write(scratch_path(&run->folder, "gpt2/config.json"), config,
                  bytes);
    free(config);
    if (how->files == 1) {
        write_file(&r, scratch_path(&run->folder, "gpt2/model.safetensors"));
    } else {
        char index[1024] = "{\"weight_map\": {", name[64];
        for (r.file = 0; r.file < how->files; r.file++) {
            snprintf(name, sizeof name, "gpt2/part-%d.safetensors", r.file);
            write_file(&r, scratch_path(&run->folder, name));
            snprintf(index + strlen(index), 100, "%s\"t%d\": \"%s\"",
                     r.file ? "," : "", r.file, name + 5);
        }
        strcat(index, "}}");
        scratch_write(
            scratch_path(&run->folder, "gpt2/model.safetensors.index.json"),
            index, strlen(index));
    }
    pl_safetensors_close(&st);
    pl_heap_close(&heap);
}

static void set_init_from(tiny_run *run, const char *name)
{
    char setting[700];
    snprintf(setting, sizeof setting, "--init_from=%s",
             scratch_path(&run->folder, name));
    tiny_run_set(run, setting);
}

/* A trained model in out/latest; returns the hash of its weights alone. */
static unsigned long long weights_hash(tiny_run *run)
{
    const pl_gpt *gpt = &run->session.run.gpt;
    unsigned long long hash = 14695981039346656037ull;
    for (size_t i = 0; i < pl_param_slots(&gpt->shape); i++) {
        if (gpt->weights[i] == PL_NO_BUFFER)
            continue;
        unsigned char *at = on_device_copy(run->session.run.device, &gpt->graph,
                                           gpt->weights[i]);
        for (size_t k = 0; k < gpt->graph.buffers[gpt->weights[i]].bytes; k++)
            hash = (hash ^ at[k]) * 1099511628211ull;
        free(at);
    }
    return hash;
}

static unsigned long long make_model(tiny_run *run, const char *setting)
{
    pl_error err = { 0 };
    tiny_run_make(run);
    if (setting)
        tiny_run_set(run, setting);
    tiny_run_open(run);
    tiny_run_train(run, 3);
    if (pl_checkpoint_save(&run->session.run, &err))
        fail_msg("%s", err.text);
    unsigned long long hash = weights_hash(run);
    tiny_run_close(run);
    return hash;
}

static void however_it_is_written_it_is_the_same_model(void **state)
{
    (void)state;
    static const manner manners[] = {
        { PL_TENSOR_F32, 0, 0, NO_HEAD, 1 },
        { PL_TENSOR_F32, 1, 1, TIED_HEAD, 1 },
        { PL_TENSOR_F64, 1, 0, NO_HEAD, 1 },
        { PL_TENSOR_F32, 0, 1, TIED_HEAD, 3 },
        { PL_TENSOR_F64, 0, 1, TIED_HEAD, 2 },
    };
    tiny_run run;
    unsigned long long hash = make_model(&run, NULL);
    for (size_t i = 0; i < sizeof manners / sizeof manners[0]; i++) {
        rewrite(&run, &manners[i]);
        set_init_from(&run, "gpt2");
        tiny_run_open(&run);
        assert_true(weights_hash(&run) == hash);
        assert_int_equal(run.session.run.step, 0); /* a run of its own */
        tiny_run_close(&run);
        scratch_remove(scratch_path(&run.folder, "out"));
        tiny_run_set(&run, "--init_from=scratch");
        if (i + 1 < sizeof manners / sizeof manners[0]) {
            tiny_run_open(&run);
            tiny_run_train(&run, 3);
            pl_error err = { 0 };
            assert_int_equal(pl_checkpoint_save(&run.session.run, &err), PL_OK);
            tiny_run_close(&run);
        }
    }
    tiny_run_remove(&run);
}

/* Rounded once is rounded for good: 16 bits come back as those 16 bits. */
static void sixteen_bits_are_widened_exactly(void **state)
{
    (void)state;
    static const pl_tensor_dtype dtypes[] = { PL_TENSOR_F16, PL_TENSOR_BF16 };
    for (int i = 0; i < 2; i++) {
        tiny_run run;
        pl_safetensors st;
        pl_error err = { 0 };
        uint16_t stored[24];
        float loaded[24];
        const manner how = { dtypes[i], 1, 0, NO_HEAD, 1 };
        pl_heap heap = pl_heap_make(1 << 20);
        make_model(&run, NULL);
        rewrite(&run, &how);
        set_init_from(&run, "gpt2");
        tiny_run_open(&run);
        assert_int_equal(
            pl_safetensors_open(
                &st, scratch_path(&run.folder, "gpt2/model.safetensors"), &heap,
                &err),
            PL_OK);
        const pl_tensor_info *info = pl_safetensors_find(&st, "wte.weight");
        assert_non_null(info);
        assert_int_equal(
            pl_safetensors_read(&st, info, 0, stored, sizeof stored, &err),
            PL_OK);
        on_device_read(run.session.run.device, run.session.run.gpt.weights[0],
                       0, loaded, sizeof loaded);
        for (int k = 0; k < 24; k++)
            assert_true(loaded[k] == (i ? pl_bf16_value(stored[k])
                                        : pl_f16_value(stored[k])));
        pl_safetensors_close(&st);
        pl_heap_close(&heap);
        tiny_run_remove(&run);
    }
}

static void assert_refused(tiny_run *run, pl_status code, const char *words)
{
    pl_error err = { 0 };
    int files = scratch_open_files();
    assert_int_equal(tiny_run_try(run, &err), code);
    if (!strstr(err.text, words))
        fail_msg("expected \"%s\" in: %s", words, err.text);
    assert_int_equal(scratch_open_files(), files);
}

/* An untied head is a weight like the others: it is loaded, trained, saved. */
static void a_head_of_its_own_is_loaded(void **state)
{
    (void)state;
    tiny_run run;
    pl_error err = { 0 };
    float own[24], table[24];
    const manner how = { PL_TENSOR_F32, 0, 0, SAID_HEAD, 1 };
    unsigned long long tied = make_model(&run, NULL);
    rewrite(&run, &how);
    scratch_remove(scratch_path(&run.folder, "out"));
    set_init_from(&run, "gpt2");
    tiny_run_set(&run, "--tie_word_embeddings=False");
    tiny_run_open(&run);
    const pl_gpt *gpt = &run.session.run.gpt;
    pl_buffer_id at = gpt->weights[pl_param_slot(&gpt->shape, PL_HEAD_W, -1)];
    on_device_read(run.session.run.device, at, 0, own, sizeof own);
    on_device_read(run.session.run.device, gpt->weights[0], 0, table,
                   sizeof table);
    for (int i = 0; i < 24; i++)
        assert_true(own[i] == table[i] + (i == 7 ? 1.0f : 0.0f));
    assert_true(weights_hash(&run) != tied);
    tiny_run_train(&run, 3);
    assert_int_equal(pl_checkpoint_save(&run.session.run, &err), PL_OK);
    unsigned long long trained = tiny_run_hash(&run);
    on_device_read(run.session.run.device, at, 0, table, sizeof table);
    assert_memory_not_equal(table, own, sizeof own);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    tiny_run_open(&run);
    assert_true(tiny_run_hash(&run) == trained);
    tiny_run_close(&run);
    tiny_run_set(&run, "--tie_word_embeddings=True");
    assert_refused(&run, PL_E_CONFIG, "tie_word_embeddings");
    tiny_run_remove(&run);
}

static void a_head_that_config_json_leaves_out_is_refused(void **state)
{
    (void)state;
    tiny_run run;
    const manner how = { PL_TENSOR_F32, 0, 0, OWN_HEAD, 1 };
    make_model(&run, NULL);
    rewrite(&run, &how);
    set_init_from(&run, "gpt2");
    assert_refused(&run, PL_E_UNSUPPORTED, "lm_head.weight is not");
    tiny_run_remove(&run);
}

static void positions_may_be_left_out(void **state)
{
    (void)state;
    tiny_run run;
    const manner how = { PL_TENSOR_F32, 0, 0, NO_HEAD, 1 };
    float kept[2 * 24], all[2 * 24];
    make_model(&run, NULL);
    rewrite(&run, &how);
    set_init_from(&run, "gpt2");
    tiny_run_open(&run);
    pl_buffer_id wpe = run.session.run.gpt.weights[1];
    on_device_read(run.session.run.device, wpe, 0, all, sizeof all);
    tiny_run_close(&run);
    tiny_run_set(&run, "--block_size=7");
    tiny_run_open(&run);
    wpe = run.session.run.gpt.weights[1];
    assert_int_equal(run.session.run.gpt.graph.buffers[wpe].bytes, 7 * 24 * 4);
    on_device_read(run.session.run.device, wpe, 0, kept, sizeof kept);
    assert_memory_equal(kept, all, sizeof all);
    tiny_run_close(&run);
    tiny_run_set(&run, "--block_size=14");
    assert_refused(&run, PL_E_CONFIG, "block_size is 13");
    tiny_run_remove(&run);
}

static void another_shape_is_refused_before_memory_is_taken(void **state)
{
    (void)state;
    tiny_run run;
    make_model(&run, NULL);
    set_init_from(&run, "out/latest");
    tiny_run_set(&run, "--n_layer=3");
    assert_refused(&run, PL_E_CONFIG, "n_layer is 2");
    tiny_run_remove(&run);
}

/* Nothing of the model is lost on the way through config.json. */
static void our_own_folders_are_models_too(void **state)
{
    (void)state;
    static const char *const settings[] = { "--bias=False",
                                            "--head_dim=5",
                                            "--activation=gelu_tanh",
                                            "--weights=bf16",
                                            "--tie_word_embeddings=False",
                                            "--architecture=llama",
                                            "--architecture=qwen3" };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        tiny_run run;
        pl_shape shape;
        pl_error err = { 0 };
        unsigned long long hash = make_model(&run, settings[i]);
        set_init_from(&run, "out/latest");
        pl_heap heap = pl_heap_make(1 << 20);
        assert_int_equal(
            pl_pretrained_shape(&shape, scratch_path(&run.folder, "out/latest"),
                                &heap, &err),
            PL_OK);
        assert_int_equal(shape.bias, i == 0 ? PL_BIAS_NONE : PL_BIAS_ALL);
        assert_int_equal(shape.family, i == 5   ? PL_FAMILY_LLAMA
                                       : i == 6 ? PL_FAMILY_QWEN3
                                                : PL_FAMILY_GPT2);
        assert_int_equal(shape.D, i == 1 ? 5 : 8);
        assert_int_equal(shape.activation,
                         i == 2 ? PL_ACT_GELU_TANH : PL_ACT_GELU);
        assert_int_equal(shape.head,
                         i == 4 || i == 5 ? PL_HEAD_OWN : PL_HEAD_TIED);
        pl_heap_close(&heap);
        char setting[700];
        snprintf(setting, sizeof setting, "--out_dir=%s",
                 scratch_path(&run.folder, "other"));
        tiny_run_set(&run, setting);
        tiny_run_open(&run);
        assert_true(weights_hash(&run) == hash);
        tiny_run_remove(&run);
    }
}

/* ---- config.json ---- */

static const char good[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 12, \"n_head\": 12, \"n_embd\": "
    "768, \"vocab_size\": 50257, \"n_positions\": 1024, \"n_ctx\": 1024, "
    "\"activation_function\": \"gelu_new\", \"layer_norm_epsilon\": 1e-05, "
    "\"attn_pdrop\": 0.1, \"task_specific_params\": {\"x\": []}}";

static void another_epsilon_is_computed_with(void **state)
{
    (void)state;
    scratch dir;
    char text[sizeof good];
    pl_shape shape;
    pl_hf_config config;
    pl_error err = { 0 };
    pl_heap heap = pl_heap_make(1 << 20);
    memcpy(text, good, sizeof good);
    memcpy(strstr(text, "1e-05"), "1e-06", 5);
    scratch_open(&dir);
    scratch_write(scratch_path(&dir, "config.json"), text, sizeof text - 1);
    assert_int_equal(pl_hf_config_read(&config, dir.folder, &heap, &err),
                     PL_OK);
    assert_true(config.shape.norm_eps == 1e-6);
    assert_int_equal(pl_pretrained_shape(&shape, dir.folder, &heap, &err),
                     PL_OK);
    assert_true(shape.norm_eps == 1e-6);
    pl_config asked = pl_config_make_default();
    assert_int_equal(pl_pretrained_apply(&asked, dir.folder, NULL, &heap, &err),
                     PL_OK);
    assert_true(asked.norm_eps == 1e-6);
    pl_heap_close(&heap);
    scratch_close(&dir);
}

static void a_config_takes_the_model_over(void **state)
{
    (void)state;
    scratch dir;
    pl_error err = { 0 };
    pl_heap heap = pl_heap_make(1 << 20);
    scratch_open(&dir);
    scratch_write(scratch_path(&dir, "config.json"), good, sizeof good - 1);
    pl_config config = pl_config_make_default();
    assert_int_equal(
        pl_config_override(&config, "--n_layer=3", PL_FOR_ALL, &heap, &err),
        PL_OK);
    assert_int_equal(
        pl_pretrained_apply(&config, dir.folder, NULL, &heap, &err), PL_OK);
    assert_int_equal(config.n_layer, 12);
    assert_int_equal(config.vocab_size, 50257);
    assert_int_equal(config.block_size, 1024);
    assert_true(config.bias);
    assert_int_equal(config.activation, PL_ACTIVATION_GELU_TANH);
    assert_int_equal(pl_config_override(&config, "--block_size=256", PL_FOR_ALL,
                                        &heap, &err),
                     PL_OK);
    assert_int_equal(
        pl_pretrained_apply(&config, dir.folder, NULL, &heap, &err), PL_OK);
    assert_int_equal(config.block_size, 256);
    assert_int_equal(pl_config_override(&config, "--block_size=2048",
                                        PL_FOR_ALL, &heap, &err),
                     PL_OK);
    assert_int_equal(
        pl_pretrained_apply(&config, dir.folder, NULL, &heap, &err),
        PL_E_CONFIG);
    assert_non_null(strstr(err.text, "1024 positions"));
    pl_heap_close(&heap);
    scratch_close(&dir);
}

/* Rotations have no table: what a model was made for is no limit, and no reason
 * to train with that many positions. */
static void rotations_go_as_far_as_asked(void **state)
{
    (void)state;
    static const char llama[] =
        "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, "
        "\"num_attention_heads\": 2, \"hidden_size\": 64, \"vocab_size\": 99, "
        "\"intermediate_size\": 96, \"max_position_embeddings\": 8192}";
    static const struct {
        const char *setting;
        int64_t block_size;
    } cases[] = { { "--seed=1", 1024 },
                  { "--block_size=256", 256 },
                  { "--block_size=16384", 16384 } };
    scratch dir;
    pl_error err = { 0 };
    pl_heap heap = pl_heap_make(1 << 20);
    scratch_open(&dir);
    scratch_write(scratch_path(&dir, "config.json"), llama, sizeof llama - 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pl_config config = pl_config_make_default();
        assert_int_equal(pl_config_override(&config, cases[i].setting,
                                            PL_FOR_ALL, &heap, &err),
                         PL_OK);
        assert_int_equal(
            pl_pretrained_apply(&config, dir.folder, NULL, &heap, &err), PL_OK);
        assert_int_equal(config.block_size, cases[i].block_size);
        assert_int_equal(config.architecture, PL_ARCHITECTURE_LLAMA);
    }
    pl_heap_close(&heap);
    scratch_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(however_it_is_written_it_is_the_same_model),
        cmocka_unit_test(sixteen_bits_are_widened_exactly),
        cmocka_unit_test(a_head_of_its_own_is_loaded),
        cmocka_unit_test(a_head_that_config_json_leaves_out_is_refused),
        cmocka_unit_test(positions_may_be_left_out),
        cmocka_unit_test(another_shape_is_refused_before_memory_is_taken),
        cmocka_unit_test(our_own_folders_are_models_too),
        cmocka_unit_test(another_epsilon_is_computed_with),
        cmocka_unit_test(a_config_takes_the_model_over),
        cmocka_unit_test(rotations_go_as_far_as_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
