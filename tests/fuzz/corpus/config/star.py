from config.base import *
n_head = depth
from .other import *
exec(open('x' + '.py').read())
from torch import nn
