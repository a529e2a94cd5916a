#!/usr/bin/env bash
# The model that is asked about is the one that is answered about.
set -eu
. tests/support/cli.sh
work_on_disk # what is in memory counts

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out \
    --max_iters=2 --head_dim=6 --bias=True

# eval: another model than the checkpoint's is refused
expect 0 "$PLIMSOLL" eval out
expect 0 "$PLIMSOLL" eval out --n_layer=2 --vocab_size=25 --head_dim=None
expect 3 "$PLIMSOLL" eval out --n_layer=3
says 'out/step-0*2: n_layer is 2 in the checkpoint and 3 \(command line\)'
expect 3 "$PLIMSOLL" eval out --bias=False
says 'bias is True in the checkpoint and False \(command line\)'
expect 3 "$PLIMSOLL" eval out --block_size=8
says 'block_size is 16 in the checkpoint and 8'
says 'eval_block_size'
expect 0 "$PLIMSOLL" eval out --eval_block_size=8
echo 'n_embd = 32' >a.py
expect 3 "$PLIMSOLL" eval out a.py
says 'n_embd is 16 in the checkpoint and 32 \(a\.py:1:1\)'

# plan: the checkpoint's model, as training goes on with it
expect 0 "$PLIMSOLL" plan --init_from=resume --out_dir=out
says '^model +2 layers, 2 heads of 6, 16 channels, context 16, vocabulary 25$'
says '^ +\(the model of out/step-0*2\)'
expect 0 "$PLIMSOLL" plan --init_from=resume --out_dir=out --json
resumed=$(number parameters)
expect 0 "$PLIMSOLL" plan "${tiny[@]}" --dataset=cats --head_dim=6 \
    --bias=True --json
[ "$(number parameters)" = "$resumed" ] || fail "$resumed parameters: $out"
expect 3 "$PLIMSOLL" plan --init_from=resume --out_dir=out --n_layer=3
says 'n_layer is 2 in the checkpoint and 3 \(command line\)'
expect 1 "$PLIMSOLL" plan --init_from=resume --out_dir=nowhere
says 'no checkpoint here'
expect 0 "$PLIMSOLL" config --init_from=resume --out_dir=nowhere
expect 0 "$PLIMSOLL" config --init_from=resume --out_dir=out
says '^n_layer += 2 +# out/step-0*2$'
expect 0 "$PLIMSOLL" explain --init_from=resume --out_dir=out
says '2 layers'
# and training takes it from there too, as nanoGPT does
expect 0 "$PLIMSOLL" train --init_from=resume --out_dir=out --dataset=cats \
    --max_iters=3 --batch_size=4 --gradient_accumulation_steps=2 \
    --eval_iters=3 --eval_interval=10 --threads=2
says 'Resuming training from out/step-0*2 '
says_not 'n_layer'
expect 3 "$PLIMSOLL" train --init_from=resume --out_dir=out --dataset=cats \
    --n_head=4
says 'n_head is 2 in the checkpoint and 4 \(command line\)'

# plan: a dataset that isn't there is said, or was misspelled
mkdir -p data/shakespeare_char
expect 1 "$PLIMSOLL" plan --dataset=shakespear_char
says "data/shakespear_char is not there: did you mean 'shakespeare_char'"
expect 1 "$PLIMSOLL" explain --dataset=cat
says "did you mean 'cats'"
mkdir -p data/bpe # two letters of four are another name
expect 0 "$PLIMSOLL" plan --dataset=nope
says "\(data/nope is not there: GPT-2's 50257 tokens, padded, are assumed"
echo "dataset = 'cat'" >a.py
expect 0 "$PLIMSOLL" plan a.py
says '\(data/cat is not there: GPT-2'
expect 0 "$PLIMSOLL" explain a.py
says 'data/cat is not there'
expect 0 "$PLIMSOLL" plan a.py --vocab_size=100
says_not 'is not there'
expect 0 "$PLIMSOLL" plan a.py --json
says '"vocabulary_from": "data/cat is not there'
expect 0 "$PLIMSOLL" plan --dataset=cats --json
says '"vocabulary_from": "the dataset.s tokenizer"'
