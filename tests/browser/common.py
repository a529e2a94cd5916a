"""common.py: a browser, and Plimsoll's programs for it to look at."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

PLIMSOLL = os.path.abspath(os.environ["PLIMSOLL"])


def open_browser(width=1200, height=1000):
    """Chromium without a window, from which nothing but this machine can be
    reached, and which keeps what it asked for and what its console said."""
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu",
                     "--hide-scrollbars", "--disable-background-networking",
                     "--disable-component-update", "--no-first-run",
                     "--host-resolver-rules=MAP * ~NOTFOUND, "
                     "EXCLUDE 127.0.0.1, EXCLUDE localhost"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs",
                           {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options,
                               service=Service("/usr/bin/chromedriver"))
    resize(browser, width, height)
    return browser


def resize(browser, width, height):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": 1,
        "mobile": False})


def prefer(browser, scheme):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
        {"name": "prefers-color-scheme", "value": scheme}]})


def wait_for(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"waited {seconds} s for: {what}")


def requests_of(browser):
    """The addresses that pages asked for since the last time."""
    found = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            found.append(message["params"]["request"]["url"])
    return found


def complaints_of(browser):
    return [entry for entry in browser.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")]


# ---- Plimsoll ----

def run(work, *arguments):
    done = subprocess.run([PLIMSOLL, *arguments], cwd=work, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"plimsoll {' '.join(arguments)}:\n{done.stdout}")
    return done.stdout


class Program:
    """One that goes on, with its output in a file."""

    started = []

    def __init__(self, work, *arguments):
        self.log = pathlib.Path(work) / f"log-{time.monotonic_ns()}.txt"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [PLIMSOLL, *arguments], cwd=work, stdin=subprocess.PIPE,
                stdout=log, stderr=subprocess.STDOUT)
        Program.started.append(self)

    def address(self):
        def find():
            assert self.process.poll() is None, self.log.read_text()
            return re.search(r"^(?:live|serve): (http://\S+)( |$)",
                             self.log.read_text(), re.M)
        return wait_for("an address", find)[1]

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.terminate()
        self.process.wait()

    @classmethod
    def end_all(cls):
        for program in cls.started:
            program.end()


def metrics_of(folder):
    """Updates and evaluations of a run, as its file has them."""
    lines = [json.loads(line) for line in
             (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()]
    return ([line for line in lines if "loss" in line],
            [line for line in lines if "val_loss" in line])
