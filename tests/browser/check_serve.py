"""check_serve.py WORK: the page of `plimsoll serve` in a browser, with a model
that writes HTML and has a name that is HTML."""

import json
import pathlib
import sys
import urllib.request

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from common import (Program, complaints_of, open_browser, prefer, requests_of,
                    resize, run, wait_for)

TINY = ["--dataset=t", "--n_layer=2", "--n_head=2", "--n_embd=32",
        "--block_size=64", "--batch_size=8", "--gradient_accumulation_steps=1",
        "--eval_iters=2", "--eval_interval=150", "--max_iters=150",
        "--warmup_iters=10", "--lr_decay_iters=150", "--learning_rate=1e-2",
        "--threads=1"]
NAME = "<img src=x onerror=window.bad=1>"
LINE = "<script>window.bad=1</script><img src=x onerror=window.bad=1>\u00e9\u2014\n"


def text_of(browser, css):
    return browser.execute_script(
        "return document.querySelector(arguments[0]).textContent", css)


def count_of(browser, css):
    return browser.execute_script(
        "return document.querySelectorAll(arguments[0]).length", css)


def fill(browser, name, value):
    browser.execute_script(
        "document.getElementById(arguments[0]).value = arguments[1]", name,
        value)


def wait_for_end(browser):
    wait_for("an answer", lambda: "nats per token" in text_of(browser,
                                                              "#status"))


def ask(address, **request):
    """The same as any other client asks."""
    asked = urllib.request.Request(
        address + "v1/completions", json.dumps(request).encode(),
        {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked) as answer:
        return json.load(answer)


# ---- the checks ----

def it_says_which_model(browser, address):
    browser.get(address)
    wait_for("the model", lambda: "tokens of context" in text_of(browser,
                                                                 "#model"))
    assert text_of(browser, "#model").startswith(NAME + ": 64 tokens")


def it_writes_what_the_api_writes(browser, address):
    fill(browser, "prompt", "<script>")
    fill(browser, "seed", "5")
    fill(browser, "max_tokens", "40")
    browser.find_element(By.ID, "prompt").send_keys(Keys.CONTROL + Keys.ENTER)
    wait_for_end(browser)
    answer = ask(address, prompt="<script>", seed=5, max_tokens=40, echo=True,
                 temperature=0.8, logprobs=10)
    choice = answer["choices"][0]
    assert text_of(browser, "#text") == choice["text"], (
        text_of(browser, "#text"), choice["text"])
    assert count_of(browser, "#text .token") == len(
        choice["logprobs"]["tokens"])
    assert count_of(browser, "#text .prompt") == answer["usage"][
        "prompt_tokens"]
    assert "40 of them written" in text_of(browser, "#status")
    return choice


def what_it_writes_is_text(browser):
    """Nothing that the model wrote became a part of the page."""
    assert "<script>" in text_of(browser, "#text")
    assert count_of(browser, "#text :not(.token)") == 0
    assert count_of(browser, "#text .token *") == 0
    assert count_of(browser, "script") == 1 and count_of(browser, "img") == 0
    assert browser.execute_script("return window.bad") is None


def tokens_have_alternatives(browser, choice):
    """By the keyboard and by the mouse."""
    tokens = browser.find_elements(By.CSS_SELECTOR, "#text .token")
    browser.execute_script("arguments[0].focus()", tokens[0])
    assert "no probability" in text_of(browser, "#token")
    for _ in range(4):
        ActionChains(browser).send_keys(Keys.ARROW_RIGHT).perform()
    top = choice["logprobs"]["top_logprobs"][4]
    shown = browser.execute_script(
        "return [...document.querySelectorAll('#choices tbody meter')]"
        ".map((one) => one.value)")
    assert len(shown) == len(top), (shown, top)
    assert shown == sorted(shown, reverse=True), shown
    assert browser.switch_to.active_element == tokens[4]
    assert count_of(browser, "#text .token[tabindex='0']") == 1
    assert tokens[4].get_attribute("aria-label") == text_of(browser, "#token")
    ActionChains(browser).send_keys(Keys.END).perform()
    assert browser.switch_to.active_element == tokens[-1]
    ActionChains(browser).move_to_element(tokens[2]).perform()
    wait_for("the other token", lambda: text_of(browser, "#token") ==
             tokens[2].get_attribute("aria-label"))


def a_prompt_is_scored(browser, address):
    fill(browser, "prompt", LINE)
    browser.find_element(By.ID, "score").click()
    wait_for("the score", lambda: "0 of them written" in text_of(browser,
                                                                 "#status"))
    answer = ask(address, prompt=LINE, max_tokens=0, echo=True, logprobs=0)
    scores = answer["choices"][0]["logprobs"]["token_logprobs"][1:]
    mean = -sum(scores) / len(scores)
    assert f"{mean:.3f} nats per token" in text_of(browser, "#status")
    assert text_of(browser, "#text") == LINE, text_of(browser, "#text")


def it_is_light_dark_and_narrow(browser):
    backs = []
    for scheme in ("light", "dark"):
        prefer(browser, scheme)
        backs.append(browser.execute_script(
            "return getComputedStyle(document.body).backgroundColor"))
    assert backs[0] != backs[1], backs
    resize(browser, 360, 780)
    assert browser.execute_script(
        "return document.documentElement.scrollWidth") <= 360
    resize(browser, 1200, 1000)
    prefer(browser, "light")


def it_can_be_heard(browser):
    """Every control has a name, and what changes is announced."""
    nameless = browser.execute_script("""
        return [...document.querySelectorAll('input, textarea')].filter(
            (one) => one.labels.length === 0).length""")
    assert nameless == 0, nameless
    assert count_of(browser, "#status[role=status]") == 1
    assert count_of(browser, "#token[aria-live=polite]") == 1


def quiet(browser, address):
    asked = requests_of(browser)
    others = [url for url in asked if not url.startswith(
        (address.split("?")[0], "data:", "chrome:", "about:"))]
    assert asked and not others, others
    assert not complaints_of(browser)


def what_is_wrong_is_said(browser):
    fill(browser, "max_tokens", "9999")
    browser.find_element(By.ID, "write").click()
    wait_for("a message", lambda: "context has 64 tokens" in text_of(
        browser, "#status"))
    assert count_of(browser, "#status.wrong") == 1
    complaints_of(browser)  # the browser's own word on the answer


def a_token_lets_in(browser, work):
    server = Program(work, "serve", NAME, "--port=0", "--token=secret-token-1")
    address = server.address()
    browser.get(address.split("?")[0])
    complaints_of(browser)  # of the refusal
    it_says_which_model(browser, address)
    fill(browser, "prompt", "<script>")
    browser.find_element(By.ID, "write").click()
    wait_for_end(browser)
    quiet(browser, address)
    server.end()


def main(work):
    (work / "in.txt").write_text(LINE * 300)
    run(work, "tokenizer", "train", "--vocab_size=300", "--out=bpe", "in.txt")
    run(work, "prepare", "--tokenizer=bpe", "--out=data/t", "in.txt")
    run(work, "train", *TINY, f"--out_dir={NAME}")
    browser = open_browser()
    try:
        server = Program(work, "serve", NAME, "--port=0")
        address = server.address()
        it_says_which_model(browser, address)
        choice = it_writes_what_the_api_writes(browser, address)
        what_it_writes_is_text(browser)
        tokens_have_alternatives(browser, choice)
        a_prompt_is_scored(browser, address)
        it_is_light_dark_and_narrow(browser)
        it_can_be_heard(browser)
        quiet(browser, address)
        what_is_wrong_is_said(browser)
        server.end()
        browser.get("about:blank")
        requests_of(browser)
        complaints_of(browser)
        a_token_lets_in(browser, work)
    finally:
        Program.end_all()
        browser.quit()
    print("serve: the page is right in a browser")


main(pathlib.Path(sys.argv[1]).resolve())
