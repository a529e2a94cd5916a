#!/usr/bin/env bash
# `report`: runs as one page, and as Markdown with pictures; with the numbers of
# their files, whatever their names are.
set -eu
. tests/support/cli.sh
work_on_disk

well() {
    if command -v xmllint >/dev/null; then
        xmllint --noout "$@" || fail "not well-formed: $*"
    fi
}
alone() {
    local never='<script|<link|<img|<iframe|@import|url\(|src=|href="[^#]'
    ! grep -Eiq "$never" "$1" ||
        fail "$1 asks for something: $(grep -Ei '<script|src=|href=' "$1")"
    ! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" "$1" ||
        fail "$1 has control characters"
}

# bits per byte of a run's best evaluation, or its last
bits() {
    python3 - "$@" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
evals = [line for line in lines if "val_loss" in line]
best = min(evals, key=lambda line: line["val_loss"])
print("%.4f" % (best if sys.argv[2] == "best" else evals[-1])["val_bpb"])
PY
}

make_text >cats.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats cats.txt
run=(--dataset=cats "${tiny[@]}" --device=cpu --sample_interval=10
    --max_new_tokens=12)
evil=$'<script>alert("1")</script>&\033[31m'
expect 0 "$PLIMSOLL" train "${run[@]}" "--out_dir=$evil" --seed=7 \
    "--sample_prompts=['the cat', 'mat 7.']"
expect 0 "$PLIMSOLL" train "${run[@]}" --out_dir=plain --learning_rate=2e-3

# ---- one ----

expect 0 "$PLIMSOLL" report plain/ --out=a.html
says 'written to a.html'
well a.html
alone a.html
last=$(grep val_loss plain/metrics.jsonl | tail -n 1 |
    sed 's/.*"val_loss": \([0-9.]*\).*/\1/')
grep -q "<b>$(printf '%.4f' "$last") ±" a.html || fail "no loss $last"
grep -q 'plimsoll train \\$' a.html || fail "no command"
grep -q '    --learning_rate=0.002' a.html || fail "no key in the command"
grep -q '<h1>plain</h1>' a.html
for program in train update eval sample save; do
    grep -q ">$program, actual</th>" a.html || fail "nothing actual of $program"
done
weights=$(sed -n 's|.*>weights</th>\(.*\)|\1|p' a.html |
    grep -o '[0-9.]* [kMG]B' | sort -u)
[ "$(wc -l <<<"$weights")" = 1 ] || fail "planned and actual: $weights"
# the command makes the same run
bash -c "$(sed -n '/^<pre>plimsoll train/,/<\/pre>/p' a.html |
    sed -e 's/<[^>]*>//g' -e 's/&quot;/"/g' -e "s#^plimsoll#'$PLIMSOLL'#") \
    --out_dir=again" >/dev/null
cmp plain/step-00000020/model.safetensors again/step-00000020/model.safetensors

# the same bytes each time, also on standard output
"$PLIMSOLL" report plain/ --out=- >b.html
cmp a.html b.html

# ---- several ----

expect 0 "$PLIMSOLL" report "$evil" plain --out=two.html
well two.html
alone two.html
grep -q '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;\\x1b\[31m' \
    two.html || fail "the name is not shown"
sed -n '/id="keys"/,/<\/section>/p' two.html >keys
for key in out_dir seed learning_rate sample_prompts; do
    grep -q ">$key</th>" keys || fail "$key is not among what differs"
done
! grep -q '>n_layer<' keys || fail "n_layer doesn't differ"
sed '/<svg/,$d' two.html >results
for which in best last; do
    grep -q ">bits per byte of the $which</th>" results ||
        fail "no bits per byte of the $which in the table of runs"
done
bits plain best >want
grep -q ">$(cat want)</td>" results || fail "not $(cat want) in the table"

# ---- Markdown ----

expect 0 "$PLIMSOLL" report "$evil" plain --format=md --out=runs.md
for picture in loss updates norm rate speed plan plan2; do
    grep -q "(<runs-$picture.svg>)" runs.md || fail "no $picture in runs.md"
    well "runs-$picture.svg"
    alone "runs-$picture.svg"
done
! grep -v '^    ' runs.md | grep -q '<script' || fail "markup in runs.md"
! LC_ALL=C grep -q "$(printf '\033')" runs.md || fail "an escape in runs.md"
expect 0 "$PLIMSOLL" report plain --format=md --out=-
says '^\| best validation loss \|'
says_not 'last bits'

# a run whose last evaluation isn't its best: each loss has its own bits
mkdir -p worse
cp plain/metrics.jsonl worse/
echo '{"step": 21, "train_loss": 9, "val_loss": 9, "train_error": 0.1,' \
    '"val_error": 0.1, "val_bpb": 8.5}' >>worse/metrics.jsonl
expect 0 "$PLIMSOLL" report worse --format=md --out=-
says "^\\| bits per byte of the best \\| $(bits plain best) \\|$"
says '^\| iteration of the best \|'
says '^\| last validation loss \| 9.0000'
says '^\| bits per byte of the last \| 8.5000 \|$'
says_not 'svg'

# ---- what isn't ours stays ----

echo '# My notes on Plimsoll' >README.md
expect 1 "$PLIMSOLL" report plain --out=README.md
says "Plimsoll didn't write it"
echo mine >notes-loss.svg
expect 1 "$PLIMSOLL" report plain --out=notes.md
[ "$(cat notes-loss.svg)" = mine ] || fail "a picture was replaced"
[ ! -e notes.md ] || fail "half a report"
expect 0 "$PLIMSOLL" report plain --out=a.html
expect 0 "$PLIMSOLL" report plain --out=runs.md

# ---- folders of any kind ----

expect 1 "$PLIMSOLL" report absent --out=x.html
says 'absent is not there'
mkdir empty
expect 4 "$PLIMSOLL" report empty --out=x.html
says 'no run is in it'
expect 3 "$PLIMSOLL" report plain --format=gguf --out=x.html
says "a report is 'html' or 'md'"
expect 3 "$PLIMSOLL" export plain --format=md --out=x
expect 2 "$PLIMSOLL" report plain --n_layer=3
[ ! -e x.html ] || fail "a page of nothing"
# of an earlier version, and one that is being written
rm plain/plan.json plain/progress.json
printf '{"step": 20, "lo' >>plain/metrics.jsonl
expect 0 "$PLIMSOLL" report plain --out=old.html
well old.html
grep -q '    --learning_rate=0.002' old.html ||
    fail "no config of the checkpoint"
# not through links
mkdir links
ln -s "$PWD/plain/metrics.jsonl" links/metrics.jsonl
expect 4 "$PLIMSOLL" report links --out=x.html
