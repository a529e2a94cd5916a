#!/usr/bin/env bash
# Manual pages: every command and every key is in them, as the program itself
# names them, and man, groff and mandoc have nothing to complain about.
set -eu
. tests/support/cli.sh

"$DESCRIBE" "$TMP_DIR/share" packaging
man=$TMP_DIR/share/man

# page FILE: as it was typed, without roff's spellings
page() {
    zcat "$man/$1.gz" | sed -e 's/\\f[BIR]//g' -e 's/\\-/-/g' \
        -e "s/\\\\(aq/'/g" -e 's/\\(dq/"/g' -e 's/\\&//g' -e 's/\\e/\\/g' \
        -e 's/\\(ga/`/g' -e 's/\\(ha/^/g' -e 's/\\(ti/~/g'
}

# has FILE LINE: exactly such a line is in it
has() {
    page "$1" | grep -Fxq -e "$2" || fail "$1 has no line: $2"
}

mapfile -t commands < <("$PLIMSOLL" --help |
    sed -n '/^usage/,/^A config/s/^  \([a-z]*\) .*/\1/p')
[ ${#commands[@]} -ge 13 ] || fail "commands: ${commands[*]}"
for command in "${commands[@]}"; do
    name=man1/plimsoll-$command.1
    expect 0 "$PLIMSOLL" "$command" --help
    has man1/plimsoll.1 ".BR plimsoll-$command (1)"
    has "$name" ".TH PLIMSOLL-${command^^} 1 \"\" $(page man1/plimsoll.1 |
        sed -n 's/^.TH PLIMSOLL 1 "" //p')"
    has "$name" ".B plimsoll $command"
    # The keys with their defaults, in the same order, and what each is for.
    sed -n 's/^  \(--[a-z0-9_]*=.*\)/\1/p' <<<"$out" >"$TMP_DIR/keys"
    [ -s "$TMP_DIR/keys" ] || [ "$command" = devices ] ||
        fail "$command --help lists no keys"
    page "$name" | sed -n '/^\.TP/{n;/^--[a-z]/p}' | diff "$TMP_DIR/keys" - ||
        fail "$name: other keys than --help"
    while IFS= read -r line; do
        has "$name" "$line"
    done < <(awk '/^      / && key { sub(/^ +/, ""); text = text " " $0; next }
        text { print substr(text, 2); text = "" }
        { key = /^  --[a-z0-9_]*=/ }
        END { if (text) print substr(text, 2) }' <<<"$out" | tr -d '`')
    # Of the text, each line, prose and example.
    while IFS= read -r line; do
        has "$name" "$line"
    done < <(sed -e '1,/^$/d' -e '/(defaults shown)/,$d' <<<"$out" |
        sed -e 's/^  //' -e '/^$/d' | tr -d '`')
done
for name in "$man"/man1/plimsoll-*; do
    name=${name##*/plimsoll-}
    name=${name%.1.gz}
    [[ " ${commands[*]} vocab " == *" $name "* ]] || fail "a page for $name"
done

# plimsoll(5) has what docs/config.md has.
while IFS= read -r key; do
    has man5/plimsoll.5 "$key"
done < <(sed -n 's/^| `\([^`]*\)` | `\([^`]*\)` .*/\1 = \2/p' docs/config.md)
[ "$(page man5/plimsoll.5 | grep -c '^\.TP')" -eq \
    "$(grep -c '^| `' docs/config.md)" ] || fail "plimsoll.5: other keys"
while IFS= read -r title; do
    has man5/plimsoll.5 "$title"
done < <(sed -n -e 's/^### /.SS /p' -e 's/^## \(.*\)/.SH \U\1/p' docs/config.md)
has man5/plimsoll.5 "eval_batch_size = None"
page man5/plimsoll.5 | grep -Eq '^(#|\||```|<!--)' &&
    fail "plimsoll.5 has Markdown in it"

# What reads manual pages has no complaint.
for file in "$man"/man?/*.gz; do
    plain=$TMP_DIR/$(basename "$file" .gz)
    zcat "$file" >"$plain"
    if command -v groff >/dev/null; then
        expect 0 groff -man -Tutf8 -ww -z "$plain"
        [ -z "$out" ] || fail "groff: $out"
        groff -man -Tutf8 -P-cbou "$plain" >"$plain.txt"
        grep -q '^NAME' "$plain.txt" || fail "$plain: no page came out"
    fi
    if command -v mandoc >/dev/null; then # it asks for a date, too
        out=$(mandoc -T lint -W warning "$plain" 2>&1 |
            grep -v 'missing date') || true
        [ -z "$out" ] || fail "mandoc: $out"
    fi
done
command -v groff >/dev/null || echo "no groff here: pages were not set"
command -v mandoc >/dev/null || echo "no mandoc here: pages were not linted"
