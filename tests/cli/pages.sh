#!/usr/bin/env bash
# Pages and pictures of plans: well-formed, self-contained, harmless whatever
# the names in them are, and never written over what somebody else made.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

# well FILE...: well-formed XML, where there is a tool that says so
well() {
    if command -v xmllint >/dev/null; then
        xmllint --noout "$@" || fail "not well-formed: $*"
    fi
}
# alone FILE: no script, nothing that is fetched
alone() {
    local never='<script|<link|<img|<iframe|@import|url\(|src=|href="[^#]'
    ! grep -Eiq "$never" "$1" ||
        fail "$1 asks for something: $(grep -Ei '<script|src=|href=' "$1")"
    ! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" "$1" ||
        fail "$1 has control characters"
}

small=(--n_layer=2 --n_head=2 --n_embd=64 --block_size=64 --batch_size=4
    --memory=500MB --vocab_size=256)

for command in plan explain; do
    expect 0 "$PLIMSOLL" "$command" "${small[@]}" --html=a.html --svg=a.svg
    says 'written to a.html'
    well a.html a.svg
    alone a.html
    alone a.svg
    expect 0 "$PLIMSOLL" "$command" "${small[@]}" --html
    cmp a.html - <<<"$out" || fail "standard output has another page"
    "$PLIMSOLL" "$command" "${small[@]}" --svg >b.svg
    cmp a.svg b.svg
    # its own file is replaced
    expect 0 "$PLIMSOLL" "$command" "${small[@]}" --n_layer=3 --html=a.html \
        --svg=a.svg
    ! cmp -s a.svg b.svg || fail "a.svg was not written again"
    # another's isn't
    echo 'mine: Plimsoll' >notes.md
    expect 1 "$PLIMSOLL" "$command" "${small[@]}" --html=notes.md
    says "notes.md is there, and Plimsoll didn't write it"
    [ "$(cat notes.md)" = 'mine: Plimsoll' ] || fail "notes.md was replaced"
    expect 1 "$PLIMSOLL" "$command" "${small[@]}" --svg=.
    says 'is a folder'
    expect 2 "$PLIMSOLL" "$command" "${small[@]}" --svg=
    says 'has no value'
    rm a.html a.svg
done

# What doesn't fit is drawn, and is an error as ever.
expect 5 "$PLIMSOLL" plan "${small[@]}" --memory=9MB --svg=small.svg
grep -q 'class="over"' small.svg || fail "nothing is over the line"

# Hostile names in configs.
evil=$(printf '<script>alert(1)</script>"&\033[31m\302\233../../x')
printf "dataset = '''%s'''\nout_dir = '''%s'''\n" "$evil" "$evil" >"evil<b>.py"
expect 0 "$PLIMSOLL" plan "evil<b>.py" "${small[@]}" --html=evil.html \
    --svg=evil.svg
well evil.html evil.svg
alone evil.html
grep -q '&lt;script&gt;alert(1)&lt;/script&gt;' evil.html ||
    fail "the name is not shown"
grep -q 'evil&lt;b&gt;.py:1:1' evil.html || fail "the origin is not shown"
