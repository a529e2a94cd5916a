#!/usr/bin/env bash
# Ctrl-C is answered at once while a pipe that is read says nothing, and what
# comes late or in parts is read to its end.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

# catches PID: it has a handler of its own for SIGINT
catches() {
    local mask
    mask=$(sed -n 's/^SigCgt:[[:blank:]]*//p' "/proc/$1/status" 2>/dev/null)
    [ -n "$mask" ] && [ $((0x$mask & 2)) -ne 0 ]
}

# is_stopped PID WHAT: it ends by SIGINT, which is sent once
is_stopped() {
    local pid=$1 what=$2 code=0 i
    until catches "$pid"; do
        kill -0 "$pid" 2>/dev/null || fail "$what: it is gone: $(cat log)"
    done
    kill -INT "$pid"
    for ((i = 0; i < 200; i++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    if kill -0 "$pid" 2>/dev/null; then
        kill -KILL "$pid"
        fail "$what: it waits for the pipe, not for Ctrl-C"
    fi
    wait "$pid" || code=$?
    [ "$code" -eq 130 ] || fail "$what: exit code $code"$'\n'"$(cat log)"
}

make_text >cats.txt
mkfifo pipe

# nobody ever writes
"$PLIMSOLL" prepare --tokenizer=byte --out=data/a pipe >log 2>&1 &
is_stopped $! 'a pipe without a writer'

# somebody holds it and says nothing, or not enough
for said in '' 'a few words'; do
    exec 9<>pipe
    printf '%s' "$said" >&9
    "$PLIMSOLL" prepare --tokenizer=byte --out=data/b - <pipe >log 2>&1 &
    is_stopped $! "standard input after '$said'"
    "$PLIMSOLL" prepare --tokenizer=byte --out=data/b pipe >log 2>&1 &
    is_stopped $! "a pipe after '$said'"
    exec 9>&-
done
"$PLIMSOLL" tokenizer train --vocab_size=300 --out=bpe pipe >log 2>&1 &
is_stopped $! 'tokenizer train'

# a writer that comes late, and in parts
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/file cats.txt
{
    sleep 0.3
    exec >pipe
    head -c 1000 cats.txt
    sleep 0.3
    tail -c +1001 cats.txt
} &
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/pipe pipe
cmp data/file/train.bin data/pipe/train.bin
{
    sleep 0.3
    cat cats.txt >pipe
} &
expect 0 "$PLIMSOLL" tokenize --tokenizer=byte pipe
