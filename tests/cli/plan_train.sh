#!/usr/bin/env bash
# `plan` and `train` count the same bytes, whatever the config says: a run that
# gets exactly what was planned begins, with one byte less it refuses, and names
# the bytes that the plan named.
set -eu
. tests/support/cli.sh
unset PLIMSOLL_CALIBRATE
work_on_disk
export XDG_CACHE_HOME="$TMP_DIR/cache"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/chars cats.txt
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=300 --out=bpe cats.txt
expect 0 "$PLIMSOLL" prepare --tokenizer=bpe --out=data/bpe cats.txt
mkdir data/bare
cp data/bpe/*.bin data/bare
size=(--n_layer=2 --n_head=2 --n_embd=16 --block_size=16 --batch_size=4
    --gradient_accumulation_steps=1 --eval_iters=1 --max_iters=1)

# the memory that is named: of a plan that ends with CODE, and of a run that is
# refused
planned() {
    local code=$1
    shift
    expect "$code" "$PLIMSOLL" plan "$@" --json
    echo "$(number total_bytes) $(number arena_bytes) $(number reserve_bytes)" \
        "$(number files_bytes)"
}
refused() {
    expect 5 "$PLIMSOLL" train "$@"
    local arena reserve files
    arena=$(exact '(arena ')
    reserve=$(exact '+ reserve ')
    files=$(exact '+ files ')
    echo "$((arena + reserve + ${files:-0})) $arena $reserve $files"
}

# same SETTING...: of the smallest plan, and of the one that is taken literally
same() {
    local all=("${size[@]}" "$@") plan run
    plan=$(planned 5 "${all[@]}" --memory=1)
    run=$(refused "${all[@]}" --memory=1)
    [ "$plan" = "$run" ] || fail "planned $plan, the run needs $run: $*"
    plan=$(planned 0 "${all[@]}" --fit=exact --memory=100GB)
    run=$(refused "${all[@]}" --fit=exact --memory=$((${plan%% *} - 1)))
    [ "$plan" = "$run" ] || fail "planned $plan, the run needs $run: $*"
    expect 0 "$PLIMSOLL" train "${all[@]}" --fit=exact --memory="${plan%% *}"
}

for threads in 1 2; do
    same --dataset=chars --threads=$threads
    same --dataset=bpe --threads=$threads
done
same --dataset=chars --vocab_size=100
same --dataset=bpe --vocab_size=300
same --dataset=bpe --vocab_size=1000
same --dataset=bare
same --dataset=bare --vocab_size=300
same --dataset=bpe --dtype=bfloat16 --vocab_size=320
same --dataset=bpe --optimizer_state=8bit --weights=bf16
same --dataset=bpe --optimizer=muon
same --dataset=bpe --optimizer=muon --dtype=float16 --optimizer_state=8bit
same --dataset=bpe --tie_word_embeddings=False --bias=False
same --dataset=bpe --device=cpu
same --dataset=bpe --eval_block_size=8 --eval_batch_size=2
same --dataset=bpe --eval_only=True
same --dataset=bpe --memory=100GB --grad_checkpoint=2
# files in memory are a part of it, also those that are there already
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ]; then
    in_memory=$(mktemp -d /dev/shm/plimsoll.XXXXXX)
    also=("$in_memory")
    out_dir=--out_dir=$in_memory/out
    same --dataset=chars "$out_dir" --keep=0
    same --dataset=bpe "$out_dir" --optimizer_state=8bit
    same --dataset=bpe "$out_dir" --max_iters=2 --eval_interval=1
    same --dataset=bpe "$out_dir" --max_iters=3 --init_from=resume
    same --dataset=bpe --max_iters=3 "$out_dir" --keep=3 --eval_only=True
    expect 0 "$PLIMSOLL" plan "${size[@]}" --dataset=bpe "$out_dir" --json
    [ "$(number total_bytes)" -eq $(($(number arena_bytes) + \
        $(number reserve_bytes) + $(number files_bytes))) ] || fail "$out"
    expect 0 "$PLIMSOLL" plan "${size[@]}" --dataset=bpe "$out_dir"
    says '^files .* 4 checkpoints of .*: out_dir is in memory \(tmpfs\)$'
    # what costs nothing comes first among the remedies
    plan=$(planned 5 "${size[@]}" --dataset=bpe --memory=1)
    expect 5 "$PLIMSOLL" plan "${size[@]}" --dataset=bpe "$out_dir" \
        --memory="${plan%% *}"
    says '^out_dir on a disk  .* same result, to the bit$'
fi

# what a run goes on from, and what it begins with
expect 0 "$PLIMSOLL" train "${size[@]}" --dataset=bpe --out_dir=went
same --dataset=bpe --out_dir=went --init_from=resume
same --dataset=bpe --init_from=went/latest
same --dataset=bpe --init_from=went/latest --vocab_size=320

# a vocabulary that is too small for the data is no plan of a run
for command in plan train; do
    expect 3 "$PLIMSOLL" $command "${size[@]}" --dataset=bpe --vocab_size=100
    says "vocab_size = 100 is less than the tokenizer's"
done
# where no data is, nothing is known of it
expect 0 "$PLIMSOLL" plan "${size[@]}" --dataset=nowhere --vocab_size=100
