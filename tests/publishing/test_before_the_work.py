"""Tests that what cannot be published is refused before the work, not after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anonymip import (
    AnonymipError,
    Attribute,
    EquivalenceClasses,
    FullDomain,
    Hierarchy,
    InputError,
    LiangGCP,
    Mask,
    Microdata,
    PatternGuided,
    Problem,
    TableFormat,
    anonymize,
    register_method,
)
from anonymip.cli.app import run
from anonymip.methods import registry
from anonymip.publishing.release import refuse_unpublishable


@pytest.fixture
def forbidden() -> Iterator[str]:
    """Register a method that must not be called, for every recoding; return its name."""
    before = dict(registry._methods)
    for recoding in ("classes", "pattern", "full-domain"):

        @register_method(f"forbidden-{recoding}", recoding=recoding)
        def method(problem: Problem, *, budget: Any = None, seed: int = 0) -> Any:
            raise AssertionError("the work has begun")

    yield "forbidden"
    registry._methods.clear()
    registry._methods.update(before)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with tables; one has declared domains, one another encoding."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{20 + i},{'FM'[i % 2]},{'flu' if i % 3 else 'gout'}\n" for i in range(12))
    Path("open.csv").write_text(f"age,sex,ill\n{rows}")
    Path("declared.csv").write_text(f"age,sex,ill\n{rows}")
    Path("declared.toml").write_text(
        "[attributes.age]\ndomain = [0, 100]\n[attributes.sex]\ndomain = ['F', 'M']\n"
        "[table]\nsensitive = ['ill']\n"
    )
    Path("ends.csv").write_text("age,age_lower\n1,2\n2,2\n3,2\n4,2\n")
    pd.DataFrame({"age": range(4), "ill": pd.Series(["flu", "grippe", "中", "中"])}).to_parquet(
        "signs.parquet"
    )
    Path("latin.toml").write_text(
        "[attributes.age]\n[table]\nencoding = 'latin-1'\nsensitive = ['ill']\n"
    )
    Path("a folder").mkdir()
    return tmp_path


OPEN = ("open.csv", "-q", "age", "-q", "sex", "--sensitive", "ill", "-k", "2")
DECLARED = ("declared.csv", "-k", "2")
#: Commands, and what they are refused for.
REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "observed domain": ((*OPEN, "--suppression"), "records may be suppressed, and the loss would"),
    "observed domain and limit": ((*OPEN, "--most-suppressed", "5"), "Declare the domain"),
    "observed domain of patterns": (
        (*OPEN, "--recoding", "pattern", "--objective", "liang-gcp"),
        "values may be suppressed",
    ),
    "limit that is none": ((*DECLARED, "--most-suppressed", "1.5"), "--most-suppressed is 1.5"),
    "limit that is no number": ((*DECLARED, "--most-suppressed", "few"), "--most-suppressed is"),
    "limit without suppression": (
        (*DECLARED, "--recoding", "k-k", "--most-suppressed", "1"),
        "this one is k-k",
    ),
    "layout": ((*DECLARED, "--layout", "wide"), "unknown layout"),
    "names of a layout": (
        ("ends.csv", "-q", "age", "--keep", "age_lower", "-k", "2", "--layout", "columns"),
        "which is taken",
    ),
    "stars of nobody": ((*DECLARED, "--publish-suppressed"), "no records may be suppressed"),
    "ending": ((*DECLARED, "-o", "release.ods"), "no release is written as"),
    "tabs": ((*DECLARED, "-o", "release.tsv"), "the ending promises tabs"),
    "no file": ((*DECLARED, "-o", "a folder"), "a folder"),
    "the original": ((*DECLARED, "-o", "declared.csv"), "declared.csv"),
    "signs": (
        ("signs.parquet", "--schema", "latin.toml", "-k", "2"),
        "the encoding latin-1 has none for",
    ),
    "cap of nothing": ((*DECLARED, "--cap", "job=3"), "job"),
    "diversity of nothing": (
        ("open.csv", "-q", "age", "-k", "2", "--l-diversity", "2"),
        "a diversity needs sensitive columns",
    ),
    "diversity that no release has": ((*DECLARED, "--l-diversity", "3"), "no release can have"),
    "option of another method": ((*DECLARED, "--option", "mondrian.strict=1"), "mondrian"),
    "solver": ((*DECLARED, "--solver", "abacus"), "unknown solver"),
    "gap": ((*DECLARED, "--gap", "-1"), "gap"),
    "checkpoint": ((*DECLARED, "--checkpoint", "file"), "keeps no checkpoints"),
    "k": (("declared.csv", "-k", "13"), "the table has 12 records"),
    "report": ((*DECLARED, "--report", "a folder"), "a folder"),
    "json": ((*DECLARED, "--json", "release.csv"), "release.csv"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_commands_are_refused_before_the_work(
    name: str, folder: Path, forbidden: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever of a command cannot be done is said before the method is called."""
    options, message = REFUSED[name]
    recoding = "pattern" if "pattern" in options else "classes"
    method = "auto" if "freeform" in options else f"{forbidden}-{recoding}"
    before = sorted(path.name for path in folder.iterdir())
    output = () if "-o" in options else ("-o", "release.csv")
    assert run(["anonymize", *options, *output, "--method", method]) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == before


FRAME = pd.DataFrame({"age": [20, 21, 30, 31], "job": ["a", "b", "a", "b"]})
JOBS = Hierarchy([("a", "*"), ("b", "*")])
#: Calls of anonymize, and what they are refused for.
CALLS: dict[str, tuple[Mapping[str, Any], str]] = {
    "layout": ({"layout": "wide"}, "unknown layout"),
    "choice": ({"suppressed": "hidden"}, "suppressed is 'hidden'"),
    "limit": ({"most_suppressed": -1}, "most_suppressed is -1"),
    "limit without suppression": (
        {"most_suppressed": 1, "recoding": EquivalenceClasses()},
        "no records may be suppressed",
    ),
    "observed domain": (
        {"recoding": EquivalenceClasses(suppression=True)},
        "the domain of 'age', 'job' is what was observed",
    ),
    "observed domain of a starred column": (
        {"recoding": PatternGuided(Mask(never=("job",))), "objective": LiangGCP()},
        "the domain of 'age' is what was observed",
    ),
    "observed domain of a level": (
        {"recoding": FullDomain(), "objective": LiangGCP()},
        "the domain of 'age', 'job' is what was observed",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_refused_before_the_work(name: str, forbidden: str) -> None:
    """The same holds for Python."""
    arguments, message = CALLS[name]
    recoding = arguments.get("recoding", EquivalenceClasses()).name
    with pytest.raises(InputError, match=message):
        anonymize(FRAME, ["age", "job"], 2, method=f"{forbidden}-{recoding}", **arguments)


def test_a_recoding_that_nobody_can_verify_is_refused(forbidden: str) -> None:
    """A recoding from outside names the built-in one as which its releases are verified."""

    class Foreign(EquivalenceClasses):
        form = "foreign"

    with pytest.raises(InputError, match="does not say as what its releases are verified"):
        anonymize(FRAME, ["age"], 2, recoding=Foreign(), method=f"{forbidden}-classes")


@pytest.mark.parametrize(
    ("column", "attribute", "ending"),
    [
        (["a", 1, "b", 2], None, ".parquet"),
        (["a", "中", "b", "c"], None, ".csv"),
        (["a", "中", "b", "c"], Attribute("x", "categorical"), ".csv"),
        ([b"\xff", b"a", b"b", b"c"], None, ".csv"),
        (["a", "b", "a", "b"], Attribute("x", "hierarchical", hierarchy=JOBS), ""),
        (["a", "b", "a", "b"], None, ""),
    ],
)
def test_what_a_file_cannot_hold_is_refused(
    column: list[Any], attribute: Attribute | None, ending: str
) -> None:
    """Types that Parquet does not mix, characters an encoding lacks; an empty ending takes all."""
    frame = pd.DataFrame({"age": range(4), "x": pd.Series(column, dtype=object)})
    attributes = (Attribute("age"), *([] if attribute is None else [attribute]))
    keep = ("x",) if attribute is None else ()
    data = Microdata(frame, attributes, keep=keep, table=TableFormat(encoding="latin-1"))
    for other in (".csv", ".parquet"):
        path = Path(f"release{other}")
        if other == ending:
            with pytest.raises(InputError, match=r"cannot be written as Parquet|holds characters"):
                refuse_unpublishable(Problem(data, 2), path=path)
        elif isinstance(column[0], str) and not ending:
            refuse_unpublishable(Problem(data, 2), path=path)


def test_the_method_that_must_not_run_would_be_noticed(forbidden: str) -> None:
    """Without a fault it is called, so that the tests above can fail."""
    with pytest.raises(AnonymipError, match="fails with AssertionError"):
        anonymize(FRAME, ["age"], 2, method=f"{forbidden}-classes")
