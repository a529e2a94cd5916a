#!/usr/bin/env bash
# From documents of any kind to tokens: a BPE of one's own, the same bytes for
# any number of threads, shards, what a folder holds, a stop and going on,
# training and sampling with it.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

# documents COUNT: lines of JSON, some of them long
documents() {
    awk -v count="$1" 'BEGIN {
        for (i = 0; i < count; i++) {
            printf "{\"id\": %d, \"body\": \"document %d:", i, i
            for (k = 0; k < i % 40; k++)
                printf " the cat number %d sat on mat %d\\n", i * 7 % 100, k
            print "\"}"
        }
    }'
}
documents 3000 >docs.jsonl
gzip -k docs.jsonl

# ---- a tokenizer of one's own ----

for threads in 1 2 3; do
    expect 0 "$PLIMSOLL" tokenizer train --vocab_size=400 --field=body \
        --threads="$threads" --out="bpe$threads" docs.jsonl
    says '^vocab size: 400$'
done
cmp bpe1/tokenizer.json bpe2/tokenizer.json
cmp bpe1/tokenizer.json bpe3/tokenizer.json
[ ! -e bpe1/tokenizer.part ] || fail "training left its runs"
expect 2 "$PLIMSOLL" tokenizer train docs.jsonl
says 'tokenizer train --out='
expect 3 "$PLIMSOLL" tokenizer train --out=small --vocab_size=100 docs.jsonl

# ---- a pipe ----

head -c 30000 /dev/urandom >noise
for shape in text uint16 uint32; do
    "$PLIMSOLL" tokenize --tokenizer=bpe1 --ids="$shape" <noise >ids
    "$PLIMSOLL" tokenize --tokenizer=bpe1 --ids="$shape" --decode ids >back
    cmp noise back
done
ids=$(printf 'a<|endoftext|>' | "$PLIMSOLL" tokenize --tokenizer=bpe1 |
    wc -l)
[ "$ids" -gt 2 ] || fail "a special token was found in plain text"
ids=$(printf 'a<|endoftext|>' | "$PLIMSOLL" tokenize --tokenizer=bpe1 \
    --special | tail -n 1)
[ "$ids" -eq 399 ] || fail "<|endoftext|> is $ids"
printf 'x y' >ids
expect 4 "$PLIMSOLL" tokenize --tokenizer=bpe1 --decode ids
says 'ids: byte 0: token ids are whole numbers'
echo 400 >ids
expect 4 "$PLIMSOLL" tokenize --tokenizer=bpe1 --decode ids
says 'token 400 is outside the vocabulary of 400'
expect 2 "$PLIMSOLL" tokenize
says 'which tokenizer'

# ---- tokens ----

for threads in 1 2 3; do
    expect 0 "$PLIMSOLL" prepare --tokenizer=bpe1 --field=body \
        --threads="$threads" --out="data/docs$threads" docs.jsonl
    says 'in 3,000 documents$'
done
for file in train.bin val.bin tokenizer.json; do
    cmp "data/docs1/$file" "data/docs2/$file"
    cmp "data/docs1/$file" "data/docs3/$file"
done
expect 0 "$PLIMSOLL" prepare --tokenizer=bpe1 --field=body --out=data/packed \
    docs.jsonl.gz
cmp data/docs1/train.bin data/packed/train.bin
# A document behind the other, each with its end: the ids decode to all text.
expect 0 "$PLIMSOLL" inspect data/docs1
says "train.bin: nanoGPT's uint16, [0-9,]+ tokens, largest id 399 of 400"
says 'that is: document 0:<|endoftext|>document 1: the cat'
says '^data/docs1: bpe tokenizer, 400 tokens$'
says 'special +399: <\|endoftext\|>'
ends=$("$PLIMSOLL" tokenize --tokenizer=data/docs1 --ids=uint16 --decode \
    data/docs1/train.bin | grep -ao '<|endoftext|>' | wc -l)
vals=$("$PLIMSOLL" tokenize --tokenizer=data/docs1 --ids=uint16 --decode \
    data/docs1/val.bin | grep -ao '<|endoftext|>' | wc -l)
[ $((ends + vals)) -eq 3000 ] || fail "$ends and $vals documents"
share=$((1000 * $(wc -c <data/docs1/val.bin) / $(wc -c <data/docs1/train.bin)))
[ "$share" -gt 105 ] && [ "$share" -lt 117 ] || fail "$share of 1000 validate"

# Shards, llm.c's header, the same tokens.
expect 0 "$PLIMSOLL" prepare --tokenizer=bpe1 --field=body --out=data/shards \
    --format=llmc --shard_tokens=50000 docs.jsonl
for file in data/shards/train_*.bin; do
    tail -c +1025 "$file"
done | cmp - data/docs1/train.bin
[ ! -e data/shards/train.bin ] || fail "train.bin beside shards"
expect 0 "$PLIMSOLL" inspect data/shards/train_000001.bin
says "llm.c's uint16, 50,000 tokens"
# Preparing again with other settings leaves nothing of the old.
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --field=body --out=data/shards \
    docs.jsonl
[ "$(cd data/shards && echo *)" = "meta.json train.bin val.bin" ] ||
    fail "left over: $(ls data/shards)"

# Several texts, a folder, a pattern, standard input.
mkdir texts
printf 'one two\n' >texts/a.txt
printf 'three four\n' >texts/b.txt
expect 0 "$PLIMSOLL" prepare --out=data/folder texts
says 'in 2 documents$'
expect 0 "$PLIMSOLL" prepare --out=data/pattern 'texts/*.txt'
cmp data/folder/train.bin data/pattern/train.bin
"$PLIMSOLL" prepare --out=data/piped --tokenizer=bpe1 - <docs.jsonl >/dev/null
expect 0 "$PLIMSOLL" inspect data/piped/val.bin
expect 2 "$PLIMSOLL" prepare --out=data/piped - <docs.jsonl
says 'char reads the text twice'
expect 0 "$PLIMSOLL" inspect docs.jsonl.gz --field=body
says 'JSON lines, 3,000 documents'

# What is missing is said.
expect 1 "$PLIMSOLL" prepare --out=data/g --tokenizer=gpt2 texts
says 'script/vocab data/gpt2.tiktoken'
expect 3 "$PLIMSOLL" prepare --out=data/g --tokenizer=bpe1 \
    --end_of_text='</s>' texts
says 'It has: <\|endoftext\|>'
expect 5 "$PLIMSOLL" prepare --out=data/g --tokenizer=byte --memory=12MB texts
says 'Raise memory'
expect 4 "$PLIMSOLL" prepare --out=data/g --tokenizer=bpe1 docs.jsonl
says 'docs.jsonl.*text'

# ---- training and sampling ----

expect 0 "$PLIMSOLL" train --dataset=docs1 "${tiny[@]}" --out_dir=out
cmp out/latest/tokenizer.json data/docs1/tokenizer.json
grep -q '"eos_token_id": 399' out/latest/config.json || fail "no eos_token_id"
expect 0 "$PLIMSOLL" sample out --start='the cat' --num_samples=1 \
    --max_new_tokens=20
says '^the cat'
expect 0 "$PLIMSOLL" train --dataset=docs1 "${tiny[@]}" --out_dir=out \
    --init_from=resume --max_iters=22
expect 0 "$PLIMSOLL" inspect out
says 'checkpoint at iteration 22'
says 'vocab_size 448'
says 'transformer.wte.weight +F32 +448 x 16'
expect 3 "$PLIMSOLL" train --dataset=shards "${tiny[@]}" --out_dir=out \
    --init_from=resume --vocab_size=448
says 'is not that of data/shards \(byte'
