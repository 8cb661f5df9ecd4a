"""What an adversary sees of a release: the consistency graph, read as the verifier reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from anonymip.errors import InputError
from anonymip.privacy.graph.consistency import MatchGraph, PublishedMatches
from anonymip.privacy.reading.formulas import formula_problems, without_marks
from anonymip.privacy.reading.hierarchies import Paths, read_nodes
from anonymip.privacy.reading.manifests.manifest import Manifest, read_manifest
from anonymip.privacy.reading.original import Original, encode_original
from anonymip.privacy.reading.published import PublishedTable, header_problems, parse_release
from anonymip.privacy.reading.schemas import Schema, read_schema
from anonymip.privacy.reading.tables import MalformedTable, read_table


def consistency_graph(
    original: str | Path | pd.DataFrame,
    release: str | Path | pd.DataFrame,
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
        suppressed record that has no row, a row of stars stands behind them: it could be anybody's.

    Raises
    ------
    InputError
        As `verify` does; and if the release breaks the format, or has not one row a record but for
        those that are left out.

    Notes
    -----
    Complexity: linear in the number of matches, all of which are held in memory.
    """
    records, published, claims = read_both(
        original,
        release,
        manifest,
        schema=schema,
        separator=separator,
        encoding=encoding,
        columns=columns,
        hierarchies=hierarchies,
    )
    if claims.left_out.suppressed:
        published = published.with_rows_of_stars(claims.left_out.suppressed)
    if published.n != records.n:
        raise InputError(
            f"the release has {published.n} rows for {records.n} original records",
            remedy="Check that both belong together",
        )
    return PublishedMatches(records, published).graph()


def read_both(
    original: str | Path | pd.DataFrame,
    release: str | Path | pd.DataFrame,
    manifest: Mapping[str, Any] | str | Path | None = None,
    *,
    schema: str | Path | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    columns: Sequence[str] | None = None,
    hierarchies: Mapping[str, Paths] | None = None,
) -> tuple[Original, PublishedTable, Manifest]:
    """Return the original as the manifest declares it, the published table, and the manifest.

    Parameters
    ----------
    original, release, manifest, schema, separator, encoding, columns, hierarchies
        As in :func:`~anonymip.privacy.verify`.

    Raises
    ------
    InputError
        As `verify` does; and if the release breaks the format.
    """
    claims = read_manifest(manifest, release)
    given = read_schema(schema)
    known = Schema() if given is None else given
    source = read_table(
        original,
        separator=separator or known.separator or claims.separator,
        encoding=encoding or known.encoding or "utf-8",
        names=columns or known.columns,
    )
    trees = read_nodes(claims.quasi_identifiers, known.hierarchies, hierarchies or {})
    records = encode_original(source, claims, given, trees)
    table = read_table(release, separator=claims.separator, encoding=claims.encoding)
    problems = []
    if claims.formulas_escaped:
        problems, table = formula_problems(table), without_marks(table)
    problems += header_problems(table, claims)
    published = None
    if not problems:
        published, problems = parse_release(table, claims, trees)
    if published is None:
        raise MalformedTable(problems[0].rstrip("."), remedy="Run verify for all problems")
    return records, published, claims
