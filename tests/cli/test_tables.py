"""Tests of the options that say how a table is written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Shell

FORM = ("--separator", ";", "--encoding", "cp1252", "--decimal", ",", "--missing-values", "NA,-9")
ROLES = ("-q", "Größe", "-q", "Alter", "--sensitive", "Befund")
GERMAN = "Größe;Alter;Befund\n" + "".join(
    f"1,{60 + 3 * row};{(30 + row) if row % 5 else ('NA', '-9')[row % 2]};{'ab'[row % 2]}\n"
    for row in range(12)
)


@pytest.fixture
def german(shell: Shell) -> Shell:
    """Return a shell with a table as a German spreadsheet writes it."""
    (shell.folder / "german.csv").write_text(GERMAN, encoding="cp1252")
    return shell


def test_a_table_is_read_as_the_options_say(german: Shell) -> None:
    """Separator, encoding, decimal comma and missing values need no schema; nor does verify."""
    made = german(
        *("anonymize", "german.csv", *ROLES, *FORM, "--missing", "drop", "-k", 2, "-o", "r.csv")
    )
    assert made.code == 0, made.err
    assert "Größe numeric, Alter numeric" in made.out
    assert "3 records with missing values are left out" in made.out
    released = (german.folder / "r.csv").read_text(encoding="cp1252")
    assert released.startswith("Größe;Alter;Befund\n[1,")
    assert "." not in released.replace("..", "")
    assert german("verify", "german.csv", "r.csv").code == 0
    assert german("verify", "german.csv", "r.csv", "--separator", ";").code == 0
    wrong = german("verify", "german.csv", "r.csv", "--decimal", ".")
    assert wrong.code == 2
    assert "'Größe', original row 2" in wrong.err


@pytest.mark.parametrize("command", ["solve", "bound", "compare"])
def test_other_commands_take_them_too(german: Shell, command: str) -> None:
    """What reads a table reads it by the same options."""
    methods = ("--methods", "initial") if command == "compare" else ()
    made = german(command, "german.csv", *ROLES, *FORM, "--missing", "drop", "-k", 2, *methods)
    assert made.code == 0, made.err


def test_options_go_before_the_schema(german: Shell) -> None:
    """What both say is as the option has it, and what only the schema says stays."""
    german.write(
        "german.toml",
        '[attributes."Größe"]\n[table]\nseparator = ";"\nencoding = "utf-8"\ndecimal = ","\n'
        'drop = ["Alter", "Befund"]\n',
    )
    made = german("solve", "german.csv", "-k", 2, "--encoding", "cp1252", "--method", "initial")
    assert made.code == 0, made.err


def test_a_schema_beside_the_table_is_named(german: Shell) -> None:
    """In one line, and in an error of what nobody typed; one that was named needs no word."""
    german.write("german.toml", '[table]\nseparator = ";"\nmissing = ["a"]\ndrop = ["Alter"]\n')
    asked = ("solve", "german.csv", "-k", 2, "--encoding", "cp1252", "--method", "initial")
    taken = german(*asked, "-q", "Größe:categorical")
    assert taken.err.splitlines()[0] == "schema: german.toml, beside the table"
    refused = german(*asked, "-q", "Alter:categorical")
    assert refused.err == (
        "error: column 'Alter' is quasi-identifier and drop (by the options and german.toml, the "
        "schema beside the table). Give it one role\n"
    )
    missing = german(*asked, "-q", "Befund")
    assert "has 6 missing values" in missing.err
    assert "german.toml, the schema beside the table)" in missing.err
    named = german(*asked, "-q", "Alter:categorical", "--schema", "german.toml")
    assert named.err == "error: column 'Alter' is quasi-identifier and drop. Give it one role\n"


def test_a_wrong_encoding_names_the_option(german: Shell) -> None:
    """Who types options is told of one."""
    made = german("solve", "german.csv", *ROLES, "--separator", ";", "-k", 2)
    assert made.code == 2
    assert "not text in the encoding utf-8. Name its encoding, by --encoding" in made.err


def test_named_instances_have_a_format_of_their_own(shell: Shell) -> None:
    """An option that would have no effect is an error."""
    made = shell("solve", "health-records", "-k", 2, "--decimal", ",")
    assert made.code == 2
    assert "has its own schema" in made.err


def test_a_tab_can_be_typed(shell: Shell) -> None:
    """A backslash and a t mean the tab."""
    shell.write("tabs.csv", "a\tb\n1\t2\n1\t2\n")
    made = shell("solve", "tabs.csv", "-q", "a", "--drop", "b", "-k", 2, "--separator", "\\t")
    assert made.code == 0, made.err


def test_a_list_of_missing_values_is_one_line_of_csv(shell: Shell) -> None:
    """Commas are quoted; what is no list is refused."""
    shell.write("a.csv", 'a;b\n1;x\n"k, A";x\n2;x\n3;x\n')
    roles = ("-q", "a:numeric", "--drop", "b", "-k", 2, "--separator", ";", "--missing", "drop")
    assert shell("solve", "a.csv", *roles, "--missing-values", '"k, A",NA').code == 0
    refused = shell("solve", "a.csv", *roles, "--missing-values", '"k')
    assert refused.code == 2
    assert "--missing-values is no list" in refused.err


def test_a_hierarchy_of_codes_is_written(shell: Any) -> None:
    """The file is one that a schema takes; a wrong column and a wrong rule are told."""
    rows = ["E11.9;02138", "E11;02139", "I10.0;10001"] * 2
    shell.write("ill.csv", "\n".join(["code;zip", *rows]) + "\n")
    asked = ("hierarchy", "ill.csv", "--separator", ";", "-o", "zip.csv")
    result = shell(*asked, "-q", "zip", "--mask", "right", "--shown", "3,2")
    assert result.code == 0
    assert "3 codes, 3 levels above them" in result.out
    assert (shell.folder / "zip.csv").read_text().splitlines()[0] == "02138;021**;02***;*"
    shell.write("blocks.csv", "E11;E10-E14;any\nI10;I10-I15;any\n")
    result = shell(*asked, "-q", "code", "--cut", ".", "--above", "blocks.csv", "--root", "any")
    assert "3 codes, 3 levels above them" in result.out
    for wrong, words in (
        (("-q", "town", "--mask", "right"), "unknown column 'town'"),
        (("-q", "zip"), "either a mask or a separator"),
        (("-q", "zip", "--mask", "right", "--shown", "3;2"), "--shown is no list of numbers"),
        (("-q", "zip", "--mask", "up"), "codes are masked from 'up'"),
    ):
        before = shell.files()
        result = shell(*asked, *wrong)
        assert result.code == 2
        assert words in result.err
        assert shell.files() == before


def test_a_hierarchy_of_dates_is_written(shell: Any) -> None:
    """Texts of the table stand below their days; rules of codes are not mixed in."""
    shell.write(
        "born.csv",
        "iso,born,month\n1968-08-03,03.08.1968,08/1968\n,,\n1971-12-31,31.12.1971,12/1971\n",
    )
    asked = ("hierarchy", "born.csv", "--calendar", "-o", "calendar.csv")
    above = "1968-08;1968-Q3;1968;1960s"
    for column, more, line in (
        ("iso", (), f"1968-08-03;{above};*"),
        ("born", ("--format", "%d.%m.%Y", "--root", "any"), f"03.08.1968;1968-08-03;{above};any"),
        # A form without days is one of months.
        ("month", ("--format", "%m/%Y"), f"08/1968;{above};*"),
    ):
        result = shell(*asked, "-q", column, *more)
        assert result.code == 0, result.err
        assert "2 dates" in result.out
        assert (shell.folder / "calendar.csv").read_text().splitlines()[0] == line
    for wrong, words in (
        (("--mask", "right"), "--calendar is given beside a rule of codes"),
        ((), "column 'born' holds a value that is no date"),
    ):
        refused = shell(*asked, "-q", "born", *wrong)
        assert refused.code == 2
        assert words in refused.err
    refused = shell("hierarchy", "born.csv", "-q", "iso", "--format", "%d", "-o", "other.csv")
    assert "--format is that of dates" in refused.err


def test_inspect_tells_a_line_a_column_and_writes_a_schema(german: Shell) -> None:
    """The schema is read by the next command as it is; no value is told anywhere."""
    made = german("inspect", "german.csv", "-o", "german.toml", "--json", "found.json")
    assert made.code == 0, made.err
    assert made.out.startswith("12 rows; separator ';', encoding cp1252, decimal comma, missing")
    assert made.out.count("quasi-identifier") == 2
    assert "written: german.toml" in made.out
    told = made.out + german.read("german.toml") + german.read("found.json")
    assert "1,63" not in told
    assert german("solve", "german.csv", "--missing", "drop", "-k", 2).code == 0


def test_inspect_as_data(german: Shell) -> None:
    """One record a table, with one a column; options go before what is found."""
    made = german("inspect", "german.csv", "--missing-values", "NA", "--json", "-")
    (record,) = made.records()
    assert (record["instance"], record["rows"], record["incomplete"]) == ("german.csv", 12, 2)
    assert record["table"]["missing"] == ["", "NA"]
    assert [column["name"] for column in record["columns"]] == ["Größe", "Alter", "Befund"]
    assert set(record["columns"][0]) == {
        *("name", "kind", "looks", "distinct", "missing", "unique", "pattern", "role", "why"),
        "declared",
    }


def test_inspect_destroys_no_table(german: Shell) -> None:
    """A schema is not written over the table that it is of."""
    before = german.files()
    assert german("inspect", "german.csv", "-o", "german.csv").code == 2
    assert german("inspect", "nothing.csv").code == 2
    assert german.files() == before


VISITS = """\
patient,age,ill
007,30,flu
007,30,gout
007,31,flu
8,32,flu
9,50,gout
10,51,flu
10,53,gout
"""


@pytest.mark.parametrize("told", ["option", "schema", "drop"])
def test_k_counts_persons(shell: Shell, told: str) -> None:
    """By option or schema, left out anyway or not: published, verified, and shown as what it is."""
    shell.write("visits.csv", VISITS)
    unit = ["--unit", "patient"]
    if told == "schema":
        shell.write("visits.toml", '[attributes.age]\n[table]\nsensitive = ["ill"]\nunit="patient"')
        unit = []
    if told == "drop":
        unit += ["--drop", "patient"]
    roles = [] if told == "schema" else ["-q", "age", "--sensitive", "ill"]
    asked = ["anonymize", "visits.csv", *roles, *unit, "-k", 2, "-o", "release.csv"]
    outcome = shell(*asked)
    assert outcome.code == 0, outcome.err
    assert "k = 2 units" in outcome.out + outcome.err
    assert "patient" not in shell.read("release.csv")
    verified = shell("verify", "visits.csv", "release.csv")
    assert verified.code == 0
    assert "k counts units (column 'patient')" in verified.out
    assert "every class holds at least k units of 'patient'" in verified.out
    refused = shell(*asked, "--recoding", "freeform")
    assert refused.code == 2
    assert "does not count units" in refused.err


@pytest.mark.parametrize("told", ["option", "schema"])
def test_pseudonyms_in_place_of_ids(shell: Shell, told: str) -> None:
    """By option or schema: verified with the key's file and without; the report names them."""
    shell.write("visits.csv", VISITS)
    shell.write("key.txt", "0123456789abcdef\n")
    asked = ["-q", "age", "--sensitive", "ill", "--unit", "patient", "--pseudonym", "patient"]
    if told == "schema":
        toml = (
            '[table]\nsensitive = ["ill"]\nunit="patient"\npseudonyms=["patient"]\n[attributes.age]'
        )
        shell.write("visits.toml", toml)
        asked = []
    output = ["-o", "release.csv", "--report", "report.html"]
    outcome = shell(
        "anonymize", "visits.csv", *asked, "-k", 2, "--pseudonym-key", "key.txt", *output
    )
    assert outcome.code == 0, outcome.err
    assert "links the rows of a person" in outcome.err
    rows = [line.split(",") for line in shell.read("release.csv").splitlines()[1:]]
    assert len({row[0] for row in rows}) == 4
    assert all(len(row[0]) == 20 for row in rows)
    assert "keyed hashes that link the rows" in shell.read("report.html")
    assert "0123456789" not in shell.read("report.html") + shell.read("release.csv.manifest.json")
    for key, said in (
        ([], "these rows do not show"),
        (["--pseudonym-key", "key.txt"], "key gives"),
    ):
        verified = shell("verify", "visits.csv", "release.csv", *key)
        assert verified.code == 0, verified.out
        assert said in verified.out
    again = shell(
        "anonymize", "visits.csv", *asked, "-k", 2, "-o", "key.txt", "--pseudonym-key", "key.txt"
    )
    assert again.code == 2
    left_out = shell("anonymize", "visits.csv", "-q", "age", "--drop", "patient", "-k", 2, *output)
    assert left_out.code == 0, left_out.err
    assert shell.read("release.csv").splitlines()[0] in ("age", "age,ill")


SURVEY = "age,weight,ill\n" + "".join(
    f"{age},{1 + age % 4},{'ab'[age % 2]}\n" for age in range(30, 42)
)


@pytest.mark.parametrize("told", ["option", "schema"])
def test_sampling_weights(shell: Shell, told: str) -> None:
    """By option or schema: published, told beside the plain loss, verified, and used by risk."""
    shell.write("survey.csv", SURVEY)
    asked = ["-q", "age", "--sensitive", "ill", "--weights", "weight"]
    if told == "schema":
        toml = '[table]\nsensitive = ["ill"]\nweights = "weight"\n[attributes.age]'
        shell.write("survey.toml", toml)
        asked = []
    before = shell("risk", "survey.csv", *asked)
    assert "expected population uniques" in before.out
    output = ["-o", "release.csv", "--report", "report.html", "--json", "release.json"]
    outcome = shell("anonymize", "survey.csv", *asked, "-k", 3, *output)
    assert outcome.code == 0, outcome.err
    assert "gcp by the weights of 'weight', an estimate for the population:" in outcome.out
    (record,) = json.loads(shell.read("release.json"))
    manifest = json.loads(shell.read("release.csv.manifest.json"))
    assert record["weighted_gcp"] == manifest["weights"]["gcp"] > 0
    assert "Counted by the sampling weights of weight" in shell.read("report.html")
    verified = shell("verify", "survey.csv", "release.csv")
    assert "The loss by the weights of 'weight' was computed again" in verified.out
    after = shell("risk", "survey.csv", "release.csv")
    assert "individual risk" in after.out


@pytest.mark.parametrize("option", [["--unit", "patient"], ["--pseudonym", "patient"]])
def test_comparisons_know_the_roles(shell: Shell, option: list[str]) -> None:
    """Of a comparison k counts units, and ids that have pseudonyms are no forgotten columns."""
    shell.write("visits.csv", VISITS)
    roles = ["-q", "age", "--sensitive", "ill", *option]
    outcome = shell(
        "compare", "visits.csv", *roles, "-k", 3, "--methods", "mondrian", "--json", "-"
    )
    assert outcome.code == 0, outcome.err
    (record,) = outcome.records()
    persons = [{line.split(",")[0] for line in VISITS.splitlines()[1:]}]
    if option[0] == "--unit":
        lines = VISITS.splitlines()[1:]
        persons = [
            {
                line.split(",")[0]
                for line, one in zip(lines, record["groups"], strict=True)
                if one == g
            }
            for g in set(record["groups"])
        ]
    assert min(map(len, persons)) >= 3


@pytest.mark.parametrize("told", ["option", "schema"])
def test_risk_counts_persons(shell: Shell, told: str) -> None:
    """Before by option or schema; after, the manifest of the release says the unit."""
    shell.write("visits.csv", VISITS)
    unit = ["-q", "age", "--sensitive", "ill", "--unit", "patient"]
    if told == "schema":
        shell.write("visits.toml", '[attributes.age]\n[table]\nsensitive = ["ill"]\nunit="patient"')
        unit = []
    before = shell("risk", "visits.csv", *unit, "--json", "risk.json")
    assert before.code == 0, before.err
    assert "unique units" in before.out
    record = json.loads(shell.read("risk.json"))[0]
    assert record["unit"] == "patient"
    assert record["before"]["units"] < record["before"]["records"]
    outcome = shell("anonymize", "visits.csv", *unit, "-k", 2, "--keep-order", "-o", "release.csv")
    assert outcome.code == 0, outcome.err
    after = shell("risk", "visits.csv", "release.csv")
    assert "(units: patient) with a probability of at most 50 %" in after.out
    refused = shell("risk", "visits.csv", "release.csv", "--unit", "age")
    assert refused.code == 2
    assert "counts units of column 'patient'" in refused.err
