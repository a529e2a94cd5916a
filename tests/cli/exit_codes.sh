#!/usr/bin/env bash
# The same kind of mistake ends with the same code in every command, and the
# codes are those that --help and the manual name.
set -eu
. tests/support/cli.sh
manual=$PWD/docs/commands.md
cd "$TMP_DIR"

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out \
    --max_iters=2
expect 0 "$PLIMSOLL" export out --out=model.gguf
expect 0 "$PLIMSOLL" export out --out=model-folder
mkdir empty-folder data/broken
: >empty
: >empty.txt
head -c 5000 cats.txt >text.bin
printf 'a\377\376\375' >binary
cp binary binary.py
cp binary binary.json
cp cats.txt torn.gguf
printf 'n_layer = "two"\n' >wrong.py
printf '{"text": "a"}\n' >docs.jsonl
cp data/cats/* data/broken
: >data/broken/train.bin
cp -r model-folder other-model
sed -i 's/"gpt2"/"gemma3"/' other-model/config.json
cp -r model-folder broken-model
sed -i 's/"n_embd"/"no_embd"/' broken-model/config.json

# code, then the call; one of each kind that a command can meet
calls=$(sed 's/^ *//; /^#/d; /^$/d' <<'TABLE'
    # 1: a file or a folder
    1 plan nowhere.py
    1 plan --init_from=nowhere
    1 train nowhere.py
    1 train --dataset=nowhere
    1 train --resume nowhere
    1 train --resume empty-folder
    1 train --resume cats.txt
    1 train --init_from=nowhere
    1 eval nowhere
    1 eval nowhere.py
    1 eval empty-folder
    1 eval cats.txt
    1 sample nowhere
    1 sample empty-folder
    1 sample model.gguf
    1 sample out --start=FILE:nowhere
    1 prepare --out=data/x nowhere.txt
    1 prepare --out=data/x empty-folder
    1 prepare --out=data/x no*.match
    1 prepare --out=data/x --tokenizer=nowhere cats.txt
    1 prepare --out=cats.txt cats.txt
    1 tokenizer train --out=bpe nowhere.txt
    1 tokenizer train --out=bpe empty-folder
    1 tokenizer train --out=cats.txt cats.txt
    1 tokenize --tokenizer=nowhere cats.txt
    1 tokenize --tokenizer=byte nowhere.txt
    1 tokenize --tokenizer=byte empty-folder
    1 inspect nowhere
    1 inspect nowhere.bin
    1 config nowhere.py
    1 explain nowhere.py
    1 bench nowhere.py
    1 report nowhere --out=x
    1 export nowhere --out=x.gguf
    1 export empty-folder --out=x.gguf
    1 export model.gguf --out=x.gguf
    1 export out --format=gguf --out=empty-folder
    1 export out --format=hf --out=out
    1 import nowhere --out=x
    1 import empty-folder --out=x
    1 import model.gguf --out=out
    # 2: the command line
    2 pln
    2 help pln
    2 --frobnicate
    2 devices opencl:99
    2 devices --n_layer=2
    2 plan --frobnicate=1
    2 plan -x
    2 plan cats.txt
    2 plan --num_samples=1
    2 train --frobnicate=1
    2 train cats.txt
    2 train --resume out out
    2 train --num_samples=1
    2 eval out out
    2 eval --frobnicate=1
    2 sample out out
    2 sample --frobnicate=1
    2 sample out --n_layer=2
    2 prepare
    2 prepare cats.txt
    2 prepare --out=data/x
    2 prepare --out=data/x --n_layer=2 cats.txt
    2 prepare --out=data/x -
    2 tokenizer
    2 tokenizer train
    2 tokenizer train --out=bpe
    2 tokenizer train cats.txt
    2 tokenizer frobnicate --out=bpe cats.txt
    2 tokenize
    2 tokenize --tokenizer=byte cats.txt cats.txt
    2 inspect
    2 inspect --frobnicate=1
    2 config cats.txt
    2 config --frobnicate=1
    2 explain cats.txt
    2 explain --frobnicate=1
    2 bench cats.txt
    2 bench --frobnicate=1
    2 live --frobnicate=1
    2 serve --frobnicate=1
    2 report --frobnicate=1
    2 report out --n_layer=2
    2 export
    2 export out
    2 export --out=x.gguf
    2 export out out --out=x.gguf
    2 import
    2 import model.gguf
    2 import --out=x
    # 3: settings
    3 plan wrong.py
    3 plan binary.py
    3 plan --n_layer=0
    3 plan --memory=lots
    3 train wrong.py
    3 train --dropout=2
    3 train --dataset=cats --memory=lots
    3 train --dataset=cats --block_size=100000
    3 train --resume out --n_embd=32
    3 eval out --eval_iters=0
    3 eval out --memory=lots
    3 sample out --temperature=-1
    3 sample out --memory=lots
    3 sample out --start=
    3 prepare --out=data/x --val_fraction=2 cats.txt
    3 prepare --out=data/x --memory=lots cats.txt
    3 prepare --out=data/x --format=gguf cats.txt
    3 tokenizer train --out=bpe --vocab_size=100 cats.txt
    3 tokenizer train --out=bpe --vocab_size=9999999 cats.txt
    3 tokenizer train --out=bpe --memory=lots cats.txt
    3 tokenize --tokenizer=byte --ids=roman cats.txt
    3 config wrong.py
    3 config --n_layer=0
    3 config --memory=lots
    3 config --gpu=abacus
    3 explain wrong.py
    3 explain --memory=lots
    3 explain --gpu=abacus
    3 bench wrong.py
    3 bench --rounds=0
    3 bench --memory=lots
    3 report out --format=gguf --out=x
    3 export out --out=x.gguf --type=f33
    3 export out --out=x.bin --type=f16
    3 export out --out=x --type=q8_0
    3 export out --out=x --format=nanogpt
    # 4: what a file holds
    4 train --dataset=broken
    4 plan --init_from=broken-model
    4 train --dataset=cats --init_from=broken-model
    4 eval broken-model --dataset=cats
    4 sample broken-model
    4 sample out --start=FILE:empty
    4 sample out --start=FILE:binary
    4 sample out --start=THE
    4 prepare --out=data/x empty.txt
    4 prepare --out=data/x binary
    4 prepare --out=data/x --tokenizer=byte --field=body docs.jsonl
    4 prepare --out=data/x --tokenizer=binary.json cats.txt
    4 tokenizer train --out=bpe empty.txt
    4 tokenize --tokenizer=binary.json cats.txt
    4 tokenize --tokenizer=byte --decode cats.txt
    4 tokenize --tokenizer=data/cats binary
    4 inspect binary.json
    4 inspect torn.gguf
    4 export broken-model --out=x.gguf
    4 import cats.txt --out=x
    4 import empty --out=x
    4 import torn.gguf --out=x
    # 5: memory
    5 plan --n_layer=2 --memory=20MB
    5 plan --n_layer=2 --memory=20MB --json
    5 train --dataset=cats --memory=1MB
    5 eval out --memory=1MB
    5 sample out --memory=1MB
    5 prepare --out=data/x --memory=1MB cats.txt
    5 tokenizer train --out=bpe --memory=1MB cats.txt
    5 bench --n_layer=2 --memory=20MB
    # 6: nothing that this program does
    6 plan --init_from=other-model
    6 train --dataset=cats --init_from=other-model
    6 eval other-model --dataset=cats
    6 sample other-model
    6 export other-model --out=x.gguf
TABLE
)

while read -r code call; do
    # shellcheck disable=SC2086 # words, and no patterns
    got=0
    set -f
    # shellcheck disable=SC2086
    "$PLIMSOLL" $call </dev/null >out.txt 2>err.txt || got=$?
    set +f
    [ "$got" -eq "$code" ] ||
        fail "plimsoll $call: exit code $got, expected $code"$'\n'"$(cat \
            err.txt)"
    grep -q '^plimsoll: error: .' err.txt || fail "plimsoll $call: no error"
    [ "$(grep -c '^plimsoll: error: ' err.txt)" -eq 1 ] ||
        fail "plimsoll $call: more than one error"$'\n'"$(cat err.txt)"
done <<<"$calls"
[ ! -e x ] && [ ! -e x.gguf ] && [ ! -e x.bin ] || fail "a file of a mistake"

# every command is in the table
expect 0 "$PLIMSOLL" --help
help=$out
commands=$(sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' <<<"$help" |
    grep -v '^plimsoll$')
[ "$(wc -l <<<"$commands")" -ge 13 ] || fail "commands: $commands"
for command in $commands; do
    grep -q "^[0-9] $command" <<<"$calls" || fail "no call of $command"
done

# plan says it and its numbers; where it fits it is 0
expect 5 "$PLIMSOLL" plan --n_layer=2 --memory=20MB
says '^what would fit'
says "error: it doesn't fit: [0-9.]+ [MG]B are needed, the budget is 20.0 MB"
"$PLIMSOLL" plan --n_layer=2 --memory=20MB --json >plan.json 2>/dev/null ||
    true
grep -q '"fits": false' plan.json || fail "$(cat plan.json)"
[ "$(tail -n 1 plan.json)" = "}" ] || fail "more than JSON: $(cat plan.json)"
expect 0 "$PLIMSOLL" plan --n_layer=2 --memory=20GB --json

# one table: the help's lines are the manual's
codes=$(sed -n '/^Exit codes:/,$p' <<<"$help" |
    sed -n 's/^ *\([0-9][0-9]*\)  \(.*\)/| \1 | \2 |/p')
[ "$(wc -l <<<"$codes")" -eq 9 ] || fail "codes: $codes"
while read -r line; do
    grep -qF -- "$line" "$manual" || fail "$manual has no line: $line"
done <<<"$codes"
