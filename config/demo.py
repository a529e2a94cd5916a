# The demo: a small Qwen3 for about two minutes on a CPU. script/demo trains a
# tokenizer, prepares the text and runs this; by hand, after
#   plimsoll tokenizer train --vocab_size=1024 --out=data/bpe mine.txt
#   plimsoll prepare --out=data/mine --tokenizer=data/bpe mine.txt
# it is
#   plimsoll train config/demo.py --dataset=mine --out_dir=out-mine
# docs/recipe.md says what this shape and Muon bring.

out_dir = 'out-demo'
dataset = 'austen'

architecture = 'qwen3'
n_layer = 4
n_head = 4
n_embd = 128
block_size = 128
dropout = 0.0

batch_size = 16
gradient_accumulation_steps = 1
max_iters = 800

optimizer = 'muon'
muon_learning_rate = 0.01 # of the matrices in the blocks
learning_rate = 1e-2 # AdamW's, of all else
schedule = 'wsd'
warmup_iters = 40
lr_decay_iters = 800
min_lr = 5e-4

eval_interval = 200
eval_iters = 20
log_interval = 50
