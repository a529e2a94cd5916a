/* test_cuda_code.c: which code a card gets: of several images the right one; by
 * NVRTC where there is none, compiled once and kept. */
#include "device/cuda.h"
#include "device/cuda_code.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const unsigned char nothing[1];

#define IMAGE(arch, form)                                                      \
    {                                                                          \
        arch, PL_CUDA_##form, nothing, nothing                                 \
    }

/* Newer ones don't stand last: order means nothing. */
static const pl_cuda_image images[] = { IMAGE(80, PTX), IMAGE(89, CUBIN),
                                        IMAGE(120, CUBIN), IMAGE(75, PTX) };
enum { IMAGES = sizeof images / sizeof images[0] };

static void a_card_gets_its_own_code_or_the_newest_ptx(void **state)
{
    static const struct {
        int capability, arch;
        pl_cuda_form form;
    } rows[] = { { 75, 75, PL_CUDA_PTX }, { 80, 80, PL_CUDA_PTX },
                 { 86, 80, PL_CUDA_PTX }, { 89, 89, PL_CUDA_CUBIN },
                 { 90, 80, PL_CUDA_PTX }, { 120, 120, PL_CUDA_CUBIN },
                 { 121, 80, PL_CUDA_PTX } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const pl_cuda_image *it = pl_cuda_image_for(images, IMAGES,
                                                    rows[i].capability);
        assert_non_null(it);
        assert_int_equal(it->arch, rows[i].arch);
        assert_int_equal(it->form, rows[i].form);
    }
    assert_null(pl_cuda_image_for(images, IMAGES, 70));
    assert_null(pl_cuda_image_for(images, 0, 89));
    /* machine code alone is nobody else's */
    assert_null(pl_cuda_image_for(&images[1], 1, 90));
}

/* ---- NVRTC ---- */

typedef struct fixture {
    scratch disk;
    char kept[SCRATCH_PATH_BYTES];
    pl_heap heap;
} fixture;

/* A card for which nvcc makes no code any more, and the NVRTC of the tests
 * does: so it is asked in builds with embedded code, too. */
static const pl_gpu_card old_card = { .api = &pl_cuda_api,
                                      .name = "Old card",
                                      .capability = 70 };

static void make(fixture *f)
{
    scratch_open(&f->disk);
    snprintf(f->kept, sizeof f->kept, "%s", scratch_path(&f->disk, "kept"));
    setenv("PL_COMPILED", scratch_path(&f->disk, "compiled"), 1);
    setenv("PL_CARD", "", 1);
    pl_cuda_code_keep_in(f->kept);
    f->heap = pl_heap_make(64 << 20);
}

static void unmake(fixture *f)
{
    pl_cuda_code_keep_in(NULL);
    unsetenv("PL_COMPILED");
    pl_heap_close(&f->heap);
    scratch_close(&f->disk);
}

static void get(fixture *f, pl_cuda_image *image, const pl_gpu_card *card)
{
    pl_error err = { 0 };
    if (pl_cuda_code_get(image, card, &f->heap, &err))
        fail_msg("%s", err.text);
    assert_int_equal(*image->end, 0); /* PTX is a text */
    assert_true(strstr((const char *)image->bytes, ".entry gemm_nn(") != NULL);
}

static size_t times_compiled(const fixture *f)
{
    size_t bytes = 0;
    free(scratch_read(scratch_path(&f->disk, "compiled"), &bytes));
    return bytes / strlen("compiled\n");
}

/* The one file in a folder. */
static void find_file(const fixture *f, char *path, size_t size)
{
    char pattern[SCRATCH_PATH_BYTES + 32];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*", f->kept);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    assert_contains(found.gl_pathv[0], "/cuda-");
    snprintf(path, size, "%s", found.gl_pathv[0]);
    globfree(&found);
}

static void code_is_compiled_once(void **state)
{
    fixture f;
    pl_cuda_image first, second;
    (void)state;
    make(&f);
    get(&f, &first, &old_card);
    assert_int_equal(first.arch, 70);
    assert_int_equal(first.form, PL_CUDA_CUBIN);
    get(&f, &second, &old_card);
    assert_int_equal(times_compiled(&f), 1);
    assert_true(second.end - second.bytes == first.end - first.bytes);
    assert_memory_equal(first.bytes, second.bytes,
                        (size_t)(first.end - first.bytes));
    pl_cuda_code_keep_in(NULL);
    get(&f, &second, &old_card);
    assert_int_equal(times_compiled(&f), 2);
    unmake(&f);
}

static void what_is_damaged_is_compiled_anew(void **state)
{
    fixture f;
    pl_cuda_image image;
    char path[PL_PATH_BYTES];
    size_t bytes;
    (void)state;
    make(&f);
    get(&f, &image, &old_card);
    find_file(&f, path, sizeof path);
    for (size_t i = 0; i < 4; i++) {
        char *data = scratch_read(path, &bytes);
        assert_non_null(data);
        if (i == 0)
            data[bytes - 2] ^= 1; /* of the code */
        else if (i == 1)
            data[3] ^= 1; /* of the checksum */
        else
            bytes = i == 2 ? bytes / 2 : 0;
        scratch_write(path, data, bytes);
        free(data);
        get(&f, &image, &old_card);
        assert_int_equal(times_compiled(&f), i + 2);
        get(&f, &image, &old_card);
        assert_int_equal(times_compiled(&f), i + 2);
    }
    find_file(&f, path, sizeof path); /* and no file of another name */
    unmake(&f);
}

static void a_card_that_nvrtc_does_not_know_gets_ptx(void **state)
{
    fixture f;
    pl_cuda_image image;
    pl_gpu_card card = old_card;
    char text[96];
    (void)state;
    make(&f);
    card.capability = 72;
    get(&f, &image, &card);
    assert_int_equal(image.arch, 70);
    assert_int_equal(image.form, PL_CUDA_PTX);
    assert_int_equal(pl_cuda_code_describe(72, text, sizeof text), 70);
    assert_string_equal(text, "compute_70, by NVRTC 13.0");
    assert_int_equal(pl_cuda_code_describe(60, text, sizeof text), 0);
    assert_contains(text, "there is no NVRTC that knows it");
    unmake(&f);
}

static void a_folder_that_can_t_be_written_is_no_failure(void **state)
{
    fixture f;
    pl_cuda_image image;
    (void)state;
    make(&f);
    scratch_write(f.kept, "a file", 6);
    get(&f, &image, &old_card);
    get(&f, &image, &old_card);
    assert_int_equal(times_compiled(&f), 2);
    unmake(&f);
}

static void what_the_compiler_says_is_told(void **state)
{
    fixture f;
    pl_cuda_image image;
    pl_error err = { 0 };
    (void)state;
    make(&f);
    setenv("PL_CARD", "broken", 1);
    assert_int_equal(pl_cuda_code_get(&image, &old_card, &f.heap, &err),
                     PL_E_IO);
    assert_contains(err.text, "cuda:0 (Old card): NVRTC 13.0 can't compile the "
                              "kernels for 7.0 (error 6): error: this card");
    unmake(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_gets_its_own_code_or_the_newest_ptx),
        cmocka_unit_test(code_is_compiled_once),
        cmocka_unit_test(what_is_damaged_is_compiled_anew),
        cmocka_unit_test(a_card_that_nvrtc_does_not_know_gets_ptx),
        cmocka_unit_test(a_folder_that_can_t_be_written_is_no_failure),
        cmocka_unit_test(what_the_compiler_says_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
