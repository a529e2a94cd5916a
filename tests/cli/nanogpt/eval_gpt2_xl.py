# Evaluates gpt2-xl (1558 M parameters), in the manner of nanoGPT's configs.
batch_size = 8
eval_iters = 500 # more, for a good estimate
eval_only = True
wandb_log = False
init_from = 'gpt2-xl'
