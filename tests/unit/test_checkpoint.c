/* Tests of store/checkpoint: what is written is what is read. */
#include "advise/runplan.h"
#include "format/safetensors.h"
#include "store/checkpoint.h"
#include "support/tiny_run.h"
#include "train/trainer.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void save(tiny_run *run)
{
    pl_error err = { 0 };
    if (pl_checkpoint_save(&run->session.run, &err))
        fail_msg("%s", err.text);
}

static void weights_and_moments_come_back_bit_for_bit(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_make(&run);
    tiny_run_open(&run);
    tiny_run_train(&run, 3);
    unsigned long long before = tiny_run_hash(&run);
    run.session.run.best_val_loss = 3.0000000000000004;
    run.session.run.best_val_bpb = 1.0000000000000002;
    save(&run);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    tiny_run_open(&run);
    assert_true(tiny_run_hash(&run) == before);
    assert_int_equal(run.session.run.step, 3);
    assert_true(run.session.run.best_val_loss == 3.0000000000000004);
    assert_true(run.session.run.best_val_bpb == 1.0000000000000002);
    tiny_run_remove(&run);
}

/* What the state says of bits per byte, if an earlier version wrote it: one
 * that had no entry for those of the best evaluation. */
static double best_bits_of_old(json_t *root, double val_loss)
{
    pl_checkpoint_state old;
    pl_error err = { 0 };
    json_object_set_new(root, "val_loss", json_real(val_loss));
    char *text = json_dumps(root, 0);
    assert_non_null(text);
    if (pl_checkpoint_parse_state(&old, text, strlen(text), "old", &err))
        fail_msg("%s", err.text);
    free(text);
    assert_true(old.best_val_loss == 3.5 && old.val_bpb == 1.25);
    return old.best_val_bpb;
}

static void a_state_without_the_best_ones_bits_is_read(void **state)
{
    (void)state;
    tiny_run run;
    json_error_t trouble;
    tiny_run_make(&run);
    tiny_run_open(&run);
    tiny_run_train(&run, 1);
    run.session.run.best_val_loss = 3.5;
    run.session.run.best_val_bpb = 1.5;
    run.session.run.val_bpb = 1.25;
    save(&run);
    json_t *root = json_load_file(
        scratch_path(&run.folder, "out/latest/state.json"), 0, &trouble);
    assert_non_null(root);
    assert_true(json_real_value(json_object_get(root, "best_val_bpb")) == 1.5);
    assert_int_equal(json_object_del(root, "best_val_bpb"), 0);
    assert_true(isinf(best_bits_of_old(root, 3.75)));
    /* it was the best itself */
    assert_true(best_bits_of_old(root, 3.5) == 1.25);
    json_decref(root);
    tiny_run_remove(&run);
}

/* Tensors that others keep as several are cut on the way out and put together
 * on the way in: resuming, and as a model in a folder. */
static void other_families_come_back_bit_for_bit(void **state)
{
    (void)state;
    for (int from_folder = 0; from_folder < 2; from_folder++) {
        char from[512];
        tiny_run run;
        pl_heap heap = pl_heap_make(1 << 20);
        pl_safetensors st;
        pl_error err = { 0 };
        tiny_run_make(&run);
        tiny_run_set(&run, "--architecture=qwen3");
        tiny_run_set(&run, "--n_head=4");
        tiny_run_set(&run, "--n_kv_head=2");
        tiny_run_open(&run);
        tiny_run_train(&run, from_folder ? 0 : 3);
        const unsigned long long before = tiny_run_hash(&run);
        save(&run);
        tiny_run_close(&run);
        const char *folder = scratch_path(&run.folder, "out/latest");
        snprintf(from, sizeof from, "--init_from=%s",
                 from_folder ? folder : "resume");
        assert_int_equal(
            pl_safetensors_open(
                &st, scratch_path(&run.folder, "out/latest/model.safetensors"),
                &heap, &err),
            PL_OK);
        const pl_tensor_info *info = pl_safetensors_find(
            &st, "model.layers.1.self_attn.v_proj.weight");
        assert_non_null(info);
        assert_int_equal(info->dims[0], 12);
        assert_int_equal(info->dims[1], 24);
        pl_safetensors_close(&st);
        tiny_run_set(&run, from);
        if (from_folder)
            tiny_run_set(&run, "--seed=7"); /* not by chance */
        tiny_run_open(&run);
        assert_true(tiny_run_hash(&run) == before);
        pl_heap_close(&heap);
        tiny_run_remove(&run);
    }
}

/* Hugging Face's GPT-2 knows no model without biases: zeros stand there. */
static void the_model_has_every_tensor_of_a_gpt2(void **state)
{
    (void)state;
    tiny_run run;
    pl_safetensors st;
    pl_error err = { 0 };
    float bias[72] = { 1.0f };

    tiny_run_make(&run);
    tiny_run_set(&run, "--bias=False");
    tiny_run_open(&run);
    save(&run);
    pl_heap heap = pl_heap_make(1 << 20);
    assert_int_equal(
        pl_safetensors_open(
            &st, scratch_path(&run.folder, "out/latest/model.safetensors"),
            &heap, &err),
        PL_OK);
    assert_int_equal(st.count, 4 + 12 * 2);
    const pl_tensor_info *info = pl_safetensors_find(
        &st, "transformer.h.1.attn.c_attn.bias");
    assert_non_null(info);
    assert_int_equal(info->dims[0], 72);
    assert_int_equal(pl_safetensors_read(&st, info, 0, bias, sizeof bias, &err),
                     PL_OK);
    for (int i = 0; i < 72; i++)
        assert_true(bias[i] == 0.0f);
    info = pl_safetensors_find(&st, "transformer.h.0.attn.c_attn.weight");
    assert_non_null(info); /* [in, out], as Conv1D has it */
    assert_int_equal(info->dims[0], 24);
    assert_int_equal(info->dims[1], 72);
    pl_safetensors_close(&st);
    pl_heap_close(&heap);
    tiny_run_remove(&run);
}

static void the_json_files_say_what_the_model_is(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_make(&run);
    tiny_run_open(&run);
    tiny_run_train(&run, 2);
    save(&run);
    json_t *hf = json_load_file(
        scratch_path(&run.folder, "out/latest/config.json"), 0, NULL);
    json_t *own = json_load_file(
        scratch_path(&run.folder, "out/latest/state.json"), 0, NULL);
    assert_non_null(hf);
    assert_non_null(own);
    assert_string_equal(
        json_string_value(json_object_get(hf, "activation_function")), "gelu");
    assert_int_equal(json_integer_value(json_object_get(hf, "n_positions")),
                     13);
    assert_int_equal(json_integer_value(json_object_get(own, "step")), 2);
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(own, "config"), "learning_rate")),
                        "0.01");
    json_decref(hf);
    json_decref(own);
    assert_true(scratch_has(scratch_path(&run.folder, "out/latest/meta.json")));
    tiny_run_remove(&run);
}

static void the_settings_of_a_run_come_back(void **state)
{
    (void)state;
    tiny_run run;
    pl_config config;
    pl_error err = { 0 };
    pl_heap heap = pl_heap_make(1 << 20);
    tiny_run_make(&run);
    tiny_run_set(&run, "--grad_checkpoint=[2, 0]");
    tiny_run_open(&run);
    save(&run);
    assert_int_equal(
        pl_checkpoint_read_config(
            &config, scratch_path(&run.folder, "out/latest"), &heap, &err),
        PL_OK);
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char a[1024], b[1024];
        pl_config_value_text(&run.config, (pl_key)key, a, sizeof a);
        pl_config_value_text(&config, (pl_key)key, b, sizeof b);
        assert_string_equal(a, b);
    }
    pl_heap_close(&heap);
    tiny_run_remove(&run);
}

static void assert_origins(const pl_config *config, const pl_config *want)
{
    for (int key = 0; key < PL_KEY_COUNT; key++)
        if ((config->origin[key].source == PL_FROM_DEFAULT) !=
            (want->origin[key].source == PL_FROM_DEFAULT))
            fail_msg("%s came back as %s", pl_key_row((pl_key)key)->name,
                     config->origin[key].source == PL_FROM_DEFAULT
                         ? "a default, and was set"
                         : "set, and was a default");
}

/* A key that was set to its default is no default: False forbids levels that
 * the search may take where nothing was said. */
static void what_was_set_comes_back_set_and_a_default_a_default(void **state)
{
    (void)state;
    for (int set = 0; set < 2; set++) {
        tiny_run run;
        pl_config config;
        pl_error err = { 0 };
        pl_heap heap = pl_heap_make(1 << 20);
        tiny_run_make(&run);
        if (set)
            tiny_run_set(&run, "--grad_checkpoint=False");
        tiny_run_open(&run);
        save(&run);
        assert_int_equal(
            pl_checkpoint_read_config(
                &config, scratch_path(&run.folder, "out/latest"), &heap, &err),
            PL_OK);
        assert_origins(&config, &run.config);
        assert_int_equal(pl_run_plan_wish(&config).no_products, set);
        pl_heap_close(&heap);
        tiny_run_remove(&run);
    }
}

static pl_status parse_config(pl_config *config, const char *text,
                              pl_heap *heap, pl_error *err)
{
    return pl_checkpoint_parse_config(config, text, strlen(text), "state.json",
                                      heap, err);
}

/* Those that didn't say what was set: what differs from a default was. */
static void an_old_state_has_defaults_where_it_has_their_values(void **state)
{
    (void)state;
    pl_config config;
    pl_error err = { 0 };
    pl_heap heap = pl_heap_make(1 << 20);
    assert_int_equal(parse_config(&config,
                                  "{\"config\": {\"n_layer\": \"3\", "
                                  "\"grad_checkpoint\": \"False\"}}",
                                  &heap, &err),
                     PL_OK);
    assert_int_equal(config.origin[PL_KEY_n_layer].source, PL_FROM_FILE);
    assert_int_equal(config.origin[PL_KEY_grad_checkpoint].source,
                     PL_FROM_DEFAULT);
    pl_heap_close(&heap);
}

static void a_list_of_what_was_set_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{\"config\": {}, \"set\": 3}",
        "{\"config\": {}, \"set\": [\"n_layer\", 7]}",
        "{\"config\": {}, \"set\": [\"n_layers\"]}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pl_config config;
        pl_error err = { 0 };
        pl_heap heap = pl_heap_make(1 << 20);
        assert_int_equal(parse_config(&config, wrong[i], &heap, &err),
                         PL_E_FORMAT);
        assert_non_null(strstr(err.text, "state.json"));
        assert_non_null(strstr(err.text, "\"set\""));
        pl_heap_close(&heap);
    }
}

/* Opens with `setting`, expecting a failure whose text has `words`. */
static void assert_refused(tiny_run *run, const char *setting, pl_status code,
                           const char *words)
{
    pl_error err = { 0 };
    if (setting)
        tiny_run_set(run, setting);
    assert_int_equal(tiny_run_try(run, &err), code);
    if (!strstr(err.text, words))
        fail_msg("expected \"%s\" in: %s", words, err.text);
}

static void another_model_is_refused_with_the_difference(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_make(&run);
    tiny_run_open(&run);
    save(&run);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    assert_refused(&run, "--n_layer=3", PL_E_CONFIG,
                   "n_layer is 2 in the checkpoint and 3 in the config");
    tiny_run_remove(&run);
}

static void another_way_of_keeping_it_is_refused_by_its_key(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_make(&run);
    tiny_run_open(&run);
    save(&run);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    assert_refused(&run, "--weights=bf16", PL_E_FORMAT, "'weights'");
    tiny_run_set(&run, "--weights=float32");
    assert_refused(&run, "--optimizer_state=8bit", PL_E_FORMAT,
                   "'optimizer_state'");
    tiny_run_remove(&run);
}

/* 16 bits of a weight, 8 of a moment, and a scale for 256 of them. */
static void small_state_is_small_on_disk(void **state)
{
    (void)state;
    tiny_run run;
    pl_safetensors st;
    pl_error err = { 0 };
    pl_heap heap = pl_heap_make(1 << 20);
    tiny_run_make(&run);
    tiny_run_set(&run, "--weights=bf16");
    tiny_run_set(&run, "--optimizer_state=8bit");
    tiny_run_open(&run);
    save(&run);
    static const struct {
        const char *file, *name;
        pl_tensor_dtype dtype;
        size_t rank, dims[2];
    } wants[] = {
        { "out/latest/model.safetensors",
          "transformer.wte.weight",
          PL_TENSOR_BF16,
          2,
          { 61, 24 } },
        { "out/latest/model.safetensors",
          "transformer.ln_f.weight",
          PL_TENSOR_F32,
          1,
          { 24 } },
        { "out/latest/optimizer.safetensors",
          "v.transformer.wte.weight",
          PL_TENSOR_U8,
          2,
          { 61, 24 } },
        { "out/latest/optimizer.safetensors",
          "v.scales.transformer.wte.weight",
          PL_TENSOR_F32,
          1,
          { 6 } },
        { "out/latest/optimizer.safetensors",
          "m.transformer.ln_f.weight",
          PL_TENSOR_F32,
          1,
          { 24 } },
    };
    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++) {
        assert_int_equal(
            pl_safetensors_open(&st, scratch_path(&run.folder, wants[i].file),
                                &heap, &err),
            PL_OK);
        const pl_tensor_info *info = pl_safetensors_find(&st, wants[i].name);
        assert_non_null(info);
        assert_int_equal(info->dtype, wants[i].dtype);
        assert_int_equal(info->rank, wants[i].rank);
        assert_int_equal(info->dims[0], wants[i].dims[0]);
        if (info->rank == 2)
            assert_int_equal(info->dims[1], wants[i].dims[1]);
        pl_safetensors_close(&st);
    }
    pl_heap_close(&heap);
    tiny_run_remove(&run);
}

/* 0x237f is the largest that rounding to bfloat16 makes zero. */
static void a_weight_that_no_rounding_leaves_is_rounded(void **state)
{
    (void)state;
    static const uint16_t written[] = { 0x2380, 0x237f, 0xa37f, 0x3f80 },
                          wanted[] = { 0x2380, 0x0000, 0x8000, 0x3f80 };
    uint16_t got[4] = { 0 };
    tiny_run run;
    pl_error err = { 0 };
    tiny_run_make(&run);
    tiny_run_set(&run, "--weights=bf16");
    tiny_run_open(&run);
    pl_run *r = &run.session.run;
    assert_int_equal(pl_device_write(r->device, r->gpt.weights[0], 0, written,
                                     sizeof written, &err),
                     PL_OK);
    save(&run);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    tiny_run_open(&run);
    assert_int_equal(r->gpt.graph.buffers[r->gpt.weights[0]].dtype, PL_BF16);
    assert_int_equal(
        pl_device_read(r->device, r->gpt.weights[0], 0, got, sizeof got, &err),
        PL_OK);
    assert_memory_equal(got, wanted, sizeof got);
    tiny_run_remove(&run);
}

static void no_checkpoint_says_where_it_looked(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_make(&run);
    assert_refused(&run, "--init_from=resume", PL_E_IO, "no checkpoint here");
    tiny_run_remove(&run);
}

/* Replaces `file` of the checkpoint by its first `keep` bytes. */
static void cut(tiny_run *run, const char *file, size_t keep)
{
    const char *path = scratch_path(&run->folder, file);
    size_t bytes;
    char *text = scratch_read(path, &bytes);
    assert_non_null(text);
    scratch_write(path, text, keep < bytes ? keep : bytes);
    free(text);
}

/* ---- what may change ---- */

typedef struct ear {
    char text[4096];
} ear;

static void listen(void *context, pl_log_level level, const char *text)
{
    ear *e = context;
    (void)level;
    strncat(e->text, text, sizeof e->text - strlen(e->text) - 2);
    strcat(e->text, "\n");
}

static void keys_that_may_change_are_said(void **state)
{
    (void)state;
    tiny_run run;
    ear heard = { "" };
    pl_log log = { listen, &heard };
    pl_machine machine;
    pl_error err = { 0 };
    tiny_run_make(&run);
    tiny_run_open(&run);
    save(&run);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    tiny_run_set(&run, "--max_iters=99");
    tiny_run_set(&run, "--threads=1");
    assert_int_equal(pl_machine_make(&machine, PL_MACHINE_RUN, &run.config,
                                     NULL, &run.heap, &err),
                     PL_OK);
    assert_int_equal(pl_session_open_train(&run.session, run.purpose,
                                           &run.config, &machine, &log,
                                           &run.heap, &err),
                     PL_OK);
    run.is_open = 1;
    assert_non_null(strstr(heard.text, "max_iters 6 -> 99, threads 2 -> 1\n"));
    tiny_run_close(&run);
    heard.text[0] = '\0';
    tiny_run_set(&run, "--learning_rate=0.5");
    pl_status status = pl_machine_make(&machine, PL_MACHINE_RUN, &run.config,
                                       NULL, &run.heap, &err);
    if (!status)
        status = pl_session_open_train(&run.session, run.purpose, &run.config,
                                       &machine, &log, &run.heap, &err);
    assert_int_equal(status, PL_OK);
    run.is_open = 1;
    assert_non_null(strstr(heard.text, "another one from here on"));
    tiny_run_remove(&run);
}

static void another_seed_or_other_data_stop_it(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_make(&run);
    tiny_run_open(&run);
    save(&run);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    assert_refused(&run, "--seed=7", PL_E_CONFIG,
                   "seed is 1337 in the checkpoint and 7");
    tiny_run_set(&run, "--seed=1337");
    cut(&run, "val.bin", 5000);
    assert_refused(&run, NULL, PL_E_CONFIG, "2500 tokens, and had 3000");
    tiny_run_remove(&run);
}

static void a_checkpoint_itself_is_no_out_dir(void **state)
{
    (void)state;
    tiny_run run;
    char setting[600];
    tiny_run_make(&run);
    tiny_run_open(&run);
    save(&run);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    snprintf(setting, sizeof setting, "--out_dir=%s",
             scratch_path(&run.folder, "out/step-00000000"));
    assert_refused(&run, setting, PL_E_USAGE, "is a checkpoint itself");
    tiny_run_remove(&run);
}

static void an_init_from_that_is_nothing_is_refused(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_make(&run);
    assert_refused(&run, "--init_from=gpt2-xl", PL_E_IO, "gpt2-xl");
    tiny_run_remove(&run);
}

static void data_that_is_too_short_is_refused(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_make(&run);
    scratch_write(scratch_path(&run.folder, "val.bin"), "\1\0\2\0\3\0", 6);
    assert_refused(&run, NULL, PL_E_CONFIG, "val.bin");
    tiny_run_remove(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_and_moments_come_back_bit_for_bit),
        cmocka_unit_test(a_state_without_the_best_ones_bits_is_read),
        cmocka_unit_test(other_families_come_back_bit_for_bit),
        cmocka_unit_test(the_model_has_every_tensor_of_a_gpt2),
        cmocka_unit_test(the_json_files_say_what_the_model_is),
        cmocka_unit_test(the_settings_of_a_run_come_back),
        cmocka_unit_test(what_was_set_comes_back_set_and_a_default_a_default),
        cmocka_unit_test(an_old_state_has_defaults_where_it_has_their_values),
        cmocka_unit_test(a_list_of_what_was_set_that_is_none_is_refused),
        cmocka_unit_test(another_model_is_refused_with_the_difference),
        cmocka_unit_test(another_way_of_keeping_it_is_refused_by_its_key),
        cmocka_unit_test(small_state_is_small_on_disk),
        cmocka_unit_test(a_weight_that_no_rounding_leaves_is_rounded),
        cmocka_unit_test(no_checkpoint_says_where_it_looked),
        cmocka_unit_test(keys_that_may_change_are_said),
        cmocka_unit_test(another_seed_or_other_data_stop_it),
        cmocka_unit_test(a_checkpoint_itself_is_no_out_dir),
        cmocka_unit_test(an_init_from_that_is_nothing_is_refused),
        cmocka_unit_test(data_that_is_too_short_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
