"""Tests of the synthetic census tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip.errors import InputError
from anonymip.heuristics.classes.greedy_search import greedy_search
from anonymip.heuristics.classes.initial import initial
from anonymip.heuristics.classes.k_member import k_member
from anonymip.heuristics.classes.mondrian import mondrian
from anonymip.heuristics.classes.ordered_cut import ordered_cut
from anonymip.instances import Microdata, census, load_instance
from anonymip.problem import Problem
from anonymip.solution import Solution
from tests import profiles

FIRST_EIGHT = ("SEX", "AGE", "MARST", "RACE", "BPL", "HIGRADE", "CLASSWKRD", "OCCSCORE")

#: Liang & Samavi 2020, Table 9, 100,000 records.
VARIANCES_8 = (0.25, 227.14, 4.83, 0.57, 3412.27, 7.39, 11.31, 78.50)
#: Liang & Samavi 2020, Table 3; Birthplace ends at 430 in the domain file of the extract.
DOMAINS_8 = ((1, 2), (16, 90), (1, 6), (1, 7), (1, 430), (4, 20), (13, 29), (4, 79))
CARDINALITIES_8 = (2, 75, 6, 7, 83, 17, 7, 47)

#: Liang & Samavi 2020, Table 10, in the order of the generator: variance, lowest, highest.
EXTENDED = {
    "SEX": (0.241520454, 1, 2),
    "AGE": (100.447806, 16, 90),
    "MARST": (1.167666581, 1, 6),
    "RACE": (0.393475514, 1, 7),
    "BPL": (4471.679274, 1, 465),
    "HIGRADE": (8.217952835, 1, 23),
    "CLASSWKRD": (11.5164085, 13, 29),
    "OCCSCORE": (81.01775489, 4, 79),
    "FAMUNIT": (0.004533004, 1, 3),
    "FAMSIZE": (1.442669131, 2, 16),
    "ELDCH": (58.72416437, 0, 90),
    "YNGCH": (56.41184578, 0, 90),
    "RELATE": (0.824784829, 1, 12),
    "BIRTHQTR": (1.252327406, 1, 4),
    "BIRTHYR": (100.3407262, 1889, 1963),
    "MARRNO": (0.148862341, 0, 2),
    "AGEMARR": (20.55224999, 0, 90),
    "CHBORN": (4.679614458, 0, 13),
    "YRSUSA": (0.63840967, 0, 5),
    "LANGUAGE": (30.45895319, 1, 96),
    "CLASSWKR": (0.068740375, 1, 2),
    "WKSWORK": (168.0059844, 0, 52),
    "HRSWORK": (140.8818287, 1, 99),
    "UHRSWORK": (156.7482934, 0, 99),
    "WKSUNEMP": (26.31284308, 0, 52),
    "INCWAGE": (98538554.92, 0, 75000),
    "INCOTHER": (2669021.007, 0, 75000),
    "MIGRATE5": (0.459946975, 1, 4),
    "PWSTATE": (94.98776039, 1, 80),
    "TRANWORK": (39.7001238, 11, 70),
    "RIDERS": (0.708769336, 0, 7),
    "TRANTIME": (239.9953666, 0, 99),
    "CITIZEN": (0.13065803, 0, 3),
    "YRIMM": (0.68959079, 0, 6),
    "DISABWRK": (0.033916173, 1, 2),
}

#: Attributes of the population of families; an everyday run is content with some.
WIDE = 35 if profiles.NAME == "thorough" else 12

HEURISTICS: dict[str, Callable[[Problem], Solution]] = {
    "initial": initial,
    "ordered-cut": ordered_cut,
    "greedy-search": greedy_search,
    "k-member": k_member,
    "mondrian, strict": mondrian,
    "mondrian, relaxed": partial(mondrian, strict=False),
}


@pytest.fixture(scope="module")
def workers() -> Microdata:
    """Return a large table of eight attributes."""
    return census(20_000, 8, seed=1)


@pytest.fixture(scope="module")
def families() -> Microdata:
    """Return a large table of all attributes: rare values need many records to have a variance."""
    return census(60_000, 35, seed=1)


def correlation(data: Microdata, first: str, second: str) -> float:
    """Return the rank correlation of two attributes."""
    return data.frame[first].corr(data.frame[second], method="spearman")


def test_same_arguments_give_the_same_table() -> None:
    """The table is a function of n, m and seed, and the seed matters."""
    first, again, other = (census(200, WIDE, seed=seed).frame for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_first_attributes_do_not_depend_on_m() -> None:
    """A narrower table of the same population is the left part of a wider one."""
    for narrow, wide in ((3, 8), (9, WIDE)):
        expected = census(50, wide, seed=2).frame.iloc[:, :narrow]
        pd.testing.assert_frame_equal(census(50, narrow, seed=2).frame, expected)


def test_kinds_do_not_change_the_values() -> None:
    """Mixed and numeric tables hold the same records."""
    mixed = census(300, WIDE, seed=5, mixed=True)
    assert np.array_equal(mixed.values, census(300, WIDE, seed=5).values)


def test_numeric_declarations_are_those_of_the_extract() -> None:
    """All attributes are whole numbers with the domains of the published domain file."""
    data = census(10)
    assert data.names == FIRST_EIGHT
    assert tuple(attribute.domain for attribute in data.attributes) == DOMAINS_8
    assert all(attribute.integer and attribute.is_numeric for attribute in data.attributes)


def test_mixed_leaves_age_and_education_numeric() -> None:
    """The other six attributes are categorical with the observed values as domain."""
    data = census(500, mixed=True)
    assert [a.name for a in data.attributes if a.is_numeric] == ["AGE", "HIGRADE"]
    for column, attribute in enumerate(data.attributes):
        if not attribute.is_numeric:
            assert attribute.domain is None
            assert data.domain_size(column) == data.frame[attribute.name].nunique()


def test_variances_of_eight_attributes(workers: Microdata) -> None:
    """Variances lie within 15 % of the published ones."""
    found = np.var(workers.values, axis=0)
    np.testing.assert_allclose(found, VARIANCES_8, rtol=0.15)


def test_cardinalities_of_eight_attributes(workers: Microdata) -> None:
    """A large table has nearly all values of Table 3, and none besides."""
    found = np.array([len(level) for level in workers.levels])
    assert (found <= CARDINALITIES_8).all()
    assert (found >= 0.95 * np.array(CARDINALITIES_8)).all()


def test_ends_of_the_domains_are_reached(workers: Microdata) -> None:
    """Lowest and highest value of a large table are those of Table 3."""
    published = [*DOMAINS_8[:4], (1, 426), *DOMAINS_8[5:]]
    found = [(level[0], level[-1]) for level in workers.levels]
    assert found == published


def test_extended_set_has_the_published_domains(families: Microdata) -> None:
    """Names, order and domains of the 35 attributes are those of Table 10."""
    declared = {attribute.name: attribute.domain for attribute in families.attributes}
    assert list(declared) == list(EXTENDED)
    assert declared == {name: (low, high) for name, (_, low, high) in EXTENDED.items()}


@pytest.mark.parametrize("name", list(EXTENDED))
def test_extended_set_has_the_published_variances(families: Microdata, name: str) -> None:
    """Variances of the 35 attributes lie within 15 % of the published ones."""
    found = float(np.var(families.frame[name]))
    assert found == pytest.approx(EXTENDED[name][0], rel=0.15)


@given(n=st.integers(1, 40), m=st.integers(1, 35), seed=st.integers(0, 2**32))
def test_values_lie_in_their_domains(n: int, m: int, seed: int) -> None:
    """Any table has the asked size and no value outside the declared domain."""
    data = census(n, m, seed)
    assert data.frame.shape == (n, m)
    low, high = zip(*(data.domain_bounds(column) for column in range(m)), strict=True)
    np.testing.assert_array_equal(np.clip(data.values, low, high), data.values)


def test_attributes_depend_on_each_other(workers: Microdata, families: Microdata) -> None:
    """The strongest dependencies of such tables are there, with the right sign."""
    assert correlation(workers, "AGE", "MARST") < -0.3
    assert correlation(workers, "HIGRADE", "OCCSCORE") > 0.2
    assert correlation(workers, "SEX", "OCCSCORE") < -0.1
    assert correlation(families, "AGE", "BIRTHYR") < -0.99
    assert correlation(families, "AGE", "ELDCH") > 0.6
    assert correlation(families, "WKSWORK", "INCWAGE") > 0.2


def test_schooling_fits_the_age(workers: Microdata) -> None:
    """Nobody has more grades than years since the age of six; the code is the grade plus three."""
    assert (workers.frame["HIGRADE"] <= workers.frame["AGE"] - 3).all()
    assert (workers.frame["HIGRADE"] > 15).mean() > 0.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 8, 0), "n is 0.*at least one record"),
        ((10, 0, 0), "m is 0.*1 to 35"),
        ((10, 36, 0), "m is 36.*1 to 35"),
        ((10, 8, -1), "seed is -1.*at least 0"),
    ],
)
def test_arguments_out_of_range(arguments: tuple[int, int, int], message: str) -> None:
    """Each argument is refused by name, with the remedy."""
    with pytest.raises(InputError, match=message):
        census(*arguments)


@pytest.mark.crossed
@pytest.mark.shared_data
@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("mixed", [False, True], ids=["numeric", "mixed"])
@pytest.mark.parametrize("name", list(HEURISTICS))
def test_losses_are_close_to_those_on_the_real_extract(name: str, mixed: bool, k: int) -> None:
    """Each heuristic loses within 25 % of what it loses on the published extract."""
    heuristic = HEURISTICS[name]
    real = load_instance("census-1k-mixed" if mixed else "census-1k")
    expected = heuristic(Problem(real, k)).objective
    for seed in range(5):
        found = heuristic(Problem(census(1000, 8, seed, mixed=mixed), k)).objective
        assert found == pytest.approx(expected, rel=0.25)
