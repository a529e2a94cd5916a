compile = not f(x)[1:2] if y else {'a': lambda: (1,)}
backend = f'{x!r}' b"\xff"
wandb_project = 'x' \
  + wandb_run_name
from a import (b,
  c)
