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


def value_of(given: Mapping[str, Any], key: str, kind: type | None = None, where: str = "") -> Any:
    """Return the value of a key, of type `kind` unless that is None.

    `where`: what stands before the key in messages, such as ``"table."``. Raises InputError if the
    key is missing or its value of another type; true is no whole number.
    """
    if key not in given:
        refuse(where + key, "is missing")
    value = given[key]
    if kind is not None and (
        not isinstance(value, kind) or (kind is int and isinstance(value, bool))
    ):
        refuse(where + key, f"is not of type {kind.__name__}")
    return value


def value_or_none(given: Mapping[str, Any], key: str, kind: type, where: str = "") -> Any:
    """Return the value of a key that may be null, else as :func:`value_of`."""
    return None if value_of(given, key, None, where) is None else value_of(given, key, kind, where)


def number_of(given: Mapping[str, Any], key: str, where: str = "") -> float:
    """Return the finite number of a key.

    Raises InputError if the key is missing or its value is none.
    """
    value = value_of(given, key, None, where)
    if not is_number(value):
        refuse(where + key, "is not a finite number")
    return float(value)


def texts_of(given: object, key: str) -> tuple[str, ...]:
    """Return a list of texts; raises InputError, which names the key, if it is none."""
    if not isinstance(given, list) or not all(isinstance(text, str) for text in given):
        refuse(key, "is not a list of texts")
    return tuple(given)


def is_number(value: object) -> bool:
    """Return whether a value of JSON is a finite number, not true or false."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def one_of(given: Mapping[str, Any], key: str, known: Sequence[str], where: str = "") -> str:
    """Return the text of a key, one of those known.

    Raises InputError if the key is missing or its value is none of them.
    """
    value = value_of(given, key, str, where)
    if value not in known:
        refuse(where + key, f"is none of {', '.join(known)}")
    return cast(str, value)


def refuse(key: str, reason: str) -> NoReturn:
    """Raise the error of a manifest whose `key` is wrong for this reason."""
    raise InputError(f"the manifest's {key} {reason}", remedy=REMEDY)


#: Keys of the manifest's object.
LEFT_OUT_KEYS = frozenset(("suppressed", "missing", "columns", "undeclared_columns", "most"))
_MOST = 2**53  # no table has more records; sums with it stay exact


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


def read_left_out(given: object) -> LeftOut:
    """Return what a manifest says is left out; absent, every suppressed record has its row.

    Raises InputError if it is no object of counts and columns.
    """
    if given is None:
        return LeftOut()
    if not isinstance(given, Mapping):
        refuse("left_out", "is not an object")
    texts_of(value_of(given, "columns", list, "left_out."), "left_out.columns")
    _count(given, "undeclared_columns")
    most = _count(given, "most") if "most" in given else None
    return LeftOut(_count(given, "suppressed"), _count(given, "missing"), most)


def _count(given: Mapping[str, Any], key: str) -> int:
    number: int = value_of(given, key, int, "left_out.")
    if number < 0:
        refuse(f"left_out.{key}", "is below 0")
    if number > _MOST:
        refuse(f"left_out.{key}", "is more than any table holds")
    return number


@dataclass(frozen=True)
class StarCosts:
    """What the objective charges for cells that are not exact, if the manifest states it.

    `columns`: by column, 1 where nothing is said. `patterns`: by the set of columns that are not
    exact, in place of the sum of theirs.
    """

    columns: Mapping[str, float]
    patterns: Mapping[frozenset[str], float]


def read_star_costs(objective: Mapping[str, Any], names: Sequence[str]) -> StarCosts | None:
    """Return the costs of stars that an objective of a manifest charges; None for others.

    Raises InputError if they are no costs of these columns.
    """
    if objective["name"] != "suppressions":
        return None
    costs = objective.get("costs", {})
    if not isinstance(costs, Mapping) or not set(costs) <= set(names):
        refuse("objective.costs", "is not an object of quasi-identifiers")
    columns = {name: number_of(costs, name, "objective.costs.") for name in costs}
    patterns: dict[frozenset[str], float] = {}
    listed = objective.get("pattern_costs", [])
    if not isinstance(listed, list) or not all(isinstance(entry, Mapping) for entry in listed):
        refuse("objective.pattern_costs", "is not a list of objects")
    for entry in listed:
        named = value_of(entry, "columns", list, "objective.pattern_costs.")
        if set(entry) != {"columns", "cost"} or not all(name in names for name in named):
            refuse("objective.pattern_costs", "holds something else than columns and their cost")
        patterns[frozenset(named)] = number_of(entry, "cost", "objective.pattern_costs.")
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


def read_column(entry: object) -> Column:
    """Return a column that a manifest declares.

    Raises InputError if it is no object with a name, a role and, of a quasi-identifier, a form that
    it can have.
    """
    if not isinstance(entry, Mapping):
        refuse("columns", "holds something that is not an object")
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
        step = number_of(entry, "precision", "columns.")
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
    """Return a declared domain in the form of :class:`Column`.

    Raises InputError if it is not ``[lowest, highest]`` for a numeric column or dates, or a list
    for another.
    """
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


def read_mask(given: object, names: Sequence[str]) -> Mask:
    """Return the mask that a manifest declares.

    Raises InputError if it is no mask of these columns.
    """
    if not isinstance(given, Mapping):
        refuse("mask", "is not an object")
    most = given.get("suppress_at_most")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 0):
        refuse("mask.suppress_at_most", "is not a whole number of at least 0")
    patterns = given.get("patterns")
    if patterns is not None and any(rule in given for rule in _RULES):
        refuse("mask", "has patterns and rules")
    return Mask(
        most,
        _columns("mask.never", given.get("never", []), names),
        _groups("mask.together", given.get("together", []), names),
        _groups("mask.at_most_one", given.get("at_most_one", []), names),
        None if patterns is None else frozenset(_groups("mask.patterns", patterns, names)),
        _truth(given, "allow_all_stars"),
        _truth(given, "single_use"),
    )


def read_levels(given: object, names: Sequence[str]) -> dict[str, int]:
    """Return the level of each column that a manifest declares.

    Raises InputError if it does not give a whole number of at least 0 for each of the columns.
    """
    if not isinstance(given, Mapping):
        refuse("levels", "is not an object")
    if set(given) != set(names):
        refuse("levels", "does not name each quasi-identifier once")
    for level in given.values():
        if isinstance(level, bool) or not isinstance(level, int) or level < 0:
            refuse("levels", "holds something else than whole numbers of at least 0")
    return dict(given)


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


def _truth(given: Mapping[str, Any], key: str) -> bool:
    value = given.get(key)
    if not isinstance(value, bool):
        refuse(f"mask.{key}", "is missing" if value is None else "is not true or false")
    return value


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


def read_diversity(given: object) -> Diversity | None:
    """Return the diversity that a manifest promises; None if it promises none.

    Raises InputError if it is no object of numbers that can be kept.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        refuse("diversity", "is not an object")
    share = number_of(given, "l", "diversity.")
    distinct: int = value_of(given, "distinct", int, "diversity.")
    matches: int | None = None
    if given.get("matches") is not None:
        matches = value_of(given, "matches", int, "diversity.")
    if share < 1 or distinct < 1 or (matches is not None and matches < 1):
        refuse("diversity", "asks for less than nothing")
    far = None if given.get("t") is None else number_of(given, "t", "diversity.")
    if far is not None and (not 0 <= far < 1 or matches is not None):
        refuse("diversity", "has a t that is not from 0 to below 1, or not of classes")
    ordered = given.get("ordered", False)
    if not isinstance(ordered, bool):
        refuse("diversity.ordered", "is neither true nor false")
    # The nearest fraction of ordinary size is what was meant: 3.3333333333333335 is 10/3.
    return Diversity(
        Fraction(share).limit_denominator(10**6),
        distinct,
        matches,
        None if far is None else Fraction(far).limit_denominator(10**6),
        ordered,
    )


def read_limits(given: object, names: Sequence[str]) -> tuple[Limit, ...]:
    """Return the limits that a manifest promises for the quasi-identifiers.

    Raises InputError if it is no list of rules for these columns.
    """
    if given is None:
        return ()
    if not isinstance(given, list):
        refuse("limits", "is not a list")
    limits = []
    for entry in given:
        if not isinstance(entry, Mapping):
            refuse("limits", "holds something that is not an object")
        attribute = one_of(entry, "attribute", names, "limits.")
        is_cap = one_of(entry, "rule", ("cap", "apart"), "limits.") == "cap"
        limits.append(Limit(attribute, number_of(entry, "most", "limits.") if is_cap else None))
    return tuple(limits)


def read_homogeneous(given: object, *, is_cover: bool) -> dict[str, tuple[int, int]] | None:
    """Return what a manifest counts; None if it counts nothing.

    Raises InputError if it is no object of counts by column, or the release has no classes.
    """
    if given is None:
        return None
    if is_cover:
        refuse("homogeneous", "counts classes, which a cover does not have")
    if not isinstance(given, Mapping):
        refuse("homogeneous", "is not an object")
    counts = {}
    for name, count in given.items():
        if not isinstance(count, Mapping) or set(count) != {"classes", "rows"}:
            refuse("homogeneous", "holds something else than numbers of classes and rows")
        classes, rows = (value_of(count, key, int, "homogeneous.") for key in ("classes", "rows"))
        counts[name] = (classes, rows)
    return counts
