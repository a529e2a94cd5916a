"""pictures.py WORK DOCS: the pictures of docs/live.md, from two real runs, and
that of docs/serve.md, from what one of them has learnt."""

import pathlib
import sys
import time

from PIL import Image

from common import Program, open_browser, prefer, resize, run, wait_for

RUN = ["--dataset=docs", "--n_layer=4", "--n_head=4", "--n_embd=96",
       "--block_size=64", "--batch_size=8", "--gradient_accumulation_steps=2",
       "--eval_iters=20", "--eval_interval=50", "--max_iters=900",
       "--warmup_iters=100", "--lr_decay_iters=900", "--min_lr=1e-4",
       "--sample_interval=150", "--max_new_tokens=160", "--memory=40MB",
       "--sample_prompts=Plimsoll "]


def picture(browser, path, width, height):
    """As large as asked for, in 128 colours: less than 150 kB."""
    resize(browser, width, height)
    time.sleep(1.5)
    browser.save_screenshot(str(path))
    with Image.open(path) as image:
        image.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(
            path, optimize=True)
    size = path.stat().st_size
    print(f"{path}: {width} x {height}, {size} bytes")
    assert size < 150000, size


def show(browser, address, scheme):
    prefer(browser, scheme)
    browser.get(address)
    wait_for("the page", lambda: browser.execute_script(
        "return document.querySelectorAll('#chart-loss path.curve').length"))
    time.sleep(1)


def picture_serving(browser, work, docs):
    """A text that the run in `wide` writes, one of its tokens chosen."""
    server = Program(work, "serve", "wide", "--port=0")
    prefer(browser, "light")
    browser.get(server.address())
    wait_for("the model", lambda: browser.execute_script(
        "return document.getElementById('model').textContent.length > 9"))
    browser.execute_script("""
        document.getElementById('prompt').value = 'Plimsoll ';
        document.getElementById('seed').value = '4';
        document.getElementById('max_tokens').value = '54';
        document.getElementById('write').click();""")
    wait_for("a text", lambda: browser.execute_script(
        "return document.getElementById('status').textContent"
        ".includes('nats per token')"))
    browser.execute_script(
        "document.querySelectorAll('#text .token')[14].focus()")
    picture(browser, docs / "serve.png", 900, 900)
    server.end()


def main(work, docs):
    root = pathlib.Path(__file__).resolve().parents[2]
    (work / "docs.txt").write_text("".join(
        page.read_text() for page in sorted((root / "docs").glob("*.md"))))
    run(work, "prepare", "--out=data/docs", "docs.txt")
    run(work, "train", *RUN, "--learning_rate=3e-3", "--out_dir=wide")
    run(work, "train", *RUN, "--learning_rate=3e-3", "--n_embd=48",
        "--dtype=bfloat16", "--out_dir=narrow")
    browser = open_browser()
    training = Program(work, "train", *RUN, "--learning_rate=2e-3",
                       "--memory=72MB", "--out_dir=out", "--live=0")
    show(browser, training.address(), "light")
    wait_for("two thirds of the run", lambda: "step" in (
        browser.execute_script(
            "const e = document.querySelector('.far b');"
            "return e && Number(e.textContent.replace(/[^0-9]/g, '')) > 600 ?"
            "e.textContent : ''")), 900)
    picture(browser, docs / "live.png", 1200, 1420)
    training.end()
    live = Program(work, "live", "--port=0", "wide", "narrow")
    show(browser, live.address(), "dark")
    picture(browser, docs / "live-dark.png", 1200, 820)
    show(browser, live.address(), "light")
    picture(browser, docs / "live-phone.png", 360, 780)
    live.end()
    picture_serving(browser, work, docs)
    Program.end_all()
    browser.quit()


main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve())
