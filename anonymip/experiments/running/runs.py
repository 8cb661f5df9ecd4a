"""The runs of an experiment, what determines what each finds, and the columns of its rows."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

from anonymip._version import __version__
from anonymip.experiments.running.sources import TableSource, file_digest
from anonymip.experiments.running.specification import Experiment, MethodChoice
from anonymip.publishing.manifest import versions

#: What each column holds, in their order.
COLUMNS: dict[str, type] = {
    name: kind
    for kind, names in (
        # What was asked.
        (str, "experiment instance"),
        (int, "sample n m k"),
        (str, "recoding diversity limits objective_name method label options"),
        (int, "repetition seed"),
        (str, "effort"),
        (float, "time_limit"),
        # What was found.
        (float, "loss bound"),
        (str, "bound_by proof"),
        (float, "gap"),
        (str, "status reason"),
        (float, "seconds cpu_seconds"),
        # Measures of the release.
        (float, "ncp gcp"),
        (int, "classes smallest"),
        (float, "average"),
        (int, "largest suppressed suppressed_cells"),
        (float, "discernibility classification usefulness"),
        (str, "attribute_losses"),
        # Where and with what.
        (str, "solver"),
        (int, "threads"),
        (str, "anonymip python numpy versions machine"),
        (int, "cores"),
        (str, "system"),
        # What the row is of, exactly.
        (str, "table_sha256 problem key"),
    )
    for name in names.split()
}

#: Those of texts that hold JSON.
JSON_COLUMNS = ("limits", "options", "attribute_losses", "versions")


@cache
def surroundings() -> dict[str, Any]:
    """Return the columns that say where a run is done and with which versions."""
    found = versions()
    return {
        "anonymip": found["anonymip"],
        "python": found["python"],
        "numpy": found["numpy"],
        "versions": json.dumps(found),
        "machine": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    """Return the model of the processor, as far as the system says."""
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8").splitlines():
            name, _, model = line.partition(":")
            if name.strip() == "model name":
                return model.strip()
    return platform.processor() or platform.machine()


BOUND = "bound"  # name of the run that looks for a bound alone


@dataclass(frozen=True)
class Run:
    """One run: a method, or the search for a bound, on one problem."""

    experiment: Experiment  # what it is a part of
    table: TableSource  # the table
    sample: int | None  # number of the sample, from 1; None for the table itself
    #: What is asked for.
    k: int
    recoding: str
    choice: MethodChoice | None  # the method; None for the bound
    repetition: int  # which of the experiment's seeds it takes, from 1
    files: tuple[str, ...]  # digests of the files that the table and the objective are read from

    @property
    def seed(self) -> int:
        """The seed that it runs with."""
        return self.experiment.seed + self.repetition - 1

    @property
    def effort(self) -> str | None:
        """The effort that it runs with; None for the default."""
        own = None if self.choice is None else self.choice.effort
        return self.experiment.effort if own is None else own

    @property
    def time_limit(self) -> float | None:
        """The seconds that it has; None for no limit."""
        own = None if self.choice is None else self.choice.time_limit
        return self.experiment.time_limit if own is None else own

    @property
    def title(self) -> str:
        """What it is, for people."""
        sample = "" if self.sample is None else f"#{self.sample}"
        what = BOUND if self.choice is None else self.choice.title
        return f"{self.table.title}{sample}, k = {self.k}, {what}"

    @cached_property
    def problem_key(self) -> str:
        """The digest of what determines the problem."""
        asked = self.experiment
        table = replace(self.table, name=None, samples=None)
        samples = self.table.samples
        return digest(
            table={name: one for name, one in vars(table).items() if one not in (None, ())},
            sample=None if samples is None else [samples.size, samples.seed, self.sample],
            k=self.k,
            recoding=self.recoding,
            options=asked.recodings.get(self.recoding, {}),
            objective=asked.objective,
            diversity=str(asked.diversity),
            limits=list(map(repr, asked.limits)),
            files=self.files,
        )

    @cached_property
    def key(self) -> str:
        """The digest of what determines what the run finds: equal keys, equal losses."""
        settings = self.experiment
        return digest(
            version=__version__,
            problem=self.problem_key,
            method=BOUND if self.choice is None else self.choice.method,
            options={} if self.choice is None else self.choice.options,
            effort=self.effort,
            time_limit=self.time_limit,
            solving=None
            if self.choice is None
            else [settings.gap, settings.solver, settings.threads, self.seed],
        )


def digest(**parts: Any) -> str:
    """Return what tells these parts from others, in 32 letters."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def plan(experiment: Experiment) -> list[Run]:
    """Return the runs of an experiment: of each problem its bound, if any, then its methods."""
    function = experiment.objective_file
    objective = () if function is None else (file_digest(function),)
    return [
        run
        for table in experiment.tables
        for run in _runs_on(experiment, table, (*table.digests(experiment.folder), *objective))
    ]


def _runs_on(experiment: Experiment, table: TableSource, files: tuple[str, ...]) -> Iterator[Run]:
    recodings = dict.fromkeys(one.solved_recoding for one in experiment.methods)
    repetitions = range(1, experiment.repetitions + 1)
    for sample, k, recoding in product(table.numbers, experiment.k, recodings):
        if experiment.bound:
            yield Run(experiment, table, sample, k, recoding, None, 1, files)
        for choice, repetition in product(experiment.methods, repetitions):
            if choice.solved_recoding == recoding:
                yield Run(experiment, table, sample, k, recoding, choice, repetition, files)
