/* peers.c: see peers.h. */
#include "explain/peers.h"
#include "base/cpu.h"
#include "explain/advice.h"

#include <math.h>

pl_torch_dtype pl_torch_dtype_of(pl_dtype_choice dtype)
{
    static const pl_torch_dtype dtypes[] = {
        [PL_DTYPE_FLOAT32] = PL_TORCH_FLOAT32,
        [PL_DTYPE_BFLOAT16] = PL_TORCH_BFLOAT16,
        [PL_DTYPE_FLOAT16] = PL_TORCH_FLOAT16,
    };
    return dtypes[dtype];
}

pl_nanogpt_job pl_nanogpt_job_make(const pl_config *config, size_t vocab_size,
                                   pl_torch_device device, pl_torch_dtype dtype)
{
    pl_nanogpt_job job = {
        .B = (size_t)config->batch_size,
        .T = (size_t)config->block_size,
        .C = (size_t)config->n_embd,
        .L = (size_t)config->n_layer,
        .V = vocab_size,
        .accumulation = (size_t)config->gradient_accumulation_steps,
        .dtype = dtype,
        .device = device,
        .biases = config->bias ? PL_TORCH_BIASES : PL_TORCH_NO_BIASES,
        .dropout = config->dropout > 0.0 ? PL_TORCH_DROPOUT
                                         : PL_TORCH_NO_DROPOUT,
        .threads = config->threads == PL_NONE ? (size_t)pl_cpu_count()
                                              : (size_t)config->threads,
    };
    job.H = pl_advice_heads(job.C, (size_t)config->n_head);
    job.eval_B = job.B;
    job.eval_T = job.T;
    return job;
}

/* ---- llm.c ---- */

/* Its vocabulary is padded, and it always has biases. */
static double llmc_vocabulary(const pl_nanogpt_job *job)
{
    return (double)((job->V + 127) / 128 * 128);
}

double pl_llmc_parameters(const pl_nanogpt_job *job)
{
    const double C = (double)job->C, L = (double)job->L;
    return (llmc_vocabulary(job) + (double)job->T) * C +
           L * (12 * C * C + 13 * C) + 2 * C;
}

double pl_llmc_cpu_bytes(const pl_nanogpt_job *job)
{
    const double C = (double)job->C, L = (double)job->L,
                 N = (double)job->B * (double)job->T, V = llmc_vocabulary(job),
                 scores = (double)job->H * (double)job->T;
    const double layer = 18 * C         /* ln1 qkv atty attproj residual2
                                         * ln2 fch fch_gelu fcproj residual3 */
                         + 2 * scores   /* preatt att */
                         + 4;           /* means, rstds */
    const double rest = 2 * C           /* encoded lnf */
                        + 2 * V         /* logits probs */
                        + 3;            /* mean, rstd, losses */
    return 16 * pl_llmc_parameters(job) /* params grads m v */
           + 2 * 4 * N * (L * layer + rest) + 8 * N; /* inputs targets */
}

double pl_llmc_cuda_bytes(const pl_nanogpt_job *job, int recompute)
{
    const double C = (double)job->C, L = (double)job->L,
                 N = (double)job->B * (double)job->T,
                 scores = (double)job->H * (double)job->T,
                 V = llmc_vocabulary(job);
    const double bytes = job->dtype == PL_TORCH_FLOAT32 ? 4 : 2;
    double layer = 10 * C; /* atty residual2 fch residual3 qkvr */
    double rest = 7 * C;   /* encoded lnf scratch_bt4c scratch_btc */
    double stats = 4 * L + 3;
    /* of which the logits are usually the largest */
    const double output = fmax(3 * C, fmax(scores, V));
    layer += recompute < 2 ? 2 * C : 0; /* ln1 ln2 */
    layer += recompute < 1 ? 4 * C : 0; /* fch_gelu */
    rest += recompute < 1 ? 0 : 4 * C;
    if (job->dtype == PL_TORCH_FLOAT32)
        layer += scores; /* att */
    else
        stats += L * (double)job->H;
    return 16 * pl_llmc_parameters(job) /* 4 4 4 4, or 2 2 4 4 and a master */
           + N * (bytes * (L * layer + rest + output) + 4 * stats + 8);
}

/* ---- the least ---- */

static pl_status nanogpt_bytes(pl_nanogpt_job job, pl_torch_device device,
                               double *bytes, pl_error *err)
{
    pl_nanogpt_result r;
    job.device = device;
    job.limit_bytes = 0;
    pl_status status = pl_nanogpt_replay(&job, &r, NULL, NULL, err);
    if (!status)
        *bytes = fmax((double)pl_nanogpt_train_peak(&r)->live_bytes,
                      (double)r.peaks[PL_TAPE_EVAL_LATER].live_bytes);
    return status;
}

static void take_lower(double bytes, const char *name, double *least,
                       const char **who)
{
    if (bytes < *least) {
        *least = bytes;
        *who = name;
    }
}

pl_status pl_peers_least(const pl_nanogpt_job *job, double *bytes,
                         const char **who, pl_error *err)
{
    static const char *const cuda[PL_LLMC_RECOMPUTATIONS] = {
        "llm.c on CUDA, -r 0", "llm.c on CUDA", "llm.c on CUDA, -r 2"
    };
    double nanogpt = 0;
    pl_status status = nanogpt_bytes(*job, PL_TORCH_CUDA, &nanogpt, err);
    *bytes = nanogpt;
    *who = "nanoGPT";
    if (!status && job->dtype == PL_TORCH_FLOAT32) {
        status = nanogpt_bytes(*job, PL_TORCH_CPU, &nanogpt, err);
        take_lower(nanogpt, "nanoGPT", bytes, who);
    }
    take_lower(pl_llmc_cpu_bytes(job), "llm.c", bytes, who);
    for (int r = 0; r < PL_LLMC_RECOMPUTATIONS; r++)
        take_lower(pl_llmc_cuda_bytes(job, r), cuda[r], bytes, who);
    return status;
}
