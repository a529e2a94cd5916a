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

# exact BEFORE: the number of "1,234 bytes" in $out, behind BEFORE
exact() {
    sed -n "s/.*$1\([0-9,]*\) bytes.*/\1/p" <<<"$out" | tr -d ,
}

# grouped NUMBER: as "1,234 bytes" has it
grouped() {
    sed -e ':more' -e 's/^\([0-9]*\)\([0-9]\{3\}\)/\1,\2/;t more' \
        -e 's/^,//' <<<"$1"
}

# folder_on disk|memory: a fresh folder on that medium, which the test removes;
# an error if there is none among the places where one may write
folder_on() {
    local parent medium
    for parent in "$TMP_DIR" "$(dirname "$PLIMSOLL")" /var/tmp /dev/shm; do
        [ -w "$parent" ] || continue
        case $(stat -f -c %T "$parent") in
        tmpfs | ramfs | hugetlbfs) medium=memory ;;
        *) medium=disk ;;
        esac
        if [ "$medium" = "$1" ]; then
            mktemp -d "$parent/plimsoll.XXXXXX"
            return
        fi
    done
    return 1
}

# work_on_disk: from now on in a fresh folder on a disk, which is removed at the
# end with what is in $also. Where files are in memory they count as memory, and
# without a disk there is nothing to see.
work_on_disk() {
    local disk
    if ! disk=$(folder_on disk); then
        echo "not checked: there is no disk to write to"
        exit 0
    fi
    also=()
    # shellcheck disable=SC2064 # this folder
    trap "rm -rf '$disk' \${also[@]+\"\${also[@]}\"}" EXIT
    cd "$disk"
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
