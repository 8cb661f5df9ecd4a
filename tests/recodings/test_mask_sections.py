"""Masks and costs from the section of a schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonymip import InputError, Mask, PatternGuided, Suppressions
from anonymip.instances import read_schema
from anonymip.recodings.patterns import listed_columns, read_mask_section


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
