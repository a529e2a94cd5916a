/* session_agree.c: see session_agree.h. */
#include "train/session_agree.h"
#include "advise/runplan.h"
#include "base/hash.h"

#include <string.h>

/* ---- data ---- */

typedef struct data_card {
    uint64_t splits[2];
    uint64_t tokens[2];
    uint64_t vocabulary; /* a hash of the tokenizer's file */
} data_card;

static pl_status hash_vocabulary(const pl_session *session, uint64_t *hash,
                                 pl_error *err)
{
    const pl_tokenizer *tokenizer = &session->run.tokenizer;
    pl_heap heap = pl_heap_make(4 * (size_t)PL_TOKENIZER_MAX_BYTES);
    pl_tokenizer_text text = { .bytes = 0 };
    pl_status status = pl_tokenizer_write(tokenizer, &heap, &text, err);
    *hash = pl_hash_chain((uint64_t)tokenizer->vocab_size, text.text,
                          text.name ? text.bytes : 0);
    pl_heap_close(&heap);
    return status;
}

static pl_status compare_data(const pl_session *session, const data_card *first,
                              const data_card *other, size_t rank,
                              pl_error *err)
{
    static const char *const names[2] = { "train", "val" };
    const pl_comm *comm = session->ranks.comm;
    for (int i = 0; i < 2; i++)
        if (other->splits[i] != first->splits[i])
            return pl_fail(
                err, PL_E_RANKS,
                "%s has other tokens in %s.bin of '%s' than %s (%llu of them, "
                "and %llu): copy the same folder to all machines",
                pl_comm_rank_name(comm, (int)rank).text, names[i],
                session->run.config->dataset, pl_comm_rank_name(comm, 0).text,
                (unsigned long long)other->tokens[i],
                (unsigned long long)first->tokens[i]);
    if (other->vocabulary != first->vocabulary)
        return pl_fail(err, PL_E_RANKS,
                       "%s has another tokenizer beside the data than %s: "
                       "copy the same folder to all machines",
                       pl_comm_rank_name(comm, (int)rank).text,
                       pl_comm_rank_name(comm, 0).text);
    return PL_OK;
}

pl_status pl_agree_data(const pl_session *session, const uint64_t hashes[2],
                        pl_error *err)
{
    pl_comm *comm = session->ranks.comm;
    const size_t ranks = (size_t)pl_comm_ranks(comm);
    data_card *cards;
    pl_status status = pl_heap_take(session->run.heap, &cards, ranks,
                                    sizeof *cards, err);
    if (status)
        return status;
    data_card *own = &cards[pl_comm_rank(comm)];
    memset(own, 0, sizeof *own);
    for (int i = 0; i < 2; i++) {
        own->splits[i] = hashes[i];
        own->tokens[i] = session->run.dataset.shards[i].n_tokens;
    }
    status = hash_vocabulary(session, &own->vocabulary, err);
    if (!status)
        status = pl_comm_gather_all(comm, cards, sizeof *cards, err);
    for (size_t i = 1; i < ranks && !status; i++)
        status = compare_data(session, &cards[0], &cards[i], i, err);
    return status;
}

/* ---- plans ---- */

pl_status pl_agree_plan(pl_session *session, pl_error *err)
{
    pl_comm *comm = session->ranks.comm;
    const size_t ranks = (size_t)pl_comm_ranks(comm);
    const pl_gpt *gpt = &session->run.gpt;
    pl_status status = pl_heap_take(session->run.heap, &session->needs, ranks,
                                    sizeof *session->needs, err);
    if (status)
        return status;
    session->needs[pl_comm_rank(comm)] = (pl_rank_need){
        .bytes = pl_run_plan_host_arena(gpt) + session->reserve_bytes +
                 pl_comm_memory_bytes(comm) + session->files_bytes,
        .arithmetic = gpt->layout.device.arithmetic,
    };
    status = pl_comm_gather_all(comm, session->needs, sizeof *session->needs,
                                err);
    for (size_t i = 1; i < ranks && !status; i++)
        if (session->needs[i].arithmetic != session->needs[0].arithmetic)
            status = pl_fail(
                err, PL_E_RANKS,
                "%s computes by arithmetic %llu and %s by %llu, so that their "
                "bits would differ: let all have the same `products`, or "
                "--device=cpu",
                pl_comm_rank_name(comm, (int)i).text,
                (unsigned long long)session->needs[i].arithmetic,
                pl_comm_rank_name(comm, 0).text,
                (unsigned long long)session->needs[0].arithmetic);
    return status;
}
