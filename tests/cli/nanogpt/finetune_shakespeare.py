# Finetuning in the manner of nanoGPT's config, of our own writing.
import time

out_dir = 'out-shakespeare'
eval_interval = 5
eval_iters = 40
wandb_log = False # feel free to turn on
wandb_project = 'shakespeare'
wandb_run_name = 'ft-' + str(time.time())

dataset = 'shakespeare'
init_from = 'gpt2-xl' # the largest

# only save when the validation loss improves
always_save_checkpoint = False

# 1 sequence * 32 micro-steps * 1024 tokens = 32,768 per update
batch_size = 1
gradient_accumulation_steps = 32
max_iters = 20

# a constant rate
learning_rate = 3e-5
decay_lr = False
