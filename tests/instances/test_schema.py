"""Tests of schemas: from TOML, from declarations, and applied to tables."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anonymip import Hierarchy, InputError, InputWarning, Schema, TableFormat, read_schema
from anonymip.instances.columns import far_values

FRAME = pd.DataFrame(
    {
        "age": ["34", "36", "61"],
        "zip": ["02138", "02139", "10001"],
        "pay": ["1.5", "2", "2.5"],
        "sex": ["F", "F", "M"],
    }
)

FULL = """
[attributes.AGE]
kind = "numeric"
domain = [1, 100]
integer = true
weight = 0.5

[attributes.JOB]
hierarchy = "jobs.csv"

[attributes.SEX]
kind = "categorical"
domain = [1, 2]

[attributes.RAW]

[table]
separator = "; "
encoding = "latin-1"
missing = ["?", ""]
sensitive = ["ILL"]
keep = ["VISIT"]
drop = "NAME"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where a test writes its schema."""
    return tmp_path / "schema.toml"


def read(file: Path, text: str) -> Schema:
    """Write a schema and read it."""
    file.write_text(text, encoding="utf-8")
    return read_schema(file)


def test_a_full_schema_is_read(file: Path) -> None:
    """All keys arrive; paths of hierarchies are relative to the schema's folder."""
    file.with_name("jobs.csv").write_text("nurse;health;*\nclerk;office;*\n", encoding="utf-8")
    schema = read(file, FULL)
    assert list(schema.attributes) == ["AGE", "JOB", "SEX", "RAW"]
    assert schema.attributes["AGE"] == {
        "kind": "numeric",
        "domain": [1, 100],
        "integer": True,
        "weight": 0.5,
    }
    assert schema.attributes["JOB"]["hierarchy"].leaves == ("nurse", "clerk")
    assert schema.attributes["RAW"] == {}
    assert (schema.sensitive, schema.keep, schema.drop) == (("ILL",), ("VISIT",), ("NAME",))
    assert schema.table == TableFormat("; ", "latin-1", True, (), ("?", ""))


def test_an_empty_schema_has_the_defaults(file: Path) -> None:
    """Nothing is required."""
    assert read(file, "") == Schema()


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ('columns = ["a", "b"]', False),
        ('columns = ["a", "b"]\nheader = true', True),
        ("header = false", False),
        ("", True),
    ],
)
def test_named_columns_mean_a_file_without_header(file: Path, text: str, header: bool) -> None:
    """Naming the columns says that the file does not, unless the schema says otherwise."""
    assert read(file, f"[table]\n{text}").table.header is header


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("people = 1", "unknown key people"),
        ("[attributes.AGE]\nkindd = 'numeric'", "unknown key attributes.AGE.kindd"),
        ("[table]\nseperator = ','", "unknown key table.seperator"),
        ("attributes = 5", "attributes is not a table"),
        ("[attributes]\nAGE = 'numeric'", "attributes.AGE is not a table"),
        ("table = 5", "table is not a table"),
        ("[attributes.AGE]\nweight = 'heavy'", "attributes.AGE.weight is not a number"),
        ("[attributes.AGE]\nweight = true", "attributes.AGE.weight is not a number"),
        ("[attributes.AGE]\nkind = 5", "attributes.AGE.kind is not a text"),
        ("[attributes.AGE]\ndomain = 5", "attributes.AGE.domain is not a list"),
        ("[attributes.AGE]\ninteger = 'yes'", "attributes.AGE.integer is not true or false"),
        ("[attributes.AGE]\nhierarchy = 5", "attributes.AGE.hierarchy is not a text"),
        ("[table]\nseparator = 5", "table.separator is not a text"),
        ("[table]\nencoding = 5", "table.encoding is not a text"),
        ("[table]\nheader = 'no'", "table.header is not true or false"),
        ("[table]\nkeep = [1]", "table.keep is not a list of texts"),
        ("[table]\nmissing = 5", "table.missing is not a list"),
        ("[table]\nseparator = '::'", "separator '::' is not one character"),
        ("[attributes.AGE]\nhierarchy = 'absent.csv'", "cannot read the hierarchy"),
        ("not TOML", "is not TOML"),
    ],
)
def test_wrong_schemas_are_refused(file: Path, text: str, message: str) -> None:
    """Unknown keys and wrong types raise a message that names the key and has a remedy."""
    with pytest.raises(InputError) as caught:
        read(file, text)
    assert message in caught.value.message
    assert caught.value.remedy


def test_unknown_keys_name_the_known_ones(file: Path) -> None:
    """A misspelt key is answered with the right spelling."""
    with pytest.raises(InputError) as caught:
        read(file, "[table]\nseperator = ','")
    assert "separator" in (caught.value.remedy or "")


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_unreadable_schemas_are_refused(file: Path, content: bytes | None) -> None:
    """A missing file and one that is no text raise a message that names it."""
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match="schema") as caught:
        read_schema(file)
    assert str(file) in caught.value.message


def test_kinds_are_inferred_from_the_table() -> None:
    """Numbers are numeric, codes with leading zeros and texts categorical; whole is found too."""
    data = Schema({name: {} for name in FRAME.columns}).apply(FRAME)
    assert [a.kind for a in data.attributes] == ["numeric", "categorical", "numeric", "categorical"]
    assert [a.integer for a in data.attributes] == [True, False, False, False]


def test_declared_parameters_go_before_the_inferred_ones() -> None:
    """What the schema says is not overruled by what the table looks like."""
    declared = {"age": {"kind": "categorical"}, "pay": {"kind": "numeric"}}
    data = Schema(declared, drop=("zip",)).apply(FRAME)
    assert [a.kind for a in data.attributes] == ["categorical", "numeric"]
    fractions = Schema({"age": {"integer": False}}, drop=("zip", "pay")).apply(FRAME)
    assert not fractions.attributes[0].integer


def test_missing_texts_do_not_decide_the_kind() -> None:
    """Inference looks at the values that are there."""
    frame = FRAME.assign(age=["34", "?", "61"])
    form = TableFormat(missing=("?",), policy="drop")
    data = Schema({"age": {}, "sex": {}}, drop=("zip", "pay"), table=form).apply(frame)
    assert data.attributes[0].is_numeric
    assert data.n == 2


def test_numeric_columns_with_text_name_column_and_row() -> None:
    """A declared numeric column with text is an error, not a category."""
    frame = FRAME.assign(age=["34", "old", "61"])
    with pytest.raises(InputError, match=r"column 'age' .* first in data row 2") as caught:
        Schema({"age": {"kind": "numeric"}}, drop=("zip", "pay")).apply(frame)
    assert caught.value.value == "old"


@pytest.mark.parametrize("name", ['"b,c"', "a,b"])
def test_columns_are_named_one_at_a_time(name: str) -> None:
    """A name is no line of CSV."""
    frame = pd.DataFrame({"a": [1, 2], "b": [1, 2], "b,c": [1, 2]})
    with pytest.raises(InputError, match="Name one column at a time, without quotes"):
        Schema().with_roles(["a"], drop=[name]).apply(frame)


def test_unknown_columns_are_refused() -> None:
    """The columns of the table are values to the message: a file may have no header."""
    with pytest.raises(InputError, match="unknown column 'AGE'") as caught:
        Schema({"AGE": {}}).apply(FRAME)
    assert caught.value.value == "age, zip, pay, sex"


def test_frames_with_odd_column_names_are_accepted_or_refused_clearly() -> None:
    """Numbers as names are read as texts; repeated names are an error of their own."""
    numbered = FRAME.set_axis([0, 1, 2, 3], axis=1)
    assert Schema({"0": {}}, drop=("1", "2")).apply(numbered).names == ("0",)
    repeated = FRAME.set_axis(["age", "age", "pay", "sex"], axis=1)
    with pytest.raises(InputError, match="duplicate column names"):
        Schema({"age": {}}).apply(repeated)


def test_declarations_name_kinds() -> None:
    """A quasi-identifier is a name or name:kind; a name may hold colons before its kind."""
    schema = Schema().with_roles(["age:numeric", "sex", "start:time:categorical"])
    assert schema.attributes == {
        "age": {"kind": "numeric"},
        "sex": {},
        "start:time": {"kind": "categorical"},
    }


def test_declarations_replace_the_former_and_keep_what_is_known() -> None:
    """Named quasi-identifiers are all there are; a known one keeps its other parameters."""
    known = {"age": {"kind": "numeric", "weight": 2.0}, "pay": {}}
    schema = Schema(known).with_roles(["age", "sex:categorical"])
    assert schema.attributes == {"age": known["age"], "sex": {"kind": "categorical"}}
    assert Schema(known).with_roles().attributes == known


def test_roles_are_added_once() -> None:
    """Further columns join those of the schema; repeating one changes nothing."""
    schema = Schema(sensitive=("ill",), keep=("visit",)).with_roles(
        sensitive=["ill", "drug"], keep=["visit"], drop=["name"], missing="drop"
    )
    assert schema.sensitive == ("ill", "drug")
    assert schema.keep == ("visit",)
    assert schema.drop == ("name",)
    assert schema.table.policy == "drop"


@pytest.mark.parametrize(
    ("names", "missing", "message"),
    [
        (["age:ordinal"], None, "unknown kind 'ordinal'"),
        (["age:hierarchical"], None, "unknown kind 'hierarchical'"),
        (["age", "age:numeric"], None, "named twice"),
        (["age"], "ignore", "unknown policy"),
    ],
)
def test_wrong_declarations_are_refused(
    names: list[str], missing: str | None, message: str
) -> None:
    """Unknown kinds, repeated names and unknown policies raise a message with a remedy."""
    with pytest.raises(InputError, match=message) as caught:
        Schema().with_roles(names, missing=missing)
    assert caught.value.remedy


def test_a_schema_reads_its_table(tmp_path: Path) -> None:
    """File and schema together give microdata: text first, then numbers where declared."""
    path = tmp_path / "people.csv"
    path.write_text("age; zip; visit\n34; 02138; 007\n61; 02139; 007\n", encoding="utf-8")
    schema = Schema({"age": {}, "zip": {}}, keep=("visit",), table=TableFormat(separator="; "))
    data = schema.read(path)
    assert [level.tolist() for level in data.levels] == [[34.0, 61.0], ["02138", "02139"]]
    assert data.frame["visit"].tolist() == ["007", "007"]


def test_a_known_hierarchy_on_the_command_line() -> None:
    """What a schema calls hierarchical may be asked for by that kind, or as plain categories."""
    tree = Hierarchy([("a", "*"), ("b", "*")])
    schema = Schema({"h": {"kind": "hierarchical", "hierarchy": tree, "weight": 2.0}})
    frame = pd.DataFrame({"h": ["a", "b"]})
    (attribute,) = schema.with_roles(["h:hierarchical"]).apply(frame).attributes
    assert (attribute.kind, attribute.hierarchy, attribute.weight) == ("hierarchical", tree, 2.0)
    (attribute,) = schema.with_roles(["h:categorical"]).apply(frame).attributes
    assert (attribute.kind, attribute.hierarchy, attribute.weight) == ("categorical", None, 2.0)


@pytest.mark.parametrize(
    ("values", "remark"),
    [
        (["18.4", "8.1", "NA", "7", "9.5"], "1 value is none, the first in data row 3"),
        (["1", "?", "?", *map(str, range(10))], "2 values are none, the first in data row 2"),
        (["", "1", "2", "3", "4", "?"], "1 value is none, the first in data row 6"),
        (["1", "2", "a", "b", "3"], ""),
        (["02138", "10001", "10002", "10003", "10004", "?"], ""),
        (["1", "2"], ""),
        (["", ""], ""),
        (["a", "b"], ""),
    ],
)
def test_numbers_with_a_few_words_are_pointed_out(values: list[str], remark: str) -> None:
    """A column that is categorical for a few texts says so, but not which they are."""
    frame = pd.DataFrame({"bmi": values})
    frame["sex"] = "F"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for known in ({}, {"kind": "categorical"}):
            Schema({"bmi": known}, table=TableFormat(policy="category")).apply(frame)
    told = [str(one.message) for one in caught if issubclass(one.category, InputWarning)]
    assert len(told) == bool(remark)
    if remark:
        assert told[0].startswith(f"column 'bmi' holds numbers, but {remark}: so it is categorical")
        assert "bmi:numeric and missing='drop'; or bmi:categorical" in told[0]
        assert "NA" not in told[0]
        assert "?" not in told[0]


def stretched(column: list[Any], **declared: Any) -> list[str]:
    """Return what is said of values far beyond the others of a column."""
    frame = pd.DataFrame({"age": column, "sex": "F"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Schema({"age": declared}, drop=("sex",)).apply(frame)
    return [str(one.message) for one in caught if "far beyond" in str(one.message)]


def test_values_that_stretch_a_domain_are_pointed_out() -> None:
    """A typing error of a factor ten is counted, not shown; with a group or a domain it is not."""
    ages = [20 + at % 60 for at in range(200)]
    (told,) = stretched([*ages, 670, 540])
    assert told.startswith("column 'age' has values far beyond all others (2 above)")
    assert "at_most in a schema" in told
    assert "670" not in told
    (both,) = stretched([*ages, 670, -500, -600, -700])
    assert "(1 above, 3 below)" in both
    assert "at_most and at_least in a schema" in both
    days = [f"19{50 + at % 40}-05-01" for at in range(200)]
    (dated,) = stretched([*days, "0195-05-01"], kind="date")
    assert "(1 below)" in dated
    for declared in ({"at_most": 90}, {"domain": [0, 700]}, {"kind": "categorical"}):
        assert not stretched([*ages, 670], **declared)
    assert not stretched([*ages, 110])
    assert not stretched([*ages[:30], 670])
    assert not stretched([0] * 199 + [5])
    (own,) = stretched([*ages, None, None, 670], missing="own")
    assert "(1 above)" in own
    assert not stretched([*ages, None, None], missing="own")


@pytest.mark.shared_data
def test_no_real_table_is_stretched(shared_data: Path) -> None:
    """Capital gains, prices of houses and their like have long tails, and no value far beyond."""
    looked_at = 0
    for file in (*shared_data.glob("casc/*.csv"), *shared_data.glob("other/*.csv")):
        table = pd.read_csv(file, sep=None, engine="python")
        for column in table.select_dtypes("number"):
            looked_at += 1
            assert not far_values(table[column].dropna().to_numpy(float)), (file.name, column)
    assert looked_at > 30
