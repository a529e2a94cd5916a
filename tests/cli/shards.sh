#!/usr/bin/env bash
# Tokens that others prepared train as they are, and to the same bit: nanoGPT's
# headerless files with and without meta.pkl, llm.c's shards, its 32-bit ones.
set -eu
. tests/support/cli.sh
pickles=$PWD/tests/fuzz/corpus/pickle
cd "$TMP_DIR"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats --tokenizer=byte cats.txt

# number N: four bytes, little-endian
number_bytes() {
    local i
    for i in 0 8 16 24; do
        # shellcheck disable=SC2059 # the format is made here
        printf "\\x$(printf %02x $(($1 >> i & 255)))"
    done
}

# header MAGIC VERSION TOKENS: as llm.c's scripts write one
header() {
    number_bytes "$1"
    number_bytes "$2"
    number_bytes "$3"
    head -c 1012 /dev/zero
}

# tokens SPLIT FIRST COUNT: 16 bits each
tokens() {
    tail -c +$((2 * $2 + 1)) "data/cats/$1.bin" | head -c $((2 * $3))
}

# The same tokens cut into three shards, of both widths, without a meta.json.
trains=$(($(wc -c <data/cats/train.bin) / 2))
vals=$(($(wc -c <data/cats/val.bin) / 2))
rest=$((trains - 5037))
mkdir data/llmc
{
    header 20240520 1 5000
    tokens train 0 5000
} >data/llmc/cats_train_000001.bin
{
    header 20240801 7 37
    for id in $(tokens train 5000 37 | od -An -v -tu2 --endian=little); do
        number_bytes "$id"
    done
} >data/llmc/cats_train_000002.bin
{
    header 20240520 1 "$rest"
    tokens train 5037 "$rest"
} >data/llmc/cats_train_000003.bin
{
    header 20240520 1 "$vals"
    tokens val 0 "$vals"
} >data/llmc/cats_val_000000.bin

expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=whole
expect 0 "$PLIMSOLL" train --dataset=llmc "${tiny[@]}" --out_dir=cut \
    --vocab_size=256
cmp whole/latest/model.safetensors cut/latest/model.safetensors

# A folder as nanoGPT's prepare.py for characters leaves it: meta.pkl has the
# vocabulary, of twelve characters, and its ids. The same text prepared here has
# the same ids.
for ((i = 0; i < 200; i++)); do
    printf '\0\r\032 \\az\177é€😀\naz za %s\n' 'a z'
done >twelve.txt
expect 0 "$PLIMSOLL" prepare --out=data/twelve twelve.txt
says '^vocab size: 12 '
mkdir data/nano
cp data/twelve/train.bin data/twelve/val.bin data/nano
for protocol in 0 2 4; do
    cp "$pickles/small_$protocol.pkl" data/nano/meta.pkl
    expect 0 "$PLIMSOLL" train --dataset=nano "${tiny[@]}" --out_dir=nano
    expect 0 "$PLIMSOLL" sample nano --start='az ' --num_samples=1 \
        --max_new_tokens=40 --seed=1
    printf '%s' "$out" >nano.txt
done
expect 0 "$PLIMSOLL" train --dataset=twelve "${tiny[@]}" --out_dir=twelve
cmp twelve/latest/model.safetensors nano/latest/model.safetensors
expect 0 "$PLIMSOLL" sample twelve --start='az ' --num_samples=1 \
    --max_new_tokens=40 --seed=1
printf '%s' "$out" | cmp - nano.txt
expect 0 "$PLIMSOLL" inspect data/nano
says 'char tokenizer, 12 tokens'
cp "$pickles/evil_4.pkl" data/nano/meta.pkl
expect 4 "$PLIMSOLL" train --dataset=nano "${tiny[@]}" --out_dir=evil
says 'meta.pkl'
[ ! -e executed ] || fail "a pickle was executed"
rm data/nano/meta.pkl # GPT-2's tokens have none
expect 0 "$PLIMSOLL" train --dataset=nano "${tiny[@]}" --out_dir=bare \
    --vocab_size=12
cmp twelve/latest/model.safetensors bare/latest/model.safetensors

# A token that the vocabulary doesn't have never reaches the model.
expect 4 "$PLIMSOLL" train --dataset=llmc "${tiny[@]}" --out_dir=small \
    --vocab_size=100
says 'cats_.*\.bin: token [0-9]+ is [0-9]+, outside the vocabulary of 100'

# Nor hours in: one bad id in a long file is found before the first update.
# What was found is remembered, whether the data can be written to or not.
mkdir data/long
head -c 20000000 /dev/zero >data/long/train.bin
cp data/cats/val.bin data/cats/meta.json data/long
printf '\0\1' | dd of=data/long/train.bin bs=2 seek=7654321 conv=notrunc \
    2>/dev/null
expect 4 "$PLIMSOLL" train --dataset=long "${tiny[@]}" --out_dir=late
says 'long/train.bin: token 7654321 is 256, outside the vocabulary of 256'
[ ! -e late ] || fail "late is left"
printf '\0\0' | dd of=data/long/train.bin bs=2 seek=7654321 conv=notrunc \
    2>/dev/null
chmod -R a-w data/long
sleep 2.1 # what was just changed is looked at again
expect 0 "$PLIMSOLL" train --dataset=long "${tiny[@]}" --out_dir=late
grep -q ' 0 [0-9]*$' "$XDG_CACHE_HOME"/plimsoll/tokens-* ||
    fail "nothing remembered"
expect 0 "$PLIMSOLL" train --dataset=long "${tiny[@]}" --out_dir=later
cmp late/latest/model.safetensors later/latest/model.safetensors
chmod -R u+w data/long

# A magic that nobody knows, beside good shards and alone.
cp data/llmc/cats_train_000001.bin good.bin
printf '\1' | dd of=data/llmc/cats_train_000001.bin bs=1 conv=notrunc \
    2>/dev/null
expect 4 "$PLIMSOLL" train --dataset=llmc "${tiny[@]}" --out_dir=bad \
    --vocab_size=65536
says 'cats_train_000001\.bin begins with a header for 5000 tokens'
mv good.bin data/llmc/cats_train_000001.bin

# A shard that was cut off.
head -c 3000 data/llmc/cats_val_000000.bin >cut.bin
mv cut.bin data/llmc/cats_val_000000.bin
expect 4 "$PLIMSOLL" train --dataset=llmc "${tiny[@]}" --out_dir=bad \
    --vocab_size=256
says 'cats_val_000000\.bin: its header .* says [0-9]+ tokens'
