#!/usr/bin/env bash
# rdb_text: R's lazy-load data becomes text, and no damage is survived
# silently. The file below has three records: a character vector with ASCII,
# UTF-8, Latin-1 and NA strings; an integer vector; a vector in the older
# version 2.
set -euo pipefail

cd "$TMP_DIR"
base64 -d >tiny.rdb <<'END'
AAAAaHjai+BiYGBgZmBhYmRgZgUyGVhDQ9x0LYAMASBmY2Bh4ATSLK6+vo5QNhA0gGiejNQi
hUOLjQx0DAwMGBgcwOqSE9NeAmnO/0AAVc/q5unnGQwALZcPiQAAABp42ovgYmBgYGJgYWJk
YGIGMhl4gZgRiNkBC3gAhgAAACV42ovgYmBgYGJgYWJkYGIGMhkEgJiRgYWBE0izh3i4Krj6
uQAAGYICbg==
END

printf '%s\n' EMMA '' 'her £20,000' 'café' '' FINIS '' '' 'THE END' '' '' \
    >expected.txt
"$RDB_TEXT" tiny.rdb >got.txt
cmp expected.txt got.txt

# Cut anywhere, the file is either refused or ends between two records, where
# nothing shows that more should follow. Never a crash: that would be a code
# above 1.
size=$(wc -c <tiny.rdb)
accepted=0
for ((cut = 0; cut < size; cut++)); do
    head -c "$cut" tiny.rdb >cut.rdb
    code=0
    "$RDB_TEXT" cut.rdb >cut.txt 2>cut.err || code=$?
    case $code in
    0) accepted=$((accepted + 1)) ;;
    1) [ -s cut.err ] ;;
    *)
        echo "cut at $cut: exit code $code"
        exit 1
        ;;
    esac
done
[ "$accepted" -eq 2 ]

# Any byte changed: zlib's checksum or a length says so.
for ((at = 0; at < size; at++)); do
    cp tiny.rdb bad.rdb
    printf '\377' | dd of=bad.rdb bs=1 seek="$at" conv=notrunc status=none
    cmp -s tiny.rdb bad.rdb && continue
    code=0
    "$RDB_TEXT" bad.rdb >bad.txt 2>bad.err || code=$?
    if [ "$code" -ne 1 ]; then
        echo "byte $at changed: exit code $code"
        exit 1
    fi
done

# Whole zlib streams whose contents lie.
while read -r name base64; do
    base64 -d <<<"$base64" >lie.rdb
    code=0
    "$RDB_TEXT" lie.rdb >lie.txt 2>lie.err || code=$?
    if [ "$code" -ne 1 ] || ! grep -q 'record at byte 0' lie.err; then
        echo "$name: exit code $code"
        exit 1
    fi
done <<'END'
a-long-string AAAAIHjai+BiYGBgYmBhYmRgYgYyGQSAmJGBhYGz/v//D4lJAB7gBL8=
too-many-strings AAAAIHjai+BiYGBgYmBhYmRgYgYyGQQEGBgYGVgYOEHiiUkAEQUBZA==
a-long-encoding AAAAF3jai+BiYGBgZmBhYmRgZmX4////h9AQN10LACu9BbY=
a-number-among-the-strings AAAAIHjai+BiYGBgYmBhYmRgYgYyGQSAmBGIeUHiiUkAEB0BVA==
an-unknown-version AAAAFnjai+BiYGDgZGBhYmRgZgUyGQRABAAKGQCL
bytes-without-encoding AAAAIHjai+BiYGBgYmBhYmRgYgYyGQSAmJGBQYETJP4yCQASEQH4
no-item AAAADnjai+BiYGBgYmBhYmRgYmYAAAWrAHE=
END

# What is no such file at all, and no file.
printf 'It is a truth universally acknowledged' >prose.txt
for file in prose.txt missing.rdb; do
    code=0
    "$RDB_TEXT" "$file" >out.txt 2>out.err || code=$?
    [ "$code" -eq 1 ]
    grep -q "$file" out.err
done
code=0
"$RDB_TEXT" 2>usage.txt || code=$?
[ "$code" -eq 2 ]
