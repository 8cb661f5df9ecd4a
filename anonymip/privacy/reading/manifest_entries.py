"""Entries of a manifest: columns, masks, levels, costs of stars, promises, what is left out.

They are read by key and type, and those that do not fit are refused.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NoReturn, cast

from anonymip.errors import InputError
from anonymip.privacy.reading.cell_grammar import CellError
from anonymip.privacy.reading.scales import EXACT, UNITS, Scale

#: What to do about a manifest that does not fit.
REMEDY = "Write the release again, or repair its manifest; docs/format.md describes it"


#: What the value of a key is to be, by its type.
_TYPES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
}
_MOST = 2**53  # no table has more records; sums with it stay exact


def value_of(given: Mapping[str, Any], key: str, kind: type | None = None, where: str = "") -> Any:
    """Return the value of a key, of type `kind` unless that is None.

    Any number is a float, and true is none. `where`: what stands before the key in messages, such
    as ``"table."``.
    """
    if key not in given:
        refuse(where + key, "is missing")
    value = given[key]
    if kind is None:
        return value
    fits = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    if not (is_number(value) if kind is float else fits):
        refuse(where + key, f"is not {_TYPES[kind]}")
    return float(value) if kind is float else value


def optional(given: Mapping[str, Any], key: str, kind: type, where: str = "") -> Any:
    """Return the value of a key that may be null or absent, else as :func:`value_of`."""
    return None if given.get(key) is None else value_of(given, key, kind, where)


def value_or_none(given: Mapping[str, Any], key: str, kind: type, where: str = "") -> Any:
    """Return the value of a key that may be null, and has to be there."""
    value_of(given, key, None, where)
    return optional(given, key, kind, where)


def count_of(given: Mapping[str, Any], key: str, where: str, most: float = _MOST) -> int:
    """Return the number of a key that counts something."""
    number: int = value_of(given, key, int, where)
    if number < 0:
        refuse(where + key, "is below 0")
    if number > most:
        refuse(where + key, "is more than any table holds")
    return number


def texts_of(given: Mapping[str, Any], key: str, where: str = "") -> tuple[str, ...]:
    """Return the texts that a key lists."""
    listed = value_of(given, key, list, where)
    if not all(isinstance(text, str) for text in listed):
        refuse(where + key, "is not a list of texts")
    return tuple(listed)


def objects_of(given: Mapping[str, Any], key: str, where: str = "") -> list[dict[str, Any]]:
    """Return the objects that a key lists."""
    listed: list[dict[str, Any]] = value_of(given, key, list, where)
    if not all(isinstance(entry, dict) for entry in listed):
        refuse(where + key, "holds something that is not an object")
    return listed


def is_number(value: object) -> bool:
    """Return whether a value of JSON is a finite number, not true or false."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def one_of(given: Mapping[str, Any], key: str, known: Sequence[str], where: str = "") -> str:
    """Return the text of a key, one of those known."""
    value = value_of(given, key, str, where)
    if value not in known:
        refuse(where + key, f"is none of {', '.join(known)}")
    return cast(str, value)


def refuse(key: str, reason: str) -> NoReturn:
    """Raise the error of a manifest whose `key` is wrong for this reason."""
    raise InputError(f"the manifest's {key} {reason}", remedy=REMEDY)


#: Keys of the manifest's object.
LEFT_OUT_KEYS = frozenset(("suppressed", "missing", "columns", "undeclared_columns", "most"))


@dataclass(frozen=True)
class LeftOut:
    """Records without a row.

    `suppressed`: suppressed records; their loss counts. `missing`: records that the missing policy
    left out, whose loss does not count; None if not stated. `most`: records that may be suppressed;
    None for any number.
    """

    suppressed: int = 0
    missing: int | None = None
    most: int | None = None


def read_left_out(given: Mapping[str, Any] | None) -> LeftOut:
    """Return what a manifest says is left out; absent, every suppressed record has its row."""
    if given is None:
        return LeftOut()
    where = "left_out."
    texts_of(given, "columns", where)
    count_of(given, "undeclared_columns", where)
    most = count_of(given, "most", where) if "most" in given else None
    return LeftOut(count_of(given, "suppressed", where), count_of(given, "missing", where), most)


@dataclass(frozen=True)
class StarCosts:
    """What the objective charges for cells that are not exact, if the manifest states it.

    `columns`: by column, 1 where nothing is said. `patterns`: by the set of columns that are not
    exact, in place of the sum of theirs.
    """

    columns: Mapping[str, float]
    patterns: Mapping[frozenset[str], float]


def read_star_costs(objective: Mapping[str, Any], names: Sequence[str]) -> StarCosts | None:
    """Return the costs of stars that an objective of a manifest charges; None for others."""
    if objective["name"] != "suppressions":
        return None
    costs = objective.get("costs", {})
    if not isinstance(costs, Mapping) or not set(costs) <= set(names):
        refuse("objective.costs", "is not an object of quasi-identifiers")
    columns = {name: value_of(costs, name, float, "objective.costs.") for name in costs}
    patterns: dict[frozenset[str], float] = {}
    where = "objective.pattern_costs"
    for entry in objects_of({"pattern_costs": [], **objective}, "pattern_costs", "objective."):
        named = value_of(entry, "columns", list, f"{where}.")
        if set(entry) != {"columns", "cost"} or not all(name in names for name in named):
            refuse(where, "holds something else than columns and their cost")
        patterns[frozenset(named)] = value_of(entry, "cost", float, f"{where}.")
    return StarCosts(columns, patterns)


#: Forms of a generalized cell by the kind of its column.
_FORMS = {
    "numeric": ("range", "set"),
    "categorical": ("set",),
    "hierarchical": ("node",),
    "date": ("range", "node"),
}
#: What a column may say of its scale.
SCALE_KEYS = ("precision", "format", "at_most", "at_least")
ROLES = ("quasi-identifier", "sensitive", "keep", "pseudonym")
PSEUDONYMS = "HMAC-SHA256, first 20 characters of base32"  # how pseudonyms are made
MISSING_POLICIES = ("error", "category", "drop", "own")  # what becomes of missing values


@dataclass(frozen=True)
class Column:
    """One published column as the manifest declares it."""

    name: str  # its name in the original
    role: str  # ``"quasi-identifier"``, ``"sensitive"``, ``"keep"`` or ``"pseudonym"``
    #: ``"numeric"``, ``"categorical"``, ``"hierarchical"`` or ``"date"``; "categorical" for columns
    #: published untouched.
    kind: str = "categorical"
    publish: str = "set"  # ``"range"``, ``"set"`` or ``"node"``
    integer: bool = False  # whether its numbers are whole
    #: Declared domain: two numbers, or all texts; None if it is what the original holds. Of dates
    #: and of numbers in steps what stands for the ends.
    domain: tuple[float, float] | tuple[str, ...] | None = None
    scale: Scale = EXACT  # what numbers stand for the values of a numeric column or of dates
    #: What becomes of its missing values; None is what becomes of those of the table.
    missing: str | None = None

    @property
    def is_numeric(self) -> bool:
        """Whether numbers stand for the values, as they do for dates published as ranges."""
        return self.kind in ("numeric", "date") and not self.is_node

    @property
    def is_node(self) -> bool:
        """Whether its cells are nodes of a hierarchy, of dates that of the calendar."""
        return self.publish == "node"


def read_column(entry: Mapping[str, Any]) -> Column:
    """Return a column that a manifest declares."""
    name = value_of(entry, "name", str, "columns.")
    role = one_of(entry, "role", ROLES, "columns.")
    if role == "pseudonym":
        one_of(entry, "algorithm", (PSEUDONYMS,), "columns.")
    if role != "quasi-identifier":
        return Column(name, role)
    kind = one_of(entry, "kind", tuple(_FORMS), "columns.")
    publish = one_of(entry, "publish", ("range", "set", "node"), "columns.")
    if publish not in _FORMS[kind]:
        refuse("columns.publish", f"asks for a {publish} in the {kind} column {name!r}")
    if kind == "hierarchical" and entry.get("domain") is not None:
        refuse("columns.domain", f"is that of the hierarchy in column {name!r}: write null")
    integer = value_of(entry, "integer", bool, "columns.")
    if integer and kind != "numeric":
        refuse("columns.integer", f"is for numbers, and column {name!r} is {kind}")
    scale = _scale(entry, kind, integer)
    if publish == "set" and kind == "numeric" and not scale.is_plain:
        refuse("columns.publish", f"asks for sets of rounded numbers in column {name!r}")
    domain = read_domain(name, kind, entry.get("domain"), scale)
    policy = None
    if entry.get("missing") is not None:
        policy = one_of(entry, "missing", MISSING_POLICIES, "columns.")
    return Column(name, role, kind, publish, integer, domain, scale, policy)


def _scale(entry: Mapping[str, Any], kind: str, integer: bool) -> Scale:
    """Return the scale of a column; keys that are absent or null declare nothing."""
    given = {key: entry.get(key) for key in SCALE_KEYS}
    declared = {key: value for key, value in given.items() if value is not None}
    if kind not in ("numeric", "date"):
        for key in declared:
            refuse(f"columns.{key}", f"is for numbers and dates, and a column is {kind}")
        return EXACT
    scale = Scale(integer=integer)
    if kind == "date":
        form = None if "format" not in declared else value_of(entry, "format", str, "columns.")
        scale = Scale(one_of(entry, "precision", tuple(UNITS), "columns."), form)
    elif "format" in declared:
        refuse("columns.format", "is for dates")
    elif "precision" in declared:
        step = value_of(entry, "precision", float, "columns.")
        if step <= 0 or (integer and not step.is_integer()):
            refuse("columns.precision", "is no width of steps")
        if not integer or step != 1:
            scale = replace(scale, step=Fraction(repr(step)))
    ends = {}
    for key in ("at_most", "at_least"):
        if key in declared:
            try:
                ends[key] = scale.declared_end(declared[key])
            except CellError as error:
                refuse(f"columns.{key}", str(error))
    return replace(scale, most=ends.get("at_most"), least=ends.get("at_least"))


def read_domain(
    name: str, kind: str, given: object, scale: Scale
) -> tuple[float, float] | tuple[str, ...] | None:
    """Return a declared domain in the form of :class:`Column`."""
    if given is None:
        return None
    wrong = InputError(
        f"the domain of column {name!r} does not fit its kind",
        remedy="Give [lowest, highest] for a numeric column, else a list of texts",
    )
    if not isinstance(given, (list, tuple)) or not given:
        raise wrong
    if kind not in ("numeric", "date"):
        return tuple(dict.fromkeys(str(value) for value in given))
    if len(given) != 2 or (kind == "numeric" and not all(is_number(end) for end in given)):
        raise wrong
    try:
        low, high = (scale.declared_end(end) for end in given)
        if low > high:
            raise wrong
        return (scale.counted(low), scale.counted(high))
    except CellError:
        raise wrong from None


_RULES = ("suppress_at_most", "never", "together", "at_most_one")
#: Keys of a mask in a manifest.
MASK_KEYS = frozenset((*_RULES, "patterns", "allow_all_stars", "single_use"))


@dataclass(frozen=True)
class Mask:
    """Which columns a row may show as stars."""

    suppress_at_most: int | None = None  # most stars of a row; None for any number
    never: frozenset[str] = frozenset()  # columns without stars
    together: tuple[frozenset[str], ...] = ()  # groups of columns that are all stars, or none
    at_most_one: tuple[frozenset[str], ...] = ()  # groups of columns with one star at most
    #: The allowed sets of starred columns one by one, in place of rules; None if rules hold.
    patterns: frozenset[frozenset[str]] | None = None
    allow_all_stars: bool = False  # whether a row of stars only is allowed beside
    single_use: bool = False  # whether rows with stars in the same columns must look alike

    def allows(self, starred: Collection[str], width: int) -> bool:
        """Return whether a row may show stars in exactly these of its `width` columns."""
        stars = frozenset(starred)
        if self.allow_all_stars and len(stars) == width:
            return True
        if self.patterns is not None:
            return stars in self.patterns
        return (
            (self.suppress_at_most is None or len(stars) <= self.suppress_at_most)
            and not stars & self.never
            and all(group <= stars or not group & stars for group in self.together)
            and all(len(group & stars) <= 1 for group in self.at_most_one)
        )


def read_mask(given: Mapping[str, Any], names: Sequence[str]) -> Mask:
    """Return the mask that a manifest declares."""
    most = given.get("suppress_at_most")
    patterns = given.get("patterns")
    if patterns is not None and any(rule in given for rule in _RULES):
        refuse("mask", "has patterns and rules")
    return Mask(
        None if most is None else count_of(given, "suppress_at_most", "mask.", math.inf),
        _columns("mask.never", given.get("never", []), names),
        _groups("mask.together", given.get("together", []), names),
        _groups("mask.at_most_one", given.get("at_most_one", []), names),
        None if patterns is None else frozenset(_groups("mask.patterns", patterns, names)),
        value_of(given, "allow_all_stars", bool, "mask."),
        value_of(given, "single_use", bool, "mask."),
    )


def read_levels(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, int]:
    """Return the level of each column that a manifest declares."""
    if set(given) != set(names):
        refuse("levels", "does not name each quasi-identifier once")
    return {name: count_of(given, name, "levels.", math.inf) for name in given}


def _columns(key: str, given: object, names: Sequence[str]) -> frozenset[str]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        refuse(key, "is not a list of columns")
    if not set(given) <= set(names):
        refuse(key, "names a column that is no quasi-identifier")
    return frozenset(given)


def _groups(key: str, given: object, names: Sequence[str]) -> tuple[frozenset[str], ...]:
    if not isinstance(given, list):
        refuse(key, "is not a list of lists of columns")
    return tuple(_columns(key, group, names) for group in given)


@dataclass(frozen=True)
class Diversity:
    """What the manifest promises of the sensitive values of every class."""

    #: No value makes up more than 1/l of a class.
    l: Fraction  # noqa: E741 - the field's own name
    distinct: int  # every class has so many values at least
    #: In a cover, the rows of a record among which the values are counted, all equally likely; None
    #: if their number differs, and for classes.
    matches: int | None = None
    #: How far the values of a class may lie from those of all rows; None for any distance.
    t: Fraction | None = None
    ordered: bool = False  # whether numbers lie on a line


@dataclass(frozen=True)
class Limit:
    """A limit of generalization that the manifest promises.

    `attribute`: name of the quasi-identifier. `most`: the most that a cell may cover; None for two
    values, not named, that no cell may cover both.
    """

    attribute: str
    most: float | None


def read_diversity(given: Mapping[str, Any] | None) -> Diversity | None:
    """Return the diversity that a manifest promises; None if it promises none."""
    if given is None:
        return None
    where = "diversity."
    share, distinct = value_of(given, "l", float, where), value_of(given, "distinct", int, where)
    matches, far = optional(given, "matches", int, where), optional(given, "t", float, where)
    if share < 1 or distinct < 1 or (matches is not None and matches < 1):
        refuse("diversity", "asks for less than nothing")
    if far is not None and (not 0 <= far < 1 or matches is not None):
        refuse("diversity", "has a t that is not from 0 to below 1, or not of classes")
    # The nearest fraction of ordinary size is what was meant: 3.3333333333333335 is 10/3.
    return Diversity(
        Fraction(share).limit_denominator(10**6),
        distinct,
        matches,
        None if far is None else Fraction(far).limit_denominator(10**6),
        value_of({"ordered": False, **given}, "ordered", bool, where),
    )


def read_limits(document: Mapping[str, Any], names: Sequence[str]) -> tuple[Limit, ...]:
    """Return the limits that a manifest promises for the quasi-identifiers."""
    limits = []
    for entry in objects_of(document, "limits") if document.get("limits") is not None else ():
        attribute = one_of(entry, "attribute", names, "limits.")
        is_cap = one_of(entry, "rule", ("cap", "apart"), "limits.") == "cap"
        most = value_of(entry, "most", float, "limits.") if is_cap else None
        limits.append(Limit(attribute, most))
    return tuple(limits)


def read_homogeneous(
    given: Mapping[str, Any] | None, *, is_cover: bool
) -> dict[str, tuple[int, int]] | None:
    """Return what a manifest counts by column; None if it counts nothing."""
    if given is None:
        return None
    if is_cover:
        refuse("homogeneous", "counts classes, which a cover does not have")
    counts = {}
    for name, count in given.items():
        if not isinstance(count, Mapping) or set(count) != {"classes", "rows"}:
            refuse("homogeneous", "holds something else than numbers of classes and rows")
        classes, rows = (value_of(count, key, int, "homogeneous.") for key in ("classes", "rows"))
        counts[name] = (classes, rows)
    return counts
