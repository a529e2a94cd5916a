# cli.sh: what the tests of the command line share. Sourced by tests/cli/*.sh,
# with $PLIMSOLL the program and $TMP_DIR a folder of the test's own.

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# expect CODE COMMAND...: runs it, keeps both outputs in $out, checks the code
expect() {
    local code=$1 got=0
    shift
    out=$("$@" 2>&1) || got=$?
    [ "$got" -eq "$code" ] ||
        fail "exit code $got, expected $code, from: $*"$'\n'"$out"
}

# says PATTERN: $out has a line that matches (extended regular expression)
says() {
    grep -Eq -- "$1" <<<"$out" || fail "no line matches: $1"$'\n'"$out"
}

says_not() {
    ! grep -Eq -- "$1" <<<"$out" || fail "a line matches: $1"$'\n'"$out"
}

# number KEY: of the JSON in $out
number() {
    sed -n "s/^ *\"$1\": \([0-9.]*\),*\$/\1/p" <<<"$out" | head -n 1
}

# A text with something to learn, and a model that is trained in a moment.
make_text() {
    local i
    for ((i = 0; i < 400; i++)); do
        echo "the cat number $((i * 7 % 100)) sat on mat $((i % 10))."
    done
}
tiny=(--n_layer=2 --n_head=2 --n_embd=16 --block_size=16 --batch_size=4
    --gradient_accumulation_steps=2 --eval_iters=3 --eval_interval=10
    --max_iters=20 --warmup_iters=2 --lr_decay_iters=20 --learning_rate=1e-2
    --threads=2)
