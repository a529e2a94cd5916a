/* Tests of who writes which part of a checkpoint's tensors, where several
 * processes write them. */
#include "config/keys.h"
#include "model/from_config.h"
#include "store/checkpoint_tensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCK_BYTES = 64 * 1024, MOST_RANKS = 8 };

typedef struct fixture {
    pl_heap heap;
    pl_gpt gpt;
} fixture;

typedef struct settings {
    pl_optimizer_choice optimizer;
    pl_optimizer_state_choice state;
    pl_architecture_choice architecture;
    int64_t sync_interval;
} settings;

static fixture make(const settings *s, size_t ranks)
{
    fixture f = { .heap = pl_heap_make((size_t)1 << 26) };
    pl_config config = pl_config_make_default();
    pl_shape shape;
    pl_gpt_layout layout;
    pl_error err = { 0 };
    config.architecture = s->architecture;
    config.optimizer = s->optimizer;
    config.optimizer_state = s->state;
    config.sync_interval = s->sync_interval;
    config.n_layer = 3;
    config.n_head = 4;
    config.n_embd = 512;
    config.block_size = 40;
    config.batch_size = 1;
    config.gradient_accumulation_steps = MOST_RANKS;
    config.gradient_groups = (int64_t)(s->sync_interval > 1 ? ranks
                                                            : MOST_RANKS);
    pl_status status = pl_shape_make(&shape, &config, 1611, NULL, &err);
    if (!status)
        status = pl_gpt_layout_make(&layout, &shape, &config,
                                    PL_PURPOSE_TRAINING, &f.heap, &err);
    if (!status) {
        pl_gpt_layout_share(&layout, ranks, 0);
        status = pl_gpt_make(&f.gpt, &shape, &layout, &f.heap, &err);
    }
    if (status)
        fail_msg("%s", err.text);
    return f;
}

/* Who writes each block of a file, so far. */
typedef struct blocks {
    size_t count;
    unsigned char *writers; /* bit r: rank r */
    size_t bytes[MOST_RANKS];
} blocks;

static void mark(blocks *b, uint64_t place, const pl_tensor_part *part)
{
    for (uint64_t at = place / BLOCK_BYTES;
         at <= (place + part->bytes - 1) / BLOCK_BYTES; at++) {
        assert_true(at < b->count);
        b->writers[at] |= (unsigned char)(1u << part->writer);
    }
    b->bytes[part->writer] += part->bytes;
}

static uint64_t bytes_of(const pl_tensor_info *info)
{
    uint64_t bytes = info->rank ? pl_tensor_dtype_bytes(info->dtype) : 0;
    for (size_t i = 0; i < info->rank; i++)
        bytes *= info->dims[i];
    return bytes;
}

/* What it writes, it has. */
static void require_own(const pl_kept *k, size_t i, uint64_t at,
                        const pl_tensor_part *part)
{
    pl_tensors_row row = pl_tensors_at(k->gpt, k->file, i);
    const uint64_t each = pl_tensor_dtype_bytes(row.info.dtype);
    row.worker = k->worker;
    const pl_tensors_share own = pl_tensors_own(k->gpt, &row, part->writer);
    assert_int_equal(at % each, 0);
    assert_int_equal(part->bytes % each, 0);
    assert_true(at / each >= own.first);
    assert_true((at + part->bytes) / each <= own.first + own.count);
}

static void check_file(const pl_gpt *gpt, const pl_tensors_name *name,
                       blocks *b)
{
    pl_kept k = {
        .gpt = gpt, .file = name->file, .worker = name->worker, .is_shared = 1
    };
    const pl_tensor_source source = pl_kept_source(&k);
    const uint64_t size = pl_safetensors_size(&source);
    pl_tensor_info info;
    uint64_t place = size;
    for (size_t i = 0; i < source.count; i++) {
        source.describe(source.context, i, &info);
        place -= bytes_of(&info);
    }
    b->count = (size_t)(size / BLOCK_BYTES) + 1;
    b->writers = calloc(b->count, 1);
    assert_non_null(b->writers);
    mark(b, 0, &(pl_tensor_part){ place, 0 });
    for (size_t i = 0; i < source.count; i++) {
        source.describe(source.context, i, &info);
        for (uint64_t at = 0; at < bytes_of(&info);) {
            const pl_tensor_part part = source.part(source.context, i, at,
                                                    place);
            assert_true(part.bytes > 0 && part.bytes <= bytes_of(&info) - at);
            assert_true(part.writer < pl_gpt_ranks(&gpt->layout));
            if (part.writer > 0)
                require_own(&k, i, at, &part);
            mark(b, place, &part);
            at += part.bytes;
            place += part.bytes;
        }
    }
    assert_true(place == size);
    for (size_t i = 0; i < b->count; i++)
        if (b->writers[i] & (b->writers[i] - 1))
            fail_msg("%s: block %zu has several writers", name->text, i);
    free(b->writers);
}

static void check_checkpoint(const settings *s, size_t ranks)
{
    fixture f = make(s, ranks);
    blocks b = { .count = 0 };
    size_t all = 0;
    for (size_t i = 0; i < pl_checkpoint_files(&f.gpt); i++) {
        const pl_tensors_name name = pl_checkpoint_file(&f.gpt, i);
        check_file(&f.gpt, &name, &b);
    }
    for (size_t rank = 0; rank < ranks; rank++)
        all += b.bytes[rank];
    /* about a share each, as even as slices are; what rank 0 writes for others
     * are the blocks around the ends of tensors and of shares, which in a model
     * as small are as much again with 8 ranks and 8 bits */
    for (size_t rank = 0; rank < ranks; rank++)
        assert_true(b.bytes[rank] > all / ranks / 2);
    assert_true(b.bytes[0] < all / ranks * 2);
    pl_heap_close(&f.heap);
}

static void each_block_has_one_writer_which_has_what_it_writes(void **state)
{
    static const settings all[] = {
        { PL_OPTIMIZER_ADAMW, PL_OPTIMIZER_STATE_FLOAT32, PL_ARCHITECTURE_GPT2,
          1 },
        { PL_OPTIMIZER_ADAMW, PL_OPTIMIZER_STATE_8BIT, PL_ARCHITECTURE_QWEN3,
          1 },
        { PL_OPTIMIZER_MUON, PL_OPTIMIZER_STATE_FLOAT32, PL_ARCHITECTURE_LLAMA,
          1 },
        { PL_OPTIMIZER_ADAMW, PL_OPTIMIZER_STATE_FLOAT32, PL_ARCHITECTURE_GPT2,
          4 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (size_t ranks = 2; ranks <= MOST_RANKS; ranks *= 2)
            check_checkpoint(&all[i], ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_block_has_one_writer_which_has_what_it_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
