"""Whether the numbers of records and rows are those of the manifest."""

from __future__ import annotations

from anonymip.privacy.reading.manifests.manifest import Manifest
from anonymip.privacy.reading.original import Original
from anonymip.privacy.reading.published import PublishedTable
from anonymip.privacy.reading.tables import TextTable


def but_for(manifest: Manifest) -> str:
    """Return the words for the records that have no row, as the manifest claims; else none."""
    count = manifest.left_out.suppressed
    return f", but for {count} suppressed records that are left out" if count else ""


def count_problems(table: TextTable, manifest: Manifest, records: Original) -> list[str]:
    """Return where the numbers of records, rows and columns contradict each other."""
    left_out, problems = manifest.left_out, []
    rows = manifest.n - left_out.suppressed
    if table.rows != rows:
        problems.append(f"The manifest claims {rows} rows; the release has {table.rows}.")
    if not table.rows:
        problems.append("The release has no rows.")
    if table.rows + left_out.suppressed != records.n:
        problems.append(
            f"The release has {table.rows} rows for {records.n} original records to publish"
            f"{but_for(manifest)}."
        )
    if manifest.is_cover and left_out.suppressed:
        problems.append("The manifest claims that records are left out, which no cover does.")
    if left_out.missing not in (None, records.dropped):
        problems.append(
            f"The manifest claims that {left_out.missing} records with missing values are left "
            f"out; of the original it is {records.dropped}."
        )
    if manifest.m != len(manifest.quasi_identifiers):
        problems.append("The manifest's m is not its number of quasi-identifiers.")
    return problems


def suppressed_problems(published: PublishedTable, manifest: Manifest) -> list[str]:
    """Return whether rows of stars only are more or fewer than the manifest claims."""
    found = int(published.suppressed.all(axis=1).sum())
    if found == manifest.suppressed:
        return []
    return [f"The manifest claims {manifest.suppressed} suppressed rows; there are {found}."]
