# What forks of nanoGPT write into theirs.
import os
import time
import torch
from datetime import datetime

size = os.environ.get('MODEL_SIZE', 'small')
depth = 4 if size == 'small' else 12
n_layer = depth
n_head, n_embd = depth, depth * 64
tokens_per_update = 2**15
block_size = 256
batch_size = min(32, tokens_per_update // block_size)
gradient_accumulation_steps = max(1, tokens_per_update // (batch_size * block_size))
learning_rate = 6e-4 * (128 / n_embd) ** 0.5
min_lr = learning_rate / 10
max_iters = int(1e4)
lr_decay_iters = max_iters
warmup_iters = round(max_iters * 0.02)
out_dir = f"out/{size}-{n_layer}x{n_embd}-lr{learning_rate:.1e}"
wandb_log = torch.cuda.is_available()
wandb_project = 'forks-%s' % size
wandb_run_name = '{}-{}'.format(size, datetime.now().strftime('%Y%m%d'))
wandb_entity = os.getenv('USER', 'nobody')
compile = not os.name == 'nt'
print(f"tokens per update: {tokens_per_update:,}")
assert n_embd % n_head == 0
