/* test_updates.c: AdamW and whole updates against PyTorch, and Muon against its
 * formula. */
#include "golden/fixture.h"
#include "golden/rig.h"
#include "support/on_device.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- AdamW alone ---- */

enum { ELEMENTS = 203, UPDATES = 3 };
static const double adamw_tolerance = 1e-6;
static const char *const adamw_names[] = { "adamw_first", "adamw_later" };

typedef struct adamw_state {
    float w[ELEMENTS], g[ELEMENTS], m[ELEMENTS], v[ELEMENTS];
} adamw_state;

static pl_adamw adamw_args(fixture *f, adamw_state *state, int update)
{
    double rate = fixture_number(f, "lr");
    double beta1 = fixture_number(f, "beta1");
    double beta2 = fixture_number(f, "beta2");
    static float clip;
    double t = fixture_number(f, "t") + update;
    clip = (float)fixture_number(f, "clip");
    return (pl_adamw){
        .w = state->w,
        .g = state->g,
        .m = state->m,
        .v = state->v,
        .count = ELEMENTS,
        .keep = (float)(1.0 - rate * fixture_number(f, "decay")),
        .beta1_rest = (float)(1.0 - beta1),
        .beta2 = (float)beta2,
        .beta2_rest = (float)(1.0 - beta2),
        .step_size = (float)(rate / (1.0 - pow(beta1, t))),
        .root_correction = (float)sqrt(1.0 - pow(beta2, t)),
        .eps = (float)fixture_number(f, "eps"),
        .clip = &clip,
    };
}

static void assert_state(worst *seen, fixture *f, const char *set, int threads,
                         const adamw_state *state, int update)
{
    const struct {
        char letter;
        const float *found;
    } parts[] = { { 'w', state->w }, { 'm', state->m }, { 'v', state->v } };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char name[8];
        snprintf(name, sizeof name, "%c%d", parts[i].letter, update);
        assert_near(seen, parts[i].found, fixture_floats(f, name, ELEMENTS),
                    ELEMENTS, adamw_tolerance, "%s, %s x %d: %s", f->name, set,
                    threads, name);
    }
}

static void run_adamw(worst *seen, fixture *f, const pl_kernels *set,
                      int threads)
{
    const float *gradients = fixture_floats(f, "g", UPDATES * ELEMENTS);
    adamw_state state;
    memcpy(state.w, fixture_floats(f, "w", ELEMENTS), sizeof state.w);
    memcpy(state.m, fixture_floats(f, "m", ELEMENTS), sizeof state.m);
    memcpy(state.v, fixture_floats(f, "v", ELEMENTS), sizeof state.v);
    for (int update = 1; update <= UPDATES; update++) {
        memcpy(state.g, gradients + (update - 1) * ELEMENTS, sizeof state.g);
        pl_adamw args = adamw_args(f, &state, update);
        for (int ith = 0; ith < threads; ith++)
            set->adamw(&args, ith, threads);
        assert_state(seen, f, set->name, threads, &state, update);
        for (size_t i = 0; i < ELEMENTS; i++)
            assert_true(state.g[i] == 0.0f);
    }
}

static void adamw_alone_is_pytorchs(void **state)
{
    pl_kernels sets[RIG_SETS];
    size_t n_sets = rig_sets(sets);
    worst seen = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof adamw_names / sizeof adamw_names[0]; i++) {
        fixture f;
        fixture_open(&f, adamw_names[i]);
        for (size_t k = 0; k < n_sets; k++)
            for (int threads = 1; threads <= 2; threads++)
                run_adamw(&seen, &f, &sets[k], threads);
        fixture_close(&f);
    }
    worst_say(&seen, "AdamW");
}

/* ---- AdamW as the update program ---- */

/* Every tensor of a model is the fixture's vector, over and over. */
static void write_tiled(rig *r, pl_buffer_id buffer, const float *vector)
{
    size_t count = r->gpt.graph.buffers[buffer].bytes / sizeof(float);
    for (size_t at = 0; at < count; at += ELEMENTS) {
        size_t part = count - at < ELEMENTS ? count - at : ELEMENTS;
        on_device_write(r->device, buffer, at * sizeof(float), vector,
                        part * sizeof(float));
    }
}

static void assert_tiled(worst *seen, rig *r, pl_buffer_id buffer,
                         const float *vector, const char *what)
{
    size_t count = r->gpt.graph.buffers[buffer].bytes / sizeof(float);
    float *found = rig_floats(r, buffer);
    for (size_t at = 0; at < count; at += ELEMENTS) {
        size_t part = count - at < ELEMENTS ? count - at : ELEMENTS;
        assert_near(seen, found + at, vector, part, adamw_tolerance,
                    "%s x update: %s of %s", r->set, what,
                    r->gpt.graph.buffers[buffer].name);
    }
    free(found);
}

/* The clip that makes the program's factor the fixture's. */
static double clip_for(rig *r, const float *gradient, double factor)
{
    double sum = 0.0;
    for (size_t i = 0; i < pl_param_slots(&r->gpt.shape); i++) {
        pl_buffer_id buffer = r->gpt.gradients[i];
        if (buffer == PL_NO_BUFFER)
            continue;
        size_t count = r->gpt.graph.buffers[buffer].bytes / sizeof(float);
        for (size_t e = 0; e < count; e++)
            sum += pow((double)gradient[e % ELEMENTS], 2.0);
    }
    return factor < 1.0 ? factor * (sqrt(sum) + 1e-6) : 0.0;
}

static void set_adamw(rig *r, fixture *f, double rate, double t)
{
    double beta1 = fixture_number(f, "beta1");
    double beta2 = fixture_number(f, "beta2");
    r->controls.learning_rate = rate;
    r->controls.beta1 = beta1;
    r->controls.beta2 = beta2;
    r->controls.eps = fixture_number(f, "eps");
    r->controls.weight_decay = fixture_number(f, "decay");
    r->controls.correction1 = 1.0 - pow(beta1, t);
    r->controls.correction2 = 1.0 - pow(beta2, t);
}

static void run_update_program(worst *seen, fixture *model, fixture *f,
                               const pl_kernels *set)
{
    const float *gradients = fixture_floats(f, "g", UPDATES * ELEMENTS);
    int decays = fixture_number(f, "decay") > 0.0;
    rig r;
    rig_open(&r, model, set, &(rig_way){ .threads = 2 });
    /* the last kinds are none of this model's */
    size_t slots = pl_param_slot(&r.gpt.shape, PL_QNORM_W, 0);
    for (size_t i = 0; i < slots; i++) {
        write_tiled(&r, r.gpt.weights[i], fixture_floats(f, "w", ELEMENTS));
        write_tiled(&r, r.gpt.m[i], fixture_floats(f, "m", ELEMENTS));
        write_tiled(&r, r.gpt.v[i], fixture_floats(f, "v", ELEMENTS));
    }
    for (int update = 1; update <= UPDATES; update++) {
        const float *gradient = gradients + (update - 1) * ELEMENTS;
        for (size_t i = 0; i < slots; i++)
            write_tiled(&r, r.gpt.gradients[i], gradient);
        set_adamw(&r, f, fixture_number(f, "lr"),
                  fixture_number(f, "t") + update);
        r.controls.grad_clip = (float)clip_for(&r, gradient,
                                               fixture_number(f, "clip"));
        rig_update(&r);
    }
    for (size_t i = 0; i < slots; i++) {
        if (pl_param_at(&r.gpt.shape, i).is_2d || !decays)
            assert_tiled(seen, &r, r.gpt.weights[i],
                         fixture_floats(f, "w3", ELEMENTS), "w3");
        assert_tiled(seen, &r, r.gpt.m[i], fixture_floats(f, "m3", ELEMENTS),
                     "m3");
        assert_tiled(seen, &r, r.gpt.v[i], fixture_floats(f, "v3", ELEMENTS),
                     "v3");
    }
    rig_close(&r);
}

static void the_update_program_is_pytorchs_adamw(void **state)
{
    pl_kernels sets[RIG_SETS];
    size_t n_sets = rig_sets(sets);
    worst seen = { 0 };
    fixture model;
    (void)state;
    fixture_open(&model, "ten_steps");
    for (size_t i = 0; i < sizeof adamw_names / sizeof adamw_names[0]; i++) {
        fixture f;
        fixture_open(&f, adamw_names[i]);
        for (size_t k = 0; k < n_sets; k++)
            run_update_program(&seen, &model, &f, &sets[k]);
        fixture_close(&f);
    }
    fixture_close(&model);
    worst_say(&seen, "update program");
}

/* ---- ten whole updates ---- */

enum { STEPS = 10 };

typedef struct history {
    worst losses, norms, weights;
} history;

/* Where key biases lie in c_attn.bias: their true gradient is zero (softmax
 * ignores what all scores share), so AdamW's direction there is noise. */
static int is_noise(const pl_shape *shape, const pl_param *param, size_t i)
{
    return param->kind == PL_QKV_B && i / shape->A == 1; /* no groups here */
}

static void assert_weights(history *h, rig *r, fixture *f, int threads)
{
    const pl_shape *shape = &r->gpt.shape;
    for (size_t slot = 0; slot < pl_param_slots(shape); slot++) {
        pl_param param = pl_param_at(shape, slot);
        size_t count = param.rows * param.cols;
        double error = 0.0, change = 0.0;
        if (!pl_param_present(shape, &param))
            continue;
        float *initial = malloc(2 * count * sizeof *initial),
              *final = initial + count;
        assert_non_null(initial);
        rig_tensor(f, shape, slot, "", initial);
        rig_tensor(f, shape, slot, "final.", final);
        float *found = rig_floats(r, r->gpt.weights[slot]);
        for (size_t i = 0; i < count; i++)
            if (!is_noise(shape, &param, i)) {
                double to = (double) final[i];
                error += pow((double)found[i] - to, 2.0);
                change += pow((double)initial[i] - to, 2.0);
            }
        free(found);
        free(initial);
        assert_true(change > 0.0);
        assert_number_near(&h->weights, sqrt(error), 0.0, sqrt(change), 1e-3,
                           "%s x %d: %s", r->set, threads,
                           pl_param_name_of(&param).text);
    }
}

static void set_hyperparameters(rig *r, fixture *f, double rate, int t)
{
    size_t sequences = r->batch * fixture_config(f, "accumulation");
    set_adamw(r, f, rate, t + 1);
    if (r->gpt.layout.optimizer == PL_OPTIMIZER_MUON) {
        r->controls.muon_rate = fixture_doubles(f, "muon_rates", STEPS)[t];
        r->controls.muon_momentum = fixture_number(f, "muon_momentum");
        r->controls.muon_decay = fixture_number(f, "muon_decay");
    }
    r->controls.grad_clip = (float)fixture_number(f, "clip");
    r->controls.loss_scale = 1.0;
    r->controls.dlogit_scale = (float)(1.0 / (double)(sequences * r->T));
    r->controls.step = (uint32_t)t;
}

static void run_steps(history *h, fixture *f, const pl_kernels *set,
                      const rig_way *way)
{
    rig r;
    rig_open(&r, f, set, way);
    assert_int_equal(fixture_config(f, "steps"), STEPS);
    size_t accumulation = fixture_config(f, "accumulation");
    size_t sequences = r.batch * accumulation, row = r.T + 1;
    const int32_t *tokens = fixture_ints(f, "tokens", STEPS * sequences * row);
    const double *losses = fixture_doubles(f, "losses", STEPS);
    const double *norms = fixture_doubles(f, "norms", STEPS);
    const double *rates = fixture_doubles(f, "lr", STEPS);
    double clip = fixture_number(f, "clip");
    for (int t = 0; t < STEPS; t++) {
        double loss = 0.0, sums[8];
        set_hyperparameters(&r, f, rates[t], t);
        for (size_t a = 0; a < accumulation; a++) {
            size_t first = a * r.batch;
            r.controls.batch_first = (uint32_t)first;
            rig_train(&r, tokens + ((size_t)t * sequences + first) * row, sums);
            for (size_t s = 0; s < r.batch; s++)
                loss += sums[s] / (double)(sequences * r.T);
        }
        rig_update(&r);
        assert_number_near(&h->losses, loss, losses[t], 1.0, 1e-5,
                           "%s x %d: loss of step %d", r.set, way->threads, t);
        assert_number_near(&h->norms, (double)r.outcome.grad_norm, norms[t],
                           norms[t], 1e-5, "%s x %d: gradient norm of step %d",
                           r.set, way->threads, t);
        assert_int_equal(r.outcome.clip<1.0f, norms[t]> clip);
    }
    assert_weights(h, &r, f, way->threads);
    rig_close(&r);
}

static void follow_ten_steps(const char *name)
{
    pl_kernels sets[RIG_SETS];
    size_t n_sets = rig_sets(sets);
    history h = { 0 };
    fixture f;
    fixture_open(&f, name);
    for (size_t k = 0; k < n_sets; k++)
        for (int threads = 1; threads <= 2; threads++)
            run_steps(&h, &f, &sets[k],
                      &(rig_way){ .micro = threads == 2 ? 1 : 0,
                                  .threads = threads });
    fixture_close(&f);
    worst_say(&h.losses, "losses");
    worst_say(&h.norms, "gradient norms");
    worst_say(&h.weights, "weights, of their RMS change");
}

static void ten_steps_with_clipping_follow_pytorch(void **state)
{
    (void)state;
    follow_ten_steps("ten_steps");
}

/* Of transformers' models, in float64: grouped queries, an own classifier and
 * a cap on the logits in one of them, norms of queries and keys in the other.
 */
static void ten_steps_of_other_families_follow_transformers(void **state)
{
    (void)state;
    follow_ten_steps("ten_steps_llama");
    follow_ten_steps("ten_steps_qwen3");
}

static void ten_steps_with_muon_follow_its_formula(void **state)
{
    (void)state;
    follow_ten_steps("ten_steps_muon");
}

/* ---- Muon alone ---- */

/* Of a weight's largest element, after ten updates in float32. */
static const double muon_tolerance = 1e-5;

static double largest(const float *x, size_t count)
{
    double most = 0.0;
    for (size_t i = 0; i < count; i++)
        if (fabs((double)x[i]) > most)
            most = fabs((double)x[i]);
    return most;
}

static void assert_matrix(worst *seen, rig *r, fixture *f, pl_buffer_id buffer,
                          const char *prefix, const pl_param *param)
{
    const size_t count = param->rows * param->cols;
    char name[PL_PARAM_NAME_BYTES + 16];
    snprintf(name, sizeof name, "%s.%s", prefix, pl_param_name_of(param).text);
    const float *want = fixture_floats(f, name, count);
    const double most = largest(want, count);
    float *found = rig_floats(r, buffer);
    for (size_t i = 0; i < count; i++)
        assert_number_near(seen, (double)found[i], (double)want[i], most,
                           muon_tolerance, "%s: element %zu of %s", r->set, i,
                           name);
    free(found);
}

/* The clip that makes the program's factor `factor`: of a known norm. */
static void set_clip(rig *r, fixture *f, int t)
{
    double sum = 0.0;
    for (size_t i = 0; i < pl_param_slots(&r->gpt.shape); i++) {
        pl_param param = pl_param_at(&r->gpt.shape, i);
        const size_t count = param.rows * param.cols;
        char name[PL_PARAM_NAME_BYTES + 8];
        snprintf(name, sizeof name, "g.%s", pl_param_name_of(&param).text);
        if (!pl_safetensors_find(&f->file, name))
            continue;
        const float *g = fixture_floats(f, name, STEPS * count) +
                         (size_t)t * count;
        for (size_t e = 0; e < count; e++)
            sum += pow((double)g[e], 2.0);
        on_device_write(r->device, r->gpt.gradients[i], 0, g,
                        count * sizeof *g);
    }
    r->controls.grad_clip = (float)(fixture_number(f, "clip") *
                                    (sqrt(sum) + 1e-6));
}

static void run_muon(worst *seen, fixture *f, const pl_kernels *set,
                     pl_muon_scale_choice scale)
{
    rig r;
    rig_open(&r, f, set, &(rig_way){ .threads = 2, .muon_scale = scale });
    r.controls.correction1 = r.controls.correction2 = 1.0;
    r.controls.eps = 1e-8;
    r.controls.muon_rate = fixture_number(f, "muon_rate");
    r.controls.muon_momentum = fixture_number(f, "muon_momentum");
    r.controls.muon_decay = fixture_number(f, "muon_decay");
    for (int t = 0; t < STEPS; t++) {
        set_clip(&r, f, t);
        rig_update(&r);
    }
    for (size_t i = 0; i < pl_param_slots(&r.gpt.shape); i++) {
        pl_param param = pl_param_at(&r.gpt.shape, i);
        if (param.role != PL_ROLE_PRODUCT)
            continue;
        assert_int_equal(r.gpt.v[i], PL_NO_BUFFER);
        assert_matrix(seen, &r, f, r.gpt.m[i], "m", &param);
        assert_matrix(seen, &r, f, r.gpt.weights[i],
                      scale == PL_MUON_SCALE_RMS ? "rms" : "spectral", &param);
    }
    rig_close(&r);
}

static void muon_alone_is_its_formula(void **state)
{
    pl_kernels sets[RIG_SETS];
    size_t n_sets = rig_sets(sets);
    worst seen = { 0 };
    fixture f;
    (void)state;
    fixture_open(&f, "muon_alone");
    for (size_t k = 0; k < n_sets; k++) {
        run_muon(&seen, &f, &sets[k], PL_MUON_SCALE_SPECTRAL);
        run_muon(&seen, &f, &sets[k], PL_MUON_SCALE_RMS);
    }
    fixture_close(&f);
    worst_say(&seen, "Muon, of each tensor's largest");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_alone_is_pytorchs),
        cmocka_unit_test(the_update_program_is_pytorchs_adamw),
        cmocka_unit_test(ten_steps_with_clipping_follow_pytorch),
        cmocka_unit_test(ten_steps_of_other_families_follow_transformers),
        cmocka_unit_test(ten_steps_with_muon_follow_its_formula),
        cmocka_unit_test(muon_alone_is_its_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
