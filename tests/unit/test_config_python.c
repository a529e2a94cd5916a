/* test_config_python.c: what is evaluated of Python, with the values that
 * Python 3 gives, and what is refused once a key needs it. */
#include "unit/config_fixture.h"

/* The expression is `expected`, as repr() writes it. */
static void is(fixture *f, const char *expression, const char *expected)
{
    char text[1024];
    snprintf(text, sizeof text, "x = %s\nwandb_run_name = repr(x)\n",
             expression);
    parses(f, text);
    char quoted[512];
    pl_value value = pl_value_text(expected);
    pl_value_write(&value, quoted, sizeof quoted);
    if (strcmp(f->cfg.wandb_run_name.text, quoted) != 0)
        fail_msg("%s is %s, expected %s", expression,
                 f->cfg.wandb_run_name.text, quoted);
}

/* Nothing happens until a key needs it; then `part` is said. */
static void has_no_value(fixture *f, const char *expression, const char *part)
{
    char text[1024];
    snprintf(text, sizeof text, "wandb_run_name = %s\n", expression);
    parses(f, text);
    if (f->cfg.wandb_run_name.literal)
        fail_msg("%s is %s", expression, f->cfg.wandb_run_name.text);
    snprintf(text, sizeof text, "x = %s\nwandb_project = x\n", expression);
    parses(f, text);
    snprintf(text, sizeof text, "start = %s\n", expression);
    refused(f, text, part);
    if (!strstr(f->err.text, "x.py:1:"))
        fail_msg("no place in: %s", f->err.text);
}

static void conditions_choose(void **state)
{
    fixture *f = *state;
    is(f, "1 if True else 2", "1");
    is(f, "1 if 0 else 2", "2");
    is(f, "1 if '' else 2 if [] else 3", "3");
    is(f, "(1 if 2 > 1 else 5) + 1", "2");
    is(f, "1 if None else 1/0 if 0 else 7", "7");
    is(f, "5 if True else 1/0", "5");
    is(f, "1/0 if False else 5", "5");
    is(f, "3 and 0 and 1/0", "0");
    is(f, "0 or '' or 'a' or 1/0", "'a'");
    is(f, "1 or 0 and 0", "1");
    is(f, "not 0", "True");
    is(f, "not not 'a'", "True");
    is(f, "not 1 == 2", "True");
    is(f, "True and not False", "True");
    has_no_value(f, "1 if 1/0 else 2", "division by zero");
    has_no_value(f, "1/0 or 3", "division by zero");
    refused(f, "start = 1 if 2", "expected else");
}

static void comparisons_are_python_s(void **state)
{
    fixture *f = *state;
    is(f, "1 < 2", "True");
    is(f, "1 < 2 < 2", "False");
    is(f, "1 < 3 > 2", "True");
    is(f, "2 <= 2.0", "True");
    is(f, "True == 1", "True");
    is(f, "1 == '1'", "False");
    is(f, "1 != '1'", "True");
    is(f, "'a' < 'b'", "True");
    is(f, "'B' < 'a'", "True");
    is(f, "(1, 2) == (1, 2)", "True");
    is(f, "(1, 2) == [1, 2]", "False");
    is(f, "None is None", "True");
    is(f, "3 is not None", "True");
    is(f, "'ell' in 'hello'", "True");
    is(f, "3 not in [1, 2]", "True");
    is(f, "2.0 in (1, 2)", "True");
    is(f, "float('nan') == float('nan')", "False");
    is(f, "float('nan') < 1", "False");
    has_no_value(f, "1 < 'a'", "an int < a string is not defined");
    has_no_value(f, "1 in 3", "an int in an int is not defined");
    refused(f, "start = 1 not 2", "'2' is not accepted here");
    refused(f, "start = 1 ! 2", "'!' is not accepted here");
}

static void whole_numbers_have_bits(void **state)
{
    fixture *f = *state;
    is(f, "1 << 10", "1024");
    is(f, "-1 << 3", "-8");
    is(f, "-5 >> 1", "-3");
    is(f, "-5 >> 100", "-1");
    is(f, "5 >> 100", "0");
    is(f, "0 << 100", "0");
    is(f, "6 & 3", "2");
    is(f, "-1 & 255", "255");
    is(f, "6 | 1", "7");
    is(f, "6 ^ 3", "5");
    is(f, "~5", "-6");
    is(f, "1 | 2 ^ 3 & 4 << 1 + 1", "3");
    is(f, "True + True * 2", "3");
    is(f, "-True", "-1");
    has_no_value(f, "1 << 63", "does not fit");
    has_no_value(f, "1 << -1", "a negative shift");
    has_no_value(f, "1 << 9223372036854775807", "does not fit");
    has_no_value(f, "~1.5", "~ needs an int");
    has_no_value(f, "1.0 << 2", "a float << an int is not defined");
}

static void functions_of_numbers_are_python_s(void **state)
{
    fixture *f = *state;
    is(f, "int(3.9)", "3");
    is(f, "int(-3.9)", "-3");
    is(f, "int(' -1_000 ')", "-1000");
    is(f, "int('007')", "7");
    is(f, "int(True)", "1");
    is(f, "int(5e3)", "5000");
    is(f, "float('1e-3')", "0.001");
    is(f, "float(' +2 ')", "2.0");
    is(f, "float(3)", "3.0");
    is(f, "float('-inf')", "-inf");
    is(f, "bool('')", "False");
    is(f, "bool('False')", "True");
    is(f, "abs(-3)", "3");
    is(f, "abs(-2.5)", "2.5");
    is(f, "abs(-True)", "1");
    is(f, "round(2.5)", "2");
    is(f, "round(3.5)", "4");
    is(f, "round(-0.5)", "0");
    is(f, "round(2.675, 2)", "2.67");
    is(f, "round(1e-3, 5)", "0.001");
    is(f, "round(7)", "7");
    is(f, "min(3, 1, 2)", "1");
    is(f, "max([1, 2.5, 2])", "2.5");
    is(f, "max(1, True)", "1");
    is(f, "min('b', 'a')", "'a'");
    is(f, "sum([1, 2, 3])", "6");
    is(f, "len('h\xc3\xa9')", "2");
    is(f, "len([1, (2, 3)])", "2");
    is(f, "math.sqrt(16)", "4.0");
    is(f, "math.ceil(2.1)", "3");
    is(f, "math.floor(-2.1)", "-3");
    is(f, "math.log2(8)", "3.0");
    is(f, "math.pi", "3.141592653589793");
    is(f, "64 * ((50257 + 63) // 64)", "50304");
    is(f, "int(600000 * 0.02) + 1", "12001");
    has_no_value(f, "int('x')", "int('x'): this is not a number");
    has_no_value(f, "int('1.5')", "this is not a number");
    has_no_value(f, "int('0x10')", "this is not a number");
    has_no_value(f, "int(1e30)", "does not fit");
    has_no_value(f, "int(float('nan'))", "does not fit");
    has_no_value(f, "int([1])", "int() of a list");
    has_no_value(f, "int()", "'int()' is not evaluated");
    has_no_value(f, "float('1,5')", "this is not a number");
    has_no_value(f, "max(1)", "one value that is no list");
    has_no_value(f, "max([])", "max() of nothing");
    has_no_value(f, "max(1, 'a')", "a string > an int is not defined");
    has_no_value(f, "math.sqrt(-1)", "is not a number");
    has_no_value(f, "math.gamma(3)", "'math.gamma(3)' is not evaluated");
}

/* CPython's own answers, on glibc; ours come from no libm. */
static void powers_and_logarithms_are_python_s_to_the_last_digit(void **state)
{
    fixture *f = *state;
    is(f, "0.1 ** 3", "0.0010000000000000002");
    is(f, "10 ** -3", "0.001");
    is(f, "1.1 ** 10", "2.5937424601000023");
    is(f, "0.5 ** 0.3", "0.8122523963562356");
    is(f, "7 ** -0.5", "0.37796447300922725");
    is(f, "(-1.5) ** 3", "-3.375");
    is(f, "1e-3 * 0.9 ** 40", "1.4780882941434608e-05");
    is(f, "math.log(10)", "2.302585092994046");
    is(f, "math.exp(1)", "2.718281828459045");
    is(f, "math.exp(-0.1)", "0.9048374180359595");
    is(f, "math.cos(1)", "0.5403023058681398");
    is(f, "math.sin(1)", "0.8414709848078965");
    is(f, "math.sin(1e6)", "-0.34999350217129294");
    is(f, "math.log10(1000)", "3.0");
    is(f, "math.log2(10)", "3.321928094887362");
    is(f, "math.cos(math.pi / 3)", "0.5000000000000001");
    has_no_value(f, "math.sin(1e10)",
                 "angles are understood up to 1.07374e+09");
    has_no_value(f, "math.cos(math.inf)", "is not a number");
    has_no_value(f, "math.log(0)", "is not a number");
}

static void powers_and_repetitions_are_bounded(void **state)
{
    fixture *f = *state;
    is(f, "2 ** -1", "0.5");
    is(f, "(-2) ** 3", "-8");
    is(f, "2 ** 0.5", "1.4142135623730951");
    is(f, "'ab' * 3", "'ababab'");
    is(f, "2 * 'ab'", "'abab'");
    is(f, "'ab' * -1", "''");
    is(f, "'' * 10**18", "''");
    is(f, "(1,) * 2", "(1, 1)");
    has_no_value(f, "9**9**9", "does not fit");
    has_no_value(f, "'a' * 10**9", "longer than 65,536 bytes");
    has_no_value(f, "[0] * 10**9", "more than 10000 items");
    has_no_value(f, "[[0] * 5000] * 5000", "more than 10000 items");
    has_no_value(f, "[[[[[1]]]]]", "4 lists in each other");
    has_no_value(f, "f'{\"a\" * 60000}{\"a\" * 60000}'", "longer than 65,536");
    char *text = calloc(1, 60000);
    strcpy(text, "a = 'a' * 60000\n");
    for (int i = 0; i < 4000; i++)
        strcat(text, "b = a + ''\n");
    refused(f, text, "the values so far take more than 8.39 MB");
    free(text);
}

static void strings_are_made_as_python_makes_them(void **state)
{
    fixture *f = *state;
    is(f, "str(5) + str(True) + str(None) + str('a')", "'5TrueNonea'");
    is(f, "str(0.1)", "'0.1'");
    is(f, "str(6e-5)", "'6e-05'");
    is(f, "str(1e15)", "'1000000000000000.0'");
    is(f, "str(1e16)", "'1e+16'");
    is(f, "str(1.5e300)", "'1.5e+300'");
    is(f, "str(-0.0001)", "'-0.0001'");
    is(f, "str(100.0)", "'100.0'");
    is(f, "str(2/3)", "'0.6666666666666666'");
    is(f, "str([1, 'a', 0.5])", "'[1, \\'a\\', 0.5]'");
    is(f, "str((1,)) + str(())", "'(1,)()'");
    is(f, "'%d-%s' % (5, 'a')", "'5-a'");
    is(f, "'%s' % 0.1", "'0.1'");
    is(f, "'%r' % 'a'", "'\\'a\\''");
    is(f, "'%05.1f|%-4d|%+d|%4s|' % (3.14159, 7, 7, 'ab')",
       "'003.1|7   |+7|  ab|'");
    is(f, "'%e %g %x %%' % (1234.5, 1e-5, 255)", "'1.234500e+03 1e-05 ff %'");
    is(f, "'%d' % 3.9", "'3'");
    is(f, "'{}-{}'.format(1, 'b')", "'1-b'");
    is(f, "'{1}{0}{{}}'.format(1, 2)", "'21{}'");
    is(f, "'{a:>4}|{b:.2f}'.format(a='x', b=1.005)", "'   x|1.00'");
    is(f, "'{!r}'.format('a')", "'\\'a\\''");
    is(f,
       "'{:,} {:08.3f} {:+d} {:%} {:e}'.format(1234567, 3.14159, 5, 0.25, "
       "1e3)",
       "'1,234,567 0003.142 +5 25.000000% 1.000000e+03'");
    is(f, "'{:*^7}|{:<3}|{:>3}'.format('a', 1, 'b')", "'***a***|1  |  b'");
    is(f, "'GPT'.lower() + 'a'.upper()", "'gptA'");
    is(f, "'gpt2-xl'.startswith('gpt2')", "True");
    is(f, "'gpt2-xl'.endswith('xl')", "True");
    is(f, "'abc'[1] + 'h\xc3\xa9'[-1]", "'b\xc3\xa9'");
    is(f, "[1, 2, 3][-1]", "3");
    has_no_value(f, "'%d' % 'a'", "is not evaluated for such a value");
    has_no_value(f, "'%d %d' % (1,)", "more places than the 1 value");
    has_no_value(f, "'%d' % (1, 2)", "fewer places than the 2 values");
    has_no_value(f, "'%z' % 1", "is not evaluated");
    has_no_value(f, "'{}{}'.format(1)", "no argument for {}");
    has_no_value(f, "'{'.format(1)", "a brace that stands alone");
    has_no_value(f, "'{:q}'.format(1)", "the format 'q' is not evaluated");
    has_no_value(f, "'{:99999}'.format(1)", "is not evaluated");
    has_no_value(f, "'a'.title()", "''a'.title()' is not evaluated");
    has_no_value(f, "[1][1]", "there is no item 1, there are 1");
}

static void f_strings_have_fields(void **state)
{
    fixture *f = *state;
    is(f, "f'a{1 + 1}b{{}}'", "'a2b{}'");
    is(f, "f'{n_layer}L-{learning_rate:.0e}-{dataset!r}'",
       "'12L-6e-04-\\'openwebtext\\''");
    is(f, "f'{0.5:.2f}' 'x' f\"{'y'}\"", "'0.50xy'");
    is(f, "f'{(1, 2)}{[3]}'", "'(1, 2)[3]'");
    is(f, "f'{n_layer=}'", "'n_layer=12'");
    is(f, "f'{ n_layer }\\n'", "'12\\n'");
    is(f, "rf'\\d{1}'", "'\\\\d1'");
    is(f, "f'{max(1, 2):>3}'", "'  2'");
    is(f, "f'''{1\n+ 1}'''", "'2'");
    is(f, "f'{f\"{1}\"}'", "'1'");
    is(f, "f'{1:d}' if f'' == '' else 2", "'1'");
    has_no_value(f, "f'{time.time()}'", "'time.time()' is not evaluated");
    has_no_value(f, "f'{quux}'", "unknown name 'quux'");
    refused(f, "start = f'a}'", "x.py:1:12: a brace that stands alone");
    refused(f, "start = f'{'", "never closed");
    refused(f, "start = f'{}'", "x.py:1:12: '}' is not accepted here");
    refused(f, "start = f'{1:{2}}'", "fields in the format of a field");
    refused(f, "start = f'{1!x}'", "'x' is not accepted here");
}

static void variables_are_what_values_are_made_of(void **state)
{
    fixture *f = *state;
    parses(f, "depth = 8\n"
              "width = depth * 64\n"
              "n_layer, n_head, n_embd = depth, depth, width\n"
              "max_iters = lr_decay_iters = 5_000\n"
              "warmup_iters = int(0.02 * max_iters)\n"
              "betas = (0.9, 0.99)\n"
              "beta1, beta2 = betas\n"
              "block_size: int = 256\n"
              "batch_size = 4\n"
              "batch_size *= 2; batch_size += 1\n"
              "tag = f'd{depth}'\n"
              "out_dir = 'out-' + tag\n"
              "wandb_entity = 'me'; wandb_tags = ['a', tag]\n"
              "print('training', tag)\n"
              "assert n_embd % n_head == 0, 'heads'\n"
              "pass\n");
    assert_int_equal(f->cfg.n_layer, 8);
    assert_int_equal(f->cfg.n_embd, 512);
    assert_int_equal(f->cfg.lr_decay_iters, 5000);
    assert_int_equal(f->cfg.warmup_iters, 100);
    assert_true(f->cfg.beta2 == 0.99);
    assert_int_equal(f->cfg.block_size, 256);
    assert_int_equal(f->cfg.batch_size, 9);
    assert_string_equal(f->cfg.out_dir, "out-d8");
    assert_int_equal(f->cfg.origin[PL_KEY_n_embd].line, 3);
    assert_int_equal(f->cfg.origin[PL_KEY_n_embd].column, 18);
    parses(f, "a = b = c = 3; n_layer = a + b + c");
    assert_int_equal(f->cfg.n_layer, 9);
    parses(f, "size = 'big'; n_layer = 24 if size == 'big' else 12");
    assert_int_equal(f->cfg.n_layer, 24);
    parses(f, "n = 3\nprint(n)\n");
    parses(f, "max = 3\nn_layer = max\n");
    assert_int_equal(f->cfg.n_layer, 3);
}

static void a_name_that_nothing_uses_was_meant_to_be_a_key(void **state)
{
    fixture *f = *state;
    refused(f, "n_embed = 512\nn_layer = 3\n",
            "x.py:1:1: unknown key 'n_embed': did you mean 'n_embd'?\n"
            "    n_embed = 512\n    ^");
    refused(f, "use_rope = True\n", "x.py:1:1: unknown key 'use_rope'");
    refused(f, "a = 3\na = 4\n", "x.py:1:1: unknown key 'a'");
    refused(f, "n_layer = 3\nx, n_head = 1, 2\n", "x.py:2:1: unknown key 'x'");
}

static void a_mistake_in_an_assignment_is_named(void **state)
{
    fixture *f = *state;
    refused(f, "n_layer, n_head = 3", "2 names need a tuple of as many");
    refused(f, "n_layer, n_head = 3, 4, 5", "2 names need a tuple");
    refused(f, "n_layer = 3, 4", "found (3, 4), a list");
    refused(f, "n_layer += 'a'", "x.py:1:9: an int + a string");
    refused(f, "quux += 1", "unknown key 'quux'");
    refused(f, "assert n_layer == 13", "x.py:1:1: this assertion does not");
    refused(f, "n_layer = n_head = 'a'", "n_layer is a whole number");
    refused(f, "n_layer = 3 = 4", "only names can be assigned to");
    refused(f, "n_layer: int = 'a'", "n_layer is a whole number");
    refused(f, "os.makedirs('x')", "function calls are not run");
    refused(f, "globals()['n_layer'] = 3", "function calls are not run");
    refused(f, "f'{'", "never closed");
}

static void what_is_unknown_stops_only_what_needs_it(void **state)
{
    fixture *f = *state;
    parses(f, "import time\n"
              "now = time.time()\n"
              "wandb_run_name = 'ft-' + str(now)\n"
              "later = {k: 1 for k in [now]}\n"
              "wandb_notes = later\n"
              "n_layer = 3\n");
    assert_string_equal(f->cfg.wandb_run_name.text, "'ft-' + str(now)");
    refused(f, "import time\nnow = time.time()\nout_dir = 'x' + str(now)\n",
            "x.py:3:21: the value of 'now' is not known: x.py:2:7: "
            "'time.time()' is not evaluated");
    refused(f, "f = lambda: 3\nn_layer = f()\n",
            "x.py:2:11: the value of 'f' is not known: x.py:1:5: 'lambda'");
    refused(f,
            "dtype = 'bfloat16' if torch.cuda.is_available() and "
            "torch.cuda.is_bf16_supported() else 'float16'\n",
            "x.py:1:23: 'torch.cuda.is_available()' is not evaluated");
    refused(f, "n_layer = {'a': 3}['a']", "'{' is not accepted here");
    refused(f, "n_layer = [1, 2][0:1]", "':' is not accepted here");
    refused(f, "n_layer = foo.bar(3)[1].baz", "unknown name 'foo'");
    parses(f, "wandb_run_name = foo.bar(3)[1].baz\n");
}

static void imports_bind_names_and_set_no_key(void **state)
{
    fixture *f = *state;
    parses(f, "import os, sys\nimport numpy as np\nimport torch.nn as nn\n"
              "from math import sqrt as root, pi\n"
              "from a.b import (c,\n   d)\nfrom . import e\n"
              "from __future__ import annotations\n"
              "n_layer = int(root(16)) + int(pi)\n");
    assert_int_equal(f->cfg.n_layer, 7);
    refused(f, "from config.base import n_layer\n",
            "x.py:1:25: an import would set the key 'n_layer'");
    refused(f, "from config.base import (a,\n  b as n_layer)\n",
            "x.py:2:8: an import would set the key 'n_layer'");
    refused(f, "import base as n_layer\n", "would set the key 'n_layer'");
    refused(f, "from base import lr\nlearning_rate = lr\n",
            "x.py:2:17: 'lr' is not evaluated");
    refused(f, "from config.base import *\n", "x.py:1:1: no other file is");
    refused(f, "import 3\n", "'3' is not accepted here");
    refused(f, "from a.b impart c\n", "is not accepted here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(conditions_choose),
        TEST(comparisons_are_python_s),
        TEST(whole_numbers_have_bits),
        TEST(functions_of_numbers_are_python_s),
        TEST(powers_and_logarithms_are_python_s_to_the_last_digit),
        TEST(powers_and_repetitions_are_bounded),
        TEST(strings_are_made_as_python_makes_them),
        TEST(f_strings_have_fields),
        TEST(variables_are_what_values_are_made_of),
        TEST(a_name_that_nothing_uses_was_meant_to_be_a_key),
        TEST(a_mistake_in_an_assignment_is_named),
        TEST(what_is_unknown_stops_only_what_needs_it),
        TEST(imports_bind_names_and_set_no_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
