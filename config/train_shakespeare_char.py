# A character-level GPT on the works of Shakespeare: small enough to watch it
# learn, large enough to write verse. Ends at a validation loss near 1.47 and
# overfits beyond it, hence the frequent evaluations and the dropout.
#
# Needs data/shakespeare_char (see `plimsoll prepare --help`).

out_dir = 'out-shakespeare-char'
dataset = 'shakespeare_char'

eval_interval = 250             # often: the best checkpoint comes early
eval_iters = 200
log_interval = 10
always_save_checkpoint = False  # keep the best one, not the last one

# batches: 64 crops of 256 characters per update
gradient_accumulation_steps = 1
batch_size = 64
block_size = 256

# model: 10.65 M parameters
n_layer = 6
n_head = 6
n_embd = 384
dropout = 0.2

# optimizer: a small model bears a high rate; few tokens per update call for a
# longer memory of their squares
learning_rate = 1e-3
min_lr = 1e-4                   # a tenth of it, as is usual
max_iters = 5000
lr_decay_iters = 5000           # as many as max_iters
warmup_iters = 100
beta2 = 0.99
