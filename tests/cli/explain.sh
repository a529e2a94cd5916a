#!/usr/bin/env bash
# Why nanoGPT runs out of memory: tables, verdict, advice, cards.
set -eu
. tests/support/cli.sh
configs=$PWD/config
cd "$TMP_DIR"
story=$configs/train_fineweb.py

expect 0 "$PLIMSOLL" explain "$story" --gpu='RTX 4070'
says 'card +RTX 4070: sold with 12 GiB, of which CUDA shows 11\.73 GiB'
says '^weights +309 MB +309 MB +309 MB$'
says '^kept older logits +- +1\.65 GB +3\.30 GB$'
says '^live tensors +15\.4 GB +8\.78 GB +11\.1 GB$'
says '^allocator.s slack, estimated '
says '^CUDA context, estimated '
says '^It runs out of memory in the first update, at$'
says 'Evaluation at step 0 has only .* to spare'
says "^With compile = True, nanoGPT's default, it fits \(an estimate\)\."
says '^MLP hidden +75\.5 MB   GELU$'
says '^without flash .* 30\.0 GB '
says '^eval_batch_size = 4 +0 +-6\.2. GB +-71 %  does not fit$'
says '^eval_iters = 100 +0 +0 +does not fit$'
says '^n_embd = 512 '
says "12 heads don't divide it, nanoGPT stops; 8 do"
says '^batch_size = 4, accumulation 128 .*  fits$'
says '^expandable_segments:True +0 +0 '
! grep -q $'\033' <<<"$out" || fail "escape sequences in a pipe"

# a smaller card: evaluation comes first, and fails first
expect 0 "$PLIMSOLL" explain "$story" --memory=8GB
says '^It runs out of memory in estimate_loss\(\) before the first update, at$'
says 'F\.cross_entropy'
says 'nanoGPT evaluates before its first update'
says 'only moves the crash'
expect 0 "$PLIMSOLL" explain "$story" --memory=80GiB
says '^It fits: training and evaluation'
expect 0 "$PLIMSOLL" explain "$story" --memory=100MB
says '^It runs out of memory before it has a model, at$'
expect 0 "$PLIMSOLL" explain "$story"
says '^--memory=12GB or --gpu='
says_not 'runs out'

# the recommendation: keys and a width that nanoGPT stops at
expect 0 "$PLIMSOLL" explain "$configs/train_fineweb_recommended.py"
says "n_embd 512 isn't divisible by n_head 12"
says 'nanoGPT has no eval_batch_size'

# for scripts
expect 0 "$PLIMSOLL" explain "$story" --gpu=4070 --json
if command -v python3 >/dev/null; then
    python3 -m json.tool <<<"$out" >/dev/null || fail "not JSON: $out"
fi
[ "$(number parameters)" = 77355072 ] || fail "parameters: $out"
[ "$(number moments_bytes)" = 618840576 ] || fail "moments: $out"
says '"phase": "update_first"'
says '"card": "RTX 4070"'

# the CPU computes in float32, whatever dtype says
expect 0 "$PLIMSOLL" explain "$story" --device=cpu --memory=64GB
says 'float32 \(no autocast there\)'
says_not 'CUDA context'
says '^It fits'

# the list: what is taken and released, ending with what stays
expect 0 "$PLIMSOLL" explain --n_layer=1 --n_head=1 --n_embd=8 --block_size=4 \
    --vocab_size=10 --batch_size=2 --device=cpu --threads=1 --steps
says '^build +\+ +320 '
says '^update 0 +\+ .* gradient of log-probabilities$'
says '^eval later +- '

# mistakes
expect 3 "$PLIMSOLL" explain "$story" --gpu='RTX 4075'
says "'RTX 4075' is not in the table of cards.*RTX 4070"
expect 3 "$PLIMSOLL" explain "$story" --gpu=A100
says 'A100 40GB, A100 80GB'
expect 3 "$PLIMSOLL" explain "$story" --memory=lots
expect 2 "$PLIMSOLL" train "$story" --gpu='RTX 4070'
expect 2 "$PLIMSOLL" explain "$story" --num_samples=1
expect 5 "$PLIMSOLL" explain --batch_size=1073741824 \
    --block_size=1073741824 --gradient_accumulation_steps=1 --eval_iters=1
says 'larger than any address space'
expect 0 "$PLIMSOLL" explain --help
says '^usage: plimsoll explain '
says '^  --gpu='
