"""Settings of all tests: the profile of Hypothesis, and the benchmark data files."""

from __future__ import annotations

import os
from pathlib import Path

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

DATA_ABSENT = "benchmark data files absent: set ANONYMIP_DATA to their folder"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of the benchmark data files, for tests that are marked `shared_data`."""
    folder = shared_data_directory()
    assert folder is not None, DATA_ABSENT
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shorten an everyday run; skip the tests marked `shared_data` where their files are absent."""
    # These need most kernels. One behind the other they are run by one process, where two would
    # compile the same kernels at the same time.
    items.sort(key=lambda item: not item.nodeid.startswith(("tests/cli/", "tests/plugin/")))
    for test in {getattr(item, "obj", None) for item in items}:
        if is_hypothesis_test(test):
            profiles.as_the_profile_asks(test)
    if profiles.NAME != "thorough":
        for item in items:
            if item.get_closest_marker("thorough") is not None:
                item.add_marker(pytest.mark.skip("HYPOTHESIS_PROFILE=thorough runs it"))
    marked = [item for item in items if item.get_closest_marker("shared_data") is not None]
    if marked and shared_data_directory() is None:
        for item in marked:
            item.add_marker(pytest.mark.skip(DATA_ABSENT))
