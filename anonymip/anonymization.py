"""The whole way in one call, from a data frame to a verified release.

A time limit is what a user's clock shows: it holds for reading, solving, publishing, writing and
verifying. What comes after solving is known in advance from the size of the table, and is kept for
it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from anonymip.errors import InputError, ReleaseWarning, argument
from anonymip.instances import Attribute, Schema, TableFormat
from anonymip.methods import find_method
from anonymip.methods.memory_needs import refuse_short_memory
from anonymip.objectives import MembersObjective, Objective
from anonymip.problem import Problem
from anonymip.publishing.manifest import as_verified
from anonymip.publishing.pseudonyms import read_key
from anonymip.publishing.release import Release, publish, refuse_unpublishable
from anonymip.publishing.suppressed import refuse_many_suppressed
from anonymip.recodings import Diversity, Limit, Recoding
from anonymip.recodings.recoding import MaySuppress
from anonymip.recodings.registry import COVERS, find_recoding, published_form
from anonymip.runtime.budget import Budget, MachineClock, Progress
from anonymip.scale.engines import Engine, is_dask
from anonymip.solving import solve

if TYPE_CHECKING:
    from anonymip.scale.running import ReleaseInParts


@overload
def anonymize(
    frame: Any,
    quasi_identifiers: Sequence[str | Attribute],
    k: int,
    *,
    engine: None = None,
    **settings: Any,
) -> Release: ...


@overload
def anonymize(
    frame: Any,
    quasi_identifiers: Sequence[str | Attribute],
    k: int,
    *,
    engine: Engine | str,
    output: str | Path,
    **settings: Any,
) -> ReleaseInParts: ...


def anonymize(
    frame: Any,
    quasi_identifiers: Sequence[str | Attribute],
    k: int,
    *,
    sensitive: Sequence[str] = (),
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    unit: str | None = None,
    pseudonyms: Sequence[str] = (),
    pseudonym_key: bytes | str | Path | None = None,
    weights: str | None = None,
    missing: str = "error",
    recoding: Recoding | str | None = None,
    objective: Objective | MembersObjective | str | None = None,
    diversity: Diversity | None = None,
    limits: Limit | Sequence[Limit] = (),
    method: str = "auto",
    layout: str = "cells",
    keep_order: bool = False,
    escape_formulas: bool = False,
    suppressed: str = "left-out",
    most_suppressed: int | float | None = None,
    progress: Callable[[Progress], None] | None = None,
    engine: Engine | str | None = None,
    output: str | Path | None = None,
    **settings: Any,
) -> Release | ReleaseInParts:
    """Return a k-anonymous release of a table: solved, published, read back and verified.

    Parameters
    ----------
    frame
        One row per person: a data frame of pandas, polars or another library that narwhals reads,
        or an Arrow table. The release's frame is of the same kind. With an `engine` a path or an
        address of Parquet or CSV files, or a Dask DataFrame.
    quasi_identifiers
        Columns that an adversary may know: ``"age"``, ``"zip:categorical"``, or an
        :class:`Attribute`. A name without kind is numeric if all its values are numbers.
    k
        Records that must look alike; with `unit` persons among them.
    sensitive, keep
        Columns published untouched; with a recoding that makes covers their values change rows.
    drop
        Columns left out; others without a role are left out too, unless they are nearly unique,
        which is an error.
    unit
        Column that says whom a row is about, where persons have several rows: every class then
        holds k persons or more. It is not published. Classes alone keep this.
    pseudonyms
        Columns of ids in whose place keyed hashes of them are published. They link all rows of a
        person.
    pseudonym_key
        See :func:`publish`.
    weights
        Column of sampling weights, published untouched: the manifest tells the loss by them too,
        an estimate for the population. The search minimises the loss that counts records alike.
    missing
        Policy for missing quasi-identifiers: ``"error"``, ``"drop"``, ``"category"`` or ``"own"``,
        see :class:`TableFormat`.
    recoding, objective
        Which releases are allowed, and what is lost, as :class:`Problem` takes them; None for its
        defaults.
    diversity
        What every class must hold of the sensitive columns; None asks for nothing.
    limits
        Generalizations that are forbidden.
    method
        Name of a method.
    layout, keep_order, escape_formulas, suppressed
        See :func:`publish`.
    most_suppressed
        Records that may be suppressed as a whole: a number, or a share below 1. The search of
        classes and of full domains keeps to it; of other recodings more are an error, and so is,
        without it, more than one record in twenty (or than a limit of the recoding). A recoding
        that is left out or given by name then allows suppression.
    engine, output
        For a table too large for memory, or for one machine: ``"local"``, ``"dask"``, ``"auto"`` or
        an :class:`Engine`, and the folder that the release is written to. See
        :func:`anonymize_by_parts`, which also says what is not done by parts; a `schema` may be
        given as there, and its policy holds where `missing` is ``"error"``.
    progress, **settings
        See :func:`solve`: ``effort``, ``time_limit``, ``gap``, ``solver``, ``threads``, ``seed``,
        ``options``. The time limit is that of the whole call: solving ends early enough for the
        release to be published and verified within it.

    Returns
    -------
    Release or ReleaseInParts
        The release; with an `engine` what was written to `output`.

    Raises
    ------
    InputError
        If table or arguments are wrong; the message says what to do.
    NoSolution
        If nothing was found within the limits, or more records were suppressed than may be.
    VerificationFailed
        If the release does not survive its verification; nothing is returned then.

    Examples
    --------
    >>> import pandas as pd, anonymip
    >>> people = pd.DataFrame({"age": [34, 36, 61, 65], "sex": ["F", "F", "M", "M"]})
    >>> release = anonymip.anonymize(people, ["age", "sex"], k=2, keep_order=True)
    >>> print(release)
    loss 0.04839; proven optimal: no equivalence-class release of this table with ...
    >>> release.frame["age"].tolist()
    ['[34..36]', '[34..36]', '[61..65]', '[61..65]']
    """
    lists = {"sensitive": sensitive, "keep": keep, "drop": drop, "pseudonyms": pseudonyms}
    single = {"unit": unit, "weights": weights}
    if engine is not None or output is not None or is_dask(frame) or isinstance(frame, str | Path):
        from anonymip.scale.running import anonymize_by_parts, refuse_beside_parts

        engine, output = _both(engine, output)
        refuse_beside_parts(
            pseudonym_key=pseudonym_key,
            keep_order=keep_order,
            suppressed=suppressed != "left-out",
            most_suppressed=most_suppressed,
            budget=settings.pop("budget", None),
        )
        # Texts of files are missing where they are empty; those of frames are values.
        usual = Schema(table=TableFormat(missing=() if is_dask(frame) else ("",)))
        base = settings.pop("schema", None) or usual
        policy = base.table.policy if missing == "error" else missing
        return anonymize_by_parts(
            frame,
            (),
            k,
            output,
            engine=engine,
            schema=_schema(quasi_identifiers, lists, policy, single, base),
            progress=progress,
            recoding=recoding,
            objective=objective,
            diversity=diversity,
            limits=limits,
            method=method,
            layout=layout,
            escape_formulas=escape_formulas,
            **settings,
        )
    unknown = [name for name in settings if name not in (*signature(solve).parameters, "schema")]
    if unknown:
        raise TypeError(f"anonymize() got an unexpected keyword argument {unknown[0]!r}")
    clock = MachineClock()
    whole = settings.pop("budget", None)
    if whole is None:
        whole = Budget.of(settings.pop("time_limit", None), progress)
    key = read_key(pseudonym_key, pseudonyms)
    base = Schema(table=TableFormat(missing=()))
    microdata = _schema(quasi_identifiers, lists, missing, single, base).apply(frame)
    if most_suppressed and (recoding is None or isinstance(recoding, str)):
        recoding = find_recoding(recoding or "classes", suppression=True)
    asked: object = "classes" if recoding is None else recoding
    if isinstance(asked, MaySuppress) and asked.suppression:
        asked = asked.within(most_suppressed)
    problem = Problem(
        microdata,
        k,
        asked,  # type: ignore[arg-type]
        "gcp" if objective is None else objective,
        diversity,
        limits,
    )
    shape: dict[str, Any] = {"layout": layout, "suppressed": suppressed, "pseudonym_key": key}
    shape |= {"keep_order": keep_order, "escape_formulas": escape_formulas}
    release = released(problem, method, settings, shape, whole, clock, most_suppressed)
    release.read_back(release.table, release.manifest)
    return replace(release, manifest=as_verified(release.manifest), verified=True)


def released(
    problem: Problem,
    method: str,
    settings: Mapping[str, Any],
    shape: Mapping[str, Any],
    whole: Budget,
    clock: MachineClock,
    most_suppressed: int | float | None,
    path: Path | None = None,
) -> Release:
    """Return the release of a problem, solved within its part of a budget and not yet verified.

    `method, settings`: as :func:`solve` takes them. `shape`: what :func:`publish` takes. `path`:
    where the table is to be written; None for nowhere. Raises what :func:`anonymize` does; what
    cannot be published is refused before any work.
    """
    refuse_unpublishable(
        problem,
        layout=shape["layout"],
        suppressed=shape["suppressed"],
        most_suppressed=most_suppressed,
        path=path,
    )
    refuse_short_memory(problem, find_method(method), settings.get("options"), publishes=True)
    solution = solve(problem, method, budget=before_publishing(problem, whole, clock), **settings)
    refuse_many_suppressed(solution, most_suppressed)
    whole.report("publishing")
    return publish(solution, **shape)


def _both(engine: Engine | str | None, output: str | Path | None) -> tuple[Any, Any]:
    """Return engine and output; refuse one without the other, and a table that asks for them."""
    if engine is None:
        given = argument("output", ...) if output is not None else "a path or a Dask DataFrame"
        raise InputError(
            f"{given} is for tables that are solved by parts",
            remedy=f"Add {argument('engine', 'local')} or {argument('engine', 'dask')}, or give a "
            "data frame alone, such as of read_table",
        )
    if output is None:
        raise InputError(
            f"{argument('engine')} is given, and no place to write the release to",
            remedy=f"Add {argument('output', 'release')}, a folder",
        )
    return engine, output


def _schema(
    quasi_identifiers: Sequence[str | Attribute],
    lists: Mapping[str, Any],
    missing: str,
    single: Mapping[str, Any],
    base: Schema,
) -> Schema:
    """Return a schema with the roles that are given beside its own."""
    for word, names in {"quasi_identifiers": quasi_identifiers, **lists}.items():
        if isinstance(names, str):
            raise InputError(f"{word} is one text", remedy='Give a list, such as ["age", "sex"]')
    known = {
        given.name: {one.name: getattr(given, one.name) for one in fields(given)[1:]}
        for given in quasi_identifiers
        if isinstance(given, Attribute)
    }
    declared = [
        given.name if isinstance(given, Attribute) else str(given) for given in quasi_identifiers
    ]
    # A policy of the table leaves an attribute its own.
    table = replace(base.table, policy=missing)
    roles = replace(base, attributes={**base.attributes, **known}, table=table)
    return roles.with_roles(declared, **single, **lists)


#: Share of a time limit that solving has where reading and publishing would leave it nothing.
LEAST_SHARE = 0.1


@dataclass(frozen=True)
class PublishingCosts:
    """Processor seconds of publishing, writing, reading back and verifying a release.

    Chosen by ``python -m benchmarks publishing``, whose tables take nine tenths of it at most.
    """

    release: float = 0.3  # of any
    column: float = 0.9e-3  # of a quasi-identifier, whatever it holds
    cell: float = 5e-6  # of a cell
    #: Of a value that stands in the original, or a text that stands in the release.
    text: float = 9e-6
    match: float = 7e-6  # of a record in a set of a cover

    def seconds(self, problem: Problem) -> float:
        """Return the seconds that a release of a problem takes at most."""
        n, m = problem.n, problem.m
        covers = published_form(problem.recoding) in COVERS
        sets = n if covers else n // problem.k
        texts = 0
        for attribute, levels in zip(
            problem.microdata.attributes, problem.microdata.levels, strict=True
        ):
            values = len(levels)
            pairs = values * (values + 1) // 2
            subsets = 2 ** min(values, 40)
            texts += values + min(sets, subsets if attribute.publish == "set" else pairs)
        matches = n * problem.k if covers else 0
        return (
            self.release
            + self.column * m
            + self.cell * n * m
            + self.text * texts
            + self.match * matches
        )


COSTS = PublishingCosts()


def before_publishing(problem: Problem, whole: Budget, clock: MachineClock) -> Budget:
    """Return the part of a budget that solving has.

    `whole`: what reading, solving and publishing have together. `clock`: since the time limit
    began: has seen how busy the machine is. Warns ReleaseWarning if reading and publishing leave
    solving less than a tenth of the time limit, which it then has all the same.
    """
    if whole.deadline is None:
        return whole
    limit = whole.deadline - clock.began
    reserve = clock.slowness * COSTS.seconds(problem)
    passed = time.monotonic() - clock.began
    least = LEAST_SHARE * limit
    if limit - passed - reserve < least:
        warnings.warn(
            f"of the time limit of {limit:.3g} s, reading took {passed:.1f} s, "
            f"and publishing and verifying take about {reserve:.1f} s: {least:.1f} s are left for "
            "solving, and the release may lose more than it has to",
            ReleaseWarning,
            stacklevel=4,
        )
    return whole.leaving(reserve, least=least)
