#!/usr/bin/env bash
# `train --resume` takes a run up in the memory that it ran in.
set -eu
. tests/support/cli.sh
work_on_disk

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt

# ---- the smallest budget ----

deep=(--dataset=cats "${tiny[@]}" --n_layer=6 --n_embd=64 --block_size=64
    --batch_size=8 --max_iters=2 --out_dir=deep)

# fits KB SETTINGS...
fits() {
    local kb=$1
    shift
    "$PLIMSOLL" plan "$@" --memory="${kb}kB" 2>/dev/null |
        grep -q 'fits, .* to spare'
}

# smallest SETTINGS...: the least budget that a plan fits, to 100 kB
smallest() {
    local low=1000 high=100000 middle
    fits "$high" "$@" || fail "no plan in $high kB"
    while [ $((high - low)) -gt 100 ]; do
        middle=$(((low + high) / 2))
        if fits "$middle" "$@"; then high=$middle; else low=$middle; fi
    done
    echo "$high"
}

least=$(smallest "${deep[@]}")
kept=$(smallest "${deep[@]}" --grad_checkpoint=False)
[ "$least" -lt "$kept" ] || fail "levels 2 and 3 save nothing: $least, $kept"
expect 0 "$PLIMSOLL" train "${deep[@]}" --memory="${least}kB"
expect 0 "$PLIMSOLL" train --resume deep --max_iters=4
says 'at iteration 2$'
# and once more: the resumed run's own checkpoint has kept it
expect 0 "$PLIMSOLL" train --resume deep --max_iters=6
says 'at iteration 4$'

# What was set stays set: then it is too little.
expect 0 "$PLIMSOLL" train "${deep[@]}" --memory="${kept}kB" \
    --grad_checkpoint=False --out_dir=kept
expect 5 "$PLIMSOLL" train --resume kept --max_iters=4 --memory="${least}kB"

# ---- the same bits ----

# A processor that has nothing better has no other bits to change to.
expect 0 env PLIMSOLL_ISA=base "$PLIMSOLL" train --dataset=cats "${tiny[@]}" \
    --out_dir=bits --max_iters=2
says 'base kernels'
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=best \
    --max_iters=2
if ! grep -q 'base kernels' <<<"$out"; then
    expect 3 "$PLIMSOLL" train --resume bits --max_iters=4
    says 'bits/step-00000002.*arithmetic 3 \(base\)'
    says 'PLIMSOLL_ISA=base'
    says 'allow_other_arithmetic=True'
    says_not '^iter'
    expect 0 env PLIMSOLL_ISA=base "$PLIMSOLL" train --resume bits --max_iters=4
    says_not 'arithmetic'
    expect 0 "$PLIMSOLL" train --resume bits --max_iters=6 \
        --allow_other_arithmetic=True
    [ "$(grep -c 'warning: .*arithmetic' <<<"$out")" -eq 1 ] ||
        fail "no warning, or more than one: $out"
    expect 0 "$PLIMSOLL" train --resume bits --max_iters=8
    says_not 'arithmetic'
    expect 3 env PLIMSOLL_ISA=base "$PLIMSOLL" train --resume bits \
        --max_iters=10
    says 'arithmetic 4 \(avx2, avx512, avx512bf16, amx and neon\)'
    # every update says whose bits it has
    [ "$(grep -o '"step": [0-9]*,.*"arithmetic": [0-9]*' bits/metrics.jsonl |
        sed 's/"step": \([0-9]*\),.*: /\1:/' | tr '\n' ' ')" = \
        '0:3 1:3 2:3 3:3 4:4 5:4 6:4 7:4 ' ] ||
        fail "another history: $(cat bits/metrics.jsonl)"
    # AVX2 and AVX-512 are one
    expect 0 env PLIMSOLL_ISA=avx2 "$PLIMSOLL" train --resume bits \
        --max_iters=10
    expect 0 "$PLIMSOLL" train --resume bits --max_iters=12
fi
