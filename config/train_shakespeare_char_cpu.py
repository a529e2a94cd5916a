# The character-level Shakespeare model, made small for a processor: a few
# minutes to a validation loss near 1.91 and text that looks like a play.
#
# Needs data/shakespeare_char (see `plimsoll prepare --help`).

out_dir = 'out-shakespeare-char'
dataset = 'shakespeare_char'
device = 'cpu'

eval_interval = 250
eval_iters = 200                # 20 are faster, but three times as noisy
log_interval = 1
always_save_checkpoint = False

# batches: 12 crops of 64 characters per update
gradient_accumulation_steps = 1
batch_size = 12
block_size = 64

# model: 0.80 M parameters; it sees too little to overfit, so no dropout
n_layer = 4
n_head = 4
n_embd = 128
dropout = 0.0

learning_rate = 1e-3
min_lr = 1e-4
max_iters = 2000
lr_decay_iters = 2000
warmup_iters = 100
beta2 = 0.99
