/* parquet_meta.c: a parquet file's footer: the schema and the row groups. */
#include "data/parquet_parts.h"

#include "base/units.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

enum {
    MAGIC_BYTES = 4,
    TAIL_BYTES = 8, /* the footer's length and the magic */
    MAX_DEPTH = 32, /* of the schema */
    PATH_BYTES = 1024,
    BYTE_ARRAY = 6, /* a physical type */
    REQUIRED = 0,
    REPEATED = 2,
    CONVERTED_DECIMAL = 5,
    CONVERTED_BSON = 20,
    LOGICAL_DECIMAL = 5,
    LOGICAL_BSON = 13,
};

/* ---- the schema ---- */

typedef struct element {
    int64_t type, repetition, children, converted;
    int logical;
    char name[PL_PARQUET_COLUMN_BYTES];
    uint64_t name_bytes;
} element;

typedef enum fitness { ABSENT, FITS, NO_STRING, IN_LIST } fitness;

/* The tree is listed depth first: a stack of what is open. */
typedef struct walk {
    uint64_t children[MAX_DEPTH];
    size_t path_ends[MAX_DEPTH];
    unsigned levels[MAX_DEPTH];
    int repeated[MAX_DEPTH];
    int depth;
    uint64_t leaves;
    char path[PATH_BYTES]; /* longer ones match no column */
    size_t path_bytes;
    char strings[PL_PARQUET_COLUMNS_BYTES]; /* names of string columns, for a
                                               message */
    size_t strings_bytes;
    fitness found;
} walk;

static int read_logical_kind(pl_thrift *t, const pl_thrift_field *field)
{
    pl_thrift_field inner = { 0, 0 };
    int kind = 0;
    if (!pl_thrift_struct(t, field))
        return 0;
    while (pl_thrift_next(t, &inner)) {
        kind = inner.id;
        pl_thrift_skip(t, &inner);
    }
    return kind;
}

static element read_element(pl_thrift *t)
{
    pl_thrift_field field = { 0, 0 };
    element e = { .type = -1, .converted = -1 };
    while (pl_thrift_next(t, &field)) {
        switch (field.id) {
        case 1:
            e.type = pl_thrift_int(t, &field);
            break;
        case 3:
            e.repetition = pl_thrift_int(t, &field);
            break;
        case 4:
            e.name_bytes = pl_thrift_text(t, &field, e.name, sizeof e.name);
            break;
        case 5:
            e.children = pl_thrift_int(t, &field);
            break;
        case 6:
            e.converted = pl_thrift_int(t, &field);
            break;
        case 10:
            e.logical = read_logical_kind(t, &field);
            break;
        default:
            pl_thrift_skip(t, &field);
        }
    }
    if (e.children < 0 || e.repetition < 0 || e.repetition > REPEATED)
        pl_thrift_fail(t, "column \"%s\" of the schema makes no sense",
                       pl_path_shown(e.name));
    return e;
}

static int is_string(const element *e)
{
    return e->type == BYTE_ARRAY && e->converted != CONVERTED_DECIMAL &&
           e->converted != CONVERTED_BSON && e->logical != LOGICAL_DECIMAL &&
           e->logical != LOGICAL_BSON;
}

static void note_string(walk *w)
{
    size_t bytes = pl_utf8_text_bytes(w->path, w->path_bytes);
    if (w->strings_bytes + bytes + 3 > sizeof w->strings)
        return;
    int put = snprintf(w->strings + w->strings_bytes,
                       sizeof w->strings - w->strings_bytes, "%s%.*s",
                       w->strings_bytes ? ", " : "", (int)bytes, w->path);
    w->strings_bytes += (size_t)put;
}

/* Puts the element's name behind the path of what is open. */
static void extend_path(walk *w, const element *e)
{
    size_t begin = w->path_ends[w->depth - 1], bytes = (size_t)e->name_bytes;
    size_t dot = w->depth > 1;
    if (e->name_bytes >= sizeof e->name ||
        begin + dot + bytes >= sizeof w->path) {
        w->path_bytes = sizeof w->path; /* too long for any column */
        return;
    }
    if (dot)
        w->path[begin] = '.';
    memcpy(w->path + begin + dot, e->name, bytes);
    w->path_bytes = begin + dot + bytes;
}

static void visit_leaf(pl_parquet *p, walk *w, const element *e, unsigned level,
                       int repeated)
{
    int fits = w->path_bytes < sizeof w->path;
    int is_wanted = fits && w->path_bytes == strlen(p->column) &&
                    !memcmp(w->path, p->column, w->path_bytes);
    if (fits && is_string(e) && !repeated)
        note_string(w);
    if (is_wanted && w->found == ABSENT) {
        p->leaf = w->leaves;
        p->max_level = level;
        w->found = repeated ? IN_LIST : is_string(e) ? FITS : NO_STRING;
    }
    w->leaves++;
}

static void visit(pl_parquet *p, walk *w, const element *e)
{
    int top = w->depth - 1;
    unsigned level = w->levels[top] + (e->repetition != REQUIRED);
    int repeated = w->repeated[top] || e->repetition == REPEATED;
    extend_path(w, e);
    w->children[top]--;
    if (e->children == 0) {
        visit_leaf(p, w, e, level, repeated);
    } else if (w->depth == MAX_DEPTH) {
        pl_thrift_fail(&p->thrift, "the schema is nested more than %d deep",
                       MAX_DEPTH);
        return;
    } else {
        w->children[w->depth] = (uint64_t)e->children;
        w->path_ends[w->depth] = w->path_bytes;
        w->levels[w->depth] = level;
        w->repeated[w->depth] = repeated;
        w->depth++;
    }
    while (w->depth > 0 && w->children[w->depth - 1] == 0)
        w->depth--;
}

static pl_status no_column(const pl_parquet *p, const walk *w, pl_error *err)
{
    const char *path = pl_path_shown(p->file.path);
    if (w->found == IN_LIST)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: the column \"%s\" is inside a list or a map; a "
                       "document is one string of a row. Its string columns: "
                       "%s. Choose with --field",
                       path, p->column, w->strings_bytes ? w->strings : "none");
    return pl_fail(err, PL_E_FORMAT,
                   "%s: %s \"%s\". Its string columns: %s. Choose with "
                   "--field",
                   path,
                   w->found == ABSENT ? "there is no column"
                                      : "there are no strings in the column",
                   p->column, w->strings_bytes ? w->strings : "none");
}

static pl_status read_schema(pl_parquet *p, const pl_thrift_field *list,
                             uint64_t at, pl_error *err)
{
    pl_thrift *t = &p->thrift;
    walk w = { .depth = 1 };
    pl_thrift_begin(t, &p->file, at, p->footer_end, err);
    uint64_t count = pl_thrift_list(t, list, PL_THRIFT_STRUCT);
    for (uint64_t i = 0; i < count && !t->status; i++) {
        element e = read_element(t);
        if (t->status)
            break;
        if (i == 0) {
            w.children[0] = (uint64_t)e.children;
            if (e.children == 0)
                w.depth = 0;
        } else if (w.depth == 0) {
            pl_thrift_fail(t, "the schema has more elements than its tree");
        } else {
            visit(p, &w, &e);
        }
    }
    if (!t->status && w.depth != 0)
        pl_thrift_fail(t, "the schema has fewer elements than its tree");
    if (t->status)
        return t->status;
    memcpy(p->string_columns, w.strings, sizeof w.strings);
    return w.found == FITS ? PL_OK : no_column(p, &w, err);
}

/* ---- row groups ---- */

static pl_status read_codec(int64_t number, pl_codec *codec, pl_error *err)
{
    static const char *const names[] = { "UNCOMPRESSED", "SNAPPY", "GZIP",
                                         "LZO",          "BROTLI", "LZ4",
                                         "ZSTD",         "LZ4_RAW" };
    switch (number) {
    case 0:
        *codec = PL_CODEC_NONE;
        return PL_OK;
    case 1:
        *codec = PL_CODEC_SNAPPY;
        return PL_OK;
    case 2:
        *codec = PL_CODEC_GZIP;
        return PL_OK;
    case 6:
        *codec = PL_CODEC_ZSTD;
        return PL_OK;
    default:
        break;
    }
    if (number > 0 && number < (int64_t)(sizeof names / sizeof *names))
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "it is compressed with %s, which isn't read here. Write "
                       "the file again with snappy, zstd or gzip",
                       names[number]);
    return pl_fail(err, PL_E_FORMAT, "there is no compression number %lld",
                   (long long)number);
}

typedef struct chunk_data {
    int64_t type, codec, values, bytes, data_at, dictionary_at;
    int has_path, path_matches, is_elsewhere, is_encrypted;
} chunk_data;

/* Compares the path's names with the column's, joined by dots. */
static int path_is(pl_thrift *t, const pl_thrift_field *field,
                   const char *column)
{
    uint64_t count = pl_thrift_list(t, field, PL_THRIFT_BINARY);
    int same = count > 0;
    for (uint64_t i = 0; i < count && !t->status; i++) {
        char name[PL_PARQUET_COLUMN_BYTES];
        uint64_t bytes = pl_thrift_text_element(t, name, sizeof name);
        if (i > 0)
            same = same && *column++ == '.';
        same = same && bytes <= strlen(column) && !memcmp(column, name, bytes);
        if (same)
            column += bytes;
    }
    return same && *column == '\0';
}

static void read_chunk_meta(pl_parquet *p, chunk_data *c)
{
    pl_thrift *t = &p->thrift;
    pl_thrift_field field = { 0, 0 };
    while (pl_thrift_next(t, &field)) {
        switch (field.id) {
        case 1:
            c->type = pl_thrift_int(t, &field);
            break;
        case 3:
            c->has_path = 1;
            c->path_matches = path_is(t, &field, p->column);
            break;
        case 4:
            c->codec = pl_thrift_int(t, &field);
            break;
        case 5:
            c->values = pl_thrift_int(t, &field);
            break;
        case 7:
            c->bytes = pl_thrift_int(t, &field);
            break;
        case 9:
            c->data_at = pl_thrift_int(t, &field);
            break;
        case 11:
            c->dictionary_at = pl_thrift_int(t, &field);
            break;
        default:
            pl_thrift_skip(t, &field);
        }
    }
}

static void read_chunk(pl_parquet *p, chunk_data *c)
{
    pl_thrift *t = &p->thrift;
    pl_thrift_field field = { 0, 0 };
    *c = (chunk_data){ .type = -1, .codec = -1, .values = -1, .bytes = -1 };
    while (pl_thrift_next(t, &field)) {
        if (field.id == 3 && pl_thrift_struct(t, &field)) {
            read_chunk_meta(p, c);
            continue;
        }
        c->is_elsewhere |= field.id == 1;
        c->is_encrypted |= field.id == 8 || field.id == 9;
        pl_thrift_skip(t, &field);
    }
}

/* What the row group says of the column, checked, as p->chunk. */
static pl_status use_chunk(pl_parquet *p, const chunk_data *c, int64_t rows,
                           pl_error *err)
{
    if (c->is_encrypted)
        return pl_fail(err, PL_E_UNSUPPORTED, "it is encrypted");
    if (c->is_elsewhere)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "its data is said to be in another file");
    if (c->type != BYTE_ARRAY || !c->has_path || !c->path_matches)
        return pl_fail(err, PL_E_FORMAT,
                       "the row group's column %llu is another one than the "
                       "schema says",
                       (unsigned long long)p->leaf);
    if (rows < 0 || c->values != rows)
        return pl_fail(err, PL_E_FORMAT,
                       "it has %lld values for the %lld rows of the row group",
                       (long long)c->values, (long long)rows);
    p->chunk = (pl_parquet_chunk){ .rows = (uint64_t)rows };
    if (rows == 0) /* there may be no pages to point at */
        return PL_OK;
    int64_t begin = c->dictionary_at > 0 && c->dictionary_at < c->data_at
                        ? c->dictionary_at
                        : c->data_at;
    int64_t end = (int64_t)p->footer_begin;
    if (begin < MAGIC_BYTES || begin > end || c->bytes < 0 ||
        c->bytes > end - begin)
        return pl_fail(err, PL_E_FORMAT,
                       "its %s from byte %lld on don't lie between the "
                       "file's head and its footer at byte %lld",
                       pl_units_exact_signed(c->bytes).text, (long long)begin,
                       (long long)end);
    p->chunk.begin = (uint64_t)begin;
    p->chunk.end = (uint64_t)(begin + c->bytes);
    return read_codec(c->codec, &p->chunk.codec, err);
}

pl_status pl_parquet_read_group(pl_parquet *p, pl_error *err)
{
    pl_thrift *t = &p->thrift;
    pl_thrift_field field = { 0, 0 };
    chunk_data wanted = { .type = -1 }, other;
    int64_t rows = -1;
    pl_thrift_begin(t, &p->file, p->next_group_at, p->footer_end, err);
    while (pl_thrift_next(t, &field)) {
        if (field.id == 1) {
            uint64_t count = pl_thrift_list(t, &field, PL_THRIFT_STRUCT);
            for (uint64_t i = 0; i < count && !t->status; i++)
                read_chunk(p, i == p->leaf ? &wanted : &other);
        } else if (field.id == 3) {
            rows = pl_thrift_int(t, &field);
        } else {
            pl_thrift_skip(t, &field);
        }
    }
    pl_status status = t->status;
    if (!status)
        status = use_chunk(p, &wanted, rows, err);
    if (status)
        return pl_fail_in(err, status, "%s, row group %llu, column \"%s\": ",
                          pl_path_shown(p->file.path),
                          (unsigned long long)p->group, p->column);
    p->next_group_at = t->at;
    p->group++;
    p->chunk_left = p->chunk.rows;
    p->next_page_at = p->chunk.begin;
    p->page = p->page_left = 0;
    p->has_dictionary = 0;
    return PL_OK;
}

/* ---- the file ---- */

static pl_status find_footer(pl_parquet *p, pl_error *err)
{
    unsigned char head[MAGIC_BYTES], tail[TAIL_BYTES];
    const char *path = pl_path_shown(p->file.path);
    uint64_t size = pl_file_size(&p->file);
    if (size < MAGIC_BYTES + TAIL_BYTES)
        return pl_fail(err, PL_E_FORMAT,
                       "%s has %s: too few for a parquet file", path,
                       pl_units_exact(size).text);
    pl_status status = pl_file_pread_exact(&p->file, head, sizeof head, 0, err);
    if (!status)
        status = pl_file_pread_exact(&p->file, tail, sizeof tail,
                                     size - TAIL_BYTES, err);
    if (status)
        return status;
    if (!memcmp(tail + 4, "PARE", 4))
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s is encrypted: decrypt it first", path);
    if (memcmp(head, "PAR1", 4) != 0)
        return pl_fail(err, PL_E_FORMAT,
                       "%s isn't a parquet file: it doesn't begin with PAR1",
                       path);
    if (memcmp(tail + 4, "PAR1", 4) != 0)
        return pl_fail(err, PL_E_FORMAT,
                       "%s doesn't end with PAR1, as a parquet file does: it "
                       "is cut off. Copy or download it again",
                       path);
    uint64_t bytes = tail[0] | (uint64_t)tail[1] << 8 |
                     (uint64_t)tail[2] << 16 | (uint64_t)tail[3] << 24;
    if (bytes > size - MAGIC_BYTES - TAIL_BYTES)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: its footer is said to have %s, the file has %s",
                       path, pl_units_exact(bytes).text,
                       pl_units_exact(size).text);
    p->footer_end = size - TAIL_BYTES;
    p->footer_begin = p->footer_end - bytes;
    return PL_OK;
}

/* Finds the lists in the footer, and that it is whole. */
static pl_status find_lists(pl_parquet *p, pl_thrift_field *schema,
                            uint64_t *schema_at, pl_error *err)
{
    pl_thrift *t = &p->thrift;
    pl_thrift_field field = { 0, 0 }, groups = { 0, 0 };
    int encrypted = 0;
    pl_thrift_begin(t, &p->file, p->footer_begin, p->footer_end, err);
    while (pl_thrift_next(t, &field)) {
        if (field.id == 2) {
            *schema = field;
            *schema_at = t->at;
        }
        if (field.id == 4) {
            groups = field;
            p->groups_at = t->at;
        }
        encrypted |= field.id == 8;
        if (field.id == 3)
            p->rows = (uint64_t)pl_thrift_int(t, &field);
        else
            pl_thrift_skip(t, &field);
    }
    if (!t->status && (!schema->id || !groups.id))
        pl_thrift_fail(t, "the footer has no %s",
                       schema->id ? "row groups" : "schema");
    if (!t->status && encrypted)
        return pl_fail(err, PL_E_UNSUPPORTED, "it is encrypted");
    if (t->status)
        return t->status;
    pl_thrift_begin(t, &p->file, p->groups_at, p->footer_end, err);
    p->group_count = pl_thrift_list(t, &groups, PL_THRIFT_STRUCT);
    p->groups_at = t->at;
    return t->status;
}

/* All of them once, so that what can't be read is said before the work. */
static pl_status check_groups(pl_parquet *p, pl_error *err)
{
    uint64_t rows = 0;
    p->next_group_at = p->groups_at;
    p->group = 0;
    while (p->group < p->group_count) {
        pl_status status = pl_parquet_read_group(p, err);
        if (status)
            return status;
        if (__builtin_add_overflow(rows, p->chunk.rows, &rows))
            rows = UINT64_MAX;
    }
    if (rows != p->rows)
        return pl_fail(err, PL_E_FORMAT,
                       "%s, footer: its row groups have %llu rows, the file is "
                       "said to have %llu",
                       pl_path_shown(p->file.path), (unsigned long long)rows,
                       (unsigned long long)p->rows);
    p->next_group_at = p->groups_at;
    p->group = p->chunk_left = 0;
    return PL_OK;
}

pl_status pl_parquet_read_footer(pl_parquet *p, pl_error *err)
{
    pl_thrift_field schema = { 0, 0 };
    uint64_t schema_at = 0;
    pl_status status = find_footer(p, err);
    if (status)
        return status;
    status = find_lists(p, &schema, &schema_at, err);
    if (status)
        return pl_fail_in(err, status,
                          "%s, footer: ", pl_path_shown(p->file.path));
    status = read_schema(p, &schema, schema_at, err);
    if (status == PL_E_FORMAT)
        return pl_fail_in(err, status,
                          "%s, footer: ", pl_path_shown(p->file.path));
    return status ? status : check_groups(p, err);
}
