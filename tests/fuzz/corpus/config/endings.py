n_layer = 3
n_head = 5n_embd = 7
# café
