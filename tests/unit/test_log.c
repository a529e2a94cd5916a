#include "base/log.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct heard {
    int messages;
    pl_log_level level;
    char text[8192];
} heard;

static heard ear;

static void listen(void *context, pl_log_level level, const char *text)
{
    heard *h = context;
    h->messages++;
    h->level = level;
    assert_true(strlen(text) < sizeof h->text);
    memcpy(h->text, text, strlen(text) + 1);
}

static int set_up(void **state)
{
    (void)state;
    memset(&ear, 0, sizeof ear);
    return 0;
}

static void a_message_reaches_the_sink_with_its_level(void **state)
{
    (void)state;
    static const pl_log_level levels[] = { PL_LOG_INFO, PL_LOG_NOTE,
                                           PL_LOG_WARN };
    const pl_log log = { listen, &ear };
    for (int i = 0; i < 3; i++) {
        pl_log_say(&log, levels[i], "iter %d: loss %.4f", i, 2.5);
        assert_int_equal(ear.messages, i + 1);
        assert_int_equal(ear.level, levels[i]);
    }
    assert_string_equal(ear.text, "iter 2: loss 2.5000");
}

static void without_a_sink_there_is_silence(void **state)
{
    (void)state;
    const pl_log log = { NULL, &ear };
    pl_log_say(NULL, PL_LOG_WARN, "nobody hears %s", "this");
    pl_log_say(&log, PL_LOG_WARN, "nobody hears %s", "this");
    assert_int_equal(ear.messages, 0);
}

static void a_long_message_is_cut_at_a_character(void **state)
{
    (void)state;
    const pl_log log = { listen, &ear };
    char text[6000];
    for (size_t shift = 0; shift < 4; shift++) {
        size_t used = shift;
        memset(text, 'a', sizeof text);
        for (; used + 4 < sizeof text; used += 4)
            memcpy(text + used, "😀", 4);
        text[used] = '\0';
        pl_log_say(&log, PL_LOG_NOTE, "%s", text);
        size_t kept = strlen(ear.text);
        assert_in_range(kept, 1000, sizeof text);
        assert_memory_equal(ear.text, text, kept);
        assert_true(pl_utf8_is_valid(ear.text, kept));
    }
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_message_reaches_the_sink_with_its_level),
        TEST(without_a_sink_there_is_silence),
        TEST(a_long_message_is_cut_at_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
