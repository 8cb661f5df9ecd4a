"""Tests of the gap thermometer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from anonymip import GCP, InputError, LiangGCP, Problem, census, compare, load_instance, objective
from anonymip.experiments import Comparison
from anonymip.experiments.thermometer import save_figure, thermometer


@objective
def rewarding(record: Any) -> Any:
    """Charge every record its spread, and give it more than that back."""
    return sum(record.spread[name] for name in record.attributes) - 9.0


def compared(*, exact: bool, loss: GCP | LiangGCP | None = None) -> Comparison:
    """Compare two heuristics on the health records."""
    problem = Problem(load_instance("health-records"), k=3, objective=loss or GCP())
    return compare(problem, [2, 3], ["initial", "k-member"], instance="health", exact=exact)


def labels(axes: Axes) -> list[str]:
    """Return the names beside the plot."""
    return [text.get_text() for text in axes.texts]


def test_losses_stand_where_they_are() -> None:
    """Each method has one mark per k, at its loss per cell."""
    table = compared(exact=True)
    picture = thermometer(table)
    (axes,) = picture.axes
    methods = {row.solution.method for row in table.rows}
    lines = [line for line in axes.lines if line.get_label() in methods]
    marks = [float(np.asarray(line.get_ydata())[0]) for line in lines]
    assert marks == [row.solution.gcp for row in table.rows]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["k = 2", "k = 3"]
    assert axes.get_ylim()[0] == 0
    assert "health" in picture.get_suptitle()


def test_negative_losses_are_in_the_picture() -> None:
    """An objective may be negative; its marks are not cut off at 0."""
    problem = Problem(load_instance("health-records"), k=3, objective=rewarding)
    table = compare(problem, [3], ["initial", "k-member"])
    (axes,) = thermometer(table).axes
    assert all(row.solution.objective < 0 for row in table.rows)
    assert axes.get_ylim()[0] < min(row.solution.objective for row in table.rows)


def test_a_proven_optimum_is_one_line() -> None:
    """With the optimum proven there is a line and no band."""
    (axes,) = thermometer(compared(exact=True)).axes
    named = labels(axes)
    assert "proven optimum" in named
    assert not any("proven bound" in label for label in named)
    assert "the optimum lies here" not in named
    assert len(named) == len(set(named))


def test_a_bound_leaves_a_band() -> None:
    """Without it the band between bound and best loss is where the optimum lies."""
    problem = Problem(census(60, 4, 1), k=3)
    (axes,) = thermometer(compare(problem, [3], ["initial", "k-member"])).axes
    named = labels(axes)
    assert "the optimum lies here" in named
    assert "proven bound:\ncolumn generation, linear\nprogram" in named
    assert "proven optimum" not in named


def test_no_bound_is_said_so() -> None:
    """Where nothing bounds the loss there is no line at 0, and a note says why."""

    @objective
    def falling(record: Any) -> Any:
        return 2.0 - record.spread["Age"]

    problem = Problem(load_instance("health-records"), k=3, objective=falling)
    table = compare(problem, [3], ["initial", "k-member"])
    picture = thermometer(table)
    (axes,) = picture.axes
    assert "no lower bound is known (k = 3)" in picture.get_supxlabel()
    assert not any("proven" in label for label in labels(axes))
    assert not axes.collections
    assert table.bound_texts() == ["k = 3: no lower bound is known"]


def test_other_objectives_are_named() -> None:
    """The axis says which loss it shows; only the global certainty penalty is a share."""
    (axes,) = thermometer(compared(exact=False, loss=LiangGCP())).axes
    assert axes.get_ylabel() == "loss (liang-gcp)"
    (usual,) = thermometer(compared(exact=False)).axes
    assert usual.get_ylabel() == "loss (global certainty penalty)"


@pytest.mark.thorough("gap.PDF-%PDF")
@pytest.mark.parametrize(
    ("name", "start"), [("gap.png", b"\x89PNG"), ("gap.svg", b"<?xml"), ("gap.PDF", b"%PDF")]
)
def test_formats(tmp_path: Path, name: str, start: bytes) -> None:
    """The ending chooses the format; nothing but the picture is left."""
    save_figure(thermometer(compared(exact=False)), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["gap.bmp", "gap", "gap.csv"])
def test_other_formats_are_refused(tmp_path: Path, name: str) -> None:
    """An unknown ending is bad input that names the known ones."""
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        save_figure(thermometer(compared(exact=False)), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_drawing_needs_no_window_system(tmp_path: Path) -> None:
    """A picture is drawn and saved without pyplot, which would choose a window system."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from anonymip import Problem, compare, load_instance\n"
        "from anonymip.experiments.thermometer import save_figure, thermometer\n"
        "table = compare(Problem(load_instance('health-records'), k=3), [3], ['initial'])\n"
        "save_figure(thermometer(table), Path('gap.png'))\n"
        "print('matplotlib.figure' in sys.modules, 'matplotlib.pyplot' in sys.modules)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ended.stdout == "True False\n"
    assert (tmp_path / "gap.png").is_file()
