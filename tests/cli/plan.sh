#!/usr/bin/env bash
# The plan: no data, no device, every byte.
set -eu
. tests/support/cli.sh
configs=$PWD/config
work_on_disk # the numbers are those without files in memory

expect 0 "$PLIMSOLL" plan "$configs/train_fineweb.py"
says '^parameters +77,355,072 \(76\.77M without positions'
says '^saved activations '
says '^run +[0-9]+ tokens/s; .* for 600000 updates'
says '^peak '
expect 0 "$PLIMSOLL" plan "$configs/train_fineweb_recommended.py"
says 'n_embd 512 / n_head 12 is not whole'
says '64041472 parameters'
says 'n_head = 8 divides'

expect 0 "$PLIMSOLL" plan "$configs/train_fineweb.py" --dtype=float32 --json \
    --fit=exact --memory=64GB
[ "$(number parameters)" = 77355072 ] || fail "parameters: $out"
[ "$(number micro_batch)" = 16 ] || fail "micro_batch: $out"
[ "$(number accumulation)" = 32 ] || fail "accumulation: $out"
says '"dtype": "float32"'
says '"reserve_bytes": [0-9]+'
arena=$(number arena_bytes)
bound=$(number lower_bound_bytes)
[ "$arena" -ge "$bound" ] || fail "$arena below its bound $bound"
peaks=$(sed -n 's/^ *"peak_bytes": \([0-9]*\),/\1/p' <<<"$out" | sort -n)
[ "$(wc -l <<<"$peaks")" -eq 5 ] || fail "five programs: $out"
[ "$(tail -n 1 <<<"$peaks")" = "$arena" ] || fail "arena is not the peak: $out"
for program in train update eval sample save; do
    says "\"$program\": \{"
done

# groups: a program more, and a set of gradients for each level of their tree
gradients() { sed -n '/"update": {/,/}/p' <<<"$out" |
    sed -n 's/^ *"gradients_bytes": \([0-9]*\),/\1/p'; }
one=$(gradients)
expect 0 "$PLIMSOLL" plan "$configs/train_fineweb.py" --dtype=float32 --json \
    --fit=exact --memory=64GB --gradient_groups=8
[ "$(number gradient_groups)" = 8 ] || fail "gradient_groups: $out"
says '"groups": \{'
[ "$(gradients)" = $((4 * one)) ] || fail "gradients: not 4 x $one: $out"
expect 0 "$PLIMSOLL" plan "$configs/train_fineweb.py" --memory=64GB \
    --gradient_groups=8 --steps
says '^groups +8 of 64 sequences, .* 4 times$'
says ' sequences in 8 groups, '
says '^gradient_groups = 1 +[0-9.]+ [MG]B +-[0-9.]+ % +.0.0 %  another run$'
says '^groups: [0-9]+ steps, [0-9]+ of them repeated$'
expect 3 "$PLIMSOLL" plan "$configs/train_fineweb.py" --gradient_groups=3
says 'gradient_groups = 3 \(command line\) .* is a power of two'

# what bfloat16 would bring: bytes everywhere, time where a set multiplies pairs
bfloat16() {
    expect 0 "$PLIMSOLL" plan "$configs/train_fineweb.py" --dtype=float32 \
        --memory=64GB --device=cpu
    says "^dtype = 'bfloat16' +[0-9.]+ MB +$1 % +$1 %  another run\$"
}
PLIMSOLL_ISA=base bfloat16 '[+]0\.0'
expect 0 "$PLIMSOLL" devices
if grep -q ' avx512bf16 kernels' <<<"$out"; then
    bfloat16 '-[1-9][0-9]\.[0-9]'
fi

# half the storage, fewer bytes; recomputation, fewer still
half() { "$PLIMSOLL" plan "$configs/train_fineweb.py" --json --fit=exact "$@" |
    sed -n 's/^ *"arena_bytes": \([0-9]*\),/\1/p'; }
fp16=$(half)
level3=$(half --grad_checkpoint=True)
[ "$fp16" -lt "$arena" ] && [ "$level3" -lt "$fp16" ] ||
    fail "$level3 < $fp16 < $arena does not hold"

# 70 B parameters, on any machine
expect 0 "$PLIMSOLL" plan --n_layer=80 --n_head=64 --n_embd=8192 \
    --block_size=4096 --vocab_size=128256 --batch_size=8 --memory=4TB \
    --json
[ "$(number parameters)" -gt 65000000000 ] || fail "parameters: $out"

# larger than any memory there could be: said, not wrapped around
expect 5 "$PLIMSOLL" plan --batch_size=1073741824 --block_size=1073741824 \
    --gradient_accumulation_steps=1 --eval_iters=1
says 'larger than any address space'

expect 0 "$PLIMSOLL" plan --n_layer=1 --steps
says '^ +0  embed +w:x=train.embedding r:tokens=train.tokens'

# where nothing fits: what would
expect 5 "$PLIMSOLL" plan "$configs/train_fineweb.py" --memory=1GB
says '^does not fit: [0-9.]+ MB are missing'
says "^optimizer_state = '8bit' .*same model, fewer bits"
says '^n_embd = [0-9]+ .*another model'
expect 5 "$PLIMSOLL" plan "$configs/train_fineweb.py" --memory=2GB \
    --fit=exact --json
says '"settings": "fit = .auto."'
expect 0 "$PLIMSOLL" plan "$configs/train_fineweb.py" --memory=2GB
says_not '^what would fit'
