import re
from html.parser import HTMLParser

import pytest

from mcode.explain.finding import Evidence
from mcode.report import html_page
from mcode.report.page import MOST_FINDINGS, explained_responses, shown_evidence, shown_responses
from report.made import finding, summary

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></style></script><b>bold</b>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "<!-- -->]]>&amp;\u2028\u202e",
]


class Page(HTMLParser):
    """The tags, the attributes and the text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_from_data_appears_as_text_and_nothing_else(hostile):
    evidence = (Evidence("feature", hostile, hostile, 1.0),)
    row = finding(id=hostile, name=hostile, sentence=f"`{hostile}` {hostile}", extra=evidence)
    found = Page(html_page(summary(source=hostile, names=(hostile, "statin")), [row], id_name=hostile))
    plain = Page(html_page(summary(names=("insulin", "statin")), [finding(id="x", extra=evidence)], id_name="id"))
    assert found.tags.count("script") == 1
    assert set(found.tags) == set(plain.tags)
    assert {name for name, _ in found.attributes} == {name for name, _ in plain.attributes}
    assert sum(hostile in text for text in found.text) >= 5
    assert ("data-id", hostile) in found.attributes


def test_the_page_asks_nothing_of_the_outside():
    html = html_page(summary(), [finding()])
    assert not re.search(r"https?://|//[a-z]|url\(|@import|src=", html)
    assert "default-src 'none'" in html


def test_no_data_is_written_into_the_script():
    one, other = (html_page(summary(), [finding(id=name)]) for name in ("first", "second"))
    script = re.compile(r"<script>.*</script>", re.DOTALL)
    assert script.search(one)[0] == script.search(other)[0]


def test_what_was_audited_and_what_to_expect_is_said():
    html = html_page(summary(n_flagged=30), [finding()])
    assert "30 rows are flagged at a false-discovery rate of 10 %; expect about 3 false alarms among them." in html
    for word in ("visits.csv", "predictable", "suspicious", "reliable", "hba1c = 9.1", "1 in 500,000", "40 %"):
        assert word in html


def test_a_page_without_findings_says_so():
    html = html_page(summary(n_flagged=0), [])
    assert "No row is flagged at a false-discovery rate of 10 %." in html
    assert "<article" not in html


def test_a_long_list_is_cut_and_the_page_says_so():
    html = html_page(summary(n_flagged=90), [finding(row) for row in range(MOST_FINDINGS + 5)])
    assert html.count("<article") == MOST_FINDINGS
    assert "first 500 of 505" in html


def test_bars_are_as_long_as_the_evidence_is_strong():
    assert [width for _, width in shown_evidence(finding().responses[0])] == [100.0, 25.0]


def test_evidence_is_shown_for_what_the_repair_changes():
    row = finding()
    assert [response.name for response in explained_responses(row)] == ["insulin"]
    assert [response.name for response in shown_responses(row)] == ["insulin", "statin"]
