"""A certificate: what its file holds, and how it and its checker are written and read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

from anonymip.certificates.check import Rejected, check, sentence
from anonymip.errors import InputError, VerificationFailed
from anonymip.files import Outputs, writing
from anonymip.solution import Solution

#: The checker that is written beside a certificate.
CHECKER = "check.py"


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof of a bound that the checker has accepted.

    Parameters
    ----------
    content
        What the file holds; ``docs/certificates.md`` says what it means.
    loss
        Of the release that it holds, exactly; None without one.
    bound
        What no release loses less than, exactly.
    solution
        Whose loss it is, with the bound that is certified; None of a bound alone or of a file.
    seconds
        Spent on making it.
    """

    content: dict[str, Any]
    loss: Fraction | None
    bound: Fraction
    solution: Solution | None = None
    seconds: float = 0.0

    @property
    def is_optimal(self) -> bool:
        """Whether the loss is the bound: no release loses less, and not by rounding alone."""
        return self.loss == self.bound

    def sentence(self) -> str:
        """Return what the checker prints."""
        return sentence(self.loss, self.bound)

    def write(self, path: str | Path) -> tuple[Path, Path]:
        """Write the certificate, and ``check.py`` beside it; return both paths.

        The certificate holds records: nobody but its owner may open the file.

        Raises InputError if a file cannot be written, or another ``check.py`` would be overwritten.
        """
        with writing() as outputs:
            return self.stage(Path(path), outputs)

    def stage(self, path: Path, outputs: Outputs) -> tuple[Path, Path]:
        """Write both files to be put in place with others; return their paths."""
        checker = checker_beside(path)
        text = json.dumps(self.content, ensure_ascii=False, separators=(",", ":"))
        outputs.stage(path).write_text(text + "\n", encoding="utf-8")
        outputs.write_text(_source(), checker, public=True)
        return path, checker

    def __repr__(self) -> str:
        return f"<Certificate: {self.sentence()}>"


def checker_beside(path: Path) -> Path:
    """Return where the checker of a certificate goes.

    Raises InputError if the certificate would have its name, or something else lies there.
    """
    place = path.parent / CHECKER
    if path.name == CHECKER:
        raise InputError(
            f"a certificate cannot be called {CHECKER}, as its checker is",
            remedy="Name it proof.json, for example",
        )
    if place.exists() and not _begins_alike(place):
        raise InputError(
            f"{place} is there, and is no checker of certificates",
            remedy="Write the certificate to another folder",
        )
    return place


def check_certificate(path: str | Path) -> Certificate:
    """Read a certificate and prove again what it says, as ``check.py`` does.

    Raises
    ------
    InputError
        If the file cannot be read.
    VerificationFailed
        If it proves nothing.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", remedy="Name a file") from None
    except (RecursionError, ValueError):
        raise _not_proven(path, "it is no certificate") from None
    try:
        loss, bound = check(content)
    except Rejected as reason:
        raise _not_proven(path, str(reason)) from None
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
        raise _not_proven(path, "it is no certificate") from None
    return Certificate(content, loss, bound)


def _not_proven(path: str | Path, reason: str) -> VerificationFailed:
    return VerificationFailed(
        f"{path} proves nothing: {reason}", remedy="Ask who made it for the file as it was written"
    )


def _source() -> str:
    """Return the text of the stand-alone checker."""
    return files("anonymip.certificates").joinpath(CHECKER).read_text(encoding="utf-8")


def _begins_alike(place: Path) -> bool:
    try:
        text = place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return text.partition("\n")[0] == _source().partition("\n")[0]
