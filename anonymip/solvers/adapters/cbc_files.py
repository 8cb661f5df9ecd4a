"""The files of CBC: the model and start it reads, the solution and log it writes.

Values are read from the binary solution file, since the readable one keeps eight digits only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from anonymip.files import private

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anonymip.solvers.modelling.standard_form import StandardForm

#: Column fixed at 1 that carries the constant part of the objective.
_CONSTANT = "one"

_NUMBER = r"([-+0-9.eE]+)"
_INCUMBENT = re.compile(rf"^Cbc0012I Integer solution of {_NUMBER} found", re.MULTILINE)
_OPEN = re.compile(rf"^Cbc0010I After .* best possible {_NUMBER}", re.MULTILINE)
_RELAXED = re.compile(rf"^Continuous objective value is {_NUMBER} ", re.MULTILINE)
_LOWER = re.compile(rf"^Lower bound: +{_NUMBER}", re.MULTILINE)
_PARTIAL = re.compile(rf"^Cbc0005I .*\(best possible {_NUMBER}\)", re.MULTILINE)
_WITHIN = re.compile(rf"^Cbc0011I Exiting as integer gap of {_NUMBER} ", re.MULTILINE)


def write_model(form: StandardForm, path: Path) -> None:
    """Write a model as an LP file: columns x0, x1, ... and one for the constant.

    Numbers are written with all their digits, each term on a line of its own.
    """
    with open(path, "w", encoding="ascii", newline="\n", opener=private) as file:
        file.writelines(f"{line}\n" for line in _model_lines(form))


def _model_lines(form: StandardForm) -> Iterator[str]:
    yield "min"
    yield "cost:"
    for column in np.flatnonzero(form.cost).tolist():
        yield f"{form.cost[column]:+.17g} x{column}"
    yield f"{form.offset:+.17g} {_CONSTANT}"
    yield "s.t."
    yield from _row_lines(form)
    yield "bounds"
    for column, (lower, upper) in enumerate(zip(form.lower, form.upper, strict=True)):
        yield f"{lower:.17g} <= x{column} <= {upper:+.17g}"
    yield f"1 <= {_CONSTANT} <= 1"
    if form.integer.any():
        yield "general"
        yield from (f"x{column}" for column in np.flatnonzero(form.integer).tolist())
    yield "end"


def _row_lines(form: StandardForm) -> Iterator[str]:
    matrix = form.matrix
    terms = [
        f"{coefficient:+.17g} x{column}"
        for coefficient, column in zip(matrix.data.tolist(), matrix.indices.tolist(), strict=True)
    ]
    starts = matrix.indptr.tolist()
    sides = zip(form.row_lower.tolist(), form.row_upper.tolist(), strict=True)
    for row, (lower, upper) in enumerate(sides):
        relations = [("=", lower)] if lower == upper else [(">=", lower), ("<=", upper)]
        for number, (relation, side) in enumerate(relations):
            if np.isfinite(side):
                yield f"r{row}_{number}:"
                yield from terms[starts[row] : starts[row + 1]]
                yield f"{relation} {side:.17g}"
    if not starts[-1]:
        # CBC fails on a model without rows.
        yield from ("fixed:", f"+1 {_CONSTANT}", "= 1")


def write_start(form: StandardForm, start: NDArray[np.float64], path: Path) -> None:
    """Write the values of all integer variables, zeros too: CBC needs every one."""
    columns = np.flatnonzero(form.integer).tolist()
    lines = [f"{number} x{column} {start[column]:.17g}" for number, column in enumerate(columns)]
    with open(path, "w", encoding="ascii", opener=private) as file:
        file.write("\n".join(["Stopped on iterations - objective value 0", *lines, ""]))


def lower_bound(log: str, claimed: float | None) -> float | None:
    """Return the bound that CBC printed, lowered by what its printing may have rounded up.

    The summary has three decimals. The line of a partial search and the gap within which CBC
    stopped have eight digits, and are used where they agree with the summary.
    """
    printed = _LOWER.findall(log)
    if not printed:
        return _bound_on_the_way(log)
    if abs(float(printed[-1])) >= 1e30:
        return None
    coarse = float(printed[-1])
    fine = [float(value) for value in _PARTIAL.findall(log)[-1:]]
    if claimed is not None:
        fine += [claimed - float(gap) for gap in _WITHIN.findall(log)[-1:]]
    agreeing = [value for value in fine if abs(value - coarse) <= 1e-3 + 1e-7 * abs(coarse)]
    lowered = [value - 1e-7 * abs(value) - 1e-8 for value in agreeing]
    return max([coarse - 5.1e-4, *lowered])


def _bound_on_the_way(log: str) -> float | None:
    """Return the last bound that CBC printed before it was killed, lowered by its rounding."""
    for pattern, digits in ((_OPEN, 1e-6), (_RELAXED, 1e-5)):
        printed = [float(value) for value in pattern.findall(log)]
        if printed and abs(printed[-1]) < 1e30:
            return printed[-1] - digits * abs(printed[-1]) - digits
    return None


def read_values(form: StandardForm, path: Path, names: list[str]) -> NDArray[np.float64] | None:
    """Return the values of the form's variables from CBC's binary solution file.

    It holds the numbers of rows and columns (int32), the objective, the activities and duals
    of the rows, then the values and reduced costs of the columns (float64). A column that CBC
    does not list is a variable without influence, and gets the value nearest to 0.
    """
    if not path.exists():
        return None
    content = path.read_bytes()
    rows, columns = np.frombuffer(content, dtype=np.int32, count=2).tolist()
    numbers = np.frombuffer(content, dtype=np.float64, offset=8)
    found = numbers[1 + 2 * rows : 1 + 2 * rows + columns]
    values: NDArray[np.float64] = np.clip(0.0, form.lower, form.upper)
    for name, value in zip(names[rows:], found.tolist(), strict=True):
        if name != _CONSTANT:
            values[int(name[1:])] = value
    return values


def progress(log: str) -> tuple[float | None, float | None]:
    """Return the last incumbent and bound in the log, minimised; None where there is none.

    These are for display. The bound of an inner search may be among them.
    """
    incumbents, bounds = _INCUMBENT.findall(log), _OPEN.findall(log)
    return (
        float(incumbents[-1]) if incumbents else None,
        float(bounds[-1]) if bounds else None,
    )
