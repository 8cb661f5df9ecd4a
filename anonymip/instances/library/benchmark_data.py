"""The benchmark data: where their files lie, and how files without a schema are read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from anonymip.errors import InputError
from anonymip.instances.library.fetching import PUBLIC, fetched_folder
from anonymip.instances.microdata import Microdata
from anonymip.instances.readers import read_table
from anonymip.instances.schema import Schema


def data_directory() -> Path | None:
    """Return the folder of the benchmark data, or None.

    It is the one that ``ANONYMIP_DATA`` names, else ``../shared/data`` beside the working
    directory if the data lie there.
    """
    named = os.environ.get("ANONYMIP_DATA")
    if named:
        return Path(named)
    nearby = Path("..") / "shared" / "data"
    return nearby if (nearby / "census_ipums" / "person20_4attr.csv").is_file() else None


def data_file(name: str) -> Path:
    """Return where a file of the benchmark data lies.

    Raises
    ------
    InputError
        If it is not here.
    """
    folder = data_directory()
    for place in (folder, fetched_folder()):
        if place is not None and (place / name).is_file():
            return place / name
    fetchable = [source.name for source in PUBLIC.values() if name in (source.file, source.made[0])]
    remedy = "Set ANONYMIP_DATA to the folder that holds "
    if fetchable:
        remedy = f"Run 'anonymip fetch {fetchable[0]}', or set ANONYMIP_DATA to the folder with "
    if folder is None:
        raise InputError(
            f"the benchmark data are not here ({name} is needed)",
            remedy=f"{remedy}them; they are not distributed with the package",
        )
    raise InputError(f"the benchmark file {name} is not in {folder}", remedy=f"{remedy}it")


def read_domain_file(path: Path) -> dict[str, dict[str, object]]:
    """Read the domain file of a CENSUS or FARS extract.

    Four lines: names; types (Integer, Numerical, Categorical); lower and upper ends; weights.
    The ends of a categorical attribute are those of its codes, not its values: its domain is
    what is observed.
    """
    names, types, lows, highs, weights = (
        line.split(",") for line in path.read_text(encoding="utf-8").split()
    )
    attributes: dict[str, dict[str, object]] = {}
    for name, kind, low, high, weight in zip(names, types, lows, highs, weights, strict=True):
        attributes[name] = {"weight": float(weight)}
        if kind == "Categorical":
            attributes[name] |= {"kind": "categorical"}
        else:
            attributes[name] |= {
                "kind": "numeric",
                "integer": kind == "Integer",
                "domain": (float(low), float(high)),
            }
    return attributes


def read_extract(table: str, domains: str) -> Microdata:
    """Return a CENSUS or FARS extract of the benchmark data with its domains."""
    return Schema(read_domain_file(data_file(domains))).read(data_file(table))


def read_numbers(name: str) -> Microdata:
    """Return a table of the benchmark data whose columns are all numeric."""
    frame = read_table(data_file(name))
    return Schema({str(column): {"kind": "numeric"} for column in frame.columns}).apply(frame)


def with_categories(data: Microdata, counts: Mapping[str, int]) -> Microdata:
    """Return a table some of whose categorical attributes have more categories than occur in it.

    A loss counts categories and does not ask which: those that do not occur are made up.
    """
    attributes = []
    for attribute, levels in zip(data.attributes, data.levels, strict=True):
        if attribute.name in counts:
            domain = list(map(str, levels.tolist()))
            made_up = range(1, counts[attribute.name] - len(domain) + 1)
            domain += [f"not observed {number}" for number in made_up]
            attributes.append(replace(attribute, domain=tuple(domain)))
        else:
            attributes.append(attribute)
    return Microdata(data.frame, tuple(attributes))
