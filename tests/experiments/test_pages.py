"""The page about runs: what it says, and that it stands alone."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pandas as pd
import pytest

from anonymip import Problem, compare, load_instance
from anonymip.experiments import (
    Experiment,
    MethodChoice,
    Samples,
    TableSource,
    pages,
    run_experiment,
)
from anonymip.experiments.overview import overview_texts
from anonymip.experiments.pages import runs_page
from anonymip.experiments.running.runs import COLUMNS
from tests import profiles


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Return runs of heuristics of two recodings and the exact method on two samples."""
    experiment = Experiment(
        "small",
        (TableSource("census:40,3,1", samples=Samples(2, 8, 1)),),
        (2, 3),
        tuple(map(MethodChoice, ("column-generation", "mondrian", "ring", "anatomy"))),
    )
    return run_experiment(experiment, isolate=False).frame


@pytest.fixture(scope="module")
def page(frame: pd.DataFrame) -> str:
    """Return the page about them, with pictures in a thorough run alone."""
    with pytest.MonkeyPatch.context() as patch:
        if profiles.NAME != "thorough":
            patch.setattr(pages, "_MOST_PICTURES", 0)
            for drawn in ("time_chart", "spread_chart"):
                patch.setattr(pages, drawn, lambda *_: None)
        return runs_page(frame, "Small samples")


def texts(page: str) -> str:
    """Return what a reader reads."""
    return " ".join(" ".join(Elements(page).texts).split())


def test_the_page_answers_its_question(frame: pd.DataFrame, page: str) -> None:
    """For each k and recoding the best method is named with what is proven about it."""
    page = texts(page)
    assert (
        "How near the optimum 4 methods come on census:40,3,1 (8 records of 3 attributes)" in page
    )
    assert "2 samples, with k = 2, 3 and the loss gcp." in page
    for k in (2, 3):
        mine = frame[(frame["k"] == k) & (frame["label"] == "column-generation")]
        assert set(mine["status"]) == {"optimal"}
        least = f"{mine['gcp'].mean():.5g}"
        best = (
            mine["gcp"].mean()
            < 0.999 * frame.loc[(frame["k"] == k) & (frame["label"] == "mondrian"), "gcp"].mean()
        )
        who = "column-generation loses least" if best else "all 2 methods lose the same"
        assert f"k = {k}, classes: {who}, {least}, the proven opt" in page
        assert re.search(rf"k = {k}, freeform: ring loses least, [\d.]+; at most", page)


def test_what_was_refused_is_told_with_its_reason(frame: pd.DataFrame, page: str) -> None:
    """A method that took no table is a line with why."""
    assert set(frame.loc[frame["label"] == "anatomy", "loss"].isna()) == {True}
    assert "Without a release" in texts(page)
    assert "needs a diversity" in texts(page)


def test_the_page_loads_nothing_and_is_well_formed(frame: pd.DataFrame) -> None:
    """Pictures and script are inside; names are texts and never elements."""
    page = runs_page(frame.assign(label=NASTY), NASTY)
    found = Elements(page)
    # Two tables of recodings, times, spread.
    # Each picture is drawn for wide screens and for narrow ones.
    assert found.opened.count("svg") == 2 * 3  # one method alone has no picture of times
    assert found.opened.count("script") == 1
    assert not {"link", "img", "iframe"} & set(found.opened)
    assert "url(" not in page.replace("url(#", "")
    for tag in ("html", "table", "svg", "ul", "tr", "td"):
        assert found.opened.count(tag) == found.closed.count(tag) > 0


def test_what_is_unknown_sorts_behind(frame: pd.DataFrame, page: str) -> None:
    """Cells of numbers carry what they are sorted by; what is missing is infinitely large."""
    keys = [float(key) for key in re.findall(r'data-key="([^"]*)"', page)]
    assert float("inf") in keys
    losses = frame.groupby(["k", "label"])["gcp"].mean().dropna()
    for loss in losses:
        assert any(key == pytest.approx(loss) for key in keys)


def test_no_release_at_all_leaves_a_page_with_the_reasons(frame: pd.DataFrame) -> None:
    """Where every run was refused there is no picture, and no error."""
    refused = frame[frame["loss"].isna()]
    page = runs_page(refused, "Refused")
    assert "svg" not in Elements(page).opened
    assert "needs a diversity" in texts(page)


@pytest.mark.thorough
def test_a_comparison_has_the_page_of_its_runs() -> None:
    """Rows and refusals of one table become runs with the columns of an experiment."""
    problem = Problem(load_instance("health-records"), 3)
    compared = compare(problem, [2, 3], ["mondrian", "two-factor"], exact=True, instance="health")
    runs = compared.to_runs()
    assert list(runs.columns) == list(COLUMNS)
    refused = runs[runs["loss"].isna()]
    assert refused[["k", "label"]].to_numpy().tolist() == [[2, "two-factor"]]
    page = texts(runs_page(runs, "Health"))
    assert "on health (7 records of 3 attributes), with k = 2, 3" in page
    optimum = f"{compared.rows[-1].solution.gcp:.5g}"
    assert re.search(rf"k = 3, classes: [\w -]+, {optimum}, the proven opt", page)


def test_a_comparison_is_measured_by_the_optimum_that_it_proves() -> None:
    """The optimum is 1 times itself, and a heuristic's ratio is known; k for k its own."""
    problem = Problem(load_instance("health-records"), 3)
    compared = compare(problem, [2, 3], ["mondrian", "initial"], exact=True)
    runs = compared.to_runs()
    keys = runs.groupby("k")["problem"].unique()
    assert [len(found) for found in keys] == [1, 1]
    assert keys[2][0] != keys[3][0]
    texts_of = overview_texts(runs)
    assert [row[6] for row in texts_of if row[2] == "column-generation"] == ["1", "1"]
    optima = [row.solution.gcp for row in compared.rows if row.solution.is_optimal]
    for row in compared.rows:
        k, loss = row.solution.problem.k, row.solution.gcp
        optimum = min(o.solution.gcp for o in compared.rows if o.solution.problem.k == k)
        assert optimum in optima
        (shown,) = (text[6] for text in texts_of if text[1:3] == [str(k), row.solution.method])
        assert float(shown) == pytest.approx(loss / optimum, rel=1e-3)


def test_ties_are_told_as_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """Methods of equal loss are named together; one that ran on fewer tables leads nobody."""
    monkeypatch.setattr(pages, "_MOST_PICTURES", 0)
    for drawn in ("time_chart", "spread_chart"):
        monkeypatch.setattr(pages, drawn, lambda *_: None)
    problem = Problem(load_instance("health-records"), 2)
    frame = compare(problem, [2], ["mondrian", "initial", "hilbert"], exact=True).to_runs()
    losses = {"mondrian": 0.2, "initial": 0.3, "hilbert": 0.2, "column-generation": 0.2}
    tied = frame.assign(gcp=frame["label"].map(losses), status="heuristic", bound=0.0)
    told = texts(runs_page(tied, "Ties"))
    assert "k = 2, classes: mondrian, hilbert and column-generation lose least, 0.2" in told
    assert "all 4 methods lose the same, 0.2" in texts(runs_page(tied.assign(gcp=0.2), "Ties"))
    shirking = tied[tied["label"] == "mondrian"].assign(gcp=0.1, sample=1)
    twice = pd.concat([tied.assign(sample=1), tied.assign(sample=2)])
    fewer = pd.concat([shirking, twice[twice["label"] != "mondrian"]])
    told = texts(runs_page(fewer, "Ties"))
    assert "k = 2, classes: hilbert and column-generation lose least, 0.2" in told


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
