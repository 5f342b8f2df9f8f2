"""The review page in a real browser: judged by keyboard alone, nothing asked of the outside, readable everywhere."""

import csv
import importlib.util
import io
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from web.conftest import QUEUE
from web.hostile import SCRIPT
from web.serving import serving
from web.test_out import differences


class Visit:
    """A page of the server; at the end nothing may have gone wrong and nothing may have been asked of the outside."""

    def __init__(self, chromium, address, scheme="light", width=1440):
        self.address, self.base = address, address.split("?")[0]
        self.context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 850})
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.troubles, self.asked = [], []
        self.page.on("console", lambda message: self.troubles.append(message.text))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, path=None):
        self.page.goto(self.address if path is None else self.base.rstrip("/") + path)
        return self.page

    def end(self):
        assert self.troubles == []
        assert {urlsplit(url).netloc for url in self.asked} == {urlsplit(self.base).netloc}
        self.context.close()


@pytest.fixture(scope="module")
def reading_server(made, tmp_path_factory):
    """Return the address of a server on which the tests that change nothing look around."""
    folder = tmp_path_factory.mktemp("reading")
    for name in ("visits.review", "visits.csv"):
        shutil.copy(made / name, folder / name)
    with serving(folder / "visits.review") as address:
        yield address


def row_title(page):
    return page.inner_text("#row-title")


def press(page, key):
    """Press a key that judges, and wait for the next row."""
    before = row_title(page)
    page.keyboard.press(key)
    page.wait_for_function("before => document.querySelector('#row-title')?.innerText !== before", arg=before)


def test_a_whole_review_by_keyboard_alone(chromium, project_file, made):
    with serving(project_file) as address:
        visit = Visit(chromium, address)
        page = visit.open()
        page.wait_for_selector("#row-title")
        assert "token" not in page.url
        first = row_title(page)

        # ten rows: accept, keep, skip, and a change by hand of the second response
        for key in ["a", "k", "s", "Enter", "a", "k", "a", "s", "k"]:
            if key in ("a", "Enter") and page.is_disabled("#accept"):
                key = "k"
            press(page, key)
        page.keyboard.press("2")
        assert page.inner_text("#accept-text") == "Save 1 change"
        page.keyboard.press("Escape")
        assert page.inner_text("#accept-text") == "Accept repair"
        page.keyboard.press("2")
        press(page, "Enter")
        assert page.inner_text("#n-skipped") == "2"
        assert page.inner_text("#n-reviewed") == f"8 of {QUEUE}"

        # undo goes back to the row it concerns, and its record says so
        now = row_title(page)
        press(page, "u")
        assert page.inner_text("#n-reviewed") == f"7 of {QUEUE}"
        assert "took back a verdict" in page.inner_text(".entries")
        page.keyboard.press("n")
        page.wait_for_function("title => document.querySelector('#row-title')?.innerText === title", arg=now)

        # search, then the whole filter at once, after looking at what it would change
        visit.open("/list")
        page.wait_for_selector("#rows tr")
        page.keyboard.press("/")
        page.keyboard.type("sex F")
        page.keyboard.press("Enter")
        page.wait_for_function(f"() => document.querySelector('#count').innerText !== '{QUEUE - 9} rows'")
        count = int(page.inner_text("#count").split()[0])
        assert 0 < count < QUEUE - 9
        page.focus("#bulk-kind")
        page.keyboard.press("k")  # the select jumps to "keep as it is"
        page.focus("#bulk-show")
        page.keyboard.press("Enter")
        page.wait_for_selector("#bulk-dialog[open]")
        assert f"{count} rows" in page.inner_text("#bulk-text")
        page.focus("#bulk-do")
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.querySelector('#count').innerText === '0 rows'")
        page.keyboard.press("u")
        page.wait_for_function(f"() => document.querySelector('#count').innerText === '{count} rows'")

        # re-rank in the background, and go on
        visit.open("/")
        page.wait_for_selector("#row-title")
        page.keyboard.press("r")
        finished = "() => /Re-ranked with 7 verdicts/.test(document.querySelector('#rerank-text').innerText)"
        page.wait_for_function(finished, timeout=120_000)
        page.wait_for_selector("#row-title")
        assert row_title(page) != first

        # the exported table is the source but for the verdicts
        with page.expect_download() as waiting:
            page.click("text=Corrected table")
        exported = Path(waiting.value.path()).read_text()
        patch = page.evaluate("fetch('/api/export/patch').then((answer) => answer.text())")
        expected = {}
        for line in csv.DictReader(io.StringIO(patch)):
            expected.setdefault(int(line["row"]), {})[line["response"]] = line["after"]
        assert expected
        assert differences((made / "visits.csv").read_text(), exported) == expected
        visit.end()


def test_every_control_is_reached_by_keyboard(chromium, reading_server):
    visit = Visit(chromium, reading_server)
    page = visit.open()
    page.wait_for_selector("#row-title")
    page.evaluate("document.body.focus()")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("document.activeElement.id || document.activeElement.name || document.activeElement.tagName")
        )
    buttons = {"accept", "keep", "skip", "undo", "rerank", "show-help", "rename", "save-view", "views"}
    assert buttons | {"status", "response", "kind", "at_least", "text"} <= reached
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.keyboard.press("Escape")
    assert not page.is_visible("#help")
    visit.end()


def test_filters_and_views_are_part_of_the_address(chromium, reading_server):
    visit = Visit(chromium, reading_server)
    visit.open()
    page = visit.open("/list")
    page.wait_for_selector("#rows tr")
    page.select_option("select[name=kind]", "missing")
    fits = "(row) => row.innerText.includes('should be there')"
    page.wait_for_function(f"() => [...document.querySelectorAll('#rows tr')].every({fits})")
    assert "kind=missing" in page.url
    page.click("#save-view")
    page.fill("#view-name", "missing ones")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#views').value === 'missing ones'")
    page.goto(page.url)
    page.wait_for_selector("#rows tr")
    assert page.input_value("select[name=kind]") == "missing"
    assert "missing ones" in page.inner_text("#views")
    visit.end()


def test_two_reviewers_disagree_and_see_it(chromium, project_file):
    with serving(project_file) as address:
        anna, ben = Visit(chromium, address), Visit(chromium, address)
        one = anna.open()
        one.wait_for_selector("#row-title")
        number = one.evaluate("fetch('/api/rows?limit=1').then((a) => a.json()).then((a) => a.rows[0].row)")
        ben.open()
        ben.page.wait_for_selector("#row-title")
        ben.page.click("#rename")
        ben.page.fill("#name-input", "ben")
        ben.page.keyboard.press("Enter")
        ben.page.wait_for_function("() => document.querySelector('#who').innerText === 'ben'")
        two = ben.open(f"/?row={number}")
        two.wait_for_selector(".warning")
        assert "is looking at this row" in two.inner_text(".warning")
        press(one, "a")
        press(two, "k")
        two = ben.open(f"/?row={number}&status=all")
        two.wait_for_selector(".state.conflict")
        assert "Two reviewers disagree" in two.inner_text("#card")
        assert two.locator(".entries li.standing").count() == 2
        anna.end()
        ben.end()


SCREENS = [("light", 390), ("dark", 390), ("light", 1440), ("dark", 1440)]
PATHS = ["/", "/list", "/overview", "/record", "/responses/0"]


@pytest.mark.parametrize(("scheme", "width"), SCREENS)
def test_pages_fit_the_screen_and_pass_axe(chromium, reading_server, scheme, width):
    axe = Path(importlib.util.find_spec("axe_playwright_python").origin).parent / "axe.min.js"
    source = axe.read_text(encoding="utf-8")
    visit = Visit(chromium, reading_server, scheme, width)
    visit.open()
    for path in PATHS:
        page = visit.open(path)
        page.wait_for_selector({"/": "#row-title", "/list": "#rows tr"}.get(path, "main"))
        page.wait_for_timeout(250)  # the row that has just come fades in
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
        page.evaluate(source)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert [(v["id"], v["nodes"][0]["html"], v["nodes"][0]["failureSummary"]) for v in found["violations"]] == [], (
            path
        )
    visit.end()


def test_hostile_data_stays_text(chromium, hostile_project):
    with serving(hostile_project.database.place) as address:
        visit = Visit(chromium, address, width=390)
        page = visit.open()
        page.wait_for_selector("#row-title")
        for response in "123":  # a verdict on all of them, so that the record holds their names and values
            page.keyboard.press(response)
        reviewed = page.inner_text("#n-reviewed")
        page.keyboard.press("Enter")
        page.wait_for_function("before => document.querySelector('#n-reviewed').innerText !== before", arg=reviewed)
        for path in ["/?row=0&status=all", "/list", "/overview", "/responses/0", "/responses/2", "/record"]:
            visit.open(path)
            page.wait_for_selector({"/list": "#rows tr"}.get(path, "#row-title" if "row=" in path else "main"))
            assert SCRIPT in page.inner_text("body")
            assert "taken" not in page.title() or "<script>" in page.title()
            assert page.locator("img[src='x'], img[onerror]").count() == 0
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
        visit.open("/?row=0&status=all")
        page.click(".context button:has-text('Show all')")
        page.wait_for_function("() => document.querySelector('.context').innerText.length > 1000000")
        visit.end()
