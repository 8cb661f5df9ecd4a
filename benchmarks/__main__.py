"""``python -m benchmarks [--list] [NAME ...]``."""

from __future__ import annotations

import argparse

from anonymip.errors import InputError
from anonymip.instances import INSTANCES
from benchmarks.registry import Benchmark, record
from benchmarks.specs import BENCHMARKS


def _missing_data(benchmark: Benchmark) -> str | None:
    for name in benchmark.instances:
        try:
            INSTANCES[name].paths()
        except InputError as error:
            return str(error)
    return None


def main() -> None:
    """Run the benchmarks that are named, or all."""
    names = [benchmark.name for benchmark in BENCHMARKS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(names)}")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(names))
    if unknown:
        parser.error(f"unknown benchmark {', '.join(unknown)}; known: {', '.join(names)}")
    for benchmark in BENCHMARKS:
        if given.list:
            print(benchmark.name)
        elif not given.names or benchmark.name in given.names:
            problem = _missing_data(benchmark)
            if problem is None:
                record(benchmark)
            else:
                print(f"{benchmark.name}: left out: {problem}")


main()
