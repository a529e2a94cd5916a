/* Amounts of memory, and the offer of a machine without cgroups. */
#include "unit/memory_fixture.h"

/* ---- amounts ---- */

static void amounts_are_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {
        { "12GB", 12000000000 },
        { "1.5GiB", 1610612736 },
        { "800MB", 800000000 },
        { "2 GB", 2000000000 },
        { "123456", 123456 },
        { "123456B", 123456 },
        { "1kB", 1000 },
        { "1KB", 1000 },
        { "1KiB", 1024 },
        { "3mib", 3 << 20 },
        { "1TB", 1000000000000 },
        { "0.5TiB", (size_t)1 << 39 },
        { " 1gib\t", 1 << 30 },
        { "007GB", 7000000000 },
        { ".5kB", 500 },
        { "2.GB", 2000000000 },
        { "1.23456789kB", 1234 },
        { "0.0000001TB", 100000 },
        { "0.9999999999TiB", 1099511517824 },
        { "9223372036854775807", SIZE_MAX / 2 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bytes = 1;
        if (pl_memory_parse(cases[i].text, &bytes, &err))
            fail_msg("%s", err.text);
        if (bytes != cases[i].bytes)
            fail_msg("'%s' is %zu", cases[i].text, bytes);
    }
}

static void what_is_no_amount_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "", "'' is no amount" },
        { " ", "is no amount" },
        { "auto", "'auto' is no amount" },
        { "GB", "is no amount" },
        { ".", "is no amount" },
        { ".GB", "is no amount" },
        { "-1GB", "is no amount" },
        { "+1GB", "is no amount" },
        { "1.5", "is no amount" },
        { "1.5B", "is no amount" },
        { "1..5GB", "is no amount" },
        { "1.5.2GB", "is no amount" },
        { "1e9", "is no amount" },
        { "0x10", "is no amount" },
        { "12GBs", "is no amount" },
        { "12 G B", "is no amount" },
        { "12GB 3", "is no amount" },
        { "1,5GB", "such as '12GB' or '1.5GiB'" },
        { "12PB", "KiB, MiB, GiB, TiB" },
        { "12g", "is that gB (powers of 1000) or giB" },
        { "12 M", "is that MB (powers of 1000) or MiB" },
        { "0", "is no memory at all" },
        { "0.0GB", "is no memory at all" },
        { "0.0001kB", "is no memory at all" },
        { "9223372036854775808", "than any machine" },
        { "18446744073709551616", "than any machine" },
        { "99999999999999999999999999", "than any machine" },
        { "16777216TiB", "than any machine" },
        { "8388608.5TiB", "than any machine" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bytes = 1;
        err.text[0] = '\0';
        assert_int_equal(pl_memory_parse(cases[i].text, &bytes, &err),
                         PL_E_CONFIG);
        assert_int_equal(bytes, 1);
        assert_contains(err.text, cases[i].says);
    }
}

/* ---- the machine ---- */

static void nine_tenths_of_what_is_available_count(void **state)
{
    (void)state;
    char text[512];
    put_machine();
    expect_only_available();
    assert_int_equal(offer.lock_bytes, 8388608);
    assert_int_equal(offer.high_bytes, PL_MEMORY_UNLIMITED);
    pl_memory_binding_text(&offer, text, sizeof text);
    assert_string_equal(
        text, "free memory (MemAvailable): 10.2 GB, of which 90 % count");
}

static void an_old_kernel_says_only_what_is_free(void **state)
{
    (void)state;
    put_machine();
    put("proc/meminfo", "MemTotal: 16000000 kB\nMemFree:  1000000 kB\n");
    make();
    assert_int_equal(offer.bytes, (size_t)900000 * 1024 / 10 * 10 + HELD);
}

static void where_nothing_is_known_the_budget_must_be_written(void **state)
{
    (void)state;
    char text[512];
    assert_int_equal(pl_memory_offer_make(&offer, tree.folder, &err),
                     PL_E_UNSUPPORTED);
    assert_contains(err.text, "memory = '4GB'");
    assert_int_equal(offer.binding, -1);
    assert_int_equal(offer.bytes, 0);
    assert_int_equal(offer.n_sources, 0);
    pl_memory_offer_text(&offer, text, sizeof text);
    assert_string_equal(text, "offered: 0 B, by nothing says how much\n");
}

static void the_limit_of_the_address_space_counts(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/limits",
        "Max address space   500000000  unlimited  bytes\n");
    expect_bound(PL_MEMORY_ADDRESS_SPACE, "", 500 * MB, 102400000);
}

static void the_limit_of_the_data_counts(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/limits", "Max data size   400000000  unlimited  bytes\n"
                            "Max address space 500000000 500000000 bytes\n");
    expect_bound(PL_MEMORY_DATA, "", 400 * MB, 40960000);
    assert_int_equal(offer.n_sources, 3);
}

static void a_process_over_its_limit_is_offered_nothing(void **state)
{
    (void)state;
    put_machine();
    put("proc/self/limits", "Max address space  1000  1000  bytes\n");
    make();
    assert_int_equal(offer.bytes, 0);
}

static void the_commit_limit_counts_where_it_is_strict(void **state)
{
    (void)state;
    put_machine();
    put("proc/sys/vm/overcommit_memory", "1\n");
    expect_only_available();
    put("proc/sys/vm/overcommit_memory", "2\n");
    expect_bound(PL_MEMORY_COMMIT, "", (size_t)8000000 * 1024,
                 (size_t)5000000 * 1024);
    put("proc/sys/vm/admin_reserve_kbytes", "8192\n");
    put("proc/sys/vm/user_reserve_kbytes", "131072\n");
    expect_bound(PL_MEMORY_COMMIT, "", (size_t)(8000000 - 8192 - 131072) * 1024,
                 (size_t)5000000 * 1024);
    put("proc/sys/vm/user_reserve_kbytes", "99999999999999999999\n");
    expect_bound(PL_MEMORY_COMMIT, "", (size_t)(8000000 - 8192 - 250000) * 1024,
                 (size_t)5000000 * 1024);
}

static void the_offer_can_be_read(void **state)
{
    (void)state;
    char text[2048], name[400] = "", shorter[2000];
    put_machine();
    put("proc/meminfo", "MemAvailable: 10000000 kB\nSwapFree: 2000000 kB\n");
    put("proc/self/limits", "Max address space 500000000 500000000 bytes\n");
    put("proc/self/cgroup", "0::/x\n");
    put("proc/self/mountinfo", V2_MOUNT);
    put_v2("sys/fs/cgroup/x", "450000000", 250 * MB, 0, 0, 0);
    put("sys/fs/cgroup/x/memory.high", "410000000\n");
    make();
    pl_memory_offer_text(&offer, text, sizeof text);
    assert_string_equal(
        text,
        "offered: 204 MB, by cgroup /x: limit 450 MB, 250 MB in use\n"
        "enough:  9.22 GB, by free memory (MemAvailable): 10.2 GB, of which "
        "90 % count\n"
        "enough:  401 MB, by address space (ulimit -v): limit 500 MB, 102 MB "
        "in use\n"
        "note:    a cgroup's memory.high: above 410 MB the kernel slows its "
        "processes down\n"
        "note:    swap of 2.05 GB is not counted\n");
    memset(shorter, '#', sizeof shorter);
    pl_memory_offer_text(&offer, shorter, 40);
    assert_int_equal(strlen(shorter), 39);
    assert_memory_equal(shorter, text, 39);
    for (size_t i = 40; i < sizeof shorter; i++)
        assert_int_equal(shorter[i], '#');

    for (int i = 0; i < 70; i++)
        strcat(name, "/long");
    put("proc/self/cgroup", "0::%s\n", name);
    char folder[500];
    snprintf(folder, sizeof folder, "sys/fs/cgroup%s", name);
    put_v2(folder, "100000000", 10 * MB, 0, 0, 0);
    make();
    assert_int_equal(strlen(offer.sources[offer.binding].name),
                     PL_MEMORY_NAME_BYTES - 1);
    assert_contains(name, offer.sources[offer.binding].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(amounts_are_read_as_people_write_them),
        TEST(what_is_no_amount_is_refused),
        TEST(nine_tenths_of_what_is_available_count),
        TEST(an_old_kernel_says_only_what_is_free),
        TEST(where_nothing_is_known_the_budget_must_be_written),
        TEST(the_limit_of_the_address_space_counts),
        TEST(the_limit_of_the_data_counts),
        TEST(a_process_over_its_limit_is_offered_nothing),
        TEST(the_commit_limit_counts_where_it_is_strict),
        TEST(the_offer_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
