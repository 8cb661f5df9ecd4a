"""The exceptions of the toolkit: few, and each says what to do next.

A message never contains a value of the table; the value travels beside it, so that a caller who
may see the data (``--show-values``) can print it and a log file does not.
"""

from __future__ import annotations


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


class VerificationFailed(AnonymipError):
    """A release does not keep what it promises."""

    exit_code = 1


class Interrupted(AnonymipError):
    """The user stopped the computation before there was anything to show."""

    exit_code = 130
