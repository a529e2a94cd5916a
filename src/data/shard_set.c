/* shard_set.c: see shard_set.h. */
#include "data/shard_set.h"

#include "base/check.h"

/* Whether this one and the first both have a header, or both none. The one
 * without is named first: more often it is the damaged one. */
static pl_status check_alike(const pl_shard *first, const pl_shard *shard,
                             pl_error *err)
{
    int bare = shard->kind == PL_SHARD_NANOGPT;
    if (bare == (first->kind == PL_SHARD_NANOGPT))
        return PL_OK;
    return pl_fail(err, PL_E_FORMAT,
                   "%s doesn't begin with llm.c's header, but %s beside it "
                   "does. Copy the first one again, or keep files of one kind "
                   "in a folder",
                   bare ? shard->file.path : first->file.path,
                   bare ? first->file.path : shard->file.path);
}

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
        status = check_alike(&set->shards[0], &set->shards[i], err);
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

/* The shard that has token `at`, by binary search. */
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
