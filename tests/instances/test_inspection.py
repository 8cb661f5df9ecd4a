"""Tests of the first look at a table: what it suggests, that its schema applies, what it hides."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    EquivalenceClasses,
    InputError,
    Microdata,
    Problem,
    TableFormat,
    inspect,
    read_schema,
    read_table,
)
from anonymip.instances.inspection import Inspection
from anonymip.instances.schema import Schema
from anonymip.publishing.manifest import columns_at_risk
from tests import profiles

ROOT = Path(__file__).resolve().parents[2]


def german_table(n: int = 240, seed: int = 7) -> pd.DataFrame:
    """Return a table as a German spreadsheet has it: gaps, decimal commas, leading zeros."""
    draw = random.Random(seed)

    def comma(low: float, high: float, digits: int) -> str:
        return f"{draw.uniform(low, high):.{digits}f}".replace(".", ",")

    def day(first: int, last: int) -> str:
        return f"{draw.randint(1, 28):02}.{draw.randint(1, 12):02}.{draw.randint(first, last)}"

    names = ["Zöllner", "Quandt", "Yordanova", "Xaver", "Übel"]
    return pd.DataFrame(
        {
            "Patienten-ID": [f"{draw.randint(0, 99):06}" for _ in range(n)],
            "Nachname": [draw.choice(names) for _ in range(n)],
            "Kontakt": [f"p{draw.randint(0, n)}.q@klinik.example" for _ in range(n)],
            "Rückruf": [f"+49 30 {draw.randint(10**6, 10**7)}" for _ in range(n)],
            "Bank": [f"DE{draw.randint(10, 99)} {'1234 ' * 4}00" for _ in range(n)],
            "geboren": [draw.choice([*[day(1930, 2005)] * 30, "unbekannt"]) for _ in range(n)],
            "PLZ": [draw.choice(["01067", "04103", "09111", "01099", ""]) for _ in range(n)],
            "Größe": [draw.choice([*[comma(1.5, 2, 2)] * 20, "NA"]) for _ in range(n)],
            "Kreatinin": [draw.choice([comma(0.4, 4, 1), "-9"]) for _ in range(n)],
            "Dach": [str(draw.randint(1, 9)) for _ in range(n)],
            "Kinder": [str(draw.randint(0, 5)) for _ in range(n)],
            "Schlüssel": [draw.choice(["E11.9", "I10.0", "J45.8", "C50"]) for _ in range(n)],
            "Notiz": [f"Herr {draw.choice(names)} kam um {hour} Uhr zu uns" for hour in range(n)],
            "Land": ["Deutschland"] * n,
            "leer": [""] * n,
        }
    )


@pytest.fixture(scope="module")
def german(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a German table."""
    path = tmp_path_factory.mktemp("german") / "klinik.csv"
    german_table().to_csv(path, sep=";", index=False, encoding="cp1252", errors="replace")
    return path


def test_a_german_table_is_told(german: Path) -> None:
    """Format, kinds, patterns and roles of a table with all that makes tables messy."""
    found = inspect(german)
    form = found.table
    assert (form.separator, form.encoding, form.decimal) == (";", "cp1252", ",")
    assert set(form.missing) == {"", "NA", "-9", "unbekannt"}
    told = {one.name: (one.looks, one.pattern, one.role) for one in found.columns}
    asked = "quasi-identifier"
    assert told == {
        "Patienten-ID": ("codes with leading zeros", "999999", "drop"),
        "Nachname": ("texts", None, "drop"),
        "Kontakt": ("e-mail addresses", None, "drop"),
        "Rückruf": ("telephone numbers", None, "drop"),
        "Bank": ("bank accounts (IBAN)", None, "drop"),
        "geboren": ("dates", "%d.%m.%Y", asked),
        "PLZ": ("codes with leading zeros", "99999", asked),
        "Größe": ("numbers", None, asked),
        "Kreatinin": ("numbers", None, "sensitive"),
        "Dach": ("whole numbers, few: codes?", None, asked),
        "Kinder": ("whole numbers", None, asked),
        "Schlüssel": ("codes with levels", None, "sensitive"),
        "Notiz": ("sentences", None, "drop"),
        "Land": ("texts", None, "keep"),
        "leer": ("nothing", None, "drop"),
    }
    ids = found.columns[0]
    assert "persons that repeat" in ids.why
    frame = german_table()
    assert ids.distinct == frame["Patienten-ID"].nunique()
    assert ids.unique == (frame["Patienten-ID"].value_counts() == 1).sum() / len(frame)
    lost = frame["geboren"].eq("unbekannt") | frame["PLZ"].eq("") | frame["Größe"].eq("NA")
    assert found.incomplete == lost.sum()
    assert found.columns[5].missing == frame["geboren"].eq("unbekannt").sum()


def test_its_schema_reads_the_table(german: Path, tmp_path: Path) -> None:
    """What is written down is read back, with kinds and formats, and says why in comments."""
    found = inspect(german)
    data = _applied(found, german, tmp_path)
    kinds = {one.name: one.kind for one in data.attributes}
    assert kinds == {
        "geboren": "date",
        "PLZ": "categorical",
        "Größe": "numeric",
        "Dach": "categorical",
        "Kinder": "numeric",
    }
    assert data.n == found.rows - found.incomplete
    text = found.to_toml()
    assert all(one.why in text for one in found.columns)
    assert "missing=..." in text


@pytest.mark.parametrize(
    ("form", "first", "dates"),
    [("{:02}/{}", 1950, True), ("{1}-{0:02}", 1950, True), ("{:02}/{}", 2750, False)],
)
def test_months_are_dates(form: str, first: int, dates: bool) -> None:
    """Months without a day are dates of a format, and case numbers of their form are none."""
    texts = [form.format(number % 12 + 1, first + number % 9) for number in range(36)]
    column = inspect(pd.DataFrame({"since": texts})).columns[0]
    assert (column.looks == "dates") is dates
    numbers = [f"{number}/2019" for number in range(36)]
    assert inspect(pd.DataFrame({"since": numbers})).columns[0].looks == "codes"


def test_no_value_is_told(german: Path) -> None:
    """Names, dates, codes and lone numbers stand nowhere in what is printed or written."""
    found = inspect(german)
    told = f"{found}\n{found.to_toml()}\n{found.to_dict()}"
    frame = german_table()
    for name in frame.columns:
        for value in set(frame[name]) - {"", "NA", "-9", "unbekannt"}:
            if len(value) > 3:
                assert value not in told


def _applied(found: Inspection, path: Path, folder: Path):
    file = folder / "schema.toml"
    file.write_text(found.to_toml(), encoding="utf-8")
    return read_schema(file).with_roles(missing="drop").read(path)


CELLS = st.one_of(
    st.text("qxzäÖ0'\"\\#=[]{}*;, \x7f\t", max_size=6),
    st.integers(-99, 10**9).map(str),
    st.floats(-1e6, 1e6).map(lambda number: f"{number:.2f}".replace(".", ",")),
    st.dates().map(lambda day: day.strftime("%d.%m.%Y")),
    st.sampled_from(["NA", "-9", "?", "unknown", "", "E11.9", "01067", "q@x.zz", "12:30", "nan"]),
)
COLUMN = st.one_of(
    st.lists(CELLS, min_size=12, max_size=12),
    st.lists(CELLS, min_size=1, max_size=3).flatmap(
        lambda few: st.lists(st.sampled_from(few), min_size=12, max_size=12)
    ),
    st.lists(st.dates().map(lambda day: day.strftime("%d/%m/%y")), min_size=12, max_size=12),
    st.lists(st.integers(0, 9).map(str), min_size=12, max_size=12),
)
NAMES = st.lists(
    st.text("aÄ .\"'\\]\x7f\n", max_size=4)
    | st.sampled_from(["name", "zip", "PatientID", "Größe"]),
    min_size=1,
    max_size=4,
    unique=True,
)


@settings(max_examples=150)
@given(NAMES, st.data())
def test_any_schema_is_read_back_and_applies(names: list[str], data: st.DataObject) -> None:
    """To its table, unless that has no complete row, or nothing is asked of it."""
    frame = pd.DataFrame({name: data.draw(COLUMN) for name in names})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.to_csv(path, sep=";", index=False)
        try:
            table = read_table(path, inspect(path).table)
        except InputError:
            return  # such as lines of blanks, which two readers see in two ways
        found = inspect(path)
        assert list(table.columns) == [one.name for one in found.columns]
        asked = [one for one in found.columns if one.role == "quasi-identifier"]
        if not asked or found.incomplete == found.rows:
            with pytest.raises(InputError, match=r"no rows|no quasi-identifiers"):
                _applied(found, path, Path(folder))
            return
        applied = _applied(found, path, Path(folder))
        assert list(applied.names) == [one.name for one in asked]
        assert applied.n == found.rows - found.incomplete
        assert not applied.undeclared


def test_frames_are_told_by_their_types() -> None:
    """Numbers, moments, truth values and gaps of data frames; lists are nothing to publish."""
    frame = pd.DataFrame(
        {
            "born": pd.to_datetime(["1968-08-03", "1970-01-01", None, "1968-08-03"]),
            "pay": [1.5, 2.5, None, 1.5],
            "smokes": [True, False, True, None],
            "tags": [["a"], ["b"], [], ["c"]],
        }
    )
    found = inspect(frame)
    assert [(one.kind, one.missing, one.role) for one in found.columns] == [
        ("date", 1, "quasi-identifier"),
        ("numeric", 1, "quasi-identifier"),
        ("categorical", 1, "quasi-identifier"),
        ("categorical", 0, "drop"),
    ]
    assert inspect(pl.from_pandas(frame[["pay"]])).columns[0] == found.columns[1]


@pytest.mark.parametrize(
    ("text", "decimal"),
    [
        ("a;b\n1,5;x\n2,25;y\n", ","),
        ("a;b\n1.5;x\n2,25;y\n3.5;z\n", "."),
        ('a,b\n"1,500",x\n"2,250",y\n', "."),  # thousands
        ("a;b\n1,500;x\n2,250;y\n", ","),
        ("a;b;c\n1,5;2,5;3.5\n1,5;2,5;3.5\n", ","),  # more columns have commas
        ("a;b\nx, y;1\nu, v;2\n", "."),
    ],
)
def test_a_decimal_comma_is_found(tmp_path: Path, text: str, decimal: str) -> None:
    """Where numbers have commas; not in texts, and not between thousands."""
    path = tmp_path / "table.csv"
    path.write_text(text)
    assert inspect(path).table.decimal == decimal


def test_what_is_given_is_not_searched_for(tmp_path: Path) -> None:
    """Arguments go before what is found."""
    path = tmp_path / "table.csv"
    path.write_text("a;b,c\n1,NA;5\n2,3;5\n")
    form = inspect(path, separator=",", decimal=".", missing=("x",), encoding="cp1252").table
    assert form == TableFormat(",", "cp1252", missing=("x",))
    assert inspect(path).table.separator == ";"
    with pytest.raises(InputError, match="no encoding of texts"):
        inspect(path, encoding="utf-99")


@pytest.mark.parametrize(
    ("name", "write", "given", "told"),
    [
        ("p.csv", pd.DataFrame.to_csv, {}, "2 rows; separator ',', encoding utf-8"),
        ("p.xlsx", pd.DataFrame.to_excel, {}, "2 rows; first sheet"),
        ("p.xlsx", pd.DataFrame.to_excel, {"sheet": "Sheet1"}, "2 rows; sheet 'Sheet1'"),
        ("p.parquet", pd.DataFrame.to_parquet, {}, "2 rows"),
    ],
)
def test_only_text_files_have_a_separator(
    tmp_path: Path, name: str, write: Any, given: dict[str, Any], told: str
) -> None:
    """Of a workbook the sheet is told, of Parquet and frames nothing."""
    frame = pd.DataFrame({"age": [34, 36]})
    write(frame, tmp_path / name, index=False)
    assert str(inspect(tmp_path / name, **given)).splitlines()[0] == told
    assert str(inspect(frame)).splitlines()[0] == "2 rows"


def test_minus_nine_is_a_number_among_negative_ones(tmp_path: Path) -> None:
    """It means no value only where no column of numbers goes below zero otherwise."""
    path = tmp_path / "table.csv"
    path.write_text("a;t\n1;-9\n2;-3\n-9;4\n3;5\n")
    assert inspect(path).table.missing == ("",)


def test_the_table_of_the_tutorial() -> None:
    """Its ages need a hand, its sex two; nobody is named."""
    found = {one.name: one for one in inspect(ROOT / "examples" / "messy_patients.csv").columns}
    assert found["Age"].looks == "numbers and texts"
    assert "27 rows hold no number" in found["Age"].why
    assert "2 values differ from others in capitals" in found["Sex"].why
    assert found["Admitted"].declared["format"] == "%d.%m.%Y"
    assert found["Diagnosis"].role == "sensitive"
    assert {found["Name"].role, found["Patient no"].role} == {"drop"}


@pytest.mark.shared_data
def test_real_tables_are_read_as_they_are(shared_data: Path, tmp_path: Path) -> None:
    """Whatever lies in the data folder is told, and its schema applies to it."""
    looked = 0
    tables = [file for file in shared_data.rglob("*.csv") if file.stat().st_size < 300_000]
    most = 20 if profiles.NAME == "thorough" else 10
    for path in sorted(tables)[:: max(1, len(tables) // most)]:
        found = inspect(path)
        tomllib.loads(found.to_toml())
        if any(one.role == "quasi-identifier" for one in found.columns):
            assert found.incomplete == found.rows or _applied(found, path, tmp_path).n
            looked += 1
    assert looked > 5


def test_schemas_of_frames_apply_to_them() -> None:
    """A frame of a spreadsheet's texts is read by the format that the schema has."""
    frame = german_table()
    found = inspect(frame)
    form = found.table
    assert form.decimal == ","
    declared = {
        one.name: dict(one.declared) for one in found.columns if one.role == "quasi-identifier"
    }
    schema = Schema(declared, table=form).with_roles(
        missing="drop", drop=[one.name for one in found.columns if one.name not in declared]
    )
    assert schema.apply(frame).n == found.rows - found.incomplete


def test_values_far_beyond_the_others_are_pointed_out() -> None:
    """A note counts them and names the remedy, of numbers and of dates, none of codes."""
    ages = [20 + at % 60 for at in range(200)]
    days = [f"19{50 + at % 40}-05-01" for at in range(200)]
    frame = pd.DataFrame({"age": [*ages, 670], "born": [*days, "0195-05-01"], "sex": "F"})
    why = {one.name: one.why for one in inspect(frame).columns}
    assert "(1 above): correct them, or declare at_most" in why["age"]
    assert "(1 below): correct them, or declare at_least" in why["born"]
    assert "far" not in why["sex"]


def test_missing_values_have_a_policy_in_the_schema(tmp_path: Path) -> None:
    """Each column with gaps says what becomes of them, with their share; verified as it is."""
    frame = pd.DataFrame({"age": [20 + at % 60 for at in range(200)], "job": ["a", "b"] * 100})
    frame.loc[:9, "age"] = None
    frame.loc[5:8, "job"] = None
    schema = tmp_path / "schema.toml"
    schema.write_text(inspect(frame).to_toml())
    assert 'missing = "own"  # 5.0 % of the rows; "drop" leaves them out' in schema.read_text()
    assert 'missing = "category"  # 2.0 % of the rows' in schema.read_text()
    data = read_schema(schema).apply(frame)
    assert data.n == 200
    assert data.kept_missing == {"age": 10, "job": 4}
    assert read_schema(schema).with_roles(missing="drop").apply(frame).n == 190


def test_ids_of_persons_that_repeat_are_a_unit() -> None:
    """They are left out as before, and the reason says how k counts persons."""
    table = pd.DataFrame(
        {"patient_id": [i // 3 for i in range(120)], "age": [i % 60 for i in range(120)]}
    )
    column = inspect(table).columns[0]
    assert column.role == "drop"
    assert "40 of them in 120 rows" in column.why
    assert "unit=... counts them" in column.why


def test_ids_are_known_by_the_bare_name_of_persons() -> None:
    """Codes of 1,000 patients in 1,500 rows are ids of persons, though most of them are rare."""
    codes = [f"{i % 1000:07}" for i in range(1500)]
    others = {"person": ["tall", "short"] * 750, "households": [i % 700 for i in range(1500)]}
    found = inspect(pd.DataFrame({"Patient": codes, "Schüler": codes, **others})).columns
    assert [column.role for column in found] == [*["drop"] * 2, *["quasi-identifier"] * 2]
    assert all("1,000 of them in 1,500 rows" in column.why for column in found[:2])


def test_words_with_points_mean_no_value_beside_decimal_commas(tmp_path: Path) -> None:
    """`k.A.` is no number with a point: a column of marks stays one of numbers."""
    path = tmp_path / "marks.csv"
    path.write_text("mark;zip\n" + "1,5;04103\n2,7;04109\nk.A.;k.A.\n" * 20)
    found = inspect(path)
    assert found.table.missing == ("", "k.A.")
    assert [column.looks for column in found.columns] == ["numbers", "codes with leading zeros"]
    data = read_schema(_written(found, tmp_path)).apply(read_table(path, found.table))
    assert data.attributes[0].kind == "numeric"
    assert data.kept_missing == {"mark": 20, "zip": 20}
    table = TableFormat(";", decimal=",", missing=("", "k.A."), policy="own")
    typed = Schema({"mark": {}}, table=table).apply(read_table(path, table)[["mark"]])
    assert typed.attributes[0].kind == "numeric"


def _written(found: Inspection, folder: Path) -> Path:
    """Return the file of a suggested schema."""
    path = folder / "schema.toml"
    path.write_text(found.to_toml())
    return path


def test_separated_thousands_are_said_to_be_none_of_numbers() -> None:
    """What looks like codes to a program is named, with what makes numbers of it."""
    amounts = [f"{1_000 * i + 51_234.5:,.2f}" for i in range(60)]
    found = inspect(pd.DataFrame({"salary": amounts, "age": range(60)})).columns[0]
    assert (found.looks, found.role) == ("numbers with separated thousands", "drop")
    assert "take the separators of thousands away" in found.why


def test_rows_that_hold_no_date_are_counted() -> None:
    """A few texts among dates of one form are told by their number and the form."""
    days = [f"{1 + i % 28:02}.{1 + i % 12:02}.{1950 + i % 50}" for i in range(200)]
    found = inspect(pd.DataFrame({"born": [*days, "00.00.0000", "1.13.2001"]})).columns[0]
    assert (found.looks, found.pattern, found.role) == ("dates and texts", "%d.%m.%Y", "drop")
    assert "2 rows hold no date of this form" in found.why


@pytest.mark.parametrize(
    ("values", "domain"),
    [
        ([17, 93, 20] * 20, [10, 100]),
        ([34.5, 734.0, 60.0] * 20, [0, 800]),
        ([-0.31, 0.52, 0.1] * 20, [-0.4, 0.6]),
        ([1_000_001, 1_000_009] * 30, [1_000_000, 1_000_010]),
        (["1915-03-04", "2010-05-06"] * 30, ["1910-01-01", "2019-12-31"]),
        (["2025-01-03", "2025-11-06"] * 30, ["2025-01-01", "2025-12-31"]),
        ([7] * 60, None),
        (list("ab") * 30, None),
    ],
)
def test_domains_are_rounded_outwards(values: list[object], domain: list[object] | None) -> None:
    """To one digit of their width; dates to years or decades; the schema takes them."""
    frame = pd.DataFrame({"x": values, "y": range(len(values))})
    found = inspect(frame).columns[0]
    assert found.declared.get("domain") == domain
    if domain is not None:
        data = Schema({"x": found.declared}).apply(frame[["x"]])
        assert data.attributes[0].domain is not None
        low, high = data.domain_bounds(0)
        assert low <= data.levels[0].min()
        assert data.levels[0].max() <= high


def test_the_schema_goes_with_suppression(tmp_path: Path) -> None:
    """What an inspection writes is enough to leave outliers out: nothing else is to be declared."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "age": [*rng.integers(20, 60, 99).tolist(), 99],
            "sex": rng.choice(["F", "M"], 100),
            "born": [f"19{year}-02-03" for year in rng.integers(40, 99, 100)],
        }
    )
    people, schema = tmp_path / "people.csv", tmp_path / "people.toml"
    frame.to_csv(people, index=False)
    schema.write_text(inspect(people).to_toml(), encoding="utf-8")
    table = read_schema(schema).read(people)
    problem = Problem(table, 3, EquivalenceClasses(suppression=True, most_suppressed=2))
    assert columns_at_risk(problem) == []
    open_ends = Microdata(
        frame, (Attribute("age"), Attribute("sex", "categorical")), drop=("born",)
    )
    assert columns_at_risk(problem.replace(microdata=open_ends)) == ["age"]


def test_what_is_private_by_its_name_is_sensitive() -> None:
    """Capitals within a word, and numbers that nobody shares, do not hide it."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "HbA1c": rng.integers(40, 90, 300) / 10,
            "income": rng.normal(4e4, 1e4, 300).round(2),
            "age": rng.integers(20, 80, 300),
        }
    )
    roles = {one.name: one.role for one in inspect(frame).columns}
    assert roles == {"HbA1c": "sensitive", "income": "sensitive", "age": "quasi-identifier"}


@pytest.mark.parametrize(
    ("values", "told"), [([1, 2, 3, 4, 5, 99], True), ([95, 96, 97, 98, 99], False)]
)
def test_answers_that_mean_none_are_pointed_out(values: list[int], *, told: bool) -> None:
    """A 99 among answers from 1 to 5 makes every loss look small."""
    column = pd.DataFrame({"q1": np.resize(values, 400), "x": np.arange(400) % 7 / 3})
    assert ("99 is far above all others" in str(inspect(column))) is told
