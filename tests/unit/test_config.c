/* test_config.c: the table of keys, arguments, checks across keys, origins,
 * writing values, the docs page and the config files in the tree. */
#include "unit/config_fixture.h"

#include <math.h>

static pl_status argue(fixture *f, const char *argument)
{
    return pl_config_override(&f->cfg, argument, PL_FOR_TRAIN, &f->heap,
                              &f->err);
}

static void argued(fixture *f, const char *argument)
{
    if (argue(f, argument) != PL_OK)
        fail_msg("refused: %s\n%s", argument, f->err.text);
}

static void argument_refused(fixture *f, const char *argument,
                             pl_status expected, const char *part)
{
    pl_status status = argue(f, argument);
    if (status != expected)
        fail_msg("%s: status %d, %s", argument, status, f->err.text);
    assert_int_equal(f->err.status, expected);
    if (!strstr(f->err.text, part))
        fail_msg("expected '%s' in:\n%s", part, f->err.text);
}

/* ---- the table ---- */

static void the_defaults_are_nanogpt_s(void **state)
{
    const pl_config *cfg = &((fixture *)*state)->cfg;
    assert_string_equal(cfg->out_dir, "out");
    assert_int_equal(cfg->eval_interval, 2000);
    assert_int_equal(cfg->log_interval, 1);
    assert_int_equal(cfg->eval_iters, 200);
    assert_false(cfg->eval_only);
    assert_true(cfg->always_save_checkpoint);
    assert_string_equal(cfg->init_from, "scratch");
    assert_string_equal(cfg->dataset, "openwebtext");
    assert_int_equal(cfg->gradient_accumulation_steps, 40);
    assert_int_equal(cfg->batch_size, 12);
    assert_int_equal(cfg->block_size, 1024);
    assert_int_equal(cfg->n_layer, 12);
    assert_int_equal(cfg->n_head, 12);
    assert_int_equal(cfg->n_embd, 768);
    assert_true(cfg->dropout == 0.0);
    assert_false(cfg->bias);
    assert_true(cfg->learning_rate == 6e-4);
    assert_int_equal(cfg->max_iters, 600000);
    assert_true(cfg->weight_decay == 1e-1);
    assert_true(cfg->beta1 == 0.9);
    assert_true(cfg->beta2 == 0.95);
    assert_true(cfg->grad_clip == 1.0);
    assert_true(cfg->decay_lr);
    assert_int_equal(cfg->warmup_iters, 2000);
    assert_int_equal(cfg->lr_decay_iters, 600000);
    assert_true(cfg->min_lr == 6e-5);
    assert_string_equal(cfg->wandb_project.text, "'owt'");
    assert_string_equal(cfg->start, "\n");
    assert_int_equal(cfg->num_samples, 10);
    assert_int_equal(cfg->max_new_tokens, 500);
    assert_true(cfg->temperature == 0.8);
    assert_int_equal(cfg->top_k, 200);
    assert_int_equal(cfg->seed, 1337);
}

static void the_other_defaults_leave_the_choice_open(void **state)
{
    const pl_config *cfg = &((fixture *)*state)->cfg;
    assert_int_equal(cfg->eval_batch_size, PL_NONE);
    assert_int_equal(cfg->eval_block_size, PL_NONE);
    assert_int_equal(cfg->head_dim, PL_NONE);
    assert_int_equal(cfg->threads, PL_NONE);
    assert_int_equal(cfg->vocab_size, PL_NONE);
    assert_int_equal(cfg->grad_checkpoint.kind, PL_CHECKPOINTING_OFF);
    assert_int_equal(cfg->device.kind, PL_DEVICE_WISH_AUTO);
    assert_int_equal(cfg->dtype, PL_DTYPE_FLOAT32);
    assert_int_equal(cfg->activation, PL_ACTIVATION_GELU);
    assert_string_equal(cfg->tokenizer, "char");
    assert_true(cfg->val_fraction == 0.1);
}

static void every_row_describes_itself(void **state)
{
    (void)state;
    for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
        const pl_key_info *row = pl_key_row(key);
        char takes[PL_TAKES_BYTES];
        size_t need = pl_key_takes(key, takes, sizeof takes);
        assert_true(need > 0 && need < sizeof takes);
        assert_int_equal(strlen(takes), need);
        assert_int_equal(pl_key_takes(key, NULL, 0), need);
        assert_int_equal(pl_key_find(row->name, strlen(row->name)), key);
        assert_true(row->commands != 0);
        assert_true(strlen(row->help) > 4);
        assert_null(strchr(row->help, '|'));
        assert_true(row->offset + sizeof(bool) <= sizeof(pl_config));
    }
    assert_int_equal(pl_key_find("n_laye", 6), PL_KEY_COUNT);
    assert_int_equal(pl_key_find("n_layers", 8), PL_KEY_COUNT);
    assert_int_equal(pl_key_find("n_layers", 7), PL_KEY_n_layer);
}

static void the_defaults_pass_their_own_checks(void **state)
{
    fixture *f = *state;
    assert_int_equal(pl_config_check(&f->cfg, &f->err), PL_OK);
    for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
        char line[128], value[64];
        pl_config_value_text(&f->cfg, key, value, sizeof value);
        snprintf(line, sizeof line, "%s = %s", pl_key_row(key)->name, value);
        parses(f, line);
    }
}

/* ---- arguments ---- */

static void an_argument_sets_a_key(void **state)
{
    fixture *f = *state;
    argued(f, "--n_layer=6");
    argued(f, "--dropout=0");
    argued(f, "--learning_rate=1e-3");
    argued(f, "--bias=True");
    argued(f, "--gradient_accumulation_steps=5*8");
    argued(f, "--warmup_iters=n_layer // 2");
    argued(f, "--eval_batch_size=None");
    argued(f, "--grad_checkpoint=[0]*6");
    assert_int_equal(f->cfg.n_layer, 6);
    assert_true(f->cfg.dropout == 0.0);
    assert_true(f->cfg.learning_rate == 1e-3);
    assert_true(f->cfg.bias);
    assert_int_equal(f->cfg.gradient_accumulation_steps, 40);
    assert_int_equal(f->cfg.warmup_iters, 3);
    assert_int_equal(f->cfg.grad_checkpoint.count, 6);
}

static void strings_need_no_quotes_in_arguments(void **state)
{
    fixture *f = *state;
    static const char *const cases[][2] = {
        { "--out_dir=out-x", "out-x" },
        { "--out_dir='a b'", "a b" },
        { "--out_dir=\"a\\tb\"", "a\tb" },
        { "--out_dir=r'a\\tb'", "a\\tb" },
        { "--out_dir=42", "42" },
        { "--out_dir=dataset", "dataset" },
        { "--out_dir=None", "None" },
        { "--out_dir=a=b", "a=b" },
        { "--out_dir=", "" },
        { "--out_dir='Tis the season", "'Tis the season" },
        { "--out_dir='a' he said", "'a' he said" },
        { "--out_dir=\\n", "\\n" },
        { "--out_dir= x ", " x " },
        { "--out_dir=# (", "# (" },
        { "--out_dir=\xe5\x8d\x97", "\xe5\x8d\x97" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        argued(f, cases[i][0]);
        assert_string_equal(f->cfg.out_dir, cases[i][1]);
    }
}

static void an_argument_beats_the_file_and_the_last_one_wins(void **state)
{
    fixture *f = *state;
    char origin[64];
    parses(f, "n_layer = 3\nn_head = 3\n");
    argued(f, "--n_layer=4");
    argued(f, "--n_layer=5");
    assert_int_equal(f->cfg.n_layer, 5);
    pl_config_origin_text(&f->cfg, PL_KEY_n_layer, origin, sizeof origin);
    assert_string_equal(origin, "command line");
    pl_config_origin_text(&f->cfg, PL_KEY_n_head, origin, sizeof origin);
    assert_string_equal(origin, "x.py:2:1");
    pl_config_origin_text(&f->cfg, PL_KEY_n_embd, origin, sizeof origin);
    assert_string_equal(origin, "default");
    assert_int_equal(pl_config_origin_text(&f->cfg, PL_KEY_n_layer, origin, 3),
                     12);
    assert_string_equal(origin, "co");
}

static void a_wrong_argument_is_named(void **state)
{
    fixture *f = *state;
    argument_refused(f, "--n_embed=3", PL_E_USAGE,
                     "unknown key 'n_embed': did you mean 'n_embd'?");
    argument_refused(f, "--n-layer=3", PL_E_USAGE, "'n_layer'");
    argument_refused(f, "--eval_only", PL_E_USAGE, "write --eval_only=True");
    argument_refused(f, "--n_layer", PL_E_USAGE,
                     "write --n_layer=VALUE, which is a whole number");
    argument_refused(f, "n_layer=3", PL_E_USAGE, "form --key=value");
    argument_refused(f, "--", PL_E_USAGE, "form --key=value");
    argument_refused(f, "", PL_E_USAGE, "form --key=value");
    argument_refused(f, "--=3", PL_E_USAGE, "form --key=value");
    argument_refused(f, "---n_layer=3", PL_E_USAGE, "form --key=value");
    argument_refused(f, "--n_layer=abc", PL_E_CONFIG,
                     "n_layer is a whole number from 1 to 1000");
    argument_refused(f, "--n_layer=3 4", PL_E_CONFIG,
                     "command line: '4' is not accepted here");
    argument_refused(f, "--n_layer=", PL_E_CONFIG, "a value is missing");
    argument_refused(f, "--n_layer=3;4", PL_E_CONFIG, "';' is not accepted");
    argument_refused(f, "--n_layer=0", PL_E_CONFIG,
                     "n_layer is a whole number from 1 to 1000, found 0\n"
                     "    --n_layer=0\n"
                     "              ^");
    argument_refused(f, "--bias=true", PL_E_CONFIG, "write True");
    argument_refused(f, "--activation=relu", PL_E_CONFIG, "'gelu_tanh'");
    argument_refused(f, "--out_dir=\xff", PL_E_CONFIG, "0xff is not UTF-8");
    assert_int_equal(f->cfg.origin[PL_KEY_n_layer].source, PL_FROM_DEFAULT);
    assert_int_equal(f->cfg.n_layer, 12);
}

static void a_key_of_another_command_is_refused(void **state)
{
    fixture *f = *state;
    argument_refused(f, "--num_samples=1", PL_E_USAGE, "is a key of sample");
    argument_refused(f, "--tokenizer=byte", PL_E_USAGE,
                     "is a key of prepare, tokenize and inspect");
    assert_int_equal(pl_config_override(&f->cfg, "--temperature=0.5",
                                        PL_FOR_SAMPLE, &f->heap, &f->err),
                     PL_OK);
    assert_int_equal(pl_config_override(&f->cfg, "--n_layer=3", PL_FOR_SAMPLE,
                                        &f->heap, &f->err),
                     PL_E_USAGE);
    assert_non_null(strstr(f->err.text, "is a key of train, plan and eval"));
    assert_int_equal(pl_config_override(&f->cfg, "--n_layer=3", PL_FOR_ALL,
                                        &f->heap, &f->err),
                     PL_OK);
    parses(f, "temperature = 0.9; tokenizer = 'byte'; n_layer = 4");
    assert_true(f->cfg.temperature == 0.9);
}

static void keys_without_effect_are_listed_once_each(void **state)
{
    fixture *f = *state;
    pl_key keys[PL_KEY_COUNT];
    assert_int_equal(pl_config_without_effect(&f->cfg, keys), 0);
    parses(f, "compile = True\ncompile = False\n");
    argued(f, "--compile=False");
    argued(f, "--wandb_run_name=it's (mine");
    assert_int_equal(pl_config_without_effect(&f->cfg, keys), 2);
    assert_int_equal(keys[0], PL_KEY_compile);
    assert_int_equal(keys[1], PL_KEY_wandb_run_name);
    assert_string_equal(f->cfg.compile.text, "False");
    assert_string_equal(f->cfg.wandb_run_name.text, "'it\\'s (mine'");
    argued(f, "--wandb_run_name=dataset");
    assert_string_equal(f->cfg.wandb_run_name.text, "'dataset'");
}

/* ---- checks across keys ---- */

static void what_no_run_could_do_is_refused(void **state)
{
    fixture *f = *state;
    check_refused(f, "eval_block_size = 2048",
                  "eval_block_size = 2048 (x.py:1:1) is larger than "
                  "block_size = 1024 (default)");
    check_refused(f, "grad_checkpoint = [3] * 11", "one level per layer");
    check_refused(f, "n_head = 8; n_embd = 7", "would have no channels");
    check_refused(f, "batch_size = 2**20; gradient_accumulation_steps = 2**11",
                  "2147483647 sequences");
    check_refused(f, "eval_batch_size = 2**30; eval_iters = 2", "2147483647");
    check_refused(f, "batch_size = 2**30; gradient_accumulation_steps = 1",
                  "batch_size");
    check_refused(f, "warmup_iters = 50; lr_decay_iters = 50", "to decay in");
}

/* By hand: a group is whole batches, or every batch is cut into so many. */
static int can_be(int64_t groups, int64_t batches, int64_t batch)
{
    return batches % groups == 0 ||
           (groups % batches == 0 && batch % (groups / batches) == 0);
}

static void an_update_is_cut_where_batches_allow_it(void **state)
{
    fixture *f = *state;
    int passed = 0;
    for (int64_t batches = 1; batches <= 12; batches++)
        for (int64_t batch = 1; batch <= 12; batch++)
            for (int64_t groups = 1; groups <= 128; groups++) {
                const int right = (groups & (groups - 1)) == 0 &&
                                  can_be(groups, batches, batch);
                f->cfg.gradient_accumulation_steps = batches;
                f->cfg.batch_size = batch;
                f->cfg.gradient_groups = groups;
                assert_int_equal(pl_config_check(&f->cfg, &f->err),
                                 right ? PL_OK : PL_E_CONFIG);
                passed += right;
            }
    assert_true(passed > 200);
}

static void a_wrong_number_of_groups_says_what_would_work(void **state)
{
    fixture *f = *state;
    check_refused(f, "gradient_groups = 16",
                  "gradient_groups = 16 (x.py:1:1) doesn't go with "
                  "gradient_accumulation_steps = 40 (default)");
    check_refused(f, "gradient_groups = 16", "here 8 at the most");
    check_refused(f, "gradient_groups = 16",
                  "16 groups need gradient_accumulation_steps = 16 or a "
                  "multiple of it");
    check_refused(f, "gradient_groups = 6", "is a power of two");
    check_refused(f,
                  "gradient_accumulation_steps = 2; batch_size = 12; "
                  "gradient_groups = 16",
                  "here 8 at the most: a group is a number of whole batches, "
                  "or an equal part of a batch (batch_size = 12)");
    check_passes(f, "gradient_groups = 8; gradient_accumulation_steps = 2; "
                    "batch_size = 12");
}

static void what_nanogpt_allows_is_allowed(void **state)
{
    fixture *f = *state;
    check_passes(f, "eval_block_size = block_size");
    check_passes(f, "grad_checkpoint = [3] * 12");
    check_passes(f, "grad_checkpoint = 2; n_layer = 5");
    check_passes(f, "n_head = 8; n_embd = 7; head_dim = 3");
    check_passes(f, "n_head = 12; n_embd = 512");
    check_passes(f, "min_lr = 1; learning_rate = 0.1");
    check_passes(f, "lr_decay_iters = 10; warmup_iters = 20");
    check_passes(f, "lr_decay_iters = 20; warmup_iters = 20; max_iters = 19");
    check_passes(f, "lr_decay_iters = 20; warmup_iters = 20; decay_lr = False");
    check_passes(f, "n_layer = 80; n_head = 64; n_embd = 8192; "
                    "block_size = 131072; vocab_size = 128256");
}

/* ---- writing ---- */

static void written_floats_read_back_as_the_same(void **state)
{
    fixture *f = *state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        { 0.1, "0.1" },
        { 3.0, "3.0" },
        { 1e22, "1e+22" },
        { 1.0 / 3.0, "0.3333333333333333" },
        { 0.1 + 0.2, NULL },
        { 5e-324, NULL },
        { 1.7976931348623157e308, NULL },
        { 123456789.125, "123456789.125" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64], line[96];
        f->cfg.learning_rate = cases[i].value;
        pl_config_value_text(&f->cfg, PL_KEY_learning_rate, text, sizeof text);
        if (cases[i].text)
            assert_string_equal(text, cases[i].text);
        snprintf(line, sizeof line, "learning_rate = %s", text);
        f->cfg.learning_rate = 0.0;
        parses(f, line);
        assert_true(f->cfg.learning_rate == cases[i].value);
    }
}

static void a_written_config_reads_back_as_the_same(void **state)
{
    fixture *f = *state;
    char text[8192] = "";
    parses(f, "start = 'a\\'b\\\\\\n\\t\\x01\\x7f\\u00e9\"'\n"
              "grad_checkpoint = [0, 1, 3]\n"
              "wandb_run_name = 'x' + str(\n  1) # why\n"
              "compile = 1 + 1\ntop_k = None; bias = True; dropout = 1 / 3\n");
    for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
        char value[256];
        size_t used = strlen(text);
        size_t need = pl_config_value_text(&f->cfg, key, value, sizeof value);
        assert_int_equal(need, strlen(value));
        snprintf(text + used, sizeof text - used, "%s = %s\n",
                 pl_key_row(key)->name, value);
    }
    fixture again = *f;
    again.cfg = pl_config_make_default();
    parses(&again, text);
    for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
        char a[256], b[256];
        pl_config_value_text(&f->cfg, key, a, sizeof a);
        pl_config_value_text(&again.cfg, key, b, sizeof b);
        assert_string_equal(a, b);
    }
    f->heap = again.heap;
    assert_string_equal(again.cfg.start, "a'b\\\n\t\x01\x7f\xc3\xa9\"");
    assert_non_null(strstr(text, "start = 'a\\'b\\\\\\n\\t\\x01\\x7f"));
    assert_true(again.cfg.dropout == 1.0 / 3.0);
    assert_string_equal(again.cfg.compile.text, "2");
}

static void a_value_is_cut_to_the_space_it_has(void **state)
{
    fixture *f = *state;
    char text[8];
    parses(f, "out_dir = 'abcdefghij'");
    assert_int_equal(
        pl_config_value_text(&f->cfg, PL_KEY_out_dir, text, sizeof text), 12);
    assert_string_equal(text, "'abcdef");
    assert_int_equal(pl_config_value_text(&f->cfg, PL_KEY_out_dir, NULL, 0),
                     12);
}

static void a_long_value_in_a_message_is_cut_between_characters(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        char text[256] = "", brief[PL_VALUE_BRIEF_BYTES];
        memset(text, 'a', shift);
        for (int i = 0; i < 40; i++)
            strcat(text, "\xe5\x8d\x97");
        pl_value value = pl_value_text(text);
        pl_value_brief(&value, brief);
        size_t bytes = strlen(brief);
        assert_true(bytes < PL_VALUE_BRIEF_BYTES);
        assert_string_equal(brief + bytes - 3, "...");
        assert_int_equal((bytes - 3 - 1 - shift) % 3, 0);
    }
}

static void values_can_be_set_and_asked_for_by_key(void **state)
{
    fixture *f = *state;
    const pl_config_origin origin = { PL_FROM_FILE, "saved", 7, 1 };
    pl_value value = pl_value_int(9);
    assert_int_equal(pl_config_set(&f->cfg, PL_KEY_n_layer, &value, origin,
                                   &f->heap, &f->err),
                     PL_OK);
    pl_value held = pl_config_get(&f->cfg, PL_KEY_n_layer);
    assert_int_equal(held.kind, PL_VALUE_INT);
    assert_int_equal(held.whole, 9);
    assert_int_equal(pl_config_get(&f->cfg, PL_KEY_top_k).whole, 200);
    assert_int_equal(pl_config_get(&f->cfg, PL_KEY_threads).kind,
                     PL_VALUE_NONE);
    value = pl_value_float(NAN);
    assert_int_equal(pl_config_set(&f->cfg, PL_KEY_dropout, &value, origin,
                                   &f->heap, &f->err),
                     PL_E_CONFIG);
    assert_int_equal(f->cfg.origin[PL_KEY_dropout].source, PL_FROM_DEFAULT);
}

/* ---- files of the tree ---- */

/* The whole file, for the caller to free. */
static char *slurp(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s: cannot be opened from here", path);
    char *text = malloc((size_t)1 << 20);
    *bytes = fread(text, 1, ((size_t)1 << 20) - 1, file);
    text[*bytes] = '\0';
    fclose(file);
    return text;
}

static void read_tree_file(fixture *f, const char *path)
{
    size_t bytes;
    char *text = slurp(path, &bytes);
    f->cfg = pl_config_make_default();
    if (pl_config_parse(&f->cfg, text, bytes, path, &f->heap, &f->err) != PL_OK)
        fail_msg("%s", f->err.text);
    if (pl_config_check(&f->cfg, &f->err) != PL_OK)
        fail_msg("%s: %s", path, f->err.text);
    free(text);
}

static void the_shipped_recipes_are_what_they_say(void **state)
{
    fixture *f = *state;
    const pl_config *cfg = &f->cfg;
    read_tree_file(f, "config/train_shakespeare_char.py");
    assert_int_equal(cfg->n_embd, 384);
    assert_int_equal(cfg->block_size, 256);
    assert_true(cfg->dropout == 0.2);
    assert_false(cfg->always_save_checkpoint);
    read_tree_file(f, "config/train_shakespeare_char_cpu.py");
    assert_int_equal(cfg->n_layer, 4);
    assert_int_equal(cfg->n_embd, 128);
    assert_int_equal(cfg->batch_size, 12);
    assert_int_equal(cfg->block_size, 64);
    assert_int_equal(cfg->max_iters, 2000);
    assert_int_equal(cfg->lr_decay_iters, 2000);
    assert_int_equal(cfg->eval_iters, 200);
    assert_int_equal(cfg->gradient_accumulation_steps, 1);
    assert_true(cfg->learning_rate == 1e-3 && cfg->min_lr == 1e-4);
    assert_true(cfg->beta2 == 0.99 && cfg->dropout == 0.0);
    read_tree_file(f, "config/train_gpt2.py");
    assert_int_equal(cfg->gradient_accumulation_steps, 40);
    assert_int_equal(cfg->n_embd, 768);
    read_tree_file(f, "config/train_fineweb.py");
    assert_int_equal(cfg->n_embd, 576);
    assert_int_equal(cfg->batch_size, 16);
    assert_int_equal(cfg->gradient_accumulation_steps, 32);
    assert_int_equal(cfg->dtype, PL_DTYPE_FLOAT16);
    read_tree_file(f, "config/train_fineweb_recommended.py");
    assert_int_equal(cfg->n_embd, 512);
    assert_int_equal(cfg->n_head, 12);
    assert_int_equal(cfg->eval_batch_size, 4);
    assert_int_equal(cfg->eval_iters, 100);
    assert_int_equal(cfg->eval_interval, 500);
    assert_int_equal(cfg->grad_checkpoint.kind, PL_CHECKPOINTING_ON);
}

typedef struct page {
    char text[32768];
    size_t bytes;
} page;

static void collect(void *context, const char *text, size_t bytes)
{
    page *out = context;
    assert_true(out->bytes + bytes < sizeof out->text);
    memcpy(out->text + out->bytes, text, bytes);
    out->bytes += bytes;
}

static void the_docs_page_is_the_table(void **state)
{
    (void)state;
    page *expected = calloc(1, sizeof *expected);
    size_t bytes;
    pl_config_markdown(collect, expected);
    char *found = slurp("docs/config.md", &bytes);
    for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
        char cell[64];
        snprintf(cell, sizeof cell, "\n| `%s` | ", pl_key_row(key)->name);
        assert_non_null(strstr(expected->text, cell));
    }
    if (bytes != expected->bytes || memcmp(found, expected->text, bytes) != 0)
        fail_msg("docs/config.md is not what the table says: run "
                 "plimsoll config --markdown > docs/config.md");
    free(found);
    free(expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_defaults_are_nanogpt_s),
        TEST(the_other_defaults_leave_the_choice_open),
        TEST(every_row_describes_itself),
        TEST(the_defaults_pass_their_own_checks),
        TEST(an_argument_sets_a_key),
        TEST(strings_need_no_quotes_in_arguments),
        TEST(an_argument_beats_the_file_and_the_last_one_wins),
        TEST(a_wrong_argument_is_named),
        TEST(a_key_of_another_command_is_refused),
        TEST(keys_without_effect_are_listed_once_each),
        TEST(what_no_run_could_do_is_refused),
        TEST(an_update_is_cut_where_batches_allow_it),
        TEST(a_wrong_number_of_groups_says_what_would_work),
        TEST(what_nanogpt_allows_is_allowed),
        TEST(written_floats_read_back_as_the_same),
        TEST(a_written_config_reads_back_as_the_same),
        TEST(a_value_is_cut_to_the_space_it_has),
        TEST(a_long_value_in_a_message_is_cut_between_characters),
        TEST(values_can_be_set_and_asked_for_by_key),
        TEST(the_shipped_recipes_are_what_they_say),
        TEST(the_docs_page_is_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
