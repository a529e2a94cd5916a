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
[ -f out/ckpt/model.safetensors ] || fail "no checkpoint"
first=$(sed -n 's/^step 0: .*val loss \([0-9.]*\),.*/\1/p' <<<"$out")
last=$(sed -n 's/^step 20: .*val loss \([0-9.]*\),.*/\1/p' <<<"$out")
awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < 0.8 * a) }' ||
    fail "the loss went from $first to $last"

# resume: nothing left to do, then ten more, the same as thirty at once
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out \
    --init_from=resume --max_iters=30
says '^Resuming training from out/ckpt at iteration 20$'
says '^iter 29: '
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=whole \
    --max_iters=30 --threads=1
cmp out/ckpt/model.safetensors whole/ckpt/model.safetensors
cmp out/ckpt/optimizer.safetensors whole/ckpt/optimizer.safetensors

# eval uses the settings of the run, and prints the number that training did
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out \
    --init_from=resume --max_iters=30 --eval_only=True
trained=$(grep '^step 30' <<<"$out")
expect 0 "$PLIMSOLL" eval out
[ "$(grep '^step 30' <<<"$out")" = "$trained" ] || fail "eval: $out"
expect 0 "$PLIMSOLL" eval out/ckpt --eval_block_size=8
says 'not to be compared'
says 'context 8, not comparable'

# the same text for the same seed; ten of them by default
expect 0 "$PLIMSOLL" sample --out_dir=out --start="the cat" \
    --max_new_tokens=30 --num_samples=3
says '^the cat'
[ "$(grep -c '^---------------$' <<<"$out")" -eq 3 ] || fail "3 samples: $out"
again=$out
expect 0 "$PLIMSOLL" sample out/ckpt --start="the cat" --max_new_tokens=30 \
    --num_samples=3 --threads=1
[ "$out" = "$again" ] || fail "another text: $out"
expect 0 "$PLIMSOLL" sample out --start="the cat" --max_new_tokens=30 \
    --num_samples=3 --seed=7
[ "$out" != "$again" ] || fail "another seed wrote the same"
printf 'the mat' >prompt.txt
expect 0 "$PLIMSOLL" sample out --start=FILE:prompt.txt --max_new_tokens=40 \
    --num_samples=1 --temperature=0 --top_k=1
says '^the mat'

# byte-level: any file will do
head -c 4000 "$PLIMSOLL" >binary
expect 0 "$PLIMSOLL" prepare --out=data/bytes --tokenizer=byte binary
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
says "note: device = 'cuda': this version runs on the processor"
