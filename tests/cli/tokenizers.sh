#!/usr/bin/env bash
# A model and data of another tokenizer: refused with both named, unless it is
# allowed. What has none can't be compared, and that is said.
set -eu
. tests/support/cli.sh
cd "$TMP_DIR"

make_text >cats.txt
# the same characters as often, so as many tokens, in another order of ids
tr 'ac' 'ca' <cats.txt | sed 's/^/Z/' >swapped.txt
sed 's/^/Y/' cats.txt >first.txt
expect 0 "$PLIMSOLL" prepare --out=data/cats first.txt
expect 0 "$PLIMSOLL" prepare --out=data/other swapped.txt
expect 0 "$PLIMSOLL" train --dataset=cats "${tiny[@]}" --out_dir=out
cmp -s data/cats/meta.json data/other/meta.json && fail "one vocabulary"

both='out/step-00000020 \(char, [0-9]+ tokens, [0-9a-f]{8}\)'
both+=' is not that of data/other \(char, [0-9]+ tokens, [0-9a-f]{8}\)'

# ---- eval ----
expect 0 "$PLIMSOLL" eval out
says_not 'tokenizer'
expect 3 "$PLIMSOLL" eval out --dataset=other
says "$both"
says 'allow_other_tokenizer=True'
expect 0 "$PLIMSOLL" eval out --dataset=other --allow_other_tokenizer=True
says "warning: .*$both"

# ---- init_from ----
expect 3 "$PLIMSOLL" train "${tiny[@]}" --init_from=out/latest \
    --dataset=other --out_dir=tuned
says 'out/latest \(char, .* is not that of data/other \(char, '
[ ! -e tuned/latest ] || fail "it trained"
expect 0 "$PLIMSOLL" train "${tiny[@]}" --init_from=out/latest \
    --dataset=other --out_dir=tuned --allow_other_tokenizer=True
says 'warning: .*is not that of'
# the tokenizer is the reason also where the model has no room for its tokens
expect 0 "$PLIMSOLL" prepare --tokenizer=byte --out=data/byte cats.txt
expect 3 "$PLIMSOLL" train "${tiny[@]}" --init_from=out/latest \
    --dataset=byte --out_dir=bytes
says 'out/latest \(char, .* is not that of data/byte \(byte, 256 tokens, '
# allowed for once: the new run's tokenizer is its data's
expect 0 "$PLIMSOLL" train --resume tuned --max_iters=22
says_not 'is not that of'
! grep -q allow_other tuned/latest/state.json || fail "a consent was kept"

# ---- resume, after prepare was run again ----
mv data/cats data/first
cp -r data/other data/cats
expect 3 "$PLIMSOLL" train --resume out --max_iters=30
says 'out/step-00000020 \(char, .* is not that of data/cats \(char, '
expect 3 "$PLIMSOLL" eval out
says 'is not that of data/cats'
rm -r data/cats
mv data/first data/cats

# ---- nothing to compare with ----
cp -r data/cats data/bare
rm data/bare/meta.json
size=$(sed -n 's/.*"vocab_size": \([0-9]*\).*/\1/p' data/cats/meta.json)
expect 0 "$PLIMSOLL" eval out --dataset=bare --vocab_size="$size"
says 'note: data/bare has no tokenizer'
[ "$(grep -c 'has no tokenizer' <<<"$out")" -eq 1 ] || fail "said twice: $out"
expect 0 "$PLIMSOLL" train --resume out --dataset=bare --vocab_size="$size" \
    --max_iters=22
says 'note: data/bare has no tokenizer'
# neither has one: there is nothing to say
expect 0 "$PLIMSOLL" train --dataset=bare "${tiny[@]}" --vocab_size="$size" \
    --out_dir=plain
expect 0 "$PLIMSOLL" eval plain
says_not 'tokenizer'
# the model alone has none
expect 0 "$PLIMSOLL" eval plain --dataset=cats
says 'note: plain/step-00000020 has no tokenizer'

# ---- a Hugging Face folder's tokenizer.json is its tokenizer ----
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=300 --out=data/bpe cats.txt
expect 0 "$PLIMSOLL" tokenizer train --vocab_size=300 --out=data/bpe2 \
    swapped.txt
expect 0 "$PLIMSOLL" prepare --tokenizer=data/bpe --out=data/one cats.txt
expect 0 "$PLIMSOLL" prepare --tokenizer=data/bpe2 --out=data/two cats.txt
expect 0 "$PLIMSOLL" train --dataset=one "${tiny[@]}" --out_dir=bpe
expect 0 "$PLIMSOLL" export bpe --format=hf --out=share
[ -e share/tokenizer.json ] && [ ! -e share/meta.json ] ||
    fail "not such a folder"
expect 0 "$PLIMSOLL" eval share --dataset=one
says_not 'tokenizer'
# written otherwise, as others would: the same tokenizer all the same
python=$(command -v python3 || true)
if [ -n "$python" ]; then
    "$python" - share/tokenizer.json <<'PY'
import json, sys
path = sys.argv[1]
whole = json.load(open(path))
json.dump(whole, open(path, 'w'), indent=1)
PY
    expect 0 "$PLIMSOLL" eval share --dataset=one
    says_not 'tokenizer'
fi
expect 3 "$PLIMSOLL" eval share --dataset=two
says 'share \(bpe, 300 tokens, [0-9a-f]{8}\) is not that of data/two \(bpe, '
expect 3 "$PLIMSOLL" train "${tiny[@]}" --init_from=share --dataset=two \
    --out_dir=two
says 'is not that of data/two'
# one that can't be read isn't the same
echo '{"model": {"type": "WordPiece"}}' >share/tokenizer.json
expect 3 "$PLIMSOLL" eval share --dataset=one
says 'share/tokenizer.json'
says 'allow_other_tokenizer=True'
expect 0 "$PLIMSOLL" eval share --dataset=one --allow_other_tokenizer=True
says 'warning: .*share/tokenizer.json'
