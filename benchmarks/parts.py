"""Census records by parts: what engines, methods and sizes of parts lose, cost and hold.

Each run is a process of its own, whose processor seconds and largest resident set count those that
it starts. The constants of ``scale/cuts.py`` and ``scale/engines.py`` were chosen by it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Millions of records, method, engine ("" for the whole table at once), workers, rows of a part, k.
_Runs = tuple[tuple[int, str, str, int, int, int], ...]
_RUNS: _Runs = (
    (1, "greedy-search", "", 1, 0, 10),
    (1, "greedy-search", "local", 1, 250_000, 10),
    (1, "greedy-search", "local", 1, 100_000, 10),
    (1, "greedy-search", "local", 1, 25_000, 10),
    (1, "mondrian", "", 1, 0, 10),
    (1, "mondrian", "local", 1, 250_000, 10),
    (1, "local-search", "", 1, 0, 10),
    (1, "local-search", "local", 1, 250_000, 10),
    (1, "nh", "", 1, 0, 10),
    (1, "nh", "local", 1, 250_000, 10),
)
#: What a second worker is worth: twice the rows in twice the processes. Means something on a
#: machine with nobody else on it.
_WEAK: _Runs = (
    (1, "greedy-search", "dask", 1, 250_000, 10),
    (2, "greedy-search", "dask", 2, 250_000, 10),
    (1, "greedy-search", "local", 1, 250_000, 10),
    (2, "greedy-search", "local", 2, 250_000, 10),
)
_TEN_MILLION: _Runs = tuple(
    (10, method, "local", 2, 250_000, 10)
    for method in ("greedy-search", "mondrian", "local-search", "nh")
)
_BY_K: _Runs = tuple((1, "greedy-search", "local", 1, 250_000, k) for k in (2, 5, 10, 25, 50, 100))
_RUN = """
import json, sys, warnings
import anonymip
from anonymip.methods import METHODS
warnings.simplefilter("ignore")
folder, output, names, method, kind, workers, rows, k = json.loads(sys.argv[1])
recoding = METHODS[method].recoding
if __name__ == "__main__":
    if kind:
        engine = anonymip.Engine(kind, workers=workers, part_rows=rows)
        found = anonymip.anonymize_by_parts(
            folder, names, k, output, engine=engine, method=method, effort="quick",
            recoding=recoding,
        )
        told = {"parts": found.parts, "loss": found.manifest["gcp"], "bound": found.bound}
        cells = found.rows * len(names)
    else:
        import pandas as pd
        release = anonymip.anonymize(
            pd.read_parquet(folder), names, k, method=method, effort="quick", recoding=recoding
        )
        bound = release.solution.bound
        told = {"parts": 1, "loss": release.solution.gcp, "bound": bound and bound.value}
        cells = release.solution.problem.n * len(names)
    told["bound"] = told["bound"] and told["bound"] / cells
    print(json.dumps(told))
"""


def parts() -> Iterator[dict[str, Any]]:
    """Yield what a million records lose and take by parts and as a whole."""
    return _measured(_RUNS)


def parts_of_ten_million() -> Iterator[dict[str, Any]]:
    """Yield what methods lose and take on the same ten million records."""
    return _measured(_TEN_MILLION)


def parts_by_workers() -> Iterator[dict[str, Any]]:
    """Yield what a million records take on one worker, and two million on two."""
    return _measured(_WEAK)


def parts_by_k() -> Iterator[dict[str, Any]]:
    """Yield what a million records take by k."""
    return _measured(_BY_K)


def _measured(runs: _Runs) -> Iterator[dict[str, Any]]:
    """Yield what each run writes, takes and holds; tables are made beforehand."""
    from anonymip.instances import census

    with tempfile.TemporaryDirectory() as scratch:
        for millions, method, kind, workers, rows, k in runs:
            folder = Path(scratch) / f"{millions}"
            folder.mkdir(exist_ok=True)
            names: list[str] = []
            for number in range(millions):
                file = folder / f"{number + 1:03}.parquet"
                if not file.is_file() or not names:
                    frame = census(1_000_000, 8, seed=number + 1).frame
                    frame.to_parquet(file, row_group_size=250_000, index=False)
                    names = list(frame.columns)
            given = [
                str(folder),
                str(Path(scratch) / "out"),
                names,
                method,
                kind,
                workers,
                rows,
                k,
            ]
            command = [sys.executable, "-c", _RUN, json.dumps(given)]
            began = time.perf_counter()
            run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert run.stdout is not None
            printed = run.stdout.read()
            _, status, used = os.wait4(run.pid, 0)
            if status:
                raise RuntimeError(f"{method} by {kind or 'no engine'} ended with {status}")
            yield {
                "records": millions * 1_000_000,
                "k": k,
                "method": method,
                "engine": kind or "none",
                "workers": workers,
                "part_rows": rows,
                **{
                    name: one if one is None else round(one, 5)
                    for name, one in json.loads(printed.splitlines()[-1]).items()
                },
                "seconds": round(time.perf_counter() - began, 1),
                "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
                "largest_mb": round(used.ru_maxrss / 1e3),
            }
