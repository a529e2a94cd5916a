#!/usr/bin/env bash
# same.sh [--long]: a run in four groups has the same losses and checkpoints,
# byte for byte, on one, two and four ranks and when it moves between them, over
# random configs, with ranks that have other instruction sets, threads and
# layouts. What can't be one run is refused by name before the first step.
# PL_CONFIGS: how many configs. PL_SEED: other ones.
set -eu
. tests/support/cli.sh
. tests/support/ranks.sh

configs=${PL_CONFIGS:-4}
if [ "${1:-}" = --long ] || [ -n "${PL_TEST_LONG:-}" ]; then
    configs=${PL_CONFIGS:-60}
fi
seed=${PL_SEED:-19}
RANDOM=$seed
echo "seed $seed (PL_SEED), $configs configs (PL_CONFIGS)"

cd "$TMP_DIR"
make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt

# layout: of one machine, in $own; none of it changes a bit
layout() {
    one 1 2
    own=("--threads=$chosen")
    one 0 1 2 3
    own+=("--grad_checkpoint=$chosen")
    one auto exact
    own+=("--fit=$chosen")
}

# of RANKS SETTINGS...: trains on so many, each with a layout of its own
of() {
    local ranks=$1 i command=()
    shift
    if [ "$ranks" -eq 1 ]; then
        layout
        expect 0 on 1 "$PLIMSOLL" train "$@" "${own[@]}"
        return
    fi
    for ((i = 0; i < ranks; i++)); do
        layout
        [ "$i" -eq 0 ] || command+=(:)
        command+=(-n 1 "$PLIMSOLL" train "$@" "${own[@]}")
    done
    expect 0 "${launch[@]}" "${command[@]}"
    says "^$ranks ranks by "
}

run=(--dataset=cats "${four[@]}" --eval_interval=4)
for ((i = 0; i < configs; i++)); do
    describe "$i"
    echo "$i: ${settings[*]}"
    for ranks in 1 2 4; do
        of $ranks "${run[@]}" "${settings[@]}" --max_iters=8 \
            --out_dir="$i-$ranks"
    done
    # it stops, at a save and between two, and moves on
    at=0
    for ranks in 4 1 2; do
        at=$((at + 1 + RANDOM % 3))
        [ $ranks -ne 2 ] || at=8
        if [ ! -e "$i-moves" ]; then
            of $ranks "${run[@]}" "${settings[@]}" --max_iters=$at \
                --out_dir="$i-moves"
        else
            of $ranks --resume "$i-moves" --max_iters=$at
            says '^Resuming training '
        fi
    done
    for other in 2 4 moves; do
        same "$i-1" "$i-$other"
    done
    cmp <(timeless "$i-1") <(timeless "$i-2")
    cmp <(timeless "$i-1") <(timeless "$i-4")
    cmp <(timeless "$i-1") <(timeless "$i-moves")
    grep -q '"loss"' "$i-1/metrics.jsonl" || fail "no losses: $i-1"
    [ "$(readlink "$i-1/latest")" = step-00000008 ] || fail "not at its end"
done

# Ranks of several instruction sets: where a processor lacks one, a rank takes
# the best that there is.
isas=(avx2 avx512 avx512bf16 amx)
for of in float32 bfloat16 amx; do
    how=("--dtype=$of" --products=exact) command=()
    [ "$of" != amx ] ||
        how=(--dtype=bfloat16 --products=amx --block_size=32)
    for ((i = 0; i < 4; i++)); do
        [ "$i" -eq 0 ] || command+=(:)
        command+=(-n 1 env "PLIMSOLL_ISA=${isas[i]}" "$PLIMSOLL" train
            "${run[@]}" "${how[@]}" --max_iters=6 "--out_dir=isa-$of")
    done
    expect 0 "${launch[@]}" "${command[@]}"
    expect 0 on 1 "$PLIMSOLL" train "${run[@]}" "${how[@]}" --max_iters=6 \
        --out_dir="isa-$of-1"
    same "isa-$of" "isa-$of-1"
done
kinds=$(for isa in "${isas[@]}"; do
    PLIMSOLL_ISA=$isa "$PLIMSOLL" train "${run[@]}" --max_iters=1 \
        --out_dir="kinds-$isa" |
        sed -n 's/^memory: .*, \([a-z0-9]*\) kernels$/\1/p'
done | sort -u | tr '\n' ' ')
echo "instruction sets together: $kinds"

# ---- what is refused ----

# refused PATTERN COMMAND...: at the start, on all ranks, without an out_dir
refused() {
    local pattern=$1 began code=0
    shift
    began=$(milliseconds)
    out=$("${launch[@]}" "$@" 2>&1 </dev/null) || code=$?
    [ "$code" -ne 0 ] || fail "not refused: $*"$'\n'"$out"
    says "$pattern"
    says_not '^(iter|step) '
    [ ! -e no/latest ] || fail "a checkpoint of what was refused: $*"
    [ $(($(milliseconds) - began)) -lt 20000 ] || fail "refused late: $*"
}
train=(train "${run[@]}" --max_iters=4 --out_dir=no)

refused 'rank 1 \(.*\) was started with another learning_rate than rank 0' \
    -n 1 "$PLIMSOLL" "${train[@]}" : \
    -n 1 "$PLIMSOLL" "${train[@]}" --learning_rate=2e-2
refused 'rank 3 \(.*\) was started with another n_layer than rank 0' \
    -n 3 "$PLIMSOLL" "${train[@]}" : \
    -n 1 "$PLIMSOLL" "${train[@]}" --n_layer=3

sed 's/cat number/dog number/' cats.txt >dogs.txt
expect 0 "$PLIMSOLL" prepare --out=data/dogs dogs.txt
refused 'rank 1 \(.*\) has other tokens in train.bin' \
    -n 1 "$PLIMSOLL" "${train[@]}" : \
    -n 1 "$PLIMSOLL" "${train[@]}" --dataset=dogs
# the same number of tokens, and one of them another
cp -r data/cats data/flip
printf '\001' | dd of=data/flip/val.bin bs=1 seek=20 conv=notrunc 2>/dev/null
cmp -s data/cats/val.bin data/flip/val.bin && fail "nothing was flipped"
refused 'rank 1 \(.*\) has other tokens in val.bin' \
    -n 1 "$PLIMSOLL" "${train[@]}" : \
    -n 1 "$PLIMSOLL" "${train[@]}" --dataset=flip

# the same tokens, one of which means another character
sed 'y/o/p/' cats.txt >letters.txt
expect 0 "$PLIMSOLL" prepare --out=data/letters letters.txt
cmp data/cats/train.bin data/letters/train.bin
refused 'rank 1 \(.*\) has another tokenizer beside the data than rank 0' \
    -n 1 "$PLIMSOLL" "${train[@]}" : \
    -n 1 "$PLIMSOLL" "${train[@]}" --dataset=letters

mkdir other
cp "$PLIMSOLL" "$(dirname "$PLIMSOLL")/plimsoll-mpi.so" other/
printf x >>other/plimsoll
refused 'rank 1 \(.*\) is another program than rank 0' \
    -n 1 "$PLIMSOLL" "${train[@]}" : -n 1 other/plimsoll "${train[@]}"

# without fused multiply-adds there are other bits
case $(uname -m) in
x86_64)
    refused 'rank 1 \(.*\) computes by arithmetic [0-9]+ and rank 0 .* by' \
        -n 1 "$PLIMSOLL" "${train[@]}" : \
        -n 1 env PLIMSOLL_ISA=base "$PLIMSOLL" "${train[@]}"
    ;;
esac

refused '3 processes were started: a power of two' \
    -n 3 "$PLIMSOLL" "${train[@]}"
refused 'gradient_groups' -n 4 "$PLIMSOLL" "${train[@]}" --gradient_groups=2
says 'gradient_groups ?= ?4'
refused 'gradient_groups' -n 2 "$PLIMSOLL" "${train[@]}" --gradient_groups=1
echo "$configs configs, and what is refused"
