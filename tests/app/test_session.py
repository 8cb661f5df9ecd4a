"""A tab's work from the table to the project, with what can go wrong on the way."""

from __future__ import annotations

import json
import re
import shlex
import stat
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonymip import InputError, inspect, read_schema
from anonymip.app import work
from anonymip.app.session import Session
from anonymip.app.table_step import form
from anonymip.app.texts import capital, words
from anonymip.app.work import Job
from anonymip.cli.app import run
from anonymip.instances.schema import schema_text
from anonymip.runtime.worker_pool import Killed
from anonymip.status import Stopped


def people(n: int = 40) -> str:
    """Return a table whose names are unique."""
    rng = np.random.default_rng(1)
    rows = [
        f"P{i} <b>x</b>,{rng.integers(18, 90)},{rng.choice(['F', 'M'])},0{rng.integers(10, 14)},"
        f"{rng.choice(['flu', 'cold', 'gout'])}"
        for i in range(n)
    ]
    return "\n".join(["name,age,sex,zip,ill", *rows, ""])


def arrived(session: Session, content: bytes) -> Path:
    """Return a file that was uploaded."""
    path = session.folder.with_suffix(".incoming")
    path.write_bytes(content)
    return path


def take(session: Session, name: str, content: bytes) -> Session:
    """Have a session take a table, and wait for what comes of it."""
    session.take_table(name, arrived(session, content))
    assert session.job is not None
    session.job.wait(120)
    return session


def settled(session: Session) -> Session:
    """Wait for the job of a session, which must not fail."""
    assert session.job is not None
    session.job.wait(120)
    assert (session.busy, session.job.error) == (False, "")
    return session


def prepared(session: Session) -> Session:
    """Return a session with a table and roles."""
    settled(take(session, "people.csv", people().encode()))
    for name, role in (("name", "drop"), ("ill", "sensitive"), ("zip", "quasi-identifier")):
        session.set_role(name, role)
    for name in ("age", "sex"):
        session.set_role(name, "quasi-identifier")
    session.asked.effort = "quick"
    return session


def unpacked(session: Session, folder: Path) -> Path:
    """Return the folder of a saved project."""
    (folder / "project.zip").write_bytes(session.project())
    with zipfile.ZipFile(folder / "project.zip") as archive:
        archive.extractall(folder / "project")
    return folder / "project"


def rows(file: Path) -> list[list[str]]:
    """Return the rows of a release in an order of their own: each release is shuffled."""
    return sorted(pd.read_csv(file, dtype=str).astype(str).to_numpy().tolist())


def test_a_release_is_verified_and_its_command_gives_the_same(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the table to files that the verifier accepts, and which the command makes again."""
    prepared(session)
    session.set_role("sex", "keep")
    session.declare("age", "domain", [0, 99])
    session.declare("zip", "hierarchy", {"mask": "right"})
    session.write_hierarchy("zip")
    settled(session)
    assert isinstance(session.schema["attributes"]["zip"]["hierarchy"], str)
    session.asked.most_suppressed, session.asked.caps = 5.0, {"age": 40}
    session.make_release()
    settled(session)
    (name,) = session.releases
    made = session.releases[name]
    assert made["verified"]["ok"]
    assert [one for one, _, _ in made["few"]] == ["age", "zip"]
    assert json.loads(json.dumps(made)) is not None
    folder = unpacked(session, tmp_path)
    monkeypatch.chdir(folder)
    release, manifest, report, schema = session.files_of(name)
    command = session.asked.command("people.csv", schema, "again")
    assert run(shlex.split(command)[1:]) == 0
    assert rows(Path("again.csv")) == rows(Path(release))
    assert run(["verify", "people.csv", release, "--schema", schema]) == 0
    assert json.loads(Path(manifest).read_text())["checked"]
    assert "<b>x</b>" not in Path(report).read_text()


def test_a_project_opens_again_and_is_verified_again(session: Session, tmp_path: Path) -> None:
    """What was saved comes back; of a release that was changed in between the verifier says so."""
    prepared(session).make_release()
    settled(session)
    session.curve = {5: {"loss": 0.2, "bound": None, "optimal": False, "suppressed": 0}}
    saved = session.project()
    before = (session.asked, session.releases, session.schema, session.curve)
    other = Session(tmp_path / "other")
    other.folder.mkdir()
    other.open_project(arrived(other, saved))
    settled(other)
    assert (other.asked, other.curve) == (before[0], before[3])
    assert other.schema["attributes"] == before[2]["attributes"]
    (name,) = other.releases
    assert other.releases[name]["verified"]["ok"]
    assert json.loads(json.dumps(other.releases)) == json.loads(json.dumps(before[1]))
    assert stat.S_IMODE(other.folder.stat().st_mode) == 0o700

    release = other.folder / f"{name}.csv"
    release.write_text(release.read_text().replace("F", "M", 1))
    again = other.project()
    session.open_project(arrived(session, again))
    settled(session)
    assert not session.releases[name]["verified"]["ok"]


def archive(folder: Path, **members: str) -> Path:
    """Return a zip file."""
    with zipfile.ZipFile(folder / "p.zip", "w") as made:
        for name, text in members.items():
            made.writestr(name.replace("__", "/"), text)
    return folder / "p.zip"


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"project.json": "{"},
        {"project.json": "[]"},
        {"project.json": '{"format": "anonymip-project/9"}'},
        {"project.json": '{"format": "anonymip-project/1"}'},
        {"project.json": '{"format": "anonymip-project/1"}', "..__out.csv": "x"},
        {"project.json": '{"format": "anonymip-project/1"}', ".hidden.csv": "x"},
        {
            "project.json": '{"format": "anonymip-project/1", "table": "a.csv", "asked": {},'
            ' "curve": {}, "releases": {"r": {}}}',
            "schema.toml": "",
        },
        {
            "project.json": '{"format": "anonymip-project/1", "table": "../a.csv", "asked": {},'
            ' "curve": {}, "releases": {}}',
            "schema.toml": "",
        },
    ],
)
def test_what_is_no_project_changes_nothing(
    session: Session, tmp_path: Path, members: dict[str, str]
) -> None:
    """A file that is none, or leads out of its folder, is refused, and the session goes on."""
    prepared(session)
    with pytest.raises(InputError):
        session.open_project(archive(tmp_path, **members))
    assert (session.folder / "people.csv").is_file()
    assert session.table == "people.csv"
    assert [one for one in tmp_path.iterdir() if one.is_dir()] == [session.folder]
    (tmp_path / "text.zip").write_text("no archive")
    with pytest.raises(InputError, match="project"):
        session.open_project(tmp_path / "text.zip")


def test_a_project_whose_table_cannot_be_read_changes_nothing(
    session: Session, tmp_path: Path
) -> None:
    """It has the form of one; what there is stays until its table was looked at."""
    prepared(session)
    told = (
        '{"format": "anonymip-project/1", "table": "a.csv", "asked": {}, "curve": {}, '
        '"releases": {}}'
    )
    members = {"project.json": told, "schema.toml": "", "a.csv": "age\n1\n2\n"}
    session.open_project(archive(tmp_path, **members))
    assert session.job is not None
    session.job.wait(120)
    assert "quasi-identifiers" in session.job.error
    assert session.table == "people.csv"
    assert (session.folder / "people.csv").is_file()


@pytest.mark.parametrize("name", ["../x.csv", "a/b.csv", ".x.csv", "x", "", "a\0.csv", "x" * 300])
def test_names_that_lead_elsewhere_are_refused(session: Session, tmp_path: Path, name: str) -> None:
    """A file of a session lies in its folder."""
    with pytest.raises(InputError, match="name"):
        session.path_of(name)
    with pytest.raises(InputError, match="name"):
        session.take_table(name, arrived(session, b""))
    assert [one for one in tmp_path.iterdir() if one.is_dir()] == [session.folder]


def test_roles_are_those_of_the_schema(session: Session) -> None:
    """Every role that is given stands in the schema that the command line reads."""
    prepared(session)
    session.set_role("age", "weights")
    assert session.schema["table"]["weights"] == "age"
    roles = {"name": "unit", "age": "quasi-identifier", "sex": "keep", "zip": "drop"}
    for column, role in {**roles, "ill": "sensitive"}.items():
        session.set_role(column, role)
        assert session.role(column) == role
    session.declare("age", "precision", 5)
    session.declare("age", "weight", 2)
    session.declare("age", "weight", None)
    path = session.path_of("s.toml")
    path.write_text(session.schema_text())
    schema = read_schema(path)
    assert schema.unit == "name"
    age = {"kind": "numeric", "integer": True, "domain": [10, 90], "precision": 5}
    assert schema.attributes == {"age": age}
    assert schema.weights is None
    assert (schema.sensitive, schema.keep, schema.drop) == (("ill",), ("sex",), ("zip",))
    session.declare("age", "hierarchy", {"bands": [5, 10], "domain": [0, 99]})
    path.write_text(session.schema_text())
    assert read_schema(path).attributes["age"]["hierarchy"].height == 3
    session.take_beside("s.toml", arrived(session, path.read_bytes()))
    assert settled(session).schema["attributes"]["age"]["hierarchy"]["bands"] == [5, 10]


def test_groups_of_the_page_are_a_hierarchy(session: Session) -> None:
    """A group a value, as the page begins, and values that are put together."""
    prepared(session)
    groups = {"old": ["011", "012"], "010": ["010"], "013": ["013"]}
    session.declare("zip", "hierarchy", {"groups": groups})
    session.asked.k = 4
    session.make_release()
    (release,) = settled(session).releases.values()
    (after,) = (after for name, _, after in release["few"] if name == "zip")
    assert set(after) <= {"old", r"\*", "010", "011", "012", "013"}


@pytest.mark.parametrize(
    ("table", "k", "said"), [("people.csv", 400, "k is 400"), ("people.csv", 41, "k is 41")]
)
def test_k_above_n_is_said(session: Session, table: str, k: int, said: str) -> None:
    """What cannot be is an error on the page, and what was there stays."""
    prepared(session).asked.k = k
    session.make_release()
    assert session.job is not None
    session.job.wait()
    assert "k" in session.job.error
    assert "40" in session.job.error
    assert session.releases == {}
    session.asked.k = 5
    session.make_release()
    assert list(settled(session).releases) == ["release-1"]


def test_a_table_takes_the_place_of_all_that_was(session: Session) -> None:
    """Nothing of another table is left; one that cannot be read leaves what there is as it is."""
    prepared(session).make_release()
    made = settled(session).releases
    before = {path.name: path.read_bytes() for path in session.folder.iterdir()}
    session.asked.caps = {"age": 30}
    take(session, "people.csv", bytes(range(256)))
    assert session.releases == made
    assert {path.name: path.read_bytes() for path in session.folder.iterdir()} == before
    settled(take(session, "others.csv", b"x,y\n" + b"1,2\n3,4\n" * 9))
    assert (session.releases, session.asked.caps) == ({}, {})
    assert [path.name for path in session.folder.iterdir()] == ["others.csv"]
    assert list(session.folder.parent.iterdir()) == [session.folder]


def test_questions_keep_to_the_columns_that_there_are(session: Session) -> None:
    """Caps of columns that are asked for no more, and diversity of none, would be errors."""
    prepared(session)
    session.asked.caps, session.asked.l_diversity = {"age": 30, "sex": 1}, 2
    session.set_role("age", "drop")
    assert session.asked.caps == {"sex": 1}
    session.set_role("ill", "drop")
    assert session.asked.l_diversity is None
    session.make_release()
    assert settled(session).releases


def test_a_curve_is_forgotten_when_its_question_changes(session: Session) -> None:
    """Whatever is changed of a column or its hierarchy, losses of before are not shown."""
    prepared(session)
    point = {5: {"loss": 0.2, "bound": None, "optimal": False, "suppressed": 0}}
    session.declare("age", "hierarchy", {"bands": [5, 10], "domain": [0, 99]})
    path = session.path_of("s.toml")
    path.write_text(session.schema_text())
    changes = [
        lambda: session.amend(session.schema["attributes"]["age"]["hierarchy"], "bands", [10]),
        lambda: session.declare("age", "hierarchy", None),
        lambda: session.set_role("sex", "keep"),
        lambda: settled(session) if session.take_schema("s.toml") is None else None,
    ]
    for change in changes:
        session.curve = {**point}
        change()
        assert session.curve == {}


def test_roles_that_come_back_are_as_suggested(session: Session) -> None:
    """A date that was left out for a moment has its form and precision again."""
    rows = b"".join(b"%02d.03.19%02d,%d\n" % (i % 28 + 1, 50 + i, i % 3) for i in range(30))
    settled(take(session, "born.csv", b"born,ward\n" + rows))
    before = {**session.schema["attributes"]["born"]}
    assert before["precision"] == "month"
    session.set_role("born", "drop")
    session.set_role("born", "quasi-identifier")
    assert session.schema["attributes"]["born"] == before


def test_hierarchies_of_a_release_stay_what_they_were(session: Session) -> None:
    """A file of that name is refused, and the schema of the release names what to save with it."""
    prepared(session)
    zips = b"010;01;*\n011;01;*\n012;01;*\n013;01;*\n"
    assert "zips.csv" in str(session.take_beside("zips.csv", arrived(session, zips)))
    session.declare("zip", "hierarchy", "zips.csv")
    session.make_release()
    settled(session)
    session.declare("zip", "hierarchy", None)
    assert session.hierarchies_of("release-1") == ["zips.csv"]
    for name in ("zips.csv", "people.csv", "release-1.toml"):
        with pytest.raises(InputError, match="this name"):
            session.take_beside(name, arrived(session, zips))
    (session.folder.with_suffix(".incoming")).unlink()


def test_schemas_say_more_than_cards(session: Session) -> None:
    """Hierarchies that a card has no fields for are kept as they are."""
    prepared(session)
    text = (
        '[table]\ndrop = ["name", "ill", "age"]\n[attributes.sex.hierarchy.groups]\n'
        'a = {b = ["F"], c = ["M"]}\n[attributes.zip.hierarchy]\nseparator = "1"\n'
    )
    session.take_beside("s.toml", arrived(session, text.encode()))
    attributes = settled(session).schema["attributes"]
    assert {form(one["hierarchy"]) for one in attributes.values()} == {"schema"}
    assert tomllib.loads(session.schema_text())["attributes"] == attributes


@pytest.mark.parametrize("more", ['pseudonyms = ["name"]\n', "[mask]\nsuppress_at_most = 1\n"])
def test_schemas_of_what_the_page_cannot_say_are_refused(session: Session, more: str) -> None:
    """The question would not be the one that the page shows."""
    prepared(session)
    text = f'[attributes.age]\n[table]\ndrop = ["ill", "zip", "sex"]\n{more}'
    session.take_beside("s.toml", arrived(session, text.encode()))
    assert session.job is not None
    session.job.wait(60)
    assert "This page" in session.job.error


def asking(**given: Any) -> Callable[[Session], None]:
    """Return what asks a session for a release."""

    def ask(session: Session) -> None:
        for name, value in given.items():
            setattr(session.asked, name, value)
        session.make_release()

    return ask


def observed(session: Session) -> None:
    """Ask for a suppression beside a domain that was observed."""
    session.declare("age", "domain", None)
    asking(most_suppressed=5.0)(session)


def schema_of(text: str) -> Callable[[Session], None]:
    """Return what has a session take a schema."""
    return lambda session: void(session.take_beside("s.toml", arrived(session, text.encode())))


def void(_: object) -> None:
    """Drop a value."""


@pytest.mark.parametrize(
    "wrong",
    [
        observed,
        asking(t_closeness=0.0),
        asking(k=1),
        asking(caps={"age": 0.5}),
        schema_of("[attributes.age]\n"),
        schema_of("[attributes.zip]\nhierarchy = 'none.csv'\n"),
        schema_of("["),
        lambda session: void(take(session, "noise.csv", bytes(range(256)))),
    ],
)
def test_errors_speak_of_what_the_page_shows(
    session: Session, wrong: Callable[[Session], None]
) -> None:
    """No argument of Python, no option of the command line."""
    wrong(prepared(session))
    assert session.job is not None
    session.job.wait(120)
    assert session.job.error
    assert not re.search(r"\w=|--\w|anonymip ", session.job.error), session.job.error


def test_missing_values_beside_bands_have_a_way_out(session: Session) -> None:
    """Nobody can add a line to a hierarchy that a card has made; what helps is on the card."""
    rows = b"".join(
        b"%s,%d\n" % (b"" if i % 9 == 0 else b"%d" % (20 + i), i % 3) for i in range(40)
    )
    settled(take(session, "gaps.csv", b"age,ward\n" + rows))
    bands = {"bands": [5, 10], "domain": [20, 69]}
    session.declare("age", "hierarchy", bands)
    session.make_release()
    assert session.job is not None
    session.job.wait(60)
    assert "finer settings" in session.job.error
    assert "Add a line" not in session.job.error
    session.declare("age", "missing", "drop")
    session.make_release()
    assert settled(session).releases


def test_weights_that_do_not_count_are_said_plainly(session: Session) -> None:
    """They stay in the schema for another time; the caution names no objective."""
    prepared(session).declare("age", "weight", 2)
    session.make_release()
    (release,) = settled(session).releases.values()
    told = " ".join(capital(one) for one in release["cautions"])
    assert "columns have different weights, which were not counted" in told
    assert "objective" not in told


def test_unique_names_published_are_said(session: Session) -> None:
    """A column of unique names that is to be kept is an error, or a caution with the release."""
    prepared(session).set_role("name", "keep")
    session.make_release()
    assert session.job is not None
    session.job.wait()
    told = session.job.error or str(list(session.releases.values()))
    assert "'name'" in told


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("noise.csv", bytes(range(256))),
        ("empty.csv", b""),
        ("twice.csv", b"a,a\n1,2\n"),
        ("book.xlsx", b"no workbook"),
        ("table.parquet", b"PAR1"),
    ],
)
def test_files_that_are_no_tables_are_said(session: Session, name: str, content: bytes) -> None:
    """The message is the toolkit's own, never a fault of the program."""
    take(session, name, content)
    assert session.job is not None
    assert session.job.error
    assert "fault of the program" not in session.job.error
    assert session.table is None
    assert list(session.folder.parent.iterdir()) == [session.folder]


def test_built_in_tables_are_files_of_the_session(session: Session) -> None:
    """They are written into the folder, so that the command and the project have them."""
    session.take_table("health-records")
    settled(session)
    assert session.table == "health-records.csv"
    assert session.looked["rows"] == 7
    assert (session.folder / "health-records.csv").is_file()


@pytest.mark.thorough
@pytest.mark.parametrize("instance", words("builtin"))
def test_built_in_tables_are_there(
    session: Session, monkeypatch: pytest.MonkeyPatch, instance: str
) -> None:
    """Each that the page offers is read without files of others, and has something to ask."""
    monkeypatch.setenv("ANONYMIP_DATA", str(session.folder / "nowhere"))
    session.take_table(instance)
    assert settled(session).table == work.builtin_file(instance)
    assert session.schema["attributes"]


@pytest.mark.parametrize("weighted", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_curves_grow_point_by_point(session: Session, weighted: bool) -> None:
    """Every k has its loss as a share, and no bound is above it; bounds hold for larger k."""
    prepared(session).asked.weighted = weighted
    session.make_curve()
    points = settled(session).points()
    assert [k for k, _ in points] == [2, 3, 5, 10]
    assert 0.05 < points[-1][1]["loss"] < 1
    bounds = [one["bound"] for _, one in points]
    assert all(0 <= one["bound"] <= one["loss"] + 1e-9 for _, one in points)
    assert bounds == sorted(bounds)
    assert all(one["bound"] >= session.curve[k]["bound"] for k, one in points)


class _Waiting:
    """A task that goes on until it is stopped, and then returns what it has."""

    def __call__(self, budget: Any) -> str:
        """Wait for the end."""
        while not budget.is_interrupted:
            pass
        return "best so far"


def test_a_stop_keeps_what_is_there(session: Session) -> None:
    """The task that runs hands on its best, those after it do not begin."""
    found: list[Any] = []
    job = Job("x", {1: _Waiting(), 2: _Waiting()}, lambda *one: found.append(one)).start()
    session.job = job
    with pytest.raises(InputError, match="running"):
        session.make_curve()
    job.stop()
    job.wait(60)
    assert (found, job.error, job.running) == ([(1, "best so far")], "", False)


def test_a_curve_that_is_stopped_keeps_whole_points(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The point that was cut short is none, unless it is the only one."""
    prepared(session)
    point = {"loss": 0.1, "bound": None, "optimal": False, "suppressed": 0}

    def weigh(folder: Path, table: str, schema: str, asked: Any, k: int, budget: Any) -> Any:
        if k == 3:
            budget.interrupt()
        return point

    monkeypatch.setattr(work, "weigh", weigh)
    session.make_curve()
    assert list(settled(session).curve) == [2]


def test_a_stop_with_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that was killed leaves a message, and so does a fault."""
    killed = Killed(Stopped.INTERRUPT, None)
    monkeypatch.setattr(work, "run_isolated", lambda *_, **__: killed)
    job = Job("x", {1: _Waiting()}, print).start()
    job.wait(60)
    assert "nothing" not in job.error
    assert "anything" in job.error
    monkeypatch.setattr(work, "run_isolated", lambda *_, **__: 1 / 0)
    job = Job("x", {1: _Waiting()}, print).start()
    job.wait(60)
    assert "ZeroDivisionError" in job.error


@pytest.mark.parametrize("keeps", [False, True])
def test_only_what_keeps_something_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, keeps: bool
) -> None:
    """A table that is being read is given up at once; a release has time to be written."""
    graces: list[float] = []
    monkeypatch.setattr(work, "run_isolated", lambda *_, grace: graces.append(grace))
    Job("x", {1: _Waiting()}, lambda *_: None, keeps=keeps).start().wait(60)
    assert [grace > 60 for grace in graces] == [keeps]


def test_schemas_are_written_as_they_are_read(tmp_path: Path) -> None:
    """What inspect suggests comes back the same from the text that the page writes."""
    (tmp_path / "people.csv").write_text(people())
    document = tomllib.loads(inspect(tmp_path / "people.csv").to_toml())
    assert tomllib.loads(schema_text(document)) == document
    odd = {'a "b" ü\n.x': {"domain": ["1\\", "\x7f"], "hierarchy": {"groups": {"a b": ["c"]}}}}
    assert tomllib.loads(schema_text({"attributes": odd})) == {"attributes": odd}
