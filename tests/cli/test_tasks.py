"""Tests of the commands that make releases, covers too: anonymize, demo."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

import pandas as pd
import pytest

from anonymip import Progress


def read(shell: Any, name: str) -> pd.DataFrame:
    """Return a released table, all texts."""
    return pd.read_csv(shell.folder / name, dtype=str, keep_default_na=False)


def test_from_a_table_to_a_verified_release(shell: Any) -> None:
    """Release and manifest are written and hold; roles are kept; the summary says what was done."""
    result = shell("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.csv")
    assert result.code == 0
    assert result.err.startswith("warning: column 'visit' (kept) is nearly unique: 7 different")
    assert result.err.count("\n") == 1
    assert "proven optimal" in result.out
    assert "verified and written: release.csv, release.csv.manifest.json" in result.out
    release = read(shell, "release.csv")
    assert list(release) == ["age", "sex", "zip", "disease", "visit"]
    assert set(release["age"]) == {"[35..37]", "[61..66]"}
    assert release.groupby(["age", "sex", "zip"]).size().min() == 3
    # Kept and sensitive cells come out letter by letter, and stay together.
    pairs = set(zip(release["visit"], release["disease"], strict=True))
    assert ("01", "flu") in pairs
    assert ("03", "mumps") in pairs
    verified = shell("verify", "people.csv", "release.csv")
    assert verified.code == 0
    assert verified.out.startswith("The release keeps its promises.")


def test_the_order_is_shuffled_unless_kept(shell: Any) -> None:
    """Rows come in random order; with --keep-order in that of the original, and it is declared."""
    arguments = ("anonymize", "census:200,3,1", "-k", 5, "--method", "mondrian")
    shell(*arguments, "-o", "kept.csv", "--keep-order")
    shell(*arguments, "-o", "one.csv")
    shell(*arguments, "-o", "two.csv")
    kept, one, two = (shell.read(name) for name in ("kept.csv", "one.csv", "two.csv"))
    assert one != kept
    assert one != two
    assert sorted(one.splitlines()) == sorted(kept.splitlines()) == sorted(two.splitlines())
    assert json.loads(shell.read("kept.csv.manifest.json"))["order"] == "kept"
    assert json.loads(shell.read("one.csv.manifest.json"))["order"] == "shuffled"


def test_json_and_report(shell: Any) -> None:
    """The record has the class of every original row; the report is one page without records.

    It says the command without folders, and without the values that a rule names.
    """
    result = shell(
        *("anonymize", shell.folder / "people.csv", *shell.roles, "-k", 3, "-o", "release.csv"),
        *("--json", "-", "--report", "report.html", "--apart", "sex=F,M"),
    )
    (record,) = result.records()
    assert record["groups"] == [0, 0, 0, 1, 1, 1, 1]
    assert "verified and written" in result.err
    page = shell.read("report.html")
    assert page.startswith("<!doctype html>")
    assert "proven optimal" in page
    assert "mumps" not in page
    assert "<script" not in page
    assert "://" not in page
    assert str(shell.folder) not in page
    (command,) = re.findall("<code>(anonymip anonymize .*)</code>", page)
    assert command.startswith("anonymip anonymize people.csv -k 3 -o release.csv -q age")
    assert command.endswith("--report report.html --apart … --json …")


def test_effort_stands_in_the_manifest(shell: Any) -> None:
    """Who reads a release learns with how much work it was made; unknown efforts write nothing."""
    arguments = ("anonymize", "census:150,4,1", "-k", 4, "--recoding", "freeform", "-o", "free.csv")
    assert shell(*arguments, "--effort", "heroic").code == 2
    assert not (shell.folder / "free.csv").exists()
    assert shell(*arguments, "--effort", "quick").code == 0
    assert json.loads(shell.read("free.csv.manifest.json"))["options"]["effort"] == "quick"


def test_layout_columns(shell: Any) -> None:
    """The ends of numeric ranges stand in columns of their own, and the release holds."""
    result = shell(
        *("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.csv"),
        *("--layout", "columns"),
    )
    assert result.code == 0
    release = read(shell, "release.csv")
    assert list(release)[:3] == ["age_lower", "age_upper", "sex"]
    assert set(zip(release["age_lower"], release["age_upper"], strict=True)) == {
        ("35", "37"),
        ("61", "66"),
    }
    assert shell("verify", "people.csv", "release.csv").code == 0


def test_a_parquet_release(shell: Any) -> None:
    """The ending chooses Parquet; the release verifies against a CSV original."""
    result = shell("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.parquet")
    assert result.code == 0
    release = pd.read_parquet(shell.folder / "release.parquet")
    assert sorted(release["visit"]) == [f"0{number}" for number in range(1, 8)]
    assert shell("verify", "people.csv", "release.parquet").code == 0


def test_columns_without_a_role_are_listed(shell: Any) -> None:
    """A column without role is not published, and that is said."""
    shell.write("people.csv", shell.read("people.csv").replace("name", "nick"))
    result = shell(
        *("anonymize", "people.csv", "-q", "age", "-q", "sex", "--keep", "visit"),
        *("--drop", "nick", "--drop", "zip", "-k", 3, "-o", "release.csv"),
    )
    assert result.code == 0
    assert "columns without a role are not published: disease" in result.out
    assert list(read(shell, "release.csv")) == ["age", "sex", "visit"]


def test_an_objective_of_ones_own(shell: Any) -> None:
    """A user's function is what the release minimises, and the manifest says so."""
    result = shell(
        *("anonymize", "people.csv", "--schema", "roles.toml", "-k", 3, "-o", "release.csv"),
        *("--objective", "mine.py:protect_age"),
    )
    assert result.code == 0
    manifest = json.loads(shell.read("release.csv.manifest.json"))
    assert manifest["objective"]["name"] == "protect_age"
    assert manifest["objective"]["value"] == pytest.approx(1.04)
    assert manifest["status"] == "optimal"
    assert shell("verify", "people.csv", "release.csv", "--schema", "roles.toml").code == 0


def test_suppressed_records_are_left_out(shell: Any) -> None:
    """Their number is reported, also if it is 0; publishing them takes an option, and k of them."""
    shell.write("far.csv", "age,disease\n1,flu\n2,gout\n1000,flu\n")
    asked = ("anonymize", "far.csv", "-q", "age", "--sensitive", "disease", "-k", 2)
    result = shell(*asked, "--suppression", "-o", "release.csv")
    assert result.code == 2
    assert "Declare the domain" in result.err
    shell.write("far.toml", "[attributes.age]\ndomain = [1, 1000]\n")
    result = shell(*asked, "--suppression", "-o", "release.csv")
    assert result.code == 3
    assert "\nerror: 1 of 3 records (33.3 %) would be suppressed, more than " in result.err
    assert "release.csv" not in shell.files()
    asked = (*asked, "--most-suppressed", "0.5")
    result = shell(*asked, "-o", "release.csv", "--report", "r.html")
    assert result.code == 0
    assert result.out.startswith("ATTENTION: 1 of 3 records (33.3 %) is suppressed\n")
    assert result.out.count("33.3 %") == 1
    assert "Attention: 1 of 3 records (33.3 %) is suppressed." in shell.read("r.html")
    manifest = json.loads(shell.read("release.csv.manifest.json"))
    assert manifest["assumed"][0] == (
        "whoever uses the release minds that 1 of 3 records (33.3 %) is suppressed"
    )
    assert read(shell, "release.csv")["age"].tolist() == ["[1..2]", "[1..2]"]
    assert json.loads(shell.read("release.csv.manifest.json"))["left_out"]["suppressed"] == 1
    assert "1 record is suppressed and left out" in result.out
    assert shell("verify", "far.csv", "release.csv").code == 0
    alone = shell(*asked, "--suppression", "--publish-suppressed", "-o", "starred.csv")
    assert alone.code == 2
    assert "1 rows of stars only are fewer than k = 2" in alone.err
    assert not (shell.folder / "starred.csv").exists()
    shell.write("far.csv", "age,disease\n1,flu\n2,gout\n1000,flu\n500,gout\n")
    apart = (*asked, "--suppression", "--cap", "age=10")
    two = shell(*apart, "--publish-suppressed", "-o", "starred.csv")
    assert two.code == 0
    assert sorted(read(shell, "starred.csv")["age"]) == ["*", "*", "[1..2]", "[1..2]"]
    assert "2 suppressed records are published: who finds a person" in two.err
    shell.write("far.csv", "age,disease\n1,flu\n2,gout\n")
    nobody = shell(*asked, "--suppression", "--report", "r.html", "-o", "release.csv")
    assert "0 records are suppressed" in nobody.out
    assert ", 0 suppressed" in nobody.out
    assert "0 records are suppressed" in shell.read("r.html")
    useless = shell(*asked[:-2], "--publish-suppressed", "-o", "release.csv")
    assert useless.code == 2
    assert "Add --suppression" in useless.err


def test_what_is_gone_stands_in_output_manifest_and_report(shell: Any) -> None:
    """Records with missing values, dropped columns, and columns that nobody declared."""
    shell.write(
        "gaps.csv", "sex,eye,name,note\nF,blue,Ann,1\n,blue,Bea,1\nF,blue,Cyd,2\nF,blue,Eve,2\n"
    )
    result = shell(
        *("anonymize", "gaps.csv", "-q", "sex", "--sensitive", "eye", "--drop", "name"),
        *("--missing", "drop", "-k", 2, "-o", "release.csv", "--report", "r.html"),
    )
    assert result.code == 0
    manifest = json.loads(shell.read("release.csv.manifest.json"))
    assert manifest["left_out"] == {
        "suppressed": 0,
        "missing": 1,
        "columns": ["name"],
        "undeclared_columns": 1,
    }
    page = shell.read("r.html")
    for text in (
        "1 record with missing values is left out",
        "dropped columns are not published: name",
    ):
        assert text in result.out
        assert text in page
    # A name that nobody declared may be a value: the terminal shows it, what is published does not.
    assert "columns without a role are not published: note" in result.out
    assert "columns without a role are not published: 1" in page
    assert "1 class shares one value of 'eye', 3 of 3 rows" in result.err
    assert "--l-diversity" in result.err
    assert "1 class shares one value of &#39;eye&#39;" in page
    assert "what None reports" not in page
    assert shell("verify", "gaps.csv", "release.csv").code == 0
    manifest["left_out"]["missing"] = 0
    shell.write("release.csv.manifest.json", json.dumps(manifest))
    claimed = shell("verify", "gaps.csv", "release.csv")
    assert claimed.code == 1
    assert "claims that 0 records with missing values are left out" in claimed.out


def test_missing_values(shell: Any) -> None:
    """Rows left out have no row; a category of missing values is published by its label."""
    shell.write("gaps.csv", "sex,eye\nF,blue\n,blue\nF,blue\n,blue\n")
    arguments = ("anonymize", "gaps.csv", "-q", "sex", "-q", "eye", "-k", 2, "-o", "release.csv")
    assert shell(*arguments, "--missing", "drop").code == 0
    assert len(read(shell, "release.csv")) == 2
    assert shell("verify", "gaps.csv", "release.csv").code == 0
    assert shell(*arguments, "--missing", "category").code == 0
    assert (read(shell, "release.csv")["sex"] == "missing").sum() == 2
    assert shell("verify", "gaps.csv", "release.csv").code == 0


def test_other_separators_and_no_header(shell: Any) -> None:
    """A table with blanks after its separator and without header goes through to verification."""
    shell.write("raw.dat", "34; F; 01\n36; F; 02\n61; M; 03\n66; M; 04\n")
    shell.write(
        "raw.toml",
        '[attributes.age]\n[attributes.sex]\n[table]\nseparator = "; "\n'
        'columns = ["age", "sex", "visit"]\nkeep = ["visit"]\n',
    )
    assert shell("anonymize", "raw.dat", "-k", 2, "-o", "release.csv").code == 0
    assert "[34..36];F;" in shell.read("release.csv")
    assert shell("verify", "raw.dat", "release.csv", "--schema", "raw.toml").code == 0


def test_no_solution_leaves_the_old_release(shell: Any) -> None:
    """Where the limits leave nothing, the exit code is 3 and old outputs stay."""
    shell.write("release.csv", "old")
    before = shell.files()
    result = shell(
        *("anonymize", "census:40,8,1", "-k", 3, "--method", "equivalence-mip", "-o"),
        *("release.csv", "--option", "equivalence-mip.warm_start=none", "--time-limit", 0.01),
    )
    assert result.code == 3
    assert shell.files() == before


def test_a_release_that_fails_is_not_published(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer with a fault is caught by the verifier: exit code 1, nothing written."""
    shell.write("release.csv", "old")
    before = shell.files()
    monkeypatch.setattr(
        "anonymip.instances.scale.Scale.text",
        lambda _, lower, upper, write: f"[{write(lower)}..1e9]",
    )
    result = shell("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.csv")
    assert result.code == 1
    assert "Nothing was published" in result.err
    assert shell.files() == before


def test_the_demo_needs_a_folder(shell: Any) -> None:
    """A file in the place of the demo's folder is bad input and stays as it is."""
    before = shell.files()
    result = shell("demo", "--out", "people.csv")
    assert result.code == 2
    assert "--out" in result.err
    assert shell.files() == before


def test_a_release_of_a_kind_that_is_not_written_is_refused(shell: Any) -> None:
    """CSV text is not written under the name of another kind of file, nor anything solved."""
    before = shell.files()
    result = shell("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.ods")
    assert result.code == 2
    for word in ("release.ods", ".csv", ".parquet"):
        assert word in result.err
    assert shell.files() == before


def test_formulas_are_told_and_escaped(shell: Any) -> None:
    """A warning names the column and the option, which puts an apostrophe before the formulas."""
    shell.write("sums.csv", "age,note\n1,=1+1\n2,-5\n3,=1+1\n4,-5\n")
    call = ("anonymize", "sums.csv", "-q", "age", "--keep", "note", "-k", 2, "-o", "release.csv")
    result = shell(*call)
    assert result.code == 0
    assert result.err.startswith("warning: column 'note' has 2 cells that a spreadsheet would run")
    result = shell(*call, "--escape-formulas")
    assert (result.code, result.err) == (0, "")
    lines = (shell.folder / "release.csv").read_text().splitlines()
    assert sorted(line.rpartition(",")[2] for line in lines[1:]) == ["'=1+1", "'=1+1", "-5", "-5"]
    assert shell("verify", "sums.csv", "release.csv").code == 0


def test_progress_goes_on_until_the_release_is_verified(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Publishing and verifying a large table take long too; they belong to the time limit."""
    heard: list[Progress] = []
    monkeypatch.setattr(
        "anonymip.cli.tasks.showing_progress", lambda: contextlib.nullcontext(heard.append)
    )
    result = shell(
        *("anonymize", "people.csv", *shell.roles, "-k", 3, "-o", "release.csv"),
        *("--method", "mondrian", "--time-limit", 60),
    )
    assert result.code == 0
    assert [message.phase for message in heard[-2:]] == ["publishing", "writing and verifying"]
    assert all(0 < message.remaining < 60 for message in heard[-2:])
    assert heard[0].remaining is not None


def test_text_dates_and_numbers_with_words(shell: Any) -> None:
    """Dates of no known form are refused, words among numbers told; no message holds a value."""
    rows = [f"11.0{1 + i % 9}.18{30 + i},{18 + i}.4,{'FM'[i % 2]}" for i in range(20)]
    shell.write("births.csv", "\n".join(["born,bmi,sex", *rows, "01.01.1890,NA,F"]) + "\n")
    asked = ("anonymize", "births.csv", "-q", "sex", "-k", 3, "-o", "release.csv")
    result = shell(*asked, "-q", "born", "--drop", "bmi")
    assert result.code == 2
    assert result.err.startswith("error: column 'born' holds dates or times, and is not declared")
    assert "18" not in result.err
    assert "release.csv" not in shell.files()
    result = shell(*asked, "-q", "bmi", "--drop", "born")
    assert result.code == 0
    assert "warning: column 'bmi' holds numbers, but 1 value is none, the first in data row 21" in (
        result.err
    )
    shell.write("births.toml", '[table]\nmissing = ["", "NA"]\n')
    result = shell(*asked, "-q", "bmi:numeric", "--drop", "born", "--missing", "drop")
    assert (result.code, result.err) == (0, "schema: births.toml, beside the table\n")
    assert "bmi numeric" in result.out


ASKED = ("people.csv", "--schema", "roles.toml")


@pytest.mark.parametrize("method", ["auto", "hungarian", "ring", "freeform-mip"])
def test_a_freeform_release_is_written_and_verified(shell: Any, method: str) -> None:
    """Rows and values are those of the table; the seven rows need not fall into classes."""
    how = ("--recoding", "freeform") if method == "auto" else ("--method", method)
    result = shell("anonymize", *ASKED, "-k", 3, *how, "-o", "release.csv", "--json", "-")
    assert result.code == 0, result.err
    (record,) = result.records()
    assert record["recoding"] == "freeform"
    assert "groups" not in record
    assert [len(one) for one in record["matches"]] == [3] * 7
    assert all(row in one for row, one in enumerate(record["matches"]))
    original, release = (
        pd.read_csv(shell.folder / name, dtype=str) for name in ("people.csv", "release.csv")
    )
    assert sorted(release["disease"]) == sorted(original["disease"])
    assert shell("verify", "people.csv", "release.csv", "--schema", "roles.toml").code == 0


def test_a_tampered_freeform_release_fails(shell: Any) -> None:
    """A cell that shows an exact value leaves its row too few records."""
    asked = ("-k", 3, "--recoding", "freeform", "-o", "release.csv")
    assert shell("anonymize", *ASKED, *asked).code == 0
    release = pd.read_csv(shell.folder / "release.csv", dtype=str)
    original = pd.read_csv(shell.folder / "people.csv", dtype=str)
    shown = original.set_index("visit").loc[release.loc[0, "visit"].zfill(2), "age"]
    release.loc[0, "age"] = shown
    release.to_csv(shell.folder / "release.csv", index=False)
    result = shell("verify", "people.csv", "release.csv", "--schema", "roles.toml")
    assert result.code == 1
    assert "FAILS" in result.out + result.err


@pytest.mark.parametrize("recoding", ["one-k", "k-one", "k-k", "k-concealment"])
def test_weaker_notions_are_released_and_verified(shell: Any, recoding: str) -> None:
    """They lose no more than freeform, and say what they promise."""
    (freeform,) = shell("solve", *ASKED, "-k", 3, "--recoding", "freeform", "--json", "-").records()
    result = shell(
        "anonymize", *ASKED, "-k", 3, "--recoding", recoding, "-o", "release.csv", "--json", "-"
    )
    assert result.code == 0, result.err
    assert result.records()[0]["objective"] <= freeform["objective"] + 1e-9
    assert shell("verify", "people.csv", "release.csv", "--schema", "roles.toml").code == 0


def test_methods_of_a_recoding_are_compared(shell: Any) -> None:
    """All its heuristics and the exact method, none below the optimum."""
    result = shell("compare", *ASKED, "-k", 3, "--recoding", "freeform", "--exact", "--json", "-")
    assert result.code == 0, result.err
    losses = {record["method"]: record["objective"] for record in result.records()}
    assert {"greedy", "sort-greedy", "hungarian", "ring", "nh", "reassign"} <= set(losses)
    assert min(losses.values()) == pytest.approx(losses["column-generation"])


def test_options_of_freeform_methods(shell: Any) -> None:
    """Reciprocal sets by an option; parts too small are bad input."""
    result = shell(
        *("solve", *ASKED, "-k", 3, "--method", "greedy", "--json", "-"),
        *("--option", "greedy.reciprocal=true"),
    )
    (record,) = result.records()
    matches = record["matches"]
    assert all(row in matches[other] for row, one in enumerate(matches) for other in one)
    refused = shell(*("solve", *ASKED, "-k", 3, "--method", "greedy", "--option", "greedy.part=4"))
    assert refused.code == 2
    assert "part" in refused.err


def test_the_model_is_exported(shell: Any) -> None:
    """The flow model as a file."""
    result = shell("export", *ASKED, "-k", 3, "--method", "freeform-mip", "-o", "flow.lp")
    assert result.code == 0, result.err
    assert "match" in shell.read("flow.lp")
