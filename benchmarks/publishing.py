"""Times of reading, publishing, writing and verifying, beside what a time limit keeps for them.

Seconds are those of the processor. ``PublishingCosts`` were chosen by it.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonymip import EquivalenceClasses, Freeform, Problem, publish, solve
from anonymip.anonymization import COSTS
from anonymip.files import writing
from anonymip.instances import Schema, load_instance

#: Records, columns, what they hold, recoding, k.
_TABLES: tuple[tuple[int, int, str, str, int], ...] = (
    (6, 3_000, "whole", "classes", 2),
    (1_000, 300, "whole", "classes", 5),
    (100_000, 8, "whole", "classes", 5),
    (100_000, 8, "real", "classes", 5),
    (100_000, 8, "names", "classes", 5),
    (100_000, 8, "whole", "freeform", 5),
    (100_000, 8, "names", "freeform", 5),
)
_RECODINGS = {"classes": (EquivalenceClasses(), "hilbert"), "freeform": (Freeform(), "ring")}


def publishing() -> Iterator[dict[str, Any]]:
    """Measure each table twice and yield what the second round took: the first one compiles."""
    for table in _TABLES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _measure(*table)
            yield _measure(*table)


def _measure(n: int, m: int, kind: str, recoding: str, k: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        original, released = Path(folder) / "original.csv", Path(folder) / "release.csv"
        _table(n, m, kind).to_csv(original, index=False)
        of_numbers = "categorical" if kind == "names" else "numeric"
        moments = [time.process_time()]
        data = load_instance(
            str(original), Schema({f"c{a}": {"kind": of_numbers} for a in range(m)})
        )
        allowed, method = _RECODINGS[recoding]
        problem = Problem(data, k, allowed)
        moments.append(time.process_time())
        solution = solve(problem, method, bound=False)
        moments.append(time.process_time())
        release = publish(solution)
        moments.append(time.process_time())
        with writing() as outputs:
            release.stage(released, outputs, original=original)
        moments.append(time.process_time())
    reading, _, published, verified = np.diff(moments).tolist()
    return {
        "n": n,
        "m": m,
        "values": kind,
        "recoding": recoding,
        "k": k,
        "reading": round(reading, 2),
        "publishing": round(published, 2),
        "writing_and_verifying": round(verified, 2),
        "reserved": round(COSTS.seconds(problem), 2),
        "used_of_reserve": round((published + verified) / COSTS.seconds(problem), 2),
    }


def _table(n: int, m: int, kind: str) -> pd.DataFrame:
    random = np.random.default_rng(1)
    if kind == "real":
        return pd.DataFrame(random.normal(size=(n, m)), columns=[f"c{a}" for a in range(m)])
    whole = random.integers(0, 40 if kind == "names" else 100, (n, m))
    frame = pd.DataFrame(whole, columns=[f"c{a}" for a in range(m)])
    return frame if kind == "whole" else frame.map(lambda code: f"v{code}")
