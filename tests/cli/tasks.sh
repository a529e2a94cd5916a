#!/usr/bin/env bash
# Tasks: `eval --task` says what it finds, the same as a training on its way,
# of which it changes no bit, however often that was stopped. And bits per byte.
set -eu
. tests/support/cli.sh
work_on_disk

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/bytes --tokenizer=byte cats.txt
run=("${tiny[@]}" --device=cpu --max_iters=40 --eval_interval=10 --eval_iters=2)

# ---- tasks ----

mkdir tasks
python3 - <<'PY'
import json
def write(name, items):
    with open(f"tasks/{name}.jsonl", "w") as out:
        for item in items:
            out.write(json.dumps(item) + "\n")
cat = lambda i: f"the cat number {i * 7 % 100}"
write("choice", ({"query": cat(i) + (" " if i % 3 else ""), "choices":
    [f"sat on mat {i % 10}.", "number the", "cat"], "gold": i % 2}
    for i in range(12)))
write("word", ({"text": f"{cat(i)} sat on mat"} for i in range(9)))
write("schema", ({"context_options": [cat(i), cat(i + 1)], "gold": 0,
    "continuation": f"sat on mat {i % 10}."} for i in range(8)))
PY
keys=(--tasks=tasks --task_interval=10 --shots=1 --task_limit=7)

# weights FOLDER: the sums of all tensors of its last checkpoint
weights() {
    grep -h 'safetensors' -A 3 "$1/step-00000040/manifest.json" |
        grep -o '"[0-9a-f]\{32\}"'
}

# ---- no bit changes ----

expect 0 "$PLIMSOLL" train "${run[@]}" --dataset=cats --out_dir=without
[ ! -e without/tasks.jsonl ] || fail "tasks that nobody asked for"
expect 0 "$PLIMSOLL" train "${run[@]}" --dataset=cats "${keys[@]}" \
    --out_dir=with
says '^task choice: multiple choice, 7 items, 1 shot \(tasks/choice\.jsonl\)$'
says '^task word: LAMBADA, language model, 7 items'
says '^task 10: choice acc [01]\.[0-9]{4} \+- '
says '^task 40: word acc .*, perplexity '
says '^task 40: schema acc '
[ -n "$(weights without)" ] || fail "the manifest has no sums"
[ "$(weights with)" = "$(weights without)" ] || fail "other bits with tasks"
diff <(cut -d, -f1-6 without/metrics.jsonl) \
    <(cut -d, -f1-6 with/metrics.jsonl) || fail "other metrics with tasks"
held=$(sed -n 's/^peak memory:.*(\([0-9,]*\) bytes)$/\1/p' <<<"$out" | tr -d ,)
[ "${held:-0}" -gt 0 ] || fail "no peak"

# ---- `plan` counts what they take, as `train` does ----

reserve() {
    sed -n 's/.* + reserve \([0-9.]* .B\).*/\1/p' <<<"$out" | head -n 1
}
taken=$(reserve)
expect 0 "$PLIMSOLL" plan "${run[@]}" --dataset=cats "${keys[@]}" --json
counted=$(number reserve_bytes)
expect 0 "$PLIMSOLL" plan "${run[@]}" --dataset=cats --json
[ "$counted" -gt "$(number reserve_bytes)" ] || fail "tasks take no memory"
[ -n "$taken" ] || fail "train says no reserve"

# ---- eval finds the same in that checkpoint ----

expect 0 "$PLIMSOLL" eval with --task=tasks --json --items=items.jsonl
python3 - with/tasks.jsonl "$out" items.jsonl <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [(l["step"], l["task"]) for l in lines] == [
    (step, task) for step in (10, 20, 30, 40)
    for task in ("choice", "schema", "word")], lines
found = json.loads(sys.argv[2][sys.argv[2].index("{"):])
assert found["step"] == 40, found
for line, task in zip(lines[-3:], found["tasks"]):
    assert line["task"] == task["label"] and task["shots"] == 1
    for key in ("acc", "acc_stderr", "acc_norm", "perplexity", "centred"):
        assert (key in line) == (key in task), key
        assert key not in line or line[key] == float("%.9g" % task[key]), key
items = [json.loads(line) for line in open(sys.argv[3])]
assert len(items) == 21, len(items)
right = sum(i["acc"] == i["gold"] for i in items if i["task"] == "choice")
assert right / 7 == found["tasks"][0]["acc"]
assert all(max(i["logprobs"]) == i["logprobs"][i["acc"]]
           for i in items if i["task"] != "word")
PY
expect 0 "$PLIMSOLL" eval with --task=tasks/choice.jsonl \
    --task=tasks/word.jsonl --shots=0 --task_limit=100 --threads=1
says '^task choice: multiple choice, 12 items, 0 shots'
says '^choice +12  [01]\.[0-9]{4} \+- [0-9.]+ '
says '^word +9  '
says '^mean of the centred accuracies, as CORE has it: .* \(2 tasks\)'
says '^peak memory: .* of the .* that were planned'

expect 0 "$PLIMSOLL" eval with --tasks=tasks/word.jsonl --shots=0
says '^task word: LAMBADA'

# ---- stops ----

again=("${run[@]}" "${keys[@]}" --dataset=cats --out_dir=again
    --save_interval=1)
stops=0 got=1
first=(train "${again[@]}")
while [ "$got" -ne 0 ] && [ "$stops" -lt 8 ]; do
    got=0
    timeout -s INT "0.$((3 + stops * 2))" "$PLIMSOLL" "${first[@]}" \
        >/dev/null 2>&1 || got=$?
    stops=$((stops + 1))
    [ ! -e again/latest ] || first=(train --resume again --save_interval=1)
done
[ "$got" -eq 0 ] || expect 0 "$PLIMSOLL" "${first[@]}"
[ "$(weights again)" = "$(weights without)" ] || fail "other bits with stops"
cmp again/tasks.jsonl with/tasks.jsonl || fail "other results with stops"
for folder in with again; do
    shown=$(grep -ao 'task/choice/centred' \
        "$folder/events.out.tfevents.plimsoll" | wc -l)
    [ "$shown" -eq 4 ] || fail "TensorBoard: $shown results in $folder"
done

# ---- the report has them ----

expect 0 "$PLIMSOLL" report with --out=report.md --format=md
grep -q '^| choice | 40 | 7 | ' report.md || fail "no table of tasks"
grep -q '| bits per byte ' report.md || fail "no bits per byte"

# ---- bits per byte ----

expect 0 "$PLIMSOLL" train "${run[@]}" --dataset=bytes --out_dir=bytes
says '^step 40: .*, val bpb [0-9.]+ \('
python3 - bytes <<'PY'
import json, math, sys
lines = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
evals = [line for line in lines if "val_loss" in line]
assert len(evals) == 5
for line in evals:
    assert abs(line["val_loss"] / math.log(2) - line["val_bpb"]) < 1e-6, line
state = json.load(open(sys.argv[1] + "/latest/state.json"))
assert float("%.9g" % state["val_bpb"]) == evals[-1]["val_bpb"], state
best = min(evals, key=lambda line: line["val_loss"])
assert float("%.9g" % state["best_val_loss"]) == best["val_loss"], state
assert float("%.9g" % state["best_val_bpb"]) == best["val_bpb"], state
PY
expect 0 "$PLIMSOLL" inspect bytes
with_bits='[0-9.]+ \(val bpb [0-9.]+\)'
says "best val loss $with_bits, here $with_bits$"
expect 0 "$PLIMSOLL" inspect bytes --json
says '"best_val_loss": [0-9.]+'
says '"best_val_bpb": [0-9.]+'
says '"val_loss": [0-9.]+'
expect 0 "$PLIMSOLL" eval bytes
says '^step 40: .*, val bpb [0-9.]+ \('

# ---- folders in folders, as CORE has its tasks ----

mkdir -p core/knowledge core/words/more
cp tasks/choice.jsonl core/knowledge/arc.jsonl
cp tasks/word.jsonl core/words/more/word.jsonl
cp tasks/schema.jsonl core/words/arc.jsonl
expect 0 "$PLIMSOLL" eval with --task=core --task_limit=2
says '^task knowledge/arc: .* \(core/knowledge/arc\.jsonl\)$'
says '^task words/arc: .* \(core/words/arc\.jsonl\)$'
says '^words/more/word +2 '
echo '{"tasks": [{"file": "words/more/word.jsonl", "shots": 3}]}' \
    >core/tasks.json
expect 0 "$PLIMSOLL" eval with --task=core --task_limit=2
says '^task word: LAMBADA, language model, 2 items, 3 shots'
says '\(1 task\)'

# ---- a tokenizer that normalizes ----

# NFC may make a text longer: there is room for more ids than bytes
expect 0 "$PLIMSOLL" tokenizer train --pattern=qwen2 --vocab_size=265 \
    --out=nfc cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/nfc --tokenizer=nfc cats.txt cats.txt \
    cats.txt
qwen=("${tiny[@]}" --architecture=qwen3 --head_dim=8 --device=cpu --max_iters=10
    --dataset=nfc --block_size=64)
expect 0 "$PLIMSOLL" train "${qwen[@]}" "${keys[@]}" --out_dir=qwen
says '^task 10: choice acc [01]\.[0-9]{4} \+- '
expect 0 "$PLIMSOLL" eval qwen --task=tasks --shots=1
says '^choice +7  '
says_not 'lose their beginning'

# A folder of another program's says itself how long the model's context is.
mkdir plain
cp qwen/latest/{config.json,model.safetensors,tokenizer.json} plain
sed -i 's/"max_position_embeddings": *[0-9]*/"max_position_embeddings": 4096/' \
    plain/config.json
grep -q '"max_position_embeddings": 4096' plain/config.json ||
    fail "$(cat plain/config.json)"
python3 - <<'PY'
import json
with open("long.jsonl", "w") as out:
    for i in range(2):
        out.write(json.dumps({"query": f"the cat number {i} sat on mat. " *
            (60 + i), "choices": ["cat", "mat number"], "gold": i % 2}) + "\n")
PY
expect 0 "$PLIMSOLL" eval plain --task=long.jsonl --items=ours.jsonl
says_not 'lose their beginning'
grep -q '"cut": false' ours.jsonl || fail "$(cat ours.jsonl)"
expect 0 "$PLIMSOLL" eval plain --task=long.jsonl --items=same.jsonl \
    --block_size=4096
cmp ours.jsonl same.jsonl || fail "another context"
expect 0 "$PLIMSOLL" eval plain --task=long.jsonl --block_size=1024
says '4 of 4 requests are longer than the model.s context of 1024 tokens'

# ---- what is wrong is said ----

echo '{"query": "the", "choices": ["cat", "Q"], "gold": 0}' >odd.jsonl
expect 4 "$PLIMSOLL" eval with --task=odd.jsonl --shots=0
says 'odd\.jsonl:1'
printf '{"context": "the", "continuation": "cat"}\n{"contex": 1}\n' >odd.jsonl
expect 4 "$PLIMSOLL" eval with --task=odd.jsonl --shots=0
says 'odd\.jsonl:2:1: "context" is missing'
expect 1 "$PLIMSOLL" eval with --task=nothing.jsonl
expect 2 "$PLIMSOLL" eval with --json
says 'name one, --task=FILE'
expect 3 "$PLIMSOLL" train "${run[@]}" --dataset=cats --out_dir=x \
    --task_interval=5
says 'there are no tasks'
expect 3 "$PLIMSOLL" eval with --task=tasks --shots=12 --task_limit=100
says 'Lower shots'
[ ! -e x ] || fail "a run that never began left a folder"

# ---- Ctrl-C is answered at once ----

python3 - <<'PY'
import json
with open("many.jsonl", "w") as out:
    for i in range(50000):
        out.write(json.dumps({"text": f"the cat number {i % 100} sat"}) + "\n")
PY
"$PLIMSOLL" eval with --task=many.jsonl --shots=0 --task_limit=50000 \
    >said 2>&1 &
pid=$!
for ((i = 0; i < 400; i++)); do
    grep -q '^task many' said && break
    sleep 0.05
done
began=$(date +%s%N)
kill -INT "$pid"
got=0
wait "$pid" || got=$?
[ "$got" -eq 130 ] || fail "exit code $got after Ctrl-C: $(cat said)"
[ $((($(date +%s%N) - began) / 1000000)) -lt 3000 ] ||
    fail "Ctrl-C took more than three seconds"
