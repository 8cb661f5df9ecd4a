"""All recodings by name: the built-in ones, and those of installed packages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from anonymip.errors import InputError, argument, did_you_mean, unknown_name
from anonymip.extensions import Extensions
from anonymip.objectives.losses.penalties import Suppressions
from anonymip.recodings.equivalence import EquivalenceClasses
from anonymip.recodings.freeform import KK, Freeform, KConcealment, KOne, OneK
from anonymip.recodings.full_domain import FullDomain
from anonymip.recodings.pattern_levels import PatternLevels
from anonymip.recodings.patterns import PatternGuided, read_mask_section
from anonymip.recodings.recoding import OF_SUPPRESSION, Recoding

#: Built-in recodings by name.
RECODINGS: MappingProxyType[str, Callable[..., Recoding]] = MappingProxyType(
    {
        "classes": EquivalenceClasses,
        "freeform": Freeform,
        "one-k": OneK,
        "k-one": KOne,
        "k-k": KK,
        "k-concealment": KConcealment,
        "pattern": PatternGuided,
        "pattern-levels": PatternLevels,
        "full-domain": FullDomain,
    }
)
#: Those that publish every record by a set of its own.
COVERS = frozenset({"freeform", "one-k", "k-one", "k-k", "k-concealment"})
#: Those whose published records cover k originals each.
COVERING_K = frozenset({"classes", "freeform", "k-one", "k-k"})

# What every recoding has: the public members of the protocol.
_MEMBERS = tuple(name for name in vars(Recoding) if not name.startswith("_"))


def find_recoding(name: str, *, suppression: bool = False) -> Recoding:
    """Return the recoding of a name: a built-in one, or one that an installed package registers."""
    make = RECODINGS.get(name) or _OUTSIDE.find(name)
    if make is None:
        # Packages that register some are imported to name them.
        raise unknown_name("recoding", name, (*RECODINGS, *_OUTSIDE.all()))
    if not suppression:
        return make()
    if "suppression" not in inspect.signature(make).parameters:
        raise InputError(
            f"the recoding {name} does not suppress records",
            remedy=f"Leave out {argument('suppression')} and {argument('most_suppressed')}, or use "
            "classes, freeform, pattern or full-domain",
        )
    return make(suppression=True)


def make_recoding(
    name: str, options: Mapping[str, Any], mask: Mapping[str, Any]
) -> tuple[Recoding, Suppressions | None]:
    """Return the recoding of a name with its options, and what stars cost if these say so.

    `options`: parameters of its class; of patterns also the keys of a section ``[mask]``. `mask`:
    such a section, which options replace key by key. Raises InputError if there is no such
    recoding, or it has no such option.
    """
    if name in ("pattern", "pattern-levels"):
        rules = {**mask, **options}
        suppression = {key: rules.pop(key) for key in OF_SUPPRESSION if key in rules}
        if name == "pattern":
            return read_mask_section(rules, **suppression)
        # Refused if asked for, as of other recodings.
        find_recoding(name, suppression=suppression not in ({}, {"suppression": False}))
        if rules.get("single_use"):
            raise InputError(
                "the recoding pattern-levels has no single use",
                remedy="Leave the rule out, or use the recoding pattern",
            )
        made = read_mask_section(rules)
        return PatternLevels(made.recoding.mask), made.objective
    if not options.keys() - {"suppression"}:
        return find_recoding(name, suppression=bool(options.get("suppression"))), None
    make = RECODINGS.get(name)
    known = [] if make is None else list(inspect.signature(make).parameters)
    for option in options:
        if option not in known:
            raise InputError(
                f"the recoding {name} has no option {option!r}",
                remedy=did_you_mean(option, known, f"Its options: {', '.join(known) or 'none'}"),
            )
    assert make is not None
    return make(**options), None


def as_recoding(given: object) -> Recoding:
    """Return a recoding, or the one that a name means."""
    if isinstance(given, str):
        return find_recoding(given)
    if isinstance(given, type) or not hasattr(given, "name"):
        what = given.__name__ if isinstance(given, type) else f"a {type(given).__name__}"
        raise InputError(
            f"recoding is {what}",
            remedy=f"Give an object, such as Freeform(), or a name: {', '.join(RECODINGS)}",
        )
    return given  # type: ignore[return-value]


def published_form(recoding: Recoding) -> str:
    """Return the built-in recoding as which a release is published and verified.

    A recoding from outside names it in its attribute ``form``; built-in ones are their own.
    """
    return str(getattr(recoding, "form", recoding.name))


def _read(name: str, load: Callable[[], object]) -> Callable[..., Recoding]:
    """Return what makes the recoding that an entry point registers: a class, or an object."""
    found = load()
    made = found() if isinstance(found, type) else found
    missing = [member for member in _MEMBERS if not hasattr(made, member)]
    if missing:
        raise InputError(
            f"it registers an object of type {type(made).__name__}, which has no "
            f"{', '.join(missing)}",
            remedy="Register an object or a class that follows the Recoding protocol",
        )
    called = getattr(made, "name", None)
    if called != name:
        raise InputError(f"the recoding calls itself {called!r}", remedy="Register it by this name")
    if isinstance(found, type):
        return found
    return lambda: made  # type: ignore[return-value]


_OUTSIDE = Extensions("anonymip.recodings", "recoding", _read, lambda: frozenset(RECODINGS))
