"""Runs by parts: the release, its bound, its files, and what is refused."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import anonymip
from anonymip import Diversity, Engine, InputError, Problem, Schema, anonymize_by_parts, solve
from anonymip.cli.app import run
from anonymip.errors import Interrupted
from anonymip.privacy.parts import verify_parts
from anonymip.runtime.budget import Budget, Progress
from anonymip.scale import part as part_room
from anonymip.scale.cuts import digest
from anonymip.scale.part import Task
from anonymip.scale.running import run_by_parts
from tests import profiles
from tests.scale.test_cuts import frames

QUICK = {"method": "ordered-cut", "effort": "quick"}
NAMES = ["age:numeric", "sex:categorical", "town:categorical"]


def small(rows: int = 25) -> Engine:
    """Return an engine of this process with small parts."""
    return Engine("local", workers=1, part_rows=rows)


def write_people(folder: Path) -> None:
    """Write two Parquet files with 240 persons."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 240),
            "sex": rng.choice(["f", "m"], 240),
            "town": rng.choice(["Bonn", "Köln", "Trier", "Ulm"], 240),
            "ill": rng.choice(["flu", "cold", "gout"], 240),
        }
    )
    folder.mkdir()
    frame.iloc[:150].to_parquet(folder / "a.parquet", row_group_size=50)
    frame.iloc[150:].to_parquet(folder / "b.parquet")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Return a folder of two Parquet files with 240 persons."""
    write_people(tmp_path / "people")
    return tmp_path / "people"


def released(people: Path, output: Path | str, **given: Any) -> anonymip.ReleaseInParts:
    """Return the release of the folder by parts of 60 rows."""
    asked: dict[str, Any] = {"engine": small(60), "sensitive": ["ill"], **QUICK, **given}
    return anonymize_by_parts(people, NAMES, 5, output, **asked)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with these persons and their release, made once."""
    folder = tmp_path_factory.mktemp("made")
    write_people(folder / "people")
    released(folder / "people", folder / "release")
    return folder


@given(frames(20, 60), st.integers(2, 4), st.integers(8, 30))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.filterwarnings("ignore")
def test_releases_by_parts_hold(tmp_path: Path, frame: pd.DataFrame, k: int, rows: int) -> None:
    """They are verified part by part and as one table; no release loses less than the bound."""
    table, output = tmp_path / "table.parquet", tmp_path / "release"
    frame.to_parquet(table, row_group_size=max(5, len(frame) // 3))
    found = anonymize_by_parts(
        table, NAMES, k, output, engine=small(rows), method="greedy-search", effort="quick"
    )
    assert verify_parts(table, output, k=k).ok
    whole = pd.read_parquet(output)
    result = anonymip.verify(frame, whole, found.manifest)
    assert result.ok, result.problems
    problem = Problem(Schema().with_roles(NAMES).apply(frame), k)
    best = solve(problem, "local-search", bound=False).objective
    assert found.bound is not None
    assert found.bound <= min(best, found.objective) * (1 + 1e-12)


def test_values_that_are_not_all_known_raise_no_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many numbers the ends are kept: next to a cut there may be any."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"x": rng.random(120).round(3), "y": rng.random(120).round(2)})
    frame.to_parquet(tmp_path / "table.parquet", row_group_size=20)
    names = ["x:numeric", "y:numeric"]
    asked: dict[str, Any] = {"engine": small(20), **QUICK}
    exact = anonymize_by_parts(tmp_path / "table.parquet", names, 2, tmp_path / "exact", **asked)
    monkeypatch.setattr("anonymip.scale.survey._MANY", 5)
    found = anonymize_by_parts(tmp_path / "table.parquet", names, 2, tmp_path / "short", **asked)
    assert found.parts > 4
    assert found.objective == exact.objective
    assert found.bound is not None
    assert exact.bound is not None
    assert 0 < found.bound <= exact.bound
    best = solve(Problem(Schema().with_roles(names).apply(frame), 2), "local-search").objective
    assert exact.bound <= best


@pytest.mark.thorough
@pytest.mark.parametrize("n", [1_000, 10_000])
def test_bounds_stay_below_the_best_known_loss(tmp_path: Path, n: int) -> None:
    """Of census records too, whose best release is found without parts."""
    data = anonymip.load_instance(f"census:{n},8,1")
    data.frame.to_parquet(tmp_path / "table.parquet")
    best = solve(Problem(data, 5), "local-search").objective
    for effort in ("quick", "normal"):
        found = anonymize_by_parts(
            tmp_path / "table.parquet",
            list(data.names),
            5,
            tmp_path / "release",
            engine=small(n // 5),
            method="greedy-search",
            effort=effort,
        )
        assert found.bound is not None
        assert found.bound <= best <= found.objective


def test_one_part_is_the_ordinary_call(people: Path, tmp_path: Path) -> None:
    """A table that fits one part is released as ever, but for the order of the rows."""
    found = released(people, tmp_path / "release", engine=small(1_000))
    frame = pd.read_parquet(people)
    ordinary = anonymip.anonymize(frame, NAMES, 5, sensitive=["ill"], **QUICK)
    columns = list(frame)
    by_parts = pd.read_parquet(tmp_path / "release").astype(str).sort_values(columns)
    at_once = ordinary.frame.astype(str).sort_values(columns)
    assert by_parts.to_numpy().tolist() == at_once.to_numpy().tolist()
    same = ("objective", "ncp", "gcp", "bound", "gap", "status", "columns", "homogeneous", "n")
    assert {key: found.manifest[key] for key in same} == {
        key: ordinary.manifest[key] for key in same
    }


@pytest.mark.thorough
def test_a_release_by_parts_is_told_by_its_seed(people: Path, tmp_path: Path) -> None:
    """Twice the same call writes the same bytes, in one process or in two."""
    for name, workers in (("one", 1), ("two", 2)):
        engine = Engine("local", workers=workers, part_rows=60)
        assert released(people, tmp_path / name, engine=engine).parts > 2
    for file in sorted((tmp_path / "one").iterdir()):
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
    # What they were made from is gone.
    assert sorted(one.name for one in tmp_path.iterdir()) == ["one", "people", "two"]


@pytest.mark.parametrize("ending", ["csv", *profiles.thorough("parquet")])
def test_tables_at_addresses(people: Path, tmp_path: Path, ending: str) -> None:
    """They are read and verified as those of this machine; a bad file is named by its address."""
    frame = pd.read_parquet(people)
    shutil.rmtree(people)
    people.mkdir()
    for number in range(2):
        half, file = frame.iloc[number::2], people / f"{number}.{ending}"
        half.to_csv(file, index=False) if ending == "csv" else half.to_parquet(file)
    address = people.as_uri()
    released(people, tmp_path / "path")
    asked: dict[str, Any] = {"engine": small(60), "sensitive": ["ill"], **QUICK}
    anonymize_by_parts(address, NAMES, 5, tmp_path / "address", **asked)
    for file in (tmp_path / "path").iterdir():
        assert file.read_bytes() == (tmp_path / "address" / file.name).read_bytes()
    assert verify_parts(address, tmp_path / "address", k=5).ok
    (people / f"1.{ending}").write_text("age,sex,town,ill\n1,2,3,4,5,6\n")
    with pytest.raises(InputError, match=re.escape(f"{address}/1.{ending}")):
        anonymize_by_parts(address, NAMES, 5, tmp_path / "new", **asked)


def test_progress_tells_loss_speed_and_time_left(people: Path, tmp_path: Path) -> None:
    """With every part that is solved; at the end the loss is that of the release."""
    told: list[Progress] = []
    found = released(people, tmp_path / "release", progress=told.append)
    solved = [one for one in told if one.phase == "solving parts"]
    assert [one.done for one in solved] == [*range(found.parts + 1)]
    assert solved[-1].incumbent == pytest.approx(found.objective)
    assert re.fullmatch(r"[\d,]+ rows a second, about 0:00:00 left", solved[-1].note)


def test_domains_are_those_of_the_whole(people: Path, tmp_path: Path) -> None:
    """A loss counts shares of all ages and towns, whatever a part holds; none is published."""
    found = released(people, tmp_path / "release")
    columns = {one["name"]: one for one in found.manifest["columns"]}
    assert columns["age"]["domain"] is None
    assert columns["town"]["domain"] is None
    assert anonymip.verify(
        pd.read_parquet(people), pd.read_parquet(tmp_path / "release"), found.manifest
    ).ok


@pytest.mark.parametrize("policy", ["drop", "own", "category"])
def test_missing_values_and_dates_by_parts(tmp_path: Path, policy: str) -> None:
    """Policies for missing values hold, and dates are counted as in a whole table."""
    rng = np.random.default_rng(3)
    days = pd.Timestamp("1970-01-05") + pd.to_timedelta(rng.integers(0, 9_000, 160), unit="D")
    towns = np.where(rng.random(160) < 0.1, "", rng.choice(["Bonn", "Ulm", "Trier"], 160))
    frame = pd.DataFrame({"born": days.strftime("%d.%m.%Y"), "town": towns, "ill": "flu"})
    frame["age"] = rng.integers(10, 90, 160).astype(str)
    frame.loc[::17, "age"] = "" if policy != "category" else frame["age"]
    (tmp_path / "table").mkdir()
    for number in range(2):
        frame.iloc[number::2].to_csv(tmp_path / "table" / f"{number}.csv", index=False)
    schema = tmp_path / "roles.toml"
    schema.write_text(
        '[attributes.born]\nkind = "date"\nformat = "%d.%m.%Y"\nprecision = "month"\n'
        '[attributes.age]\nkind = "numeric"\nat_most = 80\nprecision = 5\n'
        '[attributes.town]\nkind = "categorical"\n[table]\nkeep = ["ill"]\n',
        encoding="utf-8",
    )
    found = anonymize_by_parts(
        tmp_path / "table",
        [],
        3,
        tmp_path / "release",
        engine=small(50),
        schema=anonymip.read_schema(schema),
        missing=policy,
        **QUICK,
    )
    assert found.parts > 1
    result = verify_parts(tmp_path / "table", tmp_path / "release", k=3)
    assert result.ok, result.problems
    assert (found.manifest["left_out"]["missing"] > 0) == (policy == "drop")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "method",
    [
        "nh",
        pytest.param("greedy", marks=pytest.mark.thorough),
        pytest.param("sort-greedy", marks=pytest.mark.thorough),
    ],
)
def test_covers_by_parts(people: Path, tmp_path: Path, method: str) -> None:
    """A freeform release is one of the whole table, and its bound holds of classes and covers."""
    given: dict[str, Any] = {"recoding": "freeform", "method": method, "effort": "normal"}
    found = released(people, tmp_path / "release", **given)
    assert found.parts > 2
    assert verify_parts(people, tmp_path / "release", k=5).ok
    frame = pd.read_parquet(people)
    result = anonymip.verify(frame, pd.read_parquet(tmp_path / "release"), found.manifest)
    assert result.ok, result.problems
    data = Schema().with_roles(NAMES, ["ill"]).apply(frame)
    best = solve(Problem(data, 5, "freeform"), "reassign", bound=False)
    assert found.bound is not None
    assert found.bound <= best.objective


def test_diversity_and_limits_by_parts(people: Path, tmp_path: Path) -> None:
    """Rules of classes hold in each part, and are verified there."""
    found = released(
        people,
        tmp_path / "release",
        diversity=Diversity(l=2),
        limits=[anonymip.Cap("age", 40)],
        method="greedy-search",
        engine=small(100),
    )
    result = verify_parts(people, tmp_path / "release")
    assert result.ok
    assert found.manifest["diversity"]["l"] == 2
    assert any("age" in check for check in found.manifest["checked"])


def test_a_cut_before_the_missing_names_no_value(tmp_path: Path) -> None:
    """What parts the missing from all others is no number of the table, nor a text's digest."""
    pay = ["10"] * 30 + ["987654"] * 110 + [""] * 60
    frame = pd.DataFrame({"pay": pay, "one": ["yes" if one else "" for one in pay]})
    frame.to_parquet(tmp_path / "table.parquet")
    for name, kind in (("pay", "own"), ("one", "category")):
        found = anonymize_by_parts(
            tmp_path / "table.parquet",
            [name],
            5,
            tmp_path / name,
            engine=small(150),
            missing=kind,
            **QUICK,
        )
        assert found.parts == 2
        assert found.manifest["parts"]["cuts"]["at_most"] not in (987_654, digest("yes"))
        assert [one["n"] for one in found.manifest["parts"]["files"]] == [140, 60]
        assert verify_parts(tmp_path / "table.parquet", tmp_path / name, k=5).ok


@pytest.mark.thorough("b")
@pytest.mark.parametrize("absent", ["b", "c"])
def test_rows_that_are_left_out_bind_nothing(tmp_path: Path, absent: str) -> None:
    """They may hold what no other row does, and are no rows of a part."""
    frame = pd.DataFrame({"age": [*range(100)], "town": [*"ab" * 40, *"c" * 20], "sex": "f"})
    frame.loc[frame["town"] == absent, "sex"] = ""
    frame.to_parquet(tmp_path / "table.parquet")
    found = anonymize_by_parts(
        tmp_path / "table.parquet",
        ["age:numeric", "town:categorical", "sex:categorical"],
        5,
        tmp_path / "release",
        engine=small(30),
        missing="drop",
        **QUICK,
    )
    assert found.parts > 1
    assert found.rows == (frame["sex"] == "f").sum()
    assert verify_parts(tmp_path / "table.parquet", tmp_path / "release", k=5).ok


def test_a_part_that_lacks_values_names_the_remedy(tmp_path: Path) -> None:
    """Each town has one illness: the whole table is diverse, no part of one town is."""
    frame = pd.DataFrame({"age": range(40), "town": ["Ulm", "Bonn"] * 20, "sex": "f"})
    frame.assign(ill=frame["town"]).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(InputError, match=r"part 1 of 20 rows.*larger parts"):
        anonymize_by_parts(
            tmp_path / "table.parquet",
            ["town:categorical", "sex:categorical"],
            2,
            tmp_path / "release",
            sensitive=["ill"],
            drop=["age"],
            diversity=Diversity(distinct=2),
            engine=small(20),
            **QUICK,
        )
    assert sorted(one.name for one in tmp_path.iterdir()) == ["table.parquet"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"method": "equivalence-mip"}, "proves what is optimal"),
    ({"recoding": "k-concealment", "method": "auto"}, "recoding k-concealment is not solved"),
    ({"recoding": "pattern", "method": "auto"}, "recoding pattern is not solved by parts"),
    ({"diversity": Diversity(l=1, t=0.5), "recoding": "pattern"}, "recoding pattern"),
    ({"diversity": Diversity(l=2), "recoding": "freeform", "method": "nh"}, "diversity of covers"),
    ({"objective": anonymip.Bottleneck()}, "is not solved by parts"),
    ({"recoding": anonymip.EquivalenceClasses(suppression=True)}, "suppression is not allowed"),
    ({"time_limit": 3.0}, "does not look at the clock"),
    ({"schema": Schema(pseudonyms=("ill",)), "sensitive": []}, "pseudonyms are not made"),
    ({"engine": "spark"}, "unknown engine"),
]


def test_weights_are_refused(tmp_path: Path) -> None:
    """Losses by sampling weights are told of whole tables."""
    table = tmp_path / "survey.parquet"
    pd.DataFrame({"age": range(40), "sex": "f", "town": "Ulm", "w": 2.5}).to_parquet(table)
    with pytest.raises(InputError, match="sampling weights are not told"):
        released(table, tmp_path / "release", schema=Schema(weights="w"), sensitive=[])


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=[text for _, text in REFUSED])
def test_what_parts_cannot_keep_is_refused(
    people: Path, tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    """The reason is told before any work, and nothing is left."""
    with pytest.raises(InputError, match=message):
        released(people, tmp_path / "release", **given)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["people"]


def test_a_first_file_of_few_rows_hides_nothing(people: Path, tmp_path: Path) -> None:
    """What parts cannot keep is refused however few rows come first."""
    frame = pd.read_parquet(people / "a.parquet")
    frame.iloc[:2].to_parquet(people / "0.parquet")
    with pytest.raises(InputError, match="recoding pattern is not solved by parts"):
        released(people, tmp_path / "release", recoding="pattern", method="auto")
    assert released(people, tmp_path / "release").rows == 242


def _spoil(people: Path, how: str) -> None:
    frame = pd.read_parquet(people / "b.parquet")
    if how == "corrupt":
        (people / "b.parquet").write_bytes((people / "b.parquet").read_bytes()[:-40])
    elif how == "damaged inside":
        content = bytearray((people / "b.parquet").read_bytes())
        content[4:400] = os.urandom(396)
        (people / "b.parquet").write_bytes(content)
    elif how == "column":
        frame.drop(columns="town").to_parquet(people / "b.parquet")
    elif how == "text":
        frame["age"] = frame["age"].astype(str).where(frame.index != frame.index[3], "many")
        frame.to_parquet(people / "b.parquet")
    elif how == "category":
        frame.loc[frame.index[2], "town"] = "Mainz"
        frame.to_parquet(people / "b.parquet")
    elif how == "missing":
        frame.loc[frame.index[2], "town"] = None
        frame.to_parquet(people / "b.parquet")


@pytest.mark.parametrize(
    "how", ["corrupt", "damaged inside", "column", "text", "category", "missing"]
)
def test_a_bad_file_is_named(people: Path, tmp_path: Path, how: str) -> None:
    """What is wrong with one of the files is said with its name, and nothing is published."""
    _spoil(people, how)
    schema = Schema({"town": {"kind": "categorical", "domain": ["Bonn", "Köln", "Trier", "Ulm"]}})
    with pytest.raises(InputError, match=r"b\.parquet") as told:
        anonymize_by_parts(
            people,
            NAMES,
            5,
            tmp_path / "release",
            engine=small(60),
            sensitive=["ill"],
            schema=schema if how == "category" else None,
            **QUICK,
        )
    assert "Mainz" not in str(told.value)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["people"]


def test_a_full_disk_publishes_nothing(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release that was there stays, and the message names the output."""
    released(people, tmp_path / "release")
    before = {one.name: one.read_bytes() for one in (tmp_path / "release").iterdir()}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(part_room, "_write", full)
    with pytest.raises(InputError, match="release: No space left"):
        released(people, tmp_path / "release", seed=1)
    assert {one.name: one.read_bytes() for one in (tmp_path / "release").iterdir()} == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["people", "release"]


def test_a_stopped_run_leaves_nothing(people: Path, tmp_path: Path) -> None:
    """Who interrupts it gets neither a release nor its parts."""
    budget = Budget()
    budget.progress = lambda message: message.phase == "solving parts" and budget.interrupt()
    roles = Schema().with_roles(NAMES, ["ill"])
    task = Task(str(people), roles, {"k": 5, "diversity": None}, {"method": "ordered-cut"})
    with pytest.raises(Interrupted):
        run_by_parts(task, tmp_path / "release", small(60), budget)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["people"]


def test_rows_that_are_lost_on_the_way_are_missed(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that does not hold the rows of the table is no part of a release."""
    read = part_room.read_groups

    def doubled(places: Any) -> Any:
        table = read(places)
        return table.take([0, *range(1, len(table) - 1), 0])

    monkeypatch.setattr(part_room, "read_groups", doubled)
    with pytest.raises(anonymip.AnonymipError, match="not those of the table"):
        released(people, tmp_path / "release")
    assert not (tmp_path / "release").exists()


def test_other_folders_are_not_replaced(people: Path, tmp_path: Path) -> None:
    """A folder with something else in it stays, and so does a file."""
    with pytest.raises(InputError, match="holds something else"):
        released(people, people)
    with pytest.raises(InputError, match="is a folder of Parquet files"):
        released(people, tmp_path / "release.csv")
    with pytest.raises(InputError, match="is an address"):
        Engine(scratch="memory://scratch")
    assert len(list(people.iterdir())) == 2
    first = released(people, tmp_path / "release", engine=small(40))
    second = released(people, tmp_path / "release", engine=small(100))
    assert first.parts > second.parts
    assert len(list((tmp_path / "release").iterdir())) == second.parts + 1


TAMPERED = [
    "cell",
    "row",
    "file gone",
    "file added",
    "swapped",
    "cuts",
    "n",
    "ncp",
    "bound",
    "optimal",
    "original",
]


@pytest.mark.parametrize("how", TAMPERED)
def test_tampering_is_found(made: Path, people: Path, tmp_path: Path, how: str) -> None:
    """A release by parts that is no longer what was written fails its verification."""
    folder = shutil.copytree(made / "release", tmp_path / "release")
    file = folder / "part-00001.parquet"
    manifest = json.loads((folder / "_manifest.json").read_text())
    table = parquet.read_table(file).to_pandas()
    if how == "cell":
        table.loc[0, "age"] = "[18..79]"
        table.to_parquet(file, index=False)
    elif how == "row":
        table.iloc[1:].to_parquet(file, index=False)
    elif how == "file gone":
        file.unlink()
    elif how == "file added":
        shutil.copy(file, folder / "part-00099.parquet")
    elif how == "swapped":
        other = folder / "part-00000.parquet"
        content = other.read_bytes()
        other.write_bytes(file.read_bytes())
        file.write_bytes(content)
    elif how == "original":
        changed = pd.read_parquet(people / "b.parquet")
        changed["age"] = 18
        changed.to_parquet(people / "b.parquet")
    elif how == "cuts":
        cut = manifest["parts"]["cuts"]
        cut["lower"], cut["higher"] = cut["higher"], cut["lower"]
    elif how == "n":
        manifest["parts"]["files"][0]["n"] += 1
        manifest["n"] += 1
    elif how == "ncp":
        manifest["parts"]["files"][0]["ncp"] *= 0.9
    elif how == "bound":
        manifest["bound"]["value"] = manifest["objective"]["value"] * 1.1
    elif how == "optimal":
        manifest["status"] = "optimal"
    (folder / "_manifest.json").write_text(json.dumps(manifest))
    assert not verify_parts(people, folder).ok


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts.pop("cuts"),
        lambda parts: parts["files"][0].update(note="said"),
        lambda parts: parts["files"][0].update(file="../elsewhere.parquet"),
        lambda parts: parts.update(cuts={"part": 0}),
        lambda parts: parts["cuts"].update(column="ill"),
        lambda parts: parts["cuts"].update(at_most="Ulm"),
    ],
)
def test_malformed_parts_are_refused(made: Path, people: Path, tmp_path: Path, change: Any) -> None:
    """Entries of parts hold what is declared, and name files of the folder alone."""
    shutil.copytree(made / "release", tmp_path / "release")
    path = tmp_path / "release" / "_manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest["parts"])
    path.write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="manifest's parts"):
        verify_parts(people, tmp_path / "release")


@pytest.mark.filterwarnings("ignore")
def test_the_command_line_writes_and_verifies(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--engine` makes a folder that `verify` accepts; what is of whole tables is refused."""
    output, told = str(tmp_path / "release"), str(tmp_path / "told.json")
    asked = ["-q", "age", "-q", "sex", "-q", "town", "--sensitive", "ill", "-k", "5"]
    parts = ["--engine", "local", "--workers", "1", "--part-rows", "60", "--effort", "quick"]
    command = ["anonymize", str(people), *asked, "--method", "ordered-cut", "-o", output]
    assert run([*command, *parts, "--json", told]) == 0
    assert "verified and written" in capsys.readouterr().out
    record = json.loads(Path(told).read_text())[0]
    assert record["parts"] > 2
    assert run(["verify", str(people), output, "-k", "5"]) == 0
    assert "keeps its promises" in capsys.readouterr().out
    assert run(["verify", str(people), output, "-k", "6"]) == 1
    assert run([*command, *parts, "--keep-order"]) == 2
    assert run([*command, "--part-rows", "60"]) == 2
    assert run(["verify", str(people), str(people), "--engine", "local"]) == 2
    assert "Traceback" not in capsys.readouterr().err
