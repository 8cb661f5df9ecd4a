"""What an adversary sees of a release: the consistency graph, read as the verifier reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anonymip.errors import InputError
from anonymip.privacy.graph.consistency import MatchGraph, PublishedMatches
from anonymip.privacy.reading.hierarchies import Paths
from anonymip.privacy.reading.inputs import read_inputs
from anonymip.privacy.reading.published import read_published


def consistency_graph(
    original: str | Path | Any,
    release: str | Path | Any,
    manifest: Mapping[str, Any] | str | Path | None = None,
    *,
    schema: str | Path | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    columns: Sequence[str] | None = None,
    hierarchies: Mapping[str, Paths] | None = None,
) -> MatchGraph:
    """Return which original records each published row can be, by its quasi-identifiers.

    Attacks take it: :func:`~anonymip.privacy.match_probabilities`,
    :func:`~anonymip.privacy.identities_left`, :func:`~anonymip.privacy.measure_corruption`.

    Parameters
    ----------
    original, release, manifest, schema, separator, encoding, columns, hierarchies
        As in :func:`~anonymip.privacy.verify`. Records are numbered in the order of the original,
        without those that the missing policy left out; rows in that of the release. For each
        suppressed record that has no row, a row of stars follows them: it could be anybody's.

    Raises
    ------
    InputError
        As `verify` does; and if the release breaks the format, or has not one row a record but for
        those that are left out.

    Notes
    -----
    Complexity: linear in the number of matches, all of which are held in memory.
    """
    inputs = read_inputs(
        original,
        release,
        manifest,
        schema=schema,
        separator=separator,
        encoding=encoding,
        columns=columns,
        hierarchies=hierarchies,
    )
    records = inputs.records
    published = read_published(release, inputs.manifest, inputs.hierarchies)
    left_out = inputs.manifest.left_out.suppressed
    if published.n + left_out != records.n:
        raise InputError(
            f"the release has {published.n + left_out} rows for {records.n} original records",
            remedy="Check that both belong together",
        )
    if left_out:
        published = published.with_rows_of_stars(left_out)
    return PublishedMatches(records, published).graph()
