"""Masks: the language of rules, what contradicts itself, and the section of a schema."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import InputError, Mask, PatternGuided, Suppressions
from anonymip.instances import read_schema
from anonymip.recodings.patterns import listed_columns, read_mask_section
from tests.random_patterns import NAMES, PatternCase, masks


@given(st.integers(2, 4).flatmap(lambda m: st.tuples(st.just(m), masks(NAMES[:m]))))
def test_a_mask_has_just_the_patterns_that_keep_its_rules(case: tuple[int, Mask]) -> None:
    """A mask has just the patterns that keep its rules."""
    m, mask = case
    stars = mask.stars(tuple(NAMES[:m]))
    tried = PatternCase((("x",) * m,), ("p",), 2, mask, (1,) * m).patterns
    assert {tuple(map(bool, row)) for row in stars} == set(tried)
    assert len(stars) == len(tried)


def test_patterns_with_few_stars_come_first_and_stars_on_the_left_before_others() -> None:
    """Patterns with few stars come first and stars on the left before others."""
    shown = ["".join("*" if star else "." for star in row) for row in Mask().stars("abc")]
    assert shown == ["...", "*..", ".*.", "..*", "**.", "*.*", ".**", "***"]


def test_the_rules_of_a_user_read_as_written() -> None:
    """The rules of a user read as written."""
    mask = Mask(
        never=("education", "salary-class"),
        together=(("workclass", "occupation"),),
        at_most_one=(("age", "sex", "race"),),
    )
    names = ("age", "workclass", "education", "occupation", "race", "sex", "salary-class")
    stars = mask.stars(names)
    assert len(stars) == 2 * 4
    assert not stars[:, [2, 6]].any()
    assert np.array_equal(stars[:, 1], stars[:, 3])
    assert str(mask) == (
        "never education, salary-class; together workclass, occupation; at most one age, sex, race"
    )


def test_the_pattern_of_stars_only_is_added_whatever_the_rules_say() -> None:
    """The pattern of stars only is added whatever the rules say."""
    mask = Mask(suppress_at_most=0, never=("a",), allow_all_stars=True)
    assert mask.stars(("a", "b")).tolist() == [[False, False], [True, True]]


def test_groups_that_share_a_column_are_suppressed_together() -> None:
    """Groups that share a column are suppressed together."""
    stars = Mask(together=(("a", "b"), ("b", "c"))).stars(("a", "b", "c", "d"))
    assert {tuple(row) for row in stars.tolist()} == {
        (first, first, first, last) for first, last in product((False, True), repeat=2)
    }


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ({"suppress_at_most": -1}, "suppress_at_most is -1"),
        ({"suppress_at_most": True}, "suppress_at_most is True"),
        ({"never": "age"}, "Give a list of columns"),
        ({"never": ("age", "age")}, "names a column twice"),
        ({"together": ("age", "sex")}, "a list of names"),
        ({"together": (("age",),)}, "names 1 columns"),
        ({"at_most_one": (("age",),)}, "names 1 columns"),
        ({"never": ("age",), "together": (("age", "sex"),)}, "'age' is never suppressed"),
        (
            {"together": (("age", "sex"),), "at_most_one": (("sex", "age"),)},
            "suppressed together, and at most one",
        ),
        ({"suppress_at_most": 1, "together": (("age", "sex"),)}, "2 columns are to be suppressed"),
        ({"patterns": (("age",),), "never": ("sex",)}, "patterns and rules"),
        ({"patterns": ("age",)}, "a list of names"),
        ({"patterns": ()}, "allows no release"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rules: dict[str, Any], text: str) -> None:
    """Rules that make no sense are refused."""
    with pytest.raises(InputError) as refused:
        Mask(**rules)
    assert text in str(refused.value)


def test_a_mask_names_columns_of_the_table() -> None:
    """A mask names columns of the table."""
    with pytest.raises(InputError, match="agee"):
        Mask(never=("agee",)).stars(("age", "sex"))


def test_a_mask_with_too_many_patterns_is_refused_with_a_remedy() -> None:
    """A mask with too many patterns is refused with a remedy."""
    names = tuple(f"c{at}" for at in range(40))
    with pytest.raises(InputError, match="suppress_at_most"):
        Mask().stars(names)
    assert len(Mask(suppress_at_most=2).stars(names)) == 1 + 40 + 780


def test_a_section_of_a_file(tmp_path: Path) -> None:
    """All rules of a file arrive, and stay when roles of columns are added."""
    file = tmp_path / "roles.toml"
    file.write_text(
        '[attributes.age]\nkind = "numeric"\n[mask]\nsuppress_at_most = 2\nnever = "sex"\n'
        'together = [["age", "zip"]]\nat_most_one = [["job", "race"]]\nallow_all_stars = true\n'
        "single_use = true\ncosts = {age = 2, 'job, \"a,b\"' = 0.5}\n",
        encoding="utf-8",
    )
    schema = read_schema(file)
    for section in (schema.mask, schema.with_roles(["age"], keep=["x"]).mask):
        asked = read_mask_section(section, suppression=True)
        assert asked.recoding == PatternGuided(
            Mask(2, ("sex",), (("age", "zip"),), (("job", "race"),), allow_all_stars=True),
            single_use=True,
            suppression=True,
        )
        assert asked.objective == Suppressions({"age": 2}, {("a,b", "job"): 0.5})


def test_an_empty_section_allows_all() -> None:
    """Without rules all patterns are allowed, and nothing is said of costs."""
    assert read_mask_section({}) == (PatternGuided(), None)
    listed = read_mask_section({"patterns": [[], ["age"]]}).recoding
    assert listed.mask.patterns == ((), ("age",))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"seldom": ["age"]}, "a mask has no 'seldom'"),
        ({"patterns": [], "never": ["age"]}, "patterns and rules"),
        ({"costs": {"age,": 1}}, "'age,' is no list of columns"),
        ({"costs": {"age": "dear"}}, "the cost of 'age' is 'dear'"),
        ({"together": "age,zip"}, "together is 'age,zip'"),
    ],
)
def test_sections_that_are_none(section: dict[str, object], message: str) -> None:
    """What is wrong is named."""
    with pytest.raises(InputError) as caught:
        read_mask_section(section)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("age", ("age",)),
        ("age,zip", ("age", "zip")),
        ("age, zip", ("age", "zip")),
        ('"a,b",c', ("a,b", "c")),
        ('"say ""no""",c', ('say "no"', "c")),
        ("two words", ("two words",)),
    ],
)
def test_listed_columns(text: str, names: tuple[str, ...]) -> None:
    """Commas part, quotes keep."""
    assert listed_columns(text) == names


@pytest.mark.parametrize("text", ["", ",", "a,", '"a', '"a"b'])
def test_other_texts_are_no_lists(text: str) -> None:
    """Empty names and open quotes are refused."""
    with pytest.raises(InputError, match="is no list of columns"):
        listed_columns(text)
