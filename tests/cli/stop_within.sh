#!/usr/bin/env bash
# A signal within a long update or a long evaluation: saved before that is over,
# and gone on from with the same bits. What is long depends on the machine, so
# whatever was over too soon is tried again, longer; only the order of events
# counts.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
size=(--dataset=cats "${tiny[@]}" --log_interval=1 --max_iters=1000000)

# line PATTERN: the number of the first line of the log that matches, or 0
line() {
    local found
    found=$(grep -En -m 1 -- "$1" log.txt) || found=0
    echo "${found%%:*}"
}

# begin MARK ARGUMENT...: trains until the log has a line MARK; sets $pid
begin() {
    local mark=$1 waited=0
    shift
    : >log.txt
    "$PLIMSOLL" train "${size[@]}" "$@" >log.txt 2>&1 &
    pid=$!
    until grep -Eq -- "$mark" log.txt; do
        kill -0 "$pid" 2>/dev/null || fail "it ended early: $(cat log.txt)"
        sleep 0.1
        waited=$((waited + 1))
        [ "$waited" -lt 6000 ] || fail "no '$mark' in ten minutes"
    done
}

# finish CODE: waits for it; the log is in $out
finish() {
    local code=0
    wait "$pid" || code=$?
    out=$(cat log.txt)
    [ "$code" -eq "$1" ] || fail "exit code $code, expected $1"$'\n'"$out"
}

# in_order PATTERN...: the log has these lines in this order
in_order() {
    local before=0 at pattern
    for pattern in "$@"; do
        at=$(line "$pattern")
        [ "$at" -gt "$before" ] ||
            fail "'$pattern' is not behind line $before"$'\n'"$out"
        before=$at
    done
}

# ---- an update ----

for ((many = 500; ; many *= 4)); do
    [ "$many" -lt 10000000 ] || fail "no update is long enough"
    begin '^iter 0:' --out_dir=update --eval_interval=1000000 \
        --gradient_accumulation_steps=$many
    kill -INT "$pid"
    finish 130
    [ "$(line '^iter 1:')" -gt 0 ] || break # given up, not finished
done
in_order '^iter 0:' '^stopping; the same signal' \
    "^iteration 1 is given up after [0-9]+ of $many micro-batches" \
    '^saving checkpoint to update/step-00000001$' \
    '^stopped at iteration 1 of 1000000, saved in update/step-00000001$' \
    '^to go on: plimsoll train --resume update$'
[ -f update/latest/manifest.json ] || fail "no checkpoint"
[ "$(wc -l <update/metrics.jsonl)" -eq 2 ] || fail "an update that never was"

# once more, and it quits at once: nothing of step 1 changes, nothing is added
cp -r update update.before
begin 'Resuming training' --out_dir=update --init_from=resume \
    --gradient_accumulation_steps=$many --eval_interval=1000000
until [ "$(line '^stopping; once more')" -gt 0 ]; do
    kill -TERM "$pid" 2>/dev/null || break
    sleep 0.1
done
kill -TERM "$pid" 2>/dev/null || true
wait "$pid" || true
cmp update/latest/manifest.json update.before/latest/manifest.json

# ---- a terminal sees how far it is, a log does not ----

for ((shown = many; ; shown *= 4)); do
    [ "$shown" -lt 10000000 ] || fail "no update is long enough"$'\n'"$out"
    expect 0 script -qec "'$PLIMSOLL' train ${size[*]} --out_dir=shown \
        --eval_interval=1000000 --gradient_accumulation_steps=$shown \
        --max_iters=1" /dev/null </dev/null
    ! grep -Eq "iter 0: [0-9]+ of $shown micro-batches, [0-9]+ tok/s, .* left" \
        <<<"$out" || break
done

# ---- SIGUSR1 lets it finish ----

begin '^iter 0:' --out_dir=gentle --eval_interval=1000000 \
    --gradient_accumulation_steps=$many
kill -USR1 "$pid"
finish 138
in_order '^iter 0:' '^stopping as soon as no update is under way' '^iter 1:' \
    '^saving checkpoint to gentle/step-00000002$' \
    '^stopped at iteration 2 of 1000000'
says_not 'is given up'
says_not 'micro-batches,'

# ---- an evaluation ----

for ((many = 500; ; many *= 4)); do
    [ "$many" -lt 10000000 ] || fail "no evaluation is long enough"
    begin '^iter 1:' --out_dir=eval --eval_interval=2 --eval_iters=$many
    kill -INT "$pid"
    finish 130
    [ "$(line '^step 2:')" -gt 0 ] || break
done
in_order '^step 0:' '^iter 1:' '^stopping; the same signal' \
    '^saving checkpoint to eval/step-00000002$' \
    '^stopped at iteration 2 of 1000000'
says_not '^iter 2:'
[ "$(wc -l <eval/metrics.jsonl)" -eq 3 ] || fail "a line of no evaluation"

# it goes on with that evaluation, and is the run that was never stopped
ends=(--eval_interval=2 --eval_iters=$many --max_iters=3)
expect 0 "$PLIMSOLL" train "${size[@]}" --out_dir=eval --init_from=resume \
    "${ends[@]}"
says '^step 2:'
expect 0 "$PLIMSOLL" train "${size[@]}" --out_dir=whole "${ends[@]}"
cmp eval/latest/model.safetensors whole/latest/model.safetensors
cmp eval/latest/optimizer.safetensors whole/latest/optimizer.safetensors
cmp eval/latest/metrics.jsonl whole/latest/metrics.jsonl
[ "$(readlink eval/best)" = "$(readlink whole/best)" ] || fail "another best"
for run in eval whole; do
    sed 's/, "step_ms": .*//' $run/metrics.jsonl >$run.numbers
done
cmp eval.numbers whole.numbers
