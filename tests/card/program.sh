#!/usr/bin/env bash
# The whole program on an emulated OpenCL card (tests/gpu/opencl_card.c, whose
# folder is $CARD): 'auto' takes it once it has passed the self-test, it trains,
# stops, goes on, samples and measures with the processor's bits, and both
# memories are planned.
set -eu
. tests/support/cli.sh
work_on_disk
export XDG_CACHE_HOME="$TMP_DIR/cache"

# on_card COMMAND...: where that card is; what it is like is in $PL_CARD
on_card() {
    PL_CARD="${PL_CARD:-},blind" LD_LIBRARY_PATH=$CARD "$@"
}

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/chars cats.txt
size=("${tiny[@]}" --dataset=chars --max_iters=4 --eval_interval=2
    --dropout=0.1)
same() {
    for file in model optimizer; do
        cmp "$1/latest/$file.safetensors" "$2/latest/$file.safetensors" ||
            fail "$1 and $2 differ in $file"
    done
}
losses() {
    grep -o '"[a-z_]*loss": [^,}]*' "$1/metrics.jsonl"
}

# what is there
expect 0 on_card "$PLIMSOLL" devices
says '^cpu '
says '^opencl:0 +Emulated card$'
says_not 'self-test'
expect 0 on_card "$PLIMSOLL" devices --json
[ "$(number memory_bytes)" = 536870912 ] || fail "$out"

# a run on the processor, and one where 'auto' takes the card
expect 0 "$PLIMSOLL" train "${size[@]}" --device=cpu --out_dir=here
expect 0 on_card "$PLIMSOLL" train "${size[@]}" --out_dir=there
says "note: device = 'auto' is opencl:0, Emulated card, whose bits are the"
says 'memory: arena [^,]*, on the host .* \+ reserve .*; Emulated card'
says 'of them are what the card.s driver had taken'
says_not 'held more than was planned'
same here there
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
expect 0 on_card "$PLIMSOLL" train --resume both --device=opencl --max_iters=3
expect 0 "$PLIMSOLL" train --resume both --device=cpu --max_iters=4
same here both

# samples
sample=(sample --out_dir=there --num_samples=1 --max_new_tokens=30 --top_k=5)
expect 0 "$PLIMSOLL" "${sample[@]}" --device=cpu
text=$out
expect 0 on_card "$PLIMSOLL" "${sample[@]}" --device=opencl:0
[ "$out" = "$text" ] || fail "another text: $out"
expect 0 on_card "$PLIMSOLL" bench "${size[@]}" --rounds=1 --device=opencl
says 'machine  Emulated card'

# evaluation alone
expect 0 "$PLIMSOLL" eval "${size[@]}" --device=cpu --out_dir=there
text=$(grep '^step' <<<"$out")
expect 0 on_card "$PLIMSOLL" eval "${size[@]}" --out_dir=there
[ "$(grep '^step' <<<"$out")" = "$text" ] || fail "another loss: $out"

# the plan is what the card gives, to the byte; two banks, the same bits
expect 0 on_card "$PLIMSOLL" plan "${size[@]}" --device=opencl --json
arena=$(number arena_bytes)
PL_CARD="report=$PWD/taken" expect 0 on_card "$PLIMSOLL" train "${size[@]}" \
    --device=opencl --out_dir=exact
[ "$(cat taken)" = "$arena" ] || fail "$(cat taken) bytes taken, $arena planned"
same here exact
bank=$(((arena * 2 / 3 + 255) / 256 * 256))
PL_CARD="largest=$bank,report=$PWD/taken" expect 0 on_card "$PLIMSOLL" train \
    "${size[@]}" --device=opencl --out_dir=banks
[ "$(cat taken)" -gt "$bank" ] || fail "one bank: $(cat taken)"
same here banks

# a budget of exactly the plan runs; less is refused, with the numbers
expect 0 on_card "$PLIMSOLL" train "${size[@]}" --device=opencl --fit=exact \
    --memory=1GB --out_dir=literal
same here literal
expect 0 on_card "$PLIMSOLL" plan "${size[@]}" --device=opencl --fit=exact \
    --memory=1GB --json
arena=$(number arena_bytes)
expect 0 on_card "$PLIMSOLL" train "${size[@]}" --device=opencl --fit=exact \
    --memory="$arena" --out_dir=limit
same here limit
expect 5 on_card "$PLIMSOLL" train "${size[@]}" --device=opencl --fit=exact \
    --memory=$((arena * 99 / 100)) --out_dir=less
says 'this run needs .* \(the arena, in the device.s memory\)'
says 'bytes are missing|kB are missing|MB are missing'
[ ! -e less ] || fail "a refused run left a folder"

# the host's own budget
expect 5 on_card "$PLIMSOLL" train "${size[@]}" --device=opencl \
    --host_memory=1MB --out_dir=less
says "besides the device's memory this run needs .* of the host's"
