"""Chains of nodes above a value: where the loss rises, and what two values share."""

from __future__ import annotations

from itertools import combinations

import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import build, set_start
from anonymip.assignments import Classes
from anonymip.models.parts.equivalence_context import Context
from tests.brute_force import Column
from tests.random_problems import LOSSES, TREES, Case


def context_of(values: tuple[str, ...], tree: str, loss: str = "leaf") -> Context:
    """Return the context of a table of one hierarchical column."""
    column = Column(values, False, as_set=True, paths=TREES[tree])
    return Context.of(Case((column,), 2, LOSSES[loss]).problem())


def test_chains_by_hand() -> None:
    """Uneven tree: p below the root; q and r below qr, qrs; s below qrs."""
    context = context_of(("p", "q", "r", "s"), "uneven")
    (one,) = context.ancestors
    tree = context.problem.microdata.attributes[0].hierarchy.tree
    labels = {
        level: [tree.labels[node] for node in chain]
        for level, chain in zip(context.problem.microdata.levels[0], one.chains, strict=True)
    }
    assert labels == {
        "p": ["*"],
        "q": ["qr", "qrs", "*"],
        "r": ["qr", "qrs", "*"],
        "s": ["qrs", "*"],
    }
    steps = dict(zip(context.problem.microdata.levels[0], one.steps, strict=True))
    assert steps["q"] == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert steps["p"] == pytest.approx((1.0,))


def test_nodes_of_absent_values_do_not_matter() -> None:
    """Without r no cell with q publishes qr; without p none publishes the root."""
    (one,) = context_of(("q", "s", "q", "s"), "uneven").ancestors
    assert [len(chain) for chain in one.chains] == [1, 1]
    assert one.longest == 1


@settings(max_examples=60)
@given(tree=st.sampled_from(sorted(TREES)), loss=st.sampled_from(["leaf", "hierarchy"]))
def test_pairs_share_what_lies_above(tree: str, loss: str) -> None:
    """The loss of a pair is that of the node it reaches; above it both chains rise alike."""
    values = tuple(sorted(path[0] for path in TREES[tree]))
    context = context_of(values, tree, loss)
    tables = context.tables
    for one in context.ancestors:
        size = len(one.chains)
        losses = tables.pair_losses.reshape(size, size)
        for low, high in combinations(range(size), 2):
            assert one.above(low, high) == one.above(high, low)
            for value, other in ((low, high), (high, low)):
                node = one.reached(value, other)
                chain = one.chains[value]
                until = 0 if node is None else chain.index(node) + 1
                assert chain[until:] == one.above(value, other)
                reached = one.alone[value] + sum(one.steps[value][:until])
                assert reached == pytest.approx(losses[low, high])
            rest = [
                one.steps[v][len(one.steps[v]) - len(one.above(low, high)) :] for v in (low, high)
            ]
            assert rest[0] == pytest.approx(rest[1])


def test_start_reaches_the_published_node() -> None:
    """A class of q and r publishes qr, not what lies above."""
    column = Column(("q", "r", "p", "s"), False, as_set=True, paths=TREES["uneven"])
    model = build(Case((column,), 2, LOSSES["leaf"]).problem())
    set_start(model, Classes.from_groups([[0, 1], [2, 3]], 4))
    reached = [
        sum(pyo.value(model.reaches[row]) for row in model.reaches if row[0] == i) for i in range(4)
    ]
    assert reached == [1, 1, 1, 2]
