/* test_peers_peak.c: what a model takes here against what it takes in nanoGPT
 * (explain's replay) and in llm.c (the sum of what it allocates), for many
 * random models and some known ones. Tensors against tensors: our arena, and
 * nothing of anybody's program, libraries or context. */
#include "advise/runplan.h"
#include "base/rng.h"
#include "explain/peers.h"
#include "support/sanitized.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    CONFIGS = SANITIZED_ADDRESS || SANITIZED_THREAD ? 40 : 300,
    THREADS = 2,
    HEAP_BYTES = 256 * 1024 * 1024,
};

typedef struct model {
    const char *name;
    size_t B, T, C, L, H, V;
    size_t accumulation;
    int bias, dropout;
} model;

static const model known[] = {
    { "the 77 M model, 16 x 1024", 16, 1024, 576, 12, 12, 50304, 32, 0, 0 },
    { "the 77 M model, 1 x 1024", 1, 1024, 576, 12, 12, 50304, 32, 0, 0 },
    { "GPT-2 124M, 12 x 1024", 12, 1024, 768, 12, 12, 50304, 40, 0, 0 },
    { "GPT-2 124M, 1 x 1024", 1, 1024, 768, 12, 12, 50304, 40, 1, 0 },
    { "GPT-2 124M, 4 x 64", 4, 64, 768, 12, 12, 50304, 1, 1, 0 },
    { "Shakespeare by characters, 64 x 256", 64, 256, 384, 6, 6, 65, 1, 0, 1 },
    { "the same for a CPU, 12 x 64", 12, 64, 128, 4, 4, 65, 1, 0, 0 },
};
enum { KNOWN = sizeof known / sizeof known[0] };

typedef enum storage { FLOAT32, BFLOAT16, FLOAT16, STORAGES } storage;
static const pl_dtype_choice storages[] = { PL_DTYPE_FLOAT32, PL_DTYPE_BFLOAT16,
                                            PL_DTYPE_FLOAT16 };
static const char *const storage_names[] = { "float32", "bfloat16", "float16" };

/* A number in [least, most] for draw `which` of model i. */
static size_t draw(uint32_t i, uint32_t which, size_t least, size_t most)
{
    uint32_t words[4];
    pl_rng_words(PL_RNG_INIT, 5, i, which, 0, 0, words);
    return least + (size_t)pl_rng_below(words, most - least + 1);
}

static model random_model(uint32_t i)
{
    model m = { .name = "random",
                .B = draw(i, 0, 1, 16),
                .T = draw(i, 1, 8, 512),
                .L = draw(i, 2, 1, 12),
                .H = draw(i, 3, 1, 12),
                .V = draw(i, 4, 0, 2) ? draw(i, 5, 32, 20000) : 50304,
                .accumulation = draw(i, 6, 1, 2),
                .bias = (int)draw(i, 7, 0, 1),
                .dropout = (int)draw(i, 8, 0, 1) };
    m.C = m.H * draw(i, 9, 4, 96);
    return m;
}

/* What cuBLASLt packs in, as we do in a few hundred kB per thread. */
enum { LLMC_WORKSPACE_BYTES = 32 * 1024 * 1024 };

/* ---- the peers ---- */

static pl_nanogpt_job job_of(const model *m, storage s)
{
    static const pl_torch_dtype dtypes[] = { PL_TORCH_FLOAT32,
                                             PL_TORCH_BFLOAT16,
                                             PL_TORCH_FLOAT16 };
    return (pl_nanogpt_job){
        .B = m->B,
        .T = m->T,
        .C = m->C,
        .L = m->L,
        .H = m->H,
        .V = m->V,
        .eval_B = m->B,
        .eval_T = m->T,
        .accumulation = m->accumulation,
        .dtype = dtypes[s],
        .device = PL_TORCH_CUDA,
        .biases = m->bias ? PL_TORCH_BIASES : PL_TORCH_NO_BIASES,
        .dropout = m->dropout ? PL_TORCH_DROPOUT : PL_TORCH_NO_DROPOUT,
        .threads = THREADS,
    };
}

/* nanoGPT: eager, flash attention. Where nothing accumulates its gradients are
 * gone during the forward pass, and grow while the activations shrink; here
 * they live throughout. *gap: as many bytes, 0 elsewhere. */
static double nanogpt_bytes(pl_nanogpt_job job, pl_torch_device device,
                            double *gap)
{
    pl_nanogpt_result r;
    pl_error err = { 0 };
    job.device = device;
    if (pl_nanogpt_replay(&job, &r, NULL, NULL, &err))
        fail_msg("%s", err.text);
    *gap = job.accumulation == 1 ? 4.0 * (double)r.parameters : 0.0;
    return fmax((double)pl_nanogpt_train_peak(&r)->live_bytes,
                (double)r.peaks[PL_TAPE_EVAL_LATER].live_bytes);
}

/* ---- here ---- */

/* DEFAULT: what `plan` and `train` take if nothing is said of memory. */
typedef enum wish {
    LITERAL_0,
    LITERAL_1,
    FASTEST,
    DEFAULT,
    SMALLEST,
    WISHES
} wish;

static double plan_bytes(const model *m, storage s, wish w)
{
    pl_heap heap = pl_heap_make(HEAP_BYTES);
    pl_config config = pl_config_make_default();
    pl_error err = { 0 };
    pl_run_plan plan;
    const pl_machine machine = { .budget_bytes = w == SMALLEST ? 1 : SIZE_MAX,
                                 .rates = { pl_rates_built_in(THREADS),
                                            pl_rates_built_in(THREADS),
                                            pl_rates_built_in(THREADS) } };
    config.n_layer = (int64_t)m->L;
    config.n_head = (int64_t)m->H;
    config.n_embd = (int64_t)m->C;
    config.block_size = (int64_t)m->T;
    config.batch_size = (int64_t)m->B;
    config.vocab_size = (int64_t)m->V;
    config.gradient_accumulation_steps = (int64_t)m->accumulation;
    config.bias = m->bias;
    config.dropout = m->dropout ? 0.2 : 0.0;
    config.dtype = storages[s];
    config.threads = THREADS;
    config.fit = w <= LITERAL_1 ? PL_FIT_EXACT : PL_FIT_AUTO;
    config.memory = w == DEFAULT ? "auto" : "stated";
    pl_status status = PL_OK;
    if (w == LITERAL_1)
        status = pl_config_override(&config, "--grad_checkpoint=1", PL_FOR_ALL,
                                    &heap, &err);
    if (!status)
        status = pl_run_plan_make(&plan, &config, &machine, m->V, NULL, &heap,
                                  &err);
    if (status)
        fail_msg("%s", err.text);
    double bytes = (double)plan.gpt.placement.arena_bytes;
    pl_heap_close(&heap);
    return bytes;
}

/* ---- side by side ---- */

typedef struct comparison {
    double here[WISHES];
    double nanogpt; /* the least that nanoGPT needs in this dtype */
    double gap;     /* and what it spares by not accumulating */
    double llmc_cpu, llmc_cuda[PL_LLMC_RECOMPUTATIONS];
} comparison;

static comparison compare(const model *m, storage s)
{
    comparison c;
    for (int w = 0; w < WISHES; w++)
        c.here[w] = plan_bytes(m, s, (wish)w);
    const pl_nanogpt_job job = job_of(m, s);
    c.nanogpt = nanogpt_bytes(job, PL_TORCH_CUDA, &c.gap);
    if (s == FLOAT32)
        c.nanogpt = fmin(c.nanogpt, nanogpt_bytes(job, PL_TORCH_CPU, &c.gap));
    c.llmc_cpu = pl_llmc_cpu_bytes(&job);
    for (int r = 0; r < PL_LLMC_RECOMPUTATIONS; r++)
        c.llmc_cuda[r] = pl_llmc_cuda_bytes(&job, r);
    return c;
}

static void expect_no_more(const model *m, storage s, const char *what,
                           double ours, const char *whose, double theirs)
{
    if (ours > theirs)
        fail_msg("%s (B %zu T %zu C %zu L %zu H %zu V %zu bias %d dropout %d, "
                 "%s): %s takes %.0f bytes, %s %.0f",
                 m->name, m->B, m->T, m->C, m->L, m->H, m->V, m->bias,
                 m->dropout, storage_names[s], what, ours, whose, theirs);
}

static void check(const model *m, storage s, const comparison *c)
{
    static const char *const names[] = { "the literal plan, level 0,",
                                         "the literal plan, level 1,",
                                         "the fastest plan", "the default plan",
                                         "the smallest plan" };
    for (int w = 0; w < WISHES; w++) {
        expect_no_more(m, s, names[w], c->here[w], "nanoGPT",
                       c->nanogpt + c->gap);
        expect_no_more(m, s, names[w], c->here[w], "llm.c on the CPU",
                       c->llmc_cpu);
    }
    /* In float32 the two keep the same for the same recomputation. In 16 bits
     * the residual stream is float32 here and 16 bits there. */
    for (int r = 0; r < 2 && s == FLOAT32; r++)
        expect_no_more(m, s, names[r], c->here[r],
                       "llm.c on CUDA with its workspace",
                       c->llmc_cuda[r] + LLMC_WORKSPACE_BYTES);
    /* Whatever was taken literally or asked for: what the program chooses by
     * itself takes no more than any of them. */
    for (int w = DEFAULT; w < WISHES; w++) {
        if (c->here[w] <= PL_RUN_PLAN_FREE_BYTES)
            continue;
        expect_no_more(m, s, names[w], c->here[w], "nanoGPT", c->nanogpt);
        for (int r = 0; r < PL_LLMC_RECOMPUTATIONS; r++)
            expect_no_more(m, s, names[w], c->here[w], "llm.c on CUDA",
                           c->llmc_cuda[r]);
    }
}

/* ---- the tests ---- */

/* The rows of docs/memory.md. */
static void known_models_take_no_more_than_in_their_peers(void **state)
{
    (void)state;
    print_message(
        "| model | dtype | literal | fastest | default | smallest | nanoGPT | "
        "llm.c CPU | llm.c CUDA -r 1 |\n");
    for (size_t i = 0; i < KNOWN; i++)
        for (int s = 0; s < STORAGES; s++) {
            comparison c = compare(&known[i], (storage)s);
            check(&known[i], (storage)s, &c);
            if (s != FLOAT16) /* the same bytes as bfloat16 */
                print_message("| %s | %s | %.0f | %.0f | %.0f | %.0f | %.0f | "
                              "%.0f | %.0f |\n",
                              known[i].name, storage_names[s],
                              c.here[LITERAL_0] / 1e6, c.here[FASTEST] / 1e6,
                              c.here[DEFAULT] / 1e6, c.here[SMALLEST] / 1e6,
                              c.nanogpt / 1e6, c.llmc_cpu / 1e6,
                              c.llmc_cuda[1] / 1e6);
        }
}

/* How often a plan takes more: what is not promised is at least known. */
typedef struct tally {
    int models, over_cuda[WISHES], over_nanogpt[WISHES];
    double worst_cuda, worst_nanogpt; /* ratio, of any plan */
} tally;

static void count(tally *t, const comparison *c)
{
    t->models++;
    for (int w = 0; w < WISHES; w++) {
        double cuda = c->here[w] / c->llmc_cuda[1];
        double nanogpt = c->here[w] / c->nanogpt;
        t->over_cuda[w] += cuda > 1.0;
        t->over_nanogpt[w] += nanogpt > 1.0;
        t->worst_cuda = fmax(t->worst_cuda, cuda);
        t->worst_nanogpt = fmax(t->worst_nanogpt, nanogpt);
    }
}

static void print_tally(const char *name, const tally *t)
{
    print_message("%s, %d models: literal, fastest, default plan above llm.c "
                  "on CUDA -r 1 without its workspace %d, %d, %d (at most %.2f "
                  "times); above nanoGPT %d, %d, %d (%.2f times)\n",
                  name, t->models, t->over_cuda[LITERAL_0],
                  t->over_cuda[FASTEST], t->over_cuda[DEFAULT], t->worst_cuda,
                  t->over_nanogpt[LITERAL_0], t->over_nanogpt[FASTEST],
                  t->over_nanogpt[DEFAULT], t->worst_nanogpt);
}

static void random_models_take_no_more_than_in_their_peers(void **state)
{
    (void)state;
    tally tallies[STORAGES] = { { 0 } };
    for (uint32_t i = 0; i < CONFIGS; i++) {
        const storage s = (storage)(i % STORAGES);
        const model m = random_model(i);
        if (plan_bytes(&m, s, LITERAL_0) < PL_RUN_PLAN_FREE_BYTES)
            continue;
        comparison c = compare(&m, s);
        check(&m, s, &c);
        count(&tallies[s], &c);
    }
    for (int s = 0; s < STORAGES; s++)
        print_tally(storage_names[s], &tallies[s]);
    assert_true(tallies[FLOAT32].models > CONFIGS / 6);
}

/* The sums that were made by hand before. */
static void the_peers_formulas_give_the_known_figures(void **state)
{
    (void)state;
    const model *story = &known[0];
    const pl_nanogpt_job job = job_of(story, BFLOAT16);
    assert_int_equal(pl_llmc_cpu_bytes(&job) / 1e8, 695);
    assert_int_equal(pl_llmc_cuda_bytes(&job, 1) / 1e7, 582);
    assert_int_equal(pl_llmc_cuda_bytes(&job, 2) / 1e7, 537);
    double gap;
    assert_int_equal(
        nanogpt_bytes(job_of(story, FLOAT16), PL_TORCH_CUDA, &gap) / 1e7, 1542);
    assert_true(gap == 0.0);
    /* GPT-2 124M: the number that llm.c prints when it starts. */
    const pl_nanogpt_job gpt2 = job_of(&known[2], FLOAT32);
    assert_int_equal(pl_llmc_parameters(&gpt2), 124475904);
    pl_nanogpt_job padded = gpt2; /* from the tokens that there are */
    padded.V = 50257;
    assert_int_equal(pl_llmc_parameters(&padded), 124475904);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peers_formulas_give_the_known_figures),
        cmocka_unit_test(known_models_take_no_more_than_in_their_peers),
        cmocka_unit_test(random_models_take_no_more_than_in_their_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
