#!/usr/bin/env bash
# Bad input: a clear word, the right exit code, nothing lost.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
expect 1 "$PLIMSOLL" train --dataset=cats "${tiny[@]}"
says 'plimsoll prepare'
expect 2 "$PLIMSOLL" prepare cats.txt
says 'out='
expect 1 "$PLIMSOLL" prepare --out=data/cats missing.txt
says 'missing\.txt'
printf 'caf\351\n' >latin1.txt
expect 4 "$PLIMSOLL" prepare --out=data/cats latin1.txt
says 'latin1\.txt.*(byte|offset) 3'
says '\-\-tokenizer=byte'
[ ! -e data/cats/train.bin ] || fail "a failed prepare left train.bin"

expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out \
    --max_iters=2
expect 4 "$PLIMSOLL" sample out --start="THE CAT"
says "U\+0054"
expect 1 "$PLIMSOLL" sample out --start=FILE:nowhere.txt
says 'nowhere\.txt'
expect 2 "$PLIMSOLL" sample out --start=
expect 1 "$PLIMSOLL" sample elsewhere
says 'no checkpoint here'
expect 6 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --dtype=float16
says 'float16'
expect 6 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --init_from=gpt2
expect 3 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out \
    --init_from=resume --n_embd=32
says 'n_embd is 16 in the checkpoint and 32'
expect 3 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --block_size=100000
says '(train|val)\.bin'

# a token that the vocabulary does not have
cp -r data/cats data/bad
printf '\377\377' | dd of=data/bad/val.bin bs=2 seek=5 conv=notrunc 2>/dev/null
expect 4 "$PLIMSOLL" train --dataset=bad "${tiny[@]}" --out_dir=bad \
    --eval_iters=200 --block_size=8
says 'val\.bin.*65535'

# a run that can't save says so, and what was there stays
if [ "$(id -u)" -ne 0 ]; then
    chmod a-w out
    expect 1 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out \
        --init_from=resume --max_iters=4
    chmod u+w out
fi
: >file
expect 1 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=file
says 'file'
