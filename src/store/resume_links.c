/* resume_links.c: which checkpoint is the best, when a run is resumed. By what
 * each says itself, and not by the link: who was killed in a save left that
 * pointing to the one before. */
#include "store/resume.h"

#include <math.h>

/* The loss of a checkpoint; infinite if it has none or can't be read. */
static double loss_of(const char *folder)
{
    pl_checkpoint_state state = { .val_loss = HUGE_VAL };
    pl_heap scratch = pl_heap_make((size_t)16 << 20);
    pl_status status = pl_checkpoint_read_state(&state, folder, &scratch, NULL);
    pl_heap_close(&scratch);
    return status ? HUGE_VAL : state.val_loss;
}

typedef struct best {
    uint64_t step;
    double loss;
    char folder[PL_PATH_BYTES];
} best;

/* The lowest loss above `above` (of two equal ones the earlier step) up to the
 * step `newest`. */
static pl_status find_best(const char *out_dir, const char *const *names,
                           size_t count, uint64_t newest, const best *above,
                           best *found, pl_error *err)
{
    *found = (best){ .step = PL_OUTDIR_NO_STEP, .loss = HUGE_VAL };
    for (size_t i = 0; i < count; i++) {
        best b;
        if (!pl_outdir_step_of(names[i], &b.step) || b.step > newest)
            continue;
        pl_status status = pl_path_join(b.folder, out_dir, names[i], err);
        if (status)
            return status;
        b.loss = loss_of(b.folder);
        int passed = b.loss < above->loss ||
                     (b.loss == above->loss && b.step <= above->step &&
                      above->step != PL_OUTDIR_NO_STEP);
        if (passed || !(b.loss < HUGE_VAL) || b.loss > found->loss ||
            (b.loss == found->loss && b.step > found->step))
            continue;
        *found = b;
    }
    return PL_OK;
}

/* A link that is right isn't looked behind; another checkpoint gets it only if
 * it is whole. */
pl_status pl_resume_links(pl_outdir *outdir, uint64_t newest, pl_heap *heap,
                          pl_error *err)
{
    char link[PL_PATH_BYTES], target[PL_PATH_BYTES] = "";
    const char *const *names;
    size_t count;
    uint64_t linked = PL_OUTDIR_NO_STEP;
    best passed = { .step = PL_OUTDIR_NO_STEP, .loss = -HUGE_VAL }, found;
    pl_status status = pl_folder_list(outdir->path, heap, &names, &count, err);
    if (!status)
        status = pl_path_join(link, outdir->path, PL_OUTDIR_BEST, err);
    if (!status)
        status = pl_link_read(link, target, err);
    if (status)
        return status;
    if (!pl_outdir_step_of(target, &linked))
        linked = PL_OUTDIR_NO_STEP;
    for (;; passed = found) {
        pl_manifest manifest;
        status = find_best(outdir->path, names, count, newest, &passed, &found,
                           err);
        if (status)
            return status;
        if (found.step == PL_OUTDIR_NO_STEP || found.step == newest ||
            found.step == linked ||
            !pl_manifest_check(&manifest, found.folder, PL_SCOPE_MODEL, NULL))
            break;
    }
    pl_outdir_relink(outdir, newest, found.step, found.loss);
    return PL_OK;
}
