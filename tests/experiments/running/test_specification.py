"""Tests of specifications: read from TOML, written back, and refused with their remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonymip import Apart, Cap, Diversity, InputError
from anonymip.experiments import Experiment, MethodChoice, Samples, TableSource
from anonymip.experiments.running.runs import plan
from anonymip.recodings import FullDomain, PatternGuided

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples").glob("*.toml"))
SPEC = """
name = "all-keys"
k = [2, 5]
objective = "set-gcp"
effort = "quick"
time_limit = 10
gap = 0.01
solver = "cbc"
threads = 2
seed = 3
repetitions = 4
bound = false

[[tables]]
instance = "clinic-12"
name = "clinic"
rows = 10
attributes = ["age", "job"]

[[tables]]
instance = "people.csv"
quasi_identifiers = "age"
samples = {count = 20, size = 14, seed = 1}

[[methods]]
method = "mondrian"
options = {strict = false}
label = "relaxed"
time_limit = 1.5

[[methods]]
method = "auto"
recoding = "freeform"

[[methods]]
method = "full-domain"

[recodings.full-domain]
most_suppressed = 0.1

[diversity]
distinct = 2

[limits]
cap = {age = 10}
apart = [["job", "clerk", "farmer"]]
"""


def written(folder: Path, text: str) -> Path:
    """Return a file of this text."""
    file = folder / "spec.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_every_key_is_read(tmp_path: Path) -> None:
    """A file means the same as the dataclass, and is what the dataclass writes."""
    experiment = Experiment.from_toml(written(tmp_path, SPEC))
    assert experiment == Experiment(
        name="all-keys",
        tables=(
            TableSource("clinic-12", name="clinic", rows=10, attributes=("age", "job")),
            TableSource("people.csv", quasi_identifiers=("age",), samples=Samples(20, 14, 1)),
        ),
        k=(2, 5),
        methods=(
            MethodChoice("mondrian", {"strict": False}, label="relaxed", time_limit=1.5),
            MethodChoice("auto", recoding="freeform"),
            MethodChoice("full-domain"),
        ),
        recodings={"full-domain": {"most_suppressed": 0.1}},
        objective="set-gcp",
        diversity=Diversity(distinct=2),
        limits=(Cap("age", 10), Apart("job", "clerk", "farmer")),
        effort="quick",
        time_limit=10,
        gap=0.01,
        solver="cbc",
        threads=2,
        seed=3,
        repetitions=4,
        bound=False,
    )
    assert experiment.folder == tmp_path
    assert Experiment.from_dict(experiment.to_dict()) == experiment


@pytest.mark.parametrize("file", EXAMPLES, ids=[file.stem for file in EXAMPLES])
def test_examples_are_experiments(file: Path) -> None:
    """The specifications of the repository can be run: their methods, options and tables exist."""
    experiment = Experiment.from_toml(file)
    assert plan(experiment)
    assert Experiment.from_dict(experiment.to_dict()) == experiment


def test_there_is_an_example() -> None:
    """The page of experiments names one, and it is there."""
    assert "heuristics_against_optimum" in {file.stem for file in EXAMPLES}


def test_methods_bring_their_recodings() -> None:
    """A method belongs to its recoding, unless it solves others and one is named."""
    choices = (MethodChoice("mondrian"), MethodChoice("hungarian"), MethodChoice("auto"))
    assert [one.solved_recoding for one in choices] == ["classes", "freeform", "classes"]
    assert MethodChoice("auto", recoding="pattern").solved_recoding == "pattern"


def test_recodings_have_their_options() -> None:
    """Problems have the recoding with its options; those of a mask go before the schema's."""
    source = TableSource("health-records")
    data = source.load(Path())
    experiment = Experiment(
        "options",
        (source,),
        (2,),
        (MethodChoice("pattern-greedy"), MethodChoice("full-domain")),
        recodings={"pattern": {"suppress_at_most": 2}, "full-domain": {"most_suppressed": 3}},
    )
    pattern = experiment.problem(data, 2, "pattern", {"never": ["Sex"], "suppress_at_most": 1})
    assert isinstance(pattern.recoding, PatternGuided)
    stars = pattern.recoding.stars(pattern)
    assert stars.sum(axis=1).max() == 2
    assert not stars[:, data.names.index("Sex")].any()
    assert experiment.problem(data, 2, "full-domain").recoding == FullDomain(most_suppressed=3)


@pytest.mark.parametrize(
    ("old", "new", "message", "remedy"),
    [
        ("seed = 3", "sede = 3", "unknown key sede", "Known are bound"),
        ("rows = 10", "row = 10", r"unknown key tables\[1\].row", "Known are attributes"),
        ("size = 14, ", "", r"tables\[2\].samples.size is missing", "Add size"),
        ("strict = false", "strikt = false", "no option 'strikt'", "strict"),
        ('"full-domain"', '"full-domian"', "unknown method 'full-domian'", "full-domain"),
        ('recoding = "freeform"', "recoding = 1", r"methods\[2\].recoding is not a text", "text"),
        ("distinct = 2", "distinct = 2.5", "diversity.distinct is not a whole", "whole number"),
        ("most_suppressed", "most_stars", "no option 'most_stars'", "most_suppressed"),
        ('[["job", "clerk", "farmer"]]', '["job"]', "limits.apart", "Write apart"),
        ("[recodings.full-domain]", "[recodings.k-k]", "which no method solves", "Solved are"),
        ("k = [2, 5]", "k = [2, 1]", "k is 1", "at least 2"),
        ("k = [2, 5]", "k = [2, 2]", "a value of k is given twice", "once"),
        ('"cbc"', '"abacus"', "unknown solver 'abacus'", "highs"),
        ('name = "all-keys"', "", "name is missing", "Add name"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, message: str, remedy: str) -> None:
    """What is wrong in a file is said with the file, the key and the remedy."""
    assert SPEC.count(old) >= 1
    file = written(tmp_path, SPEC.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as raised:
        Experiment.from_toml(file)
    assert raised.value.message.startswith(str(file))
    assert remedy in str(raised.value.remedy)


def test_one_label_for_two_methods_is_refused() -> None:
    """A method with two options needs two labels."""
    twice = (MethodChoice("mondrian"), MethodChoice("mondrian", {"strict": False}))
    with pytest.raises(InputError, match="two methods of the recoding classes") as raised:
        Experiment("twice", (TableSource("health-records"),), (2,), twice)
    assert "label" in str(raised.value.remedy)
