"""Some cases of the fuzzer, and that its judge sees errors that are planted."""

from __future__ import annotations

import ast
import csv
import random
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import anonymip
from tests import profiles
from tests.fuzzing import certificates
from tests.fuzzing.cases import run_case
from tests.fuzzing.judge.asked import Asked
from tests.fuzzing.judge.releases import release_problems
from tests.fuzzing.judge.table import Column, Table
from tests.fuzzing.package import problem_of
from tests.fuzzing.problems import draw_problem
from tests.fuzzing.processor_time import processor_time
from tests.fuzzing.solving import Findings, Reference, judge_solution

_JUDGE = Path(__file__).parent / "judge"

_ASKED = Asked(
    Table(
        (
            Column("age", "numeric", (20.0, 22.0, 21.0, 60.0, 64.0, 61.0, 90.0)),
            Column("sex", "categorical", tuple("FFFMMFM"), publish="set"),
        ),
        (("sick", ("flu", "hiv", "flu", "flu", "asthma", "flu", "hiv")),),
    ),
    3,
)
#: The women and the men. Worse: the young and the old.
_BEST, _WORSE = [0, 0, 0, 1, 1, 0, 1], [0, 0, 0, 1, 1, 1, 1]


def _faults(**planted: Any) -> list[str]:
    """Return what the judge says of a right solution, or of one with an error planted."""
    problem = problem_of(_ASKED)
    labels = planted.pop("labels", _BEST)
    solution = anonymip.solve(problem, "equivalence-mip")
    honest = {
        "problem": problem,
        "assignment": anonymip.Classes(np.array(labels)),
        "objective": solution.objective,
        "bound": solution.bound,
        "is_optimal": True,
        "gap": 0.0,
    }
    found = Findings("classes")
    reference = Reference(_ASKED, large=False)
    judge_solution(
        found,
        _ASKED,
        reference,
        SimpleNamespace(**{**honest, **planted}),  # type: ignore[arg-type]
        "planted",
    )
    return found.faults


def test_the_judge_accepts_what_is_right() -> None:
    """An optimal solution, with its loss and its bound, has no fault."""
    assert _faults() == []


def test_a_raised_bound_is_seen() -> None:
    """A bound that exceeds the optimum by a part in a hundred million is a fault."""
    value = anonymip.solve(problem_of(_ASKED)).objective * (1 + 1e-8)
    planted = SimpleNamespace(value=value, method="planted")
    assert any("above the optimum" in one for one in _faults(bound=planted))


def test_a_changed_loss_is_seen() -> None:
    """A loss that differs by a part in a hundred million is a fault."""
    value = anonymip.solve(problem_of(_ASKED)).objective * (1 + 1e-8)
    assert any("the judge has" in one for one in _faults(objective=value))


def test_a_small_class_is_seen() -> None:
    """A class of two records is a fault where k is 3."""
    assert any("a class of 2 records" in one for one in _faults(labels=[0, 0, 1, 1, 1, 1, 1]))


def test_a_wrong_optimal_is_seen() -> None:
    """A release that is called optimal and loses more than the best is a fault."""
    problem = problem_of(_ASKED)
    worse = anonymip.Classes(np.array(_WORSE))
    loss = anonymip.Solution.of(problem, worse, method="planted").objective
    assert any("the optimum is" in one for one in _faults(labels=_WORSE, objective=loss))


def test_a_gap_beside_optimal_is_seen() -> None:
    """The word optimal beside a gap of a part in ten thousand is a fault."""
    assert any("beside a gap" in one for one in _faults(gap=1e-4))


def _raised_bound(loss: Fraction, bound: Fraction) -> tuple[Fraction, Fraction]:
    return loss, bound * (1 + Fraction(1, 10**8))


def _changed_loss(loss: Fraction, bound: Fraction) -> tuple[Fraction, Fraction]:
    return loss * (1 + Fraction(1, 10**8)), bound


@pytest.mark.parametrize(
    ("change", "said"), [(_raised_bound, "above the optimum"), (_changed_loss, "the judge has")]
)
def test_a_certificate_of_other_numbers_is_seen(
    change: Callable[[Fraction, Fraction], tuple[Fraction, Fraction]],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever a checker accepts: bound and loss are compared with those of the judge."""
    solution, proven = anonymip.solve(problem_of(_ASKED)), certificates.check
    reference, found = Reference(_ASKED, large=False), Findings("classes")
    certificates.check_certificate(found, _ASKED, reference, solution)
    assert found.faults == []
    monkeypatch.setattr(certificates, "check", lambda content: change(*proven(content)))
    certificates.check_certificate(found, _ASKED, reference, solution)
    assert [said in one for one in found.faults] == [True]


def _widened(cells: list[str]) -> None:
    cells[0] = "[20..21]"


def _exchanged(cells: list[str]) -> None:
    cells[2] = "asthma"


def _malformed(cells: list[str]) -> None:
    cells[0] = "[22..20]"


@pytest.mark.parametrize("change", [_widened, _exchanged, _malformed])
def test_a_changed_release_is_seen(change: Callable[[list[str]], None], tmp_path: Path) -> None:
    """A cell that does not cover, another's value, a range upside down: the judge refuses each."""
    solution = anonymip.solve(problem_of(_ASKED))
    path, manifest = anonymip.publish(solution, keep_order=True).write(tmp_path / "release.csv")
    assert release_problems(_ASKED, path, manifest) == []
    with open(path, encoding="utf-8", newline="") as stream:
        lines = list(csv.reader(stream))
    change(lines[1])
    with open(path, "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(lines)
    assert release_problems(_ASKED, path, manifest)


@pytest.mark.parametrize("recoding", ["freeform", "one-k", "k-one", "k-k", "k-concealment"])
def test_sets_of_one_record_are_seen(recoding: str) -> None:
    """Publishing everybody exactly keeps none of the promises of covers."""
    asked = Asked(_ASKED.table, 2, recoding)
    assert asked.judge_cover([[record] for record in range(7)])[1]


def test_the_judge_imports_nothing_of_the_package() -> None:
    """The judge knows the definitions, not the package."""
    for path in _JUDGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("anonymip") for alias in node.names)
            if isinstance(node, ast.ImportFrom):
                assert node.module is not None
                assert not node.module.startswith("anonymip")
                assert not node.module.startswith("tests") or ".judge" in node.module


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system has no /proc")
def test_processor_time_counts_what_a_process_started() -> None:
    """A process that waits for another has computed as long as that."""
    spin = "import time\nwhile time.process_time() < 0.3: pass\nprint(1, flush=True)\ninput()"
    start = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {spin!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        found = processor_time(process.pid)
        process.stdin.write(b"\n")
        process.stdin.close()
    assert found is not None
    assert 0.25 <= found < 60.0  # The system counts in hundredths, and rounds down.
    assert processor_time(process.pid) is None


def test_a_case_is_drawn_again_from_its_numbers() -> None:
    """Seed and number of a case determine it."""
    first, second = (draw_problem(random.Random("3:5"), "classes") for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    "area", ["classes", "freeform", "weaker", "pattern", "full-domain", "command-line"]
)
def test_cases_have_no_fault(area: str) -> None:
    """Some cases of every area: solved by several methods, published, verified, judged."""
    for index in range(4 if profiles.NAME == "thorough" else 1):
        found = run_case(12, index, area)
        assert found.faults == []
