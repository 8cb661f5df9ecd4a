"""Models as files that any solver reads: LP, MPS and NL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonymip.errors import InputError
from anonymip.files import Outputs, writing

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel


@dataclass(frozen=True)
class ExportedModel:
    """What was written.

    `files`: the model first; with ``.nl`` also the names of its rows and columns. `rows, columns,
    integer_columns, nonzeros`: size of the linear program. Variables that no row and no cost uses
    are not in it; a constraint with two different sides counts as one row. `components`: name,
    number of entries and meaning of each family of variables, then of constraints.
    """

    files: tuple[Path, ...]
    rows: int
    columns: int
    integer_columns: int
    nonzeros: int
    components: tuple[tuple[str, int, str], ...]


def export_files(path: Path) -> tuple[Path, ...]:
    """Return the files that a model exported to a path consists of.

    Raises InputError if the file's ending is not that of a format.
    """
    ending = path.suffix.lower()
    if ending not in _WRITERS:
        raise InputError(
            f"{path.name} has no ending of a model format",
            remedy=f"Name a file that ends in {', '.join(_WRITERS)}",
        )
    if ending == ".nl":
        return (path, path.with_suffix(".row"), path.with_suffix(".col"))
    return (path,)


def export_model(
    model: ConcreteModel, path: Path | str, outputs: Outputs | None = None
) -> ExportedModel:
    """Write a linear model with symbolic names; the file's ending says the format.

    `model`: built by :func:`anonymip.build`; constraints of one's own are written too. `path`:
    ``.lp``, ``.mps``, or ``.nl``. Names have no place in an NL file: ``.row`` and ``.col`` files
    beside it hold them. `outputs`: other files that these are put in place with; None puts them
    there at once. Raises InputError if the ending is another one, the model is not linear, or it
    has parts that no such file holds, such as disjunctions.

    The file holds values of the table, as bounds and coefficients: it is as private as the table.

    Examples
    --------
    >>> import anonymip
    >>> from anonymip.models.export import export_model
    >>> problem = anonymip.Problem(anonymip.load_instance("health-records"), k=3)
    >>> written = export_model(anonymip.build(problem), "model.lp")
    >>> written.files[0].name, written.rows > written.columns
    ('model.lp', True)
    """
    path = Path(path)
    files = export_files(path)
    _refuse_parts(model, path.suffix)
    size = _size(model)
    with writing(outputs) as others:
        _WRITERS[path.suffix.lower()](model, tuple(map(others.stage, files)))
    return ExportedModel(files, *size, _components(model))


def _refuse_parts(model: ConcreteModel, ending: str) -> None:
    """Refuse what the writers would leave out or fail at."""
    from pyomo import environ as pyo
    from pyomo.repn.util import categorize_valid_components

    held = {pyo.Block, pyo.Var, pyo.Param, pyo.Set, pyo.RangeSet, pyo.Expression}
    held |= {pyo.Constraint, pyo.Objective, pyo.Suffix, pyo.BuildCheck, pyo.BuildAction}
    _, others = categorize_valid_components(model, active=True, valid=held, targets=set())
    kinds = sorted(kind.__name__ for kind, parts in others.items() if parts)
    if kinds:
        raise InputError(
            f"the model has parts of the kind {', '.join(kinds)}, which a {ending} file does not "
            "hold",
            remedy="Choose another formulation, or reformulate them first, for instance by "
            'TransformationFactory("gdp.bigm").apply_to(model)',
        )


def _size(model: ConcreteModel) -> tuple[int, int, int, int]:
    from pyomo.common.errors import InfeasibleConstraintException, InvalidExpressionError
    from pyomo.common.gc_manager import PauseGC
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    try:
        with PauseGC():
            form = LinearStandardFormCompiler().write(model, mixed_form=True)
    except (InvalidExpressionError, InfeasibleConstraintException, ValueError) as error:
        raise InputError(
            f"the model cannot be written as a linear one: {error}",
            remedy="Give it one objective and linear constraints",
        ) from error
    # A constraint with two sides is compiled into two rows of the same coefficients.
    lengths = (form.A.tocsr().indptr[1:] - form.A.tocsr().indptr[:-1]).tolist()
    rows = {id(row.constraint): entries for row, entries in zip(form.rows, lengths, strict=True)}
    integer = sum(not variable.is_continuous() for variable in form.columns)
    return len(rows), len(form.columns), integer, sum(rows.values())


#: Blocks of :mod:`pyomo.gdp`, one for each disjunct.
_REFORMULATED = "_pyomo_gdp_"


def _components(model: ConcreteModel) -> tuple[tuple[str, int, str], ...]:
    from pyomo.environ import Constraint, Var

    lines, made = [], 0
    for kind in (Var, Constraint):
        for part in model.component_objects(kind, active=True):
            if part.name.startswith(_REFORMULATED):
                made += len(part)
            elif len(part):
                lines.append((part.name, len(part), part.doc or ""))
    if made:
        lines.append((f"{_REFORMULATED}*", made, "what the reformulation of pyomo.gdp made"))
    return tuple(lines)


def _write_lp(model: ConcreteModel, files: tuple[Path, ...]) -> None:
    from pyomo.repn.plugins.lp_writer import LPWriter

    with files[0].open("w", encoding="utf-8") as stream:
        LPWriter().write(model, stream, symbolic_solver_labels=True)


def _write_mps(model: ConcreteModel, files: tuple[Path, ...]) -> None:
    from pyomo.opt import ProblemFormat

    options = {"symbolic_solver_labels": True}
    model.write(str(files[0]), format=ProblemFormat.mps, io_options=options)


def _write_nl(model: ConcreteModel, files: tuple[Path, ...]) -> None:
    from pyomo.repn.plugins.nl_writer import NLWriter

    with (
        files[0].open("w", encoding="utf-8", newline="") as stream,
        files[1].open("w", encoding="utf-8") as rows,
        files[2].open("w", encoding="utf-8") as columns,
    ):
        # Presolve would remove variables that the names beside the file speak of.
        NLWriter().write(
            model, stream, rows, columns, symbolic_solver_labels=True, linear_presolve=False
        )


_WRITERS: dict[str, Callable[[Any, tuple[Path, ...]], None]] = {
    ".lp": _write_lp,
    ".mps": _write_mps,
    ".nl": _write_nl,
}
