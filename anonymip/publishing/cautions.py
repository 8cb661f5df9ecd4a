"""Cautions: what a person should know of a release before giving it away.

Classes that share a sensitive value, which k does not hide; columns that nearly identify persons;
texts that a spreadsheet would run as formulas, and how they are kept from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.errors import argument
from anonymip.instances import Microdata
from anonymip.instances.columns import is_number_text
from anonymip.instances.inspection import repeated_ids, separated_numbers
from anonymip.instances.microdata import NEARLY_UNIQUE, distinct_values
from anonymip.problem import Problem
from anonymip.recodings.rules.diversity import of_rows
from anonymip.runtime.arrays import Ints

#: Share of the rows that columns may single out together before that is worth a word.
_SINGLED_OUT = 0.1
#: Share of the units of several rows in which a column has one value that is worth a word.
_CONSTANT = 0.9
#: Fewer different values than this may be all different, and be towns or jobs.
_NAMES = 20


def nearly_unique_columns(microdata: Microdata) -> list[str]:
    """Return cautions about columns that nearly identify persons.

    Of those published untouched one for each that does so by itself, and one for all others if they
    do together. One for each quasi-identifier without an order or a hierarchy that does so: sets of
    names are hardly less than names. Complexity: O(n log n) a column.
    """
    cautions, together = [], []
    for name, role in _untouched(microdata):
        count = distinct_values(microdata.frame[name])
        if count >= max(2.0, NEARLY_UNIQUE * microdata.n):
            cautions.append(
                f"column {name!r} ({role}) is nearly unique: {count} different values in "
                f"{microdata.n} rows. Who knows the value of a person finds her row; leave the "
                f"column out ({argument('drop', ...)}) unless nobody can know its values"
            )
        else:
            together.append(name)
    for attribute in microdata.attributes:
        count = distinct_values(microdata.frame[attribute.name])
        if attribute.kind == "categorical" and count >= max(_NAMES, NEARLY_UNIQUE * microdata.n):
            looks = (
                "Its values look like numbers with separated thousands, or with another decimal "
                "mark, and sets of them may be published. Take the separators away, or declare the "
                "mark ([table] decimal in a schema)"
                if separated_numbers(microdata.frame[attribute.name], microdata.table.missing)
                else "It looks like a direct identifier (a name, the number of a card), and sets "
                f"of its values may be published. Leave the column out ({argument('drop', ...)}), "
                "or give it a hierarchy"
            )
            cautions.append(
                f"quasi-identifier {attribute.name!r} is nearly unique: {count} different values "
                f"in {microdata.n} rows. {looks}"
            )
    texts = (_filled_texts(microdata.frame[name]) for name in together)
    unique = int((np.bincount(equal_labels(texts, len(microdata.frame))) == 1).sum())
    if len(together) > 1 and unique >= max(2.0, _SINGLED_OUT * microdata.n):
        cautions.append(
            f"the values of {', '.join(map(repr, together))} are together unique for {unique} of "
            f"{microdata.n} rows. Who knows them of a person finds her row; leave columns out "
            f"({argument('drop', ...)}) that somebody may know"
        )
    return cautions


def persons_of_several_rows(microdata: Microdata) -> list[str]:
    """Return cautions about persons with several rows, whether they are named or not.

    Without a unit one for each column left out or kept that looks like ids of persons that repeat;
    with one for each column published untouched that hardly varies within the units. Complexity:
    O(n log n) a column.
    """
    frame = microdata.frame
    if microdata.unit is None:
        return [
            f"column {name!r} looks like ids of persons, and repeats: the k rows of a class may be "
            f"of one person. {argument('unit', name)} counts persons there"
            for name in (*microdata.drop, *microdata.undeclared, *microdata.keep)
            if name in frame.columns and repeated_ids(frame[name], microdata.table.missing)
        ]
    units = microdata.counted_codes[:, 0].astype(np.int64)
    several = np.bincount(units) > 1
    cautions = []
    for name, role in _untouched(microdata):
        codes = pd.factorize(_filled_texts(frame[name]))[0].astype(np.int64)
        constant = int(np.sum(several & (_different(units, codes) == 1)))
        # Of one value for nearly all rows that says nothing.
        varied = np.bincount(codes).max() < _CONSTANT * len(codes)
        if not varied or constant < max(2.0, _CONSTANT * several.sum()):
            continue
        what = "a rare value shows which rows are of one person, across classes"
        if role == "sensitive":
            what = (
                "rows of a class that agree may be one person, and shares of rows are not those of "
                "persons"
            )
        cautions.append(
            f"column {name!r} ({role}) has one value in all rows of a unit, for {constant} of "
            f"{several.sum()} with several rows: {what}. Leave the column out "
            f"({argument('drop', name)}), or publish one row for each unit"
        )
    return cautions


def _untouched(microdata: Microdata) -> list[tuple[str, str]]:
    """Return the columns that are published untouched, and what a person calls their roles."""
    sensitive = [(name, "sensitive") for name in microdata.sensitive]
    return [*sensitive, *((name, "kept") for name in microdata.keep)]


def _filled_texts(column: pd.Series) -> pd.Series:
    return column.astype(object).map(str).where(column.notna(), "")


def _different(groups: Ints, codes: NDArray[np.integer]) -> Ints:
    """Return (groups,) how many different codes there are in each group."""
    return np.bincount(np.unique(np.stack([groups, codes]), axis=1)[0])


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


#: By sensitive column, how many classes share a value, and how many rows they have.
Counts = Mapping[str, Mapping[str, int]]


def equal_labels(columns: Iterable[Any], rows: int) -> Ints:
    """Return (rows,) numbers from 0 on that are equal where rows agree in all columns."""
    labels = np.zeros(rows, np.int64)
    for column in columns:
        wide = labels * rows + pd.factorize(column)[0]
        labels = np.unique(wide, return_inverse=True)[1].ravel().astype(np.int64)
    return labels


def cautions_of_classes(
    cells: Sequence[NDArray[np.object_]], problem: Problem, published: NDArray[np.integer]
) -> tuple[Counts, list[str]]:
    """Return how many classes share a sensitive value, and cautions about them.

    `cells`: the published columns of the quasi-identifiers, (rows,) texts each. Rows that look
    alike are one class, also those of stars, and those that the solution calls two classes.
    `published`: (rows,) record of each row. Complexity: O(m n log n).
    """
    labels = equal_labels(cells, len(published))
    sizes = np.bincount(labels)
    counts: dict[str, dict[str, int]] = {}
    sensitive = problem.microdata.sensitive_codes[published].T
    for name, codes in zip(problem.microdata.sensitive, sensitive, strict=True):
        one_value = _different(labels, codes) == 1
        counts[name] = {"classes": int(one_value.sum()), "rows": int(sizes[one_value].sum())}
    shared = _shared_by_units(labels, problem, published)
    return counts, [*homogeneous_classes(counts, len(published)), *shared]


def _shared_by_units(labels: Ints, problem: Problem, published: NDArray[np.integer]) -> list[str]:
    """Return a caution for each sensitive column with a value that too many units of a class have.

    A diversity counts rows, of which a unit has several. Too many are more than a share of 1/l, or
    all of them where no share is asked for. Classes of which all rows share a value are not told.
    """
    microdata, diversity = problem.microdata, of_rows(problem.diversity)
    if microdata.unit is None:
        return []
    units = pd.factorize(microdata.frame[microdata.unit].astype(object).map(str))[0][published]
    everybody = _different(labels, units)
    over, under = (1, 1) if diversity is None else diversity.ratio
    cautions = []
    for name, codes in zip(
        microdata.sensitive, microdata.sensitive_codes[published].T, strict=True
    ):
        owners = np.unique(np.stack([labels, codes, units]), axis=1)
        values, having = np.unique(owners[:2], axis=1, return_counts=True)
        most = np.zeros(len(everybody), np.int64)
        np.maximum.at(most, values[0], having)
        shared = most * over > everybody * under if over > under else most == everybody
        count = int(np.sum(shared & (np.bincount(values[0]) > 1)))
        if count:
            share = f"more than 1/{over / under:g} of" if over > under else "all"
            cautions.append(
                f"in {count} {'class' if count == 1 else 'classes'} {share} the units have one "
                f"value of {name!r}, though the rows show others: diversity counts rows. Who knows "
                "how many rows a person has may learn it; publish one row for each unit to count "
                "these"
            )
    return cautions


def homogeneous_classes(counts: Counts, rows: int) -> list[str]:
    """Return a caution for each sensitive column that classes share a value of.

    `rows`: number of published rows.
    """
    return [
        f"{_classes(count['classes'])} one value of {name!r}, {count['rows']} of {rows} rows: who "
        "finds the class of a person learns it. A diversity "
        f"({argument('diversity', ..., option='--l-diversity')}) asks for more"
        for name, count in counts.items()
        if count["classes"]
    ]


def _classes(count: int) -> str:
    return "1 class shares" if count == 1 else f"{count} classes share"


_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n")  # what makes a formula of the text behind it


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet would take a text for more than text or a plain number."""
    return len(text) > 1 and text.startswith(_SIGNS) and not is_number_text(text)


def count_formulas(frame: pd.DataFrame) -> dict[str, int]:
    """Return how many cells of each column are formulas, of the columns that have some."""
    # With a decimal comma a number runs nothing either, though escaping takes it along.
    counts: Counter[str] = Counter()
    for name in frame.columns:
        for text, count in _texts(frame[name]).items():
            if is_formula(text) and not is_number_text(text.replace(",", ".")):
                counts[str(name)] += count
    return counts


def with_apostrophes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an apostrophe before each formula, in cells and names of columns.

    So that nothing is lost, texts that begin with an apostrophe get another one.
    """
    columns = {name: _escaped_column(frame[name]) for name in frame.columns}
    return pd.DataFrame(columns, index=frame.index).rename(columns=lambda name: _escaped(str(name)))


def _escaped_column(column: pd.Series) -> pd.Series:
    if not any(_escaped(text) != text for text in _texts(column)):
        return column
    # Other values stay what they are, but for numbers: a column is of one type.
    all_text = pd.api.types.is_numeric_dtype(column)
    texts = [
        value
        if absent or (not all_text and _escaped(str(value)) == str(value))
        else _escaped(str(value))
        for value, absent in zip(column, column.isna(), strict=True)
    ]
    return pd.Series(texts, index=column.index, dtype=object)


def _escaped(text: str) -> str:
    return f"'{text}" if text.startswith("'") or is_formula(text) else text


def _texts(column: pd.Series) -> Mapping[str, int]:
    """Return how many cells show each text, without texts that are no formulas for their kind."""
    if pd.api.types.is_numeric_dtype(column):
        # The texts of numbers are plain numbers, but for the infinite ones.
        if not pd.api.types.is_float_dtype(column):
            return {}
        column = column[np.isinf(column.to_numpy(np.float64, na_value=np.nan))]
    values = column[column.notna()].astype(object)
    if pd.api.types.infer_dtype(values, skipna=False) != "string":
        # What is equal may have different texts: 1, True and 1.0.
        return Counter(map(str, values))
    place, texts = pd.factorize(values.to_numpy())
    return dict(zip(map(str, texts), np.bincount(place).tolist(), strict=True))
