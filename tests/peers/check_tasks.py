"""`plimsoll eval --task` finds in every item what lm-eval finds through
transformers in the same folder: the log likelihoods, which candidate is
likeliest, and so the same accuracies, with and without examples before them.
And bits per byte are those of transformers' losses."""

import json
import math
import os
import re
import shutil
import sys

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1",
                  TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false",
                  HF_HOME=os.path.join(sys.argv[1], "hf"))

import lm_eval
import numpy
import torch
import transformers
from lm_eval.tasks import TaskManager
from transformers import AutoModelForCausalLM, AutoTokenizer

from common import checkpoint, path, plimsoll, quiet, require

MODEL = "pairs"
CONTEXT = 128
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


# ---- tasks ----

def cat(i):
    return f"the cat number {i * 7 % 100}"


def endings(i):
    """The first is right; others are near, odd, longer, of other letters."""
    return [f"sat on mat {i % 10}.", f"sat on mat {(i + 3) % 10}.",
            f"mat number {i} sat on the cat number {i % 7} sat",
            "\u00e9\u2014\U0001f600 on mat"]


def shuffled(i, texts):
    order = [(i * 3 + k) % len(texts) for k in range(len(texts))]
    return [texts[k] for k in order], order.index(0)


def queries():
    for i in range(40):
        choices, gold = shuffled(i, endings(i))
        # blanks at the end, nothing at all, and more than the window holds
        query = (cat(i) + "  \n" if i % 9 == 4 else
                 "" if i % 13 == 6 else
                 f"{cat(i)} sat on mat {i % 10}. \u00e9\u2014\U0001f600\\\n" *
                 40 + cat(i) if i % 10 == 8 else cat(i))
        yield {"query": query, "choices": choices, "gold": gold}


def hellaswags():
    for i in range(32):
        texts, label = shuffled(i, endings(i))
        texts[1] = f"  [step] {texts[1]}  then [substeps] on "
        yield {"ind": i, "activity_label": "Cats [note]", "ctx_a": cat(i) +
               " [header] on mat [title] number", "ctx_b":
               ["the MAT", "", "\u00e9t\u00c9 sat", "x"][i % 4], "ctx": "-",
               "endings": texts, "label": str(label) if i % 2 else label}


def arcs():
    for i in range(32):
        texts, gold = shuffled(i, endings(i)[:3 + i % 2])
        labels = "ABCD" if i % 3 else "1234"
        yield {"id": f"q{i}", "question": cat(i) + "?", "choices": {
            "text": texts, "label": list(labels[:len(texts)])},
            "answerKey": labels[gold]}


def piqas():
    for i in range(32):
        texts, gold = shuffled(i, endings(i)[:2])
        yield {"goal": cat(i), "sol1": texts[0], "sol2": texts[1],
               "label": gold}


def winograndes():
    for i in range(32):
        options, gold = shuffled(i, [f"cat number {i * 7 % 100}",
                                     f"mat {i % 10}"])
        yield {"sentence": f"the _ sat on mat {i % 10}. ",
               "option1": options[0], "option2": options[1],
               "answer": str(gold + 1)}


def schemas():
    for i in range(32):
        options, gold = shuffled(i, [cat(i), cat(i + 1), cat(i + 2)])
        yield {"context_options": options, "gold": gold,
               "continuation": f"sat on mat {i % 10}."}


def lambadas():
    for i in range(32):
        yield {"text": f"{cat(i)} sat on mat {i % 10}. \u00e9\u2014\U0001f600"
                       f"\\\n" * (1 + 5 * (i % 3)) + f"{cat(i)} sat on mat"}


def contexts():
    """Not the texts of another task, cut elsewhere: lm-eval takes requests that
    have all tokens but the last in common for one."""
    for i in range(32):
        yield {"context": f"on mat {i % 10}. {cat(i)} sat on", "continuation":
               f"mat {i % 10}." if i % 2 else "mat"}


COMMON = """task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {folder}/{name}.jsonl
test_split: test
fewshot_split: test
fewshot_config:
  sampler: first_n
"""
CHOICE = """output_type: multiple_choice
metric_list:
  - metric: acc
  - metric: acc_norm
  - metric: acc_bytes
"""
LANGUAGE = """output_type: loglikelihood
target_delimiter: ""
metric_list:
  - metric: perplexity
  - metric: acc
"""
QUESTION = r'''doc_to_text: "Question: {{%s}}\nAnswer:"
'''
TASKS = {
    "query": (queries, CHOICE + """doc_to_text: "{{query}}"
doc_to_target: gold
doc_to_choice: choices
"""),
    "hellaswag": (hellaswags, CHOICE + """process_docs: !function \
forms.hellaswag
doc_to_text: "{{query}}"
doc_to_target: "{{label}}"
doc_to_choice: choices
"""),
    "arc": (arcs, CHOICE + QUESTION % "question" + """doc_to_target: \
"{{choices.label.index(answerKey)}}"
doc_to_choice: "{{choices.text}}"
"""),
    "piqa": (piqas, CHOICE + QUESTION % "goal" + """doc_to_target: label
doc_to_choice: "{{[sol1, sol2]}}"
"""),
    "winogrande": (winograndes, CHOICE + """doc_to_text: !function forms.gold
doc_to_target: !function forms.rest
doc_to_choice: !function forms.options
"""),
    "schema": (schemas, CHOICE + """doc_to_text: !function forms.schema_gold
doc_to_target: !function forms.schema_rest
doc_to_choice: !function forms.schema_options
"""),
    "lambada": (lambadas, LANGUAGE + """doc_to_text: \
"{{text.split(' ')[:-1]|join(' ')}}"
doc_to_target: "{{' '+text.split(' ')[-1]}}"
"""),
    "context": (contexts, LANGUAGE + """doc_to_text: "{{context}}"
doc_to_target: "{{' '+continuation}}"
"""),
}
FORMS = """from lm_eval.tasks.hellaswag.utils import process_docs as hellaswag


def gold(doc):
    return {"1": 0, "2": 1}[doc["answer"]]


def rest(doc):
    return doc["sentence"][doc["sentence"].index("_") + 1:].strip()


def options(doc):
    head = doc["sentence"][:doc["sentence"].index("_")]
    return [head + doc["option1"], head + doc["option2"]]


def schema_gold(doc):
    return doc["gold"]


def schema_rest(doc):
    return doc["continuation"]


def schema_options(doc):
    return doc["context_options"]
"""


def write_tasks(folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "forms.py"), "w") as out:
        out.write(FORMS)
    for name, (items, more) in TASKS.items():
        with open(os.path.join(folder, name + ".jsonl"), "w") as out:
            for item in items():
                if name == "hellaswag": # its column has one type for them
                    item["label"] = str(item["label"])
                out.write(json.dumps(item) + "\n")
        with open(os.path.join(folder, name + ".yaml"), "w") as out:
            out.write(COMMON.format(name=name, folder=folder) + more)


# ---- lm-eval ----

def theirs(folder, tasks, names, shots):
    with quiet():
        found = lm_eval.simple_evaluate(
            model="hf", model_args=dict(pretrained=folder, device="cpu",
                                        dtype="float32", max_length=CONTEXT),
            batch_size=4, tasks=names, num_fewshot=shots, bootstrap_iters=0,
            log_samples=True, task_manager=TaskManager(
                include_path=tasks, include_defaults=False))
    return found["results"], found["samples"]


def ours(tasks, shots):
    out = json.loads(plimsoll("eval", MODEL, f"--task={tasks}", "--json",
                              f"--shots={shots}", "--items=items.jsonl",
                              "--device=cpu"))
    items = {}
    with open(path("items.jsonl")) as lines:
        for line in map(json.loads, lines):
            items.setdefault(line["task"], []).append(line)
    return {task["label"]: task for task in out["tasks"]}, items, out


def compare_items(name, mine, samples):
    """The largest difference of log likelihoods."""
    worst = 0.0
    samples = sorted(samples, key=lambda sample: sample["doc_id"])
    require(len(mine) == len(samples), f"{name}: {len(mine)} items")
    for item, sample in zip(mine, samples):
        responses = sample["filtered_resps"]
        scores = numpy.array([float(score) for score, _ in responses])
        require(item["line"] == sample["doc_id"] + 1, f"{name}: {item}")
        require(len(scores) == len(item["logprobs"]), f"{name}: {item}")
        worst = max(worst, float(numpy.abs(scores - item["logprobs"]).max()))
        if "acc" in item:
            require(item["acc"] == int(scores.argmax()),
                    f"{name}, line {item['line']}: {item}, {scores}")
            require(float(item["acc"] == item["gold"]) == sample["acc"],
                    f"{name}, line {item['line']}: {item}")
        for measure in ("acc_norm", "acc_bytes"):
            require(measure not in item or
                    float(item[measure] == item["gold"]) == sample[measure],
                    f"{name}, line {item['line']}, {measure}: {item}")
        greedy = str(responses[item["gold"]][1]) == "True"
        require(item["greedy"] == greedy, f"{name}, line {item['line']}")
    require(worst < 1e-3, f"{name}: log likelihoods differ by {worst}")
    return worst


def compare(tasks, folder, shots, names):
    results, samples = theirs(folder, tasks, names, shots)
    found, items, whole = ours(tasks, shots)
    for name in names:
        worst = compare_items(name, items[name], samples[name])
        values = {key.split(",")[0]: value
                  for key, value in results[name].items()}
        text = []
        for measure in ("acc", "acc_norm", "acc_bytes", "perplexity"):
            if measure not in values or measure not in found[name]:
                continue
            mine, other = found[name][measure], values[measure]
            require(mine == other if measure != "perplexity" else
                    math.isclose(mine, other, rel_tol=1e-4),
                    f"{name}: {measure} is {mine}, lm-eval has {other}")
            text.append(f"{measure} {mine:.4g}")
            error = results[name].get(measure + "_stderr,none")
            if measure != "perplexity" and isinstance(error, float):
                require(math.isclose(found[name][measure + "_stderr"], error,
                                     rel_tol=1e-9, abs_tol=1e-12),
                        f"{name}: {measure} +- {error}")
        print(f"{name}, {shots} shots: {', '.join(text)}; {found[name]['cut']} "
              f"of {len(items[name])} cut; log likelihoods differ by at most "
              f"{worst:.1e}")
    centred = [(found[n]["acc_tokens" if "acc_tokens" in found[n] else "acc"] -
                found[n]["chance"]) / (1 - found[n]["chance"]) for n in found]
    require(math.isclose(whole["centred"], sum(centred) / len(centred),
                         rel_tol=1e-12), f"centred: {whole['centred']}")


# ---- bits per byte ----

def check_bpb(folder):
    """On data that has one crop, whose last token is a special one."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    special = tokenizer.eos_token_id
    ids = numpy.fromfile(path("data", MODEL, "val.bin"), dtype=numpy.uint16)
    ids = ids[-CONTEXT - 1:]
    require(ids[-1] == special, f"the data ends with {ids[-1]}")
    os.makedirs(path("data", "one"), exist_ok=True)
    for name in ("train.bin", "val.bin"):
        ids.tofile(path("data", "one", name))
    shutil.copy(path("data", MODEL, "tokenizer.json"), path("data", "one"))
    said = plimsoll("eval", MODEL, "--dataset=one", "--eval_iters=1",
                    "--eval_batch_size=1", "--device=cpu").decode()
    mine = float(re.search(r", val bpb (\d+\.\d+) ", said).group(1))
    crop = torch.tensor(ids.astype(numpy.int64))
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    with torch.no_grad():
        scores = model(crop[None, :-1]).logits[0].double().log_softmax(-1)
    nats = count = 0
    for row, token in enumerate(crop[1:].tolist()):
        if token != special:
            nats -= scores[row, token].item()
            count += len(bytes_of(tokenizer, token))
    other = nats / math.log(2) / count
    require(abs(mine - other) < 1e-4,
            f"bits per byte are {mine}, transformers has {other}")
    print(f"bits per byte: {mine:.4f}, by transformers {other:.6f} ({count} "
          f"bytes)")


def bytes_of(tokenizer, token):
    """A byte-level token's bytes, by the alphabet of GPT-2."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, more = {chr(b): b for b in visible}, 0
    for b in range(256):
        if b not in visible:
            table[chr(256 + more)] = b
            more += 1
    return bytes(table[c] for c in tokenizer.convert_ids_to_tokens(token))


def main():
    folder = checkpoint(MODEL)
    tasks = path("all_tasks")
    write_tasks(tasks)
    compare(tasks, folder, 0, list(TASKS))
    compare(tasks, folder, 2, list(TASKS))
    check_bpb(folder)


main()
