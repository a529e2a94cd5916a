# A GPT of 77 M parameters on FineWeb, as someone with a 12 GB card would set
# it up for nanoGPT, where it runs out of memory before the first update.
#
#     plimsoll plan config/train_fineweb.py
#
# shows what it takes here. train_fineweb_recommended.py has the advice that
# is usually given. Needs data/fineweb with train.bin and val.bin.

out_dir = 'out-fineweb'
dataset = 'fineweb'

batch_size = 16
gradient_accumulation_steps = 32   # 512 sequences per update
block_size = 1024

n_layer = 12
n_head = 12
n_embd = 576                       # 768 with a quarter taken off

dtype = 'float16'
eval_iters = 200
