"""Databases and sheets of workbooks as sources of tables, and what is shown of addresses."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import make_url

from anonymip import InputError, read_table
from anonymip.cli.tables import hide_passwords
from anonymip.instances.readers import without_password
from tests.cli.conftest import Shell

PASSWORD = "s3cret"


@pytest.fixture
def database(shell: Shell) -> str:
    """Return the address of a database of eight people, with a password that nobody asks for."""
    with closing(sqlite3.connect(shell.folder / "people.db")) as made, made:
        made.execute("create table people (age integer, zip text, born date, ill text)")
        rows = [(30 + n, f"0213{n % 2}", f"19{60 + n}-01-01", "flu") for n in range(8)]
        made.executemany(
            "insert into people values (?, ?, ?, ?)", [*rows[:7], (None, *rows[7][1:])]
        )
    return f"sqlite:///{shell.folder}/people.db"


ASKED = ("--query", "select age, zip, born from people where zip like '021%' and age > 0")


def test_commands_read_databases(database: str, shell: Shell) -> None:
    """One address and one query serve every command that reads a table."""
    roles = ("-q", "age", "-q", "zip:categorical", "-q", "born:date")
    for command, given, told in (
        ("anonymize", (*roles, "-k", 3, "-o", "release.csv"), "verified and written"),
        ("verify", ("release.csv",), "keeps its promises"),
        ("risk", ("release.csv",), "7"),
        ("inspect", ("-o", "schema.toml"), "7 rows"),
        ("solve", (*roles, "-k", 3, "--method", "mondrian"), "mondrian"),
        ("compare", (*roles, "-k", 3, "--methods", "initial,hilbert"), "hilbert"),
        ("hierarchy", ("-q", "zip", "--mask", "right", "-o", "zip.csv"), "written"),
    ):
        made = shell(command, database, *given, *ASKED)
        assert made.code == 0, made.err
        assert told in made.out
    codes = (shell.folder / "zip.csv").read_text(encoding="utf-8")
    assert codes.startswith("02130;0213*;")
    refused = shell(
        "compare", database, *ASKED, *roles, "-k", 3, "--samples", 2, "--sample-size", 6
    )
    assert refused.code == 2
    assert "tables that are read again" in refused.err


@pytest.mark.parametrize(
    ("address", "given", "message"),
    [
        ("sqlite:///{}/people.db", (), "nothing is asked of it"),
        ("sqlite:///{}/no.db", ASKED, "there is no file"),
        ("sqlite:///{}/people.db", ("--query", "select nothing from people"), "does not answer"),
        ("sqlite:///{}/people.db", ("--query", "select age, age from people"), "duplicate column"),
        ("nothing://me:PASSWORD@host/db?sslpassword=PASSWORD", ASKED, "does not answer"),
        ("postgresql+nodriver://me:PASSWORD@host/db", ASKED, "does not answer"),
        ("postgresql+psycopg2://me:PASSWORD@host/db", ASKED, "psycopg2, which is not installed"),
        ("{}/people.csv", ASKED, "no address of a database"),
    ],
)
def test_databases_that_do_not_answer(
    address: str, given: tuple[str, ...], message: str, database: str, shell: Shell
) -> None:
    """Each fault of address and query is named, and no message holds a password."""
    named = address.format(shell.folder).replace("PASSWORD", PASSWORD)
    asked = (named, *given, "-q", "age", "-k", 2, "-o", "release.csv", "--show-values")
    made = shell("anonymize", *asked)
    assert made.code == 2
    assert message in " ".join(made.err.split())
    assert PASSWORD not in made.out + made.err
    assert not (shell.folder / "release.csv").exists()


def test_passwords_are_written_nowhere(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records, manifests and reports show an address with stars in place of its password."""
    asked = []

    def answer(address: str, query: str) -> pd.DataFrame:
        asked.append(address)
        return pd.DataFrame({"age": [30, 31, 40, 41]})

    monkeypatch.setattr("anonymip.instances.readers._read_query", answer)
    address = f"postgresql://me:{PASSWORD}@host/db?sslpassword={PASSWORD}"
    files = ("-o", "release.csv", "--report", "report.html", "--json", "record.json")
    made = shell("anonymize", address, "--query", "select 1", "-q", "age", "-k", 2, *files)
    assert made.code == 0, made.err
    assert asked == [address]
    written = {path.name: path.read_text(encoding="utf-8") for path in shell.folder.iterdir()}
    assert {"release.csv", "release.csv.manifest.json", "report.html", "record.json"} <= set(
        written
    )
    for text in (*written.values(), made.out, made.err):
        assert PASSWORD not in text
    assert "postgresql://me:***@host/db" in written["record.json"]


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("sqlite:///people.db", "sqlite:///people.db"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("postgresql://me:secret@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql://me:sec:ret/@host/db?a=secret", "postgresql://me:***@host/db?***"),
        ("postgresql://me:sec@ret@host/db", "postgresql://***"),
        ("postgresql://me:sec?ret@host/db", "postgresql://***"),
        ("postgresql://host/db?password=s@cret", "postgresql://***"),
    ],
)
def test_what_is_shown_of_an_address(address: str, shown: str) -> None:
    """User, host and database are; where the password ends is asked in doubt of nobody."""
    assert without_password(address) == shown


def test_other_arguments_stay_what_they_are() -> None:
    """Addresses of the web are shown as they are; only those of databases hide anything."""
    given = ["fetch", "--address", "https://me:pw@host/adult?version=2", "sqlite:///a.db?x=1"]
    assert hide_passwords(given) == [*given[:3], "sqlite:///a.db?***"]


@pytest.mark.parametrize(("policy", "rows"), [("drop", 7), ("own", 8)])
def test_what_a_database_does_not_know(policy: str, rows: int, database: str, shell: Shell) -> None:
    """Null is a missing value of a number, as an empty cell of a file is."""
    asked = ("--query", "select * from people", "-q", "age", "--sensitive", "ill")
    asked = (*asked, "--drop", "zip", "--drop", "born")
    made = shell("anonymize", database, *asked, "--missing", policy, "-k", 3, "-o", "release.csv")
    assert made.code == 0, made.err
    assert len((shell.folder / "release.csv").read_text().splitlines()) == rows + 1
    assert shell("anonymize", database, *asked, "-k", 3, "-o", "other.csv").code == 2


def test_nothing_is_written_to_a_database(database: str) -> None:
    """A query that changes rows leaves none changed."""
    with pytest.raises(InputError):
        read_table(database, query="delete from people")
    assert len(read_table(database, query="select * from people")) == 8


def test_sqlalchemy_that_is_missing(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the message says how to install it."""
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(InputError, match=r"pip install 'anonymip\[sql\]'"):
        read_table(database, query="select * from people")


@pytest.mark.skipif("ANONYMIP_POSTGRESQL" not in os.environ, reason="there is no PostgreSQL here")
def test_a_real_postgresql(shell: Shell) -> None:
    """Dates, decimals, gaps and signs of percent come as they are; the password stays secret."""
    address = os.environ["ANONYMIP_POSTGRESQL"]
    secret = make_url(address).password
    assert secret
    table = (
        "select 20 + n as age, lpad((2130 + n % 3)::text, 5, '0') as zip, "
        "date '1960-01-01' + n as born, nullif(n, 3) * 0.5 as lab, n % 2 = 0 as ward "
        "from generate_series(1, 24) n where 'x' like '%x%'"
    )
    roles = (
        "-q",
        "age",
        "-q",
        "zip:categorical",
        "-q",
        "born:date",
        "--keep",
        "lab",
        "--keep",
        "ward",
    )
    for command, given in (
        ("anonymize", (*roles, "-k", 3, "-o", "release.csv", "--json", "record.json")),
        ("verify", ("release.csv", "--json", "verified.json")),
        ("inspect", ("-o", "schema.toml")),
        ("risk", ("release.csv",)),
    ):
        made = shell(command, address, *given, "--query", table)
        assert made.code == 0, made.err
        assert secret not in made.out + made.err
    files = [path.read_text(encoding="utf-8") for path in shell.folder.iterdir()]
    assert len(files) >= 5
    assert not any(secret in text for text in files)
    wrong = shell("inspect", address.replace(secret, "wr0ng"), "--query", table, "--show-values")
    assert wrong.code == 2
    assert "does not answer (OperationalError)" in wrong.err
    assert "wr0ng" not in wrong.err


def _workbook(folder: Path) -> str:
    """Write a workbook whose second and third sheet hold tables, and return its name."""
    people = pd.DataFrame(
        {"age": range(30, 38), "zip": [f"0213{n % 2}" for n in range(8)], "ill": "flu"}
    )
    with pd.ExcelWriter(folder / "people.xlsx") as book:
        pd.DataFrame({"nobody reads": ["this"]}).to_excel(book, sheet_name="legend", index=False)
        people.to_excel(book, sheet_name="People", index=False)
        people.assign(age=people["age"] + 40).to_excel(book, sheet_name="1", index=False)
    return "people.xlsx"


def test_commands_read_any_sheet(shell: Shell) -> None:
    """By name or number, by option or schema; the verifier reads it too, and no other."""
    book = _workbook(shell.folder)
    roles = ("-q", "age", "-q", "zip:categorical")
    for sheet in ("People", "2"):
        for command, given, told in (
            ("inspect", ("-o", "schema.toml"), f"sheet '{sheet}'"),
            ("anonymize", (*roles, "-k", 3, "-o", "release.csv"), "verified and written"),
            ("verify", ("release.csv",), "keeps its promises"),
            ("risk", (*roles,), "8"),
            ("risk", ("release.csv",), "8"),
            ("compare", (*roles, "-k", 3, "--methods", "initial"), "initial"),
            ("hierarchy", ("-q", "zip", "--mask", "right", "-o", "zip.csv"), "written"),
        ):
            made = shell(command, book, *given, "--sheet", sheet)
            assert made.code == 0, made.err
            assert told in made.out
        assert f'sheet = "{sheet}"' in shell.read("schema.toml")
    shell.write(
        "number.toml", '[table]\nsheet = 2\n[attributes.age]\n[attributes.zip]\nkind="categorical"'
    )
    assert shell("verify", book, "release.csv", "--schema", "number.toml").code == 0
    assert shell("risk", book, "release.csv", "--schema", "number.toml").code == 0
    # A sheet that is called 1 stands before the first one; its ages are others.
    other = shell("verify", book, "release.csv", "--sheet", "1")
    assert (other.code, "FAILS" in other.out) == (1, True)
    for given, said in (
        (["anonymize", book, *roles, "-k", 3, "-o", "x.csv", "--sheet", "people"], "'People'"),
        (["inspect", book, "--sheet", "4"], "1 'legend', 2 'People', 3 '1'"),
        (["verify", book, "release.csv", "--sheet", "none"], "legend, People, 1"),
        (["inspect", "people.csv", "--sheet", "2"], "is no workbook"),
        (["verify", "people.csv", "release.csv", "--sheet", "2"], "is no workbook"),
    ):
        refused = shell(*given)  # type: ignore[misc]
        assert refused.code == 2
        assert said in refused.err
