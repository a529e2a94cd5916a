#!/usr/bin/env bash
# `products`: a run keeps its arithmetic, and what can't be computed is said.
set -eu
. tests/support/cli.sh
work_on_disk

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
half=(--dataset=cats "${tiny[@]}" --dtype=bfloat16 --block_size=16
    --device=cpu --max_iters=2)

# hash OUT_DIR: of the newest weights
hash_of() {
    sha256sum "$1"/latest/model.safetensors | cut -d' ' -f1
}

# The base kernels have no tensor arithmetic, and say so.
expect 3 env PLIMSOLL_ISA=base "$PLIMSOLL" train "${half[@]}" \
    --products=tensor24 --out_dir=base
says 'the base kernels have none'
[ ! -e base ] || fail "an out_dir was made"
expect 0 "$PLIMSOLL" train "${half[@]}" --products=exact --out_dir=exact
says_not 'products'
grep -q 'base kernels' <<<"$out" && exit 0

# ---- three arithmetics ----

# Where the processor has AMX, 'tensor' is that: not with these kernels.
expect 0 env PLIMSOLL_ISA=avx2 "$PLIMSOLL" train "${half[@]}" \
    --products=tensor --out_dir=t24
says "products = 'tensor': there are no tensor cores here, so it is 'tensor24'"
says 'kernels, products tensor24'
expect 0 "$PLIMSOLL" train "${half[@]}" --products=tensor25 --out_dir=t25
says 'kernels, products tensor25'
grep -q '"arithmetic": 4' exact/latest/state.json || fail "not 4"
grep -q '"arithmetic": 5' t24/latest/state.json || fail "not 5"
grep -q '"arithmetic": 6' t25/latest/state.json || fail "not 6"
[ "$(hash_of exact)" != "$(hash_of t24)" ] || fail "tensor24 is exact"
[ "$(hash_of t25)" != "$(hash_of t24)" ] || fail "tensor24 is tensor25"

# ---- a run goes on in its own ----

expect 0 "$PLIMSOLL" train "${half[@]}" --max_iters=4 --products=tensor25 \
    --out_dir=whole
# 'auto' is what the checkpoint has, not what this machine would take.
cp -r t25 t25-config
expect 0 "$PLIMSOLL" train --resume t25 --max_iters=4 --products=auto
says 'kernels, products tensor25'
says_not 'another one from here on'
[ "$(hash_of t25)" = "$(hash_of whole)" ] || fail "other bits after --resume"
expect 0 "$PLIMSOLL" train "${half[@]}" --init_from=resume --max_iters=4 \
    --out_dir=t25-config
[ "$(hash_of t25-config)" = "$(hash_of whole)" ] ||
    fail "other bits after init_from = 'resume'"
expect 3 "$PLIMSOLL" train --resume t25 --max_iters=6 --products=exact
says "in arithmetic 6 \\(the same with tensor25 products\\)"
says "products = 'tensor25'"
expect 3 "$PLIMSOLL" train --resume exact --max_iters=6 --products=tensor24
says "products = 'exact'"
expect 0 "$PLIMSOLL" train --resume t25 --max_iters=5 --products=exact \
    --allow_other_arithmetic=True
grep -q '"arithmetic": 4' t25/latest/state.json || fail "it stayed 6"

# ---- AMX's ----

amx=("${half[@]}" --block_size=64 --dropout=0.1 --max_iters=3)
expect 0 "$PLIMSOLL" train "${amx[@]}" --products=amx --out_dir=amx
says 'kernels, products amx'
grep -q '"arithmetic": 7' amx/latest/state.json || fail "not 7"
for isa in avx2 avx512 avx512bf16; do
    expect 0 env PLIMSOLL_ISA=$isa "$PLIMSOLL" train "${amx[@]}" \
        --products=amx --out_dir="amx-$isa" --threads=1 --grad_checkpoint=3
    [ "$(hash_of amx)" = "$(hash_of "amx-$isa")" ] || fail "other bits: $isa"
    expect 0 env PLIMSOLL_ISA=$isa "$PLIMSOLL" sample "amx-$isa" \
        --dtype=bfloat16 --device=cpu --num_samples=1 --max_new_tokens=80
    sampled=$out
    expect 0 "$PLIMSOLL" sample amx --dtype=bfloat16 --device=cpu \
        --num_samples=1 --max_new_tokens=80
    [ "$(tail -n 5 <<<"$out")" = "$(tail -n 5 <<<"$sampled")" ] ||
        fail "another text: $isa"
done
expect 0 "$PLIMSOLL" train "${amx[@]}" --products=exact --out_dir=not-amx
[ "$(hash_of amx)" != "$(hash_of not-amx)" ] || fail "amx is exact"
# 'auto' takes it where there are such instructions, and keeps it.
expect 0 "$PLIMSOLL" train "${amx[@]}" --out_dir=auto
case $out in
*'amx kernels'*) says 'amx kernels, products amx' ;;
*) says_not 'products' ;;
esac
expect 0 env PLIMSOLL_ISA=avx2 "$PLIMSOLL" train --resume amx --max_iters=4
says 'avx2 kernels, products amx'
expect 3 "$PLIMSOLL" train --resume amx --max_iters=5 --products=exact
says "products = 'amx'"
expect 3 "$PLIMSOLL" train "${amx[@]}" --block_size=48 --products=amx \
    --out_dir=no
says 'block_size is 48\. Set block_size to a multiple of 32'
expect 3 "$PLIMSOLL" train "${amx[@]}" --dtype=float16 --products=amx \
    --out_dir=no
says 'needs operands of bfloat16'

# ---- evaluation and sampling ----

expect 0 "$PLIMSOLL" eval whole --eval_iters=2
says 'products tensor25'
expect 0 "$PLIMSOLL" sample whole --device=cpu --dtype=bfloat16 \
    --num_samples=1 --max_new_tokens=8
expect 0 "$PLIMSOLL" sample whole --device=cpu --num_samples=1 \
    --max_new_tokens=8

# ---- what can't be computed ----

expect 3 "$PLIMSOLL" train "${half[@]}" --dtype=float32 --products=tensor24 \
    --out_dir=no
says "dtype is 'float32'"
expect 3 "$PLIMSOLL" train "${half[@]}" --block_size=20 --products=tensor25 \
    --out_dir=no
says 'block_size is 20\. Set block_size to a multiple of 16'
expect 3 "$PLIMSOLL" train "${half[@]}" --dtype=float16 --weights=bf16 \
    --products=tensor25 --out_dir=no
says "weights = 'bf16'"
[ ! -e no ] || fail "an out_dir was made"

# Nothing is offered that would be refused.
expect 0 "$PLIMSOLL" plan "${half[@]}" --dtype=float16 --products=tensor24
says_not "dtype = 'float32'"
says_not "weights = 'bf16'"
expect 5 "$PLIMSOLL" plan "${half[@]}" --dtype=float16 --products=tensor24 \
    --block_size=64 --memory=100kB
