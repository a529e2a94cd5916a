depth, width = 6, 64
n_layer = n_head = depth
n_embd: int = depth * width
n_embd += 1 << 3 | 2 & ~1 ^ 5
betas = (0.9, 0.95)
beta1, beta2 = betas
beta2 = betas[-1] if beta1 < beta2 <= 1 and not betas is None else 1/0
tags = ['a', "b"] * 2 + [str(depth)]
wandb_tags = tags; wandb_entity = tags[0] in 'abc'
print(depth, width)
assert n_embd % n_head >= 0, 'no'
