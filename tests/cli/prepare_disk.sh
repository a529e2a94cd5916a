#!/usr/bin/env bash
# prepare and the disk: too little room is said before the work, a write that
# fails in the middle leaves what was there and is gone on from, and two never
# write to one folder.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
for ((i = 0; i < 8; i++)); do # 4 MB
    cat cats.txt cats.txt >twice
    mv twice cats.txt
done
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/cats cats.txt
cp -r data/cats whole
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/old cats.txt \
    --val_fraction=0.5
sha256sum data/old/*.bin >before

# ---- too little room ----

# A text of 8 TB, all of it a hole.
if truncate -s 8T huge.txt 2>/dev/null; then
    expect 1 "$PLIMSOLL" prepare --tokenizer=byte --out=data/old huge.txt
    says 'data/old: the tokens will take about 1[0-9.]+ TB more'
    says 'the disk has [0-9.]+ [kMGT]B left. Make room'
    sha256sum -c --quiet before
    [ ! -e data/old/prepare.part ] || fail "prepare.part is left"
    expect 1 "$PLIMSOLL" prepare --tokenizer=byte --out=data/new huge.txt
    [ ! -e data/new ] || fail "an empty folder is left"
    rm huge.txt
fi

# ---- a write that fails ----

# limited BLOCKS COMMAND...: no file may have more than BLOCKS x 1024 bytes, as
# if the disk were full
limited() (
    trap '' XFSZ
    ulimit -f "$1"
    shift
    "$@"
)
for memory in 48MB 200MB; do # in small loads and in large ones
    expect 1 limited 6000 "$PLIMSOLL" prepare --tokenizer=byte --threads=2 \
        --memory="$memory" --out=data/old cats.txt
    says 'prepare.part/train.bin at offset [0-9]+: File too large'
    sha256sum -c --quiet before
    [ "$memory" = 200MB ] ||
        says 'kept in data/old/prepare.part; the same command goes on there'
done
expect 1 limited 6000 "$PLIMSOLL" prepare --tokenizer=byte --threads=2 \
    --memory=48MB --out=data/old cats.txt
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --memory=48MB --out=data/old \
    cats.txt
says 'going on where the last run stopped'
cmp whole/train.bin data/old/train.bin
cmp whole/val.bin data/old/val.bin
[ "$(cd data/old && echo *)" = "meta.json train.bin val.bin" ] ||
    fail "left over: $(ls data/old)"
[ ! -e data/old/.lock ] || fail "the lock is left"

# ---- two at once ----

mkfifo slow
"$PLIMSOLL" prepare --tokenizer=byte --out=data/cats - <slow >log.txt 2>&1 &
first=$!
exec 9>slow
cat cats.txt >&9
until [ -e data/cats/prepare.part ]; do sleep 0.05; done
expect 1 "$PLIMSOLL" prepare --tokenizer=byte --out=data/cats cats.txt
says 'data/cats can.t be prepared: .*held by another process'
expect 1 "$PLIMSOLL" tokenizer train --out=data/cats cats.txt
says 'held by another process'
exec 9>&-
wait "$first" || fail "$(cat log.txt)"
cmp whole/train.bin data/cats/train.bin
# The lock of one that was killed is nobody's.
"$PLIMSOLL" prepare --tokenizer=byte --out=data/cats - <slow >log.txt 2>&1 &
first=$!
exec 9>slow
until [ -e data/cats/.lock ]; do sleep 0.05; done
kill -KILL "$first"
wait "$first" 2>/dev/null || true
exec 9>&-
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/cats cats.txt
cmp whole/train.bin data/cats/train.bin
