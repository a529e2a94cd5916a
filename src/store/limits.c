/* limits.c: see limits.h. */
#include "store/limits.h"
#include "base/file.h"
#include "base/units.h"
#include "store/checkpoint.h"

#include <inttypes.h>

enum {
    /* metrics.jsonl, samples.jsonl, tasks.jsonl and TensorBoard's stay open; a
     * save copies the first, from one file to another, which is the most it has
     * open at once */
    OPEN_FILES = 4 + 2,
};

pl_status pl_limits_check_size(const pl_gpt *gpt, pl_error *err)
{
    const uint64_t limit = pl_file_limit_bytes();
    uint64_t bytes;
    const pl_tensors_name name = pl_checkpoint_largest(gpt, &bytes);
    if (bytes > limit)
        return pl_fail(
            err, PL_E_IO,
            "a checkpoint's %s has %s, and this process may write files of at "
            "most %s (ulimit -f): no save would succeed. Raise "
            "the limit (ulimit -f unlimited)",
            name.text, pl_units_exact(bytes).text, pl_units_exact(limit).text);
    return PL_OK;
}

static void warn_of_metrics(const pl_run *run)
{
    const uint64_t limit = pl_file_limit_bytes();
    const pl_metrics_bytes metrics = pl_checkpoint_metrics_bytes(run->config);
    uint64_t most = metrics.lines > metrics.events ? metrics.lines
                                                   : metrics.events;
    if (metrics.samples > most)
        most = metrics.samples;
    if (metrics.tasks > most)
        most = metrics.tasks;
    if (most > limit)
        pl_log_say(run->log, PL_LOG_WARN,
                   "this process may write files of at most %s (ulimit -f), "
                   "and the metrics of this run can have %s: they may end "
                   "before the run does. Checkpoints "
                   "fit. Raise the limit (ulimit -f unlimited)",
                   pl_units_exact(limit).text, pl_units_exact(most).text);
}

pl_status pl_limits_check(pl_run *run, pl_error *err)
{
    pl_status status = pl_limits_check_size(&run->gpt, err);
    if (!status)
        warn_of_metrics(run);
    return status ? status : pl_file_spare(&run->outdir.lock, OPEN_FILES, err);
}
