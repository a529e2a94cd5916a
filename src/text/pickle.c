/* pickle.c: see pickle.h. A stack machine with bounded stack, memo and dicts,
 * which live in a heap of their own until the end. Opens no file. */
#include "text/pickle.h"
#include "base/units.h"
#include "base/utf8.h"
#include "text/pickle_opcode.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_STACK = 4 * PL_TOKENIZER_MAX_VOCAB + 1024,
    MAX_MEMO = 4 * PL_TOKENIZER_MAX_VOCAB + 1024,
    MAX_ENTRIES = 2 * PL_TOKENIZER_MAX_VOCAB + 64,
    MAX_DICTS = 16,
    MAX_LINE = 64, /* of protocol 0's text, far more than one character */
    MAX_PROTOCOL = 5,
};

typedef enum kind { EMPTY, A_MARK, AN_INT, A_TEXT, A_DICT } kind;

/* The strings that mean something; all others are characters or ignored. */
typedef enum word { NO_WORD, VOCAB_SIZE, ITOS, STOI } word;

typedef struct value {
    kind kind;
    word word;      /* A_TEXT */
    int64_t number; /* A_TEXT: its only code point or -1; A_DICT: which */
} value;

typedef struct entry {
    value key, item;
    uint32_t next; /* place in `entries` + 1; 0: the last */
} entry;

typedef struct machine {
    const unsigned char *data;
    size_t bytes, at, opcode_at;
    const char *name;
    pl_error *err;
    pl_heap scratch;
    value *stack, *memo;
    size_t stack_count, stack_capacity, memo_count, memo_capacity;
    entry *entries;
    size_t entry_count, entry_capacity;
    uint32_t dicts[MAX_DICTS]; /* head of each dict's list of entries */
    size_t dict_count;
} machine;

/* ---- messages ---- */

static pl_status broken(const machine *m, const char *what)
{
    unsigned char opcode = m->data[m->opcode_at];
    return pl_fail(m->err, PL_E_FORMAT,
                   "%s: not a pickle of nanoGPT's meta: byte %zu, %s (0x%02X): "
                   "%s",
                   m->name, m->opcode_at, pl_pickle_opcode_name(opcode), opcode,
                   what);
}

static pl_status refused(const machine *m)
{
    unsigned char opcode = m->data[m->opcode_at];
    return pl_fail(m->err, PL_E_FORMAT,
                   "%s: byte %zu is the pickle instruction 0x%02X (%s), which "
                   "a vocabulary doesn't need and which is refused. Prepare "
                   "the text again with plimsoll prepare",
                   m->name, m->opcode_at, opcode,
                   pl_pickle_opcode_name(opcode));
}

/* ---- reading arguments ---- */

/* `count` little-endian bytes, at most 8. */
static pl_status read_number(machine *m, size_t count, uint64_t *out)
{
    *out = 0;
    if (m->bytes - m->at < count)
        return broken(m, "the file ends here");
    for (size_t i = 0; i < count; i++)
        *out |= (uint64_t)m->data[m->at + i] << (8 * i);
    m->at += count;
    return PL_OK;
}

/* The text up to the next line end, which is skipped: *line isn't ended by a
 * zero and *length doesn't count the line end. */
static pl_status read_line(machine *m, const char **line, size_t *length)
{
    const unsigned char *start = m->data + m->at;
    const unsigned char *end = memchr(start, '\n', m->bytes - m->at);
    *line = (const char *)start;
    *length = end ? (size_t)(end - start) : 0;
    if (!end)
        return broken(m, "the file ends here");
    m->at += *length + 1;
    return PL_OK;
}

static pl_status read_decimal(machine *m, const char *line, size_t length,
                              int64_t *out)
{
    size_t i = length > 0 && line[0] == '-' ? 1 : 0;
    int64_t number = *out = 0;
    if (i == length || length > 18)
        return broken(m, "not a whole number in the accepted range");
    for (; i < length; i++) {
        if (line[i] < '0' || line[i] > '9')
            return broken(m, "not a whole number");
        number = number * 10 + (line[i] - '0');
    }
    *out = line[0] == '-' ? -number : number;
    return PL_OK;
}

/* ---- stack, memo, dicts ---- */

static pl_status push(machine *m, value v)
{
    if (m->stack_count == MAX_STACK)
        return broken(m, "more values on the stack than a vocabulary needs");
    pl_status status = pl_heap_grow(&m->scratch, &m->stack, &m->stack_capacity,
                                    m->stack_count + 1, sizeof v, m->err);
    if (!status)
        m->stack[m->stack_count++] = v;
    return status;
}

static pl_status push_int(machine *m, int64_t number)
{
    return push(m, (value){ .kind = AN_INT, .number = number });
}

static pl_status push_text(machine *m, const char *text, size_t length)
{
    static const char *const words[] = {
        [VOCAB_SIZE] = "vocab_size", [ITOS] = "itos", [STOI] = "stoi"
    };
    value v = { .kind = A_TEXT, .word = NO_WORD, .number = -1 };
    uint32_t code;
    if (!pl_utf8_is_valid(text, length))
        return broken(m, "a string that isn't valid UTF-8");
    int first = pl_utf8_decode(text, length, &code);
    if (first > 0 && (size_t)first == length)
        v.number = code;
    for (word w = VOCAB_SIZE; w <= STOI; w++)
        if (strlen(words[w]) == length && !memcmp(words[w], text, length))
            v.word = w;
    return push(m, v);
}

static pl_status push_dict(machine *m)
{
    if (m->dict_count == MAX_DICTS)
        return broken(m, "more dicts than a vocabulary needs");
    m->dicts[m->dict_count] = 0;
    return push(m,
                (value){ .kind = A_DICT, .number = (int64_t)m->dict_count++ });
}

static pl_status put_memo(machine *m, uint64_t place)
{
    if (m->stack_count == 0 || m->stack[m->stack_count - 1].kind == A_MARK)
        return broken(m, "nothing on the stack to remember");
    if (place >= MAX_MEMO)
        return broken(m, "a memo place beyond what a vocabulary needs");
    pl_status status = pl_heap_grow(&m->scratch, &m->memo, &m->memo_capacity,
                                    (size_t)place + 1, sizeof *m->memo, m->err);
    if (status)
        return status;
    /* MEMOIZE takes the number of places in use as its place. */
    if (m->memo[place].kind == EMPTY)
        m->memo_count++;
    m->memo[place] = m->stack[m->stack_count - 1];
    return PL_OK;
}

static pl_status get_memo(machine *m, uint64_t place)
{
    if (place >= m->memo_capacity || m->memo[place].kind == EMPTY)
        return broken(m, "an empty memo place");
    return push(m, m->memo[place]);
}

/* Moves stack[first..) in pairs into the dict at stack[dict_at]. */
static pl_status set_items(machine *m, size_t dict_at, size_t first)
{
    if ((m->stack_count - first) % 2 != 0)
        return broken(m, "a key without a value");
    if (m->stack[dict_at].kind != A_DICT)
        return broken(m, "no dict to put items into");
    uint32_t *head = &m->dicts[m->stack[dict_at].number];
    for (size_t i = first; i < m->stack_count; i += 2) {
        value key = m->stack[i], item = m->stack[i + 1];
        if (key.kind != AN_INT && key.kind != A_TEXT)
            return broken(m, "a key that is neither string nor number");
        if (item.kind == A_MARK)
            return broken(m, "a mark where a value should be");
        if (m->entry_count == MAX_ENTRIES)
            return broken(m, "more dict entries than a vocabulary needs");
        pl_status status = pl_heap_grow(&m->scratch, &m->entries,
                                        &m->entry_capacity, m->entry_count + 1,
                                        sizeof *m->entries, m->err);
        if (status)
            return status;
        m->entries[m->entry_count++] =
            (entry){ .key = key, .item = item, .next = *head };
        *head = (uint32_t)m->entry_count;
    }
    m->stack_count = first;
    return PL_OK;
}

/* The place of the topmost mark on the stack. */
static pl_status find_mark(machine *m, size_t *mark)
{
    for (*mark = m->stack_count; *mark > 0; --*mark)
        if (m->stack[*mark - 1].kind == A_MARK) {
            --*mark;
            return PL_OK;
        }
    return broken(m, "no mark on the stack");
}

/* ---- instructions ---- */

static pl_status do_set_item(machine *m)
{
    if (m->stack_count < 3)
        return broken(m, "fewer than three values on the stack");
    return set_items(m, m->stack_count - 3, m->stack_count - 2);
}

static pl_status do_set_items(machine *m)
{
    size_t mark;
    pl_status status = find_mark(m, &mark);
    if (status)
        return status;
    if (mark == 0)
        return broken(m, "no dict to put items into");
    status = set_items(m, mark - 1, mark + 1);
    if (!status)
        m->stack_count = mark;
    return status;
}

/* DICT: a dict of everything above the mark, in the mark's place. */
static pl_status do_dict(machine *m)
{
    size_t mark;
    pl_status status = find_mark(m, &mark);
    if (status)
        return status;
    status = push_dict(m);
    if (status)
        return status;
    m->stack[mark] = m->stack[--m->stack_count];
    return set_items(m, mark, mark + 1);
}

static pl_status do_int(machine *m, size_t count)
{
    uint64_t number = 0;
    pl_status status = read_number(m, count, &number);
    /* Only the four bytes of BININT have a sign. */
    if (!status)
        status = push_int(m, count == 4 ? (int32_t)(uint32_t)number
                                        : (int64_t)number);
    return status;
}

static pl_status do_long1(machine *m)
{
    uint64_t count, number = 0;
    pl_status status = read_number(m, 1, &count);
    if (status)
        return status;
    if (count > 7)
        return broken(m, "a number larger than a vocabulary needs");
    status = read_number(m, (size_t)count, &number);
    if (status)
        return status;
    int64_t result = (int64_t)number;
    if (count > 0 && number >> (8 * count - 1))
        result -= (int64_t)1 << (8 * count);
    return push_int(m, result);
}

/* INT "65", or LONG "65L" in protocol 0. */
static pl_status do_text_number(machine *m, unsigned char opcode)
{
    const char *line;
    size_t length;
    int64_t number;
    pl_status status = read_line(m, &line, &length);
    if (status)
        return status;
    if (opcode == 'L' && length > 0 && line[length - 1] == 'L')
        length--;
    if (opcode == 'I' && length == 2 && line[0] == '0')
        return broken(m, "True or False, where a number is needed");
    status = read_decimal(m, line, length, &number);
    return status ? status : push_int(m, number);
}

static pl_status do_binary_text(machine *m, size_t count_bytes)
{
    uint64_t length;
    pl_status status = read_number(m, count_bytes, &length);
    if (status)
        return status;
    if (length > m->bytes - m->at)
        return broken(m, "a string longer than the rest of the file");
    const char *text = (const char *)m->data + m->at;
    m->at += (size_t)length;
    return push_text(m, text, (size_t)length);
}

/* One character of Python's raw-unicode-escape: \uXXXX, \UXXXXXXXX or a byte
 * of Latin-1. Returns what it used up, 0 if it is neither. */
static size_t read_escaped(const char *line, size_t length, uint32_t *code)
{
    if (line[0] != '\\') {
        *code = (unsigned char)line[0];
        return 1;
    }
    size_t digits = length > 1 && line[1] == 'u'   ? 4
                    : length > 1 && line[1] == 'U' ? 8
                                                   : 0;
    if (digits == 0 || length < 2 + digits)
        return 0;
    uint32_t number = 0;
    for (size_t i = 2; i < 2 + digits; i++) {
        static const char alphabet[] = "0123456789abcdef";
        char lower = (char)(line[i] >= 'A' && line[i] <= 'F' ? line[i] + 32
                                                             : line[i]);
        const char *digit = lower ? strchr(alphabet, lower) : NULL;
        if (!digit)
            return 0;
        number = number << 4 | (uint32_t)(digit - alphabet);
    }
    *code = number;
    return 2 + digits;
}

static pl_status do_line_text(machine *m)
{
    char text[MAX_LINE * PL_UTF8_MAX_BYTES];
    const char *line;
    size_t length, used = 0;
    pl_status status = read_line(m, &line, &length);
    if (status)
        return status;
    if (length > MAX_LINE)
        return broken(m, "a string longer than a character or a key");
    for (size_t i = 0; i < length;) {
        uint32_t code;
        size_t taken = read_escaped(line + i, length - i, &code);
        if (taken == 0 || !pl_utf8_is_scalar(code))
            return broken(m, "a string with a wrong escape");
        used += (size_t)pl_utf8_encode(code, text + used);
        i += taken;
    }
    return push_text(m, text, used);
}

/* PUT and GET write the place as a decimal line. */
static pl_status do_line_memo(machine *m, unsigned char opcode)
{
    const char *line;
    size_t length;
    int64_t place;
    pl_status status = read_line(m, &line, &length);
    if (!status)
        status = read_decimal(m, line, length, &place);
    if (status)
        return status;
    if (place < 0)
        return broken(m, "a negative memo place");
    return opcode == 'p' ? put_memo(m, (uint64_t)place)
                         : get_memo(m, (uint64_t)place);
}

static pl_status do_memo(machine *m, size_t count, unsigned char opcode)
{
    uint64_t place;
    pl_status status = read_number(m, count, &place);
    if (status)
        return status;
    return opcode == 'q' || opcode == 'r' ? put_memo(m, place)
                                          : get_memo(m, place);
}

static pl_status do_proto(machine *m)
{
    uint64_t version;
    pl_status status = read_number(m, 1, &version);
    if (!status && version > MAX_PROTOCOL)
        return broken(m, "a pickle protocol newer than 5");
    return status;
}

/* Frames only help a reader to buffer: the length must be possible, no more. */
static pl_status do_frame(machine *m)
{
    uint64_t length;
    pl_status status = read_number(m, 8, &length);
    if (!status && length > m->bytes - m->at)
        return broken(m, "a frame longer than the rest of the file");
    return status;
}

static pl_status do_opcode(machine *m, unsigned char opcode)
{
    switch (opcode) {
    case 0x80: /* PROTO */
        return do_proto(m);
    case 0x95: /* FRAME */
        return do_frame(m);
    case '(': /* MARK */
        return push(m, (value){ .kind = A_MARK });
    case '}': /* EMPTY_DICT */
        return push_dict(m);
    case 'd': /* DICT */
        return do_dict(m);
    case 's': /* SETITEM */
        return do_set_item(m);
    case 'u': /* SETITEMS */
        return do_set_items(m);
    case 'K': /* BININT1 */
        return do_int(m, 1);
    case 'M': /* BININT2 */
        return do_int(m, 2);
    case 'J': /* BININT */
        return do_int(m, 4);
    case 0x8a: /* LONG1 */
        return do_long1(m);
    case 'I': /* INT */
    case 'L': /* LONG */
        return do_text_number(m, opcode);
    case 'V': /* UNICODE */
        return do_line_text(m);
    case 0x8c: /* SHORT_BINUNICODE */
        return do_binary_text(m, 1);
    case 'X': /* BINUNICODE */
        return do_binary_text(m, 4);
    case 0x8d: /* BINUNICODE8 */
        return do_binary_text(m, 8);
    case 0x94: /* MEMOIZE */
        return put_memo(m, m->memo_count);
    case 'q': /* BINPUT */
    case 'h': /* BINGET */
        return do_memo(m, 1, opcode);
    case 'r': /* LONG_BINPUT */
    case 'j': /* LONG_BINGET */
        return do_memo(m, 4, opcode);
    case 'p': /* PUT */
    case 'g': /* GET */
        return do_line_memo(m, opcode);
    default:
        return refused(m);
    }
}

/* Runs to STOP; the result is stack[0]. */
static pl_status run(machine *m)
{
    while (m->at < m->bytes) {
        m->opcode_at = m->at;
        unsigned char opcode = m->data[m->at++];
        if (opcode == '.') {
            if (m->stack_count != 1 || m->stack[0].kind != A_DICT)
                return broken(m, "the result isn't one dict");
            if (m->at != m->bytes)
                return broken(m, "more bytes follow the end");
            return PL_OK;
        }
        pl_status status = do_opcode(m, opcode);
        if (status)
            return status;
    }
    return pl_fail(m->err, PL_E_FORMAT,
                   "%s: the pickle ends after %s without STOP. It may "
                   "be cut off: make or copy it again",
                   m->name, pl_units_exact(m->bytes).text);
}

/* ---- from dicts to a vocabulary ---- */

PL_PRINTF(2, 3)
static pl_status wrong(const machine *m, const char *fmt, ...)
{
    char what[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return pl_fail(m->err, PL_E_FORMAT,
                   "%s: not nanoGPT's meta: %s. Prepare the text again with "
                   "plimsoll prepare",
                   m->name, what);
}

/* What the outer dict has under `w`; the newest, as in Python. */
static value get_item(const machine *m, word w)
{
    const entry *e;
    for (uint32_t at = m->dicts[m->stack[0].number]; at; at = e->next) {
        e = &m->entries[at - 1];
        if (e->key.kind == A_TEXT && e->key.word == w)
            return e->item;
    }
    return (value){ .kind = EMPTY };
}

/* Fills codes[0..vocab_size) from one dict: id -> character, or, for stoi,
 * character -> id. Every id must occur exactly once. */
static pl_status fill_codes(const machine *m, value dict, word w,
                            uint32_t *codes, int64_t vocab_size)
{
    const char *label = w == ITOS ? "itos" : "stoi";
    const uint32_t none = UINT32_MAX;
    int64_t count = 0;
    for (int64_t i = 0; i < vocab_size; i++)
        codes[i] = none;
    for (uint32_t next = m->dicts[dict.number]; next; count++) {
        const entry *e = &m->entries[next - 1];
        const value *id = w == ITOS ? &e->key : &e->item;
        const value *text = w == ITOS ? &e->item : &e->key;
        next = e->next;
        if (id->kind != AN_INT || text->kind != A_TEXT)
            return wrong(m, "%s must connect whole numbers and strings", label);
        if (id->number < 0 || id->number >= vocab_size)
            return wrong(m,
                         "%s has the id %lld, outside the vocabulary of %lld",
                         label, (long long)id->number, (long long)vocab_size);
        if (text->number < 0 || codes[id->number] != none)
            return wrong(m, "%s has id %lld %s", label, (long long)id->number,
                         text->number < 0
                             ? "for a string that isn't one character"
                             : "twice");
        codes[id->number] = (uint32_t)text->number;
    }
    if (count != vocab_size)
        return wrong(m, "%s has %lld entries, vocab_size is %lld", label,
                     (long long)count, (long long)vocab_size);
    return PL_OK;
}

static pl_status make_tokenizer(machine *m, pl_tokenizer *tokenizer,
                                pl_heap *heap)
{
    value size = get_item(m, VOCAB_SIZE), itos = get_item(m, ITOS),
          stoi = get_item(m, STOI);
    uint32_t *codes, *inverse;
    if (size.kind != AN_INT || itos.kind != A_DICT || stoi.kind != A_DICT)
        return wrong(m, "it needs vocab_size (a number), dicts itos and stoi");
    if (size.number < 1 || size.number > PL_TOKENIZER_MAX_VOCAB)
        return wrong(m, "vocab_size must be between 1 and 65536");
    size_t count = (size_t)size.number;
    pl_status status = pl_heap_take(&m->scratch, &codes, count, sizeof *codes,
                                    m->err);
    if (!status)
        status = pl_heap_take(&m->scratch, &inverse, count, sizeof *inverse,
                              m->err);
    if (!status)
        status = fill_codes(m, itos, ITOS, codes, size.number);
    if (!status)
        status = fill_codes(m, stoi, STOI, inverse, size.number);
    if (status)
        return status;
    if (memcmp(codes, inverse, count * sizeof *codes) != 0)
        return wrong(m, "stoi isn't the inverse of itos");
    status = pl_tokenizer_make_char(tokenizer, codes, count, heap, m->err);
    return status ? pl_fail_in(m->err, status, "%s: ", m->name) : PL_OK;
}

pl_status pl_pickle_read_meta(pl_tokenizer *tokenizer, const void *data,
                              size_t bytes, const char *name, pl_heap *heap,
                              pl_error *err)
{
    if (bytes > PL_PICKLE_MAX_BYTES)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: %s are more than the %s of a vocabulary", name,
                       pl_units_exact(bytes).text,
                       pl_units_exact(PL_PICKLE_MAX_BYTES).text);
    machine m = { .data = data,
                  .bytes = bytes,
                  .name = name,
                  .err = err,
                  .scratch = pl_heap_make(PL_PICKLE_SCRATCH_BYTES) };
    pl_status status = run(&m);
    if (!status)
        status = make_tokenizer(&m, tokenizer, heap);
    pl_heap_close(&m.scratch);
    return status;
}
