#!/usr/bin/env bash
# bench: runs without data, says what it found, and `plan` knows it afterwards.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

small=(--n_layer=2 --n_head=2 --n_embd=32 --block_size=16 --batch_size=4
    --vocab_size=61 --gradient_accumulation_steps=2 --threads=2)

expect 0 "$PLIMSOLL" plan "${small[@]}"
says 'a built-in table'
expect 0 "$PLIMSOLL" bench "${small[@]}" --rounds=1
says '^training +[0-9.]+ +[0-9.]+ GFLOP/s +[0-9.]+ %'
says '^evaluation '
says '^sampling '
says '^matmul.dw '
says 'predicted: '
expect 0 "$PLIMSOLL" plan "${small[@]}"
says 'what this machine reached$'
expect 0 "$PLIMSOLL" plan "${small[@]}" --n_embd=64
says 'what this machine reached at another width'

expect 0 "$PLIMSOLL" bench "${small[@]}" --rounds=1 --json
says '"train_tokens_per_second": [0-9.]+'
says '"train_share_of_peak": [0-9.]+'
says '"products": \['
[ "$(number threads)" = 2 ] || fail "threads: $out"

# what is wrong is said as everywhere
expect 5 "$PLIMSOLL" bench "${small[@]}" --memory=1MB
says '[0-9.]+ [kM]B are missing'
expect 3 "$PLIMSOLL" bench --rounds=0
says 'rounds'
