"""One case: drawn from a seed and a number, solved, judged."""

from __future__ import annotations

import random
import warnings

from anonymip.objectives.language import tables
from tests.fuzzing.command_line import run_commands
from tests.fuzzing.problems import draw_area, draw_problem
from tests.fuzzing.solving import Findings, run_solves


def run_case(seed: int, index: int, only: str | None = None) -> Findings:
    """Return what a case brought.

    `seed, index`: they determine the case. `only`: the area to draw from; None draws one.
    """
    rng = random.Random(f"{seed}:{index}")
    area = draw_area(rng, only)
    asked = draw_problem(rng, area)
    found = Findings(area)
    # A third of the hierarchies are looked up as large ones are.
    if random.Random(f"{seed}:{index}:nodes").random() < 1 / 3:
        tables.LARGEST_NODE_TABLE = 0
    run = run_commands if area == "command-line" else run_solves
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found.attempt("judge", lambda: run(found, asked, rng))
    tables.LARGEST_NODE_TABLE = tables.LARGEST_PAIR_TABLE
    return found
