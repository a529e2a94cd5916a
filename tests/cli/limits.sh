#!/usr/bin/env bash
# Limits of the process: on the size of a file (ulimit -f) and on open files
# (ulimit -n). A run finds out before it begins, and nobody dies by a signal.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt

# under LETTER NUMBER COMMAND...: with that limit; -f counts 1024 bytes
under() {
    local letter=$1 number=$2
    shift 2
    (ulimit "-$letter" "$number" && exec "$@")
}

# ---- train: the size of a file ----

wide=(--dataset=cats "${tiny[@]}" --n_embd=64 --max_iters=2)
expect 0 "$PLIMSOLL" train "${wide[@]}" --out_dir=whole
model=$(stat -c %s whole/latest/model.safetensors)
optimizer=$(stat -c %s whole/latest/optimizer.safetensors)
[ "$optimizer" -gt "$model" ] || fail "the optimizer is no longer the largest"

# below one slice of the rehearsal, below the model, below the optimizer
for kb in 1 100 $((model / 1024 + 8)) $((optimizer / 1024)); do
    expect 1 under f "$kb" "$PLIMSOLL" train "${wide[@]}" --out_dir="f$kb"
    says 'ulimit -f'
    says "$(grouped "$optimizer") bytes"
    says "$(grouped $((kb * 1024))) bytes"
    says_not '^(iter|step)'
    [ ! -e "f$kb/latest" ] || fail "it saved"
done
expect 0 under f $((optimizer / 1024 + 1)) "$PLIMSOLL" train "${wide[@]}" \
    --out_dir=enough
says_not 'warning: .*(cannot|ulimit)'
cmp enough/latest/optimizer.safetensors whole/latest/optimizer.safetensors
# a run that goes on, likewise
expect 1 under f $((optimizer / 1024)) "$PLIMSOLL" train --resume whole \
    --max_iters=4
says 'ulimit -f'
says_not '^(iter|step)'
# an evaluation writes nothing
expect 0 under f 1 "$PLIMSOLL" eval whole

# metrics of very many updates: they would end early, which is said
: >log.txt
(
    ulimit -f $((optimizer / 1024 + 1))
    exec "$PLIMSOLL" train "${wide[@]}" --out_dir=many --max_iters=100000 \
        --eval_interval=100000
) >log.txt 2>&1 &
pid=$!
until grep -q '^iter 1:' log.txt; do
    kill -0 "$pid" || fail "$(cat log.txt)"
    sleep 0.1
done
kill -INT "$pid"
wait "$pid" || true
out=$(cat log.txt)
says 'warning: .*ulimit -f.*metrics of this run can have'
says 'stopped at iteration .* saved in many/'

# ---- train: open files ----

# Either it says before the first step that it can't, or all goes well.
refused=0 ran=0 last=
for n in 4 5 6 7 8 9 10 11 12 16 24 32; do
    rm -rf files
    code=0
    out=$(under n "$n" "$PLIMSOLL" train --dataset=cats "${tiny[@]}" \
        --out_dir=files --max_iters=4 --eval_interval=2 2>&1) || code=$?
    # too few for the program's own libraries
    ! grep -q 'loading shared libraries' <<<"$out" || continue
    if [ "$code" -ne 0 ]; then
        [ "$code" -eq 1 ] || fail "$n files: exit code $code"$'\n'"$out"
        says 'ulimit -n'
        says_not '^(iter|step)'
        [ "$ran" -eq 0 ] || fail "$n are too few, and less were enough"
        refused=$((refused + 1))
        ! grep -Eq "needs [0-9]+ open files at once, .* may have $n:" \
            <<<"$out" || last=$n
    else
        says_not 'warning: .*(cannot|ulimit)'
        [ -f files/latest/manifest.json ] || fail "$n files: nothing was saved"
        grep -q '"step": 3' files/metrics.jsonl || fail "$n files: no metrics"
        ran=$((ran + 1))
    fi
done
[ "$refused" -gt 1 ] && [ "$ran" -gt 1 ] || fail "refused $refused, ran $ran"
[ -n "$last" ] || fail "no refusal named what is needed"

# ---- prepare, tokenizer, export, import: the size of a file ----

# nothing PATH: neither it nor a part of it is there
nothing() {
    local left
    left=$(find . -path "./$1*" -type f ! -name .lock)
    [ -z "$left" ] || fail "left behind: $left"
}

for ((i = 0; i < 60; i++)); do cat cats.txt; done >long.txt
expect 1 under f 100 "$PLIMSOLL" prepare --out=data/long long.txt
says 'File too large.*ulimit -f'
[ ! -e data/long/train.bin ] || fail "half of train.bin"
# what was there before is there still
cp data/cats/train.bin was.bin
expect 1 under f 100 "$PLIMSOLL" prepare --out=data/cats long.txt
cmp data/cats/train.bin was.bin
# and the same command goes on where it can
expect 0 "$PLIMSOLL" prepare --out=data/long long.txt
expect 0 "$PLIMSOLL" prepare --out=data/again long.txt
cmp data/long/train.bin data/again/train.bin

expect 1 under f 1 "$PLIMSOLL" tokenizer train --vocab_size=300 --out=bpe \
    cats.txt
says 'ulimit -f'
nothing bpe

for out_name in m.gguf m.bin; do
    expect 1 under f 100 "$PLIMSOLL" export whole --out="$out_name"
    says 'File too large.*ulimit -f'
    nothing "$out_name"
done
expect 1 under f 100 "$PLIMSOLL" export whole --format=hf --out=share
says 'File too large.*ulimit -f'
nothing share
expect 0 "$PLIMSOLL" export whole --out=m.gguf
expect 1 under f 100 "$PLIMSOLL" import m.gguf --out=imported
says 'File too large.*ulimit -f'
nothing imported
