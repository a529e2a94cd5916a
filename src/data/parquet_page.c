/* parquet_page.c: a parquet file's pages: their headers, checksums and bytes.
 */
#include "base/units.h"
#include "data/parquet_parts.h"

#include <string.h>
#include <zlib.h>

/* 1, an index page, was planned and is never written. */
enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2, DATA_PAGE_V2 = 3 };

typedef struct header {
    int64_t type, unpacked_bytes, packed_bytes;
    int64_t values, encoding;
    int64_t level_encoding;                  /* v1 */
    int64_t rows, level_bytes, repeat_bytes; /* v2 */
    int is_packed;                           /* v2: the values */
    int has_crc, has_details;
    uint32_t crc;
    uint64_t data_at; /* behind the header */
} header;

pl_status pl_parquet_in_page(const pl_parquet *p, pl_status status,
                             pl_error *err)
{
    return pl_fail_in(err, status,
                      "%s, row group %llu, column \"%s\", page %llu (at byte "
                      "%llu): ",
                      pl_path_shown(p->file.path),
                      (unsigned long long)(p->group - 1), p->column,
                      (unsigned long long)(p->page - 1),
                      (unsigned long long)p->page_at);
}

/* ---- headers ---- */

static void read_data_header(pl_thrift *t, header *h)
{
    pl_thrift_field field = { 0, 0 };
    while (pl_thrift_next(t, &field)) {
        if (field.id == 1)
            h->values = pl_thrift_int(t, &field);
        else if (field.id == 2)
            h->encoding = pl_thrift_int(t, &field);
        else if (field.id == 3 && h->type == DATA_PAGE)
            h->level_encoding = pl_thrift_int(t, &field);
        else
            pl_thrift_skip(t, &field);
    }
    h->rows = h->values;
}

static void read_data_header_v2(pl_thrift *t, header *h)
{
    pl_thrift_field field = { 0, 0 };
    while (pl_thrift_next(t, &field)) {
        switch (field.id) {
        case 1:
            h->values = pl_thrift_int(t, &field);
            break;
        case 3:
            h->rows = pl_thrift_int(t, &field);
            break;
        case 4:
            h->encoding = pl_thrift_int(t, &field);
            break;
        case 5:
            h->level_bytes = pl_thrift_int(t, &field);
            break;
        case 6:
            h->repeat_bytes = pl_thrift_int(t, &field);
            break;
        case 7:
            h->is_packed = pl_thrift_bool(t, &field);
            break;
        default:
            pl_thrift_skip(t, &field);
        }
    }
}

/* The type stands before the details; where it doesn't, there are none. */
static void read_details(pl_thrift *t, const pl_thrift_field *field, header *h)
{
    int wanted = h->type == DATA_PAGE         ? 5
                 : h->type == DICTIONARY_PAGE ? 7
                 : h->type == DATA_PAGE_V2    ? 8
                                              : 0;
    if (field->id != wanted) {
        pl_thrift_skip(t, field);
        return;
    }
    if (!pl_thrift_struct(t, field))
        return;
    h->has_details = 1;
    if (h->type == DATA_PAGE_V2)
        read_data_header_v2(t, h);
    else
        read_data_header(t, h);
}

static void check_header(pl_thrift *t, const pl_parquet *p, const header *h)
{
    uint64_t room = p->chunk.end - t->at;
    if (h->type != DATA_PAGE && h->type != DATA_PAGE_V2 &&
        h->type != DICTIONARY_PAGE)
        pl_thrift_fail(t, "there is no page type %lld", (long long)h->type);
    else if (h->packed_bytes < 0 || (uint64_t)h->packed_bytes > room)
        pl_thrift_fail(t, "it is said to have %s, its column chunk has %s left",
                       pl_units_exact_signed(h->packed_bytes).text,
                       pl_units_exact(room).text);
    else if (h->unpacked_bytes < 0 || h->unpacked_bytes > INT32_MAX ||
             h->packed_bytes > INT32_MAX)
        pl_thrift_fail(t, "it is said to have %s unpacked",
                       pl_units_exact_signed(h->unpacked_bytes).text);
    else if (!h->has_details)
        pl_thrift_fail(t, "its header has no details for its type");
    else if (h->values < 0 || h->values > INT32_MAX)
        pl_thrift_fail(t, "it is said to have %lld values",
                       (long long)h->values);
    else if (h->type == DATA_PAGE_V2 &&
             (h->rows != h->values || h->repeat_bytes != 0 ||
              h->level_bytes < 0 || h->level_bytes > h->packed_bytes ||
              h->level_bytes > h->unpacked_bytes))
        pl_thrift_fail(t,
                       "its header (%lld rows, %lld values, levels of %s and "
                       "%s) makes no sense",
                       (long long)h->rows, (long long)h->values,
                       pl_units_exact_signed(h->repeat_bytes).text,
                       pl_units_exact_signed(h->level_bytes).text);
}

static pl_status read_header(pl_parquet *p, header *h, pl_error *err)
{
    pl_thrift *t = &p->thrift;
    pl_thrift_field field = { 0, 0 };
    *h = (header){ .type = -1,
                   .values = -1,
                   .level_encoding = -1,
                   .rows = -1,
                   .is_packed = 1 };
    p->page_at = p->next_page_at;
    pl_thrift_begin(t, &p->file, p->page_at, p->chunk.end, err);
    while (pl_thrift_next(t, &field)) {
        if (field.id == 1)
            h->type = pl_thrift_int(t, &field);
        else if (field.id == 2)
            h->unpacked_bytes = pl_thrift_int(t, &field);
        else if (field.id == 3)
            h->packed_bytes = pl_thrift_int(t, &field);
        else if (field.id == 4) {
            h->crc = (uint32_t)pl_thrift_int(t, &field);
            h->has_crc = 1;
        } else
            read_details(t, &field, h);
    }
    if (!t->status)
        check_header(t, p, h);
    if (t->status)
        return t->status;
    h->data_at = t->at;
    p->next_page_at = t->at + (uint64_t)h->packed_bytes;
    return PL_OK;
}

/* ---- bytes ---- */

/* The page as it is in the file. */
static pl_status read_packed(pl_parquet *p, const header *h, pl_block *block,
                             pl_error *err)
{
    size_t bytes = (size_t)h->packed_bytes;
    pl_status status = pl_room_take(p->room, block, bytes + 1, "the page", err);
    if (!status)
        status = pl_file_pread_exact(&p->file, block->data, bytes, h->data_at,
                                     err);
    if (status || !h->has_crc)
        return status;
    uint32_t crc = (uint32_t)crc32_z(0, block->data, bytes);
    if (crc != h->crc)
        return pl_fail(err, PL_E_FORMAT,
                       "its bytes have the checksum %08x, its header says "
                       "%08x: the file is damaged. Copy or download it again",
                       (unsigned)crc, (unsigned)h->crc);
    return PL_OK;
}

/* The page, unpacked, in `to`; the first `kept` bytes never were packed. */
static pl_status read_bytes(pl_parquet *p, const header *h, size_t kept,
                            pl_block *to, pl_error *err)
{
    size_t bytes = (size_t)h->unpacked_bytes;
    pl_codec codec = h->is_packed ? p->chunk.codec : PL_CODEC_NONE;
    if (codec == PL_CODEC_NONE) {
        if (h->packed_bytes != h->unpacked_bytes)
            return pl_fail(err, PL_E_FORMAT,
                           "it isn't compressed, but is said to have %s packed "
                           "and %s unpacked",
                           pl_units_exact_signed(h->packed_bytes).text,
                           pl_units_exact_signed(h->unpacked_bytes).text);
        return read_packed(p, h, to, err);
    }
    pl_status status = read_packed(p, h, &p->packed, err);
    if (!status)
        status = pl_room_take(p->room, to, bytes + 1, "the unpacked page", err);
    if (status)
        return status;
    memcpy(to->data, p->packed.data, kept);
    /* A page without a value may have no packed bytes at all. */
    if (bytes == kept && (size_t)h->packed_bytes == kept)
        return PL_OK;
    return pl_unpack_block(p->unpack, codec, p->packed.data + kept,
                           (size_t)h->packed_bytes - kept, to->data + kept,
                           bytes - kept, err);
}

/* ---- pages ---- */

static pl_status because(pl_error *err, const char *why)
{
    return pl_fail(err, PL_E_FORMAT, "%s", why);
}

static pl_status read_dictionary(pl_parquet *p, const header *h, pl_error *err)
{
    if (p->has_dictionary)
        return because(err, "it is a second dictionary");
    if (h->encoding != PL_ENCODING_PLAIN &&
        h->encoding != PL_ENCODING_PLAIN_DICTIONARY)
        return pl_fail(err, PL_E_FORMAT,
                       "a dictionary in encoding %lld, expected PLAIN",
                       (long long)h->encoding);
    pl_status status = read_bytes(p, h, 0, &p->dictionary_page, err);
    if (status)
        return status;
    /* Each string has four bytes of length. */
    if (h->values > h->unpacked_bytes / 4)
        return pl_fail(err, PL_E_FORMAT, "a dictionary of %lld strings in %s",
                       (long long)h->values,
                       pl_units_exact_signed(h->unpacked_bytes).text);
    status = pl_room_take(p->room, &p->offsets,
                          ((size_t)h->values + 1) * sizeof(uint32_t),
                          "the dictionary", err);
    if (status)
        return status;
    pl_span page = { p->dictionary_page.data, (size_t)h->unpacked_bytes };
    const char *why = pl_dictionary_make(
        &p->dictionary, page, (void *)p->offsets.data, (uint32_t)h->values);
    p->has_dictionary = !why;
    return why ? because(err, why) : PL_OK;
}

static unsigned bits_of(unsigned number)
{
    unsigned bits = 0;
    for (; number; number >>= 1)
        bits++;
    return bits;
}

/* Splits the unpacked page into levels and values. */
static const char *split_page(pl_parquet *p, const header *h, pl_span *values)
{
    pl_span page = { p->unpacked.data, (size_t)h->unpacked_bytes };
    size_t bytes = (size_t)h->level_bytes;
    *values = page;
    if (p->max_level == 0 && h->type == DATA_PAGE)
        return NULL;
    if (h->type == DATA_PAGE) {
        if (h->level_encoding != PL_ENCODING_RLE)
            return "its levels aren't encoded as RLE";
        if (page.bytes < 4)
            return "it is too short for its levels";
        bytes = page.at[0] | (size_t)page.at[1] << 8 |
                (size_t)page.at[2] << 16 | (size_t)page.at[3] << 24;
        page.at += 4;
        page.bytes -= 4;
    }
    if (bytes > page.bytes)
        return "its levels run past its end";
    *values = (pl_span){ page.at + bytes, page.bytes - bytes };
    page.bytes = bytes;
    return pl_runs_make(&p->levels, page, bits_of(p->max_level));
}

static pl_status read_data(pl_parquet *p, const header *h, pl_error *err)
{
    size_t kept = h->type == DATA_PAGE_V2 ? (size_t)h->level_bytes : 0;
    pl_span values;
    switch (h->encoding) {
    case PL_ENCODING_PLAIN:
    case PL_ENCODING_PLAIN_DICTIONARY:
    case PL_ENCODING_RLE_DICTIONARY:
    case PL_ENCODING_DELTA_LENGTH:
    case PL_ENCODING_DELTA_STRINGS:
        break;
    default: {
        const char *name = pl_encoding_name(h->encoding);
        return pl_fail(err, PL_E_FORMAT,
                       "its strings are in encoding %lld (%s), which isn't "
                       "one for strings",
                       (long long)h->encoding, name ? name : "unknown");
    }
    }
    pl_status status = read_bytes(p, h, kept, &p->unpacked, err);
    if (status)
        return status;
    const char *why = split_page(p, h, &values);
    if (!why)
        why = pl_strings_make(&p->strings, (pl_encoding)h->encoding, values,
                              p->has_dictionary ? &p->dictionary : NULL);
    p->value_bytes = 0;
    return why ? because(err, why) : PL_OK;
}

/* One page; page_left stays 0 where it held no rows to read. */
static pl_status use_page(pl_parquet *p, const header *h, uint64_t *skip,
                          pl_error *err)
{
    if (h->type == DICTIONARY_PAGE)
        return read_dictionary(p, h, err);
    if ((uint64_t)h->rows > p->chunk_left)
        return pl_fail(err, PL_E_FORMAT,
                       "it is said to have %lld rows; of its row group's %llu "
                       "only %llu are left",
                       (long long)h->rows, (unsigned long long)p->chunk.rows,
                       (unsigned long long)p->chunk_left);
    p->chunk_left -= (uint64_t)h->rows;
    if ((uint64_t)h->rows <= *skip) {
        *skip -= (uint64_t)h->rows;
        p->row += (uint64_t)h->rows;
        return PL_OK;
    }
    p->page_left = (uint64_t)h->rows;
    p->in_page = 1;
    return read_data(p, h, err);
}

pl_status pl_parquet_read_page(pl_parquet *p, uint64_t *skip, pl_error *err)
{
    header h;
    if (p->next_page_at >= p->chunk.end)
        return pl_fail(err, PL_E_FORMAT,
                       "%s, row group %llu, column \"%s\": its %llu pages end "
                       "with %llu of its %llu rows missing",
                       pl_path_shown(p->file.path),
                       (unsigned long long)(p->group - 1), p->column,
                       (unsigned long long)p->page,
                       (unsigned long long)p->chunk_left,
                       (unsigned long long)p->chunk.rows);
    p->page++;
    pl_status status = read_header(p, &h, err);
    if (!status)
        status = use_page(p, &h, skip, err);
    return status ? pl_parquet_in_page(p, status, err) : PL_OK;
}
