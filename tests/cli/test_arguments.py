"""Tests of the arguments that commands share, and of the groups that they are declared in."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Annotated, Any, get_args

import pandas as pd
import pytest
import typer

from anonymip import Apart, Cap, Diversity, EquivalenceClasses, load_instance
from anonymip.cli import answers, experiments, inventory, tasks
from anonymip.cli import arguments as given
from anonymip.cli.app import app
from anonymip.cli.options import FIRST, PANELS, an_option, spread
from anonymip.cli.rules import Rules
from anonymip.cli.tables import TableOptions, table_file
from anonymip.errors import InputError
from anonymip.objectives import OBJECTIVES


@pytest.mark.parametrize(
    ("text", "ks"),
    [
        ("5", [5]),
        ("2-6", [2, 3, 4, 5, 6]),
        ("2,5,10", [2, 5, 10]),
        ("2,3,10-12", [2, 3, 10, 11, 12]),
        ("4-4", [4]),
    ],
)
def test_values_of_k(text: str, ks: list[int]) -> None:
    """A number, a range, and a list of both are read."""
    assert given.parse_ks(text) == ks


@pytest.mark.parametrize("text", ["", "x", "2-", "-2", "2-3-4", "2,", "2.5", "6-2", "²"])
def test_other_texts_are_no_values_of_k(text: str) -> None:
    """Anything else is refused and quoted."""
    with pytest.raises(InputError, match=r"^k is '"):
        given.parse_ks(text)


def test_options_by_method() -> None:
    """Options are grouped by method; a value may hold an equals sign."""
    texts = ["mondrian.strict=no", "split-carry.S=4", "split-carry.rule=a=b"]
    assert given.parse_options(texts) == {
        "mondrian": {"strict": "no"},
        "split-carry": {"S": "4", "rule": "a=b"},
    }
    assert given.parse_options(None) == {}


@pytest.mark.parametrize("text", ["strict=no", "mondrian.strict", ".strict=no", "mondrian.=no", ""])
def test_other_texts_are_no_options(text: str) -> None:
    """Anything but METHOD.NAME=VALUE is refused with an example."""
    with pytest.raises(InputError, match="--option greedy-search"):
        given.parse_options([text])


def test_options_must_name_the_method_that_runs() -> None:
    """An option of another method would have no effect, so it is refused."""
    options = {"mondrian": {"strict": "no"}}
    assert given.options_of("mondrian", options) == {"strict": "no"}
    assert given.options_of("k-member", {}) == {}
    with pytest.raises(InputError, match="--method mondrian"):
        given.options_of("k-member", options)


def test_recodings() -> None:
    """A recoding is found by name, with and without suppression; a method brings its own."""
    assert given.RecodingOptions("classes", False).choose() == EquivalenceClasses()
    assert given.RecodingOptions("classes", True).choose() == EquivalenceClasses(True)
    assert given.RecodingOptions(None, True).choose() == EquivalenceClasses(True)
    assert given.RecodingOptions(None, False).choose("auto", "mondrian") == EquivalenceClasses()
    with pytest.raises(InputError, match=r"unknown recoding 'magic'\. Use classes"):
        given.RecodingOptions("magic", False).choose()


def test_rules() -> None:
    """Diversity and limits are read; a quoted value may hold a comma."""
    assert Rules().diversity() is None
    assert Rules().limits() == ()
    assert Rules(l_diversity=1.5).diversity() == Diversity(l=1.5)
    assert Rules(distinct_diversity=2).diversity() == Diversity(distinct=2)
    rules = Rules(2, 3, caps=["age=10", "a=b=0.5"], aparts=["job=clerk,farmer", 'job="a,b","c=d"'])
    assert rules.diversity() == Diversity(l=2, distinct=3)
    assert rules.limits() == (
        Cap("age", 10),
        Cap("a=b", 0.5),
        Apart("job", "clerk", "farmer"),
        Apart("job", "a,b", "c=d"),
    )


@pytest.mark.parametrize("text", ["age", "age=", "=3", "age=wide", "age=-1", "age=inf", "age=nan"])
def test_other_texts_are_no_caps(text: str) -> None:
    """A cap needs an attribute and a number of at least 0."""
    with pytest.raises(InputError, match="cap"):
        Rules(caps=[text]).limits()


@pytest.mark.parametrize(
    "text", ["post", "post=", "post=a", "post=a,b,c", "=post,b", 'post="a,b', "post=a,a"]
)
def test_other_texts_keep_nothing_apart(text: str) -> None:
    """Two different values are needed; the text is shown on request only."""
    with pytest.raises(InputError, match="apart") as caught:
        Rules(aparts=[text]).limits()
    assert text not in str(caught.value)


def kinds(shell: Any, *arguments: str) -> dict[str, str]:
    """Return the kinds of the quasi-identifiers that a table is read with."""
    options: dict[str, list[str]] = {}
    for flag, value in zip(arguments[1::2], arguments[2::2], strict=True):
        options.setdefault(flag, []).append(value)
    schema = options.get("--schema")
    data = TableOptions(
        shell.folder / schema[0] if schema else None,
        options.get("-q"),
        options.get("--sensitive"),
        options.get("--keep"),
        options.get("--drop"),
        options.get("--missing", [None])[0],
    ).load(arguments[0])
    return {attribute.name: attribute.kind for attribute in data.attributes}


def test_kinds_are_inferred(shell: Any) -> None:
    """Numbers are numeric, texts and codes with leading zeros categorical, and -q can say so."""
    assert kinds(shell, "people.csv", *shell.roles) == {
        "age": "numeric",
        "sex": "categorical",
        "zip": "categorical",
    }
    forced = [
        "-q" if role == "-q" else role.replace("age", "age:categorical") for role in shell.roles
    ]
    assert kinds(shell, "people.csv", *forced)["age"] == "categorical"


def test_named_and_generated_instances() -> None:
    """A name and a generator call are instances; the latter is the same every time."""
    named = TableOptions().load("health-records")
    assert named.n == 7
    first, second = (TableOptions().load("census:20,5,3") for _ in range(2))
    assert (first.n, first.m) == (20, 5)
    assert first.frame.equals(second.frame)


def test_a_name_beats_a_file(shell: Any) -> None:
    """A file that bears the name of an instance is not read for it."""
    shell.write("health-records", "a,b\n1,2\n")
    assert table_file("health-records") is None
    assert TableOptions().load("health-records").n == 7


def test_the_schema_beside_the_table(shell: Any) -> None:
    """A TOML file of the same name is the schema, unless another is named."""
    shell.write("people.toml", shell.read("roles.toml"))
    assert kinds(shell, "people.csv") == {"age": "numeric", "sex": "categorical"}
    shell.write(
        "other.toml",
        '[attributes.zip]\n[table]\nsensitive = ["disease"]\n'
        'keep = ["visit"]\ndrop = ["name", "age", "sex"]\n',
    )
    assert kinds(shell, "people.csv", "--schema", "other.toml") == {"zip": "categorical"}


def test_roles_of_the_command_line_add_to_the_schema(shell: Any) -> None:
    """-q replaces the quasi-identifiers of a schema and keeps what it says of them."""
    data = TableOptions(shell.folder / "roles.toml", ["age"], ["sex"]).load("people.csv")
    assert data.names == ("age",)
    assert data.attributes[0].domain == (0.0, 100.0)
    assert data.sensitive == ("disease", "sex")


def test_parquet_tables(shell: Any) -> None:
    """A Parquet file is read as it is."""
    pd.DataFrame({"age": [1, 2, 3], "zip": ["01", "02", "03"]}).to_parquet(
        shell.folder / "table.parquet"
    )
    assert kinds(shell, "table.parquet", "-q", "age", "-q", "zip") == {
        "age": "numeric",
        "zip": "categorical",
    }


def test_a_file_without_header(shell: Any) -> None:
    """The schema names the columns, the separator and the texts that mean no value."""
    shell.write("raw.dat", "34; F; flu\n36; F; gout\n?; M; flu\n")
    shell.write(
        "raw.toml",
        '[attributes.age]\n[attributes.sex]\n[table]\nseparator = "; "\nmissing = ["?"]\n'
        'columns = ["age", "sex", "disease"]\nsensitive = ["disease"]\n',
    )
    data = TableOptions(missing="drop").load("raw.dat")
    assert data.n == 2
    assert data.frame["disease"].tolist() == ["flu", "gout"]
    assert data.attributes[0].kind == "numeric"


def test_named_instances_have_their_own_schema() -> None:
    """Roles for a named instance contradict it."""
    with pytest.raises(InputError, match="own schema"):
        TableOptions(quasi_identifier=["Age"]).load("health-records")


def test_the_files_that_are_read(shell: Any) -> None:
    """Table, schema beside it or named, and objective are what outputs must not overwrite."""
    shell.write("people.toml", shell.read("roles.toml"))
    beside = TableOptions().sources("people.csv", "mine.py:protect_age")
    assert [path.name for path in beside] == ["people.csv", "people.toml", "mine.py"]
    assert TableOptions().sources("health-records") == []
    assert load_instance("people.csv").n == 7


@dataclass(frozen=True)
class Inner:
    """A group in a group."""

    width: int = an_option(3, "How wide.")
    #: No option.
    section: str = "beside"


@dataclass(frozen=True)
class Outer:
    """A group with a group in it."""

    inner: Inner
    height: Annotated[int, typer.Option("--height")] = 4


def test_a_command_takes_the_options_of_its_groups() -> None:
    """Options stand at the place of their group with their defaults, and come back gathered."""
    seen: dict[str, Any] = {}

    @spread
    def command(
        name: str,
        *,
        first: Outer,
        last: int = an_option(..., "The last."),
        flag: bool = an_option(False, "Up or down."),
    ) -> None:
        """Say it."""
        seen.update(name=name, first=first, last=last, flag=flag)

    taken = inspect.signature(command).parameters
    assert list(taken) == ["name", "width", "height", "last", "flag"]
    assert (taken["width"].default, taken["last"].default) == (3, inspect.Parameter.empty)
    plain, flag = get_args(taken["flag"].annotation)
    assert (plain, flag.default, flag.help) == (bool, "--flag", "Up or down.")
    assert command.__doc__ == "Say it."
    command(name="a", width=5, height=6, last=7, flag=True)
    assert seen == {"name": "a", "first": Outer(Inner(5), 6), "last": 7, "flag": True}


@pytest.mark.parametrize(
    "command",
    [tasks.anonymize, answers.solve, experiments.compare, answers.bound, answers.export],
    ids=lambda command: command.__name__,
)
def test_what_is_asked_is_asked_alike(command: Any) -> None:
    """Commands that make a problem take the same options for it, in the same order."""
    asked = list(inspect.signature(command).parameters)
    start, end = asked.index("l_diversity"), asked.index("objective")
    assert asked[start : end + 1] == [
        *("l_diversity", "distinct_diversity", "t_closeness", "ordered_closeness"),
        *("caps", "aparts", "suppress_at_most", "never", "together", "at_most_one"),
        *("allow_all_stars", "single_use", "costs", "most_suppressed", "suppression_price"),
        "objective",
    ]
    table = [*inspect.signature(inventory.objective).parameters][2:]
    assert [name for name in asked if name in table] == table


def test_help_shows_every_option_in_a_panel() -> None:
    """What most people need comes first; all else is about table, promise, method or output."""
    command: Any = typer.main.get_command(app)
    panels: dict[str | None, list[str]] = {}
    for option in command.commands["anonymize"].params[1:-1]:
        panels.setdefault(option.rich_help_panel, []).append(option.name)
    assert list(panels) == [None, *PANELS]
    assert panels[None] == [name for name in FIRST if name != "methods"]
    assert all(len(names) > 1 for names in panels.values())


def test_help_names_every_built_in_objective() -> None:
    """Each is a name of its own there, not a part of another one."""
    command: Any = typer.main.get_command(app)
    (told,) = (one.help for one in command.commands["solve"].params if one.name == "objective")
    assert set(OBJECTIVES) <= set(re.split(r"[ ,]+", told))
