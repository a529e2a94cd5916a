#!/usr/bin/env bash
# What a card can do wrong: each has a message that says what to do, an exit
# code, and the last checkpoint stays whole.
set -eu
. tests/support/cli.sh
. tests/support/card.sh
work_on_disk
make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/chars cats.txt
size=("${tiny[@]}" --dataset=chars --max_iters=6 --eval_interval=2)
# as many launches wherever it runs: the fastest layout depends on the machine
card=(train "${size[@]}" --device="$CARD_API" --fit=exact --out_dir=out)

# no card, no such card, a processor that poses as one, what arithmetic needs
expect 3 on_card "$PLIMSOLL" train "${size[@]}" --device="$CARD_API:7"
says "there is no $CARD_API:7: .* lists 1 device"
if [ "$CARD_API" = opencl ]; then
    PL_CARD=none expect 3 on_card "$PLIMSOLL" "${card[@]}"
    says 'OpenCL lists no card here. Install the card.s driver'
    PL_CARD=processor expect 3 on_card "$PLIMSOLL" "${card[@]}"
    says 'only a processor, which has to be asked for by its number'
    PL_CARD=processor expect 0 on_card "$PLIMSOLL" plan "${size[@]}"
    says_not 'Emulated card'

    # what exact arithmetic needs
    PL_CARD=flushes expect 3 on_card "$PLIMSOLL" "${card[@]}"
    says 'opencl:0 \(Emulated card\) can.t be used: it takes denormal numbers'
    PL_CARD=flushes expect 0 on_card "$PLIMSOLL" plan "${size[@]}"
    says "note: device = 'auto' doesn't take opencl:0 .*denormal"
else
    PL_CARD=none expect 3 on_card "$PLIMSOLL" "${card[@]}"
    says 'driver finds no card it can use: cuInit: CUDA_ERROR_NO_DEVICE'
    PL_CARD=cc=61 expect 3 on_card "$PLIMSOLL" "${card[@]}"
    says 'can.t be used: its compute capability is 6.1, and CUDA needs 7.5'
    PL_CARD=cc=61 expect 0 on_card "$PLIMSOLL" plan "${size[@]}"
    says "note: device = 'auto' doesn't take cuda:0 .*compute capability"
    PL_CARD=prohibited expect 3 on_card "$PLIMSOLL" "${card[@]}"
    says "can't be used: its compute mode is 'prohibited'"
    PL_CARD=bytes=2000000000,screen expect 0 on_card "$PLIMSOLL" devices
    says 'compute capability 8.9'
    says 'a run would get 1.46 GB .*2.00 GB are free; 537 MB of them .* screen'
    PL_CARD=cc=86,old expect 1 on_card "$PLIMSOLL" "${card[@]}"
    says 'for compute_80: CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the driver is old'

    # no code: where nvcc made none and there is no NVRTC, OpenCL is used
    expect 0 on_card "$PLIMSOLL" devices
    if grep -q 'code: sm_89, by NVRTC' <<<"$out"; then
        expect 3 env PLIMSOLL_CUDA_DRIVER="$CUDA_CARD" "$PLIMSOLL" "${card[@]}"
        says "can't be used: this program was built without nvcc, and there is"
        expect 0 env PLIMSOLL_CUDA_DRIVER="$CUDA_CARD" LD_LIBRARY_PATH="$CARD" \
            PL_CARD=blind "$PLIMSOLL" plan "${size[@]}"
        says "note: device = 'auto' doesn't take cuda:0 .*script/setup --cuda"
        says "note: device = 'auto' is opencl:0"
    else
        says 'code: (sm_89|compute_80), in this program'
    fi
fi

# other bits: refused by name, passed over by 'auto', told by `devices`
export PL_CARD=wrong=layernorm
expect 3 on_card "$PLIMSOLL" devices --selftest
says 'self-test: 3 of [0-9]+ cases have other bits than the processor'
says 'the first is layernorm, float32'
expect 3 on_card "$PLIMSOLL" "${card[@]}"
says "$CARD_API:0 \(Emulated card, driver .*\) doesn't compute the processor's"
expect 0 on_card "$PLIMSOLL" train "${size[@]}" --max_iters=2 --out_dir=auto
says "device = 'auto' doesn't take $CARD_API:0"
says 'threads, .* kernels'
export PL_CARD=
rm -rf "$XDG_CACHE_HOME"

# the compiler's own words
PL_CARD=broken expect 1 on_card "$PLIMSOLL" "${card[@]}"
says "can't (compile|load) the kernels .*: error: this card has no compiler"

# less memory than it said: at opening, before anything is written
less=bytes
[ "$CARD_API" = opencl ] || less=gives
PL_CARD=$less=9000000 expect 5 on_card "$PLIMSOLL" "${card[@]}" \
    --n_embd=64 --n_layer=8 --batch_size=16
[ ! -e out ] || fail "a refused run left a folder"

# lost in the middle: the last checkpoint is whole, and the run goes on
PL_CARD=lost=900 expect 1 on_card "$PLIMSOLL" "${card[@]}"
says "$CARD_API:0 \(Emulated card\): .*(CL_OUT_OF_RESOURCES|LAUNCH_FAILED): the"
expect 0 on_card "$PLIMSOLL" inspect out/latest
expect 0 on_card "$PLIMSOLL" train --resume out
expect 0 "$PLIMSOLL" train "${size[@]}" --device=cpu --out_dir=whole
cmp out/latest/model.safetensors whole/latest/model.safetensors

# CUDA where there is none: typed, or in a file, which may be for any machine
echo "device = 'cuda'" >cuda.py
if [ "$CARD_API" = opencl ]; then
    expect 3 on_card "$PLIMSOLL" train "${size[@]}" --device=cuda
    says '^plimsoll: error: there is no CUDA here .libcuda.so.1.. Install'
    expect 0 on_card "$PLIMSOLL" train cuda.py "${size[@]}" --max_iters=2 \
        --out_dir=file
    says "note: device = 'cuda' in a file: there is no CUDA here"
    says "note: device = 'cuda' is not here: Emulated card computes instead"
else
    expect 0 on_card "$PLIMSOLL" train cuda.py "${size[@]}" --max_iters=2 \
        --out_dir=file
    says_not "note: device = 'cuda'"
    says 'memory: .*Emulated card'
    echo "device = 'cuda:3'" >cuda3.py
    expect 0 on_card "$PLIMSOLL" train cuda3.py "${size[@]}" --max_iters=2 \
        --out_dir=file3
    says "note: device = 'cuda:3' in a file: there is no cuda:3: CUDA lists 1"
    says "note: device = 'auto' is cuda:0"
    says "note: device = 'cuda:3' is not here: Emulated card computes instead"
fi
expect 0 "$PLIMSOLL" train cuda.py "${size[@]}" --max_iters=2 --out_dir=file2
says "note: device = 'cuda' is not here: .* computes instead"
expect 3 "$PLIMSOLL" train "${size[@]}" --device=mps
says '^plimsoll: error: --device=mps: this version has no such device'
