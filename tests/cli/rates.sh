#!/usr/bin/env bash
# What `plan` says of the rates it predicts from: how old they are, how far to
# be trusted; and of times that no calendar has.
set -eu
. tests/support/cli.sh
unset PLIMSOLL_CALIBRATE
configs=$PWD/config
cd "$TMP_DIR"
export XDG_CACHE_HOME="$TMP_DIR/cache"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
size=(--dataset=cats "${tiny[@]}")
expect 0 "$PLIMSOLL" plan "${size[@]}"
says '^rates +built in, of another machine'

expect 0 "$PLIMSOLL" train "${size[@]}" --max_iters=6
expect 0 "$PLIMSOLL" plan "${size[@]}"
says '^rates +measured [0-9.]+ (s|min [0-9]+ s) ago'
file=$(ls cache/plimsoll/machine-*-2-float32-16.json)
[ -f "$file" ] || fail "no rates are kept"
grep -q '"date"' "$file" && grep -q '"quiet"' "$file" || fail "$(cat "$file")"

# made AGE_SECONDS QUIET: rates from such a moment
cp "$file" measured.json
made() {
    local date=$(($(date +%s) - $1))
    sed -e "s/\"date\": [^,]*/\"date\": $date/" \
        -e "s/\"quiet\": [^,]*/\"quiet\": $2/" measured.json >"$file"
}
made 259210 0.97
expect 0 "$PLIMSOLL" plan "${size[@]}"
says '^rates +measured 3 days 0 h ago, undisturbed \(97 % of the time was '
made 7200 0.31
expect 0 "$PLIMSOLL" plan "${size[@]}"
says '^rates +measured 2 h 00 min ago in a busy moment \(31 % of the time'
says 'it may be faster; a quiet `train` or `bench` corrects'
expect 0 "$PLIMSOLL" plan "${size[@]}" --json
[ "$(number rates_quiet)" = 0.31 ] || fail "rates_quiet: $out"
grep -v '"date"' measured.json >"$file" # as they were kept before
expect 0 "$PLIMSOLL" plan "${size[@]}"
says '^rates +of unknown age: the next `train` or `bench` measures anew$'

# poison: a thousandth of what the machine does, from a busy moment. The next
# training measures anew, and predicts within reason again.
predicted() {
    expect 0 "$PLIMSOLL" plan "${size[@]}" --json
    number predicted_step_ms
}
made 60 0.05
before=$(predicted)
sed -i -E 's/("matmul[a-z.]*": )([0-9.]+)/\1 1/' "$file"
poisoned=$(predicted)
awk "BEGIN { exit !($poisoned > 1000 * $before) }" ||
    fail "no poison: $poisoned beside $before"
expect 0 "$PLIMSOLL" train "${size[@]}" --max_iters=1
after=$(predicted)
awk "BEGIN { exit !($after < $poisoned / 1000) }" ||
    fail "$poisoned ms per update became $after"

# what an evaluation takes is known from the first one on, however short
expect 0 "$PLIMSOLL" train "${size[@]}" --max_iters=3 --eval_interval=2 \
    --eval_iters=1
says '^iter 2: .* left$'
says_not '(h [0-9]+ min|days|years).* left$'

# centuries, by the built-in rates
export XDG_CACHE_HOME="$TMP_DIR/nothing"
huge=(--n_layer=12 --n_head=64 --n_embd=8192 --block_size=4096 --threads=2
    --vocab_size=128256 --batch_size=512)
expect 5 "$PLIMSOLL" plan "${huge[@]}" --max_iters=1000
says '^run .* tokens/s; [0-9]+ years for 1000 updates'
expect 5 "$PLIMSOLL" plan "${huge[@]}" --max_iters=1000000000
says '^run .* tokens/s; [0-9]\.[0-9]e\+[0-9]+ years for 1000000000 updates'

# A cache folder must be absolute, as the XDG standard says; one that isn't
# would lie wherever the program is called. The home folder's is taken.
export XDG_CACHE_HOME=relative HOME=$TMP_DIR/home
mkdir home
expect 0 "$PLIMSOLL" train "${size[@]}" --out_dir=out-home --max_iters=6
[ ! -e relative ] || fail 'a relative cache folder was made'
ls home/.cache/plimsoll/machine-*.json >/dev/null || fail 'no rates at home'

# measuring can be forbidden
export XDG_CACHE_HOME=$TMP_DIR/cache
rm -rf cache out
PLIMSOLL_CALIBRATE=0 expect 0 "$PLIMSOLL" train "${size[@]}" --max_iters=1
! ls cache/plimsoll/machine-*-2-float32-16.json 2>/dev/null ||
    fail "it was measured all the same"
expect 0 "$PLIMSOLL" train "${size[@]}" --max_iters=1 --out_dir=again
ls cache/plimsoll/machine-*-2-float32-16.json >/dev/null ||
    fail "nothing was measured"
