"""The measurement of disclosure risk: a table as it was given, a release, a population.

Counted by readers of this room alone, from the published table and its manifest; nothing is taken
from what made the release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from anonymip.errors import InputError, argument, unknown_name
from anonymip.privacy.arrays import Floats, Ints
from anonymip.privacy.attacks.matches import (
    Corruption,
    linked_parts,
    matches_of,
    measure_corruption,
    some_assignment,
)
from anonymip.privacy.checks.class_sizes import homogeneous_classes
from anonymip.privacy.checks.units import units_by_class
from anonymip.privacy.disclosure import DisclosureRisk, SampleRisk, Spread, TableRisk
from anonymip.privacy.graph.consistency import MatchGraph, PublishedMatches
from anonymip.privacy.reading.keys import Keys, column_of, read_keys, weights_of
from anonymip.privacy.reading.manifest_entries import MISSING_POLICIES
from anonymip.privacy.reading.original import (
    Inputs,
    Reading,
    Schema,
    encode_original,
    missing_in,
    read_inputs,
    read_schema,
)
from anonymip.privacy.reading.published import PublishedTable, read_published
from anonymip.privacy.reading.release_manifest import digest_finding
from anonymip.privacy.reading.text_tables import TextTable, distinct, read_table


@dataclass(frozen=True)
class RiskWork:
    """How much a measurement looks at."""

    #: The k of a table without a release: one in five is the threshold that ARX suggests.
    usual_k: int = 5
    #: Matches of records and rows that are listed; each takes some fifty bytes.
    matches: int = 20_000_000
    #: Types of records that are asked for their rows at once, and by which matches are estimated.
    types: int = 256
    #: Known matches that the curve goes up to, and matches of a graph that it is drawn for.
    known: int = 64
    curve_matches: int = 1_000_000


WORK = RiskWork()


#: Units in the class of each record, and the fewest in a class of each unit.
Counted = tuple[Ints, Ints]


class Measured(Reading, total=False):
    """How files are read: what `verify` takes, and texts that mean no value."""

    missing_values: Sequence[str] | None


def risk(
    table: str | Path | Any,
    release: str | Path | Any = None,
    quasi_identifiers: Sequence[str] | None = None,
    *,
    sensitive: Sequence[str] = (),
    unit: str | None = None,
    k: int | None = None,
    weights: str | None = None,
    population: str | Path | Any = None,
    missing: str | None = None,
    manifest: Mapping[str, Any] | str | Path | None = None,
    schema: str | Path | None = None,
    draws: int = 20,
    **reading: Unpack[Measured],
) -> DisclosureRisk:
    """Measure how easily persons are found in a table, and in a release of it.

    Parameters
    ----------
    table
        Path of a CSV or Parquet file, or a data frame.
    release
        The same of its release, or a :class:`Release`; None measures the table alone.
    quasi_identifiers
        Columns that an adversary may know: ``"age"``, ``"zip:categorical"``; default: the schema's.
        The manifest of a release says roles and policy itself.
    sensitive
        Columns that she wants to learn, beside those of the schema.
    unit
        Column that says whom a row is about, where persons have several rows: persons are counted
        then, and of each the class where she is among the fewest. Default: the manifest's, else
        the schema's.
    k
        What classes are held against; default: the manifest's, else 5.
    weights
        Column that says how many persons of the population each record stands for; default: the
        manifest's, else the schema's. After publication it counts where the release keeps it.
    population
        Path or data frame of all persons, those of the table among them, with the
        quasi-identifiers.
    missing
        Policy for missing quasi-identifiers: ``"error"`` (the default), ``"category"`` or
        ``"own"``, for which missing is a value of its own, or ``"drop"``, which leaves the records
        out.
    manifest, schema
        As in :func:`verify`.
    draws
        Random choices of the known matches at each number of them, of a cover; 0 draws no curve.
    **reading
        `separator`, `encoding`, `decimal`, `columns`, `sheet`, `hierarchies` as in :func:`verify`;
        `missing_values`: texts that mean no value, default: the schema's, else the empty one.

    Raises
    ------
    InputError
        As `verify` does; if a column is missing, or a value against the policy; a weight is no
        number above 0; a row has no unit, or a unit stands beside weights, a population or a cover,
        which count records; the population lacks persons of the table; the release is not the table
        of its manifest; or it is a cover of more matches than fit into memory.

    Notes
    -----
    The terms are those of ARX and sdcMicro. A release is counted, not verified: `verify` does that.
    Rows that look alike are a class. A star is a value of its own, as the promise of k has it;
    sdcMicro lets missing values match all others, which tells lower risks. In a cover the rows are
    counted that can be a record's in some assignment of all, each as likely as the others.

    Of persons with several rows a shuffled release does not show who is in a class: each is then
    counted with the fewest persons that the manifest promises (`verify` checks it), or that can
    have the rows of the smallest class, if these are more. That tells the higher risk.

    Complexity: O(m n log n); of covers O(matches) in time and memory, times `draws`; with a
    population also its row types times those of the release, by bit tables.
    """
    if k is not None and (isinstance(k, bool) or k < 1):
        raise InputError(f"k is {k}", remedy="Give a whole number of at least 1")
    if draws < 0:
        raise InputError(f"draws is {draws}", remedy="Give 0 or more")
    if hasattr(release, "frame") and hasattr(release, "manifest"):
        manifest, release = manifest or release.manifest, release.frame
    given = read_schema(schema) or Schema()
    kinds = dict(_declared(text, given.kinds) for text in quasi_identifiers or given.kinds)
    secret = tuple(dict.fromkeys((*given.sensitive, *sensitive)))
    policy, inputs = missing or "error", None
    policies = dict(given.policies)
    form, tokens = (",", "utf-8", "."), reading.get("missing_values") or given.tokens or ("",)
    if release is not None:
        inputs = _inputs(table, release, manifest, schema, reading)
        claims = inputs.manifest
        own = {column.name: column.kind for column in claims.quasi_identifiers}
        policy = claims.table.policy
        policies = {one.name: claims.policy_of(one) for one in claims.quasi_identifiers}
        if (quasi_identifiers is not None and set(kinds) != set(own)) or (
            not set(sensitive) <= set(claims.sensitive) or missing not in (None, policy)
        ):
            raise InputError(
                "the columns or their missing values are not treated as the manifest says",
                remedy="Leave out roles and policy: the manifest of the release says them",
            )
        if claims.unit is not None and unit not in (None, claims.unit):
            raise InputError(
                f"k of the release counts units of column {claims.unit!r}",
                remedy="Leave the unit out: the manifest of the release says it",
            )
        kinds, secret = dict(own), claims.sensitive
        tokens = given.tokens or claims.table.tokens
        form = claims.table.separator, claims.table.encoding, claims.table.decimal
    if not kinds:
        raise InputError(
            "no quasi-identifiers are named",
            remedy=f"Name them by {argument('quasi_identifiers', ..., option='-q')} or a schema",
        )
    for one in (policy, *policies.values()):
        if one not in MISSING_POLICIES:
            raise unknown_name("policy for missing values", one, MISSING_POLICIES)
    mark = reading.get("decimal") or given.decimal or form[2]
    written: dict[str, Any] = {
        "separator": reading.get("separator") or given.separator or form[0],
        "encoding": reading.get("encoding") or given.encoding or form[1],
    }
    source = (
        inputs.source
        if inputs
        else read_table(
            table,
            **written,
            names=reading.get("columns") or given.columns,
            sheet=given.sheet if reading.get("sheet") is None else reading["sheet"],
        )
    )
    people = None if population is None else read_table(population, **written)
    usual = (None if inputs is None else inputs.manifest.loss.weights) or given.weights
    measured = _Measurement(
        k or (inputs.manifest.k if inputs else WORK.usual_k), weights or usual, mark
    )
    promised = None if inputs is None else inputs.manifest.unit
    unit = unit or promised or given.unit
    if unit == promised and unit is not None and unit not in source.columns:
        measured.notes.append(f"The original has no column {unit!r}: rows are counted, not units.")
        unit = None
    if unit is not None:
        if weights is not None or population is not None or (inputs and inputs.manifest.is_cover):
            raise InputError(
                "weights, a population and a cover count records, not units",
                remedy="Measure without them, or a release of classes",
            )
        measured = replace(measured, weights=None, units=_units(source, unit, tokens))
        if usual is not None:
            measured.notes.append("Weights count records, and are not looked at beside units.")
    each = [policies.get(name, policy) for name in kinds]
    before = measured.table(source, read_keys(source, kinds, each, tokens, mark, people), secret)
    after, recoding = None, None
    curve: tuple[Corruption, ...] = ()
    if inputs is not None:
        recoding = inputs.manifest.recoding
        published = read_published(release, inputs.manifest, inputs.hierarchies)
        persons = None if people is None else _persons(inputs, published, people, mark)
        if inputs.manifest.is_cover:
            graph = _graph(inputs, published)
            after = measured.cover(inputs, published, graph, source.rows, persons)
            if draws and len(graph.records) <= WORK.curve_matches:
                curve = _curve(graph, draws)
        else:
            after = measured.classes(inputs, published, persons)
    if people is None and unit is None:
        measured.notes.append("No population is given: the journalist's risk is the prosecutor's.")
    found = tuple(measured.notes)
    return DisclosureRisk(measured.k, tuple(kinds), recoding, before, after, curve, found, unit)


def _units(source: TextTable, unit: str, tokens: Sequence[str]) -> Ints:
    """Return (n,) the unit of each row of a table; refuses rows without one."""
    column = column_of(source, unit)
    absent = int(missing_in(column, tokens).sum())
    if absent:
        raise InputError(
            f"column {unit!r}, which names the units, has {absent} missing values",
            remedy="Fill the cells, or leave these rows out",
        )
    return distinct(column.texts)[1]


def _declared(text: str, known: Mapping[str, str | None]) -> tuple[str, str | None]:
    name, colon, kind = text.rpartition(":")
    if not colon or text in known:
        return text, known.get(text)
    kinds = ("numeric", "categorical", "date", "hierarchical")
    if kind not in kinds:
        raise unknown_name(f"kind of the quasi-identifier {name!r}", kind, kinds)
    return name, kind


def _inputs(
    table: Any, release: Any, manifest: Any, schema: str | Path | None, reading: Measured
) -> Inputs:
    """Read manifest and original; refuses a release that is not the table of its manifest."""
    how: Any = {name: given for name, given in reading.items() if name != "missing_values"}
    inputs = read_inputs(table, release, manifest, schema, **how)
    problems = digest_finding(release, inputs.manifest.table.sha256)[1]
    if problems:
        raise InputError(problems[0].rstrip("."), remedy="Run verify, or publish again")
    return inputs


@dataclass(frozen=True)
class _Measurement:
    """What tables are held against, and what is to be said of it.

    `k`: of classes. `weights`: their column. `decimal`: mark of numbers. `notes`: sentences.
    `units`: (rows of the table,) whom each is about; None counts records.
    """

    k: int
    weights: str | None
    decimal: str
    notes: list[str] = field(default_factory=list)
    units: Ints | None = None

    def table(self, source: TextTable, keys: Keys, sensitive: Sequence[str]) -> TableRisk:
        """Measure a table as it was given."""
        if len(keys.rows) < source.rows:
            count = source.rows - len(keys.rows)
            self.notes.append(f"{count} records with missing quasi-identifiers are left out.")
        elif keys.has_missing:
            self.notes.append("A missing quasi-identifier counts as a value of its own.")
        persons = None
        if keys.others is not None:
            size = int(max(keys.labels.max(), keys.others.max(initial=0))) + 1
            alive = np.bincount(keys.others, minlength=size)
            short = np.bincount(keys.labels, minlength=size) > alive
            if short.any():
                raise _lacking(int(np.sum(short[keys.labels])), "records of the table")
            persons = alive[keys.labels]
        weight = None
        if self.weights is not None:
            column = column_of(source, self.weights)
            weight = weights_of(column, self.weights, self.decimal)[keys.rows]
            self.notes.append(
                "Weights: individual risk of Benedetti and Franconi, as in mu-Argus and sdcMicro."
            )
        values = {name: distinct(column_of(source, name).texts)[1] for name in sensitive}
        shown = {name: codes[keys.rows] for name, codes in values.items()}
        counted = None if self.units is None else _among_units(keys.labels, self.units[keys.rows])
        found = self._of_classes(keys.labels, persons, weight, shown, counted)
        return replace(found, by_record=_by_record(found, keys.rows, source.rows))

    def classes(self, inputs: Inputs, published: PublishedTable, persons: Ints | None) -> TableRisk:
        """Measure a release whose rows that look alike are classes."""
        weight = None
        if self.weights in published.untouched:
            column = published.untouched[self.weights]
            weight = weights_of(column, self.weights, self.decimal)
        elif self.weights is not None:
            self.notes.append("The release keeps no weights: what they say is not known of it.")
        if published.suppressed.any():
            self.notes.append("A star counts as a value of its own, which tells the higher risk.")
        if inputs.manifest.left_out.suppressed:
            self.notes.append(
                f"{inputs.manifest.left_out.suppressed} suppressed records have no row: who finds "
                "a person in no class knows that she is among them."
            )
        self.notes.extend(
            f"Pseudonyms of column {name!r} link the rows of a person: who knows several finds her "
            "more easily than these figures say."
            for name, column in published.pseudonyms.items()
            if len(distinct(column.texts)[0]) < published.n
        )
        texts = {name: published.untouched[name].texts for name in inputs.manifest.sensitive}
        values = {name: distinct(shown)[1] for name, shown in texts.items()}
        counted = self._counted(inputs, published)
        return self._of_classes(published.classes(), persons, weight, values, counted)

    def _counted(self, inputs: Inputs, published: PublishedTable) -> Counted | None:
        """Return the units of the classes, or the fewest that can be where nobody knows."""
        if self.units is None:
            return None
        claims, units = inputs.manifest, self.units[inputs.records.rows]
        shown = published.pseudonyms.get(str(claims.unit))
        if shown is not None:
            return _among_units(published.classes(), distinct(shown.texts)[1])
        if claims.order == "kept" and published.n == len(units):
            return _among_units(published.classes(), units)
        smallest = int(np.bincount(published.classes()).min())
        rows = np.sort(np.unique(units, return_counts=True)[1])[::-1]
        least = int(np.searchsorted(np.cumsum(rows), smallest)) + 1
        if claims.unit is not None:
            least = max(least, min(claims.k, smallest))
        self.notes.append(
            "Which records the rows were made of the release does not show: all units are counted "
            f"as if their classes held no more than {least}, which tells the higher risk."
        )
        return np.full(published.n, least), np.full(len(rows), least)

    def cover(
        self,
        inputs: Inputs,
        published: PublishedTable,
        graph: MatchGraph,
        size: int,
        persons: Ints | None,
    ) -> TableRisk:
        """Measure a release whose rows have sets of their own, by the matches of its records."""
        real = linked_parts(graph, some_assignment(graph))[1]
        records, rows = graph.records[real], graph.rows[real]
        homogeneous: dict[str, tuple[int | None, int]] = {}
        for name in inputs.manifest.sensitive:
            codes = distinct(published.untouched[name].texts)[1]
            # Nobody sees what the rows of stars for records that are left out would show.
            codes = np.append(codes, np.full(graph.n - published.n, -1))[rows]
            homogeneous[name] = None, homogeneous_classes(records, codes)[0]
        found = self._risks(np.bincount(records, minlength=graph.n), persons, homogeneous)
        if self.weights is not None:
            self.notes.append("A cover has no classes: what weights say is not known of it.")
        self.notes.append(
            f"Recoding {inputs.manifest.recoding}: counted are the rows that can be a record's in "
            "some assignment of all records."
        )
        return replace(found, by_record=_by_record(found, inputs.records.rows, size))

    def _of_classes(
        self,
        labels: Ints,
        persons: Ints | None,
        weight: Floats | None,
        sensitive: Mapping[str, Ints],
        counted: Counted | None,
    ) -> TableRisk:
        """Measure (n,) records by the classes that they are in; of units by those `counted`."""
        labels = np.unique(labels, return_inverse=True)[1].ravel().astype(np.int64)
        sizes = np.bincount(labels)
        sample = None
        if weight is not None:
            represented = np.bincount(labels, weight)
            each = individual_risk(sizes, represented)
            alone = match_share(sizes, represented)[sizes == 1]
            sample = SampleRisk(
                float(alone.sum()), float(sizes @ each), Spread.of(each[labels], self.k)
            )
        one_value = {name: homogeneous_classes(labels, codes) for name, codes in sensitive.items()}
        found = self._risks(sizes[labels], persons, one_value, counted)
        return replace(found, classes=len(sizes), sample=sample)

    def _risks(
        self,
        candidates: Ints,
        persons: Ints | None,
        homogeneous: Mapping[str, tuple[int | None, int]],
        counted: Counted | None = None,
    ) -> TableRisk:
        """Measure (n,) records by the number of rows that can be each one's, or units."""
        records, units = len(candidates), None
        by_record = candidates
        if counted is not None:
            by_record, candidates = counted
            units = len(candidates)
        prosecutor = Spread.of(1 / candidates, self.k)
        journalist = None if persons is None else Spread.of(1 / persons, self.k)
        return TableRisk(
            records,
            None,
            int(np.sum(candidates == 1)),
            int(np.sum(candidates < self.k)),
            prosecutor,
            journalist,
            (journalist or prosecutor).mean,
            None,
            homogeneous,
            1 / by_record,
            units,
        )


def _among_units(labels: Ints, units: Ints) -> Counted:
    """Return the units of the class of each record, and the fewest that each unit is among."""
    units = np.unique(units, return_inverse=True)[1].ravel().astype(np.int64)
    labels = np.unique(labels, return_inverse=True)[1].ravel().astype(np.int64)
    by_record = units_by_class(labels, units)[labels]
    fewest = np.full(int(units.max()) + 1, len(units), np.int64)
    np.minimum.at(fewest, units, by_record)
    return by_record, fewest


def _by_record(found: TableRisk, rows: Ints, size: int) -> Floats:
    """Return (size,) the risks of the records at their rows of the table, NaN elsewhere."""
    everywhere = np.full(size, np.nan)
    everywhere[rows] = found.by_record
    return everywhere


def _persons(inputs: Inputs, published: PublishedTable, people: TextTable, decimal: str) -> Ints:
    """Return (rows,) the persons of the population whom each published row can be."""
    told = replace(inputs.manifest, columns=inputs.manifest.quasi_identifiers)
    persons = encode_original(people, told, inputs.schema, inputs.hierarchies, decimal)
    matches = PublishedMatches(persons, published)
    counts = np.zeros(len(matches.row_units), np.int64)
    # All matches may not fit into memory: so many types at once.
    for begin in range(0, len(matches.record_units), WORK.types):
        some = np.arange(begin, min(begin + WORK.types, len(matches.record_units)))
        source, target = matches.rows_of(some)
        np.add.at(counts, target, matches.record_units[source])
    if not counts.all():
        raise _lacking(int(np.sum(matches.row_units[counts == 0])), "published rows")
    return counts[matches.row_type]


def _lacking(count: int, what: str) -> InputError:
    return InputError(
        f"the population lacks persons of {count} {what}",
        remedy="Give all persons, those of the table among them",
    )


def _graph(inputs: Inputs, published: PublishedTable) -> MatchGraph:
    """Return the matches of a cover; refuses one that has too many for the memory."""
    matches = matches_of(inputs.records, published, inputs.manifest.left_out.suppressed)
    units = matches.record_units
    some = np.unique(np.linspace(0, len(units) - 1, WORK.types).astype(np.int64))
    source, target = matches.rows_of(some)
    seen = float(np.sum(units[source] * matches.row_units[target]))
    expected = seen * float(units.sum() / units[some].sum())
    if expected > WORK.matches:
        raise InputError(
            f"the release is a cover of about {expected:.2g} matches of records and rows, which do "
            "not fit into memory",
            remedy="Measure a release of fewer records",
        )
    return matches.graph()


def _curve(graph: MatchGraph, draws: int) -> tuple[Corruption, ...]:
    """Return what 0, 1, 2, 4, ... known matches leave, until somebody has a single row left."""
    curve, known = [measure_corruption(graph, 0, draws=1)], 1
    while known <= min(WORK.known, graph.n // 2) and curve[-1].least.min() > 1:
        curve.append(measure_corruption(graph, known, draws=draws))
        known *= 2
    return tuple(curve)


#: From this frequency on the series is summed: its terms fall faster than 1 / C(2j, j), so that so
#: many suffice, while the library's function fails on frequencies of hundreds.
_SERIES_FROM, _TERMS = 30, 40


def individual_risk(sample: ArrayLike, population: ArrayLike) -> Floats:
    """Return the probability that a record of the sample is linked to the right person.

    `sample`: (cells,) records f of the sample in each cell, 1 or more. `population`: (cells,)
    persons F of the population in it, as estimated: the sum of the weights of these records. Fewer
    than f count as f. Returns (cells,) the mean of 1 / F given f, where F is negative-binomial with
    f successes of probability p = f / F:

        r = sum over j >= f of C(j - 1, f - 1) p^f (1 - p)^(j - f) / j
          = (p / f) 2F1(1, 1; f + 1; 1 - p),

    which is p / (1 - p) log(1 / p) for f = 1 and p / (1 - p) - (p / (1 - p))^2 log(1 / p) for f = 2
    [1]_, [2]_. mu-Argus and sdcMicro (`indivRisk`, "approx") have the same formulas for f = 1 and
    2, and for larger f the approximation p / (f - 1 + p), which is up to 4 % higher. Of a record
    that is alone (f = 1) the probability that its person is alone in the population is p.
    Complexity: O(cells).

    .. [1] R. Benedetti, L. Franconi: Statistical and Technological Solutions for Controlled Data
       Dissemination, Pre-proceedings of New Techniques and Technologies for Statistics, 1998.
    .. [2] L. Franconi, S. Polettini: Individual Risk Estimation in mu-Argus: A Review, Privacy in
       Statistical Databases 2004, LNCS 3050, pp. 262-272.
    """
    # Loads for a tenth of a second, which verification does not need.
    from scipy.special import hyp2f1

    f = np.asarray(sample, np.float64)
    p = match_share(sample, population)
    mean = np.empty(len(f))
    few = f < _SERIES_FROM
    mean[few] = hyp2f1(1.0, 1.0, f[few] + 1.0, 1.0 - p[few])
    term = np.ones(int(np.sum(~few)))
    total = term.copy()
    for j in range(_TERMS):
        term = term * (j + 1.0) * (1.0 - p[~few]) / (f[~few] + 1.0 + j)
        total += term
    mean[~few] = total
    return np.asarray(p / f * mean, np.float64)


def match_share(sample: ArrayLike, population: ArrayLike) -> Floats:
    """Return (cells,) the share p of the persons of each cell that is in the sample, at most 1."""
    f = np.asarray(sample, np.float64)
    return np.asarray(f / np.maximum(np.asarray(population, np.float64), f), np.float64)
