"""Tables of invented persons, which README and the tutorial begin with.

Writes ``six.csv``, ``people.csv`` and ``messy_patients.csv`` beside itself; the same bytes each
time.
"""

from __future__ import annotations

import csv
from pathlib import Path
from random import Random

FOLDER = Path(__file__).parent
WOMEN = "Ada Bea Cleo Dora Edith Fay Greta Hana Ines Judith Kira Lena Mona Nora Olga Paula"
MEN = "Abel Ben Carl Dan Eli Finn Gus Hugo Ivan Jonas Karl Leo Max Nils Oskar Paul"
FAMILIES = (
    "Abbott Baker Carver Draper Ellis Fowler Glover Harper Ingram Joiner Keeler Lister Mason "
    "Napier Osler Potter Quill Reeve Sawyer Tanner Usher Vintner Weaver Yeoman"
)
SIX = (
    "age,sex,zip,disease 34,F,02138,flu 36,F,02139,asthma 35,F,02139,flu 61,M,94110,diabetes "
    "65,M,94110,flu 63,F,94103,asthma"
)


class Draws:
    """Draws that rest on ``Random.random`` alone, which Python promises never to change."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def share(self) -> float:
        """Return a number from 0 to below 1."""
        return self._random.random()

    def one_of(self, *choices: str) -> str:
        """Return one of some texts; one that stands there twice comes twice as often."""
        return choices[int(self.share() * len(choices))]

    def age(self, youngest: int, oldest: int) -> int:
        """Return an age; the middle ones are more frequent."""
        return youngest + int((oldest - youngest + 1) * (self.share() + self.share()) / 2)

    def person(self) -> tuple[str, str]:
        """Return a name and a sex."""
        sex = self.one_of("F", "M")
        given = WOMEN if sex == "F" else MEN
        return f"{self.one_of(*given.split())} {self.one_of(*FAMILIES.split())}", sex


def people(rows: int = 60) -> list[list[str]]:
    """Return a tidy table: name, age, sex, zip, disease."""
    draws = Draws(7)
    table = [["name", "age", "sex", "zip", "disease"]]
    names: set[str] = set()
    while len(table) <= rows:
        name, sex = draws.person()
        if name in names:
            continue
        names.add(name)
        code = draws.one_of("02138", "02138", "02139", "02139", "02140", "02141", "02142")
        age = draws.age(19, 88)
        ills = ["flu", "flu", "asthma", "migraine"]
        ills += ["diabetes", "diabetes", "arthritis", "heart disease"] if age > 50 else ["asthma"]
        table.append([name, str(age), sex, code, draws.one_of(*ills)])
    return table


def messy_patients(rows: int = 300) -> list[list[str]]:
    """Return a table as it comes from a ward: typed by several people, in several ways."""
    draws = Draws(11)
    table = [["Patient no", "Name", "Age", "Sex", "Postcode", "Admitted", "Insurer", "Diagnosis"]]
    towns = ("01067", "01069", "01097", "01099", "04103", "04105", "04109", "09111", "09112")
    for number in range(1, rows + 1):
        name, sex = draws.person()
        years = draws.age(18, 94)
        how = draws.share()
        age = f"{years} y" if how < 0.03 else f" {years}" if how < 0.08 else str(years)
        age = draws.one_of("", "?", "unknown") if draws.share() < 0.02 else age
        if draws.share() < 0.1:
            sex = {"F": "f", "M": "m"}[sex]
        postcode = draws.one_of(*towns[:4], *towns)
        if draws.share() < 0.015:
            postcode = draws.one_of("", "?")
        month, day = 1 + int(6 * draws.share()), 1 + int(28 * draws.share())
        ills = ["fracture", "pneumonia", "pneumonia"]
        ills += ["heart failure"] * 5 if years > 60 else ["appendicitis", "migraine", "burn"]
        table.append(
            [
                f"{4100 + number:06}",
                name,
                age,
                sex,
                postcode,
                f"{day:02}.{month:02}.2026",
                draws.one_of("007", "011", "023", "023", "104"),
                draws.one_of(*ills),
            ]
        )
    return table


def write(path: Path, table: list[list[str]], separator: str) -> None:
    """Write a table as a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerows(table)


if __name__ == "__main__":
    write(FOLDER / "six.csv", [row.split(",") for row in SIX.split()], ",")
    write(FOLDER / "people.csv", people(), ",")
    write(FOLDER / "messy_patients.csv", messy_patients(), ";")
