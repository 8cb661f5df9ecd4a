"""Property tests of the verifier on random tables and partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anonymip.privacy import read_release, verify
from tests.profiles import as_the_profile_asks

NASTY = ["a|b", "{", "}", "\\", "*", "**", "", " ", " x ", "é", "日本", "a,b", '"', "a\nb", "\r\n"]
NASTY += ["[1..2]", "{a|b}", "\\*", "\\|", "|", "nan", "1.0", "'", "a;b", "\t", "NULL"]
texts = st.sampled_from(NASTY) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=3
)
numbers = st.integers(-3, 3).map(str) | st.floats(allow_nan=False, width=64).filter(
    lambda number: abs(number) < 1e300
).map(repr)
KINDS: dict[str, dict[str, Any]] = {
    "x": {"kind": "numeric"},
    "z": {"kind": "numeric", "publish": "set"},
    "c": {},
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[pd.DataFrame, list[int], list[int]]:
    """Draw an original, a partition into classes of at least two rows, and a shuffle."""
    n = draw(st.integers(2, 9))
    column = {"x": numbers, "z": numbers, "c": texts, "s": texts}
    frame = pd.DataFrame(
        {name: [draw(values) for _ in range(n)] for name, values in column.items()}, dtype=object
    )
    labels = [row // 2 for row in range(n)]
    if n % 2:
        labels[-1] -= 1 if draw(st.booleans()) else labels[-1] + 1
    return frame, draw(st.permutations(labels)), draw(st.permutations(range(n)))


@pytest.mark.parametrize("layout", ["cells", "columns"])
@pytest.mark.parametrize("kept", [False, True])
def test_written_partitions_verify(write_release: Any, layout: str, kept: bool) -> None:
    """Every partition, written as the format says, is found to keep its promises."""

    @as_the_profile_asks
    @settings(max_examples=60)
    @given(tables())
    def keeps(drawn: tuple[pd.DataFrame, list[int], list[int]]) -> None:
        frame, labels, shuffle = drawn
        order = None if kept else shuffle
        written = write_release(frame, KINDS, labels, sensitive=["s"], layout=layout, order=order)
        written.leave_out()
        found = verify(frame, written.release, written.manifest)
        assert found.problems == ()
        assert (found.suppressed, found.left_out) == (0, labels.count(-1))

    keeps()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables())
def test_texts_survive_csv_and_parquet(
    write_release: Any, tmp_path: Path, drawn: tuple[pd.DataFrame, list[int], list[int]]
) -> None:
    """What is written to files is what is read back, and verifies."""
    frame, labels, shuffle = drawn
    written = write_release(frame, KINDS, labels, sensitive=["s"], order=shuffle).leave_out()
    for name in ("release.csv", "release.parquet"):
        original, release = written.save(tmp_path, name)
        assert verify(original, release).problems == ()
        table = read_release(release)
        for place, row in enumerate(row for row in shuffle if labels[row] != -1):
            members = {
                frame["c"][other] for other in range(len(frame)) if labels[other] == labels[row]
            }
            assert set(table.cell(place, 2).members) == members
            assert table.untouched["s"].texts[place] == frame["s"][row]


@pytest.mark.parametrize("text", NASTY)
def test_nasty_text_alone_and_in_a_set(write_release: Any, tmp_path: Path, text: str) -> None:
    """Each odd text survives as exact value, as member of a set and as sensitive value."""
    frame = pd.DataFrame({"c": [text, text, text, "m"], "s": [text, "s", "s", text]}, dtype=object)
    written = write_release(frame, {"c": {}}, [0, 0, 1, 1], sensitive=["s"], order=[3, 0, 2, 1])
    original, release = written.save(tmp_path)
    assert verify(original, release).problems == ()
    assert read_release(release).cell(1, 0).members == (text,)


@settings(max_examples=100)
@given(st.lists(st.integers(0, 20), min_size=4, max_size=9, unique=True), st.data())
def test_narrowed_range_is_caught(
    write_release: Any, values: list[int], data: st.DataObject
) -> None:
    """A range of a class that is narrowed past one of its ends no longer holds its members."""
    values = sorted(values)
    frame = pd.DataFrame({"x": [str(value) for value in values]}, dtype=object)
    labels = [min(row // 2, len(values) // 2 - 1) for row in range(len(values))]
    written = write_release(frame, {"x": {"kind": "numeric"}}, labels)
    written.manifest["order"] = data.draw(st.sampled_from(["shuffled", "kept"]))
    row = data.draw(st.integers(0, len(values) - 1))
    members = [value for value, label in zip(values, labels, strict=True) if label == labels[row]]
    shift = data.draw(st.sampled_from([0.25, 0.5]))
    low, high = members[0], members[-1]
    narrowed = data.draw(st.sampled_from([f"[{low + shift}..{high}]", f"[{low}..{high - shift}]"]))
    for place, label in enumerate(labels):
        if label == labels[row]:
            written.release.loc[place, "x"] = narrowed
    found = verify(frame, written.release, written.manifest)
    assert any(
        "fit into only" in problem or "fits into no" in problem or "does not contain" in problem
        for problem in found.problems
    )
