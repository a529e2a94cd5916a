# train_fineweb.py with all that is usually recommended against running out of
# memory, at once. What each line really does:
#
#     plimsoll plan config/train_fineweb_recommended.py

out_dir = 'out-fineweb'
dataset = 'fineweb'

batch_size = 16
gradient_accumulation_steps = 32   # costs time, not memory
block_size = 1024

# 512 channels do not divide into 12 heads: nanoGPT stops here, this makes the
# heads 42 wide and says so. n_head = 8 would divide.
n_layer = 12
n_head = 12
n_embd = 512

dtype = 'float16'

eval_batch_size = 4                # memory of the evaluation is linear in it
eval_iters = 100                   # time and noise, not a byte
eval_interval = 500

grad_checkpoint = True             # keeps the input of each layer only
