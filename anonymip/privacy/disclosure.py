"""Disclosure risk of a table and of its release, in numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from anonymip.privacy.arrays import Floats
from anonymip.privacy.attacks.matches import Corruption


@dataclass(frozen=True)
class Spread:
    """Probabilities that the persons of a table are found."""

    #: Over all records.
    least: float
    mean: float
    largest: float
    above: float  # share of the records whose risk is above 1 / k

    @classmethod
    def of(cls, risks: Floats, k: int) -> Spread:
        """Summarise the risks of (n,) records."""
        above = float(np.mean(risks > 1 / k))
        # The mean of equal numbers may differ from them by its rounding.
        least, largest = float(risks.min()), float(risks.max())
        return cls(least, min(max(float(risks.mean()), least), largest), largest, above)


@dataclass(frozen=True)
class SampleRisk:
    """What sampling weights say of a table that is a sample."""

    #: Expected number of records that are alone in the population, not in the sample only.
    population_uniques: float
    #: Expected number of records linked to the right person: the sum of the individual risks.
    reidentified: float
    individual: Spread  # the individual risks of Benedetti and Franconi


@dataclass(frozen=True, eq=False)
class TableRisk:
    """The risk of one table.

    Parameters
    ----------
    records
        Records that are counted.
    classes
        Combinations of quasi-identifiers; None of a cover, which has no classes.
    unique
        Records that are alone in their class; of a cover, with a single row that can be theirs.
        Where units are counted, this and what follows is of units, each by its smallest class.
    below_k
        Records in classes of fewer than k; of a cover, with fewer than k rows.
    prosecutor
        The adversary knows that the person is in the table: 1 / (records of the class).
    journalist
        She knows a population that holds the table: 1 / (persons whom the record can be); None
        without a population, where it is the prosecutor's.
    marketer
        Share of the records that are linked to the right person if all are linked: the mean of the
        journalist's risk, else of the prosecutor's.
    sample
        What sampling weights say; None without.
    homogeneous
        By sensitive column the classes that share one value (None of a cover), and the records
        whose value is certain by that.
    by_record
        The prosecutor's risk one by one, in Python only: neither printed nor written. Of a table
        and of a cover of each row of the table, NaN for those left out; of classes of each
        published row. Where units are counted 1 / (units in the class of the record).
    units
        Units that are counted, such as persons with several rows; None where records are.
    """

    records: int
    classes: int | None
    unique: int
    below_k: int
    prosecutor: Spread
    journalist: Spread | None
    marketer: float
    sample: SampleRisk | None
    homogeneous: Mapping[str, tuple[int | None, int]]
    by_record: Floats = field(repr=False)
    units: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as an object for JSON, without those of single records."""
        told = asdict(replace(self, by_record=np.empty(0)))
        del told["by_record"]
        counted = {name: told.pop(name) for name in ("records", "units")}
        told["homogeneous"] = {
            name: {"classes": classes, "rows": rows}
            for name, (classes, rows) in self.homogeneous.items()
        }
        return counted | told

    def lines(self, k: int) -> dict[str, str]:
        """Return the numbers for a person, by what they are."""
        what = "records" if self.units is None else "units"
        lines = {
            "records": str(self.records),
            **({} if self.units is None else {"units": str(self.units)}),
            "classes": "none" if self.classes is None else str(self.classes),
            f"unique {what}": str(self.unique),
            f"{what} in classes below k = {k}": str(self.below_k),
        }
        spreads = {"prosecutor": self.prosecutor, "journalist": self.journalist}
        if self.sample is not None:
            spreads["individual"] = self.sample.individual
            lines["expected population uniques"] = f"{self.sample.population_uniques:.4g}"
            lines["expected re-identifications"] = f"{self.sample.reidentified:.4g}"
        for name, found in spreads.items():
            if found is not None:
                lines[f"{name} risk, least"] = _percent(found.least)
                lines[f"{name} risk, mean"] = _percent(found.mean)
                lines[f"{name} risk, largest"] = _percent(found.largest)
                lines[f"{name} risk above 1/{k}, {what}"] = _percent(found.above)
        lines["marketer risk"] = _percent(self.marketer)
        for name, (classes, rows) in self.homogeneous.items():
            counted = "" if classes is None else f" in {classes} classes"
            lines[f"records certain of {name}"] = f"{rows}{counted}"
        return lines


@dataclass(frozen=True, eq=False)
class DisclosureRisk:
    """The risk of a table, before and after publication; `str` is what the command prints.

    Parameters
    ----------
    k
        What classes are held against.
    quasi_identifiers
        Columns that the adversary knows.
    recoding
        What the release claims to be; None without one.
    before, after
        The table as it was given, and the release; None without one.
    known_matches
        Of a cover: rows left to everybody else once 0, 1, 2, 4, ... true matches are known.
    notes
        What was left out and how it was counted, one sentence each.
    unit
        Column that says whom a row is about; None where records are counted.
    """

    k: int
    quasi_identifiers: tuple[str, ...]
    recoding: str | None
    before: TableRisk
    after: TableRisk | None
    known_matches: tuple[Corruption, ...] = ()
    notes: tuple[str, ...] = ()
    unit: str | None = None

    def __str__(self) -> str:
        tables = [one.lines(self.k) for one in (self.before, self.after) if one is not None]
        names = dict.fromkeys(name for table in tables for name in table)
        rows = [(name, *(table.get(name, "-") for table in tables)) for name in names]
        if self.after is not None:
            rows.insert(0, ("", "before", "after"))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [self.sentence(), ""]
        for name, *cells in rows:
            shown = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
            lines.append("  ".join([" ", name.ljust(widths[0]), *shown]))
        lines += [f"   {found.summary()}" for found in self.known_matches]
        return "\n".join([*lines, "", *self.notes])

    def sentence(self) -> str:
        """Return the main thing in plain language."""
        now = self.before if self.after is None else self.after
        risk, knows = now.prosecutor, f"Who knows {', '.join(self.quasi_identifiers)} of a person"
        odds = f"at most {_percent(risk.largest)}, on average {_percent(risk.mean)}"
        if now.units is not None:
            text = f"{knows} tells her from others with the same (units: {self.unit}) with a "
            text += f"probability of {odds}"
            if self.after is None:
                text += f": {now.unique} of {now.units} units are unique."
        elif self.after is None:
            text = f"{knows} finds her record with a probability of {odds}"
            text += f": {now.unique} of {now.records} records are unique."
        elif now.classes is None:
            text = f"{knows} is left with at least {round(1 / risk.largest)} rows that can be hers"
            text += f", a risk of {odds} if each is as likely"
        else:
            text = f"{knows} finds her row with a probability of {odds}"
        if self.after is not None:
            was = self.before.prosecutor
            text += f"; before, of at most {_percent(was.largest)}, on average "
            text += f"{_percent(was.mean)}."
        certain = [f"{name} for {rows}" for name, (_, rows) in now.homogeneous.items() if rows]
        if certain:
            text += (
                " A sensitive value is certain all the same where all rows that can be a person's "
                f"share it: {', '.join(certain)} of {now.records} records."
            )
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the same as an object for JSON; no number is of a single record."""
        return {
            "n": self.before.records,
            "m": len(self.quasi_identifiers),
            "k": self.k,
            "quasi_identifiers": list(self.quasi_identifiers),
            "unit": self.unit,
            "recoding": self.recoding,
            "before": self.before.to_dict(),
            "after": None if self.after is None else self.after.to_dict(),
            "known_matches": [
                {
                    "known": found.known,
                    "fewest": int(found.least.min()),
                    "mean": float(found.mean.mean()),
                    "draws": len(found.least),
                }
                for found in self.known_matches
            ],
            "notes": list(self.notes),
        }


def _percent(share: float) -> str:
    """Return a share in percent; nothing else is said to be 100 or 0."""
    if 0.9999 < share < 1:
        return "> 99.99 %"
    if 0 < share < 1e-6:
        return "< 0.0001 %"
    return f"{float(f'{100 * share:.4g}'):.10g} %"
