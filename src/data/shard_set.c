/* shard_set.c: see shard_set.h. */
#include "data/shard_set.h"

#include "base/check.h"

pl_status pl_shard_set_open(pl_shard_set *set, const char *const *paths,
                            size_t count, pl_heap *heap, pl_error *err)
{
    PL_CHECK(count > 0);
    *set = (pl_shard_set){ .count = 0 };
    pl_status status = pl_heap_take(heap, &set->shards, count,
                                    sizeof *set->shards, err);
    if (!status)
        status = pl_heap_take(heap, &set->begins, count, sizeof *set->begins,
                              err);
    for (size_t i = 0; !status && i < count; i++) {
        status = pl_shard_open(&set->shards[i], paths[i], err);
        if (status)
            break;
        set->begins[i] = set->n_tokens;
        set->n_tokens += set->shards[i].n_tokens;
        set->count++;
    }
    if (status) {
        pl_shard_set_close(set);
        return status;
    }
    set->name = set->shards[0].file.path;
    return PL_OK;
}

void pl_shard_set_close(pl_shard_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        pl_shard_close(&set->shards[i]);
    set->count = 0;
}

/* The shard in which token `at` lies, by halving. */
static size_t find(const pl_shard_set *set, uint64_t at)
{
    size_t low = 0, high = set->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (set->begins[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

pl_status pl_shard_set_read(const pl_shard_set *set, uint64_t first,
                            size_t count, int32_t *out, int32_t vocab_size,
                            pl_error *err)
{
    PL_CHECK(first <= set->n_tokens && count <= set->n_tokens - first);
    for (size_t i = find(set, first); count > 0; i++) {
        const pl_shard *shard = &set->shards[i];
        uint64_t at = first - set->begins[i], rest = shard->n_tokens - at;
        size_t part = rest < count ? (size_t)rest : count;
        pl_status status = pl_shard_read(shard, at, part, out, vocab_size, err);
        if (status)
            return status;
        first += part;
        out += part;
        count -= part;
    }
    return PL_OK;
}
