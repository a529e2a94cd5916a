#!/usr/bin/env bash
# script/demo on texts of a user's own, in a tree of its own: the script, the
# program, and a config that is trained in a moment. Short texts train too, too
# short ones are refused before anything is touched, and the last demo's model
# stays until there is a new one.
set -eu
. tests/support/cli.sh
unset PLIMSOLL_CALIBRATE
tree=$TMP_DIR/tree
mkdir -p "$tree/script" "$tree/config" "$tree/build/release" "$TMP_DIR/bin"
cp script/demo "$tree/script/"
cp config/demo.py "$tree/config/"
printf '%s\n' 'n_layer = 1' 'n_embd = 16' 'n_head = 2' 'max_iters = 3' \
    'warmup_iters = 1' 'eval_interval = 3' 'eval_iters = 2' \
    >>"$tree/config/demo.py"
# Nothing has to be installed or built.
printf '%s\n' '#!/bin/sh' "echo called >>'$TMP_DIR/calls'" |
    tee "$tree/script/setup" >"$TMP_DIR/bin/cmake"
chmod +x "$tree/script/setup" "$TMP_DIR/bin/cmake"
ln -s "$PLIMSOLL" "$tree/build/release/plimsoll"
export PATH=$TMP_DIR/bin:$PATH
demo=$tree/build/demo
cd "$TMP_DIR"

# text CHARACTERS: so many that aren't blank, with blanks between
text() {
    local i
    for ((i = 0; i < $1; i++)); do
        printf '%s' "${letters:i * 7 % 26:1}"
        [ $((i % 5)) -ne 4 ] || printf ' '
    done
}
letters=abcdefghijklmnopqrstuvwxyz

# sum_of FOLDER: of every name and byte in it
sum_of() {
    (cd "$1" && find . -type f -exec md5sum {} + | sort | md5sum)
}

# sample FOLDER: its model writes
sample() {
    (cd "$1" && expect 0 "$PLIMSOLL" sample --out_dir=out --num_samples=1 \
        --max_new_tokens=20 --start=a)
}

# the smallest text
text 199 >short.txt
text 200 >least.txt
expect 2 "$tree/script/demo" short.txt
says "199 characters that aren't blank, where 200 are needed"
if [ -e "$demo" ] || [ -e calls ]; then
    fail "it began all the same"
fi
expect 0 "$tree/script/demo" least.txt
says 'plimsoll train .* --block_size=16$'
[ "$(wc -l <calls)" = 3 ] || fail "it wasn't built"
sample "$demo"
says_not 'moved to build/demo/earlier'
[ ! -e "$demo/next" ] || fail "next is left"
expect 0 "$tree/script/demo" short.txt least.txt
says 'moved to build/demo/earlier-1'

# a refused text, and one with which training fails, leave the model as it is
before=$(sum_of "$demo/out")$(sum_of "$demo/data")
expect 2 "$tree/script/demo" short.txt
program=$tree/build/release/plimsoll
printf '%s\n' '#!/bin/sh' '[ "$1" != train ] || exit 7' \
    "exec '$PLIMSOLL' \"\$@\"" >failing
chmod +x failing
ln -sf "$TMP_DIR/failing" "$program"
expect 7 "$tree/script/demo" least.txt
says 'no model was trained; what build/demo had is as it was'
# nor does one that is few tokens, though many characters
printf '%s\n' '#!/bin/sh' "'$PLIMSOLL' \"\$@\" || exit" \
    '[ "$1" != prepare ] || truncate -s 32 data/text/val.bin' >failing
expect 1 "$tree/script/demo" least.txt
says 'has 16 tokens, where 17 are needed'
ln -sf "$PLIMSOLL" "$program"
[ "$before" = "$(sum_of "$demo/out")$(sum_of "$demo/data")" ] ||
    fail "the last model was changed"
[ ! -e "$demo/earlier-2" ] || fail "it was moved all the same"
sample "$demo"

# a new one takes its place, and the last one moves
text 1000 >longer.txt
expect 0 "$tree/script/demo" longer.txt
says 'plimsoll train .* --block_size=64$'
says 'moved to build/demo/earlier-2'
[ "$before" = "$(sum_of "$demo/earlier-2/out")$(sum_of \
    "$demo/earlier-2/data")" ] || fail "earlier-2 isn't the last model"
[ "$before" != "$(sum_of "$demo/out")$(sum_of "$demo/data")" ] ||
    fail "there is no new model"
sample "$demo"
sample "$demo/earlier-2"

# the config's own block_size, and a text that isn't UTF-8
text 2000 >long.txt
printf '\377' >>long.txt
expect 0 "$tree/script/demo" long.txt
says_not ' --block_size='
says 'tokenizer=byte'
