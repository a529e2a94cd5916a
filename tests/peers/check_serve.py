"""The openai package completes and streams from `plimsoll serve`; log
probabilities are those of transformers; lm-eval finds the same scores through
serve (local-completions) as through transformers (hf) in the same folder, on
tasks that are made here."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1",
                  TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false",
                  HF_HOME=os.path.join(sys.argv[1], "hf"))

import lm_eval
import openai
import torch
import transformers
from lm_eval.tasks import TaskManager
from transformers import AutoModelForCausalLM, AutoTokenizer

from common import PLIMSOLL, WORK, checkpoint, path, quiet, require

MODEL = "pairs"
CONTEXT = 128
TOLERANCE = 1e-4
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


class Server:
    """A server on a port of its own, until the end of the block."""

    def __enter__(self):
        self.log = open(path("serve.log"), "w+")
        self.process = subprocess.Popen(
            [PLIMSOLL, "serve", MODEL, "--port=0", "--device=cpu"], cwd=WORK,
            stdout=self.log, stderr=subprocess.STDOUT)
        for _ in range(600):
            time.sleep(0.1)
            text = open(self.log.name).read()
            found = re.search(r"^serve: (http://\S+:\d+/)", text, re.M)
            if found:
                self.url = found.group(1) + "v1"
                return self
            require(self.process.poll() is None, f"serve: {text}")
        raise SystemExit("serve doesn't begin")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        require(self.process.wait(timeout=20) == 130,
                f"serve ended with {self.process.returncode}: "
                f"{open(self.log.name).read()}")
        self.log.close()


# ---- the openai package ----

def check_openai(client):
    models = client.models.list().data
    require([m.id for m in models] == [MODEL], f"models: {models}")
    wish = dict(model=MODEL, prompt="the cat number", max_tokens=24, seed=5,
                temperature=0.8, top_p=0.9)
    whole = client.completions.create(**wish)
    require(whole.choices[0].finish_reason in ("length", "stop"),
            f"{whole}")
    require(whole.usage.total_tokens == whole.usage.prompt_tokens +
            whole.usage.completion_tokens, f"{whole.usage}")
    parts = list(client.completions.create(
        stream=True, stream_options={"include_usage": True}, **wish))
    text = "".join(c.text for part in parts for c in part.choices)
    require(text == whole.choices[0].text,
            f"a stream has {text!r}, not {whole.choices[0].text!r}")
    require(parts[-1].usage == whole.usage, f"{parts[-1]}")
    several = client.completions.create(
        model=MODEL, prompt=["the cat", "mat 3."], n=2, max_tokens=8, seed=1)
    require([c.index for c in several.choices] == [0, 1, 2, 3],
            f"{several.choices}")
    stopped = client.completions.create(
        model=MODEL, prompt="the cat number 7 sat", max_tokens=40,
        temperature=0, stop=["."])
    require("." not in stopped.choices[0].text and
            stopped.choices[0].finish_reason == "stop", f"{stopped}")
    for wrong, name in ((dict(max_tokens=CONTEXT), "context_length_exceeded"),
                        (dict(presence_penalty=1.0), None)):
        try:
            client.completions.create(model=MODEL, prompt="the", **wrong)
            raise SystemExit(f"{wrong} was taken")
        except openai.BadRequestError as error:
            require(error.code == name, f"{error}")
    print(f"openai: {len(parts)} parts of a stream, {len(text)} characters")


# ---- log probabilities ----

TEXTS = ["the cat number 35 sat on mat 4.",
         "mat mat \u00e9\u2014\U0001f600 the cat\\\nnumber 7", "z", " "]


def check_logprobs(client, folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    worst = 0.0
    for text in TEXTS:
        ids = tokenizer(text)["input_ids"]
        with torch.no_grad():
            theirs = model(torch.tensor([ids])).logits[0].double()
        theirs = theirs.log_softmax(-1)
        for prompt in (text, ids):
            choice = client.completions.create(
                model=MODEL, prompt=prompt, max_tokens=0, echo=True,
                logprobs=5).choices[0]
            ours = choice.logprobs.token_logprobs
            require(len(ours) == len(ids) and ours[0] is None,
                    f"{text!r}: {ours}")
            require(choice.text == text, f"{choice.text!r} for {text!r}")
            for i in range(1, len(ids)):
                worst = max(worst,
                            abs(ours[i] - theirs[i - 1, ids[i]].item()))
                top = sorted(choice.logprobs.top_logprobs[i].values())[-5:]
                best = theirs[i - 1].topk(5).values.flip(0).tolist()
                worst = max([worst] + [abs(a - b)
                                       for a, b in zip(top, best)])
    require(worst < TOLERANCE, f"log probabilities differ by {worst}")
    print(f"log probabilities: differ by at most {worst:.1e}")


def check_greedy(client, folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = tokenizer("the cat number 3", return_tensors="pt")["input_ids"]
    theirs = model.generate(ids, max_new_tokens=40, do_sample=False,
                            pad_token_id=tokenizer.eos_token_id)
    theirs = tokenizer.decode(theirs[0, ids.shape[1]:],
                              skip_special_tokens=True)
    ours = client.completions.create(model=MODEL, prompt="the cat number 3",
                                     max_tokens=40, temperature=0)
    require(ours.choices[0].text == theirs,
            f"{ours.choices[0].text!r}, not {theirs!r}")
    print(f"greedy: the same {len(theirs)} characters")


# ---- lm-eval ----

def write_tasks(folder):
    """Two tasks that need nothing from elsewhere."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "choices.jsonl"), "w") as out:
        for i in range(40):
            answers = [f" sat on mat {i % 10}.", f" sat on mat {(i + 3) % 10}.",
                       f" mat sat {i}", " on the number"]
            order = [(i + k) % 4 for k in range(4)]
            out.write(json.dumps({
                "query": f"the cat number {i * 7 % 100}",
                "choices": [answers[k] for k in order],
                "label": order.index(0)}) + "\n")
    with open(os.path.join(folder, "pages.jsonl"), "w") as out:
        for i in range(12):
            lines = [f"the cat number {(i + k) * 7 % 100} sat on mat "
                     f"{(i + k) % 10}." for k in range(1 + 3 * i)]
            out.write(json.dumps({"page": "\n".join(lines) + "\n"}) + "\n")
    common = """task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {folder}/{file}
test_split: test
"""
    with open(os.path.join(folder, "cats_choice.yaml"), "w") as out:
        out.write(common.format(name="cats_choice", folder=folder,
                                file="choices.jsonl") + """\
output_type: multiple_choice
doc_to_text: "{{query}}"
doc_to_target: label
doc_to_choice: choices
target_delimiter: ""
metric_list:
  - metric: acc
  - metric: acc_norm
""")
    with open(os.path.join(folder, "cats_pages.yaml"), "w") as out:
        out.write(common.format(name="cats_pages", folder=folder,
                                file="pages.jsonl") + """\
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{page}}"
metric_list:
  - metric: word_perplexity
  - metric: byte_perplexity
  - metric: bits_per_byte
""")


def evaluate(tasks, model, arguments, batch_size):
    with quiet():
        found = lm_eval.simple_evaluate(
            model=model, model_args=arguments, batch_size=batch_size,
            tasks=["cats_choice", "cats_pages"], bootstrap_iters=0,
            task_manager=TaskManager(include_path=tasks,
                                     include_defaults=False))
    scores = {}
    for task, values in found["results"].items():
        for name, value in values.items():
            if isinstance(value, float):
                scores[f"{task} {name.split(',')[0]}"] = value
    return scores, found["samples"]


def check_lm_eval(server, folder):
    tasks = path("tasks")
    write_tasks(tasks)
    # local-completions keeps a token for the answer and one for the prefix: so
    # its windows of a long page are two tokens shorter than hf's
    theirs, their_samples = evaluate(
        tasks, "hf", dict(pretrained=folder, device="cpu", dtype="float32",
                          max_length=CONTEXT - 2), 4)
    require(len(theirs) >= 5, f"lm-eval has too few scores: {theirs}")
    for requests, batch in (("True", 1), ("True", 4), ("False", 1)):
        ours, our_samples = evaluate(
            tasks, "local-completions",
            dict(base_url=server.url + "/completions", model=MODEL,
                 tokenizer=folder, tokenizer_backend="huggingface",
                 tokenized_requests=requests == "True",
                 max_length=CONTEXT, num_concurrent=3 if batch == 1 else 1,
                 max_retries=2), batch)
        for name, value in theirs.items():
            require(name in ours, f"{name} is missing: {ours}")
            is_share = " acc" in name
            require(ours[name] == value if is_share else
                    math.isclose(ours[name], value, rel_tol=1e-4),
                    f"{name}: {ours[name]} through serve, {value} through "
                    f"transformers")
        worst = compare_samples(our_samples, their_samples)
        print(f"lm-eval, {'tokens' if requests == 'True' else 'texts'}, "
              f"batches of {batch}: {len(theirs)} scores are equal, log "
              f"likelihoods differ by at most {worst:.1e}")
    for name, value in theirs.items():
        print(f"    {name}: {value:.6g}")


def compare_samples(ours, theirs):
    """Every log likelihood, and whether it is the greedy one."""
    worst = 0.0
    for a, b in zip(ours["cats_choice"], theirs["cats_choice"]):
        require(a["doc_id"] == b["doc_id"], "other documents")
        for (x, x_greedy), (y, y_greedy) in zip(a["filtered_resps"],
                                                b["filtered_resps"]):
            require(str(x_greedy) == str(y_greedy), f"{a}: greedy or not")
            worst = max(worst, abs(float(x) - float(y)))
    require(worst < 1e-3, f"log likelihoods differ by {worst}")
    return worst


def main():
    folder = checkpoint(MODEL)
    with Server() as server:
        client = openai.OpenAI(base_url=server.url, api_key="none",
                               max_retries=0)
        check_openai(client)
        check_logprobs(client, folder)
        check_greedy(client, folder)
        check_lm_eval(server, folder)


main()
