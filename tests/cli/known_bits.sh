#!/usr/bin/env bash
# The bits of nanoGPT's 4 / 4 / 128 recipe, as they have been since this
# arithmetic was settled: six updates with evaluations, in each dtype. A change
# of one of these sums is a change of arithmetic, which takes a number of its
# own (kernels/arithmetic.h) and is said to whoever resumes a run.
set -eu
recipe=$PWD/config/train_shakespeare_char_cpu.py
. tests/support/cli.sh
work_on_disk

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --tokenizer=char --out=data/cats cats.txt

# sum FOLDER: of all weights, without the head of their file
sum() {
    python3 - "$1" <<'PY'
import glob, hashlib, struct, sys
last = sorted(glob.glob(sys.argv[1] + "/step-*/model.safetensors"))[-1]
data = open(last, "rb").read()
head = struct.unpack("<Q", data[:8])[0]
print(hashlib.md5(data[8 + head:]).hexdigest())
PY
}

# dtype; by fused multiply-adds, as every set but one has them; by `base`
known='
float32 b824fde23e01104da05d35e30717c359 0896746acc92394d09d6d44c5319566a
bfloat16 08ed47c067921c5babd302dfcd1e820f 517854f556f958d3c7ee1691262593c5
float16 409ec527614e3496a864c77c7416fb6c 9df415b159a06285ad14b738acee7a15
'
# check DTYPE: by the set that is allowed
check() {
    local column=2 found wanted
    expect 0 "$PLIMSOLL" train "$recipe" --dataset=cats --device=cpu \
        --products=exact --dtype="$1" --max_iters=6 --eval_interval=3 \
        --eval_iters=2 --threads=2 --out_dir=run
    ! grep -q ' base kernels' <<<"$out" || column=3
    wanted=$(awk -v d="$1" -v c=$column '$1 == d { print $c }' <<<"$known")
    found=$(sum run)
    [ "$found" = "$wanted" ] ||
        fail "$1, column $column: $found, and $wanted was expected"
    rm -r run
}
for dtype in float32 bfloat16 float16; do
    check $dtype
    PLIMSOLL_ISA=base check $dtype
done
