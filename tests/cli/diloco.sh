#!/usr/bin/env bash
# Workers that meet every few updates (sync_interval, DiLoCo), started by
# mpirun: the same bits twice and in another layout; a run that was stopped
# between two meetings ends with those of one that was not; and what can't work
# is refused with what would.
set -eu
. tests/support/cli.sh
work_on_disk

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
settings=(--dataset=cats "${tiny[@]}" --threads=1 --device=cpu --max_iters=6
    --sync_interval=3 --dropout=0.1 --eval_interval=4 --keep=5)

# ---- without a launcher ----

expect 3 "$PLIMSOLL" train "${settings[@]}" --gradient_groups=2 --out_dir=alone
says 'mpirun -n 2 plimsoll train'
[ ! -e alone ] || fail 'a run that was refused has left a folder'
expect 3 "$PLIMSOLL" train "${settings[@]}" --max_iters=7
says 'max_iters = 9 is the next'
expect 0 "$PLIMSOLL" plan "${settings[@]}" --gradient_groups=4
says '^outer state +[0-9.]+ [kM]B'
expect 0 "$PLIMSOLL" plan "${settings[@]}" --gradient_groups=4 --steps
says 'outer .*anchor'
expect 0 "$PLIMSOLL" train "${settings[@]}" --out_dir=one
says '^step 6: '
says_not '^step 4: ' # there is one model only where workers meet

# ---- with one ----

if [ ! -f "$(dirname "$PLIMSOLL")/plimsoll-mpi.so" ]; then
    echo 'no MPI when this was built: several processes are left out'
    exit 0
fi
command -v mpirun >/dev/null || fail 'MPI was built, and mpirun is missing'
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# several N ARGUMENTS...: as N processes
several() {
    local processes=$1
    shift
    timeout 120 mpirun --oversubscribe -n "$processes" "$PLIMSOLL" "$@" \
        </dev/null
}

# refused N ARGUMENTS...: which rank is the first to end with a code, and so
# the launcher's code, is open
refused() {
    ! out=$(several "$@" 2>&1) || fail "not refused: $*"
}

# sum OUT_DIR: of all tensors of its last step
sum() {
    (cd "$1/step-00000006" && cat ./*.safetensors | md5sum)
}

# same OUT_DIR OUT_DIR
same() {
    [ "$(sum "$1")" = "$(sum "$2")" ] || fail "$1 and $2 have other bits"
}

for workers in 2 4; do
    own=("${settings[@]}" --gradient_groups="$workers")
    expect 0 several $workers train "${own[@]}" --save_interval=4 \
        --out_dir=a$workers
    says '^step 6: '
    says_not '^step 4: '
    says 'each rank sent [0-9]+ bytes per update, [0-9.]+ % more than the least'
    [ "$(find a$workers/step-00000006 -name 'worker-*' | wc -l)" = \
        $((workers - 1)) ] || fail 'not a file for every other worker'
    expect 0 several $workers train "${own[@]}" --save_interval=5 \
        --fit=exact --grad_checkpoint=3 --out_dir=b$workers
    same a$workers b$workers
    # a stop at iteration 4, which is no meeting
    cp -r a$workers c$workers
    rm -rf c$workers/step-00000006
    expect 0 several $workers train --resume c$workers
    says 'at iteration 4$'
    same a$workers c$workers
    [ "$(sum a$workers)" != "$(sum one)" ] || fail 'workers make no difference'
done

# ---- a checkpoint of several ----

for command in inspect 'sample --max_new_tokens=5 --start=the' eval; do
    # shellcheck disable=SC2086
    expect 0 "$PLIMSOLL" $command a2
done
expect 0 "$PLIMSOLL" export a2 --out=a2.gguf
expect 3 "$PLIMSOLL" train --resume a2 --max_iters=9
says 'mpirun -n 2 plimsoll train'
refused 4 train --resume a2 --max_iters=9
says '4 processes were started.*gradient_groups = 2.*mpirun -n 2'
refused 4 train --resume a2 --max_iters=9 --gradient_groups=4
says 'state of 2 workers.*mpirun -n 2 plimsoll train --resume a2'
expect 4 "$PLIMSOLL" train --resume a2 --max_iters=9 --sync_interval=1
says 'state of 2 workers'
printf x | dd of=a2/step-00000006/worker-00001.safetensors bs=1 seek=999 \
    conv=notrunc status=none
expect 0 several 2 train --resume a2 --max_iters=9
says 'worker-00001.safetensors'
says 'at iteration 4$'

# ---- a stop while it runs ----

own=("${settings[@]}" --gradient_groups=2 --max_iters=60 --n_embd=32
    --block_size=64 --batch_size=16 --keep=0)
expect 0 several 2 train "${own[@]}" --eval_interval=30 --out_dir=whole
mpirun --oversubscribe -n 2 "$PLIMSOLL" train "${own[@]}" --eval_interval=30 \
    --out_dir=cut </dev/null >cut.log 2>&1 &
job=$!
for ((i = 0; i < 600; i++)); do
    ! grep -q '^iter 6:' cut.log || break
    sleep 0.1
done
read -r -a processes <"/proc/$job/task/$job/children" || true # no line's end
kill -TERM "${processes[1]}" # one of them, and all of them save
! wait "$job" || fail 'it ended as if nothing had been'
grep -q 'to go on: ' cut.log || fail "$(cat cut.log)"
expect 0 several 2 train --resume cut
cmp <(cd whole/latest && cat ./*.safetensors) \
    <(cd cut/latest && cat ./*.safetensors) || fail 'a stop changed the bits'
