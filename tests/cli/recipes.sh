#!/usr/bin/env bash
# Configs in the manner of nanoGPT's own folder and of its forks': they plan
# and explain as they are, GPT-2's without its weights on this disk.
set -eu
. tests/support/cli.sh
recipes=$PWD/tests/cli/nanogpt
cd "$TMP_DIR"
export HF_HUB_CACHE=$TMP_DIR/hub

for file in "$recipes"/*.py; do
    expect 0 "$PLIMSOLL" config "$file"
    expect 0 "$PLIMSOLL" plan "$file" --memory=1TB
    expect 0 "$PLIMSOLL" explain "$file"
done

# plans NAME LAYERS HEADS CHANNELS PARAMETERS
plans() {
    expect 0 "$PLIMSOLL" plan "$recipes/$1.py" --memory=1TB
    says "^model +$2 layers, $3 heads of 64, $4 channels, context 1024, "
    says 'vocabulary 50257$'
    says "^ +\(.*shape of .*weights are not on this disk"
    says "^parameters +$5 "
    expect 0 "$PLIMSOLL" explain "$recipes/$1.py"
    says "$2 layers"
}
plans eval_gpt2 12 12 768 124,439,808
plans eval_gpt2_medium 24 16 1024 354,823,168
plans eval_gpt2_large 36 20 1280 774,030,080
plans eval_gpt2_xl 48 25 1600 1,557,611,200
expect 0 "$PLIMSOLL" plan "$recipes/finetune_shakespeare.py" --json \
    --memory=1TB
[ "$(number parameters)" = 1557611200 ] || fail "parameters: $out"
expect 0 "$PLIMSOLL" plan --init_from=gpt2 --block_size=256 --memory=1TB
says 'context 256, vocabulary 50257$'
expect 3 "$PLIMSOLL" plan --init_from=gpt2 --block_size=2048
says 'has 1024 positions'
expect 0 "$PLIMSOLL" plan --init_from=gpt2-medium --n_layer=3 --memory=1TB
says 'n_layer is 24 in gpt2-medium: 3 has no effect'
expect 0 "$PLIMSOLL" config "$recipes/eval_gpt2_xl.py"
says '^n_layer += 48 +# gpt2-xl'
expect 1 "$PLIMSOLL" plan --init_from=gpt3
says "init_from = 'gpt3': neither"

# training and evaluating with them need the weights
for command in train eval; do
    expect 1 "$PLIMSOLL" "$command" "$recipes/eval_gpt2_xl.py"
    says "init_from = 'gpt2-xl'.*not on this disk.*looked for in "
    says "$TMP_DIR/hub/models--gpt2-xl"
    says 'hf download .*gpt2-xl'
done

expect 0 env MODEL_SIZE=large USER=me "$PLIMSOLL" config "$recipes/fork.py"
says '^n_embd += 768 +# .*fork\.py:10:9$'
says "^out_dir += 'out/large-12x768-lr2\.4e-04' "
says '^gradient_accumulation_steps += 4 '
says '^warmup_iters += 200 '
says "^wandb_project += 'forks-large' "

# sampling needs them too
expect 1 "$PLIMSOLL" sample --init_from=gpt2
says 'looked for in .*hub/models--gpt2 '
