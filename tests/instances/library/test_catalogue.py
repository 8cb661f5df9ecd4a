"""Tests of the library of instances: its entries, their tables, and what may replace a figure."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from anonymip import INSTANCES, AnonymipError, Attribute, InputError, Microdata, load_instance
from anonymip.instances.library.catalogue import (
    PROTOTYPE,
    LibraryEntry,
    better,
    closer,
    families,
    family_text,
    find_entry,
    library,
    read_family,
    table_digest,
)
from anonymip.objectives import OBJECTIVES
from anonymip.recodings.registry import RECODINGS

#: Entries of tables that need no files, and are no larger than they must be.
BUILT_IN = [
    name
    for name, entry in library().items()
    if entry.records <= 100 and not (entry.table in INSTANCES and INSTANCES[entry.table].files)
]
OF_FILES = sorted(
    {entry.table for entry in library().values() if entry.table in INSTANCES}
    - {name for name, instance in INSTANCES.items() if not instance.files}
)
ENTRY = LibraryEntry(
    "one", "person20", 3, "classes", "gcp", "0" * 64, 20, None, 14.0, "x", 13.0, "y"
)


@cache
def table(name: str) -> Microdata:
    """Return a whole table, loaded once."""
    return load_instance(name)


def test_the_library_covers_all_recodings_and_sizes() -> None:
    """At least 60 entries from 7 records or fewer to 100,000, each of things that exist.

    Of each a release is known, and who found it.
    """
    entries = library().values()
    assert len(entries) >= 60
    assert len(entries) == sum(len(read_family(file)) for file in families())
    assert {entry.recoding for entry in entries} >= set(RECODINGS)
    assert {entry.objective for entry in entries} <= set(OBJECTIVES)
    sizes = [entry.records for entry in entries]
    assert min(sizes) <= 7
    assert max(sizes) == 100_000
    for entry in entries:
        assert entry.k >= 2
        assert entry.loss is not None, entry.name
        assert entry.loss_by is not None, entry.name
        assert (entry.bound is None) == (entry.bound_by is None)


@pytest.mark.parametrize("name", BUILT_IN)
def test_tables_that_need_no_files_are_those_of_the_figures(name: str) -> None:
    """The digest holds, and the table is loaded by the entry's name like any other."""
    entry = find_entry(name)
    part = load_instance(f"library:{name}")
    assert part.n == entry.records
    assert table_digest(part) == entry.sha256


@pytest.mark.thorough("census-100k")
@pytest.mark.shared_data
@pytest.mark.parametrize("name", OF_FILES)
def test_tables_of_files_are_those_of_the_figures(name: str) -> None:
    """The rows are drawn as the entry says, from the file where it lies."""
    for entry in library().values():
        if entry.table == name:
            part = entry.rows_of(table(name))
            assert part.n == entry.records
            if entry.permutation is not None:
                order = np.random.default_rng(entry.permutation).permutation(table(name).n)
                expected = table(name).frame.iloc[order[: entry.records]]
                assert part.frame.to_numpy().tolist() == expected.to_numpy().tolist()


def test_another_table_is_refused() -> None:
    """One value, one domain or one weight beside what the figures are of."""
    data = load_instance("person20")
    entry = find_entry("person20-k3")
    frame = data.frame.copy()
    frame.loc[0, "AGE"] += 1
    first, *others = data.attributes
    wider = Attribute("AGE", domain=(0, 100), integer=True)
    heavier = Attribute("AGE", domain=first.domain, integer=True, weight=2.0)
    for other in (
        Microdata(frame, data.attributes),
        Microdata(data.frame, (wider, *others)),
        Microdata(data.frame, (heavier, *others)),
        data.take(np.arange(19, -1, -1)),
    ):
        with pytest.raises(InputError, match=r"person20 is not the one .* entry person20-k3"):
            entry.rows_of(other)
    assert entry.rows_of(data) is data


def test_unknown_entries_are_refused() -> None:
    """The message says where all are listed."""
    with pytest.raises(InputError, match="no entry 'census-9'") as caught:
        load_instance("library:census-9")
    assert "leaderboard --known" in (caught.value.remedy or "")


def test_only_better_figures_replace_those_known() -> None:
    """A lower loss and a higher bound; equal ones change nothing."""
    assert better(ENTRY, 14.0, "me") is ENTRY
    assert better(ENTRY, 14.5, "me") is ENTRY
    assert closer(ENTRY, 13.0, "me") is ENTRY
    found = closer(better(ENTRY, 13.9, "me"), 13.5, "me too")
    assert (found.loss, found.loss_by) == (13.9, "me")
    assert (found.bound, found.bound_by) == (13.5, "me too")
    assert not found.is_proven
    assert found.gap == pytest.approx(0.4 / 13.9)
    assert closer(found, 13.9, "me").is_proven
    unknown = replace(ENTRY, loss=None, loss_by=None, bound=None, bound_by=None)
    assert unknown.gap is None
    assert better(unknown, 20.0, "me").loss == 20.0
    assert closer(unknown, 1.0, "me").bound == 1.0


def test_what_this_package_finds_replaces_what_was_handed_down() -> None:
    """Such figures are rounded: one as good to their digits is taken, a worse one is not."""
    handed = replace(ENTRY, loss=14.0, loss_by=PROTOTYPE, bound=14.0, bound_by=PROTOTYPE)
    assert better(handed, 14.00004, "me").loss_by == "me"
    assert better(handed, 14.1, "me") is handed
    assert closer(handed, 13.99996, "me").bound_by == "me"
    assert closer(handed, 13.9, "me") is handed


def test_a_bound_above_the_loss_is_an_error() -> None:
    """Both cannot be true, whoever says so."""
    with pytest.raises(AnonymipError, match=r"bound 15 \(me\) exceeds the loss 14 \(x\)"):
        closer(ENTRY, 15.0, "me")


def test_families_are_written_as_they_are_read(tmp_path: Path) -> None:
    """The text of every file comes back, its first comments too."""
    for file in families():
        copy = tmp_path / file.name
        copy.write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
        assert family_text(copy, read_family(copy)) == file.read_text(encoding="utf-8")
