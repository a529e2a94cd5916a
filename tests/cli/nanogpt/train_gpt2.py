# A config in the manner of nanoGPT's for GPT-2, of our own writing.
# launched with: torchrun --standalone --nproc_per_node=8 train.py ...
wandb_log = True
wandb_project = 'owt'
wandb_run_name='gpt2-124M'

# 12 sequences * 1024 tokens * 5 micro-steps * 8 cards = 491,520
batch_size = 12
block_size = 1024
gradient_accumulation_steps = 5 * 8

max_iters = 600000
lr_decay_iters = 600000

eval_interval = 1000
eval_iters = 200
log_interval = 10

weight_decay = 1e-1
