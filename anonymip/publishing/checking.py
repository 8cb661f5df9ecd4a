"""The check of a release, which is read back before it counts as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.errors import VerificationFailed
from anonymip.instances import Microdata
from anonymip.instances.columns import missing_rows
from anonymip.objectives import CellBatch
from anonymip.privacy import PublishedTable, read_release, verify
from anonymip.privacy.checks.units import units_by_class
from anonymip.privacy.graph.consistency import PublishedMatches
from anonymip.privacy.graph.regularity import disjoint_assignments
from anonymip.privacy.reading.original import Reading, read_inputs
from anonymip.privacy.reading.text_tables import distinct
from anonymip.problem import Problem
from anonymip.recodings import Apart
from anonymip.solution import Solution
from anonymip.tolerances import same_loss


def read_back(
    solution: Solution,
    table: Path | pd.DataFrame,
    manifest: Path | dict[str, Any],
    original: str | Path | Any | None,
    records: NDArray[np.integer] | None = None,
) -> None:
    """Refuse a release that fails its verification, breaks a limit, or publishes another loss.

    An objective of the members tier looks at original values that no release shows; its loss is
    computed again from the assignment. `original`: to verify against; None means the table that was
    solved. `records`: (rows,) the record whose untouched values each row shows, by which units are
    counted and pseudonyms held against ids.
    """
    problem, trees = solution.problem, hierarchy_paths(solution.problem.microdata)
    form = problem.microdata.table
    verification = verify(
        problem.microdata.original if original is None else original,
        table,
        manifest,
        separator=form.separator,
        encoding=form.encoding,
        decimal=form.decimal,
        sheet=form.sheet,
        columns=None if form.header else form.columns,
        hierarchies=trees,
    )
    if not verification.ok:
        problem_found = verification.problems[0].removesuffix(".")
        raise _failed(f"the release fails its verification: {problem_found}")
    published = read_release(table, manifest, hierarchies=trees)
    if problem.microdata.unit is not None and records is not None:
        units = pd.factorize(problem.microdata.frame[problem.microdata.unit].astype(str))[0]
        if (units_by_class(published.classes(), units[records]) < problem.k).any():
            raise _failed(f"a class of the release holds fewer than k = {problem.k} units")
    for name in problem.microdata.pseudonyms:
        if records is None:
            continue
        ids = problem.microdata.frame[name].iloc[records]
        ids = ids.mask(missing_rows(ids, (*form.missing, "")))
        pairs = np.stack([pd.factorize(ids)[0], distinct(published.pseudonyms[name].texts)[1]])
        if len({np.unique(some, axis=-1).shape[-1] for some in (*pairs, pairs)}) > 1:
            raise _failed(f"the pseudonyms of column {name!r} do not stand for its ids one for one")
    if isinstance(solution.assignment, Cover) and published.n < problem.n:
        # Who was left out the table does not say.
        reading: Reading = {"decimal": form.decimal, "hierarchies": trees}
        read = read_inputs(problem.microdata.original, table, manifest, None, **reading).records
        kept = solution.assignment.sizes > 0
        some = replace(read, codes=read.codes[kept], rows=read.rows[kept])
        if disjoint_assignments(PublishedMatches(some, published), problem.k)[1] is not None:
            raise _failed("a row of the release needs a suppressed record")
    broken = broken_limits(problem, published)
    if broken:
        raise _failed(f"the published table breaks the {broken[0]}")
    if problem.compiled.tier == "members":
        loss = problem.compiled.total(solution.description, solution.assignment)
    else:
        loss = loss_of_table(problem, published)
    if not same_loss(loss, solution.objective):
        raise _failed(f"the published table loses {loss!r}, the solution {solution.objective!r}")


def _failed(why: str) -> VerificationFailed:
    return VerificationFailed(why, remedy="Nothing was published; please report this")


def hierarchy_paths(microdata: Microdata) -> dict[str, Sequence[Sequence[str]]]:
    """Return the hierarchies of a table as the verifier takes them: paths by column."""
    return {
        attribute.name: attribute.hierarchy.paths
        for attribute in microdata.attributes
        if attribute.hierarchy is not None
    }


def loss_of_table(problem: Problem, table: PublishedTable) -> float:
    """Return the problem's objective of a published table, read cell by cell.

    Records that have no row in the table are suppressed, and cost what a row of stars costs. Raises
    UnsupportedObjective if the objective looks at the members of classes, which a release does not
    show.
    """
    everybody = table.with_rows_of_stars(max(0, problem.n - table.n))
    return problem.compiled.aggregated(problem.compiled.record_losses(_cells(problem, everybody)))


def broken_limits(problem: Problem, table: PublishedTable) -> list[str]:
    """Return the limits of the problem that a cell of a published table breaks."""
    cells = _cells(problem, table)
    broken: list[str] = []
    for limit in problem.limits:
        attribute = problem.microdata.attributes[problem.microdata.names.index(limit.attribute)]
        if isinstance(limit, Apart) and attribute.publish == "set":
            # Numbers of one set and their names in a limit may be spelled differently.
            kind = float if attribute.is_numeric else str
            pair = {kind(limit.one), kind(limit.other)}  # type: ignore[arg-type]
            published = table.cells[table.names.index(attribute.name)]
            met = not any(pair <= set(cell.members) for cell in published)
        else:
            met = bool(limit.met_by(problem.microdata, cells).all())
        if not met:
            broken.append(str(limit))
    return broken


def _cells(problem: Problem, table: PublishedTable) -> CellBatch:
    """Return the published cells as an objective sees them."""
    # A release has the columns in the order of the table, a problem in that of their declaration.
    places = {name: place for place, name in enumerate(table.names)}
    order = [places[name] for name in problem.microdata.names]
    nodes = np.full((table.n, len(order)), -1, np.int32)
    lower, upper = table.lower[:, order], table.upper[:, order]
    for a in np.flatnonzero(problem.microdata.beyond < np.inf).tolist():
        # A release has no number for what is missing.
        beyond = problem.microdata.beyond[a]
        lower[lower[:, a] == -np.inf, a] = problem.microdata.domain_bounds(a)[0]
        lower[lower[:, a] == np.inf, a] = upper[upper[:, a] == np.inf, a] = beyond
    for a, attribute in enumerate(problem.microdata.attributes):
        if attribute.hierarchy is not None:
            # Stars have no label.
            place, cells = attribute.hierarchy.tree.place, table.cells[order[a]]
            shown = [-1 if cell.node is None else place[cell.node] for cell in cells]
            nodes[:, a] = np.array(shown, np.int32)[table.codes[:, order[a]]]
    return CellBatch(lower, upper, table.count[:, order], table.suppressed[:, order], nodes)
