"""Promises of releases whose rows have sets of their own: matches and their diversity.

The page ``docs/diversity.md`` says what is asked of diversity and why. With K matches a record, a
release is diverse if its consistency graph has a part in which every record has K rows and every
row K records, no more than K/l rows of a record publish one value, and no more than K/l records of
a row have one. Where d values are to differ, no more than K - d + 1 may be alike: for d = 2 that is
the same, for more it follows. Such a part is a flow: from each record through a gate for each
published value, over the match, and through a gate for each record's value into the row.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from anonymip.privacy.arrays import Flags, Ints
from anonymip.privacy.graph.consistency import WORK, Pairs, PublishedMatches, places_in_runs
from anonymip.privacy.graph.regularity import Deficiency, GraphPart, disjoint_assignments
from anonymip.privacy.reading.manifest_entries import Diversity
from anonymip.privacy.reading.original import Original
from anonymip.privacy.reading.published import PublishedTable
from anonymip.privacy.reading.release_manifest import Manifest
from anonymip.privacy.reading.text_tables import paired_codes

#: What k counts, by recoding.
_PROMISES = {
    "freeform": "every record keeps {} effective matches, in as many disjoint assignments",
    "one-k": "every original record fits into {} published rows",
    "k-one": "every published row can be {} original records",
    "k-k": "every original record fits into {0} published rows, every row can be {0} records",
    "k-concealment": "every original record keeps {} effective matches",
}


@dataclass(frozen=True)
class CoverFindings:
    """What was found of a claimed k.

    `reached`: the largest number, up to the largest claim, that holds. `problems`: why a claim
    fails, one sentence each. `decided`: whether all that is promised was found to hold or to fail.
    """

    reached: int
    problems: tuple[str, ...]
    decided: bool = True


def promise(manifest: Manifest, k: int | str) -> str:
    """Return what a cover with this k promises."""
    return _PROMISES[manifest.recoding].format(k)


def check_cover(
    original: Original, graph: PublishedMatches, manifest: Manifest, claims: Collection[int]
) -> CoverFindings:
    """Check the size that a cover claims, on the consistency graph of the release.

    `claims`: values of k, at least 1 each. Complexity: that of
    :func:`~anonymip.privacy.graph.regularity.disjoint_assignments` for freeform releases; of
    strongly connected components for effective matches; of looking up matches for degrees.
    """
    # No record has more matches than there are rows, however large the claim.
    most = min(max(claims), original.n)
    if manifest.recoding == "freeform":
        problems = [
            f"Original row {int(original.rows[0]) + 1} can fit into {original.n} published rows at "
            f"most, k = {k}."
            for k in sorted(claims)
            if k > original.n
        ]
        for k in sorted({min(k, original.n) for k in claims}):
            reached, deficiency = disjoint_assignments(graph, k)
            if deficiency is not None and k in claims:
                problems.append(_deficiency_sentence(deficiency, k, original))
        return CoverFindings(reached, tuple(problems))
    part = GraphPart(graph, most)
    counted = "matches"
    if manifest.recoding == "k-concealment":
        counted = "effective matches"
        effective = part.effective(most)
        if effective is None:
            return CoverFindings(0, ("No one-to-one assignment of records to rows exists.",))
        of_records, of_rows = effective
    else:
        of_records, of_rows = part.degrees(most)
    sides = []
    if manifest.recoding != "k-one":
        first = original.rows[graph.first_records[of_records.argmin()]]
        sides.append((int(of_records.min()), f"Original row {int(first) + 1}"))
    if manifest.recoding in ("k-one", "k-k"):
        first = graph.first_rows[of_rows.argmin()]
        sides.append((int(of_rows.min()), f"Published row {int(first) + 1}"))
    return CoverFindings(
        min(most, *(count for count, _ in sides)),
        tuple(
            f"{who} has only {count} {counted}, fewer than k = {k}."
            for k in sorted(claims)
            for count, who in sides
            if count < k
        ),
    )


def check_cover_of_some(
    original: Original, published: PublishedTable, claims: Collection[int]
) -> CoverFindings:
    """Check the size that a freeform cover claims whose suppressed records have no row.

    k disjoint assignments hand every row a record of its own, and all leave the same records out:
    those that fit into fewer than k rows among them. Where others are left out as well, a row of
    stars stands for each first, whatever record that is, and then some of them are tried.
    Complexity: that of :func:`check_cover`, once for each number from the claim down to what holds.
    """
    problems: list[str] = []
    reached, decided = 0, True
    for k in sorted(claims):
        if k > published.n:
            problems.append(f"A record can fit into {published.n} published rows at most, k = {k}.")
        for tried in range(min(k, published.n), 0, -1):
            problem, known = _shortage_of_some(original, published, tried)
            if problem is None:
                reached, decided = tried, known
                break
            problems += [problem] if tried == k else []
    return CoverFindings(reached, tuple(problems), decided)


def _shortage_of_some(
    original: Original, published: PublishedTable, k: int
) -> tuple[str | None, bool]:
    """Return why no k disjoint assignments leave the same records out, and if that was decided.

    With k rows or more for each record that may be left out, rows of stars as many as these make k
    disjoint assignments of all from those of the others: a row that one of them takes instead of
    another record leaves that a row of stars.
    """
    count = original.n - published.n
    graph = PublishedMatches(original, published)
    fits = GraphPart(graph, k).degrees(k)[0][graph.record_type] >= k
    open_ = count - int((~fits).sum())
    if open_ < 0:
        row = int(original.rows[np.argmin(fits)]) + 1
        return (
            f"{count - open_} original records, row {row} among them, fit into fewer than {k} "
            f"published rows each, and {count} are left out."
        ), True
    some = _some(original, fits)
    padded = PublishedMatches(some, published.with_rows_of_stars(open_))
    deficiency = disjoint_assignments(padded, k)[1]
    if deficiency is not None:
        return _deficiency_sentence(deficiency, k, some), True
    matches = np.bincount(graph.rows_of(np.arange(len(graph.record_units)))[0]) if open_ else None
    found = matches is None or _can_leave_out(some, published, matches[graph.record_type[fits]], k)
    if found is False:
        return (
            f"No {k} disjoint assignments of records to rows leave the same {count} records out: "
            "rows need some of them."
        ), True
    return None, found is not None


def _can_leave_out(
    original: Original, published: PublishedTable, matches: Ints, k: int
) -> bool | None:
    """Return whether k disjoint assignments of all rows can leave the same records out.

    None if none of the sets of records do that were tried, and not all were: the question is as
    hard as that of an exact cover. Records with the fewest `matches`, (n,), come first.
    """
    order = np.argsort(matches, kind="stable").tolist()
    most = min(WORK.tried, WORK.tried_records // original.n)
    for number, gone in enumerate(combinations(order, original.n - published.n)):
        if number == most:
            return None
        some = _some(original, ~np.isin(np.arange(original.n), gone))
        if disjoint_assignments(PublishedMatches(some, published), k)[1] is None:
            return True
    return False


def _some(original: Original, kept: Flags) -> Original:
    return replace(original, codes=original.codes[kept], rows=original.rows[kept])


def _deficiency_sentence(found: Deficiency, k: int, original: Original) -> str:
    of_records = found.side == "records"
    row = (int(original.rows[found.example]) if of_records else found.example) + 1
    if found.size == 1:
        if of_records:
            return f"Original row {row} fits into only {found.available} published rows, k = {k}."
        return f"Published row {row} can be only {found.available} original records, k = {k}."
    members = "original records" if of_records else "published rows"
    return (
        f"No {k} disjoint assignments of records to rows exist: {found.size} {members}, row {row} "
        f"among them, need {found.needed} matches and can have only {found.available}."
    )


def cover_diversity_problems(
    published: PublishedTable,
    original: Original,
    promised: Diversity,
    sensitive: tuple[str, ...],
    k: int,
) -> list[str]:
    """Return a sentence for each sensitive column whose values are not diverse among matches.

    Both tables have as many rows. `k`: the claimed number of matches. Complexity: for each column
    that of a maximum flow over the matches, and of finding those that are effective.
    """
    if not sensitive:
        return ["The manifest promises a diversity, but names no sensitive column."]
    problems = []
    if promised.matches is not None and promised.matches < k:
        problems.append("The manifest counts the diversity over fewer matches than k.")
    for name in sensitive:
        before, after = paired_codes(original.untouched[name], published.untouched[name])
        if promised.matches is not None:
            record = _without_diverse_matches(published, original, promised, before, after)
            if record is not None:
                problems.append(
                    f"The rows that can be original row {int(original.rows[record]) + 1} lack the "
                    f"promised diversity of {name!r}: it has no {promised.matches} of them that "
                    "others leave to it."
                )
        record = _poor_record(published, original, promised, after, k)
        if record is not None:
            problems.append(
                f"The rows that can be original row {int(original.rows[record]) + 1} in some "
                f"assignment lack the promised diversity of {name!r}."
            )
    return problems


def _without_diverse_matches(
    published: PublishedTable, original: Original, promised: Diversity, before: Ints, after: Ints
) -> int | None:
    """Return a record that has no K diverse matches of its own, None if all have."""
    matches = promised.matches or 0
    if not promised.distinct <= matches <= original.n:
        return 0
    graph = PublishedMatches(original, published, before, after)
    # Rounded down in whole numbers: l is a fraction.
    most = min(int(matches // promised.l), matches - promised.distinct + 1)
    values = before[graph.first_records], after[graph.first_rows]
    short = _DiversePart(graph, values, matches, most).lacking(matches)
    return int(graph.first_records[short[0]]) if len(short) else None


def _poor_record(
    published: PublishedTable, original: Original, promised: Diversity, after: Ints, k: int
) -> int | None:
    """Return a record whose effective matches show too little, None if there is none."""
    if promised.distinct < 2 and (promised.l <= 1 or promised.matches is not None):
        return None
    graph = PublishedMatches(original, published)
    part = GraphPart(graph)
    if not part.assign():
        return int(graph.first_records[0])
    # How many rows of each type show each value.
    width = int(after.max()) + 1
    pairs, counts = np.unique(graph.row_type * width + after, return_counts=True)
    starts = np.searchsorted(pairs, np.arange(part.b + 1) * width)
    while True:
        inside = part.effective_part()
        source, target = part.source[inside], part.target[inside]
        sizes = np.diff(starts)[target]
        place = np.repeat(starts[target], sizes) + places_in_runs(sizes)
        pairs_seen = np.repeat(source, sizes) * width + pairs[place] % width
        shows, value = np.unique(pairs_seen, return_inverse=True)
        rows = np.bincount(value.ravel(), counts[place]).astype(np.int64)
        cuts = np.searchsorted(shows, np.arange(part.a + 1) * width)
        # Which records' rows show enough: rows of each value, cut into records.
        met = np.diff(cuts) >= promised.distinct
        if promised.l > 1 and promised.matches is None:
            for record in np.flatnonzero(met):
                met[record] = _has_share(rows[cuts[record] : cuts[record + 1]], promised.l, k)
        poor = np.flatnonzero(~met)
        if not len(poor):
            return None
        if not part.widen(poor, np.empty(0, np.int64)):
            return int(graph.first_records[poor[0]])


def _has_share(rows: Ints, l: Fraction, k: int) -> bool:  # noqa: E741
    """Return whether some D >= k of the rows show no value more than D/l times."""
    first = int(k // l)
    # With D between two multiples of l no value has more room, so the least such D is tried.
    for each in range(max(first, 1), max(first, int(rows.max())) + 1):
        needed = k if each == first else math.ceil(each * l)
        if int(np.minimum(rows, each).sum()) >= needed:
            return True
    return False


class _DiversePart(GraphPart):
    """A part of a consistency graph through which diverse matches flow.

    `graph`: its types share their sensitive value. `values`: (a,) and (b,) the value of each type
    of records and of rows. `matches`: matches that each record and each row needs. `most`: of them,
    with the same value.
    """

    def __init__(self, graph: PublishedMatches, values: Pairs, matches: int, most: int) -> None:
        super().__init__(graph, matches)
        (self.record_values, self.row_values), self.most = values, most

    def _set_gates(self, k: int) -> None:
        """Count the gates: one of a record and a published value, one of a row and a value.

        A gate that its matches cannot fill is left out.
        """
        super()._set_gates(self.most)
        units, row_units = self.graph.record_units, self.graph.row_units
        width = int(max(self.record_values.max(), self.row_values.max())) + 1
        self.tails, out_owners, out_room = self._gated(
            self.source * width + self.row_values[self.target], width, units, 0, self.a + self.b
        )
        first = self.a + self.b + len(out_owners)
        self.heads, in_owners, in_room = self._gated(
            self.target * width + self.record_values[self.source], width, row_units, self.a, first
        )
        self.gates = (self.a + self.b + np.arange(len(out_owners)), out_owners, out_room)
        self.doors = (first + np.arange(len(in_owners)), in_owners, in_room)
        self.size = first + len(in_owners)

    def _gated(
        self, keys: Ints, width: int, units: Ints, owners: int, gates: int
    ) -> tuple[Ints, Ints, Ints]:
        """Return the node at which each match ends on one side; owner and room of each gate."""
        groups, group = np.unique(keys, return_inverse=True)
        group = group.ravel()
        owner, room = groups // width, self.most * units[groups // width]
        tight = np.bincount(group, self.capacity, len(groups)) > room
        node = np.where(tight, gates + np.cumsum(tight) - 1, owners + owner)
        return node[group], owners + owner[tight], room[tight]
