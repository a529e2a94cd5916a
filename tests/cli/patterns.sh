#!/usr/bin/env bash
# Text cut into words as other models do it: trained, prepared whatever the
# threads, written as others read it, and through GGUF and back.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

# Lines that end in punctuation, digits, contractions in capitals, and text that
# isn't NFC.
{
    for ((i = 0; i < 400; i++)); do
        printf "It'S the cat, no. %d!\n\n  cafe\u0301 (mat)\tno\u0308\r\n" \
            $((i * 7919))
    done
    make_text
} >text.txt

ids() {
    "$PLIMSOLL" tokenize --tokenizer="$1" "${@:2}"
}

for pattern in gpt2 llama3 qwen2 smollm2; do
    expect 0 "$PLIMSOLL" tokenizer train --vocab_size=400 --pattern=$pattern \
        --out=$pattern text.txt
    for threads in 1 2; do
        expect 0 "$PLIMSOLL" prepare --tokenizer=$pattern --threads=$threads \
            --out=data/$pattern-$threads text.txt
    done
    cmp data/$pattern-1/train.bin data/$pattern-2/train.bin
    cmp $pattern/tokenizer.json data/$pattern-1/tokenizer.json
    # what prepare and tokenize say of the same text
    ids $pattern --ids=uint16 text.txt >ids
    head -c "$(stat -c %s data/$pattern-1/train.bin)" ids |
        cmp - data/$pattern-1/train.bin
    ids $pattern --decode --ids=uint16 ids >back
    if [ $pattern = qwen2 ]; then
        grep -q $'caf\u00e9 (mat)\tn\u00f6' back || fail "not normalized"
    else
        cmp text.txt back
    fi
done
says_not '"normalizer"' # nothing is printed of it
grep -q '"Regex":"(?i:' llama3/tokenizer.json || fail "llama3's pattern"
grep -q '"normalizer":{"type":"NFC"}' qwen2/tokenizer.json || fail "qwen2's"
grep -q '"individual_digits":true' smollm2/tokenizer.json || fail "smollm2's"
expect 3 "$PLIMSOLL" tokenizer train --pattern=llama --out=x text.txt
says "'llama3'"

# three digits, or each alone
[ "$(printf 777 | ids qwen2 | wc -l)" -eq 3 ] || fail "qwen2's digits"
[ "$(printf 777 | ids smollm2 | wc -l)" -eq 3 ] || fail "smollm2's digits"
# cut in the middle of what isn't NFC, text gives the tokens of the whole
printf 'e\u0301%.0s' {1..70000} >long.txt
ids qwen2 long.txt >whole
printf '\u00e9%.0s' {1..70000} | ids qwen2 | cmp - whole

# ---- a model, and llama.cpp's names ----
for pattern in llama3:llama-bpe qwen2:qwen2 smollm2:smollm; do
    name=${pattern%:*}
    expect 0 "$PLIMSOLL" train --dataset=$name-1 "${tiny[@]}" --out_dir=$name-m
    expect 0 "$PLIMSOLL" sample --out_dir=$name-m --start=$'e\u0301' \
        --max_new_tokens=4 --num_samples=1
    expect 0 "$PLIMSOLL" export $name-m --out=$name.gguf
    grep -aq "tokenizer.ggml.pre.*${pattern#*:}" $name.gguf ||
        fail "$name.gguf has another pattern"
    expect 0 "$PLIMSOLL" import $name.gguf --out=$name-back
    cmp $name/tokenizer.json $name-back/tokenizer.json
done

# ---- Llama 3's end of text ----
sed 's/<|endoftext|>/<|end_of_text|>/g' llama3/tokenizer.json >end.json
expect 0 "$PLIMSOLL" prepare --tokenizer=end.json --out=data/end text.txt
cmp data/end/train.bin data/llama3-1/train.bin
