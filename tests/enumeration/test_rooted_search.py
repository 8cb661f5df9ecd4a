"""The search for sets under duals can be given a row, go on, and be asked for less."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from anonymip import Diversity, Problem, census
from anonymip.enumeration.merging import capped_tables, merge_rows, search_rows
from anonymip.enumeration.pricing import UNLIMITED, cuts_of_rows
from anonymip.enumeration.rooted_search import (
    COMPLETE,
    CRAMPED,
    FULL,
    OUT_OF_NODES,
    ROOT,
    SIZE,
    ColumnsFound,
    RootedFollowers,
    RootedRules,
    RootedSearch,
    Roots,
    new_rooted_path,
    search_columns,
)
from tests.by_hand import with_illness

#: Members of a set, ascending.
Key = tuple[int, ...]


class Search:
    """A search for sets of k to `largest` rows of a problem, no two of which are one type."""

    def __init__(self, problem: Problem, duals: NDArray[np.float64], largest: int) -> None:
        self.problem, self.largest = problem, largest
        self.merged = merge_rows(problem, duals, merge=False)
        self.rows = search_rows(problem, self.merged, capped_tables(problem))
        self.cuts = cuts_of_rows(problem.n, None)
        self.path = new_rooted_path(self.rows, largest)
        self.followers = RootedFollowers.of_sizes(room=2 * problem.n)
        self.found = ColumnsFound.of_sizes(columns=1_000, room=10_000)
        self.stops: list[int] = []

    def begin(self, roots: list[int], first: list[int], cutoff: float, keep: int) -> None:
        """Begin with roots, each of which may be joined by all types from some place on."""
        n = self.problem.n
        k = self.problem.k
        self.rules = RootedRules(k, self.largest, True, True, keep, UNLIMITED, False)
        below = np.full(len(roots), cutoff)
        ends = np.full(len(roots), n)
        self.roots = Roots(
            np.array(roots), np.array(first), ends, np.arange(n), below, np.zeros(len(roots))
        )
        self.path.place[ROOT], self.path.place[SIZE] = -1, self.largest
        self.path.nodes[:] = 0
        self.found.held[:] = 0

    def go_on(self, max_nodes: int = 10**9) -> int:
        """Go on; make room whenever it is asked for."""
        while True:
            given = self.rows, self.cuts, self.rules, self.roots
            search = RootedSearch(*given, self.path, self.followers, self.found)
            status = search_columns(search, max_nodes)
            self.stops.append(int(status))
            if status == CRAMPED:
                self.followers = RootedFollowers(*(np.append(a, a[:9]) for a in self.followers))
            elif status == FULL:
                held, *arrays = self.found
                self.found = ColumnsFound(held, *(np.append(a, a[:99]) for a in arrays))
            else:
                return int(status)

    def sets(self) -> list[Key]:
        """Return the sets found, as original records."""
        count, filled = self.found.held
        ends = np.cumsum(self.found.sizes[:count])
        parts = np.split(self.found.members[:filled], ends[:-1]) if count else []
        return [tuple(sorted(self.merged.records[part].tolist())) for part in parts]

    def reduced_costs(self, sizes: range) -> dict[Key, float]:
        """Return the reduced costs of all sets of these sizes, by the objective's own function."""
        duals = np.empty(self.problem.n)
        duals[self.merged.records] = self.rows.duals
        every = {}
        for size in sizes:
            sets = np.array(list(combinations(range(self.problem.n), size)))
            costs = self.problem.compiled.class_losses(sets) - duals[sets].sum(axis=1)
            every.update(zip(map(tuple, sets.tolist()), costs.tolist(), strict=True))
        return every


def some_search(seed: int, k: int, largest: int, diversity: Diversity | None = None) -> Search:
    """Return a search under random duals."""
    data, rng = census(11, 4, seed=seed), np.random.default_rng(seed)
    if diversity is not None:
        data = with_illness(data, np.arange(data.n) % 3)
    problem = Problem(data, k, diversity=diversity)
    return Search(problem, rng.uniform(-0.2, 1.5, problem.n), largest)


@pytest.mark.parametrize("seed", range(6))
def test_a_root_is_held_by_exactly_the_sets_found(seed: int) -> None:
    """Where all types may join a root, every cheap set that holds it is met once, and no other."""
    search = some_search(seed, 2, 4)
    every = search.reduced_costs(range(2, 5))
    cutoff = float(np.quantile(list(every.values()), 0.3))
    for root in range(search.problem.n):
        search.begin([root], [0], cutoff, UNLIMITED)
        assert search.go_on() == COMPLETE
        record = int(search.merged.records[root])
        found = search.sets()
        assert len(found) == len(set(found))
        assert set(found) == {s for s, cost in every.items() if record in s and cost < cutoff}


@pytest.mark.parametrize("keep", [2, UNLIMITED])
@pytest.mark.parametrize("diversity", [None, Diversity(l=2), Diversity(distinct=3)])
@pytest.mark.parametrize("seed", range(3))
def test_stops_change_nothing(seed: int, diversity: Diversity | None, keep: int) -> None:
    """Node by node, and with room for few sets, the search finds what it finds in one go."""
    whole, parts = (some_search(seed, 3, 5, diversity) for _ in range(2))
    places = list(range(whole.problem.n))
    for search in (whole, parts):
        search.begin(places, places, 3.0, keep)
    assert whole.go_on() == COMPLETE
    parts.found = ColumnsFound.of_sizes(columns=2, room=10)
    while parts.go_on(int(parts.path.nodes[0]) + 1) != COMPLETE:
        pass
    assert {FULL, OUT_OF_NODES} <= set(parts.stops)
    assert parts.sets() == whole.sets()
    assert parts.roots.least.tolist() == whole.roots.least.tolist()
    assert parts.path.nodes[0] == whole.path.nodes[0]
    if keep == UNLIMITED:
        every = whole.reduced_costs(range(3, 6))
        wanted = {s for s, cost in every.items() if cost < 3.0}
        if diversity is not None:
            values = whole.problem.microdata.sensitive_codes
            diverse = {s for s in wanted if diversity.met_by(values[[list(s)]])[0]}
            assert len(diverse) < len(wanted)
            wanted = diverse
        assert set(whole.sets()) == wanted
    assert len(whole.sets()) > 5


def test_what_may_join_finds_room() -> None:
    """Deep sets have more that may join them than there was room for."""
    search = some_search(1, 9, 11)
    search.begin([0], [0], math.inf, UNLIMITED)
    assert search.go_on() == COMPLETE
    assert CRAMPED in search.stops
    assert len(search.sets()) == math.comb(10, 8) + math.comb(10, 9) + 1
