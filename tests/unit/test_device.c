/* Tests of device/: one contract, kept by the processor and by a device that
 * shares nothing with it but kernels. */
#include "device/choose.h"
#include "device/cpu.h"
#include "store/checkpoint.h"
#include "support/asserts.h"
#include "support/on_device.h"
#include "support/sanitized.h"
#include "support/silly_device.h"
#include "support/tiny_run.h"
#include "train/evaluate.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if SANITIZED_ADDRESS
#include <sanitizer/asan_interface.h>
#endif

static tiny_run run;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    tiny_run_make(&run);
    pl_device_choose_only(NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tiny_run_remove(&run);
    pl_device_choose_only(NULL);
    return 0;
}

static void require(pl_status status)
{
    if (status)
        fail_msg("%s", err.text);
}

/* ---- the same bits ---- */

typedef struct result {
    unsigned long long hash;
    double loss, val_loss;
} result;

/* Two updates and an evaluation; `half`: on another device from the second
 * update on, by way of a checkpoint. */
static result train_on(const pl_device_kind *kind, const pl_device_kind *half)
{
    result out;
    pl_eval eval;
    pl_device_choose_only(kind);
    tiny_run_open(&run);
    assert_ptr_equal(run.session.run.gpt.layout.device.kind,
                     kind ? kind : &pl_device_cpu);
    out.loss = tiny_run_train(&run, 1);
    if (half) {
        require(pl_checkpoint_save(&run.session.run, &err));
        tiny_run_close(&run);
        tiny_run_set(&run, "--init_from=resume");
        pl_device_choose_only(half);
        tiny_run_open(&run);
        assert_ptr_equal(run.session.run.gpt.layout.device.kind, half);
    }
    out.loss = tiny_run_train(&run, 1);
    require(pl_evaluate(&run.session, PL_SPLIT_VAL, NULL, &eval, &err));
    out.val_loss = eval.loss;
    out.hash = tiny_run_hash(&run);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=scratch");
    return out;
}

static void assert_same(const result *a, const result *b)
{
    assert_true(a->hash == b->hash);
    assert_true(a->loss == b->loss && a->val_loss == b->val_loss);
}

static void every_device_gives_the_same_bits(void **state)
{
    static const char *const ways[] = { "--dtype=float32", "--dtype=float16",
                                        "--weights=bf16",
                                        "--optimizer_state=8bit",
                                        "--grad_checkpoint=3" };
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        tiny_run_set(&run, ways[i]);
        const result here = train_on(NULL, NULL),
                     there = train_on(&silly_device, NULL);
        assert_same(&here, &there);
    }
}

static void a_run_goes_on_on_another_device(void **state)
{
    (void)state;
    const result whole = train_on(NULL, NULL),
                 out = train_on(&pl_device_cpu, &silly_device),
                 back = train_on(&silly_device, &pl_device_cpu);
    assert_same(&whole, &out);
    assert_same(&whole, &back);
}

/* ---- the plan ---- */

static void a_plan_is_made_by_the_devices_rules(void **state)
{
    (void)state;
    pl_device_choose_only(&silly_device);
    tiny_run_open(&run);
    const pl_gpt *gpt = &run.session.run.gpt;
    const pl_placement *place = &gpt->placement;
    for (size_t i = 0; i < gpt->graph.n_buffers; i++)
        assert_int_equal(place->offsets[i] % SILLY_ALIGN, 0);
    assert_true(place->arena_bytes > SILLY_BANK_BYTES);
    assert_int_equal(gpt->graph.packing, PL_NO_BUFFER);
    /* the slice for files; sampling's work lies over it */
    assert_int_equal(place->host_bytes, gpt->layout.slice_bytes);
    assert_int_equal(run.session.machine.budget_bytes, 1 << 30);
    assert_string_equal(run.session.machine.budget_from, "the silly device");
}

static pl_device_backing backing_of(pl_program_id program)
{
    pl_device_backing backing;
    require(pl_device_backed(run.session.run.device, program, &backing, &err));
    return backing;
}

/* Class by class, in every program. */
static void what_is_planned_is_backed(void **state)
{
    static const pl_device_kind *const kinds[] = { &pl_device_cpu,
                                                   &silly_device };
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        pl_device_choose_only(kinds[k]);
        tiny_run_open(&run);
        const pl_placement *place = &run.session.run.gpt.placement;
        for (int i = 0; i < PL_PROGRAM_COUNT; i++) {
            const pl_device_backing b = backing_of((pl_program_id)i);
            const size_t peak = pl_placement_peak(place, (pl_program_id)i);
            size_t sum = b.gap_bytes;
            assert_memory_equal(b.class_bytes, place->class_bytes[i],
                                sizeof b.class_bytes);
            for (int class = 0; class < PL_CLASS_COUNT; class ++)
                sum += b.class_bytes[class];
            assert_int_equal(sum, peak);
            assert_int_equal(b.rest_bytes, place->arena_bytes - peak);
            assert_int_equal(b.is_in_host, k == 0);
        }
        assert_true(place->class_bytes[PL_TRAIN][PL_CLASS_SAVED] > 0);
        tiny_run_close(&run);
    }
}

static void what_the_kernel_took_away_is_not_backed(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    (void)state;
    tiny_run_open(&run);
    const pl_gpt *gpt = &run.session.run.gpt;
    const pl_placement *place = &gpt->placement;
    unsigned char *base = (unsigned char *)pl_device_host(
                              run.session.run.device, gpt->slice) -
                          place->offsets[gpt->slice];
    size_t at = 0, moment = 0; /* a page of moments alone */
    for (size_t i = 0; i < gpt->graph.n_buffers; i++)
        if (gpt->graph.buffers[i].class == PL_CLASS_MOMENT &&
            gpt->graph.buffers[i].bytes >= 2 * page) {
            at = (place->offsets[i] + page - 1) / page * page;
            moment = 1;
        }
    assert_true(moment);
    munlock(base, place->arena_bytes);
    assert_int_equal(madvise(base + at, page, MADV_DONTNEED), 0);
    unsigned char is_here = 0;
    if (mincore(base + at, page, &is_here) || is_here & 1)
        skip(); /* an emulator that leaves it there */
    const pl_device_backing b = backing_of(PL_EVAL);
    for (int class = 0; class < PL_CLASS_COUNT; class ++)
        assert_int_equal(b.class_bytes[class],
                         place->class_bytes[PL_EVAL][class] -
                             (class == PL_CLASS_MOMENT ? page : 0));
    tiny_run_close(&run);
}

/* Each memory has a budget of its own. */
static void both_memories_have_to_hold_a_plan(void **state)
{
    (void)state;
    pl_machine machine;
    pl_device_choose_only(&silly_device);
    require(pl_machine_make(&machine, PL_MACHINE_RUN, &run.config, NULL,
                            &run.heap, &err));
    pl_machine little = machine;
    little.host_budget_bytes = 1000;
    assert_int_equal(pl_session_open_train(&run.session, PL_RUN_TRAINS,
                                           &run.config, &little, NULL,
                                           &run.heap, &err),
                     PL_E_MEMORY);
    assert_contains(err.text, "B of the host's, where it may have 1.00 kB");
    little = machine;
    little.budget_bytes = 100000;
    assert_int_equal(pl_session_open_train(&run.session, PL_RUN_TRAINS,
                                           &run.config, &little, NULL,
                                           &run.heap, &err),
                     PL_E_MEMORY);
    assert_contains(err.text, "(the arena, in the device's memory)");
}

/* `prepare` and the like: whatever device computes, they are the host's. */
static void the_host_works_in_its_own_memory(void **state)
{
    (void)state;
    pl_machine machine;
    pl_device_choose_only(&silly_device);
    require(pl_machine_make(&machine, PL_MACHINE_HOST, &run.config, NULL,
                            &run.heap, &err));
    assert_ptr_equal(machine.device.kind, &pl_device_cpu);
    assert_string_not_equal(machine.budget_from, "the silly device");
    require(pl_machine_make(&machine, PL_MACHINE_RUN, &run.config, NULL,
                            &run.heap, &err));
    assert_ptr_equal(machine.device.kind, &silly_device);
}

/* One memory: what is the host's lies among the rest, and adds nothing. */
static void the_processor_has_one_memory(void **state)
{
    (void)state;
    tiny_run_open(&run);
    const pl_placement *place = &run.session.run.gpt.placement;
    assert_int_equal(place->host_bytes, 0);
    assert_int_equal(place->rules.align, PL_ARENA_ALIGN);
    assert_true(place->rules.bank_bytes == SIZE_MAX);
}

/* What the keys ask for. */
static void a_device_that_is_not_here_is_the_processor(void **state)
{
    (void)state;
    pl_device_info info;
    pl_config config = pl_config_make_default();
    config.device = (pl_device_wish){ .kind = PL_DEVICE_WISH_CUDA };
    config.threads = 3;
    require(pl_device_choose(&info, &config, &err));
    assert_ptr_equal(info.kind, &pl_device_cpu);
    assert_int_equal(info.workers, 3);
    assert_contains(info.text, "3 threads, ");
    assert_true(pl_device_is_another(&config, &info));
    config.device.kind = PL_DEVICE_WISH_CPU;
    assert_false(pl_device_is_another(&config, &info));
    config.device.kind = PL_DEVICE_WISH_AUTO;
    assert_false(pl_device_is_another(&config, &info));
    config.device.kind = PL_DEVICE_WISH_MPS;
    assert_true(pl_device_is_another(&config, &info));
}

/* ---- views ---- */

/* Whether 16 bytes in a row are still as they were written. */
static int is_still_there(const unsigned char *view, size_t bytes)
{
    size_t same = 0;
    for (size_t i = 0; i < bytes && same < 16; i++)
        same = view[i] == 7 ? same + 1 : 0;
    return same == 16;
}

/* A view of the slice, filled with sevens. */
static unsigned char *view_slice(size_t *bytes)
{
    const pl_gpt *gpt = &run.session.run.gpt;
    unsigned char *view = pl_device_host(run.session.run.device, gpt->slice);
    *bytes = gpt->layout.slice_bytes;
    memset(view, 7, *bytes);
    return view;
}

static void assert_view_is_dead(const unsigned char *view, size_t bytes)
{
    if (!pl_arena_buries())
        return;
#if SANITIZED_ADDRESS
    assert_non_null(__asan_region_is_poisoned((void *)(uintptr_t)view, bytes));
#else
    assert_false(is_still_there(view, bytes));
#endif
}

static void a_view_dies_at_the_next_run_or_write(void **state)
{
    (void)state;
    tiny_run_open(&run);
    pl_device *device = run.session.run.device;
    const pl_gpt *gpt = &run.session.run.gpt;
    const float weight = 0.5f;
    size_t bytes;
    unsigned char *view = view_slice(&bytes);
    on_device_write(device, gpt->weights[0], 0, &weight, sizeof weight);
    assert_true(is_still_there(view, bytes)); /* that lives elsewhere */
    require(pl_device_clear(device, gpt->eval_tokens, &err));
    assert_view_is_dead(view, bytes);
    view = view_slice(&bytes);
    /* the one program without tokens, which the sevens may lie over */
    run.session.controls = PL_CONTROLS_NEUTRAL;
    require(
        pl_session_run(&run.session, PL_UPDATE_WEIGHTS, PL_PART_LOOP, &err));
    require(
        pl_session_run(&run.session, PL_UPDATE_WEIGHTS, PL_PART_REST, &err));
    assert_view_is_dead(view, bytes);
}

/* On a device with a memory of its own whoever uses a stale view falls. */
static void a_stale_view_of_another_device_is_a_fault(void **state)
{
    (void)state;
    size_t bytes;
    int how;
    pl_device_choose_only(&silly_device);
    tiny_run_open(&run);
    volatile unsigned char *view = view_slice(&bytes);
    require(pl_device_clear(run.session.run.device,
                            run.session.run.gpt.eval_tokens, &err));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        view[0] = 1;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGSEGV);
}

/* ---- our own mistakes ---- */

static void read_too_much(void *context)
{
    char byte;
    const pl_buffer_id *id = context;
    size_t end = run.session.run.gpt.graph.buffers[*id].bytes;
    pl_status status = pl_device_read(run.session.run.device, *id, end, &byte,
                                      1, &err);
    (void)status;
}

static void view_it(void *context)
{
    const pl_buffer_id *id = context;
    pl_device_host(run.session.run.device, *id);
}

static void open_without_scratch(void *context)
{
    pl_gpt *gpt = context;
    pl_device *device;
    pl_program *train = &gpt->graph.programs[PL_TRAIN];
    for (size_t i = 0; i < train->n_steps; i++)
        if (train->steps[i].op == PL_OP_ATTENTION)
            train->steps[i].args[PL_ARG_ATTENTION_SCRATCH].buffer =
                PL_NO_BUFFER;
    pl_status status = pl_device_open(&device, &gpt->layout.device, &gpt->graph,
                                      &gpt->placement, run.session.run.heap,
                                      &err);
    (void)status;
}

static void open_another(void *context)
{
    pl_gpt *gpt = context;
    pl_device *device;
    const pl_device_info info = silly_device_info(PL_CPU_REF, 1);
    pl_status status = pl_device_open(&device, &info, &gpt->graph,
                                      &gpt->placement, run.session.run.heap,
                                      &err);
    (void)status;
}

static void what_breaks_the_contract_is_a_bug(void **state)
{
    (void)state;
    tiny_run_open(&run);
    pl_gpt *gpt = &run.session.run.gpt;
    assert_dies(read_too_much, &gpt->weights[0], "b->bytes");
    assert_dies(read_too_much, &gpt->slice, "PL_SPACE_DEVICE");
    assert_dies(view_it, &gpt->train_tokens, "PL_SPACE_HOST");
    assert_dies(open_without_scratch, gpt, "want.rows");
    assert_dies(open_another, gpt, "own->align");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_device_gives_the_same_bits),
        TEST(a_run_goes_on_on_another_device),
        TEST(a_plan_is_made_by_the_devices_rules),
        TEST(what_is_planned_is_backed),
        TEST(what_the_kernel_took_away_is_not_backed),
        TEST(both_memories_have_to_hold_a_plan),
        TEST(the_host_works_in_its_own_memory),
        TEST(the_processor_has_one_memory),
        TEST(a_device_that_is_not_here_is_the_processor),
        TEST(a_view_dies_at_the_next_run_or_write),
        TEST(a_stale_view_of_another_device_is_a_fault),
        TEST(what_breaks_the_contract_is_a_bug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
