#!/usr/bin/env bash
# Ctrl-C while a command works: exit code 130, and no half of a file. How
# training stops is in signals.sh.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --n_embd=64 \
    --out_dir=out --max_iters=2

# begin COMMAND...: in the background, as a terminal's first process would be
begin() {
    : >log.txt
    "$PLIMSOLL" "$@" >log.txt 2>&1 &
    pid=$!
}

# until_it COMMAND...: waits for it, as long as plimsoll runs
until_it() {
    until "$@"; do
        kill -0 "$pid" 2>/dev/null || fail "it ended: $(cat log.txt)"
        sleep 0.1
    done
}

# A job in the background ignores SIGINT until plimsoll asks for it.
catches() {
    local mask
    mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$pid/status")
    [ $((0x${mask:-0} & 2)) -ne 0 ]
}

# interrupted: ends with 130, and no error
interrupted() {
    local code=0
    wait "$pid" || code=$?
    out=$(cat log.txt)
    [ "$code" -eq 130 ] || fail "exit code $code"$'\n'"$out"
    says_not 'error:'
}

begin eval out --eval_iters=100000000
until_it catches
kill -INT "$pid"
interrupted
says '^stopped: the evaluation is not complete'

begin sample out --start=t --num_samples=100000000 --max_new_tokens=5
until_it grep -q '^---------------' log.txt
kill -INT "$pid"
interrupted

begin bench "${tiny[@]}" --rounds=99
until_it catches
kill -INT "$pid"
interrupted

# a text without an end: the signal comes while it is read
mkfifo endless
endless() {
    rm -f opened
    {
        : >opened
        while :; do cat cats.txt || exit 0; done
    } >endless 2>/dev/null &
    writer=$!
}

for command in "tokenizer train --out=data/bpe" \
    "prepare --tokenizer=byte --out=data/x" "inspect"; do
    endless
    # shellcheck disable=SC2086 # words
    begin $command endless
    until_it test -e opened
    if [ "$command" != inspect ]; then
        kill -INT "$pid"
        interrupted
        says '^stopped'
    else # it writes nothing, and needs no care: the signal ends it
        kill -TERM "$pid"
        code=0
        wait "$pid" || code=$?
        [ "$code" -eq 143 ] || fail "exit code $code"
    fi
    wait "$writer" || true
done
[ -z "$(find data -name '*.json' -path '*bpe*' -o -name '*.part')" ] ||
    fail "left: $(find data/bpe)"
[ ! -e data/x/train.bin ] || fail "half of train.bin"

# the signal comes while a model of 60 MB is written; where it comes too late,
# once more
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --n_embd=256 \
    --vocab_size=50304 --eval_iters=1 --out_dir=large --max_iters=0
for ((try = 0; ; try++)); do
    [ "$try" -lt 100 ] || fail "it always came too late"
    rm -f model.bin
    begin export large --out=model.bin
    while kill -0 "$pid" 2>/dev/null && [ ! -e model.bin.tmp ]; do :; done
    kill -INT "$pid" 2>/dev/null || true
    code=0
    wait "$pid" || code=$?
    [ "$code" -eq 0 ] || break
done
out=$(cat log.txt)
[ "$code" -eq 130 ] || fail "exit code $code"$'\n'"$out"
says '^stopped: nothing was written'
[ ! -e model.bin ] && [ ! -e model.bin.tmp ] || fail "half of a model"
