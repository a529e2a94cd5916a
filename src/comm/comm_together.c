/* comm_together.c: what all ranks do at once, of messages between two of them;
 * see comm.h. */
#include "base/check.h"
#include "comm/comm.h"

pl_status pl_comm_exchange(pl_comm *comm, int partner, const void *out,
                           void *in, size_t bytes, pl_error *err)
{
    pl_comm_message sending = { .handle = NULL },
                    receiving = { .handle = NULL };
    pl_status status = pl_comm_begin_receive(comm, partner, in, bytes,
                                             &receiving, err);
    if (!status)
        status = pl_comm_begin_send(comm, partner, out, bytes, &sending, err);
    if (!status)
        status = pl_comm_wait(comm, &receiving, err);
    return status ? status : pl_comm_wait(comm, &sending, err);
}

/* A binomial tree: who has it sends it twice as far each time. */
pl_status pl_comm_broadcast(pl_comm *comm, void *data, size_t bytes,
                            pl_error *err)
{
    const int rank = pl_comm_rank(comm), ranks = pl_comm_ranks(comm);
    pl_status status = PL_OK;
    for (int far = 1; far < ranks && !status; far *= 2) {
        pl_comm_message message = { .handle = NULL };
        if (rank < far && rank + far < ranks)
            status = pl_comm_begin_send(comm, rank + far, data, bytes, &message,
                                        err);
        else if (rank >= far && rank < 2 * far)
            status = pl_comm_begin_receive(comm, rank - far, data, bytes,
                                           &message, err);
        if (!status)
            status = pl_comm_wait(comm, &message, err);
    }
    return status;
}

/* Recursive doubling: after each round a rank has what twice as many had. */
pl_status pl_comm_gather_all(pl_comm *comm, void *all, size_t bytes,
                             pl_error *err)
{
    const int rank = pl_comm_rank(comm), ranks = pl_comm_ranks(comm);
    pl_status status = PL_OK;
    PL_CHECK((ranks & (ranks - 1)) == 0);
    for (int far = 1; far < ranks && !status; far *= 2) {
        const int partner = rank ^ far, own = rank & ~(far - 1),
                  theirs = partner & ~(far - 1);
        status = pl_comm_exchange(
            comm, partner, (char *)all + (size_t)own * bytes,
            (char *)all + (size_t)theirs * bytes, (size_t)far * bytes, err);
    }
    return status;
}

pl_status pl_comm_any(pl_comm *comm, int *flag, pl_error *err)
{
    pl_status status = PL_OK;
    for (int far = 1; far < pl_comm_ranks(comm) && !status; far *= 2) {
        int theirs = 0;
        status = pl_comm_exchange(comm, pl_comm_rank(comm) ^ far, flag, &theirs,
                                  sizeof theirs, err);
        *flag = *flag || theirs;
    }
    return status;
}
