"""Liang & Samavi 2020, Tables 1 and 4 to 8: worked examples, and the sizes of sub-problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonymip.assignments import Classes
from anonymip.exact.split_carry.options import ChainOptions
from anonymip.exact.split_carry.split_carry import run_chain
from anonymip.experiments.running.performing import clocked, tidy_row
from anonymip.instances import load_instance
from anonymip.objectives import WeightedLoss
from anonymip.problem import Problem
from anonymip.solving import solve
from reproductions.papers.data import CENSUS_100K, EXAMPLES
from reproductions.papers.liang import PAPER
from reproductions.specification import Finding, Panel, Reproduction, Series, Statement, Undecided

#: Classes as printed: Table 1b, Appendix C (Example 1, with 15 and 4 where the text has 5 and a
#: gap), and Table 7.
_TABLE_1 = ((0, 1, 2), (3, 4, 5, 6))
_INITIAL = ((12, 1, 11), (14, 7, 10), (16, 19, 13), (6, 9, 5), (8, 2, 15), (17, 0, 4, 18, 3))
_TABLE_7 = ((12, 1, 11), (14, 7, 10, 4), (16, 5, 9), (19, 13, 6, 18), (8, 0, 17), (2, 15, 3))
_WEIGHTS = (0.8, 0.05, 0.1, 0.05)


def _examples(quick: bool) -> pd.DataFrame:
    """Return the rows of the worked examples; they are as small in the quick version."""
    del quick
    health, accidents = load_instance("health-records"), load_instance("person20")
    attributes = zip(accidents.attributes, _WEIGHTS, strict=True)
    weighted = replace(
        accidents, attributes=tuple(replace(one, weight=weight) for one, weight in attributes)
    )
    asked: tuple[tuple[str, Problem, str, Sequence[Sequence[int]]], ...] = (
        ("Table 1", Problem(health, 3), "column-generation", _TABLE_1),
        ("Table 4b", Problem(accidents, 3), "column-generation", ()),
        ("Table 4c", Problem(weighted, 3, objective=WeightedLoss()), "column-generation", ()),
        ("initial", Problem(accidents, 3), "initial", _INITIAL),
        ("Tables 5 and 6", Problem(accidents, 3), "split-carry", ()),
        ("Table 7", Problem(accidents, 3), "greedy-search", _TABLE_7),
    )
    rows = []
    for label, problem, method, printed in asked:
        with clocked({}) as spent:
            solution = solve(problem, method, seed=0)
        row = tidy_row(solution, "person20" if problem.n == 20 else "health-records")
        assert isinstance(solution.assignment, Classes)
        found = _sets(solution.assignment)
        same = len(found & {frozenset(one) for one in printed}) if printed else None
        rows.append(
            {
                **row,
                "experiment": "examples",
                "label": label,
                "cpu_seconds": spent["cpu_seconds"],
                "same_classes": same,
                "printed_classes": len(printed) or None,
                "problem": label,
            }
        )
    return pd.DataFrame(rows)


def _sets(classes: Classes) -> set[frozenset[int]]:
    labels = classes.labels
    return {frozenset(np.flatnonzero(labels == one).tolist()) for one in np.unique(labels)}


def _loss_series(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {"label": rows["label"], "x": rows["n"].astype("float64"), "y": rows["loss"]}
    )


def _row(rows: pd.DataFrame, label: str) -> dict[str, Any]:
    found = rows[rows["label"] == label]
    if found.empty:
        raise Undecided(f"no row of {label}")
    return {str(name): value for name, value in found.iloc[0].to_dict().items()}


def _as_printed(label: str) -> Callable[[pd.DataFrame], Finding]:
    """Return a check: all classes are those that the paper prints."""

    def check(rows: pd.DataFrame) -> Finding:
        row = _row(rows, label)
        same, count = (int(row[f"{one}_classes"]) for one in ("same", "printed"))
        return Finding(same == count, f"{same} of {count} classes are those printed")

    return check


def _split_is_optimal(rows: pd.DataFrame) -> Finding:
    split, best = (_row(rows, one)["loss"] for one in ("Tables 5 and 6", "Table 4b"))
    return Finding(split <= best * (1 + 1e-6), f"Split & Carry {split:.6g}, optimum {best:.6g}")


def _proven(label: str, loss: float) -> Callable[[pd.DataFrame], Finding]:
    def check(rows: pd.DataFrame) -> Finding:
        row = _row(rows, label)
        found = row["loss"]
        holds = row["status"] == "optimal" and abs(found - loss) < 1e-6 * max(1.0, loss)
        return Finding(bool(holds), f"{found:.7g}, status {row['status']}")

    return check


TABLES = Reproduction(
    name="liang-tables1-7",
    paper=PAPER,
    place="Tables 1 and 4 to 7",
    title="worked examples, k = 3",
    sources=(EXAMPLES,),
    full=lambda: (),
    quick=lambda: (),
    shrunk="nothing; they are small",
    panels=(Panel("loss", "records", "loss", _loss_series, "bars", digits=7),),
    statements=(
        Statement("the classes of Table 1b are optimal", "Table 1", _as_printed("Table 1")),
        Statement(
            "the optimum of the 20 records has the loss 13.5",
            "Section 2.3",
            _proven("Table 4b", 13.5),
        ),
        Statement(
            "Split & Carry with S = 3 finds the optimum of the 20 records",
            "Appendix C",
            _split_is_optimal,
        ),
        Statement(
            "the initial solution has the printed sets", "Appendix C", _as_printed("initial")
        ),
        Statement("Greedy Search ends with the sets of Table 7", "Table 7", _as_printed("Table 7")),
    ),
    remarks=("The loss of Table 4c is weighted, the others are sums of NCP",),
    extra=_examples,
    minutes=0.1,
)

#: Sizes and counts as printed, for S = 3, 4 and 5.
_TABLE_8 = {
    3: "9 1 11 1 12 432 13 33 14 30 15 21 16 22 17 16",
    4: "12 1 14 1 15 292 16 27 17 29 18 16 19 16 20 11 21 8 22 5 23 5 24 3 26 1 27 2",
    5: "15 1 18 200 25 15 22 16 23 12 26 19 20 17 28 9 19 23 21 12 27 3 24 4 29 1 30 1 13 1",
}
_PRINTED = {
    f"S = {s}": {
        float(size): float(count)
        for size, count in zip(text.split()[::2], text.split()[1::2], strict=True)
    }
    for s, text in _TABLE_8.items()
}


def _windows(quick: bool) -> pd.DataFrame:
    """Return how many sub-problems of each size the chain has, for k = 3 and 4."""
    data = CENSUS_100K.table(rows=1500 if quick else 5000).load(Path())
    rows = []
    for k in (3, 4):
        for s in (3, 4, 5):
            with clocked({}) as spent:
                run = run_chain(Problem(data, k), ChainOptions(S=s))
            sizes, counts = np.unique([link.size for link in run.links], return_counts=True)
            row = tidy_row(run.solution, "census-100k")
            rows += [
                {
                    **row,
                    "experiment": "windows",
                    "label": f"S = {s}",
                    "cpu_seconds": spent["cpu_seconds"] if place == 0 else 0.0,
                    "size": size,
                    "count": count,
                }
                for place, (size, count) in enumerate(
                    zip(sizes.tolist(), counts.tolist(), strict=True)
                )
            ]
    return pd.DataFrame(rows)


def _sizes_at(k: int) -> Series:
    def series(rows: pd.DataFrame) -> pd.DataFrame:
        own = rows[rows["k"] == k]
        return pd.DataFrame(
            {
                "label": own["label"],
                "x": own["size"].astype("float64"),
                "y": own["count"].astype("float64"),
            }
        )

    return series


def _usual_size(k: int) -> Callable[[pd.DataFrame], Finding]:
    """Return a check: the most frequent sizes are those that the paper prints."""

    def check(rows: pd.DataFrame) -> Finding:
        own, texts, holds = rows[rows["k"] == k], [], True
        for label, printed in _PRINTED.items():
            found = own[own["label"] == label]
            if found.empty:
                raise Undecided(f"no row of {label}")
            usual = int(found.sort_values("count")["size"].iloc[-1])
            theirs = int(max(printed, key=lambda size: printed[size]))
            holds = holds and usual == theirs
            texts.append(f"{label}: {usual} (printed {theirs})")
        return Finding(holds, ", ".join(texts))

    return check


def _largest_size(rows: pd.DataFrame) -> Finding:
    own = rows[rows["k"] == 3]
    bounds = {f"S = {s}": 3 * (2 * 3 - 1 + s) for s in (3, 4, 5)}
    largest = {label: int(own.loc[own["label"] == label, "size"].max()) for label in bounds}
    texts = [f"{label}: {largest[label]} (at most {most})" for label, most in bounds.items()]
    return Finding(all(largest[label] <= most for label, most in bounds.items()), ", ".join(texts))


TABLE8 = Reproduction(
    name="liang-table8",
    paper=PAPER,
    place="Table 8",
    title="sizes of the sub-problems of Fig. 5",
    sources=(CENSUS_100K,),
    full=lambda: (),
    quick=lambda: (),
    shrunk="1,500 records in place of 5,000",
    panels=(
        Panel("k = 3", "records", "sub-problems", _sizes_at(3), printed=_PRINTED, log_y=True),
        Panel("k = 4", "records", "sub-problems", _sizes_at(4), printed=_PRINTED, log_y=True),
    ),
    statements=(
        Statement(
            "the most frequent sizes are those of k = 3 (the captions of Table 8)",
            "Table 8",
            _usual_size(3),
        ),
        Statement(
            "the most frequent sizes are those of k = 4 (the text on Fig. 5)",
            "Section 4.3",
            _usual_size(4),
        ),
        Statement(
            "no sub-problem has more than k (2k - 1 + S) records, k = 3", "Lemma 2", _largest_size
        ),
    ),
    remarks=("The chain stands with S = 3, 4 and 5; printed counts are drawn in both plots",),
    extra=_windows,
    minutes=0.1,
)

REPRODUCTIONS = (TABLES, TABLE8)
