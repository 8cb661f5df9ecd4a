"""The keys that a manifest may have; any other may carry anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anonymip.privacy.reading.manifests.fields import refuse
from anonymip.privacy.reading.manifests.left_out import LEFT_OUT_KEYS
from anonymip.privacy.reading.manifests.masks import MASK_KEYS

#: All keys that a manifest may have.
_KEYS = frozenset(
    (
        "format",
        "recoding",
        "k",
        "n",
        "m",
        "objective",
        "ncp",
        "gcp",
        "bound",
        "gap",
        "status",
        "method",
        "options",
        "solver",
        "versions",
        "columns",
        "table",
        "order",
        "suppressed",
        "left_out",
        "homogeneous",
        "stars",
        "mask",
        "levels",
        "diversity",
        "limits",
        "checked",
        "assumed",
        "seed",
    )
)
#: Keys of the objects in a manifest, by the key of the object.
_INNER = {
    "objective": {"name", "value", "costs", "pattern_costs"},
    "bound": {"value", "method", "proof"},
    "table": {"separator", "encoding", "layout", "missing", "sha256", "formulas"},
    "diversity": {"l", "distinct", "matches", "t", "ordered"},
    "left_out": LEFT_OUT_KEYS,
}
_COLUMN_KEYS = {"name", "role"}
_IDENTIFIER_KEYS = {"name", "role", "kind", "publish", "integer", "domain"}
_LIMIT_KEYS = {"cap": {"attribute", "rule", "most"}, "apart": {"attribute", "rule"}}
#: Keys that only some recodings have.
_OF_RECODINGS = {
    "mask": ("pattern",),
    "levels": ("full-domain",),
    "stars": ("pattern", "full-domain"),
}


def foreign_keys(document: Mapping[str, Any]) -> int:
    """Return how many keys, at any level, have no meaning: they may carry anything.

    Raises
    ------
    InputError
        If what was checked or assumed is no list of texts, versions are no texts, or there is
        something else where keys of its own are declared.
    """
    for key in ("checked", "assumed"):
        said = document.get(key, [])
        if not isinstance(said, list) or not all(isinstance(text, str) for text in said):
            refuse(key, "is not a list of texts")
    versions = document.get("versions", {})
    if not isinstance(versions, dict) or not all(isinstance(v, str) for v in versions.values()):
        refuse("versions", "is not an object of texts")
    recoding = document["recoding"]
    # What a recoding does not declare nobody reads.
    of_others = {key for key, known in _OF_RECODINGS.items() if recoding not in known}
    count = len(set(document) - (_KEYS - of_others))
    if recoding == "pattern" and isinstance(document.get("mask"), Mapping):
        count += len(set(document["mask"]) - MASK_KEYS)
    for key, known in _INNER.items():
        inner = document.get(key) or {}
        if not isinstance(inner, Mapping):
            refuse(key, "is not an object")
        count += len(set(inner) - known)
    if document["objective"]["name"] != "suppressions":
        count += len(set(document["objective"]) & {"costs", "pattern_costs"})
    count += len(set(document["table"]["missing"]) - {"policy", "tokens", "label"})
    for column in document["columns"]:
        identifies = column["role"] == "quasi-identifier"
        count += len(set(column) - (_IDENTIFIER_KEYS if identifies else _COLUMN_KEYS))
    for limit in document.get("limits") or ():
        count += len(set(limit) - _LIMIT_KEYS[limit["rule"]])
    return count
