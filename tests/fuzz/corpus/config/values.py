"""every kind of value"""
seed = 0x_ff + 0b101 - 0o17 // 2 % 3 * -2 ** 2
n_layer = ((+3))
top_k = None
bias = True
start = 'a' "b\n\x41\u00e9\U0001F600\101\\" r'\d' '''x
y\'"'''
grad_checkpoint = [0] * 2 + [1,
    2, 3,
]
temperature = 7.5 // 2 + .5e-1_0
