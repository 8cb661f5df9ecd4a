"""The benchmarks, as far as they can be checked without running them."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from anonymip import __version__
from anonymip.instances.library.catalogue import library
from anonymip.methods import METHODS
from anonymip.recodings.registry import find_recoding
from benchmarks import adult, answers, exact_engine, heuristics, pages
from benchmarks.engine_table import GOALS, Goal, page, verdict_on
from tests import profiles
from tests.experiments.test_style import shown_names


@pytest.mark.parametrize("method", METHODS)
def test_answers_have_a_problem_for_every_method(method: str) -> None:
    """Every method's recoding is among those that answers are collected for, by its own name."""
    recoding = METHODS[method].recoding
    asked = answers._BY_RECODING.get(recoding)
    assert asked, f"benchmarks/answers.py has no {recoding}"
    assert {type(one) for one in asked} == {type(find_recoding(recoding))}


def test_answers_know_the_methods_that_have_options() -> None:
    """Options that answers are collected for belong to methods that take them."""
    for method, choices in answers._OPTIONS.items():
        known = {option.name for option in METHODS[method].options}
        assert all(set(options) <= known for options in choices)


@pytest.mark.parametrize("shown", pages.PAGES, ids=lambda one: f"{one.benchmark}-{one.file}")
def test_pages_show_what_was_measured(shown: pages.Page) -> None:
    """README and docs hold the tables that the result files and the library make."""
    assert shown.path.read_text(encoding="utf-8") == shown.written(pages.stored(shown.benchmark))


@pytest.mark.parametrize("drawn", pages.DRAWINGS, ids=lambda one: one.file)
def test_pictures_are_of_what_was_measured(drawn: pages.Drawing, tmp_path: Path) -> None:
    """The picture says of which rows it is; README shows it, and it is drawn of them anew."""
    measured = pages.stored(drawn.benchmark)
    with Image.open(drawn.path) as picture:
        assert picture.info["Description"] == drawn.digest(measured)
    assert f"]({drawn.file})" in (pages.REPOSITORY / "README.md").read_text(encoding="utf-8")
    if profiles.NAME != "thorough":
        return
    again = replace(drawn, file=str(tmp_path / "again.png"))
    again.write(measured.assign(machine="another"))
    with Image.open(again.path) as picture:
        assert picture.info["Description"] != drawn.digest(measured)


@pytest.mark.thorough
def test_other_tools_are_on_the_picture() -> None:
    """Those with a release of Adult for k = 5 are points; a failed one or another k is none."""
    columns = [
        "table",
        "k",
        "tool",
        "method",
        "loss",
        "seconds",
        "memory_mb",
        "rows_lost",
        "status",
    ]
    peers = pd.DataFrame(
        [
            ("adult", 5, "one", "mondrian", 0.05, 2.0, 90.0, 0, "ok"),
            ("adult", 5, "two", "a", 0.2, 3.0, 90.0, 0, "ok"),
            ("adult", 5, "two", "b", 0.3, 30.0, 90.0, 12, "ok"),
            ("adult", 5, "three", "", None, None, None, None, "failed"),
            ("adult", 10, "four", "", 0.1, 1.0, 90.0, 0, "ok"),
            ("houses", 5, "five", "", 0.1, 1.0, 90.0, 0, "ok"),
        ],
        columns=columns,
    )
    figure = adult.picture(pages.stored("adult"), peers)
    named = {text for text, _ in shown_names(figure)}
    assert {"one", "two a", "two b (loses records)", "mondrian"} <= named
    assert not {"three", "four", "five"} & named
    (axes,) = figure.axes
    drawn = {
        (float(np.asarray(line.get_xdata())[0]), float(np.asarray(line.get_ydata())[0]))
        for line in axes.lines
    }
    assert {(2.0, 0.05), (3.0, 0.2), (30.0, 0.3)} <= drawn
    # The longest line is the bound, and no name stands below it.
    below = min(y for _, y in drawn)
    floor = axes.transData.transform((1.0, below))[1]
    points = {"one", "two a", "two b (loses records)", *(line.get_label() for line in axes.lines)}
    assert all(box[1] > floor - 2 for text, box in shown_names(figure) if text in points)


def test_a_page_without_markers_is_an_error() -> None:
    """Nothing is written where a table would go nowhere."""
    lost = pages.Page("adult", "README.md", lambda _: "table", "gone")
    with pytest.raises(ValueError, match=r"README.md has no markers <!-- gone: begin -->"):
        lost.written(pd.DataFrame())


def measured(**changed: Any) -> dict[str, Any]:
    """Return a row of the exact engine that reaches what is asked, but for what is changed."""
    reached = {
        "instance": "census-8-n100-k3",
        "n": 100,
        "m": 8,
        "k": 3,
        "recoding": "classes",
        "linear_program": 73.597,
        "with_cuts": None,
        "loss": 75.76778,
        "bound": 75.76777,
        "gap": 1e-7,
        "status": "optimal",
        "processor_seconds": 3.0,
        "versions": f"python 3.11.7; anonymip {__version__}; numpy 2",
    }
    return {**reached, **changed}


def test_what_falls_short_is_marked() -> None:
    """Gap, bounds, seconds and another optimum; a proven optimum needs no bound on the way."""
    goal = Goal("census-8-n100-k3", 60, 0, 22, 75.7678, 73.597, 74.457)
    assert verdict_on(goal, measured()) == "reached"
    assert verdict_on(goal, measured(loss=75.9)) == "short: another optimum"
    assert verdict_on(goal, measured(processor_seconds=23)) == "short: seconds"
    unproven = measured(status="gap", gap=0.03, bound=73.5)
    assert verdict_on(goal, unproven) == "short: gap, LP bound, cuts"
    assert verdict_on(goal, measured(status="gap", gap=0.01, bound=74.4565)) == "short: gap"
    loose = Goal("census-8-n5000-k3", 60, 0.02, None, None, 1238)
    assert verdict_on(loose, measured(status="time", gap=0.019, bound=1237.6)) == "reached"
    text = page(pd.DataFrame([measured(loss=75.9)]))
    assert text.count("| not measured |") == len(GOALS) - 1
    assert "| 75.9 | 75.76777 | proven | 75.7678 | 3.0 | 22 | short: another optimum |" in text


def test_goals_are_of_the_library() -> None:
    """Every instance is an entry, once, and nothing is asked that is known to be impossible."""
    assert len({goal.name for goal in GOALS}) == len(GOALS)
    for goal in GOALS:
        entry = library()[goal.name]
        asked = [goal.linear_program, goal.with_cuts, goal.optimum]
        assert entry.loss is None or all(one <= entry.loss + 1e-3 for one in asked if one)


def test_measurements_are_kept_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run goes on with what this version has not measured; a row takes the place of its own."""
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    monkeypatch.setattr(exact_engine, "write_pages", lambda name: None)
    everything = [goal.name for goal in GOALS]
    assert [goal.name for goal in exact_engine.due([], False)] == everything
    exact_engine.keep(measured(instance="freeform-n14-k3"))
    exact_engine.keep(measured(loss=76.0))
    exact_engine.keep(measured())
    exact_engine.keep(measured(instance="census-8-n50-k3", versions="anonymip 0.1.0; numpy 2"))
    kept = pages.stored(exact_engine.NAME)
    assert kept["instance"].tolist() == ["census-8-n50-k3", "census-8-n100-k3", "freeform-n14-k3"]
    assert kept["loss"].tolist() == [75.76778] * 3
    left = [goal.name for goal in exact_engine.due([], False)]
    assert set(everything) - set(left) == {"census-8-n100-k3", "freeform-n14-k3"}
    assert max(goal.limit for goal in exact_engine.due([], True)) <= 60
    assert [goal.name for goal in exact_engine.due(["freeform-n14-k3"], True)] == [
        "freeform-n14-k3"
    ]


def test_seconds_of_running_children_count() -> None:
    """A solver's process that has not ended yet has used the processor too."""
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        before, own = heuristics.processor_seconds(), time.process_time()
        while heuristics.processor_seconds() - before <= 2 * (time.process_time() - own) + 0.05:
            assert spinning.poll() is None
            time.sleep(0.05)
    finally:
        spinning.kill()
        spinning.wait()
