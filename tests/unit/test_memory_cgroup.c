/* The cgroups that enclose a process, as its files tell. */
#include "unit/memory_fixture.h"

/* ---- cgroups ---- */

static void a_v2_limit_counts_less_what_cannot_be_taken_back(void **state)
{
    (void)state;
    char text[512];
    put_machine();
    put("proc/self/cgroup", "0::/user.slice/x\n");
    put("proc/self/mountinfo", OTHER_MOUNTS V2_MOUNT);
    put_v2("sys/fs/cgroup/user.slice/x", "2000000000", 900 * MB, 400 * MB,
           300 * MB, 100 * MB);
    expect_bound(PL_MEMORY_CGROUP, "/user.slice/x", 2000 * MB, 300 * MB);
    pl_memory_binding_text(&offer, text, sizeof text);
    assert_string_equal(text,
                        "cgroup /user.slice/x: limit 2.00 GB, 300 MB in use");
}

static void every_v2_cgroup_above_counts(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/cgroup", "0::/user.slice/user-1000.slice/session-2.scope\n");
    put("proc/self/mountinfo", V2_MOUNT OTHER_MOUNTS);
    const char *inner =
        "sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope";
    const char *outer = "sys/fs/cgroup/user.slice";
    put_v2(inner, "max", 100 * MB, 0, 0, 0);
    put_v2("sys/fs/cgroup/user.slice/user-1000.slice", "3000000000", 500 * MB,
           0, 0, 0);
    put_v2(outer, "4000000000", 2000 * MB, 100 * MB, 0, 0);
    expect_bound(PL_MEMORY_CGROUP, "/user.slice", 4000 * MB, 1900 * MB);
    assert_int_equal(offer.n_sources, 3);
    put_v2(outer, "8000000000", 2000 * MB, 100 * MB, 0, 0);
    expect_bound(PL_MEMORY_CGROUP, "/user.slice/user-1000.slice", 3000 * MB,
                 500 * MB);
    put_v2(inner, "1000000000", 100 * MB, 0, 0, 0);
    expect_bound(PL_MEMORY_CGROUP,
                 "/user.slice/user-1000.slice/session-2.scope", 1000 * MB,
                 100 * MB);
    /* A cgroup beside ours is none of our business. */
    put_v2("sys/fs/cgroup/system.slice", "10", 0, 0, 0, 0);
    expect_bound(PL_MEMORY_CGROUP,
                 "/user.slice/user-1000.slice/session-2.scope", 1000 * MB,
                 100 * MB);
}

static void v2_without_limits_leaves_the_machine(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/cgroup", "0::/a/b\n");
    put("proc/self/mountinfo", V2_MOUNT);
    put_v2("sys/fs/cgroup/a/b", "max", 100 * MB, 0, 0, 0);
    put_v2("sys/fs/cgroup/a", "max", 100 * MB, 0, 0, 0);
    expect_only_available();
    put("sys/fs/cgroup/a/memory.high", "500000000\n");
    put("sys/fs/cgroup/a/b/memory.high", "700000000\n");
    expect_only_available();
    assert_int_equal(offer.high_bytes, 500 * MB);
}

static void the_root_of_a_cgroup_namespace_counts(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/cgroup", "0::/\n");
    put("proc/self/mountinfo", V2_MOUNT);
    put_v2("sys/fs/cgroup", "1500000000", 200 * MB, 0, 150 * MB, 0);
    expect_bound(PL_MEMORY_CGROUP, "/", 1500 * MB, 50 * MB);
    assert_int_equal(offer.n_sources, 2);
}

static void a_v1_limit_counts_with_those_above(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/cgroup", "9:name=systemd:/x\n5:cpu,cpuacct:/y\n"
                            "4:memory:/batch/job:1\n");
    put("proc/self/mountinfo", OTHER_MOUNTS V1_MOUNTS);
    const char *outer = "sys/fs/cgroup/memory/batch";
    put_v1("sys/fs/cgroup/memory/batch/job:1", "1000000000\n", 600 * MB,
           300 * MB, 200 * MB, 50 * MB);
    put_v1(outer, NO_LIMIT, 600 * MB, 0, 0, 0);
    put_v1("sys/fs/cgroup/memory", NO_LIMIT, 600 * MB, 0, 0, 0);
    expect_bound(PL_MEMORY_CGROUP, "/batch/job:1", 1000 * MB, 150 * MB);
    assert_int_equal(offer.n_sources, 2);
    put_v1(outer, "1200000000\n", 900 * MB, 0, 0, 0);
    expect_bound(PL_MEMORY_CGROUP, "/batch", 1200 * MB, 900 * MB);
    /* Old kernels: it binds those below only if it is asked to. */
    put("sys/fs/cgroup/memory/batch/memory.use_hierarchy", "1\n");
    expect_bound(PL_MEMORY_CGROUP, "/batch", 1200 * MB, 900 * MB);
    put("sys/fs/cgroup/memory/batch/memory.use_hierarchy", "0\n");
    expect_bound(PL_MEMORY_CGROUP, "/batch/job:1", 1000 * MB, 150 * MB);
}

static void a_v1_limit_above_what_is_visible_counts(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/cgroup", "4:memory:/\n");
    put("proc/self/mountinfo", V1_MOUNTS);
    put_v1("sys/fs/cgroup/memory", NO_LIMIT, 100 * MB, 0, 0, 0);
    expect_only_available();
    put("sys/fs/cgroup/memory/memory.stat",
        "hierarchical_memory_limit 700000000\ntotal_inactive_file 20000000\n");
    expect_bound(PL_MEMORY_CGROUP, "/", 700 * MB, 80 * MB);
}

static void v1_memory_that_is_swapped_out_counts(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/cgroup", "4:memory:/j\n");
    put("proc/self/mountinfo", V1_MOUNTS);
    put_v1("sys/fs/cgroup/memory/j", "1000000000\n", 200 * MB, 0, 0, 0);
    put("sys/fs/cgroup/memory/j/memory.memsw.limit_in_bytes", "1100000000\n");
    put("sys/fs/cgroup/memory/j/memory.memsw.usage_in_bytes", "210000000\n");
    expect_bound(PL_MEMORY_CGROUP, "/j", 1000 * MB, 200 * MB);
    put("sys/fs/cgroup/memory/j/memory.memsw.usage_in_bytes", "800000000\n");
    expect_bound(PL_MEMORY_CGROUP, "/j", 1100 * MB, 800 * MB);
    assert_int_equal(offer.n_sources, 2);
}

static void hybrid_machines_have_the_controller_in_one_place(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/cgroup", "4:memory:/j\n1:name=systemd:/u/j\n0::/u/j\n");
    put("proc/self/mountinfo",
        "%s41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        V1_MOUNTS);
    put("sys/fs/cgroup/unified/u/j/cgroup.procs", "1\n");
    put_v1("sys/fs/cgroup/memory/j", "800000000\n", 200 * MB, 0, 0, 0);
    expect_bound(PL_MEMORY_CGROUP, "/j", 800 * MB, 200 * MB);
    assert_int_equal(offer.n_sources, 2);
    /* Or in the other. */
    put_v2("sys/fs/cgroup/unified/u/j", "600000000", 100 * MB, 0, 0, 0);
    expect_bound(PL_MEMORY_CGROUP, "/u/j", 600 * MB, 100 * MB);
    assert_int_equal(offer.n_sources, 3);
}

static void a_container_sees_its_part_under_the_mount(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/cgroup", "4:memory:/docker/0123abcd/worker\n");
    put("proc/self/mountinfo",
        OTHER_MOUNTS "944 943 0:31 /docker/0123abcd /sys/fs/cgroup/memory "
                     "ro,nosuid master:15 - cgroup cgroup rw,memory\n");
    put_v1("sys/fs/cgroup/memory", "900000000\n", 300 * MB, 0, 0, 0);
    put_v1("sys/fs/cgroup/memory/worker", NO_LIMIT, 10 * MB, 0, 0, 0);
    expect_bound(PL_MEMORY_CGROUP, "/docker/0123abcd", 900 * MB, 300 * MB);
    put_v1("sys/fs/cgroup/memory/worker", "400000000\n", 10 * MB, 0, 0, 0);
    expect_bound(PL_MEMORY_CGROUP, "/docker/0123abcd/worker", 400 * MB,
                 10 * MB);
}

static void of_several_mounts_the_one_that_shows_most_counts(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/cgroup", "0::/pod/box\n");
    put("proc/self/mountinfo",
        "50 1 0:26 /pod/box /in\\040here rw - cgroup2 cgroup2 rw\n"
        "51 1 0:26 /other /elsewhere rw - cgroup2 cgroup2 rw\n"
        "52 1 0:26 /pod /all rw shared:1 master:2 - cgroup2 cgroup2 rw\n"
        "53 1 0:26 /po /trap rw - cgroup2 cgroup2 rw\n");
    put_v2("in here", "700000000", 100 * MB, 0, 0, 0);
    put_v2("all/box", "700000000", 100 * MB, 0, 0, 0);
    put_v2("all", "800000000", 500 * MB, 0, 0, 0);
    put_v2("elsewhere", "1000", 0, 0, 0, 0);
    put_v2("trap", "1000", 0, 0, 0, 0);
    expect_bound(PL_MEMORY_CGROUP, "/pod", 800 * MB, 500 * MB);
    put("proc/self/mountinfo",
        "50 1 0:26 /pod/box /in\\040here rw - cgroup2 cgroup2 rw\n");
    expect_bound(PL_MEMORY_CGROUP, "/pod/box", 700 * MB, 100 * MB);
}

static void a_view_of_another_part_counts_as_given(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/cgroup", "0::/\n");
    put("proc/self/mountinfo",
        "50 1 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put_v2("sys/fs/cgroup", "800000000", 500 * MB, 0, 0, 0);
    expect_bound(PL_MEMORY_CGROUP, "/../..", 800 * MB, 500 * MB);
    put("proc/self/cgroup", "0::/x\n");
    put("proc/self/mountinfo",
        "50 1 0:26 /pod /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put_v2("sys/fs/cgroup/x", "1000", 0, 0, 0, 0); /* /pod/x, not /x */
    expect_bound(PL_MEMORY_CGROUP, "/pod", 800 * MB, 500 * MB);
    /* Outside of the namespace: nothing that is seen is above it. */
    put("proc/self/cgroup", "0::/../sibling\n");
    put("proc/self/mountinfo", V2_MOUNT);
    expect_only_available();
}

static void the_usual_mount_is_tried_where_none_is_told(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/cgroup", "0::/a (deleted)\n");
    put_v2("sys/fs/cgroup/a", "800000000", 500 * MB, 0, 0, 0);
    expect_bound(PL_MEMORY_CGROUP, "/a", 800 * MB, 500 * MB);
    put("proc/self/cgroup", "3:cpu,memory,io:/b");
    put_v1("sys/fs/cgroup/memory/b", "700000000\n", 500 * MB, 0, 0, 0);
    expect_bound(PL_MEMORY_CGROUP, "/b", 700 * MB, 500 * MB);
}

/* ---- what goes wrong ---- */

#define LONG_NUMBER "1000000000000000000000000000000000000000000000000000000"

static void nonsense_is_left_out(void **state)
{
    (void)state;
    static const char *const limits[] = {
        "",
        "\n",
        "garbage\n",
        "-5\n",
        "1e9\n",
        "12 34\n",
        "0x10\n",
        "99999999999999999999999999999999\n", /* past all bounds: none */
        "maximum\n",
        "12garbage\n",
        LONG_NUMBER LONG_NUMBER "\n",
    };
    put_machine();
    put("proc/self/cgroup", "0::/a\n");
    put("proc/self/mountinfo", V2_MOUNT);
    put_v2("sys/fs/cgroup/a", "max", 500 * MB, 0, 0, 0);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        put("sys/fs/cgroup/a/memory.max", "%s", limits[i]);
        expect_only_available();
    }
    put("sys/fs/cgroup/a/memory.max", "800000000");
    put("sys/fs/cgroup/a/memory.stat",
        "inactive_file\nactive_file 90000000x\ninactive_file90000000\n"
        "file_dirty -1\n\n:\n "
        "inactive_file 5\nanon 70000000");
    expect_bound(PL_MEMORY_CGROUP, "/a", 800 * MB, 500 * MB);
    /* Without a total, at least what is known of it. */
    put("sys/fs/cgroup/a/memory.current", "?\n");
    expect_bound(PL_MEMORY_CGROUP, "/a", 800 * MB, 70 * MB);
    /* More clean pages than pages: none is in use, not ours either. */
    put_v2("sys/fs/cgroup/a", "800000000", 500 * MB, SIZE_MAX, 100 * MB, 0);
    expect_bound(PL_MEMORY_CGROUP, "/a", 800 * MB, 500 * MB);
    put_v2("sys/fs/cgroup/a", "800000000", 500 * MB, SIZE_MAX - 9, 1, 0);
    make();
    assert_int_equal(offer.bytes, 800 * MB);
}

static void nonsense_about_places_is_left_out(void **state)
{
    (void)state;
    static const char *const cgroups[] = {
        "",
        "0\n",
        "0:\n",
        "0::\n",
        "::\n",
        "0::relative\n",
        "memory\n",
        "\n\n",
        "1::/a\n",
        "4:mem:/a\n",
        "4:,memoryx,:/a\n",
    };
    static const char *const mounts[] = {
        "cgroup2\n",
        "1 2 3 4 5\n",
        "1 2 3 / /sys/fs/cgroup - cgroup2\n",
        "1 2 3 / /sys/fs/cgroup rw - cgroup2 cgroup2\n",
        "- - - - - - -\n",
        "1 2 3 / /sys/fs/cgroup rw shared:1 cgroup2 cgroup2 rw\n",
        "1 2 3 / /no/such/place rw - cgroup2 cgroup2 rw\n",
        "1 2 3 / /no\\04 rw - cgroup2 cgroup2 rw\n",
    };
    put_machine();
    put_v2("sys/fs/cgroup/a", "1000000", 0, 0, 0, 0);
    put_v1("sys/fs/cgroup/memory/a", "1000000\n", 0, 0, 0, 0);
    for (size_t i = 0; i < sizeof cgroups / sizeof cgroups[0]; i++) {
        put("proc/self/cgroup", "%s", cgroups[i]);
        expect_only_available();
    }
    put("proc/self/cgroup", "0::/b\n");
    put_v2("sys/fs/cgroup/b", "500000000", 100 * MB, 0, 0, 0);
    for (size_t i = 0; i < sizeof mounts / sizeof mounts[0]; i++) {
        put("proc/self/mountinfo", "%s", mounts[i]);
        make(); /* by the usual mount, or by none */
        assert_in_range(offer.n_sources, 1, 2);
    }
}

static void long_lines_and_long_files_do_no_harm(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/cgroup", "0::/a\n");
    put_v2("at/a", "800000000", 500 * MB, 0, 0, 0);
    put_v2("trap/a", "1000", 0, 0, 0, 0);
    /* 300 kB of mounts, one line of 20 kB, then the one that counts */
    FILE *file = fopen(scratch_path(&tree, "proc/self/mountinfo"), "w");
    assert_non_null(file);
    for (int i = 0; i < 4000; i++)
        fprintf(file, "%d 1 0:1 / /var/lib/overlay/%d rw - overlay o rw,%d\n",
                i, i * 7, i);
    fprintf(file, "9 1 0:1 / /x rw - overlay o lowerdir=");
    for (int i = 0; i < 20000; i++)
        fputc('a' + i % 26, file);
    fputc('\n', file);
    for (int i = 0; i < 8192; i++) /* what follows is no line of its own */
        fputc('a', file);
    fprintf(file, "1 1 0:1 / /trap rw - cgroup2 cgroup2 rw");
    fprintf(file, "\n29 23 0:26 / /at rw - cgroup2 cgroup2 rw\n");
    fclose(file);
    expect_bound(PL_MEMORY_CGROUP, "/a", 800 * MB, 500 * MB);
}

static void a_deep_tree_keeps_what_binds(void **state)
{
    (void)state;
    char path[300] = "", name[400];
    put_machine();
    put("proc/self/mountinfo", V2_MOUNT);
    for (int depth = 0; depth < 60; depth++) {
        strcat(path, "/d");
        snprintf(name, sizeof name, "sys/fs/cgroup%s", path);
        put_v2(name, depth == 17 ? "300000000" : "900000000", 100 * MB, 0, 0,
               0);
    }
    put("proc/self/cgroup", "0::%s\n", path);
    path[2 * 18] = '\0';
    expect_bound(PL_MEMORY_CGROUP, path, 300 * MB, 100 * MB);
    assert_int_equal(offer.n_sources, PL_MEMORY_SOURCES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_v2_limit_counts_less_what_cannot_be_taken_back),
        TEST(every_v2_cgroup_above_counts),
        TEST(v2_without_limits_leaves_the_machine),
        TEST(the_root_of_a_cgroup_namespace_counts),
        TEST(a_v1_limit_counts_with_those_above),
        TEST(a_v1_limit_above_what_is_visible_counts),
        TEST(v1_memory_that_is_swapped_out_counts),
        TEST(hybrid_machines_have_the_controller_in_one_place),
        TEST(a_container_sees_its_part_under_the_mount),
        TEST(of_several_mounts_the_one_that_shows_most_counts),
        TEST(a_view_of_another_part_counts_as_given),
        TEST(the_usual_mount_is_tried_where_none_is_told),
        TEST(nonsense_is_left_out),
        TEST(nonsense_about_places_is_left_out),
        TEST(long_lines_and_long_files_do_no_harm),
        TEST(a_deep_tree_keeps_what_binds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
