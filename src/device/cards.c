/* cards.c: the table and a forgiving look into it.
 *
 * What a driver shows is less than what is sold: it keeps some for itself,
 * and ECC takes a sixteenth where it is on and stored in the same memory. The
 * figures are totals as PyTorch's messages print them on Linux ("total
 * capacity of 11.73 GiB"), to some 0.05 GiB: they vary with the driver. Those
 * with one decimal, and of cards next to a known one, are estimates.
 *
 * The rates are peaks from public data sheets, which nothing reaches.
 * `gflops` is 2 x shaders x boost clock: a fused multiply-add per shader and
 * clock. AMD's own figure for RDNA3 and RDNA4 is twice that: it counts dual
 * issue, and the kernels are plain fused multiply-adds. `half_gflops` is dense,
 * without sparsity, and adds up in float32. On GeForce cards that is half of
 * the rate with sums in float16: 4 x float32 on the RTX 20, 2 x on later ones.
 * Most cards for workstations and data centres have the full rate. The last
 * column is NVIDIA's compute capability, from its list of CUDA GPUs: 89 is 8.9.
 */
#include "device/cards.h"

#include <stdio.h>
#include <string.h>

static const pl_card cards[] = {
    /* GTX 10: NVIDIA's product pages and its whitepaper on the GTX 1080. */
    { "GTX 1060 3GB", 3, 2.94, 3935, 0, 192, 9, 61 },
    { "GTX 1060", 6, 5.93, 4372, 0, 192, 10, 61 },
    { "GTX 1070", 8, 7.92, 6463, 0, 256, 15, 61 },
    { "GTX 1070 Ti", 8, 7.92, 8186, 0, 256, 19, 61 },
    { "GTX 1080", 8, 7.92, 8873, 0, 320, 20, 61 },
    { "GTX 1080 Ti", 11, 10.91, 11340, 0, 484, 28, 61 },
    /* GTX 16: NVIDIA's product pages; the 1650 is the one with GDDR5. They have
     * no matrix units. */
    { "GTX 1650", 4, 3.81, 2984, 0, 128, 14, 75 },
    { "GTX 1650 Super", 4, 3.81, 4416, 0, 192, 20, 75 },
    { "GTX 1660", 6, 5.80, 5027, 0, 192, 22, 75 },
    { "GTX 1660 Super", 6, 5.80, 5027, 0, 336, 22, 75 },
    { "GTX 1660 Ti", 6, 5.80, 5437, 0, 288, 24, 75 },
    /* Titan: NVIDIA's product pages. "Titan X" is the Pascal one of 2016. The
     * matrix rate of the Titan V is the one NVIDIA names, a little below 640
     * units at the boost clock; the Titan RTX has the full rate. */
    { "Titan X", 12, 11.90, 10974, 0, 480, 28, 61 },
    { "Titan Xp", 12, 11.91, 12150, 0, 548, 30, 61 },
    { "Titan V", 12, 11.77, 14899, 110000, 653, 80, 70 },
    { "Titan RTX", 24, 23.65, 16312, 130500, 672, 72, 75 },
    /* RTX 20: NVIDIA Turing GPU architecture whitepaper and product pages, with
     * reference clocks, not those of the Founders Editions. */
    { "RTX 2060", 6, 5.79, 6451, 25805, 336, 30, 75 },
    { "RTX 2060 12GB", 12, 11.76, 7181, 28723, 336, 34, 75 },
    { "RTX 2060 Super", 8, 7.79, 7181, 28723, 448, 34, 75 },
    { "RTX 2070", 8, 7.79, 7465, 29860, 448, 36, 75 },
    { "RTX 2070 Super", 8, 7.79, 9062, 36250, 448, 40, 75 },
    { "RTX 2080", 8, 7.79, 10068, 40274, 448, 46, 75 },
    { "RTX 2080 Super", 8, 7.79, 11151, 44605, 496, 48, 75 },
    { "RTX 2080 Ti", 11, 10.76, 13448, 53791, 616, 68, 75 },
    /* RTX 30: NVIDIA Ampere GA102 GPU architecture whitepaper, appendix A, and
     * product pages; the 3060 Ti is the one with GDDR6. */
    { "RTX 3050", 8, 7.79, 9098, 18196, 224, 20, 86 },
    { "RTX 3050 6GB", 6, 5.80, 6774, 13548, 168, 18, 86 },
    { "RTX 3060", 12, 11.76, 12738, 25475, 360, 28, 86 },
    { "RTX 3060 8GB", 8, 7.78, 12738, 25475, 240, 28, 86 },
    { "RTX 3060 Ti", 8, 7.78, 16197, 32394, 448, 38, 86 },
    { "RTX 3070", 8, 7.78, 20314, 40627, 448, 46, 86 },
    { "RTX 3070 Ti", 8, 7.78, 21750, 43500, 608, 48, 86 },
    { "RTX 3080", 10, 9.77, 29768, 59535, 760, 68, 86 },
    { "RTX 3080 12GB", 12, 11.76, 30643, 61286, 912, 70, 86 },
    { "RTX 3080 Ti", 12, 11.76, 34099, 68198, 912, 80, 86 },
    { "RTX 3090", 24, 23.69, 35581, 71163, 936, 82, 86 },
    { "RTX 3090 Ti", 24, 23.69, 39997, 79995, 1008, 84, 86 },
    /* RTX 40: NVIDIA Ada GPU architecture whitepaper v2.1, appendix A, and
     * product pages. */
    { "RTX 4060", 8, 7.75, 15114, 30228, 272, 24, 89 },
    { "RTX 4060 Ti", 8, 7.75, 22065, 44129, 288, 34, 89 },
    { "RTX 4060 Ti 16GB", 16, 15.69, 22065, 44129, 288, 34, 89 },
    { "RTX 4070", 12, 11.73, 29146, 58291, 504, 46, 89 },
    { "RTX 4070 Super", 12, 11.73, 35482, 70963, 504, 56, 89 },
    { "RTX 4070 Ti", 12, 11.73, 40090, 80179, 504, 60, 89 },
    { "RTX 4070 Ti Super", 16, 15.69, 44099, 88197, 672, 66, 89 },
    { "RTX 4080", 16, 15.69, 48737, 97475, 717, 76, 89 },
    { "RTX 4080 Super", 16, 15.69, 52224, 104448, 736, 80, 89 },
    { "RTX 4090", 24, 23.64, 82575, 165151, 1008, 128, 89 },
    { "RTX 4090 D", 24, 23.64, 73544, 147087, 1008, 114, 89 },
    /* RTX 50: NVIDIA RTX Blackwell GPU architecture whitepaper and product
     * pages. */
    { "RTX 5050", 8, 7.7, 13169, 26337, 320, 20, 120 },
    { "RTX 5060", 8, 7.7, 19177, 38354, 448, 30, 120 },
    { "RTX 5060 Ti", 8, 7.7, 23704, 47407, 448, 36, 120 },
    { "RTX 5060 Ti 16GB", 16, 15.5, 23704, 47407, 448, 36, 120 },
    { "RTX 5070", 12, 11.6, 30867, 61735, 672, 48, 120 },
    { "RTX 5070 Ti", 16, 15.5, 43940, 87880, 896, 70, 120 },
    { "RTX 5080", 16, 15.5, 56276, 112552, 960, 84, 120 },
    { "RTX 5090", 32, 31.36, 104753, 209505, 1792, 170, 120 },
    /* Laptops: NVIDIA's pages that compare laptop GPUs. A laptop's maker sets
     * the clock by the power it allows; these are at NVIDIA's maximum boost
     * clock and with the fastest memory, so that many a laptop has less. Rows
     * of 0 are of cards whose maximum is not known here. */
    { "RTX 3050 Laptop", 4, 3.81, 7127, 14254, 192, 16, 86 },
    { "RTX 3050 Ti Laptop", 4, 3.81, 8678, 17357, 192, 20, 86 },
    { "RTX 3060 Laptop", 6, 5.80, 13079, 26158, 336, 30, 86 },
    { "RTX 3070 Laptop", 8, 7.78, 16589, 33178, 448, 40, 86 },
    { "RTX 3070 Ti Laptop", 8, 7.78, 17487, 34975, 448, 46, 86 },
    { "RTX 3080 Laptop", 8, 7.78, 21012, 42025, 448, 48, 86 },
    { "RTX 3080 Laptop 16GB", 16, 15.74, 21012, 42025, 448, 48, 86 },
    { "RTX 3080 Ti Laptop", 16, 15.74, 23608, 47217, 512, 58, 86 },
    { "RTX 4050 Laptop", 6, 5.76, 12134, 24269, 192, 20, 89 },
    { "RTX 4060 Laptop", 8, 7.75, 14561, 29123, 256, 24, 89 },
    { "RTX 4070 Laptop", 8, 7.75, 20045, 40090, 256, 36, 89 },
    { "RTX 4080 Laptop", 12, 11.73, 33853, 67707, 432, 58, 89 },
    { "RTX 4090 Laptop", 16, 15.69, 39690, 79380, 576, 76, 89 },
    { "RTX 5060 Laptop", 8, 7.7, 0, 0, 0, 0, 120 },
    { "RTX 5070 Laptop", 8, 7.7, 21630, 43260, 384, 36, 120 },
    { "RTX 5070 Ti Laptop", 12, 11.6, 0, 0, 0, 0, 120 },
    { "RTX 5080 Laptop", 16, 15.5, 35128, 70257, 896, 60, 120 },
    { "RTX 5090 Laptop", 24, 23.5, 45343, 90685, 896, 82, 120 },
    /* Pascal, data centre: NVIDIA Tesla P100 (PCIe) and P40 datasheets. */
    { "P100", 16, 15.90, 9340, 0, 732, 56, 60 },
    { "P100 12GB", 12, 11.91, 9340, 0, 549, 56, 60 },
    { "P40", 24, 22.38, 11758, 0, 346, 30, 61 },
    /* Volta, data centre: NVIDIA V100 datasheet, SXM2. PCIe has 14,000 and
     * 112,000. */
    { "V100 16GB", 16, 15.77, 15667, 125000, 900, 80, 70 },
    { "V100 32GB", 32, 31.74, 15667, 125000, 900, 80, 70 },
    /* Turing, data centre: NVIDIA T4 datasheet. */
    { "T4", 16, 14.75, 8141, 65000, 320, 40, 75 },
    /* Ampere, data centre: NVIDIA's datasheets of the A10, A10G, A16, A30, A40
     * and A100 (SXM; the 80 GB one on PCIe has 1,935 GB/s). An A16 is four GPUs
     * on a board, and this is one of them. */
    { "A10", 24, 22.06, 31242, 125000, 600, 72, 86 },
    { "A10G", 24, 22.04, 35021, 70000, 600, 80, 86 },
    { "A16", 16, 14.54, 4493, 17900, 200, 10, 86 },
    { "A30", 24, 23.50, 10322, 165000, 933, 56, 80 },
    { "A40", 48, 44.35, 37417, 149700, 696, 84, 86 },
    { "A100 40GB", 40, 39.39, 19492, 312000, 1555, 108, 80 },
    { "A100 80GB", 80, 79.15, 19492, 312000, 2039, 108, 80 },
    /* Ada, data centre: NVIDIA L4, L40 and L40S datasheets. */
    { "L4", 24, 22.05, 30290, 121000, 300, 58, 89 },
    { "L40", 48, 44.39, 90516, 181050, 864, 142, 89 },
    { "L40S", 48, 44.39, 91607, 362050, 864, 142, 89 },
    /* Hopper, data centre: NVIDIA H100 and H200 datasheets. "H100" is SXM; PCIe
     * has 51,200, 756,000, 2,000 GB/s and 114 units. "H100 NVL" is one board of
     * the pair. */
    { "H100", 80, 79.11, 66908, 989400, 3350, 132, 90 },
    { "H100 NVL", 94, 93.1, 60319, 835500, 3900, 132, 90 },
    { "H200", 141, 139.8, 66908, 989400, 4800, 132, 90 },
    /* Workstations: NVIDIA's datasheets of the RTX A2000 to A6000, the RTX 6000
     * Ada and the Quadro RTX 8000. The tensor rate of all but the last is
     * printed with sparsity there and is halved here (and again for FP8 on the
     * 6000 Ada). */
    { "RTX A2000", 6, 5.77, 7987, 31900, 288, 26, 86 },
    { "RTX A2000 12GB", 12, 11.76, 7987, 31900, 288, 26, 86 },
    { "RTX A4000", 16, 15.73, 19169, 76700, 448, 48, 86 },
    { "RTX A5000", 24, 23.68, 27771, 111100, 768, 64, 86 },
    { "RTX A6000", 48, 47.54, 38707, 154800, 768, 84, 86 },
    { "RTX 6000 Ada", 48, 47.5, 91062, 364200, 960, 142, 89 },
    { "RTX 8000", 48, 47.46, 16312, 130500, 672, 72, 75 },
    /* RX 6000: AMD's product pages. RDNA2 has no matrix units. */
    { "RX 6600", 8, 7.98, 8928, 0, 224, 28, 0 },
    { "RX 6600 XT", 8, 7.98, 10605, 0, 256, 32, 0 },
    { "RX 6650 XT", 8, 7.98, 10793, 0, 280, 32, 0 },
    { "RX 6700 XT", 12, 11.98, 13215, 0, 384, 40, 0 },
    { "RX 6750 XT", 12, 11.98, 13312, 0, 432, 40, 0 },
    { "RX 6800", 16, 15.98, 16166, 0, 512, 60, 0 },
    { "RX 6800 XT", 16, 15.98, 20736, 0, 512, 72, 0 },
    { "RX 6900 XT", 16, 15.98, 23040, 0, 512, 80, 0 },
    { "RX 6950 XT", 16, 15.98, 23654, 0, 576, 80, 0 },
    /* RX 7000: AMD's product pages; the matrix rate is 512 a clock and unit. */
    { "RX 7600", 8, 7.98, 10875, 43500, 288, 32, 0 },
    { "RX 7600 XT", 16, 15.98, 11284, 45138, 288, 32, 0 },
    { "RX 7700 XT", 12, 11.98, 17584, 70337, 432, 54, 0 },
    { "RX 7800 XT", 16, 15.98, 18662, 74650, 624, 60, 0 },
    { "RX 7900 GRE", 16, 15.98, 22989, 91955, 576, 80, 0 },
    { "RX 7900 XT", 20, 19.98, 25805, 103219, 800, 84, 0 },
    { "RX 7900 XTX", 24, 23.98, 30720, 122880, 960, 96, 0 },
    /* RX 9000: AMD's product pages; the matrix rate is 1,024 a clock and
     * unit. */
    { "RX 9060 XT", 8, 7.9, 12820, 102564, 320, 32, 0 },
    { "RX 9060 XT 16GB", 16, 15.9, 12820, 102564, 320, 32, 0 },
    { "RX 9070", 16, 15.9, 18063, 144507, 640, 56, 0 },
    { "RX 9070 XT", 16, 15.9, 24330, 194642, 640, 64, 0 },
    /* MI: AMD Instinct datasheets. An MI250X shows up as two GPUs, and this is
     * one of them. AMD's 163,400 for the MI300X counts packed pairs; here it is
     * half of that. */
    { "MI100", 32, 31.98, 23071, 184600, 1229, 120, 0 },
    { "MI210", 64, 63.98, 22630, 181000, 1638, 104, 0 },
    { "MI250X", 64, 63.98, 23936, 191500, 1638, 110, 0 },
    { "MI300X", 192, 191.98, 81715, 1307400, 5300, 304, 0 },
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
                                         "quadro", "sxm2",    "sxm4",
                                         "sxm5",   "pcie",    "generation",
                                         "gpu" };
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
