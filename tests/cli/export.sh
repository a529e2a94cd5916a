#!/usr/bin/env bash
# Models for other programs, and back: what comes back is the same to the bit.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

size() { stat -c %s "$1"; }
same() { cmp "$1/model.safetensors" "$2/model.safetensors"; }

# two models: characters (some of several bytes) without biases, BPE with
{
    make_text
    echo 'é—😀\'
} >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=300 --out=data/bpe cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/pairs --tokenizer=data/bpe cats.txt
train=("$PLIMSOLL" train "${tiny[@]}" --n_embd=32 --activation=gelu_tanh
    --max_iters=3)
expect 0 "${train[@]}" --dataset=cats --out_dir=chars
expect 0 "${train[@]}" --dataset=pairs --out_dir=pairs --bias=True
char_ckpt=$(dirname "$(find -L chars -name model.safetensors | head -n 1)")
pair_ckpt=$(dirname "$(find -L pairs -name model.safetensors | head -n 1)")

# GGUF in every type; f32 comes back bit for bit, tokenizer and all
for type in f32 f16 bf16 q8_0; do
    expect 0 "$PLIMSOLL" export chars --format=gguf --type=$type --out=c.gguf
    says "^written to c.gguf: GGUF, $type"
    says_not 'warning'
    expect 0 "$PLIMSOLL" import c.gguf --out=chars-$type
    says '^written to chars-.*: model.safetensors, config.json, meta.json$'
    cmp "$char_ckpt/meta.json" chars-$type/meta.json
    cp c.gguf chars-$type.gguf
done
same "$char_ckpt" chars-f32
[ "$(size chars-q8_0.gguf)" -lt "$(size chars-f16.gguf)" ]
[ "$(size chars-f16.gguf)" -lt "$(size chars-f32.gguf)" ]
expect 0 "$PLIMSOLL" export "$pair_ckpt" --out=p.gguf
expect 0 "$PLIMSOLL" import p.gguf --out=pairs-back
same "$pair_ckpt" pairs-back
cmp "$pair_ckpt/tokenizer.json" pairs-back/tokenizer.json

# what was rounded once stays as it is
for type in f16 bf16 q8_0; do
    expect 0 "$PLIMSOLL" export chars-$type --type=$type --out=again.gguf
    cmp again.gguf chars-$type.gguf
done

# matrices of more than one slice, cut where no block of q8_0 ends
expect 0 "${train[@]}" --dataset=cats --out_dir=wide --n_layer=1 \
    --n_embd=544 --max_iters=1 --eval_iters=1 --batch_size=1 \
    --gradient_accumulation_steps=1 --block_size=4
wide_ckpt=$(dirname "$(find -L wide -name model.safetensors | head -n 1)")
expect 0 "$PLIMSOLL" export wide --out=w.gguf
expect 0 "$PLIMSOLL" import w.gguf --out=wide-f32
same "$wide_ckpt" wide-f32
expect 0 "$PLIMSOLL" export wide --type=q8_0 --out=w.gguf
expect 0 "$PLIMSOLL" import w.gguf --out=wide-q8_0
expect 0 "$PLIMSOLL" export wide-q8_0 --type=q8_0 --out=again.gguf
cmp w.gguf again.gguf
rm -r wide wide-f32 wide-q8_0 w.gguf again.gguf

# llm.c: the tokenizer's 300 tokens of the model's 320 are its own
expect 0 "$PLIMSOLL" export pairs --out=p.bin
[ "$(od -A n -t d4 -N 32 p.bin | tr -s ' \n' ' ')" = \
    " 20240326 3 16 300 2 2 32 384 " ] || fail "$(od -A n -t d4 -N 32 p.bin)"
expect 0 "$PLIMSOLL" import p.bin --out=pairs-llmc
says 'vocab_size 300$'
expect 0 "$PLIMSOLL" export pairs-llmc --out=again.gguf
says 'warning: there is no tokenizer'
expect 0 "$PLIMSOLL" import again.gguf --out=pairs-llmc-back
same pairs-llmc pairs-llmc-back
expect 0 "$PLIMSOLL" export chars --type=bf16 --format=llmc --out=c.bin
expect 0 "$PLIMSOLL" import c.bin --out=chars-llmc
expect 0 "$PLIMSOLL" export chars-llmc --type=bf16 --out=again.bin
cmp c.bin again.bin

# a Hugging Face folder, without the optimizer; never over another
expect 0 "$PLIMSOLL" export chars --format=hf --out=share/chars
same "$char_ckpt" share/chars
[ "$(find share/chars -type f | sort | tr '\n' ' ')" = \
    "share/chars/config.json share/chars/meta.json \
share/chars/model.safetensors " ] || fail "$(find share)"
expect 1 "$PLIMSOLL" export chars --format=hf --out=share/chars
says 'share/chars is there already'
expect 3 "$PLIMSOLL" export chars --format=hf --type=q8_0 --out=share/q
says 'safetensors have no q8_0'

# erf: said, and exported all the same
expect 0 "${train[@]}" --dataset=cats --out_dir=erf --activation=gelu \
    --n_embd=16 --max_iters=1
expect 0 "$PLIMSOLL" export erf --type=q8_0 --out=erf.gguf # rows: half blocks
says 'warning: this model was trained with GELU by erf, llama.cpp computes'
expect 0 "$PLIMSOLL" export erf --out=erf-folder
says_not 'warning'

# a head of its own is a tensor of its own; one that config.json denies is none
expect 0 "${train[@]}" --dataset=cats --out_dir=apart --max_iters=1 \
    --tie_word_embeddings=False
expect 0 "$PLIMSOLL" export apart --out=apart.gguf
expect 6 "$PLIMSOLL" export apart --out=apart.bin
says 'a classifier of its own'
cp -rL apart/latest denied
rm denied/manifest.json
sed -i 's/"tie_word_embeddings": false/"tie_word_embeddings": true/' \
    denied/config.json
expect 6 "$PLIMSOLL" export denied --out=denied.gguf
says 'lm_head.weight is not transformer.wte.weight'

# a head_dim of its own is no GPT-2
expect 0 "${train[@]}" --dataset=cats --out_dir=own --head_dim=8 --max_iters=1
expect 6 "$PLIMSOLL" export own --out=own.gguf
says 'head_dim of its own'
[ ! -e own.gguf ] || fail "a file of what can't be"
expect 6 "$PLIMSOLL" export own --out=own.bin
says "so llm.c could not run it"
# as a folder of ours it goes on
expect 0 "$PLIMSOLL" export own --format=hf --out=own-folder
grep -q '"model_type": "plimsoll_gpt2"' own-folder/config.json
expect 0 "${train[@]}" --dataset=cats --init_from=own-folder --out_dir=own-on \
    --max_iters=0
expect 0 "$PLIMSOLL" export own-on --format=hf --out=own-again
cmp own-folder/model.safetensors own-again/model.safetensors

# a disk that takes no more: said, and nothing is left
for name in full.gguf full.bin full-folder; do
    expect 1 bash -c "ulimit -f 40; exec '$PLIMSOLL' export chars --out=$name"
    says "$name"
    [ ! -e $name ] || fail "half of $name"
done
cp c.gguf kept.gguf
expect 1 bash -c "ulimit -f 40; exec '$PLIMSOLL' export chars --out=kept.gguf"
cmp c.gguf kept.gguf

# mistakes
expect 2 "$PLIMSOLL" export chars
says 'plimsoll export out --format=gguf --out=model.gguf'
expect 2 "$PLIMSOLL" import c.gguf
expect 1 "$PLIMSOLL" import chars --out=x
says 'needs no import'
expect 1 "$PLIMSOLL" export chars --format=gguf --out=share
says 'share/model.gguf'
expect 3 "$PLIMSOLL" export chars --type=f16 --out=x.bin
says "llm.c's models are f32 or bf16"
expect 3 "$PLIMSOLL" export chars --format=nanogpt --out=x
expect 3 "$PLIMSOLL" prepare --format=gguf --out=data/x cats.txt
expect 4 "$PLIMSOLL" import cats.txt --out=x
says 'not a GGUF file'
LC_ALL=C sed 's/Ġcat/Ġ\xffat/g' p.gguf >odd.gguf
expect 4 "$PLIMSOLL" import odd.gguf --out=x
says 'tokenizer.ggml.tokens: element [0-9]+ is not valid UTF-8 text'
head -c 3000 c.gguf >cut.gguf
expect 4 "$PLIMSOLL" import cut.gguf --out=x
says 'cut short'
[ ! -e x ] || fail "a folder of a broken file"
[ -z "$(find . -name '*.tmp')" ] || fail "left over: $(find . -name '*.tmp')"
expect 0 "$PLIMSOLL" export --help
says 'q8_0'
expect 0 "$PLIMSOLL" import --help
says 'nanogpt_to_folder'
