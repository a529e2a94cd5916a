#!/usr/bin/env bash
# What strangers put into names never reaches the terminal as an escape
# sequence; what people write does, in any language.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

esc=$(printf '\033')
csi=$(printf '\302\233') # U+009B, which some terminals take for ESC [
bell=$(printf '\007')

# clean: no control character but line ends and tabs is in $out
clean() {
    local rest
    rest=$(tr -d '\n\t' <<<"$out" | tr -d -c '\000-\037\177' | od -An -tx1)
    [ -z "$rest" ] || fail "control characters:$rest in: $(cat -v <<<"$out")"
    case $out in *"$csi"*) fail "U+009B in $(cat -v <<<"$out")" ;; esac
}

# le BYTES NUMBER: a little-endian number
le() {
    local i n=$2
    for ((i = 0; i < $1; i++)); do
        # shellcheck disable=SC2059
        printf "\\$(printf %03o $((n & 255)))"
        n=$((n >> 8))
    done
}

# ---- a safetensors header ----

header='{"\u001b[31mred\u0007":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
header+=',"a\u009b2Jb\nplimsoll: fine":{"dtype":"F32","shape":[1],'
header+='"data_offsets":[4,8]},'
header+='"größe":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}'
{
    le 8 "$(printf %s "$header" | wc -c)"
    printf %s "$header"
    printf '\0\0\0\0\0\0\0\0\0\0\0\0'
} >t.safetensors
expect 0 "$PLIMSOLL" inspect t.safetensors
clean
says '^  \\x1b\[31mred\\x07 '
says '^  a\\u009b2Jb\\nplimsoll: fine '
says '^  größe '
says_not '^plimsoll: fine'

# in an error: an offset that is wrong
header='{"\u001b]0;owned\u0007":{"dtype":"F32","shape":[9],'
header+='"data_offsets":[0,4]}}'
{
    le 8 "${#header}"
    printf '%s\0\0\0\0' "$header"
} >bad.safetensors
expect 4 "$PLIMSOLL" inspect bad.safetensors
clean
says '\\x1b\]0;owned\\x07'

# ---- a GGUF ----

key="$esc[2J$bell"
{
    printf GGUF
    le 4 3
    le 8 0
    le 8 1
    le 8 "${#key}"
    printf %s "$key"
    le 4 99 # no such type
    le 8 0
} >bad.gguf
expect 4 "$PLIMSOLL" import bad.gguf --out=nowhere
clean
says '\\x1b\[2J\\x07'

# ---- names of files ----

expect 1 "$PLIMSOLL" inspect "no${esc}[1;31msuch.safetensors"
clean
says 'no\\x1b\[1;31msuch\.safetensors'
cp t.safetensors "e${csi}x${esc}.safetensors"
expect 0 "$PLIMSOLL" inspect "e${csi}x${esc}.safetensors"
clean
says '^e\\u009bx\\x1b\.safetensors: safetensors'
cp t.safetensors 'größe 猫.safetensors'
expect 0 "$PLIMSOLL" inspect 'größe 猫.safetensors'
says '^größe 猫\.safetensors: safetensors'
# a byte that is no UTF-8 can begin a sequence too
cp t.safetensors "l$(printf '\233')1.safetensors"
expect 0 "$PLIMSOLL" inspect "l$(printf '\233')1.safetensors"
says '^l\\x9b1\.safetensors: safetensors'

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out="data/c${esc}c" cats.txt
clean
says '^written to data/c\\x1bc: '
expect 0 "$PLIMSOLL" train --dataset="c${esc}c" "${tiny[@]}" \
    --out_dir="o${esc}[31m" --max_iters=2
clean
says 'saving checkpoint to o\\x1b\[31m/'
expect 0 "$PLIMSOLL" export "o${esc}[31m" --out="m${esc}.gguf"
clean
expect 0 "$PLIMSOLL" inspect "o${esc}[31m"
clean
expect 0 "$PLIMSOLL" import "m${esc}.gguf" --out="i${esc}"
clean

# ---- a config ----

printf 'n_layer = 3 %s[31m\n' "$esc" >"c${esc}.py"
expect 3 "$PLIMSOLL" config "c${esc}.py"
clean
printf 'n_layer = 3\ncompile = "%s[31m"\n' "$esc" >"c${esc}.py"
expect 0 "$PLIMSOLL" config "c${esc}.py"
clean
says 'n_layer += 3 .*# c\\x1b\.py:1:1'

# ---- a text ----

printf 'one%s[31m%s two\n' "$esc" "$csi" >t.txt
expect 0 "$PLIMSOLL" inspect t.txt
clean
says 'begins: one\\x1b\[31m\\u009b two\\n'
