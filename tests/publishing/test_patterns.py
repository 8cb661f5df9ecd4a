"""Releases of patterns and of levels: what stands in cells, manifest and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    GCP,
    Attribute,
    Diversity,
    Hierarchy,
    InputError,
    LiangGCP,
    Mask,
    Microdata,
    PatternGuided,
    Problem,
    Release,
    Solution,
    Suppressions,
    WeightedLoss,
    publish,
    verify,
)
from anonymip.objectives import MembersObjective, Objective
from anonymip.privacy import read_release
from anonymip.publishing.checking import hierarchy_paths, loss_of_table
from tests.by_hand import by_patterns
from tests.pattern_releases import pattern_solutions

TOWNS = Hierarchy([["Oslo", "North", "*"], ["Bergen", "North", "*"], ["Rome", "South", "*"]])


def people(**declared: object) -> Microdata:
    """Return six records with a number, a text and a node each, and a sensitive value."""
    frame = pd.DataFrame(
        {
            "age": [30, 30, 30, 41, 41, 99],
            "job": ["a|b", "a|b", "*", "*", "c", "c"],
            "town": ["Oslo", "Oslo", "Bergen", "Bergen", "Rome", "Rome"],
            "ill": list("ppqqrr"),
        }
    )
    return Microdata(
        frame,
        (
            Attribute("age", "numeric", integer=True, **declared),  # type: ignore[arg-type]
            Attribute("job", "categorical"),
            Attribute("town", "hierarchical", hierarchy=TOWNS),
        ),
        sensitive=("ill",),
    )


def solution(
    *index: int,
    recoding: PatternGuided | None = None,
    objective: Objective | MembersObjective | None = None,
    data: Microdata | None = None,
    diversity: Diversity | None = None,
) -> Solution:
    """Return patterns of six people; all patterns of the mask are allowed unless said."""
    problem = Problem(
        people() if data is None else data,
        2,
        PatternGuided(suppression=True) if recoding is None else recoding,
        GCP() if objective is None else objective,
        diversity,
    )
    return by_patterns(problem, index)


# Patterns of the mask of all: none, age, job, town, age job, age town, job town, all.
NONE, AGE, JOB, TOWN, AGE_JOB, AGE_TOWN, JOB_TOWN, ALL = range(8)


def test_cells_are_exact_or_stars() -> None:
    """A pattern stars its columns, a suppressed record is stars only; other cells are as before."""
    found = solution(NONE, NONE, AGE, AGE, -1, -1)
    release = publish(found, keep_order=True, suppressed="starred")
    assert release.frame.astype(str).to_numpy().tolist() == [
        ["30", "a|b", "Oslo", "p"],
        ["30", "a|b", "Oslo", "p"],
        ["*", "\\*", "Bergen", "q"],
        ["*", "\\*", "Bergen", "q"],
        ["*", "*", "*", "r"],
        ["*", "*", "*", "r"],
    ]
    assert release.verify().problems == ()
    wide = publish(found, keep_order=True, layout="columns", suppressed="starred").frame
    assert wide.columns.tolist() == ["age_lower", "age_upper", "job", "town", "ill"]
    assert wide["age_upper"].astype(object).where(wide["age_upper"].notna(), "*").tolist() == [
        *(30, 30),
        *"****",
    ]
    fewer = publish(found, keep_order=True)
    pd.testing.assert_frame_equal(fewer.frame, release.frame.iloc[:4])
    assert fewer.verify().problems == ()


def test_the_manifest_tells_the_mask_and_what_stars_mean() -> None:
    """Rules, single use and costs are named by column; stars are a class unless suppressed."""
    mask = Mask(suppress_at_most=1, never=("town",), at_most_one=(("age", "job"),))
    objective = Suppressions({"age": 2.0}, {("job", "age"): 1.5})
    recoding = PatternGuided(mask, single_use=False, suppression=True)
    partly = solution(0, 0, 1, 1, -1, -1, recoding=recoding, objective=objective)
    manifest = publish(partly, suppressed="starred").manifest
    assert manifest["recoding"] == "pattern"
    assert manifest["mask"] == {
        "suppress_at_most": 1,
        "never": ["town"],
        "at_most_one": [["age", "job"]],
        "allow_all_stars": False,
        "single_use": False,
    }
    assert (manifest["stars"], manifest["suppressed"]) == ("suppressed", 2)
    assert manifest["left_out"]["suppressed"] == 0
    fewer = publish(partly).manifest
    assert (fewer["stars"], fewer["suppressed"]) == ("class", 0)
    assert (fewer["left_out"]["suppressed"], fewer["n"]) == (2, 6)
    assert fewer["objective"] == manifest["objective"]
    assert manifest["objective"]["costs"] == {"age": 2.0}
    assert manifest["objective"]["pattern_costs"] == [{"columns": ["age", "job"], "cost": 1.5}]
    assert any("one of the 2 rows of stars only is hers" in text for text in manifest["assumed"])
    assert any("belong to the 2 suppressed records" in text for text in fewer["assumed"])
    listed = Mask(patterns=((), ("age",)), allow_all_stars=True)
    shared = publish(solution(0, 0, 1, 1, 2, 2, recoding=PatternGuided(listed))).manifest
    assert shared["mask"]["patterns"] == [[], ["age"]]
    assert (shared["stars"], shared["suppressed"]) == ("class", 2)
    assert not any("suppressed" in text for text in shared["assumed"])
    assert "costs" not in shared["objective"]
    json.dumps(shared, allow_nan=False)


def test_a_limit_and_a_price_of_suppressed_records_are_verified() -> None:
    """Rows of stars only that the mask allows are no suppressed records; more than may be are."""
    starred = solution(
        NONE, NONE, ALL, ALL, ALL, -1, recoding=PatternGuided(Mask(), most_suppressed=1)
    )
    release = publish(starred)
    assert release.verify().problems == ()
    assert release.manifest["left_out"]["most"] == 1
    release.manifest["left_out"]["most"] = 0
    assert any("of 0 that may be" in text for text in release.verify().problems)
    never = PatternGuided(Mask(never=("town",)), most_suppressed=2, suppression_price=0.5)
    for objective in (GCP(), Suppressions({"age": 2.0})):
        priced = publish(solution(0, 0, 1, 1, -1, -1, recoding=never, objective=objective))
        assert priced.verify().problems == ()
        priced.manifest["objective"]["suppression_price"] = 0.75
        assert any("objective value" in text for text in priced.verify().problems)


def assert_published_truly(drawn: Solution, recoding: str, **how: Any) -> Release:
    """Return a release, which verifies, and shows and loses what the solution does."""
    gone = drawn.assignment.suppressed
    assume(gone < drawn.problem.n)
    release = publish(drawn, **how)
    found = release.verify()
    assert found.problems == ()
    assert found.recoding == recoding
    assert (found.suppressed, found.left_out) == (drawn.suppressed - gone, gone)
    assert found.n == len(release.frame) == drawn.problem.n - gone
    table = read_release(
        release.frame, release.manifest, hierarchies=hierarchy_paths(drawn.problem.microdata)
    )
    assert loss_of_table(drawn.problem, table) == pytest.approx(drawn.objective, rel=1e-9)
    kept = drawn.classes.labels >= 0  # type: ignore[union-attr]
    hidden = drawn.description.suppressed[kept]
    assert table.suppressed.sum() == hidden.sum()
    if how["keep_order"]:
        assert (table.suppressed == hidden).all()
    return release


@settings(max_examples=40)
@given(pattern_solutions(), st.booleans(), st.sampled_from(["cells", "columns"]))
def test_drawn_patterns_are_published_truly(drawn: Solution, keep_order: bool, layout: str) -> None:
    """Whatever patterns, the release verifies, and shows and loses what the solution does."""
    assert_published_truly(drawn, "pattern", keep_order=keep_order, layout=layout)


@pytest.mark.parametrize("name", ["release.csv", "release.parquet"])
def test_files_survive(name: str, tmp_path: Path) -> None:
    """Written files are read back and verified before they appear, and verify from outside."""
    release = publish(solution(NONE, NONE, AGE, AGE, ALL, ALL))
    table, manifest = release.write(tmp_path / name)
    found = verify(people().frame, table, manifest, hierarchies={"town": TOWNS.paths})
    assert found.ok, found.problems
    assert (found.classes, found.suppressed, found.k_reached) == (3, 2, 2)
    assert "recoding pattern, 3 classes" in found.summary()


def test_losses_that_know_the_domain_need_a_declared_one() -> None:
    """The penalty of stars tells no domain; of other losses nobody can tell."""
    patterns = (NONE, NONE, AGE, AGE, AGE_JOB, AGE_JOB)
    for objective in (GCP(), Suppressions(), WeightedLoss()):
        publish(solution(*patterns, objective=objective))
    with pytest.raises(InputError, match="'age', 'job' is what was observed"):
        publish(solution(*patterns, objective=LiangGCP()))
    with pytest.raises(InputError, match="domain of 'age' is what was observed"):
        publish(solution(AGE, AGE, AGE, AGE, AGE_TOWN, AGE_TOWN, objective=SpanLoss()))
    declared = people(domain=(0, 120))
    publish(solution(AGE, AGE, AGE, AGE, AGE_TOWN, AGE_TOWN, objective=SpanLoss(), data=declared))


class SpanLoss(GCP):
    """A loss of the user's own: whatever it reads, it is no built-in one."""

    @property
    def name(self) -> str:
        """Name in results."""
        return "span"


def test_a_class_of_stars_needs_its_diversity() -> None:
    """Rows of stars are diverse, whether they are a class or were suppressed."""
    diverse = Diversity(distinct=2)
    data = people()
    suppressed = solution(*[-1] * 6, diversity=diverse, data=data)
    with pytest.raises(InputError, match="nothing is left to publish"):
        publish(suppressed)
    assert publish(suppressed, suppressed="starred").verify().problems == ()
    shared = publish(solution(*[ALL] * 6, diversity=diverse, data=data)).verify()
    assert shared.problems == ()
    assert (shared.classes, shared.k_reached) == (1, 6)
