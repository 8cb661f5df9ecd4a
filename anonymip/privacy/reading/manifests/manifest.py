"""What is declared about a release: its manifest."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from anonymip.errors import InputError, argument
from anonymip.privacy.reading.manifests.columns import Column, read_column
from anonymip.privacy.reading.manifests.fields import (
    REMEDY,
    number_of,
    one_of,
    refuse,
    value_of,
    value_or_none,
)
from anonymip.privacy.reading.manifests.homogeneous import read_homogeneous
from anonymip.privacy.reading.manifests.known_keys import foreign_keys
from anonymip.privacy.reading.manifests.left_out import LeftOut, read_left_out
from anonymip.privacy.reading.manifests.masks import Mask, read_levels, read_mask
from anonymip.privacy.reading.manifests.promises import (
    Diversity,
    Limit,
    read_diversity,
    read_limits,
)
from anonymip.privacy.reading.manifests.star_costs import StarCosts, read_star_costs

FORMAT = "anonymip-release/1"
#: Recodings in which every record has a published set of its own, not that of its class.
COVERS = ("freeform", "one-k", "k-one", "k-k", "k-concealment")
#: Recodings that say of stars what they mean.
STARRED = ("pattern", "full-domain")
SUFFIX = ".manifest.json"
#: Keys that say how a release was made, and what of it was not proven.
CAVEATS = ("assumed", "checked", "method", "options", "solver", "versions")
#: Keys that a manifest may lack, by what their absence is read as.
UNSAID = {
    "left_out": "no record is taken as left out",
    "limits": "no limit as promised",
    "diversity": "no diversity as promised",
}


@dataclass(frozen=True)
class Manifest:
    """The parts of a manifest that the verifier reads, checked for form, not for truth."""

    recoding: str
    k: int
    n: int
    m: int
    columns: tuple[Column, ...]
    objective_name: str
    objective: float
    ncp: float
    gcp: float
    bound: float | None
    proof: str | None
    gap: float | None
    status: str
    suppressed: int
    order: str
    layout: str
    separator: str
    encoding: str
    policy: str
    tokens: tuple[str, ...]
    label: str
    formulas_escaped: bool
    diversity: Diversity | None
    limits: tuple[Limit, ...]
    has_seed: bool
    unknown_keys: int
    mask: Mask | None = None
    levels: Mapping[str, int] | None = None
    stars_are_class: bool = False
    star_costs: StarCosts | None = None
    sha256: str | None = None
    missing_caveats: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()
    left_out: LeftOut = field(default_factory=LeftOut)
    homogeneous: Mapping[str, tuple[int, int]] | None = None

    @property
    def is_cover(self) -> bool:
        """Whether rows are published with sets of their own, not with classes."""
        return self.recoding in COVERS

    @property
    def quasi_identifiers(self) -> tuple[Column, ...]:
        """The quasi-identifiers in order."""
        return tuple(column for column in self.columns if column.role == "quasi-identifier")

    @property
    def untouched(self) -> tuple[Column, ...]:
        """Sensitive and kept columns in order."""
        return tuple(column for column in self.columns if column.role != "quasi-identifier")

    @property
    def header(self) -> tuple[str, ...]:
        """The column names that the release must have, in order."""
        names: list[str] = []
        for column in self.columns:
            names += self.names_of(column)
        return tuple(names)

    def names_of(self, column: Column) -> tuple[str, ...]:
        """Return the names under which the release shows a column: one, or lower and upper."""
        if (
            self.layout == "columns"
            and column.role == "quasi-identifier"
            and column.is_numeric
            and column.publish == "range"
        ):
            return (f"{column.name}_lower", f"{column.name}_upper")
        return (column.name,)


def read_manifest(
    manifest: Mapping[str, Any] | str | Path | None, release: str | Path | Any
) -> Manifest:
    """Read and check the form of a manifest.

    Parameters
    ----------
    manifest
        The object, the path of its file, or None: the file beside the release.
    release
        The release, whose path names the manifest's.

    Raises
    ------
    InputError
        If there is no manifest, it is no JSON object, or lacks, repeats or misuses a key.
    """
    if manifest is None:
        if not isinstance(release, str | os.PathLike):
            raise InputError(
                "a release given as a data frame has no manifest beside it",
                remedy=f"Pass {argument('manifest', ...)}",
            )
        manifest = Path(f"{release}{SUFFIX}")
    if isinstance(manifest, Mapping):
        return _manifest(manifest)
    path = Path(manifest)
    if not os.path.isfile(path):
        raise InputError(
            f"there is no manifest {path}",
            remedy="It lies beside the release; name it if it lies elsewhere",
        )
    try:
        document = json.loads(
            path.read_text(encoding="utf-8"),
            parse_constant=_refuse_constant,
            object_pairs_hook=_object,
        )
    except _RepeatedKey as repeated:
        refuse(repeated.args[0], "stands there twice")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"the manifest {path} is not JSON", remedy=REMEDY) from error
    if not isinstance(document, dict):
        raise InputError(f"the manifest {path} is not a JSON object", remedy=REMEDY)
    return _manifest(document)


def _manifest(document: Mapping[str, Any]) -> Manifest:
    if value_of(document, "format", str) != FORMAT:
        raise InputError(
            "the manifest is of an unknown format", remedy=f"This version reads {FORMAT}"
        )
    known = ("classes", *COVERS, *STARRED)
    recoding = value_of(document, "recoding", str)
    if recoding not in known:
        raise InputError(
            "the release is of a recoding that cannot be verified",
            remedy=f"Known: {', '.join(known)}",
        )
    table = value_of(document, "table", dict)
    missing = value_of(table, "missing", dict, "table.")
    objective = value_of(document, "objective", dict)
    bound = value_or_none(document, "bound", dict)
    columns = tuple(read_column(entry) for entry in value_of(document, "columns", list))
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        refuse("columns", "names a column twice")
    identifying = [column.name for column in columns if column.role == "quasi-identifier"]
    if not identifying:
        refuse("columns", "names no quasi-identifier")
    return Manifest(
        recoding=recoding,
        k=value_of(document, "k", int),
        n=value_of(document, "n", int),
        m=value_of(document, "m", int),
        columns=columns,
        objective_name=value_of(objective, "name", str, "objective."),
        objective=number_of(objective, "value", "objective."),
        ncp=number_of(document, "ncp"),
        gcp=number_of(document, "gcp"),
        bound=None if bound is None else number_of(bound, "value", "bound."),
        proof=None if bound is None else value_or_none(bound, "proof", str, "bound."),
        gap=None if value_of(document, "gap") is None else number_of(document, "gap"),
        status=value_of(document, "status", str),
        suppressed=value_of(document, "suppressed", int),
        order=one_of(document, "order", ("shuffled", "kept")),
        layout=one_of(table, "layout", ("cells", "columns"), "table."),
        separator=_one_character(table),
        encoding=value_of(table, "encoding", str, "table."),
        policy=one_of(missing, "policy", ("error", "category", "drop"), "table.missing."),
        tokens=_token_list(missing),
        label=value_of(missing, "label", str, "table.missing."),
        formulas_escaped="formulas" in table
        and one_of(table, "formulas", ("escaped",), "table.") == "escaped",
        diversity=read_diversity(document.get("diversity")),
        limits=read_limits(document.get("limits"), identifying),
        has_seed=_names_seed(document) or _names_seed(document.get("options")),
        unknown_keys=foreign_keys(document),
        mask=read_mask(value_of(document, "mask"), identifying) if recoding == "pattern" else None,
        levels=read_levels(value_of(document, "levels"), identifying)
        if recoding == "full-domain"
        else None,
        stars_are_class=recoding in STARRED
        and one_of(document, "stars", ("class", "suppressed")) == "class",
        star_costs=read_star_costs(objective, identifying),
        sha256=_digest(table),
        missing_caveats=tuple(key for key in CAVEATS if key not in document),
        unsaid=tuple(key for key in UNSAID if not _says(document, key)),
        left_out=read_left_out(document.get("left_out")),
        homogeneous=read_homogeneous(document.get("homogeneous"), is_cover=recoding in COVERS),
    )


def _says(document: Mapping[str, Any], key: str) -> bool:
    """Return whether a key is there; null says that there is no diversity, and else nothing."""
    return key in document and (key == "diversity" or document[key] is not None)


def _names_seed(given: object) -> bool:
    return isinstance(given, Mapping) and any("seed" in str(key).lower() for key in given)


def _one_character(table: Mapping[str, Any]) -> str:
    separator = cast(str, value_of(table, "separator", str, "table."))
    if len(separator) != 1:
        refuse("table.separator", "is not one character")
    return separator


def _token_list(missing: Mapping[str, Any]) -> tuple[str, ...]:
    tokens = value_of(missing, "tokens", list, "table.missing.")
    if not all(isinstance(token, str) for token in tokens):
        refuse("table.missing.tokens", "is not a list of texts")
    return tuple(tokens)


def _digest(table: Mapping[str, Any]) -> str | None:
    digest = table.get("sha256")
    if digest is None:
        return None
    if not isinstance(digest, str) or re.fullmatch("[0-9a-f]{64}", digest) is None:
        refuse("table.sha256", "is not 64 hexadecimal digits")
    return digest


class _RepeatedKey(Exception):
    """An object of a JSON text has a key twice, and readers differ in which of the two counts."""


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, value in pairs:
        if key in read:
            raise _RepeatedKey(key)
        read[key] = value
    return read


def _refuse_constant(name: str) -> Literal[0]:
    raise ValueError(f"{name} is not JSON")
