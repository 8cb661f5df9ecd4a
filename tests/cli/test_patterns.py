"""Patterns and full domains from the command line: masks by options and by the schema."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anonymip import EquivalenceClasses, FullDomain, Mask, PatternGuided, Suppressions
from anonymip.cli.arguments import RecodingOptions
from anonymip.cli.rules import StarRules
from anonymip.errors import InputError
from anonymip.objectives import GCP, LiangGCP

ROLES = """\
[attributes.age]
kind = "numeric"
[attributes.sex]
[attributes."zip, home"]
[table]
sensitive = ["disease"]
"""

MASK = """\
[mask]
suppress_at_most = 2
never = "sex"
allow_all_stars = true
costs = {age = 2, 'age,"zip, home"' = 2.5}
"""

PEOPLE = """\
age,sex,"zip, home",disease
37,F,02138,flu
37,F,02139,gout
36,F,02138,mumps
61,M,55107,flu
63,M,55107,gout
63,M,55107,gout
63,M,55229,gout
"""


@pytest.fixture
def table(shell: Any) -> Any:
    """Return a shell with a table whose third column bears a comma in its name, and two schemas."""
    shell.write("table.csv", PEOPLE)
    shell.write("roles.toml", ROLES)
    shell.write("masked.toml", ROLES + MASK)
    return shell


PLAIN = ("table.csv", "--schema", "roles.toml")


def test_options_make_the_mask() -> None:
    """Rules add up; names come in comma lists, and one with a comma stands in quotes."""
    rules = StarRules(
        suppress_at_most=2,
        never=["sex,job", '"a,b"'],
        together=["age, zip"],
        at_most_one=["age,race", 'race,"a,b"'],
        allow_all_stars=True,
        single_use=True,
    )
    recoding = RecodingOptions(None, True).choose(stars=rules)
    assert recoding == PatternGuided(
        Mask(
            suppress_at_most=2,
            never=("sex", "job", "a,b"),
            together=(("age", "zip"),),
            at_most_one=(("age", "race"), ("race", "a,b")),
            allow_all_stars=True,
        ),
        single_use=True,
        suppression=True,
    )


def test_what_brings_the_recoding() -> None:
    """Rules and costs bring patterns, and a named recoding or method goes before the schema."""
    section = {"never": ["sex"]}
    assert RecodingOptions(None, False).choose().name == "classes"
    assert RecodingOptions(None, False).choose("auto", stars=StarRules(costs=["a=1"])).name == (
        "pattern"
    )
    assert RecodingOptions(None, False).choose(stars=StarRules(section=section)) == PatternGuided(
        Mask(never=("sex",))
    )
    assert RecodingOptions("classes", False).choose(stars=StarRules(section=section)).name == (
        "classes"
    )
    assert RecodingOptions(None, False).choose("ring", stars=StarRules(section=section)).name == (
        "freeform"
    )
    wider = StarRules(never=["job"], section={**section, "suppress_at_most": 1})
    assert RecodingOptions(None, False).choose(stars=wider) == PatternGuided(
        Mask(suppress_at_most=1, never=("job",))
    )


@pytest.mark.parametrize(
    ("rules", "named", "method", "message"),
    [
        (StarRules(never=["sex"]), "classes", "auto", "--never is a rule of the recoding pattern"),
        (StarRules(single_use=True), None, "mondrian", "which mondrian does not solve"),
        (StarRules(together=["age"]), None, "auto", "a group of together names 1 columns"),
        (StarRules(together=["age,"]), None, "auto", "'age,' is no list of columns"),
        (StarRules(never=['"age']), None, "auto", "is no list of columns"),
        (StarRules(never=["age", "age"]), None, "auto", "never names a column twice"),
        (StarRules(suppress_at_most=-1), None, "auto", "suppress_at_most is -1"),
        (
            StarRules(never=["age"], together=["age,sex"]),
            None,
            "auto",
            "'age' is never suppressed, but together with others",
        ),
        (StarRules(never=["age"], section={"patterns": [["sex"]]}), None, "auto", "patterns and"),
        (StarRules(section={"seldom": ["age"]}), None, "auto", "a mask has no 'seldom'"),
        (StarRules(most_suppressed="3"), "k-one", "auto", "this one is k-one"),
        (StarRules(most_suppressed="3"), None, "pattern-levels", "this one is pattern-levels"),
        (StarRules(suppression_price=1), "full-domain", "auto", "--suppression-price is for"),
        (StarRules(most_suppressed="1%%"), "classes", "auto", "--most-suppressed is '1%%'"),
        (StarRules(most_suppressed="3", never=["a"]), "classes", "auto", "--never is a rule"),
        (StarRules(most_suppressed="few"), "full-domain", "auto", "--most-suppressed is 'few'"),
    ],
)
def test_rules_that_do_not_fit_are_refused(
    rules: StarRules, named: str | None, method: str, message: str
) -> None:
    """What contradicts a recoding, a method, or another rule is named."""
    with pytest.raises(InputError) as caught:
        RecodingOptions(named, False).choose(method, stars=rules)
    assert message in str(caught.value)


def test_how_many_may_be_suppressed() -> None:
    """A number or a share is for what keeps to it, by name, by a method or by rules of a mask."""
    for text, most in (("12", 12), ("0.05", 0.05), ("5%", 0.05)):
        rules = StarRules(most_suppressed=text)
        for named, methods in (("classes", ()), (None, ("mondrian",)), (None, ())):
            chosen = RecodingOptions(named, False).choose(*methods, stars=rules)
            assert chosen == EquivalenceClasses(most_suppressed=most)
        for named, methods in (("full-domain", ()), (None, ("full-domain",))):
            chosen = RecodingOptions(named, False).choose(*methods, stars=rules)
            assert chosen == FullDomain(most_suppressed=most)
        masked = PatternGuided(Mask(never=("sex",)), most_suppressed=most, suppression_price=2)
        priced = StarRules(most_suppressed=text, suppression_price=2)
        for named, rules in (
            ("pattern", replace(priced, section={"never": ["sex"]})),
            (None, replace(priced, section={"never": ["sex"]})),
            (None, replace(priced, never=["sex"])),
        ):
            assert RecodingOptions(named, False).choose(stars=rules) == masked


def test_costs_make_the_objective() -> None:
    """Costs of columns and of patterns; those of a schema give way to another objective."""
    costs = StarRules(costs=["age=2", 'age,"zip, home"=2.5'])
    expected = Suppressions({"age": 2.0}, {("age", "zip, home"): 2.5})
    assert costs.objective(GCP(), "pattern") == expected
    assert costs.objective(Suppressions(), "classes") == expected
    with pytest.raises(InputError, match="the objective is liang-gcp"):
        costs.objective(LiangGCP(), "pattern")
    for text in ("age", "=2", "age=dear", "age=-1", "age=inf"):
        with pytest.raises(InputError):
            StarRules(costs=[text]).objective(GCP(), "pattern")
    result = StarRules(section={"costs": {"age": 2, 'age,"zip, home"': 2.5}})
    assert result.objective(GCP(), "pattern") == expected
    assert result.objective(GCP(), "classes") == GCP()
    assert result.objective(LiangGCP(), "pattern") == LiangGCP()


@pytest.mark.parametrize("how", ["options", "schema"])
def test_a_release_by_options_or_schema(table: Any, how: str) -> None:
    """The same mask either way: written, verified, and reported row by row."""
    options = (
        *("--suppress-at-most", 2, "--never", "sex", "--allow-all-stars"),
        *("--suppression-cost", "age=2", "--suppression-cost", 'age,"zip, home"=2.5'),
    )
    asked = (*PLAIN, *options) if how == "options" else ("table.csv", "--schema", "masked.toml")
    result = table("anonymize", *asked, "-k", 2, "-o", "release.csv", "--keep-order", "--json", "-")
    assert result.code == 0, result.err
    (record,) = result.records()
    assert (record["recoding"], record["objective_name"]) == ("pattern", "suppressions")
    assert record["mask"] == {
        "suppress_at_most": 2,
        "never": ["sex"],
        "allow_all_stars": True,
        "single_use": False,
    }
    release = pd.read_csv(table.folder / "release.csv", dtype=str)
    assert record["patterns"] == [
        [name for name in release.columns[:3] if row[name] == "*"] for _, row in release.iterrows()
    ]
    cells = list(release.iloc[:, :3].itertuples(index=False, name=None))
    assert min(cells.count(row) for row in cells) >= 2
    assert all((row[1] == "*") <= (set(row) == {"*"}) for row in cells)
    assert [cells.index(row) for row in cells] == [
        record["groups"].index(group) for group in record["groups"]
    ]
    manifest = json.loads(table.read("release.csv.manifest.json"))
    assert manifest["objective"]["costs"] == {"age": 2.0}
    checked = table("verify", "table.csv", "release.csv", "--schema", "roles.toml")
    assert checked.code == 0, checked.err
    assert "The stars of every row are a pattern of the mask." in checked.out


def test_a_tampered_release_fails(table: Any) -> None:
    """A cell that is shown although it was a star leaves its row alone."""
    asked = (*PLAIN, "-k", 2, "--recoding", "pattern", "-o", "release.csv", "--keep-order")
    assert table("anonymize", *asked).code == 0
    release = pd.read_csv(table.folder / "release.csv", dtype=str)
    original = pd.read_csv(table.folder / "table.csv", dtype=str)
    release.loc[2] = original.loc[2]
    release.to_csv(table.folder / "release.csv", index=False)
    result = table("verify", "table.csv", "release.csv")
    assert result.code == 1
    assert "1 classes have fewer than 2 rows" in result.out


@pytest.mark.parametrize("method", ["auto", "pattern-greedy", "pattern-ilp"])
def test_methods_of_patterns(table: Any, method: str) -> None:
    """Every method is run by name or picked; none is below the bound."""
    found = table("solve", *PLAIN, "-k", 2, "--method", method, "--allow-all-stars", "--json", "-")
    assert found.code == 0, found.err
    (record,) = found.records()
    bounded = table("bound", *PLAIN, "-k", 2, "--allow-all-stars", "--json", "-").records()
    assert record["recoding"] == "pattern"
    assert bounded[0]["bound"] <= record["objective"] + 1e-9
    assert record["objective"] == sum(len(stars) for stars in record["patterns"])


def test_suppressed_records_need_no_companions(table: Any) -> None:
    """With suppression an isolated record may be left out, or be stars only beside another one."""
    asked: tuple[str, ...] = ("--never", "sex", "--never", "age", "--suppression")
    asked = (*asked, "-o", "release.csv")
    few = table("anonymize", *PLAIN, "-k", 2, *asked)
    assert few.code == 3
    assert "would be suppressed, more than the 0 that may be" in few.err
    asked = (*asked, "--most-suppressed", "0.5")
    result = table("anonymize", *PLAIN, "-k", 2, *asked, "--json", "-")
    assert result.code == 0, result.err
    (record,) = result.records()
    # Two have no companion; a third may be cheaper to suppress than to join.
    suppressed = record["groups"].count(-1)
    assert suppressed in (2, 3)
    manifest = json.loads(table.read("release.csv.manifest.json"))
    assert (manifest["stars"], manifest["left_out"]["suppressed"]) == ("class", suppressed)
    checked = table("verify", "table.csv", "release.csv")
    assert checked.code == 0
    assert f"{suppressed} suppressed records left out" in checked.out
    assert table("anonymize", *PLAIN, "-k", 2, *asked, "--publish-suppressed").code == 0
    manifest = json.loads(table.read("release.csv.manifest.json"))
    assert (manifest["stars"], manifest["suppressed"]) == ("suppressed", suppressed)
    assert f"{suppressed} rows suppressed" in table("verify", "table.csv", "release.csv").out


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--never", "nope"), 2, "unknown column 'nope' (column of the mask)"),
        (("--suppression-cost", "nope=2"), 2, "unknown column 'nope' (column with a cost)"),
        (("--suppress-at-most", "0"), 3, "shares no row with 1 others under any pattern"),
        (("--together", "age,sex", "--at-most-one", "age,sex"), 2, "and at most one of them"),
        (("--never", "sex", "--cap", "age=3"), 2, "limits of generalization have no meaning"),
        (("--never", "sex", "--recoding", "freeform"), 2, "is a rule of the recoding pattern"),
        (("--single-use", "--method", "nh"), 2, "which nh does not solve"),
    ],
)
def test_bad_masks_are_bad_input(
    table: Any, options: tuple[str, ...], code: int, message: str
) -> None:
    """Unknown columns, contradictions, and masks under which nobody finds companions."""
    result = table("solve", *PLAIN, "-k", 2, *options)
    assert result.code == code
    assert message in result.err


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("[mask]\nsuppress = 2\n", "unknown key mask.suppress"),
        ('[mask]\nsuppress_at_most = "two"\n', "mask.suppress_at_most is not a number"),
        ("[mask]\nsuppress_at_most = 1.5\n", "suppress_at_most is 1.5"),
        ("[mask]\nsingle_use = 1\n", "mask.single_use is not true or false"),
        ('[mask]\ntogether = ["age", "sex"]\n', "together is a list of names"),
        ('[mask]\npatterns = [["age"], ["agee"]]\n', "unknown column 'agee'"),
        ('[mask]\ncosts = {age = "dear"}\n', "the cost of 'age' is 'dear'"),
        ("mask = 3\n", "mask is not a table"),
    ],
)
def test_bad_sections_are_bad_input(table: Any, section: str, message: str) -> None:
    """The key of the section is named."""
    text = section + ROLES if section.startswith("mask") else ROLES + section
    table.write("bad.toml", text)
    result = table("solve", "table.csv", "--schema", "bad.toml", "-k", 2)
    assert result.code == 2
    assert message in result.err


def test_listed_patterns_of_a_schema(table: Any) -> None:
    """Patterns one by one; a schema beside the table is found by its name."""
    table.write("table.toml", ROLES + '[mask]\npatterns = [[], ["zip, home"], ["age"]]\n')
    result = table("solve", "table.csv", "-k", 2, "--json", "-", "--suppression")
    assert result.code == 0, result.err
    (record,) = result.records()
    assert record["mask"]["patterns"] == [[], ["zip, home"], ["age"]]
    shown = [
        stars
        for stars, group in zip(record["patterns"], record["groups"], strict=True)
        if group >= 0
    ]
    assert all(stars in ([], ["zip, home"], ["age"]) for stars in shown)


def test_full_domains(table: Any, tmp_path: Path) -> None:
    """One level a column, reported by name; a share may be suppressed."""
    asked = (*PLAIN, "-k", 2, "--recoding", "full-domain", "-o", "release.csv", "--json", "-")
    result = table("anonymize", *asked)
    assert result.code == 0, result.err
    (record,) = result.records()
    # The third record has no companion but where age or zip are stars, and both must be.
    assert record["levels"] == {"age": 1, "sex": 0, "zip, home": 1}
    checked = table("verify", "table.csv", "release.csv")
    assert checked.code == 0
    assert "Every cell is on the level of its column." in checked.out
    asked = ("--recoding", "full-domain", "--most-suppressed", "0.5")
    (fewer,) = table("solve", *PLAIN, "-k", 2, *asked, "--json", "-").records()
    assert fewer["recoding"] == "full-domain"
    assert fewer["objective"] <= record["objective"]


def test_levels_in_place_of_stars(shell: Any) -> None:
    """The recoding of levels takes the rules of the mask, and its release verifies as classes."""
    asked = ("aggarwal-quality", "-k", 2, "--recoding", "pattern-levels")
    (free,) = shell("solve", *asked, "--objective", "hierarchy-loss", "--json", "-").records()
    assert (free["method"], free["status"]) == ("pattern-levels", "optimal")
    result = shell("anonymize", *asked, "--objective", "hierarchy-loss", "-o", "x.csv")
    assert result.code == 0
    assert shell("verify", "aggarwal-quality", "x.csv").code == 0
    result = shell("solve", *asked, "--single-use")
    assert result.code == 2
    assert "no single use" in result.err
