#!/usr/bin/env bash
# Config files that name others: read, never run, and origins that are true.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

mkdir -p config elsewhere/config
cat >config/base.py <<'PY'
import os
n_layer = 4
n_head = 4
depth = 64
n_embd = n_head * depth
PY
cat >config/small.py <<'PY'
from config.base import *
n_layer = 2          # behind the import: wins
batch_size = depth // 8
PY
expect 0 "$PLIMSOLL" config config/small.py
says '^n_layer += 2 +# config/small\.py:2:1$'
says '^n_head += 4 +# config/base\.py:3:1$'
says '^n_embd += 256 +# config/base\.py:5:1$'
says '^batch_size += 8 +# config/small\.py:3:1$'
expect 0 "$PLIMSOLL" plan config/small.py
says '2 layers, 4 heads of 64, 256 channels'
# the command line wins over both
expect 0 "$PLIMSOLL" config --n_head=8 config/small.py
says '^n_head += 8 +# command line$'

# exec of a file, beside it and from elsewhere; relative imports
echo "exec(open('config/base.py').read()); n_layer = 3" >a.py
expect 0 "$PLIMSOLL" config a.py
says '^n_layer += 3 +# a\.py:1:'
says '^n_head += 4 +# config/base\.py:3:1$'
printf 'from base import *\n' >config/b.py
printf 'from .base import *\n' >config/c.py
mkdir -p config/sub
printf 'from ..base import *\n' >config/sub/d.py
for file in config/b.py config/c.py config/sub/d.py; do
    expect 0 "$PLIMSOLL" config "$file"
    says '^n_head += 4 +# config/base\.py:3:1$'
done
cd elsewhere
expect 0 "$PLIMSOLL" config ../config/small.py
says '^n_head += 4 +# \.\./config/base\.py:3:1$'
# the working folder comes first, as for Python
printf 'n_head = 16; depth = 64\n' >config/base.py
expect 0 "$PLIMSOLL" config ../config/small.py
says '^n_head += 16 +# config/base\.py:1:1$'
cd ..

# what is not there could set anything
printf 'n_layer = 3\nfrom config.missing import *\n' >a.py
expect 3 "$PLIMSOLL" train a.py
says 'a\.py:2:1: config/missing\.py is neither in the working folder'
says '^    from config\.missing import \*$'
printf "exec(open('gone.py').read())\n" >a.py
expect 3 "$PLIMSOLL" config a.py
says 'a\.py:1:1: gone\.py is neither'
printf "import base64\nexec(base64.b64decode('eA=='))\n" >a.py
expect 3 "$PLIMSOLL" config a.py
says 'a\.py:2:1: of exec only'
# a mistake in the other file is named there
printf 'n_head = 4\nn_hed = 3\n' >config/typo.py
printf 'from config.typo import *\n' >a.py
expect 3 "$PLIMSOLL" config a.py
says "config/typo\.py:2:1: unknown key 'n_hed': did you mean 'n_head'"

# circles and towers end, with the chain
printf 'from config.y import *\n' >config/x.py
printf 'n_layer = 3\nfrom config.x import *\n' >config/y.py
expect 3 "$PLIMSOLL" config config/x.py
says 'config/y\.py:2:1: files that include each other: '
says 'config/x\.py -> config/y\.py -> config/x\.py'
expect 3 "$PLIMSOLL" config ./config/x.py
says 'files that include each other: '
for ((i = 0; i < 12; i++)); do
    printf 'from t%d import *\n' $((i + 1)) >"t$i.py"
done
echo 'n_layer = 3' >t12.py
expect 3 "$PLIMSOLL" config t0.py
says 'more than 8 files inside each other: t0\.py -> t1\.py -> '
expect 0 "$PLIMSOLL" config t5.py
says '^n_layer += 3 +# t12\.py:1:1$'
echo 'n_layer = 3' >leaf.py
for ((i = 0; i < 20; i++)); do echo 'from leaf import *'; done >many.py
expect 3 "$PLIMSOLL" config many.py
says 'many\.py:17:1: more than 16 files are included'
mkdir folder.py
printf 'from folder import *\n' >a.py
expect 3 "$PLIMSOLL" config a.py
says 'folder\.py is neither'

# the environment
cat >env.py <<'PY'
import os
from os import getenv
n_layer = int(os.environ.get('DEPTH', '6'))
n_head = int(getenv('HEADS') or 3)
out_dir = os.environ['OUT']
PY
expect 0 env DEPTH=9 OUT=out-x "$PLIMSOLL" config env.py
says '^n_layer += 9 +# env\.py:3:1$'
says '^n_head += 3 +# env\.py:4:1$'
says "^out_dir += 'out-x' +# env\.py:5:1\$"
expect 3 env -u OUT "$PLIMSOLL" config env.py
says 'env\.py:5:21: the variable OUT is not set'
expect 3 env OUT=x DEPTH=deep "$PLIMSOLL" config env.py
says "env\.py:3:11: int\('deep'\): this is not a number"
expect 3 env OUT=x DEPTH=$'\xff' "$PLIMSOLL" config env.py
says 'is not UTF-8'

# a variable that looks like a key which was left alone is pointed at
printf 'n_embed = 512\nn_head = n_embed // 64\n' >a.py
expect 0 "$PLIMSOLL" config a.py
says "note: a\.py: 'n_embed' is a variable .*'n_embd', a key, is not set"
printf 'N_EMBD = 512\nn_embd = N_EMBD\n' >a.py
expect 0 "$PLIMSOLL" config a.py
says_not 'note:'
