/* Tests of store/gguf_shape: what a GGUF's keys say of a model, both ways. */
#include "base/file.h"
#include "store/gguf_shape.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static pl_error err;
static unsigned char buffer[PL_GGUF_BUFFER_BYTES];

static pl_shape a_shape(pl_family family)
{
    pl_shape shape = { 0 };
    pl_shape_set_absent(&shape, pl_shape_file_of(family));
    shape.L = 3;
    shape.H = 4;
    shape.KV = family == PL_FAMILY_GPT2 ? 4 : 2;
    shape.C = 48;
    shape.D = family == PL_FAMILY_QWEN3 ? 20 : 12;
    shape.T = 100;
    shape.V = 7;
    shape.F = family == PL_FAMILY_GPT2 ? 0 : 88;
    shape.head = PL_HEAD_TIED;
    shape.rope_theta = family == PL_FAMILY_GPT2 ? 10000.0 : 500000.0;
    shape.norm_eps = 0.25; /* the same as a float */
    pl_shape_complete(&shape);
    return shape;
}

typedef enum more { NO_MORE, A_TEXT, A_NUMBER, A_FLOAT } more;

/* The keys of `shape`, one more, and the token table alone. */
static pl_status read_back(const pl_shape *shape, more what, const char *key,
                           const char *text, double number, pl_shape *out)
{
    scratch dir;
    pl_gguf_writer writer;
    pl_gguf gguf;
    pl_heap heap = pl_heap_make(1 << 20);
    static const float row[48];
    pl_gguf_tensor tokens = { .name = "token_embd.weight",
                              .type = PL_GGML_F32,
                              .rank = 2,
                              .dims = { 48, 7, 1, 1 } };
    scratch_open(&dir);
    const char *path = scratch_path(&dir, "m.gguf");
    if (pl_gguf_begin(&writer, path, buffer, &err))
        fail_msg("%s", err.text);
    pl_gguf_shape_put(&writer, shape);
    if (what == A_TEXT)
        pl_gguf_put_text(&writer, key, text);
    if (what == A_NUMBER)
        pl_gguf_put_u32(&writer, key, (uint32_t)number);
    if (what == A_FLOAT)
        pl_gguf_put_f32(&writer, key, (float)number);
    pl_gguf_put_tensor(&writer, &tokens);
    for (uint64_t i = 0; i < 7; i++)
        assert_int_equal(pl_gguf_data(&writer, &tokens, i * sizeof row, row,
                                      sizeof row, &err),
                         PL_OK);
    assert_int_equal(pl_gguf_end(&writer, &err), PL_OK);
    if (pl_gguf_open(&gguf, path, &heap, &err))
        fail_msg("%s", err.text);
    const pl_status status = pl_gguf_shape_read(&gguf, out, &err);
    pl_gguf_close(&gguf);
    pl_heap_close(&heap);
    scratch_close(&dir);
    return status;
}

static void every_family_comes_back(void **state)
{
    (void)state;
    for (int f = 0; f < 3; f++) {
        const pl_shape shape = a_shape((pl_family)f);
        pl_shape back;
        if (read_back(&shape, NO_MORE, NULL, NULL, 0, &back))
            fail_msg("%s", err.text);
        for (int i = 0; i < PL_SHAPE_FIELDS; i++)
            assert_true(pl_shape_number(&back, (pl_shape_field)i) ==
                        pl_shape_number(&shape, (pl_shape_field)i));
        assert_int_equal(back.A, shape.A);
    }
}

static void what_is_not_computed_is_refused_by_its_key(void **state)
{
    (void)state;
    static const struct {
        pl_family family;
        more what;
        const char *key, *text;
        double number;
        const char *words; /* NULL: it is read */
    } cases[] = {
        { PL_FAMILY_LLAMA, A_TEXT, "llama.rope.scaling.type", "yarn", 0,
          "llama.rope.scaling.type is yarn" },
        { PL_FAMILY_LLAMA, A_TEXT, "llama.rope.scaling.type", "none", 0, NULL },
        { PL_FAMILY_QWEN3, A_FLOAT, "qwen3.rope.scaling.factor", NULL, 4,
          "qwen3.rope.scaling.factor" },
        { PL_FAMILY_LLAMA, A_NUMBER, "llama.expert_count", NULL, 8,
          "llama.expert_count" },
        { PL_FAMILY_LLAMA, A_NUMBER, "llama.expert_count", NULL, 0, NULL },
        { PL_FAMILY_QWEN3, A_NUMBER, "qwen3.attention.sliding_window", NULL,
          4096, "sliding_window" },
        { PL_FAMILY_QWEN3, A_NUMBER, "llama.expert_count", NULL, 8, NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pl_shape shape = a_shape(cases[i].family);
        pl_shape back;
        const pl_status status = read_back(&shape, cases[i].what, cases[i].key,
                                           cases[i].text, cases[i].number,
                                           &back);
        assert_int_equal(status, cases[i].words ? PL_E_UNSUPPORTED : PL_OK);
        if (cases[i].words)
            assert_contains(err.text, cases[i].words);
    }
}

static void what_no_model_can_have_is_refused(void **state)
{
    (void)state;
    pl_shape odd = a_shape(PL_FAMILY_LLAMA), few = odd, wide = odd, back;
    odd.D = 11;
    assert_int_equal(read_back(&odd, NO_MORE, NULL, NULL, 0, &back),
                     PL_E_FORMAT);
    assert_contains(err.text, "odd width");
    few.KV = 3;
    assert_int_equal(read_back(&few, NO_MORE, NULL, NULL, 0, &back),
                     PL_E_FORMAT);
    assert_contains(err.text, "n_kv_head doesn't divide n_head");
    wide.norm_eps = 2.0;
    assert_int_equal(read_back(&wide, NO_MORE, NULL, NULL, 0, &back),
                     PL_E_FORMAT);
    assert_contains(err.text, "layer_norm_rms_epsilon");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_comes_back),
        cmocka_unit_test(what_is_not_computed_is_refused_by_its_key),
        cmocka_unit_test(what_no_model_can_have_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
