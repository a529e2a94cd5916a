/* memory.c: the process's peak from /proc, and amounts of memory as people
 * write them. */
#include "base/memory.h"
#include "base/file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What the kernel says of this process in a line such as "VmHWM:  123 kB". */
static pl_status read_status(const char *name, size_t *bytes, pl_error *err)
{
    static const char path[] = "/proc/self/status";
    char text[8192], key[32];
    size_t length;
    pl_status status = pl_file_read_into(path, text, sizeof text, &length, err);
    if (status)
        return status;
    snprintf(key, sizeof key, "\n%s:", name);
    const char *at = strstr(text, key);
    char *end = NULL;
    unsigned long long kib = at ? strtoull(at + strlen(key), &end, 10) : 0;
    if (!at || kib == 0 || strncmp(end, " kB", 3) != 0)
        return pl_fail(err, PL_E_FORMAT, "%s: no %s in kB here", path, name);
    *bytes = (size_t)kib * 1024;
    return PL_OK;
}

pl_status pl_memory_peak_bytes(size_t *bytes, pl_error *err)
{
    return read_status("VmHWM", bytes, err);
}

pl_status pl_memory_now_bytes(size_t *bytes, pl_error *err)
{
    return read_status("VmRSS", bytes, err);
}

/* ---- amounts ---- */

typedef struct unit {
    const char *name;
    uint64_t bytes;
} unit;

static const unit units[] = {
    { "", 1 },
    { "B", 1 },
    { "kB", 1000 },
    { "MB", 1000 * 1000 },
    { "GB", 1000 * 1000 * 1000 },
    { "TB", (uint64_t)1000 * 1000 * 1000 * 1000 },
    { "KiB", (uint64_t)1 << 10 },
    { "MiB", (uint64_t)1 << 20 },
    { "GiB", (uint64_t)1 << 30 },
    { "TiB", (uint64_t)1 << 40 },
};

static const unit *find_unit(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strlen(units[i].name) == length &&
            strncasecmp(units[i].name, name, length) == 0)
            return &units[i];
    return NULL;
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t");
}

static pl_status not_an_amount(const char *text, pl_error *err)
{
    return pl_fail(err, PL_E_CONFIG,
                   "'%.60s' is no amount of memory. Accepted are 'auto' and a "
                   "number with one of B, kB, MB, GB, TB (powers of 1000) or "
                   "KiB, MiB, GiB, TiB (powers of 1024), such as '12GB' or "
                   "'1.5GiB'; without a unit it means bytes",
                   text);
}

/* A number as it is written: `fraction` over 10^`digits`, of which only the
 * first seven are kept, so that times any unit it fits 64 bits. */
typedef struct amount {
    uint64_t whole, fraction, scale;
    int has_point, overflows;
} amount;

/* The text behind the number, or NULL if there is none. */
static const char *read_amount(const char *text, amount *a)
{
    enum { KEPT_DIGITS = 7 };
    const char *at = text;
    *a = (amount){ .scale = 1 };
    for (; isdigit((unsigned char)*at); at++)
        if (__builtin_mul_overflow(a->whole, 10, &a->whole) ||
            __builtin_add_overflow(a->whole, (uint64_t)(*at - '0'), &a->whole))
            a->overflows = 1;
    size_t digits = (size_t)(at - text);
    if (*at == '.') {
        a->has_point = 1;
        at++;
        for (int i = 0; isdigit((unsigned char)*at); at++, i++, digits++)
            if (i < KEPT_DIGITS) {
                a->fraction = a->fraction * 10 + (uint64_t)(*at - '0');
                a->scale *= 10;
            }
    }
    return digits ? at : NULL;
}

pl_status pl_memory_parse(const char *text, size_t *bytes, pl_error *err)
{
    amount a;
    const char *rest = read_amount(skip_blanks(text), &a);
    if (!rest)
        return not_an_amount(text, err);
    rest = skip_blanks(rest);
    size_t length = strlen(rest);
    while (length > 0 && (rest[length - 1] == ' ' || rest[length - 1] == '\t'))
        length--;
    if (length == 1 && strchr("kKmMgGtT", rest[0]))
        return pl_fail(err, PL_E_CONFIG,
                       "'%.60s': is that %cB (powers of 1000) or %ciB (powers "
                       "of 1024)? Write which",
                       text, rest[0], rest[0]);
    const unit *u = find_unit(rest, length);
    if (!u || (u->bytes == 1 && a.has_point))
        return not_an_amount(text, err);

    uint64_t whole;
    int over = a.overflows || __builtin_mul_overflow(a.whole, u->bytes, &whole);
    if (!over)
        over = __builtin_add_overflow(whole, a.fraction * u->bytes / a.scale,
                                      &whole);
    if (over || whole > SIZE_MAX / 2)
        return pl_fail(err, PL_E_CONFIG,
                       "'%.60s' is more memory than any machine can address",
                       text);
    if (whole == 0)
        return pl_fail(err, PL_E_CONFIG,
                       "'%.60s' is no memory at all. Write an amount such as "
                       "'12GB', or 'auto' for what the machine offers",
                       text);
    *bytes = (size_t)whole;
    return PL_OK;
}
