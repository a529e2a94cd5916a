/* test_config_parse.c: what nanoGPT's config files may say, and how a mistake
 * in one is named. */
#include "unit/config_fixture.h"

/* ---- files of nanoGPT ---- */

static void a_character_recipe_is_read(void **state)
{
    fixture *f = *state;
    parses(f, "# a small model\n"
              "\n"
              "out_dir = 'out-chars'\n"
              "eval_interval = 250 # often\n"
              "eval_iters = 200\n"
              "always_save_checkpoint = False\n"
              "wandb_log = False # by argument\n"
              "wandb_project = 'chars'\n"
              "wandb_run_name = 'mini-gpt'\n"
              "dataset = 'chars'\n"
              "gradient_accumulation_steps = 1\n"
              "batch_size = 64\n"
              "block_size = 256 # context\n"
              "dropout = 0.2\n"
              "learning_rate = 1e-3 # higher\n"
              "max_iters = 5000\n"
              "lr_decay_iters = 5000 # as max_iters\n"
              "min_lr = 1e-4 # a tenth\n"
              "beta2 = 0.99\n"
              "# device = 'cpu'  # on a processor\n"
              "# compile = False # do not\n");
    assert_string_equal(f->cfg.out_dir, "out-chars");
    assert_int_equal(f->cfg.batch_size, 64);
    assert_int_equal(f->cfg.lr_decay_iters, 5000);
    assert_true(f->cfg.learning_rate == 1e-3);
    assert_true(f->cfg.min_lr == 1e-4);
    assert_true(f->cfg.dropout == 0.2);
    assert_false(f->cfg.always_save_checkpoint);
    assert_int_equal(f->cfg.device.kind, PL_DEVICE_WISH_AUTO);
}

static void a_finetuning_recipe_with_a_clock_is_read(void **state)
{
    fixture *f = *state;
    parses(f, "import time\n"
              "\n"
              "out_dir = 'out-fine'\n"
              "wandb_log = False\n"
              "wandb_run_name = 'ft-' + str(time.time())\n"
              "dataset = 'plays'\n"
              "init_from = 'gpt2-xl' # the largest\n"
              "# 1 batch * 32 steps * 1024 tokens = 32768\n"
              "batch_size = 1\n"
              "gradient_accumulation_steps = 32\n"
              "max_iters = 20\n"
              "learning_rate = 3e-5\n"
              "decay_lr = False\n");
    assert_string_equal(f->cfg.init_from, "gpt2-xl");
    assert_string_equal(f->cfg.wandb_run_name.text, "'ft-' + str(time.time())");
    assert_false(f->cfg.wandb_run_name.literal);
    assert_false(f->cfg.decay_lr);
    assert_int_equal(f->cfg.origin[PL_KEY_learning_rate].line, 12);
}

static void an_evaluation_recipe_is_read(void **state)
{
    fixture *f = *state;
    parses(f, "# evaluates\n"
              "# n_layer=48, n_head=25, n_embd=1600\n"
              "batch_size = 8\n"
              "eval_iters = 500 # more, for a good estimate\n"
              "eval_only = True\n"
              "wandb_log = False\n"
              "init_from = 'gpt2-xl'\n");
    assert_int_equal(f->cfg.eval_iters, 500);
    assert_true(f->cfg.eval_only);
    pl_key keys[PL_KEY_COUNT];
    assert_int_equal(pl_config_without_effect(&f->cfg, keys), 1);
    assert_int_equal(keys[0], PL_KEY_wandb_log);
}

static void the_large_recipe_with_arithmetic_is_read(void **state)
{
    fixture *f = *state;
    parses(f, "wandb_log = True\n"
              "wandb_run_name='gpt2-124M'\n"
              "batch_size = 12\n"
              "block_size = 1024\n"
              "gradient_accumulation_steps = 5 * 8\n"
              "max_iters = 600000\n"
              "weight_decay = 1e-1\n");
    assert_int_equal(f->cfg.gradient_accumulation_steps, 40);
    assert_true(f->cfg.weight_decay == 0.1);
}

/* ---- lines ---- */

static void the_last_assignment_wins(void **state)
{
    fixture *f = *state;
    parses(f, "n_layer = 3\nn_layer = 4\n");
    assert_int_equal(f->cfg.n_layer, 4);
    assert_int_equal(f->cfg.origin[PL_KEY_n_layer].line, 2);
}

static void semicolons_separate_statements(void **state)
{
    fixture *f = *state;
    parses(f, "n_layer = 3; n_head = 5 ; n_embd = 7;\n");
    assert_int_equal(f->cfg.n_layer, 3);
    assert_int_equal(f->cfg.n_head, 5);
    assert_int_equal(f->cfg.n_embd, 7);
    assert_int_equal(f->cfg.origin[PL_KEY_n_head].column, 14);
    refused(f, "n_layer = 3;; n_head = 5", "x.py:1:13: expected a line");
}

static void crlf_cr_and_a_byte_order_mark_are_accepted(void **state)
{
    fixture *f = *state;
    parses(f, "\xef\xbb\xbfn_layer = 3\r\nn_head = 5\rn_embd = 7\r\n");
    assert_int_equal(f->cfg.n_layer, 3);
    assert_int_equal(f->cfg.n_head, 5);
    assert_int_equal(f->cfg.n_embd, 7);
    assert_int_equal(f->cfg.origin[PL_KEY_n_layer].column, 1);
    assert_int_equal(f->cfg.origin[PL_KEY_n_embd].line, 3);
}

static void brackets_and_backslashes_continue_a_line(void **state)
{
    fixture *f = *state;
    parses(f, "n_layer = (1 + # one\n\n   2)\n"
              "n_head = 2 * \\\r\n  3\n"
              "grad_checkpoint = [\n  0, # first\n  1,\n  3,\n]\n");
    assert_int_equal(f->cfg.n_layer, 3);
    assert_int_equal(f->cfg.n_head, 6);
    assert_int_equal(f->cfg.grad_checkpoint.count, 3);
}

static void imports_docstrings_and_blank_lines_are_skipped(void **state)
{
    fixture *f = *state;
    parses(f, "'''several\nlines = 3\n'''\n"
              "import os, sys\n"
              "from a.b import (c,\n   d)\n"
              "   \n\t# only a comment\n"
              "\"one\" 'two'; import x; n_layer = 3\n");
    assert_int_equal(f->cfg.n_layer, 3);
    parses(f, "");
    parses(f, "# nothing");
    parses(f, "\n\n\r\n");
}

static void keys_without_effect_take_any_expression(void **state)
{
    fixture *f = *state;
    parses(f, "compile = not sys.platform.startswith('win')\n"
              "backend = {'a': [1, (2,\n 3)], **x}['a'][0] if y else f'{z!r}'\n"
              "wandb_log = lambda x: x @ 2 << 3; n_layer = 3\n");
    assert_int_equal(f->cfg.n_layer, 3);
    assert_string_equal(f->cfg.compile.text,
                        "not sys.platform.startswith('win')");
    assert_string_equal(f->cfg.wandb_log.text, "lambda x: x @ 2 << 3");
    pl_key keys[PL_KEY_COUNT];
    assert_int_equal(pl_config_without_effect(&f->cfg, keys), 3);
    refused(f, "compile = \n", "a value is missing");
    refused(f, "compile = (1", "never closed");
    refused(f, "compile = f(1]", "']' does not close '('");
}

static void a_key_without_effect_may_be_part_of_another(void **state)
{
    fixture *f = *state;
    parses(f, "out_dir = 'out-' + wandb_project\n");
    assert_string_equal(f->cfg.out_dir, "out-owt");
    parses(f, "wandb_run_name = 'a\\'' + dataset; dataset = 'x'\n"
              "out_dir = wandb_run_name\n");
    assert_string_equal(f->cfg.out_dir, "a'openwebtext");
    refused(f, "wandb_run_name = id(1)\nout_dir = wandb_run_name",
            "x.py:2:11: the value of 'wandb_run_name' is not known");
}

/* ---- mistakes ---- */

static void an_unknown_key_names_the_nearest(void **state)
{
    fixture *f = *state;
    refused(f, "n_embed = 3",
            "x.py:1:1: unknown key 'n_embed': did you mean 'n_embd'?\n"
            "    n_embed = 3\n"
            "    ^");
    refused(f, "learning_rte = 3", "'learning_rate'");
    refused(f, "N_LAYER = 3", "'n_layer'");
    refused(f, "batchsize = 3", "'batch_size'");
    refused(f, "bacth_size = 3", "'batch_size'");
    refused(f, "flash_attention = True", "no key has a similar name");
    refused(f, "x = 3", "unknown key 'x': no key");
}

static void a_wrong_type_says_what_to_write(void **state)
{
    fixture *f = *state;
    refused(f, "max_iters = 1e4",
            "x.py:1:13: max_iters is a whole number from "
            "0 to 4294967295, found 10000.0, a float: "
            "write 10000\n");
    refused(f, "batch_size = 512 / 32", "write 16");
    refused(f, "batch_size = 2.5", "// divides");
    refused(f, "n_layer = '6'", "write it without quotes");
    refused(f, "n_layer = True", "found True, a bool");
    refused(f, "n_layer = None", "found None");
    refused(f, "bias = 1", "write True");
    refused(f, "bias = 'False'", "write it without quotes");
    refused(f, "dropout = False", "dropout is a number");
    refused(f, "dropout = '0.1'", "write it without quotes");
    refused(f, "out_dir = 5", "write it in quotes");
    refused(f, "out_dir = None", "out_dir is a string, found None");
    refused(f, "grad_checkpoint = 'all'", "a level from 0 to 3");
    refused(f, "grad_checkpoint = None", "found None");
    refused(f, "head_dim = 1.5", "None or a whole number");
}

static void a_value_out_of_range_names_the_range(void **state)
{
    fixture *f = *state;
    refused(f, "n_layer = 0", "from 1 to 1000, found 0");
    refused(f, "n_layer = 100001", "from 1 to 1000");
    refused(f, "dropout = 1", "at least 0 and below 1, found 1");
    refused(f, "beta2 = 1.0", "below 1, found 1.0");
    refused(f, "learning_rate = -1e-3", "at least 0, found -0.001");
    refused(f, "eval_batch_size = 0", "None or a whole number from 1");
    refused(f, "eval_batch_size = -1", "found -1");
    refused(f, "dtype = 'int8'", "'float32', 'bfloat16' or 'float16', found");
    refused(f, "device = 'cuda:'", "'cuda:N'");
    refused(f, "device = 'cuda:x'", "'cuda:N'");
    refused(f, "device = 'cuda:1x'", "'cuda:N'");
    refused(f, "grad_checkpoint = 4", "found 4");
    refused(f, "grad_checkpoint = [3, -1]", "item 2 of the list is -1");
    parses(f, "device = 'cuda:12'; n_layer = 1000; dropout = 0");
    assert_string_equal(f->cfg.device.text, "cuda:12");
    assert_int_equal(f->cfg.device.kind, PL_DEVICE_WISH_CUDA_N);
    assert_int_equal(f->cfg.device.number, 12);
}

static void other_statements_are_refused_with_what_to_write(void **state)
{
    fixture *f = *state;
    refused(f, "if bias:\n  n_layer = 3", "'if' does not begin a line");
    refused(f, "for i in x: pass", "'for' does not begin");
    refused(f, "def f(): pass", "'def' does not begin");
    refused(f, "n_layer = id(3)", "x.py:1:11: 'id(3)' is not evaluated");
    refused(f, "n_layer = (3)(4)", "x.py:1:11: '(3)(4)' is not evaluated");
    refused(f, "n_layer = math.tau", "'math.tau' is not evaluated");
    refused(f, "n_layer = 3 for i in x", "'for' is not accepted here");
    refused(f, "n_layer == 3", "does not begin a line");
    refused(f, "n_layer", "does not begin a line");
    refused(f, "n_layer =", "x.py:1:10: a value is missing here");
    refused(f, "n_layer = (\n+)", "x.py:2:2: ')' is not accepted here");
    refused(f, "n_layer = 3)", "')' closes nothing");
    refused(f, "3 = n_layer", "expected a line key = value");
    refused(f, "'doc' = 3", "only names can be assigned to");
    refused(f, "  n_layer = 3", "x.py:1:3: unexpected indentation");
    refused(f, "n_layer = 3\n\tn_head = 4", "x.py:2:2: unexpected indent");
}

static void the_offending_line_is_shown_with_a_caret(void **state)
{
    fixture *f = *state;
    refused(f, "a = 1", "\n    a = 1\n    ^");
    refused(f, "n_head = 2\nstart\t= 'h\xc3\xa9' + 3 # why\nbias = 3",
            "x.py:2:14: a string + an int is not defined here\n"
            "    start = 'h\xc3\xa9' + 3 # why\n"
            "                 ^");
    char text[2048] = "n_layer = ";
    for (int i = 0; i < 400; i++)
        strcat(text, "1 + ");
    strcat(text, "x");
    refused(f, text, "\n    ...");
    const char *caret = strrchr(f->err.text, '\n');
    assert_int_equal(strlen(caret), 1 + 4 + 3 + 60 + 1);
    assert_true(strstr(f->err.text, "1 + x\n") != NULL);
}

static void bytes_that_are_not_text_are_refused(void **state)
{
    fixture *f = *state;
    refused(f, "start = '\xff'", "x.py:1:10: the byte 0xff is not UTF-8");
    refused(f, "start = '\xc0\xaf'", "0xc0");
    refused(f, "start = '\xed\xa0\x80'", "0xed");
    refused(f, "start = '\xf4\x90\x80\x80'", "0xf4");
    refused(f, "start = '\xf9\x80\x80\x80'", "0xf9");
    refused(f, "# \xe2\x82", "0xe2");
    refused(f, "n_layer = \x01", "control character (0x01)");
    refused(f, "start = \xe2\x80\x9cx\xe2\x80\x9d", "is not accepted outside");
    refused(f, "n_layer = 3 $", "'$' is not accepted outside");
    assert_int_equal(
        pl_config_parse(&f->cfg, "n_layer\0= 3", 11, "x.py", &f->heap, &f->err),
        PL_E_CONFIG);
    assert_non_null(strstr(f->err.text, "x.py:1:8: the byte 0x00"));
}

static void nesting_without_end_is_refused(void **state)
{
    fixture *f = *state;
    static const char *const openings[] = { "(", "[", "-", "2**", "{(" };
    for (size_t i = 0; i < 5; i++) {
        char *text = calloc(1, 40000);
        strcpy(text, i == 4 ? "compile = " : "n_layer = ");
        for (size_t n = 0; n < 9000; n++)
            memcpy(text + 10 + n * strlen(openings[i]), openings[i],
                   strlen(openings[i]));
        refused(f, text, "64");
        free(text);
    }
    refused(f, "n_layer = ((((((((((3))))))))", "never closed");
    parses(f, "n_layer = ((((((((((3))))))))))");
    assert_int_equal(f->cfg.n_layer, 3);
}

static void a_file_of_unbearable_size_is_refused(void **state)
{
    fixture *f = *state;
    char *text = malloc(PL_CONFIG_MAX_BYTES + 1);
    memset(text, '\n', PL_CONFIG_MAX_BYTES + 1);
    assert_int_equal(pl_config_parse(&f->cfg, text, PL_CONFIG_MAX_BYTES, "x.py",
                                     &f->heap, &f->err),
                     PL_OK);
    assert_int_equal(pl_config_parse(&f->cfg, text, PL_CONFIG_MAX_BYTES + 1,
                                     "x.py", &f->heap, &f->err),
                     PL_E_CONFIG);
    free(text);
}

static void a_text_without_a_zero_at_its_end_is_read_to_its_end(void **state)
{
    fixture *f = *state;
    static const char *const texts[] = {
        "n_layer = 12",
        "out_dir = 'abc'",
        "compile = f(x)",
        "import x",
        "start = f'{x!r:>3}'",
        "n_layer = math.tau",
        "from x import *",
        "n_layer += 3",
        "exec(open('a').read())",
        "a, b = c = 3, (4)",
        "print(3)",
        "assert x[3].y not in z",
        "n_layer = 0x1f",
        "n_layer = 3 #",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t bytes = 0; bytes <= strlen(texts[i]); bytes++) {
            char *exact = malloc(bytes + 1);
            memcpy(exact + 1, texts[i], bytes);
            pl_status status = pl_config_parse(&f->cfg, exact + 1, bytes,
                                               "x.py", &f->heap, &f->err);
            assert_true(status == PL_OK || status == PL_E_CONFIG);
            free(exact);
        }
    assert_int_equal(f->cfg.n_layer, 3);
}

static void running_out_of_memory_is_said_as_such(void **state)
{
    fixture *f = *state;
    static const char text[] = "out_dir = 'a' + 'b' 'c'\n"
                               "grad_checkpoint = [1] * 2 + [3]\n"
                               "compile = f(x)\nwandb_log = 'x' + 'y'\n";
    long nth = 1;
    for (;; nth++) {
        pl_config cfg = pl_config_make_default();
        pl_arena_fail_at(nth);
        pl_status status = pl_config_parse(&cfg, text, sizeof text - 1, "x.py",
                                           &f->heap, &f->err);
        pl_arena_fail_at(0);
        if (status == PL_OK) {
            assert_string_equal(cfg.wandb_log.text, "'xy'");
            break;
        }
        assert_int_equal(status, PL_E_MEMORY);
        assert_int_equal(f->err.status, PL_E_MEMORY);
    }
    assert_true(nth > 10);
}

static void an_error_may_go_unsaid(void **state)
{
    fixture *f = *state;
    static const char *const texts[] = { "x = 3", "n_layer = 1/0",
                                         "n_layer = 'a'", "start = '\xff'" };
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pl_config_parse(&f->cfg, texts[i], strlen(texts[i]),
                                         "x.py", &f->heap, NULL),
                         PL_E_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_character_recipe_is_read),
        TEST(a_finetuning_recipe_with_a_clock_is_read),
        TEST(an_evaluation_recipe_is_read),
        TEST(the_large_recipe_with_arithmetic_is_read),
        TEST(the_last_assignment_wins),
        TEST(semicolons_separate_statements),
        TEST(crlf_cr_and_a_byte_order_mark_are_accepted),
        TEST(brackets_and_backslashes_continue_a_line),
        TEST(imports_docstrings_and_blank_lines_are_skipped),
        TEST(keys_without_effect_take_any_expression),
        TEST(a_key_without_effect_may_be_part_of_another),
        TEST(an_unknown_key_names_the_nearest),
        TEST(a_wrong_type_says_what_to_write),
        TEST(a_value_out_of_range_names_the_range),
        TEST(other_statements_are_refused_with_what_to_write),
        TEST(the_offending_line_is_shown_with_a_caret),
        TEST(bytes_that_are_not_text_are_refused),
        TEST(nesting_without_end_is_refused),
        TEST(a_file_of_unbearable_size_is_refused),
        TEST(a_text_without_a_zero_at_its_end_is_read_to_its_end),
        TEST(running_out_of_memory_is_said_as_such),
        TEST(an_error_may_go_unsaid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
