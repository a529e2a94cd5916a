#!/usr/bin/env bash
# planned.sh: what `plan --ranks` says fits can be trained with that memory, and
# a rank holds no more than it has planned, also where evaluations are large.
# What each writes into a folder in memory is in its plan.
set -eu
. tests/support/cli.sh
. tests/support/ranks.sh

cd "$TMP_DIR"
make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
# files on a disk: those in memory would count
disk=$(folder_on disk) || fail "no folder on a disk"
trap 'rm -rf "$disk"' EXIT
run=(--dataset=cats "${four[@]}" --max_iters=2)

# fits MEGABYTES SETTINGS...: sets $least, the first from there that does
fits() {
    least=$1
    shift
    until "$PLIMSOLL" plan "${run[@]}" "$@" --ranks=4 --memory="${least}MB" \
        >plan.txt 2>&1; do
        least=$((least + 1))
        [ $least -lt 1000 ] || fail "nothing fits: $(cat plan.txt)"
    done
}

# trains MEGABYTES SETTINGS...: within what was planned
trains() {
    local memory=$1 peak planned
    shift
    expect 0 on 4 "$PLIMSOLL" train "${run[@]}" "$@" --memory="${memory}MB" \
        --out_dir="$disk/out"
    says '^iter 1: '
    says_not 'more than was planned'
    peak=$(exact 'peak memory: .*(')
    [ "$peak" -le $((memory * 1000000)) ] ||
        fail "rank 0 held $peak bytes of $memory MB"
}

fits 20
small=$least
trains "$small"
# what is found of each sequence is kept on every rank: 24 bytes of 1.3 million
many=(--eval_iters=20000 --eval_batch_size=64 --n_layer=1 --block_size=4
    --eval_interval=2)
fits "$small" "${many[@]}"
[ $((least - small)) -ge 29 ] || fail "$least MB are enough for that"
trains "$least" "${many[@]}"

# ranks DIR: trains there; sets $least and $most, of what the four have planned
ranks() {
    expect 0 on 4 "$PLIMSOLL" train "${run[@]}" --n_embd=192 --keep=1 \
        --out_dir="$1/out"
    local line='^4 ranks by .*, from ([0-9.]+) MB .* to ([0-9.]+) MB .*'
    says "$line"
    read -r least most <<<"$(sed -nE "s/$line/\1 \2/p" <<<"$out")"
}
if tmpfs=$(folder_on memory); then
    trap 'rm -rf "$disk" "$tmpfs"' EXIT
    rm -rf "$disk/out"
    ranks "$disk"
    on_disk=$least
    ranks "$tmpfs"
    # three checkpoints of 12 bytes for each of 0.9 million weights, of which
    # the others have at most a quarter each, and a fifth at least
    awk "BEGIN { exit !($least - $on_disk > 6 && $most - $on_disk > 30) }" ||
        fail "from $least to $most MB in memory, $on_disk on a disk"
    echo "with files in memory from $least to $most MB, $on_disk on a disk"
fi
echo "4 ranks in $small MB each, with large evaluations in $least MB"
