/* memory_fixture.h: a folder with what the kernel's files would say, for the
 * tests of the machine's offer. */
#ifndef PL_TESTS_UNIT_MEMORY_FIXTURE_H
#define PL_TESTS_UNIT_MEMORY_FIXTURE_H

#include "base/memory.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define MB       ((size_t)1000 * 1000)
#define NO_LIMIT "9223372036854771712\n" /* as v1 says it */

static scratch tree;
static pl_memory_offer offer;
static pl_error err;

static inline int set_up(void **state)
{
    (void)state;
    scratch_open(&tree);
    memset(&offer, 0xA5, sizeof offer);
    memset(&err, 0, sizeof err);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    scratch_close(&tree);
    return 0;
}

/* A file of the tree, with the folders above it. */
PL_PRINTF(2, 3)
static inline void put(const char *name, const char *fmt, ...)
{
    char path[1024], text[16384];
    snprintf(path, sizeof path, "%s", scratch_path(&tree, name));
    for (char *at = path + strlen(tree.folder) + 1; (at = strchr(at, '/'));) {
        *at = '\0';
        mkdir(path, 0755);
        *at++ = '/';
    }
    va_list args;
    va_start(args, fmt);
    int bytes = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    assert_true(bytes >= 0 && (size_t)bytes < sizeof text);
    scratch_write(path, text, (size_t)bytes);
}

/* A machine with 9 GB available, and a process that holds 3 MB. */
static inline void put_machine(void)
{
    put("proc/meminfo", "MemTotal:       16000000 kB\n"
                        "MemFree:         1000000 kB\n"
                        "MemAvailable:   10000000 kB\n"
                        "SwapFree:              0 kB\n"
                        "CommitLimit:     8000000 kB\n"
                        "Committed_AS:    5000000 kB\n");
    put("proc/self/status", "Name:\tplimsoll\n"
                            "VmSize:\t  100000 kB\n"
                            "VmData:\t   40000 kB\n"
                            "RssAnon:\t    2500 kB\n"
                            "VmPTE:\t      500 kB\n");
    put("proc/self/limits",
        "Limit                     Soft Limit           Hard Limit        "
        "   Units     \n"
        "Max data size             unlimited            unlimited         "
        "   bytes     \n"
        "Max locked memory         8388608              8388608           "
        "   bytes     \n"
        "Max address space         unlimited            unlimited         "
        "   bytes     \n");
    put("proc/sys/vm/overcommit_memory", "0\n");
}

enum { HELD = 3000 * 1024, KERNEL = 1 << 20 };
static const size_t available_offer = (size_t)9000000 * 1024 + HELD;

/* A v2 cgroup: what it holds in bytes, of which the file pages as given. */
static inline void put_v2(const char *folder, const char *limit, size_t current,
                          size_t inactive, size_t active, size_t dirty)
{
    char name[600];
    snprintf(name, sizeof name, "%s/memory.max", folder);
    put(name, "%s\n", limit);
    snprintf(name, sizeof name, "%s/memory.high", folder);
    put(name, "max\n");
    snprintf(name, sizeof name, "%s/memory.current", folder);
    put(name, "%zu\n", current);
    snprintf(name, sizeof name, "%s/memory.stat", folder);
    put(name,
        "anon 1\nfile 1\nkernel 1\nshmem 77\nfile_mapped 9\n"
        "file_dirty %zu\nfile_writeback 0\ninactive_anon 5\n"
        "inactive_file %zu\nactive_file %zu\nunevictable 0\n"
        "slab_reclaimable 100\nworkingset_refault_file 99\n",
        dirty, inactive, active);
}

static inline void put_v1(const char *folder, const char *limit, size_t usage,
                          size_t inactive, size_t active, size_t dirty)
{
    char name[600];
    snprintf(name, sizeof name, "%s/memory.limit_in_bytes", folder);
    put(name, "%s", limit);
    snprintf(name, sizeof name, "%s/memory.usage_in_bytes", folder);
    put(name, "%zu\n", usage);
    snprintf(name, sizeof name, "%s/memory.stat", folder);
    /* Without "total_" it is this cgroup's alone, without those below. */
    put(name,
        "cache 1\nrss 1\ndirty 3\ninactive_file 5\nactive_file 7\n"
        "hierarchical_memory_limit 9223372036854771712\n"
        "total_rss 1000\ntotal_dirty %zu\ntotal_writeback 0\n"
        "total_inactive_file %zu\ntotal_active_file %zu\n",
        dirty, inactive, active);
}

#define V2_MOUNT                                                               \
    "29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - "  \
    "cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
#define V1_MOUNTS                                                              \
    "30 29 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup "     \
    "rw,cpu,cpuacct\n"                                                         \
    "31 29 0:28 / /sys/fs/cgroup/memory rw,relatime shared:10 - cgroup "       \
    "cgroup rw,memory\n"
#define OTHER_MOUNTS                                                           \
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"                          \
    "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"

static inline void make(void)
{
    if (pl_memory_offer_make(&offer, tree.folder, &err))
        fail_msg("%s", err.text);
    assert_true(offer.binding >= 0 && offer.binding < offer.n_sources);
    assert_int_equal(offer.bytes, offer.sources[offer.binding].offer_bytes);
    for (int i = 0; i < offer.n_sources; i++)
        assert_true(offer.bytes <= offer.sources[i].offer_bytes);
    assert_int_equal(offer.own_bytes, HELD);
}

static inline void expect_bound(pl_memory_source_kind kind, const char *name,
                                size_t limit_bytes, size_t used_bytes)
{
    make();
    const pl_memory_source *binding = &offer.sources[offer.binding];
    assert_int_equal(binding->kind, kind);
    assert_string_equal(binding->name, name);
    assert_int_equal(binding->limit_bytes, limit_bytes);
    assert_int_equal(binding->used_bytes, used_bytes);
    size_t ours = HELD + (kind == PL_MEMORY_CGROUP ? KERNEL : 0);
    assert_int_equal(offer.bytes, limit_bytes - (used_bytes - ours));
}

static inline void expect_only_available(void)
{
    make();
    assert_int_equal(offer.n_sources, 1);
    assert_int_equal(offer.sources[0].kind, PL_MEMORY_AVAILABLE);
    assert_int_equal(offer.bytes, available_offer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
