/* task_text.c: see task_text.h. */
#include "data/task_text.h"
#include "base/utf8.h"

#include <string.h>

/* What Python's str.isspace says. */
static int is_space(uint32_t code)
{
    return (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x20) ||
           code == 0x85 || code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

/* The length of the white space at the beginning of a text, 0: there is none.
 */
static size_t space_at(const char *text, size_t bytes)
{
    uint32_t code;
    const int length = pl_utf8_decode(text, bytes, &code);
    return length > 0 && is_space(code) ? (size_t)length : 0;
}

size_t pl_task_text_head(const char *text, size_t bytes)
{
    size_t at = 0, length;
    while ((length = space_at(text + at, bytes - at)) > 0)
        at += length;
    return at;
}

size_t pl_task_text_tail(const char *text, size_t bytes)
{
    size_t end = bytes;
    while (end > 0) {
        size_t from = end - 1;
        while (from > 0 && !pl_utf8_starts(text[from]))
            from--;
        if (space_at(text + from, end - from) != end - from)
            break;
        end = from;
    }
    return bytes - end;
}

/* Every `what` becomes `by`, which is no longer, from left to right. */
static size_t replace(char *text, size_t bytes, const char *what,
                      const char *by)
{
    const size_t old = strlen(what), new = strlen(by);
    size_t used = 0;
    for (size_t at = 0; at < bytes;) {
        if (bytes - at >= old && memcmp(text + at, what, old) == 0) {
            memcpy(text + used, by, new);
            used += new;
            at += old;
        } else {
            text[used++] = text[at++];
        }
    }
    return used;
}

/* The regular expression \[.*?\]: to the next bracket on the same line. */
static size_t drop_brackets(char *text, size_t bytes)
{
    size_t used = 0;
    for (size_t at = 0; at < bytes;) {
        size_t end = at + 1;
        while (text[at] == '[' && end < bytes && text[end] != ']' &&
               text[end] != '\n')
            end++;
        if (text[at] == '[' && end < bytes && text[end] == ']')
            at = end + 1;
        else
            text[used++] = text[at++];
    }
    return used;
}

size_t pl_task_text_clean(char *text, size_t bytes)
{
    const size_t head = pl_task_text_head(text, bytes);
    bytes -= head;
    memmove(text, text + head, bytes);
    bytes -= pl_task_text_tail(text, bytes);
    bytes = replace(text, bytes, " [title]", ". ");
    bytes = drop_brackets(text, bytes);
    return replace(text, bytes, "  ", " ");
}

/* Large and small letters of Latin-1 are 32 apart, as in ASCII; its signs for
 * times and divided by lie among them. */
static uint32_t with_case(uint32_t code, int large)
{
    const uint32_t small = code | 0x20;
    const int is_letter = (small >= 'a' && small <= 'z') ||
                          (code >= 0xc0 && small <= 0xfe && small != 0xf7 &&
                           code != 0xdf);
    if (!is_letter)
        return code;
    return large ? small & ~(uint32_t)0x20 : small;
}

void pl_task_text_capitalize(char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        uint32_t code;
        const int length = pl_utf8_decode(text + at, bytes - at, &code);
        if (length > 0 && code <= 0xff)
            pl_utf8_encode(with_case(code, at == 0), text + at);
        at += length > 0 ? (size_t)length : 1;
    }
}

size_t pl_task_text_characters(const char *text, size_t bytes)
{
    size_t count = 0;
    for (size_t at = 0; at < bytes; count++) {
        uint32_t code;
        const int length = pl_utf8_decode(text + at, bytes - at, &code);
        at += length > 0 ? (size_t)length : 1;
    }
    return count;
}
