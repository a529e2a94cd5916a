#!/usr/bin/env bash
# failures.sh [--long]: ranks that are killed, stopped and told to end at random
# moments, from the first one of their process on, and a disk that is full. Each
# time the run ends on all ranks, soon, with a word, and leaves nothing half
# written; another number of ranks goes on; and the end is that of one process
# which nobody disturbed. PL_FAILURES: how often. PL_SEED: other moments.
#
# The disk is a tmpfs in a name space of its own. Where the system allows no
# such thing it says so, and the rest is tested.
set -eu
. tests/support/cli.sh
. tests/support/ranks.sh
in_own_mounts "$@"

failures=${PL_FAILURES:-10}
if [ "${1:-}" = --long ] || [ -n "${PL_TEST_LONG:-}" ]; then
    failures=${PL_FAILURES:-100}
fi
seed=${PL_SEED:-19}
RANDOM=$seed
echo "seed $seed (PL_SEED), $failures failures (PL_FAILURES)"

timeout=2 # comm_timeout, of which there are five before the first step
# what it may take beyond that: all are told (1 s), asked to end (5 s) and
# killed by the launcher (2 s); twice, for other tests that run meanwhile
allowance=16

cd "$TMP_DIR"
make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
mkdir disk
[ "$PL_MOUNTED" = no ] || mount -t tmpfs -o size=192m none disk
# wide enough that every rank has blocks of its own to write
run=("$PLIMSOLL" train --dataset=cats "${four[@]}" --n_embd=192
    --save_interval=5 --log_interval=50)
out_dir=disk/out

# how long a start and a few saves take here, the first time and then
for i in 1 2; do
    began=$(milliseconds)
    expect 0 on 4 "${run[@]}" --out_dir=disk/first --max_iters=20
    window_ms=$(($(milliseconds) - began + 1))
done

mark=0
watch=
cleanup() {
    local pid
    [ -z "$watch" ] || kill "$watch" 2>/dev/null || true
    for pid in $(processes "$TMP_DIR.$mark"); do
        kill -9 "$pid" 2>/dev/null || true
    done
}
trap cleanup EXIT

# begin RANKS: the run goes on, or begins, in the background
begin() {
    local from=scratch
    [ ! -e $out_dir/latest ] || from=resume
    mark=$((mark + 1))
    : >log.txt
    PL_TEST_RUN=$TMP_DIR.$mark "${launch[@]}" -n "$1" "${run[@]}" \
        --out_dir=$out_dir --init_from=$from --max_iters=100000 \
        --comm_timeout=$timeout >log.txt 2>&1 </dev/null &
    launcher=$!
    # a run that doesn't end is a failure of its own
    (
        sleep 120
        kill -9 "$launcher"
    ) >/dev/null 2>&1 &
    watch=$!
}

# rank N: sets $victim once that rank is there
rank() {
    local began=$SECONDS
    victim=
    until [ -n "$victim" ]; do
        victim=$(processes "$TMP_DIR.$mark" "$1" | head -n 1)
        [ $((SECONDS - began)) -lt 20 ] || fail "no rank $1: $(cat log.txt)"
    done
}

# word PATTERN: is in the run's output
word() {
    grep -Eq -- "$1" log.txt ||
        fail "$what: exit code $code, no line matches: $1"$'\n'"$(cat log.txt)"
}

# ended CODES: it has, with one of these codes, in time, and nobody is left
ended() {
    local took pids began
    code=0
    { wait "$launcher"; } 2>/dev/null || code=$?
    took=$(($(milliseconds) - hit_at))
    kill "$watch" 2>/dev/null || true
    { wait "$watch"; } 2>/dev/null || true
    began=$(milliseconds)
    while pids=$(processes "$TMP_DIR.$mark") && [ -n "$pids" ]; do
        [ $(($(milliseconds) - began)) -lt 2000 ] ||
            fail "$what: still there: $pids"$'\n'"$(cat log.txt)"
        sleep 0.05
    done
    # Open MPI's launcher may crash on its own way out (4.1.4), behind the ranks
    if [ "$code" = 139 ] && grep -q 'PMIx_server_finalize' log.txt; then
        code=${1%% *}
    fi
    # MPICH's ends with the number of a signal, not with 128 more
    case $mpi:$code in
    MPICH:2 | MPICH:9 | MPICH:13 | MPICH:15) code=$((code + 128)) ;;
    esac
    [[ " $1 " = *" $code "* ]] ||
        fail "$what: exit code $code, expected $1"$'\n'"$(cat log.txt)"
    local most=$((5 * timeout + allowance))
    # once a step has begun
    ! grep -q '^iter ' log.txt || most=$((timeout + allowance))
    [ "$took" -le $((1000 * most)) ] ||
        fail "$what: ended after $took ms, $most s are allowed"
    [ "$took" -le "$slowest" ] || slowest=$took
    printf '%3d %-24s at %4d ms: exit %3d after %4d ms\n' \
        "$i" "$what" "$after_ms" "$code" "$took"
}

# The step of the checkpoint that the last run surely had: when it announced the
# next one, the one before was whole, unless the disk was full.
surely_saved() {
    [ "$kind" != disk ] || return 0
    sed -n 's/^saving checkpoint to .*step-0*\([0-9][0-9]*\)$/\1/p' log.txt |
        awk '{ before = last; last = $0 } END { print before }'
}

# What is in out_dir can be read, and isn't older than what was saved there.
look() {
    local began saved
    ! grep -q 'damaged' log.txt || fail "$what: $(cat log.txt)"
    began=$(sed -n 's/^Resuming training .*iteration \([0-9]*\)$/\1/p' log.txt)
    [ -z "$began" ] || [ "$began" -ge "$known" ] ||
        fail "$what: resumed at $began, but $known was saved before"
    saved=$(surely_saved)
    [ -z "$saved" ] || [ "$saved" -lt "$known" ] || known=$saved
    if [ -e $out_dir/latest ]; then
        expect 0 "$PLIMSOLL" inspect $out_dir/latest/
    else
        [ "$known" -eq 0 ] || fail "$what: no checkpoint is left"
    fi
}

fill() { head -c 1G /dev/zero >disk/filler 2>/dev/null || true; }

# wait_for PATTERN: until the run says so
wait_for() {
    until grep -Eq -- "$1" log.txt; do
        kill -0 "$launcher" 2>/dev/null || fail "$what: $(cat log.txt)"
        sleep 0.05
    done
}

resume_line='plimsoll train --resume disk/out'
anew_line='No checkpoint had been written yet: the same command starts it'

# fail_by KIND RANK
fail_by() {
    local pid
    hit_at=$(milliseconds)
    case $1 in
    kill) # the launcher says who it was, of one that has begun to speak to it
        kill -9 "$victim"
        ended 137
        if [ "$mpi" = MPICH ]; then # names none
            word 'signal 9'
        elif grep -q ' ranks by ' log.txt; then
            word "rank $2 .*signal 9"
        else
            word "rank $2 .*signal 9|process returned *$|non-zero exit code"
        fi
        ;;
    stop)
        kill -STOP "$victim"
        ended 7
        word "rank $2 (\(.*\) )?has not been heard|not all ranks have (begun)"
        ! grep -q 'has not been heard' log.txt || {
            word "^warning: [0-9-]+ [0-9:]+, rank [0-9]+: "
            # its end says it, not only its beginning
            if grep -q '^iter ' log.txt; then
                word "its newest checkpoint: $resume_line|$anew_line"
            else
                word "$resume_line|$anew_line|the run had not begun"
            fi
        }
        ;;
    TERM | INT) # before it listens, it is the system that ends it, and then
        # the launcher kills the others, or no longer reads what they print
        kill "-$1" "$victim"
        ended '130 143 137 141'
        word "$resume_line|exited on signal|stopped before"
        ;;
    all)
        for pid in $(processes "$TMP_DIR.$mark"); do
            [ "$pid" = "$launcher" ] || kill -TERM "$pid" 2>/dev/null || true
        done
        ended '143 137 141'
        word "$resume_line|exited on signal|stopped before"
        ;;
    launcher) # asks all to end, and has a code of its own
        kill -TERM "$launcher"
        if [ "$mpi" = MPICH ]; then # 0, where all have saved
            ended '0 1 143'
        else
            ended '1 143'
        fi
        ;;
    disk) # is a matter of the next checkpoint; the run goes on, and is told
        wait_for 'saving checkpoint'
        fill
        wait_for '[Nn]o space left'
        wait_for '[Nn]o space left'
        rank "$2"
        hit_at=$(milliseconds)
        kill -TERM "$victim"
        ended 1
        word '[Nn]o space left'
        rm -f disk/filler
        ;;
    esac
}

kinds=(kill stop TERM disk kill all INT stop kill launcher)
known=0
slowest=0
for ((i = 1; i <= failures; i++)); do
    kind=${kinds[(i - 1) % ${#kinds[@]}]}
    [ "$kind" != disk ] || [ "$PL_MOUNTED" = yes ] || kind='kill'
    ranks=$((RANDOM % 3 == 0 ? 2 : 4))
    who=$((RANDOM % ranks))
    what="$kind, rank $who of $ranks"
    begin $ranks
    after_ms=$((RANDOM % (2 * window_ms)))
    pause $after_ms
    rank $who
    fail_by "$kind" $who
    look
    # one process goes on with what others left
    if ((i % 4 == 0)) && [ "$known" -gt 0 ]; then
        expect 0 "${run[@]}" --out_dir=$out_dir --init_from=resume \
            --max_iters=$((known + 50))
        says '^Resuming training from '
        known=$((known + 50))
    fi
done
[ "$known" -gt 0 ] || fail "no failure was late enough for a checkpoint"

# on to the end, and the same undisturbed
expect 0 on 4 "${run[@]}" --out_dir=$out_dir --init_from=resume \
    --max_iters=$((known + 9))
says '^Resuming training from '
last=$(readlink $out_dir/latest)
expect 0 on 1 "${run[@]}" --out_dir=disk/whole --max_iters=$((10#${last#step-}))
same $out_dir disk/whole
cmp <(timeless $out_dir) <(timeless disk/whole)
# A rank that stops while messages are under way which MPI doesn't send at once,
# but in pieces that both sides wait for: they are larger, and it is TCP.
if [ "$mpi" = 'Open MPI' ]; then
    launch+=(--mca btl 'tcp,self')
fi
run+=(--n_layer=4 --n_embd=512 --block_size=8 --batch_size=1 --log_interval=1
    --gradient_accumulation_steps=2 --gradient_groups=2 --eval_iters=1
    --save_interval=1000000)
for ((; i <= failures + 4; i++)); do
    out_dir=wide$i
    what="stop, rank 1 of 2, wide"
    begin 2
    wait_for '^iter 2:'
    after_ms=$((RANDOM % 1000))
    pause $after_ms
    rank 1
    hit_at=$(milliseconds)
    kill -STOP "$victim"
    ended 7
    word 'rank 1 (\(.*\) )?has not been heard'
    rm -rf "$out_dir"
done
echo "$failures failures, the slowest end after $slowest ms, $last"
