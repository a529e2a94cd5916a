#!/usr/bin/env bash
# memory = '2GB' is a promise: a run inside a memory cgroup (or, where none can
# be made, under a limit of its address space) that allows exactly its plan.
# A twin of the story's model, 128 channels wide, trains, evaluates and saves in
# it, literally and at the smallest plan; with less it refuses at once. Its
# out_dir lies on a disk then; one in memory takes its share of the cage, which
# another model shows. With PL_TEST_LONG=1 the story's own model does the first,
# on the build that users run, which takes some minutes.
set -eu
. tests/support/cli.sh
unset PLIMSOLL_CALIBRATE
cage=$PWD/tests/support/memory_cage.sh
configs=$PWD/config
cd "$TMP_DIR"
disk=$(folder_on disk) || disk=
memory=$(folder_on memory) || memory=
trap 'rm -rf ${disk:+"$disk"} ${memory:+"$memory"}' EXIT
[ -n "$disk$memory" ] || fail "no place to write to"

# GPT-2 tokens: any will do, of two bytes that are not zero, below 50304
mkdir -p data/random
LC_ALL=C awk 'BEGIN { for (i = 0; i < 100000; i++)
    printf "%c%c", 1 + (i * 7919) % 250, 1 + (i * 104729) % 190 }' \
    >data/random/train.bin
cp data/random/train.bin data/random/val.bin
# and tokens from 257 to 506
mkdir data/few
LC_ALL=C awk 'BEGIN { for (i = 0; i < 9000; i++)
    printf "%c%c", 1 + (i * 7919) % 250, 1 }' >data/few/train.bin
cp data/few/train.bin data/few/val.bin

run=(--dataset=random --gradient_accumulation_steps=1 --eval_iters=1
    --eval_interval=1 --max_iters=1 --dtype=float32 --vocab_size=50304)

# plan_of CODE SETTINGS...: sets $arena, $reserve, $least, without files
plan_of() {
    local code=$1
    shift
    expect "$code" "$PLIMSOLL" plan "$configs/train_fineweb.py" "${run[@]}" \
        --out_dir="${disk:-$memory}/plan" "$@" --json
    arena=$(number arena_bytes)
    reserve=$(number reserve_bytes)
    least=$(number smallest_arena_bytes)
}

# caged BYTES FOLDER SETTINGS...: trains in a cage of so many bytes
caged() {
    local bytes=$1 folder=$2
    shift 2
    expect 0 bash "$cage" "$bytes" "$PLIMSOLL" train \
        "$configs/train_fineweb.py" "${run[@]}" --out_dir="$folder/out" "$@"
    peak=$(exact 'peak memory: .*(')
    [ -n "$peak" ] || fail "no peak: $out"
    echo "cage $bytes: arena $arena reserve $reserve peak $peak"
    [ "$peak" -le $((arena + reserve)) ] || fail "peak $peak over the plan"
    [ "$peak" -ge $((arena - arena / 100)) ] || fail "peak $peak: no such arena"
}

try_model() {
    # the config as it stands, level 0, all sequences at once
    plan_of 0 "$@" --fit=exact
    full=$arena
    caged $((arena + reserve)) "$disk" "$@" --fit=exact
    # accumulation changes no byte: the full config has the same plan
    plan_of 0 "$@" --fit=exact --gradient_accumulation_steps=32
    [ "$arena" = "$full" ] || fail "accumulation 32: $arena, 1: $full"

    # the smallest plan there is
    plan_of 5 "$@" --memory=1
    arena=$least
    plan_of 0 "$@" --memory=$((least + reserve))
    says '"fits": true'
    caged $((arena + reserve)) "$disk" "$@" --memory=$((least + reserve))

    # and with 5 % less it refuses, at once, with the numbers
    expect 5 "$PLIMSOLL" train "$configs/train_fineweb.py" "${run[@]}" \
        --out_dir="$disk/no" "$@" --memory=$(((least + reserve) * 95 / 100))
    says '[0-9.]+ [MG]B are missing'
    says_not '^iter'
}

# Checkpoints in memory count: the plan alone is refused with their number and
# size, and what that asks for is enough.
try_in_memory() {
    plan_of 0 "$@" --fit=exact
    expect 5 "$PLIMSOLL" train "$configs/train_fineweb.py" "${run[@]}" \
        --out_dir="$memory/no" "$@" --fit=exact --memory=$((arena + reserve))
    says 'is in memory \(tmpfs\)'
    says '[0-9]+ checkpoints of [0-9.]+ [MG]B'
    needs=$(($(exact '(arena ') + $(exact '+ reserve ') + $(exact '+ files ')))
    [ "$needs" -gt $((arena + reserve)) ] || fail "no files: $out"
    caged "$needs" "$memory" "$@" --fit=exact

    # a plan that leaves no room for them gives way to a smaller one
    files=$((needs - arena - reserve))
    plan_of 5 "$@" --memory=1
    arena=$least
    caged $((least + reserve + files)) "$memory" "$@" \
        --memory=$((least + reserve + files))
}

bash "$cage" --kind || true
if [ -n "$memory" ]; then
    try_in_memory --n_embd=128 --n_layer=4 --n_head=4 --block_size=64 \
        --batch_size=4 --dataset=few --vocab_size=512 --max_iters=4
else
    echo "not checked: an out_dir in memory (there is no such file system here)"
fi
if [ -z "$disk" ]; then
    echo "not checked: an out_dir on a disk (there is none here)"
    exit 0
fi
try_model --n_embd=128 --n_layer=3 --n_head=4 --block_size=128 --batch_size=4
case ${PL_TEST_LONG:-0}:$PLIMSOLL in
1:*/release/*) try_model ;;
esac
