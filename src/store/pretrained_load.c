/* pretrained_load.c: the weights of a model in a folder; see pretrained.h. */
#include "base/file.h"
#include "base/json.h"
#include "store/pretrained.h"
#include "store/tensors.h"

#include <stdio.h>
#include <string.h>

#define ONE_FILE "model.safetensors"
#define INDEX    "model.safetensors.index.json"

enum { COMPARE_BYTES = 64 * 1024 };

/* ---- files ---- */

static pl_status open_file(pl_pretrained *p, const char *folder,
                           const char *name, pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file_kind kind = PL_FILE_PLAIN;
    pl_status status = pl_path_join(path, folder, name, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (!status && kind == PL_FILE_ABSENT)
        status = pl_fail(err, PL_E_IO,
                         "%s has no %s. Pickled weights (pytorch_model.bin) "
                         "aren't read: save the model with "
                         "save_pretrained(folder, safe_serialization=True)",
                         pl_path_shown(folder), name);
    if (!status)
        status = pl_safetensors_open(&p->files[p->count], path, heap, err);
    p->count += !status;
    return status;
}

static int is_open(const pl_pretrained *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++) {
        const char *slash = strrchr(p->files[i].file.path, '/');
        if (strcmp(slash ? slash + 1 : p->files[i].file.path, name) == 0)
            return 1;
    }
    return 0;
}

/* Every file that the index names; which tensor is where is found in the files
 * themselves. */
static pl_status open_named(pl_pretrained *p, const json_t *root,
                            const char *folder, const char *path, pl_heap *heap,
                            pl_error *err)
{
    const char *tensor;
    json_t *value, *map = json_object_get(root, "weight_map");
    if (!json_is_object(map) || json_object_size(map) == 0)
        return pl_fail(err, PL_E_FORMAT, "%s: \"weight_map\" is missing", path);
    json_object_foreach(map, tensor, value)
    {
        const char *name = json_string_value(value);
        if (!name || name[0] == '\0' || strchr(name, '/'))
            return pl_fail(err, PL_E_FORMAT,
                           "%s: \"%.80s\" must name a file in the same folder",
                           path, tensor);
        if (is_open(p, name))
            continue;
        if (p->count == PL_PRETRAINED_MAX_FILES)
            return pl_fail(err, PL_E_FORMAT, "%s: more than %d files", path,
                           PL_PRETRAINED_MAX_FILES);
        pl_status status = open_file(p, folder, name, heap, err);
        if (status)
            return status;
    }
    return PL_OK;
}

static pl_status open_index(pl_pretrained *p, const char *folder, pl_heap *heap,
                            pl_error *err)
{
    char path[PL_PATH_BYTES], *text;
    size_t bytes;
    json_t *root = NULL;
    pl_heap scratch = pl_heap_make(PL_JSON_MAX_BYTES + 2);
    pl_status status = pl_path_join(path, folder, INDEX, err);
    if (!status)
        status = pl_file_read_all(path, PL_JSON_MAX_BYTES, &scratch, &text,
                                  &bytes, err);
    if (!status)
        status = pl_json_parse(text, bytes, path, &root, err);
    if (!status)
        status = open_named(p, root, folder, path, heap, err);
    json_decref(root);
    pl_heap_close(&scratch);
    return status;
}

pl_status pl_pretrained_open(pl_pretrained *p, const char *folder,
                             pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file_kind kind;
    *p = (pl_pretrained){ 0 };
    pl_status status = pl_path_join(path, folder, INDEX, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (!status)
        status = pl_heap_take(heap, &p->files,
                              kind == PL_FILE_PLAIN ? PL_PRETRAINED_MAX_FILES
                                                    : 1,
                              sizeof *p->files, err);
    if (!status)
        status = kind == PL_FILE_PLAIN
                     ? open_index(p, folder, heap, err)
                     : open_file(p, folder, ONE_FILE, heap, err);
    if (status)
        pl_pretrained_close(p);
    return status;
}

void pl_pretrained_close(pl_pretrained *p)
{
    for (size_t i = 0; i < p->count; i++)
        pl_safetensors_close(&p->files[i]);
    p->count = 0;
}

/* ---- tensors ---- */

typedef pl_pretrained_tensor found; /* info NULL: there is none */

static found find_name(const pl_pretrained *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++) {
        const pl_tensor_info *info = pl_safetensors_find(&p->files[i], name);
        if (info)
            return (found){ &p->files[i], info };
    }
    return (found){ 0 };
}

/* OpenAI's own upload, and whatever is saved without its head, has the names
 * without what stands before them. */
static found find(const pl_pretrained *p, const char *name)
{
    static const char *const prefixes[] = { "transformer.", "model." };
    found f = find_name(p, name);
    for (int i = 0; i < 2 && !f.info; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            f = find_name(p, name + strlen(prefixes[i]));
    return f;
}

static int is_float(pl_tensor_dtype dtype)
{
    return dtype == PL_TENSOR_F32 || dtype == PL_TENSOR_F64 ||
           dtype == PL_TENSOR_F16 || dtype == PL_TENSOR_BF16;
}

pl_status pl_pretrained_find(const pl_pretrained *p, const pl_shape *shape,
                             size_t slot, size_t piece,
                             pl_pretrained_tensor *out, pl_error *err)
{
    const pl_param param = pl_param_at(shape, slot);
    const pl_param_piece own = pl_param_piece_at(shape, &param, piece);
    const pl_param_name name = own.name;
    found f = find(p, name.text);
    if (!f.info)
        return pl_fail(err, PL_E_FORMAT, "%s: tensor %s is missing",
                       p->files[0].file.path, name.text);
    size_t rank = param.is_2d ? 2 : 1;
    size_t rows = f.info->rank > 0 ? f.info->dims[0] : 0,
           cols = f.info->rank > 1 ? f.info->dims[1] : 1;
    int enough = param.kind == PL_WPE ? rows >= own.rows : rows == own.rows;
    if (f.info->rank != rank || !enough || cols != own.cols)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: tensor %s: expected %zu x %zu, found %zu x %zu",
                       f.st->file.path, f.info->name, own.rows, own.cols, rows,
                       cols);
    if (!is_float(f.info->dtype))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: tensor %s is %s, expected F32, F16, BF16 or F64",
                       f.st->file.path, f.info->name,
                       pl_tensor_dtype_name(f.info->dtype));
    *out = f;
    return PL_OK;
}

static pl_status untied(const found *head, const found *wte, pl_error *err)
{
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: lm_head.weight is not %s, but "
                   "config.json says that they are one: if the head was "
                   "trained apart from the embedding, set "
                   "\"tie_word_embeddings\" to false there",
                   head->st->file.path, wte->info->name);
}

pl_status pl_pretrained_check_head(const pl_pretrained *p,
                                   const pl_shape *shape, pl_error *err)
{
    const pl_param tokens = pl_param_at(shape,
                                        pl_param_slot(shape, PL_WTE, -1));
    found wte = find(p, pl_param_name_of(&tokens).text),
          head = find_name(p, "lm_head.weight");
    char *memory;
    if (shape->head == PL_HEAD_OWN || !head.info || !wte.info)
        return PL_OK;
    if (head.info->dtype != wte.info->dtype ||
        head.info->bytes != wte.info->bytes)
        return untied(&head, &wte, err);
    pl_heap scratch = pl_heap_make(2 * COMPARE_BYTES + PL_ARENA_ALIGN);
    pl_status status = pl_heap_take(&scratch, &memory, 2, COMPARE_BYTES, err);
    for (uint64_t at = 0; !status && at < wte.info->bytes;) {
        uint64_t left = wte.info->bytes - at;
        size_t bytes = left < COMPARE_BYTES ? (size_t)left : COMPARE_BYTES;
        char *other = memory + COMPARE_BYTES;
        status = pl_safetensors_read(wte.st, wte.info, at, memory, bytes, err);
        if (!status)
            status = pl_safetensors_read(head.st, head.info, at, other, bytes,
                                         err);
        if (!status && memcmp(memory, other, bytes) != 0)
            status = untied(&head, &wte, err);
        at += bytes;
    }
    pl_heap_close(&scratch);
    return status;
}

/* Element by element: a zero may have a sign, which is its last byte's. */
static int are_zeros(const unsigned char *memory, size_t bytes, size_t size)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != 0 && !((i + 1) % size == 0 && memory[i] == 0x80))
            return 0;
    return 1;
}

/* What to do about biases that config.json leaves out. */
static const char *remedy_of(pl_family family)
{
    switch (family) {
    case PL_FAMILY_LLAMA:
        return "set \"attention_bias\" and \"mlp_bias\" to true there";
    case PL_FAMILY_QWEN3:
        return "such a Qwen3 isn't computed here";
    case PL_FAMILY_GPT2:
        break;
    }
    return "remove \"plimsoll_bias\" there";
}

static pl_status check_zeros(const found *f, pl_family family, pl_error *err)
{
    unsigned char memory[COMPARE_BYTES];
    pl_status status = PL_OK;
    for (uint64_t at = 0; at < f->info->bytes && !status;) {
        uint64_t left = f->info->bytes - at;
        size_t bytes = left < sizeof memory ? (size_t)left : sizeof memory;
        status = pl_safetensors_read(f->st, f->info, at, memory, bytes, err);
        if (!status &&
            !are_zeros(memory, bytes, pl_tensor_dtype_bytes(f->info->dtype)))
            return pl_fail(err, PL_E_UNSUPPORTED,
                           "%s: %s is not all zeros, but config.json says that "
                           "the model has no biases: if another program has "
                           "trained some, %s",
                           f->st->file.path, f->info->name, remedy_of(family));
        at += bytes;
    }
    return status;
}

pl_status pl_pretrained_check_biases(const pl_pretrained *p,
                                     const pl_shape *shape, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < pl_param_slots(shape) && !status; i++) {
        pl_param param = pl_param_at(shape, i);
        if (pl_param_present(shape, &param) || !param.is_bias)
            continue;
        for (size_t k = 0; k < pl_param_pieces(shape, &param) && !status; k++) {
            const pl_param_piece own = pl_param_piece_at(shape, &param, k);
            found f = find(p, own.name.text);
            if (f.info)
                status = check_zeros(&f, shape->family, err);
        }
    }
    return status;
}

pl_status pl_pretrained_check(const pl_pretrained *p, const pl_gpt *gpt,
                              pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < pl_param_slots(&gpt->shape) && !status; i++) {
        const pl_param param = pl_param_at(&gpt->shape, i);
        const size_t pieces = pl_param_pieces(&gpt->shape, &param);
        found f;
        for (size_t k = 0; k < pieces && !status; k++)
            if (gpt->weights[i] != PL_NO_BUFFER)
                status = pl_pretrained_find(p, &gpt->shape, i, k, &f, err);
    }
    if (!status)
        status = pl_pretrained_check_biases(p, &gpt->shape, err);
    return status ? status : pl_pretrained_check_head(p, &gpt->shape, err);
}

/* ---- loading ---- */

/* `count` elements as they are stored, to float32 in the same memory: from the
 * end, since they grow; from the start where they shrink. */
static void widen(char *memory, size_t count, pl_tensor_dtype dtype)
{
    float *out = (float *)(void *)memory;
    if (dtype == PL_TENSOR_F64)
        for (size_t i = 0; i < count; i++) {
            double value;
            memcpy(&value, memory + i * sizeof value, sizeof value);
            out[i] = (float)value;
        }
    else if (dtype == PL_TENSOR_F16 || dtype == PL_TENSOR_BF16)
        for (size_t i = count; i-- > 0;) {
            uint16_t half;
            memcpy(&half, memory + i * sizeof half, sizeof half);
            out[i] = dtype == PL_TENSOR_BF16 ? pl_bf16_value(half)
                                             : pl_f16_value(half);
        }
}

static pl_status load_piece(const pl_pretrained *p, pl_run *run, size_t slot,
                            size_t piece, pl_error *err)
{
    found f;
    pl_status status = pl_pretrained_find(p, &run->shape, slot, piece, &f, err);
    if (status)
        return status;
    const pl_param param = pl_param_at(&run->shape, slot);
    const pl_param_piece own = pl_param_piece_at(&run->shape, &param, piece);
    size_t size = pl_tensor_dtype_bytes(f.info->dtype),
           count = own.rows * own.cols,
           most = PL_RUN_STAGE_BYTES / (size > 4 ? size : 4);
    for (size_t at = 0; at < count && !status;) {
        size_t n = count - at < most ? count - at : most;
        status = pl_safetensors_read(f.st, f.info, (uint64_t)at * size,
                                     run->stage, n * size, err);
        if (status)
            return status;
        widen(run->stage, n, f.info->dtype);
        status = pl_run_write_weights(run, slot, own.first + at, n, err);
        at += n;
    }
    return status;
}

static pl_status load_weight(const pl_pretrained *p, pl_run *run, size_t slot,
                             pl_error *err)
{
    const pl_param param = pl_param_at(&run->shape, slot);
    pl_status status = PL_OK;
    for (size_t k = 0; k < pl_param_pieces(&run->shape, &param) && !status; k++)
        status = load_piece(p, run, slot, k, err);
    return status;
}

pl_status pl_pretrained_load(const pl_pretrained *p, pl_run *run, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < pl_param_slots(&run->shape) && !status; i++)
        if (run->gpt.weights[i] != PL_NO_BUFFER)
            status = load_weight(p, run, i, err);
    return status;
}
