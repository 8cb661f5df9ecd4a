"""Tests of reproductions: rows to findings, files, stored results, and the list of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from anonymip.errors import InputError
from anonymip.experiments import Experiment, MethodChoice, Samples, TableSource
from anonymip.instances import INSTANCES
from reproductions import performing
from reproductions.__main__ import main
from reproductions.drawing import draw
from reproductions.performing import find_reproduction, reproduce, reproductions
from reproductions.series import (
    above_zero,
    all_proven,
    grows,
    is_below,
    mean_of,
    near_printed,
    no_rise,
    ratio_to,
    share_of,
    table_of,
    within,
)
from reproductions.specification import Finding, Reproduction, Source, Statement
from reproductions.writing import findings_of, findings_text, read_rows
from tests.experiments.test_style import shown_names

REPOSITORY = Path(__file__).parents[1]
RESULTS = REPOSITORY / "docs" / "results" / "reproductions"
ALL = reproductions()


def rows_of(losses: dict[str, list[float]], ks: tuple[int, ...] = (2, 4)) -> pd.DataFrame:
    """Return rows with one loss a method and k; those of `optimum` are proven."""
    return pd.DataFrame(
        [
            {
                "experiment": "e",
                "instance": "t",
                "sample": 1,
                "n": 9,
                "m": 2,
                "k": k,
                "recoding": "freeform",
                "label": label,
                "loss": loss,
                "gcp": loss / 18,
                "status": "optimal" if label == "optimum" else "heuristic",
                "problem": f"k{k}",
                "repetition": 1,
                "cpu_seconds": 1.0,
            }
            for label, line in losses.items()
            for k, loss in zip(ks, line, strict=True)
        ]
    )


ROWS = rows_of({"optimum": [4.0, 8.0], "near": [5.0, 9.0], "far": [6.0, 16.0]})
LOSS = mean_of("loss", "k")


@pytest.mark.parametrize(
    ("check", "holds", "measured"),
    [
        (is_below(LOSS, ("near",), ("far",)), True, "near below far at 2 of 2"),
        (is_below(LOSS, ("near",), ("far",), by=0.7), False, "at 1 of 2 (ratio 0.562 to 0.833)"),
        (is_below(LOSS, ("far",), ("near",), x_from=4), False, "at 0 of 1"),
        (is_below(LOSS, ("near",), ("absent",)), None, "no run of absent"),
        (is_below(LOSS, ("near",), ("far",), x_from=5), None, "no values in that part"),
        (grows(LOSS, "far", "near"), True, "far over near: 1.2 at 2, 1.778 at 4"),
        (grows(LOSS, "far", "near", falls=True), False, "1.2 at 2"),
        (grows(LOSS, "near", "optimum", difference=True), False, "1 at 2, 1 at 4"),
        (within(LOSS, "near", "optimum", 0.2, x_from=4), True, "near is 12.5 % above"),
        (within(LOSS, "near", "optimum", 0.2), False, "12.5 to 25 %"),
        (no_rise(mean_of("ratio", "k"), "near"), True, "near: 1.25 at 2, 1.125 at 4"),
        (no_rise(mean_of("ratio", "k"), "far"), False, "far: 1.5 at 2, 2 at 4"),
        (above_zero(share_of("far"), ("near",)), True, "near 0.688"),
        (lambda rows: all_proven(rows, "optimum"), True, "2 of 2 optima are proven"),
        (lambda rows: all_proven(rows, "near"), False, "0 of 2"),
        (near_printed(LOSS, {"near": {2: 5.1, 4: 12.0}}, "near", 0.03), False, "1 of 2 within 3 %"),
        (near_printed(LOSS, {"near": {2: 5.1}}, "near", 0.03), True, "1 of 1 within 3 %"),
        (near_printed(LOSS, {"near": {7: 5.1}}, "near", 0.03), None, "no value that is measured"),
    ],
)
def test_statements_are_decided_by_rows(check: object, holds: bool | None, measured: str) -> None:
    """A check says yes, no, or that the rows do not decide it, with the numbers behind it."""
    assert callable(check)
    finding = Statement("", "", check).find(ROWS)
    assert finding.holds is holds
    assert measured in finding.measured


def test_series_are_means_by_x_and_label() -> None:
    """A series has one value for each x and method, methods in the order that is asked for."""
    table = table_of(mean_of("loss", "k", labels=("far", "near"), scale=0.5)(ROWS))
    assert table.to_dict("list") == {"far": [3.0, 8.0], "near": [2.5, 4.5]}
    ratios = table_of(ratio_to("near", "loss", "k")(ROWS))
    assert ratios["optimum"].tolist() == [1.25, 1.125]


def test_the_table_of_statements_counts_them() -> None:
    """The text says how many statements hold, how many do not, and lists each with its numbers."""
    asked = replace(
        next(iter(ALL.values())),
        statements=(
            Statement("one", "Section 1", lambda rows: Finding(True, "1 < 2")),
            Statement("two", "Section 2", is_below(LOSS, ("absent",), ("near",))),
        ),
    )
    lines = findings_text(findings_of(asked, ROWS)).splitlines()
    assert lines[0].startswith("Of 2 statements 1 hold here, 0 do not, and 1 are not decided")
    assert lines[4] == "| yes | one | Section 1 | 1 < 2 |"
    assert lines[5] == "| not decided | two | Section 2 | no run of absent |"


def tiny() -> tuple[Experiment, ...]:
    """Return two small tables with a cover and its optimum's rivals."""
    table = TableSource("census:30,3,1", samples=Samples(2, 6, 1))
    methods = (MethodChoice("greedy-search"), MethodChoice("mondrian"))
    return (Experiment(name="records", tables=(table,), k=(2, 3), methods=methods, bound=False),)


@pytest.mark.thorough
def test_a_reproduction_writes_rows_picture_and_text(tmp_path: Path) -> None:
    """A run leaves its rows as CSV, a picture, and a text that says it is the quick version."""
    asked = replace(
        ALL["liang-fig2"],
        quick=tiny,
        statements=(Statement("g", "S", is_below(LOSS, ("greedy-search",), ("mondrian",))),),
    )
    done = reproduce(asked, tmp_path, quick=True, isolate=False)
    assert len(done.rows) == 8
    text = (tmp_path / "liang-fig2-quick.md").read_text(encoding="utf-8")
    assert "**Quick version: " in text
    assert "numba: " in text
    assert (tmp_path / "liang-fig2-quick.png").read_bytes()[1:4] == b"PNG"
    stored = read_rows(tmp_path / "liang-fig2-quick.csv")
    assert findings_of(asked, stored) == done.findings
    assert done.findings[0]["holds"] is not None
    json.dumps(done.record())


@pytest.mark.parametrize("asked", ALL.values(), ids=lambda one: one.name)
def test_quick_versions_keep_all_methods(
    asked: Reproduction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every reproduction can be run where no data are, with the methods of its full version."""

    def titles(experiments: tuple[Experiment, ...]) -> set[str]:
        return {choice.title for one in experiments for choice in one.methods}

    monkeypatch.setattr(Source, "is_here", property(lambda source: False))
    assert titles(asked.quick()) == titles(asked.full())
    used = {table.instance for one in asked.quick() for table in one.tables}
    assert used <= {source.generated for source in asked.sources}
    assert all("stands in" in source.note for source in asked.sources)


def test_data_that_are_not_here_have_a_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where files are missing generated records are run on, and the note says so."""
    source = Source("500,000 records", "adult", "other records", "census:50,3,1")
    monkeypatch.setattr(type(INSTANCES["adult"]), "paths", _refuse)
    assert source.instance == "census:50,3,1"
    assert "not here" in source.note


def _refuse(named: object) -> tuple[Path, ...]:
    raise InputError("not here", remedy="")


@pytest.mark.thorough("doka-fig9")
@pytest.mark.parametrize("asked", ALL.values(), ids=lambda one: one.name)
def test_stored_results_say_what_their_rows_say(asked: Reproduction) -> None:
    """What the stored text says of the paper's statements is what the stored rows decide."""
    rows = read_rows(RESULTS / f"{asked.name}.csv")
    text = (RESULTS / f"{asked.name}.md").read_text(encoding="utf-8")
    assert findings_text(findings_of(asked, rows)) in text
    assert "Full version." in text
    assert "Machine: " in text
    assert "Versions: " in text
    assert (RESULTS / f"{asked.name}.png").stat().st_size < 400_000


@pytest.mark.thorough("liang-fig3", "aggarwal-ratios", "liang-fig5")
@pytest.mark.parametrize("name", ["doka-fig7a", "liang-fig3", "aggarwal-ratios", "liang-fig5"])
def test_stored_results_are_drawn_again(name: str) -> None:
    """Rows alone give the picture; no name in it is cut off or covers another."""
    asked, rows = ALL[name], read_rows(RESULTS / f"{name}.csv")
    named = [text for text, _ in shown_names(draw(asked, rows))]
    labels = {str(x) for one in asked.panels for x in one.series(rows)["label"]}
    assert labels <= set(named)
    assert asked.title in " ".join(named[0].split())


def test_full_results_of_all_reproductions_are_stored() -> None:
    """The folder holds rows, picture and text of every table and figure that is listed."""
    found = {path.name for path in RESULTS.iterdir() if path.is_file()}
    assert found == {f"{name}{ending}" for name in ALL for ending in (".csv", ".md", ".png")}
    assert all(one.stored for one in ALL.values())


def test_the_page_lists_all_reproductions() -> None:
    """docs/reproductions.md has a line for each, with its minutes and full results."""
    page = (REPOSITORY / "docs" / "reproductions.md").read_text(encoding="utf-8")
    listing = page.partition("## The list")[2]
    lines = [line for line in listing.splitlines() if line.startswith("| `")]
    assert lines == [page_line(one) for one in ALL.values()]


def page_line(asked: Reproduction) -> str:
    """Return the line of a reproduction on the page."""
    link = f"results/reproductions/{asked.name}"
    stored = f"[text]({link}.md), [rows]({link}.csv), [picture]({link}.png)"
    what = f"{asked.paper}, {asked.place} | {asked.title}"
    return f"| `{asked.name}` | {what} | {asked.minutes:g} | {stored} |"


class Outcome(NamedTuple):
    """What the command left: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


@pytest.fixture
def reproducing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    """Return what runs ``python -m reproductions`` in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: Outcome(main([*arguments]), *capsys.readouterr())


def test_the_list_names_papers_data_and_results(
    reproducing: Callable[..., Outcome], tmp_path: Path
) -> None:
    """--list has a line for each, and --json the same as records."""
    outcome = reproducing("--list", "--json", "list.json")
    assert outcome.code == 0
    assert len(outcome.out.splitlines()) == 1 + len(ALL)
    records = json.loads((tmp_path / "list.json").read_text())
    assert [record["name"] for record in records] == list(ALL)
    assert {"paper", "place", "title", "data", "minutes", "stored"} <= set(records[0])


def test_a_name_is_needed_and_known(reproducing: Callable[..., Outcome]) -> None:
    """Without a name, or with one that is not there, the remedy says what can be asked for."""
    assert find_reproduction("liang:fig2") is ALL["liang-fig2"]
    assert reproducing().code == 2
    outcome = reproducing("liang-fig99")
    assert outcome.code == 2
    assert "unknown reproduction" in outcome.err
    assert "Did you mean 'liang-fig9'" in outcome.err


def test_findings_are_printed_and_written(
    reproducing: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command prints which statements hold, where the files are, and --json has it all."""

    def perform(asked: Reproduction, folder: Path, **options: Any) -> performing.Reproduced:
        assert options["quick"]
        rows = pd.DataFrame({"label": ["optimum"], "status": ["optimal"], "cpu_seconds": [1.0]})
        assert len(asked.statements) > 1
        few = replace(asked, statements=asked.statements[:1], panels=())
        return performing.Reproduced(few, True, rows)

    monkeypatch.setattr(performing, "reproduce", perform)
    outcome = reproducing("liang:fig2", "--quick", "-o", "out", "--json", "found.json")
    assert outcome.code == 0
    assert "1 of 1 optima are proven" in outcome.out
    assert "out/liang-fig2-quick.csv" in outcome.out
    (record,) = json.loads((tmp_path / "found.json").read_text())
    assert record["statements"][0]["holds"] is True


def test_pictures_are_drawn_again_without_runs(
    reproducing: Callable[..., Outcome], tmp_path: Path
) -> None:
    """--redraw needs the stored rows alone, and says which rows are not there."""
    rows = tmp_path / "kept" / "liang-tables1-7.csv"
    rows.parent.mkdir()
    rows.write_bytes((RESULTS / rows.name).read_bytes())
    outcome = reproducing("liang-tables1-7", "--redraw", "-o", "kept", "--json", "drawn.json")
    assert outcome.code == 0
    picture = rows.with_suffix(".png")
    assert picture.read_bytes()[1:4] == b"PNG"
    assert sorted(path.name for path in rows.parent.iterdir()) == [rows.name, picture.name]
    (record,) = json.loads((tmp_path / "drawn.json").read_text())
    assert record == {"name": "liang-tables1-7", "picture": f"kept/{picture.name}"}
    missing = reproducing("liang-fig2", "--redraw", "-o", "kept")
    assert missing.code == 2
    assert "has no rows of liang-fig2" in missing.err


def test_a_table_whose_rows_are_no_runs_is_reproduced(
    reproducing: Callable[..., Outcome], tmp_path: Path
) -> None:
    """The command runs as it stands, into a folder that is not there yet."""
    outcome = reproducing("liang-tables1-7", "--quick", "-o", "new/folder")
    assert outcome.code == 0
    found = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    assert [name for name in found if name != "runs"] == [
        f"liang-tables1-7-quick{ending}" for ending in (".csv", ".md", ".png")
    ]
