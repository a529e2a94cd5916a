#!/usr/bin/env bash
# Nothing is written through a symbolic link: what it points to is somebody
# else's.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out
events=events.out.tfevents.plimsoll

# untouched FILE: it is what it was
untouched() {
    [ "$(cat "$1")" = precious ] || fail "$1 was written to: $(head -c 99 "$1")"
}

# ---- a run's own files ----

# a link to anything, and one to the file itself, moved elsewhere
for name in metrics.jsonl $events; do
    for from in resume scratch; do
        rm -rf run
        cp -a out run
        echo precious >precious.txt
        ln -sf ../precious.txt "run/$name"
        if [ "$from" = scratch ]; then
            # no checkpoints: nothing is moved out of the way
            rm -rf run/step-* run/latest run/best
            expect 1 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" \
                --out_dir=run
            says "run/$name.*symbolic link"
        else
            expect 1 "$PLIMSOLL" train --resume run --max_iters=22
        fi
        says_not '^iter'
        untouched precious.txt
    done
    rm -rf run
    cp -a out run
    mv "run/$name" moved
    cp moved moved.was
    ln -s ../moved "run/$name"
    expect 1 "$PLIMSOLL" train --resume run --max_iters=22
    says "run/$name.*symbolic link"
    cmp moved moved.was
done

rm -rf run
cp -a out run
ln -sf ../precious.txt run/.rehearsal
expect 1 "$PLIMSOLL" train --resume run --max_iters=22
says 'run/\.rehearsal.*symbolic link'
untouched precious.txt

# ---- outputs that the user names: a rename takes the link's place ----

ln -s precious.txt model.gguf
expect 0 "$PLIMSOLL" export out --out=model.gguf
untouched precious.txt
[ ! -L model.gguf ] || fail "the link is there still"
ln -s precious.txt two.gguf.tmp
expect 1 "$PLIMSOLL" export out --out=two.gguf
says 'two\.gguf\.tmp.*symbolic link'
untouched precious.txt
[ ! -e two.gguf ] || fail "written through a link"

cp -a data/cats data/linked
ln -sf "$TMP_DIR/precious.txt" data/linked/train.bin
ln -sf "$TMP_DIR/precious.txt" data/linked/meta.json
expect 0 "$PLIMSOLL" prepare --out=data/linked cats.txt
untouched precious.txt
cmp data/linked/train.bin data/cats/train.bin

# ---- an out_dir that is one ----

mkdir elsewhere
ln -s elsewhere there
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=there \
    --max_iters=2
[ -f elsewhere/latest/manifest.json ] || fail "a folder may be a link"
