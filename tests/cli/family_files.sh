#!/usr/bin/env bash
# Llamas and Qwen3s: trained, resumed, sampled, out to other programs' files and
# back with the same bits; what such a folder says and isn't computed here is
# refused before anything else happens.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
train=("$PLIMSOLL" train --dataset=cats "${tiny[@]}" --n_embd=64 --n_kv_head=1)
same() { cmp "$1/model.safetensors" "$2/model.safetensors"; }

for family in llama qwen3; do
    expect 0 "${train[@]}" --architecture=$family --out_dir=$family \
        --max_iters=3
    expect 0 "${train[@]}" --architecture=$family --out_dir=$family \
        --max_iters=4 --init_from=resume
    expect 0 "$PLIMSOLL" sample $family --num_samples=1 --max_new_tokens=20 \
        --start=the
    cp -r "$(readlink -f $family/latest)" plain-$family
    rm plain-$family/manifest.json # now it is a folder like anybody's
    sampled=$out
    expect 0 "$PLIMSOLL" sample plain-$family --num_samples=1 \
        --max_new_tokens=20 --start=the
    [ "${out##*the}" = "${sampled##*the}" ] || fail "another text: $out"
    expect 0 "$PLIMSOLL" eval plain-$family --dataset=cats --eval_iters=2
    says 'val loss'

    # GGUF in every type; f32 comes back bit for bit, q8_0 stays as it is
    for type in f32 f16 bf16 q8_0; do
        expect 0 "$PLIMSOLL" export $family --type=$type --out=$type.gguf
        says_not 'warning'
        rm -rf back
        expect 0 "$PLIMSOLL" import $type.gguf --out=back
        expect 0 "$PLIMSOLL" export back --type=$type --out=again.gguf
        cmp again.gguf $type.gguf
    done
    rm -rf back
    expect 0 "$PLIMSOLL" import f32.gguf --out=back
    same $family/latest back
    expect 0 "$PLIMSOLL" inspect f32.gguf
    says "^  general.architecture +$family\$"
    says "^  $family.attention.head_count_kv +1\$"
    says "^  $family.attention.key_length +32\$"
    says "^  $family.attention.layer_norm_rms_epsilon +1e-0[56]\$"
    says '^  blk.0.attn_k.weight +f32 +32 x 64$'
    expect 0 "$PLIMSOLL" export plain-$family --format=hf --out=share-$family
    same $family/latest share-$family
    expect 0 "$PLIMSOLL" inspect share-$family
    expect 6 "$PLIMSOLL" export $family --out=model.bin
    says "and llm.c's files hold a GPT-2"
done
expect 0 "$PLIMSOLL" inspect share-llama
says '^share-llama: a Llama as Hugging Face keeps it$'
expect 0 "$PLIMSOLL" inspect share-qwen3
says '^share-qwen3: a Qwen3 as Hugging Face keeps it$'

# from such a folder: other lengths, and back to the weights it has
begin=("$PLIMSOLL" train --dataset=cats --init_from=share-llama --batch_size=2
    --gradient_accumulation_steps=1 --eval_iters=1 --max_iters=0)
expect 0 "${begin[@]}" --block_size=8 --out_dir=shorter
same llama/latest shorter/latest
expect 0 "${begin[@]}" --block_size=40 --out_dir=longer
says 'block_size = 40: the model in share-llama was made for 16 positions'
same llama/latest longer/latest
grep -q '"max_position_embeddings": 40' longer/latest/config.json

# what isn't computed is refused by its entry
refuse() {
    sed "s/$1/$2/" share-llama/config.json >other/config.json
    expect 6 "${begin[@]}" --init_from=other --out_dir=none
    says "error: other/config.json: \"$3"
    expect 6 "$PLIMSOLL" export other --out=none.gguf
    says "other/config.json: \"$3"
    [ ! -e none.gguf ] || fail "a file of what can't be"
}
cp -r share-llama other
refuse '"rope_type": "default"' '"rope_type": "yarn", "factor": 4.0' \
    'rope_parameters.rope_type" is "yarn".*Expected "default"'
refuse '"silu"' '"relu"' 'hidden_act" is "relu".*Expected "silu"'
refuse '"attention_bias": false' '"attention_bias": true' \
    'mlp_bias" is false and "attention_bias" is true'
refuse '"model_type": "llama"' '"model_type": "qwen2"' \
    'model_type" is "qwen2"'

# biases that config.json leaves out
expect 0 "${train[@]}" --architecture=llama --bias=True --out_dir=biased \
    --max_iters=2
expect 0 "$PLIMSOLL" export biased --out=biased.gguf
expect 0 "$PLIMSOLL" import biased.gguf --out=biased-back
same biased/latest biased-back
sed -i 's/_bias": true/_bias": false/' biased-back/config.json
expect 6 "$PLIMSOLL" export biased-back --out=none.gguf
says 'proj.bias is not all zeros, .* set "attention_bias" and "mlp_bias"'

# what only Plimsoll computes
expect 0 "${train[@]}" --architecture=llama --mlp=relu2 --out_dir=alone \
    --max_iters=1
grep -q '"model_type": "plimsoll_gpt"' alone/latest/config.json
expect 6 "$PLIMSOLL" export alone --out=none.gguf
says "a Llama has no mlp = 'relu2', this model has"
expect 0 "$PLIMSOLL" export alone --format=hf --out=alone-share
same alone/latest alone-share
