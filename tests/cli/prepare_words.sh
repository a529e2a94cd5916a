#!/usr/bin/env bash
# A word that is longer than what is read at once gives the tokens of the whole,
# in text and in JSON lines, or is refused: never those of its parts.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

# The parts of 1 MiB don't end where a repetition does.
yes abc | head -n 900000 | tr -d '\n' >long.txt
{
    printf '{"text": "'
    cat long.txt
    printf '"}\n'
} >long.jsonl
yes abc | head -n 64 | tr -d '\n' >short.txt
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=264 --out=bpe short.txt

for name in long.txt long.jsonl; do
    for memory in 60 400; do
        expect 0 "$PLIMSOLL" prepare --tokenizer=bpe --out=data/long \
            --memory="${memory}MB" --threads=2 "$name"
        # All the same token, but for the last ones, and the end of the text.
        kinds=$(cat data/long/*.bin | od -An -v -w2 -tu2 | sort | uniq -c |
            awk '$1 > 1' | wc -l)
        [ "$kinds" -eq 1 ] || fail "$name in $memory MB: $kinds kinds of token"
        cat data/long/train.bin data/long/val.bin | "$PLIMSOLL" tokenize \
            --decode --ids=uint16 --tokenizer=bpe - >back
        { cat long.txt && printf '<|endoftext|>'; } | cmp - back
    done
done

expect 5 "$PLIMSOLL" prepare --tokenizer=bpe --out=data/no --memory=28MB \
    --threads=2 long.txt
says 'long.txt, byte 0: a word .* needs [0-9.]+ [kM]B of memory'
says 'It would fit with --memory=[0-9]+'
[ ! -e data/no ] || fail "data/no is left"
expect 6 "$PLIMSOLL" tokenize --tokenizer=bpe long.txt
says 'long.txt, byte 0: a word of more than'

# Bytes and characters know no words: any budget does.
for tokenizer in byte char; do
    expect 0 "$PLIMSOLL" prepare --tokenizer="$tokenizer" --out=data/cut \
        --memory=28MB --threads=2 long.txt
    says 'train has 2,430,000 tokens'
done
