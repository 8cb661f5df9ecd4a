"""Extensions: methods, losses and recodings of installed packages, by their entry points.

With them stand the methods of this package that others below them call.
"""

from __future__ import annotations

import importlib.metadata
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from anonymip.errors import AnonymipError, InputError

Kind = TypeVar("Kind")

#: What loads the exact methods that can make the start of local search, which lies below them: the
#: registry of methods enters them.
EXACT_STARTS: dict[str, Callable[[], Callable[..., Any]]] = {}


class ExtensionWarning(UserWarning):
    """Something that an installed package registers is left out; the text says why."""


@dataclass(frozen=True)
class _Found(Generic[Kind]):
    """What became of an entry point: what it registers, or why it is left out."""

    value: Kind | None
    package: str
    reason: str = ""


class Extensions(Generic[Kind]):
    """What installed packages register in one group of entry points.

    A package is imported when one of its names is looked up, or when all are listed. Whatever is
    wrong with it, the others and the built-in ones go on working: what cannot be used is left out
    with one warning. `group`: of entry points, such as ``anonymip.methods``. `what`: what they
    register, in the singular: ``"method"``. `read`: takes an entry point's name and the function
    that imports its target; returns what is registered, and raises :class:`InputError` for anything
    else. `taken`: returns the names that no package may take.
    """

    def __init__(
        self,
        group: str,
        what: str,
        read: Callable[[str, Callable[[], object]], Kind],
        taken: Callable[[], frozenset[str]],
    ) -> None:
        self._group = group
        self._what = what
        self._read = read
        self._taken = taken
        self._found: dict[str, _Found[Kind]] = {}

    def find(self, name: str) -> Kind | None:
        """Return what is registered under a name, or None; raises InputError if it is left out."""
        if name not in self._entries:
            return None
        found = self._load(name)
        if found.value is None:
            raise InputError(
                f"{self._what} {name!r} of the package {found.package} is left out: {found.reason}",
                remedy="Correct or update the package",
            )
        return found.value

    def get(self, name: str) -> Kind | None:
        """Return what is registered under a name; None if it is left out, or not registered."""
        return self._load(name).value if name in self._entries else None

    def all(self) -> Mapping[str, Kind]:
        """Return all that is registered and can be used, by name."""
        loaded = {name: self.get(name) for name in self._entries}
        return {name: value for name, value in loaded.items() if value is not None}

    def known(self) -> Mapping[str, Kind]:
        """Return what has been imported so far, importing nothing."""
        return {name: found.value for name, found in self._found.items() if found.value is not None}

    @cached_property
    def _entries(self) -> dict[str, importlib.metadata.EntryPoint]:
        """The entry points by name; of several packages the first in the alphabet has it."""
        try:
            found = importlib.metadata.entry_points(group=self._group)
        except Exception as error:  # noqa: BLE001
            # One malformed file of any installed package must not end all commands.
            _warn(f"no {self._what} of other packages can be read: {_told(error)}")
            return {}
        entries: dict[str, importlib.metadata.EntryPoint] = {}
        for entry in sorted(found, key=lambda entry: (entry.name, _package(entry), entry.value)):
            first = entries.setdefault(entry.name, entry)
            if first.value != entry.value:
                self._leave_out(entry, f"the package {_package(first)} registers the same name")
        return entries

    def _load(self, name: str) -> _Found[Kind]:
        if name not in self._found:
            self._found[name] = self._import(self._entries[name])
        return self._found[name]

    def _import(self, entry: importlib.metadata.EntryPoint) -> _Found[Kind]:
        if entry.name in self._taken():
            return self._leave_out(entry, "the name is that of a built-in one")
        try:
            value = self._read(entry.name, entry.load)
        except AnonymipError as error:
            return self._leave_out(entry, str(error))
        except (Exception, SystemExit) as error:  # noqa: BLE001
            # Whatever a package raises while it is imported is its author's to mend.
            return self._leave_out(entry, f"loading {entry.value!r} fails with {_told(error)}")
        return _Found(value, _package(entry))

    def _leave_out(self, entry: importlib.metadata.EntryPoint, reason: str) -> _Found[Kind]:
        package = _package(entry)
        _warn(f"{self._what} {entry.name!r} of the package {package} is left out: {reason}")
        return _Found(None, package, reason)


def _package(entry: importlib.metadata.EntryPoint) -> str:
    return entry.value.partition(":")[0] if entry.dist is None else entry.dist.name


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _warn(text: str) -> None:
    warnings.warn(text, ExtensionWarning, stacklevel=2)
