n_layer += 2
