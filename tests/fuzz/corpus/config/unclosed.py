start = 'abc
