#!/usr/bin/env bash
# The folder of a run as people treat it: moved while the run goes, a move to
# earlier-1 that was broken off, links that a kill left behind.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
run=("$PLIMSOLL" train --dataset=cats "${tiny[@]}")
same_tensors() {
    cmp "$1/model.safetensors" "$2/model.safetensors"
    cmp "$1/optimizer.safetensors" "$2/optimizer.safetensors"
}
expect 0 "${run[@]}" --out_dir=whole --max_iters=20

# moved while it runs; another run begins where it was. Both end as they should
"${run[@]}" --out_dir=out --eval_interval=1000000 --save_interval=50 \
    --max_iters=200000 >log.txt 2>&1 &
pid=$!
until grep -q 'saving checkpoint to out/step-00000100' log.txt; do
    kill -0 "$pid" || fail "$(cat log.txt)"
    sleep 0.05
done
mv out moved
until grep -q 'out was moved: the run goes on in .*/moved$' log.txt; do
    kill -0 "$pid" || fail "$(cat log.txt)"
    sleep 0.05
done
expect 0 "${run[@]}" --out_dir=out --max_iters=20
same_tensors out/latest whole/latest
before=$(find out | sort)
kill -INT "$pid"
wait "$pid" || code=$?
out=$(cat log.txt)
[ "${code:-0}" -eq 130 ] || fail "exit code ${code:-0}: $out"
says '^stopped at iteration .*, saved in .*/moved/step-'
says '^to go on: plimsoll train --resume .*/moved$'
[ "$(find out | sort)" = "$before" ] || fail "the second run's: $(ls -a out)"
last=$(readlink moved/latest)
tail -n 1 moved/metrics.jsonl |
    grep -q "\"step\": $((10#${last#step-} - 1))," ||
    fail "metrics of $last: $(tail -n 1 moved/metrics.jsonl)"
expect 0 "$PLIMSOLL" train --resume moved --max_iters=$((10#${last#step-} + 1))

# killed while it moved the earlier run aside: --resume goes on with that
mkdir out/.moving
mv out/step-00000020 out/latest out/metrics.jsonl out/.moving/
expect 0 "$PLIMSOLL" train --resume out --max_iters=30
says 'a move to earlier-1 was broken off; it is taken back'
says '^Resuming training from out/step-00000020 at iteration 20$'
[ ! -e out/.moving ] || fail "$(ls -a out)"
# and a new run finishes it
mkdir out/.moving
mv out/best out/.moving/
expect 0 "${run[@]}" --out_dir=out --max_iters=10
says 'up to iteration 30: they are in out/earlier-1 now'
[ ! -e out/.moving ] && [ ! -e out/earlier-2 ] || fail "$(ls -a out)"
[ -e out/earlier-1/best/manifest.json ] || fail "$(ls -a out/earlier-1)"

# links that point to the one before
expect 0 "$PLIMSOLL" train --resume out --max_iters=20 --keep=9
[ "$(readlink out/best)" = step-00000020 ] || fail "best: $(readlink out/best)"
ln -sfn step-00000010 out/latest
ln -sfn step-00000010 out/best
expect 0 "$PLIMSOLL" train --resume out --max_iters=20
says 'latest pointed to step-00000010: it is step-00000020 now'
says 'best pointed to step-00000010: it is step-00000020 now'
[ "$(readlink out/latest)" = step-00000020 ] || fail "latest"
[ "$(readlink out/best)" = step-00000020 ] || fail "best"
says 'max_iters is 20 and this is iteration 20: nothing is left to train'

# without updates there is a checkpoint too
expect 0 "${run[@]}" --out_dir=none --max_iters=0
says '^saving checkpoint to none/step-00000000$'
[ -e none/latest/manifest.json ] || fail "$(ls -a none)"

# a run that is refused leaves no folder, except one that was there
expect 0 "$PLIMSOLL" export none --format=hf --out=torn
truncate -s -100 torn/model.safetensors
mkdir mine
for out_dir in new/deep mine; do
    expect 4 "${run[@]}" --init_from=torn --out_dir="$out_dir" --max_iters=1
    says 'model.safetensors: .* cut short'
done
[ ! -e new/deep ] || fail "$(ls -aR new)"
[ -d mine ] || fail 'the folder that was there is gone'
