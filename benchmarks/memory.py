"""Memory that methods hold beside the table, by records, columns and k: a process for each run.

The constants of ``methods/memory_needs.py`` were chosen by it. Megabytes are the growth of the
resident set from before the solve to its peak, without a bound.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

#: Method, options, records, columns and k.
_RUNS: tuple[tuple[str, dict[str, object], int, int, int], ...] = (
    ("initial", {}, 2_000, 8, 5),
    ("initial", {}, 400_000, 8, 5),
    ("mondrian", {}, 400_000, 8, 5),
    ("hilbert", {}, 400_000, 8, 5),
    ("greedy-search", {}, 400_000, 8, 5),
    ("local-search", {}, 400_000, 8, 5),
    ("ring", {}, 2_000, 8, 5),
    ("ring", {}, 400_000, 8, 5),
    ("ring", {}, 400_000, 8, 20),
    ("hungarian", {"part": 1_000}, 100_000, 8, 5),
    ("hungarian", {}, 8_000, 4, 5),
    ("reassign", {"part": 1_000}, 100_000, 8, 5),
)
_RUN = """
import json, resource, sys, warnings
import anonymip
from anonymip.methods import METHODS, memory_needs
from anonymip.recodings.registry import find_recoding
warnings.simplefilter("ignore")
method, options, (n, m, k) = json.loads(sys.argv[1])
recoding = find_recoding(METHODS[method].recoding)
problem = anonymip.Problem(anonymip.census(n, m, seed=1), k, recoding)
with open("/proc/self/statm") as file:
    before = int(file.read().split()[1]) * resource.getpagesize()
solution = anonymip.solve(
    problem, method, effort="quick", time_limit=40, bound=False, options=options
)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
estimated = memory_needs.bytes_needed(problem, method, options)
print(json.dumps({"held": peak - before, "estimated": estimated}))
"""


def memory() -> Iterator[dict[str, Any]]:
    """Run each method in a process of its own and yield by how much that grows."""
    for method, options, n, m, k in _RUNS:
        given = json.dumps([method, options, [n, m, k]])
        done = subprocess.run(
            [sys.executable, "-c", _RUN, given], capture_output=True, text=True, check=True
        )
        measured = json.loads(done.stdout.splitlines()[-1])
        yield {
            "method": method,
            "n": n,
            "m": m,
            "k": k,
            "part": options.get("part", 0),
            "held_mb": round(measured["held"] / 1e6),
            "estimated_mb": round(measured["estimated"] / 1e6),
        }
