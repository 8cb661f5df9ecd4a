"""What a computation belongs to, in three short texts: its table, its rules, its options."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymip.problem import Problem

#: Sets of records whose losses identify an objective without tables.
_SAMPLES = 200
#: Digits of a loss that count: libraries of mathematics differ in the last ones.
_DIGITS = 9

_Part: TypeAlias = bytes | NDArray[Any]


class Fingerprint(NamedTuple):
    """Digests of what a result depends on.

    Parameters
    ----------
    table
        Values, domains, hierarchies and weights of the quasi-identifiers; the sensitive values
        where the problem asks for a diversity.
    rules
        k, recoding, objective, diversity, limits.
    options
        Of the method.
    """

    table: str
    rules: str
    options: str

    @classmethod
    def of(cls, problem: Problem, options: Mapping[str, object]) -> Fingerprint:
        """Return the fingerprint of a computation.

        Of an objective that is called and not tabulated, the name and the losses of some sets
        of records count: two functions of one name that differ on none of them are taken for one.

        Notes
        -----
        Complexity: O(n m).
        """
        return cls(_table(problem), _rules(problem), _digest(_text(sorted(options.items()))))


def _table(problem: Problem) -> str:
    data = problem.microdata
    parts: list[_Part] = [_text([data.n, data.names]), data.codes, data.values]
    for attribute, levels in zip(data.attributes, data.levels, strict=True):
        parts += [
            _text([attribute.kind, attribute.domain, attribute.weight, attribute.integer]),
            _text([attribute.publish, attribute.hierarchy]),
            _text(levels.tolist()),
        ]
    if problem.diversity is not None:
        parts.append(data.sensitive_codes)
    return _digest(*parts)


def _rules(problem: Problem) -> str:
    compiled = problem.compiled
    parts: list[_Part] = [
        _text([problem.k, problem.recoding, problem.diversity, problem.limits]),
        _text([compiled.name, compiled.aggregate, f"{compiled.suppression_price:.{_DIGITS}g}"]),
    ]
    if compiled.has_tables:
        parts += [np.asarray(table) for table in compiled.tables]
    else:
        losses = compiled.class_losses(_sampled_sets(problem.n, problem.k))
        parts.append(_text([f"{loss:.{_DIGITS}g}" for loss in losses]))
    return _digest(*parts)


def _sampled_sets(n: int, k: int) -> NDArray[np.int64]:
    """Return (B, k) sets of neighbouring and of distant records."""
    start = np.unique(np.linspace(0, n - 1, _SAMPLES).astype(np.int64))[:, None]
    near = start + np.arange(k)
    far = start + np.arange(k) * (n // k)
    return np.concatenate([near, far]) % n


def _text(value: object) -> bytes:
    return repr(value).encode()


def _digest(*parts: _Part) -> str:
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(_text([part.shape, part.dtype.str]))
            digest.update(np.ascontiguousarray(part).data.cast("B"))
        else:
            digest.update(_text(len(part)))
            digest.update(part)
    return digest.hexdigest()
