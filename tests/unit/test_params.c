#include "model/params.h"
#include "support/asserts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static pl_shape make_shape(size_t L, size_t H, size_t C, size_t V, size_t T,
                           pl_bias bias)
{
    pl_shape shape = {
        .L = L, .H = H, .D = C / H, .C = C, .V = V, .T = T, .bias = bias
    };
    pl_shape_complete(&shape);
    return shape;
}

static const struct {
    pl_param_kind kind;
    const char *name;
} in_layer[] = {
    { PL_LN1_W, "ln_1.weight" },        { PL_LN1_B, "ln_1.bias" },
    { PL_QKV_W, "attn.c_attn.weight" }, { PL_QKV_B, "attn.c_attn.bias" },
    { PL_ATT_W, "attn.c_proj.weight" }, { PL_ATT_B, "attn.c_proj.bias" },
    { PL_LN2_W, "ln_2.weight" },        { PL_LN2_B, "ln_2.bias" },
    { PL_FC_W, "mlp.c_fc.weight" },     { PL_FC_B, "mlp.c_fc.bias" },
    { PL_MLP_W, "mlp.c_proj.weight" },  { PL_MLP_B, "mlp.c_proj.bias" },
};
enum { IN_LAYER = sizeof in_layer / sizeof in_layer[0] };

static void assert_slot(const pl_shape *shape, size_t slot, pl_param_kind kind,
                        int layer, const char *name)
{
    char full[128];
    pl_param param = pl_param_at(shape, slot);
    if (layer < 0)
        snprintf(full, sizeof full, "transformer.%s", name);
    else
        snprintf(full, sizeof full, "transformer.h.%d.%s", layer, name);
    assert_string_equal(pl_param_name_of(&param).text, full);
    assert_int_equal(param.kind, kind);
    assert_int_equal(param.layer, layer);
    assert_int_equal(pl_param_slot(shape, kind, layer), slot);
}

static void slots_follow_the_table_with_the_blocks_in_the_middle(void **state)
{
    (void)state;
    for (size_t L = 1; L <= 3; L += 2) {
        pl_shape shape = make_shape(L, 2, 8, 11, 5, PL_BIAS_NONE);
        size_t slot = 0;
        assert_slot(&shape, slot++, PL_WTE, -1, "wte.weight");
        assert_slot(&shape, slot++, PL_WPE, -1, "wpe.weight");
        for (int layer = 0; layer < (int)L; layer++)
            for (int i = 0; i < IN_LAYER; i++)
                assert_slot(&shape, slot++, in_layer[i].kind, layer,
                            in_layer[i].name);
        assert_slot(&shape, slot++, PL_LNF_W, -1, "ln_f.weight");
        assert_slot(&shape, slot++, PL_LNF_B, -1, "ln_f.bias");
        for (int layer = 0; layer < (int)L; layer++) {
            assert_slot(&shape, slot++, PL_QNORM_W, layer,
                        "attn.q_norm.weight");
            assert_slot(&shape, slot++, PL_KNORM_W, layer,
                        "attn.k_norm.weight");
        }
        assert_int_equal(pl_param_slots(&shape), slot);
        assert_int_equal(pl_param_head(&shape), PL_WTE);
    }
}

/* Behind those that came before it, so that theirs stay what they are. */
static void a_head_of_its_own_moves_no_slot_before_it(void **state)
{
    (void)state;
    pl_shape shape = make_shape(3, 2, 8, 11, 5, PL_BIAS_ALL);
    size_t all = pl_param_slots(&shape), count = pl_param_count(&shape),
           tied = pl_param_slot(&shape, PL_LNF_B, -1) + 1;
    shape.head = PL_HEAD_OWN;
    assert_int_equal(pl_param_slots(&shape), all + 1);
    assert_int_equal(pl_param_slot(&shape, PL_HEAD_W, -1), tied);
    assert_int_equal(pl_param_count(&shape), count + 11 * 8);
    assert_int_equal(pl_param_head(&shape), PL_HEAD_W);
    pl_param param = pl_param_at(&shape, tied);
    assert_string_equal(pl_param_name_of(&param).text, "lm_head.weight");
    assert_int_equal(param.rows, 11);
    assert_int_equal(param.cols, 8);
    assert_true(param.is_2d && !param.is_bias);
    param = pl_param_at(&shape, tied - 1);
    assert_string_equal(pl_param_name_of(&param).text, "transformer.ln_f.bias");
}

static void shapes_are_hugging_faces(void **state)
{
    (void)state;
    /* heads of their own width: A = 3 * 6 = 18, C = 16 */
    pl_shape shape = make_shape(2, 3, 16, 11, 5, PL_BIAS_ALL);
    shape.D = 6;
    shape.A = 18;
    static const struct {
        pl_param_kind kind;
        int layer;
        size_t rows, cols;
        pl_init init;
    } rows[] = {
        { PL_WTE, -1, 11, 16, PL_INIT_NORMAL },
        { PL_WPE, -1, 5, 16, PL_INIT_NORMAL },
        { PL_LN1_W, 1, 16, 1, PL_INIT_ONE },
        { PL_LN1_B, 1, 16, 1, PL_INIT_ZERO },
        { PL_QKV_W, 1, 16, 54, PL_INIT_NORMAL },
        { PL_QKV_B, 1, 54, 1, PL_INIT_ZERO },
        { PL_ATT_W, 1, 18, 16, PL_INIT_RESIDUAL },
        { PL_ATT_B, 1, 16, 1, PL_INIT_ZERO },
        { PL_LN2_W, 1, 16, 1, PL_INIT_ONE },
        { PL_LN2_B, 1, 16, 1, PL_INIT_ZERO },
        { PL_FC_W, 1, 16, 64, PL_INIT_NORMAL },
        { PL_FC_B, 1, 64, 1, PL_INIT_ZERO },
        { PL_MLP_W, 1, 64, 16, PL_INIT_RESIDUAL },
        { PL_MLP_B, 1, 16, 1, PL_INIT_ZERO },
        { PL_LNF_W, -1, 16, 1, PL_INIT_ONE },
        { PL_LNF_B, -1, 16, 1, PL_INIT_ZERO },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pl_param param = pl_param_at(
            &shape, pl_param_slot(&shape, rows[i].kind, rows[i].layer));
        assert_int_equal(param.rows, rows[i].rows);
        assert_int_equal(param.cols, rows[i].cols);
        assert_int_equal(param.init, rows[i].init);
        /* weight decay: as nanoGPT, what has two dimensions */
        assert_int_equal(param.is_2d, rows[i].cols > 1);
        assert_int_equal(param.is_bias, strstr(pl_param_name_of(&param).text,
                                               ".bias") != NULL);
    }
}

/* A model whose matrices have one column still decays them. */
static void two_dimensions_are_a_matter_of_the_table(void **state)
{
    (void)state;
    pl_shape shape = make_shape(1, 1, 1, 3, 2, PL_BIAS_NONE);
    assert_true(pl_param_at(&shape, pl_param_slot(&shape, PL_WTE, -1)).is_2d);
    assert_false(
        pl_param_at(&shape, pl_param_slot(&shape, PL_LNF_W, -1)).is_2d);
}

/* By name: what is added to x.weight is x.bias, and nothing else is. */
static void a_weight_knows_its_bias(void **state)
{
    (void)state;
    pl_shape shape = make_shape(2, 2, 8, 11, 5, PL_BIAS_ALL);
    int linked[PL_PARAM_KINDS] = { 0 };
    shape.head = PL_HEAD_OWN;
    for (size_t slot = 0; slot < pl_param_slots(&shape); slot++) {
        pl_param param = pl_param_at(&shape, slot);
        pl_param_kind kind = pl_param_bias(param.kind);
        assert_int_equal(
            kind != PL_NO_PARAM,
            param.kind < PL_QNORM_W &&
                (param.role == PL_ROLE_PRODUCT || param.role == PL_ROLE_NORM));
        if (kind == PL_NO_PARAM)
            continue;
        pl_param bias = pl_param_at(&shape,
                                    pl_param_slot(&shape, kind, param.layer));
        pl_param_name name = pl_param_name_of(&param);
        char *end = strstr(name.text, ".weight");
        assert_non_null(end);
        memcpy(end, ".bias", sizeof ".bias");
        assert_string_equal(pl_param_name_of(&bias).text, name.text);
        assert_true(bias.is_bias);
        assert_int_equal(bias.rows, param.is_2d ? param.cols : param.rows);
        linked[kind]++;
    }
    for (size_t slot = 0; slot < pl_param_slots(&shape); slot++) {
        pl_param param = pl_param_at(&shape, slot);
        assert_int_equal(linked[param.kind] > 0, param.is_bias);
    }
}

static void matrices_are_decayed_and_products_read_them(void **state)
{
    (void)state;
    for (int own = 0; own < 2; own++) {
        pl_shape shape = make_shape(2, 2, 8, 11, 5, PL_BIAS_ALL);
        shape.head = own ? PL_HEAD_OWN : PL_HEAD_TIED;
        for (size_t slot = 0; slot < pl_param_slots(&shape); slot++) {
            pl_param param = pl_param_at(&shape, slot);
            assert_int_equal(param.group == PL_PARAM_DECAYED, param.is_2d);
            int looked_up = param.kind == PL_WPE ||
                            (own && param.kind == PL_WTE);
            assert_int_equal(pl_param_is_factor(&shape, &param),
                             param.is_2d && !looked_up);
        }
    }
}

static void other_programs_names_are_in_the_table(void **state)
{
    (void)state;
    static const struct {
        pl_param_kind kind;
        int layer;
        const char *gguf;
        int llmc;
    } cases[] = {
        { PL_WTE, -1, "token_embd.weight", 0 },
        { PL_WPE, -1, "position_embd.weight", 1 },
        { PL_LN1_B, 1, "blk.1.attn_norm.bias", 3 },
        { PL_QKV_W, 1, "blk.1.attn_qkv.weight", 4 },
        { PL_ATT_W, 0, "blk.0.attn_output.weight", 6 },
        { PL_LN2_W, 0, "blk.0.ffn_norm.weight", 8 },
        { PL_FC_B, 1, "blk.1.ffn_up.bias", 11 },
        { PL_MLP_W, 1, "blk.1.ffn_down.weight", 12 },
        { PL_LNF_B, -1, "output_norm.bias", 15 },
        { PL_HEAD_W, -1, "output.weight", -1 },
    };
    pl_shape shape = make_shape(2, 2, 8, 11, 5, PL_BIAS_ALL);
    shape.head = PL_HEAD_OWN;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pl_param param = pl_param_at(
            &shape, pl_param_slot(&shape, cases[i].kind, cases[i].layer));
        assert_string_equal(pl_param_gguf_name(&param).text, cases[i].gguf);
        assert_int_equal(pl_param_llmc(cases[i].kind), cases[i].llmc);
        assert_int_equal(pl_param_is_layered(cases[i].kind),
                         cases[i].layer >= 0);
    }
    for (int at = 0; at < 16; at++) /* each of llm.c's is one of ours */
        assert_int_equal(pl_param_llmc(pl_param_of_llmc(at)), at);
    assert_int_equal(pl_param_of_llmc(16), PL_NO_PARAM);
}

static void biases_are_absent_from_a_model_without(void **state)
{
    (void)state;
    pl_shape with = make_shape(2, 2, 8, 11, 5, PL_BIAS_ALL);
    pl_shape without = make_shape(2, 2, 8, 11, 5, PL_BIAS_NONE);
    size_t absent = 0;
    assert_int_equal(pl_param_slots(&with), pl_param_slots(&without));
    for (size_t slot = 0; slot < pl_param_slots(&with); slot++) {
        pl_param param = pl_param_at(&with, slot);
        if (param.kind >= PL_QNORM_W) { /* no GPT-2's */
            assert_false(pl_param_present(&with, &param));
            assert_false(pl_param_is_written(&with, &param));
            continue;
        }
        assert_true(pl_param_present(&with, &param));
        assert_int_equal(pl_param_present(&without, &param), !param.is_bias);
        assert_true(pl_param_is_written(&without, &param));
        absent += param.is_bias ? param.rows * param.cols : 0;
    }
    assert_int_equal(absent, 2 * (8 + 24 + 8 + 8 + 32 + 8) + 8);
    assert_int_equal(pl_param_count(&with), pl_param_count(&without) + absent);
}

/* Nor do files have one, which for other models are zeros. */
static void rmsnorm_has_no_bias(void **state)
{
    (void)state;
    for (int bias = 0; bias < 2; bias++) {
        pl_shape shape = make_shape(2, 2, 8, 11, 5,
                                    bias ? PL_BIAS_ALL : PL_BIAS_NONE);
        size_t with_layernorm = pl_param_count(&shape);
        shape.norm = PL_NORM_RMS;
        for (size_t slot = 0; slot < pl_param_slots(&shape); slot++) {
            pl_param param = pl_param_at(&shape, slot);
            if (param.kind >= PL_QNORM_W)
                continue;
            int is_norms = strstr(pl_param_name_of(&param).text, "ln_") != NULL,
                absent = param.is_bias && (is_norms || !bias);
            assert_int_equal(pl_param_present(&shape, &param), !absent);
            assert_int_equal(pl_param_is_written(&shape, &param), !absent);
        }
        assert_int_equal(pl_param_count(&shape) + (bias ? 5 * 8 : 0),
                         with_layernorm);
    }
}

/* ---- other families ---- */

static pl_shape make_llama(pl_mlp mlp)
{
    pl_shape shape = { .L = 2,
                       .H = 4,
                       .KV = 2,
                       .D = 6,
                       .C = 10,
                       .V = 11,
                       .T = 5,
                       .F = 7,
                       .norm = PL_NORM_RMS,
                       .head = PL_HEAD_OWN,
                       .bias = PL_BIAS_ALL,
                       .family = PL_FAMILY_LLAMA,
                       .position = PL_POSITION_ROTARY,
                       .mlp = mlp,
                       .qk_norm = PL_QK_NORM_RMS };
    pl_shape_complete(&shape);
    return shape;
}

/* Every tensor that transformers' Llama would have, by its name and size, and
 * where it lies in ours. */
static void llamas_tensors_are_hugging_faces(void **state)
{
    (void)state;
    static const struct {
        pl_param_kind kind;
        size_t piece;
        const char *name, *gguf;
        size_t first, rows, cols;
    } cases[] = {
        { PL_WTE, 0, "model.embed_tokens.weight", "token_embd.weight", 0, 11,
          10 },
        { PL_LN1_W, 0, "model.layers.1.input_layernorm.weight",
          "blk.1.attn_norm.weight", 0, 10, 1 },
        { PL_QKV_W, 0, "model.layers.1.self_attn.q_proj.weight",
          "blk.1.attn_q.weight", 0, 24, 10 },
        { PL_QKV_W, 1, "model.layers.1.self_attn.k_proj.weight",
          "blk.1.attn_k.weight", 240, 12, 10 },
        { PL_QKV_W, 2, "model.layers.1.self_attn.v_proj.weight",
          "blk.1.attn_v.weight", 360, 12, 10 },
        { PL_QKV_B, 2, "model.layers.1.self_attn.v_proj.bias",
          "blk.1.attn_v.bias", 36, 12, 1 },
        { PL_QNORM_W, 0, "model.layers.1.self_attn.q_norm.weight",
          "blk.1.attn_q_norm.weight", 0, 6, 1 },
        { PL_KNORM_W, 0, "model.layers.1.self_attn.k_norm.weight",
          "blk.1.attn_k_norm.weight", 0, 6, 1 },
        { PL_ATT_W, 0, "model.layers.1.self_attn.o_proj.weight",
          "blk.1.attn_output.weight", 0, 10, 24 },
        { PL_LN2_W, 0, "model.layers.1.post_attention_layernorm.weight",
          "blk.1.ffn_norm.weight", 0, 10, 1 },
        { PL_FC_W, 0, "model.layers.1.mlp.gate_proj.weight",
          "blk.1.ffn_gate.weight", 0, 7, 10 },
        { PL_FC_W, 1, "model.layers.1.mlp.up_proj.weight",
          "blk.1.ffn_up.weight", 70, 7, 10 },
        { PL_FC_B, 1, "model.layers.1.mlp.up_proj.bias", "blk.1.ffn_up.bias", 7,
          7, 1 },
        { PL_MLP_W, 0, "model.layers.1.mlp.down_proj.weight",
          "blk.1.ffn_down.weight", 0, 10, 7 },
        { PL_LNF_W, 0, "model.norm.weight", "output_norm.weight", 0, 10, 1 },
        { PL_HEAD_W, 0, "lm_head.weight", "output.weight", 0, 11, 10 },
    };
    const pl_shape shape = make_llama(PL_MLP_SWIGLU);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pl_param param = pl_param_at(
            &shape, pl_param_slot(&shape, cases[i].kind, 1));
        const pl_param_piece piece = pl_param_piece_at(&shape, &param,
                                                       cases[i].piece);
        assert_true(pl_param_present(&shape, &param));
        assert_string_equal(piece.name.text, cases[i].name);
        assert_string_equal(piece.gguf.text, cases[i].gguf);
        assert_int_equal(piece.first, cases[i].first);
        assert_int_equal(piece.rows, cases[i].rows);
        assert_int_equal(piece.cols, cases[i].cols);
    }
}

/* The pieces of a tensor lie side by side and are all of it; its parts are all
 * of its outputs, in every family. */
static void pieces_and_parts_make_up_the_whole(void **state)
{
    (void)state;
    for (int family = 0; family < 3; family++)
        for (int mlp = 0; mlp < 3; mlp++) {
            pl_shape shape = make_llama((pl_mlp)mlp);
            shape.family = (pl_family)family;
            for (size_t slot = 0; slot < pl_param_slots(&shape); slot++) {
                const pl_param param = pl_param_at(&shape, slot);
                size_t at = 0, out = 0;
                for (size_t k = 0; k < pl_param_pieces(&shape, &param); k++) {
                    const pl_param_piece p = pl_param_piece_at(&shape, &param,
                                                               k);
                    assert_int_equal(p.first, at);
                    at += p.rows * p.cols;
                }
                assert_int_equal(at, param.rows * param.cols);
                for (size_t k = 0; k < pl_param_parts(&shape, &param); k++) {
                    const pl_param_part p = pl_param_part_at(&shape, &param, k);
                    assert_int_equal(p.first, out);
                    out += p.count;
                }
                assert_int_equal(out, param.out ? param.out : param.rows);
                if (param.role == PL_ROLE_PRODUCT) {
                    const int turned = family != PL_FAMILY_GPT2;
                    assert_int_equal(param.layout == PL_LAYOUT_OUT_IN, turned);
                    assert_int_equal(param.rows, turned ? param.out : param.in);
                }
            }
            const pl_param qkv = pl_param_at(
                &shape, pl_param_slot(&shape, PL_QKV_W, 0));
            const pl_param fc = pl_param_at(&shape,
                                            pl_param_slot(&shape, PL_FC_W, 0));
            assert_int_equal(pl_param_parts(&shape, &qkv), 3);
            assert_int_equal(pl_param_parts(&shape, &fc),
                             mlp == PL_MLP_SWIGLU ? 2 : 1);
            assert_int_equal(pl_param_pieces(&shape, &qkv), family ? 3 : 1);
        }
}

static void counts_are_nanogpts(void **state)
{
    (void)state;
    pl_shape shape = make_shape(12, 12, 768, 50304, 1024, PL_BIAS_NONE);
    assert_int_equal(pl_param_count(&shape), 124373760);
    shape = make_shape(12, 12, 576, 50304, 1024, PL_BIAS_NONE);
    assert_int_equal(pl_param_count(&shape), 77355072);
    assert_int_equal(pl_param_count_nanogpt(&shape), 76765248);
    shape = make_shape(12, 8, 512, 50304, 1024, PL_BIAS_NONE);
    assert_int_equal(pl_param_count(&shape), 64041472);
    /* OpenAI's GPT-2: 124,439,808 with its biases */
    shape = make_shape(12, 12, 768, 50257, 1024, PL_BIAS_ALL);
    assert_int_equal(pl_param_count(&shape), 124439808);
}

/* ---- initial values ---- */

static float *init(const pl_shape *shape, size_t slot, unsigned seed,
                   size_t *count)
{
    pl_param param = pl_param_at(shape, slot);
    *count = param.rows * param.cols;
    float *out = malloc(*count * sizeof *out);
    assert_non_null(out);
    pl_param_init(shape, slot, seed, 0, *count, out);
    return out;
}

/* Mean 0 and the given deviation, within five standard errors. */
static void assert_normal(const float *x, size_t n, double std)
{
    double sum = 0, squares = 0, fourth = 0, count = (double)n;
    for (size_t i = 0; i < n; i++) {
        double z = (double)x[i] / std;
        sum += z;
        squares += z * z;
        fourth += z * z * z * z;
    }
    if (!(fabs(sum / count) < 5 / sqrt(count)) ||
        !(fabs(squares / count - 1) < 5 * sqrt(2 / count)) ||
        !(fabs(fourth / count - 3) < 5 * sqrt(96 / count)))
        fail_msg("in units of %g: mean %g, square %g, fourth %g", std,
                 sum / count, squares / count, fourth / count);
}

static void weights_begin_normal_and_the_residual_ones_smaller(void **state)
{
    (void)state;
    for (size_t L = 1; L <= 3; L += 2) {
        pl_shape shape = make_shape(L, 2, 64, 257, 128, PL_BIAS_ALL);
        for (size_t slot = 0; slot < pl_param_slots(&shape); slot++) {
            size_t n;
            pl_param param = pl_param_at(&shape, slot);
            float *x = init(&shape, slot, 1337, &n);
            int residual = strstr(pl_param_name_of(&param).text,
                                  "c_proj.weight") != NULL;
            if (param.is_2d)
                assert_normal(x, n,
                              residual ? 0.02 / sqrt(2.0 * (double)L) : 0.02);
            free(x);
        }
    }
}

static void norms_begin_as_ones_and_biases_as_zeros(void **state)
{
    (void)state;
    pl_shape shape = make_shape(2, 2, 8, 11, 5, PL_BIAS_ALL);
    for (size_t slot = 0; slot < pl_param_slots(&shape); slot++) {
        size_t n;
        pl_param param = pl_param_at(&shape, slot);
        float *x = init(&shape, slot, 1337, &n);
        for (size_t i = 0; i < n && !param.is_2d; i++)
            assert_true(x[i] == (param.is_bias ? 0.0f : 1.0f));
        free(x);
    }
}

static void seeds_and_tensors_have_values_of_their_own(void **state)
{
    (void)state;
    pl_shape shape = make_shape(2, 2, 8, 11, 11, PL_BIAS_NONE);
    size_t n, wte = pl_param_slot(&shape, PL_WTE, -1);
    float *one = init(&shape, wte, 1, &n), *same = init(&shape, wte, 1, &n);
    float *other = init(&shape, wte, 2, &n);
    float *wpe = init(&shape, pl_param_slot(&shape, PL_WPE, -1), 1, &n);
    assert_memory_equal(one, same, n * sizeof *one);
    for (size_t i = 0; i < n; i++) {
        assert_true(one[i] != other[i]);
        assert_true(one[i] != wpe[i]);
    }
    size_t fc = pl_param_slot(&shape, PL_FC_W, 0);
    float *first = init(&shape, fc, 1, &n);
    float *second = init(&shape, pl_param_slot(&shape, PL_FC_W, 1), 1, &n);
    for (size_t i = 0; i < n; i++)
        assert_true(first[i] != second[i]);
    float *all[] = { one, same, other, wpe, first, second };
    for (size_t i = 0; i < 6; i++)
        free(all[i]);
}

/* In memory of exactly the slice, so that a sanitizer sees every byte beside
 * it. */
static void a_value_does_not_depend_on_the_slice_it_is_asked_in(void **state)
{
    (void)state;
    static const pl_param_kind kinds[] = { PL_WTE, PL_MLP_W, PL_LN1_W,
                                           PL_QKV_B };
    pl_shape shape = make_shape(1, 1, 3, 7, 5, PL_BIAS_ALL);
    for (size_t k = 0; k < 4; k++) {
        size_t n, slot = pl_param_slot(&shape, kinds[k], k ? 0 : -1);
        float *whole = init(&shape, slot, 5, &n);
        for (size_t first = 0; first <= n; first++)
            for (size_t count = 0; count <= n - first; count++) {
                float *part = malloc(count * sizeof *part + !count);
                assert_non_null(part);
                pl_param_init(&shape, slot, 5, first, count, part);
                assert_memory_equal(part, whole + first, count * sizeof *part);
                free(part);
            }
        free(whole);
    }
}

/* Values that a checkpoint of today and one of tomorrow must agree on. */
static void elements_beyond_32_bits_have_values_of_their_own(void **state)
{
    (void)state;
    pl_shape shape = make_shape(1, 1, 1 << 20, 1 << 20, 5, PL_BIAS_NONE);
    const size_t far = (size_t)4 << 32;
    float near_values[8], far_values[8];
    pl_param_init(&shape, 0, 5, 0, 8, near_values);
    pl_param_init(&shape, 0, 5, far, 8, far_values);
    for (int i = 0; i < 8; i++)
        assert_true(near_values[i] != far_values[i]);
}

static void ask_at(void *context)
{
    pl_shape shape = make_shape(2, 2, 8, 11, 5, PL_BIAS_NONE);
    pl_param_at(&shape, *(size_t *)context);
}

static void ask_layer(void *context)
{
    pl_shape shape = make_shape(2, 2, 8, 11, 5, PL_BIAS_NONE);
    pl_param_slot(&shape, PL_FC_W, *(int *)context);
}

static void slots_and_layers_that_are_none_are_bugs(void **state)
{
    (void)state;
    size_t slot = 2 + 2 * IN_LAYER + 2 + 2 * 2;
    int layers[] = { -1, 2 };
    assert_dies(ask_at, &slot, "pl_param_slots");
    assert_dies(ask_layer, &layers[0], "layer");
    assert_dies(ask_layer, &layers[1], "layer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_follow_the_table_with_the_blocks_in_the_middle),
        cmocka_unit_test(a_head_of_its_own_moves_no_slot_before_it),
        cmocka_unit_test(shapes_are_hugging_faces),
        cmocka_unit_test(two_dimensions_are_a_matter_of_the_table),
        cmocka_unit_test(biases_are_absent_from_a_model_without),
        cmocka_unit_test(a_weight_knows_its_bias),
        cmocka_unit_test(rmsnorm_has_no_bias),
        cmocka_unit_test(matrices_are_decayed_and_products_read_them),
        cmocka_unit_test(other_programs_names_are_in_the_table),
        cmocka_unit_test(llamas_tensors_are_hugging_faces),
        cmocka_unit_test(pieces_and_parts_make_up_the_whole),
        cmocka_unit_test(counts_are_nanogpts),
        cmocka_unit_test(weights_begin_normal_and_the_residual_ones_smaller),
        cmocka_unit_test(norms_begin_as_ones_and_biases_as_zeros),
        cmocka_unit_test(seeds_and_tensors_have_values_of_their_own),
        cmocka_unit_test(a_value_does_not_depend_on_the_slice_it_is_asked_in),
        cmocka_unit_test(elements_beyond_32_bits_have_values_of_their_own),
        cmocka_unit_test(slots_and_layers_that_are_none_are_bugs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
