"""Tests of the commands that answer questions about a table: solve, compare, bound."""

from __future__ import annotations

import json
import re
from typing import Any

import pandas as pd
import pytest

from anonymip import METHODS, Problem, load_instance, lower_bound
from anonymip.instances.library.catalogue import find_entry
from tests import profiles

FIELDS = {
    *("instance", "n", "m", "k", "recoding", "method", "options", "objective", "objective_name"),
    *("ncp", "gcp", "bound", "gap", "status", "proof", "bound_by", "seconds", "groups", "solver"),
    *("versions", "seed", "diversity", "limits"),
}
HEURISTICS = [
    spec.name
    for spec in METHODS.values()
    if spec.role == "heuristic" and spec.solves("classes") and "diversity" not in spec.needs
]
MIP = ("--method", "equivalence-mip")


def check_record(record: dict[str, Any]) -> None:
    """Assert what holds for every record of a solution."""
    assert set(record) == FIELDS
    assert record["gcp"] == pytest.approx(record["ncp"] / (record["n"] * record["m"]))
    assert record["bound"] is None or record["bound"] <= record["objective"]
    closed = record["gap"] is not None and record["gap"] <= 1e-6
    assert (record["status"] == "optimal") == closed
    assert ("optimal" in record["status"]) == closed
    assert {"anonymip", "python", "pyomo"} <= set(record["versions"])
    sizes = pd.Series([group for group in record["groups"] if group not in (None, -1)])
    assert sizes.value_counts().min() >= record["k"]


def test_the_health_records(shell: Any) -> None:
    """The answer for people says loss, proof, classes and solver; records are distinguished."""
    result = shell("solve", "health-records", "-k", 3)
    assert result.code == 0
    assert result.err == ""
    assert result.out.startswith(
        "loss 0.04548; proven optimal: no equivalence-class release of this table with k = 3 can "
        "be below it\n"
    )
    assert "2 classes of 3 to 4 records" in result.out
    assert ", ncp = 0.95509, gcp = 0.04548\n" in result.out
    assert "auto picked column-generation" in result.out


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_json_on_standard_output(shell: Any, solver: str) -> None:
    """With `--json -` standard output is JSON and nothing else; people read standard error."""
    result = shell("solve", "health-records", "-k", 3, *MIP, "--solver", solver, "--json", "-")
    (record,) = result.records()
    check_record(record)
    assert record["groups"] == [0, 0, 0, 1, 1, 1, 1]
    assert (record["status"], record["proof"]) == ("optimal", "solver")
    assert record["solver"].lower().startswith(solver)
    assert record["instance"] == "health-records"
    assert record["objective_name"] == "gcp"
    assert result.err.startswith("loss 0.04548; proven optimal")


def test_json_in_a_file(shell: Any) -> None:
    """With a file for the JSON standard output stays for people."""
    result = shell("solve", "health-records", "-k", 3, "--json", "result.json")
    assert result.out.startswith("loss ")
    (record,) = json.loads(shell.read("result.json"))
    check_record(record)


def test_groups_are_those_of_the_original_rows(shell: Any) -> None:
    """Rows that the missing policy leaves out have no class, all others keep their place."""
    shell.write("gaps.csv", "age,sex\n1,F\n,F\n2,F\n70,M\n,M\n71,M\n")
    result = shell(
        *("solve", "gaps.csv", "-q", "age", "-q", "sex", "-k", 2, "--missing", "drop"),
        *("--json", "-"),
    )
    (record,) = result.records()
    check_record(record)
    assert record["n"] == 4
    assert record["groups"] == [0, None, 0, 1, None, 1]


def test_missing_values_as_a_category(shell: Any) -> None:
    """The policy `category` makes a value of its own of missing texts."""
    shell.write("gaps.csv", "sex,eye\nF,blue\n,blue\nM,blue\n,blue\n")
    result = shell(
        *("solve", "gaps.csv", "-q", "sex", "-q", "eye", "-k", 2, "--missing", "category"),
        *("--json", "-"),
    )
    (record,) = result.records()
    assert record["groups"] == [0, 1, 0, 1]
    assert record["ncp"] == pytest.approx(2 * 1 / 2)


def test_suppression(shell: Any) -> None:
    """A record that costs more than its suppression is suppressed where that is allowed."""
    shell.write("far.csv", "age\n1\n2\n1000\n")
    arguments = ("solve", "far.csv", "-q", "age", "-k", 2, "--json", "-")
    (plain,) = shell(*arguments).records()
    (allowed,) = shell(*arguments, "--suppression").records()
    assert plain["groups"] == [0, 0, 0]
    assert allowed["groups"] == [0, 0, -1]
    assert allowed["objective"] == pytest.approx(2 / 999 + 1)
    assert allowed["objective"] < plain["objective"]


def test_options_of_a_method(shell: Any) -> None:
    """Options reach the method and stand in the record."""
    (record,) = shell(
        *("solve", "census:60,4,1", "-k", 3, "--method", "mondrian"),
        *("--option", "mondrian.strict=false", "--json", "-"),
    ).records()
    assert record["options"] == {"strict": False}
    (cut,) = shell(
        *("solve", "census:60,4,1", "-k", 3, "--method", "ordered-cut"),
        *("--option", "ordered-cut.order=hilbert+2opt", "--json", "-"),
    ).records()
    assert cut["options"]["order"] == "hilbert+2opt"


@pytest.mark.parametrize("start", ["none", "initial", "greedy-search"])
def test_warm_starts(shell: Any, start: str) -> None:
    """The start of an exact method is named, and changes nothing about the optimum."""
    (record,) = shell(
        "solve", "health-records", "-k", 3, *MIP, "--warm-start", start, "--json", "-"
    ).records()
    assert record["options"]["warm_start"] == start
    assert record["groups"] == [0, 0, 0, 1, 1, 1, 1]


def test_common_settings_are_taken(shell: Any) -> None:
    """Gap, threads, seed, time limit and log of the solver are accepted and have their effect."""
    result = shell(
        *("solve", "health-records", "-k", 2, *MIP, "--gap", 0.5, "--threads", 2, "--seed", 7),
        *("--time-limit", 60, "--recoding", "classes", "--log", "solver.log", "--json", "-"),
    )
    (record,) = result.records()
    check_record(record)
    assert record["gap"] <= 0.5
    assert record["seed"] == 7
    assert "HiGHS" in shell.read("solver.log")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ((), "normal"),
        (("--effort", "quick"), "quick"),
        pytest.param(("--time-limit", 600), "thorough", marks=pytest.mark.thorough),
    ],
)
def test_effort_stands_in_the_record(shell: Any, given: tuple[Any, ...], meant: str) -> None:
    """What the method that auto picks did with the effort is among its options."""
    table = "census:700,8,1" if profiles.NAME == "thorough" else "census:250,8,1"
    asked = (table, "-k", 4, "--recoding", "freeform", "--json", "-")
    (record,) = shell("solve", *asked, *given).records()
    assert (record["method"], record["options"]["effort"]) == ("reassign", meant)


@pytest.mark.parametrize("command", ["solve", "compare", "bound"])
def test_unknown_efforts_are_refused(shell: Any, command: str) -> None:
    """The message names those that there are."""
    result = shell(command, "health-records", "-k", 2, "--effort", "heroic")
    assert result.code == 2
    assert "unknown effort 'heroic'. Use quick, normal, thorough" in result.err


def test_no_solution_within_the_limits(shell: Any) -> None:
    """A limit too short for any solution ends with exit code 3 and writes nothing."""
    result = shell(
        *("solve", "census:40,8,1", "-k", 3, *MIP, "--warm-start", "none"),
        *("--time-limit", 0.01, "--json", "result.json"),
    )
    assert result.code == 3
    assert result.out == ""
    assert "more time, or a warm start" in result.err
    assert not (shell.folder / "result.json").exists()


def test_a_time_limit_keeps_the_warm_start(shell: Any) -> None:
    """A limit that ends before the solver has a better one leaves the start, not called optimal."""
    (record,) = shell(
        *("solve", "census:40,8,1", "-k", 3, *MIP, "--time-limit", 0.01, "--json", "-")
    ).records()
    check_record(record)
    assert record["status"] == "time-limit"


@pytest.mark.parametrize(
    "objective", ["gcp", "set-gcp", "liang-gcp", "weighted-loss", "weighted-loss-binary"]
)
def test_built_in_objectives(shell: Any, objective: str) -> None:
    """Each built-in objective is known by name and stands in the record beside the ncp."""
    (record,) = shell(
        "solve", "health-records", "-k", 3, "--objective", objective, "--json", "-"
    ).records()
    check_record(record)
    assert record["objective_name"] == objective
    assert record["ncp"] == pytest.approx(0.955091, abs=1e-6)


def test_an_objective_of_ones_own(shell: Any) -> None:
    """A user's function in a file is minimised, bounded, compared and shown under its name."""
    own = ("--schema", "roles.toml", "--objective", "mine.py:protect_age")
    (record,) = shell("solve", "people.csv", "-k", 3, *own, "--json", "-").records()
    check_record(record)
    assert record["objective_name"] == "protect_age"
    assert record["status"] == "optimal"
    assert record["objective"] == pytest.approx(4 * (3 * 2 + 4 * 5) / 100)
    assert record["ncp"] == pytest.approx((3 * 2 + 4 * 5) / 100)
    compared = shell("compare", "people.csv", "-k", "2-3", "--exact", *own, "--json", "-")
    assert compared.code == 0
    assert {row["objective_name"] for row in compared.records()} == {"protect_age"}
    best = [row for row in compared.records() if row["method"] == "column-generation"][-1]
    assert best["objective"] == pytest.approx(record["objective"])
    assert shell("bound", "people.csv", "-k", 3, *own).out.startswith(
        "no equivalence-class release of this table with k = 3 can lose less than protect_age = "
    )


def test_comparing_writes_all_formats(shell: Any) -> None:
    """One row per k and method: on standard output, as CSV, Markdown, JSON and picture."""
    result = shell(
        *("compare", "health-records", "-k", "2-3", "--methods", "mondrian, k-member", "--exact"),
        *("--csv", "t.csv", "--markdown", "t.md", "--json", "t.json", "--plot", "gap.png"),
    )
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0].split() == [
        *("k", "method", "loss", "bound", "gap", "to", "seconds", "class", "sizes", "status")
    ]
    assert [tuple(line.split()[:2]) for line in lines[1:-2]] == [
        (k, method) for k in "23" for method in ("mondrian", "k-member", "column-generation")
    ]
    assert all(" optimum " in line for line in lines[1:-2])
    assert [line.partition(" by ")[0] for line in lines[-2:]] == ["k = 2: bound", "k = 3: bound"]
    frame = pd.read_csv(shell.folder / "t.csv")
    assert len(frame) == 6
    assert set(frame["to"]) == {"optimum"}
    assert frame.loc[frame["method"] == "column-generation", "gap"].tolist() == [0, 0]
    assert len(shell.read("t.md").splitlines()) == 8
    records = json.loads(shell.read("t.json"))
    for record in records:
        assert record["loss"] == record["objective"]
        check_record({name: record[name] for name in FIELDS})
    assert [record["k"] for record in records] == [2, 2, 2, 3, 3, 3]
    assert (shell.folder / "gap.png").read_bytes().startswith(b"\x89PNG")


def test_comparing_all_heuristics_by_default(shell: Any) -> None:
    """Without names all heuristics run; without an optimum the gap is to a bound, and says so.

    Each has a record with a bound and a gap, and calls itself optimal only with a proof.
    """
    result = shell("compare", "census:60,4,1", "-k", "3", "--json", "-")
    fitting = [name for name in HEURISTICS if METHODS[name].solves_for(3)]
    assert [record["method"] for record in result.records()] == fitting
    rows = result.err.splitlines()[1:]
    assert len(rows) == len(fitting) + 1
    assert all(" bound " in row for row in rows)
    assert "optim" not in result.err
    unfit = ",".join(sorted(set(HEURISTICS) - set(fitting)))
    fewer = shell("compare", "census:60,4,1", "-k", 2, "--methods", unfit, "--json", "-")
    one = shell("solve", "census:60,4,1", "-k", 3, "--method", "k-member", "--json", "-")
    for record in [*result.records(), *fewer.records(), *one.records()]:
        check_record({name: record[name] for name in FIELDS})
        assert record["bound"] > 0
        assert (record["proof"], record["solver"]) == ("argument", None)
        assert len(record["groups"]) == 60


def test_options_of_compared_methods(shell: Any) -> None:
    """Each method gets its own options."""
    result = shell(
        *("compare", "census:60,4,1", "-k", 3, "--methods", "mondrian,ordered-cut"),
        *("--option", "mondrian.strict=no", "--option", "ordered-cut.order=snake", "--json", "-"),
    )
    relaxed, cut = result.records()
    assert relaxed["options"] == {"strict": False}
    assert cut["options"]["order"] == "snake"


def test_the_bound(shell: Any) -> None:
    """The bound is that of the library, with its argument, for people and as JSON."""
    proven = lower_bound(Problem(load_instance("health-records"), k=3))
    assert proven is not None
    result = shell("bound", "health-records", "-k", 3, "--json", "-")
    (record,) = result.records()
    assert set(record) == FIELDS
    assert record["bound"] == proven.value
    assert record["proof"] == "argument"
    assert "optimal" not in record["status"]
    for field in ("objective", "ncp", "gcp", "gap", "groups", "solver"):
        assert record[field] is None
    assert result.err.startswith("no equivalence-class release of this table with k = 3 can lose ")
    assert "less than ncp = 0.9550901 (gcp 0.04548048)" in result.err


def test_no_bound_is_said_to_be_none(shell: Any) -> None:
    """Without a monotone objective the bound is unknown: null, never 0."""
    shell.write("fall.py", "def fall(record):\n    return -record.spread['age']\n")
    arguments = ("people.csv", "-k", 3, "--schema", "roles.toml", "--objective", "fall.py:fall")
    result = shell("bound", *arguments, "--json", "-")
    (record,) = result.records()
    assert result.code == 0
    assert record["bound"] is None
    assert (record["proof"], record["bound_by"]) == (None, None)
    assert "no lower bound" in result.err
    method = ("--method", "greedy-search")
    (solved,) = shell("solve", *arguments, *method, "--json", "-").records()
    check_record(solved)
    assert solved["bound"] is None
    assert solved["gap"] is None
    assert solved["status"] == "heuristic"


@pytest.mark.shared_data
def test_an_instance_of_the_data_folder(shell: Any) -> None:
    """A named instance from the data folder is solved like any other."""
    (record,) = shell("solve", "census-1k", "-k", 3, "--method", "initial", "--json", "-").records()
    check_record(record)
    assert record["n"] == 1000
    assert record["objective"] >= record["bound"]


RULES = (
    ("--distinct-diversity", "3"),
    ("--l-diversity", "3"),
    ("--cap", "age=2"),
    ("--apart", "sex=F,M"),
)


@pytest.mark.parametrize("rule", RULES, ids=[name for name, _ in RULES])
def test_rules_reach_the_problem(shell: Any, rule: tuple[str, str]) -> None:
    """A rule raises loss and bound, stands in the record, and its name is checked."""
    asked = ("people.csv", *shell.roles, "-k", 2, "--suppression")
    for command in ("bound", "solve"):
        (loose,) = shell(command, *asked, "--json", "-").records()
        result = shell(command, *asked, *rule, "--json", "-")
        assert result.code == 0, result.err
        (bound,) = result.records()
        assert bound["bound"] >= loose["bound"]
        said = bound["limits"] if rule[0] in ("--cap", "--apart") else [bound["diversity"]]
        assert len(said) == 1
        assert re.search(r"\d|F.*M|apart", said[0])
    broken = ("--sensitive", "visit", "-q", "age", "-q", "sex", "--drop", "name")
    refused = shell("bound", "people.csv", *broken, "-k", 2, "--cap", "height=2")
    assert refused.code == 2
    assert "'height'" in refused.err


def spans(cells: pd.Series[str]) -> list[float]:
    """Return how much each published cell of a numeric column spans."""
    found = []
    for cell in cells.fillna(""):
        numbers = [float(number) for number in re.findall(r"[0-9.]*[0-9]", cell.replace("..", " "))]
        found.append(max(numbers) - min(numbers) if numbers else 0.0)
    return found


@pytest.mark.parametrize("method", ["auto", "greedy-search", "equivalence-mip"])
def test_rules_reach_the_release(shell: Any, method: str) -> None:
    """What is published keeps diversity, cap and parted values, and is verified with them."""
    roles = shell.read("roles.toml").replace("sex]", 'sex]\ndomain = ["F", "M"]')
    shell.write("roles.toml", roles)
    asked = ("people.csv", "--schema", "roles.toml", "-k", 2, "--suppression", "--method", method)
    rules = ("--distinct-diversity", "2", "--cap", "age=30", "--apart", "sex=F,M")
    result = shell("anonymize", *asked, *rules, "-o", "release.csv", "--json", "-")
    assert result.code == 0, result.err
    release = pd.read_csv(shell.folder / "release.csv", dtype=str)
    assert len(release) == result.records()[0]["n"]
    assert max(spans(release["age"])) <= 30
    assert not release["sex"].str.contains("F|M", regex=False).any()
    kept = release[release["sex"] != "*"]
    assert not kept.empty
    for _, members in kept.groupby(["age", "sex"]):
        assert len(members) >= 2
        assert members["disease"].nunique() >= 2
    verified = shell("verify", "people.csv", "release.csv", "--schema", "roles.toml")
    assert verified.code == 0, verified.err


@pytest.mark.parametrize("command", ["solve", "compare", "bound"])
def test_weights_that_have_no_effect(shell: Any, command: str) -> None:
    """The default loss does not read weights: it is said once, with a loss that does."""
    shell.write("weights.toml", "[attributes.age]\nweight = 4\n[attributes.sex]\n")
    shell.write("weights.csv", "age,sex\n1,F\n2,M\n3,F\n4,M\n")
    asked = ("weights.csv", "--schema", "weights.toml", "-k", 2)
    result = shell(command, *asked)
    assert result.code == 0
    assert result.err.count("different weights, which objective 'gcp' does not read") == 1
    assert "weighted-loss" in result.err
    assert shell(command, *asked, "--objective", "weighted-loss").err == ""


@pytest.mark.parametrize(
    "name",
    [
        "clinic-12-k4",
        "health-records-freeform-k3",
        "health-records-k-k-k3",
        "clinic-12-full-domain-k3",
        "aggarwal-4-pattern-k2",
        "aggarwal-quality-pattern-levels-k2",
    ],
)
def test_an_entry_of_the_library_brings_its_problem(shell: Any, name: str) -> None:
    """Without options the problem is the entry's, and its best loss is found again."""
    entry = find_entry(name)
    result = shell("solve", f"library:{name}", "--json", "-")
    assert result.code == 0, result.err
    (record,) = result.records()
    asked = (record["k"], record["recoding"], record["objective_name"])
    assert asked == (entry.k, entry.recoding, entry.objective)
    assert record["objective"] == pytest.approx(entry.loss)


def test_options_stand_before_an_entry_of_the_library(shell: Any) -> None:
    """What is given overrides what the entry says, one thing at a time."""
    name = "library:aggarwal-4-pattern-k2"
    given: dict[tuple[str, ...], tuple[int, str, str]] = {
        ("-k", "3"): (3, "pattern", "suppressions"),
        ("--objective", "gcp"): (2, "pattern", "gcp"),
        ("--recoding", "pattern-levels"): (2, "pattern-levels", "suppressions"),
        ("--method", "pattern-greedy"): (2, "pattern", "suppressions"),
        ("--method", "mondrian", "--objective", "gcp"): (2, "classes", "gcp"),
    }
    for options, problem in given.items():
        (record,) = shell("solve", name, *options, "--json", "-").records()
        assert (record["k"], record["recoding"], record["objective_name"]) == problem
    freeform = "library:health-records-freeform-k3"
    (record,) = shell("bound", freeform, "--json", "-").records()
    assert (record["k"], record["recoding"]) == (3, "freeform")
    records = shell("compare", freeform, "--methods", "hungarian,auto", "--json", "-").records()
    assert {(one["k"], one["recoding"]) for one in records} == {(3, "freeform")}


def test_k_is_asked_for(shell: Any) -> None:
    """Another instance has no k of its own; an entry's table takes no roles."""
    result = shell("solve", "health-records")
    assert result.code == 2
    assert result.err == "error: k is not given. Add -k, such as -k 5\n"
    result = shell("solve", "library:health-records-k3", "-q", "Age")
    assert result.code == 2
    assert "has its own schema" in result.err
    result = shell("solve", "library:nothing")
    assert result.code == 2
    assert "the library has no entry 'nothing'" in result.err


def test_the_bound_of_a_method(shell: Any) -> None:
    """It is asked for by name; a name that is none, or has no bound of its own, is refused."""
    arguments = ("bound", "census:60,4,1", "-k", 3)
    by_program = shell(*arguments, "--method", "column-generation", "--json", "-")
    (record,) = by_program.records()
    assert record["method"] == "column generation, linear program"
    assert record["bound"] > 0
    assert shell(*arguments, "--method", "nothing").code == 2
    refused = shell(*arguments, "--method", "mondrian")
    assert refused.code == 2
    assert "method mondrian has no bound apart from its solution" in refused.err
