/* llmc_model.c: see llmc_model.h. */
#include "format/llmc_model.h"
#include "base/check.h"
#include "base/units.h"
#include "kernels/storage.h"

#include <inttypes.h>
#include <string.h>

enum {
    MAGIC = 20240326,
    FIELDS = 6, /* sizes behind magic and version */
    LAST_WORD = PL_LLMC_HEADER_BYTES / 4 - 1,
    MAX_SIZE = 1 << 30,
    MOST_DIRTY_BYTES = 64 * 1024 * 1024, /* that wait for the disk in memory */
};

/* ---- where things are ---- */

typedef enum dim { ONE, T, PADDED_V, C, C3, C4 } dim;
typedef enum times { ONCE, LAYERS } times;

static const struct {
    const char *name;
    times times;
    dim rows, cols;
} table[PL_LLMC_TENSORS] = {
    { "wte", ONCE, PADDED_V, C }, { "wpe", ONCE, T, C },
    { "ln1w", LAYERS, ONE, C },   { "ln1b", LAYERS, ONE, C },
    { "qkvw", LAYERS, C3, C },    { "qkvb", LAYERS, ONE, C3 },
    { "attprojw", LAYERS, C, C }, { "attprojb", LAYERS, ONE, C },
    { "ln2w", LAYERS, ONE, C },   { "ln2b", LAYERS, ONE, C },
    { "fcw", LAYERS, C4, C },     { "fcb", LAYERS, ONE, C4 },
    { "fcprojw", LAYERS, C, C4 }, { "fcprojb", LAYERS, ONE, C },
    { "lnfw", ONCE, ONE, C },     { "lnfb", ONCE, ONE, C },
};

static size_t size_of(const pl_llmc_shape *s, dim d)
{
    const size_t sizes[] = {
        [ONE] = 1,  [T] = s->T,      [PADDED_V] = s->padded_V,
        [C] = s->C, [C3] = 3 * s->C, [C4] = 4 * s->C
    };
    return sizes[d];
}

pl_llmc_tensor pl_llmc_tensor_at(const pl_llmc_shape *shape, size_t i)
{
    pl_llmc_tensor t = { 0 };
    PL_CHECK(i < PL_LLMC_TENSORS);
    for (size_t k = 0; k <= i; k++) {
        t.first += (uint64_t)t.layers * t.rows * t.cols;
        t.name = table[k].name;
        t.layers = table[k].times == LAYERS ? shape->L : 1;
        t.rows = size_of(shape, table[k].rows);
        t.cols = size_of(shape, table[k].cols);
    }
    return t;
}

static uint64_t elements(const pl_llmc_shape *shape)
{
    pl_llmc_tensor last = pl_llmc_tensor_at(shape, PL_LLMC_TENSORS - 1);
    return last.first + (uint64_t)last.layers * last.rows * last.cols;
}

static uint64_t element_bytes(pl_llmc_version version)
{
    return version == PL_LLMC_F32 ? 4 : 2;
}

uint64_t pl_llmc_bytes(const pl_llmc_shape *shape, pl_llmc_version version)
{
    return PL_LLMC_HEADER_BYTES + elements(shape) * element_bytes(version);
}

/* In floating point first: the exact count might not fit. */
static int is_too_large(const pl_llmc_shape *s)
{
    double c = (double)s->C, l = (double)s->L;
    double all = ((double)s->padded_V + (double)s->T) * c + 13.0 * l * c * c;
    return all > 0x1p58;
}

pl_status pl_llmc_check(const pl_llmc_shape *shape, const char *path,
                        pl_error *err)
{
    const struct {
        const char *name;
        size_t value, most;
    } sizes[] = {
        { "the longest context", shape->T, MAX_SIZE },
        { "the vocabulary", shape->V, MAX_SIZE },
        { "layers", shape->L, PL_LLMC_MAX_LAYERS },
        { "heads", shape->H, MAX_SIZE },
        { "channels", shape->C, MAX_SIZE },
        { "the padded vocabulary", shape->padded_V, MAX_SIZE },
    };
    path = pl_path_shown(path);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].value == 0 || sizes[i].value > sizes[i].most)
            return pl_fail(err, PL_E_FORMAT,
                           "%s: %s: %zu is no size (1 to %zu)", path,
                           sizes[i].name, sizes[i].value, sizes[i].most);
    if (shape->padded_V < shape->V)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: a vocabulary of %zu is padded to %zu, which is "
                       "less",
                       path, shape->V, shape->padded_V);
    if (shape->C % shape->H != 0)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: %zu channels can't be shared by %zu heads", path,
                       shape->C, shape->H);
    if (is_too_large(shape))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: a model of this size has more bytes than can be "
                       "counted",
                       path);
    return PL_OK;
}

/* ---- reading ---- */

static uint32_t word(const unsigned char *bytes, size_t i)
{
    uint32_t value = 0;
    for (size_t k = 0; k < 4; k++)
        value |= (uint32_t)bytes[4 * i + k] << (8 * k);
    return value;
}

pl_status pl_llmc_is_one(const char *path, int *yes, pl_error *err)
{
    pl_file file = PL_FILE_CLOSED;
    unsigned char magic[4];
    *yes = 0;
    pl_status status = pl_file_open_read(&file, path, err);
    if (!status && pl_file_size(&file) >= sizeof magic) {
        status = pl_file_pread_exact(&file, magic, sizeof magic, 0, err);
        *yes = !status && word(magic, 0) == MAGIC;
    }
    pl_file_abandon(&file);
    return status;
}

static pl_status read_header(pl_llmc *llmc, pl_error *err)
{
    unsigned char header[PL_LLMC_HEADER_BYTES];
    pl_llmc_shape *s = &llmc->shape;
    size_t *const fields[FIELDS] = { &s->T, &s->V, &s->L,
                                     &s->H, &s->C, &s->padded_V };
    const char *path = pl_path_shown(llmc->file.path);
    uint64_t size = pl_file_size(&llmc->file);
    if (size < PL_LLMC_HEADER_BYTES)
        return pl_fail(
            err, PL_E_FORMAT,
            "%s: not a model of llm.c: it has %s, the header alone has %s",
            path, pl_units_exact(size).text,
            pl_units_exact(PL_LLMC_HEADER_BYTES).text);
    pl_status status = pl_file_pread_exact(&llmc->file, header, sizeof header,
                                           0, err);
    if (status)
        return status;
    if (word(header, 0) != MAGIC)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: not a model of llm.c: it begins with %" PRIu32
                       ", expected %d%s",
                       path, word(header, 0), MAGIC,
                       word(header, 0) == 20240520 ? " (these are tokens)"
                                                   : "");
    if (word(header, 1) != PL_LLMC_F32 && word(header, 1) != PL_LLMC_BF16)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: version %" PRIu32 " of llm.c's models; 3 "
                       "(float32) and 5 (bfloat16) are read",
                       path, word(header, 1));
    llmc->version = (pl_llmc_version)word(header, 1);
    for (size_t i = 0; i < FIELDS; i++)
        *fields[i] = word(header, 2 + i);
    if (word(header, LAST_WORD) == PL_LLMC_NO_BIASES)
        llmc->biases = PL_LLMC_NO_BIASES;
    status = pl_llmc_check(s, llmc->file.path, err);
    if (!status && pl_llmc_bytes(s, llmc->version) != size)
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: its header needs a file of %s, this one has %s: "
                         "it is cut short or its header is wrong",
                         path,
                         pl_units_exact(pl_llmc_bytes(s, llmc->version)).text,
                         pl_units_exact(size).text);
    return status;
}

pl_status pl_llmc_open(pl_llmc *llmc, const char *path, pl_error *err)
{
    *llmc = (pl_llmc){ .file = PL_FILE_CLOSED };
    pl_status status = pl_file_open_read(&llmc->file, path, err);
    if (!status)
        status = read_header(llmc, err);
    if (status)
        pl_llmc_close(llmc);
    return status;
}

void pl_llmc_close(pl_llmc *llmc)
{
    pl_file_abandon(&llmc->file);
}

/* 16-bit values are read into the second half of their place and spread from
 * the front, which never overtakes what is still to be read. */
pl_status pl_llmc_read(const pl_llmc *llmc, uint64_t first, size_t count,
                       float *out, pl_error *err)
{
    const uint64_t bytes = element_bytes(llmc->version);
    char *raw = (char *)out + count * (4 - (size_t)bytes);
    PL_CHECK(first <= elements(&llmc->shape));
    PL_CHECK(count <= elements(&llmc->shape) - first);
    pl_status status = pl_file_pread_exact(
        &llmc->file, raw, count * (size_t)bytes,
        PL_LLMC_HEADER_BYTES + first * bytes, err);
    if (status || llmc->version == PL_LLMC_F32)
        return status;
    for (size_t i = 0; i < count; i++) {
        float value = pl_storage_get(raw, i, PL_STORE_BF16);
        pl_storage_put(out, i, value, PL_STORE_F32);
    }
    return PL_OK;
}

/* ---- writing ---- */

pl_status pl_llmc_begin(pl_llmc *llmc, const char *path,
                        const pl_llmc_shape *shape, pl_llmc_version version,
                        pl_llmc_biases biases, pl_error *err)
{
    unsigned char header[PL_LLMC_HEADER_BYTES] = { 0 };
    const size_t words[2 + FIELDS] = { MAGIC,    (size_t)version, shape->T,
                                       shape->V, shape->L,        shape->H,
                                       shape->C, shape->padded_V };
    *llmc = (pl_llmc){ .file = PL_FILE_CLOSED,
                       .version = version,
                       .biases = biases,
                       .shape = *shape };
    pl_status status = pl_llmc_check(shape, path, err);
    if (!status)
        status = pl_file_create(&llmc->file, path, err);
    if (status)
        return status;
    for (size_t i = 0; i < 4 * (2 + FIELDS); i++)
        header[i] = (unsigned char)(words[i / 4] >> (8 * (i % 4)));
    header[4 * LAST_WORD] = (unsigned char)biases;
    status = pl_file_append(&llmc->file, header, sizeof header, err);
    if (status)
        pl_llmc_drop(llmc);
    return status;
}

pl_status pl_llmc_append(pl_llmc *llmc, float *values, size_t count,
                         pl_error *err)
{
    size_t bytes = count * (size_t)element_bytes(llmc->version);
    PL_CHECK(count <= elements(&llmc->shape) - llmc->written);
    if (llmc->version == PL_LLMC_BF16)
        for (size_t i = 0; i < count; i++) {
            float value = pl_storage_get(values, i, PL_STORE_F32);
            pl_storage_put(values, i, value, PL_STORE_BF16);
        }
    pl_status status = pl_file_append(&llmc->file, values, bytes, err);
    llmc->written += count;
    llmc->unsynced += bytes;
    if (!status && llmc->unsynced >= MOST_DIRTY_BYTES) {
        status = pl_file_sync(&llmc->file, err);
        pl_file_drop_cache(&llmc->file);
        llmc->unsynced = 0;
    }
    return status;
}

pl_status pl_llmc_end(pl_llmc *llmc, pl_error *err)
{
    char path[PL_PATH_BYTES];
    PL_CHECK(llmc->written == elements(&llmc->shape));
    pl_status status = pl_file_sync(&llmc->file, err);
    if (status) {
        pl_llmc_drop(llmc);
        return status;
    }
    pl_file_drop_cache(&llmc->file);
    memcpy(path, llmc->file.path, sizeof path);
    status = pl_file_close(&llmc->file, err);
    if (status)
        pl_file_remove_quietly(path);
    return status;
}

void pl_llmc_drop(pl_llmc *llmc)
{
    pl_file_discard(&llmc->file);
}
