#include "base/arena.h"
#include "support/asserts.h"
#include "support/sanitized.h"

#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* Sanitizers would rather end the process than say that there is no memory. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

#if SANITIZED_ADDRESS
int __asan_address_is_poisoned(void const volatile *address);
#endif

static pl_heap heap;
static pl_arena arena;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make(1 << 20);
    memset(&arena, 0, sizeof arena);
    memset(&err, 0, sizeof err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_arena_fail_at(0);
    pl_heap_close(&heap);
    pl_arena_close(&arena);
    return 0;
}

static void *take(size_t count, size_t size)
{
    void *memory = NULL;
    if (pl_heap_take(&heap, &memory, count, size, &err))
        fail_msg("%s", err.text);
    assert_non_null(memory);
    return memory;
}

static void open_arena(size_t bytes)
{
    if (pl_arena_open(&arena, bytes, &err))
        fail_msg("%s", err.text);
}

static int all_are(const unsigned char *memory, size_t bytes, int value)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != value)
            return 0;
    return 1;
}

/* ---- heap ---- */

static void memory_from_a_heap_is_zeroed_and_aligned_for_anything(void **state)
{
    (void)state;
    mallopt(M_PERTURB, 0xA5); /* the system's memory is anything but zero */
    for (int round = 0; round < 3; round++) {
        for (size_t bytes = 1; bytes < 300; bytes++) {
            unsigned char *memory = take(bytes, 1);
            assert_int_equal((uintptr_t)memory % alignof(max_align_t), 0);
            assert_true(all_are(memory, bytes, 0));
            memset(memory, 0xA5, bytes);
        }
        unsigned char *large = take(1000, 100);
        assert_int_equal((uintptr_t)large % alignof(max_align_t), 0);
        assert_true(all_are(large, 100000, 0));
        pl_heap_close(&heap);
    }
    mallopt(M_PERTURB, 0);
}

static void a_zero_sized_request_yields_a_pointer(void **state)
{
    (void)state;
    take(0, 8);
    take(8, 0);
    assert_int_equal(heap.taken_bytes, 0);
    take(64 * 1024, 1); /* the first chunk is full to the brim */
    take(0, 1);
}

static void a_heap_gives_its_limit_and_not_a_byte_more(void **state)
{
    (void)state;
    void *memory = &heap;
    heap = pl_heap_make(1000);
    take(6, 100);
    take(1, 400);
    assert_int_equal(heap.taken_bytes, 1000);
    assert_int_equal(pl_heap_take(&heap, &memory, 1, 1, &err), PL_E_MEMORY);
    assert_ptr_equal(memory, &heap);
    assert_contains(err.text, "1 x 1 B asked for, 1.00 kB of 1.00 kB in use");
    take(0, 1);
    pl_heap_close(&heap);
    take(1, 1000);
}

static void an_emptied_heap_gives_the_same_memory_again(void **state)
{
    (void)state;
    const size_t sizes[3] = { 10000, 120000, 130000 };
    unsigned char *first[3] = { NULL };
    heap = pl_heap_make(400000);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) {
            unsigned char *memory = take(sizes[i], 1);
            assert_true(all_are(memory, sizes[i], 0));
            memset(memory, 0xA5, sizes[i]);
            assert_true(round == 0 || memory == first[i]);
            first[i] = memory;
        }
        assert_int_equal(heap.taken_bytes, 260000);
        pl_heap_empty(&heap);
        assert_int_equal(heap.taken_bytes, 0);
    }
    take(400000, 1); /* what is kept counts for nothing, and is too small */
}

static void no_two_requests_share_a_byte(void **state)
{
    (void)state;
    enum { N = 400 };
    unsigned char *memory[N];
    size_t bytes[N];
    heap = pl_heap_make(8 << 20);
    for (size_t i = 0; i < N; i++) {
        bytes[i] = i % 37 == 0 ? 70000 : i * 613 % 5000;
        memory[i] = take(bytes[i], 1);
        memset(memory[i], (int)(i % 251) + 1, bytes[i]);
    }
    for (size_t i = 0; i < N; i++)
        assert_true(all_are(memory[i], bytes[i], (int)(i % 251) + 1));
}

static void a_size_that_overflows_is_refused(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {
        { SIZE_MAX, SIZE_MAX },
        { SIZE_MAX / 2 + 1, 2 },
        { (size_t)1 << 33, (size_t)1 << 33 },
        { 3, SIZE_MAX / 3 + 1 },
        { SIZE_MAX, 1 },
    };
    void *memory = NULL;
    heap = pl_heap_make(SIZE_MAX);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(
            pl_heap_take(&heap, &memory, sizes[i][0], sizes[i][1], &err),
            PL_E_MEMORY);
        assert_null(memory);
    }
    assert_int_equal(heap.taken_bytes, 0);
}

static void a_system_without_memory_is_an_error(void **state)
{
    (void)state;
    void *memory = NULL;
    heap = pl_heap_make(SIZE_MAX);
    assert_int_equal(pl_heap_take(&heap, &memory, SIZE_MAX / 4, 1, &err),
                     PL_E_MEMORY);
    assert_contains(err.text, "the system has no ");
    assert_null(memory);
    take(1, 1);
}

typedef struct triple {
    uint64_t a, b, c;
} triple;

static void growing_keeps_what_was_there(void **state)
{
    (void)state;
    triple *array = NULL;
    size_t capacity = 0;
    for (size_t n = 0; n < 1000; n++) {
        size_t before = capacity;
        triple *old = array;
        assert_int_equal(
            pl_heap_grow(&heap, &array, &capacity, n + 1, sizeof *array, &err),
            PL_OK);
        assert_true(capacity > n);
        if (n < before) {
            assert_ptr_equal(array, old);
            assert_int_equal(capacity, before);
        } else {
            assert_int_equal(capacity, before ? 2 * before : 16);
        }
        assert_true(all_are((unsigned char *)&array[n], sizeof *array, 0));
        array[n] = (triple){ n, ~n, n * n };
    }
    for (size_t n = 0; n < 1000; n++)
        assert_true(array[n].a == n && array[n].b == ~n && array[n].c == n * n);
    assert_int_equal(
        pl_heap_grow(&heap, &array, &capacity, 5000, sizeof *array, &err),
        PL_OK);
    assert_int_equal(capacity, 8192);
    assert_int_equal(array[999].c, 999 * 999);
}

static void growing_too_far_changes_nothing(void **state)
{
    (void)state;
    triple *array = NULL;
    size_t capacity = 0;
    assert_int_equal(
        pl_heap_grow(&heap, &array, &capacity, 1, sizeof *array, &err), PL_OK);
    triple *old = array;
    static const size_t needs[] = { SIZE_MAX, SIZE_MAX / 2 + 2, 1 << 20 };
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pl_heap_grow(&heap, &array, &capacity, needs[i],
                                      sizeof *array, &err),
                         PL_E_MEMORY);
        assert_ptr_equal(array, old);
        assert_int_equal(capacity, 16);
    }
}

static void a_text_is_copied_and_ended(void **state)
{
    (void)state;
    char text[] = "n_layer=12";
    const char *key = NULL, *none = NULL;
    assert_int_equal(pl_heap_text(&heap, &key, text, 7, &err), PL_OK);
    assert_int_equal(pl_heap_text(&heap, &none, text, 0, &err), PL_OK);
    memset(text, 'x', sizeof text);
    assert_string_equal(key, "n_layer");
    assert_string_equal(none, "");
    assert_int_equal(heap.taken_bytes, 8 + 1);
    heap = (pl_heap){ .chunks = heap.chunks, .limit_bytes = 7 };
    assert_int_equal(pl_heap_text(&heap, &none, "n_layer", 7, &err),
                     PL_E_MEMORY);
    assert_string_equal(none, "");
}

static void take_one(void *context)
{
    void *memory;
    if (pl_heap_take(context, &memory, 0, 1, NULL))
        _exit(3);
}

static void taking_from_a_sealed_heap_is_a_bug(void **state)
{
    (void)state;
    take(1, 1);
    pl_heap_seal(&heap);
    assert_dies(take_one, &heap, "heap->sealed");
    pl_heap_close(&heap); /* a new life */
    take(1, 1);
}

static void the_request_that_is_to_fail_fails(void **state)
{
    (void)state;
    int *array = NULL;
    void *memory = NULL;
    size_t capacity = 0;
    pl_arena_fail_at(3);
    take(1, 1);
    assert_int_equal(pl_heap_grow(&heap, &array, &capacity, 1, 4, &err), PL_OK);
    /* asks for nothing, so it doesn't count */
    assert_int_equal(pl_heap_grow(&heap, &array, &capacity, 9, 4, &err), PL_OK);
    assert_int_equal(pl_heap_take(&heap, &memory, 1, 1, &err), PL_E_MEMORY);
    assert_null(memory);
    take(1, 1);

    pl_arena_fail_at(1);
    assert_int_equal(pl_arena_open(&arena, 4096, &err), PL_E_MEMORY);
    assert_contains(err.text, "Cannot allocate memory");
    assert_null(arena.base);
    pl_arena_close(&arena);
    pl_arena_fail_at(1);
    pl_arena_fail_at(0);
    open_arena(4096);
}

/* ---- arena ---- */

static void an_arena_has_the_planned_size_and_is_zero(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t sizes[] = { 64, page, page + 64, 3 * page - 64, 5 << 20 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        open_arena(sizes[i]);
        assert_int_equal(arena.size_bytes, sizes[i]);
        assert_int_equal(arena.mapped_bytes,
                         (sizes[i] + page - 1) / page * page);
        assert_int_equal(arena.used_bytes, 0);
        assert_int_equal((uintptr_t)arena.base % page, 0);
        assert_true(all_are(arena.base, arena.mapped_bytes, 0));
        pl_arena_close(&arena);
        assert_null(arena.base);
    }
}

static void an_empty_arena_is_no_trouble(void **state)
{
    (void)state;
    open_arena(0);
    assert_non_null(pl_arena_claim(&arena, 0, 0));
    pl_arena_seal(&arena);
}

static size_t resident_pages(void)
{
    unsigned long all, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &all, &resident), 2);
    fclose(file);
    return resident;
}

static void every_page_is_there_once_it_is_open(void **state)
{
    (void)state;
    enum { BYTES = 32 << 20 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = BYTES / page;
    unsigned char *present = calloc(n, 1);
    assert_non_null(present);
    size_t before = resident_pages();
    open_arena(BYTES);
    size_t after = resident_pages();
    assert_int_equal(mincore(arena.base, BYTES, present), 0);
    for (size_t i = 0; i < n; i++)
        assert_true(present[i] & 1);
    free(present);
    /* The kernel's counters may lag by some pages per thread. */
    assert_true(after >= before + n - n / 16);
}

static void claims_take_whole_lines(void **state)
{
    (void)state;
    assert_int_equal(pl_arena_round(0), 0);
    assert_int_equal(pl_arena_round(1), 64);
    assert_int_equal(pl_arena_round(64), 64);
    assert_int_equal(pl_arena_round(65), 128);
    open_arena(256);
    assert_ptr_equal(pl_arena_claim(&arena, 0, 1), arena.base);
    assert_int_equal(arena.used_bytes, 64);
    assert_ptr_equal(pl_arena_claim(&arena, 64, 65), arena.base + 64);
    assert_int_equal(arena.used_bytes, 192);
    assert_ptr_equal(pl_arena_claim(&arena, 192, 64), arena.base + 192);
    assert_int_equal(arena.used_bytes, 256);
    pl_arena_seal(&arena);
}

static void claims_may_lie_over_each_other(void **state)
{
    (void)state;
    open_arena(512);
    unsigned char *all = pl_arena_claim(&arena, 0, 512);
    unsigned char *part = pl_arena_claim(&arena, 128, 64);
    assert_int_equal(arena.used_bytes, 512);
    part[0] = 7;
    assert_int_equal(all[128], 7);
    pl_arena_seal(&arena);
}

typedef struct claim {
    size_t offset, bytes;
} claim;

static void make_claim(void *context)
{
    const claim *c = context;
    pl_arena_claim(&arena, c->offset, c->bytes);
}

static void a_claim_outside_the_arena_is_a_bug(void **state)
{
    (void)state;
    static claim outside[] = { { 0, 513 },
                               { 512, 1 },
                               { 576, 0 },
                               { 64, SIZE_MAX - 63 },
                               { SIZE_MAX - 63, 64 } };
    open_arena(512);
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        assert_dies(make_claim, &outside[i], "arena.c");
    pl_arena_close(&arena);
    claim last_line = { 64, 36 };
    open_arena(100); /* no whole number of lines */
    assert_dies(make_claim, &last_line, "end <= arena->size_bytes");
}

static void a_claim_between_two_lines_is_a_bug(void **state)
{
    (void)state;
    claim crooked = { 32, 64 };
    open_arena(512);
    assert_dies(make_claim, &crooked, "PL_ARENA_ALIGN");
}

static void a_claim_after_sealing_is_a_bug(void **state)
{
    (void)state;
    claim fine = { 0, 512 };
    open_arena(512);
    make_claim(&fine);
    pl_arena_seal(&arena);
    assert_dies(make_claim, &fine, "sealed");
}

static void seal(void *context)
{
    pl_arena_seal(context);
}

static void a_plan_that_was_too_large_is_a_bug(void **state)
{
    (void)state;
    open_arena(512);
    pl_arena_claim(&arena, 0, 448);
    assert_dies(seal, &arena, "arena->used_bytes == arena->size_bytes");
    pl_arena_claim(&arena, 448, 1);
    pl_arena_seal(&arena);
}

static void an_arena_that_no_machine_can_give_is_refused(void **state)
{
    (void)state;
    static const size_t sizes[] = { SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 60 };
    for (size_t i = 0; i < 3; i++) {
        memset(&arena, 0xFF, sizeof arena);
        assert_int_equal(pl_arena_open(&arena, sizes[i], &err), PL_E_MEMORY);
        assert_null(arena.base);
        pl_arena_close(&arena);
        if (i < 2)
            assert_contains(err.text, "is absurd");
    }
    assert_contains(err.text, "1.15 EB");
    assert_contains(err.text, "batch_size");
}

/* ---- dead memory ---- */

static void buried_memory_is_nan_and_its_neighbours_are_not(void **state)
{
    (void)state;
    int value = pl_arena_buries() ? 0xff : 0x11;
    open_arena(512);
    memset(arena.base, 0x11, 512);
    pl_arena_bury(arena.base + 128, 256);
#if SANITIZED_ADDRESS
    if (pl_arena_buries()) {
        assert_false(__asan_address_is_poisoned(arena.base + 127));
        assert_true(__asan_address_is_poisoned(arena.base + 128));
        assert_true(__asan_address_is_poisoned(arena.base + 383));
        assert_false(__asan_address_is_poisoned(arena.base + 384));
    }
#endif
    pl_arena_bury(arena.base + 192, 64); /* twice is no trouble */
    pl_arena_raise(arena.base + 128, 256);
    assert_true(all_are(arena.base, 128, 0x11));
    assert_true(all_are(arena.base + 128, 256, value));
    assert_true(all_are(arena.base + 384, 128, 0x11));
    if (pl_arena_buries()) {
        float f;
        double d;
        memcpy(&f, arena.base + 128, sizeof f);
        memcpy(&d, arena.base + 136, sizeof d);
        assert_true(isnan(f) && isnan(d));
    }
}

static void an_arena_is_buried_in_the_builds_that_test(void **state)
{
    (void)state;
#ifdef PL_BURY
    assert_true(pl_arena_buries());
#else
    assert_false(pl_arena_buries());
#endif
}

static void closing_gives_the_memory_back_alive(void **state)
{
    (void)state;
    unsigned char present[1];
    open_arena(4096);
    pl_arena_bury(arena.base, 4096);
    unsigned char *old = arena.base;
    pl_arena_close(&arena);
    assert_int_equal(mincore(old, 1, present), -1);
    pl_arena_close(&arena);
    open_arena(4096); /* likely the same place */
    memset(arena.base, 1, 4096);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(memory_from_a_heap_is_zeroed_and_aligned_for_anything),
        TEST(a_zero_sized_request_yields_a_pointer),
        TEST(a_heap_gives_its_limit_and_not_a_byte_more),
        TEST(an_emptied_heap_gives_the_same_memory_again),
        TEST(no_two_requests_share_a_byte),
        TEST(a_size_that_overflows_is_refused),
        TEST(a_system_without_memory_is_an_error),
        TEST(growing_keeps_what_was_there),
        TEST(growing_too_far_changes_nothing),
        TEST(a_text_is_copied_and_ended),
        TEST(taking_from_a_sealed_heap_is_a_bug),
        TEST(the_request_that_is_to_fail_fails),
        TEST(an_arena_has_the_planned_size_and_is_zero),
        TEST(an_empty_arena_is_no_trouble),
        TEST(every_page_is_there_once_it_is_open),
        TEST(claims_take_whole_lines),
        TEST(claims_may_lie_over_each_other),
        TEST(a_claim_outside_the_arena_is_a_bug),
        TEST(a_claim_between_two_lines_is_a_bug),
        TEST(a_claim_after_sealing_is_a_bug),
        TEST(a_plan_that_was_too_large_is_a_bug),
        TEST(an_arena_that_no_machine_can_give_is_refused),
        TEST(buried_memory_is_nan_and_its_neighbours_are_not),
        TEST(an_arena_is_buried_in_the_builds_that_test),
        TEST(closing_gives_the_memory_back_alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
