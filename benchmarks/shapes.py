"""Tables of other shapes than the named instances, and what `anonymize` does with them.

``python -m benchmarks.shapes [NAME ...] [--effort EFFORT ...] [--limit SECONDS ...] [-k K ...]``
prints, for each table, k, effort and time limit, the processor seconds of the whole way from a data
frame to a verified release, the seconds of the method that was picked, the loss and the gap: no row
is to be worse than those of less effort or shorter limits before it. Kernels are compiled before
the clock is read. Tables are drawn with a fixed seed, but for those of the benchmark data.
"""

from __future__ import annotations

import argparse
import resource
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from anonymip import anonymize, census
from anonymip.effort import EFFORTS
from anonymip.runtime.budget import compilation_seconds

_SEED = 2027


def numbers() -> pd.DataFrame:
    """Return 4,000 x 10 measurements: correlated, hardly two alike, on scales of their own."""
    rng = np.random.default_rng(_SEED)
    mixing = rng.normal(size=(3, 10))
    drawn = rng.normal(size=(4_000, 3)) @ mixing + 0.5 * rng.normal(size=(4_000, 10))
    return _named((drawn * 10.0 ** rng.integers(-2, 4, 10)).round(4), "x")


def codes() -> pd.DataFrame:
    """Return 73,000 x 8 codes of 2 to 300 values each: a few frequent, many rare, dependent."""
    rng = np.random.default_rng(_SEED + 1)
    n, trait = 73_000, rng.integers(0, 12, 73_000)
    columns = {}
    for at, count in enumerate((2, 5, 7, 9, 16, 42, 73, 300)):
        shares = 1.0 / np.arange(1, count + 1) ** 1.2
        value = rng.choice(count, n, p=shares / shares.sum())
        shifted = np.where(rng.random(n) < 0.6, (value + trait * (at + 1)) % count, value)
        columns[f"c{at}"] = np.char.add("v", shifted.astype(str))
    return pd.DataFrame(columns)


def coordinates() -> pd.DataFrame:
    """Return 20,000 x 7 coordinates: forty crowded places of different widths, and a plain."""
    rng = np.random.default_rng(_SEED + 2)
    centres, widths = rng.random((40, 7)), 10.0 ** rng.uniform(-3.0, -1.0, 40)
    place = rng.integers(0, 40, 20_000)
    points = centres[place] + widths[place, None] * rng.normal(size=(20_000, 7))
    points[:4_000] = rng.random((4_000, 7))
    return _named(points.round(6), "p")


def amounts() -> pd.DataFrame:
    """Return 30,000 x 8 amounts of money: many zeros, round sums, and a few very large ones."""
    rng = np.random.default_rng(_SEED + 3)
    income = np.exp(rng.normal(10.0, 0.8, 30_000))
    columns = {}
    for at in range(8):
        amount = income * np.exp(rng.normal(-1.0 - 0.3 * at, 1.0, 30_000))
        rounded = np.where(rng.random(30_000) < 0.5, amount.round(-2), amount.round())
        columns[f"a{at}"] = np.where(rng.random(30_000) < 0.1 * at, 0.0, rounded)
    return pd.DataFrame(columns)


def answers() -> pd.DataFrame:
    """Return 1,000 x 30 answers from 1 to 5 that depend on four attitudes."""
    rng = np.random.default_rng(_SEED + 4)
    attitudes = rng.normal(size=(1_000, 4)) @ rng.normal(size=(4, 30))
    drawn = 3.0 + 0.5 * attitudes + rng.normal(0.0, 0.7, (1_000, 30))
    return _named(np.clip(drawn.round(), 1, 5).astype(int), "q")


def mixed() -> pd.DataFrame:
    """Return 5,000 x 8 mixed columns: four of numbers, four of categories."""
    rng = np.random.default_rng(_SEED + 5)
    n = 5_000
    age = rng.integers(17, 91, n)
    return pd.DataFrame(
        {
            "age": age,
            "hours": np.clip(rng.normal(40, 12, n).round(), 1, 99).astype(int),
            "income": np.exp(rng.normal(10, 0.7, n)).round(-1),
            "weight": rng.normal(75, 14, n).round(1),
            "sex": rng.choice(["F", "M"], n),
            "status": np.char.add(
                "s", np.clip((age - 17) // 15 + rng.integers(0, 3, n), 0, 6).astype(str)
            ),
            "work": np.char.add("w", rng.zipf(1.7, n).clip(1, 14).astype(str)),
            "region": np.char.add("r", rng.integers(0, 40, n).astype(str)),
        }
    )


def _census(n: int) -> Callable[[], pd.DataFrame]:
    return lambda: pd.DataFrame(census(n, 8, seed=1).frame)


def _of_data(at: int) -> Callable[[], pd.DataFrame]:
    """Return what reads a table of the comparison with other tools."""

    def read() -> pd.DataFrame:
        from benchmarks.peers import TABLES

        table = TABLES[at]()
        numeric = [name for name, kind in table.kinds.items() if kind == "numeric"]
        return table.frame.assign(**{name: pd.to_numeric(table.frame[name]) for name in numeric})

    return read


#: Large tables, and those of the benchmark data, which are measured where they are named.
LARGE: dict[str, Callable[[], pd.DataFrame]] = {
    "adult": _of_data(0),
    "houses": _of_data(1),
    "card-holders": _of_data(2),
    "census-100000": _census(100_000),
    "census-1000000": _census(1_000_000),
}
#: The tables by name.
SHAPES: dict[str, Callable[[], pd.DataFrame]] = {
    made.__name__: made for made in (numbers, codes, coordinates, amounts, answers, mixed)
}


def _named(values: np.ndarray[Any, Any], letter: str) -> pd.DataFrame:
    return pd.DataFrame(values, columns=[f"{letter}{a}" for a in range(values.shape[1])])


def processor_seconds() -> float:
    """Return the processor seconds of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure(
    frame: pd.DataFrame, k: int, effort: str | None, limit: float | None = None
) -> dict[str, Any]:
    """Return processor seconds without compilation, and loss, of one call of `anonymize`."""
    before = processor_seconds() - compilation_seconds()
    release = anonymize(frame, list(frame.columns), k, effort=effort, time_limit=limit)
    solution = release.solution
    return {
        "seconds": round(processor_seconds() - compilation_seconds() - before, 1),
        "method_seconds": round(solution.seconds, 1),
        "gcp": round(solution.gcp, 6),
        "gap": None if solution.gap is None else round(solution.gap, 3),
        "method": solution.method,
    }


def shapes() -> Iterator[dict[str, Any]]:
    """Measure `quick` and `normal` on every table, k = 5."""
    runs: list[tuple[str | None, float | None]] = [("quick", None), ("normal", None)]
    yield from _rows(list(SHAPES), runs, 5)


def large_tables() -> Iterator[dict[str, Any]]:
    """Measure loss and gap of large tables, k = 5 and 10."""
    both: list[tuple[str | None, float | None]] = [("normal", None), ("thorough", None)]
    for name, k in (
        *((name, k) for k in (10, 5) for name in ("houses", "adult", "card-holders", "codes")),
        ("census-100000", 10),
    ):
        yield from _rows([name], both, k)
    yield from _rows(["census-1000000"], [(None, 600.0)], 10)


def _rows(
    names: list[str], runs: list[tuple[str | None, float | None]], k: int
) -> Iterator[dict[str, Any]]:
    for name in names:
        frame = {**SHAPES, **LARGE}[name]()
        # The first call of a process loads the kernels from the cache, or compiles them.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measure(frame[:300], k, "quick")
            for effort, limit in runs:
                n, m = frame.shape
                row = {"table": name, "n": n, "m": m, "k": k, "effort": effort or f"{limit:g} s"}
                yield {**row, **measure(frame, k, effort, limit)}


def main() -> None:
    """Print the figures of the tables, efforts and limits that are named."""
    known = [*SHAPES, *LARGE]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shapes")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(known)}")
    parser.add_argument("--effort", nargs="*", default=["quick", "normal"], choices=EFFORTS)
    parser.add_argument("--limit", nargs="*", default=[], type=float, metavar="SECONDS")
    parser.add_argument("-k", nargs="*", type=int, default=[5])
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(known))
    if unknown:
        parser.error(f"unknown table {', '.join(unknown)}; known: {', '.join(known)}")
    runs = [*((effort, None) for effort in given.effort), *((None, limit) for limit in given.limit)]
    for k in given.k:
        for row in _rows(given.names or list(SHAPES), runs, k):
            print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
