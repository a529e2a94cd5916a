/* Tests of train/trainer where the loss or the gradients are no numbers: such
 * updates are skipped, and nothing good is lost. */
#include "store/checkpoint.h"
#include "support/on_device.h"
#include "support/tiny_run.h"
#include "train/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const dtypes[] = { "--dtype=float32", "--dtype=bfloat16",
                                      "--dtype=float16" };

/* Weights and moments, of whatever updates them. */
static const char *const optimizers[] = { "--optimizer=adamw",
                                          "--optimizer=muon" };
enum { OPTIMIZERS = sizeof optimizers / sizeof optimizers[0] };

static void skip_what_is_not_finite(const char *optimizer)
{
    tiny_run run;
    pl_update_event event;
    pl_error err = { 0 };
    float nan = NAN, kept;

    tiny_run_make(&run);
    tiny_run_set(&run, optimizer);
    tiny_run_open(&run);
    tiny_run_train(&run, 2);
    pl_buffer_id lnf =
        run.session.run.gpt
            .weights[pl_param_slot(&run.session.run.shape, PL_LNF_W, -1)];
    on_device_read(run.session.run.device, lnf, 0, &kept, sizeof kept);
    unsigned long long before = tiny_run_hash(&run);
    on_device_write(run.session.run.device, lnf, 0, &nan, sizeof nan);
    assert_int_equal(pl_train_update(&run.session, &event, &err), PL_OK);
    assert_true(event.skipped);
    assert_int_equal(run.session.run.skipped, 1);
    on_device_write(run.session.run.device, lnf, 0, &kept, sizeof kept);
    assert_true(tiny_run_hash(&run) == before);
    assert_int_equal(pl_train_update(&run.session, &event, &err), PL_OK);
    assert_false(event.skipped); /* and the next update is a clean one */
    assert_true(isfinite(event.loss));
    tiny_run_remove(&run);
}

static void not_finite_gradients_leave_the_weights_alone(void **state)
{
    (void)state;
    for (int i = 0; i < OPTIMIZERS; i++)
        skip_what_is_not_finite(optimizers[i]);
}

/* A layernorm that multiplies by 1e6 leaves nothing that fits 16 bits. */
static void overflow_in_float16(const char *optimizer)
{
    tiny_run run;
    pl_update_event event;
    pl_error err = { 0 };
    float huge[24], kept[24];

    tiny_run_make(&run);
    tiny_run_set(&run, "--dtype=float16");
    tiny_run_set(&run, optimizer);
    tiny_run_open(&run);
    tiny_run_train(&run, 2);
    assert_true(run.session.run.scaler.scale == 65536.0);
    pl_buffer_id ln =
        run.session.run.gpt
            .weights[pl_param_slot(&run.session.run.shape, PL_LN1_W, 0)];
    on_device_read(run.session.run.device, ln, 0, kept, sizeof kept);
    for (int i = 0; i < 24; i++)
        huge[i] = 1e6f;
    unsigned long long before = tiny_run_hash(&run);
    on_device_write(run.session.run.device, ln, 0, huge, sizeof huge);
    assert_int_equal(pl_train_update(&run.session, &event, &err), PL_OK);
    assert_true(event.skipped);
    assert_false(event.diverged); /* the scale may be at fault */
    assert_true(event.loss_scale == 32768.0);
    on_device_write(run.session.run.device, ln, 0, kept, sizeof kept);
    assert_true(tiny_run_hash(&run) == before);
    assert_int_equal(pl_train_update(&run.session, &event, &err), PL_OK);
    assert_false(event.skipped);
    assert_true(isfinite(event.loss));
    assert_int_equal(run.session.run.skipped, 1);

    /* and the scale is part of the checkpoint */
    assert_int_equal(pl_checkpoint_save(&run.session.run, &err), PL_OK);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    tiny_run_open(&run);
    assert_true(run.session.run.scaler.scale == 32768.0);
    assert_int_equal(run.session.run.scaler.good, 1);
    tiny_run_remove(&run);
}

static void an_overflow_in_float16_is_skipped_and_recovered_from(void **state)
{
    (void)state;
    for (int i = 0; i < OPTIMIZERS; i++)
        overflow_in_float16(optimizers[i]);
}

/* Every token's first channel is no number. */
static void spoil(tiny_run *run)
{
    const float nan = NAN;
    for (size_t i = 0; i < 61; i++)
        on_device_write(run->session.run.device,
                        run->session.run.gpt.weights[0], i * 24 * sizeof nan,
                        &nan, sizeof nan);
}

static void a_run_that_has_diverged_stops_with_advice(void **state)
{
    (void)state;
    for (int saves = 0; saves < 2; saves++) {
        tiny_run run;
        pl_error err = { 0 };
        tiny_run_make(&run);
        tiny_run_set(&run, "--max_iters=100");
        tiny_run_set(&run, saves ? "--max_skipped=4" : "--max_skipped=10");
        if (saves)
            tiny_run_set(&run, "--save_interval=1");
        tiny_run_open(&run);
        if (saves) {
            tiny_run_train(&run, 2);
            assert_int_equal(pl_checkpoint_save(&run.session.run, &err), PL_OK);
        }
        spoil(&run);
        assert_int_equal(tiny_run_until(&run, 1000, &err), PL_E_CONFIG);
        assert_non_null(strstr(err.text, "learning_rate"));
        assert_non_null(strstr(err.text, saves ? "out/step-00000002"
                                               : "there is no checkpoint yet"));
        assert_int_equal(run.session.run.step, saves ? 6 : 10);
        assert_int_equal(run.session.run.skipped, saves ? 4 : 10);
        /* weights that are not numbers are not saved */
        for (int step = 3; step <= 10; step++)
            assert_false(tiny_run_has_step(&run, step));
        tiny_run_remove(&run);
    }
}

/* A stop after an update that was skipped loses nothing: not the updates
 * before it, and not the checkpoint that is surely good. */
static void
a_stop_among_skipped_updates_saves_and_keeps_the_one_before(void **state)
{
    (void)state;
    tiny_run run;
    pl_error err = { 0 };
    tiny_run_make(&run);
    tiny_run_set(&run, "--keep=0");
    tiny_run_set(&run, "--max_iters=100");
    tiny_run_open(&run);
    tiny_run_train(&run, 2);
    assert_int_equal(pl_checkpoint_save(&run.session.run, &err), PL_OK);
    tiny_run_train(&run, 2);
    spoil(&run);
    assert_int_equal(tiny_run_until(&run, 5, &err), PL_E_STOPPED);
    assert_true(tiny_run_has_step(&run, 2));
    assert_true(tiny_run_has_step(&run, 5));
    tiny_run_remove(&run);
}

/* The logits of the even tokens are -inf, so that the loss of a sequence which
 * has one is infinite; a gradient that is multiplied by ln_f's zeros goes no
 * further, and what is left is finite. */
static void an_infinite_loss_with_finite_gradients_is_skipped(void **state)
{
    (void)state;
    tiny_run run;
    pl_update_event event;
    pl_error err = { 0 };
    float low[24], ones[24];
    const float zeros[24] = { 0 };
    for (int i = 0; i < 24; i++) {
        low[i] = -3e37f;
        ones[i] = 1.0f;
    }
    tiny_run_make(&run);
    tiny_run_set(&run, "--tie_word_embeddings=False");
    tiny_run_set(&run, "--grad_clip=0");
    tiny_run_open(&run);
    const pl_gpt *gpt = &run.session.run.gpt;
    const pl_buffer_id *w = gpt->weights;
    pl_device *device = run.session.run.device;
    size_t head = pl_param_slot(&gpt->shape, PL_HEAD_W, -1);
    on_device_write(device, w[pl_param_slot(&gpt->shape, PL_LNF_W, -1)], 0,
                    zeros, sizeof zeros);
    on_device_write(device, w[pl_param_slot(&gpt->shape, PL_LNF_B, -1)], 0,
                    ones, sizeof ones);
    for (size_t token = 0; token < 61; token += 2)
        on_device_write(device, w[head], token * sizeof low, low, sizeof low);
    unsigned long long before = tiny_run_hash(&run);
    assert_int_equal(pl_train_update(&run.session, &event, &err), PL_OK);
    assert_true(isinf(event.loss));
    for (size_t i = 0; i < pl_param_slots(&gpt->shape); i++) {
        if (gpt->gradients[i] == PL_NO_BUFFER)
            continue;
        float *g = on_device_copy(device, &gpt->graph, gpt->gradients[i]);
        size_t count = gpt->graph.buffers[gpt->gradients[i]].bytes / sizeof *g;
        for (size_t k = 0; k < count; k++)
            assert_true(isfinite(g[k]));
        free(g);
    }
    assert_true(event.skipped);
    assert_true(tiny_run_hash(&run) == before);
    tiny_run_remove(&run);
}

/* In every dtype: the loss and the metrics say it, the count too. */
static void what_is_not_finite_is_skipped_in_every_dtype(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        tiny_run run;
        pl_update_event event;
        pl_error err = { 0 };
        const float inf = HUGE_VALF;
        tiny_run_make(&run);
        tiny_run_set(&run, dtypes[i]);
        tiny_run_open(&run);
        tiny_run_train(&run, 1);
        on_device_write(run.session.run.device, run.session.run.gpt.weights[1],
                        0, &inf, sizeof inf);
        unsigned long long before = tiny_run_hash(&run);
        assert_int_equal(pl_train_update(&run.session, &event, &err), PL_OK);
        assert_true(event.skipped);
        assert_true(tiny_run_hash(&run) == before);
        assert_int_equal(run.session.run.skipped, 1);
        assert_int_equal(run.session.run.step, 2);
        tiny_run_remove(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_finite_gradients_leave_the_weights_alone),
        cmocka_unit_test(an_overflow_in_float16_is_skipped_and_recovered_from),
        cmocka_unit_test(a_run_that_has_diverged_stops_with_advice),
        cmocka_unit_test(
            a_stop_among_skipped_updates_saves_and_keeps_the_one_before),
        cmocka_unit_test(an_infinite_loss_with_finite_gradients_is_skipped),
        cmocka_unit_test(what_is_not_finite_is_skipped_in_every_dtype),
    };
    scratch_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
