/* cmd_plan.c: what takes what, before anything runs. */
#include "cli/command.h"
#include "cli/term.h"
#include "format/jsontext.h"
#include "train/session.h"

#include <stdio.h>
#include <string.h>

enum { FLAG_JSON = 1, FLAG_STEPS = 2 };

typedef struct plan {
    const pl_config *config;
    pl_gpt gpt;
    const char *vocab_from;
    size_t reserve_bytes;
} plan;

static size_t micro_steps(const plan *p)
{
    const pl_gpt_layout *layout = &p->gpt.layout;
    return (size_t)p->config->gradient_accumulation_steps *
           (layout->batch / layout->micro);
}

/* ---- for people ---- */

static void print_model(const plan *p)
{
    const pl_shape *s = &p->gpt.shape;
    const pl_gpt_layout *layout = &p->gpt.layout;
    size_t updates = layout->micro * micro_steps(p);

    printf(
        "%smodel%s       %zu layers, %zu heads of %zu, %zu channels, context "
        "%zu, vocabulary %zu\n            (%s)\n",
        pl_term_out(PL_TERM_BOLD), pl_term_out_end(), s->L, s->H, s->D, s->C,
        s->T, s->V, p->vocab_from);
    printf("%sparameters%s  %s (%.2fM without positions, as nanoGPT counts)\n",
           pl_term_out(PL_TERM_BOLD), pl_term_out_end(),
           pl_term_count(pl_param_count(s)).text,
           (double)pl_param_count_nanogpt(s) / 1e6);
    printf("%supdate%s      %zu x %zu sequences of %zu tokens: %s tokens\n",
           pl_term_out(PL_TERM_BOLD), pl_term_out_end(), layout->micro,
           micro_steps(p), s->T, pl_term_count(updates * s->T).text);
    printf("%seval%s        %zu sequences of %zu tokens at once\n",
           pl_term_out(PL_TERM_BOLD), pl_term_out_end(), layout->eval_micro,
           layout->eval_T);
    printf("%sdtype%s       %s\n\n", pl_term_out(PL_TERM_BOLD),
           pl_term_out_end(), p->config->dtype);
}

static void print_row(const char *name, const size_t bytes[PL_PROGRAM_COUNT],
                      const char *style)
{
    printf("%s%-18s", style, name);
    for (int i = 0; i < PL_PROGRAM_COUNT; i++)
        printf(" %11s", bytes[i] ? pl_term_bytes(bytes[i]).text : "-");
    printf("%s\n", *style ? pl_term_out_end() : "");
}

static void print_table(const plan *p)
{
    const pl_placement *place = &p->gpt.placement;
    size_t peaks[PL_PROGRAM_COUNT], rest[PL_PROGRAM_COUNT], most = 0;

    printf("%-18s", "");
    for (int i = 0; i < PL_PROGRAM_COUNT; i++) {
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
            print_row(pl_class_name((pl_class) class), bytes, "");
    }
    for (int i = 0; i < PL_PROGRAM_COUNT; i++)
        most += rest[i];
    if (most)
        print_row("gaps, alignment", rest, pl_term_out(PL_TERM_DIM));
    print_row("peak", peaks, pl_term_out(PL_TERM_BOLD));
}

static void print_total(const plan *p)
{
    const pl_placement *place = &p->gpt.placement;
    size_t arena = place->arena_bytes, bound = place->lower_bound_bytes;
    printf("\narena    %11s  %s bytes, one mapping for all five\n",
           pl_term_bytes(arena).text, pl_term_count(arena).text);
    printf("bound    %11s  no placement needs less; this one is %.2f %% "
           "above\n",
           pl_term_bytes(bound).text,
           100.0 * (double)(arena - bound) / (double)bound);
    printf("reserve  %11s  program, libraries, stacks, page tables\n",
           pl_term_bytes(p->reserve_bytes).text);
    printf("%stotal    %11s%s\n", pl_term_out(PL_TERM_BOLD),
           pl_term_bytes(arena + p->reserve_bytes).text, pl_term_out_end());
}

/* ---- the step lists ---- */

static void print_steps(const plan *p)
{
    static const char access[] = { 'r', 'w', 'u', 's' };
    const pl_graph *graph = &p->gpt.graph;
    for (int id = 0; id < PL_PROGRAM_COUNT; id++) {
        const pl_program *program = &graph->programs[id];
        printf("\n%s: %zu steps, %zu of them repeated per micro-batch\n",
               pl_program_name((pl_program_id)id), program->n_steps,
               program->loop_steps);
        for (size_t at = 0; at < program->n_steps; at++) {
            const pl_step *step = &program->steps[at];
            printf("%5zu  %-16s", at, pl_op_name(step->op));
            for (int i = 0; i < step->n_args; i++)
                if (step->args[i].buffer != PL_NO_BUFFER)
                    printf(" %c:%s", access[step->args[i].access],
                           graph->buffers[step->args[i].buffer].name);
            printf("\n");
        }
    }
}

/* ---- for scripts ---- */

static pl_status print_json(const plan *p, pl_heap *heap, pl_error *err)
{
    const pl_placement *place = &p->gpt.placement;
    enum { TEXT_BYTES = 64 * 1024 };
    char *text;
    pl_status status = pl_heap_take(heap, &text, TEXT_BYTES, 1, err);
    if (status)
        return status;
    pl_json_text j = pl_json_text_begin(text, TEXT_BYTES);
    pl_json_text_whole(&j, "parameters", pl_param_count(&p->gpt.shape));
    pl_json_text_whole(&j, "parameters_nanogpt",
                       pl_param_count_nanogpt(&p->gpt.shape));
    pl_json_text_whole(&j, "vocab_size", p->gpt.shape.V);
    pl_json_text_whole(&j, "head_dim", p->gpt.shape.D);
    pl_json_text_whole(&j, "arena_bytes", place->arena_bytes);
    pl_json_text_whole(&j, "reserve_bytes", p->reserve_bytes);
    pl_json_text_whole(&j, "lower_bound_bytes", place->lower_bound_bytes);
    pl_json_text_whole(&j, "micro_batch", p->gpt.layout.micro);
    pl_json_text_whole(&j, "accumulation", micro_steps(p));
    pl_json_text_string(&j, "dtype", p->config->dtype);
    pl_json_text_open(&j, "programs", '{');
    for (int i = 0; i < PL_PROGRAM_COUNT; i++) {
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
    status = pl_json_text_end(&j, err);
    if (!status)
        fwrite(j.text, 1, j.used, stdout);
    return status;
}

static pl_status run_plan(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    plan p = { .config = &args->config };
    size_t vocab_size;
    pl_status status = pl_cli_no_paths(args, "A config file ends in .py", err);
    if (!status)
        status = pl_cli_vocabulary(p.config, heap, &vocab_size, &p.vocab_from,
                                   err);
    if (!status)
        status = pl_session_plan(&p.gpt, p.config, vocab_size, &pl_term_log,
                                 heap, err);
    if (status)
        return status;
    p.reserve_bytes = pl_session_reserve_bytes(p.gpt.placement.arena_bytes,
                                               p.gpt.layout.threads);
    if (args->flags & FLAG_JSON)
        return print_json(&p, heap, err);
    pl_cli_say_ignored(p.config);
    print_model(&p);
    print_table(&p);
    print_total(&p);
    if (args->flags & FLAG_STEPS)
        print_steps(&p);
    return PL_OK;
}

static const char *const flags[] = { "--json", "--steps", NULL };

const pl_command pl_command_plan = {
    .name = "plan",
    .arguments = "[CONFIG.py ...] [--key=value ...] [--json] [--steps]",
    .summary = "every byte of training, evaluation, sampling and saving",
    .text = "Needs no data and no device, and answers at once. Weights, "
            "gradients and moments\nlive throughout; the programs lie over "
            "each other above them, so evaluation,\nsampling and saving add "
            "nothing to training's peak.\n\n"
            "  --json    the numbers, for scripts\n"
            "  --steps   the step lists that the numbers come from\n",
    .keys = PL_FOR_TRAIN,
    .reads_configs = 1,
    .flags = flags,
    .run = run_plan,
};
