#!/usr/bin/env bash
# inspect knows models of other programs, by what they hold and not by their
# names, and says everything to scripts too; so does config.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=300 --out=data/bpe cats.txt
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out \
    --max_iters=2 --activation=gelu_tanh
expect 0 "$PLIMSOLL" export out --out=m.gguf
expect 0 "$PLIMSOLL" export out --out=m.bin
expect 0 "$PLIMSOLL" export out --out=folder

# for people
cp m.gguf nameless
for file in m.gguf nameless; do
    expect 0 "$PLIMSOLL" inspect $file
    says "^$file: GGUF, 28 tensors, [0-9,]+ numbers, "
    says '^  general.architecture +gpt2$'
    says '^  tokenizer.ggml.tokens +[0-9]+ elements$'
    says '^  blk.0.attn_qkv.weight +f32 +48 x 16$'
done
cp m.bin nameless
for file in m.bin nameless; do
    expect 0 "$PLIMSOLL" inspect $file
    says "^$file: a model of llm.c, 16 tensors, "
    says '^  version 3, n_layer 2, n_head 2, n_embd 16, .* bias False$'
    says '^  qkvw +F32 +2 x 48 x 16$'
done
expect 0 "$PLIMSOLL" inspect folder
says '^folder: a GPT-2 as Hugging Face keeps it$'
says '^  n_layer 2, .*, bias False, '
says '^folder/model.safetensors: safetensors, 28 tensors'
printf 'no\377\376 text' >noise
expect 0 "$PLIMSOLL" inspect noise
says '^noise: not UTF-8 text, 1 document, 9 bytes$'
printf 'PK\3\4 pickled' >ckpt.pt
expect 6 "$PLIMSOLL" inspect ckpt.pt
says 'nanogpt_to_folder.py'
head -c 2000 m.gguf >cut.gguf
expect 4 "$PLIMSOLL" inspect cut.gguf
expect 4 "$PLIMSOLL" inspect --json out cut.gguf
says_not '"items"'

# for scripts
expect 0 "$PLIMSOLL" inspect --json m.gguf m.bin folder out data/cats \
    data/bpe cats.txt noise
[ "$(head -n 2 <<<"$out" | tr -d ' \n')" = '{"items":[' ] || fail "$out"
kinds=$(sed -n 's/^      "kind": "\(.*\)",$/\1/p' <<<"$out" | tr '\n' ' ')
[ "$kinds" = "gguf llm.c model safetensors tokenizer checkpoint safetensors \
safetensors tokenizer tokens tokens tokenizer folder tokenizer text text " ] ||
    fail "kinds: $kinds"
says '^        "gpt2.block_count": 2,$'
says '^        "plimsoll.bias": false,$'
says '^      "step": 2,$'
says '^      "tokens": [0-9]+,$'
says '^      "first_text": "the cat number 0 '
says '^        "<|endoftext|>": 299$'
says '^      "format": "not UTF-8 text",$'
# its own reader of JSON reads it: quotes, and lines, in what was found
printf 'a "b"\n\tc \\ \1' >odd.txt
expect 0 "$PLIMSOLL" inspect --json odd.txt
says '"begins": "a \\"b\\"\\u000a\\u0009c \\\\ \\u0001"$'

expect 0 "$PLIMSOLL" config --json --n_layer=3 --grad_checkpoint='[1, 2, 3]' \
    --start='a "b"' --head_dim=None --dropout=0.5 --bias=True
[ "$(tr -d ' \n' <<<"$out" | head -c 12)" = '{"out_dir":{' ] || fail "$out"
value() { # KEY VALUE FROM
    local row
    row=$(grep -A 7 "^  \"$1\": {" <<<"$out" | tr -s ' \n' ' ')
    [[ $row == *"\"value\": $2, \"from\": \"$3\""* ]] || fail "$1: $row"
}
value n_layer 3 'command line'
value grad_checkpoint '[ 1, 2, 3 ]' 'command line'
value start '"a \"b\""' 'command line'
value head_dim null 'command line'
value dropout 0.5 'command line'
value bias true 'command line'
value n_head 12 default
grep -A 3 '^  "compile": {' <<<"$out" | grep -q '"has_effect": false' ||
    fail "compile has an effect"
in_a_run() { # KEY EFFECT
    grep -A 5 "^  \"$1\": {" <<<"$out" | grep -q "\"in_a_run\": \"$2\"" ||
        fail "$1 is not '$2' in a run"
}
in_a_run threads 'same bits'
in_a_run dropout numbers
in_a_run seed identity
