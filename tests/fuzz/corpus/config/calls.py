import os, math as m
from os import environ as e, getenv
n_layer = int(os.environ.get('A', '6')) + int(e['A']) + int(getenv('Z') or 1)
n_head = max(min(12, 4), abs(-3), round(2.5), len('hé'), sum([1, 2]))
n_embd = int(m.sqrt(16)) * int(' 007 ') * m.ceil(2.1)
seed = int(float('1e3')) if bool('x'.startswith('x')) else len([time.time()])
wandb_run_name = os.environ['B']
