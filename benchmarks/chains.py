"""Split & Carry and local search: speed and loss, from small windows to a million records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from anonymip import Budget, Classes, Microdata, Problem, Solution, load_instance, solve
from anonymip.exact.classes.small import solve_small
from anonymip.exact.split_carry.options import ChainOptions
from anonymip.exact.split_carry.split_carry import ChainRun, run_chain
from anonymip.orders.orders import find_order

#: Records and k of the tables.
_TABLES = ((5_000, 3), (20_000, 3), (100_000, 3), (20_000, 5), (100_000, 5))
#: What column generation over row types found, and its linear relaxation, by records at k = 3.
_PROTOTYPE = {5_000: (48.2, 45.1), 20_000: (57.2, 54.6), 100_000: (52.2, 49.6)}
_BEST_ORDER = "snake+2opt"


def _census(n: int) -> Microdata:
    data = load_instance("census-100k")
    return data if n == data.n else data.take(np.arange(n))


def _row(solution: Solution, against: Solution, **more: Any) -> dict[str, Any]:
    return {
        "n": solution.problem.n,
        "m": solution.problem.m,
        "k": solution.problem.k,
        "method": solution.method,
        "ncp": round(solution.ncp, 4),
        "seconds": round(solution.seconds, 3),
        "ratio": round(solution.ncp / against.ncp, 4),
        **more,
    }


def _windows(run: ChainRun) -> dict[str, Any]:
    sizes = np.array([link.size for link in run.links])
    return {
        "links": len(sizes),
        "proven": sum(link.proven for link in run.links),
        "largest": int(sizes.max()),
        "of_12": round(float((sizes == 12).mean()), 4),
    }


def split_carry() -> Iterator[dict[str, Any]]:
    """Compare the chain with the heuristics; the plain cut is the reference of the loss."""
    small = Problem(_census(300), 3)
    for name in ("initial", "mondrian", "greedy-search", "ordered-cut", "local-search", "auto"):
        solve(small, name, bound=False)
    for order in ("variance", _BEST_ORDER):
        run_chain(small, order=order)
    for n, k in _TABLES:
        problem = Problem(_census(n), k)
        plain = solve(problem, "initial", bound=False)
        reference = {"reference": "ncp of the plain cut"}
        yield _row(plain, plain, variant="plain cut", **reference)
        for name in ("mondrian", "greedy-search"):
            found = solve(problem, name, bound=False)
            yield _row(found, plain, variant="", **reference)
        for order in ("variance", _BEST_ORDER):
            cut = solve(problem, "ordered-cut", options={"order": order}, bound=False)
            yield _row(cut, plain, variant=f"order={order}", **reference)
            for s, boundary in ((3, 0), (4, 0), (5, 0), (3, 3 * k), (5, 5 * k)):
                if order != "variance" and not boundary:
                    continue
                run = run_chain(problem, ChainOptions(S=s, boundary=boundary), order=order)
                options = f"order={order} S={s} boundary={boundary or k}"
                yield _row(run.solution, plain, variant=options, **_windows(run), **reference)
        for name in ("local-search", "auto"):
            found = solve(problem, name, bound=False)
            best, bound = _PROTOTYPE.get(n, (None, None)) if k == 3 else (None, None)
            known = "" if best is None else f"; column generation {best}, its bound {bound}"
            yield _row(found, plain, variant=found.method, reference=f"ncp of the plain cut{known}")
    for n, m in ((1_000_000, 4), (1_000_000, 8)):
        problem = Problem(load_instance(f"census:{n},{m},1"), 3)
        plain = solve(problem, "initial", bound=False)
        run = run_chain(problem)
        yield _row(run.solution, plain, variant="generated", **_windows(run), **reference)


def local_search() -> Iterator[dict[str, Any]]:
    """Improve what greedy search found; its loss is the reference."""
    warm = Problem(load_instance("census:300,8,1"), 5)
    solve(warm, "local-search", bound=False)
    for n, k, limit in (
        (5_000, 5, None),
        (5_000, 10, None),
        (20_000, 5, None),
        (100_000, 5, 240.0),
    ):
        problem = Problem(load_instance(f"census:{n},8,1"), k)
        start = solve(problem, "greedy-search", bound=False)
        found = solve(
            problem,
            "local-search",
            options={"from_method": "greedy-search"},
            bound=False,
            time_limit=limit,
        )
        reference = "ncp of greedy search"
        yield _row(start, start, variant="start", reference=reference)
        yield _row(
            replace(found, seconds=found.seconds - start.seconds),
            start,
            variant="without the start's seconds",
            reference=reference,
        )


def small_windows() -> Iterator[dict[str, Any]]:
    """Solve windows of an order to proven optimality; 12 records are the reference."""
    for instance, m in (("census-100k", 4), ("census:5000,8,1", 8)):
        data = _census(5_000) if instance == "census-100k" else load_instance(instance)
        for k, sizes in ((3, (12, 15, 18, 24)), (5, (20, 25))):
            problem = Problem(data, k)
            order = find_order(problem, "variance", Budget())
            reference = None
            for size in sizes:
                starts = np.linspace(0, data.n - size, 100).astype(int)
                parts = [
                    problem.replace(microdata=data.take(order[start : start + size]))
                    for start in starts
                ]
                solve_small(parts[0])
                seconds, proven = [], 0
                for part in parts:
                    started = perf_counter()
                    proven += solve_small(part).proven
                    seconds.append(perf_counter() - started)
                median = float(np.median(seconds))
                reference = reference or median
                yield {
                    "instance": instance,
                    "m": m,
                    "k": k,
                    "records": size,
                    "windows": len(parts),
                    "proven": proven,
                    "median_ms": round(1e3 * median, 3),
                    "largest_ms": round(1e3 * max(seconds), 3),
                    "ratio": round(median / reference, 2),
                    "reference": "median of the smallest windows in the same run",
                }


def boundaries() -> Iterator[dict[str, Any]]:
    """Cut the order into chains; one chain is the reference."""
    for k in (3, 5):
        problem = Problem(_census(20_000), k)
        reference = None
        for chains in (1, 2, 8, 50, 200):
            run = run_chain(problem, ChainOptions(chains=chains))
            problem.recoding.check(problem, run.solution.assignment)
            assert isinstance(run.solution.assignment, Classes)
            reference = reference or run.solution
            yield _row(
                run.solution,
                reference,
                variant=f"chains={chains}",
                reference="ncp of one chain in the same run",
            )
