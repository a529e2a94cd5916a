/* roff.c: see roff.h. */
#include "describe/roff.h"

#include <ctype.h>
#include <string.h>

static int is_letter(char c)
{
    return isalpha((unsigned char)c) != 0;
}

/* One letter of `text`. Between two letters of a sentence a hyphen and an
 * apostrophe are that; elsewhere they are what the keyboard has. */
static void put_letter(pl_sheet *sheet, const char *text, size_t at,
                       size_t bytes, int is_sentence)
{
    int within = is_sentence && at > 0 && at + 1 < bytes &&
                 is_letter(text[at - 1]) && is_letter(text[at + 1]);
    switch (text[at]) {
    case '\\':
        pl_sheet_put(sheet, "\\e");
        break;
    case '-':
        pl_sheet_put(sheet, within ? "-" : "\\-");
        break;
    case '\'':
        pl_sheet_put(sheet, within ? "'" : "\\(aq");
        break;
    case '"':
        pl_sheet_put(sheet, "\\(dq");
        break;
    case '`':
        pl_sheet_put(sheet, "\\(ga");
        break;
    case '^':
        pl_sheet_put(sheet, "\\(ha");
        break;
    case '~':
        pl_sheet_put(sheet, "\\(ti");
        break;
    default:
        pl_sheet_put_char(sheet, text[at]);
    }
}

void pl_roff_literal(pl_sheet *sheet, const char *text, size_t bytes)
{
    if (bytes && text[0] == '.')
        pl_sheet_put(sheet, "\\&");
    for (size_t i = 0; i < bytes; i++)
        put_letter(sheet, text, i, bytes, 0);
}

void pl_roff_words(pl_sheet *sheet, const char *text, size_t bytes)
{
    int bold = 0, italic = 0;
    if (bytes && text[0] == '.')
        pl_sheet_put(sheet, "\\&");
    for (size_t i = 0; i < bytes; i++) {
        int opens = i + 1 < bytes && is_letter(text[i + 1]);
        if (text[i] == '`') {
            bold = !bold;
            pl_sheet_put(sheet, bold ? "\\fB" : "\\fR");
        } else if (text[i] == '*' && !bold && (italic || opens)) {
            italic = !italic;
            pl_sheet_put(sheet, italic ? "\\fI" : "\\fR");
        } else {
            put_letter(sheet, text, i, bytes, !bold);
        }
    }
}

/* ---- lines ---- */

typedef enum block {
    BLOCK_NONE, /* between two */
    BLOCK_PARAGRAPH,
    BLOCK_ITEM,
    BLOCK_CODE,
    BLOCK_COMMENT,
} block;

typedef struct writer {
    pl_sheet *sheet;
    block open;
    int fresh;  /* right behind a heading, where nothing stands apart */
    int fenced; /* the code ends at ``` */
} writer;

static void close_block(writer *w)
{
    if (w->open == BLOCK_CODE)
        pl_sheet_put(w->sheet, ".EE\n.RE\n");
    if (w->open != BLOCK_NONE)
        w->fresh = 0;
    w->open = BLOCK_NONE;
    w->fenced = 0;
}

static void open_block(writer *w, block kind)
{
    close_block(w);
    if (kind == BLOCK_PARAGRAPH && !w->fresh)
        pl_sheet_put(w->sheet, ".PP\n");
    if (kind == BLOCK_ITEM)
        pl_sheet_put(w->sheet, ".IP \\(bu 2\n");
    if (kind == BLOCK_CODE)
        pl_sheet_put(w->sheet, "%s.RS 4\n.EX\n", w->fresh ? "" : ".PP\n");
    w->open = kind;
}

static void put_code(writer *w, const char *line, size_t bytes)
{
    if (w->open != BLOCK_CODE)
        open_block(w, BLOCK_CODE);
    pl_roff_literal(w->sheet, line, bytes);
    pl_sheet_put(w->sheet, "\n");
}

static size_t indent(const char *line, size_t bytes)
{
    size_t blanks = 0;
    while (blanks < bytes && line[blanks] == ' ')
        blanks++;
    return blanks;
}

static void put_words(writer *w, const char *line, size_t bytes)
{
    size_t blanks = indent(line, bytes); /* would begin a new line */
    pl_roff_words(w->sheet, line + blanks, bytes - blanks);
    pl_sheet_put(w->sheet, "\n");
}

/* The next line at `*text`; 0 at the end. */
static int next_line(const char **text, const char **line, size_t *bytes)
{
    if (!**text)
        return 0;
    *line = *text;
    *bytes = strcspn(*text, "\n");
    *text += *bytes + ((*text)[*bytes] == '\n');
    return 1;
}

void pl_roff_text(pl_sheet *sheet, const char *text)
{
    writer w = { .sheet = sheet, .fresh = 1 };
    const char *line;
    size_t bytes, blanks;
    while (next_line(&text, &line, &bytes)) {
        blanks = indent(line, bytes);
        if (blanks == bytes) {
            close_block(&w);
        } else if (blanks) {
            size_t cut = blanks < 2 ? blanks : 2;
            put_code(&w, line + cut, bytes - cut);
        } else {
            if (w.open != BLOCK_PARAGRAPH)
                open_block(&w, BLOCK_PARAGRAPH);
            put_words(&w, line, bytes);
        }
    }
    close_block(&w);
}

/* ---- Markdown ---- */

static int begins(const char *line, size_t bytes, const char *with)
{
    size_t n = strlen(with);
    return bytes >= n && memcmp(line, with, n) == 0;
}

static void put_heading(writer *w, const char *line, size_t bytes)
{
    size_t depth = 0;
    while (depth < bytes && line[depth] == '#')
        depth++;
    close_block(w);
    w->fresh = 1;
    if (depth == 1) /* the page's own title */
        pl_sheet_put(w->sheet, ".SH DESCRIPTION\n");
    else
        pl_sheet_put(w->sheet, depth == 2 ? ".SH " : ".SS ");
    if (depth == 1)
        return;
    for (size_t i = depth + 1; i < bytes; i++)
        pl_sheet_put_char(w->sheet,
                          depth == 2 ? (char)toupper(line[i]) : line[i]);
    pl_sheet_put(w->sheet, "\n");
}

/* "| `key` | `default` | takes | read by | meaning |"; " | " stands in no
 * cell. */
static void put_row(writer *w, const char *line, size_t bytes)
{
    enum { CELLS = 5 };
    const char *cell[CELLS];
    size_t size[CELLS], at = 2;
    for (int i = 0; i < CELLS; i++) {
        const char *end = memmem(line + at, bytes - at, " |", 2);
        while (end && end + 2 < line + bytes && end[2] != ' ')
            end = memmem(end + 2, (size_t)(line + bytes - end - 2), " |", 2);
        if (!end)
            return; /* the rule below the head */
        cell[i] = line + at;
        size[i] = (size_t)(end - cell[i]);
        at += size[i] + 3;
    }
    if (begins(cell[0], size[0], "key"))
        return;
    pl_sheet_put(w->sheet, ".TP\n\\fB");
    pl_roff_literal(w->sheet, cell[0] + 1, size[0] - 2);
    pl_sheet_put(w->sheet, "\\fR = \\fI");
    pl_roff_literal(w->sheet, cell[1] + 1, size[1] - 2);
    pl_sheet_put(w->sheet, "\\fR\n");
    put_words(w, cell[4], size[4]);
    pl_sheet_put(w->sheet, ".br\n(");
    pl_roff_words(w->sheet, cell[2], size[2]);
    pl_sheet_put(w->sheet, "; ");
    pl_roff_words(w->sheet, cell[3], size[3]);
    pl_sheet_put(w->sheet, ")\n");
}

static void put_markdown_line(writer *w, const char *line, size_t bytes)
{
    int fence = begins(line, bytes, "```");
    if (fence && w->fenced) {
        close_block(w);
    } else if (fence) {
        open_block(w, BLOCK_CODE);
        w->fenced = 1;
    } else if (w->fenced) {
        put_code(w, line, bytes);
    } else if (begins(line, bytes, "<!--")) {
        open_block(w, BLOCK_COMMENT);
    } else if (bytes == 0) {
        if (w->open != BLOCK_COMMENT)
            close_block(w);
        else
            w->open = BLOCK_NONE;
    } else if (w->open == BLOCK_COMMENT) {
        return;
    } else if (line[0] == '#') {
        put_heading(w, line, bytes);
    } else if (line[0] == '|') {
        close_block(w);
        put_row(w, line, bytes);
        w->fresh = 0;
    } else if (begins(line, bytes, "- ")) {
        open_block(w, BLOCK_ITEM);
        put_words(w, line + 2, bytes - 2);
    } else {
        if (w->open == BLOCK_NONE)
            open_block(w, BLOCK_PARAGRAPH);
        put_words(w, line, bytes);
    }
}

void pl_roff_markdown(pl_sheet *sheet, const char *text)
{
    writer w = { .sheet = sheet, .fresh = 1 };
    const char *line;
    size_t bytes;
    while (next_line(&text, &line, &bytes))
        put_markdown_line(&w, line, bytes);
    close_block(&w);
}
