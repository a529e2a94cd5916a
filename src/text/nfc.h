/* nfc.h: Unicode's normalization form C: "e" and a combining acute accent
 * become "é". Tokenizers like Qwen's see text in this form. It is that of
 * Unicode 9.0.0, which is what Hugging Face's tokenizers have. Bytes that
 * aren't UTF-8 stay as they are and join nothing. Pure. */
#ifndef PL_TEXT_NFC_H
#define PL_TEXT_NFC_H

#include <stddef.h>
#include <stdint.h>

enum {
    PL_NFC_GROWTH = 3, /* a character of 4 bytes may become 12 */
    /* of pl_nfc_write's memory, for each byte of the text */
    PL_NFC_ROOM = 2 * PL_NFC_GROWTH,
};

/* Whether this code point alone is in the form already. */
int pl_nfc_keeps(uint32_t code);

/* Whether the text is surely in the form already. "No" may be wrong where a
 * mark stands behind a letter with which it doesn't compose. */
int pl_nfc_quick(const char *text, size_t bytes);

/* Writes the text in this form and returns its length, at most PL_NFC_GROWTH *
 * bytes. `out` has room for PL_NFC_ROOM * bytes: what lies behind the result is
 * used as scratch. It must not overlap `text`. The time is linear. */
size_t pl_nfc_write(const char *text, size_t bytes, char *out);

#endif
