"""Tests of dates published as units of the calendar: 1968-08-14, 1968-08, 1968-Q3, 1968, 1960s."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    EquivalenceClasses,
    Freeform,
    FullDomain,
    Hierarchy,
    InputError,
    Microdata,
    PatternGuided,
    Problem,
    anonymize,
    publish,
    read_schema,
    solve,
    verify,
)
from anonymip.instances.hierarchies.hierarchy import Calendar
from anonymip.instances.scale import Unit, unit_of
from anonymip.privacy.reading.hierarchies import read_nodes
from anonymip.privacy.reading.manifest_entries import read_column
from anonymip.publishing.manifest import columns_at_risk, describe_attribute

UNITS: tuple[Unit, ...] = get_args(Unit)
DAYS = st.dates(dt.date(1905, 1, 1), dt.date(1999, 12, 31))
SCALES = st.fixed_dictionaries(
    {"precision": st.sampled_from(UNITS)},
    optional={"at_most": st.just("1990-06-15"), "at_least": st.just("1930-02-01")},
)


def path_by_pandas(day: dt.date, precision: Unit) -> tuple[str, ...]:
    """Return the units of a day from the precision on, and the root."""
    moment = pd.Timestamp(day)
    periods = [str(moment.to_period(one)).replace("Q", "-Q") for one in ("D", "M", "Q", "Y")]
    return (*[*periods, f"{day.year // 10}0s"][UNITS.index(precision) :], "*")


def dates(name: str = "born", **declared: Any) -> Attribute:
    """Return an attribute of dates that is published as nodes."""
    return Attribute(name, "date", publish="node", **declared)


@settings(max_examples=200)
@given(DAYS, st.integers(0, 3000), SCALES)
def test_paths_are_those_of_a_calendar(first: dt.date, days: int, declared: Any) -> None:
    """Writer, verifier and pandas agree on the units around each of a domain's units."""
    last = first + dt.timedelta(days)
    attribute = dates(domain=[first, last], **declared)
    frame = pd.DataFrame({"born": [first.isoformat(), last.isoformat()]})
    made = Microdata(frame, (attribute,)).attributes[0].hierarchy
    assert made is not None
    column = read_column(describe_attribute(attribute))
    assert read_nodes([column], {}, {})["born"].paths == made.paths
    unit, scale = attribute.precision, attribute.scale
    whole = {path_by_pandas(first + dt.timedelta(at), unit): at for at in range(days + 1)}  # type: ignore[arg-type]
    for path, at in whole.items():
        number = unit_of(first + dt.timedelta(at), unit)  # type: ignore[arg-type]
        if scale.coarsened(np.array([float(number)]))[0] not in (scale.at_most, scale.at_least):
            assert path in made.paths
    for path in made.paths:
        assert path in whole or set(path[:-1]) == {path[0]}
        assert (path[0][-1] in "+-") == (path not in whole)


@settings(max_examples=48)
@given(
    st.lists(DAYS, min_size=4, max_size=7),
    SCALES,
    st.sampled_from([EquivalenceClasses(), Freeform(), FullDomain(), PatternGuided()]),
)
def test_optima_are_those_of_the_hierarchy(
    days: list[dt.date], declared: Any, recoding: Any
) -> None:
    """Dates as nodes have the optimum of the same tree over texts; the release is verified."""
    frame = pd.DataFrame(
        {"born": [day.isoformat() for day in days], "sex": list("FMFMFMF")[: len(days)]}
    )
    table = Microdata(frame, (dates(**declared), Attribute("sex", "categorical")))
    found = solve(Problem(table, 2, recoding))
    tree = table.attributes[0].hierarchy
    assert tree is not None
    texts = Attribute("born", "hierarchical", hierarchy=Hierarchy(tree.paths))
    plain = Microdata(table.frame, (texts, table.attributes[1]))
    assert found.is_optimal
    assert found.objective == pytest.approx(solve(Problem(plain, 2, recoding)).objective, abs=1e-9)
    assert publish(found).verify().ok


@settings(max_examples=40)
@given(SCALES, st.integers(0, 10**6), st.data())
def test_other_nodes_are_refused(declared: Any, seed: int, data: st.DataObject) -> None:
    """A node that is moved, refined, coarsened or made a range by hand is found out."""
    rng = np.random.default_rng(seed)
    days = [dt.date(1925, 1, 1) + dt.timedelta(int(one)) for one in rng.integers(0, 27_000, 8)]
    frame = pd.DataFrame({"born": [day.strftime("%d.%m.%Y") for day in days]})
    table = Microdata(frame, (dates(format="%d.%m.%Y", **declared),))
    release = publish(solve(Problem(table, 2), "ordered-cut"))
    changed = release.frame.copy()
    row, cell = data.draw(st.integers(0, 7)), str(changed.loc[0, "born"])
    cell = str(changed.loc[row, "born"])
    tree = table.attributes[0].hierarchy
    assert tree is not None
    others = {"\\*" if label == "*" else label for path in tree.paths for label in path}
    others |= {"*", "[1930..1940]", "1930", "1930s", cell + "s", days[row].strftime("%d.%m.%Y")}
    changed.loc[row, "born"] = data.draw(st.sampled_from(sorted(others - {cell})))
    assert not verify(frame, changed, release.manifest).ok


@pytest.mark.crossed
@pytest.mark.parametrize("missing", ["own", "category", "drop", "error"])
@pytest.mark.parametrize("domain", [None, ["1960-01-01", "1999-12-31"]])
def test_missing_dates(missing: str, domain: Any) -> None:
    """A missing date is a value right below the root, is left out, or is refused."""
    told = ["1968-08-03", None, "1968-08-04", None, "1971-01-01", "1971-12-31"]
    frame = pd.DataFrame({"born": told})
    attribute = dates(missing=missing, domain=domain)
    if missing == "error":
        with pytest.raises(InputError, match="column 'born' has 2 missing values"):
            anonymize(frame, [attribute], 2)
        return
    release = anonymize(frame, [attribute], 2)
    assert sorted(release.frame["born"]) == ["1968-08"] * 2 + ["1971"] * 2 + ["missing"] * (
        0 if missing == "drop" else 2
    )
    assert release.verify().ok


def test_the_days_of_ten_years(tmp_path: Path) -> None:
    """A schema's domain of 3,653 days is a hierarchy like any other, beside suppression too."""
    rng = np.random.default_rng(3)
    born = pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 3_600, 120), unit="D")
    frame = pd.DataFrame({"born": born.strftime("%d.%m.%Y"), "sex": rng.choice(["F", "M"], 120)})
    people, schema = tmp_path / "people.csv", tmp_path / "schema.toml"
    frame.to_csv(people, index=False)
    text = '[attributes.born]\nformat = "%d.%m.%Y"\npublish = "node"\n'
    schema.write_text(f'{text}domain = ["2000-01-01", "2009-12-31"]\n[attributes.sex]\n')
    table = read_schema(schema).read(people)
    assert table.domain_size(0) == 3_653
    some = EquivalenceClasses(suppression=True, most_suppressed=3)
    release = publish(solve(Problem(table, 5, some), "ordered-cut"))
    told = release.manifest["columns"][0]
    assert (told["kind"], told["publish"], told["precision"]) == ("date", "node", "day")
    assert told["domain"] == ["2000-01-01", "2009-12-31"]
    file, _ = release.write(tmp_path / "release.csv", original=people)
    assert verify(people, file, schema=schema).ok
    # Another domain is another loss.
    schema.write_text(f'{text}domain = ["1999-01-01", "2009-12-31"]\n[attributes.sex]\n')
    assert not verify(people, file, schema=schema).ok
    observed = Microdata(frame, (dates(format="%d.%m.%Y"), Attribute("sex", "categorical")))
    assert columns_at_risk(Problem(observed, 5, some)) == ["born"]
    assert columns_at_risk(Problem(table, 5, some)) == []


def test_contradictions_are_refused() -> None:
    """A hierarchy of one's own belongs to another kind; a date outside the domain is named."""
    tree = Hierarchy([("1968-08-03", "1968", "*")])
    with pytest.raises(InputError, match="a hierarchy belongs to a hierarchical attribute"):
        dates(hierarchy=tree)
    with pytest.raises(InputError, match="a hierarchy belongs to a hierarchical attribute"):
        Attribute("born", "date", hierarchy=tree)
    frame = pd.DataFrame({"born": ["1968-08-03", "2001-01-01"]})
    with pytest.raises(InputError, match="holds a value outside its domain, first in data row 2"):
        Microdata(frame, (dates(domain=["1960-01-01", "1999-12-31"]),))
    with pytest.raises(InputError, match="more than 1,000,000 units"):
        Calendar.of(dates().scale, (0, 1_000_000))
