/* manifest.c: see manifest.h. */
#include "store/manifest.h"
#include "base/check.h"
#include "base/json.h"
#include "base/units.h"
#include "format/jsontext.h"
#include "store/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { READ_BYTES = 256 * 1024 };

/* What stands around the manifest's own sum, to the byte. */
static const char before_sum[] = ",\n  \"xxh128\": \"";
static const char after_sum[] = "\"\n}\n";
enum {
    TAIL_BYTES = sizeof before_sum - 1 + PL_HASH_TEXT_BYTES - 1 +
                 sizeof after_sum - 1
};

/* ---- writing ---- */

void pl_manifest_add(pl_manifest *manifest, const char *name, uint64_t bytes,
                     const pl_hash *hash)
{
    PL_CHECK(manifest->count < PL_MANIFEST_MAX_FILES);
    PL_CHECK(strlen(name) < PL_MANIFEST_NAME_BYTES);
    pl_manifest_file *file = &manifest->files[manifest->count++];
    snprintf(file->name, sizeof file->name, "%s", name);
    file->bytes = bytes;
    file->sum = pl_hash_end(hash);
}

pl_status pl_manifest_text(const pl_manifest *manifest, char *memory,
                           size_t capacity, size_t *bytes, pl_error *err)
{
    pl_json_text j = pl_json_text_begin(memory, capacity);
    pl_json_text_string(&j, "plimsoll", PL_VERSION);
    pl_json_text_whole(&j, "format", PL_MANIFEST_FORMAT);
    pl_json_text_whole(&j, "step", manifest->step);
    pl_json_text_open(&j, "files", '{');
    for (size_t i = 0; i < manifest->count; i++) {
        const pl_manifest_file *file = &manifest->files[i];
        pl_json_text_open(&j, file->name, '{');
        pl_json_text_whole(&j, "bytes", file->bytes);
        pl_json_text_string(&j, "xxh128", file->sum.text);
        pl_json_text_close(&j, '}');
    }
    pl_json_text_close(&j, '}');
    size_t covered = j.used;
    if (covered >= capacity)
        return pl_json_text_end(&j, err);
    pl_json_text_string(&j, "xxh128", pl_hash_of(memory, covered).text);
    pl_status status = pl_json_text_end(&j, err);
    *bytes = j.used;
    return status;
}

/* ---- reading ---- */

static pl_status damaged(const char *name, pl_error *err)
{
    return pl_fail(err, PL_E_FORMAT,
                   "%s: its own checksum does not match: it is cut off or "
                   "damaged",
                   name);
}

static pl_status check_own_sum(const char *text, size_t bytes, const char *name,
                               pl_error *err)
{
    if (bytes < TAIL_BYTES)
        return damaged(name, err);
    size_t covered = bytes - TAIL_BYTES;
    const char *tail = text + covered;
    pl_hash_text sum = pl_hash_of(text, covered);
    char want[TAIL_BYTES + 1];
    snprintf(want, sizeof want, "%s%s%s", before_sum, sum.text, after_sum);
    return memcmp(tail, want, TAIL_BYTES) == 0 ? PL_OK : damaged(name, err);
}

static int whole(const json_t *value, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return 0;
    *out = (uint64_t)json_integer_value(value);
    return 1;
}

/* A plain name in the folder itself, and a sum. */
static int read_file_entry(pl_manifest_file *file, const char *name,
                           const json_t *value)
{
    const json_t *text = json_object_get(value, "xxh128");
    const char *sum = json_string_value(text);
    if (strlen(name) >= sizeof file->name || name[0] == '.' ||
        name[0] == '\0' || strchr(name, '/'))
        return 0;
    if (!sum || json_string_length(text) != PL_HASH_TEXT_BYTES - 1 ||
        strspn(sum, "0123456789abcdef") != PL_HASH_TEXT_BYTES - 1)
        return 0;
    snprintf(file->name, sizeof file->name, "%s", name);
    snprintf(file->sum.text, sizeof file->sum.text, "%s", sum);
    return whole(json_object_get(value, "bytes"), &file->bytes);
}

static pl_status read_files(pl_manifest *manifest, json_t *files,
                            const char *path, pl_error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach(files, name, value)
    {
        if (manifest->count == PL_MANIFEST_MAX_FILES)
            return pl_fail(err, PL_E_FORMAT, "%s: more than %d files", path,
                           PL_MANIFEST_MAX_FILES);
        if (!read_file_entry(&manifest->files[manifest->count++], name, value))
            return pl_fail(err, PL_E_FORMAT,
                           "%s: entry \"%.60s\" of \"files\" must be the name "
                           "of a file with \"bytes\" and \"xxh128\"",
                           path, name);
    }
    return PL_OK;
}

static pl_status read_root(pl_manifest *manifest, const json_t *root,
                           const char *name, pl_error *err)
{
    uint64_t format = 0;
    if (!whole(json_object_get(root, "format"), &format) ||
        !whole(json_object_get(root, "step"), &manifest->step))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"format\" and \"step\" must be whole numbers",
                       name);
    if (format != PL_MANIFEST_FORMAT)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: written in format %" PRIu64 ", this version reads "
                       "%d: use the version of plimsoll that wrote it",
                       name, format, PL_MANIFEST_FORMAT);
    return read_files(manifest, json_object_get(root, "files"), name, err);
}

pl_status pl_manifest_read(pl_manifest *manifest, const char *text,
                           size_t bytes, const char *name, pl_error *err)
{
    json_t *root = NULL;
    *manifest = (pl_manifest){ 0 };
    pl_status status = check_own_sum(text, bytes, name, err);
    if (!status)
        status = pl_json_parse(text, bytes, name, &root, err);
    if (!status)
        status = read_root(manifest, root, name, err);
    json_decref(root);
    return status;
}

/* ---- files ---- */

static pl_status sum_file(pl_file *file, char *memory, pl_hash *hash,
                          pl_error *err)
{
    size_t bytes;
    do {
        pl_status status = pl_file_read_some(file, memory, READ_BYTES, &bytes,
                                             err);
        if (status)
            return status;
        pl_hash_add(hash, memory, bytes);
    } while (bytes == READ_BYTES);
    pl_file_drop_cache(file);
    return PL_OK;
}

static pl_status check_file(const pl_manifest_file *want, const char *folder,
                            char *memory, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file file = PL_FILE_CLOSED;
    pl_hash hash;
    pl_status status = pl_path_join(path, folder, want->name, err);
    if (!status)
        status = pl_file_open_read(&file, path, err);
    if (status)
        return status;
    if (pl_file_size(&file) != want->bytes)
        status = pl_fail(err, PL_E_FORMAT, "%s has %s, the manifest says %s",
                         path, pl_units_exact(pl_file_size(&file)).text,
                         pl_units_exact(want->bytes).text);
    pl_hash_begin(&hash);
    if (!status)
        status = sum_file(&file, memory, &hash, err);
    pl_file_abandon(&file);
    if (!status && strcmp(pl_hash_end(&hash).text, want->sum.text) != 0)
        status = pl_fail(err, PL_E_FORMAT,
                         "%s is not what was written: its checksum differs",
                         path);
    return status;
}

static int in_scope(const char *name, pl_manifest_scope scope)
{
    if (strcmp(name, "optimizer.safetensors") == 0 ||
        strncmp(name, "worker-", strlen("worker-")) == 0 ||
        strcmp(name, PL_METRICS_NAME) == 0)
        return scope == PL_SCOPE_ALL;
    return scope != PL_SCOPE_SETTINGS || strcmp(name, "model.safetensors") != 0;
}

/* A manifest that is whole but leaves out what every checkpoint has was written
 * by something else. */
static pl_status check_complete(const pl_manifest *manifest, const char *path,
                                pl_error *err)
{
    static const char *const needed[] = { "model.safetensors",
                                          "optimizer.safetensors",
                                          "config.json", "state.json" };
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        size_t at = 0;
        while (at < manifest->count &&
               strcmp(manifest->files[at].name, needed[i]) != 0)
            at++;
        if (at == manifest->count)
            return pl_fail(err, PL_E_FORMAT, "%s does not list %s", path,
                           needed[i]);
    }
    return PL_OK;
}

pl_status pl_manifest_check(pl_manifest *manifest, const char *folder,
                            pl_manifest_scope scope, pl_error *err)
{
    char path[PL_PATH_BYTES], *memory = NULL;
    size_t bytes;
    pl_heap scratch = pl_heap_make(READ_BYTES + PL_ARENA_ALIGN);
    pl_status status = pl_path_join(path, folder, PL_MANIFEST_NAME, err);
    if (!status)
        status = pl_heap_take(&scratch, &memory, READ_BYTES, 1, err);
    if (!status)
        status = pl_file_read_into(path, memory, PL_MANIFEST_MAX_BYTES, &bytes,
                                   err);
    if (!status)
        status = pl_manifest_read(manifest, memory, bytes, path, err);
    if (!status)
        status = check_complete(manifest, path, err);
    for (size_t i = 0; !status && i < manifest->count; i++)
        if (in_scope(manifest->files[i].name, scope))
            status = check_file(&manifest->files[i], folder, memory, err);
    pl_heap_close(&scratch);
    return status;
}
