"""Tests of what a manifest promises beside k: diversity and caps; every breach is caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip.errors import InputError


def test_the_promises_are_checked(townspeople: Any) -> None:
    """A release with nodes, a root, diversity and caps passes; what is left is said."""
    found = townspeople.verify()
    assert found.ok, found.problems
    assert (found.k_reached, found.classes, found.suppressed, found.left_out) == (2, 3, 0, 1)
    # Ages: 8, 4, 3 of 100; towns: North has 3 of 5 values, Coast 2, the root all.
    assert found.ncp == pytest.approx((3 * 8 + 2 * 4 + 2 * 3) / 100 + 3 * 0.5 + 2 * 0.25 + 2 + 2)
    assert set(townspeople.release["town"]) == {"North", "Coast", "\\*"}
    told = " ".join(found.checks)
    assert "Every class has the promised diversity" in told
    assert "No cell exceeds its cap" in told
    assert "Not checked: which 1 records were suppressed and left out" in told
    assert "Not checked: that values of 'town' stay apart" in told


def wrong_branch(written: Any) -> None:
    """Publish the node of another branch for a whole class."""
    written.release["town"] = written.release["town"].replace("North", "South")
    written.claim_loss(written.manifest["ncp"] - 3 * 0.25)


def node_too_low(written: Any) -> None:
    """Publish a node that covers only some members of the class."""
    written.release["town"] = written.release["town"].replace("North", "Hills")
    written.claim_loss(written.manifest["ncp"] - 3 * 0.25)


def leaf_for_a_class(written: Any) -> None:
    """Publish one member's value for the whole class."""
    written.release["town"] = written.release["town"].replace("Coast", "Dover")
    written.claim_loss(written.manifest["ncp"] - 2 * 0.25)


def node_higher_than_claimed(written: Any) -> None:
    """Publish a higher node, and claim the loss of the lower one."""
    written.release["town"] = written.release["town"].replace("Coast", "South")
    written.release["town"] = written.release["town"].replace("South", "\\*")


def unknown_node(written: Any) -> None:
    """Publish a label that the hierarchy does not have."""
    written.release["town"] = written.release["town"].replace("Coast", "Beach")


def set_in_the_place_of_a_node(written: Any) -> None:
    """Publish the values themselves."""
    written.release["town"] = written.release["town"].replace("Coast", "{Dover|Elham}")


def star_in_the_place_of_the_root(written: Any) -> None:
    """Write the root without its backslash: that is a suppressed cell, which costs 1 as well."""
    written.release.loc[written.release["town"] == "\\*", "age"] = "*"
    written.release["town"] = written.release["town"].replace("\\*", "*")


def record_that_is_left_out(written: Any) -> None:
    """Publish the record that the manifest says is left out."""
    written.release.loc[len(written.release)] = ["99", "Elham", "flu"]


def needless_backslash(written: Any) -> None:
    """Escape what needs no escape: a second spelling would tell rows of a class apart."""
    row = int((written.release["town"] == "Coast").idxmax())
    written.release.loc[row, "town"] = "\\Coast"


def lone_low_node(written: Any) -> None:
    """Publish one row of a class by its own, lower node."""
    row = int((written.release["town"] == "Coast").idxmax())
    written.release.loc[row, "town"] = "Dover"
    written.claim_loss(written.manifest["ncp"] - 0.25)


def claim_of_more_distinct_values(written: Any) -> None:
    """Claim three sensitive values in every class."""
    written.manifest["diversity"] = {"l": 1, "distinct": 3}


def claim_of_smaller_shares(written: Any) -> None:
    """Claim that no value makes up more than half of a class of three."""
    written.manifest["diversity"] = {"l": 2, "distinct": 1}


def claim_of_vanishing_shares(written: Any) -> None:
    """Claim an l whose products with sizes no whole number of 64 bits holds."""
    written.manifest["diversity"] = {"l": 2.0**62, "distinct": 1}


def class_without_diversity(written: Any) -> None:
    """Make a whole class share one sensitive value, in the original too."""
    rows = written.release["town"] == "Coast"
    written.release.loc[rows, "disease"] = "flu"
    written.original.loc[[3, 4], "disease"] = "flu"


def diversity_of_nothing(written: Any) -> None:
    """Claim a diversity without a sensitive column."""
    written.manifest["columns"][2]["role"] = "keep"


def range_above_its_cap(written: Any) -> None:
    """Claim a cap that a range exceeds."""
    written.manifest["limits"][0]["most"] = 7.5


def node_above_its_cap(written: Any) -> None:
    """Claim a cap on the level that the root exceeds."""
    written.manifest["limits"][1]["most"] = 2


def kind_of_sets(written: Any) -> None:
    """Declare the nodes to be values."""
    written.manifest["columns"][1].update(kind="categorical", publish="set")


def hierarchy_of_other_groups(written: Any) -> None:
    """Verify with a hierarchy in which the town of a record lies elsewhere."""
    written.hierarchies["town"][2] = ["Corby", "{Lakes}", "South", "*"]


def hierarchy_without_a_value(written: Any) -> None:
    """Verify with a hierarchy that lacks a value of the original."""
    del written.hierarchies["town"][1]


@pytest.mark.parametrize(
    ("corrupt", "sentence"),
    [
        (wrong_branch, "fit into only"),
        (node_too_low, "fit into only"),
        (leaf_for_a_class, "fits into no published row"),
        (node_higher_than_claimed, "claims ncp"),
        (unknown_node, "the cell is no node of the hierarchy"),
        (set_in_the_place_of_a_node, "needs a backslash in front"),
        (star_in_the_place_of_the_root, "claims 0 suppressed rows; there are 2"),
        (record_that_is_left_out, "claims 7 rows; the release has 8"),
        (needless_backslash, "a backslash that escapes nothing"),
        (lone_low_node, "classes have fewer than 2 rows"),
        (claim_of_more_distinct_values, "3 classes lack the promised diversity of 'disease'"),
        (claim_of_smaller_shares, "1 classes lack the promised diversity of 'disease'"),
        (claim_of_vanishing_shares, "3 classes lack the promised diversity of 'disease'"),
        (class_without_diversity, "1 classes lack the promised diversity of 'disease'"),
        (diversity_of_nothing, "names no sensitive column"),
        (range_above_its_cap, "Column 'age', published row 2: the cell exceeds its cap"),
        (node_above_its_cap, "Column 'town', published row 1: the cell exceeds its cap"),
        (kind_of_sets, "leaves the domain"),
        (hierarchy_of_other_groups, "fit"),
        (hierarchy_without_a_value, "outside the declared domain"),
    ],
)
def test_every_breach_is_caught(
    townspeople: Any, corrupt: Callable[[Any], None], sentence: str
) -> None:
    """Each corruption fails the release and is named."""
    corrupt(townspeople)
    found = townspeople.verify()
    assert not found.ok
    assert any(sentence in problem for problem in found.problems), found.problems
    for value in ("Arden", "Coast", "flu", "gout"):
        assert value not in " ".join(found.problems)


def test_the_hierarchy_must_be_given(townspeople: Any) -> None:
    """Nodes mean nothing without their hierarchy: that is bad input, no failed release."""
    with pytest.raises(InputError, match=r"'town' .* not given"):
        townspeople.verify(hierarchies=None)
    townspeople.manifest["columns"][1]["domain"] = ["Arden"]
    with pytest.raises(InputError, match="write null"):
        townspeople.verify()


@settings(max_examples=200)
@given(st.data())
def test_diversity_agrees_with_counting(write_release: Any, data: st.DataObject) -> None:
    """A release has a diversity exactly if counting value by value says so, ties included."""
    n = data.draw(st.integers(2, 9))
    half = data.draw(st.integers(0, n - 2))
    labels = [0 if row < half and half >= 2 else 1 for row in range(n)]
    labels[-1] = data.draw(st.sampled_from([-1, 1])) if labels.count(1) > 2 else labels[-1]
    values = st.lists(st.sampled_from("xyz"), min_size=n, max_size=n)
    frame = pd.DataFrame(
        {"a": ["v"] * half + ["w"] * (n - half), "s": data.draw(values), "t": data.draw(values)},
        dtype=object,
    )
    kinds = {"a": {"domain": ["v", "w"]}}
    written = write_release(frame, kinds, labels, sensitive=["s", "t"])
    share = data.draw(st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(10, 3), Fraction(2)]))
    count = data.draw(st.integers(1, 3))
    written.manifest["diversity"] = {"l": float(share), "distinct": count}
    holds = True
    if data.draw(st.booleans()):
        written.leave_out()
    for cell in set(written.release["a"]):
        for name in ("s", "t"):
            counts = Counter(written.release[name][written.release["a"] == cell])
            holds &= len(counts) >= count
            holds &= max(counts.values()) * share <= sum(counts.values())
    found = written.verify()
    assert found.ok == (holds and (written.release["a"] == "*").sum() != 1)
    lone = (written.release["a"] == "*").sum() == 1
    assert any("lack the promised diversity" in problem for problem in found.problems) != holds
    assert any("rows of stars only are fewer" in problem for problem in found.problems) == lone


def test_caps_on_sets_count_values(write_release: Any) -> None:
    """A set may list as many values as its cap says."""
    frame = pd.DataFrame({"c": list("abca"), "z": ["1", "2", "3", "9"]}, dtype=object)
    kinds = {"c": {}, "z": {"kind": "numeric", "publish": "set"}}
    written = write_release(frame, kinds, [0, 0, 0, 0])
    caps = [{"attribute": name, "rule": "cap", "most": most} for name, most in (("c", 3), ("z", 4))]
    written.manifest["limits"] = caps
    assert written.verify().ok
    for cap in caps:
        cap["most"] -= 1
    found = written.verify().problems
    assert [problem.split(",")[0] for problem in found] == ["Column 'c'", "Column 'z'"]
