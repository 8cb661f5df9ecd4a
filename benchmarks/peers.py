"""AnonyMIP beside the k-anonymization tools of the Python package index, on the same tables.

Each tool runs in an environment of its own, in a process of its own, as its documentation shows
(:mod:`benchmarks.peer_worker`). One judge reads what each publishes: cells become ranges and sets
of values, the release is written in the format of docs/format.md, and ``verify`` recounts k, loss,
and whether the rows can be handed out to the records. A record without a row loses 1 a cell.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import venv
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from anonymip import __version__
from anonymip.files import user_cache
from anonymip.instances.hierarchies.hierarchy import read_hierarchy
from anonymip.instances.library.fetching import data_file
from anonymip.instances.readers import read_table
from anonymip.instances.table_format import TableFormat
from anonymip.privacy import verify
from anonymip.solution import bound_text

#: Processor seconds that a tool may take for one release, and how often that may pass on the clock.
LIMIT, _CLOCK = 600, 8
_LATE = f"over {LIMIT} s"
KS = (5, 10)
_WORKER = Path(__file__).with_name("peer_worker.py")
#: The least of whole-number levels that are made for numbers without a hierarchy.
_BANDS = (32, 8, 2)


@dataclass(frozen=True)
class Peer:
    """A tool of the package index.

    `name`: its name there. `methods`: what is run of it. `cells`: how it writes cells: ``"texts"``
    (``20-30``, ``a,b``) or ``"nodes"`` of the hierarchies. `needs`: packages that it imports
    without saying so.
    """

    name: str
    methods: tuple[str, ...]
    cells: str = "texts"
    needs: tuple[str, ...] = ()


PEERS = (
    Peer("anonypy", ("Mondrian",), needs=("pandas",)),
    Peer("anonypyx", ("Mondrian", "MDAV-generic"), needs=("pandas<3",)),
    Peer("polarfrost", ("Mondrian",), needs=("pyspark",)),
    Peer("umbra-k", ("Mondrian",)),
    Peer("anonymity-api", ("Mondrian",), needs=("pandas",)),
    Peer("project-lighthouse-anonymize", ("Core Mondrian",), cells="nodes"),
    Peer("anjana", ("levels, 0 %", "levels, 5 %"), cells="nodes"),
    Peer("crowds", ("OLA",), cells="nodes"),
)
OURS = Peer("anonymip", ("mondrian, no bound", "auto quick", "auto normal"), cells="ours")


@dataclass(frozen=True)
class Table:
    """A table of quasi-identifiers, with hierarchies for the tools that need them.

    `name`: of the table. `frame`: texts. `kinds`: numeric or categorical, by column. `given`: paths
    from value to root, of columns that have a hierarchy.
    """

    name: str
    frame: pd.DataFrame
    kinds: dict[str, str]
    given: dict[str, list[list[str]]] = field(default_factory=dict)

    def values(self, column: str) -> list[str]:
        """Return the values that occur."""
        return sorted(set(self.frame[column]))

    def ends(self, column: str) -> tuple[float, float]:
        """Return the least and the largest number of a column."""
        numbers = self.frame[column].astype(float)
        return float(numbers.min()), float(numbers.max())

    @cached_property
    def hierarchies(self) -> dict[str, list[list[str]]]:
        """Return a path for every value that occurs, in every column, all of one length."""
        found = {}
        for name, kind in self.kinds.items():
            if name in self.given:
                values = set(self.values(name))
                found[name] = [path for path in self.given[name] if path[0] in values]
            elif kind == "numeric":
                found[name] = [self._bands(name, value) for value in self.values(name)]
            else:
                found[name] = [[value, "*"] for value in self.values(name)]
        return found

    def _bands(self, name: str, value: str) -> list[str]:
        """Return the bands of equal width that hold a number, from an eighth of the domain on."""
        low, high = self.ends(name)
        path = [value]
        for parts in _BANDS:
            width = (high - low) / parts
            band = min(int((float(value) - low) / width), parts - 1)
            path.append(f"{low + band * width:.10g} to {low + (band + 1) * width:.10g}")
        return [*path, "*"]


def _adult() -> Table:
    form = TableFormat(separator=";")
    names = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass"]
    names.append("occupation")
    frame = read_table(data_file("adult/adult_arx_30162.csv"), form)[names]
    kinds = {name: "numeric" if name == "age" else "categorical" for name in names}
    paths = {
        name: read_hierarchy(data_file(f"adult/hierarchies/adult_hierarchy_{name}.csv")).paths
        for name in names
    }
    return Table(
        "adult", frame, kinds, {key: [list(one) for one in own] for key, own in paths.items()}
    )


def _with_categories(frame: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    """Return a table whose codes of categories no tool takes for numbers."""
    return frame.assign(**{name: "code" + frame[name] for name in names})


def _houses() -> Table:
    frame = _with_categories(read_table(data_file("other/houses.csv")), ("ocean_proximity",))
    kinds = dict.fromkeys(frame.columns, "numeric") | {"ocean_proximity": "categorical"}
    return Table("houses", frame, kinds)


def _card_holders() -> Table:
    texts = ("SEX", "EDUCATION", "MARRIAGE")
    frame = _with_categories(read_table(data_file("other/card_holders.csv")), texts)
    kinds = {name: "categorical" if name in texts else "numeric" for name in frame.columns}
    return Table("card-holders", frame, kinds)


TABLES = (_adult, _houses, _card_holders)


class NotReadable(Exception):
    """What a tool publishes is no cell of a release."""


_NUMBER = r"(?:-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_RANGE = re.compile(rf"({_NUMBER})(?: ?(?:-|to) ?({_NUMBER}))?")
_OWN_RANGE = re.compile(rf"\[({_NUMBER})\.\.({_NUMBER})\]")


def _number_text(number: float) -> str:
    return "0" if number == 0 else repr(float(number)).removesuffix(".0")


class Cells:
    """Reads the cells of a column as its tool writes them, and writes them as ours.

    `table, column`: which. `style`: as in :class:`Peer`.
    """

    def __init__(self, table: Table, column: str, style: str) -> None:
        self._style, self._numeric = style, table.kinds[column] == "numeric"
        self._domain = table.values(column)
        self._ends = table.ends(column) if self._numeric else (0.0, 0.0)
        self._below: dict[str, set[str]] = {"*": set(self._domain)}
        for path in table.hierarchies[column]:
            for label in path:
                self._below.setdefault(label, set()).add(path[0])
        self._known: dict[str, str] = {}

    def written(self, text: str) -> str:
        """Return a cell in our grammar."""
        if text not in self._known:
            self._known[text] = self._range(text) if self._numeric else self._set(text)
        return self._known[text]

    def _range(self, text: str) -> str:
        ends = self._ends
        if text == "*":
            found = ends
        elif match := (_OWN_RANGE if self._style == "ours" else _RANGE).fullmatch(text):
            found = float(match[1]), float(match[2] or match[1])
        elif match := _RANGE.fullmatch(text):
            found = float(match[1]), float(match[1])
        else:
            raise NotReadable(f"{text[:40]!r} is no range")
        # A band may end outside the table's values, which nobody has.
        low, high = max(found[0], ends[0]), min(found[1], ends[1])
        return _number_text(low) if low == high else f"[{_number_text(low)}..{_number_text(high)}]"

    def _set(self, text: str) -> str:
        if self._style == "ours":
            listed = text[1:-1].split("|") if text.startswith("{") else [text]
        elif self._style == "nodes":
            listed = sorted(self._below.get(text, ()))
        else:
            listed = self._split(text) or []
        if not listed or not set(listed) <= set(self._domain):
            raise NotReadable(f"{text[:40]!r} names no values")
        members = sorted(set(listed))
        return members[0] if len(members) == 1 else "{" + "|".join(members) + "}"

    def _split(self, text: str) -> list[str] | None:
        """Return the values that a text joins by commas, or by hyphens, which they may hold too."""
        if set(text.split(",")) <= set(self._domain):
            return text.split(",")
        for value in sorted(self._domain, key=len, reverse=True):
            if text == value:
                return [value]
            if text.startswith(f"{value}-"):
                rest = self._split(text[len(value) + 1 :])
                if rest is not None:
                    return [value, *rest]
        return None


def published_rows(table: Table, published: pd.DataFrame, style: str) -> pd.DataFrame:
    """Return a row of our cells for every record that a tool publishes.

    Raises NotReadable if a cell is none.
    """
    counts = published["count"].astype(int) if "count" in published else None
    if _AVERAGED in published:
        published = _with_ranges(table, published)
    rows = {}
    for column in table.frame.columns:
        cells = Cells(table, column, style)
        rows[column] = [cells.written(text) for text in published[column]]
    frame = pd.DataFrame(rows)
    return frame if counts is None else frame.loc[frame.index.repeat(counts)].reset_index(drop=True)


#: The column by which a tool that publishes averages says which record a row is of.
_AVERAGED = "row"


def _with_ranges(table: Table, published: pd.DataFrame) -> pd.DataFrame:
    """Replace the averages of classes by the ranges that they stand for."""
    ranged = published.copy()
    original = table.frame.iloc[published[_AVERAGED].astype(int)].reset_index(drop=True)
    classes = published.groupby(list(table.frame.columns), sort=False).ngroup()
    for column, kind in table.kinds.items():
        if kind == "numeric":
            numbers = original[column].astype(float).groupby(classes.to_numpy())
            low, high = numbers.transform("min"), numbers.transform("max")
            ranged[column] = [
                f"{_number_text(a)} to {_number_text(b)}" for a, b in zip(low, high, strict=True)
            ]
    return ranged


def judged(table: Table, rows: pd.DataFrame, k: int, tool: str, folder: Path) -> dict[str, Any]:
    """Write rows as a release, verify it, and return its loss, its k and what is wrong with it."""
    n, m = table.frame.shape
    loss = sum(_penalties(table, column, Counter(rows[column])) for column in rows)
    lost = max(n - len(rows), 0)
    ncp = loss + m * lost
    columns = [
        {
            "name": name,
            "role": "quasi-identifier",
            "kind": kind,
            "integer": False,
            "publish": "range" if kind == "numeric" else "set",
            "domain": list(table.ends(name)) if kind == "numeric" else table.values(name),
        }
        for name, kind in table.kinds.items()
    ]
    left_out = {"suppressed": lost, "missing": 0, "columns": [], "undeclared_columns": 0}
    missing = {"policy": "error", "tokens": [""], "label": "missing"}
    form = {"separator": ",", "encoding": "utf-8", "layout": "cells", "missing": missing}
    manifest = {
        "format": "anonymip-release/1",
        "recoding": "classes",
        "k": k,
        "n": n,
        "m": m,
        "objective": {"name": "gcp", "value": ncp},
        "ncp": ncp,
        "gcp": ncp / (n * m),
        "status": "heuristic",
        "method": tool,
        "columns": columns,
        "table": form,
        "order": "shuffled",
        "suppressed": 0,
        "left_out": left_out,
        **dict.fromkeys(("bound", "gap", "solver", "diversity")),
        **{key: {} for key in ("options", "versions", "homogeneous")},
        **{key: [] for key in ("limits", "checked", "assumed")},
    }
    release, original = folder / "release.csv", folder / "original.csv"
    rows.to_csv(release, index=False)
    table.frame.to_csv(original, index=False)
    found = verify(original, release, manifest)
    return {
        "loss": ncp / (n * m),
        "rows_lost": lost,
        "k_reached": found.k_reached,
        "status": "verified" if found.ok else f"fails: {found.problems[0]}",
    }


def _penalties(table: Table, column: str, cells: Counter[str]) -> float:
    """Return what the cells of a column lose: widths and numbers of values as parts of all."""
    numeric = table.kinds[column] == "numeric"
    low, high = table.ends(column) if numeric else (0.0, 0.0)
    width = high - low if numeric else len(table.values(column)) - 1
    total = 0.0
    for text, count in cells.items():
        if numeric and text.startswith("["):
            one, other = text[1:-1].split("..")
            total += count * (float(other) - float(one)) / width
        elif text.startswith("{"):
            total += count * text.count("|") / width
    return total


def _folder() -> Path:
    """Return where environments lie, and what a run has measured."""
    return (user_cache() or Path(tempfile.gettempdir())) / "peers"


def _environment(peer: Peer) -> tuple[Path, str]:
    """Return the interpreter of a tool's environment, which is made if need be, and its version."""
    folder = _folder() / f"{peer.name}-{sys.version_info.major}{sys.version_info.minor}"
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"peers: installing {peer.name} into {folder}")
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", peer.name, *peer.needs]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    asked = f"import importlib.metadata as m; print(m.version({peer.name!r}))"
    told = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)
    return python, told.stdout.strip()


def _run(
    python: str, peer: Peer, method: str, k: int, table: Table, folder: Path
) -> dict[str, Any]:
    """Run a tool and return what is measured of it."""
    source, settings, output = (folder / name for name in ("table.csv", "settings.json", "out.csv"))
    table.frame.to_csv(source, index=False)
    asked = {
        "kinds": table.kinds,
        "hierarchies": table.hierarchies if peer.cells == "nodes" else {},
    }
    settings.write_text(json.dumps(asked), encoding="utf-8")
    command = [python, str(_WORKER), peer.name, method, str(k), str(source), str(settings)]
    try:
        ended = subprocess.run(
            [*command, str(output)],
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=_CLOCK * LIMIT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"},
            preexec_fn=_limit,
        )
    except subprocess.TimeoutExpired:
        return {"status": _LATE}
    if ended.returncode:
        # The system ends what has used up its seconds, or the memory.
        if ended.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            late = ended.returncode == -signal.SIGXCPU
            return {"status": _LATE if late else "out of memory"}
        said = ended.stderr.strip().splitlines()
        return {"status": f"error: {said[-1][:90] if said else ended.returncode}"}
    taken = json.loads(Path(f"{output}.json").read_text(encoding="utf-8"))
    measured = {"seconds": round(taken["seconds"], 2), "memory_mb": round(taken["memory_mb"])}
    try:
        published = pd.read_csv(output, dtype=str, keep_default_na=False)
    except pd.errors.EmptyDataError:
        return {**measured, "status": "publishes nothing"}
    try:
        rows = published_rows(table, published, peer.cells)
    except NotReadable as error:
        return {**measured, "status": f"error: {error}"}
    found = judged(table, rows, k, peer.name, folder)
    if "bound" in published and published["bound"][0]:
        found["bound"] = float(published["bound"][0]) / table.frame.size
    return {**measured, **found}


def _limit() -> None:
    """Limit the processor time, and let this process be the one that ends where memory does."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT + 10))
    Path("/proc/self/oom_score_adj").write_text("1000", encoding="utf-8")


def peers() -> Iterator[dict[str, Any]]:
    """Run every tool on every table, two at a time, and yield what is measured.

    What took too long with a small k is not tried with a larger one, which seldom takes less. A run
    that was ended goes on where it was, on the same day and with the same worker.
    """
    worker = hashlib.sha256(_WORKER.read_bytes()).hexdigest()[:12]
    store = _folder() / f"measured-{date.today().isoformat()}-{worker}.jsonl"
    store.parent.mkdir(parents=True, exist_ok=True)
    store.touch()
    kept = dict(map(json.loads, store.read_text(encoding="utf-8").splitlines()))
    tools = [(OURS, sys.executable, __version__)]
    tools += [(peer, *map(str, _environment(peer))) for peer in PEERS]
    for make in TABLES:
        table, late = make(), set()
        for k in KS:
            asked = [(*tool, method) for tool in tools for method in tool[0].methods]

            def run(tool: tuple[Peer, str, str, str], k: int = k, table: Table = table) -> Any:
                peer, python, version, method = tool
                key = json.dumps([table.name, k, peer.name, method, version])
                if key not in kept:
                    with tempfile.TemporaryDirectory() as place:
                        found = _run(python, peer, method, k, table, Path(place))
                    kept[key] = found
                    with store.open("a", encoding="utf-8") as stream:
                        stream.write(f"{json.dumps([key, found])}\n")
                return kept[key]

            tried = [tool for tool in asked if (tool[0].name, tool[3]) not in late]
            with ThreadPoolExecutor(2) as pool:
                measured = dict(zip(tried, pool.map(run, tried), strict=True))
            for tool in asked:
                peer, _, version, method = tool
                found = measured.get(
                    tool, {"status": f"not tried: over {LIMIT} s with k = {KS[0]}"}
                )
                if found["status"] == _LATE:
                    late.add((peer.name, method))
                row = {"table": table.name, "k": k, "tool": peer.name, "method": method}
                told = {"version": version, "measured": date.today().isoformat()}
                yield {**row, **dict.fromkeys(_MEASURED), **found, **told}
            if table.name == "adult":
                yield from _thorough(k)


_MEASURED = ("loss", "seconds", "memory_mb", "rows_lost", "status", "k_reached", "bound")


def _thorough(k: int) -> Iterator[dict[str, Any]]:
    """Yield what the benchmark of Adult holds of the largest effort, which takes minutes."""
    stored = pd.read_csv(Path(__file__).parent / "results" / "adult.csv")
    for row in stored[(stored["variant"] == "thorough") & (stored["k"] == k)].to_dict("records"):
        yield {
            "table": "adult",
            "k": k,
            "tool": OURS.name,
            "method": "auto thorough",
            **dict.fromkeys(_MEASURED),
            "loss": row["gcp"],
            "seconds": row["processor_seconds"],
            "rows_lost": 0,
            "status": "stored by the benchmark adult",
            "bound": row["bound"] / (row["n"] * row["m"]),
            "measured": date.today().isoformat(),
            "version": re.search(r"anonymip ([\d.]+)", row["versions"])[1],  # type: ignore[index]
        }


_TITLES = {"adult": "UCI Adult", "houses": "Houses", "card-holders": "Card holders"}


def markdown(measured: pd.DataFrame) -> str:
    """Return the tables of docs/peers.md."""
    lines = [
        f"Measured on {measured['machine'].iloc[0]}, {measured['measured'].iloc[0]}; "
        f"at most {LIMIT} processor seconds a release. Versions: "
        + ", ".join(f"{tool} {version}" for tool, version in _versions(measured))
        + "."
    ]
    for (name, k), rows in measured.groupby(["table", "k"], sort=False):
        bound = rows["bound"].max()
        lines += ["", f"**{_TITLES[str(name)]}, k = {k}.**"]
        if not pd.isna(bound):
            lines[-1] += (
                f" Without suppression no release of classes loses less than {bound_text(bound)}."
            )
        lines += [
            "",
            "| tool | method | loss (gcp) | seconds | MB | rows lost | smallest class | `verify` |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for row in rows.sort_values("loss", kind="stable").to_dict("records"):
            cells = (
                row["tool"],
                row["method"],
                _shown(row["loss"], ".4f"),
                _shown(row["seconds"], ".1f"),
                _shown(row["memory_mb"], ".0f"),
                _shown(row["rows_lost"], ",.0f"),
                _shown(row["k_reached"], ",.0f"),
                row["status"],
            )
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _shown(value: float, form: str) -> str:
    return "" if pd.isna(value) else format(value, form)


def _versions(measured: pd.DataFrame) -> list[tuple[str, str]]:
    rows = measured[measured["method"] != "auto thorough"]
    return list(dict(zip(rows["tool"], rows["version"], strict=True)).items())
