#!/usr/bin/env bash
# A run that a processor and a card share, the card by OpenCL on PoCL, over MPI:
# whichever of them is rank 0, the losses and the checkpoint are those of one
# processor.
set -eu
. tests/support/cli.sh
. tests/support/ranks.sh
. tests/support/pocl.sh

train=("$PLIMSOLL" train --dataset=chars --n_layer=2 --n_head=2 --n_embd=40
    --block_size=32 --batch_size=2 --gradient_accumulation_steps=4
    --gradient_groups=2 --dropout=0.1 --max_iters=4 --eval_interval=2
    --eval_iters=2 --learning_rate=1e-2 --warmup_iters=1 --lr_decay_iters=9
    --threads=1)
losses() {
    grep -o '"[a-z_]*loss": [^,}]*\|"grad_norm": [^,}]*' "$1/metrics.jsonl"
}
for dtype in float32 bfloat16; do
    rm -rf one two
    same=("${train[@]}" --dtype=$dtype)
    expect 0 "${same[@]}" --device=cpu --out_dir=one
    for devices in "cpu $pocl" "$pocl cpu"; do
        read -r first second <<<"$devices"
        rm -rf two
        expect 0 "${launch[@]}" -n 1 "${same[@]}" --device="$first" \
            --out_dir=two : -n 1 "${same[@]}" --device="$second" --out_dir=two
        says '2 ranks by '
        for file in model optimizer; do
            cmp "one/latest/$file.safetensors" "two/latest/$file.safetensors" ||
                fail "$file differs: $devices, $dtype"
        done
        [ "$(losses one)" = "$(losses two)" ] ||
            fail "losses differ: $devices, $dtype"
    done
done
echo "a processor and $pocl shared 4 runs: no bit differs"
