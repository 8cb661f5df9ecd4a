"""Diversity and closeness of sensitive values: in classes, and in the rows that a record can be."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isfinite
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Classes, Cover, by_size
from anonymip.errors import InputError, InvalidAssignment, is_number
from anonymip.graphs import effective_matches
from anonymip.instances.microdata import Microdata
from anonymip.runtime.arrays import Flags, Ints


@dataclass(frozen=True, eq=False)
class SensitiveScale:
    """A sensitive column as distances between its distributions need it."""

    codes: Ints  # (n,) value of each record; ascending with the numbers where `ordered`
    totals: Ints  # (values,) records of the table with each value
    ordered: bool  # values lie on a line, one step apart: near ones are more alike than far ones

    @property
    def steps(self) -> int:
        """What a distance of 1 is, in whole numbers: see :meth:`excess`."""
        return max(1, len(self.totals) - 1) if self.ordered else 2

    def excess(self, counts: Ints, sizes: Ints, most: tuple[int, int]) -> Flags:
        """Return (classes,) whether classes are farther from the table than a fraction.

        `counts`: (classes, values) records of each class with each value. `sizes`: (classes,)
        records of each class. `most`: numerator and denominator of the fraction.

        The distance is half the sum of the differences between the shares of each value; on an
        ordered scale the sum of the differences between the shares up to each value, divided by one
        less than the number of values [1]_. It is computed in whole numbers, without rounding, of
        any size. Complexity: O(classes x values).

        .. [1] N. Li, T. Li, S. Venkatasubramanian: t-Closeness: Privacy Beyond k-Anonymity and
           l-Diversity, ICDE 2007, doi:10.1109/ICDE.2007.367856.
        """
        n, (numerator, denominator) = int(self.totals.sum()), most
        # Products of whole numbers: those that may not fit a machine word are Python's.
        dtype = object if self.steps * n * n * max(most) >= 2**62 else np.int64
        difference = (
            counts.astype(dtype) * n - self.totals.astype(dtype) * sizes.astype(dtype)[:, None]
        )
        if self.ordered:
            difference = np.cumsum(difference, axis=1)
        distance = np.abs(difference).sum(axis=1)
        allowed = sizes.astype(dtype) * (self.steps * n * numerator)
        return np.asarray(distance * denominator > allowed, np.bool_)


def sensitive_scales(microdata: Microdata, *, ordered: bool) -> tuple[SensitiveScale, ...]:
    """Return the sensitive columns, ordered where all values are numbers, if that is asked for.

    A column with missing or empty values, or with any other text, is never ordered. Complexity:
    O(n log n) for each column.
    """
    scales = []
    for at, name in enumerate(microdata.sensitive):
        codes = microdata.sensitive_codes[:, at].astype(np.int64)
        ranks = None
        if ordered:
            _, first = np.unique(codes, return_index=True)
            texts = microdata.frame[name].iloc[first].astype(object).map(str)
            ranks = number_ranks(texts.tolist())
        if ranks is not None:
            codes = ranks[codes]
        scales.append(SensitiveScale(codes, np.bincount(codes), ranks is not None))
    return tuple(scales)


def number_ranks(texts: list[str]) -> Ints | None:
    """Return the ranks of texts as numbers, equal numbers sharing one; None if not all are."""
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return None
    if not all(map(isfinite, numbers)):
        return None
    return np.unique(numbers, return_inverse=True)[1].ravel().astype(np.int64)


_CLASSES = 4096  # classes whose values are counted at a time
_LARGE, _MOST = 10**4, 2**31  # an l from which it is rounded up, and more rows than a class has


@dataclass(frozen=True)
class Diversity:
    """What every class must hold of each sensitive column.

    With such a rule classes of more than 2k - 1 records may be needed: the class a a a b b b with
    k = 3 and no value above one half cannot be cut.

    Parameters
    ----------
    l
        No sensitive value makes up more than 1/l of a class (l-diversity as in Wong et al.,
        Def. 9); 1 asks for nothing.
    distinct
        A class has at least so many sensitive values (p-sensitivity); 1 asks for nothing.
    t
        The shares of the sensitive values in a class lie at most so far from those in the table
        (t-closeness [1]_), from 0 to below 1; None asks for nothing. The distance is half the sum
        of the differences between the shares. Classes of equal rows and releases by patterns keep
        it; sets of covers do not.
    ordered
        Whether columns whose sensitive values are all numbers are compared as lying on a line, each
        value one step from the next: t then bounds the steps that shares must be moved, as a part
        of the longest way.

    References
    ----------
    .. [1] N. Li, T. Li, S. Venkatasubramanian: t-Closeness: Privacy Beyond k-Anonymity and
       l-Diversity, ICDE 2007, doi:10.1109/ICDE.2007.367856.

    Raises
    ------
    InputError
        If a number is out of its range, nothing is asked for, or an order without t.
    """

    l: float = 1  # noqa: E741 - the field's own name
    distinct: int = 1
    t: float | None = None
    ordered: bool = False

    def __post_init__(self) -> None:
        if not is_number(self.l, 1):
            raise InputError(f"l of the diversity is {self.l!r}", remedy="Give a number above 1")
        if not is_number(self.distinct, 1, _MOST, Integral):
            raise InputError(
                f"distinct of the diversity is {self.distinct!r}",
                remedy=f"Give a whole number of at least 2 and at most {_MOST:,}",
            )
        if self.t is not None and not (is_number(self.t, 0) and self.t < 1):
            raise InputError(
                f"t of the diversity is {self.t!r}", remedy="Give a number from 0 to below 1"
            )
        if self.ordered and self.t is None:
            raise InputError(
                "an order of sensitive values means nothing without t", remedy="Give t as well"
            )
        if self.ratio == (1, 1) and self.distinct == 1 and self.t is None:
            raise InputError(
                "the diversity asks for nothing",
                remedy="Give l above 1, distinct of at least 2, or t below 1",
            )

    @property
    def farthest(self) -> tuple[int, int]:
        """T as a fraction of whole numbers; 1 where it asks for nothing."""
        t = 1 if self.t is None else self.t
        return Fraction(t).limit_denominator(10**6).as_integer_ratio()

    @property
    def ratio(self) -> tuple[int, int]:
        """L as a fraction of whole numbers, so that the rule is checked without rounding.

        Large ones are whole, and no larger than any class: times a number of rows they stay within
        64 bits.
        """
        if self.l > _LARGE:
            return min(ceil(self.l), _MOST), 1
        return Fraction(self.l).limit_denominator(10**6).as_integer_ratio()

    def asked_of(self, column: int) -> tuple[int, int, int]:
        """Return the ratio, and the number of values, that are asked of a counted column."""
        del column  # of each the same
        return (*self.ratio, int(self.distinct))

    def met_by(self, sensitive: NDArray[np.integer]) -> Flags:
        """Return (B,) whether the classes of the given sensitive codes are diverse.

        `sensitive`: (B, s, columns) codes of the members.
        """
        batch, size, columns = sensitive.shape
        met = np.ones(batch, np.bool_)
        for column in range(columns):
            numerator, denominator, least = self.asked_of(column)
            codes = np.sort(sensitive[:, :, column], axis=1)
            new = np.ones((batch, size), np.bool_)
            new[:, 1:] = codes[:, 1:] != codes[:, :-1]
            met &= new.sum(axis=1) >= least
            begins = np.maximum.accumulate(np.where(new, np.arange(size), 0), axis=1)
            most = (np.arange(size) - begins + 1).max(axis=1)
            met &= most * numerator <= size * denominator
        return met

    def violation(self, sensitive: NDArray[np.integer], classes: Classes) -> int | None:
        """Return a record of a class that is not diverse, or None.

        `sensitive`: (n, columns) codes of all records. `classes`: of the records; suppressed ones
        are in none.

        Complexity: O(n log n) for each column.
        """
        labels = classes.labels
        kept = labels != SUPPRESSED
        for column in range(sensitive.shape[1]):
            numerator, denominator, least = self.asked_of(column)
            width = int(sensitive[:, column].max()) + 1
            pairs, counts = np.unique(
                labels[kept].astype(np.int64) * width + sensitive[kept, column], return_counts=True
            )
            label = pairs // width
            distinct = np.bincount(label, minlength=classes.count)
            most = np.zeros(classes.count, np.int64)
            np.maximum.at(most, label, counts)
            bad = (distinct < least) | (most * numerator > classes.sizes * denominator)
            if bad.any():
                return int(np.argmax(labels == int(bad.argmax())))
        return None

    def kept_by(
        self,
        microdata: Microdata,
        records: NDArray[np.integer],
        labels: NDArray[np.integer],
        count: int,
    ) -> Flags:
        """Return (count,) whether classes keep all that is asked for, closeness included.

        `microdata`: the whole table. `records, labels`: records in classes, and the class of each,
        below `count`. `count`: number of classes.

        Complexity: O(n + classes x values) for each column.
        """
        sizes = np.bincount(labels, minlength=count)
        met = np.ones(count, np.bool_)
        for at, column in enumerate(microdata.counted_codes.T):
            numerator, denominator, least = self.asked_of(at)
            counts = _tally(column.astype(np.int64), records, labels, count)
            met &= np.count_nonzero(counts, axis=1) >= least
            met &= counts.max(axis=1, initial=0) * numerator <= sizes * denominator
        if self.t is not None:
            for scale in sensitive_scales(microdata, ordered=self.ordered):
                counts = _tally(scale.codes, records, labels, count)
                met &= ~scale.excess(counts, sizes, self.farthest)
        return met

    def check_closeness(self, microdata: Microdata, classes: Classes) -> None:
        """Raise if the sensitive values of a class lie too far from those of the table.

        Raises InvalidAssignment naming a record of the class.
        """
        if self.t is None:
            return
        kept = np.flatnonzero(classes.labels != SUPPRESSED)
        labels = classes.labels[kept]
        for scale in sensitive_scales(microdata, ordered=self.ordered):
            for begin in range(0, classes.count, _CLASSES):
                within = (labels >= begin) & (labels < begin + _CLASSES)
                sizes = classes.sizes[begin : begin + _CLASSES]
                counts = _tally(scale.codes, kept[within], labels[within] - begin, len(sizes))
                far = scale.excess(counts, sizes, self.farthest)
                if far.any():
                    label = begin + int(far.argmax())
                    raise InvalidAssignment(
                        int(np.argmax(classes.labels == label)),
                        f"lies in a class whose sensitive values are farther than {self.t:g} from "
                        "the table's",
                    )

    def lacking(
        self, sensitive: NDArray[np.integer], left_out: int = 0
    ) -> tuple[int, str, bool] | None:
        """Return the column of a whole table that is not diverse, why, and if leaving out helps.

        None if all are diverse.

        What a table lacks every partition of it lacks somewhere, and every regular cover: its sets
        hold each value as often, for their size, as the table does. The reason tells how many
        records share a value, and not which.

        `sensitive`: (n, columns) codes of all records. `left_out`: records that a partition may
        leave out: those whose leaving helps most.
        """
        n = len(sensitive)
        for column in range(sensitive.shape[1]):
            numerator, denominator, least = self.asked_of(column)
            counts = np.bincount(sensitive[:, column])
            most, distinct = int(counts.max()), int(np.count_nonzero(counts))
            # If enough records of the most frequent value leave, it no longer makes up too much.
            if (most - left_out) * numerator > (n - left_out) * denominator:
                reason = (
                    f"{most} of {n} records share a value, at most n / l = "
                    f"{n * denominator // numerator} may"
                )
                return column, reason, True
            if distinct < least:
                return column, f"there are {distinct} values", False
        return None

    def __str__(self) -> str:
        parts = []
        if self.l > 1:
            parts.append(f"l = {self.l:g}")
        if self.distinct > 1:
            parts.append(f"{self.distinct} distinct sensitive values")
        if self.t is not None:
            parts.append(f"t = {self.t:g}" + (" on ordered values" if self.ordered else ""))
        return f"diversity {' and '.join(parts)}"


@dataclass(frozen=True)
class Units(Diversity):
    """At least so many units a class, such as persons who have several rows each.

    A class with k distinct units has k distinct values of the column that names them. All that
    keeps distinct diversity keeps this as well. Counted columns are that of the units, and where
    rows are to be diverse too the sensitive ones behind it.
    """

    column: str = ""  # whose values are the units
    #: What the rows of a class must hold of the sensitive columns; None asks for nothing.
    beside: Diversity | None = None

    def asked_of(self, column: int) -> tuple[int, int, int]:
        """Return what is asked of a counted column: the units, or a sensitive one behind them."""
        if column == 0 or self.beside is None:
            return 1, 1, int(self.distinct)
        return self.beside.asked_of(column - 1)

    def largest(self, units: NDArray[np.integer]) -> int:
        """Return how many rows a class needs at most that cannot be cut into two such classes.

        With d units of several rows and s of one it can be cut if 2 d + s is at least 2k: those of
        several rows go to both parts. One that cannot be cut has 2k - 1 - 2 d of the others at
        most, and d below k. `units`: (n, 1) codes of all records.
        """
        rows = np.sort(np.bincount(units[:, 0]))[::-1]
        several = rows[: min(self.distinct - 1, int(np.sum(rows > 1)))]
        return int(several.sum()) + 2 * self.distinct - 1 - 2 * len(several)

    def cut(self, rows: Ints, units: NDArray[np.integer]) -> list[Ints]:
        """Return the rows of a class in parts that no further cut makes two such classes of."""
        codes, counts = np.unique(units[rows, 0], return_inverse=True, return_counts=True)[1:]
        if int(np.minimum(counts, 2).sum()) < 2 * self.distinct:
            return [rows]
        _, first = np.unique(codes, return_index=True)
        # One row of each unit with several goes to one part, those of one row take turns.
        alone = first[counts == 1]
        chosen = np.concatenate([first[counts > 1], alone[::2]])
        parts = rows[np.sort(chosen)], np.delete(rows, chosen)
        return [piece for part in parts for piece in self.cut(part, units)]

    def __str__(self) -> str:
        counted = f"minimum of {self.distinct} units (column {self.column!r})"
        return counted if self.beside is None else f"{counted} and the {self.beside}"


def of_rows(diversity: Diversity | None) -> Diversity | None:
    """Return what rows of a class must hold of the sensitive columns, units left out."""
    return diversity.beside if isinstance(diversity, Units) else diversity


def _tally(
    codes: Ints, records: NDArray[np.integer], labels: NDArray[np.integer], count: int
) -> Ints:
    """Return (count, values) records of each class with each value."""
    width = int(codes.max()) + 1
    pairs = labels.astype(np.int64) * width + codes[records]
    return np.bincount(pairs, minlength=count * width).reshape(count, width)


@dataclass(frozen=True, eq=False)
class RowsOfRecords:
    """The published rows that each original record can be: its effective matches."""

    start: Ints  # (n + 1,) where those of each record begin in `rows`
    rows: Ints  # published records, ascending within an original

    @classmethod
    def of(cls, cover: Cover) -> RowsOfRecords:
        """Return those of a cover in which every record lies in its own set."""
        effective = effective_matches(cover)
        members, owners = cover.members[effective], cover.owners[effective]
        order = np.argsort(members, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(members, minlength=cover.n))])
        return cls(start, owners[order])

    @property
    def sizes(self) -> Ints:
        """(n,) number of rows of each record."""
        return np.diff(self.start)


def lacking_records(
    diversity: Diversity,
    sensitive: NDArray[np.integer],
    rows: RowsOfRecords,
    matching: NDArray[np.integer],
) -> Flags:
    """Return (n,) whether the rows that a record can be do not show values as diverse as asked.

    Of the rows that an original record can be, no more than a share of 1/l may show one value (Wong
    et al. [1]_, Definition 9, each row being as likely), and enough values are to be shown.
    `sensitive`: (n, columns) codes of the originals. `rows`: rows that each original can be.
    `matching`: (n,) original of each published record, whose values the row shows. Complexity:
    O(edges log k) for each column.

    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Section 6.
    """
    shown = sensitive[matching]
    lacking = np.zeros(len(rows.sizes), np.bool_)
    for records, places in by_size(rows.start):
        lacking[records] = ~diversity.met_by(shown[rows.rows[places]])
    return lacking
