#!/usr/bin/env bash
# The whole program on an emulated card (tests/gpu/opencl_card.c or
# cuda_driver.c): 'auto' takes it once it has passed the self-test, it trains in
# every dtype and another family, stops, goes on, samples and measures with the
# processor's bits, and both memories are planned.
set -eu
. tests/support/cli.sh
. tests/support/card.sh
work_on_disk

device=--device=$CARD_API
make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/chars cats.txt
size=("${tiny[@]}" --dataset=chars --max_iters=4 --eval_interval=2
    --dropout=0.1)
losses() {
    grep -o '"[a-z_]*loss": [^,}]*' "$1/metrics.jsonl"
}

# what is there
expect 0 on_card "$PLIMSOLL" devices
says '^cpu '
says "^$CARD_API:0 +Emulated card$"
says_not 'self-test'
expect 0 on_card "$PLIMSOLL" devices --json
[ "$(number memory_bytes)" = 536870912 ] || fail "$out"

# a run on the processor, and one where 'auto' takes the card
expect 0 "$PLIMSOLL" train "${size[@]}" --device=cpu --out_dir=here
expect 0 on_card "$PLIMSOLL" train "${size[@]}" --out_dir=there
says "note: device = 'auto' is $CARD_API:0, Emulated card, whose bits are the"
says 'memory: arena [^,]*, on the host .* \+ reserve .*; Emulated card'
says 'of them are what the card.s driver had taken'
says_not 'held more than was planned'
same here there
weights=$(tr -d ' \n' <there/plan.json |
    sed 's/.*"weights":\[\([0-9]*\).*/\1/')
grep -q "^ *\"train\": {\"weights\": $weights," there/progress.json ||
    fail "not $weights bytes: $(cat there/progress.json)"
! grep '^ *"train": {' there/progress.json | grep -q reserve ||
    fail "the host's memory is no part of the card's"
[ "$(losses here)" = "$(losses there)" ] || fail "other losses"
[ "$(losses here | wc -l)" -ge 8 ] || fail "no losses in here/metrics.jsonl"

# the self-test is remembered: for this driver and this program
expect 0 on_card "$PLIMSOLL" devices
says 'self-test .* ago: [0-9]+ cases, [0-9,]+ bytes: all are the processor'
kept=("$XDG_CACHE_HOME"/plimsoll/selftest-*.json)
[ -f "${kept[0]}" ] && [ ${#kept[@]} = 1 ] || fail "not remembered: ${kept[*]}"
cp "$PLIMSOLL" another
printf 'x' >>another
expect 0 on_card ./another devices
says_not 'self-test'
echo '{"cases": ' >"${kept[0]}"
expect 0 on_card "$PLIMSOLL" devices
says_not 'self-test'

# here, there and here again: stopped on one device, gone on with on the other
expect 0 "$PLIMSOLL" train "${size[@]}" --device=cpu --out_dir=both \
    --max_iters=1
expect 0 on_card "$PLIMSOLL" train --resume both "$device" --max_iters=3
expect 0 "$PLIMSOLL" train --resume both --device=cpu --max_iters=4
same here both

# accumulation, clipping and dropout, in every dtype
for dtype in float32 bfloat16 float16; do
    more=("${size[@]}" --max_iters=2 --gradient_accumulation_steps=2
        --grad_clip=0.5 --dtype="$dtype" --products=exact)
    expect 0 "$PLIMSOLL" train "${more[@]}" --device=cpu --out_dir="cpu-$dtype"
    expect 0 on_card "$PLIMSOLL" train "${more[@]}" "$device" \
        --out_dir="card-$dtype"
    says 'step 2: train loss'
    same "cpu-$dtype" "card-$dtype"
    [ "$(losses "cpu-$dtype")" = "$(losses "card-$dtype")" ] ||
        fail "other losses in $dtype"
done

# a model of another family: rotated positions, shared keys, norms of heads,
# a gated MLP and capped logits, to its last text
qwen=("${size[@]}" --architecture=qwen3 --n_head=4 --n_kv_head=2 --max_iters=2
    --logit_softcap=15.0 --dtype=bfloat16 --products=exact)
expect 0 "$PLIMSOLL" train "${qwen[@]}" --device=cpu --out_dir=cpu-qwen
expect 0 on_card "$PLIMSOLL" train "${qwen[@]}" "$device" --out_dir=card-qwen
same cpu-qwen card-qwen
[ "$(losses cpu-qwen)" = "$(losses card-qwen)" ] || fail "other losses of Qwen3"
sample=(sample --out_dir=card-qwen --num_samples=1 --max_new_tokens=20)
expect 0 "$PLIMSOLL" "${sample[@]}" --device=cpu
text=$out
expect 0 on_card "$PLIMSOLL" "${sample[@]}" "$device"
[ "$out" = "$text" ] || fail "another text of Qwen3: $out"

# samples
sample=(sample --out_dir=there --num_samples=1 --max_new_tokens=30 --top_k=5)
expect 0 "$PLIMSOLL" "${sample[@]}" --device=cpu
text=$out
expect 0 on_card "$PLIMSOLL" "${sample[@]}" --device="$CARD_API:0"
[ "$out" = "$text" ] || fail "another text: $out"
expect 0 on_card "$PLIMSOLL" bench "${size[@]}" --rounds=1 "$device"
says 'machine  Emulated card'

# evaluation alone
expect 0 "$PLIMSOLL" eval "${size[@]}" --device=cpu --out_dir=there
text=$(grep '^step' <<<"$out")
expect 0 on_card "$PLIMSOLL" eval "${size[@]}" --out_dir=there
[ "$(grep '^step' <<<"$out")" = "$text" ] || fail "another loss: $out"

# the plan is what the card gives, to the byte; by OpenCL in two banks, too
expect 0 on_card "$PLIMSOLL" plan "${size[@]}" "$device" --json
arena=$(number arena_bytes)
PL_CARD="report=$PWD/taken" expect 0 on_card "$PLIMSOLL" train "${size[@]}" \
    "$device" --out_dir=exact
[ "$(cat taken)" = "$arena" ] || fail "$(cat taken) bytes taken, $arena planned"
same here exact
if [ "$CARD_API" = opencl ]; then
    bank=$(((arena * 2 / 3 + 255) / 256 * 256))
    PL_CARD="largest=$bank,report=$PWD/taken" expect 0 on_card "$PLIMSOLL" \
        train "${size[@]}" "$device" --out_dir=banks
    [ "$(cat taken)" -gt "$bank" ] || fail "one bank: $(cat taken)"
    same here banks
fi

# a budget of exactly the plan runs; less is refused, with the numbers
expect 0 on_card "$PLIMSOLL" train "${size[@]}" "$device" --fit=exact \
    --memory=1GB --out_dir=literal
same here literal
expect 0 on_card "$PLIMSOLL" plan "${size[@]}" "$device" --fit=exact \
    --memory=1GB --json
arena=$(number arena_bytes)
expect 0 on_card "$PLIMSOLL" train "${size[@]}" "$device" --fit=exact \
    --memory="$arena" --out_dir=limit
same here limit
expect 5 on_card "$PLIMSOLL" train "${size[@]}" "$device" --fit=exact \
    --memory=$((arena * 99 / 100)) --out_dir=less
says 'this run needs .* \(the arena, in the device.s memory\)'
says 'bytes are missing|kB are missing|MB are missing'
[ ! -e less ] || fail "a refused run left a folder"

# the host's own budget
expect 5 on_card "$PLIMSOLL" train "${size[@]}" "$device" \
    --host_memory=1MB --out_dir=less
says "besides the device's memory this run needs .* of the host's"

# where both kinds list the card, 'auto' takes CUDA's; what CUDA can't use, it
# takes by OpenCL. PTX and machine code give the same bits.
if [ "$CARD_API" = cuda ]; then
    expect 0 on_both "$PLIMSOLL" plan "${size[@]}"
    says "note: device = 'auto' is cuda:0, Emulated card, whose bits are the"
    says_not 'opencl'
    PL_CARD=cc=61 expect 0 on_both "$PLIMSOLL" plan "${size[@]}"
    says "note: device = 'auto' doesn't take cuda:0"
    says "note: device = 'auto' is opencl:0"
    ccs=(86)
    [ "${PL_TEST_LONG:-0}" = 0 ] || ccs+=(75)
    for cc in "${ccs[@]}"; do
        PL_CARD=cc=$cc expect 0 on_card "$PLIMSOLL" train "${size[@]}" \
            --device=cuda:0 --out_dir="cc$cc"
        same here "cc$cc"
    done
    PL_CARD=cc=86 expect 0 on_card "$PLIMSOLL" devices
    says 'code: compute_80'
fi
