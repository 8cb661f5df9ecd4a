"""A release is read back before it counts as one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from anonymip.errors import VerificationFailed
from anonymip.objectives import CellBatch
from anonymip.privacy import PublishedTable, read_release, verify
from anonymip.problem import Problem
from anonymip.solution import Solution
from anonymip.tolerances import same_loss


def read_back(
    solution: Solution,
    table: Path | pd.DataFrame,
    manifest: Path | dict[str, Any],
    original: str | Path | pd.DataFrame | None,
) -> None:
    """Refuse a release that fails its verification, or publishes another loss than the solution's.

    Parameters
    ----------
    solution
        What was to be published.
    table, manifest
        The release, in files or in memory.
    original
        File or frame to verify against; None means the table that was solved.

    Raises
    ------
    VerificationFailed
        If the release must not be published.
    """
    form = solution.problem.microdata.table
    verification = verify(
        solution.problem.microdata.original if original is None else original,
        table,
        manifest,
        separator=form.separator,
        encoding=form.encoding,
        columns=None if form.header else form.columns,
    )
    if not verification.ok:
        raise VerificationFailed(
            f"the release fails its verification: {verification.problems[0]}",
            remedy="Nothing was published; please report this",
        )
    loss = loss_of_table(solution.problem, read_release(table, manifest))
    if not same_loss(loss, solution.objective):
        raise VerificationFailed(
            f"the published table loses {loss!r}, the solution {solution.objective!r}",
            remedy="Nothing was published; please report this",
        )


def loss_of_table(problem: Problem, table: PublishedTable) -> float:
    """Return the problem's objective of a published table, read cell by cell."""
    # A release has the columns in the order of the table, a problem in that of their declaration.
    order = [table.names.index(name) for name in problem.microdata.names]
    cells = CellBatch(
        table.lower[:, order],
        table.upper[:, order],
        table.count[:, order],
        table.suppressed[:, order],
    )
    return float(problem.compiled.record_losses(cells).sum())
