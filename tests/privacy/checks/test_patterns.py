"""Releases of patterns and of levels, written by hand after docs/format.md, true and tampered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import publish, verify
from anonymip.errors import InputError
from anonymip.privacy.reading.manifest_entries import Mask, read_mask
from tests.pattern_releases import pattern_solutions
from tests.privacy.conftest import TOWNS, Written, write

KINDS: dict[str, dict[str, Any]] = {
    "x": {"kind": "numeric", "integer": True},
    "c": {},
    "town": {"kind": "hierarchical", "paths": TOWNS},
}
FREE = {"allow_all_stars": True, "single_use": False}


def people() -> pd.DataFrame:
    """Return eight records of three kinds of columns, and a sensitive one."""
    return pd.DataFrame(
        {
            "x": ["1", "1", "2", "2", "3", "3", "9", "8"],
            "c": ["a", "a", "*", "*", "*", "b", "b", "[c"],
            "town": ["Arden", "Arden", "Arden", "Arden", "Elham", "Elham", "Corby", "Brock"],
            "s": list("pqpqpqpq"),
        },
        dtype=object,
    )


#: By row the starred columns: rows 1 and 2 are exact, 3 and 4 hide x, 5 and 6 hide c, 7 and 8 all.
STARRED = ("", "", "x", "x", "c", "c", "x c town", "x c town")


def starred(
    stars: Sequence[str] = STARRED,
    mask: Mapping[str, Any] = FREE,
    rows_of_stars: str = "class",
    order: Sequence[int] | None = None,
    original: pd.DataFrame | None = None,
) -> Written:
    """Publish every record exactly but for the columns that are named for it."""
    original = people() if original is None else original
    written = write(original, KINDS, range(len(original)), sensitive=["s"], order=order)
    places = range(len(original)) if order is None else order
    for place, record in enumerate(places):
        for name in stars[record].split():
            written.release.loc[place, name] = "*"
    whole = sum(len(names.split()) == len(KINDS) for names in stars)
    written.manifest |= {
        "recoding": "pattern",
        "mask": dict(mask),
        "stars": rows_of_stars,
        "suppressed": whole,
    }
    written.claim_loss(float(sum(len(names.split()) for names in stars)))
    return written


def test_a_true_release_verifies() -> None:
    """Whatever the order of its rows, and stars that are k rows or were suppressed."""
    for order in (None, [3, 1, 7, 0, 2, 6, 5, 4]):
        found = starred(order=order).verify()
        assert found.problems == ()
        assert (found.classes, found.suppressed, found.k_reached) == (4, 2, 2)
        assert any("pattern of the mask" in check for check in found.checks)
    lone = starred(
        ("", "", "x", "x", "x c town", "x c town", "x c town", ""), rows_of_stars="suppressed"
    )
    # The last record is published exactly and alone.
    assert any("1 classes have fewer than 2 rows" in text for text in lone.verify().problems)
    left = starred(
        ("", "", "x", "x", "c", "c", "x c town", "x c town"), rows_of_stars="suppressed"
    ).verify(k=2)
    assert left.problems == ()
    assert left.classes == 3
    assert any("Not avoided: who finds a person in no class" in check for check in left.checks)
    gone = starred(rows_of_stars="suppressed").leave_out().verify()
    assert gone.problems == ()
    assert (gone.n, gone.classes, gone.suppressed, gone.left_out) == (6, 3, 0, 2)
    assert gone.ncp == left.ncp


def test_stars_that_are_a_class_need_k_rows() -> None:
    """A lone row of stars passes in no case, whether it is called a class or suppressed."""
    table = people()
    table.loc[6, ["x", "c", "town"]] = ["3", "b", "Elham"]
    stars = (*STARRED[:6], "c", "x c town")
    lone = starred(stars, rows_of_stars="suppressed", original=table)
    (problem,) = lone.verify().problems
    assert problem.startswith("1 rows of stars only are fewer than 2: who finds a person in no")
    assert lone.leave_out().verify().problems == ()
    found = starred(stars, rows_of_stars="class", original=table).verify()
    assert found.problems == (
        "1 classes have fewer than 2 rows; the smallest has 1, among them published row 8.",
    )
    assert (found.classes, found.k_reached) == (4, 1)


Tamper = Callable[[Written], None]


def _cell(row: int, name: str, text: str) -> Tamper:
    def tamper(written: Written) -> None:
        written.release.loc[row, name] = text

    return tamper


def _mask(**rules: Any) -> Tamper:
    def tamper(written: Written) -> None:
        written.manifest["mask"] |= rules

    return tamper


TAMPERED: list[tuple[Tamper, str]] = [
    (_cell(2, "x", "2"), "have fewer than 2 rows"),
    (_cell(0, "x", "[1..2]"), "'x', published row 1: the cell is neither exact nor a star"),
    (_cell(1, "c", "{a|b}"), "'c', published row 2: the cell is neither exact nor a star"),
    (_cell(4, "town", "South"), "'town', published row 5: the cell is neither exact nor a star"),
    (_cell(4, "town", "\\*"), "'town', published row 5: the cell is neither exact nor a star"),
    (_cell(3, "c", "b"), "fit into only"),
    (_mask(never=["c"]), "stars of 2 rows are no pattern of the mask; published row 5"),
    (_mask(suppress_at_most=0), "stars of 4 rows are no pattern of the mask; published row 3"),
    (_mask(together=[["x", "c"]]), "stars of 4 rows are no pattern"),
    (_mask(at_most_one=[["x", "c"]], allow_all_stars=False), "stars of 2 rows are no pattern"),
    (_mask(patterns=[[], ["x"]]), "stars of 2 rows are no pattern of the mask; published row 5"),
    (_mask(patterns=[[], ["x"], ["c"]], allow_all_stars=False), "published row 7"),
    (lambda written: written.claim_loss(7.0), "claims ncp 7; the published table gives 10"),
    (lambda written: written.manifest.update(suppressed=1), "claims 1 suppressed rows; there are"),
    (lambda written: written.manifest.update(k=3), "4 classes have fewer than 3 rows"),
    (lambda written: written.manifest.update(levels={"x": 1}), "1 keys of no known meaning"),
    (_mask(note="Ann"), "1 keys of no known meaning"),
]


@pytest.mark.parametrize(("tamper", "problem"), TAMPERED)
def test_tampering_is_found(tamper: Tamper, problem: str) -> None:
    """Whatever is changed in table or manifest, the row or the claim is named."""
    written = starred(order=None)
    written.manifest["order"] = "shuffled"
    tamper(written)
    found = written.verify()
    assert not found.ok
    assert any(problem in text for text in found.problems), found.problems


def test_a_pattern_of_single_use_serves_one_row() -> None:
    """Two different rows with stars in one column are named, equal ones are none."""
    once = {"allow_all_stars": True, "single_use": True}
    assert starred(mask=once).verify().problems == ()
    twice = starred(("", "", "", "", "c", "c", "x c town", "x c town"), once)
    (problem,) = twice.verify().problems
    assert problem.startswith("Published rows 1 and 3 have stars in the same columns and differ")


def test_what_stars_cost_is_computed_again() -> None:
    """By column, one where nothing is said; a whole pattern may have a price of its own."""
    written = starred()
    prices = {"costs": {"x": 3.0}, "pattern_costs": [{"columns": ["c"], "cost": 0.5}]}
    written.manifest["objective"] = {"name": "suppressions", "value": 2 * 3 + 2 * 0.5 + 2 * 5.0}
    written.manifest["objective"] |= prices
    assert written.verify().problems == ()
    prices["pattern_costs"].append({"columns": ["town", "c", "x"], "cost": 5.5})
    left_out = starred(rows_of_stars="suppressed").leave_out()
    left_out.manifest["objective"] = {"name": "suppressions", "value": 6 + 1 + 2 * 5.5, **prices}
    assert left_out.verify().problems == ()
    prices["pattern_costs"].pop()
    written.manifest["objective"]["value"] = 18.0
    assert any("objective value 18" in problem for problem in written.verify().problems)
    written.manifest["objective"] = {"name": "suppressions", "value": 10.0}
    assert written.verify().problems == ()
    for name in ("gcp", "liang-gcp"):
        written.manifest["objective"] = {"name": name, "value": 10.0, "costs": {}}
        assert any("1 keys of no" in problem for problem in written.verify().problems)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mask": None}, "mask is not an object"),
        ({"mask": {"single_use": False}}, "mask.allow_all_stars is missing"),
        ({"mask": {**FREE, "single_use": 1}}, "mask.single_use is not true or false"),
        ({"mask": {**FREE, "never": ["q"]}}, "mask.never names a column that is no"),
        ({"mask": {**FREE, "never": "x"}}, "mask.never is not a list"),
        ({"mask": {**FREE, "together": ["x"]}}, "mask.together is not a list"),
        ({"mask": {**FREE, "patterns": [], "never": ["x"]}}, "patterns and rules"),
        ({"mask": {**FREE, "suppress_at_most": True}}, "suppress_at_most is not a whole"),
        ({"stars": "some"}, "stars is none of class, suppressed"),
        ({"objective": {"name": "suppressions", "value": 1, "costs": {"q": 1}}}, "costs is not"),
        ({"recoding": "full-domain"}, "levels is missing"),
        ({"recoding": "full-domain", "levels": {"x": 0}}, "levels does not name each"),
    ],
)
def test_malformed_manifests_are_refused(change: dict[str, Any], message: str) -> None:
    """Form comes before truth: the key is named."""
    written = starred()
    written.manifest |= change
    with pytest.raises(InputError, match=message):
        written.verify()


@given(
    st.lists(st.sampled_from("abcd"), unique=True),
    st.integers(0, 4),
    st.lists(st.lists(st.sampled_from("abcd"), min_size=2, unique=True), max_size=2),
    st.lists(st.lists(st.sampled_from("abcd"), min_size=2, unique=True), max_size=2),
    st.booleans(),
)
def test_masks_allow_what_their_rules_say(
    never: list[str], most: int, together: list[list[str]], single: list[list[str]], whole: bool
) -> None:
    """Every set of stars is tried against the rules, one by one and in words of its own."""
    given = {"never": never, "suppress_at_most": most, "together": together, "at_most_one": single}
    mask = read_mask({**given, "allow_all_stars": whole, "single_use": False}, "abcd")
    assert isinstance(mask, Mask)
    for size in range(5):
        for stars in combinations("abcd", size):
            expected = (
                size <= most
                and not any(name in never for name in stars)
                and not any(0 < sum(a in stars for a in group) < len(group) for group in together)
                and not any(sum(a in stars for a in group) > 1 for group in single)
            )
            assert mask.allows(stars, 4) == (expected or (whole and size == 4))


@settings(max_examples=60)
@given(pattern_solutions(), st.data())
def test_tampered_releases_of_the_package_fail(drawn: Any, data: st.DataObject) -> None:
    """A star that is lifted, a cell that is starred, or a rule that is tightened is found."""
    # Nothing is left to publish where everybody is suppressed.
    assume(drawn.assignment.suppressed < drawn.problem.n)
    release = publish(drawn)
    frame, manifest = release.frame.astype(object), dict(release.manifest)
    names = drawn.problem.microdata.names
    hierarchies = {
        a.name: a.hierarchy.paths
        for a in drawn.problem.microdata.attributes
        if a.hierarchy is not None
    }
    original = drawn.problem.microdata.original

    def check() -> tuple[str, ...]:
        return verify(original, frame, manifest, hierarchies=hierarchies).problems

    assert check() == ()
    row = data.draw(st.integers(0, len(frame) - 1))
    name = data.draw(st.sampled_from(names))
    stars = sum(str(text) == "*" for text in frame.loc[row, list(names)])
    kind = data.draw(st.sampled_from(["cell", "rule", "class"]))
    if kind == "cell":
        # A star more or less is another number of stars.
        hidden = str(frame.loc[row, name]) == "*"
        frame.loc[row, name] = str(original[name].iloc[0]) if hidden else "*"
    elif kind == "rule":
        whole = stars == len(names) and manifest["mask"]["allow_all_stars"]
        assume(stars > 0 and not whole)
        manifest["mask"] = {**FREE, "suppress_at_most": stars - 1}
    else:
        manifest["k"] = drawn.problem.n + 1
    assert check() != ()


LEVELS = {"x": 1, "c": 0, "town": 2}
LEVELLED = {
    "x": ["*"] * 7,
    "c": ["a", "a", "a", "b", "b", "*", "*"],
    "town": ["North", "North", "North", "South", "South", "*", "*"],
}


def levelled() -> Written:
    """Publish seven records on one level a column; the last two are suppressed."""
    original = pd.DataFrame(
        {
            "x": ["1", "2", "3", "4", "5", "6", "7"],
            "c": ["a", "a", "a", "b", "b", "c", "d"],
            "town": ["Arden", "Corby", "Brock", "Dover", "Elham", "Elham", "Arden"],
        },
        dtype=object,
    )
    written = write(original, KINDS, [0, 0, 0, 1, 1, -1, -1])
    for name, cells in LEVELLED.items():
        written.release[name] = cells
    written.manifest |= {"recoding": "full-domain", "levels": LEVELS, "stars": "suppressed"}
    # A star is 1; North covers 3 of 5 towns, South 2.
    written.claim_loss(7 + 2 + 3 * 2 / 4 + 2 * 1 / 4 + 2)
    return written


def test_levels_verify() -> None:
    """One level for a column; a suppressed row is on none, and may be left out."""
    found = levelled().verify()
    assert found.problems == ()
    assert (found.classes, found.suppressed, found.k_reached) == (2, 2, 2)
    fewer = levelled().leave_out().verify()
    assert fewer.problems == ()
    assert (fewer.classes, fewer.left_out, fewer.ncp) == (2, 2, found.ncp)
    assert any("on the level of its column" in check for check in found.checks)


@pytest.mark.parametrize(
    ("tamper", "problem"),
    [
        (_cell(3, "town", "Coast"), "'town', published row 4: the cell is not on level 2"),
        (_cell(0, "town", "\\*"), "'town', published row 1: the cell is not on level 2"),
        (_cell(0, "town", "*"), "'town', published row 1: the cell is not on level 2"),
        (_cell(1, "x", "2"), "'x', published row 2: the cell is not on level 1"),
        (_cell(4, "c", "*"), "'c', published row 5: the cell is not on level 0"),
        (_cell(4, "c", "{a|b}"), "'c', published row 5: the cell is not on level 0"),
        (lambda w: w.manifest.update(stars="class"), "'c', published row 6: the cell is not on"),
        (lambda w: w.manifest.update(levels={**LEVELS, "town": 4}), "declares level 4 of column"),
        (lambda w: w.manifest.update(levels={**LEVELS, "c": 2}), "column 'c', which has 1."),
        (lambda w: w.manifest.update(levels={**LEVELS, "x": 0}), "row 1: the cell is not on level"),
        (lambda w: w.manifest.update(mask=FREE), "1 keys of no known meaning"),
    ],
)
def test_cells_off_their_level_are_found(tamper: Tamper, problem: str) -> None:
    """The column and the first row are named."""
    written = levelled()
    tamper(written)
    found = written.verify()
    assert any(problem in text for text in found.problems), found.problems
