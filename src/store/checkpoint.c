/* checkpoint.c: writes a checkpoint; checkpoint.h lists its files.
 *
 *   arena --slice--> model.safetensors       |
 *         --slice--> optimizer.safetensors   |  out_dir/.saving: every file is
 *   run -----------> state.json, tokenizer,  |  synced, then the folder
 *                    metrics, config.json    |
 *   checksums -----> manifest.json           |
 *                         |
 *                         |  pl_outdir_publish: a rename
 *                         v
 *                    out_dir/step-00002000
 *
 * Tensors (checkpoint_tensors.h) leave the arena through one slice, a buffer
 * that the plan has room for, so that saving needs no memory of its own. Each
 * file's checksum is taken while its bytes are written, and the manifest comes
 * last. Until the rename nothing has the name of a checkpoint, so that a save
 * that fails or is killed leaves the earlier ones as they were. */
#include "store/checkpoint.h"
#include "base/file.h"
#include "format/safetensors.h"
#include "store/checkpoint_tensors.h"
#include "store/hf_text.h"

#include <string.h>

static uint64_t bytes_of(const pl_gpt *gpt, pl_tensors_file file)
{
    pl_kept k = { .gpt = gpt, .file = file };
    const pl_tensor_source source = pl_kept_source(&k);
    return pl_safetensors_size(&source);
}

enum {
    PAGE_BYTES = 4096,
    SMALL_TEXTS = 4, /* those of Hugging Face and the manifest: a page each */
};

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

pl_metrics_bytes pl_checkpoint_metrics_bytes(const pl_config *config)
{
    const uint64_t updates = (uint64_t)config->max_iters,
                   evals = updates / (uint64_t)config->eval_interval + 1;
    const pl_metrics_bytes most = pl_metrics_most_bytes(
        updates, evals, pl_samples_most_bytes(config),
        pl_task_lines_most(config));
    return (pl_metrics_bytes){ .lines = whole_pages(most.lines),
                               .events = whole_pages(most.events),
                               .samples = whole_pages(most.samples),
                               .tasks = whole_pages(most.tasks),
                               .copy = whole_pages(most.copy) };
}

uint64_t pl_checkpoint_tokenizer_bytes(const pl_tokenizer_text *file,
                                       const pl_tokenizer_text *hf)
{
    return whole_pages(file->bytes) + whole_pages(hf->bytes);
}

/* The files of tensors, and the manifest's lines about those of workers. */
static uint64_t tensors_bytes(const pl_gpt *gpt)
{
    enum { LINE_BYTES = 128 };
    const size_t files = pl_checkpoint_files(gpt),
                 workers = pl_gpt_workers(&gpt->layout);
    uint64_t bytes = workers > 1 ? whole_pages(workers * LINE_BYTES) : 0;
    for (size_t i = 0; i < files; i++)
        bytes += whole_pages(bytes_of(gpt, pl_checkpoint_file(gpt, i).file));
    return bytes;
}

uint64_t pl_checkpoint_bytes(const pl_config *config, const pl_gpt *gpt,
                             uint64_t tokenizer_bytes)
{
    /* the folder, state.json and the small ones */
    uint64_t bytes = PAGE_BYTES + PL_RUN_TEXT_BYTES + SMALL_TEXTS * PAGE_BYTES;
    bytes += tokenizer_bytes + pl_checkpoint_metrics_bytes(config).copy;
    return bytes + tensors_bytes(gpt);
}

pl_tensors_name pl_checkpoint_largest(const pl_gpt *gpt, uint64_t *bytes)
{
    pl_tensors_name largest = { .text = "" };
    *bytes = 0;
    for (size_t i = 0; i < pl_checkpoint_files(gpt); i++) {
        const pl_tensors_name name = pl_checkpoint_file(gpt, i);
        const uint64_t own = bytes_of(gpt, name.file);
        if (own > *bytes) {
            *bytes = own;
            largest = name;
        }
    }
    return largest;
}

/* ---- files ---- */

/* A checkpoint that is being written. */
typedef struct writing {
    pl_run *run;
    char folder[PL_PATH_BYTES];
    pl_manifest manifest;
    int is_shared; /* every process of the run writes its part */
} writing;

static pl_status write_tensors(writing *w, const pl_tensors_name *name,
                               pl_error *err)
{
    pl_run *run = w->run;
    pl_kept k = { &run->gpt, run, name->file, name->worker, w->is_shared };
    const pl_tensor_source source = pl_kept_source(&k);
    char path[PL_PATH_BYTES];
    pl_hash hash;
    pl_status status = pl_path_join(path, w->folder, name->text, err);
    if (status)
        return status;
    pl_hash_begin(&hash);
    status = pl_safetensors_write_summed(
        path, &source, pl_device_host(run->device, run->gpt.slice),
        run->gpt.layout.slice_bytes, &hash, err);
    if (!status)
        pl_manifest_add(&w->manifest, name->text, pl_safetensors_size(&source),
                        &hash);
    return status;
}

/* By all processes of the run where they can write here, else by this one. */
static pl_status write_all_tensors(writing *w, pl_error *err)
{
    const pl_gpt *gpt = &w->run->gpt;
    const pl_run_others *others = w->run->others;
    pl_status status = PL_OK;
    if (others)
        status = others->look(others->context, w->folder, &w->is_shared, err);
    for (size_t i = 0; i < pl_checkpoint_files(gpt) && !status; i++) {
        const pl_tensors_name name = pl_checkpoint_file(gpt, i);
        status = write_tensors(w, &name, err);
    }
    if (!status && others && w->is_shared)
        status = others->fill(others->context, w->folder, err);
    return status;
}

static pl_status write_bytes(const char *path, const char *text, size_t bytes,
                             pl_error *err)
{
    pl_file file;
    pl_status status = pl_file_create(&file, path, err);
    if (status)
        return status;
    status = pl_file_append(&file, text, bytes, err);
    if (!status)
        status = pl_file_sync(&file, err);
    if (status) {
        pl_file_abandon(&file);
        return status;
    }
    return pl_file_close(&file, err);
}

static pl_status write_text(writing *w, const char *name, const char *text,
                            size_t bytes, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_hash hash;
    pl_status status = pl_path_join(path, w->folder, name, err);
    if (!status)
        status = write_bytes(path, text, bytes, err);
    if (status)
        return status;
    pl_hash_begin(&hash);
    pl_hash_add(&hash, text, bytes);
    pl_manifest_add(&w->manifest, name, bytes, &hash);
    return PL_OK;
}

/* The files that are composed in run->text. */
typedef pl_status composer(pl_run *run, size_t *bytes, pl_error *err);
static const struct {
    const char *name;
    composer *compose;
} composed[] = {
    { "config.json", pl_hf_config_text },
    { "generation_config.json", pl_hf_generation_text },
    { "tokenizer_config.json", pl_hf_tokenizer_text },
    { "state.json", pl_checkpoint_state_text },
};

static pl_status write_texts(writing *w, pl_error *err)
{
    pl_run *run = w->run;
    pl_status status = PL_OK;
    for (int i = 0; i < 2 && !status; i++) {
        const pl_tokenizer_text *file = i ? &run->hf_tokenizer
                                          : &run->tokenizer_file;
        if (file->name)
            status = write_text(w, file->name, file->text, file->bytes, err);
    }
    for (size_t i = 0; i < sizeof composed / sizeof composed[0]; i++) {
        size_t bytes = 0;
        if (!status)
            status = composed[i].compose(run, &bytes, err);
        if (!status && bytes > 0)
            status = write_text(w, composed[i].name, run->text, bytes, err);
    }
    return status;
}

static pl_status write_metrics(writing *w, pl_error *err)
{
    const pl_thin *thin = &w->run->metrics.thin;
    pl_metrics_sync(&w->run->metrics);
    if (thin->used == 0)
        return PL_OK;
    return write_text(w, PL_METRICS_NAME, thin->text, thin->used, err);
}

/* The manifest last, and then the folder's own entries. */
static pl_status write_all(writing *w, pl_error *err)
{
    char path[PL_PATH_BYTES];
    size_t bytes;
    pl_status status = write_all_tensors(w, err);
    if (!status)
        status = write_texts(w, err);
    if (!status)
        status = write_metrics(w, err);
    if (!status)
        status = pl_manifest_text(&w->manifest, w->run->text, PL_RUN_TEXT_BYTES,
                                  &bytes, err);
    if (!status)
        status = pl_path_join(path, w->folder, PL_MANIFEST_NAME, err);
    if (!status)
        status = write_bytes(path, w->run->text, bytes, err);
    if (!status)
        status = pl_folder_sync(w->folder, err);
    return status;
}

pl_status pl_checkpoint_save(pl_run *run, pl_error *err)
{
    pl_outdir *outdir = &run->outdir;
    char name[PL_OUTDIR_NAME_BYTES];
    writing w = { .run = run, .manifest = { .step = run->step } };
    pl_outdir_name(name, run->step);
    pl_status status = pl_outdir_begin(outdir, w.folder, err);
    if (!status)
        pl_metrics_follow(&run->metrics, outdir->path, run->step);
    if (!status)
        status = write_all(&w, err);
    if (!status)
        status = pl_outdir_publish(outdir, run->step, run->val_loss, err);
    if (status) {
        pl_outdir_abandon(outdir);
        return pl_fail_in(err, status, "cannot save %s/%s: ", outdir->path,
                          name);
    }
    return PL_OK;
}
