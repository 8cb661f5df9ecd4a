"""The benchmark data: where their files lie, fetched from where they are published."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from anonymip.errors import InputError
from anonymip.files import user_cache, writing
from anonymip.instances.microdata import Microdata
from anonymip.instances.schema import Schema


@dataclass(frozen=True)
class PublicFile:
    """A file that anyone may fetch, and what the instances read instead of it."""

    name: str  # by which it is asked for
    address: str  # where it is published
    file: str  # where it is kept, relative to the data folder
    size: int  # bytes of the file; no more are read
    digest: str  # SHA-256 of the file, which is checked
    licence: str  # on what terms it may be used
    #: Another file that is made of it: its place, its SHA-256, and the function that makes it of
    #: the text.
    made: tuple[str, str, Callable[[str], str]]


class Fetched(NamedTuple):
    """What :func:`fetch` has put where."""

    source: PublicFile
    files: tuple[Path, ...]  # that are there now


def _complete_adult(text: str) -> str:
    """Return the complete records of Adult with the nine columns that k-anonymity is tried on."""
    header = "sex;age;race;marital-status;education;native-country;workclass;occupation"
    lines = [f"{header};salary-class"]
    for record in text.split("\n"):
        cells = record.split(", ")
        if len(cells) > 1 and "?" not in cells:
            lines.append(";".join(cells[column] for column in (9, 0, 8, 5, 3, 13, 1, 6, 14)))
    return "".join(f"{line}\r\n" for line in lines)


#: What can be fetched, by name.
PUBLIC = MappingProxyType(
    {
        "adult": PublicFile(
            "adult",
            "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
            "adult/adult.data",
            3_974_305,
            "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            "CC BY 4.0; B. Becker, R. Kohavi: Adult, UCI Machine Learning Repository, 1996, "
            "doi:10.24432/C5XW20",
            (
                "adult/adult_arx_30162.csv",
                "c700df9304fbf3c4d4db5938bffc510561bd4a2dfad285a3feef9a20619391c5",
                _complete_adult,
            ),
        )
    }
)


def fetched_folder() -> Path | None:
    """Return where fetched data are kept; None where the user has no home."""
    cache = user_cache()
    return None if cache is None else cache / "data"


def fetch(name: str, *, address: str | None = None) -> Fetched:
    """Fetch public data into the user's cache; what is there already is not fetched again.

    `name`: one of :data:`PUBLIC`. `address`: of a mirror; None for the place of publication. The
    file must be the same, byte by byte.
    """
    source = PUBLIC.get(name)
    if source is None:
        raise InputError(f"{name!r} cannot be fetched", remedy=f"What can be: {', '.join(PUBLIC)}")
    folder = fetched_folder()
    if folder is None:
        raise InputError(
            "there is no folder to keep the data in", remedy="Set HOME or XDG_CACHE_HOME"
        )
    original = folder / source.file
    if not _is_kept(original, source.digest):
        _keep(original, _download(source, address or source.address, original), public=False)
    place, digest, make = source.made
    made = folder / place
    if not _is_kept(made, digest):
        _keep(made, make(original.read_text(encoding="utf-8")).encode(), public=True)
    return Fetched(source, (original, made))


def _is_kept(file: Path, digest: str) -> bool:
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == digest


def _keep(file: Path, content: bytes, *, public: bool) -> None:
    with writing() as outputs:
        outputs.stage(file, public=public).write_bytes(content)


def _download(source: PublicFile, address: str, place: Path) -> bytes:
    """Return the published file. A server may send without end: no more is read than it has."""
    # Commands that fetch nothing need not load what downloads.
    import requests

    content = bytearray()
    try:
        with requests.get(address, stream=True, timeout=60) as answer:
            answer.raise_for_status()
            for piece in answer.iter_content(2**15):
                content += piece
                if len(content) > source.size:
                    break
    except OSError as error:
        reason = str(error) if error.args else type(error).__name__
        if (response := getattr(error, "response", None)) is not None:
            reason = f"the server answers {response.status_code} {response.reason}"
        raise InputError(
            f"{address} cannot be had: {reason}",
            remedy=f"Try again later, or download it by hand to {place}",
        ) from error
    if hashlib.sha256(content).hexdigest() != source.digest:
        raise InputError(
            f"{address} is another file than the one that is expected, whose SHA-256 is "
            f"{source.digest}",
            remedy="Name another mirror, or download the published file by hand",
        )
    return bytes(content)


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
    """Return where a file of the benchmark data lies. Raises InputError if it is not here."""
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
        attributes[name] = {"weight": float(weight), "kind": "categorical"}
        if kind != "Categorical":
            domain = (float(low), float(high))
            attributes[name] |= {"kind": "numeric", "integer": kind == "Integer", "domain": domain}
    return attributes


def read_extract(table: str, domains: str) -> Microdata:
    """Return a CENSUS or FARS extract of the benchmark data with its domains."""
    return Schema(read_domain_file(data_file(domains))).read(data_file(table))


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
