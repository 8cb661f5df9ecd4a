"""The columns of an experiment's table: one row a run, the same columns always."""

from __future__ import annotations

import json
import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

from anonymip.publishing import versions

#: What each column holds, in their order.
COLUMNS: dict[str, type] = {
    # What was asked.
    "experiment": str,
    "instance": str,
    "sample": int,
    "n": int,
    "m": int,
    "k": int,
    "recoding": str,
    "diversity": str,
    "limits": str,
    "objective_name": str,
    "method": str,
    "label": str,
    "options": str,
    "repetition": int,
    "seed": int,
    "effort": str,
    "time_limit": float,
    # What was found.
    "loss": float,
    "bound": float,
    "bound_by": str,
    "proof": str,
    "gap": float,
    "status": str,
    "reason": str,
    "seconds": float,
    "cpu_seconds": float,
    # Measures of the release.
    "ncp": float,
    "gcp": float,
    "classes": int,
    "smallest": int,
    "average": float,
    "largest": int,
    "suppressed": int,
    "suppressed_cells": int,
    "discernibility": float,
    "classification": float,
    "usefulness": float,
    "attribute_losses": str,
    # Where and with what.
    "solver": str,
    "threads": int,
    "anonymip": str,
    "python": str,
    "numpy": str,
    "versions": str,
    "machine": str,
    "cores": int,
    "system": str,
    # What the row is of, exactly.
    "table_sha256": str,
    "problem": str,
    "key": str,
}

#: Those of texts that hold JSON.
JSON_COLUMNS = ("limits", "options", "attribute_losses", "versions")


@cache
def surroundings() -> dict[str, Any]:
    """Return the columns that say where a run is done and with which versions."""
    found = versions()
    return {
        "anonymip": found["anonymip"],
        "python": found["python"],
        "numpy": found["numpy"],
        "versions": json.dumps(found),
        "machine": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    """Return the model of the processor, as far as the system says."""
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8").splitlines():
            name, _, model = line.partition(":")
            if name.strip() == "model name":
                return model.strip()
    return platform.processor() or platform.machine()
