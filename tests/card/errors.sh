#!/usr/bin/env bash
# What a card can do wrong: each has a message that says what to do, an exit
# code, and the last checkpoint stays whole.
set -eu
. tests/support/cli.sh
work_on_disk
export XDG_CACHE_HOME="$TMP_DIR/cache"
on_card() {
    PL_CARD="${PL_CARD:-},blind" LD_LIBRARY_PATH=$CARD "$@"
}
make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/chars cats.txt
size=("${tiny[@]}" --dataset=chars --max_iters=6 --eval_interval=2)
card=(train "${size[@]}" --device=opencl --out_dir=out)

# no card, no such card, a processor that poses as one
PL_CARD=none expect 3 on_card "$PLIMSOLL" "${card[@]}"
says 'OpenCL lists no card here. Install the card.s driver'
expect 3 on_card "$PLIMSOLL" train "${size[@]}" --device=opencl:7
says 'there is no opencl:7: OpenCL lists 1 device'
PL_CARD=processor expect 3 on_card "$PLIMSOLL" "${card[@]}"
says 'only a processor, which has to be asked for by its number'
PL_CARD=processor expect 0 on_card "$PLIMSOLL" plan "${size[@]}"
says_not 'Emulated card'

# what exact arithmetic needs
PL_CARD=flushes expect 3 on_card "$PLIMSOLL" "${card[@]}"
says 'opencl:0 \(Emulated card\) can.t be used: it takes denormal numbers'
PL_CARD=flushes expect 0 on_card "$PLIMSOLL" plan "${size[@]}"
says "note: device = 'auto' doesn't take opencl:0 .*denormal"

# other bits: refused by name, passed over by 'auto', told by `devices`
export PL_CARD=wrong=layernorm
expect 3 on_card "$PLIMSOLL" devices --selftest
says 'self-test: 3 of [0-9]+ cases have other bits than the processor'
says 'the first is layernorm, float32'
expect 3 on_card "$PLIMSOLL" "${card[@]}"
says "opencl:0 \(Emulated card, driver 1.0\) doesn't compute the processor's"
expect 0 on_card "$PLIMSOLL" train "${size[@]}" --max_iters=2 --out_dir=auto
says "device = 'auto' doesn't take opencl:0"
says 'threads, .* kernels'
export PL_CARD=
rm -rf "$XDG_CACHE_HOME"

# the compiler's own words
PL_CARD=broken expect 1 on_card "$PLIMSOLL" "${card[@]}"
says "its driver 1.0 can't compile the kernels .*: error: this card has no comp"

# less memory than it said: at opening, before anything is written
PL_CARD=bytes=9000000 expect 5 on_card "$PLIMSOLL" "${card[@]}" \
    --n_embd=64 --n_layer=8 --batch_size=16 --fit=exact
[ ! -e out ] || fail "a refused run left a folder"

# lost in the middle: the last checkpoint is whole, and the run goes on. What is
# measured before a first run is measured now.
expect 0 on_card "$PLIMSOLL" train "${size[@]}" --device=opencl --out_dir=first
PL_CARD=lost=900 expect 1 on_card "$PLIMSOLL" "${card[@]}"
says 'opencl:0 \(Emulated card\): .*CL_OUT_OF_RESOURCES: the card gave up'
expect 0 on_card "$PLIMSOLL" inspect out/latest
expect 0 on_card "$PLIMSOLL" train --resume out
expect 0 "$PLIMSOLL" train "${size[@]}" --device=cpu --out_dir=whole
cmp out/latest/model.safetensors whole/latest/model.safetensors

# devices that this version doesn't have: typed, or in a file
expect 3 "$PLIMSOLL" train "${size[@]}" --device=cuda
says '^plimsoll: error: --device=cuda: this version has no such device'
echo "device = 'cuda'" >cuda.py
expect 0 on_card "$PLIMSOLL" train cuda.py "${size[@]}" --max_iters=2 \
    --out_dir=file
says "note: device = 'cuda' is not here: Emulated card computes instead"
expect 0 "$PLIMSOLL" train cuda.py "${size[@]}" --max_iters=2 --out_dir=file2
says "note: device = 'cuda' is not here: .* computes instead"
