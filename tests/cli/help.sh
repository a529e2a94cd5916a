#!/usr/bin/env bash
# What a newcomer reads: help that fits a terminal, commands that are named
# when they are nearly right, hints that can be pasted.
set -eu
. tests/support/cli.sh
root=$PWD
cd "$TMP_DIR"

expect 0 "$PLIMSOLL" --help
general=$out
expect 0 "$PLIMSOLL" -h
[ "$out" = "$general" ] || fail "-h is another help"
expect 0 "$PLIMSOLL" help
[ "$out" = "$general" ] || fail "help is another help"
# a script whose command is empty has to notice
expect 2 "$PLIMSOLL"
[ "${out%$'\n'*}" = "$general" ] || fail "without a command: another help"
says 'error: which command\?'
expect 0 "$PLIMSOLL" --version
version=$out
expect 0 "$PLIMSOLL" -V
[ "$out" = "$version" ] || fail "-V: $out"

narrow() {
    local wide
    wide=$(awk 'length($0) > 80' <<<"$out")
    [ -z "$wide" ] || fail "$1: more than 80 columns"$'\n'"$wide"
}
out=$general
narrow --help
commands=$(sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' <<<"$general" |
    grep -v '^plimsoll$')
[ "$(wc -l <<<"$commands")" -ge 13 ] || fail "commands: $commands"
for command in $commands; do
    expect 0 "$PLIMSOLL" "$command" --help
    says "^usage: plimsoll $command "
    narrow "$command"
    text=$out
    expect 0 "$PLIMSOLL" help "$command"
    [ "$out" = "$text" ] || fail "help $command is another help"
done

# nearly right
try() { # TYPED MEANT
    expect 2 "$PLIMSOLL" "$1"
    says "there is no command '$1': did you mean 'plimsoll $2'"
}
try trian train
try smaple sample
try Plan plan
try tokeniser tokenizer
try inspct inspect
try exprot export
expect 2 "$PLIMSOLL" help evla
says "did you mean 'plimsoll eval'"
expect 2 "$PLIMSOLL" frobnicate
says_not 'did you mean'
expect 2 "$PLIMSOLL" x
says_not 'did you mean'

# every file that help and errors name is there, as far as it is ours
for file in $(for command in $commands; do
    "$PLIMSOLL" "$command" --help
done | grep -Eo '(config|docs|tools|script)/[A-Za-z0-9_]+(\.[a-z]+)?' |
    sort -u); do
    [ -e "$root/$file" ] || fail "help names $file, which isn't there"
done

# escape sequences on a terminal only, colours not with NO_COLOR
on_terminal() {
    out=$(env "$@" script -qec "'$PLIMSOLL' plan --n_layer=1" /dev/null)
}
if command -v script >/dev/null; then
    on_terminal NO_COLOR= TERM=xterm
    grep -q $'\033\\[1m' <<<"$out" || fail "no colours on a terminal"
    on_terminal NO_COLOR=1 TERM=xterm
    ! grep -q $'\033\\[[0-9]*m' <<<"$out" || fail "colours with NO_COLOR"
    on_terminal NO_COLOR= TERM=dumb
    ! grep -q $'\033' <<<"$out" || fail "escape sequences on a dumb terminal"
fi

# ---- hints ----

# paste BEGINNING: does what the hint says that begins so, as a shell reads it
paste() {
    local hint
    hint=$(grep -Eo -- "plimsoll $1.*" <<<"$out" | tail -n 1)
    [ -n "$hint" ] || fail "no hint: plimsoll $1"$'\n'"$out"
    expect 0 bash -c "${hint/#plimsoll/\"$PLIMSOLL\"}"
}

make_text | tee cats.txt >TEXT.txt
odd="it's a \$mall run"
small=("${tiny[@]}" --max_iters=2 --eval_iters=1)
printf 'dataset = "cats"\nmax_iters = 1\neval_iters = 1\nn_layer = 1\n%s\n' \
    'n_embd = 8; n_head = 1; block_size = 8; batch_size = 1' |
    tr ';' '\n' | sed 's/^ *//' >CONFIG.py
echo 'gradient_accumulation_steps = 1' >>CONFIG.py

# data that isn't there
expect 1 "$PLIMSOLL" train "${small[@]}" --dataset="$odd"
paste 'prepare --out='
expect 0 "$PLIMSOLL" train "${small[@]}" --dataset="$odd" --out_dir="$odd"
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
expect 1 "$PLIMSOLL" train "${small[@]}" --dataset=data/cats
says 'without data/: --dataset=cats$'

# a run that another one moves aside
expect 0 "$PLIMSOLL" train "${small[@]}" --dataset="$odd" --out_dir="$odd" \
    --seed=7
paste 'train --resume '

# a checkpoint that isn't there
for command in eval sample; do
    expect 1 "$PLIMSOLL" $command "a b"
    says 'there is no such folder'
    paste "train CONFIG.py --out_dir='a b'"
    rm -r 'a b'
done

# models
expect 0 "$PLIMSOLL" export "$odd" --out="my model.gguf"
says "^run it: llama-completion -m 'my model.gguf' "
expect 1 "$PLIMSOLL" sample "my model.gguf" --start=t
hint="import 'my model.gguf' --out=FOLDER"
says "plimsoll $hint"
paste "import 'my model.gguf' --out=FOLDER"
expect 1 "$PLIMSOLL" import "$odd" --out=x
says "train begins from it with --init_from='it'"
mkdir 'a folder'
expect 1 "$PLIMSOLL" export "$odd" --format=gguf --out='a folder'
says "^plimsoll: error: .*: --out='a folder/model.gguf'\$"
