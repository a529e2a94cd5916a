/* rank_table.h: what the processes of a run (ranks) take: the largest, the
 * smallest, all of them. */
#ifndef PL_CLI_RANK_TABLE_H
#define PL_CLI_RANK_TABLE_H

#include "advise/rankplan.h"

/* each[ranks]: planned, or gathered from them. `one` is what one machine would
 * take for the same run; NULL: unknown, and nothing is compared with it. */
void pl_rank_table_print(const pl_rank_bytes *each, size_t ranks,
                         const pl_rank_bytes *one);

#endif
