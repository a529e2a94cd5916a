#!/usr/bin/env bash
# The plan is the peak: the process as the kernel saw it (VmHWM) stays under
# arena + reserve through training, evaluation and saving. Not registered in
# builds with a sanitizer, whose own memory is counted too.
set -eu
. tests/support/cli.sh
unset PLIMSOLL_CALIBRATE
cd "$TMP_DIR"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt

# measure MINIMUM SETTINGS...: the arena is at least MINIMUM bytes. Literally:
# training measures the machine, after which the search may choose otherwise.
measure() {
    local least=$1 arena reserve peak
    shift
    set -- "$@" --fit=exact
    expect 0 "$PLIMSOLL" plan --dataset=cats "$@" --json
    arena=$(number arena_bytes)
    reserve=$(number reserve_bytes)
    [ "$arena" -ge "$least" ] || fail "an arena of $arena is too small to tell"
    expect 0 "$PLIMSOLL" train --dataset=cats "$@" \
        --out_dir=out
    peak=$(exact 'peak memory: .*(')
    [ -n "$peak" ] || fail "no peak: $out"
    echo "arena $arena reserve $reserve peak $peak"
    [ "$peak" -le $((arena + reserve)) ] ||
        fail "peak $peak over arena $arena + reserve $reserve"
    [ "$peak" -ge "$arena" ] || fail "peak $peak below the arena $arena"
}

measure 1000 "${tiny[@]}"
# many layers: the tables outside the arena grow, and are counted
many=(--n_layer=300 --n_embd=4 --n_head=1 --block_size=4 --batch_size=1
    --max_iters=2 --eval_iters=1 --eval_interval=1
    --gradient_accumulation_steps=1 --warmup_iters=1 --lr_decay_iters=9)
measure 1000 "${many[@]}"
measure 1000 "${many[@]}" --init_from=resume --max_iters=3
measure 50000000 "${tiny[@]}" --n_embd=256 --n_layer=3 --block_size=128 \
    --batch_size=8 --max_iters=2 --eval_interval=1 --eval_iters=1
measure 100000000 "${tiny[@]}" --n_embd=512 --n_layer=2 --n_head=8 \
    --max_iters=2 --eval_interval=1 --eval_iters=1 --threads=3
