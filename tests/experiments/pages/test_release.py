"""Tests of the report on a release."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pandas as pd

from anonymip import (
    Apart,
    Attribute,
    Bottleneck,
    Cap,
    Classes,
    Diversity,
    EquivalenceClasses,
    Microdata,
    Problem,
    Solution,
    load_instance,
    publish,
    solve,
)
from anonymip.experiments.pages import html_report
from anonymip.publishing import Release

NASTY = "<script>alert('&')</script>"


class Elements(HTMLParser):
    """The elements and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Note its end."""
        self.closed.append(tag)

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.texts.append(data)


def release(name: str = "age", *, suppression: bool = False) -> Release:
    """Publish four persons whose ages and disease occur nowhere else on a page."""
    frame = pd.DataFrame(
        {name: [34177, 36177, 61177, 65177], "sex": list("FFMM"), "disease": ["Morbus X"] * 4}
    )
    data = Microdata(
        frame,
        (
            Attribute(name, domain=(34177, 65177)),
            Attribute("sex", "categorical", domain=("F", "M")),
        ),
        sensitive=("disease",),
    )
    return publish(solve(Problem(data, 2, EquivalenceClasses(suppression))))


def test_the_page_says_loss_bound_and_assumptions() -> None:
    """Loss, proof, classes, attributes, what was checked and what was assumed are on the page."""
    published = release()
    page = html_report(published, "people.csv")
    texts = " ".join(Elements(page).texts)
    assert "proven optimal: no equivalence-class release of this table with k = 2" in texts
    assert "Release of people.csv" in texts
    for sentence in (*published.manifest["checked"], *published.manifest["assumed"]):
        assert sentence in texts
    # age: (2000 + 4000) / 2 of 31000; sex: exact.
    assert "9.68 %" in texts
    assert "0.00 %" in texts


def test_names_are_escaped() -> None:
    """Names of columns and tables are text and never become elements."""
    page = html_report(release(NASTY), f"{NASTY}.csv")
    found = Elements(page)
    assert "script" not in found.opened
    assert any(f"Release of {NASTY}.csv" in text for text in found.texts)
    assert NASTY in found.texts


def test_no_record_is_shown() -> None:
    """No value of the table is on the page, neither raw nor in a range."""
    page = html_report(release(), "people.csv")
    for value in ("34177", "36177", "61177", "65177", "Morbus"):
        assert value not in page


def test_the_page_is_complete_in_itself() -> None:
    """The page is well-formed, has a picture inside, and loads nothing."""
    page = html_report(release(), "people.csv")
    found = Elements(page)
    assert found.opened.count("svg") == 2
    assert not {"script", "link", "img", "iframe"} & set(found.opened)
    for tag in ("html", "body", "table", "ul", "svg", "h1"):
        assert found.opened.count(tag) == found.closed.count(tag) > 0


def test_hierarchies_and_rules_are_on_the_page() -> None:
    """The loss of nodes counts the values below them; rules are shown without values."""
    data = load_instance("clinic-12")
    problem = Problem(
        data,
        3,
        objective=Bottleneck(),
        diversity=Diversity(distinct=2),
        limits=(Cap("Town", 2), Apart("Job", "nurse", "welder")),
    )
    labels = np.array([0, 0, 1, 0, 1, 1, 2, 2, 3, 2, 3, 3])
    published = publish(Solution.of(problem, Classes(labels), method="by hand"))
    texts = " ".join(Elements(html_report(published, "clinic-12")).texts)
    # Towns: two classes North (4 of 7 values), two South (3 of 7): (3 / 6 + 2 / 6) / 2.
    assert "41.67 %" in texts
    assert "asked: diversity 2 distinct sensitive values" in texts
    assert "asked: cap of 2 on 'Town'" in texts
    assert "asked: rule that two values of 'Job' stay apart" in texts
    for value in ("nurse", "Arden", "North", "services", "gout"):
        assert value not in texts


def test_all_records_suppressed() -> None:
    """A release without classes has a page that says so instead of a picture."""
    problem = release(suppression=True).solution.problem
    hidden = Solution.of(problem, Classes(np.full(4, -1, np.int32)), method="by hand")
    nothing = publish(hidden, suppressed="starred")
    page = html_report(nothing, "people.csv")
    assert "All records are suppressed." in page
    assert "svg" not in Elements(page).opened
