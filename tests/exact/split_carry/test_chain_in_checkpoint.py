"""Tests of chains that end early and go on later: the result is that of an undisturbed run."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymip import (
    Budget,
    Classes,
    InputError,
    Problem,
    Progress,
    Solution,
    Stopped,
    census,
    solve,
)
from anonymip.assignments import SUPPRESSED
from anonymip.exact.split_carry.checkpoint import (
    Checkpoint,
    Fingerprint,
    Keeper,
    arrays_of,
    chain_of,
    resumed,
)
from anonymip.exact.split_carry.options import ChainOptions
from anonymip.exact.split_carry.split_carry import ChainRun, run_chain
from anonymip.exact.split_carry.state import (
    BOUND,
    CARRIED,
    LINKS,
    LOSS,
    NEXT_LABEL,
    OPEN,
    READ,
    UNUSED,
    Chain,
    Link,
    add_link,
    new_chain,
)

OURS = Fingerprint("table", "rules", "options")
#: The compiled loop, and one link after the other on a solver.
OPTIONS = {
    "exact": ChainOptions(S=2),
    "set-partition": ChainOptions(S=2, subsolver="set-partition"),
}


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.fixture(scope="module")
def people() -> Problem:
    """Return a table of a few links."""
    return Problem(census(50, 3, seed=2), 2)


@pytest.fixture(autouse=True)
def at_every_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the file after every link, and let the compiled loop solve one at a time."""
    monkeypatch.setattr("anonymip.exact.split_carry.checkpoint._FIRST", 0.0)
    monkeypatch.setattr("anonymip.exact.split_carry.checkpoint._SHARE", 0.0)
    monkeypatch.setattr("anonymip.exact.split_carry.segments._FIRST", 1)
    monkeypatch.setattr("anonymip.exact.split_carry.segments._SECONDS_A_STEP", 0.0)


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


def labels_of(solution: Solution) -> list[int]:
    """Return the class of each record."""
    assert isinstance(solution.assignment, Classes)
    labels: list[int] = solution.assignment.labels.tolist()
    return labels


def same(one: ChainRun, other: ChainRun) -> bool:
    """Return whether classes and links are alike, but for the seconds."""
    links = [[replace(link, seconds=0.0) for link in run.links] for run in (one, other)]
    return links[0] == links[1] and labels_of(one.solution) == labels_of(other.solution)


@pytest.mark.thorough
@pytest.mark.crossed
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("links", [1, 2, 7])
def test_a_killed_chain_goes_on_as_if_nothing_had_been(
    people: Problem, tmp_path: Path, name: str, links: int
) -> None:
    """Killed once, and again behind one more link: classes and links of an undisturbed run."""
    path, options = tmp_path / "run", OPTIONS[name]
    undisturbed = run_chain(people, options)
    assert len(undisturbed.links) > 8
    for last in (links, links + 1):
        with pytest.raises(Killed):
            run_chain(
                people, options, budget=stopping(last, kill), checkpoint=path, resume=path.exists()
            )
        assert path.exists()
    run = run_chain(people, options, checkpoint=path, resume=True)
    assert same(run, undisturbed)
    # The last kill came behind the links that were kept.
    assert run.solution.trace[0] == f"went on behind {links + 1} links of an earlier run"
    again = run_chain(people, options, checkpoint=path, resume=True)
    assert same(again, undisturbed)


@pytest.mark.parametrize("name", OPTIONS)
def test_an_interrupted_chain_gives_a_release_and_goes_on(
    people: Problem, tmp_path: Path, name: str
) -> None:
    """Ctrl-C: the records left are cut for now; the file knows of no cut."""
    path, options = tmp_path / "run", OPTIONS[name]
    run = run_chain(people, options, budget=stopping(3, Budget.interrupt), checkpoint=path)
    assert run.solution.status.stopped is Stopped.INTERRUPT
    assert run.solution.assignment.sizes.min() >= 2
    assert len(run.links) == 3
    assert same(
        run_chain(people, options, checkpoint=path, resume=True), run_chain(people, options)
    )


def test_the_order_is_kept_too(people: Problem, tmp_path: Path) -> None:
    """Two-opt that the time cut short gave an order that nobody can find again."""
    path = tmp_path / "run"
    with pytest.raises(Killed):
        run_chain(people, budget=stopping(1, kill), checkpoint=path, order="snake+2opt")
    run = run_chain(people, checkpoint=path, resume=True, order="snake+2opt")
    assert same(run, run_chain(people, order="snake+2opt"))


def test_resuming_nothing_is_beginning(people: Problem, tmp_path: Path) -> None:
    """A script may say resume from the first time on."""
    run = run_chain(people, checkpoint=tmp_path / "run", resume=True)
    assert not any("went on" in remark for remark in run.solution.trace)
    assert same(run, run_chain(people))


@pytest.mark.parametrize("jobs", [1, 2])
def test_several_chains_go_on_as_well(people: Problem, tmp_path: Path, jobs: int) -> None:
    """Each chain has a file of its own until all have ended."""
    path, options = tmp_path / "run", ChainOptions(S=2, chains=3)
    undisturbed = run_chain(people, options, jobs=1)
    budget = Budget()
    budget.progress = lambda message: budget.interrupt()
    run = run_chain(people, options, jobs=jobs, budget=budget, checkpoint=path)
    assert run.solution.assignment.sizes.min() >= 2
    parts = {item.name for item in tmp_path.iterdir()} - {"run"}
    if run.solution.status.stopped is Stopped.INTERRUPT:
        assert parts <= {"run.part-1", "run.part-2", "run.part-3"}
        assert parts
    solved = len(run.links)
    run = run_chain(people, options, jobs=jobs, checkpoint=path, resume=True)
    assert same(run, undisturbed)
    assert run.solution.trace[0] == f"went on behind {solved} links of an earlier run"
    assert [item.name for item in tmp_path.iterdir()] == ["run"]
    assert same(run_chain(people, options, checkpoint=path, resume=True), undisturbed)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"S": 3}, "other options"),
        ({"order": "snake"}, "other options"),
        ({"chains": 2}, "other options"),
        ({"seed": 1}, "other options"),
        ({"k": 3}, "another k"),
        ({"n": 49}, "another table"),
    ],
)
def test_other_computations_are_refused(
    people: Problem, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    """What was asked must be what is asked."""
    path = tmp_path / "run"
    run_chain(people, OPTIONS["exact"], checkpoint=path)
    rows = np.arange(change.pop("n", 50))
    problem = people.replace(microdata=people.microdata.take(rows), k=change.pop("k", people.k))
    given = {name: change.pop(name) for name in ("order", "seed") if name in change}
    with pytest.raises(InputError, match=said):
        run_chain(
            problem, replace(OPTIONS["exact"], **change), checkpoint=path, resume=True, **given
        )


def half_done() -> Chain:
    """Return a chain with one link behind it: records 0 and 1 fixed, 2 carried over."""
    chain = new_chain(np.array([3, 0, 1, 2, 5, 4]), 4)
    chain.labels[:2] = 0
    chain.carried[0], chain.started[0] = 2, 0
    chain.cursor[[READ, CARRIED, NEXT_LABEL]] = 3, 1, 1
    chain.sums[:] = 1.5, 7.0
    add_link(chain, Link(3, 0, 2.0, 2.0, True, None, 0.1))
    return chain


def solve_the_rest(chain: Chain, *, proven: bool) -> None:
    """Fix all that is left in one link."""
    chain.labels[2:] = 1
    chain.cursor[[READ, CARRIED, NEXT_LABEL]] = 6, 0, 2
    chain.sums[LOSS] = 4.0
    add_link(chain, Link(4, 1, 2.5, 2.5 if proven else None, proven, True, 0.1))


def alike(one: Chain, other: Chain) -> bool:
    """Return whether two chains are equally far, whatever room they have."""
    arrays = [arrays_of(chain) for chain in (one, other)]
    return all(
        np.array_equal(array, arrays[1][name], equal_nan=array.dtype.kind == "f")
        for name, array in arrays[0].items()
    )


def test_a_chain_survives_its_arrays() -> None:
    """What is not used of the room is not kept, but the room is."""
    chain = half_done()
    arrays = arrays_of(chain)
    assert len(arrays["carried"]) == len(arrays["started"]) == len(arrays["table"]) == 1
    copied = chain_of(arrays)
    assert alike(copied, chain)
    assert [array.shape for array in copied] == [array.shape for array in chain]
    solve_the_rest(copied, proven=True)
    assert copied.done


@pytest.mark.parametrize("proven", [False, True])
@pytest.mark.parametrize("interrupted", [False, True])
def test_links_cut_short_are_not_kept(tmp_path: Path, proven: bool, interrupted: bool) -> None:
    """A link without proof when the run was stopped may be one that had no time."""
    checkpoint, budget, chain = Checkpoint(tmp_path / "run", OURS), Budget(), half_done()
    keeper = Keeper(checkpoint, chain, budget)
    solve_the_rest(chain, proven=proven)
    if interrupted:
        budget.interrupt()
    keeper.notice()
    keeper.keep()
    found = resumed(checkpoint)
    assert found is not None
    expected = half_done()
    if proven or not interrupted:
        solve_the_rest(expected, proven=proven)
    expected.sums[UNUSED] = 0.0
    assert alike(found, expected)
    assert int(found.cursor[LINKS]) == (2 if proven or not interrupted else 1)
    assert (found.labels == OPEN).sum() == (0 if proven or not interrupted else 4)


def test_without_a_file_nothing_is_kept() -> None:
    """A keeper without a checkpoint does nothing."""
    chain = half_done()
    keeper = Keeper(None, chain, Budget())
    keeper.notice()
    keeper.keep()
    assert resumed(None) is None


def test_methods_that_keep_nothing_refuse(people: Problem, tmp_path: Path) -> None:
    """Nobody is to believe that a run can go on which cannot."""
    with pytest.raises(InputError, match=r"mondrian keeps no checkpoints.*split-carry"):
        solve(people, "mondrian", checkpoint=tmp_path / "run")
    with pytest.raises(InputError, match="no file to resume from"):
        solve(people, "split-carry", resume=True)


def test_solve_hands_it_on(people: Problem, tmp_path: Path) -> None:
    """The file stays when all is done, and says it."""
    path = tmp_path / "run"
    first = solve(people, "split-carry", checkpoint=path)
    second = solve(people, "split-carry", checkpoint=str(path), resume=True)
    assert labels_of(first) == labels_of(second)
    assert second.trace[0].startswith("went on behind")
    assert "checkpoint" not in second.options


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("labels", None),
        ("records", np.arange(10)),
        ("records", np.zeros(50, np.int64)),
        ("cursor", np.array([30, 5, 3, 3])),
        ("cursor", np.array([9, 0, 3, 10**6])),
        ("carried", np.array([10**6])),
        ("sums", np.array([1, 2])),
    ],
)
def test_files_of_another_shape_are_damaged(
    people: Problem, tmp_path: Path, name: str, array: Any
) -> None:
    """Kernels check no bounds, so what a file holds is checked before they see it."""
    path = tmp_path / "run"
    chain = new_chain(np.arange(people.n), 30)
    arrays = arrays_of(chain)
    if array is None:
        del arrays[name]
    else:
        arrays[name] = array
    checkpoint = Checkpoint(path, OURS)
    checkpoint.write(arrays)
    with pytest.raises(InputError, match="damaged"):
        resumed(Checkpoint(path, OURS, resume=True))
    checkpoint.write(arrays_of(chain))
    assert resumed(Checkpoint(path, OURS, resume=True)) is not None


def _array(path: Path, name: str) -> Any:
    with zipfile.ZipFile(path) as archive:
        return np.load(BytesIO(archive.read(f"{name}.npy")))


def _replace(path: Path, **arrays: Any) -> None:
    """Replace arrays of a checkpoint that is otherwise as it was."""
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    for name, array in arrays.items():
        stream = BytesIO()
        np.save(stream, array)
        parts[f"{name}.npy"] = stream.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)


@pytest.mark.parametrize(
    ("done", "damage"),
    [(done, damage) for damage in ("alone", "open", "suppressed") for done in (True, False)]
    # In a chain that is done nothing is numbered any more.
    + [(False, "number")],
)
def test_classes_that_the_problem_forbids_are_damage(
    people: Problem, tmp_path: Path, done: bool, damage: str
) -> None:
    """Refused before links are solved: a run that went on wrote over the file, and then failed."""
    path, killed = tmp_path / "run", stopping(4, kill)
    with nullcontext() if done else pytest.raises(Killed):
        run_chain(people, OPTIONS["exact"], checkpoint=path, budget=None if done else killed)
    labels, cursor = _array(path, "labels"), _array(path, "cursor")
    assert labels[0] >= 0
    if damage == "number":
        # New classes would be joined with those of their number.
        cursor[NEXT_LABEL] = 0
    else:
        labels[0] = {"alone": labels.max() + 1, "open": OPEN, "suppressed": SUPPRESSED}[damage]
        cursor[NEXT_LABEL] += 1
    _replace(path, labels=labels, cursor=cursor)
    content = path.read_bytes()
    with pytest.raises(InputError, match="damaged"):
        run_chain(people, OPTIONS["exact"], checkpoint=path, resume=True)
    assert path.read_bytes() == content


def test_no_bound_is_taken_from_a_file(tmp_path: Path) -> None:
    """A table of one link, of which a file tells another bound: it is proven again."""
    path, small = tmp_path / "run", Problem(census(6, 3, seed=2), 2)
    honest = run_chain(small, checkpoint=path)
    assert honest.solution.is_optimal
    table = _array(path, "table")
    table[0, BOUND] *= 0.5
    _replace(path, table=table)
    again = run_chain(small, checkpoint=path, resume=True).solution
    assert again.is_optimal
    assert again.objective == honest.solution.objective


def test_a_link_behind_fixed_records_is_no_whole_problem(tmp_path: Path) -> None:
    """A file that says that two records are fixed without a link: the bound of the rest is none."""
    path, small = tmp_path / "run", Problem(census(6, 3, seed=2), 2)
    run_chain(small, checkpoint=path)
    _replace(
        path,
        cursor=np.array([2, 0, 1, 0]),
        labels=np.array([0, 0, *[OPEN] * 4]),
        carried=np.empty(0, np.int64),
        started=np.empty(0, np.int64),
        table=_array(path, "table")[:0],
    )
    run = run_chain(small, checkpoint=path, resume=True)
    assert len(run.links) == 1
    assert run.solution.bound is None
