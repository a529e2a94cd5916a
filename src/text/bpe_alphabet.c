/* bpe_alphabet.c: the printable names of bytes; see bpe_model.h. Those that
 * Latin-1 prints stand for themselves, the other 68 are U+0100 and up. */
#include "text/bpe_model.h"

#include "base/check.h"

static int prints(unsigned byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
}

/* How many bytes below this one don't print. */
static unsigned hidden_below(unsigned byte)
{
    if (byte <= 33)
        return byte;
    if (byte <= 127)
        return 33;
    if (byte <= 161)
        return 33 + byte - 127;
    return byte <= 173 ? 67 : 68;
}

uint32_t pl_bpe_char_of(unsigned byte)
{
    return prints(byte) ? byte : 0x100 + hidden_below(byte);
}

int pl_bpe_byte_of(uint32_t character)
{
    if (character < 0x100)
        return prints(character) ? (int)character : -1;
    unsigned hidden = character - 0x100;
    if (hidden < 33)
        return (int)hidden;
    if (hidden < 67)
        return (int)(hidden - 33 + 127);
    return hidden == 67 ? 173 : -1;
}

unsigned pl_bpe_byte_at(unsigned place)
{
    PL_CHECK(place < PL_BPE_BYTES);
    if (place < 94)
        return place + 33;
    if (place < 106)
        return place - 94 + 161;
    if (place < 188)
        return place - 106 + 174;
    return (unsigned)pl_bpe_byte_of(0x100 + place - 188);
}
