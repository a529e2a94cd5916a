#!/usr/bin/env bash
# Drivers that 'auto' opened and doesn't use are counted: PoCL's libraries take
# more memory than such a run.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"
make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
run=("$PLIMSOLL" train --dataset=cats "${tiny[@]}" --max_iters=2)
PLIMSOLL_LOOK_FOR_CARDS=1 expect 0 "${run[@]}" --out_dir=looked
says 'are what drivers of cards hold that aren.t used'
says_not 'held more than was planned'
PLIMSOLL_LOOK_FOR_CARDS=1 expect 5 "${run[@]}" --out_dir=less --memory=16MB
says "looking for cards takes .*: leave it out, or allow more"
expect 0 "${run[@]}" --out_dir=cpu --device=cpu --memory=16MB
says_not 'drivers'
cmp looked/latest/model.safetensors cpu/latest/model.safetensors
