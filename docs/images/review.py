"""Draw docs/images/review.png: the review page on a generated table, after a few verdicts. Needs Chromium."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

OUT = Path(__file__).with_name("review.png")
MCODE = [sys.executable, "-m", "mcode"]


def draw(folder: Path) -> None:
    """Make a project, serve it, judge some rows and take the picture."""
    subprocess.run([*MCODE, "demo", "--rows", "3000", "--out", str(folder), "--quiet"], check=True)
    audit = [*MCODE, "audit", str(folder / "visits.csv"), "--labels", "dx_*,rx_*", "--id", "visit_id", "--show", "0"]
    options = ["--review", "--project", str(folder / "visits.review"), "--queue", "300", "--no-open"]
    with subprocess.Popen([*audit, *options], stdout=subprocess.PIPE, text=True) as server:
        try:
            lines = server.stdout or ()
            address = next(found[0] for line in lines if (found := re.search(r"http://\S+", line)))
            take(address)
        finally:
            server.terminate()


def take(address: str) -> None:
    """Take the picture of the third row."""
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 960}, color_scheme="light")
        page.goto(address)
        page.wait_for_selector("#row-title")
        page.evaluate("fetch('/api/reviewer', {method: 'POST', headers: {'Content-Type': 'application/json'}, "
                      "body: JSON.stringify({name: 'anna'})})")  # fmt: skip
        for key in ("a", "k", "a"):
            before = page.inner_text("#row-title")
            page.keyboard.press(key)
            page.wait_for_function("b => document.querySelector('#row-title')?.innerText !== b", arg=before)
        page.reload()
        page.wait_for_selector("#row-title")
        page.wait_for_timeout(500)
        page.screenshot(path=OUT)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        draw(Path(made))
