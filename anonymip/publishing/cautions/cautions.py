"""What a person should know of a release before giving it away: one function each."""

from __future__ import annotations

import pandas as pd

from anonymip.errors import argument
from anonymip.instances import Microdata
from anonymip.instances.microdata import NEARLY_UNIQUE, distinct_values
from anonymip.publishing.cautions.formulas import count_formulas, is_formula


def nearly_unique_columns(microdata: Microdata) -> list[str]:
    """Return a caution for each column published untouched that nearly identifies persons."""
    roles = ((microdata.sensitive, "sensitive"), (microdata.keep, "kept"))
    cautions = []
    for names, role in roles:
        for name in names:
            count = distinct_values(microdata.frame[name])
            if count >= max(2.0, NEARLY_UNIQUE * microdata.n):
                cautions.append(
                    f"column {name!r} ({role}) is nearly unique: {count} different values in "
                    f"{microdata.n} rows. Who knows the value of a person finds her row; leave the "
                    f"column out ({argument('drop', ...)}) unless nobody can know its values"
                )
    return cautions


def formula_cells(frame: pd.DataFrame) -> list[str]:
    """Return a caution for each column with cells that a spreadsheet would run as formulas."""
    found = [
        f"column {name!r} has {count} cell{'s' if count > 1 else ''}"
        for name, count in count_formulas(frame).items()
    ]
    found += [f"column {str(name)!r} has a name" for name in frame.columns if is_formula(str(name))]
    return [
        f"{what} that a spreadsheet would run as a formula, with =, +, -, @, a tab or a line break "
        f"in front: {argument('escape_formulas', True)} puts an apostrophe before it"
        for what in found
    ]
