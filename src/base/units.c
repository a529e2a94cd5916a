/* units.c: see units.h. */
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

pl_units_text pl_units_bytes(uint64_t bytes)
{
    static const char *const units[] = {
        "B", "kB", "MB", "GB", "TB", "PB", "EB"
    };
    pl_units_text out;
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 999.5 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1000.0;
    snprintf(out.text, sizeof out.text, "%.*f %s",
             unit == 0 || value >= 99.95 ? 0
             : value >= 9.995            ? 1
                                         : 2,
             value, units[unit]);
    return out;
}

static pl_units_text exact(const char *sign, uint64_t bytes)
{
    pl_units_text out;
    snprintf(out.text, sizeof out.text, "%s%.26s byte%s", sign,
             pl_units_count(bytes).text, bytes == 1 ? "" : "s");
    return out;
}

pl_units_text pl_units_exact(uint64_t bytes)
{
    return exact("", bytes);
}

pl_units_text pl_units_exact_signed(int64_t bytes)
{
    return bytes < 0 ? exact("-", -(uint64_t)bytes)
                     : exact("", (uint64_t)bytes);
}

pl_units_text pl_units_count(uint64_t count)
{
    pl_units_text out;
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, count);
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            out.text[at++] = ',';
        out.text[at++] = digits[i];
    }
    out.text[at] = '\0';
    return out;
}

pl_units_text pl_units_moment(double seconds)
{
    pl_units_text out;
    if (!(seconds >= 0.0) || seconds >= 0.9995)
        return pl_units_duration(seconds);
    if (seconds < 0.9995e-3)
        snprintf(out.text, sizeof out.text, "%.*f us",
                 seconds >= 9.95e-6 || seconds == 0.0 ? 0 : 1, 1e6 * seconds);
    else
        snprintf(out.text, sizeof out.text, "%.*f ms",
                 seconds >= 99.95e-3 ? 0 : 1, 1e3 * seconds);
    return out;
}

pl_units_text pl_units_duration(double seconds)
{
    pl_units_text out;
    const double year = 365.25 * 86400.0;
    if (!(seconds >= 0.0 && seconds < 2.0 * year)) {
        const double years = seconds / year;
        if (!(seconds >= 0.0))
            snprintf(out.text, sizeof out.text, "?");
        else
            snprintf(out.text, sizeof out.text,
                     years < 1e6 ? "%.*f years" : "%.*e years",
                     years < 99.95 || years >= 1e6 ? 1 : 0, years);
        return out;
    }
    long long whole = (long long)(seconds + 0.5);
    if (seconds < 9.95)
        snprintf(out.text, sizeof out.text, "%.1f s", seconds);
    else if (whole < 120)
        snprintf(out.text, sizeof out.text, "%lld s", whole);
    else if (whole < 7200)
        snprintf(out.text, sizeof out.text, "%lld min %02lld s", whole / 60,
                 whole % 60);
    else if (whole < 2 * 86400)
        snprintf(out.text, sizeof out.text, "%lld h %02lld min", whole / 3600,
                 whole / 60 % 60);
    else
        snprintf(out.text, sizeof out.text, "%lld days %lld h", whole / 86400,
                 whole / 3600 % 24);
    return out;
}
