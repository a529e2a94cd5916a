tag = f'd{n_layer}-{learning_rate:.0e}{{}}' rf'\d{dataset!r}' f"{n_head=}"
out_dir = 'out-%s-%05.2f-%-4d|%+d%%' % (dataset, 3.14159, 7, 8)
start = '{}{1:*^9}{a:,}{0!r}'.format('x', 'y', a=1234567) + tag.lower()
wandb_run_name = str(round(2.675, 2)) + repr([1, 0.1, 1e16, None, True, (1,)])
