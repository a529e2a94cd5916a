/* layout.c: the literal layout of a config, before anything is shrunk. */
#include "base/check.h"
#include "device/choose.h"
#include "kernels/kernels.h"
#include "model/gpt.h"

enum {
    CHUNK_BYTES = 64 * 1024 * 1024, /* of logits that exist at once */
    CARD_CHUNK_BYTES = 1 << 30,     /* on a card, which has many more units that
                                     * share the rows */
    CHUNK_LEAST_ROWS = 64,          /* fewer make poor matrix products */
    SLICE_BYTES = 4 * 1024 * 1024,
    MLP_ROWS = 1024,  /* fills a matrix product; more rows gain nothing */
    SERVE_ROWS = 256, /* of a prompt at once: others wait meanwhile */
    SERVE_LOGITS = 64,
    SERVE_SLOTS = 8, /* more gain little on a processor */
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t chunk_rows(size_t V, const pl_gpt_layout *layout)
{
    const size_t bytes = layout->device.memory.spaces == PL_SPACES_APART
                             ? CARD_CHUNK_BYTES
                             : CHUNK_BYTES;
    /* a multiple, so that a card's tiles are full */
    size_t rows = bytes / pl_dtype_bytes(layout->dtype) / V / CHUNK_LEAST_ROWS *
                  CHUNK_LEAST_ROWS;
    return rows > CHUNK_LEAST_ROWS ? rows : CHUNK_LEAST_ROWS;
}

static pl_status make_levels(const uint8_t **out, const pl_checkpointing *wish,
                             size_t L, pl_heap *heap, pl_error *err)
{
    uint8_t *levels;
    pl_status status = pl_heap_take(heap, &levels, L, 1, err);
    if (status)
        return status;
    for (size_t l = 0; l < L; l++)
        switch (wish->kind) {
        case PL_CHECKPOINTING_OFF:
            levels[l] = 0;
            break;
        case PL_CHECKPOINTING_ON:
            levels[l] = PL_MAX_LEVEL;
            break;
        case PL_CHECKPOINTING_LEVEL:
            levels[l] = (uint8_t)wish->level;
            break;
        case PL_CHECKPOINTING_LIST:
            levels[l] = (uint8_t)wish->levels[l].whole;
            break;
        }
    *out = levels;
    return PL_OK;
}

static const pl_dtype dtypes[] = { [PL_DTYPE_FLOAT32] = PL_F32,
                                   [PL_DTYPE_BFLOAT16] = PL_BF16,
                                   [PL_DTYPE_FLOAT16] = PL_F16 };

pl_dtype pl_layout_dtype(const pl_config *config)
{
    return dtypes[config->dtype];
}

/* A card's tensor cores read 16 bits, and nothing rounds on the way to them. */
static int keeps_copies(const pl_config *config, const pl_device_info *device)
{
    if (config->working_copy == PL_WORKING_COPY_AUTO)
        return device->memory.spaces == PL_SPACES_APART &&
               device->products != PL_PRODUCTS_EXACT;
    return config->working_copy == PL_WORKING_COPY_RESIDENT;
}

static void set_serving(pl_gpt_layout *layout, const pl_shape *shape,
                        const pl_config *config)
{
    layout->slots = config->serve_slots != PL_NONE ? (size_t)config->serve_slots
                                                   : SERVE_SLOTS;
    layout->prefill = smaller(shape->T, SERVE_ROWS);
    layout->logit_rows = smaller(layout->prefill, SERVE_LOGITS);
    pl_gpt_layout_mend_serving(layout);
}

void pl_gpt_layout_mend_serving(pl_gpt_layout *layout)
{
    if (layout->logit_rows < layout->slots)
        layout->logit_rows = layout->slots;
    if (layout->prefill < layout->logit_rows)
        layout->prefill = layout->logit_rows;
}

pl_status pl_gpt_layout_make(pl_gpt_layout *layout, const pl_shape *shape,
                             const pl_config *config, pl_gpt_purpose purpose,
                             pl_heap *heap, pl_error *err)
{
    size_t batch_size = (size_t)config->batch_size,
           sequences = batch_size * (size_t)config->gradient_accumulation_steps,
           groups = (size_t)config->gradient_groups;
    /* to the tied embedding a group within a batch is a batch of its own */
    size_t batch = smaller(batch_size, sequences / groups);
    size_t eval_batch = config->eval_batch_size != PL_NONE
                            ? (size_t)config->eval_batch_size
                            : batch_size;
    size_t eval_T = config->eval_block_size != PL_NONE
                        ? (size_t)config->eval_block_size
                        : shape->T;

    PL_CHECK((int64_t)groups <= pl_config_most_groups(config));
    *layout = (pl_gpt_layout){
        .purpose = purpose,
        .batch = batch,
        .batches = sequences / batch,
        .groups = groups,
        .sync_interval = (size_t)config->sync_interval,
        .micro = batch,
        .eval_T = eval_T,
        /* more rows than training's would only have to be shrunk again */
        .eval_micro = smaller(eval_batch, batch * (shape->T / eval_T)),
        .mlp_rows = MLP_ROWS,
        .prefill = shape->T,
        .slice_bytes = SLICE_BYTES,
        .pack_columns = PL_GEMM_COLUMNS,
        .dropout = config->dropout,
        .dtype = pl_layout_dtype(config),
        .weights = config->weights == PL_WEIGHTS_BF16 ? PL_BF16 : PL_F32,
        .moments = config->optimizer_state == PL_OPTIMIZER_STATE_8BIT
                       ? PL_MOMENTS_8BIT
                       : PL_MOMENTS_F32,
        .optimizer = config->optimizer,
        .muon_scale = config->muon_scale,
    };
    pl_status status = pl_device_choose(&layout->device, config, err);
    if (status)
        return status;
    if (purpose == PL_PURPOSE_SERVING)
        set_serving(layout, shape, config);
    layout->copy = keeps_copies(config, &layout->device) ? PL_COPY_RESIDENT
                                                         : PL_COPY_NONE;
    layout->chunk_rows = chunk_rows(shape->V, layout);
    return make_levels(&layout->levels, &config->grad_checkpoint, shape->L,
                       heap, err);
}
