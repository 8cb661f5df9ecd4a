"""A release: the table to publish and its manifest."""

from __future__ import annotations

import csv
import html
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.assignments import Cover, Levels, Patterns
from anonymip.errors import InputError, ReleaseWarning, unknown_name
from anonymip.files import Outputs, writing
from anonymip.graphs import draw_matching
from anonymip.instances import Microdata
from anonymip.instances.readers import as_pandas
from anonymip.privacy import DisclosureRisk, Verification, risk, verify
from anonymip.problem import Problem
from anonymip.publishing.cautions import (
    cautions_of_classes,
    formula_cells,
    nearly_unique_columns,
    persons_of_several_rows,
    with_apostrophes,
)
from anonymip.publishing.cells import (
    as_numbers,
    as_texts,
    by_content_order,
    end_names,
    number_ends,
    published_columns,
    untouched_column,
)
from anonymip.publishing.checking import hierarchy_paths, read_back
from anonymip.publishing.drawing import draw_diverse
from anonymip.publishing.manifest import (
    as_verified,
    columns_at_risk,
    cut_off,
    describe_attribute,
    make_manifest,
    manifest_path,
    of_file,
    revealing_columns,
    weighted_gcp,
)
from anonymip.publishing.pseudonyms import ALGORITHM, linked_rows, pseudonym_column, read_key
from anonymip.publishing.suppressed import (
    LEFT_OUT,
    STARRED,
    allowed_suppressed,
    published_cover,
    published_records,
    refuse_choice,
    starred_rows,
    unused_limit,
)
from anonymip.publishing.workbooks import write_workbook
from anonymip.recodings.registry import RECODINGS, published_form
from anonymip.runtime.kernels import announcing_compilation
from anonymip.runtime.needed_kernels import kernels_left
from anonymip.solution import Solution, gap_in_words

_FEW = 6  # rows that a notebook shows of a release
#: Endings of files, by what is written. A name without ending is text.
_TEXT = ("", ".csv", ".tsv", ".txt", ".data")
_PARQUET, _EXCEL = (".parquet", ".pq"), (".xlsx",)


@dataclass(frozen=True, eq=False)
class Release:
    """What is published, and what stays behind it.

    Parameters
    ----------
    frame
        The table, of the kind that the original came as: quasi-identifiers generalized, sensitive
        and kept columns untouched. Of a cover the values of the sensitive and kept columns change
        rows, along an assignment drawn at random.
    manifest
        What the release promises, without any value of the original.
    solution
        Where it comes from; it refers to the original and is not published.
    verified
        Whether `frame` has been read back and verified.
    """

    frame: Any
    manifest: dict[str, Any]
    solution: Solution
    verified: bool = False
    # Of a cover: (n,) the original whose sensitive and kept values published record i shows. With
    # it the release is undone, so it stands nowhere else.
    _matching: NDArray[np.integer] | None = field(default=None, repr=False)
    # With units or pseudonyms: (rows,) the record whose values each shows, private as the matching.
    _records: NDArray[np.integer] | None = field(default=None, repr=False)

    def read_back(
        self,
        table: Path | pd.DataFrame,
        manifest: Path | dict[str, Any],
        original: str | Path | Any | None = None,
    ) -> None:
        """Refuse the release, in files or in memory, as :func:`read_back` does."""
        read_back(self.solution, table, manifest, original, self._records)

    @cached_property
    def table(self) -> pd.DataFrame:
        """The table as a data frame of pandas, whatever the kind of `frame`."""
        return as_pandas(self.frame)

    def write(
        self, path: str | Path, *, original: str | Path | Any | None = None
    ) -> tuple[Path, Path]:
        """Write table and manifest, read both back, verify them; return their paths.

        They appear whole and verified or not at all; the table is CSV, or Parquet or Excel by its
        ending. A warning says so if what lies there is a table with the manifest of another.
        `path`: of the table; the manifest lies beside it. `original`: file or frame to verify
        against; None means the table that was solved. Raises InputError if the folder is missing or
        may not be written to. Raises VerificationFailed if what was written does not survive its
        verification.
        """
        mismatch = cut_off(path)
        if mismatch is not None:
            warnings.warn(mismatch, stacklevel=2)
        with writing() as outputs:
            return self.stage(path, outputs, original=original)

    def stage(
        self, path: str | Path, outputs: Outputs, *, original: str | Path | Any | None = None
    ) -> tuple[Path, Path]:
        """Do the same with files that are put in place together with others.

        The manifest comes before the others and the table after them: whenever that is cut off, the
        table is not the one whose digest the manifest holds. `path, original`: as in :meth:`write`.
        `outputs`: no other file may be among them yet.
        """
        table = Path(path)
        refuse_ending(table, self.solution.problem.microdata)
        manifest = manifest_path(table)
        new_manifest = outputs.stage(manifest, public=True)
        new_table = outputs.stage(table, public=True, last=True)
        ending, form, frame = table.suffix.lower(), self.manifest["table"], self.table
        if ending in _TEXT and form["layout"] == "columns":
            mark = form.get("decimal", ".")
            ends = number_ends(frame, self.manifest["columns"])
            frame = frame.assign(**{name: as_texts(frame[name], mark) for name in ends})
        _write(frame, new_table, ending, form["separator"], form["encoding"])
        promised = self.manifest if self.verified else as_verified(self.manifest)
        promised = of_file(promised, new_table)
        text = json.dumps(promised, indent=2, allow_nan=False, ensure_ascii=False)
        new_manifest.write_text(f"{text}\n", encoding="utf-8")
        # Promised before it is done: without it nothing is put in place.
        self.read_back(new_table, new_manifest, original)
        return table, manifest

    def verify(self) -> Verification:
        """Read the release back and check it by code that had no part in making it."""
        microdata = self.solution.problem.microdata
        return verify(
            microdata.original, self.table, self.manifest, hierarchies=hierarchy_paths(microdata)
        )

    def risk(self, **asked: Any) -> DisclosureRisk:
        """Measure how easily persons are found in the table, before and after.

        `**asked`: see :func:`anonymip.risk`: `k`, `weights`, `population`, `draws`.
        """
        microdata = self.solution.problem.microdata
        trees = hierarchy_paths(microdata)
        return risk(
            microdata.original, self.table, manifest=self.manifest, hierarchies=trees, **asked
        )

    def __str__(self) -> str:
        return self.solution.sentence()

    def __repr__(self) -> str:
        return f"<Release: {self.solution.sentence()}>"

    def few_rows(self) -> list[tuple[str, list[str], list[str]]]:
        """Return name, values before and values after of each quasi-identifier, in six rows.

        Those before are rows of the original: they are for its owner alone.
        """
        solution, frame = self.solution, self.solution.problem.microdata.frame
        form = LEFT_OUT if self.manifest["left_out"]["suppressed"] else STARRED
        records = np.flatnonzero(published_records(solution, form))[:_FEW]
        return [
            (name, frame[name].iloc[records].map(str).tolist(), [*map(str, after[records])])
            for a, name in enumerate(solution.problem.microdata.names)
            for after in published_columns(solution, a, "cells").values()
        ]

    def _repr_html_(self) -> str:
        """Return the sentence about loss and gap, and six rows before and after."""
        solution = self.solution
        names, *sides = zip(*self.few_rows(), strict=True)
        heads = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in names * 2)
        rows = [
            "".join(f"<td>{html.escape(cell)}</td>" for cell in (*befores, *afters))
            for befores, afters in zip(*(zip(*side, strict=True) for side in sides), strict=True)
        ]
        span = f'<th scope="colgroup" colspan="{len(names)}">'
        return (
            f"<p>{html.escape(solution.sentence())}. {html.escape(gap_in_words(solution))}</p>"
            f"<table><caption>Quasi-identifiers of {len(rows)} records, before and after</caption>"
            f"<thead><tr>{span}before</th>{span}after</th></tr><tr>{heads}</tr></thead><tbody>"
            f"{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table>"
        )


def _write(
    frame: pd.DataFrame, path: Path | BytesIO, ending: str, separator: str, encoding: str
) -> None:
    """Write a table as the ending of its file says."""
    if ending in _PARQUET:
        _write_parquet(frame, path)
    elif ending in _EXCEL:
        write_workbook(frame, path)
    else:
        _write_csv(frame, path, separator, encoding)


def _write_csv(frame: pd.DataFrame, path: Path | BytesIO, separator: str, encoding: str) -> None:
    try:
        # pandas does not quote a carriage return by itself: every cell is, if one holds any.
        texts = frame.select_dtypes(exclude="number").astype(str)
        returns = any(texts[name].str.contains("\r", regex=False).any() for name in texts)
        frame.to_csv(
            path,
            index=False,
            sep=separator,
            encoding=encoding,
            lineterminator="\n",
            quoting=csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL,
        )
    except UnicodeError as error:
        # The error's own text quotes values.
        raise InputError(
            f"the release holds characters that the encoding {encoding} has none for",
            remedy="Name another encoding in the schema, or write Parquet",
        ) from error


def _write_parquet(frame: pd.DataFrame, path: Path | BytesIO) -> None:
    try:
        frame.to_parquet(path, index=False)
    except (ValueError, TypeError, OverflowError, NotImplementedError) as error:
        # The error's own text quotes values.
        raise InputError(
            f"the table cannot be written as Parquet ({type(error).__name__}): a column mixes "
            "types or holds numbers too large",
            remedy="Write CSV, or give each column one type",
        ) from error


def publish(
    solution: Solution,
    rng: np.random.Generator | None = None,
    *,
    layout: str = "cells",
    keep_order: bool = False,
    escape_formulas: bool = False,
    suppressed: str = "left-out",
    pseudonym_key: bytes | str | Path | None = None,
    by_content: bool = False,
) -> Release:
    """Return the release of a solution.

    Parameters
    ----------
    solution
        What to publish.
    rng
        Shuffles the rows, and draws the assignment along which a cover is published; None takes
        randomness from the operating system. A seeded generator is for tests: who knows the seed
        can undo the shuffle, and the assignment; for a cover this is a warning.
    layout
        ``"cells"``: a cell shows its range, ``[35..37]``. ``"columns"``: lower and upper ends
        stand in columns of their own, those of numbers as numbers: a star is then a missing one,
        in text files a star. Beside open groups (``"90+"``) all ends of a column are texts.
    keep_order
        Whether rows keep the order of the original. Then whoever knows that order knows which
        class each person is in. Of a cover only the quasi-identifiers keep it: row i shows what
        the set of record i is published with, but sensitive and kept values of any record of the
        set. The order reveals nothing of the assignment. The frame then keeps the labels of the
        original's rows as well; files have none.
    escape_formulas
        Whether cells that a spreadsheet would run as formulas get an apostrophe in front.
    suppressed
        What becomes of suppressed records. ``"left-out"``: they have no row, and their number is
        reported. ``"starred"``: their rows show stars, and their sensitive and kept values, so that
        they have to be at least k, or none, and of the diversity that is asked for.
    pseudonym_key
        A file, or 16 bytes or more, with which ids become pseudonyms: who has it can tell whose a
        pseudonym is, and the same key gives the same pseudonyms in another release. None makes a
        new one, which nobody keeps.
    by_content
        Whether the rows are sorted by what they show, in place of being shuffled: their order then
        says nothing that they do not say, and a solution has one release.

    Raises
    ------
    InputError
        If the layout is unknown or its column names are taken; if values are suppressed, a
        domain is not declared, and the loss would reveal how wide it is; if all records are left
        out, or starred ones are too few.
    NoSolution
        If no assignment of a cover is found that keeps the diversity.

    Notes
    -----
    In a class all rows look alike, and shuffling them hides whose values a row shows. The rows of
    a cover differ, and who knows the method can compute which record's set a row was made from.
    So the values of another record of the set are published, by an assignment drawn at random
    (Wong et al. [1]_, Section 4.2); see :func:`anonymip.graphs.draw_matching`.

    References
    ----------
    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010.
    """
    microdata = solution.problem.microdata
    refuse_layout(microdata, layout)
    refuse_choice(suppressed)
    key = read_key(pseudonym_key, microdata.pseudonyms)
    by_cells = isinstance(solution.assignment, Patterns | Levels)
    _refuse_revealing(revealing_columns(solution), "are", by_cells=by_cells)
    published = np.flatnonzero(published_records(solution, suppressed))
    is_seeded = rng is not None
    rng = np.random.default_rng() if rng is None else rng
    matching: NDArray[np.integer] | None = None
    if isinstance(solution.assignment, Cover):
        if is_seeded:
            warnings.warn(
                "the assignment of sensitive and kept values is drawn with the given generator: "
                "who has its seed can undo it. Leave rng out of what is published",
                stacklevel=2,
            )
        with announcing_compilation(lambda: kernels_left([solution.method])):
            kept, cover = published_cover(solution.assignment, suppressed)
            if solution.problem.diversity is None:
                matching = kept[draw_matching(cover, rng)]
            else:
                matching = kept[draw_diverse(solution.problem, cover, rng)]
    shown = published if matching is None else matching
    columns: dict[str, Any] = {}
    cells: list[NDArray[np.object_]] = []
    roles = {
        **dict.fromkeys(microdata.sensitive, "sensitive"),
        **dict.fromkeys(microdata.keep, "keep"),
    }
    positions = {attribute.name: a for a, attribute in enumerate(microdata.attributes)}
    described: list[dict[str, Any]] = []
    for name in map(str, microdata.frame.columns):
        if name in positions:
            a = positions[name]
            described.append(describe_attribute(microdata.attributes[a]))
            for header, column in published_columns(solution, a, layout).items():
                columns[header] = column[published]
                cells.append(columns[header])
        elif name in roles:
            described.append({"name": name, "role": roles[name]})
            # Without its labels, by which pandas lays columns side by side.
            column = microdata.frame[name].iloc[shown].reset_index(drop=True)
            columns[name] = untouched_column(column)
        elif name in microdata.pseudonyms:
            described.append({"name": name, "role": "pseudonym", "algorithm": ALGORITHM})
            ids = microdata.frame[name].iloc[shown].reset_index(drop=True)
            columns[name] = pseudonym_column(ids, microdata.table.missing, key)
    frame, records = pd.DataFrame(columns), shown
    if keep_order:
        frame.index = microdata.original.index[microdata.rows[published]]
    else:
        shuffled = by_content_order(frame) if by_content else rng.permutation(len(frame))
        frame, records = frame.iloc[shuffled].reset_index(drop=True), shown[shuffled]
    cautions = [] if solution.many_suppressed is None else [solution.many_suppressed]
    cautions += nearly_unique_columns(microdata) + persons_of_several_rows(microdata)
    cautions += starred_rows(solution, suppressed)
    homogeneous, linking = None, [columns[name] for name in microdata.pseudonyms]
    if matching is None:
        homogeneous, shared = cautions_of_classes(cells, solution.problem, published)
        cautions += shared
    cautions += linked_rows(linking, cells if matching is None else None, solution.problem)
    if escape_formulas:
        frame = with_apostrophes(frame)
    else:
        cautions += formula_cells(frame)
    for caution in cautions:
        warnings.warn(caution, ReleaseWarning, stacklevel=2)
    if layout == "columns":
        ends, mark = number_ends(frame, described), microdata.table.decimal
        numbers = {name: as_numbers(frame[name], mark, whole=w) for name, w in ends.items()}
        frame = frame.assign(**numbers)
    kind = microdata.kind
    return Release(
        frame if kind is None else kind.give_back(frame, tuple(roles)),
        make_manifest(
            solution,
            described,
            layout,
            keep_order,
            is_seeded=is_seeded,
            formulas_escaped=escape_formulas,
            suppressed=suppressed,
            homogeneous=homogeneous,
            weighted=weighted_gcp(solution, published, shown),
        ),
        solution,
        _matching=matching,
        _records=None if microdata.unit is None and not linking else records,
    )


def refuse_unpublishable(
    problem: Problem,
    *,
    layout: str = "cells",
    suppressed: str = "left-out",
    most_suppressed: int | float | None = None,
    path: Path | None = None,
) -> None:
    """Refuse before any work what no release of a problem could be published as.

    Arguments are as :func:`publish` and :func:`anonymip.anonymize` take them. `path`: where the
    table is to be written; None for nowhere.
    """
    microdata, recoding = problem.microdata, problem.recoding
    refuse_layout(microdata, layout)
    refuse_choice(suppressed)
    allowed_suppressed(problem, most_suppressed)
    if published_form(recoding) not in RECODINGS:
        raise InputError(
            f"recoding {recoding.name} does not say as what its releases are verified",
            remedy="Name a built-in recoding in its attribute form",
        )
    by_cells = published_form(recoding) in ("pattern", "full-domain")
    _refuse_revealing(columns_at_risk(problem), "may be", by_cells=by_cells)
    if path is not None:
        refuse_ending(path, microdata)
        _refuse_unwritable(path, microdata)


def _refuse_unwritable(path: Path, microdata: Microdata) -> None:
    """Refuse columns that a file cannot hold: tried with each of their values once."""
    columns: dict[str, pd.Series] = {}
    for name in (*microdata.sensitive, *microdata.keep):
        column = untouched_column(microdata.frame[name])
        if not pd.api.types.is_numeric_dtype(column):
            columns[name] = column.drop_duplicates()
    for attribute, level in zip(microdata.attributes, microdata.levels, strict=True):
        if attribute.hierarchy is not None:
            level = np.array(attribute.hierarchy.tree.labels, dtype=object)
        if not attribute.is_numeric:
            columns[attribute.name] = pd.Series(level, dtype=object)
    form, ending = microdata.table, path.suffix.lower()
    separator = form.separator.strip() or form.separator
    for name, column in columns.items():
        _write(column.to_frame(name), BytesIO(), ending, separator, form.encoding)


def _refuse_revealing(observed: Sequence[str], are: str, *, by_cells: bool) -> None:
    """Refuse suppressed values that the published loss would give away."""
    if not observed:
        return
    hidden, instead = ("records", "do not allow suppression")
    if by_cells:
        hidden, instead = ("values", "use the objective gcp or suppressions")
    raise InputError(
        f"{hidden} {are} suppressed, and the loss would reveal how far out they lie: the domain of "
        f"{', '.join(map(repr, observed))} is what was observed",
        remedy="Declare the domain in the schema ('anonymip inspect TABLE -o FILE.toml' writes "
        "that of numbers and dates, rounded), of codes the file of their hierarchy "
        f"('anonymip hierarchy'), or {instead}",
    )


def refuse_ending(path: Path, microdata: Microdata) -> None:
    """Refuse a file whose name says that it holds something else than what would be written."""
    ending = path.suffix.lower()
    if ending not in (*_TEXT, *_PARQUET, *_EXCEL):
        raise InputError(
            f"{path}: no release is written as {ending!r}",
            remedy=f"Use {', '.join(_TEXT[1:])} for text, {' or '.join(_PARQUET)} for Parquet, or "
            f"{_EXCEL[0]} for Excel",
        )
    if ending == ".tsv" and "\t" not in microdata.table.separator:
        raise InputError(
            f"{path}: the ending promises tabs, but the table has another separator",
            remedy="Name it .csv: a release has the separator of its table",
        )


def refuse_layout(microdata: Microdata, layout: str) -> None:
    """Refuse a layout that cannot be written, before any time is spent on solving."""
    if layout not in ("cells", "columns"):
        raise unknown_name("layout", layout, ("cells", "columns"))
    if layout == "cells":
        return
    taken = set(map(str, microdata.frame.columns))
    for attribute in microdata.attributes:
        ends = set(end_names(attribute)) if attribute.publish == "range" else set()
        if taken & ends:
            raise InputError(
                f"layout columns needs the column name {min(taken & ends)!r}, which is taken",
                remedy="Rename that column, or use layout cells",
            )


def what_is_gone(release: Release, *, show_names: bool = False) -> list[str]:
    """Return how many records and which columns of the original are not published.

    The number of suppressed records is reported wherever some may be suppressed, also if it is 0.
    `show_names`: whether columns without a role are named: a name that nobody declared may be a
    value.
    """
    gone, problem = release.manifest["left_out"], release.solution.problem
    lines = []
    if gone["missing"]:
        lines.append(f"{_are(gone['missing'], ' with missing values')} left out")
    lines += [
        f"{count} missing value{'s' if count > 1 else ''} of {name!r} count as a value of "
        f"{'their' if count > 1 else 'its'} own"
        for name, count in problem.microdata.kept_missing.items()
    ]
    if problem.may_suppress:
        starred = release.solution.assignment.suppressed - gone["suppressed"]
        lines.append(f"{_are(starred + gone['suppressed'])} suppressed{_fate(release, starred)}")
        lines += unused_limit(release.solution)
    if gone["columns"]:
        lines.append(f"dropped columns are not published: {', '.join(gone['columns'])}")
    if gone["undeclared_columns"]:
        names = (
            ", ".join(problem.microdata.undeclared) if show_names else gone["undeclared_columns"]
        )
        lines.append(f"columns without a role are not published: {names}")
    return lines


def _fate(release: Release, starred: int) -> str:
    if starred:
        return ", and published as rows of stars"
    if not release.manifest["left_out"]["suppressed"]:
        return ""
    price = release.solution.problem.suppression_price
    counts = "as a row of stars" if price is None else f"{price:g}"
    return f" and left out of the table; in the loss each counts {counts}"


def _are(count: int, what: str = "") -> str:
    return f"1 record{what} is" if count == 1 else f"{count} records{what} are"
