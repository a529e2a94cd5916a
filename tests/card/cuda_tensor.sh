#!/usr/bin/env bash
# Runs by tensor cores on the emulated CUDA card, of both classes: the processor
# computes the same bits, and so does every plan; a run goes on from one to the
# other with its own arithmetic, which no device gives up silently.
set -eu
. tests/support/cli.sh
. tests/support/card.sh
work_on_disk

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/chars cats.txt
# wide enough for the large products, whose tiles nothing here fills
size=("${tiny[@]}" --dataset=chars --n_layer=1 --n_embd=48 --block_size=48
    --batch_size=2 --max_iters=2 --eval_interval=2 --eval_iters=1 --dropout=0.1
    --bias=True)
train() { # OUT ARGUMENTS...
    expect 0 "$PLIMSOLL" train "${size[@]}" --out_dir="$1" "${@:2}"
}
on_tensor() { # CC OUT ARGUMENTS...
    PL_CARD="cc=$1" expect 0 on_card "$PLIMSOLL" train "${size[@]}" \
        --device=cuda --out_dir="$2" "${@:3}"
}

# 'auto' is the card's class for 16 bits, and exact for float32
for cc in 89 120; do
    class=tensor24
    [ $cc = 89 ] || class=tensor25
    for dtype in bfloat16 float16; do
        train "cpu-$class-$dtype" --device=cpu --dtype=$dtype --products=$class
        on_tensor $cc "card-$class-$dtype" --dtype=$dtype
        says "Emulated card, products $class"
        same "cpu-$class-$dtype" "card-$class-$dtype"
    done
done
! cmp -s cpu-tensor24-bfloat16/latest/model.safetensors \
    cpu-tensor25-bfloat16/latest/model.safetensors ||
    fail "both classes give the same bits: the test can't tell them apart"
expect 0 on_card "$PLIMSOLL" plan "${size[@]}" --device=cuda
says_not 'products tensor'
PL_CARD=cc=75 expect 0 on_card "$PLIMSOLL" plan "${size[@]}" --device=cuda \
    --dtype=bfloat16
says_not 'products tensor'

# here, there and here again; the checkpoint has the arithmetic
on_tensor 89 both --dtype=bfloat16 --max_iters=1
expect 0 "$PLIMSOLL" train --resume both --device=cpu --max_iters=2
says 'products tensor24'
same cpu-tensor24-bfloat16 both
train both2 --device=cpu --dtype=bfloat16 --products=tensor24 --max_iters=1
expect 0 on_card "$PLIMSOLL" train --resume both2 --device=cuda --max_iters=2
same cpu-tensor24-bfloat16 both2
PL_CARD=cc=120 expect 3 on_card "$PLIMSOLL" train --resume both --device=cuda \
    --max_iters=4
says "products = 'tensor24' can't be computed by"

# every plan: literal, levels, a small budget, groups
expect 5 on_card "$PLIMSOLL" plan "${size[@]}" --device=cuda --dtype=bfloat16 \
    --json --memory=1kB
for plan in --fit=exact --grad_checkpoint=3 --working_copy=rounded \
    --memory="$(number smallest_arena_bytes)"; do
    on_tensor 89 "plan$plan" --dtype=bfloat16 "$plan"
    same cpu-tensor24-bfloat16 "plan$plan"
done
train groups --device=cpu --dtype=bfloat16 --products=tensor24 \
    --gradient_groups=2
on_tensor 89 card-groups --dtype=bfloat16 --gradient_groups=2
same groups card-groups

# samples and losses
sample=(sample --out_dir=both --num_samples=1 --max_new_tokens=20 --top_k=5)
expect 0 "$PLIMSOLL" "${sample[@]}" --device=cpu
text=$out
expect 0 on_card "$PLIMSOLL" "${sample[@]}" --device=cuda
[ "$out" = "$text" ] || fail "another text: $out"
expect 0 "$PLIMSOLL" eval both --device=cpu
text=$(grep '^step' <<<"$out")
expect 0 on_card "$PLIMSOLL" eval both --device=cuda
[ "$(grep '^step' <<<"$out")" = "$text" ] || fail "another loss: $out"

# what isn't there is refused, or said
expect 3 on_card "$PLIMSOLL" train "${size[@]}" --device=cuda --out_dir=no \
    --products=tensor
says "products = 'tensor24' needs operands of 16 bits"
expect 3 on_card "$PLIMSOLL" train "${size[@]}" --device=cuda --out_dir=no \
    --dtype=bfloat16 --products=tensor25
says "products = 'tensor25' can't be computed by Emulated card"
on_tensor 89 odd --dtype=bfloat16 --block_size=40 --max_iters=1
says 'note: products are exact, and slower than Emulated card could'
[ ! -e no ] || fail "a refused run left a folder"

# cores that compute something else are left alone
rm -rf "$XDG_CACHE_HOME"
train exact --device=cpu --dtype=bfloat16 --products=exact
PL_CARD=wrong=tensor_any expect 0 on_card "$PLIMSOLL" train "${size[@]}" \
    --device=cuda --dtype=bfloat16 --out_dir=left
says 'note: cuda:0 .Emulated card.: its tensor cores have other bits than'
same exact left
