/* emulator.c: see emulator.h. Fibres are switched by a few instructions of our
 * own where we have them, by ucontext elsewhere. */
#include "gpu/emulator.h"
#include "gpu/emulated.h"
#include "kernels/gpu/args.h"
#include "support/sanitized.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if SANITIZED_ADDRESS
#include <sanitizer/common_interface_defs.h>
#endif

emulated_item emulated;
int emulated_is_watched;
emulator_options emulator = { .is_checked = 1, .tensor_bits = 24 };
emulator_count emulator_total;
unsigned char *emulator_banks[EMULATOR_BANKS];

void *emulated_at(uint64_t address)
{
    const uint64_t bank = address >> 48;
    if (bank == 0 || bank > EMULATOR_BANKS)
        return (void *)(uintptr_t)address;
    return emulator_banks[bank - 1] + (address & 0xffffffffffffu);
}

enum { MOST_ITEMS = 256, STACK_BYTES = SANITIZED_ADDRESS ? 262144 : 65536 };

/* ---- kernels ---- */

#define DECLARE(name, items, type)                                             \
    void emulated_##name(const type g);                                        \
    void emulated_soft_##name(const type g);
PL_GPU_KERNELS(DECLARE)
PL_GPU_TENSOR_KERNELS(DECLARE)
#undef DECLARE

#define THUNK(name, items, type)                                               \
    static void run_##name(const void *args)                                   \
    {                                                                          \
        (emulator.soft_double ? emulated_soft_##name                           \
                              : emulated_##name)(*(const type *)args);         \
    }
PL_GPU_KERNELS(THUNK)
PL_GPU_TENSOR_KERNELS(THUNK)
#undef THUNK

typedef struct kernel {
    const char *name;
    void (*run)(const void *args);
    uint32_t items;
    size_t bytes;
} kernel;

#define ROW(name, items, type) { #name, run_##name, items, sizeof(type) },
static const kernel kernels[] = { PL_GPU_KERNELS(ROW)
                                      PL_GPU_TENSOR_KERNELS(ROW) };
#undef ROW

/* ---- fibres ---- */

typedef struct fibre {
    char *stack;
#if defined(__x86_64__)
    void *sp;
#else
    ucontext_t context;
#endif
    void *fake; /* AddressSanitizer's */
    int is_done, line;
    int meets; /* its warp's others, not the group's */
} fibre;

static fibre fibres[MOST_ITEMS], scheduler;
static const kernel *running;
static const void *running_args;
static char failure[512];

void emulator_complain(const char *format, ...)
{
    va_list list;
    if (failure[0])
        return;
    int at = snprintf(failure, sizeof failure,
                      "%s, group %u, %u, item %u: ", running->name,
                      emulated.group, emulated.group_y, emulated.id);
    va_start(list, format);
    vsnprintf(failure + at, sizeof failure - (size_t)at, format, list);
    va_end(list);
}

#if defined(__x86_64__)
/* Saves what a call must leave, changes stacks, and restores it. */
void emulator_switch(void **save, void *load);
__asm__(".text\n.type emulator_switch, @function\n"
        "emulator_switch:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n"
        "    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n"
        "    pop %rbx\n    pop %rbp\n    ret\n"
        ".size emulator_switch, . - emulator_switch\n");
#endif

static void change(fibre *from, fibre *to)
{
#if SANITIZED_ADDRESS
    const size_t size = to == &scheduler ? (size_t)to->line : STACK_BYTES;
    __sanitizer_start_switch_fiber(from->is_done ? NULL : &from->fake,
                                   to->stack, size);
#endif
#if defined(__x86_64__)
    emulator_switch(&from->sp, to->sp);
#else
    swapcontext(&from->context, &to->context);
#endif
#if SANITIZED_ADDRESS
    __sanitizer_finish_switch_fiber(from->fake, NULL, NULL);
#endif
}

static void entry(void)
{
    fibre *self = &fibres[emulated.id];
#if SANITIZED_ADDRESS
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(NULL, &bottom, &size);
    scheduler.stack = (char *)bottom;
    scheduler.line = (int)size;
#endif
    running->run(running_args);
    self = &fibres[emulated.id];
    self->is_done = 1;
    change(self, &scheduler);
    abort(); /* nobody comes back */
}

static void begin(fibre *f)
{
    if (!f->stack)
        f->stack = aligned_alloc(64, STACK_BYTES);
    if (!f->stack)
        abort();
    f->is_done = f->line = f->meets = 0;
#if defined(__x86_64__)
    /* as if it had been called: the stack is 8 away from a multiple of 16 */
    void **top = (void **)(void *)(f->stack + STACK_BYTES - 64);
    *--top = NULL;
    *--top = (void *)(uintptr_t)entry;
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    f->sp = top;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, entry, 0);
#endif
}

void emulated_barrier(int line)
{
    fibre *self = &fibres[emulated.id];
    self->line = line;
    change(self, &scheduler);
}

void emulator_meet(int line)
{
    fibre *self = &fibres[emulated.id];
    self->line = line;
    self->meets = 1;
    change(self, &scheduler);
}

/* ---- races ---- */

/* Of a word of memory: who wrote it last and who read it last, and when. */
typedef struct word {
    uintptr_t at;
    uint64_t launch;         /* or group: when this entry counts */
    uint32_t writer, reader; /* item + 1; 0: nobody */
    uint32_t write_time, read_time;
    int readers; /* several since read_time */
} word;

enum { LOCAL_WORDS = 1 << 15, GLOBAL_WORDS = 1 << 22 };

static word local_words[LOCAL_WORDS], *global_words;
static uint64_t group_number, launch_number;
static uint32_t epoch;

static word *find(word *table, size_t size, uintptr_t at, uint64_t now)
{
    size_t i = (size_t)(at * 0x9E3779B97F4A7C15u >> 20) & (size - 1);
    for (size_t tries = 0; tries < size; tries++, i = (i + 1) & (size - 1)) {
        if (table[i].launch == now && table[i].at == at)
            return &table[i];
        if (table[i].launch != now) {
            table[i] = (word){ .at = at, .launch = now };
            return &table[i];
        }
    }
    return NULL;
}

/* Whether another item's access, at `then`, isn't separated from ours by a
 * barrier: groups have none in common. */
static int meets(uint32_t other, uint32_t then, uint32_t who)
{
    return other && other != who &&
           (then == epoch ||
            (other - 1) / MOST_ITEMS != (who - 1) / MOST_ITEMS);
}

static void look(word *w, uint32_t who, int writes, int line, const char *where)
{
    if (meets(w->writer, w->write_time, who))
        emulator_complain(
            "line %d %s a word of %s memory that another item writes", line,
            writes ? "writes" : "reads", where);
    if (writes && (meets(w->reader, w->read_time, who) ||
                   (w->readers && w->read_time == epoch)))
        emulator_complain(
            "line %d writes a word of %s memory that another item reads", line,
            where);
    if (writes) {
        w->writer = who;
        w->write_time = epoch;
    } else {
        w->readers = w->reader && w->read_time == epoch &&
                     (w->readers || w->reader != who);
        w->reader = who;
        w->read_time = epoch;
    }
}

/* ---- counting ---- */

typedef struct access {
    uintptr_t at;
    uint16_t line, bytes;
    uint16_t nth; /* of this line, since the last barrier */
    uint8_t is_local;
} access;

enum { MOST_ACCESSES = 4096, WARP = 32, LINES = 4096 };

static access accesses[MOST_ITEMS][MOST_ACCESSES];
static size_t n_accesses[MOST_ITEMS];

static void keep(const void *p, size_t bytes, int line, int is_local)
{
    size_t *n = &n_accesses[emulated.id];
    if (*n == MOST_ACCESSES) {
        emulator_complain("more than %d accesses between two barriers",
                          MOST_ACCESSES);
        return;
    }
    access *a = &accesses[emulated.id][(*n)++];
    *a = (access){ .at = (uintptr_t)p,
                   .line = (uint16_t)line,
                   .bytes = (uint16_t)bytes,
                   .is_local = (uint8_t)is_local };
}

/* Numbers the accesses of each line. */
static void number(uint32_t item)
{
    static uint16_t seen[LINES];
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < n_accesses[item]; i++) {
        access *a = &accesses[item][i];
        a->nth = seen[a->line % LINES]++;
    }
}

/* Segments of 128 bytes that n accesses touch, and the least. */
static void count_global(const access *const *a, size_t n)
{
    uintptr_t seen[2 * WARP];
    size_t n_seen = 0, bytes = 0;
    for (size_t i = 0; i < n; i++) {
        int again = 0;
        for (size_t j = 0; j < i; j++)
            again |= a[j]->at == a[i]->at;
        if (!again)
            bytes += a[i]->bytes;
        for (uintptr_t s = a[i]->at / 128;
             s <= (a[i]->at + a[i]->bytes - 1) / 128; s++) {
            size_t j = 0;
            while (j < n_seen && seen[j] != s)
                j++;
            if (j == n_seen && n_seen < 2 * WARP)
                seen[n_seen++] = s;
        }
    }
    emulator_total.segments += n_seen;
    emulator_total.segments_ideal += (bytes + 127) / 128;
}

/* Phases of local memory: 32 banks of 4 bytes; wide accesses go by quarters or
 * halves of a warp. */
static void count_local(const access *const *a, size_t n)
{
    const size_t words = (a[0]->bytes + 3u) / 4, part = WARP / words;
    for (size_t first = 0; first < n; first += part) {
        uintptr_t in_bank[32][WARP];
        size_t many[32] = { 0 }, most = 0, all = 0;
        for (size_t i = first; i < n && i < first + part; i++)
            for (size_t w = 0; w < words; w++) {
                const uintptr_t at = a[i]->at / 4 + w;
                const size_t bank = at % 32;
                size_t j = 0;
                while (j < many[bank] && in_bank[bank][j] != at)
                    j++;
                if (j == many[bank] && many[bank] < WARP) {
                    in_bank[bank][many[bank]++] = at;
                    all++;
                }
                if (many[bank] > most)
                    most = many[bank];
            }
        emulator_total.phases += most;
        emulator_total.phases_ideal += (all + 31) / 32;
    }
}

/* What the items of a warp did between two barriers, access by access. */
static void count_warp(uint32_t first, uint32_t end)
{
    size_t done = 0;
    for (uint32_t i = first; i < end; i++)
        number(i);
    for (uint32_t lead = first; lead < end; lead++)
        for (size_t k = 0; k < n_accesses[lead]; k++) {
            const access *x = &accesses[lead][k], *same[WARP];
            size_t n = 0;
            if (x->bytes == 0)
                continue; /* counted with another item */
            for (uint32_t i = lead; i < end; i++) {
                /* usually it is at the same place */
                size_t at = k < n_accesses[i] ? k : 0;
                for (size_t tries = 0; tries < n_accesses[i]; tries++) {
                    access *y = &accesses[i][at];
                    if (y->line == x->line && y->nth == x->nth && y->bytes) {
                        same[n++] = y;
                        break;
                    }
                    at = at + 1 < n_accesses[i] ? at + 1 : 0;
                }
            }
            (x->is_local ? count_local : count_global)(same, n);
            for (size_t i = 0; i < n; i++)
                if (same[i] != x)
                    ((access *)(uintptr_t)same[i])->bytes = 0;
            done++;
        }
    for (uint32_t i = first; i < end; i++)
        n_accesses[i] = 0;
    (void)done;
}

/* ---- accesses ---- */

static void check_aligned(const void *p, size_t bytes, int line)
{
    if ((uintptr_t)p % bytes)
        emulator_complain("line %d: %zu bytes at %p are not aligned", line,
                          bytes, p);
}

void *emulated_local(const void *p, size_t bytes, int writes, int line)
{
    check_aligned(p, bytes, line);
    if (emulator.counts)
        keep(p, bytes, line, 1);
    for (size_t i = 0; i < bytes && emulator.is_checked; i += 4) {
        word *w = find(local_words, LOCAL_WORDS, ((uintptr_t)p + i) / 4,
                       group_number);
        if (!w)
            emulator_complain("the table of local memory is full");
        else if (!writes && !w->writer)
            emulator_complain("line %d reads local memory that nobody wrote",
                              line);
        else
            look(w, emulated.id + 1, writes, line, "local");
    }
    return (void *)(uintptr_t)p;
}

void *emulated_global(const void *p, size_t bytes, int writes, int line)
{
    check_aligned(p, bytes, line);
    if (emulator.counts)
        keep(p, bytes, line, 0);
    const uint32_t who = (emulated.group_y * 65536 + emulated.group) * 256 +
                         emulated.id + 1;
    const size_t unit = bytes < 4 ? bytes : 4;
    for (size_t i = 0; i < bytes && emulator.is_checked; i += unit) {
        word *w = find(global_words, GLOBAL_WORDS, (uintptr_t)p + i,
                       launch_number);
        if (!w)
            emulator_complain("the table of global memory is full");
        else
            look(w, who, writes, line, "global");
    }
    return (void *)(uintptr_t)p;
}

/* ---- groups ---- */

/* The items of a warp, up to where they meet, the next barrier, or their end.
 * Whether they meet. */
static int run_warp(uint32_t first, uint32_t count)
{
    uint32_t meet = 0;
    for (uint32_t i = 0; i < count; i++) {
        emulated.id = first + (epoch % 2 ? count - 1 - i : i);
        fibre *f = &fibres[emulated.id];
        f->meets = 0;
        if (!f->is_done)
            change(&scheduler, f);
    }
    for (uint32_t i = first; i < first + count; i++)
        meet += (uint32_t)(fibres[i].meets &&
                           fibres[i].line == fibres[first].line);
    for (uint32_t i = 0; i < count; i++)
        if (fibres[first + i].meets && meet < count)
            emulator_complain("not all of its warp came to line %d",
                              fibres[first + i].line);
    return meet == count;
}

/* All items up to their next barrier, or their end. */
static void run_epoch(uint32_t items)
{
    for (uint32_t i = 0; i < items; i += WARP) {
        const uint32_t left = items - i;
        const uint32_t count = left < WARP ? left : WARP;
        const uint32_t first = epoch % 2 ? left - count : i;
        while (run_warp(first, count) && !failure[0]) {
        }
    }
}

static void run_group(uint32_t items)
{
    uint32_t done = 0;
    for (uint32_t i = 0; i < items; i++)
        begin(&fibres[i]);
    epoch = 0;
    group_number++;
    emulated_is_watched = emulator.counts || emulator.is_checked;
    emulator_forget();
    while (done < items) {
        run_epoch(items);
        done = 0;
        for (uint32_t i = 0; i < items; i++)
            done += (uint32_t)fibres[i].is_done;
        for (uint32_t i = 0; i < items && done < items; i++) {
            emulated.id = i;
            if (fibres[i].is_done || fibres[i].line != fibres[0].line)
                emulator_complain(
                    "not all items came to the barrier in line %d",
                    fibres[0].line);
        }
        for (uint32_t i = 0; i < items && emulator.counts; i += WARP)
            count_warp(i, i + WARP < items ? i + WARP : items);
        emulator_total.barriers += done < items;
        epoch++;
        if (failure[0])
            return;
    }
}

const char *emulator_run_warp(void (*run)(const void *args), const void *args)
{
    static kernel it;
    it = (kernel){ "a warp", run, WARP, 0 };
    failure[0] = '\0';
    running = &it;
    running_args = args;
    launch_number++;
    emulated = (emulated_item){ 0 };
    run_group(WARP);
    return failure[0] ? failure : NULL;
}

const char *emulator_run(const char *name, uint32_t groups, uint32_t groups_y,
                         const void *args, size_t bytes)
{
    failure[0] = '\0';
    running = NULL;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (strcmp(kernels[i].name, name) == 0)
            running = &kernels[i];
    if (!running || running->bytes != bytes) {
        snprintf(failure, sizeof failure,
                 "%s: no such kernel, or arguments of "
                 "%zu bytes",
                 name, bytes);
        return failure;
    }
    if (!global_words)
        global_words = calloc(GLOBAL_WORDS, sizeof *global_words);
    if (!global_words)
        abort();
    running_args = args;
    launch_number++;
    for (uint32_t y = 0; y < groups_y; y++)
        for (uint32_t x = 0; x < groups && !failure[0]; x++) {
            emulated = (emulated_item){ .group = x, .group_y = y };
            run_group(running->items);
            emulator_total.groups++;
        }
    return failure[0] ? failure : NULL;
}
