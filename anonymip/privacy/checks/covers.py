"""What a release promises whose rows have sets of their own: freeform and the weaker notions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from anonymip.privacy.graph.consistency import PublishedMatches
from anonymip.privacy.graph.regularity import Deficiency, GraphPart, disjoint_assignments
from anonymip.privacy.reading.manifests.manifest import Manifest
from anonymip.privacy.reading.original import Original

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

    Parameters
    ----------
    reached
        The largest number, up to the largest claim, that holds.
    problems
        Why a claim fails, one sentence each.
    """

    reached: int
    problems: tuple[str, ...]


def promise(manifest: Manifest, k: int | str) -> str:
    """Return what a cover with this k promises."""
    return _PROMISES[manifest.recoding].format(k)


def check_cover(
    original: Original, graph: PublishedMatches, manifest: Manifest, claims: Collection[int]
) -> CoverFindings:
    """Check the size that a cover claims, on the consistency graph of the release.

    Parameters
    ----------
    original
        The records; problems name their rows.
    graph
        Which records each row can be.
    manifest
        Names the recoding.
    claims
        Values of k, at least 1 each.

    Notes
    -----
    Complexity: that of :func:`~anonymip.privacy.graph.regularity.disjoint_assignments` for freeform
    releases; of strongly connected components for effective matches; of looking up matches for
    degrees.
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
        of_records, of_rows = effective.of_records, effective.of_rows
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
