"""What a manifest declares of a published column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anonymip.errors import InputError
from anonymip.privacy.reading.manifests.fields import is_number, one_of, refuse, value_of

#: Forms of a generalized cell by the kind of its column.
_FORMS = {"numeric": ("range", "set"), "categorical": ("set",), "hierarchical": ("node",)}
ROLES = ("quasi-identifier", "sensitive", "keep")


@dataclass(frozen=True)
class Column:
    """One published column as the manifest declares it.

    Parameters
    ----------
    name
        Its name in the original.
    role
        ``"quasi-identifier"``, ``"sensitive"`` or ``"keep"``.
    kind
        ``"numeric"``, ``"categorical"`` or ``"hierarchical"``; "categorical" for columns published
        untouched.
    publish
        ``"range"``, ``"set"`` or ``"node"``.
    integer
        Whether its numbers are whole.
    domain
        Declared domain: two numbers, or all texts; None if it is what the original holds.
    """

    name: str
    role: str
    kind: str = "categorical"
    publish: str = "set"
    integer: bool = False
    domain: tuple[float, float] | tuple[str, ...] | None = None

    @property
    def is_numeric(self) -> bool:
        """Whether values are numbers."""
        return self.kind == "numeric"

    @property
    def is_node(self) -> bool:
        """Whether its cells are nodes of a hierarchy."""
        return self.kind == "hierarchical"


def read_column(entry: object) -> Column:
    """Return a column that a manifest declares.

    Raises
    ------
    InputError
        If it is no object with a name, a role and, of a quasi-identifier, a form that it can have.
    """
    if not isinstance(entry, Mapping):
        refuse("columns", "holds something that is not an object")
    name = value_of(entry, "name", str, "columns.")
    role = one_of(entry, "role", ROLES, "columns.")
    if role != "quasi-identifier":
        return Column(name, role)
    kind = one_of(entry, "kind", tuple(_FORMS), "columns.")
    publish = one_of(entry, "publish", ("range", "set", "node"), "columns.")
    if publish not in _FORMS[kind]:
        refuse("columns.publish", f"asks for a {publish} in the {kind} column {name!r}")
    if kind == "hierarchical" and entry.get("domain") is not None:
        refuse("columns.domain", f"is that of the hierarchy in column {name!r}: write null")
    integer = value_of(entry, "integer", bool, "columns.")
    return Column(name, role, kind, publish, integer, read_domain(name, kind, entry.get("domain")))


def read_domain(
    name: str, kind: str, given: object
) -> tuple[float, float] | tuple[str, ...] | None:
    """Return a declared domain in the form of :class:`Column`.

    Raises
    ------
    InputError
        If it is not ``[lowest, highest]`` for a numeric column, or a list for another.
    """
    if given is None:
        return None
    wrong = InputError(
        f"the domain of column {name!r} does not fit its kind",
        remedy="Give [lowest, highest] for a numeric column, else a list of texts",
    )
    if not isinstance(given, (list, tuple)) or not given:
        raise wrong
    if kind != "numeric":
        return tuple(dict.fromkeys(str(value) for value in given))
    if len(given) != 2 or not all(is_number(end) for end in given) or given[0] > given[1]:
        raise wrong
    return (float(given[0]), float(given[1]))
