#!/usr/bin/env bash
# Texts that a training writes on its way: they change no bit of the run,
# however often it was stopped, and stand in samples.jsonl once.
set -eu
. tests/support/cli.sh
work_on_disk

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
run=(--dataset=cats "${tiny[@]}" --max_iters=40 --eval_interval=10
    --eval_iters=2)
texts=(--sample_interval=10 "--sample_prompts=['the cat', 'sat\\n']"
    --max_new_tokens=30)

# weights FOLDER: the sums of all tensors of its last checkpoint
weights() {
    grep -h 'safetensors' -A 3 "$1/step-00000040/manifest.json" |
        grep -o '"[0-9a-f]\{32\}"'
}

# ---- no bit changes ----

expect 0 "$PLIMSOLL" train "${run[@]}" --out_dir=without
[ ! -e without/samples.jsonl ] || fail "samples that nobody asked for"
expect 0 "$PLIMSOLL" train "${run[@]}" "${texts[@]}" --out_dir=with
says '^sample 10\.1: the cat\|'
says '^sample 40\.2: sat\\n\|'
[ -n "$(weights without)" ] || fail "the manifest has no sums"
[ "$(weights with)" = "$(weights without)" ] || fail "other bits with samples"
diff <(cut -d, -f1-7 without/metrics.jsonl) \
    <(cut -d, -f1-7 with/metrics.jsonl) ||
    fail "other metrics with samples"

python3 - with/samples.jsonl <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [(l["step"], l["prompt"]) for l in lines] == [
    (step, prompt) for step in (10, 20, 30, 40)
    for prompt in ("the cat", "sat\n")], lines
assert all(len(l["text"]) == 30 for l in lines), lines
PY

# ---- `sample` writes the same text from that checkpoint ----

expect 0 "$PLIMSOLL" sample with/step-00000040 --start='the cat' \
    --num_samples=1 --max_new_tokens=30
python3 - with/samples.jsonl "$out" <<'PY'
import json, sys
last = [json.loads(line) for line in open(sys.argv[1])][-2]
assert sys.argv[2].startswith(last["prompt"] + last["text"]), last
PY

# ---- stops ----

# Killed by a signal now and then, and resumed until it is done.
again=("${run[@]}" "${texts[@]}" --out_dir=again --save_interval=1)
stops=0 got=1
first=(train "${again[@]}")
while [ "$got" -ne 0 ] && [ "$stops" -lt 8 ]; do
    got=0
    timeout -s INT "0.$((3 + stops % 6))" "$PLIMSOLL" "${first[@]}" \
        >log 2>&1 || got=$?
    [ "$got" -eq 0 ] || [ "$got" -eq 124 ] || [ "$got" -eq 130 ] ||
        fail "$(cat log)"
    stops=$((stops + 1))
    if compgen -G 'again/step-*' >/dev/null; then
        first=(train --resume again)
    fi
done
expect 0 "$PLIMSOLL" "${first[@]}"
[ "$(weights again)" = "$(weights without)" ] ||
    fail "other bits after $stops stops"
cmp with/samples.jsonl again/samples.jsonl ||
    fail "other samples after $stops stops"
# shown FOLDER: how many texts TensorBoard gets for the first prompt
shown() {
    grep -ao 'sample/1' "$1/events.out.tfevents.plimsoll" | wc -l
}
[ "$(shown with)" -eq 4 ] || fail "TensorBoard: $(shown with) texts"
[ "$(shown again)" -eq 4 ] || fail "TensorBoard: $(shown again) after stops"

# Ctrl-C within a text: the answer comes at once, the step is saved.
"$PLIMSOLL" train "${run[@]}" --out_dir=long --sample_interval=1 \
    --max_new_tokens=60000 --save_interval=1 >log 2>&1 &
for ((i = 0; i < 1200; i++)); do
    grep -q 'saving checkpoint' log && break
    sleep 0.05
done
# before it listens a signal would be lost, as jobs of a script ignore it
grep -q 'saving checkpoint' log || {
    kill $!
    fail "no checkpoint after a minute: $(cat log)"
}
began=$(date +%s%N)
kill -INT $!
got=0
wait $! || got=$?
[ "$got" -eq 130 ] || fail "exit code $got: $(cat log)"
took=$((($(date +%s%N) - began) / 1000000))
[ "$took" -lt 1500 ] || fail "an answer after $took ms"
[ ! -s long/samples.jsonl ] || fail "$(cat long/samples.jsonl)"
[ -e long/step-00000001/manifest.json ] || fail "$(cat log)"

# Back to an older checkpoint: what came later goes.
expect 0 "$PLIMSOLL" train "${run[@]}" "${texts[@]}" --out_dir=back --keep=9
cp back/samples.jsonl whole.jsonl
rm -r back/step-00000040 back/step-00000030
expect 0 "$PLIMSOLL" train --resume back --max_iters=22
[ "$(wc -l <back/samples.jsonl)" -eq 4 ] || fail "$(cat back/samples.jsonl)"
head -n 4 whole.jsonl | cmp - back/samples.jsonl
expect 0 "$PLIMSOLL" train --resume back --max_iters=40
cmp whole.jsonl back/samples.jsonl
[ "$(shown back)" -eq 4 ] || fail "TensorBoard: $(shown back) after going back"

# A torn line, and a set that isn't whole.
head -c -5 whole.jsonl >back/samples.jsonl
expect 0 "$PLIMSOLL" train --resume back
cmp whole.jsonl back/samples.jsonl

# A file that was lost begins again; a new run in the folder moves it away.
rm back/samples.jsonl
expect 0 "$PLIMSOLL" train --resume back
[ "$(wc -l <back/samples.jsonl)" -eq 2 ] || fail "$(cat back/samples.jsonl)"
expect 0 "$PLIMSOLL" train "${run[@]}" --out_dir=back --max_iters=2
[ ! -e back/samples.jsonl ] || fail "samples of the run before"
[ -e back/earlier-1/samples.jsonl ] || fail "the samples were not moved"

# ---- what is wrong is found before the first step ----

wrong() {
    local code=$1
    shift
    expect "$code" "$PLIMSOLL" train "${run[@]}" --out_dir=wrong \
        --sample_interval=10 "$@"
    [ ! -e wrong ] || fail "a run began: $*"
}
wrong 4 --sample_prompts='~'
says "sample_prompts: .* has no U.007E '~'"
wrong 3 "--sample_prompts=['the', '']"
says 'sample_prompts, item 2 is empty'
wrong 3 "--sample_prompts=['the', 3]"
says 'item 2 of the list is 3, which is no string'
wrong 3 '--sample_prompts=[]'
says 'the list is empty'
wrong 1 --sample_prompts=FILE:absent.txt
says 'sample_prompts: .*absent.txt'
wrong 3 --max_new_tokens=70000
says 'max_new_tokens = 70000'
wrong 3 --sample_interval=-1
printf 'the cat' >prompt.txt
expect 0 "$PLIMSOLL" train "${run[@]}" --out_dir=file --sample_interval=40 \
    --sample_prompts=FILE:prompt.txt --max_new_tokens=30
cmp <(tail -n 2 with/samples.jsonl | head -n 1) file/samples.jsonl

# ---- bytes that are no UTF-8 ----

expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/bytes cats.txt
expect 0 "$PLIMSOLL" train --dataset=bytes "${tiny[@]}" --max_iters=1 \
    --eval_interval=10 --eval_iters=1 --out_dir=bytes --sample_interval=1 \
    --temperature=9 --top_k=0 --max_new_tokens=300
! LC_ALL=C grep -q "$(printf '[\001-\010\033]')" bytes/samples.jsonl ||
    fail "control characters"
python3 - bytes/samples.jsonl <<'PY'
import json, sys
line, = open(sys.argv[1], encoding="utf-8").read().splitlines()
assert "�" in json.loads(line)["text"], line
PY
