/* memory_offer.c: asks every source of memory and takes the smallest answer;
 * the answers as text. */
#include "base/memory_parts.h"
#include "base/units.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- collecting ---- */

static size_t less(size_t from, size_t what)
{
    return from > what ? from - what : 0;
}

static size_t plus(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

/* Where there is no room, the source that matters least makes it. */
static pl_memory_source *new_source(pl_memory_offer *offer, size_t offer_bytes)
{
    if (offer->n_sources < PL_MEMORY_SOURCES)
        return &offer->sources[offer->n_sources++];
    pl_memory_source *largest = &offer->sources[0];
    for (int i = 1; i < offer->n_sources; i++)
        if (offer->sources[i].offer_bytes > largest->offer_bytes)
            largest = &offer->sources[i];
    return largest->offer_bytes > offer_bytes ? largest : NULL;
}

static void add(pl_memory_offer *offer, const pl_memory_source *source)
{
    pl_memory_source *slot = new_source(offer, source->offer_bytes);
    if (slot)
        *slot = *source;
}

/* What a cgroup is charged for a process beside that: the kernel's structures,
 * and what it books ahead, 64 pages per CPU. A plan's reserve has it. */
enum { KERNEL_BYTES = 1 << 20 };

void pl_memory_add_source(pl_memory_offer *offer, pl_memory_source_kind kind,
                          const char *name, size_t limit_bytes,
                          size_t used_bytes)
{
    size_t ours = offer->own_bytes;
    if (kind == PL_MEMORY_CGROUP)
        ours = plus(ours, KERNEL_BYTES);
    pl_memory_source source = {
        .kind = kind,
        .limit_bytes = limit_bytes,
        .used_bytes = used_bytes,
        .offer_bytes = less(limit_bytes, less(used_bytes, ours)),
    };
    /* The end of a path tells cgroups apart. */
    size_t bytes = strlen(name), room = sizeof source.name - 1;
    const char *shown = bytes > room ? name + bytes - room : name;
    memcpy(source.name, shown, strlen(shown) + 1);
    add(offer, &source);
}

static void add_available(pl_memory_offer *offer, size_t available)
{
    if (available == PL_MEMORY_UNLIMITED)
        return;
    pl_memory_source source = {
        .kind = PL_MEMORY_AVAILABLE,
        .limit_bytes = available,
        .offer_bytes = plus(available / 10 * 9, offer->own_bytes),
    };
    add(offer, &source);
}

/* Under strict overcommit the kernel keeps something for administrators and
 * for the user's other processes; the latter at most 1/32 of a process. */
static void add_commit(pl_memory_offer *offer, const char *root, size_t limit,
                       size_t committed)
{
    size_t mode = 0, admin_kib = 0, user_kib = 0;
    pl_memory_read_number(root, "/proc/sys/vm/overcommit_memory", &mode);
    if (mode != 2 || limit == PL_MEMORY_UNLIMITED)
        return;
    pl_memory_read_number(root, "/proc/sys/vm/admin_reserve_kbytes",
                          &admin_kib);
    pl_memory_read_number(root, "/proc/sys/vm/user_reserve_kbytes", &user_kib);
    size_t admin = admin_kib > SIZE_MAX / 1024 ? SIZE_MAX : admin_kib * 1024;
    size_t user = user_kib > limit / 32 / 1024 ? limit / 32 : user_kib * 1024;
    pl_memory_add_source(offer, PL_MEMORY_COMMIT, "",
                         less(less(limit, admin), user), committed);
}

static void choose(pl_memory_offer *offer)
{
    offer->binding = -1;
    offer->bytes = 0;
    for (int i = 0; i < offer->n_sources; i++)
        if (offer->binding < 0 ||
            offer->sources[i].offer_bytes < offer->bytes) {
            offer->binding = i;
            offer->bytes = offer->sources[i].offer_bytes;
        }
}

#define READ_KEYS(root, path, keys)                                            \
    pl_memory_read_keys(root, path, keys, sizeof(keys) / sizeof((keys)[0]))

pl_status pl_memory_offer_make(pl_memory_offer *offer, const char *root,
                               pl_error *err)
{
    const size_t none = PL_MEMORY_UNLIMITED;
    size_t available = none, free = none, commit_limit = none, committed = 0;
    size_t anon = 0, tables = 0, mapped = 0, data = 0;
    size_t address_limit = none, data_limit = none;
    *offer = (pl_memory_offer){ .high_bytes = none, .lock_bytes = none };
    const pl_memory_key machine[] = {
        { "MemFree", &free },
        { "MemAvailable", &available },
        { "SwapFree", &offer->swap_free_bytes },
        { "CommitLimit", &commit_limit },
        { "Committed_AS", &committed },
    };
    const pl_memory_key process[] = {
        { "RssAnon", &anon },
        { "VmPTE", &tables },
        { "VmSize", &mapped },
        { "VmData", &data },
    };
    const pl_memory_key limits[] = {
        { "Max address space", &address_limit },
        { "Max data size", &data_limit },
        { "Max locked memory", &offer->lock_bytes },
    };
    READ_KEYS(root, "/proc/meminfo", machine);
    READ_KEYS(root, "/proc/self/status", process);
    READ_KEYS(root, "/proc/self/limits", limits);
    offer->own_bytes = plus(anon, tables);
    if (offer->own_bytes == PL_MEMORY_UNLIMITED)
        offer->own_bytes = 0;

    /* Kernels before 3.14 don't say what is available. */
    add_available(offer, available != none ? available : free);
    pl_memory_add_cgroups(offer, root);
    if (address_limit != none)
        pl_memory_add_source(offer, PL_MEMORY_ADDRESS_SPACE, "", address_limit,
                             mapped);
    if (data_limit != none)
        pl_memory_add_source(offer, PL_MEMORY_DATA, "", data_limit, data);
    add_commit(offer, root, commit_limit, committed);
    choose(offer);
    if (offer->binding < 0)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "nothing says how much memory there is: %s/proc/meminfo "
                       "has no MemAvailable, and no limit is set. Write the "
                       "budget, such as memory = '4GB'",
                       root);
    return PL_OK;
}

/* ---- as text ---- */

void pl_memory_source_text(const pl_memory_source *source, char *out,
                           size_t capacity)
{
    static const char *const names[] = {
        [PL_MEMORY_AVAILABLE] = "free memory (MemAvailable)",
        [PL_MEMORY_CGROUP] = "cgroup ",
        [PL_MEMORY_ADDRESS_SPACE] = "address space (ulimit -v)",
        [PL_MEMORY_DATA] = "data size (ulimit -d)",
        [PL_MEMORY_COMMIT] = "committed memory (vm.overcommit_memory = 2)",
    };
    if (source->kind == PL_MEMORY_AVAILABLE)
        snprintf(out, capacity, "%s: %s, of which 90 %% count",
                 names[source->kind], pl_units_bytes(source->limit_bytes).text);
    else
        snprintf(out, capacity, "%s%s: limit %s, %s in use",
                 names[source->kind], source->name,
                 pl_units_bytes(source->limit_bytes).text,
                 pl_units_bytes(source->used_bytes).text);
}

void pl_memory_binding_text(const pl_memory_offer *offer, char *out,
                            size_t capacity)
{
    if (offer->binding >= 0)
        pl_memory_source_text(&offer->sources[offer->binding], out, capacity);
    else
        snprintf(out, capacity, "nothing says how much");
}

PL_PRINTF(4, 5)
static void append(char *out, size_t capacity, size_t *used, const char *fmt,
                   ...)
{
    va_list args;
    if (*used >= capacity)
        return;
    va_start(args, fmt);
    int bytes = vsnprintf(out + *used, capacity - *used, fmt, args);
    va_end(args);
    *used += bytes > 0 ? (size_t)bytes : 0;
}

void pl_memory_offer_text(const pl_memory_offer *offer, char *out,
                          size_t capacity)
{
    char line[PL_MEMORY_NAME_BYTES + 128];
    size_t used = 0;
    pl_memory_binding_text(offer, line, sizeof line);
    append(out, capacity, &used, "offered: %s, by %s\n",
           pl_units_bytes(offer->bytes).text, line);
    for (int i = 0; i < offer->n_sources; i++) {
        if (i == offer->binding)
            continue;
        pl_memory_source_text(&offer->sources[i], line, sizeof line);
        append(out, capacity, &used, "enough:  %s, by %s\n",
               pl_units_bytes(offer->sources[i].offer_bytes).text, line);
    }
    if (offer->high_bytes != PL_MEMORY_UNLIMITED)
        append(out, capacity, &used,
               "note:    a cgroup's memory.high: above %s the kernel slows "
               "its processes down\n",
               pl_units_bytes(offer->high_bytes).text);
    if (offer->swap_free_bytes > 0)
        append(out, capacity, &used, "note:    swap of %s is not counted\n",
               pl_units_bytes(offer->swap_free_bytes).text);
}
