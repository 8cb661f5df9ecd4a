"""A chain of sub-problems for covers: freeform generalization and the notions weaker than it."""

from __future__ import annotations

from anonymip.errors import InputError, UnsupportedObjective
from anonymip.exact.freeform.every_size import needs_every_size
from anonymip.exact.split_carry.checkpoint import Checkpoint
from anonymip.exact.split_carry.driving import drive_chain
from anonymip.exact.split_carry.freeform.cover_chain import CoverChain, resumed_covers
from anonymip.exact.split_carry.freeform.cover_links import CoverLinks
from anonymip.exact.split_carry.freeform.cover_windows import CoverWindows
from anonymip.exact.split_carry.keeping import Keeper
from anonymip.exact.split_carry.options import EXACT, ChainOptions
from anonymip.exact.split_carry.rest import MachineClock, links_budget
from anonymip.exact.split_carry.state import Link
from anonymip.orders.orders import find_order
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution


def chain_covers(
    problem: Problem,
    options: ChainOptions,
    checkpoint: Checkpoint | None = None,
    *,
    order: str = "variance",
    budget: Budget | None = None,
    seed: int = 0,
) -> tuple[Solution, tuple[Link, ...]]:
    """Solve a problem of covers by a chain of small ones: Split & Carry, for other recodings [1]_.

    As with classes the records are put in order, and each sub-problem takes k S new ones and those
    carried over. What a class is there, a component is here: records connected by their sets.
    Components without any of the last records of the sub-problem are fixed; the others are
    carried over, whole or cut, see
    :func:`~anonymip.exact.split_carry.freeform.cover_carrying.carry_components`. What is left of a
    component that is cut is solved again.

    Parameters
    ----------
    problem
        With a recoding by covers: Freeform, OneK, KOne, KK or KConcealment, and an objective that
        ``freeform_mip`` takes, which solves the sub-problems.
    options
        Of the chain. The sub-solver ``"exact"`` is ``freeform_mip`` with the formulation that suits
        the problem; others are its formulations. Each starts from the better of what is carried
        over, with rings of the new records, and of what the heuristics find.
    checkpoint
        Where the chain is kept, and where it goes on from.
    order
        Name of an order, see :func:`~anonymip.orders.orders.find_order`.
    budget
        Its time is divided evenly among the sub-problems. When it ends, the records left are put
        into a ring.
    seed
        Of heuristics and solver.

    Returns
    -------
    tuple of Solution and links
        With a bound only where one sub-problem was the whole problem.

    Notes
    -----
    Where records have degrees of their own, the largest takes the place of k. Under rules a
    sub-problem may have no cover: it then takes in the next chunk, and at the end of the table what
    was fixed last. Where sets are to be reciprocal or diverse all have the size that a reciprocal
    or diverse ring through the table has, which may be above k.

    Sub-problems by sets (freeform, summed, without rules) and of pairs take milliseconds; the model
    of matches that all others need may take long for a dozen records, so give it a time limit.

    References
    ----------
    .. [1] Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security 93,
       2020, Sections 3.1 and 5.

    Raises
    ------
    UnsupportedObjective
        If the objective is not monotone and k above 2.
    InputError
        If an option is wrong, the sub-problems cannot be solved with this objective, or there is
        no going on from the checkpoint.
    SolverUnavailable
        If the solver is not installed.
    NoSolution
        If no cover keeps the rules, or time ended before one was found that does.
    """
    watch, budget, clock = Stopwatch(), budget or Budget(), MachineClock()
    _refuse_unfit(problem, options)
    kept = resumed_covers(checkpoint, problem.n)
    chain = CoverChain(find_order(problem, order, budget)) if kept is None else kept
    before = len(chain.links)
    formulation = _formulation_of_links(problem, options)
    choices: dict[str, object] = {
        "formulation": formulation,
        "solver": options.solver,
        "gap": options.gap,
        "threads": options.threads,
        "solver_options": options.solver_options,
    }
    windows = CoverWindows.of(problem, chain.records, choices, seed)
    share = links_budget(problem, budget, clock)
    links = CoverLinks(windows, chain, options, share)
    stopped = None
    if not chain.done:
        stopped = drive_chain(links, options, share, Keeper(checkpoint, chain, share))
    quick = 0 if stopped is None else links.finish(order)
    described = {"order": order, **options.described()}
    remarks = [] if kept is None else [f"went on behind {before:,} links of an earlier run"]
    return links.solution(watch, described, stopped, remarks, quick), tuple(chain.links)


def _formulation_of_links(problem: Problem, options: ChainOptions) -> str:
    """Return the formulation that solves the sub-problems.

    Raises
    ------
    UnsupportedObjective
        If sets of every size would have to be compared: sub-problems have sets of k alone.
    """
    formulation = "auto" if options.subsolver == EXACT else options.subsolver
    if formulation not in ("auto", "set-cover") or not needs_every_size(problem):
        return formulation
    if formulation == "auto" and problem.k == 2:
        return "assignment"
    compiled = problem.compiled
    raise UnsupportedObjective(
        f"method split-carry needs a monotone objective for covers; of {compiled.name!r}, "
        f"{compiled.obstacle}",
        remedy="Use freeform-mip for a few records, or a heuristic (reassign, ring)",
    )


def _refuse_unfit(problem: Problem, options: ChainOptions) -> None:
    """Refuse what only chains of classes know.

    Raises
    ------
    InputError
        If the sub-solver or another option does not fit.
    """
    name = problem.recoding.name
    options.refuse_subsolver(name, "assignment")
    usual = ChainOptions()
    for option in ("carry", "fixed", "chains"):
        if getattr(options, option) != getattr(usual, option):
            raise InputError(
                f"option {option} of split-carry is for classes, {name} has none",
                remedy="Leave it out, or use the recoding classes",
            )
