"""Run the conformance suite and write what each solver did in each test.

Run it from the top of the repository::

    python -m tests.solvers.conformance_log docs/results/conformance.md

No times are written: licences of some solvers forbid to publish them, and they depend on the
machine.
"""

from __future__ import annotations

import inspect
import platform
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from anonymip.files import replacing
from anonymip.publishing.manifest import versions
from anonymip.solvers import availability, solver_names

FOLDER = Path(__file__).resolve().parent
SUITE = ("test_conformance.py", "test_conformance_models.py", "test_conformance_starts.py")
SUITE += ("test_disjuncts.py", "test_lying.py")

#: Column of the tests that have no solver for a parameter.
ALL = "(any)"


@dataclass
class Outcomes:
    """A pytest plugin that keeps what came of each test.

    Parameters
    ----------
    counts
        (file, test, solver) -> how often it passed, failed and was skipped.
    sentences
        (file, test) -> first line of the docstring.
    skips
        Reasons of skips, with the test and solver.
    """

    counts: dict[tuple[str, str, str], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    sentences: dict[tuple[str, str], str] = field(default_factory=dict)
    skips: list[str] = field(default_factory=list)
    _solvers: dict[str, tuple[str, str, str]] = field(default_factory=dict)

    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        """Note for each test which solver it is about."""
        for item in items:
            file, test = item.path.name, item.originalname
            callspec = getattr(item, "callspec", None)
            solver = ALL if callspec is None else callspec.params.get("solver", ALL)
            self._solvers[item.nodeid] = (file, test, solver)
            self.sentences[file, test] = (inspect.getdoc(item.function) or "").partition("\n")[0]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the outcome of a test, or of a setup or teardown that went wrong."""
        if report.when != "call" and report.passed:
            return
        file, test, solver = self._solvers[report.nodeid]
        self.counts[file, test, solver][report.outcome] += 1
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            self.skips.append(f"`{test}`, {solver}: {reason}")


def lines(outcomes: Outcomes, code: int) -> Iterator[str]:
    """Yield the lines of the report."""
    names = (*solver_names(), ALL)
    yield "# What the solvers did in the conformance suite"
    yield ""
    yield "Written by `python -m tests.solvers.conformance_log docs/results/conformance.md`."
    yield "Each number counts the cases of a test that passed; what failed or was skipped is"
    yield "said. No times are given. Tests under (any) run once for all solvers, or with solvers"
    yield "that lie, crash and hang on purpose."
    yield ""
    yield f"Python {platform.python_version()}, {platform.system()} {platform.machine()}."
    used = versions()
    packages = ("anonymip", "pyomo", "numpy", "scipy")
    yield ", ".join(f"{name} {used[name]}" for name in packages if name in used) + "."
    yield ""
    yield "| solver | version | licence |"
    yield "|---|---|---|"
    for name in solver_names():
        found = availability(name)
        limit = ""
        if found.max_variables is not None:
            limit = f": {found.max_variables} variables, {found.max_rows} rows"
        yield f"| {name} | {found.version or 'not installed'} | {found.licence or '-'}{limit} |"
    total: Counter[str] = sum(outcomes.counts.values(), Counter())
    yield ""
    yield (
        f"In all {total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped; "
        f"pytest ended with code {code}."
    )
    for file in SUITE:
        yield ""
        yield f"## {file}"
        yield ""
        yield f"| test | {' | '.join(names)} |"
        yield f"|---|{'---|' * len(names)}"
        for (where, test), sentence in outcomes.sentences.items():
            if where == file:
                cells = [_cell(outcomes.counts.get((file, test, name))) for name in names]
                yield f"| {sentence} (`{test}`) | {' | '.join(cells)} |"
    yield ""
    yield "## Skipped"
    yield ""
    for reason in outcomes.skips or ["nothing"]:
        yield f"- {reason}"


def _cell(count: Counter[str] | None) -> str:
    if count is None:
        return ""
    others = [f"{count[word]} {word}" for word in ("failed", "skipped") if count[word]]
    passed = [str(count["passed"])] if count["passed"] else []
    return ", ".join([*passed, *others])


def main(arguments: list[str]) -> int:
    """Run the suite and write the report to the file named."""
    if len(arguments) != 1:
        print("usage: python -m tests.solvers.conformance_log FILE", file=sys.stderr)
        return 2
    outcomes = Outcomes()
    files = [str(FOLDER / name) for name in SUITE]
    code = int(pytest.main(["-q", "-p", "no:cacheprovider", *files], plugins=[outcomes]))
    with replacing(Path(arguments[0])) as (path,):
        path.write_text("\n".join([*lines(outcomes, code), ""]), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
