/* explain_json.c: an explanation for scripts. */
#include "cli/explain_view.h"
#include "format/jsontext.h"

#include <stdio.h>

static const char *const keys[PL_EXPLAIN_COLUMNS] = { "train", "eval_first",
                                                      "eval_later" };

static const char *flag(int value)
{
    return value ? "true" : "false";
}

static void put_programs(pl_json_text *j, const pl_explain *e)
{
    pl_json_text_open(j, "programs", '{');
    for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++) {
        const pl_tape_peak *peak = pl_explain_column(&e->result, i);
        size_t need = pl_explain_column_bytes(e->need_bytes, i);
        pl_json_text_open(j, keys[i], '{');
        pl_json_text_whole(j, "live_bytes", peak->live_bytes);
        pl_json_text_whole(j, "slack_bytes", need - peak->live_bytes);
        pl_json_text_whole(j, "needed_bytes", need + e->context_bytes);
        pl_json_text_string(j, "line", peak->line);
        pl_json_text_open(j, "items", '{');
        for (int item = 0; item < PL_ITEM_COUNT; item++) {
            char key[48];
            snprintf(key, sizeof key, "%s_bytes", pl_item_key((pl_item)item));
            pl_json_text_whole(j, key, peak->items[item]);
        }
        pl_json_text_close(j, '}');
        pl_json_text_close(j, '}');
    }
    pl_json_text_close(j, '}');
}

static void put_failure(pl_json_text *j, const pl_explain *e)
{
    static const char *const phases[PL_TAPE_COUNT] = { "build", "eval_first",
                                                       "update_first", "update",
                                                       "eval_later" };
    const pl_tape_failure *f = pl_nanogpt_failure(&e->result);
    if (!f) {
        pl_json_text_raw(j, "fails", "null");
        return;
    }
    pl_json_text_open(j, "fails", '{');
    pl_json_text_string(j, "phase", phases[f->phase]);
    pl_json_text_string(j, "line", f->line);
    pl_json_text_string(j, "tensor", f->name);
    pl_json_text_whole(j, "wanted_bytes", f->wanted_bytes);
    pl_json_text_whole(j, "live_bytes", f->live_bytes);
    pl_json_text_close(j, '}');
}

static void put_lists(pl_json_text *j, const pl_explain *e)
{
    pl_json_text_open(j, "saved_per_layer", '[');
    for (size_t i = 0; i < e->result.saved_count; i++) {
        pl_json_text_open(j, NULL, '{');
        pl_json_text_string(j, "name", e->result.saved[i].name);
        pl_json_text_string(j, "for", e->result.saved[i].used_by);
        pl_json_text_whole(j, "bytes", e->result.saved[i].bytes);
        pl_json_text_close(j, '}');
    }
    pl_json_text_close(j, ']');
    pl_json_text_open(j, "ways", '[');
    for (size_t w = 0; w < e->way_count; w++) {
        const pl_explain_way *way = &e->ways[w];
        pl_json_text_open(j, NULL, '{');
        pl_json_text_string(j, "name", way->name);
        pl_json_text_raw(j, "estimated", flag(way->estimated));
        for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++) {
            char key[32];
            snprintf(key, sizeof key, "%s_bytes", keys[i]);
            pl_json_text_whole(j, key,
                               pl_explain_column(&way->result, i)->live_bytes);
        }
        if (e->memory_bytes)
            pl_json_text_raw(j, "fits",
                             flag(pl_nanogpt_failure(&way->result) == NULL));
        pl_json_text_close(j, '}');
    }
    pl_json_text_close(j, ']');
    pl_json_text_open(j, "llmc", '{');
    pl_json_text_whole(j, "cpu_bytes", (size_t)pl_llmc_cpu_bytes(&e->job));
    pl_json_text_open(j, "cuda_bytes", '[');
    for (int r = 0; r < PL_LLMC_RECOMPUTATIONS; r++)
        pl_json_text_whole(j, NULL, (size_t)pl_llmc_cuda_bytes(&e->job, r));
    pl_json_text_close(j, ']');
    pl_json_text_close(j, '}');
    pl_json_text_open(j, "advice", '[');
    for (size_t i = 0; i < e->advice.count; i++) {
        const pl_advice *row = &e->advice.rows[i];
        pl_json_text_open(j, NULL, '{');
        pl_json_text_string(j, "name", row->name);
        pl_json_text_string(j, "note", row->note);
        pl_json_text_whole(j, "train_bytes", row->train_bytes);
        pl_json_text_whole(j, "eval_first_bytes", row->eval_first_bytes);
        pl_json_text_whole(j, "eval_later_bytes", row->eval_later_bytes);
        if (e->memory_bytes)
            pl_json_text_raw(j, "fits", flag(row->fits));
        pl_json_text_close(j, '}');
    }
    pl_json_text_close(j, ']');
}

pl_status pl_explain_print_json(const pl_explain *e, pl_heap *heap,
                                pl_error *err)
{
    enum { TEXT_BYTES = 64 * 1024 };
    char *text;
    pl_status status = pl_heap_take(heap, &text, TEXT_BYTES, 1, err);
    if (status)
        return status;
    pl_json_text j = pl_json_text_begin(text, TEXT_BYTES);
    pl_json_text_whole(&j, "parameters", e->result.parameters);
    pl_json_text_whole(&j, "vocab_size", e->job.V);
    pl_json_text_whole(&j, "n_head", e->job.H);
    pl_json_text_raw(&j, "heads_divide", flag(e->heads == e->job.H));
    if (e->card)
        pl_json_text_string(&j, "card", e->card->name);
    pl_json_text_whole(&j, "memory_bytes", e->memory_bytes);
    pl_json_text_whole(&j, "context_bytes", e->context_bytes);
    put_programs(&j, e);
    put_failure(&j, e);
    pl_json_text_whole(&j, "plimsoll_bytes", e->own_bytes);
    pl_json_text_whole(&j, "plimsoll_least_bytes", e->own_least);
    put_lists(&j, e);
    status = pl_json_text_end(&j, err);
    if (!status)
        fwrite(j.text, 1, j.used, stdout);
    return status;
}
