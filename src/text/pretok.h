/* pretok.h: cuts text into GPT-2's pieces. No token reaches over a piece's
 * end, so that each can be encoded alone.
 *
 * The pieces are those of tiktoken's "gpt2" and "r50k_base" pattern,
 *
 *   '(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++
 *   |\s++$|\s+(?!\S)|\s
 *
 * on Unicode 16.0.0. Text needn't be valid UTF-8: each byte that isn't part of
 * a valid character is taken as a character that is no letter, number or
 * space, as U+FFFD is. So the pieces are those of the text with its invalid
 * bytes replaced (text/replace.h), with the original bytes in them.
 *
 * Pure: nothing is kept between calls. */
#ifndef PL_TEXT_PRETOK_H
#define PL_TEXT_PRETOK_H

#include <stddef.h>

/* The length of the first piece of `bytes` > 0 bytes of `text`, which are all
 * that is left of it: whether spaces end the text makes a difference. */
size_t pl_pretok_next(const char *text, size_t bytes);

/* The largest place in `text` at which it may be cut without changing the
 * pieces, whatever comes behind its `bytes` bytes: just before a white space
 * that follows something else. 0 if there is none. */
size_t pl_pretok_cut(const char *text, size_t bytes);

#endif
