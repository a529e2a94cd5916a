#!/usr/bin/env bash
# A file system of its own that fills up and is cleared again while a run saves
# to it, and kill -9 in between: the run goes on, warns, and ends as one that
# nobody disturbed. Mounts a small tmpfs in a name space of its own; where the
# system allows no such thing it says so, and fault_run_faults, in which every
# Nth write fails, is all there is. PL_KILLS: how often.
set -eu
. tests/support/cli.sh

if [ -z "${PL_MOUNTED:-}" ]; then
    if ! unshare -rm true 2>/dev/null; then
        echo "no name spaces for users here: nothing was mounted"
        exit 0
    fi
    PL_MOUNTED=1 exec unshare -rm bash "$0"
fi

rounds=${PL_KILLS:-6}
[ -z "${PL_TEST_LONG:-}" ] || rounds=${PL_KILLS:-50}
cd "$TMP_DIR"
make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
run=("$PLIMSOLL" train --dataset=cats "${tiny[@]}" --eval_interval=1000000
    --save_interval=3)

# room for the files of a run, and some more
expect 0 "${run[@]}" --out_dir=first --max_iters=3
bytes=$(du -sb first/latest/ | cut -f 1)
mkdir disk
mount -t tmpfs -o size=$((12 * bytes + 160 * 1048576)) none disk

fill() { head -c 1G /dev/zero >disk/filler 2>/dev/null || true; }

warned=0
for ((i = 1; i <= rounds; i++)); do
    from=scratch
    [ ! -e disk/out/latest ] || from=resume
    : >log.txt
    "${run[@]}" --out_dir=disk/out --init_from=$from --max_iters=200000 \
        >log.txt 2>&1 &
    pid=$!
    until grep -q 'saving checkpoint' log.txt; do
        kill -0 "$pid" || fail "round $i: $(cat log.txt)"
        sleep 0.05
    done
    fill
    sleep "0.$((RANDOM % 9))"
    rm -f disk/filler
    sleep "0.$((RANDOM % 3))"
    fill
    sleep "0.2$((RANDOM % 10))"
    kill -9 "$pid" 2>/dev/null || true
    code=0
    { wait "$pid"; } 2>/dev/null || code=$?
    [ "$code" -eq 137 ] || fail "round $i: exit code $code: $(tail -5 log.txt)"
    ! grep -q 'damaged' log.txt || fail "round $i: $(cat log.txt)"
    ! grep -qi 'no space left' log.txt || warned=$((warned + 1))
    rm -f disk/filler
done
[ "$warned" -gt 0 ] || fail "the disk was never full: $(cat log.txt)"

last=$(readlink disk/out/latest)
end=$((10#${last#step-} + 7))
expect 0 "${run[@]}" --out_dir=disk/out --init_from=resume --max_iters=$end
expect 0 "${run[@]}" --out_dir=disk/whole --max_iters=$end
for file in model.safetensors optimizer.safetensors; do
    cmp disk/out/latest/$file disk/whole/latest/$file
done

# a mount over it: nothing is written there, and the run goes on when it is gone
: >log.txt
"${run[@]}" --out_dir=disk/out --init_from=resume --max_iters=200000 \
    >log.txt 2>&1 &
pid=$!
# waits_for WORDS: until the run says so
waits_for() {
    until grep -q "$1" log.txt; do
        kill -0 "$pid" || fail "no \"$1\": $(cat log.txt)"
        sleep 0.05
    done
}
waits_for 'saving checkpoint'
mount -t tmpfs -o size=1m none disk
waits_for 'out of reach: was it unmounted'
[ -z "$(ls -A disk)" ] || fail "in the other mount: $(ls -A disk)"
umount disk
newest=$(readlink disk/out/latest)
until [ "$(readlink disk/out/latest)" != "$newest" ]; do
    kill -0 "$pid" || fail "it didn't go on: $(cat log.txt)"
    sleep 0.05
done
kill -9 "$pid"
{ wait "$pid"; } 2>/dev/null || true
echo "$rounds rounds, $warned of them with a full disk, $end iterations"
