import time
now = time.time() + [i for i in 3][0]
wandb_run_name = now if now else torch.x(1)[2].y
out_dir = str(now)
