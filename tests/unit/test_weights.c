/* Tests of store/weights: the same weights in the form of other files. */
#include "store/checkpoint.h"
#include "store/weights.h"
#include "support/tiny_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void make_model(tiny_run *run, const char *first, const char *second)
{
    pl_error err = { 0 };
    tiny_run_make(run);
    tiny_run_set(run, first);
    tiny_run_set(run, second);
    tiny_run_open(run);
    tiny_run_train(run, 1); /* biases are zeros before */
    if (pl_checkpoint_save(&run->session.run, &err))
        fail_msg("%s", err.text);
    tiny_run_close(run);
}

/* A whole tensor in a form. */
static float *all_of(const pl_weights *w, size_t i, pl_weights_form form)
{
    const pl_weights_dims dims = pl_weights_size(&w->shape, i, form.layout);
    float *out = malloc(dims.rows * dims.cols * sizeof *out);
    pl_error err = { 0 };
    if (pl_weights_rows(w, i, form, 0, dims.rows, out, &err))
        fail_msg("%s", err.text);
    return out;
}

/* llama.cpp rotates neighbours: its row 2 k + h of a head is theirs h D/2 + k,
 * of queries and keys, of weights and biases, and of nothing else. */
static void llama_s_queries_and_keys_come_in_neighbours(void **state)
{
    (void)state;
    static const struct {
        const char *family;
        pl_weights_pairs pairs;
    } cases[] = { { "--architecture=llama", PL_PAIRS_ADJACENT },
                  { "--architecture=qwen3", PL_PAIRS_HALVES } };
    for (size_t c = 0; c < 2; c++) {
        tiny_run run;
        pl_weights w;
        pl_error err = { 0 };
        pl_heap heap = pl_heap_make(64 << 20);
        size_t moved = 0;
        make_model(&run, cases[c].family, "--bias=True");
        if (pl_weights_open_folder(&w, scratch_path(&run.folder, "out/latest"),
                                   &heap, &err))
            fail_msg("%s", err.text);
        const pl_weights_form hf = pl_weights_form_hf(&w.shape),
                              gguf = pl_weights_form_gguf(&w.shape);
        assert_int_equal(gguf.pairs, cases[c].pairs);
        assert_int_equal(hf.layout, PL_LAYOUT_OUT_IN);
        for (size_t i = 0; i < pl_weights_count(&w.shape); i++) {
            const pl_weights_tensor t = pl_weights_at(&w.shape, i);
            if (!t.is_written)
                continue;
            const size_t width = t.param.is_2d ? t.own.cols : 1, D = w.shape.D;
            float *a = all_of(&w, i, hf), *b = all_of(&w, i, gguf);
            const int pairs = gguf.pairs == PL_PAIRS_ADJACENT &&
                              (strstr(t.own.name.text, ".q_proj.") ||
                               strstr(t.own.name.text, ".k_proj."));
            for (size_t row = 0; row < t.own.rows; row++) {
                const size_t at = row % D,
                             from = !pairs
                                        ? row
                                        : row - at + at % 2 * (D / 2) + at / 2;
                assert_memory_equal(b + row * width, a + from * width,
                                    width * sizeof *a);
                moved += memcmp(b + row * width, a + row * width,
                                width * sizeof *a) != 0;
            }
            free(a);
            free(b);
        }
        assert_true((moved > 0) == (cases[c].pairs == PL_PAIRS_ADJACENT));
        pl_weights_close(&w);
        pl_heap_close(&heap);
        tiny_run_remove(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_s_queries_and_keys_come_in_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
