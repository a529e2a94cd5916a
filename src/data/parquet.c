/* parquet.c: see parquet.h. Owns the way through row groups, pages and rows;
 * parquet_meta.c knows the footer, parquet_page.c the pages, parquet_value.c
 * the encodings. */
#include "data/parquet.h"

#include "base/units.h"
#include "data/parquet_parts.h"

#include <string.h>

pl_status pl_parquet_open(pl_parquet *parquet, const char *path,
                          const char *column, size_t document_bytes,
                          pl_room *room, pl_unpack *unpack, pl_error *err)
{
    size_t bytes = strlen(column);
    *parquet = (pl_parquet){ .file = PL_FILE_CLOSED,
                             .room = room,
                             .unpack = unpack,
                             .document_bytes = document_bytes };
    if (bytes == 0 || bytes >= sizeof parquet->column)
        return pl_fail(err, PL_E_CONFIG,
                       "the name of a column has 1 to %s, not %s",
                       pl_units_exact(sizeof parquet->column - 1).text,
                       pl_units_exact(bytes).text);
    memcpy(parquet->column, column, bytes + 1);
    pl_status status = pl_file_open_read(&parquet->file, path, err);
    if (!status)
        status = pl_parquet_read_footer(parquet, err);
    if (status)
        pl_parquet_close(parquet);
    return status;
}

void pl_parquet_close(pl_parquet *parquet)
{
    pl_parquet *p = parquet;
    pl_file_abandon(&p->file);
    if (!p->room)
        return;
    pl_room_give_back(p->room, &p->packed);
    pl_room_give_back(p->room, &p->unpacked);
    pl_room_give_back(p->room, &p->dictionary_page);
    pl_room_give_back(p->room, &p->offsets);
    pl_room_give_back(p->room, &p->value);
    p->room = NULL;
}

static pl_status too_large(const pl_parquet *p, uint64_t bytes, pl_error *err)
{
    return pl_fail(err, PL_E_FORMAT,
                   "%s, row %llu: its document has %s, more than the %s that "
                   "one may have. Give more memory, or cut that "
                   "document up",
                   pl_path_shown(p->file.path), (unsigned long long)p->row,
                   pl_units_exact(bytes).text,
                   pl_units_exact(p->document_bytes).text);
}

static pl_status in_row(const pl_parquet *p, const char *why, pl_error *err)
{
    pl_status status = pl_fail(err, PL_E_FORMAT, "row %llu of the file: %s",
                               (unsigned long long)p->row, why);
    return pl_parquet_in_page(p, status, err);
}

/* A string that begins as the one before: both parts in `value`. */
static pl_status join(pl_parquet *p, uint32_t prefix, pl_span *text,
                      pl_error *err)
{
    if (prefix > p->value_bytes)
        return in_row(p, "it repeats more of the string before than there is",
                      err);
    size_t bytes = prefix + text->bytes;
    pl_status status = pl_room_grow(p->room, &p->value, bytes + 1,
                                    "the document", err);
    if (status)
        return pl_parquet_in_page(p, status, err);
    memcpy(p->value.data + prefix, text->at, text->bytes);
    p->value_bytes = bytes;
    *text = (pl_span){ p->value.data, bytes };
    return PL_OK;
}

static pl_status read_string(pl_parquet *p, pl_span *text, pl_error *err)
{
    uint32_t prefix;
    const char *why = pl_strings_next(&p->strings, &prefix, text);
    if (why)
        return in_row(p, why, err);
    uint64_t bytes = (uint64_t)prefix + text->bytes;
    if (bytes > p->document_bytes)
        return too_large(p, bytes, err);
    return p->strings.encoding == PL_ENCODING_DELTA_STRINGS
               ? join(p, prefix, text, err)
               : PL_OK;
}

/* A page with a row to read; *at_end where the file has no more. Whole row
 * groups and pages below *skip are passed over. */
static pl_status find_page(pl_parquet *p, uint64_t *skip, int *at_end,
                           pl_error *err)
{
    *at_end = 0;
    while (p->page_left == 0) {
        pl_status status = PL_OK;
        const char *why = p->in_page ? pl_strings_end(&p->strings) : NULL;
        if (why)
            return in_row(p, why, err);
        p->in_page = 0;
        if (p->chunk_left > 0) {
            status = pl_parquet_read_page(p, skip, err);
        } else if (p->group == p->group_count) {
            *at_end = 1;
            return PL_OK;
        } else {
            status = pl_parquet_read_group(p, err);
            if (!status && p->chunk.rows <= *skip) {
                *skip -= p->chunk.rows;
                p->row += p->chunk.rows;
                p->chunk_left = 0;
            }
        }
        if (status)
            return status;
    }
    return PL_OK;
}

/* The next row of the page: a string, or up to `most` nulls at once, which
 * leave text->at NULL. */
static pl_status read_row(pl_parquet *p, uint64_t most, pl_span *text,
                          pl_error *err)
{
    uint32_t level = 0;
    uint64_t count = 1;
    *text = (pl_span){ NULL, 0 };
    if (p->max_level > 0) {
        /* Only nulls may be read several at a time. */
        pl_runs before = p->levels;
        const char *why = pl_runs_next(&p->levels, most, &level, &count);
        if (!why && level > p->max_level)
            why = "a level is larger than the schema allows";
        if (!why && level == p->max_level && count > 1) {
            p->levels = before;
            why = pl_runs_next(&p->levels, 1, &level, &count);
        }
        if (why)
            return in_row(p, why, err);
    }
    if (level == p->max_level) {
        pl_status status = read_string(p, text, err);
        if (status)
            return status;
    }
    p->row += count;
    p->page_left -= count;
    return PL_OK;
}

pl_status pl_parquet_seek(pl_parquet *parquet, uint64_t row, pl_error *err)
{
    pl_parquet *p = parquet;
    pl_span text;
    int at_end;
    if (row > p->rows)
        return pl_fail(err, PL_E_FORMAT,
                       "%s has %llu rows, fewer than the %llu that were read "
                       "from it before: it was changed since. Begin anew",
                       pl_path_shown(p->file.path), (unsigned long long)p->rows,
                       (unsigned long long)row);
    p->group = p->row = p->chunk_left = p->page_left = 0;
    p->in_page = 0;
    p->next_group_at = p->groups_at;
    uint64_t skip = row;
    pl_status status = find_page(p, &skip, &at_end, err);
    while (!status && p->row < row)
        status = read_row(p, row - p->row, &text, err);
    return status;
}

pl_status pl_parquet_next(pl_parquet *parquet, const char **text, size_t *bytes,
                          uint64_t *row, pl_error *err)
{
    pl_parquet *p = parquet;
    pl_span span = { NULL, 0 };
    uint64_t skip = 0;
    int at_end;
    *text = NULL;
    *bytes = 0;
    do {
        pl_status status = find_page(p, &skip, &at_end, err);
        if (!status && !at_end)
            status = read_row(p, p->page_left, &span, err);
        if (status)
            return status;
    } while (!at_end && !span.at);
    if (!at_end) {
        *text = (const char *)span.at;
        *bytes = span.bytes;
        *row = p->row - 1;
    }
    return PL_OK;
}
