#!/usr/bin/env bash
# A model without biases stays one, whichever way it goes out and comes back;
# one with biases keeps them.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
train=("$PLIMSOLL" train "${tiny[@]}" --dataset=cats --n_embd=32
    --activation=gelu_tanh --max_iters=4)
expect 0 "${train[@]}" --out_dir=without
expect 0 "${train[@]}" --out_dir=with --bias=True

# has FOLDER True|False: what training from it has
has() {
    expect 0 "$PLIMSOLL" config --init_from="$1"
    says "^bias += $2 "
}

# loss FOLDER
loss() {
    expect 0 "$PLIMSOLL" eval "$1" --dataset=cats --eval_iters=3 \
        --eval_batch_size=4 --threads=2
    sed -n 's/^step [0-9]*: \(train loss [0-9.]*, val loss [0-9.]*\),.*/\1/p' \
        <<<"$out"
}

for model in with without; do
    bias=True
    [ $model = with ] || bias=False
    want=$(loss $model)
    [ -n "$want" ] || fail "no loss"
    has $model/latest $bias
    expect 0 "$PLIMSOLL" export $model --format=hf --out=$model-hf
    expect 0 "$PLIMSOLL" export $model-hf --out=$model-hf-again
    expect 0 "$PLIMSOLL" export $model-hf --type=bf16 --out=$model-bf16
    expect 0 "$PLIMSOLL" export $model --out=$model.gguf
    expect 0 "$PLIMSOLL" import $model.gguf --out=$model-gguf
    expect 0 "$PLIMSOLL" export $model-gguf --type=q8_0 --out=$model-q8.gguf
    expect 0 "$PLIMSOLL" import $model-q8.gguf --out=$model-q8
    expect 0 "$PLIMSOLL" export $model --out=$model.bin
    expect 0 "$PLIMSOLL" import $model.bin --out=$model-llmc
    expect 0 "$PLIMSOLL" export $model-llmc --type=bf16 --out=$model-16.bin
    expect 0 "$PLIMSOLL" import $model-16.bin --out=$model-llmc-16
    for way in hf hf-again bf16 gguf q8 llmc llmc-16; do
        has $model-$way $bias
    done
    for way in hf hf-again gguf llmc; do
        got=$(loss $model-$way)
        [ "$got" = "$want" ] || fail "$model-$way: $got, not $want"
    done
done
# what other programs see is the same in both: every bias is there
size() { stat -c %s "$1"; }
[ "$(size with-hf/model.safetensors)" = "$(size without-hf/model.safetensors)" ]
[ "$(size with.bin)" = "$(size without.bin)" ]
grep -q '"plimsoll_bias": false' without-hf/config.json
! grep -q plimsoll with-hf/config.json || fail "a word too many"

# it trains on without them
expect 0 "$PLIMSOLL" train "${tiny[@]}" --dataset=cats --max_iters=2 \
    --init_from=without-gguf --out_dir=further
expect 0 "$PLIMSOLL" inspect further
says ', bias False, '

# biases that another program has trained are not dropped in silence
cp -r with-hf denied
sed -i 's/^{/{\n  "plimsoll_bias": false,/' denied/config.json
for command in "train --dataset=cats --out_dir=x --init_from=denied" \
    "eval denied --dataset=cats" "sample denied --start=t" \
    "export denied --out=x.gguf"; do
    # shellcheck disable=SC2086 # words
    expect 6 "$PLIMSOLL" $command
    says 'denied/model.safetensors: transformer.h.0.ln_1.bias is not all zeros'
    says 'remove "plimsoll_bias" there'
done
sed -i '/plimsoll_bias/d' denied/config.json
has denied True
# in a file that says it, they are kept and told of
cp with.bin denied.bin
printf '\1' | dd of=denied.bin bs=1 seek=1020 conv=notrunc 2>/dev/null
expect 0 "$PLIMSOLL" import denied.bin --out=denied-llmc
says 'note: denied.bin was written without biases and has some now'
has denied-llmc True
[ ! -e x.gguf ] && [ ! -e x/latest ] || fail "a model of what was refused"
