/* units.h: numbers as people read them. Every size and time that is printed
 * or put into a message passes through here; tests/rules/messages.sh sees to
 * that for amounts of bytes. Pure. */
#ifndef PL_BASE_UNITS_H
#define PL_BASE_UNITS_H

#include <stdint.h>

enum { PL_UNITS_TEXT_BYTES = 48 };

typedef struct pl_units_text {
    char text[PL_UNITS_TEXT_BYTES];
} pl_units_text;

/* "1.85 GB", "412 B": powers of ten. For memory, disks and texts. */
pl_units_text pl_units_bytes(uint64_t bytes);
/* "1,850,123,456 bytes", "1 byte". For amounts of which each byte counts: the
 * size of a file that isn't what it should be, a name that is too long. */
pl_units_text pl_units_exact(uint64_t bytes);
/* The same of what a file says about itself, which may be "-1 byte". */
pl_units_text pl_units_exact_signed(int64_t bytes);
/* "77,355,072" */
pl_units_text pl_units_count(uint64_t count);
/* "2 h 05 min", "3.2 s", "317 years"; "?" if there is no such number. */
pl_units_text pl_units_duration(double seconds);
/* The same, but below a second "35.0 ms", "50 us": for what is waited for. */
pl_units_text pl_units_moment(double seconds);

#endif
