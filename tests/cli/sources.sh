#!/usr/bin/env bash
# Documents of every kind end to end: parquet as different writers write it,
# packed text and JSON lines, pipes.
set -eu
. tests/support/cli.sh
golden=$PWD/tests/golden
cd "$TMP_DIR"

# text_of FOLDER: all that was prepared, back as text
text_of() {
    cat "$1/train.bin" "$1/val.bin" | "$PLIMSOLL" tokenize --decode \
        --ids=uint16 --tokenizer="$1" -
}

# ---- parquet ----

expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/same \
    "$golden/parquet/same_groups.parquet"
says 'in 300 documents$'
text_of data/same >text
yes 'the same line' | head -n 300 | cmp - text

count=0
for file in "$golden"/parquet/mixed_*.parquet; do
    case $file in
    *_lz4.* | *_brotli.* | *_nested.*) continue ;;
    esac
    expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/one "$file"
    says 'in 47 documents$'
    [ -e data/mixed ] || cp -r data/one data/mixed
    cmp data/mixed/train.bin data/one/train.bin
    cmp data/mixed/val.bin data/one/val.bin
    count=$((count + 1))
done
[ "$count" -ge 30 ] || fail "only $count files"
text_of data/mixed >text
grep -qa '^universally acknowledged$' text || fail "$(cat text)"
[ "$(grep -ca '^once more$' text)" -eq 9 ] || fail "$(cat text)"

# Another column, a folder, a BPE of its own, a document for each row.
mkdir shards
cp "$golden/parquet/mixed_pages.parquet" shards/b.parquet
cp "$golden/parquet/full_required_v2.parquet" shards/a.parquet
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=300 --out=bpe shards
says 'in 94 documents'
expect 0 "$PLIMSOLL" prepare --tokenizer=bpe --out=data/bpe shards
says 'in 94 documents$'
ends=$(text_of data/bpe | grep -ao '<|endoftext|>' | wc -l)
[ "$ends" -eq 94 ] || fail "$ends documents end"
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/ids --field=id \
    shards/a.parquet
text_of data/ids | head -n 1 | grep -qx 'id-0' || fail "$(text_of data/ids)"
expect 0 "$PLIMSOLL" inspect shards/a.parquet
says 'parquet, 47 documents'

# What can't be read is said.
expect 6 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no \
    "$golden/parquet/mixed_lz4.parquet"
says 'mixed_lz4.parquet.*LZ4'
expect 4 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no --field=body \
    shards/a.parquet
says 'a.parquet.*body.*text'
head -c 900 shards/a.parquet >cut.parquet
expect 4 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no cut.parquet
says 'cut.parquet'
expect 6 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no --input=parquet - \
    <shards/a.parquet
says 'its table of contents is at its end'
[ ! -e data/no ] || fail "data/no is left"

# ---- packed ----

for name in docs.jsonl text.txt; do
    for packing in '' .gz .zst; do
        expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out="data/p$packing" \
            "$golden/packed/$name$packing"
        cmp data/p/train.bin "data/p$packing/train.bin"
        cmp data/p/val.bin "data/p$packing/val.bin"
    done
done
text_of data/p | cmp - "$golden/packed/text.txt"
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=270 --out=bpe_zst \
    "$golden/packed/"*.zst
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=270 --out=bpe_plain \
    "$golden/packed/docs.jsonl" "$golden/packed/text.txt"
cmp bpe_zst/tokenizer.json bpe_plain/tokenizer.json
head -c 100 "$golden/packed/text.txt.zst" >cut.txt.zst
expect 4 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no cut.txt.zst
says 'cut.txt.zst ends within its zstd data'

# ---- pipes ----

for packing in '' .gz .zst; do
    expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/piped \
        - <"$golden/packed/text.txt$packing"
    cmp data/p/train.bin data/piped/train.bin
    expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/piped \
        <(cat "$golden/packed/text.txt$packing")
    cmp data/p/train.bin data/piped/train.bin
done
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/two --input=jsonl \
    <(head -n 1 "$golden/packed/docs.jsonl") \
    <(tail -n 2 "$golden/packed/docs.jsonl")
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/docs \
    "$golden/packed/docs.jsonl"
cmp data/docs/train.bin data/two/train.bin
ids=$("$PLIMSOLL" tokenize --tokenizer=byte <(printf 'ab') | tr '\n' ' ')
[ "$ids" = '97 98 ' ] || fail "a pipe gives $ids"
mkfifo pipe
cat "$golden/packed/text.txt" >pipe &
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=270 --out=bpe_pipe pipe \
    "$golden/packed/docs.jsonl"
cmp bpe_plain/tokenizer.json bpe_pipe/tokenizer.json
cat "$golden/packed/text.txt" >pipe &
expect 2 "$PLIMSOLL" prepare --out=data/no pipe
says 'char reads the text twice'
cat pipe >/dev/null # nobody reads it for them
expect 6 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no \
    <(cat shards/a.parquet)
says 'parquet can.t be read from a pipe'
