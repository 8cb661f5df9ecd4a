"""Tables that are solved by parts: the options of ``--engine``, and the commands that take it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from anonymip.cli.arguments import PARTS, Question, SolverOptions
from anonymip.cli.console import err, human, say, showing_progress, write_json
from anonymip.cli.tables import refuse_targets
from anonymip.errors import InputError, argument
from anonymip.files import scratch_folder
from anonymip.runtime.budget import Budget

if TYPE_CHECKING:
    from anonymip.privacy import Verification
    from anonymip.scale.engines import Engine


@dataclass(frozen=True)
class EngineOptions:
    """The options that say by whom a table is worked on that is solved by parts."""

    panel: ClassVar[str] = PARTS

    engine: Annotated[
        str | None,
        typer.Option(
            help="local: by parts on this machine; dask: on a cluster; auto: local, in one part if "
            "memory is enough; default: the whole table at once."
        ),
    ] = None
    scheduler: Annotated[
        str | None, typer.Option(help="Of Dask: tcp://host:8786; default: a cluster here.")
    ] = None
    workers: Annotated[int | None, typer.Option(help="Processes here.")] = None
    memory_per_worker: Annotated[
        str | None, typer.Option(help="Of a cluster here, such as 2GiB.")
    ] = None
    part_rows: Annotated[
        int | None, typer.Option(help="Rows of a part, at most; default: 250000.")
    ] = None
    scratch: Annotated[
        Path | None, typer.Option(help="Folder for rows by part, which every worker sees.")
    ] = None

    def chosen(self) -> Engine | None:
        """Return the engine that is asked for; None for the whole table at once."""
        from anonymip.scale.engines import Engine

        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "engine"}
        given = {name: one for name, one in given.items() if one is not None}
        if self.engine is None:
            if given:
                raise InputError(
                    f"{argument(next(iter(given)))} is for tables that are solved by parts",
                    remedy=f"Add {argument('engine', 'local')} or {argument('engine', 'dask')}",
                )
            return None
        return Engine(self.engine, **given)


def anonymize_by_parts(
    instance: str,
    k: int | None,
    output: Path,
    question: Question,
    settings: SolverOptions,
    method: tuple[str, dict[str, Any]],
    layout: dict[str, Any],
    engine: Engine,
    json: str | None,
) -> None:
    """Write a release by parts; `method` is its name and its own options."""
    from anonymip.instances import Schema
    from anonymip.scale.running import Task, run_by_parts
    from anonymip.scale.targets import target_of

    target = target_of(output)
    target.refuse()
    refuse_targets(question.sources(instance), json)
    name, own = method
    solving = {one.name: getattr(settings, one.name) for one in fields(settings)}
    task = Task(
        instance,
        question.table.declared(instance) or Schema(),
        question.beside_table(instance, k, name),
        {**solving, "method": name, "options": own},
        layout,
    )
    with showing_progress() as progress:
        tell = partial(say, err)
        release = run_by_parts(task, target.place, engine, Budget(progress=progress), tell)
    record = {"instance": instance, "output": str(target.place), **release.to_dict()}
    write_json([record], json)
    console = human(json)
    say(console, release.summary())
    say(console, f"verified and written: {target.place}")


def verify_by_parts(
    original: str, release: str | Path, engine: Engine | None, **reading: Any
) -> Verification:
    """Verify a release by parts, by an engine or one part after the other."""
    from anonymip.privacy.parts import verify_parts
    from anonymip.scale.engines import Engine, started
    from anonymip.scale.targets import target_of

    with ExitStack() as stack:
        engine = Engine(workers=1) if engine is None else engine
        scratch = stack.enter_context(scratch_folder(target_of(release).beside(engine)))
        budget = Budget(progress=stack.enter_context(showing_progress()))
        stack.enter_context(budget.catching_interrupts())
        runner = stack.enter_context(started(engine, scratch, budget))
        return verify_parts(original, release, run=runner.map, scratch=scratch, **reading)
