#!/usr/bin/env bash
# An out_dir in memory (tmpfs) counts with all that a run can write there: its
# checkpoints, the metrics and TensorBoard's events. A run in a memory cgroup of
# exactly its total finishes; one byte less, and it refuses at once. It takes so
# many steps that the metrics would not fit into what the plan has to spare.
set -eu
. tests/support/cli.sh
unset PLIMSOLL_CALIBRATE
cage=$PWD/tests/support/memory_cage.sh
cd "$TMP_DIR"

shm=$(mktemp -d /dev/shm/plimsoll-cage-XXXXXX 2>/dev/null) &&
    [ "$(stat -f -c %T "$shm")" = tmpfs ] || {
    echo "no tmpfs at /dev/shm: there is nothing to see"
    exit 0
}
trap 'rm -rf "$shm"' EXIT

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
steps=30000
run=(--dataset=cats "${tiny[@]}" --n_layer=1 --block_size=8 --batch_size=1
    --gradient_accumulation_steps=1 --threads=1 --eval_interval=5000
    --eval_iters=1 --log_interval=5000 --fit=exact --max_iters=$steps)

expect 0 "$PLIMSOLL" plan "${run[@]}" --json
bare=$(($(number arena_bytes) + $(number reserve_bytes)))

# needs MEMORY SETTINGS...: what a refused run says that it needs
needs() {
    local memory=$1
    shift
    expect 5 "$PLIMSOLL" train "${run[@]}" --out_dir="$shm/out" \
        --memory="$memory" "$@"
    says_not '^iter'
    says 'in memory \(tmpfs\): 4 checkpoints of [0-9.]+ [kMG]B count'
    echo "$(($(exact '(arena ') + $(exact '+ reserve ') + $(exact '+ files ')))"
}

total=$(needs "$bare")
[ "$total" -gt "$bare" ] || fail "$total of $bare"
[ "$(needs $((total - 1)))" = "$total" ] || fail "another total: $out"
# every update counts, and so does every evaluation
more=$(needs "$bare" --max_iters=$((steps + 1000)))
[ $((more - total)) -gt $((1000 * 400)) ] || fail "1000 updates: $more $total"
more=$(needs "$bare" --eval_interval=1)
[ $((more - total)) -gt $((steps * 200)) ] || fail "evaluations: $more $total"

# rlimit: the address space says nothing about files
[ "$(bash "$cage" --kind)" != rlimit ] || exit 0
expect 0 bash "$cage" "$total" "$PLIMSOLL" train "${run[@]}" \
    --out_dir="$shm/out" --memory="$total"
says "^step $steps: "
held=$(du -sb "$shm/out" | cut -f 1)
echo "cage $total: $bare without files, $held in files after $steps updates"
[ $((bare + held)) -le "$total" ] || fail "files of $held bytes"

# A run that goes on has files in memory already: they are a part of its total,
# so that what was enough to begin is enough to go on.
two=("${run[@]}" --n_embd=128 --eval_interval=200 --out_dir="$shm/two")
expect 0 "$PLIMSOLL" plan "${two[@]}" --max_iters=400 --json
total=$(number total_bytes)
expect 0 bash "$cage" "$total" bash -c '
    program=$1
    shift
    "$program" train "$@" --max_iters=200 &&
        "$program" train "$@" --max_iters=400 --init_from=resume' \
    twice "$PLIMSOLL" "${two[@]}"
says '^step 400: '

# the copy in a checkpoint is bounded, and thinned out by a rule
copy=$shm/out/latest/metrics.jsonl
[ "$(stat -c %s "$copy")" -le 1048576 ] || fail "a large copy"
every=1
while [ $(((steps + every - 1) / every)) -gt 2048 ]; do
    every=$((2 * every))
done
[ "$(grep -c '"loss"' "$copy")" -eq $(((steps + every - 1) / every)) ] ||
    fail "the copy has $(grep -c '"loss"' "$copy") updates"
