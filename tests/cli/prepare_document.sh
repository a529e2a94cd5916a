#!/usr/bin/env bash
# One document that is large beside the budget: what fits takes one pass and
# stays under it, what doesn't is refused with its size and what it would need,
# and a signal is answered while it is read.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

# A line of JSON with an escape every few bytes: make_line REPEATS
make_line() {
    printf '{"text": "'
    yes 'line one\nline \"two\" \u00e9 and more\t' | head -n "$1" | tr -d '\n'
    printf '"}\n'
}
make_line 280000 >large.jsonl # 10 MB
for ((i = 0; i < 12; i++)); do
    echo '{"text": "a short one beside it"}'
done >short.jsonl
cat short.jsonl large.jsonl short.jsonl >docs.jsonl

# ---- memory: the process as the kernel saw it ----

measure() {
    local budget=$1 peak
    shift
    expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/large \
        --memory="${budget}MB" --threads=2 "$@"
    peak=$(exact 'peak memory: .*(')
    echo "budget $budget MB, peak $peak bytes: $*"
    [ -n "$peak" ] || fail "no peak: $out"
    [ -n "${SANITIZED:-}" ] || [ "$peak" -le $((budget * 1000000)) ] ||
        fail "a peak of $peak bytes in $budget MB"
}
measure 60 large.jsonl
says 'in 1 document$'
measure 60 docs.jsonl
measure 60 docs.jsonl docs.jsonl docs.jsonl
gzip -k docs.jsonl
measure 60 docs.jsonl.gz

# ---- what doesn't fit ----

expect 5 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no --memory=26MB \
    --threads=2 docs.jsonl
says 'docs.jsonl, line 13: its document has 8,960,000 bytes'
needs=$(sed -n 's/.*--memory=\([0-9]*\).*/\1/p' <<<"$out")
[ -n "$needs" ] || fail "it doesn't say what it needs: $out"
[ ! -e data/no ] || fail "data/no is left"
# What it says is so: with that it fits, with a tenth less it doesn't.
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/yes \
    --memory="$needs" --threads=2 docs.jsonl
cmp data/large/train.bin <("$PLIMSOLL" prepare --tokenizer=byte \
    --out=data/gz --threads=2 docs.jsonl.gz >/dev/null; cat data/gz/train.bin)
cmp data/yes/train.bin data/large/train.bin
expect 5 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no \
    --memory=$((needs / 10 * 9)) --threads=2 docs.jsonl

# ---- a signal within a document ----

# The pipe stays open, so that nothing but the signal ends it.
for signal in TERM INT; do
    mkfifo "pipe$signal"
    "$PLIMSOLL" prepare --tokenizer=byte --out=data/stop --input=jsonl \
        --threads=1 "pipe$signal" >log.txt 2>&1 &
    pid=$!
    exec 3>"pipe$signal"
    head -c 4000000 large.jsonl >&3
    kill "-$signal" "$pid"
    # A read that waits is answered at the next bytes.
    (while kill -0 "$pid" 2>/dev/null; do
        printf '%1048576s' '' >&3 2>/dev/null || break
    done) 2>/dev/null || true
    code=0
    wait "$pid" || code=$?
    exec 3>&-
    out=$(cat log.txt)
    [ "$code" -eq $((128 + $(kill -l "$signal"))) ] ||
        fail "exit code $code after SIG$signal"$'\n'"$out"
    says 'stopped: nothing was changed in data/stop'
    [ ! -e data/stop ] || fail "data/stop is left"
done
