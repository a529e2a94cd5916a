# a small model
out_dir = 'out-chars'
eval_interval = 250 # often
always_save_checkpoint = False
wandb_log = False
gradient_accumulation_steps = 5 * 8
batch_size = 64
block_size = 256
dropout = 0.2
learning_rate = 1e-3
max_iters = 5_000
lr_decay_iters = max_iters
min_lr = learning_rate / 10
beta2 = 0.99
