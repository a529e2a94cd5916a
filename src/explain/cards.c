/* cards.c: the table and a forgiving look into it.
 *
 * What a driver shows is less than what is sold: it keeps some for itself,
 * and ECC takes a sixteenth where it is on and stored in the same memory. The
 * figures are totals as PyTorch's messages print them on Linux ("total
 * capacity of 11.73 GiB"), to some 0.05 GiB: they vary with the driver. Those
 * with one decimal, and of cards next to a known one, are estimates. */
#include "explain/cards.h"

#include <stdio.h>
#include <string.h>

static const pl_card cards[] = {
    { "GTX 1060 3GB", 3, 2.94 },
    { "GTX 1060", 6, 5.93 },
    { "GTX 1070", 8, 7.92 },
    { "GTX 1070 Ti", 8, 7.92 },
    { "GTX 1080", 8, 7.92 },
    { "GTX 1080 Ti", 11, 10.91 },
    { "GTX 1650", 4, 3.81 },
    { "GTX 1650 Super", 4, 3.81 },
    { "GTX 1660", 6, 5.80 },
    { "GTX 1660 Super", 6, 5.80 },
    { "GTX 1660 Ti", 6, 5.80 },
    { "Titan X", 12, 11.90 },
    { "Titan Xp", 12, 11.91 },
    { "Titan V", 12, 11.77 },
    { "Titan RTX", 24, 23.65 },
    { "RTX 2060", 6, 5.79 },
    { "RTX 2060 12GB", 12, 11.76 },
    { "RTX 2060 Super", 8, 7.79 },
    { "RTX 2070", 8, 7.79 },
    { "RTX 2070 Super", 8, 7.79 },
    { "RTX 2080", 8, 7.79 },
    { "RTX 2080 Super", 8, 7.79 },
    { "RTX 2080 Ti", 11, 10.76 },
    { "RTX 3050", 8, 7.79 },
    { "RTX 3050 6GB", 6, 5.80 },
    { "RTX 3050 Laptop", 4, 3.81 },
    { "RTX 3050 Ti Laptop", 4, 3.81 },
    { "RTX 3060", 12, 11.76 },
    { "RTX 3060 8GB", 8, 7.78 },
    { "RTX 3060 Laptop", 6, 5.80 },
    { "RTX 3060 Ti", 8, 7.78 },
    { "RTX 3070", 8, 7.78 },
    { "RTX 3070 Laptop", 8, 7.78 },
    { "RTX 3070 Ti", 8, 7.78 },
    { "RTX 3070 Ti Laptop", 8, 7.78 },
    { "RTX 3080", 10, 9.77 },
    { "RTX 3080 12GB", 12, 11.76 },
    { "RTX 3080 Laptop", 8, 7.78 },
    { "RTX 3080 Laptop 16GB", 16, 15.74 },
    { "RTX 3080 Ti", 12, 11.76 },
    { "RTX 3080 Ti Laptop", 16, 15.74 },
    { "RTX 3090", 24, 23.69 },
    { "RTX 3090 Ti", 24, 23.69 },
    { "RTX 4050 Laptop", 6, 5.76 },
    { "RTX 4060", 8, 7.75 },
    { "RTX 4060 Laptop", 8, 7.75 },
    { "RTX 4060 Ti", 8, 7.75 },
    { "RTX 4060 Ti 16GB", 16, 15.69 },
    { "RTX 4070", 12, 11.73 },
    { "RTX 4070 Laptop", 8, 7.75 },
    { "RTX 4070 Super", 12, 11.73 },
    { "RTX 4070 Ti", 12, 11.73 },
    { "RTX 4070 Ti Super", 16, 15.69 },
    { "RTX 4080", 16, 15.69 },
    { "RTX 4080 Laptop", 12, 11.73 },
    { "RTX 4080 Super", 16, 15.69 },
    { "RTX 4090", 24, 23.64 },
    { "RTX 4090 D", 24, 23.64 },
    { "RTX 4090 Laptop", 16, 15.69 },
    { "RTX 5050", 8, 7.7 },
    { "RTX 5060", 8, 7.7 },
    { "RTX 5060 Laptop", 8, 7.7 },
    { "RTX 5060 Ti", 8, 7.7 },
    { "RTX 5060 Ti 16GB", 16, 15.5 },
    { "RTX 5070", 12, 11.6 },
    { "RTX 5070 Laptop", 8, 7.7 },
    { "RTX 5070 Ti", 16, 15.5 },
    { "RTX 5070 Ti Laptop", 12, 11.6 },
    { "RTX 5080", 16, 15.5 },
    { "RTX 5080 Laptop", 16, 15.5 },
    { "RTX 5090", 32, 31.36 },
    { "RTX 5090 Laptop", 24, 23.5 },
    { "P100", 16, 15.90 },
    { "P100 12GB", 12, 11.91 },
    { "P40", 24, 22.38 },
    { "T4", 16, 14.75 },
    { "V100 16GB", 16, 15.77 },
    { "V100 32GB", 32, 31.74 },
    { "A10", 24, 22.06 },
    { "A10G", 24, 22.04 },
    { "A16", 16, 14.54 },
    { "A30", 24, 23.50 },
    { "A40", 48, 44.35 },
    { "A100 40GB", 40, 39.39 },
    { "A100 80GB", 80, 79.15 },
    { "L4", 24, 22.05 },
    { "L40", 48, 44.39 },
    { "L40S", 48, 44.39 },
    { "H100", 80, 79.11 },
    { "H100 NVL", 94, 93.1 },
    { "H200", 141, 139.8 },
    { "RTX A2000", 6, 5.77 },
    { "RTX A2000 12GB", 12, 11.76 },
    { "RTX A4000", 16, 15.73 },
    { "RTX A5000", 24, 23.68 },
    { "RTX A6000", 48, 47.54 },
    { "RTX 6000 Ada", 48, 47.5 },
    { "RTX 8000", 48, 47.46 },
    { "RX 6600", 8, 7.98 },
    { "RX 6600 XT", 8, 7.98 },
    { "RX 6650 XT", 8, 7.98 },
    { "RX 6700 XT", 12, 11.98 },
    { "RX 6750 XT", 12, 11.98 },
    { "RX 6800", 16, 15.98 },
    { "RX 6800 XT", 16, 15.98 },
    { "RX 6900 XT", 16, 15.98 },
    { "RX 6950 XT", 16, 15.98 },
    { "RX 7600", 8, 7.98 },
    { "RX 7600 XT", 16, 15.98 },
    { "RX 7700 XT", 12, 11.98 },
    { "RX 7800 XT", 16, 15.98 },
    { "RX 7900 GRE", 16, 15.98 },
    { "RX 7900 XT", 20, 19.98 },
    { "RX 7900 XTX", 24, 23.98 },
    { "RX 9060 XT", 8, 7.9 },
    { "RX 9060 XT 16GB", 16, 15.9 },
    { "RX 9070", 16, 15.9 },
    { "RX 9070 XT", 16, 15.9 },
    { "MI100", 32, 31.98 },
    { "MI210", 64, 63.98 },
    { "MI250X", 64, 63.98 },
    { "MI300X", 192, 191.98 },
};
enum { CARDS = sizeof cards / sizeof cards[0] };

enum { KEY_BYTES = 40, NEAR = 4 };

size_t pl_card_count(void)
{
    return CARDS;
}

const pl_card *pl_card_at(size_t index)
{
    return index < CARDS ? &cards[index] : NULL;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Small letters and digits only, without the maker's words. */
static void make_key(const char *text, char key[KEY_BYTES])
{
    static const char *const words[] = { "nvidia", "geforce", "amd",
                                         "radeon", "tesla",   "instinct",
                                         "quadro" };
    size_t used = 0;
    for (; *text; text++) {
        char c = lower(*text);
        if (!plain(c) || used + 1 >= KEY_BYTES)
            continue;
        key[used++] = c;
        key[used] = '\0';
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            size_t n = strlen(words[i]);
            if (used >= n && memcmp(key + used - n, words[i], n) == 0)
                used -= n;
        }
    }
    key[used] = '\0';
}

static const pl_card *find(const char *prefix, const char *key)
{
    char wanted[KEY_BYTES + 4], have[KEY_BYTES];
    snprintf(wanted, sizeof wanted, "%s%s", prefix, key);
    for (size_t i = 0; i < CARDS; i++) {
        make_key(cards[i].name, have);
        if (strcmp(have, wanted) == 0)
            return &cards[i];
    }
    return NULL;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Changes that turn one into the other; letters that are only missing at the
 * end, as in "A100" for "A100 80GB", cost nearly nothing. */
static size_t distance(const char *a, const char *b)
{
    size_t row[KEY_BYTES], nb = strlen(b);
    for (size_t j = 0; j <= nb; j++)
        row[j] = 2 * j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = 2 * i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1] ? 2 : 0);
            diagonal = row[j];
            row[j] = least(best, least(row[j], row[j - 1]) + 2);
        }
    }
    if (*a && strncmp(a, b, strlen(a)) == 0)
        return 1;
    return row[nb];
}

static pl_status unknown(const char *text, const char *key, pl_error *err)
{
    size_t best[NEAR + 1], far[NEAR + 1], count = 0, used = 0;
    char names[256] = "", have[KEY_BYTES];
    for (size_t i = 0; i < CARDS; i++) {
        make_key(cards[i].name, have);
        size_t d = distance(key, have), at = count;
        for (; at > 0 && far[at - 1] > d; at--) {
            best[at] = best[at - 1];
            far[at] = far[at - 1];
        }
        best[at] = i;
        far[at] = d;
        count += count < NEAR;
    }
    for (size_t i = 0; i < count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                 i ? ", " : "", cards[best[i]].name);
    return pl_fail(err, PL_E_CONFIG,
                   "gpu: '%.40s' is not in the table of cards. The nearest: "
                   "%s. --memory=12GB says it without a name",
                   text, names);
}

pl_status pl_card_find(const char *text, const pl_card **card, pl_error *err)
{
    static const char *const prefixes[] = { "", "rtx", "gtx", "rx" };
    char key[KEY_BYTES];
    make_key(text, key);
    *card = NULL;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && *key; i++)
        if (!*card)
            *card = find(prefixes[i], key);
    return *card ? PL_OK : unknown(text, key, err);
}
