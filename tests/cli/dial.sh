#!/usr/bin/env bash
# `depth` and `max_minutes`: what follows from them is settled before the first
# step, printed as a line that makes the same run, and never computed again.
set -eu
. tests/support/cli.sh
work_on_disk

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
dial=(--dataset=cats --depth=1 --block_size=16 --device=cpu --threads=1)

# value KEY FOLDER: of a run's newest checkpoint
value() {
    python3 - "$1" "$2" <<'PY'
import glob, json, sys
last = sorted(glob.glob(sys.argv[2] + "/step-*/state.json"))[-1]
print(json.load(open(last))["config"][sys.argv[1]])
PY
}
newest() {
    printf '%s\n' "$1"/step-* | tail -n 1
}
weights() {
    grep -h 'safetensors' -A 3 "$(newest "$1")/manifest.json" |
        grep -o '"[0-9a-f]\{32\}"'
}

# ---- depth ----

expect 0 "$PLIMSOLL" config "${dial[@]}"
says '^n_embd  *= 64  *# depth 1$'
says "^architecture  *= 'qwen3'  *# depth 1\$"
says "^norm  *= 'rmsnorm'  *# architecture 'qwen3'\$"
says '^block_size  *= 16  *# command line$'
out=$("$PLIMSOLL" plan "${dial[@]}" --json 2>errors) || fail "$(cat errors)"
python3 - "$out" <<'PY'
import json, sys
plan = json.loads(sys.argv[1])
assert plan["max_iters"] > 1 and plan["predicted_run_seconds"] > 0, plan
PY
expect 3 "$PLIMSOLL" plan --depth=0

# ---- minutes: the printed line makes the same run ----

short=(--max_minutes=0.01 --eval_iters=1 --batch_size=2
    --gradient_accumulation_steps=1)
expect 0 "$PLIMSOLL" train "${dial[@]}" "${short[@]}" --out_dir=timed
says '^max_minutes = 0\.01: [0-9]* updates of '
line=$(printf '%s\n' "$out" | sed -n 's/^the same run anywhere: plimsoll //p')
[ -n "$line" ] || fail "no line that makes the same run"
case $line in *max_minutes*) fail "the line has max_minutes: $line" ;; esac
read -r -a words <<<"$line"
expect 0 "$PLIMSOLL" "${words[@]}" --out_dir=again
says "^step $(value max_iters timed): train loss "
[ -n "$(weights timed)" ] || fail "no sums"
[ "$(weights timed)" = "$(weights again)" ] || fail "another run: $line"

# In 16 bits a machine may have an arithmetic of its own: the line says which.
expect 0 "$PLIMSOLL" train "${dial[@]}" "${short[@]}" --dtype=bfloat16 \
    --block_size=32 --out_dir=halves
says '^the same run anywhere: .* --products=(exact|amx)$'
expect 0 "$PLIMSOLL" train "${dial[@]}" "${short[@]}" --dtype=bfloat16 \
    --products=tensor --block_size=32 --out_dir=tensor
line=$(printf '%s\n' "$out" | sed -n 's/^the same run anywhere: plimsoll //p')
case $line in
*' --products=tensor24' | *' --products=amx') ;;
*) fail "the line leaves products to the machine: $line" ;;
esac
read -r -a words <<<"$line"
expect 0 "$PLIMSOLL" "${words[@]}" --out_dir=tensor_again
[ "$(weights tensor)" = "$(weights tensor_again)" ] || fail "another run: $line"

# ---- going on: nothing is computed again ----

updates=$(value max_iters timed)
[ "$(value max_minutes timed)" = 0.01 ] || fail "max_minutes is not kept"
expect 0 "$PLIMSOLL" train --resume timed
says "iteration $updates"
expect 0 "$PLIMSOLL" train "${dial[@]}" "${short[@]}" --out_dir=timed \
    --init_from=resume
[ "$(value max_iters timed)" = "$updates" ] || fail "another max_iters"
says_not 'changed since the checkpoint'
expect 3 "$PLIMSOLL" train --resume timed --max_minutes=5
says 'max_minutes was 0\.01 when the run began'
expect 3 "$PLIMSOLL" train --resume timed --depth=2
says 'depth was 1 when the run began'
expect 0 "$PLIMSOLL" train --resume timed --max_iters=$((updates + 2))
says "iter $((updates + 1)):"

# ---- what wins ----

expect 3 "$PLIMSOLL" train "${dial[@]}" --init_from="$(newest timed)" \
    --out_dir=another
says 'depth = 1 describes a new model'

expect 0 "$PLIMSOLL" train "${dial[@]}" "${short[@]}" --max_iters=3 \
    --out_dir=three
says 'max_minutes has no effect: max_iters is set'
[ "$(value max_iters three)" = 3 ] || fail "max_iters does not win"
[ "$(value lr_decay_iters three)" = 3 ] || fail "the schedule does not follow"
expect 3 "$PLIMSOLL" train "${dial[@]}" --max_minutes=0.00001 --out_dir=none
says 'is too short'
[ ! -e none ] || fail "a folder for a run that never was"
