#!/usr/bin/env bash
# Who writes a checkpoint: all ranks into a folder that they share; rank 0 alone
# where one of them can't, and says why. Either way it has the bytes that one
# process writes, and goes on; that of workers (sync_interval), too. A disk that
# gets full under them is a matter of endings.sh.
#
# The folder that another one lies upon is an overlay in a name space of its
# own. Where the system allows no such thing it says so, and the rest is tested.
set -eu
. tests/support/cli.sh
. tests/support/ranks.sh
in_own_mounts "$@"

cd "$TMP_DIR"
make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
# large enough that every rank has whole blocks of each file
run=(--dataset=cats "${four[@]}" --n_layer=3 --n_embd=352 --block_size=32
    --max_iters=4)
all='^note: checkpoints: all 4 ranks write their parts into one folder; of '
all+='this one rank 0 has left ([0-9.]+) MB to the others$'
first='^note: checkpoints: rank 0 gathers what the others keep, and writes it'

# apart ARGUMENTS...: four ranks, the last of them in a folder of its own, as on
# a machine that shares no disk
mkdir alone
cp -r data alone/
apart() {
    expect 0 "${launch[@]}" -n 3 "$PLIMSOLL" "$@" : \
        -n 1 -wdir "$TMP_DIR/alone" "$PLIMSOLL" "$@"
}

# sums OUT_DIR: of its newest tensors
sums() {
    grep -A 2 '"[a-z0-9-]*\.safetensors"' "$1/latest/manifest.json"
}

# whole OUT_DIR: says nothing if it has what the manifest promises, and nothing
# that was on the way
whole() {
    local left
    left=$(find "$1" -name 'shared-*' -o -name '*.tmp*')
    [ -z "$left" ] || fail "left behind: $left"
    expect 0 "$PLIMSOLL" eval "$1" --dataset=cats --eval_iters=1
}

for how in float32 '8bit --optimizer=muon' 'float32 --architecture=qwen3'; do
    read -ra words <<<"--optimizer_state=$how"
    settings=("${run[@]}" "${words[@]}")
    rm -rf one shared own alone/own
    expect 0 on 1 "$PLIMSOLL" train "${settings[@]}" --out_dir=one
    expect 0 on 4 "$PLIMSOLL" train "${settings[@]}" --out_dir=shared
    says "$all"
    left=$(sed -nE "s/$all/\\1/p" <<<"$out")
    # half at least: all but its quarter, and blocks that two ranks have
    bytes=$(cat shared/latest/*.safetensors | wc -c)
    awk "BEGIN { exit !($left * 2e6 > $bytes) }" ||
        fail "rank 0 left $left MB of $bytes bytes"
    same one shared
    whole shared
    apart train "${settings[@]}" --out_dir=own
    says "$first, since rank 3 \\(.*\\) can't write to the same folder: .*own/"
    same one own
    whole own
    [ ! -e alone/own ] || fail 'rank 3 has written a folder'
    for kind in shared own; do
        expect 0 on 2 "$PLIMSOLL" train --resume $kind --max_iters=6
        says '^note: checkpoints: all 2 ranks write'
    done
    expect 0 on 1 "$PLIMSOLL" train --resume one --max_iters=6
    same one shared
    same one own
    cmp <(sums one) <(sums shared) || fail 'the sums differ'
done

# workers: each has a file of its own
workers=("${run[@]}" --sync_interval=2)
expect 0 on 4 "$PLIMSOLL" train "${workers[@]}" --out_dir=w-shared
says "$all"
apart train "${workers[@]}" --out_dir=w-own
says "$first"
for file in w-shared/latest/*.safetensors; do
    cmp "$file" "w-own/latest/${file##*/}" || fail "$file differs"
done
[ -e w-shared/latest/worker-00003.safetensors ] || fail 'no file of a worker'
cmp <(sums w-shared) <(sums w-own) || fail 'the sums of workers differ'
expect 0 on 4 "$PLIMSOLL" train --resume w-shared --max_iters=8
apart train --resume "$TMP_DIR/w-own" --max_iters=8
for file in w-shared/latest/*.safetensors; do
    cmp "$file" "w-own/latest/${file##*/}" || fail "$file differs at 8"
done

# a rank that may not write files as large
expect 0 "${launch[@]}" -n 3 "$PLIMSOLL" train "${run[@]}" --out_dir=limit : \
    -n 1 bash -c 'ulimit -f 1000; exec "$@"' - "$PLIMSOLL" train "${run[@]}" \
    --out_dir=limit
says "$first, since rank 3 .*ulimit -f"
whole limit

# a rank that can't even look for it
ln -s loop alone/loop
apart train "${run[@]}" --out_dir=loop
says "$first, since rank 3 \\(.*\\) can't write "
whole loop

# a rank that sees the folder, and whose writes go to a layer upon it
cat >upon.sh <<'END'
set -e
mount -t tmpfs none layer
mkdir layer/up layer/work
mount -t overlay none under \
    -o lowerdir=under,upperdir=layer/up,workdir=layer/work
exec "$@"
END
mkdir -p under/out layer
if [ "$PL_MOUNTED" = yes ] && unshare -m bash upon.sh true 2>/dev/null; then
    expect 0 "${launch[@]}" -n 3 "$PLIMSOLL" train "${run[@]}" \
        --out_dir=under/out : -n 1 unshare -m bash upon.sh "$PLIMSOLL" train \
        "${run[@]}" --out_dir=under/out
    says "$first, since rank 3 \\(.*\\) can't write .*does not arrive here\$"
    expect 0 "$PLIMSOLL" train --resume under/out --max_iters=5
    says_not 'damaged'
    whole under/out
else
    echo "no overlays here: no rank writes upon the folder"
fi

echo "written by all and by one: the same bytes"
