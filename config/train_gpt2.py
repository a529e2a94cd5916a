# GPT-2 with 124 M parameters on OpenWebText, ending at a validation loss near
# 2.85. On one processor this is a config to plan with, not to wait for:
#
#     plimsoll plan config/train_gpt2.py
#
# Needs data/openwebtext with train.bin and val.bin.

dataset = 'openwebtext'

# 12 sequences x 1024 tokens x 40 micro-steps = 491,520 tokens per update
batch_size = 12
block_size = 1024
gradient_accumulation_steps = 5 * 8

# 600 thousand updates see 300 billion tokens
max_iters = 600000
lr_decay_iters = 600000

eval_interval = 1000
eval_iters = 200
log_interval = 10

weight_decay = 1e-1
