"""What a verification has found, for programs and for persons."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from anonymip.privacy.reading.manifests.manifest import COVERS, STARRED


@dataclass(frozen=True)
class Verification:
    """What was found.

    Parameters
    ----------
    ok
        Whether there are no problems.
    recoding
        What the release claims to be: ``"classes"``, ``"freeform"``, or a weaker notion.
    k
        The claimed size of the smallest class; of a cover the claimed number of matches.
    k_reached
        The smallest number of rows that look alike, those of stars only included; None if the
        release could not be read. Of a cover the number of matches that every record keeps, as
        far as it was claimed: it may keep more.
    promise
        What k counts in a cover, with the k reached; None for classes.
    classes
        Number of classes, without wholly suppressed rows; None for a cover.
    suppressed
        Number of rows whose quasi-identifiers are all suppressed.
    left_out
        Number of suppressed records that have no row, as the manifest claims.
    n, m
        Published rows and quasi-identifiers.
    ncp, gcp
        Loss of the published table: sum of the normalised penalties, and its mean per cell. A
        suppressed record without a row counts as a row of stars.
    bound, gap
        The manifest's bound, in units of ncp, and its relative distance to the recomputed ncp;
        None if the manifest has no bound or its objective is not the ncp.
    problems
        One sentence each.
    checks
        What was checked and holds, one sentence each.
    """

    ok: bool
    recoding: str
    k: int
    k_reached: int | None
    promise: str | None
    classes: int | None
    suppressed: int | None
    left_out: int
    n: int | None
    m: int
    ncp: float | None
    gcp: float | None
    bound: float | None
    gap: float | None
    problems: tuple[str, ...]
    checks: tuple[str, ...]

    def summary(self) -> str:
        """Return the text for a person, several lines."""
        lines = ["The release keeps its promises." if self.ok else "The release FAILS."]
        if self.n is not None:
            nothing = "not counted" if self.recoding in COVERS else "no class"
            reached = nothing if self.k_reached is None else f"k = {self.k_reached} reached"
            what = self.recoding if self.recoding in COVERS else f"{self.classes} classes"
            if self.recoding in STARRED:
                what = f"recoding {self.recoding}, {what}"
            lines.append(
                f"{self.n} rows, {self.m} quasi-identifiers, {what}, "
                f"{self.suppressed} rows suppressed, {self.left_out} suppressed records left out; "
                f"k = {self.k} claimed, {reached}"
            )
            if self.promise is not None:
                lines.append(self.promise)
        if self.gcp is not None:
            lines.append(self._loss_line())
        lines += [f"  PROBLEM: {problem}" for problem in self.problems]
        lines += [f"  {check}" for check in self.checks]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the same as an object for JSON."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
        }

    def _loss_line(self) -> str:
        line = f"loss {self.gcp:.6g} (ncp {self.ncp:.10g})"
        if self.bound is not None and self.ncp and self.gcp is not None:
            line += f"; bound {self.bound * self.gcp / self.ncp:.6g}"
        if self.gap is not None:
            line += f"; gap {self.gap:.2%}"
        return line
