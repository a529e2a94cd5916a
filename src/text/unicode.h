/* unicode.h: what GPT-2's pre-tokenizer must know about a code point. Pure. */
#ifndef PL_TEXT_UNICODE_H
#define PL_TEXT_UNICODE_H

#include <stdint.h>

typedef enum pl_unicode_class {
    PL_UNICODE_OTHER,
    PL_UNICODE_LETTER, /* general category L */
    PL_UNICODE_NUMBER, /* general category N */
    PL_UNICODE_SPACE,  /* White_Space */
} pl_unicode_class;

/* Of any number; what is no character is "other". Unicode 16.0.0, which is
 * tiktoken's. */
pl_unicode_class pl_unicode_class_of(uint32_t code);

#endif
