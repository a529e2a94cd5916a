#!/usr/bin/env bash
# What files are is seen from their first bytes: packed text of every kind is
# read, what isn't text is refused by name and counted in folders.
set -eu
. tests/support/cli.sh
golden=$PWD/tests/golden
cd "$TMP_DIR"

# ---- a folder with everything in it ----

mkdir -p all/.git all/sub/node_modules
make_text >all/a.txt
cp all/a.txt all/sub/main.c
echo 'def f(): return 1' >all/sub/tool.py
echo '{"text": "one"}' >all/lines.jsonl
echo '{}' >all/about.json
echo x >all/.git/config
echo y >all/.hidden
echo z >all/sub/node_modules/z.js
printf 'BZh91AY&SY' >all/old.txt.bz2
printf 'PK\3\4....' >all/book.zip
printf '%%PDF-1.4' >all/paper.pdf
head -c 100 /dev/zero >all/zeros
printf 'caf\351 au lait' >all/latin1
cp all/book.zip all/disguised.txt

expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/all all
says 'taken: 4 text, 1 JSON lines, 0 parquet files'
for part in '2 hidden \(\.git, \.hidden\)' '1 \.json \(about\.json\)' \
    '1 a bzip2 file \(old\.txt\.bz2\)' \
    '2 a zip archive \(book\.zip, disguised\.txt\)' \
    '1 a PDF \(paper\.pdf\)' '1 binary \(zeros\)' '1 not UTF-8 \(latin1\)'; do
    says "passed over:.*$part"
done

# ---- patterns ----

expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/some \
    --include='*.c,*.py' all
says 'taken: 2 text, 0 JSON'
says '[0-9]+ not included \('
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/some \
    --exclude='node_modules,*.py,sub/main.c' all
says 'taken: 1 text, 1 JSON'
says '3 excluded \(sub/main\.c, sub/node_modules, sub/tool\.py\)'
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/some \
    --include='sub/**' all
says 'taken: 3 text, 0 JSON'
expect 1 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no \
    --include='*.none' all
says 'has no text that could be taken; passed over: '
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=270 --out=bpe \
    --include='*.c' all
says 'taken: 1 text'

# ---- named ----

for name in old.txt.bz2 book.zip paper.pdf zeros disguised.txt; do
    expect 6 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no "all/$name"
    says "all/$name is .*, which can't be read as text"
done
[ ! -e data/no ] || fail "data/no is left"
expect 6 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no - <all/paper.pdf
says 'standard input is a PDF'
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/raw --input=text \
    all/zeros
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/raw all/latin1

# what is packed in a file that can be unpacked
tar -C all -cf - sub | gzip >sub.tar.gz
expect 6 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no sub.tar.gz
says 'sub.tar.gz: what is packed in it is a tar archive'
[ ! -e data/no ] || fail "data/no is left"

# ---- xz and lz4 ----

for name in docs.jsonl text.txt; do
    expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/plain \
        "$golden/packed/$name"
    for packing in xz lz4; do
        file=$golden/packed/$name.$packing
        expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/packed "$file"
        cmp data/plain/train.bin data/packed/train.bin
        cmp data/plain/val.bin data/packed/val.bin
        # several streams or frames are one; so is what comes by a pipe
        cat "$file" "$file" >"twice.$name.$packing"
        cat "$golden/packed/$name" "$golden/packed/$name" >"twice.$name"
        expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/two \
            "twice.$name"
        input=text
        [ "$name" = text.txt ] || input=jsonl
        expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/packed \
            --input="$input" - <"twice.$name.$packing"
        cmp data/two/train.bin data/packed/train.bin
        # damaged and cut off
        head -c 60 "$file" >"cut.$name.$packing"
        expect 4 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no \
            "cut.$name.$packing"
        says "cut.$name.$packing.*$packing"
    done
done
cp "$golden/packed/text.txt.xz" wrong.txt.lz4
expect 4 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no wrong.txt.lz4
says 'its name says lz4, but it begins as xz data does'
# What xz's own header asks for is counted before it is taken.
expect 5 "$PLIMSOLL" prepare --tokenizer=byte --out=data/no --memory=48MB \
    "$golden/packed/text.txt.xz"
says 'xz needs more memory to unpack this'
says 'It would fit with --memory=[0-9]+'
