"""llama.cpp (llama-cpp-python) runs our GGUFs: it cuts text into the same
tokens, and goes on greedily with the same 64 as `plimsoll sample`, up to the
first place where two tokens are about as likely. Of each model's starts one at
least gets to the end."""

import numpy
from llama_cpp import Llama

from common import checkpoint, path, plimsoll, require, tokens_of

NEW_TOKENS = 64
NEAR_TIE = 1e-3  # of logits
TEXT = "the cat number 94 sat on mat 7. é—😀\\\nthe mat\n"
# what the patterns of Llama 3, Qwen and SmolLM2 cut in ways of their own
PATTERNS = """1 22 333 4444 55555 3.14159 v2 x86-64
we'll they've I'd it's WE'LL THEY'VE 'tis can't.
  two spaces,   three\ttab \t mixed  \r\n\r\n\n   indented\n\n
if (a[i] != b) { return "x"; } // !!! ... ---
été naïve Straße Ärger 汉字仮名交じり文 русский 한국어 \u00a0\u3000
😀👍🇩🇪 ½ ² ٣٤
"""


def logits(model):
    return numpy.array(model._ctx.get_logits_ith(-1)[:model.n_vocab()])


def greedy(model, ids):
    """The next tokens, each with how far ahead of the second it was."""
    model.reset()
    model.eval(ids)
    for _ in range(NEW_TOKENS):
        scores = logits(model)
        best = int(scores.argmax())
        second = numpy.delete(scores, best).max()
        yield best, float(scores[best] - second)
        model.eval([best])


def compare(name, model, start):
    """How many tokens are the same: all, or those before a near-tie."""
    ours = plimsoll("sample", name, f"--start={start}", "--num_samples=1",
                    f"--max_new_tokens={NEW_TOKENS}", "--temperature=0")
    ours = ours.removesuffix(b"\n---------------\n")
    ids = model.tokenize(start.encode(), add_bos=False, special=False)
    text = start.encode()
    for count, (token, ahead) in enumerate(greedy(model, ids)):
        text += model.detokenize([token], prev_tokens=ids, special=True)
        if not ours.startswith(text):
            require(ahead < NEAR_TIE,
                    f"{name}: token {count} differs, and it isn't close "
                    f"({ahead:g}):\n{text!r}\n{ours!r}")
            print(f"{name}, {start!r}: {count} tokens, then a near-tie "
                  f"({ahead:g})")
            return count
    require(text == ours, f"{name}:\n{text!r}\n{ours!r}")
    print(f"{name}, {start!r}: {NEW_TOKENS} tokens")
    return NEW_TOKENS


def check(name, text):
    file = path(f"{name}.f32.gguf")
    plimsoll("export", name, "--format=gguf", f"--out={file}")
    model = Llama(file, n_ctx=256, n_threads=2, verbose=False)
    ours = tokens_of(checkpoint(name), text)
    theirs = model.tokenize(text.encode(), add_bos=False, special=False)
    require(ours == theirs, f"{name}: tokens of {text!r}:\n{ours}\n{theirs}")
    require(model.detokenize(theirs, special=True) == text.encode(),
            f"{name}: the text doesn't come back")
    counts = [compare(name, model, start)
              for start in ("the cat", "t", "number")]
    require(max(counts) == NEW_TOKENS,
            f"{name}: from no start the same {NEW_TOKENS} tokens: {counts}")
    model.close()


for name in ("chars", "pairs", "bytes", "bare", "untied", "llama", "llama_bias",
             "qwen3", "qwen3_untied"):
    check(name, TEXT)
for name in ("llama3", "qwen2", "smollm2"):
    with open("README.md", encoding="utf-8") as readme:
        check(name, PATTERNS + readme.read())
check("no_newline", "the cat sat on the mat")

# the other types load and write something
for name in ("chars", "pairs", "llama", "qwen3"):
    for kind in ("f16", "q8_0"):
        file = path(f"{name}.{kind}.gguf")
        plimsoll("export", name, f"--type={kind}", f"--out={file}")
        model = Llama(file, n_ctx=256, n_threads=2, verbose=False)
        ids = model.tokenize(b"the cat", add_bos=False, special=False)
        out = [token for token, _ in greedy(model, ids)]
        print(f"{name}, {kind}: {model.detokenize(out)[:40]!r}")
        model.close()
