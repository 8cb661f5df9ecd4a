"""Classes of a release: rows that look alike, numbers of rows, classes of one sensitive value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from anonymip.privacy.arrays import Ints
from anonymip.privacy.reading.original import Original
from anonymip.privacy.reading.published import PublishedTable
from anonymip.privacy.reading.release_manifest import Manifest
from anonymip.privacy.reading.text_tables import TextColumn, TextTable, distinct


@dataclass(frozen=True, eq=False)
class ClassSizes:
    """The classes of a release, and its rows of stars only.

    `sizes`: (classes,) rows of each class. `first`: (classes,) its first row. `starred`: number of
    rows of stars only. `hidden`: the same if they were suppressed, so that they are counted as no
    class; else 0.
    """

    sizes: Ints
    first: Ints
    starred: int
    hidden: int

    @classmethod
    def of(cls, published: PublishedTable, manifest: Manifest) -> ClassSizes:
        """Count the rows of a release. Complexity: O(m n log n)."""
        _, first, sizes = np.unique(published.classes(), return_index=True, return_counts=True)
        stars = np.asarray(published.suppressed.all(axis=1), np.bool_)
        starred = int(stars.sum())
        if manifest.stars_are_class:
            return cls(sizes, first, starred, 0)
        visible = ~stars[first]
        return cls(sizes[visible], first[visible], starred, starred)

    @property
    def smallest(self) -> int | None:
        """The fewest rows that look alike, those of stars only included; None without rows."""
        return min([*self.sizes.tolist(), *([self.hidden] if self.hidden else [])], default=None)

    def problems(self, claims: Collection[int]) -> list[str]:
        """Return where fewer rows look alike than one of the claimed values of k."""
        problems = []
        for claimed in sorted(claims):
            small = int(np.sum(self.sizes < claimed))
            if small:
                problems.append(
                    f"{small} classes have fewer than {claimed} rows; the smallest has "
                    f"{int(self.sizes.min())}, among them published row "
                    f"{int(self.first[np.flatnonzero(self.sizes == self.sizes.min())].min()) + 1}."
                )
            # Who finds a person in no class looks among them.
            if 0 < self.hidden < claimed:
                problems.append(
                    f"{self.hidden} rows of stars only are fewer than {claimed}: who finds a "
                    "person in no class knows that one of them is hers."
                )
        return problems


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
    # Rows of stars alone are one level of a full domain, if all are.
    are_rows = manifest.recoding == "full-domain" and manifest.suppressed == table.rows
    # A mask may allow rows of stars alone, which are a class like any other.
    are_rows |= manifest.recoding == "pattern" and manifest.stars_are_class
    hidden = left_out.suppressed + (0 if are_rows else manifest.suppressed)
    if left_out.most is not None and hidden > left_out.most:
        problems.append(
            f"The manifest claims {hidden} suppressed records, of {left_out.most} that may be."
        )
    if manifest.is_cover and left_out.suppressed and manifest.recoding != "freeform":
        problems.append(
            f"The manifest claims that records are left out, which no cover {manifest.recoding} "
            "does."
        )
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


def homogeneous_classes(labels: Ints, values: Ints) -> tuple[int, int]:
    """Return how many classes share one value, and how many rows they have.

    `labels`: (n,) class of each row, 0, 1, ... without gaps. `values`: (n,) value of each row.
    Complexity: O(n).
    """
    sizes = np.bincount(labels)
    some = np.empty(len(sizes), np.int64)
    some[labels] = values
    mixed = np.zeros(len(sizes), np.bool_)
    mixed[labels[values != some[labels]]] = True
    return int(np.sum(~mixed)), int(sizes[~mixed].sum())


def homogeneous_finding(
    labels: Ints, sensitive: Mapping[str, TextColumn], claimed: Mapping[str, tuple[int, int]] | None
) -> tuple[str, list[str]]:
    """Return what is counted of classes that share a sensitive value, and where claims differ.

    `labels`: (n,) class of each row: rows that look alike, also those of stars only. Complexity:
    O(n) for each column.
    """
    found = {
        name: homogeneous_classes(labels, distinct(column.texts)[1])
        for name, column in sensitive.items()
    }
    counted = "; ".join(
        f"{classes} share one value of {name!r}, {rows} of {len(labels)} rows"
        for name, (classes, rows) in found.items()
    )
    problems = [
        f"The manifest counts {claimed[name][0]} classes with {claimed[name][1]} rows that share "
        f"one value of {name!r}; there are {classes} with {rows}."
        for name, (classes, rows) in found.items()
        if claimed is not None and claimed.get(name, (classes, rows)) != (classes, rows)
    ]
    if claimed is not None and set(claimed) != set(found):
        problems.append("The manifest counts classes of other columns than the sensitive ones.")
    return f"Classes that share one sensitive value are counted: {counted}.", problems
