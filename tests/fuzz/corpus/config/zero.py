n_layer = 1 // 0 # x
