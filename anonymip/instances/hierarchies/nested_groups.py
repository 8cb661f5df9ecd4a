"""Paths of a hierarchy from nested groups of values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AnySet

from anonymip.errors import InputError

_EXAMPLE = 'Write {"Europe": {"North": ["SE", "NO"], "South": ["IT"]}, "Asia": ["JP"]}'
#: Groups within groups; deeper nesting is taken for a group that holds itself.
_DEEPEST = 100


def paths_of_groups(groups: object, root: str) -> list[tuple[str, ...]]:
    """Return the path of each value, from it through its groups to the root.

    Parameters
    ----------
    groups
        A mapping from names of groups to their groups or values, or the values themselves.
    root
        Name of the whole.

    Raises
    ------
    InputError
        If a group is empty, is a single text, or holds itself, or a value stands in two.
    """
    paths = [(value, *above) for value, above in _values(groups, (str(root),))]
    seen: dict[str, tuple[str, ...]] = {}
    for value, *above in paths:
        if value in seen:
            raise InputError(
                f"a value stands in the group {_name(seen[value])} and again in {_name(above)}",
                remedy="Put each value into one group",
                value=value,
            )
        seen[value] = tuple(above)
    return paths


def _values(groups: object, above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the values of a group, each with the groups that hold it, from the innermost."""
    if len(above) > _DEEPEST:
        raise InputError(
            f"groups lie more than {_DEEPEST} deep in each other: the nesting is cyclic",
            remedy="A group cannot hold itself",
        )
    if isinstance(groups, (str, bytes)) or not isinstance(groups, Iterable):
        raise InputError(
            f"the group {_name(above)} is no list of values but a {type(groups).__name__}",
            remedy=_EXAMPLE,
        )
    if isinstance(groups, Mapping):
        members: Iterable[object] = groups
    else:
        # A set has no order of its own, and equal calls shall give equal hierarchies.
        members = sorted(groups, key=str) if isinstance(groups, AnySet) else list(groups)
    empty = True
    for member in members:
        empty = False
        if isinstance(groups, Mapping):
            if str(member) in above:
                raise InputError(
                    f"the group {_name(above)} holds itself or one of its own name",
                    remedy="Name every group differently",
                    value=str(member),
                )
            yield from _values(groups[member], (str(member), *above))
        elif isinstance(member, (Mapping, list, tuple, AnySet)):
            raise InputError(
                f"the group {_name(above)} lists a group that has no name", remedy=_EXAMPLE
            )
        else:
            yield str(member), above
    if empty:
        raise InputError(
            f"the group {_name(above)} is empty", remedy="Give its values, or leave it out"
        )


def _name(above: Iterable[str]) -> str:
    """Return where a group stands: names of groups are the caller's, not the table's."""
    return " in ".join(repr(label) for label in above)
