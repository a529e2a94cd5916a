#!/usr/bin/env bash
# The whole program on the tests' own device ($SILLY_PLIMSOLL): it plans,
# trains, goes on, samples and measures there, with the processor's bits, and
# counts both memories.
set -eu
. tests/support/cli.sh
work_on_disk
export XDG_CACHE_HOME="$TMP_DIR/cache"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/chars cats.txt
size=("${tiny[@]}" --dataset=chars --max_iters=4 --eval_interval=2
    --dropout=0.1)

# the same files, whoever trains, and wherever it goes on
expect 0 "$PLIMSOLL" train "${size[@]}" --out_dir=here
says 'memory: arena .* \+ reserve .*; 2 threads, .* kernels'
says_not 'on the host'
expect 0 "$SILLY_PLIMSOLL" train "${size[@]}" --out_dir=there
says 'memory: arena [^,]*, on the host .* \+ reserve .*; the tests. own device'
expect 0 "$PLIMSOLL" train "${size[@]}" --out_dir=both --max_iters=2
expect 0 "$SILLY_PLIMSOLL" train --resume both --max_iters=4
for file in model optimizer; do
    for folder in there both; do
        cmp "here/latest/$file.safetensors" "$folder/latest/$file.safetensors"
    done
done
losses() {
    grep -o '"[a-z_]*loss": [^,}]*' "$1/metrics.jsonl"
}
[ "$(losses here)" = "$(losses there)" ] || fail "other losses"
[ "$(losses here | wc -l)" -ge 8 ] || fail "no losses in here/metrics.jsonl"

sample=(sample --out_dir=there --num_samples=1 --max_new_tokens=30 --top_k=5)
expect 0 "$PLIMSOLL" "${sample[@]}"
text=$out
expect 0 "$SILLY_PLIMSOLL" "${sample[@]}"
[ "$out" = "$text" ] || fail "another text: $out"
expect 0 "$SILLY_PLIMSOLL" bench "${size[@]}" --rounds=1
says 'machine  the tests. own device: '

# the plan: the budget is the device's, and the host has its own
expect 0 "$SILLY_PLIMSOLL" plan "${size[@]}"
says '^host .*in the host.s memory$'
says '^total .* on the device; on the host '
says '^budget .*the silly device$'
expect 0 "$SILLY_PLIMSOLL" plan "${size[@]}" --json
[ "$(number total_bytes)" = "$(number arena_bytes)" ] || fail "$out"
[ "$(number host_bytes)" -gt "$(number reserve_bytes)" ] || fail "$out"
expect 0 "$PLIMSOLL" plan "${size[@]}" --json
[ -z "$(number host_bytes)" ] || fail "$out"
[ "$(number total_bytes)" -eq \
    $(($(number arena_bytes) + $(number reserve_bytes))) ] || fail "$out"

# what no bank holds is refused, by name
expect 5 "$SILLY_PLIMSOLL" train "${size[@]}" --n_embd=256
says 'tensor .* has [0-9,]+ bytes, and this device gives at most 319,488 bytes'
