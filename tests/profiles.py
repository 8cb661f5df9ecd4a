"""How many examples Hypothesis tries: all that a test names, or in an everyday run a part of them.

HYPOTHESIS_PROFILE names the profile. A test names the number of a thorough run, as
`@settings(max_examples=60)`; examples that `@example` pins are tried in every run. Of the
combinations of a test that is marked `crossed`, an everyday run tries as many as have every value.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import settings

from anonymip.heuristics.local_search import iterated

#: The everyday run tries this part of the examples of a test, or `LEAST` of them.
PART, LEAST = 12, 4
#: Where Hypothesis keeps the settings of a test; it has no public name for it.
_SETTINGS = "_hypothesis_internal_use_settings"
#: The profile of this run.
NAME = os.environ.get("HYPOTHESIS_PROFILE", "ci")

# Compilation makes the first example slow: no deadline. Runs repeat exactly unless asked to roam.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("thorough", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None)
settings.load_profile(NAME)


def everyday(most: int) -> int:
    """Return how many of so many examples an everyday run tries."""
    return min(most, max(LEAST, most // PART))


def thorough(*values: object) -> list[Any]:
    """Return values of a parameter that only a thorough run tries."""
    return [pytest.param(value, marks=pytest.mark.thorough) for value in values]


def tried(most: int) -> int:
    """Return how many of so many examples of its own making a test tries in this run."""
    return everyday(most) if NAME == "ci" else most


def shorten_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an everyday run make a tenth of the trials of local search, whatever the effort."""
    if NAME == "ci":
        fewer = {effort: (a // 10, b // 10) for effort, (a, b) in iterated._STEPS.items()}
        monkeypatch.setattr(iterated, "_STEPS", fewer)


def shorten(test: Any) -> None:
    """Have a test of Hypothesis try what an everyday run tries."""
    asked: settings = getattr(test, _SETTINGS, settings.default)
    setattr(test, _SETTINGS, settings(asked, max_examples=everyday(asked.max_examples)))


def covering(combinations: Sequence[Mapping[str, object]]) -> list[int]:
    """Return places of a few combinations that have every value of every parameter.

    Those come first that bring most new values: of equally many values, the diagonal.
    """
    values = [
        {(name, value if isinstance(value, Hashable) else id(value)) for name, value in one.items()}
        for one in combinations
    ]
    seen: set[tuple[str, object]] = set()
    kept: list[int] = []
    for new in range(max(map(len, values), default=0), 0, -1):
        for place, one in enumerate(values):
            if len(one - seen) >= new:
                seen |= one
                kept.append(place)
    return sorted(kept)


def as_the_profile_asks(test: Any) -> Any:
    """Return a test that another test makes and runs: shortened in an everyday run."""
    if NAME == "ci":
        shorten(test)
    return test
