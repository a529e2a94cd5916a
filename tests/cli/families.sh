#!/usr/bin/env bash
# Models of other families than GPT-2: defaults that a key sets, files in the
# names of others, runs that go on as themselves, and what can't be.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

# a family's defaults, and who set what
expect 0 "$PLIMSOLL" config --architecture=qwen3 --bias=True
says "norm_eps += 1e-06 +# architecture 'qwen3'"
says "bias += True +# command line"
says "logit_softcap += 0\.0"
expect 0 "$PLIMSOLL" config
says "norm += 'layernorm'"
says_not "architecture '"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
train=("$PLIMSOLL" train --dataset=cats "${tiny[@]}" --n_head=4 --n_embd=32
    --device=cpu)
for family in llama qwen3; do
    own=("${train[@]}" --architecture=$family --n_kv_head=2)
    expect 0 "${own[@]}" --out_dir=$family --max_iters=4
    says_not 'only Plimsoll loads'
    expect 0 "$PLIMSOLL" inspect $family
    says "architecture '$family', n_kv_head 2"
    expect 0 "$PLIMSOLL" inspect $family/latest/model.safetensors
    says 'model\.layers\.0\.self_attn\.k_proj\.weight +F32 +16 x 32'
    says 'model\.layers\.0\.mlp\.gate_proj\.weight +F32 +64 x 32'
    says_not 'transformer\.|wpe|embed_positions|qkv'

    # stopped and resumed, as a folder, under another plan
    expect 0 "${own[@]}" --out_dir=whole-$family --max_iters=6 \
        --grad_checkpoint=3 --threads=1
    expect 0 "$PLIMSOLL" train --resume $family --max_iters=6
    for file in model optimizer; do
        cmp $family/latest/$file.safetensors \
            whole-$family/latest/$file.safetensors
    done
    expect 0 "${train[@]}" --init_from=$family/latest --out_dir=on-$family \
        --max_iters=0
    cmp $family/latest/model.safetensors on-$family/latest/model.safetensors
    expect 0 "$PLIMSOLL" sample --out_dir=$family --max_new_tokens=30 \
        --num_samples=1
    expect 0 "$PLIMSOLL" eval $family
    expect 3 "$PLIMSOLL" eval $family --position=learned
    says "position is 'rope' in the checkpoint and 'learned' \(command line\)"
done
cmp -s llama/latest/model.safetensors qwen3/latest/model.safetensors &&
    fail "both families train the same weights"

# what belongs to no family is named, and trains
expect 0 "${train[@]}" --out_dir=odd --architecture=llama --mlp=relu2 \
    --logit_softcap=30 --max_iters=2
says "family llama has no mlp = 'relu2' or logit_softcap = 30\.0: only"
grep -q "A Llama has no mlp = 'relu2' or logit_softcap = 30.0, this model" \
    odd/latest/config.json || fail "the note doesn't name all"
expect 6 "$PLIMSOLL" export odd --out=odd.gguf
says "mlp = 'relu2' or logit_softcap = 30\.0, this model has: "
expect 0 "$PLIMSOLL" inspect odd/latest/model.safetensors
says 'mlp\.up_proj\.weight'
says_not 'gate'
expect 0 "${train[@]}" --out_dir=mixed --position=rope --qk_norm=True \
    --max_iters=2
says "family gpt2 has no position = 'rope' or qk_norm = True: only"
expect 0 "$PLIMSOLL" inspect mixed
says 'transformer\.h\.0\.attn\.q_norm\.weight'

# what can't be
expect 3 "${train[@]}" --architecture=llama --n_embd=36
says 'heads are 9 wide'
expect 3 "${train[@]}" --n_kv_head=3
says "n_kv_head = 3 \(command line\) doesn't divide n_head = 4"
expect 3 "${train[@]}" --architecture=gemma
says "'gpt2', 'llama' or 'qwen3'"

# the plan has a row for the rotations, on a card, too
expect 0 "$PLIMSOLL" plan --dataset=cats "${tiny[@]}" --architecture=qwen3 \
    --device=cpu --steps
says 'rotary table'
says 'qk\.bwd'
says 'glu\.bwd'
expect 0 "$PLIMSOLL" plan --dataset=cats "${tiny[@]}" --architecture=qwen3 \
    --gpu='RTX 4070'
says 'rotary table'
