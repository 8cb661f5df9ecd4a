"""The report of a release: one page for those who answer for it, complete in itself.

It may be published like the release: no record of the original is shown, and no count of fewer than
k originals by value. The example rows are those of the release that occur most; what stands before
them is made up from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.errors import InputError
from anonymip.experiments.bands import Band, bands, least_records
from anonymip.experiments.measures import attribute_losses
from anonymip.experiments.pages import render
from anonymip.instances import Attribute
from anonymip.privacy import DisclosureRisk
from anonymip.publishing.cautions import (
    homogeneous_classes,
    nearly_unique_columns,
    persons_of_several_rows,
)
from anonymip.publishing.cells import published_columns
from anonymip.publishing.release import Release, what_is_gone
from anonymip.publishing.suppressed import suppressed_records
from anonymip.recodings import PatternGuided
from anonymip.recodings.rules.diversity import of_rows
from anonymip.runtime.arrays import Ints
from anonymip.solution import Solution, gap_in_words

#: Rows that are shown as examples, their columns, and characters of a cell: sets may name hundreds.
_EXAMPLES, _WIDEST, _LONGEST = 6, 10, 60


@dataclass(frozen=True)
class _Column:
    """A column of the original: its role, what became of it, and what that lost."""

    name: str
    role: str
    fate: str
    loss: float | None = None
    exact: float | None = None
    bands: Sequence[Band] = ()


def html_report(release: Release, instance: str, *, command: str | None = None) -> str:
    """Return a page about a release, complete in itself; it shows no record of the original.

    `instance`: what the table is called; readers see it. `command`: what repeats it, without values
    of the table; None tells of Python. Complexity: that of :meth:`Release.risk`, and O(m n log n).
    """
    solution = release.solution
    manifest, microdata = release.manifest, solution.problem.microdata
    risk = _risk(release)
    records = np.flatnonzero(~suppressed_records(solution))
    penalties = attribute_losses(solution, records)
    columns = [
        _quasi_identifier(solution, a, records, penalties[attribute.name])
        for a, attribute in enumerate(microdata.attributes)
    ]
    return render(
        "release.html",
        title=f"Release of {instance}",
        today=date.today().isoformat(),
        attention=solution.many_suppressed,
        summary=_summary(release, risk, len(records), sum(penalties.values()) / len(penalties)),
        examples=_examples(solution, records),
        is_cover=isinstance(solution.assignment, Cover),
        least=least_records(solution),
        asked=_asked(solution),
        rows=_rows(release),
        gone=what_is_gone(release),
        columns=columns,
        untouched=_untouched(release),
        total=sum(penalties.values()),
        sentence=_capital(solution.sentence()),
        gap=gap_in_words(solution),
        bound=solution.bound,
        sizes=_sizes(solution.sizes, solution.problem.k),
        risk=risk if isinstance(risk, str) else _compared(risk),
        notes=[] if isinstance(risk, str) else list(risk.notes),
        cautions=[
            *_homogeneous(release, risk),
            *nearly_unique_columns(microdata),
            *persons_of_several_rows(microdata),
        ],
        has_sensitive=bool(microdata.sensitive),
        verified=release.verified,
        checked=manifest["checked"],
        assumed=manifest["assumed"],
        command=command,
        method=_method(solution),
        versions=manifest["versions"],
    )


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def _risk(release: Release) -> DisclosureRisk | str:
    """Return the risk, or why it is not measured."""
    try:
        return release.risk(draws=0)
    except InputError as error:
        return error.message


def _compared(risk: DisclosureRisk) -> list[tuple[str, str, str]]:
    """Return the figures of the risk before and after, as the command prints them."""
    before = risk.before.lines(risk.k)
    after = {} if risk.after is None else risk.after.lines(risk.k)
    return [(name, before.get(name, "-"), after.get(name, "-")) for name in {**before, **after}]


def _homogeneous(release: Release, risk: DisclosureRisk | str) -> list[str]:
    """Return for which sensitive values all rows that may be a person's share one."""
    counts = release.manifest["homogeneous"]
    if counts is not None:
        return homogeneous_classes(counts, len(release.table))
    if isinstance(risk, str) or risk.after is None:
        return ["How many records share one value with all rows that can be theirs was not counted"]
    return [
        f"{rows:,} of {risk.after.records:,} records: all rows that can be theirs share one value "
        f"of {name!r}, so that who knows a person learns it"
        for name, (_, rows) in risk.after.homogeneous.items()
        if rows
    ]


def _summary(
    release: Release, risk: DisclosureRisk | str, published: int, shown: float
) -> list[str]:
    """Return the main things; the cells of the `published` records lose `shown` on average."""
    solution, manifest = release.solution, release.manifest
    microdata = solution.problem.microdata
    total = len(microdata.original)
    promise = manifest["checked"][0]
    if not isinstance(solution.assignment, Cover) and microdata.unit is None:
        others = solution.problem.k - 1
        promise = f"every row looks like at least {others} other{'s' if others > 1 else ''}"
    counts = f"{len(release.table):,} of {total:,} records are published"
    lines = [f"{counts}, with {len(release.table.columns):,} columns. {_capital(promise)}"]
    if not isinstance(risk, str):
        lines.append(risk.sentence())
    hidden = published < solution.problem.n
    stars = f" ({100 * solution.gcp:.3g} % with suppressed records as stars)" if hidden else ""
    lines.append(
        f"What it costs: a published cell covers on average {100 * shown:.3g} % of what its "
        f"column may hold{stars}. {gap_in_words(solution)}"
    )
    if "weights" in manifest:
        weighted, also = manifest["weights"], ", suppressed records as stars" if hidden else ""
        lines.append(
            f"Counted by the sampling weights of {weighted['column']}, an estimate for the "
            f"population, it is {100 * weighted['gcp']:.3g} %{also}."
        )
    lines.append(
        "The release was read back and checked by code that had no part in making it."
        if release.verified
        else "The release has not been verified yet: run anonymip verify before it is given away."
    )
    return lines


def _asked(solution: Solution) -> list[tuple[str, str]]:
    """Return what was asked; limits do not name the values that they keep apart."""
    problem, recoding = solution.problem, solution.problem.recoding
    microdata, n = problem.microdata, problem.n
    counted = "rows must be possible for every person"
    if microdata.unit is not None:
        counted = f"different values of {microdata.unit} must be in every class"
    asked = [
        ("k", f"{problem.k}: as many {counted}"),
        ("Recoding", f"{recoding.name}: {problem.release_name}"),
        ("Loss", problem.objective.name),
    ]
    if microdata.unit is not None:
        asked.append(("Unit", f"k counts the values of {microdata.unit}, not rows"))
    if of_rows(problem.diversity) is not None:
        asked.append(("Diversity", str(of_rows(problem.diversity))))
    asked += [("Limit", str(limit)) for limit in problem.limits]
    if isinstance(recoding, PatternGuided):
        asked.append(("Mask", str(recoding.mask)))
    if getattr(recoding, "suppression", False):
        limited = getattr(recoding, "most_suppressed", None) is not None
        most = f", {recoding.limit(n):,} of {n:,} records at most" if limited else ""  # type: ignore[attr-defined]
        asked.append(("Suppression", f"allowed{most}"))
    policy = microdata.table.policy
    others = [one for one in microdata.attributes if one.missing not in (None, policy)]
    told = [f"{one.name}: {_MISSING[str(one.missing)]}; " for one in others]
    asked.append(("Missing values", f"{''.join(told)}{'others: ' * bool(told)}{_MISSING[policy]}"))
    return asked


_MISSING = {
    "error": "an error: no quasi-identifier may be missing",
    "drop": "the record is left out",
    "category": "a value of its own",
    "own": "a value of its own, also beside ranges",
}


def _rows(release: Release) -> list[tuple[str, int, str]]:
    """Return how many records came in, were left out and were published, with reasons."""
    solution, gone = release.solution, release.manifest["left_out"]
    starred = solution.assignment.suppressed - gone["suppressed"]
    return [
        ("read", len(solution.problem.microdata.original), "rows of the original"),
        ("left out", gone["missing"], "a quasi-identifier is missing"),
        (
            "suppressed",
            gone["suppressed"],
            "left out as a whole: what fits them in would cost the others more, or break a rule",
        ),
        *([("starred", starred, "suppressed, and published as rows of stars")] * bool(starred)),
        ("published", len(release.table), "rows of the release"),
    ]


def _quasi_identifier(
    solution: Solution, a: int, records: NDArray[np.integer], loss: float
) -> _Column:
    attribute = solution.problem.microdata.attributes[a]
    cells = solution.description
    if attribute.publish == "range":
        alone = cells.lower[records, a] == cells.upper[records, a]
    elif attribute.hierarchy is not None:
        alone = cells.nodes[records, a] < attribute.hierarchy.tree.leaves
    else:
        alone = cells.members.count[records, a] <= 1
    alone &= ~cells.suppressed[records, a]
    return _Column(
        attribute.name,
        "quasi-identifier",
        _fate(attribute),
        loss,
        float(np.mean(alone)) if len(records) else 0.0,
        bands(solution, a, records),
    )


def _fate(attribute: Attribute) -> str:
    forms = {"range": "ranges", "set": "sets of values", "node": "values or groups of a hierarchy"}
    form = forms[str(attribute.publish)]
    if attribute.kind == "date" and attribute.publish == "node":
        form = "days, months, quarters, years or decades"
    parts = [f"generalized: {form}"]
    for name, text in (
        ("precision", "precision {}"),
        ("at_most", "one group from {} up"),
        ("at_least", "one group down from {}"),
    ):
        if attribute.scaling[name] is not None:
            parts.append(text.format(attribute.scaling[name]))
    if attribute.missing is not None:
        parts.append(f"missing values: {_MISSING[attribute.missing]}")
    return ", ".join(parts)


_REPLACED = "replaced by pseudonyms, keyed hashes that link the rows of a person"


def _untouched(release: Release) -> list[_Column]:
    """Return the columns that are no quasi-identifiers; those without a role are counted."""
    solution = release.solution
    microdata = solution.problem.microdata
    fate = "published as it is"
    if isinstance(solution.assignment, Cover):
        fate += ", its values in other rows of the same set"
    nameless = len(microdata.undeclared)
    counted = f"{nameless} column{'s' if nameless > 1 else ''} without a role"
    units = [] if microdata.unit in (None, *microdata.pseudonyms) else [str(microdata.unit)]
    return [
        *(_Column(name, "sensitive", fate) for name in microdata.sensitive),
        *(
            _Column(name, "weights" if name == microdata.weights else "kept", fate)
            for name in microdata.keep
        ),
        *(_Column(name, "pseudonym", _REPLACED) for name in microdata.pseudonyms),
        *(_Column(name, "dropped", "left out") for name in microdata.drop),
        *(_Column(unit, "unit", "left out") for unit in units),
        *([_Column(counted, "none", "left out")] if nameless else []),
    ]


def _method(solution: Solution) -> str:
    options = ", ".join(f"{name}={value}" for name, value in solution.options.items())
    parts = [f"method {solution.method}" + (f" ({options})" if options else "")]
    parts += [] if solution.solver is None else [solution.solver]
    parts += [] if solution.seed is None else [f"seed {solution.seed}"]
    return ", ".join([*parts, f"{solution.status}, {solution.seconds:.1f} s"])


def _sizes(sizes: Ints, k: int) -> list[dict[str, Any]]:
    """Return how many classes there are by size, in bands that double: k to 2k - 1 and so on.

    Of each its ``name``, the number of its ``classes`` and ``records``, the ``share`` of all these.
    """
    found = []
    low, total = max(1, k), int(sizes.sum())
    if len(sizes) and sizes.min() < low:
        low = int(sizes.min())
    while len(sizes) and low <= sizes.max():
        high = 2 * low - 1
        inside = sizes[(sizes >= low) & (sizes <= high)]
        if len(inside):
            name, held = f"{low:,} to {high:,}" if high > low else f"{low:,}", int(inside.sum())
            found.append(
                {"name": name, "classes": len(inside), "records": held, "share": held / total}
            )
        low = high + 1
    return found


def _examples(
    solution: Solution, records: NDArray[np.integer]
) -> list[tuple[int, list[tuple[str, str, str]]]]:
    """Return the rows that occur most in the release: how often, and their cells.

    Of each cell the name of its column, a made-up value before, and the one after. They follow from
    the published rows, and from which values k records have.
    """
    attributes = solution.problem.microdata.attributes
    texts = {
        str(a): published_columns(solution, a, "cells")[attribute.name][records]
        for a, attribute in enumerate(attributes)
    }
    groups = pd.DataFrame(texts).groupby(list(texts), sort=True, dropna=False).indices.values()
    commonest = sorted(groups, key=lambda rows: -len(rows))[:_EXAMPLES]
    return [
        (
            len(rows),
            [
                (
                    attribute.name,
                    _short(_made_up(solution, a, int(records[rows[0]]))),
                    _short(str(texts[str(a)][rows[0]])),
                )
                for a, attribute in enumerate(attributes[:_WIDEST])
            ],
        )
        for rows in commonest
    ]


def _made_up(solution: Solution, a: int, record: int) -> str:
    """Return a value that a cell stands for: the middle, or of a node one that k records have."""
    microdata, cells = solution.problem.microdata, solution.description
    attribute = microdata.attributes[a]
    if cells.suppressed[record, a]:
        return "any"
    if attribute.publish == "range":
        low, high = float(cells.lower[record, a]), float(cells.upper[record, a])
        if high == microdata.beyond[a]:
            label = microdata.table.label
            return label if low == high else f"any or {label}"
        middle = low + (high - low) / 2
        if low.is_integer() and high.is_integer():
            middle = float(math.floor(middle))
        if isinstance(attribute.scale.precision, float):
            middle = low + (high + attribute.scale.precision - low) // 2
        scale = attribute.scale if attribute.kind == "date" else None
        return f"{middle:.10g}" if scale is None else scale.text(middle, middle, str)
    if attribute.hierarchy is None:
        codes = cells.members.of(record, a)
        return str(microdata.levels[a][codes[len(codes) // 2]])
    tree, node = attribute.hierarchy.tree, int(cells.nodes[record, a])
    if node < tree.leaves:
        return tree.labels[node]
    leaf = microdata.leaves(a)
    counts = np.bincount(leaf[microdata.codes[:, a]], minlength=tree.leaves)
    first, last = int(tree.first[node]), int(tree.last[node])
    common = first + int(np.argmax(counts[first : last + 1]))
    enough = counts[common] >= least_records(solution)
    return tree.labels[common] if enough else f"one of {tree.labels[node]}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 2]} …"
