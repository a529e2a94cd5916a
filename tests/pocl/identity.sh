#!/usr/bin/env bash
# Random models under random plans, which move between the processor and PoCL
# as they are stopped and resumed (tests/unit/test_identity.c): every loss and
# every checkpoint is that of the processor alone. PL_SEED: other models.
set -eu
. tests/support/cli.sh
. tests/support/pocl.sh

models() { # models SEED VARIANTS
    expect 0 env PLIMSOLL_TEST_DEVICE="$pocl" "$UNIT_IDENTITY" "$1" all "$2"
    moved=$(grep -c '^seed' <<<"$out")
    [ "$moved" -ge 15 ] || fail "only $moved models"$'\n'"$out"
    echo "seed $1: $moved models under $2 plans each"
}
models "${PL_SEED:-31}" 2
[ "${PL_TEST_LONG:-0}" = 0 ] || for seed in 32 33 34 35; do
    models $seed 6
done
