"""The reproduction of a table or figure: runs, panels, and statements that rows decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from anonymip.errors import AnonymipError, InputError
from anonymip.experiments.running.sources import TableSource
from anonymip.experiments.running.specification import Experiment
from anonymip.instances import INSTANCES
from anonymip.instances.library.fetching import data_file

SCHEMAS = Path(__file__).parent / "schemas"  # schemas of tables that are no named instances
#: Rows to what a panel draws: columns ``label``, ``x`` and ``y``; ``low`` and ``high`` if there is
#: an interval.
Series = Callable[[pd.DataFrame], pd.DataFrame]


class Undecided(AnonymipError):
    """The rows do not hold what a statement is about."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, remedy="Run the full version")


@dataclass(frozen=True)
class Source:
    """Where the records of a reproduction come from."""

    original: str  # what the paper used
    nearest: str  # the named instance that is nearest to it
    remark: str  # how the two differ
    generated: str  # what stands in where the files of `nearest` are not here: ``census:n,m,seed``
    #: Of data that are no named instance: the file in the data folder, and its schema among those
    #: of this folder.
    file: str | None = None
    schema: str | None = None

    @property
    def is_here(self) -> bool:
        """Whether the nearest data can be read."""
        named = INSTANCES.get(self.nearest)
        try:
            if self.file is not None:
                data_file(self.file)
            elif named is not None:
                named.paths()
        except InputError:
            return False
        return True

    @property
    def instance(self) -> str:
        """What is run on."""
        return self.nearest if self.is_here else self.generated

    def table(self, **options: Any) -> TableSource:
        """Return the table that is run on, with options of :class:`TableSource`."""
        if self.file is None or not self.is_here:
            return TableSource(self.instance, **options)
        schema = None if self.schema is None else str(SCHEMAS / f"{self.schema}.toml")
        return TableSource(str(data_file(self.file)), schema=schema, name=self.nearest, **options)

    @property
    def note(self) -> str:
        """What is said of the data beside the results."""
        if self.is_here:
            return f"The paper: {self.original}. Here: {self.nearest}; {self.remark}."
        return (
            f"The paper: {self.original}. Here: {self.generated} stands in, since the files of "
            f"{self.nearest} are not here; the losses are those of other records."
        )


@dataclass(frozen=True)
class Finding:
    """What rows say of a statement.

    `holds`: whether it holds here; None if the rows do not decide it. `measured`: in numbers.
    """

    holds: bool | None
    measured: str


@dataclass(frozen=True)
class Statement:
    """A statement of a paper.

    `says`: in our words. `where`: its section. `check`: returns what rows say of it; may raise
    :class:`Undecided`.
    """

    says: str
    where: str
    check: Callable[[pd.DataFrame], Finding]

    def find(self, rows: pd.DataFrame) -> Finding:
        """Return what rows say of it."""
        try:
            return self.check(rows)
        except Undecided as unknown:
            return Finding(None, unknown.message)


@dataclass(frozen=True)
class Panel:
    """One plot of a figure."""

    #: Its name and those of its axes.
    title: str
    x: str
    y: str
    series: Series  # what is drawn
    kind: str = "lines"  # ``"lines"`` or ``"bars"``
    #: Whether an axis is logarithmic.
    log_x: bool = False
    log_y: bool = False
    #: The values that the paper prints, by label and x; drawn hollow beside ours.
    printed: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    digits: int = 4  # significant digits of values in the text


@dataclass(frozen=True)
class Reproduction:
    """A table or figure of a paper."""

    name: str  # of the paper and the figure, as ``python -m reproductions`` takes it
    #: Which paper, and where in it.
    paper: str
    place: str
    title: str  # what is shown
    sources: tuple[Source, ...]  # data; what the experiments run on
    #: Return the experiments in the paper's sizes, and in sizes that all methods do in less than
    #: two minutes on one core.
    full: Callable[[], tuple[Experiment, ...]]
    quick: Callable[[], tuple[Experiment, ...]]
    shrunk: str  # what is smaller in the quick version
    panels: tuple[Panel, ...]  # what is drawn
    statements: tuple[Statement, ...]  # what the paper says of it
    #: What is done differently than in the paper, and readings that are taken.
    remarks: tuple[str, ...] = ()
    #: Of one processor, that the full version takes; None if that is not known.
    minutes: float | None = None
    #: Returns rows that no experiment has, of the full version or the quick one.
    extra: Callable[[bool], pd.DataFrame] | None = None
    stored: bool = True  # whether full results lie in ``docs/results/reproductions``
