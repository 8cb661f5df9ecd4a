"""The report of a release: its figures, and that it tells of nobody what the release does not."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import (
    Apart,
    Attribute,
    Bottleneck,
    Bound,
    Cap,
    CodeRule,
    Diversity,
    EquivalenceClasses,
    Freeform,
    Hierarchy,
    Microdata,
    Problem,
    Solution,
    load_instance,
    publish,
    solve,
)
from anonymip.experiments.bands import bands
from anonymip.experiments.report import html_report
from anonymip.experiments.style import COLOURS
from anonymip.privacy.measuring import WORK
from anonymip.publishing.release import Release
from anonymip.solution import gap_in_words
from anonymip.status import Status, Stopped
from tests.by_hand import by_classes

NASTY = "<script>alert('&')</script>"
pytestmark = pytest.mark.filterwarnings("ignore::anonymip.errors.ReleaseWarning")
#: Elements without an end.
_VOID = {"meta", "rect"}


class Page(HTMLParser):
    """The elements of a page, checked for their nesting, and its texts by table."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.opened: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.texts: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(page)
        assert self.inside == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.opened.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.inside.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that ends at once."""
        self.opened.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Note its end, which is that of the last one opened."""
        if tag not in _VOID:
            assert self.inside.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note a text."""
        if "style" not in self.inside:
            self.texts.append(data)
        if {"td", "th"} & set(self.inside):
            self.rows[-1][-1] += data.strip()

    @property
    def text(self) -> str:
        """What a reader reads."""
        return " ".join(" ".join(self.texts).split())

    def row(self, name: str) -> list[str]:
        """Return the cells behind a name, of the first row that has it."""
        return next(row[1:] for row in self.rows if row and row[0] == name)


def release(name: str = "age", *, suppression: bool = False) -> Release:
    """Publish four persons in two classes, whose disease occurs nowhere else on a page."""
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


def classes(data: Microdata, k: int, labels: list[int], **asked: Any) -> Release:
    """Publish classes given by hand."""
    problem = Problem(data, k, EquivalenceClasses(min(labels) < 0), **asked)
    return publish(by_classes(problem, labels))


def test_figures_are_those_counted_by_hand() -> None:
    """Rows, losses, exact cells, class sizes, bands and risk of eleven records."""
    data = Microdata(
        pd.DataFrame(
            {
                "age": [20, 20, 20, 31, 33, 35, 37, 39, 80, None],
                "sex": list("FFFMMMMFMF"),
                "name": list("abcdefghij"),
                "ill": ["flu", "gout"] * 5,
            }
        ),
        (
            Attribute("age", domain=(0, 100), integer=True),
            Attribute("sex", "categorical", domain=("F", "M")),
        ),
        sensitive=("ill",),
        drop=("name",),
        table=load_instance("health-records").table.__class__(policy="drop"),
    )
    published = classes(data, 3, [0, 0, 0, 1, 1, 1, 1, 1, -1])
    page = Page(html_report(published, "people.csv"))
    assert [page.row(name)[0] for name in ("read", "left out", "suppressed", "published")] == [
        *("10", "1", "1", "8")
    ]
    # age: 5 of 8 published in 8 of 100 years; sex: 5 cells are both values.
    assert ["age", "quasi-identifier", "generalized: ranges"] in page.rows
    losses = {row[0]: row[1:] for row in page.rows if len(row) == 4 and row[0] in ("age", "sex")}
    age, sex = 5 * 0.08 / 8, 5 / 8
    assert losses["age"] == [f"{100 * age:.2f} %", f"{100 * age / (age + sex):.1f} %", "37.5 %"]
    assert losses["sex"] == [f"{100 * sex:.2f} %", f"{100 * sex / (age + sex):.1f} %", "37.5 %"]
    assert page.row("3 to 5") == ["2", "8", "100.0 %"]
    assert page.row("F") == ["50.0 %", f"{100 * (3 + 2.5) / 8:.1f} %"]
    # The suppressed person of 80 is in no band.
    assert page.row("below 25") == ["37.5 %", "37.5 %"]
    names = {row[0] for row in page.rows}
    assert "25 or more" in names
    assert "80" not in names
    risk = published.risk()
    assert risk.after is not None
    assert page.row("unique records") == ["6", "0"]
    assert page.row("records in classes below k = 3") == [str(risk.before.below_k), "0"]
    assert page.row("prosecutor risk, largest") == ["100 %", "33.33 %"]
    assert page.row("name") == ["dropped", "left out"]
    assert risk.sentence() in page.text
    for sentence in (*published.manifest["checked"], *published.manifest["assumed"]):
        assert sentence in page.text


def solved(bound: float | None, loss: float) -> Solution:
    """Return a solution of a loss with a bound."""
    found = release().solution
    status = Status(Stopped.HEURISTIC, solution=True, bound=bound is not None)
    given = None if bound is None else Bound(bound, "by hand", "argument")
    return replace(found, objective=loss, bound=given, status=status)


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (None, "How much less any other release of this kind could lose is not known."),
        (0.0, "How much less any other release of this kind could lose is not known."),
        (76.087, "At most 24.0 % of this loss"),
        (75.99, "At most 24.1 % of this loss"),
        (99.0, "At most 1.0 % of this loss"),
        (99.85, "At most 0.2 % of this loss"),
        (99.9999, "Less than 0.1 % of this loss"),
        (0.001, "At most 100.0 % of this loss"),
    ],
)
def test_the_gap_is_told_in_words_and_never_too_small(bound: float | None, words: str) -> None:
    """As the sentence of the solution has it, rounded up; what is unknown is said to be."""
    solution = solved(bound, 100.0)
    assert gap_in_words(solution).startswith(words)
    if words.startswith("At most"):
        assert f"; gap {words.split(' of')[0].removeprefix('At most ')}" in solution.sentence()


def test_an_optimum_is_told() -> None:
    """Nobody is told that an optimum could be undercut."""
    assert gap_in_words(release().solution) == "No other release of this kind loses less."


def test_names_and_values_are_escaped() -> None:
    """Names of columns and tables, and published values, are text and never become elements."""
    data = Microdata(
        pd.DataFrame({NASTY: [f"{NASTY}{i // 2}" for i in range(4)], "x": [1, 1, 2, 2]}),
        (Attribute(NASTY, "categorical"), Attribute("x")),
    )
    published = classes(data, 2, [0, 0, 1, 1])
    page = Page(html_report(published, f"{NASTY}.csv", command=f"anonymip {NASTY}"))
    assert "script" not in [tag for tag, _ in page.opened]
    assert page.row(NASTY)
    assert [f"{NASTY}0", f"{NASTY}0"] in [row[1:] for row in page.rows]
    assert f"Release of {NASTY}.csv" in page.text
    notebook = Page(published._repr_html_())
    assert "script" not in [tag for tag, _ in notebook.opened]
    assert f"{NASTY}1" in notebook.rows[-1]


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG 2.2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_everybody_can_read_it() -> None:
    """Headings in order, names of tables and their heads, alternatives to bars, contrast."""
    page = html_report(release(), "people.csv")
    found = Page(page)
    levels = [int(tag[1]) for tag, _ in found.opened if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    tags = Counter(tag for tag, _ in found.opened)
    assert tags["table"] == tags["caption"] > 5
    assert tags["main"] == 1
    assert {attrs.get("scope") for tag, attrs in found.opened if tag == "th"} == {"row", "col"}
    assert {attrs.get("aria-hidden") for tag, attrs in found.opened if tag == "svg"} == {"true"}
    assert not {"script", "link", "img", "iframe"} & set(tags)
    assert "//" not in page.replace("<!doctype", "")
    light, dark = re.findall(r"--paper: (#\w+); --text: (#\w+); --soft: (#\w+)", page)
    for side, (paper, *inks) in enumerate((light, dark)):
        bars = [COLOURS[name][side] for name in ("blue", "vermillion")]
        for ink, least in [*((ink, 4.5) for ink in inks), *((bar, 3) for bar in bars)]:
            ends = sorted(luminance(colour) + 0.05 for colour in (paper, ink))
            assert ends[1] / ends[0] >= least, (paper, ink)


def test_rules_are_told_without_the_values_they_keep_apart() -> None:
    """The loss of nodes counts the values below them; groups are shown as published."""
    data = load_instance("clinic-12")
    problem = Problem(
        data,
        3,
        objective=Bottleneck(),
        diversity=Diversity(distinct=2),
        limits=(Cap("Town", 2), Apart("Job", "nurse", "welder")),
    )
    labels = np.array([0, 0, 1, 0, 1, 1, 2, 2, 3, 2, 3, 3])
    published = publish(by_classes(problem, labels))
    page = Page(html_report(published, "clinic-12"))
    # Towns: two classes North (4 of 7 values), two South (3 of 7): (3 / 6 + 2 / 6) / 2.
    assert "41.67 %" in [cell for row in page.rows for cell in row]
    limits = [row[1] for row in page.rows if row[0] in ("Diversity", "Limit")]
    assert limits == [
        "diversity 2 distinct sensitive values",
        "cap of 2 on 'Town'",
        "rule that two values of 'Job' stay apart",
    ]
    for value in ("welder", "Arden", "gout"):
        assert value not in page.text


def test_all_records_suppressed() -> None:
    """A release of stars alone has a report that says so, and no empty table."""
    problem = release(suppression=True).solution.problem
    hidden = by_classes(problem, [-1] * 4)
    page = Page(html_report(publish(hidden, suppressed="starred"), "people.csv"))
    assert "All records are suppressed." in page.text
    assert page.row("starred")[0] == "4"


@pytest.mark.parametrize("recoding", ["freeform", "k-one", "pattern", "full-domain"])
def test_every_recoding_has_a_report(recoding: str) -> None:
    """Covers, patterns and levels; what is certain of a sensitive value is told of covers too."""
    data = load_instance("health-records")
    published = publish(solve(Problem(data, 2, recoding)))
    page = Page(html_report(published, "health-records"))
    risk = published.risk(draws=0)
    assert risk.after is not None
    assert page.row("unique records") == [str(risk.before.unique), str(risk.after.unique)]
    assert page.row("read")[0] == str(data.n)
    rows = next(iter(risk.after.homogeneous.values()))[1]
    assert ("share" in page.text.split("Sensitive and kept values")[1][:90]) or rows == 0


def test_a_risk_that_cannot_be_counted_is_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cover of too many matches has a report without the figures, and no claim in their place."""
    published = publish(solve(Problem(load_instance("health-records"), 2, Freeform())))
    monkeypatch.setattr("anonymip.privacy.measuring.WORK", replace(WORK, matches=1))
    page = Page(html_report(published, "health-records"))
    assert "The risk was not measured: the release is a cover of about" in page.text
    assert "was not counted" in page.text


def test_many_columns_are_shown_and_few_as_examples() -> None:
    """Of thirty columns each has its loss and its bands; example rows have ten."""
    frame = pd.DataFrame({f"q{i}": [1, 1, 2, 2] for i in range(30)})
    data = Microdata(frame, tuple(Attribute(name) for name in frame))
    page = Page(html_report(classes(data, 2, [0, 0, 1, 1]), "wide.csv"))
    assert "Shown are the first 10 of 30 quasi-identifiers." in page.text
    assert [tag for tag, _ in page.opened].count("h3") == 30


#: Texts that occur on no page by themselves.
_TOWNS = [f"Xq{letter}town" for letter in "abcdef"]


@st.composite
def releases(draw: st.DrawFn) -> Release:
    """Draw persons with towns, districts and large odd numbers, and classes of them."""
    k = draw(st.integers(2, 3))
    n = draw(st.integers(k, 14))
    numbers = st.none() | st.integers(0, 40).map(lambda number: 7000037 + 10111 * number)
    frame = pd.DataFrame(
        {
            "size": pd.Series(draw(st.lists(numbers, min_size=n, max_size=n)), dtype=object),
            "town": draw(st.lists(st.sampled_from(_TOWNS), min_size=n, max_size=n)),
            "place": draw(st.lists(st.sampled_from(_TOWNS), min_size=n, max_size=n)),
            "kept": [f"Yq{i}kept" for i in range(n)],
            "name": [f"Zq{i}name" for i in range(n)],
        }
    )
    frame["place"] = frame["place"].str.replace("Xq", "Wq")
    places = [town.replace("Xq", "Wq") for town in _TOWNS]
    tree = Hierarchy.from_groups({"east": places[:3], "west": places[3:]})
    data = Microdata(
        frame,
        (
            Attribute("size", domain=(0, 9_000_000), missing="own"),
            Attribute("town", "categorical", domain=_TOWNS),
            Attribute("place", "hierarchical", hierarchy=tree),
        ),
        keep=("kept",),
        drop=("name",),
    )
    hidden = draw(st.integers(0, min(2, n - k)))
    labels = [i // k for i in range(n - hidden)]
    last = (n - hidden) // k - 1
    return classes(data, k, [min(label, last) for label in labels] + [-1] * hidden)


@given(releases())
def test_no_rare_value_is_told_that_the_release_does_not_tell(published: Release) -> None:
    """Values of fewer than k published records stand on the page as the release has them alone."""
    solution = published.solution
    k, labels = solution.problem.k, solution.classes.labels
    source = html_report(published, "people.csv")
    made_up = re.compile(r'(<th scope="row">(?:size|town|place)</th>)<td>[^<]*</td>(?=<td>)')
    text = Page(made_up.sub(r"\1", source)).text
    frame = solution.problem.microdata.frame
    shown = " ".join(published.table[["size", "town", "place"]].astype(str).to_numpy().ravel())
    for name in ("size", "town", "place"):
        counts = Counter(frame[name][labels >= 0].astype(str))
        for value in set(frame[name].dropna().astype(str)):
            if counts[value] < k and value not in shown:
                assert value not in text
    assert not re.search("Yq|Zq", source)


@given(releases())
def test_made_up_values_are_told_by_the_release(published: Release) -> None:
    """They lie in the published cell; below a group k records have them."""
    solution = published.solution
    frame, k = solution.problem.microdata.frame, solution.problem.k
    places = Counter(frame["place"])
    for row in Page(html_report(published, "people.csv")).rows:
        if len(row) != 3 or row[0] not in ("size", "town", "place") or "ident" in row[1]:
            continue
        name, before, after = row
        if name == "size" and "missing" in after:
            assert before == after.replace("[..]|", "any or ")
        elif name == "size":
            low, high = map(float, (*after.strip("[]").split(".."), after)[:2])
            assert low <= float(before) <= high
        elif name == "town":
            assert before in after
        elif before != after:
            assert places[before] >= k or before == f"one of {after}".replace("\\", "")


@given(releases())
def test_bands_hold_k_records_and_all_of_them(published: Release) -> None:
    """No band of originals is smaller than k, and the shares add up before and after."""
    solution = published.solution
    records = np.flatnonzero(solution.classes.labels >= 0)
    k, n = solution.problem.k, len(records)
    for a, attribute in enumerate(solution.problem.microdata.attributes):
        found = bands(solution, a, records)
        if not found:
            continue
        counts = [round(n * band.before, 9) for band in found if band.before is not None]
        assert all(count == 0 or count >= k for count in counts)
        assert attribute.kind != "numeric" or min(counts) >= k
        assert sum(counts) == pytest.approx(n)
        assert sum(band.after for band in found) == pytest.approx(1)


@given(st.lists(st.integers(-30, 500), min_size=2, max_size=40), st.integers(2, 4))
def test_bands_of_exact_cells_are_the_same_on_both_sides(values: list[int], k: int) -> None:
    """Numbers that k records share are published exactly, and counted where their band says."""
    numbers = [value for value in values for _ in range(k)]
    data = Microdata(
        pd.DataFrame({"x": numbers}), (Attribute("x", domain=(-100, 1000), integer=True),)
    )
    order = {value: label for label, value in enumerate(dict.fromkeys(numbers))}
    solution = classes(data, k, [order[value] for value in numbers]).solution
    for band in bands(solution, 0, np.arange(len(numbers))):
        assert band.before == pytest.approx(band.after)
        ends = [int(end) for end in re.findall(r"-?\d+", band.name)]
        low = -np.inf if band.name.startswith("below") else ends[0]
        high = np.inf if band.name.endswith("more") else ends[-1] - band.name.startswith("below")
        inside = sum(low <= number <= high for number in numbers)
        assert band.before == pytest.approx(inside / len(numbers))


def test_no_band_is_of_a_single_person_with_many_rows() -> None:
    """Where k counts persons, a band has as many records as k persons have at most."""
    data = Microdata(
        pd.DataFrame({"x": [1] * 5 + [50] * 6, "who": ["a"] * 4 + ["b", "a", "b", *"cdef"]}),
        (Attribute("x", domain=(0, 100)),),
        unit="who",
    )
    solution = by_classes(Problem(data, 2), [0] * 11)
    assert bands(solution, 0, np.arange(11)) == []
    page = Page(html_report(publish(solution), "visits.csv"))
    assert "no two bands of at least 10 records each" in page.text
    assert page.row("who") == ["unit", "left out"]
    assert page.row("Unit") == ["k counts the values of who, not rows"]
    assert "unique units" in page.text
    summary = page.text.split("before and after")[0]
    assert "looks like" not in summary
    assert "(units: who) with a probability of at most 16.67 %" in summary


def test_codes_are_counted_by_groups_that_are_few() -> None:
    """Sixty postcodes lie in bands of their first digits, dates in decades, before and after."""
    codes = [f"0{town}{50 * street:03}" for town in range(3) for street in range(20)]
    frame = pd.DataFrame({"zip": codes, "born": [f"{1950 + i}-05-01" for i in range(60)]})
    data = Microdata(
        frame,
        (
            Attribute("zip", "hierarchical", hierarchy=CodeRule("right").hierarchy(codes)),
            Attribute(
                "born", "date", ("1950-01-01", "2009-12-31"), precision="day", publish="node"
            ),
        ),
    )
    solution = classes(data, 5, [i // 20 for i in range(60)]).solution
    found, dates = (bands(solution, a, np.arange(60)) for a in range(2))
    assert [band.name for band in found] == ["00***", "01***", "02***"]
    assert [band.before for band in found] == pytest.approx([1 / 3] * 3)
    assert [band.after for band in found] == pytest.approx([1 / 3] * 3)
    assert [band.name for band in dates] == [f"{year}s" for year in range(1950, 2010, 10)]


def test_what_was_asked_is_told_by_column_and_by_number() -> None:
    """Own policies of missing values beside that of the others, and the limit as records."""
    frame = pd.DataFrame({"x": [1, 2, None, 4], "y": list("abab"), "who": list("abcd")})
    attributes = (
        Attribute("x", domain=(0, 9), missing="own"),
        Attribute("y", "categorical", domain=("a", "b")),
    )
    data = Microdata(frame, attributes, unit="who")
    problem = Problem(data, 2, EquivalenceClasses(most_suppressed=0.5))
    solution = by_classes(problem, [0] * 4)
    page = Page(html_report(publish(solution), "visits.csv"))
    assert page.row("k") == ["2: as many different values of who must be in every class"]
    assert page.row("Suppression") == ["allowed, 2 of 4 records at most"]
    told = "x: a value of its own, also beside ranges; others: an error: no quasi-identifier may be"
    assert page.row("Missing values") == [f"{told} missing"]


def test_bands_of_dates_follow_the_calendar() -> None:
    """Days over thirty years lie in bands of some years, named by their first and last day."""
    days = pd.date_range("1960-05-17", "1989-11-02", 60).strftime("%Y-%m-%d")
    data = Microdata(
        pd.DataFrame({"born": days.repeat(2)}),
        (Attribute("born", "date", domain=("1950-01-01", "1999-12-31")),),
    )
    solution = classes(data, 2, [i // 2 for i in range(120)]).solution
    found = bands(solution, 0, np.arange(120))
    assert [band.name for band in found] == [
        "before 1965-01-01",
        *(f"{year}-01-01 to {year + 4}-12-31" for year in (1965, 1970, 1975, 1980)),
        "1985-01-01 or later",
    ]
    years = [int(day[:4]) for day in days]
    assert found[1].before == found[1].after == sum(1965 <= y < 1970 for y in years) / 60


def test_a_notebook_shows_six_rows_and_the_gap() -> None:
    """Rows of the original beside what is published of them, of those that are published."""
    published = release()
    page = Page(published._repr_html_())
    assert page.rows[0] == ["before", "after"]
    assert page.rows[1] == ["age", "sex", "age", "sex"]
    assert page.rows[2] == ["34177", "F", "[34177..36177]", "F"]
    assert len(page.rows) == 6
    assert "No other release of this kind loses less." in page.text


def test_the_report_speaks_of_what_is_published() -> None:
    """Suppressed records are no wide cells, and an optimum is one of the loss asked for."""
    frame = pd.DataFrame({"age": [20, 20, 30, 41, 57, 64], "sex": list("FFMMFM")})
    attributes = (
        Attribute("age", domain=(0, 100)),
        Attribute("sex", "categorical", domain=["F", "M"]),
    )
    free = EquivalenceClasses(suppression=True, suppression_price=0.0)
    solution = solve(Problem(Microdata(frame, attributes), 2, free))
    assert solution.objective == 0
    page = Page(html_report(publish(solution), "people"))
    text = " ".join(page.texts)
    assert "covers on average 0 % of what its column may hold (66.7 % with" in text
    assert (
        "No other release of this kind loses less of the loss that was asked for (gcp with" in text
    )
