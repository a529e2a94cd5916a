#!/usr/bin/env bash
# kill -9 at random moments of a run that saves every few steps, so that many
# hit a save: every restart goes on from a whole checkpoint, and the end is that
# of a run which nobody disturbed. PL_KILLS: how often.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

kills=${PL_KILLS:-20}
[ -z "${PL_TEST_LONG:-}" ] || kills=${PL_KILLS:-200}

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
run=("$PLIMSOLL" train --dataset=cats "${tiny[@]}" --eval_interval=1000000
    --save_interval=3)

# how long a start and a few saves take here, the first time and then
for i in 1 2; do
    began=$(date +%s%N)
    expect 0 "${run[@]}" --out_dir=first --max_iters=15
    window_ms=$((($(date +%s%N) - began) / 1000000 + 1))
done

# the step of the checkpoint that the last run surely had: when it announced the
# next one, the one before was whole
surely_saved() {
    sed -n 's/^saving checkpoint to .*step-0*\([0-9][0-9]*\)$/\1/p' log.txt |
        awk '{ before = last; last = $0 } END { print before }'
}

known=0
hit=0
for ((i = 1; i <= kills; i++)); do
    from=scratch
    [ ! -e out/latest ] || from=resume
    "${run[@]}" --out_dir=out --init_from=$from --max_iters=200000 \
        >log.txt 2>&1 &
    pid=$!
    after_ms=$((RANDOM % (2 * window_ms)))
    sleep "$((after_ms / 1000)).$(printf %03d $((after_ms % 1000)))"
    kill -9 "$pid" 2>/dev/null || true
    code=0
    { wait "$pid"; } 2>/dev/null || code=$?
    [ "$code" -eq 137 ] || fail "kill $i: exit code $code: $(tail -n 5 log.txt)"
    began=$(sed -n 's/^Resuming training .*iteration \([0-9]*\)$/\1/p' log.txt)
    if [ -n "$began" ] && [ "$began" -lt "$known" ]; then
        fail "kill $i: resumed at $began, but $known was saved before"
    fi
    ! grep -q 'damaged' log.txt || fail "kill $i: $(cat log.txt)"
    [ ! -e out/.saving ] || hit=$((hit + 1))
    saved=$(surely_saved)
    [ -z "$saved" ] || [ "$saved" -lt "$known" ] || known=$saved
done

# on to the end, and the same undisturbed
expect 0 "${run[@]}" --out_dir=out --init_from=resume --max_iters=$((known + 9))
says '^Resuming training from out/step-'
last=$(readlink out/latest)
expect 0 "${run[@]}" --out_dir=whole --max_iters=$((10#${last#step-}))
cmp out/latest/model.safetensors whole/latest/model.safetensors
cmp out/latest/optimizer.safetensors whole/latest/optimizer.safetensors
timeless() { sed 's/, "step_ms": [^}]*//' "$1"; }
cmp <(timeless out/metrics.jsonl) <(timeless whole/metrics.jsonl)
# nothing piles up: the newest, one more, the links, the lock and the metrics,
# as lines and as events, which are as long as if nothing had happened
cmp <(wc -c <out/events.*) <(wc -c <whole/events.*)
[ "$(find out -mindepth 1 -maxdepth 1 | wc -l)" -le 10 ] || fail "$(ls -a out)"
echo "$kills kills, $hit of them within a save, ${last#step-} iterations"
