#!/usr/bin/env bash
# From a text to a model that writes, and what is printed on the way.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
says '^vocab size: [0-9]+ \(char\)$'
says '^train has [0-9,]+ tokens$'

# nanoGPT's lines, as its users grep them
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out
says '^tokens per iteration will be: 128$'
says '^found vocab_size = [0-9]+ \(inside data/cats\)$'
says '^number of parameters: 0\.01M$'
says '^step 0: train loss [0-9]+\.[0-9]{4}, val loss [0-9]+\.[0-9]{4}'
says '^iter 19: loss [0-9]+\.[0-9]{4}, time [0-9]+\.[0-9]{2}ms, mfu [0-9.]+%'
says '^iter 0: loss .*, mfu -100\.00%'
says '^saving checkpoint to out'
says '^peak memory: '
[ -f out/step-00000020/model.safetensors ] || fail "no checkpoint"
[ "$(readlink out/latest)" = step-00000020 ] || fail "latest"
[ -f out/best/manifest.json ] || fail "no best"
[ "$(grep -c val_loss out/metrics.jsonl)" -eq 3 ] || fail "metrics: evals"
[ "$(grep -c '"loss"' out/metrics.jsonl)" -eq 20 ] || fail "metrics: steps"
first=$(sed -n 's/^step 0: .*val loss \([0-9.]*\),.*/\1/p' <<<"$out")
last=$(sed -n 's/^step 20: .*val loss \([0-9.]*\),.*/\1/p' <<<"$out")
awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < 0.8 * a) }' ||
    fail "the loss went from $first to $last"

# nothing is known of the error of one sequence
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=one \
    --max_iters=1 --batch_size=1 --eval_iters=1
says '^step 0: .*, val loss [0-9.]+, \+- unknown, val bpb [0-9.]+ \(16 tok'
says_not 'nan'

# resume: nothing left to do, then ten more, the same as thirty at once
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out \
    --init_from=resume --max_iters=30
says '^Resuming training from out/step-00000020 at iteration 20$'
says '^changed since the checkpoint: max_iters 20 -> 30$'
says '^iter 29: '
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=whole \
    --max_iters=30 --threads=1
cmp out/latest/model.safetensors whole/latest/model.safetensors
cmp out/latest/optimizer.safetensors whole/latest/optimizer.safetensors
# and so are the metrics, but for the time that each step took
timeless() { sed 's/, "step_ms": [^}]*//' "$1"; }
cmp <(timeless out/metrics.jsonl) <(timeless whole/metrics.jsonl)

# --resume takes the settings of the run; what it wrote since is taken back
printf '{"step": 30, "loss": 1}\n{"step": 31, "lo' >>out/metrics.jsonl
expect 0 "$PLIMSOLL" train --resume out --max_iters=40 --threads=1
says '^Resuming training from out/step-00000030 at iteration 30$'
says '^changed since the checkpoint: max_iters 30 -> 40, threads 2 -> 1$'
expect 0 "$PLIMSOLL" train --resume whole/ --max_iters=40
cmp out/latest/model.safetensors whole/latest/model.safetensors
cmp <(timeless out/metrics.jsonl) <(timeless whole/metrics.jsonl)

# eval uses the settings of the run, and prints the number that training did
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out \
    --init_from=resume --max_iters=40 --eval_only=True
trained=$(grep '^step 40' <<<"$out")
expect 0 "$PLIMSOLL" eval out
[ "$(grep '^step 40' <<<"$out")" = "$trained" ] || fail "eval: $out"
expect 0 "$PLIMSOLL" eval out/latest --eval_block_size=8
says 'not to be compared'
says 'context 8, not comparable'

# eval_only: one evaluation, no update and no file
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=judged \
    --max_iters=40 --eval_only=True
says '^step 0: '
if grep -q '^iter ' <<<"$out"; then fail "eval_only trains: $out"; fi
[ ! -e judged ] || fail "eval_only makes an out_dir"

# the same text for the same seed; ten of them by default
expect 0 "$PLIMSOLL" sample --out_dir=out --start="the cat" \
    --max_new_tokens=30 --num_samples=3
says '^the cat'
[ "$(grep -c '^---------------$' <<<"$out")" -eq 3 ] || fail "3 samples: $out"
again=$out
expect 0 "$PLIMSOLL" sample out/latest --start="the cat" --max_new_tokens=30 \
    --num_samples=3 --threads=1
[ "$out" = "$again" ] || fail "another text: $out"
expect 0 "$PLIMSOLL" sample out --start="the cat" --max_new_tokens=30 \
    --num_samples=3 --seed=7
[ "$out" != "$again" ] || fail "another seed wrote the same"
printf 'the mat' >prompt.txt
expect 0 "$PLIMSOLL" sample out --start=FILE:prompt.txt --max_new_tokens=40 \
    --num_samples=1 --temperature=0 --top_k=1
says '^the mat'

# neither needs the optimizer; and any GPT-2 in a folder is a model
mkdir bare
cp -rL out/latest bare/ckpt
rm bare/ckpt/optimizer.safetensors
expect 0 "$PLIMSOLL" eval bare/ckpt
[ "$(grep '^step 40' <<<"$out")" = "$trained" ] || fail "eval: $out"
expect 0 "$PLIMSOLL" sample bare/ckpt --start="the cat" --max_new_tokens=30 \
    --num_samples=3
[ "$out" = "$again" ] || fail "another text without the optimizer: $out"
rm bare/ckpt/manifest.json bare/ckpt/state.json
expect 0 "$PLIMSOLL" sample bare/ckpt --start="the cat" --max_new_tokens=30 \
    --num_samples=3
[ "$out" = "$again" ] || fail "another text from the folder alone: $out"
expect 0 "$PLIMSOLL" eval bare/ckpt --dataset=cats --eval_iters=3 --batch_size=4
[ "$(sed -n 's/^step 0://p' <<<"$out")" = "${trained#step 40:}" ] ||
    fail "eval of a folder: $out"
# training goes on from its weights, with a new optimizer
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --init_from=bare/ckpt \
    --out_dir=tuned --max_iters=2
says '^Initializing from bare/ckpt$'
[ "$(sed -n 's/^step 0: \(.*\)$/\1/p' <<<"$out")" = "${trained#step 40: }" ] ||
    fail "the weights are others: $out"
expect 0 "$PLIMSOLL" plan --dataset=cats --init_from=bare/ckpt
expect 0 "$PLIMSOLL" sample --init_from=bare/ckpt --start="the cat" \
    --max_new_tokens=30 --num_samples=3
[ "$out" = "$again" ] || fail "another text by init_from: $out"
# by its name in Hugging Face's cache
hub=hub/models--somebody--cats
mkdir -p $hub/refs $hub/snapshots
cp -r bare/ckpt $hub/snapshots/0123abc
printf 0123abc >$hub/refs/main
export HF_HUB_CACHE=$PWD/hub
expect 0 "$PLIMSOLL" sample --init_from=somebody/cats --start="the cat" \
    --max_new_tokens=30 --num_samples=3
[ "$out" = "$again" ] || fail "another text by name: $out"

# byte-level: any file will do, where it is said to be text
head -c 4000 "$PLIMSOLL" >binary
expect 0 "$PLIMSOLL" prepare --out=data/bytes --tokenizer=byte --input=text \
    binary
expect 0 "$PLIMSOLL" train --dataset=bytes "${tiny[@]}" --out_dir=bytes \
    --max_iters=2
"$PLIMSOLL" sample bytes --start=A --max_new_tokens=5 --num_samples=1 >bytes.out
[ "$(head -c 1 bytes.out)" = A ] || fail "a byte model writes"

# a config file with keys that mean nothing here
cat >mine.py <<'PY'
import time
wandb_run_name = 'cats-' + str(time.time())
compile = True
device = 'cuda'
dataset = 'cats'  # the animals
max_iters = 2 * 1
PY
expect 0 "$PLIMSOLL" train mine.py "${tiny[@]}" --max_iters=1 --out_dir=mine
says 'note: without effect here: compile, wandb_run_name'
says "note: device = 'cuda' is not here: the processor computes instead"
