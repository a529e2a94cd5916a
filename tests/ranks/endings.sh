#!/usr/bin/env bash
# endings.sh: what is said when a run fails, on all ranks together. One of them
# says how to go on: rank 0 or, where that is gone, the first that is left. Each
# knows which checkpoint is the newest, and whether there is one at all.
#
# The disk that is full is a tmpfs in a name space of its own. Where the system
# allows no such thing it says so, and the rest is tested.
set -eu
. tests/support/cli.sh
. tests/support/ranks.sh
in_own_mounts "$@"

cd "$TMP_DIR"
make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
train=("$PLIMSOLL" train --dataset=cats "${four[@]}" --max_iters=100000
    --comm_timeout=3)

cleanup() {
    local pid
    for pid in $(processes "$TMP_DIR"); do
        kill -9 "$pid" 2>/dev/null || true
    done
}
trap cleanup EXIT

# begin COMMAND...: on four ranks, in the background
begin() {
    : >log.txt
    PL_TEST_RUN=$TMP_DIR "${launch[@]}" -n 4 "$@" >log.txt 2>&1 </dev/null &
    launcher=$!
}

# reach PATTERN: until the run has said so
reach() {
    until grep -Eq -- "$1" log.txt; do
        kill -0 "$launcher" 2>/dev/null || fail "$1: $(cat log.txt)"
        sleep 0.05
    done
}

# hit SIGNAL RANK
hit() {
    kill "-$1" "$(processes "$TMP_DIR" "$2" | head -n 1)"
}

# ended CODE: it has, and $out is what was said
ended() {
    local code=0
    { wait "$launcher"; } 2>/dev/null || code=$?
    out=$(cat log.txt)
    [ "$code" = "$1" ] || fail "exit code $code, expected $1"$'\n'"$out"
    says_not 'null'
}

# once PATTERN: says that, in one line
once() {
    [ "$(grep -Ec -- "$1" <<<"$out")" = 1 ] ||
        fail "not once: $1"$'\n'"$out"
}

# ---- it diverges: all find out ----

expect 3 on 4 "${train[@]}" --save_interval=1 --learning_rate=1e30 \
    --warmup_iters=0 --decay_lr=False --grad_clip=0 --max_skipped=3 \
    --out_dir=diverged
says_not 'null'
once 'rank 0: .* the run has diverged\. .* checkpoint, diverged/step-0'
once 'the run has diverged'
says_not 'no checkpoint'
once '^note: the run has ended on all ranks$'
says_not 'To go on'

# ---- one is silent ----

# before there is a checkpoint
begin "${train[@]}" --save_interval=1000000 --out_dir=early
reach '^iter 20:'
hit STOP 2
ended 7
once 'the run has ended on all ranks\. No checkpoint had been written yet: the'
says_not 'To go on'

# rank 0, behind a few; then the first one that is left knows rank 0's folder
begin "${train[@]}" --save_interval=5 --out_dir=silent
reach '^saving checkpoint to silent/step-00000010'
hit STOP 3
ended 7
once '^note: the run has ended on all ranks\. To go on .* --resume silent,'
says ', rank 0: '
begin "$PLIMSOLL" train --resume silent
reach '^iter [0-9]*0:'
hit STOP 0
ended 7
says ', rank 1: .*rank 0 \(.*\) has not been heard from for 3 s'
note='^note: the run has ended on all ranks\. To go on .* --resume silent,'
# behind its warning; another rank's may stand between the two
sed -n '/, rank 1: /,$p' log.txt | grep -Eq "$note" ||
    fail "not by rank 1: $out"
# the launcher wakes rank 0 up before it ends it
[ "$(grep -Ec "$note" log.txt)" = $((1 + $(grep -c ', rank 0: ' log.txt))) ] ||
    fail "by others, too: $out"

# ---- the last checkpoint can't be saved ----

if [ "$PL_MOUNTED" = yes ]; then
    mkdir disk
    mount -t tmpfs -o size=192m none disk
    begin "${train[@]}" --save_interval=5 --out_dir=disk/out
    reach '^saving checkpoint to disk/out/step-00000015'
    head -c 1G /dev/zero >disk/filler 2>/dev/null || true
    reach '[Nn]o space left'
    hit TERM 3
    ended 1
    newest=$(readlink disk/out/latest)
    says '[Nn]o space left.*[a-z]\. The run goes on'
    says 'cannot save .*[a-z]\. It was tried 3 times\. The iterations from'
    once " are lost: the newest checkpoint is disk/out/$newest\$"
    once ' are lost: '
    once '^note: the run has ended on all ranks\. To go on .* --resume disk/out'

    # room for one checkpoint and rank 0's part of the next, not for all of it:
    # another rank says so, nothing is left of that save, and the next one
    # succeeds
    umount disk
    mount -t tmpfs -o size=192m none disk
    large=("${train[@]}" --n_layer=4 --n_embd=192 --block_size=32
        --save_interval=40 --keep=1)
    expect 0 "${large[@]}" --max_iters=1 --out_dir=large
    one=$(du -sB1 large/latest/ | cut -f 1)
    size=$(df --output=size -B1 disk | tail -n 1)
    begin "${large[@]}" --out_dir=disk/out
    reach '^iter 0:'
    fallocate -l $((size - one - one * 4 / 5)) disk/filler
    reach 'rank [123] \(.*\): .*[Nn]o space left'
    failed=$(grep -c '^saving checkpoint' log.txt)
    [ "$failed" -ge 2 ] || fail "the first save, too: $(cat log.txt)"
    rm disk/filler
    until [ "$(grep -c '^saving checkpoint' log.txt)" -ge $((failed + 2)) ]; do
        kill -0 "$launcher" 2>/dev/null || fail "ended: $(cat log.txt)"
        sleep 0.05
    done
    hit TERM 3
    ended 143
    left=$(find disk/out -name 'shared-*' -o -name '*.tmp*')
    [ -z "$left" ] || fail "left behind: $left"
    newest=$(readlink disk/out/latest)
    steps=${newest#step-}
    expect 0 "$PLIMSOLL" train "${four[@]}" --dataset=cats --n_layer=4 \
        --n_embd=192 --block_size=32 --out_dir=disk/one \
        --max_iters=$((10#$steps))
    same disk/out disk/one
fi
echo "who says what when a run fails"
