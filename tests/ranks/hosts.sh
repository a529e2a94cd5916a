#!/usr/bin/env bash
# hosts.sh [bits] [links] [memory]: a run over four hosts, which are name spaces
# and cgroups of this machine (tests/support/hosts.sh). Needs root; script/hosts
# calls it. Without words, all of them:
#   bits    checkpoint and losses are those of one process, byte for byte, in
#           each dtype, on four hosts, two and one in turns, with files that no
#           two hosts share: each has its copy of the data, and rank 0 alone
#           has out_dir
#   links   one that is taken down at a random moment ends all ranks by their
#           own clocks, and the run goes on to the undisturbed bits
#   memory  each rank keeps its plan: the story's model in four cgroups of
#           exactly what its smallest plan takes
# PL_CUTS: how many links. PL_SEED: other moments.
set -eu
. tests/support/cli.sh
. tests/support/ranks.sh
. tests/support/hosts.sh

cuts=${PL_CUTS:-4}
[ -z "${PL_TEST_LONG:-}" ] || cuts=${PL_CUTS:-20}
seed=${PL_SEED:-19}
RANDOM=$seed
[ $# -gt 0 ] || set -- bits links memory
echo "seed $seed (PL_SEED), $cuts links (PL_CUTS)"
configs=$PWD/config
cd "$TMP_DIR"
hosts_open
make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
run=("$PLIMSOLL" train --dataset=cats "${four[@]}" --save_interval=5)

# copy_data: to every host
copy_data() {
    local i
    for i in 0 1 2 3; do
        tar -c data | enter h$i tar -x
    done
}

# refused PATTERN COMMAND...: on four hosts
refused() {
    local pattern=$1 code=0
    shift
    out=$(on_hosts "$@" 2>&1) || code=$?
    [ "$code" -ne 0 ] || fail "not refused: $*"$'\n'"$out"
    says "$pattern"
}

# cages BYTES: for the rank of each host; none: none
cages() {
    local i
    for i in 0 1 2 3; do
        rm -f "$host_dir/h$i/memory"
        [ "$1" = none ] || echo "$1" >"$host_dir/h$i/memory"
    done
}

# ---- the same bits, and files of their own ----

# move NUMBER: a run of $settings from four hosts to two, one, two and four
move() {
    local to at=0
    for to in 4 2 1 2 4; do
        hosts=$to
        if [ $at -eq 0 ]; then
            expect 0 on_hosts "${run[@]}" "${settings[@]}" --eval_interval=4 \
                --out_dir="out-$1" --max_iters=6
        else
            expect 0 on_hosts "$PLIMSOLL" train --resume "out-$1" \
                --max_iters=$((at + 3))
            says "^Resuming training from out-$1/step-.* at iteration $at\$"
        fi
        [ "$to" -eq 1 ] || says "^$to ranks by .*\(rank [0-3] \(h[0-3]\)\)"
        at=$((at ? at + 3 : 6))
    done
    for to in 1 2 3; do
        [ ! -e "$host_dir/h$to/out-$1" ] || fail "h$to has an out_dir"
    done
    expect 0 on 1 "${run[@]}" "${settings[@]}" --eval_interval=4 \
        --out_dir="one-$1" --max_iters=$at
    same "$host_dir/h0/out-$1" "one-$1"
    cmp <(timeless "$host_dir/h0/out-$1") <(timeless "one-$1")
    grep -q '"loss"' "one-$1/metrics.jsonl" || fail "no losses: one-$1"
}

try_bits() {
    local i
    for i in 0 1 2 3; do # machines that differ
        echo $(((80 + 10 * i) * 1000000)) >"$host_dir/h$i/memory"
    done
    for i in 0 1 2; do # float32, bfloat16, float16
        describe $i
        echo "$i: ${settings[*]}"
        move $i
    done
    hosts=4
    cages none

    # what only one of them has
    enter h2 rm data/cats/val.bin
    refused 'rank 2.*val\.bin' "${run[@]}" --out_dir=no --max_iters=12
    enter h2 cp data/cats/train.bin data/cats/val.bin
    refused 'rank 2 \(h2\) has other tokens in val.bin' "${run[@]}" \
        --out_dir=no --max_iters=12
    [ ! -e "$host_dir/h0/no/latest" ] || fail "a checkpoint after a refusal"
    enter h2 cp "$TMP_DIR/data/cats/val.bin" data/cats/val.bin
    echo "hosts by 4, 2 and 1: the checkpoint of one process, its losses"
}

# ---- links ----

timeout=3 # comm_timeout
# beyond it, to tell others (2 s), to ask the launcher (5 s), and to be slow
allowance=10

# ranks_left: how many processes of the run there are
ranks_left() {
    processes "$TMP_DIR.$cut" | while read -r pid; do
        case $(readlink "/proc/$pid/exe" 2>/dev/null) in
        */plimsoll) echo "$pid" ;;
        esac
    done | wc -l
}

# cut_off HOST: at a random moment of a run, which ends
cut_off() {
    local how began i pid
    how=("${run[@]}" --out_dir=cut)
    [ ! -e "$host_dir/h0/cut/latest" ] || how=("$PLIMSOLL" train --resume cut)
    : >log.txt
    on_hosts env "PL_TEST_RUN=$TMP_DIR.$cut" "${how[@]}" --max_iters=100000 \
        --comm_timeout=$timeout --log_interval=20 >log.txt 2>&1 &
    launcher=$!
    until grep -q '^iter ' log.txt; do
        kill -0 $launcher 2>/dev/null || fail "$(cat log.txt)"
        sleep 0.05
    done
    pause $((RANDOM % 2000))
    cable "$1" down
    began=$(milliseconds)
    while [ "$(ranks_left)" -gt 0 ]; do
        took=$(($(milliseconds) - began))
        [ $took -le $((1000 * (timeout + allowance))) ] ||
            fail "$1 was cut off, and $(ranks_left) ranks are there after" \
                "$took ms"$'\n'"$(cat log.txt)"
        sleep 0.05
    done
    took=$(($(milliseconds) - began))
    # The launcher's own processes know of no clock: an administrator's matter.
    cable "$1" up
    for i in 0 1 2 3; do
        for pid in $(ip netns pids "$host_spaces-$i"); do
            kill -9 "$pid" 2>/dev/null || true
        done
    done
    { wait $launcher; } 2>/dev/null || true
    grep -Eq "rank [0-3] \(h[0-3]\) has not been heard from for $timeout s" \
        log.txt || fail "no word of $1: $(cat log.txt)"
    grep -q 'plimsoll train --resume cut' log.txt || fail "$(cat log.txt)"
    ! grep -q 'damaged' log.txt || fail "$(cat log.txt)"
    echo "$1 was cut off: all ranks had ended after $took ms"
}

try_links() {
    local newest end slowest=0 first=$RANDOM
    for ((cut = 1; cut <= cuts; cut++)); do
        cut_off h$(((first + cut) % 4))
        [ $took -le $slowest ] || slowest=$took
    done
    newest=$(readlink "$host_dir/h0/cut/latest")
    end=$((10#${newest#step-} + 7))
    expect 0 on_hosts "$PLIMSOLL" train --resume cut --max_iters=$end
    expect 0 on 1 "${run[@]}" --out_dir=whole --max_iters=$end
    same "$host_dir/h0/cut" whole
    echo "$cuts links, the slowest end after $slowest ms, $end iterations"
}

# ---- memory ----

# watch_peaks FILE: until it is ended, what each rank has held at most, as
# "rank bytes" in FILE
watch_peaks() {
    local pid rank kilobytes held=()
    while sleep 0.2; do
        for pid in $(processes "$TMP_DIR.peaks"); do
            case $(readlink "/proc/$pid/exe" 2>/dev/null) in
            */plimsoll) ;;
            *) continue ;;
            esac
            rank=$(tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" |
                sed -n 's/^OMPI_COMM_WORLD_RANK=//p') || continue
            kilobytes=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' \
                "/proc/$pid/status" 2>/dev/null) || continue
            [ -z "$rank" ] || [ -z "$kilobytes" ] ||
                held[rank]=$((kilobytes * 1024))
        done
        for rank in "${!held[@]}"; do
            echo "$rank ${held[rank]}"
        done >"$1.new"
        mv "$1.new" "$1"
    done
}

# least_budget: of the largest rank's smallest plan, with the engine as it
# rounds it; from what is said when it isn't enough
least_budget() {
    local least engine both='arena \(.*\) bytes + reserve \(.*\) bytes) at'
    least=$(sed -n "s/.*$both.*/\1 \2/p" <<<"$out" | tr -d , |
        awk '{ sum = $1 + $2; if (sum > most) most = sum }
        END { printf "%.0f", most }')
    engine=$(sed -n 's/.*less \([0-9.]*\) MB for .*/\1/p' <<<"$out" |
        sort -n | tail -n 1 | awk '{ printf "%.0f", $1 * 1e6 }')
    [ -n "$least$engine" ] || fail "no numbers: $out"
    echo $(((least + engine + 4095) / 4096 * 4096)) # whole pages
}

try_memory() {
    local budget code caged peak story rank watch parameters=77355072
    # files on a disk, of all hosts: those in memory would count
    if ! host_disk=$(folder_on disk); then
        echo "not checked: there is no disk to write to"
        return
    fi
    # weights, gradients, and a quarter of two moments, of 4 bytes each
    local floor=$((parameters * 4 * 5 / 2)) bound
    bound=$((floor * 5 / 4))
    # GPT-2 tokens: any will do, of two bytes that are not zero, below 50304
    mkdir -p data/random
    LC_ALL=C awk 'BEGIN { for (i = 0; i < 50000; i++)
        printf "%c%c", 1 + (i * 7919) % 250, 1 + (i * 104729) % 190 }' \
        >data/random/train.bin
    cp data/random/train.bin data/random/val.bin
    copy_data
    story=("$PLIMSOLL" train "$configs/train_fineweb.py" --dataset=random
        --batch_size=4 --gradient_accumulation_steps=1 --gradient_groups=4
        --eval_iters=1 --eval_interval=1000 --eval_batch_size=1 --max_iters=1
        --dtype=float32 --vocab_size=50304 --threads=1 --device=cpu
        --comm_timeout=600 "--out_dir=$host_disk/story")
    CAGE='v1 v2' bash "$hosts_cage" --kind >/dev/null ||
        fail "no memory cgroup can be made here"
    refused 'are missing' "${story[@]}" --memory=600MB
    # until it is accepted: what the engine holds differs a little each time
    for ((budget = $(least_budget); ; budget += 25 * 4096)); do
        [ "$budget" -le $bound ] || fail "$budget bytes are over $bound"
        cages "$budget"
        code=0
        rm -f peaks
        watch_peaks peaks &
        watch=$!
        out=$(on_hosts env "PL_TEST_RUN=$TMP_DIR.peaks" "${story[@]}" \
            --memory="$budget" 2>&1) || code=$?
        kill $watch
        { wait $watch; } 2>/dev/null || true
        [ "$code" -ne 0 ] || break
        says 'are missing'
    done
    cages none
    says '^iter 0: loss '
    says '^4 ranks by '
    says_not 'the kernel killed it'
    caged=$(grep -c "^memory cage: cgroup .*, $budget bytes" <<<"$out") || true
    [ "$caged" = 4 ] || fail "not in four cages of $budget bytes: $out"
    # pages of libraries are charged to whoever read them first
    peak=$(exact 'peak memory: .*(')
    [ -n "$peak" ] || fail "no peak: $out"
    [ "$peak" -le "$budget" ] || fail "rank 0 held $peak bytes of $budget"
    for rank in 0 1 2 3; do
        peak=$(sed -n "s/^$rank //p" peaks)
        [ -n "$peak" ] || fail "rank $rank was not watched: $(cat peaks)"
        [ "$peak" -le "$budget" ] ||
            fail "rank $rank held $peak bytes of $budget"
        # the weights, gradients and moments are all taken
        [ "$peak" -ge $floor ] || fail "rank $rank was watched until $peak"
    done
    echo "held at most, by rank: $(sort -n peaks | tr '\n' ' ')"
    grep -E '^(4 ranks|peak memory|each rank sent)' <<<"$out"
    awk -v b="$budget" -v f=$floor -v m=$bound 'BEGIN { printf \
        "the smallest plan on four ranks, each in a cgroup of it: %.1f MB, " \
        "%.1f %% over weights, gradients and a quarter of the moments " \
        "(%.1f MB); the bound is 25 %%, %.1f MB\n", b / 1e6,
        100 * (b / f - 1), f / 1e6, m / 1e6 }'
}

copy_data
for part in "$@"; do
    case $part in
    bits) try_bits ;;
    links) try_links ;;
    memory) try_memory ;;
    *) fail "usage: hosts.sh [bits] [links] [memory]" ;;
    esac
done
