"""check_live.py WORK: the page of `plimsoll live` in a browser."""

import json
import pathlib
import sys
import time

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from common import (Program, complaints_of, metrics_of, open_browser, prefer,
                    requests_of, resize, run, wait_for)

TINY = ["--dataset=t", "--n_layer=2", "--n_head=2", "--n_embd=32",
        "--block_size=32", "--batch_size=4", "--gradient_accumulation_steps=2",
        "--eval_iters=4", "--eval_interval=40", "--max_iters=160",
        "--warmup_iters=10", "--lr_decay_iters=160", "--threads=1",
        "--sample_interval=80", "--max_new_tokens=40",
        "--sample_prompts=the cat"]


def text_of(browser, css):
    return browser.execute_script(
        "const e = document.querySelector(arguments[0]);"
        "return e ? e.textContent : null", css)


def count_of(browser, css):
    return browser.execute_script(
        "return document.querySelectorAll(arguments[0]).length", css)


def open_numbers(browser, chart):
    browser.execute_script(
        "document.querySelector(arguments[0] + ' details').open = true", chart)
    wait_for("a table", lambda: count_of(browser, chart + " tbody tr"))


def table_of(browser, chart, series, column=0):
    """The numbers that a chart draws: {axis text: value}."""
    return browser.execute_script("""
        const [chart, series, column] = arguments;
        const table = [...document.querySelectorAll(chart + ' table')]
            .find((one) => one.dataset.series === series);
        return table ? [...table.querySelectorAll('tbody tr')].map((row) =>
            [row.querySelector('th').textContent,
             Number(row.querySelectorAll('td')[column].dataset.value)]) : null
        """, chart, series, column)


def same(found, wanted, what):
    assert found is not None, f"no table of {what}"
    assert len(found) == len(wanted), (what, len(found), len(wanted))
    for (where, value), (step, number) in zip(found, wanted):
        assert where.replace(",", "") == str(step), (what, where, step)
        assert value == number, (what, step, value, number)


def tile_of(browser, name):
    return browser.execute_script("""
        const found = [...document.querySelectorAll('.tile')].find((one) =>
            one.querySelector('dt').textContent === arguments[0]);
        return found ? found.querySelector('dd').textContent : null""", name)


def best_of(evals):
    return min(evals, key=lambda line: line["val_loss"])


# ---- the checks ----

def it_follows_a_run_to_its_end(browser, work):
    live = Program(work, "live", "--port=0", "--until_eof", "followed")
    browser.get(live.address())
    browser.execute_script("window.neverReloaded = true")
    wait_for("a page that waits", lambda: "waiting" in (
        text_of(browser, ".pill") or ""))
    # in sittings, so that a fast machine shows each of them
    for until in [100, 250, 400]:
        how = [*TINY, "--out_dir=followed"] if until == 100 else [
            "--resume", "followed"]
        training = Program(work, "train", *how, f"--max_iters={until}")
        wait_for(f"step {until}", lambda: text_of(
            browser, ".far b") == f"step {until}", 240)
        assert training.process.wait() == 0
        training.end()
    wait_for("the end of the run",
             lambda: text_of(browser, ".pill") == "done")
    assert browser.execute_script("return window.neverReloaded")
    return live


def the_curves_hold_the_numbers(browser, work):
    updates, evals = metrics_of(work / "followed")
    for chart in ["#chart-loss", "#chart-gradient-norm",
                  "#chart-learning-rate"]:
        open_numbers(browser, chart)
    for chart, series, key in [
            ("#chart-loss", "train", "loss"),
            ("#chart-gradient-norm", "gradient norm", "grad_norm"),
            ("#chart-learning-rate", "learning rate", "lr")]:
        same(table_of(browser, chart, series),
             [(line["step"], line[key]) for line in updates], series)
    same(table_of(browser, "#chart-loss", "validation"),
         [(line["step"], line["val_loss"]) for line in evals], "validation")
    same(table_of(browser, "#chart-loss", "validation", 1),
         [(line["step"], line["val_error"]) for line in evals], "errors")
    same(table_of(browser, "#chart-loss", "validation", 2),
         [(line["step"], line["val_bpb"]) for line in evals], "bits per byte")
    for where in ["summary", "tip"]:
        assert f"{evals[-1]['val_bpb']:.4f} bits per byte" in said_of(
            browser, where), (where, said_of(browser, where))
    assert count_of(browser, "#chart-loss path.error") >= len(evals)
    assert count_of(browser, "#chart-loss circle.dot") >= len(evals)
    assert f"{updates[-1]['loss']:.4f}" in text_of(browser, ".tiles")
    best = best_of(evals)
    assert tile_of(browser, "best validation loss") == (
        f"{best['val_loss']:.4f}{best['val_bpb']:.4f} bits per byte at step "
        f"{best['step']}"), tile_of(browser, "best validation loss")
    assert tile_of(browser, "validation loss") == (
        f"{evals[-1]['val_loss']:.4f}± {evals[-1]['val_error']:.4f}, "
        f"{evals[-1]['val_bpb']:.4f} bits per byte at step "
        f"{evals[-1]['step']}"), tile_of(browser, "validation loss")


def said_of(browser, where):
    """Of the last evaluation: by the summary, or beside the cursor there."""
    if where == "summary":
        return text_of(browser, "#chart-loss p.unseen")
    chart = browser.find_element(By.CSS_SELECTOR, "#chart-loss svg.plot")
    for _ in range(101):  # a hundredth each
        chart.send_keys(Keys.ARROW_RIGHT)
    return text_of(browser, "#chart-loss .tip")


def rows(browser):
    return len(table_of(browser, "#chart-loss", "train"))


def it_zooms(browser):
    whole = rows(browser)
    chart = browser.find_element(By.CSS_SELECTOR, "#chart-loss svg.plot")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})",
                           chart)
    reset = browser.find_element(By.ID, "reset")
    assert not reset.is_enabled()
    # by dragging
    ActionChains(browser).move_to_element_with_offset(chart, -100, 0) \
        .click_and_hold().move_by_offset(200, 0).release().perform()
    wait_for("a part", lambda: 3 < rows(browser) < whole)
    dragged = rows(browser)
    reset.click()
    assert rows(browser) == whole
    # by the buttons
    browser.find_element(By.ID, "in").click()
    assert whole / 2 - 2 <= rows(browser) <= whole / 2 + 2
    browser.find_element(By.ID, "out").click()
    assert rows(browser) == whole
    # by the keyboard
    chart.send_keys(Keys.ARROW_RIGHT)
    chart.send_keys("+")
    assert rows(browser) < whole
    assert "train" in text_of(browser, "#chart-loss output")
    chart.send_keys("0")
    assert rows(browser) == whole
    # by the wheel
    ActionChains(browser).move_to_element(chart).perform()
    browser.execute_script("""
        arguments[0].focus();
        arguments[0].dispatchEvent(new WheelEvent('wheel',
            {deltaY: -100, clientX: 600, clientY: 300, bubbles: true,
             cancelable: true}))""", chart)
    assert rows(browser) < whole
    ActionChains(browser).double_click(chart).perform()
    assert rows(browser) == whole
    return dragged


def it_shows_other_axes(browser):
    def choose(axis):
        browser.execute_script("""
            const select = document.getElementById('axis');
            select.value = arguments[0];
            select.dispatchEvent(new Event('change'))""", axis)
        return [where for where, _ in table_of(browser, "#chart-loss",
                                               "train")]
    steps = choose("step")
    tokens = choose("tokens")
    times = choose("time")
    assert steps[4] == "4" and tokens[4] == "1,024", (steps[4], tokens[4])
    assert times[-1].endswith("s"), times[-1]
    choose("step")
    smooth = "document.getElementById('smooth')"
    faint = count_of(browser, "#chart-loss path.faint")
    browser.execute_script(f"{smooth}.value = 0;"
                           f"{smooth}.dispatchEvent(new Event('input'))")
    assert faint == 1 and count_of(browser, "#chart-loss path.faint") == 0


def the_line_is_there(browser, work):
    plan = json.loads((work / "followed/plan.json").read_text())
    names = browser.execute_script(
        "return [...document.querySelectorAll('#line svg .name')]"
        ".map((one) => one.textContent)")
    assert names == plan["programs"], names
    assert count_of(browser, "#line svg .ring") == 2
    assert count_of(browser, "#line svg .held") >= 3
    weights = browser.execute_script(
        "return [...document.querySelectorAll('#line tbody tr')]"
        ".find((row) => row.textContent.startsWith('weights'))"
        ".querySelector('td').dataset.value")
    assert int(weights) == plan["classes"]["weights"][0], weights
    actual = browser.execute_script(
        "return [...document.querySelectorAll('#line tbody tr')]"
        ".find((row) => row.textContent.startsWith('weights'))"
        ".querySelectorAll('td')[1].dataset.value")
    assert actual == weights, (actual, weights)
    assert count_of(browser, "#line svg .actual") >= 3 * len(names)


def samples_and_settings_are_there(browser, work):
    summaries = browser.execute_script(
        "return [...document.querySelectorAll('#samples summary')]"
        ".map((one) => one.textContent)")
    assert summaries[0].startswith("step 400"), summaries
    last = (work / "followed/samples.jsonl").read_text().splitlines()[-1]
    assert json.loads(last)["text"] in text_of(browser, "#samples blockquote")
    settings = text_of(browser, "#config table")
    assert "n_embd" in settings and "command line" in settings
    assert "beta1" not in settings
    browser.find_element(By.ID, "all-keys").click()
    assert "beta1" in text_of(browser, "#config table")


def it_is_light_and_dark(browser):
    def back():
        return browser.execute_script(
            "return getComputedStyle(document.body).backgroundColor")
    prefer(browser, "light")
    light = back()
    prefer(browser, "dark")
    dark = back()
    assert light != dark, light
    button = browser.find_element(By.ID, "theme")
    button.click()  # light, whatever the system says
    assert back() == light, back()
    button.click()  # dark
    assert back() == dark
    prefer(browser, "light")
    assert back() == dark
    button.click()  # as the system
    assert back() == light


def it_is_as_wide_as_a_phone(browser):
    for width in [360, 320, 768]:
        resize(browser, width, 780)
        time.sleep(0.3)
        wide = browser.execute_script(
            "return document.documentElement.scrollWidth")
        assert wide <= width, (width, wide)
    resize(browser, 1200, 1000)


def it_can_be_heard_and_reached(browser):
    nameless = browser.execute_script("""
        return [...document.querySelectorAll(
            'button, input, select, summary, [role=img], [role=region], ' +
            '[role=progressbar], nav, section')].filter((one) => {
                const by = (one.getAttribute('aria-labelledby') || '')
                    .split(' ').map((id) => document.getElementById(id))
                    .map((named) => named ? named.textContent : '').join('');
                return !(by.trim() || one.getAttribute('aria-label') ||
                    one.textContent.trim() || (one.labels && one.labels.length))
            }).map((one) => one.outerHTML.slice(0, 120))""")
    assert not nameless, nameless
    assert count_of(browser, "main") == 1 and count_of(browser, "h1") == 1
    assert count_of(browser, "[aria-live=polite]") >= 1
    assert browser.execute_script("return document.documentElement.lang")
    # the keyboard alone gets to a chart, and the focus can be seen
    browser.execute_script("document.querySelector('.skip').focus()")
    body = browser.switch_to.active_element
    for _ in range(40):
        body.send_keys(Keys.TAB)
        body = browser.switch_to.active_element
        if body.get_attribute("class") == "plot":
            break
    assert body.get_attribute("class") == "plot"
    assert body.value_of_css_property("outline-style") == "solid"


def runs_are_compared(browser, work):
    run(work, "train", *TINY, "--learning_rate=1e-3", "--out_dir=slow")
    live = Program(work, "live", "--port=0", "followed", "slow")
    browser.get(live.address())
    wait_for("two runs", lambda: count_of(browser, "#runs button") == 2)
    differs = wait_for("differences", lambda: browser.execute_script("""
        return [...document.querySelectorAll('#differ tr.differs')].map(
            (row) => [...row.children].map((cell) => cell.textContent))"""))
    found = {row[0]: row[1:] for row in differs}
    assert found["learning_rate"] == ["0.0006", "0.001"], found
    assert found["max_iters"] == ["400", "160"], found
    assert "n_embd" not in found and "out_dir" not in found
    results = {row[0]: row[1:] for row in browser.execute_script("""
        return [...document.querySelectorAll('#differ tr.total')].map(
            (row) => [...row.children].map((cell) => cell.textContent))""")}
    bests = [best_of(metrics_of(work / name)[1]) for name in ["followed",
                                                              "slow"]]
    for row, key in [("best validation loss", "val_loss"),
                     ("bits per byte of the best", "val_bpb")]:
        assert results.get(row) == [f"{best[key]:.4f}" for best in bests], (
            row, results)
    legend = text_of(browser, "#chart-loss .legend")
    assert "followed train" in legend and "slow validation" in legend
    open_numbers(browser, "#chart-loss")
    updates, _ = metrics_of(work / "slow")
    same(table_of(browser, "#chart-loss", "slow train"),
         [(line["step"], line["loss"]) for line in updates], "the second run")
    browser.find_elements(By.CSS_SELECTOR, "#runs input")[1].click()
    assert "slow" not in text_of(browser, "#chart-loss .legend")
    browser.find_elements(By.CSS_SELECTOR, "#runs button")[1].click()
    assert text_of(browser, "h1") == "slow"
    it_is_as_wide_as_a_phone(browser)
    quiet(browser, live.address())
    live.end()


EVIL = "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"


def hostile_texts_are_harmless(browser, work):
    folder = work / ("..\x1b[31m" + EVIL.replace("/", "\u2044"))
    folder.mkdir()
    evil = "\x1b]0;owned\x07\x9b31m" + EVIL + "../../etc/passwd\u202e"
    (folder / "metrics.jsonl").write_text("".join(
        json.dumps({"step": step, "loss": 3 - step / 10, "lr": 1e-3,
                    "grad_norm": evil, "skipped": step == 3,
                    "step_ms": 1}) + "\n" for step in range(9)) +
        json.dumps({"step": evil, "loss": evil}) + "\n" +
        '{"__proto__": {"loss": 1}, "step": 5, "val_loss": "x"}\n' +
        evil + "\n[[[[\n" + json.dumps({"step": 10, "val_loss": None}) + "\n")
    (folder / "samples.jsonl").write_text(json.dumps(
        {"step": 10, "prompt": evil, "text": "A" * 2000 + evil}) + "\n" +
        json.dumps({"step": EVIL, "prompt": 5, "text": {"a": EVIL}}) + "\n")
    (folder / "warnings.jsonl").write_text(json.dumps(
        {"date": EVIL, "level": EVIL, "text": evil}) + "\n")
    (folder / "progress.json").write_text(json.dumps(
        {"phase": EVIL, "step": EVIL, "share": EVIL, "mfu": EVIL,
         "seconds_left": EVIL, "held_train_bytes": EVIL, "pid": EVIL}))
    config = {evil: {"value": evil, "from": evil},
              "__proto__": {"value": EVIL}, "constructor": {"value": EVIL},
              "n_layer": {"value": {"x": EVIL}, "from": 7}}
    (folder / "plan.json").write_text(json.dumps(
        {"config": config, "programs": [EVIL, "train"],
         "classes": {EVIL: [1000, 2000], "weights": "x"},
         "budget_bytes": 5000, "budget_from": evil, "device": evil,
         "model": {"parameters": EVIL, "layers": EVIL}, "max_iters": EVIL,
         "update_tokens": EVIL}))
    live = Program(work, "live", "--port=0", folder.name, "slow")
    browser.get(live.address())
    wait_for("the evil run", lambda: count_of(browser, "#runs button") == 2)
    wait_for("its samples", lambda: count_of(browser, "#samples blockquote"))
    time.sleep(1.5)
    open_numbers(browser, "#chart-loss")
    assert browser.execute_script("return window.hacked") is None
    assert count_of(browser, "main script, main img, main iframe, nav img") == 0
    seen = browser.execute_script("return document.body.textContent")
    assert "<script>window.hacked=1</script>" in seen
    assert "\u241b]0;owned\u2407" in seen
    assert not any(sign in seen for sign in "\x1b\x07\x9b\u202e")
    assert "../../etc/passwd" in text_of(browser, "#samples")
    assert "\u241b" in text_of(browser, "#line")
    assert count_of(browser, "#chart-gradient-norm path.cross") == 1
    it_is_as_wide_as_a_phone(browser)
    quiet(browser, live.address())
    live.end()


def it_is_beside_a_run(browser, work):
    training = Program(work, "train", *TINY, "--out_dir=beside", "--live=0",
                       "--max_iters=300")
    browser.get(training.address())
    wait_for("the run", lambda: text_of(browser, ".pill") in (
        "training", "evaluating", "saving", "sampling", "starting"), 60)
    quiet(browser, training.address())
    assert training.process.wait() == 0
    wait_for("a word that it is gone", lambda: "not reachable" in (
        text_of(browser, "#link") or ""), 30)
    complaints_of(browser)  # of the server that is gone
    training.end()


def a_token_lets_in(browser, work):
    live = Program(work, "live", "--port=0", "--token=secret-token-1", "slow")
    address = live.address()
    browser.get(address.split("?")[0])
    assert "token is missing" in text_of(browser, "body")
    complaints_of(browser)  # of the refusal
    browser.get(address)
    wait_for("the run", lambda: text_of(browser, "h1") == "slow")
    assert "token" not in browser.current_url
    live.end()


# ---- all of it ----

def quiet(browser, address):
    """Nothing was asked of others, and the console is empty."""
    asked = requests_of(browser)
    begin = address.split("?")[0]
    others = [url for url in asked if not url.startswith(
        (begin, "data:", "chrome:", "about:"))]
    assert asked and not others, others
    complaints = complaints_of(browser)
    assert not complaints, complaints


def main(work):
    (work / "in.txt").write_text("".join(
        f"the cat number {i * 7 % 100} sat on mat {i % 10}.\n"
        for i in range(400)))
    run(work, "prepare", "--out=data/t", "in.txt")
    browser = open_browser()
    try:
        live = it_follows_a_run_to_its_end(browser, work)
        the_curves_hold_the_numbers(browser, work)
        it_zooms(browser)
        it_shows_other_axes(browser)
        the_line_is_there(browser, work)
        samples_and_settings_are_there(browser, work)
        it_is_light_and_dark(browser)
        it_is_as_wide_as_a_phone(browser)
        it_can_be_heard_and_reached(browser)
        quiet(browser, live.address())
        live.end()
        complaints_of(browser)  # of the server that is gone
        for check in [runs_are_compared, hostile_texts_are_harmless,
                      it_is_beside_a_run, a_token_lets_in]:
            browser.get("about:blank")
            requests_of(browser)
            complaints_of(browser)
            check(browser, work)
        browser.get("about:blank")
    finally:
        Program.end_all()
        browser.quit()
    print("live: the page is right in a browser")


main(pathlib.Path(sys.argv[1]).resolve())
