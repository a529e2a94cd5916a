#!/usr/bin/env bash
# Ctrl-C and SIGTERM save and say how to go on.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt

# stop SIGNAL CODE OUT_DIR
stop() {
    local waited=0 code=0
    : >log.txt
    "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir="$3" \
        --max_iters=1000000 --eval_interval=1000000 >log.txt 2>&1 &
    local pid=$!
    until grep -q '^iter 5:' log.txt; do
        sleep 0.1
        waited=$((waited + 1))
        [ "$waited" -lt 600 ] || fail "no training in a minute"
    done
    kill "-$1" "$pid"
    wait "$pid" || code=$?
    out=$(cat log.txt)
    [ "$code" -eq "$2" ] || fail "exit code $code after $1"$'\n'"$out"
    says '^saving checkpoint to '"$3"
    says "^stopped at iteration [0-9]+ of 1000000, saved in $3/step-[0-9]{8}\$"
    says '^to go on: plimsoll train --resume '"$3"'$'
    [ -f "$3/latest/manifest.json" ] || fail "no checkpoint after $1"
}

# A background job of a script ignores SIGINT unless it asks for it itself,
# which plimsoll does.
stop INT 130 by_int
stop TERM 143 by_term

stop HUP 129 by_hup
grep -q 'stopping; the same signal once more quits at once' log.txt ||
    fail 'no word at once'

step=$(sed -n 's/^ *"step": \([0-9]*\),/\1/p' by_int/latest/state.json)
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=by_int \
    --init_from=resume --max_iters=$((step + 3))
says "at iteration $step\$"
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=whole \
    --max_iters=$((step + 3)) --eval_interval=1000000
cmp by_int/latest/model.safetensors whole/latest/model.safetensors
