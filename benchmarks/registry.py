"""The type of a benchmark, and the files of its results."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from anonymip.files import replacing
from anonymip.publishing.manifest import versions
from benchmarks.pages import result_file, write_pages


@dataclass(frozen=True)
class Benchmark:
    """A benchmark.

    `name`: name on the command line and of the result file. `run`: yields one record a measurement.
    `instances`: named instances that it needs.
    """

    name: str
    run: Callable[[], Iterator[dict[str, Any]]]
    instances: tuple[str, ...] = ()


def machine() -> dict[str, str]:
    """Return what the measurements depend on beside the code."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        processor = names[0] if names else processor
    found = versions()
    return {
        "machine": f"{processor}, {os.cpu_count()} cores, {platform.system()}",
        "versions": "; ".join(f"{name} {version}" for name, version in found.items()),
    }


def write_results(name: str, frame: pd.DataFrame) -> None:
    """Write the result file of a benchmark."""
    file = result_file(name)
    with replacing(file, public=True) as (temporary,):
        frame.to_csv(temporary, index=False)


def record(benchmark: Benchmark) -> None:
    """Run a benchmark, print its rows as they come, write its result file and its pages."""
    rows = []
    for row in benchmark.run():
        print(f"{benchmark.name}: " + ", ".join(f"{key} {value}" for key, value in row.items()))
        rows.append(row)
    frame = pd.DataFrame(rows).assign(**machine())
    write_results(benchmark.name, frame)
    write_pages(benchmark.name)
