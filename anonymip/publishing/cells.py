"""What is written into the cells of a release; the grammar is docs/format.md's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip.instances import Attribute
from anonymip.solution import Solution

_STAR = "*"


def end_names(attribute: Attribute) -> tuple[str, str]:
    """Return the names of the two columns of a range in the layout "columns"."""
    return f"{attribute.name}_lower", f"{attribute.name}_upper"


def published_columns(solution: Solution, a: int, layout: str) -> dict[str, Any]:
    """Return the column or columns of one quasi-identifier; each class is written once.

    Of a cover row i shows what the set of record i is published with.
    """
    microdata = solution.problem.microdata
    attribute = microdata.attributes[a]
    classes = solution.classes
    labels = np.arange(microdata.n) if classes is None else classes.labels
    _, firsts, inverse = np.unique(labels, return_index=True, return_inverse=True)
    cells = solution.description
    starred = cells.suppressed[firsts, a]

    def spread(texts: Sequence[str]) -> NDArray[np.object_]:
        written = np.array(texts, dtype=object)
        written[starred] = _STAR
        return written[inverse.ravel()]

    lower, upper = cells.lower[firsts, a], cells.upper[firsts, a]
    if attribute.publish == "range" and layout == "columns":
        ends = [spread([_number(value) for value in end]) for end in (lower, upper)]
        return dict(zip(end_names(attribute), ends, strict=True))
    if attribute.publish == "range":
        return {attribute.name: spread([_range(u, v) for u, v in zip(lower, upper, strict=True)])}
    if attribute.hierarchy is not None:
        names = attribute.hierarchy.tree.labels
        return {attribute.name: spread([_text(names[cells.nodes[i, a]]) for i in firsts])}
    level = microdata.levels[a]
    write = _number_set if attribute.is_numeric else _text_set
    return {attribute.name: spread([write(level[cells.members.of(i, a)]) for i in firsts])}


def _number(value: float) -> str:
    """Write a number the shortest way that reads back exactly."""
    return repr(float(value) + 0.0).removesuffix(".0")


def _range(lower: float, upper: float) -> str:
    if lower == upper:
        return _number(lower)
    return f"[{_number(lower)}..{_number(upper)}]"


def _number_set(values: NDArray[np.generic]) -> str:
    texts = [_number(float(value)) for value in values]
    return texts[0] if len(texts) == 1 else "{" + "|".join(texts) + "}"


def _text(text: str) -> str:
    """Write a text, or the label of a node; a backslash distinguishes the root * from a star."""
    return "\\" + text if text.startswith(("[", "{", "*", "\\")) else text


def _text_set(values: NDArray[np.generic]) -> str:
    texts = sorted(str(value) for value in values)
    if len(texts) == 1:
        return _text(texts[0])
    escaped = [text.replace("\\", "\\\\").replace("|", "\\|").replace("}", "\\}") for text in texts]
    return "{" + "|".join(escaped) + "}"
