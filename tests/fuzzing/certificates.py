"""Certify a solution, and let the judge look at what is said to be proven."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from fractions import Fraction
from typing import Any

import anonymip
from anonymip import Solution
from anonymip.certificates.check import Rejected, check
from tests.fuzzing.judge.asked import Asked
from tests.fuzzing.judge.releases import differs
from tests.fuzzing.package import judged

#: Seconds for the proof.
_LIMIT = 20.0


def check_certificate(found: Any, asked: Asked, reference: Any, solution: Solution) -> None:
    """Note what is wrong with the certificate of a solution, if one can be made.

    Parameters
    ----------
    found, reference
        Findings, and what the judge knows of the problem.
    asked, solution
        The problem and a solution of it.
    """
    what = f"certificate of {solution.method}"
    certificate = found.attempt(what, lambda: anonymip.certify(solution, time_limit=_LIMIT))
    if certificate is None:
        return
    content = json.loads(json.dumps(certificate.content))
    proven: tuple[Fraction, Fraction] | None = found.attempt(what, lambda: check(content))
    if proven is None:
        return
    loss, bound = proven
    exact, _ = judged(asked, solution)
    if differs(float(loss), exact):
        found.fault(f"{what}: loss {float(loss)!r}, the judge has {float(exact)!r}")
    if reference.bound_is_false(bound):
        found.fault(f"{what}: bound {float(bound)!r} above the optimum")
    # A coarser unit would raise the bound to its next multiple.
    for unit in (1, max(1, content["problem"]["unit"] // 2)):
        claimed = Fraction(math.floor(bound * unit) + 1, unit)
        asked_for = {**content["problem"], "unit": unit}
        forged = {**content, "problem": asked_for, "release": None, "bound": str(claimed)}
        with suppress(Rejected):
            if reference.bound_is_false(check(forged)[1]):
                found.fault(f"{what}: {claimed} passes with the unit 1/{unit}")
