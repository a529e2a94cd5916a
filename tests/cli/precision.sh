#!/usr/bin/env bash
# Fewer bits, the same learning: 500 updates of the 4 / 4 / 128 recipe end
# within 1 % of float32's validation loss, however the activations, the weights
# and the moments are kept. Takes minutes: only with PL_TEST_LONG=1, and on the
# build that users run.
set -eu
. tests/support/cli.sh
configs=$PWD/config
texts=(README.md docs/*.md src/*/*.c src/*/*.h)
cat "${texts[@]}" >"$TMP_DIR/text"
cd "$TMP_DIR"

updates=20
batches=4 # per evaluation
case ${PL_TEST_LONG:-0}:$PLIMSOLL in
1:*/release/*) updates=500 batches=20 ;;
esac
expect 0 "$PLIMSOLL" prepare --out=data/sources text

# loss_of SETTINGS...: sets $loss to the last validation loss
loss_of() {
    expect 0 "$PLIMSOLL" train "$configs/train_shakespeare_char_cpu.py" \
        --dataset=sources --out_dir=out --max_iters=$updates \
        --eval_interval=$updates --eval_iters=$batches \
        --log_interval=$updates "$@"
    loss=$(sed -n "s/^step $updates: .*val loss \([0-9.]*\).*/\1/p" <<<"$out")
    [ -n "$loss" ] || fail "no loss: $out"
    echo "$updates updates $*: $loss"
}

loss_of --dtype=float32
want=$loss
all=(--dtype=bfloat16 --dtype=float16 --weights=bf16 --optimizer_state=8bit
    "--weights=bf16 --optimizer_state=8bit")
# tensor arithmetic is several times slower here
[ "${PL_TEST_LONG:-0}" = 0 ] || all+=(
    "--device=cpu --dtype=bfloat16 --products=tensor24"
    "--device=cpu --dtype=float16 --products=tensor25")
for more in "${all[@]}"; do
    # shellcheck disable=SC2086
    loss_of $more
    awk -v a="$loss" -v b="$want" \
        'BEGIN { exit !(a / b < 1.01 && b / a < 1.01) }' ||
        fail "$more: $loss is not within 1 % of $want"
done
