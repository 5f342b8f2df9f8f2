"""The report in a real browser: it runs without an error, asks nothing of the outside, sorts and filters."""

import pytest

from mcode.report import html_page
from report.made import finding, summary

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rows = [
        finding(5, id="V10", rank=1, name="insulin", error=0.95),
        finding(6, id="V2", rank=2, name="statin", error=0.90),
        finding(7, id="V1", rank=3, name="insulin", error=0.40, sentence="A word: zebra."),
        finding(8, id=HOSTILE, rank=4, name="aspirin", error=0.20),
    ]
    path = tmp_path_factory.mktemp("report") / "report.html"
    names = ("insulin", "statin", "aspirin")
    path.write_text(html_page(summary(n_flagged=4, names=names), rows, "visit"), encoding="utf-8")
    return path


@pytest.fixture
def page(chromium, report, request):
    """Return the page opened; at the end nothing may have gone wrong and nothing may have been asked for."""
    scheme, width = getattr(request, "param", ("light", 1440))
    opened = chromium.new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
    troubles, requests = [], []
    opened.on("console", lambda message: troubles.append(message.text))
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    opened.on("request", lambda asked: requests.append(asked.url))
    opened.goto(report.as_uri())
    yield opened
    assert not troubles
    assert requests == [report.as_uri()]
    opened.close()


def shown(page):
    return page.eval_on_selector_all("article:not([hidden])", "cards => cards.map(card => card.dataset.rank)")


def test_findings_can_be_sorted(page):
    assert shown(page) == ["1", "2", "3", "4"]
    page.select_option("#sort", "response")
    assert shown(page) == ["4", "1", "3", "2"]
    page.select_option("#sort", "id")
    assert [rank for rank in shown(page) if rank != "4"] == ["3", "2", "1"]
    page.select_option("#sort", "rank")
    assert shown(page) == ["1", "2", "3", "4"]


def test_findings_can_be_filtered_by_words_response_and_probability(page):
    page.fill("#search", "ZEBRA")
    assert shown(page) == ["3"]
    assert page.inner_text("#shown") == "1 of 4 findings shown"
    page.fill("#search", "")
    page.select_option("#response", "insulin")
    assert shown(page) == ["1", "3"]
    page.focus("#threshold")
    for _ in range(5):
        page.keyboard.press("PageUp")
    assert page.inner_text("#threshold-text") == "50 %"
    assert shown(page) == ["1"]


def test_hostile_data_stays_text(page):
    assert page.title() == "Audit of visits.csv"
    assert HOSTILE in page.inner_text("#list")
    assert page.locator("img").count() == 0


def test_health_can_be_sorted(page):
    names = "rows => rows.map(row => row.dataset.value)"
    head = page.locator("#health button", has_text="present")
    head.click()
    assert page.eval_on_selector_all("#health tbody th", names) == ["aspirin", "statin", "insulin"]
    head.click()
    assert page.eval_on_selector_all("#health tbody th", names) == ["insulin", "statin", "aspirin"]
    assert head.locator("..").get_attribute("aria-sort") == "ascending"


def test_all_controls_are_reached_by_keyboard(page):
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"search", "response", "threshold", "sort", "SUMMARY", "BUTTON", "A"} <= reached


def test_details_open_by_keyboard(page):
    summary_of_last = page.locator("article summary").last
    summary_of_last.focus()
    page.keyboard.press("Enter")
    assert page.locator("article").last.locator(".evidence").first.is_visible()


@pytest.mark.parametrize("page", [("light", 390), ("dark", 390), ("light", 1440), ("dark", 1440)], indirect=True)
def test_nothing_is_wider_than_the_screen_and_text_stands_out(page):
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate(CONTRAST) >= 4.5


# The smallest contrast of text that has a colour of its own, by the formula of the web's accessibility guidelines.
CONTRAST = """() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = channels(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const kinds = ".lead, .note, .muted, .tile span, .accent b, .key, .rank, .observed, .expected, code, .kind, th, td"
    + ", summary, .weight, .sure, label, footer p";
  return Math.min(...[...document.querySelectorAll(kinds)].map((element) => {
    const [a, b] = [light(channels(getComputedStyle(element).color)), light(behind(element))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }));
}"""
