#!/usr/bin/env bash
# prepare keeps its budget with a corpus several times as large; Ctrl-C leaves
# what was there, and the same command goes on to the same bytes.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
for ((i = 0; i < 12; i++)); do # 64 MB
    cat cats.txt cats.txt >twice
    mv twice cats.txt
done
[ "$(wc -c <cats.txt)" -gt 40000000 ] || fail "the text is too small to tell"
head -c 2000000 cats.txt >some.txt
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=600 --out=bpe some.txt

# ---- memory: the process as the kernel saw it ----

for budget in 28 40; do
    expect 0 "$PLIMSOLL" prepare --tokenizer=bpe --out=data/whole \
        --memory="${budget}MB" --threads=2 cats.txt
    peak=$(exact 'peak memory: .*(')
    echo "budget $budget MB, peak $peak bytes"
    [ -n "$peak" ] || fail "no peak: $out"
    [ -n "${SANITIZED:-}" ] || [ "$peak" -le $((budget * 1000000)) ] ||
        fail "a peak of $peak bytes in $budget MB"
done
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=600 --out=bpe2 \
    --memory=28MB cats.txt

# ---- stopping and going on ----

expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/stop some.txt
sha256sum data/stop/*.bin >before
stops=0
for ((try = 0; try < 40 && stops < 2; try++)); do
    "$PLIMSOLL" prepare --tokenizer=bpe --out=data/stop --memory=28MB \
        --threads=1 cats.txt >log.txt 2>&1 &
    pid=$!
    until [ -e data/stop/prepare.part/train.bin ] ||
        ! kill -0 "$pid" 2>/dev/null; do
        sleep 0.01
    done
    sleep 0.0"$((try % 7 + 1))"
    kill -INT "$pid" 2>/dev/null || true
    code=0
    wait "$pid" || code=$?
    out=$(cat log.txt)
    if [ "$code" -eq 0 ]; then # it was faster
        expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/stop some.txt
        continue
    fi
    [ "$code" -eq 130 ] || fail "exit code $code"$'\n'"$out"
    says 'the same command goes on there'
    sha256sum -c --quiet before
    [ -s data/stop/prepare.part/state ] || fail "no place to go on from"
    stops=$((stops + 1))
done
[ "$stops" -gt 0 ] || fail "it could not be stopped in time"
expect 0 "$PLIMSOLL" prepare --tokenizer=bpe --out=data/stop --memory=28MB \
    --threads=3 cats.txt
says 'going on where the last run stopped'
cmp data/whole/train.bin data/stop/train.bin
cmp data/whole/val.bin data/stop/val.bin
[ ! -e data/stop/prepare.part ] || fail "prepare.part is still there"

# Killed at once: the last state, or none, is gone on from.
"$PLIMSOLL" prepare --tokenizer=bpe --out=data/stop --threads=1 cats.txt \
    >/dev/null 2>&1 &
pid=$!
sleep 0.15
kill -KILL "$pid" 2>/dev/null || true
wait "$pid" 2>/dev/null || true
expect 0 "$PLIMSOLL" prepare --tokenizer=bpe --out=data/stop cats.txt
cmp data/whole/train.bin data/stop/train.bin

# ---- a text that was edited between a stop and the next run ----

# stop_again: leaves a part of cats.txt
stop_again() {
    rm -rf data/edit
    local pid code
    for ((try = 0; try < 40; try++)); do
        "$PLIMSOLL" prepare --tokenizer=bpe --out=data/edit --memory=28MB \
            --threads=1 cats.txt >log.txt 2>&1 &
        pid=$!
        until [ -s data/edit/prepare.part/train.bin ] ||
            ! kill -0 "$pid" 2>/dev/null; do
            sleep 0.01
        done
        kill -INT "$pid" 2>/dev/null || true
        code=0
        wait "$pid" || code=$?
        [ "$code" -ne 130 ] || [ ! -e data/edit/prepare.part/state ] || return 0
        rm -rf data/edit
    done
    fail "it could not be stopped in time"
}
sleep 2.1 # what was just written is always read again
stop_again
expect 0 "$PLIMSOLL" prepare --tokenizer=bpe --out=data/edit cats.txt
says 'going on where the last run stopped'
says_not 'reading [0-9.]+ [kMG]?B of text again'
cmp data/whole/train.bin data/edit/train.bin
stop_again
touch cats.txt
expect 0 "$PLIMSOLL" prepare --tokenizer=bpe --out=data/edit cats.txt
says 'reading [0-9.]+ [kMG]?B of text again'
says 'going on where the last run stopped'
cmp data/whole/train.bin data/edit/train.bin
stop_again
touch -r cats.txt times
printf 'THE' | dd of=cats.txt conv=notrunc 2>/dev/null
touch -r times cats.txt # its size and its time are as they were
expect 0 "$PLIMSOLL" prepare --tokenizer=bpe --out=data/edit cats.txt
says 'the text was changed since: beginning anew'
expect 0 "$PLIMSOLL" prepare --tokenizer=bpe --out=data/new cats.txt
cmp data/new/train.bin data/edit/train.bin
