#!/usr/bin/env bash
# Completions of bash, zsh and fish. bash is always there; the others are asked
# where they are installed.
set -eu
. tests/support/cli.sh
root=$PWD

"$DESCRIBE" "$TMP_DIR/share" packaging
share=$TMP_DIR/share
mkdir "$TMP_DIR/here"
cd "$TMP_DIR/here"
mkdir -p data/mine data/other models
touch small.py notes.txt models/deep.py

# The candidates for the last word of plimsoll WORD..., one on a line, sorted.
# bash cuts words at "=" before it asks.
ask_bash() {
    bash --noprofile --norc -c '
        . "$1"
        shift
        COMP_WORDS=(plimsoll)
        for word; do
            case $word in
            --*=) COMP_WORDS+=("${word%=}" =) ;;
            --*=*) COMP_WORDS+=("${word%%=*}" = "${word#*=}") ;;
            *) COMP_WORDS+=("$word") ;;
            esac
        done
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _plimsoll
        for word in "${COMPREPLY[@]}"; do
            printf "%s\n" "$word"
        done' bash "$share/bash-completion/completions/plimsoll" "$@" | sort -u
}

# The same where COMP_WORDBREAKS has no "=".
ask_whole_bash() {
    bash --noprofile --norc -c '
        . "$1"
        shift
        COMP_WORDS=(plimsoll "$@")
        COMP_CWORD=$#
        _plimsoll
        for word in "${COMPREPLY[@]}"; do
            printf "%s\n" "${word#--*=}"
        done' bash "$share/bash-completion/completions/plimsoll" "$@" | sort -u
}

# fish says whole words, and what they mean behind a tab.
ask_fish() {
    local line=plimsoll word
    for word; do
        line+=" $word"
    done
    HOME=$TMP_DIR timeout 60 fish --no-config -c "source \
        $share/fish/vendor_completions.d/plimsoll.fish
        complete -C '$line'" </dev/null | sed -e 's/\t.*//' \
        -e 's/^--[a-z_]*=\(.\)/\1/' -e 's|/$||' | sort -u
}

ask_zsh() {
    timeout 60 zsh -f "$root/tests/support/zsh_complete.zsh" \
        "$share/zsh/site-functions" plimsoll "$@" |
        sed -e 's/^--[a-z_]*=\(.\)/\1/' -e 's|/$||' | sort -u
}

# offers SHELL "CANDIDATE..." WORD...: exactly these
offers() {
    local got want
    want=$(tr ' ' '\n' <<<"$2" | sed '/^$/d' | sort -u)
    got=$("ask_$1" "${@:3}")
    [ "$got" = "$want" ] ||
        fail "$1: plimsoll ${*:3}: offered"$'\n'"$got"$'\n'"not: $2"
}

# What the program says of itself.
commands=$("$PLIMSOLL" --help |
    sed -n '/^usage/,/^A config/s/^  \([a-z]*\) .*/\1/p' | tr '\n' ' ')
keys() { # COMMAND: those that have an effect
    "$PLIMSOLL" "$1" --help | sed -e '/^Without effect/,$d' |
        sed -n 's/^  \(--[a-z0-9_]*=\).*/\1/p' | tr '\n' ' '
}

try() {
    local shell=$1 command
    offers "$shell" "train" tr
    offers "$shell" "tokenize tokenizer" tok
    for command in $commands; do
        if [ "$command" != tokenizer ]; then # it wants its own word first
            offers "$shell" "$(keys "$command") $(flags "$command") --help" \
                "$command" --
        fi
    done
    offers "$shell" "$(keys tokenizer) --help" tokenizer train --
    offers "$shell" "train" tokenizer tr
    offers "$shell" "--dtype=" plan --dty
    offers "$shell" "bfloat16" plan --dtype=b
    offers "$shell" "float16 float32" plan small.py --dtype=fl
    offers "$shell" "auto cpu opencl cuda mps" train --device=
    offers "$shell" "True False" train --bias=
    offers "$shell" "True False 0 1 2 3" train --grad_checkpoint=
    offers "$shell" "None" train --head_dim=
    offers "$shell" "" train --n_layer=
    offers "$shell" "mine other" train --dataset=
    offers "$shell" "12GB 1.5GiB auto" train --memory=
    offers "$shell" "scratch small.py" sample --init_from=s
    offers "$shell" "models" export --out=mo
    offers "$shell" "gpt2" prepare --tokenizer=gp
    offers "$shell" "small.py" train sm
    if [ "$shell" != zsh ]; then # which offers all where nothing is right
        offers "$shell" "" train note
    fi
    offers "$shell" "notes.txt" prepare note
    offers "$shell" "models/deep.py" plan models/d
    offers "$shell" "--resume" train --res
}

# COMMAND: its flags, from the usage line and the text
flags() {
    "$PLIMSOLL" "$1" --help | sed '/(defaults shown)/,$d' |
        grep -oE -e \
            '--(json|steps|resume|live|until_eof|markdown|decode|special)\b' \
            -e '--(selftest|html|svg|task|items|ranks|network)\b' |
        sort -u | tr '\n' ' '
}

try bash
offers bash "$commands help --help --version" ''
offers whole_bash "float16 float32" plan --dtype=fl
offers whole_bash "mine other" plan --dataset=
offers bash "" nonsense x
for shell in zsh fish; do
    if command -v "$shell" >/dev/null; then
        try "$shell"
        echo "$shell: tried"
    else
        echo "$shell is not here: its completion was not tried"
    fi
done
if command -v shellcheck >/dev/null; then
    shellcheck -s bash "$share/bash-completion/completions/plimsoll"
fi
