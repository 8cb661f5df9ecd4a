"""The exceptions of the toolkit: few, and each says what to do next.

A message never contains a value of the table; the value travels beside it, so that a caller who
may see the data (``--show-values``) can print it and a log file does not. What the caller passed
is named as the caller wrote it: :func:`argument` says it in Python's words, or as an option of the
command line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

_LARGEST = sys.float_info.max
_FEW = 12  # names that are listed beside the one that is probably meant
# Whether messages are read by somebody who types options; the command line says so while it runs.
_names_options = False


@contextmanager
def naming_options() -> Iterator[None]:
    """Have messages made within the block name the options of the command line."""
    global _names_options
    before, _names_options = _names_options, True
    try:
        yield
    finally:
        _names_options = before


def argument(name: str, value: object = None, *, option: str | None = None) -> str:
    """Return an argument as who reads the message writes it: ``drop=...``, or ``--drop``.

    `name`: of the argument in Python. `value`: to give it, ``...`` for any; None names the argument
    alone. `option`: what the command line says instead. None: the name with dashes, and the value,
    if it is neither true nor any.

    >>> argument("time_limit"), argument("drop", ...), argument("missing", "drop")
    ('time_limit', 'drop=...', "missing='drop'")
    >>> with naming_options():
    ...     argument("time_limit"), argument("drop", ...), argument("missing", "drop")
    ('--time-limit', '--drop', '--missing drop')
    """
    if not _names_options:
        return name if value is None else f"{name}={'...' if value is ... else repr(value)}"
    if option is not None:
        return option
    given = "" if value in (None, ..., True) else f" {value}"
    return f"--{name.replace('_', '-')}{given}"


def did_you_mean(name: object, known: Iterable[str], then: str = "") -> str:
    """Return a question with the known names that are much like one that is not, if there are any.

    `known`: all that there are. `then`: follows the question, or stands alone.

    >>> did_you_mean("mondrain", ["mondrian", "hilbert"])
    "Did you mean 'mondrian'?"
    """
    # Imported here: the help of the command line waits for nothing that it does not use.
    from difflib import get_close_matches

    lower = {one.lower(): one for one in known}
    alike = [lower[one] for one in get_close_matches(str(name).lower(), lower, n=3)]
    question = f"Did you mean {' or '.join(map(repr, alike))}?" if alike else ""
    return f"{question} {then}".strip()


def gap_text(gap: float, *, closed: bool = False) -> str:
    """Print a gap in percent, rounded up: it is the most that any other release could save.

    One that is open is never printed as 0.0 %, unless it is proven `closed`.

    >>> gap_text(0.3741), gap_text(0.375), gap_text(1e-7)
    ('37.5 %', '37.5 %', 'below 0.1 %')
    """
    text = f"{100 * gap + 0.0499999:.1f} %"  # a gap that is a rounding above a tenth is that tenth
    if text == "0.1 %" and gap < 0.001:
        return "0.0 %" if closed else "below 0.1 %"
    return text


class AnonymipError(Exception):
    """Root of all exceptions raised on purpose.

    Parameters
    ----------
    message
        What is wrong: argument, column, row.
    remedy
        What the caller can do about it.
    value
        The offending value of the table, shown on request only.
    """

    exit_code = 4

    def __init__(self, message: str, *, remedy: str | None = None, value: object = None) -> None:
        super().__init__(message if remedy is None else f"{message}. {remedy}")
        self.message = message
        self.remedy = remedy
        self.value = value

    def render(self, *, show_values: bool = False) -> str:
        """Return the text for a person, with the value only if `show_values`."""
        text = str(self)
        if show_values and self.value is not None:
            text += f" (value: {self.value!r})"
        return text


class InputError(AnonymipError, ValueError):
    """The caller's table, schema or argument is wrong."""

    exit_code = 2


@contextmanager
def within(where: str) -> Iterator[None]:
    """Have the messages of errors in the caller's input begin with where it stands.

    >>> with within("schema.toml"):
    ...     raise InputError("k is 1")
    Traceback (most recent call last):
    anonymip.errors.InputError: schema.toml: k is 1
    """
    try:
        yield
    except InputError as error:
        error.message = f"{where}: {error.message}"
        error.args = (f"{where}: {error}",)
        raise


def unknown_name(what: str, name: object, known: Iterable[str], *, more: str = "") -> InputError:
    """Return the error for a name that is none of the known ones.

    `what`: it would be the name of: ``"method"``. `known`: all that there are, which the remedy
    lists where they are few or none is much alike. `more`: what else can be given, behind the list.
    """
    listed = tuple(known)
    between = " or " if len(listed) == 2 and not more else ", "
    has = f"Use {between.join(listed)}{more}" if listed else "There is none"
    few = len(listed) <= _FEW
    remedy = did_you_mean(name, listed, has if few else "") or has
    return InputError(f"unknown {what} {name!r}", remedy=remedy)


def is_number(
    given: Any, least: float = -_LARGEST, most: float = _LARGEST, kind: type[Any] = Real
) -> bool:
    """Return whether something is a number of a kind between two others, and no truth value.

    >>> is_number(3, least=0), is_number(float("inf")), is_number("3"), is_number(True)
    (True, False, False, False)
    """
    return isinstance(given, kind) and not isinstance(given, bool) and bool(least <= given <= most)


def no_file(path: str | os.PathLike[str]) -> InputError:
    """Return the error for the path of a table where there is no file: nothing, or a folder."""
    if os.path.isdir(path):
        folder = os.fspath(path)
        remedy = (
            "Name the file of the table; a folder of several files is for anonymize with "
            f"{argument('engine', ...)}, which solves it by parts"
        )
        if os.path.isfile(manifest := os.path.join(folder, "_manifest.json")):
            remedy = (
                "It holds a release by parts: 'anonymip verify' checks it as a whole; in Python "
                f"give pandas.read_parquet({folder!r}) for it, with manifest={manifest!r}"
            )
        return InputError(f"{folder!r} is a folder, not a file", remedy=remedy)
    return InputError(f"there is no file {path}", remedy="Check the path")


def missing_extra(extra: str, what: str) -> InputError:
    """Return the error for an optional package that is not installed.

    `extra`: of the package. `what`: what would be done by which package, a clause.
    """
    return InputError(
        f"{what}, which is not installed", remedy=f"Install it: pip install 'anonymip[{extra}]'"
    )


class UnsupportedObjective(InputError):
    """The objective cannot be used in this place; the message names the places where it can."""


class SolverUnavailable(InputError):
    """The solver is not installed, has no licence, or is limited to smaller models."""


class InputWarning(UserWarning):
    """Something in the caller's table, schema or surroundings has no effect."""


class ReleaseWarning(UserWarning):
    """Something that a person should know of a release before it is given away."""


class LicenceLimit(SolverUnavailable):
    """The solver's licence does not allow a model of this size."""


def fault_of(error: BaseException) -> str:
    """Return what happened and where; the error's own text may quote a value of the table."""
    import traceback

    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {os.path.basename(last.filename)}, line {last.lineno}"


class InvalidAssignment(AnonymipError):
    """An assignment breaks the rules of its recoding.

    Parameters
    ----------
    record
        Row of the original table, from 0, that breaks the rule; None if the assignment as a
        whole does.
    reason
        Which rule.
    """

    def __init__(self, record: int | None, reason: str) -> None:
        where = "assignment" if record is None else f"record {record}"
        super().__init__(f"{where}: {reason}")
        self.record = record
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        # Pickle would otherwise call the class with the text alone.
        return type(self), (self.record, self.reason), self.__dict__


class SolverError(AnonymipError):
    """A solver failed, or returned something that does not survive a check."""


class NoSolution(AnonymipError):
    """The limits were reached, or infeasibility was proven, before any solution was found."""

    exit_code = 3


class MemoryShort(NoSolution):
    """There is less memory than the work needs, or it ended before anything was found."""


class VerificationFailed(AnonymipError):
    """A release does not keep what it promises."""

    exit_code = 1


class Interrupted(AnonymipError):
    """The user stopped the computation before there was anything to show."""

    exit_code = 130
