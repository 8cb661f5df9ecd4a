"""From a solution to a release: the generalized table and its manifest."""

from __future__ import annotations

import csv
import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip import __version__
from anonymip.assignments import SUPPRESSED
from anonymip.budget import Progress
from anonymip.errors import InputError, VerificationFailed
from anonymip.files import replacing
from anonymip.instances import Attribute, Microdata, Schema, TableFormat
from anonymip.objectives import GCP, CellBatch, Objective
from anonymip.privacy import PublishedTable, Verification, read_release, verify
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.solution import Solution
from anonymip.solving import solve
from anonymip.tolerances import same_loss

FORMAT = "anonymip-release/1"
_STAR = "*"


@dataclass(frozen=True, eq=False)
class Release:
    """What is published, and what stays behind it.

    Parameters
    ----------
    frame
        The table: quasi-identifiers generalized, sensitive and kept columns untouched.
    manifest
        What the release promises, without any value of the original.
    solution
        Where it comes from; it refers to the original and is not published.
    """

    frame: pd.DataFrame
    manifest: dict[str, Any]
    solution: Solution

    def write(
        self, path: str | Path, *, original: str | Path | pd.DataFrame | None = None
    ) -> tuple[Path, Path]:
        """Write table and manifest, read both back, verify them; return their paths.

        They appear whole and verified or not at all; the table is CSV, or Parquet by its ending.

        Parameters
        ----------
        path
            Of the table; the manifest lies beside it.
        original
            File or frame to verify against; None means the table that was solved.

        Raises
        ------
        InputError
            If the folder is missing or may not be written to.
        VerificationFailed
            If what was written does not survive its verification.
        """
        table = Path(path)
        manifest = manifest_path(table)
        with replacing(table, manifest) as (new_table, new_manifest):
            if table.suffix.lower() in (".parquet", ".pq"):
                self.frame.to_parquet(new_table, index=False)
            else:
                form = self.manifest["table"]
                self.frame.to_csv(
                    new_table,
                    index=False,
                    sep=form["separator"],
                    encoding=form["encoding"],
                    lineterminator="\n",
                    quoting=_quoting(self.frame),
                )
            new_manifest.write_text(
                json.dumps(self.manifest, indent=2, allow_nan=False, ensure_ascii=False) + "\n",
                encoding="utf-8",
            )
            _read_back(self, new_table, new_manifest, original)
        return table, manifest

    def verify(self) -> Verification:
        """Read the release back and check it by code that had no part in making it."""
        microdata = self.solution.problem.microdata
        return verify(microdata.original, self.frame, self.manifest)

    def __str__(self) -> str:
        return self.solution.sentence()

    def __repr__(self) -> str:
        return f"<Release: {self.solution.sentence()}>"

    def _repr_html_(self) -> str:
        return self.solution._repr_html_()


def _quoting(frame: pd.DataFrame) -> Literal[0, 1]:
    """Quote every cell if one holds a carriage return, which pandas does not quote by itself."""
    texts = frame.select_dtypes(exclude="number").astype(str)
    returns = any(texts[name].str.contains("\r", regex=False).any() for name in texts)
    return csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL


def manifest_path(table: Path) -> Path:
    """Return where the manifest of a release lies."""
    return table.parent / f"{table.name}.manifest.json"


def versions() -> dict[str, str]:
    """Return the versions of Python, the package and what its results depend on."""
    names = ("pyomo", "highspy", "pulp", "numpy", "pandas", "scipy", "numba")
    return {
        "python": platform.python_version(),
        "anonymip": __version__,
        **{name: metadata.version(name) for name in names},
    }


def publish(
    solution: Solution,
    rng: np.random.Generator | None = None,
    *,
    layout: str = "cells",
    keep_order: bool = False,
) -> Release:
    """Return the release of a solution.

    Parameters
    ----------
    solution
        What to publish.
    rng
        Shuffles the rows; None takes randomness from the operating system. A seeded generator is
        for tests: who knows the seed can undo the shuffle.
    layout
        ``"cells"``: a cell shows its range, ``[35..37]``. ``"columns"``: lower and upper ends
        stand in columns of their own.
    keep_order
        Whether rows keep the order of the original. Then whoever knows that order knows which
        class each person is in.

    Raises
    ------
    InputError
        If the layout is unknown or its column names are taken.
    """
    microdata = solution.problem.microdata
    refuse_layout(microdata, layout)
    columns: dict[str, Any] = {}
    roles = {
        **dict.fromkeys(microdata.sensitive, "sensitive"),
        **dict.fromkeys(microdata.keep, "keep"),
    }
    positions = {attribute.name: a for a, attribute in enumerate(microdata.attributes)}
    described: list[dict[str, Any]] = []
    for name in map(str, microdata.frame.columns):
        if name in positions:
            a = positions[name]
            described.append(_describe_attribute(microdata.attributes[a]))
            columns.update(_published_columns(solution, a, layout))
        elif name in roles:
            described.append({"name": name, "role": roles[name]})
            columns[name] = _without_unused_categories(microdata.frame[name])
    frame = pd.DataFrame(columns)
    if not keep_order:
        rng = np.random.default_rng() if rng is None else rng
        frame = frame.iloc[rng.permutation(len(frame))]
    return Release(
        frame.reset_index(drop=True),
        _manifest(solution, described, layout, keep_order),
        solution,
    )


def _without_unused_categories(column: pd.Series) -> pd.Series:
    """Forget the categories of records that were left out; pandas and Parquet would keep them."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.remove_unused_categories()
    return column


def refuse_layout(microdata: Microdata, layout: str) -> None:
    """Refuse a layout that cannot be written, before any time is spent on solving.

    Raises
    ------
    InputError
        If the layout is unknown or its column names are taken.
    """
    if layout not in ("cells", "columns"):
        raise InputError(f"unknown layout {layout!r}", remedy="Use cells or columns")
    if layout == "cells":
        return
    taken = set(map(str, microdata.frame.columns))
    for attribute in microdata.attributes:
        ends = set(_end_names(attribute)) if attribute.publish == "range" else set()
        if taken & ends:
            raise InputError(
                f"layout columns needs the column name {min(taken & ends)!r}, which is taken",
                remedy="Rename that column, or use layout cells",
            )


def _end_names(attribute: Attribute) -> tuple[str, str]:
    return f"{attribute.name}_lower", f"{attribute.name}_upper"


def _describe_attribute(attribute: Attribute) -> dict[str, Any]:
    return {
        "name": attribute.name,
        "role": "quasi-identifier",
        "kind": attribute.kind,
        "publish": attribute.publish,
        "integer": attribute.integer,
        "domain": None if attribute.domain is None else list(attribute.domain),
    }


def _published_columns(solution: Solution, a: int, layout: str) -> dict[str, Any]:
    """Return the column or columns of one quasi-identifier; each class is written once."""
    microdata = solution.problem.microdata
    attribute = microdata.attributes[a]
    labels = solution.assignment.labels
    groups, firsts, inverse = np.unique(labels, return_index=True, return_inverse=True)
    starred = groups == SUPPRESSED
    cells = solution.description

    def spread(texts: Sequence[str]) -> NDArray[np.object_]:
        written = np.array(texts, dtype=object)
        written[starred] = _STAR
        return written[inverse.ravel()]

    lower, upper = cells.lower[firsts, a], cells.upper[firsts, a]
    if attribute.publish == "range" and layout == "columns":
        ends = [spread([_number(value) for value in end]) for end in (lower, upper)]
        return dict(zip(_end_names(attribute), ends, strict=True))
    if attribute.publish == "range":
        return {attribute.name: spread([_range(u, v) for u, v in zip(lower, upper, strict=True)])}
    level = microdata.levels[a]
    write = _number_set if attribute.is_numeric else _text_set
    return {attribute.name: spread([write(level[cells.members.of(i, a)]) for i in firsts])}


def _number(value: float) -> str:
    """Write a number the shortest way that reads back exactly."""
    return repr(float(value) + 0.0).removesuffix(".0")


def _range(lower: float, upper: float) -> str:
    if lower == upper:
        return _number(lower)
    return f"[{_number(lower)}..{_number(upper)}]"


def _number_set(values: NDArray[np.generic]) -> str:
    texts = [_number(float(value)) for value in values]
    return texts[0] if len(texts) == 1 else "{" + "|".join(texts) + "}"


def _text_set(values: NDArray[np.generic]) -> str:
    texts = sorted(str(value) for value in values)
    if len(texts) == 1:
        text = texts[0]
        return "\\" + text if text.startswith(("[", "{", "*", "\\")) else text
    escaped = [text.replace("\\", "\\\\").replace("|", "\\|").replace("}", "\\}") for text in texts]
    return "{" + "|".join(escaped) + "}"


def _manifest(
    solution: Solution, columns: list[dict[str, Any]], layout: str, keep_order: bool
) -> dict[str, Any]:
    problem, table = solution.problem, solution.problem.microdata.table
    bound = solution.bound
    return {
        "format": FORMAT,
        "recoding": problem.recoding.name,
        "k": problem.k,
        "n": problem.n,
        "m": problem.m,
        "objective": {"name": problem.objective.name, "value": solution.objective},
        "ncp": solution.ncp,
        "gcp": solution.gcp,
        "bound": None
        if bound is None
        else {"value": bound.value, "method": bound.method, "proof": bound.proof},
        "gap": solution.gap,
        "status": str(solution.status),
        "method": solution.method,
        "options": dict(solution.options),
        "solver": solution.solver,
        "versions": versions(),
        "columns": columns,
        "table": {
            "separator": table.separator.strip() or table.separator,
            "encoding": table.encoding,
            "layout": layout,
            "missing": {
                "policy": table.policy,
                "tokens": list(table.missing),
                "label": table.label,
            },
        },
        "order": "kept" if keep_order else "shuffled",
        "suppressed": solution.assignment.suppressed,
        "checked": [
            f"every class has at least k = {problem.k} records",
            "the objective is recomputed from the published cells",
            "the release was read back and verified by separate code",
        ],
        "assumed": _assumptions(solution, keep_order),
    }


def _assumptions(solution: Solution, keep_order: bool) -> list[str]:
    assumed = ["the quasi-identifiers are all that an adversary can link"]
    if solution.bound is not None and solution.bound.proof == "solver":
        assumed.append(f"the bound is the word of {solution.solver}")
    if keep_order:
        assumed.append("an adversary does not know the order of the original's rows")
    return assumed


def _read_back(
    release: Release,
    table: Path | pd.DataFrame,
    manifest: Path | dict[str, Any],
    original: str | Path | pd.DataFrame | None,
) -> None:
    """Refuse a release that fails its verification, or publishes another loss than the solution's.

    Raises
    ------
    VerificationFailed
        If the release must not be published.
    """
    solution = release.solution
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


def anonymize(
    frame: pd.DataFrame,
    quasi_identifiers: Sequence[str | Attribute],
    k: int,
    *,
    sensitive: Sequence[str] = (),
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: str = "error",
    recoding: EquivalenceClasses | None = None,
    objective: Objective | None = None,
    method: str = "auto",
    layout: str = "cells",
    keep_order: bool = False,
    progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> Release:
    """Return a k-anonymous release of a table: solved, published, read back and verified.

    Parameters
    ----------
    frame
        One row per person.
    quasi_identifiers
        Columns that an adversary may know: ``"age"``, ``"zip:categorical"``, or an
        :class:`Attribute`. A name without kind is numeric if all its values are numbers.
    k
        Records that must look alike.
    sensitive, keep
        Columns published untouched.
    drop
        Columns left out; others without a role are left out too, unless they are nearly unique,
        which is an error.
    missing
        Policy for missing quasi-identifiers: ``"error"``, ``"drop"`` or ``"category"``.
    recoding
        Default: equivalence classes.
    objective
        What is lost; default: the global certainty penalty.
    method
        Name of a method.
    layout, keep_order
        See :func:`publish`.
    progress, **settings
        See :func:`solve`: ``time_limit``, ``gap``, ``solver``, ``threads``, ``seed``, ``options``.

    Raises
    ------
    InputError
        If table or arguments are wrong; the message says what to do.
    NoSolution
        If nothing was found within the limits.
    VerificationFailed
        If the release does not survive its verification; nothing is returned then.

    Examples
    --------
    >>> import pandas as pd, anonymip
    >>> people = pd.DataFrame({"age": [34, 36, 61, 65], "sex": ["F", "F", "M", "M"]})
    >>> release = anonymip.anonymize(people, ["age", "sex"], k=2, keep_order=True)
    >>> print(release)
    loss 0.04839; proven optimal: no release can be below it
    >>> release.frame["age"].tolist()
    ['[34..36]', '[34..36]', '[61..65]', '[61..65]']
    """
    microdata = _microdata(frame, quasi_identifiers, sensitive, keep, drop, missing)
    refuse_layout(microdata, layout)
    problem = Problem(
        microdata, k, recoding or EquivalenceClasses(), GCP() if objective is None else objective
    )
    solution = solve(problem, method, progress=progress, **settings)
    release = publish(solution, layout=layout, keep_order=keep_order)
    _read_back(release, release.frame, release.manifest, None)
    return release


def _microdata(
    frame: pd.DataFrame,
    quasi_identifiers: Sequence[str | Attribute],
    sensitive: Sequence[str],
    keep: Sequence[str],
    drop: Sequence[str],
    missing: str,
) -> Microdata:
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"frame is a {type(frame).__name__}", remedy="Give a pandas DataFrame")
    lists = {"quasi_identifiers": quasi_identifiers, "sensitive": sensitive, "keep": keep}
    for argument, names in {**lists, "drop": drop}.items():
        if isinstance(names, str):
            raise InputError(
                f"{argument} is one text", remedy='Give a list, such as ["age", "sex"]'
            )
    known = {
        given.name: _parameters(given)
        for given in quasi_identifiers
        if isinstance(given, Attribute)
    }
    declared = [
        given.name if isinstance(given, Attribute) else str(given) for given in quasi_identifiers
    ]
    schema = Schema(known, table=TableFormat(missing=())).with_roles(
        declared, sensitive, keep, drop, missing
    )
    return schema.apply(frame)


def _parameters(attribute: Attribute) -> dict[str, Any]:
    return {
        name: getattr(attribute, name)
        for name in ("kind", "domain", "weight", "integer", "hierarchy", "publish")
    }
