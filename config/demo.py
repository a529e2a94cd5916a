# The demo: a small GPT for about two minutes on a CPU. script/demo trains a
# tokenizer, prepares the text and runs this; by hand, after
#   plimsoll tokenizer train --vocab_size=1024 --out=data/bpe mine.txt
#   plimsoll prepare --out=data/mine --tokenizer=data/bpe mine.txt
# it is
#   plimsoll train config/demo.py --dataset=mine --out_dir=out-mine

out_dir = 'out-demo'
dataset = 'austen'

n_layer = 4
n_head = 4
n_embd = 128
block_size = 128
dropout = 0.0

batch_size = 16
gradient_accumulation_steps = 1
max_iters = 1200

learning_rate = 1e-3
warmup_iters = 100
lr_decay_iters = 1200
min_lr = 1e-4
beta2 = 0.99 # few tokens per step: a longer memory

eval_interval = 200
eval_iters = 20
log_interval = 50
