"""What a verification or an attack starts from: the manifest, and the original as it declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anonymip.privacy.reading.hierarchies import Nodes, Paths, read_nodes
from anonymip.privacy.reading.manifests.manifest import Manifest, read_manifest
from anonymip.privacy.reading.original import Original, encode_original
from anonymip.privacy.reading.schemas import Schema, read_schema
from anonymip.privacy.reading.tables import TextTable, read_table


@dataclass(frozen=True, eq=False)
class Inputs:
    """All that is known of a release before its table is read.

    Parameters
    ----------
    manifest
        What is declared of the release.
    schema
        The schema of the original; None if none was given.
    source
        The original as texts.
    hierarchies
        Of the hierarchical columns, by name.
    records
        The original as the manifest declares it.
    """

    manifest: Manifest
    schema: Schema | None
    source: TextTable
    hierarchies: dict[str, Nodes]
    records: Original


def read_inputs(
    original: str | Path | Any,
    release: str | Path | Any,
    manifest: Mapping[str, Any] | str | Path | None = None,
    *,
    schema: str | Path | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    columns: Sequence[str] | None = None,
    hierarchies: Mapping[str, Paths] | None = None,
) -> Inputs:
    """Read the manifest and the original of a release.

    Parameters
    ----------
    original, release, manifest, schema, separator, encoding, columns, hierarchies
        As in :func:`~anonymip.privacy.verify`; of the release only its path, for the manifest.

    Raises
    ------
    InputError
        As `verify` does.
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
    nodes = read_nodes(claims.quasi_identifiers, known.hierarchies, hierarchies or {})
    return Inputs(claims, given, source, nodes, encode_original(source, claims, given, nodes))
