#!/usr/bin/env bash
# A model with RMSNorm: trained, resumed, sampled, loaded here, and refused by
# whoever would take it for a GPT-2.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
train=("$PLIMSOLL" train --dataset=cats "${tiny[@]}")
expect 0 "${train[@]}" --out_dir=out --norm=rmsnorm --bias=True --max_iters=4
expect 0 "${train[@]}" --out_dir=layer --bias=True --max_iters=4

# its files name no class that would compute something else
grep -q '"norm": "rmsnorm"' out/latest/state.json
grep -q '"norm": "layernorm"' layer/latest/state.json
grep -q '"model_type": "plimsoll_gpt"' out/latest/config.json
grep -q '"plimsoll_norm": "rmsnorm"' out/latest/config.json
if grep -q 'architectures\|GPT2LMHeadModel' out/latest/config.json; then
    fail "a class: $(cat out/latest/config.json)"
fi
grep -q '"architectures": \["GPT2LMHeadModel"\]' layer/latest/config.json
if grep -q plimsoll layer/latest/config.json; then
    fail "a GPT-2 that isn't one: $(cat layer/latest/config.json)"
fi
expect 0 "$PLIMSOLL" inspect out
says "norm 'rmsnorm'"
says 'ln_1\.weight'
says 'attn\.c_attn\.bias'
says_not 'ln_[12f]\.bias'
expect 0 "$PLIMSOLL" inspect out/latest --json
says '"norm": "rmsnorm"'

# it is another model, and goes on as itself
if cmp -s out/latest/model.safetensors layer/latest/model.safetensors; then
    fail "both norms train the same weights"
fi
expect 0 "$PLIMSOLL" sample --out_dir=out --max_new_tokens=5 --num_samples=1
expect 0 "$PLIMSOLL" eval out
expect 3 "$PLIMSOLL" eval out --norm=layernorm
says "norm is 'rmsnorm' in the checkpoint and 'layernorm' \(command line\)"
expect 0 "${train[@]}" --out_dir=whole --norm=rmsnorm --bias=True --max_iters=6
expect 0 "$PLIMSOLL" train --resume out --max_iters=6
for file in model optimizer; do
    cmp out/latest/$file.safetensors whole/latest/$file.safetensors
done
expect 0 "${train[@]}" --init_from=out/latest --out_dir=on --max_iters=0
cmp out/latest/model.safetensors on/latest/model.safetensors
grep -q '"norm": "rmsnorm"' on/latest/state.json

# as a folder it goes to another Plimsoll, as a file to nobody
expect 0 "$PLIMSOLL" export out --format=hf --out=folder
grep -q '"model_type": "plimsoll_gpt"' folder/config.json
expect 0 "$PLIMSOLL" inspect folder/model.safetensors
says_not 'ln_[12f]\.bias'
expect 0 "${train[@]}" --init_from=folder --out_dir=again --max_iters=0
cmp out/latest/model.safetensors again/latest/model.safetensors
for name in model.gguf model.bin; do
    expect 6 "$PLIMSOLL" export out --out=$name
    says "a GPT-2 has no norm = 'rmsnorm', this model has"
    says 'format=hf writes a folder'
    [ ! -e $name ] || fail "$name of what can't be"
done

# explain and plan
expect 0 "$PLIMSOLL" explain --dataset=cats "${tiny[@]}" --norm=rmsnorm
says "nanoGPT has no norm = 'rmsnorm': its figures are for 'layernorm'"
expect 0 "$PLIMSOLL" explain --dataset=cats "${tiny[@]}"
says_not 'nanoGPT has no norm'
expect 0 "$PLIMSOLL" plan --dataset=cats "${tiny[@]}" --norm=rmsnorm --steps
says 'rmsnorm\.bwd'
says_not 'layernorm'
expect 3 "$PLIMSOLL" plan --dataset=cats "${tiny[@]}" --norm=batchnorm
says "'layernorm' or 'rmsnorm'"
