"""What runs by parts claim of the whole table: loss, bound, status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonymip
from anonymip import InputError, Problem, Schema, TableFormat, anonymize_by_parts, solve
from anonymip.privacy import read_release
from anonymip.privacy.parts import verify_parts
from anonymip.publishing.checking import loss_of_table
from anonymip.scale.cuts import Cut
from anonymip.scale.part import proven
from tests.by_hand import by_classes
from tests.scale.test_running import QUICK, small


def halves(folder: Path, frame: pd.DataFrame, k: int, **given: Any) -> anonymip.ReleaseInParts:
    """Return the release of a table by two parts."""
    frame.to_parquet(folder / "table.parquet")
    asked: dict[str, Any] = {"engine": small(len(frame) // 2 + 8), **QUICK, **given}
    found = anonymize_by_parts(folder / "table.parquet", [*frame], k, folder / "release", **asked)
    assert found.parts == 2
    assert verify_parts(folder / "table.parquet", folder / "release", k=k).ok
    return found


def test_a_loss_of_0_is_the_least_of_exact_cells_alone(tmp_path: Path) -> None:
    """A loss that may be negative is no optimum at 0, and has no gap there."""
    frame = pd.DataFrame({"x": np.repeat([0, 10], 20), "y": [0, 1] * 20})

    @anonymip.objective
    def signed(record: Any) -> Any:
        return record.spread["y"] - 1.0

    found = halves(tmp_path, frame, 20, objective=signed)
    problem = Problem(Schema().with_roles(["x", "y"]).apply(frame), 20, objective=signed)
    best = by_classes(problem, frame["y"].to_numpy()).objective
    assert (found.objective, best) == (0, -40)
    assert found.bound is not None
    assert found.bound <= best
    assert (found.gap, found.manifest["status"]) == (None, "heuristic")
    exact = halves(tmp_path, frame, 10)
    assert (exact.objective, exact.bound, exact.manifest["status"]) == (0, 0, "optimal")
    assert exact.manifest["bound"]["method"] == "nothing is lost"


def test_a_loss_is_monotone_over_the_values_of_all_parts(tmp_path: Path) -> None:
    """One that falls only for cells of values of several parts has no bound by parts."""
    frame = pd.DataFrame({"x": np.repeat([0, 10], 20), "c": [*"ab" * 10, *"cd" * 10]})

    @anonymip.objective
    def falling(record: Any) -> Any:
        count = record.distinct["c"]
        return 0.3 * record.spread["x"] + np.where(count > 3, 0.0, 0.5 + 0.5 * count)

    found = halves(tmp_path, frame, 12, objective=falling)
    problem = Problem(Schema().with_roles(["x", "c"]).apply(frame), 12, objective=falling)
    whole = by_classes(problem, [0] * 40).objective
    assert whole < found.objective
    assert (found.bound, found.manifest["status"]) == (None, "heuristic")


def test_numbers_that_are_not_all_known_prove_no_loss_monotone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loss may fall between the ends of a column, of which alone tables are made then."""
    frame = pd.DataFrame({"x": [0, 10, 20, 30, 70, 80, 90, 100] * 5})

    @anonymip.objective
    def hollow(record: Any) -> Any:
        width = record.width["x"]
        return np.where((width > 0.35) & (width < 0.95), 0.0, width)

    monkeypatch.setattr("anonymip.scale.survey._MANY", 5)
    assert halves(tmp_path, frame, 6, objective=hollow).bound is None
    # Slopes say it of all numbers.
    assert halves(tmp_path, frame, 6).bound is not None


@pytest.mark.parametrize("most", [64**2, 4**2])
def test_bounds_name_what_is_assumed_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Also where the tables of a part prove that the loss is monotone, and the whole has none."""
    frame = pd.DataFrame({"x": [0, 10, 20, 30, 70, 80, 90, 100] * 5})

    @anonymip.objective(monotone=True)
    def declared(record: Any) -> Any:
        return np.sin(record.width["x"])

    monkeypatch.setattr("anonymip.objectives.language.tables.LARGEST_PAIR_TABLE", most)
    found = halves(tmp_path, frame, 6, objective=declared)
    assert found.bound is not None
    assumed = "(assuming that the objective is monotone), by parts"
    assert found.manifest["bound"]["method"].endswith(assumed) == (most < 64)


def test_nearest_neighbours_name_what_is_assumed() -> None:
    """Also where they stand in for a bound without duals."""

    @anonymip.objective(monotone=True)
    def declared(record: Any) -> Any:
        return np.sin(record.width["x"] * record.width["y"])

    frame = pd.DataFrame({"x": range(12), "y": range(12)})
    problem = Problem(Schema().with_roles(["x", "y"]).apply(frame), 3, objective=declared)
    found = by_classes(problem, np.repeat([*range(4)], 3))
    found = found.with_bound(anonymip.Bound(0.0, "columns", "argument"))
    way = [(Cut(0, 11.0, 0, 1, 11.0, 12.0), True)]
    _, method = proven(problem, found, way, problem.compiled.assumed)
    assert method == "nearest-neighbour (assuming that the objective is monotone), by parts"


SIZES = {
    "missing numbers": ([0, 1] * 10 + [0] * 12 + [None] * 12, {}),
    "sets of real numbers": (
        [0.5, 1.5] * 10 + [2.5, 3.5, 4.5, 5.5] * 6,
        {"kind": "numeric", "publish": "set", "domain": (0, 6)},
    ),
}


@pytest.mark.parametrize(("values", "known"), SIZES.values(), ids=SIZES)
def test_domain_sizes_are_those_of_the_whole(
    tmp_path: Path, values: list[float | None], known: dict[str, Any]
) -> None:
    """Losses that read them, and their bounds, are those of the whole table."""
    whole_numbers = pd.array(values, dtype="Float64" if known else "Int64")
    frame = pd.DataFrame({"x": np.repeat([0, 10], [20, 24]), "c": whole_numbers})
    schema = Schema({"x": {}, "c": known}, table=TableFormat(policy="own"))
    given: dict[str, Any] = {"schema": schema, "objective": "set-gcp", "method": "greedy-search"}
    found = halves(tmp_path, frame, 11, **given)
    problem = Problem(schema.apply(frame), 11, objective="set-gcp")
    best = solve(problem)
    assert best.is_optimal
    assert found.bound is not None
    assert found.bound <= best.objective
    release = read_release(pd.read_parquet(tmp_path / "release"), found.manifest)
    assert found.objective == pytest.approx(loss_of_table(problem, release))


def test_sizes_that_parts_do_not_know_are_refused(tmp_path: Path) -> None:
    """How many numbers of a range there are, no part knows; one part is the whole table."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"x": rng.random(40).round(2), "y": rng.integers(0, 9, 40)})

    @anonymip.objective
    def by_size(record: Any) -> Any:
        return sum(record.spread[a] / record.domain_size[a] for a in record.attributes)

    with pytest.raises(InputError, match="reads domain_size of 'x', a range of real numbers"):
        halves(tmp_path, frame, 3, objective=by_size)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["table.parquet"]
    asked: dict[str, Any] = {"engine": small(40), "objective": by_size, **QUICK}
    table = tmp_path / "table.parquet"
    found = anonymize_by_parts(table, [*frame], 3, tmp_path / "release", **asked)
    assert found.objective > 0
