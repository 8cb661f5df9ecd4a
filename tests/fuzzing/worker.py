"""A process that runs cases: their numbers come in, what they brought goes out as JSON lines."""

from __future__ import annotations

import json
import os
import sys

from tests.fuzzing.cases import run_case
from tests.fuzzing.files.judging import run_file_case


def main() -> None:
    """Run cases until the input ends."""
    # Whatever else prints must not stand between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    seed, only = int(sys.argv[1]), sys.argv[2] or None
    run = run_file_case if "--files" in sys.argv[3:] else run_case
    for line in sys.stdin:
        found = run(seed, int(line), only)
        answer = [found.area, found.solves, found.faults, dict(found.refusals)]
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
