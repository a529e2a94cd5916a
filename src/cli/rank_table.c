/* rank_table.c: see rank_table.h. */
#include "cli/rank_table.h"
#include "cli/term.h"

#include <stdio.h>

static void print_row(const char *name, const pl_rank_bytes *row,
                      const pl_rank_bytes *one)
{
    const uint64_t parts[] = { row->weights, row->gradients, row->moments,
                               row->rest };
    printf("%-20s", name);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        printf(" %10s", pl_units_bytes(parts[i]).text);
    printf(" %s%10s%s", pl_term_out(PL_TERM_BOLD),
           pl_units_bytes(row->total).text, pl_term_out_end());
    if (one)
        printf(" %8.1f %%", 100.0 * (double)row->total / (double)one->total);
    printf("  %s\n", pl_units_exact(row->total).text);
}

void pl_rank_table_print(const pl_rank_bytes *each, size_t ranks,
                         const pl_rank_bytes *one)
{
    const pl_rank_range range = pl_rank_range_of(each, ranks);
    char name[48];
    printf("%s%-20s %10s %10s %10s %10s %10s%s%s\n", pl_term_out(PL_TERM_BOLD),
           "what a rank takes", "weights", "gradients", "moments", "the rest",
           "total", one ? "     of one" : "", pl_term_out_end());
    snprintf(name, sizeof name, "largest, rank %zu", range.largest);
    print_row(name, &each[range.largest], one);
    snprintf(name, sizeof name, "smallest, rank %zu", range.smallest);
    print_row(name, &each[range.smallest], one);
    snprintf(name, sizeof name, "all %zu", ranks);
    print_row(name, &range.all, one);
    if (one)
        print_row("one machine", one, one);
}
