#!/usr/bin/env bash
# Bad input: a clear word, the right exit code, nothing lost.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
expect 1 "$PLIMSOLL" train --dataset=cats "${tiny[@]}"
says 'plimsoll prepare'
expect 2 "$PLIMSOLL" prepare cats.txt
says 'out='
expect 1 "$PLIMSOLL" prepare --out=data/cats missing.txt
says 'missing\.txt'
printf 'caf\351\n' >latin1.txt
expect 4 "$PLIMSOLL" prepare --out=data/cats latin1.txt
says 'latin1\.txt.*(byte|offset) 3'
says '\-\-tokenizer=byte'
[ ! -e data/cats/train.bin ] || fail "a failed prepare left train.bin"

expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out \
    --max_iters=2
expect 4 "$PLIMSOLL" sample out --start="THE CAT"
says "U\+0054"
expect 1 "$PLIMSOLL" sample out --start=FILE:nowhere.txt
says 'nowhere\.txt'
expect 3 "$PLIMSOLL" sample out --start=
tr -d '\n' <cats.txt >flat.txt
expect 0 "$PLIMSOLL" prepare --out=data/flat flat.txt
expect 0 "$PLIMSOLL" train --dataset=flat "${tiny[@]}" --out_dir=flat \
    --max_iters=1
expect 4 "$PLIMSOLL" sample flat
says 'start is a line end unless it is given.*--start=TEXT'
expect 1 "$PLIMSOLL" sample elsewhere
says 'no checkpoint here'
expect 1 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --init_from=gpt2
expect 3 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out \
    --init_from=resume --n_embd=32
says 'n_embd is 16 in the checkpoint and 32'
expect 3 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --block_size=100000
says '(train|val)\.bin'

# a token that the vocabulary does not have
cp -r data/cats data/bad
printf '\377\377' | dd of=data/bad/val.bin bs=2 seek=5 conv=notrunc 2>/dev/null
expect 4 "$PLIMSOLL" train --dataset=bad "${tiny[@]}" --out_dir=bad \
    --eval_iters=200 --block_size=8
says 'val\.bin.*65535'

# a run that can't save says so, and what was there stays
if [ "$(id -u)" -ne 0 ]; then
    chmod a-w out
    expect 1 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out \
        --init_from=resume --max_iters=4
    chmod u+w out
fi
# an out_dir that can't be written is known before the first step
: >file
expect 1 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=file
says 'file'
says_not '^iter 0'
expect 3 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=
says_not '^iter 0'
mkdir -p taken/latest
expect 1 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=taken
says 'taken/latest: a link to a checkpoint goes here, but it is a folder'

# two runs in one folder: the second refuses, the first goes on
: >first.txt
"$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=shared \
    --max_iters=1000000 --eval_interval=1000000 >first.txt 2>&1 &
first=$!
until grep -q '^iter 3:' first.txt; do sleep 0.1; done
expect 1 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=shared
says 'held by another process'
kill -INT "$first"
wait "$first" || true
grep -q '^stopped at iteration' first.txt || fail "$(cat first.txt)"

# a checkpoint and a vocabulary that do not belong together
cp -r out mixed
printf '{"tokenizer": "byte", "vocab_size": 256}' >mixed/latest/meta.json
expect 4 "$PLIMSOLL" sample mixed --start=A
says 'mixed/.* is damaged: left alone and passed over.*meta.json has 40 bytes'
cp -rL mixed/latest folder
rm folder/manifest.json
expect 4 "$PLIMSOLL" sample folder --start=A
says 'do not belong together'
tr 'c' 'C' <cats.txt >Cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/Cats Cats.txt
expect 3 "$PLIMSOLL" train --dataset=Cats "${tiny[@]}" --out_dir=out \
    --init_from=resume --max_iters=4
says "is not that of data/Cats \\(char"
# sizes that the file does not have: refused before memory is taken
cp -rL out/latest absurd
rm absurd/manifest.json
sed -i 's/"vocab_size": [0-9][0-9]*/"vocab_size": 400000000/' \
    absurd/config.json
expect 4 "$PLIMSOLL" sample absurd --start=t
says 'wte.weight: expected 400000000'

# data that breaks in mid-run: what was learnt is kept
cp -r data/cats data/torn
: >torn.txt
"$PLIMSOLL" train --dataset=torn "${tiny[@]}" --out_dir=torn \
    --max_iters=1000000 --eval_interval=1000000 >torn.txt 2>&1 &
torn=$!
until grep -q '^iter 3:' torn.txt; do sleep 0.1; done
: >data/torn/train.bin
code=0
wait "$torn" || code=$?
[ "$code" -eq 4 ] || fail "exit code $code: $(tail -n 3 torn.txt)"
[ -f torn/latest/manifest.json ] || fail "the weights were thrown away"

# a best model of another run is not taken for this one's
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=again \
    --always_save_checkpoint=False
[ -L again/best ] || fail "no best"
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=again \
    --seed=7 --eval_interval=1000
says 'note: again had the checkpoints of an earlier run, up to iteration 20'
[ ! -e again/best ] || fail "another run's best is still there"
[ -f again/earlier-1/best/manifest.json ] || fail "it was thrown away"

expect 1 "$PLIMSOLL" plan --init_from=gpt3-xl
says "init_from = 'gpt3-xl': neither 'scratch'"

# a file where a save makes its folder is found before memory is taken
mkdir blocked
: >blocked/.saving
expect 1 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=blocked
says 'blocked/.saving: Not a directory'
says_not '^iter'

# saves that fail: the run goes on, and its end says what is lost
: >full.txt
"$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=full \
    --max_iters=1000000 --eval_interval=1000000 --save_interval=20 \
    --keep=0 >full.txt 2>&1 &
full=$!
until [ -e full/latest ]; do sleep 0.1; done
until { : >full/.saving; } 2>/dev/null; do :; done # between two saves
until grep -q 'The run goes on' full.txt; do sleep 0.1; done
kill -INT "$full"
code=0
wait "$full" || code=$?
[ "$code" -eq 1 ] || fail "exit code $code: $(tail -n 3 full.txt)"
out=$(cat full.txt)
says 'cannot save full/step-[0-9]+: .*The run goes on'
says 'tried 3 times. The iterations from [0-9]+ to [0-9]+ are lost: the newest'
rm full/.saving
expect 0 "$PLIMSOLL" train --resume full --max_iters=1
says 'nothing is left to train'
expect 5 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --memory=1MB
says '[0-9.]+ [kM]B are missing'
expect 3 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --memory=lots

# an out_dir in memory counts against the budget
if [ -d /dev/shm ] && [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then
    expect 0 "$PLIMSOLL" plan --dataset=cats "${tiny[@]}" --fit=exact --json
    just=$(($(number arena_bytes) + $(number reserve_bytes)))
    expect 5 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --fit=exact \
        --memory="$just" --out_dir=/dev/shm/plimsoll-test-out
    says 'is in memory \(tmpfs\)'
    [ ! -e /dev/shm/plimsoll-test-out ] || fail "it was made all the same"
fi
