"""The benchmarks themselves."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

from anonymip import Problem, load_instance, lower_bound, solve
from benchmarks.adult import adult
from benchmarks.chains import boundaries, local_search, small_windows, split_carry
from benchmarks.first_run import demo_from_a_clone, first_runs
from benchmarks.formulations import formulations
from benchmarks.freeform import (
    doka_census,
    doka_rounds,
    freeform,
    freeform_optimum,
    reassigned,
    weak_notions,
)
from benchmarks.heuristics import HEURISTICS, row_of, warm_up
from benchmarks.leaderboard import leaderboard
from benchmarks.memory import memory
from benchmarks.microaggregation import microaggregation
from benchmarks.parts import parts, parts_by_k, parts_by_workers, parts_of_ten_million
from benchmarks.patterns import guarantees, levels, pattern_greedy, pattern_proofs
from benchmarks.peers import peers
from benchmarks.publishing import publishing
from benchmarks.registry import Benchmark
from benchmarks.shapes import large_tables, shapes
from benchmarks.solving import hand_over, time_limits


def person20() -> Iterator[dict[str, Any]]:
    """Prove the optimum of the paper's sample, with and without integer ends."""
    problem = Problem(load_instance("person20"), k=3)
    reference = None
    for integer_ends in (True, False):
        solution = solve(
            problem,
            "equivalence-mip",
            options={"formulation": "bigm", "integer_ends": integer_ends},
        )
        reference = reference or solution.seconds
        yield {
            **row_of(solution),
            "variant": f"integer_ends={integer_ends}",
            "solver": solution.solver,
            "ratio": round(solution.seconds / reference, 2),
            "reference": "ncp 13.5 (Liang & Samavi 2020); seconds with integer ends",
        }


def search() -> Iterator[dict[str, Any]]:
    """Compare the tree with the scan; the assignments are the same."""
    warm_up()
    for instance, k in (("census:2000,8,1", 5), ("census:20000,8,1", 5), ("census:5000,25,1", 5)):
        problem = Problem(load_instance(instance), k=k)
        reference = None
        for way in ("scan", "tree"):
            solution = solve(problem, "greedy-search", options={"search": way}, bound=False)
            reference = reference or solution
            yield {
                **row_of(solution),
                "variant": f"{instance} search={way}",
                "ratio": round(reference.seconds / solution.seconds, 2),
                "same": bool((reference.assignment.labels == solution.assignment.labels).all()),
                "reference": "speed-up over the scan in the same run",
            }


def scale() -> Iterator[dict[str, Any]]:
    """Grow the table."""
    warm_up()
    reference = None
    for n in (1_000, 10_000, 100_000, 1_000_000):
        problem = Problem(load_instance(f"census:{n},8,1"), k=10)
        solution = solve(problem, "greedy-search", bound=False)
        start = perf_counter()
        bound = lower_bound(problem)
        seconds = perf_counter() - start
        if bound is not None:
            solution = solution.with_bound(bound)
        each = solution.seconds / n
        reference = reference or each
        yield {
            **row_of(solution),
            "bound_seconds": round(seconds, 3),
            "ratio": round(each / reference, 2),
            "reference": "seconds a record at 1,000 records in the same run",
        }


def generator() -> Iterator[dict[str, Any]]:
    """Compare losses on generated records with those on the real extract."""
    warm_up()
    real = load_instance("census-1k")
    for k in (3, 10):
        for name in HEURISTICS:
            expected = solve(Problem(real, k=k), name, bound=False)
            for seed in range(3):
                made = load_instance(f"census:1000,8,{seed}")
                solution = solve(Problem(made, k=k), name, bound=False)
                yield {
                    **row_of(solution),
                    "variant": f"seed {seed}",
                    "loss_ratio": round(solution.ncp / expected.ncp, 4),
                    "reference": f"ncp {expected.ncp:.3f} on the real extract",
                }


#: All benchmarks.
BENCHMARKS = (
    Benchmark("adult", adult, ("adult",)),
    Benchmark("leaderboard", leaderboard, ("adult", "census-1k", "census-10k", "census-100k")),
    Benchmark("microaggregation", microaggregation, ("tarragona", "casc")),
    Benchmark("search", search),
    Benchmark("scale", scale),
    Benchmark("generator", generator, ("census-1k",)),
    Benchmark("person20", person20, ("person20",)),
    Benchmark("first-run", first_runs, ("adult",)),
    Benchmark("demo", demo_from_a_clone),
    Benchmark("publishing", publishing),
    Benchmark("memory", memory),
    Benchmark("parts", parts),
    Benchmark("parts-ten-million", parts_of_ten_million),
    Benchmark("parts-workers", parts_by_workers),
    Benchmark("parts-k", parts_by_k),
    Benchmark("formulations", formulations),
    Benchmark("hand-over", hand_over),
    Benchmark("freeform", freeform),
    Benchmark("reassign", reassigned),
    Benchmark("freeform-optimum", freeform_optimum, ("census-10k",)),
    Benchmark("doka-census", doka_census, ("census-10k",)),
    Benchmark("doka-rounds", doka_rounds, ("census-10k",)),
    Benchmark("weak-notions", weak_notions),
    Benchmark("time-limits", time_limits),
    Benchmark("shapes", shapes),
    Benchmark("large-tables", large_tables, ("adult",)),
    Benchmark("split-carry", split_carry, ("census-100k",)),
    Benchmark("small-windows", small_windows, ("census-100k",)),
    Benchmark("boundaries", boundaries, ("census-100k",)),
    Benchmark("local-search", local_search),
    Benchmark("pattern-greedy", pattern_greedy, ("nursery", "cmc", "adult-raw")),
    Benchmark("pattern-proofs", pattern_proofs, ("nursery", "cmc", "adult-raw")),
    Benchmark("guarantees", guarantees),
    Benchmark("levels", levels, ("adult-hierarchies",)),
    Benchmark("peers", peers, ("adult-hierarchies",)),
)
