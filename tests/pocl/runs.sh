#!/usr/bin/env bash
# Whole runs by OpenCL on PoCL: two GPT-2s, a Qwen3 and a Llama in three dtypes,
# with dropout, accumulation, groups, clipping, mixed checkpoint levels, chunks
# that divide nothing, evaluation and samples. The losses of every step and the
# checkpoint are the processor's, by avx2 and by avx512 where there is one.
set -eu
. tests/support/cli.sh
. tests/support/pocl.sh

base=(--dataset=chars --max_iters=3 --eval_interval=2 --eval_iters=2
    --log_interval=1 --learning_rate=1e-2 --warmup_iters=1 --lr_decay_iters=9
    --threads=2)
models=(
    "--n_layer=3 --n_head=2 --n_embd=40 --block_size=37 --batch_size=3
     --gradient_accumulation_steps=4 --dropout=0.2 --bias=True
     --gradient_groups=2 --grad_checkpoint=[0,2,3]"
    "--architecture=qwen3 --n_layer=2 --n_head=6 --n_kv_head=3 --n_embd=96
     --block_size=80 --batch_size=4 --gradient_accumulation_steps=1
     --dropout=0.0 --logit_softcap=15.0 --grad_clip=0.1 --optimizer_state=8bit"
    "--n_layer=2 --n_head=1 --n_embd=72 --block_size=64 --batch_size=5
     --gradient_accumulation_steps=2 --dropout=0.1 --bias=True
     --tie_word_embeddings=False --activation=gelu_tanh --eval_block_size=33
     --optimizer=muon"
    "--architecture=llama --n_layer=2 --n_head=4 --n_kv_head=2 --n_embd=64
     --block_size=48 --batch_size=3 --gradient_accumulation_steps=2
     --dropout=0.1 --optimizer=muon --muon_scale=rms --schedule=wsd
     --mlp_hidden=100 --tie_word_embeddings=True --weights=bf16"
)
losses() {
    grep -o '"[a-z_]*loss": [^,}]*\|"grad_norm": [^,}]*' "$1/metrics.jsonl"
}
isas=(avx2)
! grep -q avx512 /proc/cpuinfo || isas+=(avx512)
runs=0
dtypes=(float32 bfloat16 float16)
for nth in "${!models[@]}"; do
    model=${models[nth]}
    for dtype in "${dtypes[@]}"; do
        # each model in one of them, and --long in all
        [ "${PL_TEST_LONG:-0}" != 0 ] || [ $dtype = "${dtypes[nth % 3]}" ] ||
            continue
        # Words on purpose.
        # shellcheck disable=SC2206
        size=("${base[@]}" $model --dtype=$dtype)
        rm -rf card
        expect 0 "$PLIMSOLL" train "${size[@]}" --device="$pocl" --out_dir=card
        for isa in "${isas[@]}"; do
            rm -rf here
            PLIMSOLL_ISA=$isa expect 0 "$PLIMSOLL" train "${size[@]}" \
                --device=cpu --out_dir=here
            for file in model optimizer; do
                cmp "here/latest/$file.safetensors" \
                    "card/latest/$file.safetensors" ||
                    fail "$file differs: $model, $dtype, $isa"
            done
            [ "$(losses here)" = "$(losses card)" ] ||
                fail "losses differ: $model, $dtype, $isa"
        done
        sample=(sample --out_dir=card --num_samples=1 --max_new_tokens=9
            --dtype=$dtype)
        expect 0 "$PLIMSOLL" "${sample[@]}" --device=cpu
        text=$out
        expect 0 "$PLIMSOLL" "${sample[@]}" --device="$pocl"
        [ "$out" = "$text" ] || fail "another text: $model, $dtype"$'\n'"$out"
        runs=$((runs + 1))
    done
done
echo "$runs runs on $pocl are the processor's"

# here, there, and here again
# shellcheck disable=SC2206
size=("${base[@]}" ${models[0]} --max_iters=3)
expect 0 "$PLIMSOLL" train "${size[@]}" --device=cpu --out_dir=whole
expect 0 "$PLIMSOLL" train "${size[@]}" --device="$pocl" --out_dir=both \
    --max_iters=1
expect 0 "$PLIMSOLL" train --resume both --device=cpu --max_iters=2
expect 0 "$PLIMSOLL" train --resume both --device="$pocl" --max_iters=3
cmp whole/latest/model.safetensors both/latest/model.safetensors
