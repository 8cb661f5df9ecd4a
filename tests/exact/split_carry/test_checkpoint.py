"""Tests of checkpoints: what was written is read, and nothing else is taken for it."""

from __future__ import annotations

import json
import math
import os
import stat
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import (
    SSE,
    Attribute,
    Bottleneck,
    Cap,
    Diversity,
    EquivalenceClasses,
    Freeform,
    Hierarchy,
    InputError,
    Microdata,
    Problem,
    WeightedLoss,
    objective,
)
from anonymip.exact.split_carry.checkpoint import FORMAT, Checkpoint, Fingerprint, remove_parts
from anonymip.objectives.language.protocol import FunctionObjective

OURS = Fingerprint("table", "rules", "options")
ARRAYS = {
    "labels": np.array([0, 0, -1, 1], np.int64),
    "losses": np.array([0.1, np.nan, -np.inf]),
    "none": np.empty((0, 7)),
    "file": np.array(3),
    "header": np.array([True]),
}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two sets of arrays are alike to the bit."""
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype
        and one[name].shape == other[name].shape
        and one[name].tobytes() == other[name].tobytes()
        for name in one
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the place of a checkpoint."""
    return tmp_path / "run.checkpoint"


@pytest.fixture
def written(path: Path) -> bytes:
    """Return the content of a checkpoint that lies in its place."""
    Checkpoint(path, OURS).write(ARRAYS)
    return path.read_bytes()


def test_what_was_written_is_read(path: Path) -> None:
    """Arrays come back to the bit, whatever their names; the last file counts."""
    checkpoint = Checkpoint(path, OURS)
    assert checkpoint.read() is None
    checkpoint.write({"labels": np.arange(3)})
    checkpoint.write(ARRAYS)
    read = Checkpoint(path, OURS, resume=True).read()
    assert read is not None
    assert same(read, ARRAYS)
    assert os.listdir(path.parent) == [path.name]


def test_parts_have_files_of_their_own(path: Path) -> None:
    """They are resumed where they are, are not taken for each other, and vanish together."""
    whole = Checkpoint(path, OURS)
    whole.write(ARRAYS)
    for number in (1, 2):
        whole.part(number).write({"number": np.array(number)})
    read = whole.part(2).read()
    assert read is not None
    assert read["number"] == 2
    first, second = (path.with_name(f"{path.name}.part-{number}") for number in (1, 2))
    first.write_bytes(second.read_bytes())
    with pytest.raises(InputError, match="other options"):
        whole.part(1).read()
    mine = path.with_name(f"{path.name}.part-mine")
    mine.write_bytes(b"")
    remove_parts(whole.path)
    assert sorted(os.listdir(path.parent)) == [path.name, mine.name]


def test_only_the_owner_reads_it(path: Path, written: bytes) -> None:
    """The file holds what the table holds, whatever the user's mask allows."""
    before = os.umask(0)
    try:
        Checkpoint(path, OURS, resume=True).write(ARRAYS)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_in_its_place_is_not_overwritten(path: Path, written: bytes) -> None:
    """Who forgets to resume loses nothing."""
    with pytest.raises(InputError, match=r"is there already.*[Rr]esume"):
        Checkpoint(path, OURS)
    assert path.read_bytes() == written


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """Before any work is done."""
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="existing folder"):
        Checkpoint(tmp_path / "file" / "run", OURS)
    with pytest.raises(InputError, match="is a folder"):
        Checkpoint(tmp_path, OURS, resume=True)


def test_the_old_file_stays_until_the_new_one_is_whole(path: Path, written: bytes) -> None:
    """What cannot be written leaves the file before, and nothing beside it."""
    with pytest.raises(ValueError, match="allow_pickle"):
        Checkpoint(path, OURS, resume=True).write({"labels": np.array([object()])})
    assert path.read_bytes() == written
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"table": "x"}, "belongs to another table"),
        ({"rules": "x"}, "another k, recoding"),
        ({"options": "x"}, "other options"),
        ({"table": "x", "options": "x"}, "another table and other options"),
    ],
)
def test_another_computation_is_refused(
    path: Path, written: bytes, change: dict[str, str], said: str
) -> None:
    """The message says what differs; the file stays."""
    checkpoint = Checkpoint(path, OURS._replace(**change), resume=True)
    with pytest.raises(InputError, match=said):
        checkpoint.read()
    assert path.read_bytes() == written


def with_header(path: Path, header: object) -> None:
    """Write an archive with this header and no arrays."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header", json.dumps(header))


@pytest.mark.parametrize(("number", "age"), [(FORMAT + 1, "a newer"), (FORMAT - 1, "an older")])
def test_other_formats_are_refused(path: Path, number: int, age: str) -> None:
    """What another program means is not guessed."""
    header = {"program": "anonymip checkpoint", "format": number, "shape": "unheard of"}
    with_header(path, header)
    with pytest.raises(InputError, match=f"{age} version"):
        Checkpoint(path, OURS, resume=True).read()


@pytest.mark.parametrize("header", [[], {}, {"program": "anonymip checkpoint"}, {"program": 7}])
def test_archives_of_others_are_refused(path: Path, header: object) -> None:
    """An archive is not enough."""
    with_header(path, header)
    with pytest.raises(InputError, match="no checkpoint"):
        Checkpoint(path, OURS, resume=True).read()


@pytest.mark.parametrize("content", [b"", b"age,sex\n1,F\n", b"\x93NUMPY", b"PK\x03\x04"])
def test_files_of_others_are_refused(path: Path, content: bytes) -> None:
    """And not touched."""
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"is no checkpoint.*another file"):
        Checkpoint(path, OURS, resume=True).read()
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "header",
    ["{'descr': (", "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000000,)}"],
)
def test_arrays_that_cannot_be_are_damage(path: Path, written: bytes, header: str) -> None:
    """A whole archive, in which the header of an array is no Python, or tells a size beyond all."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    size = len(header).to_bytes(2, "little")
    parts["extra.npy"] = b"\x93NUMPY\x01\x00" + size + header.encode() + bytes(64)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(InputError, match="is damaged"):
        Checkpoint(path, OURS, resume=True).read()


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_no_damage_goes_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, place: int, change: int
) -> None:
    """A byte changed or an end cut off: an error, or every array is as it was."""
    path = tmp_path_factory.mktemp("damaged") / "run"
    checkpoint = Checkpoint(path, OURS)
    checkpoint.write(ARRAYS)
    content = bytearray(path.read_bytes())
    path.write_bytes(content[: place % len(content)])
    with pytest.raises(InputError, match="is damaged"):
        checkpoint.read()
    content[place % len(content)] ^= change
    path.write_bytes(content)
    try:
        read = checkpoint.read()
    except InputError:
        return
    assert read is not None
    assert same(read, ARRAYS)


def test_slow_disks_are_written_less_often(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing takes a twentieth of the time, and never keeps a run from the file for long."""
    now, slow = [100.0], [0.0]
    monkeypatch.setattr("anonymip.exact.split_carry.checkpoint.time.monotonic", lambda: now[0])

    def sync(handle: int) -> None:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            now[0] += slow[0]

    monkeypatch.setattr("os.fsync", sync)
    checkpoint = Checkpoint(path, OURS)

    def due_after(seconds: float) -> bool:
        now[0] += seconds
        return checkpoint.is_due

    assert not due_after(0.0)
    assert due_after(1.0)
    for taken, wait in ((0.1, 2.0), (1.0, 20.0), (60.0, 30.0)):
        slow[0] = taken
        checkpoint.write(ARRAYS)
        assert not due_after(0.9 * wait)
        assert due_after(0.2 * wait)


TREE = Hierarchy([["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"]])
FRAME = pd.DataFrame(
    {"age": [1, 2, 3, 4, 5, 6], "sex": list("fmfmfm"), "zip": list("abcabc"), "flu": list("uvwuvw")}
)


def people(change: dict[str, Any] | None = None, **attributes: Attribute) -> Microdata:
    """Return a table of six, with some columns or attributes changed."""
    given = {
        "age": Attribute("age", domain=(0, 9)),
        "sex": Attribute("sex", "categorical"),
        "zip": Attribute("zip", "hierarchical", hierarchy=TREE),
        **attributes,
    }
    return Microdata(FRAME.assign(**(change or {})), tuple(given.values()), sensitive=("flu",))


def charging(*names: str) -> FunctionObjective:
    """Return an objective that charges what several attributes lose together."""

    @objective
    def mine(record: Any) -> Any:
        return math.prod(record.spread[name] for name in names)

    return mine


def test_the_same_question_has_the_same_fingerprint() -> None:
    """Tables and problems made again are the same; rows taken in their order too."""
    one = Fingerprint.of(Problem(people(), 2), {"S": 3, "order": "snake"})
    data = people().take(np.arange(6))
    assert one == Fingerprint.of(Problem(data, 2), {"order": "snake", "S": 3})
    assert one.options != Fingerprint.of(Problem(data, 2), {"order": "snake", "S": 4}).options


@pytest.mark.parametrize(
    "data",
    [
        people({"age": [1, 2, 3, 4, 5, 7]}),
        people({"sex": list("fmfmff")}),
        people({"sex": list("gmgmgm")}),
        people(age=Attribute("age", domain=(0, 8))),
        people(age=Attribute("age", domain=(0, 9), weight=2.0)),
        people(age=Attribute("age", domain=(0, 9), publish="set")),
        people(sex=Attribute("sex", "categorical", domain=["f", "m", "x"])),
        people(zip=Attribute("zip", "categorical")),
        people(
            zip=Attribute(
                "zip",
                "hierarchical",
                hierarchy=Hierarchy([["a", "x", "*"], ["b", "y", "*"], ["c", "y", "*"]]),
            )
        ),
        people().take(np.array([1, 0, 2, 3, 4, 5])),
    ],
)
def test_another_table_has_another_fingerprint(data: Microdata) -> None:
    """Values, order, domains, weights, forms and hierarchies count."""
    ours = Fingerprint.of(Problem(people(), 2), {})
    assert Fingerprint.of(Problem(data, 2), {}).table != ours.table


def test_sensitive_values_count_where_they_matter() -> None:
    """Without a diversity nobody looks at them."""
    one, two = people(), people({"flu": list("uvwuvu")})
    plain = [Fingerprint.of(Problem(data, 2), {}) for data in (one, two)]
    diverse = [Fingerprint.of(Problem(data, 2, diversity=Diversity(2)), {}) for data in (one, two)]
    assert plain[0] == plain[1]
    assert diverse[0].table != diverse[1].table


def test_other_rules_have_another_fingerprint() -> None:
    """k, recoding, objective, diversity and limits count, each by itself."""
    problem = Problem(people(), 2)
    problems = [
        problem,
        problem.replace(k=3),
        problem.replace(recoding=Freeform()),
        problem.replace(recoding=EquivalenceClasses(suppression=True)),
        problem.replace(objective=WeightedLoss()),
        problem.replace(objective=Bottleneck()),
        problem.replace(objective=charging("age", "sex")),
        problem.replace(objective=charging("age", "zip")),
        problem.replace(diversity=Diversity(2)),
        problem.replace(limits=(Cap("age", 3),)),
        problem.replace(limits=(Cap("age", 4),)),
    ]
    rules = [Fingerprint.of(one, {}).rules for one in problems]
    assert len(set(rules)) == len(rules)


def test_losses_of_classes_count_too() -> None:
    """Two losses of one name that look at the members of classes."""
    data = Microdata(FRAME[["age"]], (Attribute("age", domain=(0, 99)),))
    rules = {
        Fingerprint.of(Problem(data, 2, objective=SSE(scale)), {}).rules
        for scale in ("deviation", "none")
    }
    assert len(rules) == 2
