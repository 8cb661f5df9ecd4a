"""A hospital's table as wards type it, made by a generator: nobody in it is a person.

``python -m tests.hospital 20000 hospital.csv`` writes the table of docs/hospital.md.
"""

from __future__ import annotations

import csv
import sys
from datetime import date, timedelta
from pathlib import Path

import numpy as np

HEADER = ("patient", "name", "born", "sex", "postcode", "admitted", "weight", "HbA1c", "diagnosis")
_FIRST = ("Ann", "Ben", "Cyd", "Dan", "Eli", "Fay", "Gus", "Hal", "Ines", "Jan", "Kira", "Lou")
_LAST = ("Mason", "Weaver", "Sawyer", "Miller", "Cooper", "Smith", "Baker", "Fisher", "Tanner")
_TOWNS = (("010", 9), ("011", 5), ("012", 4), ("041", 7), ("091", 3))
_ILL = ("E11.9", "I10.00", "I50.1", "J18.9", "M54.5", "K35.8", "S72.0", "N39.0", "C50.9", "F32.1")


def write_hospital(path: str | Path, rows: int, seed: int = 1) -> Path:
    """Write a table of stays: two thirds as many patients, of whom some came more than once.

    Days of birth are German, those of admission ISO; postcodes begin with 0; weights and HbA1c have
    decimal commas and gaps, and of 400 weights one lost its comma.
    """
    rng = np.random.default_rng(seed)
    persons = [_person(number, rng) for number in range(max(1, 2 * rows // 3))]
    stays = [*range(len(persons)), *rng.integers(0, len(persons), rows - len(persons))]
    with Path(path).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=";", lineterminator="\n")
        writer.writerow(HEADER)
        for number in rng.permutation(stays):
            *known, kilograms = persons[number]
            admitted = date(2025, 1, 1) + timedelta(int(rng.integers(0, 365)))
            weight = f"{kilograms + rng.normal(0, 1):.1f}".replace(".", ",")
            if rng.random() < 1 / 400:
                weight = weight.replace(",", "")
            weight = "" if rng.random() < 0.03 else weight
            sugar = "" if rng.random() < 0.2 else f"{rng.gamma(30, 0.2):.1f}".replace(".", ",")
            ill = _ILL[min(int(rng.exponential(3)), len(_ILL) - 1)]
            writer.writerow((*known, admitted.isoformat(), weight, sugar, ill))
    return Path(path)


def _person(number: int, rng: np.random.Generator) -> tuple[object, ...]:
    name = f"{rng.choice(_FIRST)} {rng.choice(_LAST)}"
    born = date(2024, 6, 1) - timedelta(int(365.25 * min(102, 18 + 75 * rng.beta(2.2, 1.5))))
    town, width = _TOWNS[min(int(rng.exponential(1.3)), len(_TOWNS) - 1)]
    postcode = f"{town}{int(rng.integers(0, 10 * width)):02}"
    kilograms = float(np.clip(rng.normal(76, 14), 42, 148))
    shown = born.strftime("%d.%m.%Y")
    return (f"{number + 10_001:07}", name, shown, str(rng.choice(["F", "M"])), postcode, kilograms)


if __name__ == "__main__":
    print(write_hospital(sys.argv[2], int(sys.argv[1])))
