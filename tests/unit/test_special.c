/* Tests of config/special and of keys with choices: words become values. */
#include "config/special.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static pl_status set(pl_config *cfg, pl_key key, const char *text)
{
    const pl_value value = pl_value_text(text);
    const pl_config_origin origin = { PL_FROM_COMMAND_LINE, NULL, 0, 0 };
    pl_error err;
    return pl_config_set(cfg, key, &value, origin, NULL, &err);
}

/* ---- choices ---- */

static void every_word_of_a_choice_is_one_value(void **state)
{
    (void)state;
    int count = 0;
    for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
        const pl_key_info *row = pl_key_row(key);
        pl_config cfg = pl_config_make_default();
        assert_true((row->choices != NULL) == (row->type == PL_TYPE_CHOICE ||
                                               row->type == PL_TYPE_DEVICE));
        for (int i = 0; row->choices && row->choices[i]; i++) {
            const char *word = row->choices[i];
            if (strcmp(word, "cuda:N") == 0)
                word = "cuda:7";
            else if (strcmp(word, "opencl:N") == 0)
                word = "opencl:12";
            char written[64], want[64];
            assert_int_equal(pl_key_choice(key, word, NULL), i);
            assert_int_equal(set(&cfg, key, word), PL_OK);
            assert_string_equal(pl_config_word(&cfg, key), word);
            pl_config_value_text(&cfg, key, written, sizeof written);
            snprintf(want, sizeof want, "'%s'", word);
            assert_string_equal(written, want);
            count++;
        }
    }
    assert_true(count > 30);
}

static void another_word_is_refused_and_leaves_the_value(void **state)
{
    (void)state;
    pl_config cfg = pl_config_make_default();
    assert_int_equal(set(&cfg, PL_KEY_fit, "exact"), PL_OK);
    assert_int_equal(set(&cfg, PL_KEY_fit, "exac"), PL_E_CONFIG);
    assert_int_equal(set(&cfg, PL_KEY_fit, "exact "), PL_E_CONFIG);
    assert_int_equal(set(&cfg, PL_KEY_fit, ""), PL_E_CONFIG);
    assert_int_equal(cfg.fit, PL_FIT_EXACT);
    assert_int_equal(cfg.device.kind, PL_DEVICE_WISH_AUTO);
    assert_int_equal(pl_key_choice(PL_KEY_out_dir, "out", NULL), -1);
}

static void a_device_has_a_kind_and_a_number(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        pl_device_choice kind;
        int number;
    } good[] = {
        { "cpu", PL_DEVICE_WISH_CPU, PL_NONE },
        { "cuda", PL_DEVICE_WISH_CUDA, PL_NONE },
        { "cuda:0", PL_DEVICE_WISH_CUDA_N, 0 },
        { "cuda:007", PL_DEVICE_WISH_CUDA_N, 7 },
        { "cuda:123", PL_DEVICE_WISH_CUDA_N, 123 },
        { "mps", PL_DEVICE_WISH_MPS, PL_NONE },
        { "auto", PL_DEVICE_WISH_AUTO, PL_NONE },
    };
    static const char *const bad[] = { "cuda:",   "cuda:1234", "cuda:N",
                                       "cuda:-1", "cuda:1x",   "cuda:x",
                                       "mps:0",   "CPU" };
    pl_config cfg = pl_config_make_default();
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(set(&cfg, PL_KEY_device, good[i].text), PL_OK);
        assert_int_equal(cfg.device.kind, good[i].kind);
        assert_int_equal(cfg.device.number, good[i].number);
        assert_string_equal(cfg.device.text, good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(set(&cfg, PL_KEY_device, bad[i]), PL_E_CONFIG);
}

/* ---- words among texts ---- */

static void init_from_says_how_a_run_begins(void **state)
{
    (void)state;
    pl_config cfg = pl_config_make_default();
    assert_int_equal(pl_config_beginning(&cfg), PL_BEGIN_SCRATCH);
    cfg.init_from = "resume";
    assert_int_equal(pl_config_beginning(&cfg), PL_BEGIN_RESUME);
    cfg.init_from = "resumed";
    assert_int_equal(pl_config_beginning(&cfg), PL_BEGIN_MODEL);
    cfg.init_from = "gpt2";
    assert_int_equal(pl_config_beginning(&cfg), PL_BEGIN_MODEL);
}

static void a_tokenizer_is_a_word_or_a_path(void **state)
{
    (void)state;
    pl_config cfg = pl_config_make_default();
    static const struct {
        const char *text;
        pl_tokenizer_wish wish;
    } all[] = {
        { "", PL_TOKENIZER_WISH_NONE },
        { "char", PL_TOKENIZER_WISH_CHAR },
        { "byte", PL_TOKENIZER_WISH_BYTE },
        { "gpt2", PL_TOKENIZER_WISH_GPT2 },
        { "./gpt2", PL_TOKENIZER_WISH_PATH },
    };
    assert_int_equal(pl_config_tokenizer(&cfg), PL_TOKENIZER_WISH_CHAR);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        cfg.tokenizer = all[i].text;
        assert_int_equal(pl_config_tokenizer(&cfg), all[i].wish);
    }
}

static void memory_and_start_have_a_word_each(void **state)
{
    (void)state;
    pl_config cfg = pl_config_make_default();
    assert_false(pl_config_states_memory(&cfg));
    cfg.memory = "2GB";
    assert_true(pl_config_states_memory(&cfg));
    assert_null(pl_config_start_file(&cfg));
    cfg.start = "FILE:a b.txt";
    assert_string_equal(pl_config_start_file(&cfg), "a b.txt");
    cfg.start = "FILE";
    assert_null(pl_config_start_file(&cfg));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_of_a_choice_is_one_value),
        cmocka_unit_test(another_word_is_refused_and_leaves_the_value),
        cmocka_unit_test(a_device_has_a_kind_and_a_number),
        cmocka_unit_test(init_from_says_how_a_run_begins),
        cmocka_unit_test(a_tokenizer_is_a_word_or_a_path),
        cmocka_unit_test(memory_and_start_have_a_word_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
