#!/usr/bin/env bash
# Arguments: the forms they may have, and who wins.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

# the command line wins, wherever it stands
printf 'n_layer = 3\nn_head = 2\nn_embd = 32\n' >a.py
printf 'n_layer = 4\n' >b.py
expect 0 "$PLIMSOLL" config --n_layer=7 a.py
says '^n_layer += 7 +# command line$'
says '^n_head += 2 +# a\.py:2:1$'
expect 0 "$PLIMSOLL" config --n_layer=7 a.py --n_head=4 b.py --n_layer=8
says '^n_layer += 8 +# command line$'
says '^n_head += 4 +# command line$'
expect 0 "$PLIMSOLL" config a.py b.py
says '^n_layer += 4 +# b\.py:1:1$'

# --key value is --key=value
expect 0 "$PLIMSOLL" config a.py --n_layer 5 --out_dir x-1 --bias True \
    --compile False --start '- a'
says '^n_layer += 5 +# command line$'
says "^out_dir += 'x-1' +# command line\$"
says '^bias += True +# command line$'
says '^compile += False +# command line'
says "^start += '- a' +# command line\$"
expect 3 "$PLIMSOLL" config --n_layer -1
says 'n_layer is a whole number from 1 to 1000, found -1'
expect 2 "$PLIMSOLL" config --n_layer
says "'--n_layer' has no value: write --n_layer=VALUE, .* a whole number from 1"
expect 2 "$PLIMSOLL" config --n_layer --n_head=3
says "'--n_layer' has no value: .*'--n_head=3' is a setting of its own"
expect 2 "$PLIMSOLL" config --start --x
says "'--start' has no value: .*'--x' .*--start=--x"
expect 2 "$PLIMSOLL" config --eval_only
says "'--eval_only' has no value: write --eval_only=True"
expect 2 "$PLIMSOLL" config --compile
says "'--compile' has no value: write --compile=True"
# a config file is not swallowed
expect 2 "$PLIMSOLL" config --compile a.py
says "'--compile' has no value: .*'a\.py' is a config file"
expect 2 "$PLIMSOLL" config --out_dir a.py
says "as a value it is written --out_dir=a\.py"
expect 2 "$PLIMSOLL" plan --num_samples 3
says "'--num_samples' is a key of sample"
expect 2 "$PLIMSOLL" plan --n_leyer 3
says "did you mean 'n_layer'"

# any name of Weights & Biases', as in a file
expect 0 "$PLIMSOLL" plan --n_layer=1 --wandb_entity=me
says 'note: without effect here: wandb_entity'
echo "wandb_tags = ['a']" >w.py
expect 0 "$PLIMSOLL" plan --n_layer=1 w.py
says 'note: without effect here: wandb_tags'
expect 2 "$PLIMSOLL" prepare --out=x --wandb_entity=me cats.txt

# a command's own flags
expect 2 "$PLIMSOLL" plan --json=True
says '\-\-json takes no value'
expect 2 "$PLIMSOLL" plan --jsn
says "did you mean '--json'"
expect 2 "$PLIMSOLL" plan --stepss=3
says "did you mean '--steps'"

# -- ends the settings: what follows is a name
expect 0 "$PLIMSOLL" config --n_head=4 -- a.py
says '^n_layer += 3 +# a\.py:1:1$'
printf 'n_layer = 6\n' >-dash.py
expect 0 "$PLIMSOLL" config -- -dash.py
says '^n_layer += 6 +# -dash\.py:1:1$'
expect 2 "$PLIMSOLL" config -- --n_head=4
says '^.*--n_head=4: not understood here'
expect 2 "$PLIMSOLL" config --n_head --
says "'--n_head' has no value"

# --resume=OUT_DIR is --resume OUT_DIR
make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out data/cats cats.txt
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out \
    --max_iters=2
expect 0 "$PLIMSOLL" train --resume=out --max_iters=3
says 'Resuming training from out/step-0*2 '
expect 0 "$PLIMSOLL" train --max_iters=4 --resume out
says 'Resuming training from out/step-0*3 '
expect 2 "$PLIMSOLL" train --resume=
says '\-\-resume= names no folder'
expect 2 "$PLIMSOLL" train --resume=out out
says 'takes one folder'
