/* parquet_parts.h: what the files of the parquet reader share. */
#ifndef PL_DATA_PARQUET_PARTS_H
#define PL_DATA_PARQUET_PARTS_H

#include "data/parquet.h"

/* parquet_meta.c: finds the column and the row groups, checks them all, and
 * stands before the first. */
PL_MUST_CHECK pl_status pl_parquet_read_footer(pl_parquet *p, pl_error *err);

/* parquet_meta.c: begins the next row group: p->chunk, and the page before its
 * first. There must be one. */
PL_MUST_CHECK pl_status pl_parquet_read_group(pl_parquet *p, pl_error *err);

/* parquet_page.c: begins the next data page of the chunk, of which there must
 * be one. Dictionary pages on the way are read. A page all of whose rows are
 * below *skip isn't unpacked: they are taken off *skip, page_left becomes 0. */
PL_MUST_CHECK pl_status pl_parquet_read_page(pl_parquet *p, uint64_t *skip,
                                             pl_error *err);

/* Puts file, row group, column and page before the message. */
pl_status pl_parquet_in_page(const pl_parquet *p, pl_status status,
                             pl_error *err);

#endif
