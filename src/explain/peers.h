/* peers.h: what nanoGPT and llm.c take for a job, tensors only: nobody's
 * program, libraries or context. nanoGPT's is the replay's peak; llm.c's the
 * sum of the arrays that it allocates in train_gpt2.c and train_gpt2.cu
 * (f1e2ace), without cuBLASLt's workspace. */
#ifndef PL_EXPLAIN_PEERS_H
#define PL_EXPLAIN_PEERS_H

#include "config/config.h"
#include "explain/nanogpt.h"

/* PyTorch's name for a config's dtype. */
pl_torch_dtype pl_torch_dtype_of(pl_dtype_choice dtype);

/* The job of a config on `device`, in `dtype`. */
pl_nanogpt_job pl_nanogpt_job_make(const pl_config *config, size_t vocab_size,
                                   pl_torch_device device,
                                   pl_torch_dtype dtype);

/* Everything is float32; every activation has a gradient of its size. */
double pl_llmc_cpu_bytes(const pl_nanogpt_job *job);

enum { PL_LLMC_RECOMPUTATIONS = 3 };

/* recompute: its option -r, 0 to 2; 1 is its default. In 16 bits with cuDNN's
 * attention, which it has for 16 bits only, and a float32 master copy. */
double pl_llmc_cuda_bytes(const pl_nanogpt_job *job, int recompute);

double pl_llmc_parameters(const pl_nanogpt_job *job);

/* The least of all that in which this job runs in its dtype: nanoGPT (eager; in
 * float32 on the CPU or on CUDA), llm.c on the CPU, llm.c on CUDA with any -r.
 * *who: which of them, for people. */
PL_MUST_CHECK pl_status pl_peers_least(const pl_nanogpt_job *job, double *bytes,
                                       const char **who, pl_error *err);

#endif
