"""Tests of the tables of experiments: parts, samples, and what they are read from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from anonymip import InputError, Problem, load_instance, solve
from anonymip.experiments import Experiment, Samples, TableSource, run_experiment


def test_samples_are_drawn_one_after_the_other() -> None:
    """A sample is a draw of NumPy's generator without replacement, whatever their number is."""
    generator = np.random.default_rng(5)
    drawn = [generator.choice(30, 8, replace=False).tolist() for _ in range(3)]
    for count in (3, 10):
        samples = Samples(count, 8, 5)
        assert [samples.rows(30, number).tolist() for number in (1, 2, 3)] == drawn
    assert all(len(set(rows)) == 8 for rows in drawn)


def test_a_sample_loses_what_it_loses_in_the_whole_table() -> None:
    """The domains of a sample are those of its table."""
    source = TableSource("census:30,3,1", samples=Samples(1, 4))
    whole = source.load(Path())
    sample = source.sample(whole, 1)
    assert (sample.n, whole.n) == (4, 30)
    assert [sample.domain_bounds(a) for a in range(3)] == [whole.domain_bounds(a) for a in range(3)]


def test_parts_of_a_table() -> None:
    """The first rows, the first attributes, or those that are named, in the order named."""
    whole = load_instance("census:30,4,1")
    part = TableSource("census:30,4,1", rows=10, attributes=2).load(Path())
    assert (part.n, part.names) == (10, whole.names[:2])
    assert np.array_equal(part.values, whole.values[:10, :2])
    names = (whole.names[2], whole.names[0])
    chosen = TableSource("census:30,4,1", attributes=names).load(Path())
    assert chosen.names == names
    assert np.array_equal(chosen.values, whole.values[:, [2, 0]])


def test_files_have_the_roles_that_are_given(tmp_path: Path) -> None:
    """A file is read as the command line reads it, by its schema and by roles, from a folder."""
    (tmp_path / "people.csv").write_text("age,sex,ill\n1,F,a\n2,M,b\n3,F,a\n", encoding="utf-8")
    source = TableSource("people.csv", quasi_identifiers=("age", "sex"), sensitive=("ill",))
    assert source.load(tmp_path).names == ("age", "sex")
    (tmp_path / "people.toml").write_text(
        '[attributes.age]\nkind = "numeric"\n[attributes.sex]\n[table]\nsensitive = "ill"\n'
        '[mask]\nnever = ["sex"]\n',
        encoding="utf-8",
    )
    plain = TableSource("people.csv")
    data = plain.load(tmp_path)
    assert (data.names, data.sensitive) == (("age", "sex"), ("ill",))
    assert plain.mask(tmp_path) == {"never": ["sex"]}
    before = plain.digests(tmp_path)
    (tmp_path / "people.csv").write_text("age,sex,ill\n1,F,a\n2,M,b\n4,F,a\n", encoding="utf-8")
    after = plain.digests(tmp_path)
    assert before[0] != after[0]
    assert before[1:] == after[1:]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (TableSource("census:30,3,1", sensitive=("ill",)), "has its own schema"),
        (TableSource("census:30,3,1", attributes=4), "the table has 3"),
        (TableSource("census:30,3,1", attributes=("height",)), "no attribute 'height'"),
        (TableSource("nowhere.csv"), "no file"),
    ],
)
def test_what_does_not_fit_is_refused(source: TableSource, message: str) -> None:
    """Roles of a named instance, and attributes that are not there, are errors."""
    with pytest.raises(InputError, match=message):
        source.load(Path())


def test_samples_that_are_too_large_are_refused() -> None:
    """A sample has no more records than its table, and at least two."""
    source = TableSource("census:30,3,1", samples=Samples(1, 31))
    with pytest.raises(InputError, match="the table has 30"):
        source.sample(source.load(Path()), 1)
    with pytest.raises(InputError, match="count of the samples is 0"):
        Samples(0, 5)


def test_units_are_counted_in_experiments(tmp_path: Path) -> None:
    """By a specification or the schema, whole tables, parts and samples: k counts units there."""
    rows = "".join(f"{age},{'abc'[age % 3]},{age // 2}\n" for age in range(24))
    (tmp_path / "visits.csv").write_text(f"age,ward,patient\n{rows}", encoding="utf-8")
    table = 'instance = "visits.csv"\nquasi_identifiers = ["age", "ward"]'
    for told, schema in (('unit = "patient"', ""), ("", '[table]\nunit = "patient"\n')):
        (tmp_path / "visits.toml").write_text(f"{schema}[attributes.age]\n[attributes.ward]\n")
        (tmp_path / "runs.toml").write_text(
            f'name = "units"\nk = [3]\nmethods = [{{method = "initial"}}, {{method = "hp"}}]\n'
            f"[[tables]]\n{table}\n{told}\n"
            f"[[tables]]\n{table}\n{told}\nsamples = {{count = 2, size = 16, seed = 1}}\n"
        )
        experiment = Experiment.from_toml(tmp_path / "runs.toml")
        for source in experiment.tables:
            whole = source.load(tmp_path)
            for number in source.numbers:
                data = source.sample(whole, number)
                assert data.unit == "patient"
                problem = Problem(data, 3)
                for choice in experiment.methods:
                    labels = solve(problem, choice.method).classes
                    assert labels is not None
                    units = data.frame["patient"].groupby(labels.labels).nunique()
                    assert units.min() >= 3
        frame = run_experiment(experiment, isolate=False).frame
        assert len(frame) == 6  # of three tables two methods
        assert frame["loss"].notna().sum() == 6
        assert frame["reason"].isna().all()
