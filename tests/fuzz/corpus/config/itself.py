n_layer = 3
from self import *
