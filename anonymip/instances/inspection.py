"""A first look at a table: what each column holds, which role it may have, and a schema to edit.

Nothing that is told holds a value of the table: counts, forms of texts, names of columns.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonymip.errors import InputError, argument, unknown_name
from anonymip.instances.columns import (
    all_whole,
    are_plain_dates,
    are_times,
    is_number_text,
    looks_like_dates,
    looks_numeric,
    missing_rows,
    no_numbers_among,
    refuse_foreign_cells,
)
from anonymip.instances.domains import rounded_domain
from anonymip.instances.microdata import NEARLY_UNIQUE, Microdata, distinct_values
from anonymip.instances.presets import PRESETS
from anonymip.instances.readers import EXCEL, PARQUET, as_pandas, detect_format, read_table
from anonymip.instances.schema import Schema, far_numbers, told_of_far_values, toml_value
from anonymip.instances.table_format import TableFormat

#: Forms of dates that are tried, in this order; the day goes before the month where both fit.
_DATE_FORMS = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y%m%d", "%d.%m.%y"),
    *("%d/%m/%y", "%m/%d/%y", "%Y-%m", "%m/%Y", "%d %b %Y", "%d-%b-%Y", "%d.%m.%Y %H:%M"),
    *("%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%m/%d/%Y %I:%M %p"),
)
#: Words for what is not known, in small letters.
_NO_VALUE = frozenset(
    [
        *("", "na", "n/a", "#n/a", "nan", "null", "none", "-", "--", "?", ".", "unknown"),
        *("missing", "not known", "unbekannt", "k.a.", "k. a.", "keine angabe"),
    ]
)
#: Those of them that are nothing else in a column of categories.
_NO_CATEGORY = frozenset(["?", "n/a", "#n/a", "null", "nan"])
#: Numbers that stand for what is not known in columns of numbers that are not negative otherwise.
_NO_NUMBER = frozenset(["-9", "-99", "-999", "-9999"])
#: Such as questionnaires have for it, above all answers.
_NO_ANSWER = re.compile(r"9{1,4}[7-9]")
_MOST = 0.9  # share of the values that a form of texts, or a pattern, has to be that of
#: Share of the values that are numbers or dates where others may be words for what is not known.
_MANY = 0.5
#: Whole numbers that are so few different ones, and so small, may be categories.
_FEW_CODES, _HIGHEST_CODE = 12, 99
_WORDS = 4  # texts of so many words are sentences
_LONGEST = 30  # most characters of a pattern
_TRIED = 1_000  # values by which the commonest form of dates is found

_DIRECT = re.compile(
    r"\b(\w*name\w*|nom|prenom|nombre|apellidos?|e ?mail|mail|\w*phone|\w*telefon\w*|tel|mobile|"
    r"handy|fax|iban|bic|\w*account|\w*konto\w*|ssn|\w*passport|\w*ausweis\w*|\w*street|"
    r"\w*strasse|address|adresse|anschrift|url|ip|login|kennzeichen|licen[cs]e plate)\b"
)
_IDENTIFIER = re.compile(
    r"\b(id|ids|uuid|guid|mrn|key|pseudonym|(patient|person|case|fall|kunden|user|member|subject|house"
    r"hold|haushalts?|record|probanden)\w*(id|nr|no|nummer|number)|(patient|person|case|fall|subject|"
    r"member|record|row|line|customer|household|account)\w* (id|no|nr|num|number|nummer|key)|no|nr|"
    r"nummer|number)\b|^(patient|person|proband|subject|member|customer|client|kunde|student|pupil|"
    r"sch(ü|ue)ler|employee|mitarbeiter|household|haushalt)(in)?$"
)
_WEIGHTS = re.compile(r"\b(\w*weights?|\w*wgt|\w*gewicht\w*|hochrechnung\w*)\b")
_SENSITIVE = re.compile(
    r"\b(diagnos|icd|disease|illness|krank|befund|therap|medica|medika|treat|drug|hiv|religio|konfess|"
    r"income|salary|gehalt|einkommen|lohn|wage|party|partei|vote|crime|straf|sexual|score|result|ergebnis"
    r"|credit|debt|schuld|cause|todesursache|outcome|geno|lab|blood|hba|gluco|gluko|chol|[ck]reatinin)"
)
_COUNT = re.compile(
    r"\b(age|alter|year|jahr|number|count|anzahl|children|kinder|rooms|zimmer|size|\w+s)\b"
)
_FORMS = {
    "e-mail addresses": re.compile(r"[^@\s]+@[^@\s]+\.\w+"),
    "bank accounts (IBAN)": re.compile(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?"),
    "telephone numbers": re.compile(r"(?:\+|00?)[1-9]\d*[\s/()-]+[\d\s/()-]{5,}"),
    "universal identifiers": re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"),
}
#: Patterns that say no more than that there are texts, or are a text themselves.
_WORD = re.compile(r"A*\+?|[^A9]*")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:([,.' ])\d{3}(?:\1\d{3})*)?(?:[.,]\d+)?")
_MONTHS = re.compile(
    r"(?:1\d|2[01])\d\d-(?:0[1-9]|1[0-2])|(?:0?[1-9]|1[0-2])/(?:1\d|2[01])\d\d", re.ASCII
)
_LEVELS = re.compile(r"[A-Z]{1,2}\d{1,2}[A-Z\d]?(?:\.[A-Z\d]{1,4}[+*!]?)?")


@dataclass(frozen=True)
class InspectedColumn:
    """What a column holds, and which role it may have."""

    name: str  # its name
    #: The kind that it would have as a quasi-identifier: ``"numeric"``, ``"categorical"`` or
    #: ``"date"``.
    kind: str
    #: What the values look like, in words: ``"whole numbers"``, ``"codes with leading zeros"``.
    looks: str
    #: Number of different values, and of rows without one.
    distinct: int
    missing: int
    unique: float  # share of the rows with a value whose value no other row has
    #: Form of at least nine in ten values: ``A`` for a letter, ``9`` for a digit, ``+`` behind them
    #: for one or more; of dates their format. None where there is no such form.
    pattern: str | None
    role: str  # suggestion: ``"quasi-identifier"``, ``"sensitive"``, ``"keep"`` or ``"drop"``
    why: str  # why, and what to look at
    #: What a schema declares of it as a quasi-identifier.
    declared: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Inspection:
    """What a table holds, a record a column."""

    rows: int  # number of rows
    incomplete: int  # rows that miss a value of a suggested quasi-identifier
    #: How the file is written; of a data frame its missing values and decimal mark.
    table: TableFormat
    columns: tuple[InspectedColumn, ...]  # the columns, in their order
    notes: tuple[str, ...] = ()  # what else is to be known of the suggestions, a line each
    #: What was read: ``"text"``, ``"workbook"`` or ``"typed"``: a Parquet file, a frame.
    source: str = "text"

    def __str__(self) -> str:
        head = ("column", "looks like", "distinct", "missing", "unique", "pattern", "role", "why")
        lines = [head]
        for one in self.columns:
            counts = (f"{one.distinct:,}", f"{one.missing:,}", f"{100 * one.unique:.0f} %")
            lines.append((one.name, one.looks, *counts, one.pattern or "", one.role, one.why))
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        told = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        notes = ("", *self.notes) if self.notes else ()
        first = "; ".join([f"{self.rows:,} rows", *_format_in_words(self.table, self.source)])
        return "\n".join((first, "", *told, *notes))

    def to_dict(self) -> dict[str, Any]:
        """Return the same as data, for JSON."""
        return asdict(self)

    def to_toml(self) -> str:
        """Return a schema to edit, which :func:`anonymip.read_schema` reads as it is."""
        roles: dict[str, list[InspectedColumn]] = {}
        for one in self.columns:
            roles.setdefault(one.role, []).append(one)
        asked = roles.get("quasi-identifier", [])
        lines = ["# Suggestions, found from the table: look at each before anything is published."]
        lines += [f"# {note}" for note in self.notes]
        if not asked:
            lines.append("# No column is suggested as a quasi-identifier: name one at least.")
        if self.incomplete:
            lines.append(
                f"# {self.incomplete} of {self.rows} rows miss a value of a quasi-identifier: what "
                "becomes of them stands\n# with each: missing = error | drop | category | own; "
                f"{argument('missing', ...)} goes before it."
            )
        lines += ["", "[table]"]
        form, default = asdict(self.table), TableFormat(missing=self.table.missing)
        for key in ("separator", "encoding", "decimal", "header", "columns", "sheet"):
            if form[key] != getattr(default, key):
                lines.append(f"{key} = {toml_value(form[key])}")
        lines.append(f"missing = {toml_value(self.table.missing)}")
        for role in ("sensitive", "keep", "drop"):
            if role in roles:
                told = [f"    {toml_value(one.name)},  # {one.why}" for one in roles[role]]
                lines += [f"{role} = [", *told, "]"]
        for one in asked:
            lines += ["", f"# {one.looks}: {one.why}", f"[attributes.{toml_value(one.name)}]"]
            lines += [f"{key} = {toml_value(value)}" for key, value in one.declared.items()]
            if one.missing:
                policy = "category" if one.kind == "categorical" else "own"
                share = f"{100 * one.missing / self.rows:.1f} % of the rows"
                lines.append(f'missing = "{policy}"  # {share}; "drop" leaves them out')
            if one.kind == "date":
                lines.append(
                    '# publish = "node"  # in place of ranges: 1968-08, 1968-Q3, 1968, 1960s'
                )
            if "domain" in one.declared:
                lines.append("# The domain is rounded outwards; a release shows it: look at it.")
            if one.kind == "categorical":
                lines.append('# domain = ["a", "b"]  # all there may be: suppression may want it')
        return "\n".join((*lines, ""))


def inspect(table: Any, *, preset: str | None = None, **given: Any) -> Inspection:
    """Return what a table holds, and which role each column may have.

    Parameters
    ----------
    table
        Path of a CSV, Parquet or Excel file, or a data frame of any library that narwhals reads.
    preset
        A rule that suggestions follow: ``"hipaa-safe-harbor"``, the safe harbor of 45 CFR
        164.514(b)(2). It is a start, and no legal advice.
    **given
        What is known of the format: fields of :class:`TableFormat`. What is not given, or None, is
        found.

    Raises
    ------
    InputError
        If the file cannot be read as a table, or a column name stands there twice.

    Notes
    -----
    Suggestions are guesses from names and forms: whether an adversary may know a value, nobody
    sees in a table. What may be known and is not clearly something else is suggested as
    quasi-identifier, since one that is forgotten protects nobody. Complexity: O(n log n) a column.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"zip": ["02138", "02139", "02138"], "born": ["1.2.1968"] * 3})
    >>> found = inspect(people)
    >>> [(column.looks, column.pattern, column.role) for column in found.columns]
    [('codes with leading zeros', '99999', 'quasi-identifier'), ('dates', '%d.%m.%Y', 'keep')]
    """
    source = "typed"
    if isinstance(table, (str, Path)):
        suffix, form = Path(table).suffix.lower(), TableFormat()
        source = "workbook" if suffix in EXCEL else "typed" if suffix in PARQUET else "text"
        if source == "text" and Path(table).is_file():
            form = detect_format(table, given.get("separator"), given.get("encoding"))
        form = form.written(**given)
        frame = read_table(table, form)
    else:
        form, frame = TableFormat().written(**given), as_pandas(table)
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if not frame.columns.is_unique:
        raise InputError("duplicate column names", remedy="Rename the columns")
    if given.get("decimal") is None:
        form = replace(form, decimal=_decimal_of(frame, form))
    if given.get("missing") is None:
        form = replace(form, missing=_missing_of(frame, form))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        columns = tuple(_inspected(frame[name], name, form) for name in frame.columns)
    notes: tuple[str, ...] = ()
    if preset is not None:
        columns, notes = _by_preset(columns, preset)
    asked = [one.name for one in columns if one.role == "quasi-identifier"]
    absent = [missing_rows(frame[name], form.missing) for name in asked]
    incomplete = int(np.logical_or.reduce(absent).sum()) if absent else 0
    return Inspection(len(frame), incomplete, form, columns, notes, source)


def _by_preset(
    columns: tuple[InspectedColumn, ...], preset: str
) -> tuple[tuple[InspectedColumn, ...], tuple[str, ...]]:
    """Return columns with the roles that a preset suggests, and its notes; drops stay drops."""
    if preset not in PRESETS:
        raise unknown_name("preset", preset, PRESETS)
    rule, notes = PRESETS[preset]
    changed = []
    for one in columns:
        found = rule(_words(one.name), one.kind, one.looks, one.pattern)
        if found is None or (one.role == "drop" != found[0] and one.kind != "date"):
            changed.append(one)
            continue
        role, why, declared = found
        changed.append(replace(one, role=role, why=why, declared={**one.declared, **declared}))
    return tuple(changed), notes


def _format_in_words(table: TableFormat, source: str) -> list[str]:
    """Return the line of what a source of this kind has of a format, if it has any of it."""
    words = []
    if source == "text":
        words = [f"separator {table.separator!r}", f"encoding {table.encoding}"]
    words += ["decimal comma"] if table.decimal == "," else []
    words += [] if table.header else ["no header line"]
    if source == "workbook":
        words.append("first sheet" if table.sheet is None else f"sheet {table.sheet!r}")
    tokens = [text for text in table.missing if text]
    words += [f"missing values {', '.join(map(repr, tokens))}"] if tokens else []
    return [", ".join(words)] if words else []


def _texts(series: pd.Series, missing: tuple[str, ...]) -> pd.Series:
    """Return how often each value of a column occurs, by its text."""
    values = series[~missing_rows(series, missing)].astype(object).map(str)
    counts: pd.Series = values.value_counts()
    return counts


def _are_texts(series: pd.Series) -> bool:
    return not pd.api.types.is_numeric_dtype(series) and any(
        isinstance(value, str) for value in series.head(1_000)
    )


def _decimal_of(frame: pd.DataFrame, form: TableFormat) -> str:
    """Return the decimal mark: a comma where more columns of numbers have commas than points.

    Commas before three digits may separate thousands, and do where they separate cells too.
    """
    commas = points = 0
    for name in frame.columns:
        if _are_texts(frame[name]):
            texts = [text.strip() for text in _texts(frame[name], form.missing).index]
            swapped = [text for text in texts if "," in text and "." not in text]
            numbers = [text for text in swapped if is_number_text(text.replace(",", "."))]
            plain = [text for text in texts if is_number_text(text)]
            if len(numbers) + len(plain) < _MANY * len(texts):
                continue
            points += any("." in text for text in plain)
            thousands = all(re.fullmatch(r"[+-]?\d{1,3},\d{3}", text) for text in numbers)
            commas += bool(numbers) and not (thousands and form.separator.strip() == ",")
    return "," if commas > points else "."


def _missing_of(frame: pd.DataFrame, form: TableFormat) -> tuple[str, ...]:
    """Return the texts that mean no value: most of the known words in numbers and dates only."""
    tokens: dict[str, None] = dict.fromkeys(form.missing)
    refused: set[str] = set()
    for name in frame.columns:
        if not _are_texts(frame[name]):
            continue
        counts = _texts(form.pointed(frame[name]), form.missing)
        numbers = pd.Series([is_number_text(text) for text in counts.index], counts.index, bool)
        words = [text for text in counts.index if text.strip().casefold() in _NO_VALUE]
        share = counts[numbers].sum() / max(1, counts.sum())
        if share >= _MANY or (words and looks_like_dates(frame[name], form.missing)):
            tokens |= dict.fromkeys(words)
        tokens |= dict.fromkeys(one for one in words if one.strip().casefold() in _NO_CATEGORY)
        negative = [text for text in counts.index[numbers] if float(text) < 0]
        if share >= _MANY and _NO_NUMBER.issuperset(negative):
            tokens |= dict.fromkeys(negative)
        else:
            refused.update(negative)
    return tuple(text for text in tokens if text not in refused)


def _inspected(series: pd.Series, name: str, form: TableFormat) -> InspectedColumn:
    """Return what a column holds, with the first suggestion whose reason holds."""
    try:
        refuse_foreign_cells(series, name, "keep")
        counts = _texts(series, form.missing)
    except InputError:
        counted, why = (0, 0, 0.0, None), "its cells are no single values"
        looks = "lists or other objects"
        return InspectedColumn(name, "categorical", looks, *counted, "drop", why)
    present = int(counts.sum())
    missing, distinct = len(series) - present, len(counts)
    unique = float((counts == 1).sum() / present) if present else 0.0
    kind, looks, pattern, declared = _form(series, counts, name, form)
    found = InspectedColumn(name, kind, looks, distinct, missing, unique, pattern, "", "", declared)
    role, why = _suggested(found, present, counts)
    note = ""
    if role == "quasi-identifier":
        data = _applied(series, name, declared, form)
        if data is None:
            role, why = "drop", "it cannot be generalised as it is: clean it, or write it otherwise"
        else:
            note = _note(found, series, counts, form)
            found = replace(found, declared={**declared, **rounded_domain(data)})
            far = far_numbers(data, 0)
            if far:
                told = f"some values lie far from the others ({told_of_far_values(far)})"
                note = f"{told}: correct them, or declare {' and '.join(far)}"
    return replace(found, role=role, why=f"{why}; {note}" if note else why)


def _form(
    series: pd.Series, counts: pd.Series, name: str, form: TableFormat
) -> tuple[str, str, str | None, dict[str, Any]]:
    """Return kind, what the values look like, their pattern, and what a schema declares."""
    texts, plain = [str(text) for text in counts.index], {"kind": "categorical"}
    if not texts:
        return "categorical", "nothing", None, {**plain}
    if are_plain_dates(series, form.missing):
        return "date", "dates", "ISO 8601", {"kind": "date", "precision": "month"}
    if are_times(series, form.missing):
        return "categorical", "times of day or durations", _pattern(counts), {**plain}
    months = _share(counts, _MONTHS) >= _MOST
    if _are_texts(series) and (months or looks_like_dates(series, form.missing)):
        date_form = next((one for one in _DATE_FORMS if all(_are_dates(texts, one))), None)
        if date_form is not None:
            declared = {"kind": "date", "format": date_form, "precision": "month"}
            return "date", "dates", date_form, declared
        date_form = max(_DATE_FORMS, key=lambda one: sum(_are_dates(texts[:_TRIED], one)))
        if counts[list(_are_dates(texts, date_form))].sum() >= _MOST * counts.sum():
            return "categorical", "dates and texts", date_form, {**plain}
        return "categorical", "dates or times in several forms", _pattern(counts), {**plain}
    for looks, shape in _FORMS.items():
        if _share(counts, shape) >= _MOST:
            return "categorical", looks, None, {**plain}
    numbers = form.pointed(series)
    if looks_numeric(numbers, form.missing):
        integer = all_whole(numbers, form.missing)
        values = pd.to_numeric(pd.Series(_texts(numbers, form.missing).index), errors="coerce")
        low, high = float(values.min()), float(values.max())
        few = 2 <= len(texts) <= _FEW_CODES and counts.sum() >= 5 * len(texts)
        dense = low >= 0 and high <= _HIGHEST_CODE and high - low < 2 * len(texts)
        if integer and few and dense and not _COUNT.search(_words(name)):
            return "categorical", "whole numbers, few: codes?", None, {**plain}
        looks = "whole numbers" if integer else "numbers"
        return "numeric", looks, None, {"kind": "numeric", **({"integer": True} if integer else {})}
    pattern = _pattern(counts)
    if len(no_numbers_among(numbers, form.missing)):
        return "categorical", "numbers and texts", pattern, {**plain}
    if all(text.isascii() and text.isdigit() for text in texts):
        return "categorical", "codes with leading zeros", pattern, {**plain}
    if separated_numbers(series, form.missing):
        return "categorical", "numbers with separated thousands", pattern, {**plain}
    dotted = any("." in text for text in texts)
    if dotted and _share(counts, _LEVELS) >= _MOST:
        return "categorical", "codes with levels", pattern, {**plain}
    words = sum(len(str(text).split()) * count for text, count in counts.items()) / counts.sum()
    if words >= _WORDS:
        return "categorical", "sentences", None, {**plain}
    return "categorical", "codes" if pattern and "9" in pattern else "texts", pattern, {**plain}


def _suggested(one: InspectedColumn, present: int, counts: pd.Series) -> tuple[str, str]:
    """Return a role and why."""
    words = _words(one.name)
    nearly = one.distinct >= max(2.0, NEARLY_UNIQUE * present)
    if not present:
        return "drop", "it is empty"
    if one.looks in _FORMS:
        return "drop", f"direct identifier: {one.looks}"
    if _DIRECT.search(words) or not one.name:
        return "drop", "direct identifier, by its name" if one.name else "it has no name"
    if one.distinct == 1 and not one.missing:
        return "keep", "one value in all rows says nothing of a person"
    if one.kind == "date":
        return "quasi-identifier", "dates may be known to others; published by months"
    if one.looks == "dates and texts":
        others = present - int(counts[list(_are_dates(counts.index, str(one.pattern)))].sum())
        told = f"{others} rows hold no date of this form"
        return "drop", f"{told}: correct them, or name what stands there as missing"
    if one.looks == "times of day or durations":
        return "drop", "give numbers in their place, such as hours: so ranges of them are published"
    if one.looks == "numbers with separated thousands":
        return "drop", "take the separators of thousands away: so it is no column of numbers"
    named = _IDENTIFIER.search(words) is not None
    if nearly and (named or one.kind != "numeric" or _counts_rows(one, counts)):
        return "drop", "nearly every row has a value of its own, which names it"
    if named and _repeat(one.distinct, present):
        told = f"{one.distinct:,} of them in {present:,} rows"
        persons = f"k rows may be fewer than k persons; {argument('unit', ...)} counts them"
        return "drop", f"ids of persons that repeat ({told}): {persons}"
    if one.looks == "sentences":
        return "drop", "free text may name persons"
    # HbA1c and its like have capitals within a word.
    private = _SENSITIVE.search(words) or _SENSITIVE.search(one.name.casefold())
    levels = one.looks == "codes with levels"
    if (private and (not nearly or one.kind == "numeric")) or (levels and not nearly):
        return "sensitive", "what nobody should learn of a person, by its name or form"
    if one.kind == "categorical" and one.distinct > max(20, _MANY * present):
        return "drop", "most values are rare, and sets of them large; a hierarchy would help"
    return "quasi-identifier", "may be known to others"


def _repeat(distinct: int, present: int) -> bool:
    """Return whether values of a column named for ids are many enough to be ids of persons."""
    return distinct >= max(20, 0.05 * present)


def repeated_ids(series: pd.Series, tokens: tuple[str, ...]) -> bool:
    """Return whether an inspection takes a column for ids of persons that repeat.

    Names that belong to ids, and neither few values nor nearly as many as rows. Complexity: O(n).
    """
    words = _words(str(series.name))
    if _DIRECT.search(words) or not _IDENTIFIER.search(words):
        return False
    try:
        present, distinct = int((~missing_rows(series, tokens)).sum()), distinct_values(series)
    except TypeError:  # lists and other values that have no hash
        return False
    return _repeat(distinct, present) and distinct < max(2.0, NEARLY_UNIQUE * present)


def separated_numbers(series: pd.Series, tokens: tuple[str, ...]) -> bool:
    """Return whether texts are numbers with separated thousands, or another decimal mark."""
    counts = _texts(series, tokens)
    others = [text for text in counts.index if not is_number_text(text)]
    return any(map(_THOUSANDS.fullmatch, others)) and _share(counts, _THOUSANDS) >= _MOST


def _note(one: InspectedColumn, series: pd.Series, counts: pd.Series, form: TableFormat) -> str:
    """Return what else is to be looked at."""
    if one.looks == "numbers and texts":
        others = len(no_numbers_among(form.pointed(series), form.missing))
        return f"{others} rows hold no number: correct them, then write kind = 'numeric'"
    if one.kind == "numeric" and _WEIGHTS.search(_words(one.name)):
        return f"if they say how many persons a row stands for: weights = {one.name!r} in [table]"
    if one.looks == "whole numbers" and (code := _code_of_no_value(counts)):
        return f"{code} is far above all others: if it means no value, write it to missing"
    if one.looks == "whole numbers, few: codes?":
        return "write kind = 'numeric' if they count something"
    if one.pattern in ("%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y"):
        other = one.pattern.translate(str.maketrans("dm", "md"))
        texts = [str(text) for text in counts.index]
        return f"{other} fits as well" if all(_are_dates(texts, other)) else ""
    if one.looks == "codes with leading zeros":
        return "hierarchy = {mask = 'right'} in place of the kind publishes first digits"
    if one.looks == "texts":
        alike = one.distinct - len({str(text).strip().casefold() for text in counts.index})
        return f"{alike} values differ from others in capitals or blanks only" if alike else ""
    return ""


def _code_of_no_value(counts: pd.Series) -> str | None:
    """Return a number such as 99 that occurs often, a digit longer than all others."""
    values = pd.to_numeric(pd.Series(counts.index), errors="coerce").astype(float)
    order = values.argsort().to_numpy()
    if len(order) < 3 or counts.iloc[order[-1]] < 2:
        return None
    highest, next_one = str(counts.index[order[-1]]), float(values.iloc[order[-2]])
    nines = _NO_ANSWER.fullmatch(highest) is not None
    return highest if nines and 0 <= next_one < 10.0 ** (len(highest) - 1) else None


def _applied(
    series: pd.Series, name: str, declared: Mapping[str, Any], form: TableFormat
) -> Microdata | None:
    """Return the column alone under its part of a schema; None if that does not fit it."""
    frame = series[~missing_rows(series, form.missing)].to_frame(name)
    try:
        return Schema({name: declared}, table=form).apply(frame)
    except InputError:
        return None


def _words(name: str) -> str:
    """Return the words of a name in small letters, with blanks between."""
    parted = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return re.sub(r"[\W_]+", " ", parted).strip().casefold()


def _share(counts: pd.Series, shape: re.Pattern[str]) -> float:
    fits = [shape.fullmatch(str(text).strip()) is not None for text in counts.index]
    return float(counts[fits].sum() / counts.sum())


def _are_dates(texts: Iterable[str], form: str) -> Iterator[bool]:
    """Say of one text after the other whether it is a date of a form."""
    for text in texts:
        try:
            datetime.strptime(text.strip(), form)
            yield True
        except ValueError:
            yield False


def _counts_rows(one: InspectedColumn, counts: pd.Series) -> bool:
    """Return whether nearly unique whole numbers are those of rows: hardly one is left out."""
    if one.looks != "whole numbers" or _COUNT.search(_words(one.name)):
        return False
    numbers = [float(text) for text in counts.index if is_number_text(str(text))]
    return bool(numbers) and max(numbers) - min(numbers) < 2 * len(numbers)


def _pattern(counts: pd.Series) -> str | None:
    """Return the form of most values: letters as A, digits as 9, runs with + if lengths differ."""
    forms = pd.Series([_shape(str(text)) for text in counts.index], counts.index)
    for shapes in (forms, forms.str.replace(r"([A9])\1*", r"\1+", regex=True)):
        shares = counts.groupby(shapes.to_numpy()).sum().sort_values()
        shape = str(shares.index[-1])
        if shares.iloc[-1] >= _MOST * counts.sum() and not _WORD.fullmatch(shape):
            return shape if len(shape) <= _LONGEST else None
    return None


def _shape(text: str) -> str:
    signs = ("9" if sign.isdigit() else "A" if sign.isalpha() else sign for sign in text)
    return "".join(sign if sign.isascii() and sign.isprintable() else "?" for sign in signs)
