# A character model in the manner of nanoGPT's config, of our own writing.
out_dir = 'out-shakespeare-char'
eval_interval = 250 # often: it overfits
eval_iters = 200
log_interval = 10
always_save_checkpoint = False

wandb_log = False # override by the command line
wandb_project = 'shakespeare-char'
wandb_run_name = 'mini-gpt'

dataset = 'shakespeare_char'
gradient_accumulation_steps = 1
batch_size = 64
block_size = 256

n_layer = 6
n_head = 6
n_embd = 384
dropout = 0.2

learning_rate = 1e-3
max_iters = 5000
lr_decay_iters = 5000 # as many as max_iters
min_lr = 1e-4 # learning_rate / 10
beta2 = 0.99 # few tokens per update

warmup_iters = 100

# on a macbook also add
# device = 'cpu'  # run on cpu only
# compile = False # do not torch compile the model
