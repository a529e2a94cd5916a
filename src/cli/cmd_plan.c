/* cmd_plan.c: what takes what, before anything runs. */
#include "advise/horizon.h"
#include "advise/remedies.h"
#include "advise/runplan.h"
#include "advise/savings.h"
#include "cli/command.h"
#include "cli/dial.h"
#include "cli/page_out.h"
#include "cli/plan_expected.h"
#include "cli/plan_ranks.h"
#include "cli/plan_rates.h"
#include "cli/plan_steps.h"
#include "cli/term.h"
#include "format/jsontext.h"
#include "train/medium.h"
#include "web/plan_page.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FLAG_JSON = 1, FLAG_STEPS = 2, FLAG_HTML = 4, FLAG_SVG = 8 };
/* in the list of flags */
enum { HTML_VALUE = 2, SVG_VALUE = 3, RANKS_VALUE = 4 };

typedef struct plan {
    const pl_config *config;
    pl_machine machine;
    pl_medium medium; /* which the machine borrows */
    pl_plan_ranks ranks;
    pl_run_plan run; /* with several ranks, that of the largest */
    const char *vocab_from;
    pl_saving fixes[PL_MAX_SAVINGS];
    size_t n_fixes;
    pl_remedy changes[PL_MAX_REMEDIES];
    size_t n_changes;
    pl_plan_expected expected;
} plan;

static size_t micro_steps(const plan *p)
{
    const pl_gpt_layout *layout = &p->run.gpt.layout;
    return layout->batches * (layout->batch / layout->micro);
}

/* A run with one group doesn't add groups. */
static int has_program(const plan *p, int program)
{
    return p->run.gpt.graph.programs[program].n_steps > 0;
}

/* ---- for people ---- */

static void print_model(const plan *p)
{
    const pl_shape *s = &p->run.gpt.shape;
    const pl_gpt_layout *layout = &p->run.gpt.layout;
    size_t updates = layout->micro * micro_steps(p);

    printf(
        "%smodel%s       %zu layers, %zu heads of %zu, %zu channels, context "
        "%zu, vocabulary %zu\n            (%s)\n",
        pl_term_out(PL_TERM_BOLD), pl_term_out_end(), s->L, s->H, s->D, s->C,
        s->T, s->V, p->vocab_from);
    if (s->family != PL_FAMILY_GPT2 || s->KV != s->H)
        printf("%sfamily%s      %s, %zu heads of keys and values, MLP of %zu "
               "(%s)\n",
               pl_term_out(PL_TERM_BOLD), pl_term_out_end(),
               pl_shape_value(s, PL_SHAPE_family).text, s->KV, s->F,
               pl_shape_value(s, PL_SHAPE_mlp).text);
    printf("%sparameters%s  %s (%.2fM without positions, as nanoGPT counts)\n",
           pl_term_out(PL_TERM_BOLD), pl_term_out_end(),
           pl_units_count(pl_param_count(s)).text,
           (double)pl_param_count_nanogpt(s) / 1e6);
    printf("%supdate%s      %zu x %zu sequences of %zu tokens: %s tokens",
           pl_term_out(PL_TERM_BOLD), pl_term_out_end(), layout->micro,
           micro_steps(p), s->T, pl_units_count(updates * s->T).text);
    if (p->ranks.ranks > 1)
        printf(" on each of %zu ranks; this plan is the largest one's, rank "
               "%zu's",
               p->ranks.ranks, p->machine.rank);
    printf("\n");
    if (layout->groups > 1)
        printf(
            "%sgroups%s      %zu of %zu sequences, added pairwise: gradients "
            "are kept %zu times\n",
            pl_term_out(PL_TERM_BOLD), pl_term_out_end(), layout->groups,
            updates / layout->groups, 1 + pl_gpt_digits(layout->groups));
    printf("%seval%s        %zu sequences of %zu tokens at once\n",
           pl_term_out(PL_TERM_BOLD), pl_term_out_end(), layout->eval_micro,
           layout->eval_T);
    const pl_products products = layout->device.products;
    printf("%sdtype%s       %s%s%s\n\n", pl_term_out(PL_TERM_BOLD),
           pl_term_out_end(), pl_config_word(p->config, PL_KEY_dtype),
           products ? ", products " : "",
           products ? pl_products_name(products) : "");
}

static void print_row(const plan *p, const char *name,
                      const size_t bytes[PL_PROGRAM_COUNT], const char *style)
{
    printf("%s%-18s", style, name);
    for (int i = 0; i < PL_PROGRAM_COUNT; i++)
        if (has_program(p, i))
            printf(" %11s", bytes[i] ? pl_units_bytes(bytes[i]).text : "-");
    printf("%s\n", *style ? pl_term_out_end() : "");
}

static void print_table(const plan *p)
{
    const pl_placement *place = &p->run.gpt.placement;
    size_t peaks[PL_PROGRAM_COUNT], rest[PL_PROGRAM_COUNT], most = 0;

    printf("%-18s", "");
    for (int i = 0; i < PL_PROGRAM_COUNT; i++) {
        if (has_program(p, i))
            printf(" %11s", pl_program_name((pl_program_id)i));
        peaks[i] = rest[i] = pl_placement_peak(place, (pl_program_id)i);
    }
    printf("\n");
    for (int class = 0; class < PL_CLASS_COUNT; class ++) {
        size_t bytes[PL_PROGRAM_COUNT], sum = 0;
        for (int i = 0; i < PL_PROGRAM_COUNT; i++) {
            bytes[i] = place->class_bytes[i][class];
            rest[i] -= bytes[i];
            sum += bytes[i];
        }
        if (sum)
            print_row(p, pl_class_name((pl_class) class), bytes, "");
    }
    for (int i = 0; i < PL_PROGRAM_COUNT; i++)
        most += rest[i];
    if (most)
        print_row(p, "gaps, alignment", rest, pl_term_out(PL_TERM_DIM));
    print_row(p, "peak", peaks, pl_term_out(PL_TERM_BOLD));
}

/* What `bytes` are of `most`, as a bar and in percent. */
static void print_share(const char *name, uint64_t bytes, size_t most)
{
    enum { WIDTH = 46 };
    const double share = (double)bytes / (double)most;
    printf("%-18s %9s  ", name, pl_units_bytes(bytes).text);
    for (int i = 0; i < WIDTH; i++)
        fputs(i < (int)(share * WIDTH + 0.5) ? "#" : ".", stdout);
    printf(" %4.1f %%\n", 100.0 * share);
}

/* Each class of bytes against the line. */
static void print_bars(const plan *p)
{
    const pl_placement *place = &p->run.gpt.placement;
    size_t most = p->run.total_bytes;
    if (p->machine.budget_bytes != SIZE_MAX && p->machine.budget_bytes > most)
        most = p->machine.budget_bytes;
    printf("\n");
    for (int class = 0; class < PL_CLASS_COUNT; class ++) {
        size_t bytes = place->class_bytes[PL_TRAIN][class];
        if (bytes < most / 1000)
            continue;
        print_share(pl_class_name((pl_class) class), bytes, most);
    }
    if (!p->run.host_bytes)
        print_share("reserve", p->run.reserve_bytes, most);
    if (p->run.files.bytes && !p->run.host_bytes)
        print_share("files in memory", p->run.files.bytes, most);
}

static void print_budget(const plan *p)
{
    size_t total = p->run.total_bytes, budget = p->machine.budget_bytes;
    if (budget == SIZE_MAX) {
        pl_term_print("budget   %11s  %s\n", "none", p->machine.budget_from);
        return;
    }
    pl_term_print("budget   %11s  %s\n", pl_units_bytes(budget).text,
                  p->machine.budget_from);
    if (p->run.capped_by)
        printf("held to  %11s  the arena: what %s takes for this run; a stated "
               "memory may use more\n",
               pl_units_bytes(p->run.cap_bytes).text, p->run.capped_by);
    if (p->run.fits)
        printf("%sfits, %s to spare%s\n", pl_term_out(PL_TERM_GREEN),
               pl_units_bytes(budget - total).text, pl_term_out_end());
    else if (total > budget)
        printf("%sdoes not fit: %s are missing%s\n", pl_term_out(PL_TERM_RED),
               pl_units_bytes(total - budget).text, pl_term_out_end());
    else
        printf("%sdoes not fit: the host has %s%s\n", pl_term_out(PL_TERM_RED),
               pl_units_bytes(p->machine.host_budget_bytes).text,
               pl_term_out_end());
}

static void print_total(const plan *p)
{
    const pl_placement *place = &p->run.gpt.placement;
    size_t arena = place->arena_bytes, bound = place->lower_bound_bytes;
    printf("\narena    %11s  %s bytes, %s\n", pl_units_bytes(arena).text,
           pl_units_count(arena).text,
           p->run.host_bytes ? "in the device's memory"
                             : "one mapping for all of them");
    printf("bound    %11s  no placement needs less; this one is %.2f %% "
           "above\n",
           pl_units_bytes(bound).text,
           100.0 * (double)(arena - bound) / (double)bound);
    if (p->run.host_bytes)
        printf("host     %11s  files and sampling, in the host's memory\n",
               pl_units_bytes(place->host_bytes).text);
    printf("reserve  %11s  program, libraries, stacks, page tables\n",
           pl_units_bytes(p->run.reserve_bytes).text);
    if (p->run.files.bytes)
        printf(
            "files    %11s  %zu checkpoints of %s, metrics %s: out_dir is in "
            "memory (tmpfs)\n",
            pl_units_bytes(p->run.files.bytes).text, p->run.files.checkpoints,
            pl_units_bytes(p->run.files.checkpoint_bytes).text,
            pl_units_bytes(p->run.files.metrics_bytes).text);
    if (p->run.host_bytes)
        printf("%stotal    %11s%s  on the device; on the host %s\n",
               pl_term_out(PL_TERM_BOLD),
               pl_units_bytes(p->run.total_bytes).text, pl_term_out_end(),
               pl_units_bytes(p->run.host_bytes).text);
    else
        printf("%stotal    %11s%s\n", pl_term_out(PL_TERM_BOLD),
               pl_units_bytes(p->run.total_bytes).text, pl_term_out_end());
}

/* Of all ranks, with what they wait. */
static double update_seconds(const plan *p)
{
    return p->ranks.ranks ? p->ranks.times.update : p->run.update_seconds;
}

static double tokens_per_second(const plan *p)
{
    return (double)pl_config_update_tokens(p->config) / update_seconds(p);
}

static double run_seconds(const plan *p)
{
    return pl_horizon_run_seconds(&p->run, p->config, &p->machine) +
           (double)p->config->max_iters *
               (update_seconds(p) - p->run.update_seconds);
}

static void print_layout(const plan *p)
{
    const pl_fit *fit = &p->run.fit;
    size_t L = p->run.gpt.shape.L;
    char text[160];
    pl_run_plan_layout_text(&p->run.gpt.layout, L, text, sizeof text);
    printf("\n%slayout%s      %s: %s per update, predicted from %s\n",
           pl_term_out(PL_TERM_BOLD), pl_term_out_end(), text,
           pl_units_duration(update_seconds(p)).text,
           pl_plan_rates_text(&p->machine));
    printf("%srun%s         %.0f tokens/s; %s for %lld updates (%s tokens), "
           "with the evaluations\n",
           pl_term_out(PL_TERM_BOLD), pl_term_out_end(), tokens_per_second(p),
           pl_units_duration(run_seconds(p)).text,
           (long long)p->config->max_iters,
           pl_units_count((uint64_t)p->config->max_iters *
                          (uint64_t)pl_config_update_tokens(p->config))
               .text);
    pl_plan_rates_print(&p->machine);
    pl_plan_expected_print(&p->expected);
    if (!fit->has_runner_up)
        return;
    pl_run_plan_layout_text(&fit->runner_up.layout, L, text, sizeof text);
    printf("%srunner-up%s   %s: %s, %s%.1f %% time\n", pl_term_out(PL_TERM_DIM),
           pl_term_out_end(), text,
           pl_units_bytes(fit->runner_up.arena_bytes).text,
           fit->runner_up.update_seconds >= p->run.update_seconds ? "+" : "",
           100.0 *
               (fit->runner_up.update_seconds / p->run.update_seconds - 1.0));
}

static void print_fixes(const plan *p)
{
    static const char *const effects[] = {
        [PL_EFFECT_SAME] = "same result, to the bit",
        [PL_EFFECT_EVALUATION] = "another evaluation, same training",
        [PL_EFFECT_NUMBERS] = "another run",
        [PL_EFFECT_TENSORS] = "another run",
        [PL_EFFECT_MODEL] = "another run",
    };
    printf("\n%s%-38s %10s %8s %8s%s\n", pl_term_out(PL_TERM_BOLD),
           "what would change it", "saves", "update", "eval",
           pl_term_out_end());
    for (size_t i = 0; i < p->n_fixes; i++) {
        const pl_saving *fix = &p->fixes[i];
        uint64_t size = (uint64_t)(fix->saved_bytes < 0 ? -fix->saved_bytes
                                                        : fix->saved_bytes);
        char saves[PL_UNITS_TEXT_BYTES + 1];
        snprintf(saves, sizeof saves, "%s%s", fix->saved_bytes < 0 ? "-" : "",
                 size ? pl_units_bytes(size).text : "0");
        printf("%-38s %10s %+6.1f %% %+6.1f %%  %s%s\n", fix->setting, saves,
               100.0 * fix->update_change, 100.0 * fix->eval_change,
               effects[fix->effect], !p->run.fits && fix->fits ? "; fits" : "");
    }
}

/* Where nothing fits: what would. */
static void print_changes(const plan *p)
{
    static const char *const effects[] = {
        [PL_EFFECT_SAME] = "same result, to the bit",
        [PL_EFFECT_EVALUATION] = "another evaluation, same training",
        [PL_EFFECT_NUMBERS] = "another run",
        [PL_EFFECT_TENSORS] = "same model, fewer bits",
        [PL_EFFECT_MODEL] = "another model",
    };
    if (p->run.fits)
        return;
    printf("\n%s%-56s %9s %9s %10s%s\n", pl_term_out(PL_TERM_BOLD),
           "what would fit", "total", "update", "parameters",
           pl_term_out_end());
    for (size_t i = 0; i < p->n_changes; i++) {
        const pl_remedy *change = &p->changes[i];
        printf("%-56s %9s %+7.1f %% %8.2f M  %s\n", change->settings,
               pl_units_bytes(change->total_bytes).text,
               100.0 * change->update_change, (double)change->parameters / 1e6,
               change->regroups ? "same sequences, summed in another order"
                                : effects[change->effect]);
    }
    if (p->n_changes == 0)
        printf("nothing: not even one layer of the smallest width\n");
}

/* ---- for scripts ---- */

static void put_levels(pl_json_text *j, const pl_gpt *gpt)
{
    pl_json_text_open(j, "levels", '[');
    for (size_t l = 0; l < gpt->shape.L; l++)
        pl_json_text_whole(j, NULL, gpt->layout.levels[l]);
    pl_json_text_close(j, ']');
}

static void put_fit(pl_json_text *j, const plan *p)
{
    if (p->machine.budget_bytes == SIZE_MAX)
        pl_json_text_raw(j, "budget_bytes", "null");
    else
        pl_json_text_whole(j, "budget_bytes", p->machine.budget_bytes);
    pl_json_text_string(j, "budget_from", p->machine.budget_from);
    if (p->run.capped_by)
        pl_json_text_whole(j, "held_to_bytes", p->run.cap_bytes);
    pl_json_text_raw(j, "fits", p->run.fits ? "true" : "false");
    pl_json_text_whole(j, "total_bytes", p->run.total_bytes);
    pl_json_text_whole(j, "smallest_arena_bytes",
                       p->run.fit.smallest.arena_bytes);
    pl_json_text_real(j, "predicted_step_ms", 1e3 * update_seconds(p));
    pl_json_text_real(j, "predicted_tokens_per_second", tokens_per_second(p));
    pl_json_text_whole(j, "max_iters", (uint64_t)p->config->max_iters);
    pl_json_text_real(j, "predicted_run_seconds", run_seconds(p));
    if (p->expected.bits.high > 0.0) {
        pl_json_text_real(j, "expected_bpb_low", p->expected.bits.low);
        pl_json_text_real(j, "expected_bpb_high", p->expected.bits.high);
    }
    pl_json_text_string(j, "rates", pl_plan_rates_word(&p->machine));
    pl_json_text_real(j, "rates_date", pl_machine_rates(&p->machine)->date);
    pl_json_text_real(j, "rates_quiet", pl_machine_rates(&p->machine)->quiet);
    put_levels(j, &p->run.gpt);
    pl_json_text_open(j, "fixes", '[');
    for (size_t i = 0; i < p->n_fixes; i++) {
        const pl_saving *fix = &p->fixes[i];
        char saved[24];
        snprintf(saved, sizeof saved, "%lld", (long long)fix->saved_bytes);
        pl_json_text_open(j, NULL, '{');
        pl_json_text_string(j, "setting", fix->setting);
        pl_json_text_raw(j, "saved_bytes", saved);
        pl_json_text_real(j, "update_change", fix->update_change);
        pl_json_text_real(j, "eval_change", fix->eval_change);
        pl_json_text_raw(j, "same_result",
                         fix->effect == PL_EFFECT_SAME ? "true" : "false");
        pl_json_text_raw(j, "fits", fix->fits ? "true" : "false");
        pl_json_text_close(j, '}');
    }
    pl_json_text_close(j, ']');
    pl_json_text_open(j, "changes", '[');
    for (size_t i = 0; i < p->n_changes; i++) {
        const pl_remedy *change = &p->changes[i];
        pl_json_text_open(j, NULL, '{');
        pl_json_text_string(j, "settings", change->settings);
        pl_json_text_whole(j, "total_bytes", change->total_bytes);
        pl_json_text_real(j, "update_change", change->update_change);
        pl_json_text_whole(j, "parameters", change->parameters);
        pl_json_text_raw(j, "same_result",
                         change->effect == PL_EFFECT_SAME ? "true" : "false");
        pl_json_text_close(j, '}');
    }
    pl_json_text_close(j, ']');
}

static pl_status print_json(const plan *p, pl_heap *heap, pl_error *err)
{
    const pl_placement *place = &p->run.gpt.placement;
    enum { TEXT_BYTES = 64 * 1024 };
    char *text;
    pl_status status = pl_heap_take(heap, &text, TEXT_BYTES, 1, err);
    if (status)
        return status;
    pl_json_text j = pl_json_text_begin(text, TEXT_BYTES);
    pl_json_text_whole(&j, "parameters", pl_param_count(&p->run.gpt.shape));
    pl_json_text_whole(&j, "parameters_nanogpt",
                       pl_param_count_nanogpt(&p->run.gpt.shape));
    pl_json_text_whole(&j, "vocab_size", p->run.gpt.shape.V);
    pl_json_text_string(&j, "vocabulary_from", p->vocab_from);
    pl_json_text_whole(&j, "head_dim", p->run.gpt.shape.D);
    pl_json_text_whole(&j, "arena_bytes", place->arena_bytes);
    pl_json_text_whole(&j, "reserve_bytes", p->run.reserve_bytes);
    if (p->run.files.bytes) /* out_dir is in memory */
        pl_json_text_whole(&j, "files_bytes", p->run.files.bytes);
    if (p->run.host_bytes) /* the device has memory of its own */
        pl_json_text_whole(&j, "host_bytes", p->run.host_bytes);
    pl_json_text_whole(&j, "lower_bound_bytes", place->lower_bound_bytes);
    pl_json_text_whole(&j, "micro_batch", p->run.gpt.layout.micro);
    pl_json_text_whole(&j, "accumulation", micro_steps(p));
    pl_json_text_whole(&j, "gradient_groups", p->run.gpt.layout.groups);
    pl_json_text_string(&j, "dtype", pl_config_word(p->config, PL_KEY_dtype));
    pl_json_text_string(&j, "products",
                        pl_products_name(p->run.gpt.layout.device.products));
    put_fit(&j, p);
    pl_json_text_open(&j, "programs", '{');
    for (int i = 0; i < PL_PROGRAM_COUNT; i++) {
        if (!has_program(p, i))
            continue;
        pl_json_text_open(&j, pl_program_name((pl_program_id)i), '{');
        pl_json_text_whole(&j, "peak_bytes",
                           pl_placement_peak(place, (pl_program_id)i));
        for (int class = 0; class < PL_CLASS_COUNT; class ++) {
            char key[48];
            snprintf(key, sizeof key, "%s_bytes",
                     pl_class_name((pl_class) class));
            for (char *c = key; *c; c++)
                *c = *c == ' ' ? '_' : *c;
            pl_json_text_whole(&j, key, place->class_bytes[i][class]);
        }
        pl_json_text_close(&j, '}');
    }
    pl_json_text_close(&j, '}');
    pl_plan_ranks_put(&p->ranks, &j);
    status = pl_json_text_end(&j, err);
    if (!status)
        fwrite(j.text, 1, j.used, stdout);
    return status;
}

/* ---- as a picture ---- */

static pl_status write_page(const plan *p, const char *path, int as_svg,
                            pl_error *err)
{
    const pl_plan_page page = { .config = p->config,
                                .machine = &p->machine,
                                .run = &p->run,
                                .vocab_from = p->vocab_from,
                                .fixes = p->fixes,
                                .n_fixes = p->n_fixes,
                                .changes = p->changes,
                                .n_changes = p->n_changes };
    pl_page_out out;
    pl_status status = pl_page_out_open(&out, path, err);
    if (status)
        return status;
    pl_html h = pl_html_begin(pl_page_out_take, &out);
    const pl_plan_picture picture = pl_plan_page_picture(&page);
    if (as_svg)
        pl_plan_picture_draw(&h, &picture, "plan", PL_SVG_FILE);
    else
        pl_plan_page_write(&h, &page);
    pl_html_end(&h);
    return pl_page_out_close(&out, err);
}

static pl_status make(plan *p, pl_config *config, pl_heap *heap, pl_error *err)
{
    size_t vocab_size;
    pl_cli_tokenizer_room room;
    p->config = config;
    pl_status status = pl_cli_dial(config, heap, err);
    if (!status)
        status = pl_cli_vocabulary(config, heap, &vocab_size, &room,
                                   &p->vocab_from, err);
    if (!status)
        status = pl_cli_machine(&p->machine, PL_MACHINE_PLAN, config, heap,
                                err);
    if (!status)
        status = pl_plan_ranks_machine(&p->ranks, &p->machine, err);
    if (!status && !config->eval_only)
        status = pl_cli_minutes(config, &p->machine, NULL, heap, err);
    if (status)
        return status;
    p->machine.tokenizer_bytes = room.memory_bytes;
    if (!status && !p->config->eval_only) /* which writes nothing */
        status = pl_medium_count(&p->medium, &p->machine, p->config,
                                 room.file_bytes, err);
    if (!status)
        status = pl_plan_ranks_make(&p->ranks, config, &p->machine, vocab_size,
                                    heap, err);
    if (!status)
        status = pl_run_plan_make(&p->run, p->config, &p->machine, vocab_size,
                                  &pl_term_log, heap, err);
    if (!status)
        status = pl_plan_expected_make(&p->expected, config, vocab_size, err);
    if (!status)
        status = pl_savings_make(p->fixes, &p->n_fixes, &p->run, p->config,
                                 &p->machine, err);
    if (!status && !p->run.fits)
        status = pl_remedies_make(p->changes, &p->n_changes, &p->run, p->config,
                                  &p->machine, vocab_size, err);
    return status;
}

/* For scripts: as `train` would end. */
static pl_status verdict(const plan *p, pl_error *err)
{
    size_t total = p->run.total_bytes, budget = p->machine.budget_bytes;
    if (p->run.fits)
        return PL_OK;
    if (total <= budget)
        return pl_run_plan_check(&p->run, &p->machine, err);
    return pl_fail(
        err, PL_E_MEMORY,
        "it doesn't fit: %s are needed, the budget is %s, %s are missing",
        pl_units_bytes(total).text, pl_units_bytes(budget).text,
        pl_units_bytes(total - budget).text);
}

static pl_status run_plan(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    static plan p;
    pl_status status = pl_cli_no_paths(args, "A config file ends in .py", err);
    if (!status)
        status = pl_plan_ranks_read(&p.ranks, args, RANKS_VALUE, err);
    if (!status)
        status = make(&p, &args->config, heap, err);
    if (status)
        return status;
    if (args->flags & FLAG_JSON) {
        status = print_json(&p, heap, err);
        return status ? status : verdict(&p, err);
    }
    pl_cli_say_ignored(p.config);
    if (args->flags & FLAG_HTML)
        status = write_page(&p, args->flag_values[HTML_VALUE], 0, err);
    if (!status && args->flags & FLAG_SVG)
        status = write_page(&p, args->flag_values[SVG_VALUE], 1, err);
    if (status || args->flags & (FLAG_HTML | FLAG_SVG))
        return status ? status : verdict(&p, err);
    print_model(&p);
    print_table(&p);
    print_total(&p);
    print_budget(&p);
    print_bars(&p);
    print_layout(&p);
    pl_plan_ranks_print(&p.ranks);
    print_fixes(&p);
    print_changes(&p);
    if (args->flags & FLAG_STEPS)
        pl_plan_steps_print(&p.run.gpt);
    return verdict(&p, err);
}

static const char *const flags[] = { "--json",      "--steps",
                                     "--html=FILE", "--svg=FILE",
                                     "--ranks=N",   "--network=RATE",
                                     NULL };

const pl_command pl_command_plan = {
    .name = "plan",
    .arguments = "[CONFIG.py ...] [--key=value ...] [--json] [--steps] "
                 "[--html[=FILE]] [--svg[=FILE]] [--ranks=N "
                 "[--network=RATE[,LATENCY]]]",
    .summary = "every byte of training, evaluation, sampling and saving",
    .text = "Needs no data and no device, and answers at once. Weights, "
            "gradients and moments\nlive throughout; the programs lie over "
            "each other above them, so evaluation,\nsampling and saving add "
            "nothing to training's peak.\n\n"
            "  --json    the numbers, for scripts\n"
            "  --steps   the step lists that the numbers come from\n"
            "  --html    a page with a picture of it, in FILE or on standard "
            "output\n"
            "  --svg     the picture alone, for a README\n"
            "  --ranks   the run as N processes share it (a power of two, at "
            "most\n            gradient_groups), on machines like this one: "
            "what each takes\n"
            "  --network how long they wait for each other: a rate such as "
            "100Mbit, 1Gbit,\n            25Gbit/s or 12.5GB/s, and a latency "
            "if it isn't 50us: 1Gbit,0.1ms\n\n"
            "A plan that doesn't fit ends with exit code 5, as training "
            "does.\n",
    .keys = PL_FOR_TRAIN | PL_FOR_PLAN,
    .model = PL_MODEL_PLANNED,
    .reads_configs = 1,
    .flags = flags,
    .run = run_plan,
};
