"""The manifest of a release, read; its digest, held against the table."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from anonymip.errors import InputError, argument, no_file
from anonymip.privacy.reading.manifest_entries import (
    LEFT_OUT_KEYS,
    MASK_KEYS,
    MISSING_POLICIES,
    REMEDY,
    SCALE_KEYS,
    Column,
    Diversity,
    LeftOut,
    Limit,
    Mask,
    StarCosts,
    objects_of,
    one_of,
    optional,
    read_column,
    read_diversity,
    read_homogeneous,
    read_left_out,
    read_levels,
    read_limits,
    read_mask,
    read_star_costs,
    refuse,
    texts_of,
    value_of,
    value_or_none,
)

FORMAT = "anonymip-release/1"
#: Recodings in which every record has a published set of its own, not that of its class.
COVERS = ("freeform", "one-k", "k-one", "k-k", "k-concealment")
#: Recodings that say of stars what they mean.
STARRED = ("pattern", "full-domain")
SUFFIX = ".manifest.json"
#: Why the method of a release may have stopped.
STATES = (
    *("optimal", "heuristic", "time-limit", "gap-limit", "interrupted", "node-limit"),
    *("tolerance-limit", "solver-error"),
)
#: Keys that say how a release was made, and what of it was not proven.
CAVEATS = ("assumed", "checked", "method", "options", "solver", "versions")
#: Keys that a manifest may lack, by what their absence is read as.
UNSAID = {
    "left_out": "no record is taken as left out",
    "limits": "no limit as promised",
    "diversity": "no diversity as promised",
}


@dataclass(frozen=True)
class Layout:
    """How the table is written: its cells, its file, its missing values; SHA-256 of the file."""

    layout: str
    separator: str
    encoding: str
    policy: str
    tokens: tuple[str, ...]
    label: str
    formulas_escaped: bool
    decimal: str = "."
    sha256: str | None = None


@dataclass(frozen=True)
class ClaimedLoss:
    """What is claimed of the loss and of what is proven of it."""

    name: str
    objective: float
    ncp: float
    gcp: float
    bound: float | None
    proof: str | None
    gap: float | None
    status: str
    star_costs: StarCosts | None = None
    suppression_price: float | None = None
    weights: str | None = None
    weighted_gcp: float | None = None


@dataclass(frozen=True)
class Manifest:
    """The parts of a manifest that the verifier reads, checked for form, not for truth."""

    recoding: str
    k: int
    n: int
    m: int
    columns: tuple[Column, ...]
    loss: ClaimedLoss
    suppressed: int
    order: str
    table: Layout
    #: What is promised beside k: of sensitive values, of cells, of stars.
    diversity: Diversity | None
    limits: tuple[Limit, ...]
    mask: Mask | None
    levels: Mapping[str, int] | None
    stars_are_class: bool
    #: What the manifest says too much, and what it lacks.
    has_seed: bool
    unknown_keys: int
    lacking: tuple[str, ...]
    unsaid: tuple[str, ...]
    left_out: LeftOut
    homogeneous: Mapping[str, tuple[int, int]] | None
    unit: str | None

    def policy_of(self, column: Column) -> str:
        """Return what becomes of the missing values of a column."""
        return column.missing or self.table.policy

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
        return tuple(column for column in self.columns if column.role in ("sensitive", "keep"))

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Names of the sensitive columns in order."""
        return tuple(column.name for column in self.columns if column.role == "sensitive")

    @property
    def pseudonyms(self) -> tuple[str, ...]:
        """Columns of pseudonyms in order."""
        return tuple(column.name for column in self.columns if column.role == "pseudonym")

    @property
    def header(self) -> tuple[str, ...]:
        """The column names that the release must have, in order."""
        return tuple(name for column in self.columns for name in self.names_of(column))

    def names_of(self, column: Column) -> tuple[str, ...]:
        """Return the names under which the release shows a column: one, or lower and upper."""
        if (
            self.table.layout == "columns"
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

    `manifest`: the object, the path of its file, or None: the file beside the release.
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
        if isinstance(release, str | os.PathLike) and os.path.isdir(release):
            raise no_file(release)
        if isinstance(release, str | os.PathLike) and not os.path.exists(release):
            raise InputError(f"there is no release {release}", remedy="Check its path")
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
    except InputError:
        raise
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
    objective = value_of(document, "objective", dict)
    if not value_of(objective, "name", str, "objective.").strip():
        refuse("objective.name", "is empty")
    bound = value_or_none(document, "bound", dict)
    columns = tuple(map(read_column, objects_of(document, "columns")))
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
        loss=ClaimedLoss(
            objective["name"],
            value_of(objective, "value", float, "objective."),
            value_of(document, "ncp", float),
            value_of(document, "gcp", float),
            None if bound is None else value_of(bound, "value", float, "bound."),
            None if bound is None else value_or_none(bound, "proof", str, "bound."),
            value_or_none(document, "gap", float),
            one_of(document, "status", STATES),
            read_star_costs(objective, identifying),
            value_of(objective, "suppression_price", float, "objective.")
            if "suppression_price" in objective
            else None,
            *_weighted(document, columns),
        ),
        suppressed=value_of(document, "suppressed", int),
        order=one_of(document, "order", ("shuffled", "kept")),
        table=_layout(table),
        diversity=read_diversity(optional(document, "diversity", dict)),
        limits=read_limits(document, identifying),
        mask=read_mask(value_of(document, "mask", dict), identifying)
        if recoding == "pattern"
        else None,
        levels=read_levels(value_of(document, "levels", dict), identifying)
        if recoding == "full-domain"
        else None,
        stars_are_class=recoding in STARRED
        and one_of(document, "stars", ("class", "suppressed")) == "class",
        left_out=read_left_out(optional(document, "left_out", dict)),
        has_seed=_names_seed(document) or _names_seed(document.get("options")),
        unknown_keys=foreign_keys(document),
        lacking=tuple(key for key in CAVEATS if key not in document),
        # Null says that there is no diversity, and else nothing.
        unsaid=tuple(
            key
            for key in UNSAID
            if key not in document or (key != "diversity" and document[key] is None)
        ),
        homogeneous=read_homogeneous(
            optional(document, "homogeneous", dict), is_cover=recoding in COVERS
        ),
        unit=_unit(document, recoding, columns),
    )


def _weighted(
    document: Mapping[str, Any], columns: Sequence[Column]
) -> tuple[str | None, float | None]:
    """Return the column of sampling weights and the loss by them; None without."""
    if "weights" not in document:
        return None, None
    given = value_of(document, "weights", dict)
    kept = [column.name for column in columns if column.role in ("sensitive", "keep")]
    return one_of(given, "column", kept, "weights."), value_of(given, "gcp", float, "weights.")


def _unit(document: Mapping[str, Any], recoding: str, columns: Sequence[Column]) -> str | None:
    """Return the column whose values k counts; None where it counts rows."""
    if "unit" not in document:
        return None
    unit = cast(str, value_of(document, "unit", str))
    if recoding != "classes":
        refuse("unit", "is not of classes")
    if any(column.name == unit and column.role != "pseudonym" for column in columns):
        refuse("unit", "is a column of the release, and no pseudonyms")
    return unit


def _layout(table: Mapping[str, Any]) -> Layout:
    missing = value_of(table, "missing", dict, "table.")
    layout = one_of(table, "layout", ("cells", "columns"), "table.")
    separator = cast(str, value_of(table, "separator", str, "table."))
    if len(separator) != 1:
        refuse("table.separator", "is not one character")
    digest = table.get("sha256")
    is_digest = isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest)
    if digest is not None and not is_digest:
        refuse("table.sha256", "is not 64 hexadecimal digits")
    return Layout(
        layout,
        separator,
        value_of(table, "encoding", str, "table."),
        one_of(missing, "policy", MISSING_POLICIES, "table.missing."),
        texts_of(missing, "tokens", "table.missing."),
        value_of(missing, "label", str, "table.missing."),
        "formulas" in table and one_of(table, "formulas", ("escaped",), "table.") == "escaped",
        one_of(table, "decimal", (".", ","), "table.") if "decimal" in table else ".",
        digest,
    )


def _names_seed(given: object) -> bool:
    return isinstance(given, Mapping) and any("seed" in str(key).lower() for key in given)


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a JSON text; of a key that it has twice readers differ which counts."""
    read: dict[str, Any] = {}
    for key, value in pairs:
        if key in read:
            refuse(key, "stands there twice")
        read[key] = value
    return read


def _refuse_constant(name: str) -> Literal[0]:
    raise ValueError(f"{name} is not JSON")


#: Keys that a manifest may have, and the objects in it, by the key of the object.
_KEYS = {
    "": {
        *("format", "recoding", "k", "n", "m", "objective", "ncp", "gcp", "bound", "gap"),
        *("status", "method", "options", "solver", "versions", "columns", "table", "order"),
        *("suppressed", "left_out", "homogeneous", "stars", "mask", "levels", "diversity"),
        *("limits", "checked", "assumed", "seed", "unit", "weights", "parts"),
    },
    "objective": {"name", "value", "costs", "pattern_costs", "suppression_price"},
    "bound": {"value", "method", "proof"},
    "table": {"separator", "encoding", "layout", "missing", "sha256", "formulas", "decimal"},
    "diversity": {"l", "distinct", "matches", "t", "ordered"},
    "left_out": LEFT_OUT_KEYS,
    "weights": {"column", "gcp"},
}
_KEYS_OF_ROLES = {
    "quasi-identifier": {
        *("name", "role", "kind", "publish", "integer", "domain", "missing"),
        *SCALE_KEYS,
    },
    "pseudonym": {"name", "role", "algorithm"},
}
_LIMIT_KEYS = {"cap": {"attribute", "rule", "most"}, "apart": {"attribute", "rule"}}
#: Keys that only some recodings have, by object and key: what others declare nobody reads.
_OF_RECODINGS = {
    ("", "mask"): ("pattern",),
    ("", "levels"): ("full-domain",),
    ("", "stars"): STARRED,
    ("objective", "suppression_price"): ("classes", "freeform", "pattern"),
    ("left_out", "most"): ("classes", "freeform", *STARRED),
}


def foreign_keys(document: Mapping[str, Any]) -> int:
    """Return how many keys, at any level, have no meaning: they may carry anything."""
    for key in ("checked", "assumed"):
        texts_of({key: [], **document}, key)
    versions = document.get("versions", {})
    if not isinstance(versions, dict) or not all(isinstance(v, str) for v in versions.values()):
        refuse("versions", "is not an object of texts")
    recoding, count = document["recoding"], 0
    of_others = [key for key, known in _OF_RECODINGS.items() if recoding not in known]
    for key, known in _KEYS.items():
        inner = (document.get(key) or {}) if key else document
        count += sum(name not in known or (key, name) in of_others for name in inner)
    if recoding == "pattern":
        count += len(set(document["mask"]) - MASK_KEYS)
    if document["objective"]["name"] != "suppressions":
        count += len(set(document["objective"]) & {"costs", "pattern_costs"})
    count += len(set(document["table"]["missing"]) - {"policy", "tokens", "label"})
    for column in document["columns"]:
        count += len(set(column) - _KEYS_OF_ROLES.get(column["role"], {"name", "role"}))
    for limit in document.get("limits") or ():
        count += len(set(limit) - _LIMIT_KEYS[limit["rule"]])
    return count


def is_table_of(
    release: str | Path | Any, manifest: Mapping[str, Any] | str | Path | None = None
) -> bool | None:
    """Return whether a manifest was written for this very file.

    `release`: path of the table. `manifest`: the manifest, its path, or None: the file
    ``<release>.manifest.json``. Returns: None if that cannot be said: the manifest holds no digest,
    as those of version 0.6 and before, or the table is a data frame, which has no bytes of its own.
    Raises InputError if a file is missing or unreadable, or the manifest is malformed.
    """
    return _has_digest(release, read_manifest(manifest, release).table.sha256)


def digest_finding(release: str | Path | Any, digest: str | None) -> tuple[str, tuple[str, ...]]:
    """Return what is checked of the digest that a manifest holds, and what is wrong with it."""
    this = "the table is the one that the manifest was written for"
    is_table = _has_digest(release, digest)
    if is_table is None:
        why = "the manifest has no table.sha256" if digest is None else "a data frame has no digest"
        return f"Not checked: that {this}, since {why}.", ()
    problem = (
        "The table is not the one that the manifest was written for: a run that wrote both was cut "
        "off, or one of them was changed since."
    )
    return f"T{this[1:]}.", () if is_table else (problem,)


def _has_digest(release: str | Path | Any, digest: str | None) -> bool | None:
    """Return whether a file has this digest; None if there is no digest, or no file."""
    if digest is None or not isinstance(release, str | os.PathLike):
        return None
    try:
        with Path(release).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == digest
    except OSError as error:
        raise InputError(
            f"{release} cannot be read: {error.strerror}", remedy="Check the file"
        ) from None
