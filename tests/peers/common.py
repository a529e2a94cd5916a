"""What the checks against other programs share.

script/peers trains the models, then runs each check as

    python tests/peers/check_<peer>.py WORK

with $PLIMSOLL the program and $WRITE_EVENTS a writer of event files. A check
prints what it compared and ends with an exception where something differs.
"""

import contextlib
import os
import subprocess
import sys

WORK = sys.argv[1]
PLIMSOLL = os.environ["PLIMSOLL"]


def plimsoll(*args, stdin=None):
    """Standard output of a command, as bytes."""
    result = subprocess.run([PLIMSOLL, *args], cwd=WORK, input=stdin,
                            capture_output=True, check=False)
    if result.returncode != 0:
        raise SystemExit(f"plimsoll {' '.join(args)}: exit code "
                         f"{result.returncode}\n{result.stderr.decode()}")
    return result.stdout


def path(*names):
    return os.path.join(WORK, *names)


def checkpoint(model):
    """The folder with the weights of an out_dir."""
    for name in ("best", "latest", "ckpt"):
        if os.path.exists(path(model, name, "model.safetensors")):
            return path(model, name)
    raise SystemExit(f"{model} has no checkpoint")


def require(condition, message):
    if not condition:
        raise SystemExit(f"FAILED: {message}")


def tokens_of(folder, text):
    """Token ids of a text by a folder's tokenizer."""
    out = plimsoll("tokenize", f"--tokenizer={folder}", stdin=text.encode())
    return [int(line) for line in out.split()]


def bias_of(folder):
    """Whether training from a folder has biases."""
    out = plimsoll("config", f"--init_from={folder}").decode()
    lines = [line.split() for line in out.splitlines()]
    return {"True": True, "False": False}[
        next(words[2] for words in lines if words[0] == "bias")]


# Matrices of products: Hugging Face's GPT-2 has [in, out], the others [out, in].
def is_product(name):
    return name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight"))


def weights(folder):
    """model.safetensors as numpy arrays, products [out, in]."""
    from safetensors.numpy import load_file
    loaded = load_file(os.path.join(folder, "model.safetensors"))
    return {name: array.T if is_product(name) else array
            for name, array in loaded.items()}


@contextlib.contextmanager
def quiet():
    """What lm-eval says of its progress goes to a file, which an error shows."""
    log, kept = open(path("lm_eval.log"), "w+"), os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    except BaseException:
        os.write(kept, open(log.name, "rb").read()[-4000:])
        raise
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        log.close()
