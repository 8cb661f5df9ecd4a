"""Tests of problems: validated once, when they are made."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from anonymip import (
    GCP,
    KK,
    Attribute,
    Cap,
    Classes,
    Diversity,
    EquivalenceClasses,
    Freeform,
    FullDomain,
    Hierarchy,
    InputError,
    KOne,
    Microdata,
    OneK,
    Problem,
    SetGCP,
    UnsupportedObjective,
    WeightedLoss,
    anonymize,
    load_instance,
    objective,
    solve,
)
from anonymip.problem import (
    are_diverse,
    has_rules,
    is_plain,
    losses_within_limits,
    named_rules,
    within_limits,
)
from anonymip.recodings import Recoding
from tests.brute_force import Rules, record_loss
from tests.by_hand import table_of
from tests.random_problems import Case, ruled_cases

DATA = load_instance("health-records")


def test_unavoidable_is_no_more_than_suppression_costs() -> None:
    """Rows of stars may lose less than exact ones, at the objective's own price or at a set one."""

    @objective
    def rewarded(record: Any) -> Any:
        return 5.0 + record.spread["a"] - 4.0 * record.suppressed["a"]

    data = table_of({"a": [0.0, 1.0, 3.0]})
    for recoding, lost in (
        (EquivalenceClasses(), 5.0),
        (EquivalenceClasses(most_suppressed=0), 5.0),
        (EquivalenceClasses(suppression=True), 2.0),
        (EquivalenceClasses(suppression_price=1.0), 1.0),
        (EquivalenceClasses(suppression_price=9.0), 5.0),
    ):
        assert Problem(data, 2, recoding, rewarded).unavoidable == 3 * lost


def test_the_defaults() -> None:
    """Equivalence classes without suppression, and the global certainty penalty."""
    problem = Problem(DATA, 3)
    assert problem.recoding == EquivalenceClasses()
    assert problem.objective == GCP()
    assert (problem.n, problem.m) == (7, 3)
    assert problem.compiled is problem.compiled


def test_recodings_and_objectives_are_taken_by_name(tmp_path: Path) -> None:
    """A name means the built-in one, or the objective of a file, also where a part is replaced."""
    file = tmp_path / "own.py"
    file.write_text("def ages(record):\n    return record.spread['Age']\n")
    problem = Problem(DATA, 3, "freeform", "set-gcp")
    assert isinstance(problem.recoding, Freeform)
    assert problem.objective == SetGCP()
    assert Problem(DATA, 3, objective=f"{file}:ages").objective.name == "ages"
    assert isinstance(problem.replace(recoding="full-domain").recoding, FullDomain)
    other = problem.replace(recoding="classes", objective="liang-gcp")
    assert solve(other, "k-member").objective > 0
    frame = pd.DataFrame({"age": [34, 36, 61, 65], "sex": ["F", "F", "M", "M"]})
    release = anonymize(frame, ["age", "sex"], 2, recoding="freeform", objective="set-gcp")
    assert release.manifest["recoding"] == "freeform"
    assert release.solution.problem.objective == SetGCP()
    assert anonymize(frame, ["age", "sex"], 2, recoding=None, objective=None).verified


@pytest.mark.parametrize("given", [Freeform, 3, None, DATA])
def test_what_is_no_recoding_is_refused(given: Any) -> None:
    """A class without its brackets, or anything else, is refused at once."""
    with pytest.raises(InputError, match=r"recoding is .*Freeform\(\), or a name"):
        Problem(DATA, 3, given)


@pytest.mark.parametrize("limits", [Cap("Age", 10), [Cap("Age", 10)], (Cap("Age", 10),)])
def test_one_limit_or_several(limits: Any) -> None:
    """A limit alone counts as a list of one, here and for a whole table."""
    assert Problem(DATA, 3, limits=limits).limits == (Cap("Age", 10),)
    frame = pd.DataFrame({"Age": [34, 36, 61, 65]})
    assert anonymize(frame, ["Age"], 2, limits=limits).solution.problem.limits == (Cap("Age", 10),)


@pytest.mark.parametrize(
    ("k", "message", "remedy"),
    [
        (1, "k is 1", "at least 2"),
        (0, "k is 0", "at least 2"),
        (-3, "k is -3", "at least 2"),
        (8, "k is 8, but the table has 7 records", "a smaller k or more records"),
        (2.5, "k is 2.5", "whole number"),
        (3.0, r"k is 3\.0", "whole number"),
        ("3", "k is '3'", "whole number"),
        (True, "k is True", "whole number"),
        (None, "k is None", "whole number"),
    ],
)
def test_k_is_a_whole_number_from_2_to_n(k: Any, message: str, remedy: str) -> None:
    """The message says what k is and what it may be."""
    with pytest.raises(InputError, match=message) as caught:
        Problem(DATA, k)
    assert remedy in (caught.value.remedy or "")


@pytest.mark.parametrize("k", [2, 7, np.int64(3), np.int32(4)])
def test_any_integer_type_is_accepted(k: int) -> None:
    """Both limits belong to the range; NumPy's integers become Python's."""
    problem = Problem(DATA, k)
    assert problem.k == k
    assert type(problem.k) is int


def test_a_data_frame_is_no_microdata() -> None:
    """The message says how to make microdata, or which function takes a frame."""
    with pytest.raises(InputError, match="microdata is a DataFrame") as caught:
        Problem(DATA.frame, 3)  # type: ignore[arg-type]
    assert "anonymize()" in (caught.value.remedy or "")


def test_a_plain_function_is_no_objective() -> None:
    """The message names the decorator."""
    with pytest.raises(InputError, match="objective is a function") as caught:
        Problem(DATA, 3, objective=lambda record: 0)  # type: ignore[arg-type]
    assert "@anonymip.objective" in (caught.value.remedy or "")


def test_hierarchical_attributes_are_published_as_nodes() -> None:
    """The lowest node that covers a class is published, and GCP counts the values below it."""
    tree = Hierarchy([("F", "known", "*"), ("M", "known", "*"), ("?", "?", "*")])
    data = Microdata(
        pd.DataFrame({"sex": ["F", "M", "F"]}), (Attribute("sex", "hierarchical", hierarchy=tree),)
    )
    problem = Problem(data, 3)
    classes = Classes(np.zeros(3, np.int64))
    description = problem.recoding.describe(problem, classes)
    assert {tree.tree.labels[node] for node in description.nodes[:, 0]} == {"known"}
    assert problem.compiled.total(description) == pytest.approx(3 * 1 / 2)


def test_objectives_that_do_not_fit_are_refused_at_once() -> None:
    """The objective is traced when the problem is made, not when it is solved."""
    data = table_of({"pay": [1.5, 2.5, 3.5]})
    with pytest.raises(UnsupportedObjective, match="'pay'"):
        Problem(data, 2, objective=SetGCP())


@pytest.mark.parametrize("values", [[-1.5e308, 1.5e308], [0.0, 5e-324]])
def test_domains_beyond_double_precision_are_refused(values: list[float]) -> None:
    """A range whose width or its inverse overflows cannot be normalised."""
    data = table_of({"pay": values})
    with pytest.raises(InputError, match="column 'pay' is too wide or too narrow") as caught:
        Problem(data, 2)
    assert "Change the unit" in (caught.value.remedy or "")


@pytest.mark.parametrize("domain", [(0.0, 9e15), (-4.5e15, 4.5e15)])
def test_values_whose_losses_underflow_are_refused(domain: tuple[float, float]) -> None:
    """As shares of the domain they are no ordinary doubles: sums of them lose their digits."""
    frame = pd.DataFrame({"pay": [0.0, 2e-308, 1e-308, 5e-309]})
    data = Microdata(frame, (Attribute("pay", domain=domain),))
    with pytest.raises(InputError, match="column 'pay' holds values that lie too near") as caught:
        Problem(data, 2)
    assert "declare a narrower domain" in (caught.value.remedy or "")
    narrow = Microdata(frame * 1e308, (Attribute("pay", domain=(-1.0, 3.0)),))
    assert Problem(narrow, 2).compiled is not None


@pytest.mark.parametrize(
    ("recoding", "reason"),
    [
        (OneK(), "left one row that can be its own"),
        (KK(), "left one row that can be its own"),
        (KOne(), "promises nothing of the rows"),
    ],
)
@pytest.mark.parametrize("diversity", [Diversity(l=1.5), Diversity(distinct=2)])
def test_a_diversity_that_a_weaker_notion_does_not_keep_is_refused(
    recoding: Recoding, reason: str, diversity: Diversity
) -> None:
    """Before anything is solved, with the reason and what keeps both; without it all is well."""
    data = table_of({"a": [2, 4, 1, 4, 9], "s": list("yzzyx")}, "s")
    assert Problem(data, 3, recoding).diversity is None
    with pytest.raises(InputError, match=reason) as caught:
        Problem(data, 3, recoding, diversity=diversity)
    assert "Use freeform" in (caught.value.remedy or "")


def test_replacing_parts_validates_anew() -> None:
    """A changed problem is a new one; the old one stays."""
    problem = Problem(DATA, 3)
    weighted = problem.replace(k=2, objective=WeightedLoss())
    assert (weighted.k, weighted.compiled.name) == (2, "weighted-loss")
    assert (problem.k, problem.compiled.name) == (3, "gcp")
    with pytest.raises(InputError, match="k is 1"):
        problem.replace(k=1)


@settings(max_examples=80)
@given(ruled_cases(largest=6))
def test_rules_of_classes_as_defined(case: Case) -> None:
    """Limits, diversity and losses of all classes of k records."""
    problem = case.problem()
    rules = Rules() if case.rules is None else case.rules
    sets = np.array(list(combinations(range(case.n), case.k)))
    limits = Rules(caps=rules.caps, apart=rules.apart)
    met = [limits.met_by(case.columns, rows) for rows in sets.tolist()]
    assert within_limits(problem, sets).tolist() == met
    diverse = Rules(rules.sensitive, rules.l, rules.distinct)
    assert are_diverse(problem, sets).tolist() == [
        diverse.met_by(case.columns, rows) for rows in sets.tolist()
    ]
    times = 1 if case.worst else case.k
    for rows, kept, loss in zip(sets, met, losses_within_limits(problem, sets), strict=True):
        naive = times * record_loss(case.columns, case.loss.naive, rows.tolist())
        assert loss == (pytest.approx(naive, rel=1e-8, abs=1e-8) if kept else np.inf)
    assert has_rules(problem) == (case.rules is not None)
    assert is_plain(problem) == (case.rules is None and problem.compiled.has_tables)
    assert named_rules(problem).count("the ") >= len(problem.limits)
