#!/usr/bin/env bash
# Settings: where they come from, and what is said when they are wrong.
set -eu
. tests/support/cli.sh
configs=$PWD/config
cd "$TMP_DIR"

for file in "$configs"/*.py; do
    expect 0 "$PLIMSOLL" config "$file"
done
cat >a.py <<'PY'
n_layer = 3 * 2   # six
learning_rate = 1_0e-4
dataset = 'x' + "y"
PY
expect 0 "$PLIMSOLL" config a.py --n_layer=7 --bias=True
says '^n_layer +  *= 7 +# command line$'
says '^learning_rate += 0\.001 +# a\.py:2:1$'
says "^dataset += 'xy' +# a\.py:3:1\$"
says '^n_head += 12 +# default$'

# what it prints is a config file that gives the same
sed 's/ *# .*//' <<<"$out" >b.py
before=$(cat b.py)
expect 0 "$PLIMSOLL" config b.py
[ "$(sed 's/ *# .*//' <<<"$out")" = "$before" ] || fail "not the same: $out"

echo 'n_layers = 4' >bad.py
expect 3 "$PLIMSOLL" train bad.py
says 'bad\.py:1:1: .*n_layers'
says "n_layer'"
printf 'n_layer = 4\nn_head = "four"\n' >bad.py
expect 3 "$PLIMSOLL" plan bad.py
says 'bad\.py:2:'
expect 3 "$PLIMSOLL" plan --dropout=1.5
expect 2 "$PLIMSOLL" plan --n_leyer=3
says "n_layer'"
expect 2 "$PLIMSOLL" plan --num_samples=3
expect 2 "$PLIMSOLL" plan -v
expect 2 "$PLIMSOLL" frobnicate
says "no command 'frobnicate'"
expect 1 "$PLIMSOLL" plan nowhere.py
says 'nowhere\.py'

expect 0 "$PLIMSOLL" --help
says '^  prepare '
expect 0 "$PLIMSOLL" --version
says '^plimsoll [0-9]+\.[0-9]+\.[0-9]+$'
for command in plan explain train eval sample prepare config tokenizer \
    tokenize inspect; do
    expect 0 "$PLIMSOLL" "$command" --help
    says "^usage: plimsoll $command "
done
# no colours off a terminal
expect 0 "$PLIMSOLL" plan --n_layer=1
! grep -q $'\033' <<<"$out" || fail "escape sequences in a pipe"
# a full disk behind a redirection is not success
if [ -w /dev/full ]; then
    code=0
    "$PLIMSOLL" config >/dev/full 2>err.txt || code=$?
    [ "$code" -eq 1 ] || fail "exit code $code on a full disk"
fi
