/* Tests of store/manifest: nothing that was damaged is taken for whole. */
#include "store/checkpoint.h"
#include "support/tiny_run.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static pl_manifest small(void)
{
    pl_manifest m = { .step = 12 };
    pl_hash hash;
    pl_hash_begin(&hash);
    pl_manifest_add(&m, "model.safetensors", 4711, &hash);
    pl_hash_add(&hash, "x", 1);
    pl_manifest_add(&m, "state.json", 1, &hash);
    return m;
}

static void a_text_reads_back_as_it_was(void **state)
{
    (void)state;
    char text[4096];
    size_t bytes;
    pl_manifest was = small(), is;
    pl_error err = { 0 };
    assert_int_equal(pl_manifest_text(&was, text, sizeof text, &bytes, &err),
                     PL_OK);
    assert_int_equal(bytes, strlen(text));
    assert_int_equal(pl_manifest_read(&is, text, bytes, "m", &err), PL_OK);
    assert_int_equal(is.step, 12);
    assert_int_equal(is.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(is.files[i].name, was.files[i].name);
        assert_string_equal(is.files[i].sum.text, was.files[i].sum.text);
        assert_int_equal(is.files[i].bytes, was.files[i].bytes);
    }
}

static void a_text_that_does_not_fit_is_an_error(void **state)
{
    (void)state;
    char text[4096];
    size_t bytes, full;
    pl_manifest m = small();
    pl_error err = { 0 };
    assert_int_equal(pl_manifest_text(&m, text, sizeof text, &full, &err),
                     PL_OK);
    for (size_t capacity = 1; capacity <= full; capacity++)
        assert_int_equal(pl_manifest_text(&m, text, capacity, &bytes, &err),
                         PL_E_MEMORY);
}

/* `before` replaced by `after`, with a sum that is right again. */
static pl_status read_forged(const char *before, const char *after,
                             pl_error *err)
{
    char text[4096], forged[4096];
    size_t bytes;
    pl_manifest m = small(), is;
    assert_int_equal(pl_manifest_text(&m, text, sizeof text, &bytes, err),
                     PL_OK);
    const char *at = strstr(text, before);
    assert_non_null(at);
    int covered = snprintf(forged, sizeof forged, "%.*s%s%s", (int)(at - text),
                           text, after, at + strlen(before));
    covered -= (int)strlen(",\n  \"xxh128\": \"\"\n}\n") + 32;
    snprintf(forged + covered, sizeof forged - (size_t)covered,
             ",\n  \"xxh128\": \"%s\"\n}\n",
             pl_hash_of(forged, (size_t)covered).text);
    return pl_manifest_read(&is, forged, strlen(forged), "m", err);
}

static void what_no_manifest_says_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *before, *after, *words;
        pl_status code;
    } cases[] = {
        { "\"format\": 1", "\"format\": 2", "format 2", PL_E_UNSUPPORTED },
        { "\"format\": 1", "\"format\": \"1\"", "format", PL_E_FORMAT },
        { "\"step\": 12", "\"step\": -1", "step", PL_E_FORMAT },
        { "state.json", "../state.json", "../state", PL_E_FORMAT },
        { "state.json", "a/b", "a/b", PL_E_FORMAT },
        { "state.json", "", "\"\"", PL_E_FORMAT },
        { "\"bytes\": 4711", "\"bytes\": -4711", "model", PL_E_FORMAT },
        { "\"bytes\": 4711", "\"bytes\": 4711.0", "model", PL_E_FORMAT },
        { "\"bytes\": 4711", "\"size\": 4711", "model", PL_E_FORMAT },
        { "99aa", "99AA", "model", PL_E_FORMAT },
        { "99aa", "99aab", "model", PL_E_FORMAT },
        { "state.json", "model.safetensors", "duplicate", PL_E_FORMAT },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pl_error err = { 0 };
        assert_int_equal(read_forged(cases[i].before, cases[i].after, &err),
                         cases[i].code);
        if (!strstr(err.text, cases[i].words))
            fail_msg("expected \"%s\" in: %s", cases[i].words, err.text);
    }
}

/* ---- every byte of a checkpoint ---- */

/* A checkpoint of a few kilobytes; `folder` is its own. */
static void make_small(tiny_run *run, char folder[600])
{
    static const char *const settings[] = { "--n_layer=1", "--n_head=1",
                                            "--n_embd=2", "--block_size=2",
                                            "--batch_size=1" };
    pl_error err = { 0 };
    tiny_run_make(run);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        tiny_run_set(run, settings[i]);
    tiny_run_open(run);
    tiny_run_train(run, 2);
    if (pl_checkpoint_save(&run->session.run, &err))
        fail_msg("%s", err.text);
    snprintf(folder, 600, "%s",
             scratch_path(&run->folder, "out/step-00000002"));
}

static const char *const files[] = {
    "manifest.json",
    "state.json",
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "meta.json",
    "model.safetensors",
    "optimizer.safetensors",
};
enum { FILES = sizeof files / sizeof files[0] };

static void assert_damaged(const char *folder, const char *file, size_t at)
{
    pl_manifest manifest;
    pl_error err = { 0 };
    pl_status status = pl_manifest_check(&manifest, folder, PL_SCOPE_ALL, &err);
    if (status != PL_E_FORMAT || !strstr(err.text, file))
        fail_msg("%s, byte %zu: status %d: %s", file, at, (int)status,
                 err.text);
}

static void assert_whole(const char *folder)
{
    pl_manifest manifest;
    pl_error err = { 0 };
    if (pl_manifest_check(&manifest, folder, PL_SCOPE_ALL, &err))
        fail_msg("%s", err.text);
    assert_int_equal(manifest.count, FILES - 1);
    assert_int_equal(manifest.step, 2);
}

static void every_flipped_byte_is_found(void **state)
{
    (void)state;
    tiny_run run;
    char folder[600], path[700];
    size_t flipped = 0;
    make_small(&run, folder);
    assert_whole(folder);
    for (int f = 0; f < FILES; f++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[f]);
        int fd = open(path, O_RDWR);
        assert_true(fd >= 0);
        off_t bytes = lseek(fd, 0, SEEK_END);
        for (off_t at = 0; at < bytes; at++, flipped++) {
            unsigned char was, is;
            assert_int_equal(pread(fd, &was, 1, at), 1);
            is = was ^ (unsigned char)(1u << at % 8);
            assert_int_equal(pwrite(fd, &is, 1, at), 1);
            assert_damaged(folder, files[f], (size_t)at);
            assert_int_equal(pwrite(fd, &was, 1, at), 1);
        }
        close(fd);
    }
    assert_whole(folder);
    assert_in_range(flipped, 10000, 100000);
    tiny_run_remove(&run);
}

static void every_truncation_is_found(void **state)
{
    (void)state;
    tiny_run run;
    char folder[600], path[700];
    make_small(&run, folder);
    for (int f = 0; f < FILES; f++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[f]);
        size_t bytes;
        char *text = scratch_read(path, &bytes);
        assert_non_null(text);
        for (size_t keep = bytes; keep-- > 0;) {
            assert_int_equal(truncate(path, (off_t)keep), 0);
            assert_damaged(folder, files[f], keep);
        }
        scratch_write(path, text, bytes);
        free(text);
        assert_whole(folder);
    }
    tiny_run_remove(&run);
}

/* Not only the check: nobody loads it. */
static void a_flipped_byte_is_never_loaded(void **state)
{
    (void)state;
    tiny_run run;
    char folder[600], path[700];
    make_small(&run, folder);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    for (int f = 0; f < FILES; f++) {
        pl_error err = { 0 };
        size_t bytes;
        snprintf(path, sizeof path, "%s/%s", folder, files[f]);
        char *text = scratch_read(path, &bytes);
        text[bytes / 2] ^= 4;
        scratch_write(path, text, bytes);
        assert_int_equal(tiny_run_try(&run, &err), PL_E_FORMAT);
        assert_non_null(strstr(err.text, files[f]));
        text[bytes / 2] ^= 4;
        scratch_write(path, text, bytes);
        free(text);
    }
    tiny_run_open(&run);
    assert_int_equal(run.session.run.step, 2);
    tiny_run_remove(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_reads_back_as_it_was),
        cmocka_unit_test(a_text_that_does_not_fit_is_an_error),
        cmocka_unit_test(what_no_manifest_says_is_refused),
        cmocka_unit_test(every_flipped_byte_is_found),
        cmocka_unit_test(every_truncation_is_found),
        cmocka_unit_test(a_flipped_byte_is_never_loaded),
    };
    scratch_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
