"""The search for sets under duals can be given a row, go on, and be asked for less."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from anonymip import Diversity, Microdata, Problem, census
from anonymip.enumeration.depth_first import (
    COMPLETE,
    CRAMPED,
    FULL,
    OUT_OF_NODES,
    begin_search,
    search_sets,
)
from anonymip.enumeration.merging import merge_rows
from anonymip.enumeration.search_inputs import capped_tables, search_rows, search_rules
from anonymip.enumeration.search_state import (
    Followers,
    SetsFound,
    new_followers,
    new_path,
    new_sets_found,
)

#: Members of a set, ascending.
Key = tuple[int, ...]


class Search:
    """A search for sets of k to `largest` rows of a problem, no two of which are one type."""

    def __init__(self, problem: Problem, duals: NDArray[np.float64], largest: int) -> None:
        self.problem = problem
        self.merged = merge_rows(problem, duals, merge=False)
        self.tables = capped_tables(problem)
        self.rows = search_rows(problem, self.merged, self.tables)
        self.rules = search_rules(problem, largest, pruned=True)
        words = int(self.rows.terms.set_words.max(initial=-1)) + 1
        self.path = new_path(self.tables, self.rows.diversity, problem.n, largest, words)
        self.followers = new_followers(2 * problem.n)
        self.found = new_sets_found(100_000, 1_000_000)
        self.cutoff = 0.0

    def begin(self, given: int, cutoff: float) -> None:
        """Begin with the empty set, or with one type that every set is to hold."""
        self.cutoff, n = cutoff, self.problem.n
        begin_search(
            self.tables, self.rows, self.rules, self.path, self.followers, n, given, cutoff
        )

    def go_on(self, max_nodes: int = 10**9) -> int:
        """Go on; make room for what follows whenever it is asked for."""
        while True:
            status = search_sets(
                self.tables,
                self.rows,
                self.rules,
                self.path,
                self.followers,
                self.found,
                self.cutoff,
                max_nodes,
            )
            if status != CRAMPED:
                return int(status)
            rows, losses = self.followers
            self.followers = Followers(np.append(rows, rows), np.append(losses, losses))

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
        frame = data.frame.assign(sensitive=np.arange(data.n) % 3)
        data = Microdata(frame, data.attributes, sensitive=("sensitive",))
    problem = Problem(data, k, diversity=diversity)
    return Search(problem, rng.uniform(-0.2, 1.5, problem.n), largest)


@pytest.mark.parametrize("seed", range(6))
def test_a_given_row_is_held_by_exactly_the_sets_found(seed: int) -> None:
    """Begun with a type, the search meets every cheap set that holds it once, and no other."""
    search = some_search(seed, 2, 4)
    every = search.reduced_costs(range(2, 5))
    cutoff = float(np.quantile(list(every.values()), 0.3))
    for given in range(search.problem.n):
        search.found.held[:] = 0
        search.begin(given, cutoff)
        assert search.go_on() == COMPLETE
        record = int(search.merged.records[given])
        found = search.sets()
        assert len(found) == len(set(found))
        assert set(found) == {s for s, cost in every.items() if record in s and cost < cutoff}


@pytest.mark.parametrize("diversity", [None, Diversity(l=2), Diversity(distinct=3)])
@pytest.mark.parametrize("seed", range(3))
def test_stops_change_nothing(seed: int, diversity: Diversity | None) -> None:
    """Node by node, and set by set, the search finds what it finds in one go."""
    whole, parts = (some_search(seed, 3, 5, diversity) for _ in range(2))
    for search in (whole, parts):
        search.begin(-1, 3.0)
    assert whole.go_on() == COMPLETE
    parts.found = SetsFound(*(array[:5] for array in parts.found))
    taken: list[Key] = []
    stops = set()
    while (status := parts.go_on(int(parts.path.nodes[0]) + 1)) != COMPLETE:
        stops.add(status)
        if status == FULL:
            assert parts.found.held[0] == 1
            taken += parts.sets()
            parts.found.held[:] = 0
    assert stops == {FULL, OUT_OF_NODES}
    assert taken + parts.sets() == whole.sets()
    assert parts.path.nodes[0] == whole.path.nodes[0]
    if diversity is not None:
        values = whole.problem.microdata.sensitive_codes
        every = whole.reduced_costs(range(3, 6))
        cheap = [s for s, cost in every.items() if cost < 3.0]
        assert set(whole.sets()) == {s for s in cheap if diversity.met_by(values[[list(s)]])[0]}
        assert len(whole.sets()) < len(cheap)
    assert len(whole.sets()) > 10


@pytest.mark.parametrize("seed", range(4))
def test_a_falling_cutoff_ends_at_the_cheapest_set(seed: int) -> None:
    """Where nothing has room, each set at hand lowers the cutoff: the last one is the cheapest."""
    search = some_search(seed, 3, 4)
    every = search.reduced_costs(range(3, 5))
    search.found = new_sets_found(0, 0)
    search.begin(-1, math.inf)
    best: Key = ()
    while search.go_on() == FULL:
        depth = int(search.path.depth[0])
        members = search.path.members[: depth + 1]
        best = tuple(sorted(search.merged.records[members].tolist()))
        assert every[best] < search.cutoff + 1e-9
        # A little less: the search adds up in another order.
        search.cutoff = every[best] - 1e-9
    assert every[best] == pytest.approx(min(every.values()), abs=1e-9)
