"""Two tables of statistical offices, made by generators: nobody in them is a person.

``python -m tests.surveys 10000 2000 survey.csv panel.csv`` writes those of docs/surveys.md.
"""

from __future__ import annotations

import csv
import sys
from datetime import date
from pathlib import Path

import numpy as np

_REGIONS = ("North Coast", "Lake District", "Hill Country", "Old Town", "New Town", "South")
_STATES = ("employed", "unemployed", "in training", "retired", "on leave")


def write_survey(path: str | Path, rows: int, seed: int = 1) -> Path:
    """Write answers: region, age, twelve questions answered by 1 to 9 or -9 for none, a weight."""
    rng = np.random.default_rng(seed)
    regions = rng.choice(len(_REGIONS), rows, p=(0.3, 0.2, 0.2, 0.15, 0.1, 0.05))
    ages = 18 + (72 * rng.beta(1.6, 2, rows)).astype(int)
    leaning = rng.normal(0, 1, rows)
    answers = []
    for question in range(12):
        told = 5 + 1.2 * leaning * (-1) ** question + rng.normal(0, 1.5, rows)
        coded = np.clip(np.round(told), 1, 9).astype(int)
        answers.append(np.where(rng.random(rows) < 0.02, -9, coded))
    weights = np.round(np.exp(rng.normal(6, 0.4, rows)), -1) + 10
    names = ("region", "age", *(f"q{number}" for number in range(1, 13)), "weight")
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        for row, (region, age, weight) in enumerate(zip(regions, ages, weights, strict=True)):
            given = [int(one[row]) for one in answers]
            writer.writerow((_REGIONS[region], age, *given, f"{weight:g}"))
    return Path(path)


def write_panel(path: str | Path, persons: int, seed: int = 1) -> Path:
    """Write twelve months of each person: birth year, sex, district, month, status, income."""
    rng = np.random.default_rng(seed)
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("person_id", "born", "sex", "district", "month", "status", "income"))
        for person in range(persons):
            born, sex = 2008 - int(rng.gamma(5, 9)), str(rng.choice(["F", "M"]))
            district, state = int(rng.choice(40, p=_SHARES)), int(rng.choice(5, p=_BEGINS))
            income = float(np.exp(rng.normal(7.6, 0.5)))
            for month in range(1, 13):
                if rng.random() < 0.06:
                    state = int(rng.choice(5, p=_BEGINS))
                got = income * (1, 0.6, 0.4, 0.7, 0.8)[state] * float(np.exp(rng.normal(0, 0.05)))
                writer.writerow(
                    (
                        f"P{100_000 + 7 * person}",
                        max(born, 1930),
                        sex,
                        f"D{district:02}",
                        date(2025, month, int(rng.integers(1, 29))).isoformat(),
                        _STATES[state],
                        round(got, 2),
                    )
                )
    return Path(path)


_SHARES = np.arange(40, 0, -1) / (40 * 41 / 2)
_BEGINS = (0.62, 0.08, 0.08, 0.18, 0.04)

if __name__ == "__main__":
    print(write_survey(sys.argv[3], int(sys.argv[1])), write_panel(sys.argv[4], int(sys.argv[2])))
