"""Settings of all tests: the profile of Hypothesis, and the benchmark data files."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import is_hypothesis_test

from anonymip.instances import data_directory
from tests import profiles

pytest_plugins = ("tests.bound_watch",)

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED_FILES = ("adult/adult_arx_30162.csv", "census_ipums/person20_4attr.csv")


def holds_shared_data(folder: Path) -> bool:
    """Return whether the benchmark data files, not only their folder, are there."""
    return all((folder / file).is_file() for file in SHARED_FILES)


def shared_data_directory() -> Path | None:
    """Return the folder that the loaders read, or None if the files are not in it."""
    folder = data_directory()
    return folder if folder is not None and holds_shared_data(folder) else None


# The loaders' default depends on the working directory, which commands under test change.
BESIDE_REPOSITORY = REPOSITORY.parent / "shared" / "data"
if holds_shared_data(BESIDE_REPOSITORY):
    os.environ.setdefault("ANONYMIP_DATA", str(BESIDE_REPOSITORY))

# What collection makes stays: nothing looks for garbage among it.
gc.disable()

#: Tests that need most kernels.
COMPILING = ("tests/cli/", "tests/plugin/", "tests/test_examples.py")
#: Those that take many seconds each.
LONGEST = (
    *("tests/test_first_contact.py", "tests/runtime/test_kernel_cache.py"),
    *("tests/runtime/test_numba_internals.py", "tests/runtime/test_memory.py"),
    *("tests/test_writers.py", "tests/exact/test_failed_solver.py", "tests/solvers/test_lying.py"),
    "tests/methods/test_more_work.py",
)
DATA_ABSENT = "benchmark data files absent: set ANONYMIP_DATA to their folder"


@pytest.fixture(autouse=True)
def fewer_trials(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an everyday run make a part of the trials of local search: what they do is the same.

    Not where a test is marked `all_trials`: it asserts what they come to.
    """
    if request.node.get_closest_marker("all_trials") is None:
        profiles.shorten_trials(monkeypatch)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of the benchmark data files, for tests that are marked `shared_data`."""
    folder = shared_data_directory()
    assert folder is not None, DATA_ABSENT
    return folder


def case_of(item: pytest.Item) -> str:
    """Return the name of a case of a test, as in brackets behind the test's."""
    return item.name.partition("[")[2][:-1]


def is_thorough(item: pytest.Item) -> bool:
    """Return whether a thorough run alone runs a test; a mark may name the cases that it is of."""
    marks = item.iter_markers("thorough")
    return any(not mark.args or case_of(item) in mark.args for mark in marks)


def check_named_cases(items: list[pytest.Item]) -> None:
    """Raise UsageError if a mark `thorough` names a case that its test does not have."""
    tests = {item.nodeid.partition("[")[0]: item for item in items}
    cases = {(item.nodeid.partition("[")[0], case_of(item)) for item in items}
    for test, item in tests.items():
        for case in chain.from_iterable(mark.args for mark in item.iter_markers("thorough")):
            if (test, case) not in cases:
                raise pytest.UsageError(f"{test} has no case {case!r} to be thorough")


def crossings_left_out(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield of tests marked `crossed` what others of the same test have every value of."""
    families: dict[str, list[Any]] = {}
    for item in items:
        skipped = any(item.get_closest_marker(name) for name in ("skip", "skipif"))
        if item.get_closest_marker("crossed") is not None and not (skipped or is_thorough(item)):
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for family in families.values():
        kept = profiles.covering([item.callspec.params for item in family])
        yield from (item for place, item in enumerate(family) if place not in kept)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shorten an everyday run; skip the tests marked `shared_data` where their files are absent."""
    if not any("::" in name for name in config.args) and not config.getoption("lf", False):
        check_named_cases(items)
    # Each process gets one half and takes from the other's end what that has not begun: what takes
    # longest is in front. Commands need most kernels, which one process compiles for both; the
    # other one begins with what needs none or has a cache of its own.
    half = len(items) // 2
    first = [item for item in items if item.nodeid.startswith(COMPILING)]
    others = [item for item in items if not item.nodeid.startswith(COMPILING)]
    others.sort(key=lambda item: not item.nodeid.startswith(LONGEST))
    at_front = sum(item.nodeid.startswith(LONGEST) for item in others)
    rest = others[at_front:]
    until = max(0, half - len(first))
    items[:] = [*first, *rest[:until], *others[:at_front], *rest[until:]]
    for test in {getattr(item, "obj", None) for item in items}:
        if is_hypothesis_test(test):
            profiles.as_the_profile_asks(test)
    if profiles.NAME != "thorough":
        left_out = [item for item in items if is_thorough(item)]
        for item in chain(left_out, crossings_left_out(items)):
            item.add_marker(pytest.mark.skip("HYPOTHESIS_PROFILE=thorough runs it"))
    marked = [item for item in items if item.get_closest_marker("shared_data") is not None]
    if marked and shared_data_directory() is None:
        for item in marked:
            item.add_marker(pytest.mark.skip(DATA_ABSENT))


def pytest_collection_finish() -> None:
    """Let garbage collection leave alone what thousands of collected tests consist of."""
    gc.freeze()
    gc.enable()
