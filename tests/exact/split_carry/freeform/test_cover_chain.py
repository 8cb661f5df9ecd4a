"""Tests of chains of covers that end early and go on later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymip import Budget, Cover, InputError, Problem, Progress, Stopped
from anonymip.exact.split_carry.checkpoint import Checkpoint
from anonymip.exact.split_carry.fingerprint import Fingerprint
from anonymip.exact.split_carry.freeform.cover_chain import (
    CoverChain,
    arrays_of,
    resumed_covers,
)
from anonymip.exact.split_carry.freeform.cover_windows import CoverPiece
from anonymip.exact.split_carry.freeform.covers import chain_covers
from anonymip.exact.split_carry.keeping import Keeper
from anonymip.exact.split_carry.options import ChainOptions
from anonymip.exact.split_carry.split_carry import ChainRun, run_chain
from anonymip.exact.split_carry.state import Link
from anonymip.recodings import KK, Freeform
from tests.random_problems import larger_microdata

OURS = Fingerprint("table", "rules", "options")
OPTIONS = ChainOptions(S=2)
PROBLEMS = {
    "pairs": Problem(larger_microdata(3, 40), 2, Freeform()),
    "sets": Problem(larger_microdata(3, 40), 3, Freeform()),
    "matches": Problem(larger_microdata(3, 24), 2, KK()),
}


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.fixture(autouse=True)
def at_every_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the file after every link."""
    monkeypatch.setattr("anonymip.exact.split_carry.checkpoint._FIRST", 0.0)
    monkeypatch.setattr("anonymip.exact.split_carry.checkpoint._SHARE", 0.0)


def stopping(links: int, stop: Callable[[Budget], None]) -> Budget:
    """Return a budget that is stopped behind so many links."""
    budget = Budget()

    def listen(message: Progress) -> None:
        if message.phase == "solving links" and message.done == links:
            stop(budget)

    budget.progress = listen
    return budget


def kill(budget: Budget) -> None:
    """End the process, or what stands for it."""
    raise Killed


def result(run: ChainRun) -> tuple[Any, ...]:
    """Return sets and links, but for the seconds."""
    cover = run.solution.assignment
    assert isinstance(cover, Cover)
    links = [replace(link, seconds=0.0) for link in run.links]
    return cover.start.tolist(), cover.members.tolist(), links


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_killed_chain_goes_on_as_if_nothing_had_been(name: str, tmp_path: Path) -> None:
    """Killed twice: sets and links of an undisturbed run; once it has ended it is done."""
    path, problem = tmp_path / "run", PROBLEMS[name]
    undisturbed = run_chain(problem, OPTIONS)
    assert len(undisturbed.links) > 3
    for last in (1, 3):
        with pytest.raises(Killed):
            run_chain(
                problem, OPTIONS, budget=stopping(last, kill), checkpoint=path, resume=last > 1
            )
    run = run_chain(problem, OPTIONS, checkpoint=path, resume=True)
    assert result(run) == result(undisturbed)
    assert run.solution.trace[0] == "went on behind 3 links of an earlier run"
    content = path.read_bytes()
    assert result(run_chain(problem, OPTIONS, checkpoint=path, resume=True)) == result(undisturbed)
    assert path.read_bytes() == content


def test_an_interrupted_chain_gives_a_release_and_goes_on(tmp_path: Path) -> None:
    """Ctrl-C: the records left are covered for now; the file knows nothing of that."""
    path, problem = tmp_path / "run", PROBLEMS["sets"]
    run = run_chain(problem, OPTIONS, budget=stopping(2, Budget.interrupt), checkpoint=path)
    assert run.solution.status.stopped is Stopped.INTERRUPT
    assert any("interrupted: " in remark for remark in run.solution.trace)
    again = run_chain(problem, OPTIONS, checkpoint=path, resume=True)
    assert result(again) == result(run_chain(problem, OPTIONS))


@pytest.mark.parametrize("proven", [False, True])
@pytest.mark.parametrize("interrupted", [False, True])
def test_links_cut_short_are_not_kept(tmp_path: Path, proven: bool, interrupted: bool) -> None:
    """A link without proof when the run was stopped may be one that had no time."""
    checkpoint, budget, chain = (
        Checkpoint(tmp_path / "run", OURS),
        Budget(),
        CoverChain(np.arange(6)),
    )
    if interrupted:
        budget.interrupt()
    keeper = Keeper(checkpoint, chain, budget)
    link = Link(4, 0, 2.0, None, proven, None, 0.1, "" if proven else "interrupt")
    chain.read, chain.fixed = 4, [[CoverPiece(np.arange(4), Cover.of([range(4)] * 4))]]
    chain.links = [link]
    keeper.notice()
    keeper.keep()
    kept = resumed_covers(checkpoint, 6)
    assert kept is not None
    assert kept.read == (0 if interrupted and not proven else 4)


def test_the_proof_of_a_single_link_is_found_again(tmp_path: Path) -> None:
    """A link that holds the whole table proves it, also when it is asked for once more."""
    path, options = tmp_path / "run", ChainOptions(S=20)
    for resume in (False, True):
        run = run_chain(PROBLEMS["sets"], options, checkpoint=path, resume=resume)
        assert run.solution.is_optimal


def test_another_computation_is_refused(tmp_path: Path) -> None:
    """What was asked must be what is asked, degrees among it."""
    path, problem = tmp_path / "run", PROBLEMS["pairs"]
    run_chain(problem, OPTIONS, checkpoint=path)
    other = problem.replace(recoding=Freeform(degrees=(3, 2) * 20))
    with pytest.raises(InputError, match="another k"):
        run_chain(other, OPTIONS, checkpoint=path, resume=True)
    with pytest.raises(InputError, match="there already"):
        run_chain(problem, OPTIONS, checkpoint=path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("parts", None),
        ("records", np.zeros(40, np.int64)),
        ("cursor", np.array([41, 3])),
        ("table", np.zeros((0, 8))),
        ("parts", np.zeros(40, np.int64)),
        ("parts", np.zeros(39, np.int64)),
        ("places", np.array([10**6])),
        ("start", np.arange(41)),
        ("members", np.array([10**6])),
        ("table", np.zeros((1, 3))),
        ("table", np.full((1, 8), 99.0)),
    ],
)
def test_files_of_another_shape_are_damaged(tmp_path: Path, name: str, change: Any) -> None:
    """What a file holds is checked before anything is made of it."""
    path = tmp_path / "run"
    checkpoint = Checkpoint(path, OURS)
    with pytest.raises(Killed):
        chain_covers(PROBLEMS["sets"], OPTIONS, checkpoint, budget=stopping(3, kill))
    chain = resumed_covers(checkpoint, 40)
    assert chain is not None
    arrays = arrays_of(chain)
    assert 0 < len(chain.places) < chain.read < 40
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change
    checkpoint.write(arrays)
    with pytest.raises(InputError, match="damaged"):
        resumed_covers(checkpoint, 40)
