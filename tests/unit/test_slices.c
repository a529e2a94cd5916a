/* Tests of the slices that ranks keep of the parameters. */
#include "kernels/kernels.h"
#include "model/from_config.h"
#include "model/params.h"
#include "model/slices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct fixture {
    pl_heap heap;
    pl_config config;
    pl_shape shape;
    pl_slices slices;
} fixture;

static fixture make_wide(pl_optimizer_choice optimizer, size_t ranks,
                         int64_t n_embd)
{
    fixture f = { .heap = pl_heap_make((size_t)1 << 24),
                  .config = pl_config_make_default() };
    pl_error err;
    f.config.n_layer = 5;
    f.config.n_head = 4;
    f.config.n_embd = n_embd;
    f.config.block_size = 40;
    assert_int_equal(pl_shape_make(&f.shape, &f.config, 611, NULL, &err),
                     PL_OK);
    assert_int_equal(
        pl_slices_make(&f.slices, &f.shape, optimizer, ranks, &f.heap, &err),
        PL_OK);
    return f;
}

static fixture make(pl_optimizer_choice optimizer, size_t ranks)
{
    return make_wide(optimizer, ranks, 136);
}

/* Every element has one owner, in order, and begins where sums of the norm
 * do. */
static void check_cover(const fixture *f, size_t ranks)
{
    size_t all = 0, block = 0;
    for (size_t slot = 0; slot < f->slices.slots; slot++) {
        const pl_param param = pl_param_at(&f->shape, slot);
        size_t at = 0;
        if (!pl_param_present(&f->shape, &param))
            continue;
        for (size_t rank = 0; rank < ranks; rank++) {
            const pl_slice own = pl_slices_at(&f->slices, slot, rank);
            if (own.count == 0)
                continue;
            const pl_slice sums = pl_slices_partials(&f->slices, slot, rank);
            assert_int_equal(own.first, at);
            assert_int_equal(own.first % PL_SUMSQ_BLOCK, 0);
            assert_int_equal(sums.first, block + at / PL_SUMSQ_BLOCK);
            assert_int_equal(sums.count,
                             (own.count + PL_SUMSQ_BLOCK - 1) / PL_SUMSQ_BLOCK);
            at += own.count;
        }
        assert_int_equal(at, param.rows * param.cols);
        all += at;
        block += (at + PL_SUMSQ_BLOCK - 1) / PL_SUMSQ_BLOCK;
    }
    assert_int_equal(all, f->slices.elements);
}

static void test_cover(void **state)
{
    static const pl_optimizer_choice optimizers[] = { PL_OPTIMIZER_ADAMW,
                                                      PL_OPTIMIZER_MUON };
    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (size_t ranks = 1; ranks <= 64; ranks *= 2) {
            fixture f = make(optimizers[i], ranks);
            size_t sum = 0;
            check_cover(&f, ranks);
            for (size_t rank = 0; rank < ranks; rank++)
                sum += pl_slices_elements(&f.slices, rank);
            assert_int_equal(sum, f.slices.elements);
            pl_heap_close(&f.heap);
        }
}

/* No rank keeps more than its part and the block that its last cut goes to. */
static void test_balance(void **state)
{
    (void)state;
    for (size_t ranks = 2; ranks <= 16; ranks *= 2) {
        fixture f = make(PL_OPTIMIZER_ADAMW, ranks);
        for (size_t rank = 0; rank < ranks; rank++)
            assert_true(pl_slices_elements(&f.slices, rank) <=
                        f.slices.elements / ranks + 1 + PL_SUMSQ_BLOCK);
        pl_heap_close(&f.heap);
    }
}

/* Gradients of a layer travel both ways at once: each rank has its part of it,
 * give or take a block and what it had too much or too little before. */
static void test_spread(void **state)
{
    (void)state;
    for (size_t ranks = 2; ranks <= 8; ranks *= 2) {
        fixture f = make_wide(PL_OPTIMIZER_ADAMW, ranks, 512);
        for (int layer = -1; layer < 5; layer++) {
            size_t all = 0, own[8] = { 0 };
            for (size_t slot = 0; slot < f.slices.slots; slot++) {
                if (pl_param_at(&f.shape, slot).layer != layer)
                    continue;
                for (size_t rank = 0; rank < ranks; rank++)
                    own[rank] += pl_slices_at(&f.slices, slot, rank).count;
                all += f.slices.begins[slot + 1] - f.slices.begins[slot];
            }
            for (size_t rank = 0; rank < ranks; rank++) {
                assert_true(own[rank] <= all / ranks + 2 * PL_SUMSQ_BLOCK);
                assert_true(own[rank] + 2 * PL_SUMSQ_BLOCK >= all / ranks);
            }
        }
        pl_heap_close(&f.heap);
    }
}

/* A matrix that is Muon's is whole, and nobody has more than its part and one
 * of them. */
static void test_whole(void **state)
{
    size_t whole = 0;
    const size_t largest = 4 * 136 * 136;
    (void)state;
    fixture f = make(PL_OPTIMIZER_MUON, 8);
    for (size_t slot = 0; slot < f.slices.slots; slot++) {
        const pl_param param = pl_param_at(&f.shape, slot);
        size_t owners = 0;
        for (size_t rank = 0; rank < 8; rank++)
            owners += pl_slices_at(&f.slices, slot, rank).count > 0;
        if (!f.slices.is_whole[slot] || !pl_param_present(&f.shape, &param))
            continue;
        assert_int_equal(owners, 1);
        whole++;
    }
    assert_int_equal(whole, 4 * 5);
    for (size_t rank = 0; rank < 8; rank++)
        assert_true(pl_slices_elements(&f.slices, rank) <=
                    f.slices.elements / 8 + largest);
    pl_heap_close(&f.heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cover),
        cmocka_unit_test(test_balance),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
