/* unicode.c: see unicode.h. Owns the look-up in the generated tables. */
#include "text/unicode.h"

#include "text/unicode_tables.h"

pl_unicode_class pl_unicode_class_of(uint32_t code)
{
    uint32_t place = code >> UNICODE_SHIFT;
    if (place >= UNICODE_PLACES)
        return PL_UNICODE_OTHER;
    uint32_t in_block = code & ((1u << UNICODE_SHIFT) - 1);
    unsigned four = unicode_blocks[unicode_places[place]][in_block / 4];
    return (pl_unicode_class)(four >> (2 * (in_block % 4)) & 3);
}
