/* pretok.h: cuts text into pieces. No token reaches over a piece's end, so that
 * each can be encoded alone.
 *
 * Which pieces these are is a pattern's to say, a regular expression in the
 * tokenizers of others. PL_PATTERN_TABLE has them all:
 *
 *   gpt2     GPT-2's, and that of tiktoken's "gpt2" and "r50k_base":
 *              's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+
 *              |\s+(?!\S)|\s+
 *   llama3   Llama 3's: contractions in any case, a word with any one
 *            character before it, three digits, line ends behind punctuation
 *   qwen2    Qwen2's, 2.5's and 3's: the same with single digits
 *   smollm2  SmolLM2's: each digit alone, and GPT-2's pattern on the texts
 *            between them
 *
 * on Unicode 16.0.0. Text needn't be valid UTF-8: bytes that aren't part of a
 * valid character are taken as a character that is no letter, number or space,
 * as U+FFFD is. So the pieces are those of the text with its invalid bytes
 * replaced (text/replace.h), with the original bytes in them.
 *
 * Pure: nothing is kept between calls. */
#ifndef PL_TEXT_PRETOK_H
#define PL_TEXT_PRETOK_H

#include <stddef.h>

/* Its word, what Hugging Face's "Split" has as its regular expression ("" where
 * the pattern is written in another way: text/bpe_steps.c), and whether line
 * ends join the punctuation before them. */
#define PL_PATTERN_TABLE(X)                                                    \
    X(GPT2, gpt2, "", APART)                                                   \
    X(LLAMA3, llama3,                                                          \
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"            \
      "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"              \
      "\\s+(?!\\S)|\\s+",                                                      \
      JOIN)                                                                    \
    X(QWEN2, qwen2,                                                            \
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"            \
      "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"                   \
      "\\s+(?!\\S)|\\s+",                                                      \
      JOIN)                                                                    \
    X(SMOLLM2, smollm2, "", APART)

#define X(id, word, regex, lines) PL_PATTERN_##id,
typedef enum pl_pattern { PL_PATTERN_TABLE(X) PL_PATTERN_COUNT } pl_pattern;
#undef X

/* What is done to a text before it is cut. */
typedef enum pl_normal {
    PL_NORMAL_NONE,
    PL_NORMAL_NFC, /* text/nfc.h; Qwen's */
} pl_normal;

/* How a tokenizer makes pieces of a text. Zeros are GPT-2's. */
typedef struct pl_splitting {
    pl_pattern pattern;
    pl_normal normal;
} pl_splitting;

const char *pl_pattern_name(pl_pattern pattern);
const char *pl_pattern_regex(pl_pattern pattern);

/* The length of the first piece of `bytes` > 0 bytes of `text`, which are all
 * that is left of it: whether spaces end the text makes a difference. */
typedef size_t pl_pretok_fn(const char *text, size_t bytes);

/* The function for a pattern: one call for each piece is much. */
pl_pretok_fn *pl_pretok_of(pl_pattern pattern);

static inline size_t pl_pretok_next(pl_pattern pattern, const char *text,
                                    size_t bytes)
{
    return pl_pretok_of(pattern)(text, bytes);
}

/* Whether a piece may reach over the place `at` > 0, where ASCII white space
 * follows something else: only line ends may do so, behind punctuation. That is
 * so of the normalized text, too. */
int pl_pretok_joins(pl_pattern pattern, const char *text, size_t at);

/* The largest place in `text` at which it may be cut without changing the
 * pieces, whatever comes behind its `bytes` bytes: just before a white space
 * that follows something else. Neither does normalizing reach over such a
 * place. 0 if there is none. */
size_t pl_pretok_cut(pl_pattern pattern, const char *text, size_t bytes);

#endif
