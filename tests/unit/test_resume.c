/* Tests of store/resume: what a checkpoint says of the run that wrote it, and
 * what going on makes of it. */
#include "store/resume.h"
#include "train/trainer.h"

#include "support/on_device.h"
#include "support/tiny_run.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- a checkpoint that says something else ---- */

static void write_manifest(const tiny_run *run, pl_manifest *manifest,
                           const char *state)
{
    char text[PL_MANIFEST_MAX_BYTES];
    size_t bytes = 0;
    pl_error err = { 0 };
    for (size_t i = 0; i < manifest->count; i++)
        if (strcmp(manifest->files[i].name, "state.json") == 0) {
            manifest->files[i].bytes = strlen(state);
            manifest->files[i].sum = pl_hash_of(state, strlen(state));
        }
    assert_int_equal(
        pl_manifest_text(manifest, text, sizeof text, &bytes, &err), PL_OK);
    scratch_write(scratch_path(&run->folder, "out/latest/manifest.json"), text,
                  bytes);
}

/* Sets a member of state.json, takes it away where `value` is NULL; the
 * checkpoint stays whole. */
static void change_state(const tiny_run *run, const char *key, json_t *value)
{
    char path[1024];
    pl_manifest manifest;
    pl_error err = { 0 };
    snprintf(path, sizeof path, "%s",
             scratch_path(&run->folder, "out/latest/state.json"));
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    if (value)
        json_object_set_new(root, key, value);
    else
        json_object_del(root, key);
    char *text = json_dumps(root, JSON_INDENT(2));
    assert_int_equal(pl_manifest_check(&manifest,
                                       scratch_path(&run->folder, "out/latest"),
                                       PL_SCOPE_SETTINGS, &err),
                     PL_OK);
    scratch_write(path, text, strlen(text));
    write_manifest(run, &manifest, text);
    free(text);
    json_decref(root);
}

static long long said(const tiny_run *run, const char *key)
{
    json_t *root = json_load_file(
        scratch_path(&run->folder, "out/latest/state.json"), 0, NULL);
    assert_non_null(root);
    const json_t *value = json_object_get(root, key);
    long long number = json_is_integer(value) ? json_integer_value(value) : -1;
    json_decref(root);
    return number;
}

/* ---- going on ---- */

typedef struct ear {
    char text[4096];
    int warnings;
} ear;

static void listen(void *context, pl_log_level level, const char *text)
{
    ear *e = context;
    e->warnings += level == PL_LOG_WARN;
    strncat(e->text, text, sizeof e->text - strlen(e->text) - 2);
    strcat(e->text, "\n");
}

static pl_status go_on(tiny_run *run, ear *heard, pl_error *err)
{
    pl_machine machine;
    const pl_log log = { listen, heard };
    *heard = (ear){ "", 0 };
    tiny_run_set(run, "--init_from=resume");
    pl_status status = pl_machine_make(&machine, PL_MACHINE_RUN, &run->config,
                                       NULL, &run->heap, err);
    if (!status)
        status = pl_session_open_train(&run->session, run->purpose,
                                       &run->config, &machine, &log, &run->heap,
                                       err);
    run->is_open = !status;
    return status;
}

static void save(tiny_run *run)
{
    pl_error err = { 0 };
    if (pl_checkpoint_save(&run->session.run, &err))
        fail_msg("%s", err.text);
}

/* A run with one checkpoint, closed. */
static void make_run(tiny_run *run)
{
    tiny_run_make(run);
    tiny_run_open(run);
    tiny_run_train(run, 1);
    save(run);
    tiny_run_close(run);
}

static long long own_number(void)
{
    return (long long)on_device_info(2).arithmetic;
}

static long long other_number(void)
{
    return own_number() == PL_ARITHMETIC_BASE ? PL_ARITHMETIC_FUSED
                                              : PL_ARITHMETIC_BASE;
}

static void a_checkpoint_says_whose_bits_it_has(void **state)
{
    (void)state;
    tiny_run run;
    ear heard;
    pl_error err = { 0 };
    make_run(&run);
    assert_int_equal(said(&run, "arithmetic"), own_number());
    assert_int_equal(go_on(&run, &heard, &err), PL_OK);
    assert_null(strstr(heard.text, "arithmetic"));
    tiny_run_remove(&run);
}

static void other_bits_are_refused(void **state)
{
    (void)state;
    tiny_run run;
    ear heard;
    pl_error err = { 0 };
    char want[64];
    make_run(&run);
    change_state(&run, "arithmetic", json_integer(other_number()));
    assert_int_equal(go_on(&run, &heard, &err), PL_E_CONFIG);
    snprintf(want, sizeof want, "arithmetic %lld (", other_number());
    assert_non_null(strstr(err.text, want));
    snprintf(want, sizeof want, "%lld (", own_number());
    assert_non_null(strstr(err.text, want));
    assert_non_null(strstr(err.text, "step-00000001"));
    assert_non_null(strstr(err.text, "--allow_other_arithmetic=True"));
    change_state(&run, "arithmetic", json_integer(99)); /* a later version's */
    assert_int_equal(go_on(&run, &heard, &err), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "arithmetic 99 (unknown)"));
    tiny_run_remove(&run);
}

/* No set of this version has them, so that no setting leads back. */
static void bits_of_the_past_are_named(void **state)
{
    (void)state;
    tiny_run run;
    ear heard;
    pl_error err = { 0 };
    make_run(&run);
    change_state(&run, "arithmetic", json_integer(1));
    assert_int_equal(go_on(&run, &heard, &err), PL_E_CONFIG);
    assert_non_null(
        strstr(err.text, "arithmetic 1 (base of an earlier version)"));
    assert_non_null(strstr(err.text, "with the version that wrote it"));
    change_state(&run, "arithmetic", json_integer(2));
    assert_int_equal(go_on(&run, &heard, &err), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "arithmetic 2 (avx2, avx512 and neon of "
                                     "an earlier version)"));
    tiny_run_remove(&run);
}

static void other_bits_that_are_allowed_are_warned_of_once(void **state)
{
    (void)state;
    tiny_run run;
    pl_update_event event;
    ear heard;
    pl_error err = { 0 };
    char want[64];
    make_run(&run);
    change_state(&run, "arithmetic", json_integer(other_number()));
    tiny_run_set(&run, "--allow_other_arithmetic=True");
    assert_int_equal(go_on(&run, &heard, &err), PL_OK);
    assert_int_equal(heard.warnings, 1);
    snprintf(want, sizeof want, "in arithmetic %lld (", other_number());
    assert_non_null(strstr(heard.text, want));
    snprintf(want, sizeof want, "kernels here have %lld (", own_number());
    assert_non_null(strstr(heard.text, want));
    assert_non_null(strstr(heard.text, "It was allowed"));
    assert_int_equal(pl_train_update(&run.session, &event, &err), PL_OK);
    assert_int_equal(event.arithmetic, own_number());
    save(&run);
    assert_int_equal(said(&run, "arithmetic"), own_number());
    tiny_run_close(&run);
    tiny_run_set(&run, "--allow_other_arithmetic=False");
    assert_int_equal(go_on(&run, &heard, &err), PL_OK);
    assert_int_equal(heard.warnings, 0);
    tiny_run_remove(&run);
}

/* Nothing is trained: no bit of a run is another. */
static void an_evaluation_minds_no_arithmetic(void **state)
{
    (void)state;
    tiny_run run;
    ear heard;
    pl_error err = { 0 };
    make_run(&run);
    change_state(&run, "arithmetic", json_integer(other_number()));
    run.purpose = PL_RUN_EVALUATES;
    assert_int_equal(go_on(&run, &heard, &err), PL_OK);
    assert_int_equal(heard.warnings, 0);
    tiny_run_remove(&run);
}

static void a_number_that_is_none_is_refused(void **state)
{
    (void)state;
    tiny_run run;
    ear heard;
    pl_error err = { 0 };
    make_run(&run);
    change_state(&run, "arithmetic", json_string("base"));
    assert_int_equal(go_on(&run, &heard, &err), PL_E_FORMAT);
    assert_non_null(strstr(err.text, "\"arithmetic\" must be a whole number"));
    tiny_run_remove(&run);
}

/* As the first checkpoints were written. */
static void a_checkpoint_from_before_goes_on(void **state)
{
    (void)state;
    tiny_run run;
    ear heard;
    pl_error err = { 0 };
    make_run(&run);
    change_state(&run, "arithmetic", NULL);
    change_state(&run, "set", NULL);
    assert_int_equal(go_on(&run, &heard, &err), PL_OK);
    assert_int_equal(run.session.run.step, 1);
    assert_int_equal(heard.warnings, 0);
    tiny_run_remove(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_says_whose_bits_it_has),
        cmocka_unit_test(other_bits_are_refused),
        cmocka_unit_test(other_bits_that_are_allowed_are_warned_of_once),
        cmocka_unit_test(an_evaluation_minds_no_arithmetic),
        cmocka_unit_test(a_number_that_is_none_is_refused),
        cmocka_unit_test(a_checkpoint_from_before_goes_on),
        cmocka_unit_test(bits_of_the_past_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
