#!/usr/bin/env bash
# What `plan` expects at the end: bits per byte by the law of docs/recipe.md,
# computed here once more, for the text that is there or for any; as a loss only
# where the text is known, and nothing for a model that was trained before.
set -eu
. tests/support/cli.sh
work_on_disk

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=300 --out=bpe cats.txt
expect 0 "$PLIMSOLL" prepare --tokenizer=bpe --out=data/pairs cats.txt
model=(--n_layer=2 --n_head=2 --n_embd=32 --block_size=16 --batch_size=8
    --gradient_accumulation_steps=4 --device=cpu)

# law DATASET UPDATES LOW HIGH: "low high" of the model above. Blocks and the
# table have as many parameters as the plan says without positions. Text that is
# seen again counts less and less.
law() {
    python3 - "$(number parameters)" "$@" <<'PY'
import array, json, math, os, sys
whole, updates, low, high = map(float, sys.argv[1:2] + sys.argv[3:])
data = f"data/{sys.argv[2]}/"
ids = array.array("H", open(data + "train.bin", "rb").read())
per_token = 1  # a character
if os.path.exists(data + "tokenizer.json"):
    told = json.load(open(data + "tokenizer.json"))
    special = {one["id"] for one in told["added_tokens"]}
    size = {id: len(text) for text, id in told["model"]["vocab"].items()
            if id not in special}  # a sign for each byte
    per_token = sum(size.get(id, 0) for id in ids) / len(ids)
    assert per_token > 2
parameters = whole - 16 * 32  # of the positions
unique, seen = len(ids) * per_token, updates * 8 * 4 * 16 * per_token
if seen > unique:
    again = seen / unique - 1
    seen = unique + unique * 15.4 * (1 - math.exp(-again / 15.4))
bits = 0.75 + 3.7 / parameters**0.2 + 60 / seen**0.3
print(low * bits, min(high * bits, 8))
PY
}
# close A B: two pairs of numbers are the same to 1e-6
close() {
    python3 - "$1" "$2" <<'PY' || fail "expected $2, the plan says $1"
import sys
a, b = ([float(x) for x in text.split()] for text in sys.argv[1:])
sys.exit(len(a) != 2 or any(abs(x - y) > 1e-6 * y for x, y in zip(a, b)))
PY
}
# as_planned DATASET UPDATES LOW HIGH SETTING...: of the JSON
as_planned() {
    local dataset=$1 updates=$2 low=$3 high=$4
    shift 4
    expect 0 "$PLIMSOLL" plan --dataset="$dataset" "${model[@]}" \
        --max_iters="$updates" "$@" --json
    close "$(number expected_bpb_low) $(number expected_bpb_high)" \
        "$(law "$dataset" "$updates" "$low" "$high")"
}

as_planned cats 5 0.95 1.55
as_planned cats 300 0.95 1.55
as_planned pairs 5 0.95 1.55
as_planned pairs 300 0.95 1.55
as_planned cats 300 0.90 1.20 --optimizer=muon

# the line has the same two numbers, and the loss of a token of one byte
low=$(number expected_bpb_low) high=$(number expected_bpb_high)
line=$(python3 - "$low" "$high" <<'PY'
import math, sys
low, high = map(float, sys.argv[1:])
ln2 = math.log(2)
print(f"{low:.2f} to {high:.2f} bits per byte at the end (val_bpb), a loss of "
      f"{ln2 * low:.2f} to {ln2 * high:.2f}: what prose takes a model of this "
      "size and length (docs/recipe.md)")
PY
)
expect 0 "$PLIMSOLL" plan --dataset=cats "${model[@]}" --max_iters=300 \
    --optimizer=muon
grep -Fxq "expect      $line" <<<"$out" || fail "no line '$line': $out"

# no data: no loss per token
expect 0 "$PLIMSOLL" plan --dataset=none "${model[@]}" --max_iters=300
says '^expect +[0-9.]+ to [0-9.]+ bits per byte at the end \(val_bpb\): what'

# nothing to expect: no update, or a model that was trained before
nothing() {
    expect 0 "$PLIMSOLL" plan --dataset=cats "$@"
    says '^peak '
    says_not '^expect '
    expect 0 "$PLIMSOLL" plan --dataset=cats "$@" --json
    says '"fits": true'
    says_not 'expected_bpb'
}
nothing "${model[@]}" --max_iters=0
expect 0 "$PLIMSOLL" train --dataset=cats "${model[@]}" --max_iters=1 \
    --eval_iters=1 --out_dir=out
nothing --init_from=out/latest --batch_size=8 --max_iters=300
nothing "${model[@]}" --init_from=resume --out_dir=out --max_iters=300
