import time
out_dir = 'out-' + dataset
wandb_run_name = 'ft-' + str(time.time())
init_from = 'gpt2-xl'; batch_size = 1
decay_lr = False
