"""Releases of full domains: one level a column, true in cells, manifest and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    GCP,
    Attribute,
    FullDomain,
    Hierarchy,
    HierarchyLoss,
    Microdata,
    Problem,
    Solution,
    publish,
    verify,
)
from anonymip.publishing.checking import hierarchy_paths
from tests.publishing.test_patterns import assert_published_truly
from tests.random_problems import microdata, tables


@st.composite
def drawn_levels(draw: st.DrawFn) -> Solution:
    """Draw a table of all kinds of columns and a level for each; outliers are suppressed."""
    data = microdata(draw(tables(4, 9)))
    problem = Problem(
        data,
        draw(st.integers(2, 3)),
        FullDomain(suppression=True),
        draw(st.sampled_from([GCP(), HierarchyLoss()])),
    )
    levels = [
        draw(st.integers(0, 1 if a.hierarchy is None else a.hierarchy.height))
        for a in data.attributes
    ]
    recoding = problem.recoding
    assert isinstance(recoding, FullDomain)
    return Solution.of(problem, recoding.assignment(problem, levels), method="drawn")


@settings(max_examples=40)
@given(drawn_levels(), st.booleans(), st.sampled_from(["cells", "columns"]))
def test_drawn_levels_are_published_truly(drawn: Solution, keep_order: bool, layout: str) -> None:
    """Whatever levels, the release verifies and loses what the solution does."""
    release = assert_published_truly(drawn, "full-domain", keep_order=keep_order, layout=layout)
    names = drawn.problem.microdata.names
    levels = drawn.assignment.levels.tolist()  # type: ignore[union-attr]
    assert release.manifest["levels"] == dict(zip(names, levels, strict=True))


@settings(max_examples=40)
@given(drawn_levels(), st.data())
def test_another_level_is_found(drawn: Solution, data: st.DataObject) -> None:
    """A manifest that claims another level of a column fails, unless both show the same cells."""
    assume(drawn.assignment.suppressed < drawn.problem.n)
    release = publish(drawn)
    microdata_, manifest = drawn.problem.microdata, dict(release.manifest)
    a = data.draw(st.integers(0, microdata_.m - 1))
    attribute = microdata_.attributes[a]
    height = 1 if attribute.hierarchy is None else attribute.hierarchy.height
    level = data.draw(st.integers(0, height + 1))
    manifest["levels"] = {**manifest["levels"], attribute.name: level}
    found = verify(
        microdata_.original, release.frame, manifest, hierarchies=hierarchy_paths(microdata_)
    )
    shown = set(np.asarray(release.frame.filter(regex=f"^{attribute.name}$")).ravel().tolist())
    if level > height:
        expected = False
    elif attribute.hierarchy is None:
        own = drawn.assignment.levels[a]  # type: ignore[union-attr]
        expected = level == own
    else:
        paths = attribute.hierarchy.paths
        labels = {path[min(level, len(path) - 1)] for path in paths}
        expected = {text.removeprefix("\\") for text in shown} <= labels
    assert found.ok == expected


@pytest.mark.parametrize("name", ["release.csv", "release.parquet"])
def test_files_survive(name: str, tmp_path: Path) -> None:
    """Nodes, exact values and stars are read back from files; suppressed records are reported."""
    towns = Hierarchy([["Oslo", "North", "*"], ["Bergen", "North", "*"], ["Rome", "South", "*"]])
    frame = pd.DataFrame(
        {
            "age": [30, 31, 32, 33, 60, 61],
            "job": list("aabbbc"),
            "town": ["Oslo", "Bergen", "Oslo", "Bergen", "Rome", "Rome"],
        }
    )
    data = Microdata(
        frame,
        (
            Attribute("age", "numeric", integer=True),
            Attribute("job", "categorical"),
            Attribute("town", "hierarchical", hierarchy=towns),
        ),
    )
    recoding = FullDomain(suppression=True)
    problem = Problem(data, 2, recoding)
    release = publish(
        Solution.of(problem, recoding.assignment(problem, [1, 0, 1]), method="by hand"),
        keep_order=True,
        suppressed="starred",
    )
    assert release.frame.to_numpy().tolist() == [
        ["*", "a", "North"],
        ["*", "a", "North"],
        ["*", "b", "North"],
        ["*", "b", "North"],
        ["*", "*", "*"],
        ["*", "*", "*"],
    ]
    assert release.manifest["stars"] == "suppressed"
    table, manifest = release.write(tmp_path / name)
    found = verify(frame, table, manifest, hierarchies={"town": towns.paths})
    assert found.problems == ()
    assert (found.classes, found.suppressed, found.k_reached) == (2, 2, 2)


def test_a_root_that_short_paths_reach_early_is_not_everybodys() -> None:
    """It stands on several levels, so the original tells whose cell it may be."""
    paths = [("u", "g", "t", "*"), ("v", "g", "t", "*"), ("w", "h", "t", "*"), ("x", "*")]
    tree = Hierarchy(paths)
    frame = pd.DataFrame({"b": ["u", "v", "w", "x", "x"]})
    data = Microdata(frame, (Attribute("b", "hierarchical", hierarchy=tree),))
    problem = Problem(data, 2, FullDomain(), HierarchyLoss())
    root = FullDomain().assignment(problem, [3])
    release = publish(Solution.of(problem, root, method="by hand"))
    assert release.verify().ok
    for level in (1, 2):
        manifest = {**release.manifest, "levels": {"b": level}}
        found = verify(frame, release.frame, manifest, hierarchies={"b": paths})
        assert not found.ok
        assert any("on the levels" in problem for problem in found.problems)
