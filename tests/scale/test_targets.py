"""Releases by parts at addresses: parts first, the manifest last, and all of it or nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import anonymip
from anonymip import Engine, InputError, Schema
from anonymip.cli.app import run
from anonymip.errors import Interrupted
from anonymip.privacy.parts import verify_parts
from anonymip.runtime.budget import Budget, Progress
from anonymip.scale.engines import address_of, started
from anonymip.scale.part import Task
from anonymip.scale.running import run_by_parts
from tests import profiles
from tests.scale.test_engines import files_of
from tests.scale.test_running import NAMES, people, released, small

__all__ = ["people"]


class Bucket(MemoryFileSystem):
    """An object store: no folders, no rename, paths that begin with a bucket, and faults."""

    protocol = "bucket"
    root_marker = ""
    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs: list[str] = []  # noqa: RUF012
    #: What was written, in its order; and a name that cannot be, or that is damaged on its way.
    written: list[str] = []  # noqa: RUF012
    broken = damaged = ""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("bucket://").strip("/")

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Refuse, as who may not make buckets is refused."""
        raise PermissionError("buckets are made by others")

    def mv(self, *_: Any, **__: Any) -> None:
        """Refuse: nothing is renamed at once."""
        raise NotImplementedError

    def pipe_file(self, path: str, value: bytes, **_: Any) -> None:
        """Write an object, unless that one cannot be."""
        name = path.rpartition("/")[2]
        if name == Bucket.broken:
            raise RuntimeError("the secret key of this bucket is 123")
        Bucket.written.append(name)
        Bucket.store[path] = self._object(path, value[:-1] if name == Bucket.damaged else value)

    def put_file(self, lpath: str, rpath: str, *_: Any, **__: Any) -> None:
        """Write an object from a file."""
        self.pipe_file(rpath, Path(lpath).read_bytes())

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """Return the objects whose names begin with a path."""
        path = self._strip_protocol(path)
        found = [one for one in Bucket.store if one.startswith(f"{path}/")]
        if not found:
            raise FileNotFoundError(path)
        return [self.info(one) for one in found] if detail else found

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return what is known of an object."""
        path = self._strip_protocol(path)
        if path not in Bucket.store:
            raise FileNotFoundError(path)
        return {"name": path, "size": len(Bucket.store[path].getvalue()), "type": "file"}

    def rm_file(self, path: str) -> None:
        """Remove an object."""
        del Bucket.store[self._strip_protocol(path)]

    def _object(self, path: str, value: bytes) -> Any:
        from fsspec.implementations.memory import MemoryFile

        return MemoryFile(self, path, value)


@pytest.fixture(autouse=True)
def bucket() -> Iterator[type[Bucket]]:
    """Register an empty bucket."""
    fsspec.register_implementation("bucket", Bucket, clobber=True)
    Bucket.store.clear()
    Bucket.written.clear()
    Bucket.broken = Bucket.damaged = ""
    yield Bucket
    memory = fsspec.filesystem("memory")
    if memory.exists("/far"):
        memory.rm("/far", recursive=True)


@pytest.mark.parametrize("scheme", ["bucket", *profiles.thorough("file", "memory", "local")])
def test_a_release_at_an_address_is_that_of_a_folder(
    people: Path, tmp_path: Path, scheme: str
) -> None:
    """Its bytes are the same, both engines verify it, and nothing else is left anywhere."""
    released(people, tmp_path / "release")
    place = f"{scheme}://far/away/release"
    if scheme in ("file", "local"):
        place = f"{scheme}://{tmp_path}/far/away/release"
    found = released(people, place)
    assert found.folder == place
    system, path = fsspec.core.url_to_fs(place)
    there = {one.rpartition("/")[2]: system.cat_file(one) for one in system.ls(path, detail=False)}
    assert there == files_of(tmp_path / "release")
    if scheme == "bucket":
        assert Bucket.written[0] == "_probe"
        assert Bucket.written[-1] == "_manifest.json"
    result = verify_parts(people, place, k=5)
    assert result.ok, result.problems
    expected = {"people", "release", *(["far"] if scheme in ("file", "local") else [])}
    assert {one.name for one in tmp_path.iterdir()} == expected
    system.pipe_file(f"{path}/part-00099.parquet", b"more")
    assert "1 files that the manifest does not name" in verify_parts(people, place).summary()
    system.rm_file(f"{path}/part-00000.parquet")
    assert "part-00000.parquet: The file is not there" in verify_parts(people, place).summary()
    system.rm_file(f"{path}/_manifest.json")
    with pytest.raises(InputError, match="there is no manifest _manifest"):
        verify_parts(people, place)


@pytest.mark.thorough
def test_dask_writes_and_verifies_at_an_address(people: Path, tmp_path: Path) -> None:
    """Workers of a cluster make the parts, and read them there."""
    pytest.importorskip("distributed")
    place = (tmp_path / "far").as_uri()
    engine = Engine("dask", workers=1, part_rows=60, scratch=tmp_path / "scratch")
    found = released(people, place, engine=engine)
    assert found.parts > 2
    released(people, tmp_path / "release")
    assert files_of(tmp_path / "far") == files_of(tmp_path / "release")
    with started(engine, tmp_path, Budget()) as runner:
        assert verify_parts(people, place, run=runner.map, scratch=tmp_path).ok


def test_what_lies_at_an_address_stays(people: Path, tmp_path: Path) -> None:
    """A release there is not replaced, nor what has no manifest; both before any work."""
    place = "memory://far/release"
    released(people, place)
    memory = fsspec.filesystem("memory")
    before = {one: memory.cat_file(one) for one in memory.find("/far")}
    with pytest.raises(InputError, match="a release by parts lies at memory://far/release"):
        released(people / "nothing", place)
    assert {one: memory.cat_file(one) for one in memory.find("/far")} == before
    memory.rm_file("/far/release/_manifest.json")
    with pytest.raises(InputError, match="holds files and no manifest"):
        released(people / "nothing", place)
    assert len(memory.find("/far")) == len(before) - 1


@pytest.mark.thorough("fault1-cannot write to bucket://far/release: RuntimeError")
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"broken": "_probe"}, "cannot write to bucket://far/release: RuntimeError"),
        ({"broken": "part-00002.parquet"}, "cannot write to bucket://far/release: RuntimeError"),
        ({"broken": "_manifest.json"}, "cannot write to bucket://far/release: RuntimeError"),
        ({"damaged": "part-00001.parquet"}, "part-00001.parquet reads otherwise"),
    ],
)
def test_a_run_that_fails_leaves_nothing_at_an_address(
    people: Path, tmp_path: Path, fault: dict[str, str], message: str
) -> None:
    """What was written of it goes again, and no secret of the file system is told."""
    for name, value in fault.items():
        setattr(Bucket, name, value)
    with pytest.raises(InputError, match=message) as told:
        released(people, "bucket://far/release")
    assert "123" not in str(told.value)
    assert not Bucket.store
    assert sorted(one.name for one in tmp_path.iterdir()) == ["people"]


def test_a_run_that_is_stopped_leaves_nothing_at_an_address(people: Path, tmp_path: Path) -> None:
    """Who interrupts it while parts are written gets none of them, nor the folders above them."""
    budget, seen = Budget(), []

    def listen(message: Progress) -> None:
        if message.phase == "writing parts":
            seen.extend((tmp_path / "far" / "release").iterdir())
            budget.interrupt()

    budget.progress = listen
    roles = Schema().with_roles(NAMES, ["ill"])
    task = Task(str(people), roles, {"k": 5, "diversity": None}, {"method": "ordered-cut"})
    with pytest.raises(Interrupted):
        run_by_parts(task, (tmp_path / "far" / "release").as_uri(), small(60), budget)
    assert seen
    assert sorted(one.name for one in tmp_path.iterdir()) == ["people"]


@pytest.mark.parametrize(
    ("place", "given", "message"),
    [
        ("nowhere://far/release", {}, "Protocol not known"),
        ("simplecache::memory://far", {}, "chain of addresses"),
        ("memory://far", {"scheduler": "tcp://127.0.0.1:9", "kind": "dask"}, "scratch folder must"),
    ],
)
def test_addresses_that_cannot_be_written(
    people: Path, place: str, given: dict[str, str], message: str
) -> None:
    """They are refused with the remedy before any work."""
    engine = Engine(**{"kind": "local", **given}, part_rows=60)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message):
        released(people, place, engine=engine)


def test_addresses_survive_paths() -> None:
    """A path has one slash where an address has two, or three."""
    for place in ("s3://bucket/people", "file:///far/people", "memory://far"):
        assert address_of(Path(place)) == address_of(place) == place
    assert address_of("release/s3") is None
    assert address_of(Path("far") / "people") is None


@pytest.mark.filterwarnings("ignore")
def test_the_command_line_writes_to_an_address(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-o` takes one, and `verify` reads it; without its manifest it is no release."""
    place = (tmp_path / "far" / "release").as_uri()
    asked = ["-q", "age", "-q", "sex", "-q", "town", "--sensitive", "ill", "-k", "5"]
    parts = ["--engine", "local", "--workers", "1", "--part-rows", "60", "--effort", "quick"]
    command = ["anonymize", str(people), *asked, "--method", "ordered-cut", "-o", place, *parts]
    told = tmp_path / "told.json"
    assert run([*command, "--json", str(told)]) == 0
    assert json.loads(told.read_text())[0]["output"] == place
    assert f"verified and written: {place}" in capsys.readouterr().out.replace("\n", "")
    assert run(command) == 2
    assert "lies at file://" in capsys.readouterr().err.replace("\n", " ")
    assert run(["verify", str(people), place, "-k", "5"]) == 0
    assert run(["verify", str(people), place, "-k", "6", "--engine", "local"]) == 1
    os.unlink(tmp_path / "far" / "release" / "_manifest.json")
    capsys.readouterr()
    assert run(["verify", str(people), place]) == 2
    assert "there is no manifest" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "far")
    with pytest.raises(anonymip.InputError, match="there is no manifest"):
        verify_parts(people, place)
