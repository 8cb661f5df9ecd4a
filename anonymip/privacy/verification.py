"""Independent verification that a release keeps what its manifest promises.

Nothing here is shared with the code that makes releases. Rows are numbered from 1 (the first row
of data); problems name columns and rows, never values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from anonymip.errors import InputError, gap_text
from anonymip.privacy.checks import (
    class_sizes,
    covers,
    loss_claims,
    mask_checks,
    promises,
    pseudonyms,
    truth,
    units,
)
from anonymip.privacy.graph.consistency import PublishedMatches
from anonymip.privacy.reading.hierarchies import Nodes, Paths
from anonymip.privacy.reading.keys import weights_of
from anonymip.privacy.reading.original import (
    Inputs,
    Original,
    domain_problems,
    read_inputs,
    schema_finding,
)
from anonymip.privacy.reading.published import (
    PublishedTable,
    baggage_problems,
    header_problems,
    parse_release,
)
from anonymip.privacy.reading.release_manifest import (
    COVERS,
    STARRED,
    UNSAID,
    Manifest,
    digest_finding,
)
from anonymip.privacy.reading.text_tables import (
    MalformedTable,
    TextTable,
    distinct,
    formula_problems,
    read_table,
    without_marks,
)


@dataclass(frozen=True)
class Verification:
    """What was found.

    Parameters
    ----------
    ok
        Whether there are no problems.
    recoding
        What the release claims to be: ``"classes"``, ``"freeform"``, or a weaker notion.
    k
        The claimed size of the smallest class; of a cover the claimed number of matches.
    k_reached
        The smallest number of rows that look alike, those of stars only included; None if the
        release could not be read. Of a cover the number of matches that every record keeps, as
        far as it was claimed: it may keep more.
    promise
        What k counts in a cover, with the k reached, or that it counts units in classes; None
        where it counts the rows of classes.
    classes
        Number of classes, without wholly suppressed rows; None for a cover.
    suppressed
        Number of rows whose quasi-identifiers are all suppressed.
    left_out
        Number of suppressed records that have no row, as the manifest claims.
    n, m
        Published rows and quasi-identifiers.
    objective_name, objective
        The loss that was asked for, and its value as the manifest claims it.
    ncp, gcp
        Loss of the published table: sum of the normalised penalties, and its mean per cell. A
        suppressed record without a row counts as a row of stars.
    bound, gap
        The manifest's bound, in units of ncp, and its relative distance to the recomputed ncp;
        None if the manifest has no bound or its objective is not the ncp.
    problems
        One sentence each.
    checks
        What was checked and holds, one sentence each.
    """

    ok: bool
    recoding: str
    k: int
    k_reached: int | None
    promise: str | None
    classes: int | None
    suppressed: int | None
    left_out: int
    n: int | None
    m: int
    objective_name: str
    objective: float
    ncp: float | None
    gcp: float | None
    bound: float | None
    gap: float | None
    problems: tuple[str, ...]
    checks: tuple[str, ...]

    def summary(self) -> str:
        """Return the text for a person, several lines."""
        lines = ["The release keeps its promises." if self.ok else "The release FAILS."]
        if self.n is not None:
            nothing = "not counted" if self.recoding in COVERS else "no class"
            reached = nothing if self.k_reached is None else f"k = {self.k_reached} reached"
            what = self.recoding if self.recoding in COVERS else f"{self.classes} classes"
            if self.recoding in STARRED:
                what = f"recoding {self.recoding}, {what}"
            lines.append(
                f"{self.n} rows, {self.m} quasi-identifiers, {what}, "
                f"{self.suppressed} rows suppressed, {self.left_out} suppressed records left out; "
                f"k = {self.k} claimed, {reached}"
            )
            if self.promise is not None:
                lines.append(self.promise)
        if self.gcp is not None:
            lines.append(self._loss_line())
        lines += [f"  PROBLEM: {problem}" for problem in self.problems]
        lines += [f"  {check}" for check in self.checks]
        return "\n".join(lines)

    __str__ = summary

    def to_dict(self) -> dict[str, Any]:
        """Return the same as an object for JSON."""
        told = asdict(self).items()
        return {key: list(value) if isinstance(value, tuple) else value for key, value in told}

    def _loss_line(self) -> str:
        line = f"loss {self.gcp:.6g} (ncp {self.ncp:.10g})"
        if not loss_claims.is_ncp(self.objective_name):
            line = f"{self.objective_name} {self.objective:.10g} claimed; gcp {self.gcp:.6g}"
        elif self.ncp and self.ok and abs(self.objective - self.ncp) > 1e-9 * self.ncp:
            priced = self.objective * (self.gcp or 0.0) / self.ncp
            line = f"loss {priced:.6g} with suppressed records at their price; as stars {line}"
        if self.bound is not None and self.ncp and self.gcp is not None:
            line += f"; bound {self.bound * self.gcp / self.ncp:.6g}"
        if self.gap is not None:
            line += f"; gap {gap_text(self.gap)}"
        return line


@dataclass
class _Findings:
    """What is checked, and what accumulates while the checks run."""

    manifest: Manifest
    hierarchies: Mapping[str, Nodes]
    records: Original
    k: int | None  # a k to insist on, beside the one that the manifest claims
    problems: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    published: PublishedTable | None = None
    ncp: float | None = None
    cover_reached: int | None = None

    def note(self, check: str, problems: Sequence[str] = ()) -> bool:
        """Record a check: its sentence if it holds, else its problems; returns which."""
        if not problems:
            self.checks.append(check)
        self.problems += problems
        return not problems


def verify(
    original: str | Path | Any,
    release: str | Path | Any,
    manifest: Mapping[str, Any] | str | Path | None = None,
    *,
    schema: str | Path | None = None,
    k: int | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    columns: Sequence[str] | None = None,
    hierarchies: Mapping[str, Paths] | None = None,
    sheet: str | int | None = None,
    pseudonym_key: bytes | str | Path | None = None,
) -> Verification:
    """Check a release against the original and against its manifest.

    Checked are: that the table is the file that the manifest was written for; the columns; the
    number of rows; the grammar and the domain of every cell; the
    size of every class, or the matches that every record keeps in a cover (k disjoint assignments
    in a freeform release); the mask of its stars, or the levels of its columns; the diversity and
    the caps that are promised; that every class holds k units, where k counts these; that the
    original records can be handed out one to one to published rows that contain them and show their
    sensitive and kept values; the loss; bound, gap and status.

    Parameters
    ----------
    original, release
        Path of a CSV or Parquet file, or a data frame.
    manifest
        The manifest, its path, or None: the file ``<release>.manifest.json``.
    schema
        Path of the original's schema (TOML): roles, kinds, domains and unit are then compared
        with it, and its domains are used for the loss.
    k
        A k to insist on, beside the one that the manifest claims.
    separator, encoding, decimal
        Of the original, if it is a CSV file, and of its numbers that are texts; default: the
        schema's, else those of the release.
    columns
        Column names of an original without header; default: the schema's.
    hierarchies
        By column, for each value its path to the root, or the file of the paths; default: the
        schema's. Hierarchical columns need one.
    sheet
        Of an original that is a workbook: its name, or its number from 1; default: the schema's,
        else the first.
    pseudonym_key
        The key of the pseudonyms, or its file: they are then computed again, and held to be
        published untouched. Without it as much is checked as the rows show.

    Returns
    -------
    Verification
        A release that fails is no exception: `ok` is False and `problems` says why.

    Raises
    ------
    InputError
        If a file is missing or unreadable, the manifest is malformed, a hierarchy is missing or
        no tree, or the original does not have the columns of the manifest or holds text in a
        numeric one.

    Notes
    -----
    Complexity: O(m n log n), and a matching between the row types of records and of rows, see
    :mod:`anonymip.privacy.graph.regularity`; for covers also what is said there of them.
    """
    if k is not None and (isinstance(k, bool) or k < 1):
        raise InputError(f"k is {k}", remedy="Give a whole number of at least 1")
    inputs = read_inputs(
        *(original, release, manifest, schema, separator, encoding, decimal, columns, sheet),
        hierarchies,
    )
    claims = inputs.manifest
    findings = _Findings(claims, inputs.hierarchies, inputs.records, k)
    _check_declarations(findings, inputs)
    findings.note(*digest_finding(release, claims.table.sha256))
    try:
        table = read_table(
            release, separator=claims.table.separator, encoding=claims.table.encoding
        )
    except MalformedTable as error:
        findings.note("The release is a table.", [f"The release is not a table: {error}."])
        return _result(findings)
    if claims.table.formulas_escaped:
        findings.note("No cell and no name of a column is a formula.", formula_problems(table))
        table = without_marks(table)
    _check_release(findings, table, inputs)
    if findings.published is not None:
        if claims.pseudonyms:
            _check_pseudonyms(findings, findings.published, pseudonym_key)
        if not claims.is_cover:
            _check_classes(findings, findings.published)
            _check_stars(findings, findings.published)
            if claims.unit is not None:
                _check_units(findings, findings.published)
        elif findings.published.n <= findings.records.n:
            _check_matches(findings, findings.published)
        if claims.left_out.suppressed:
            findings.note(
                f"Not checked: which {claims.left_out.suppressed} records were suppressed and left "
                f"out; who finds a person in no {'row' if claims.is_cover else 'class'} knows that "
                "she is among them."
            )
        _check_promises(findings, findings.published)
        _check_content(findings, findings.published)
    findings.note(
        "Bound, gap and status agree with each other and with the objective value.",
        loss_claims.optimality_problems(claims),
    )
    findings.note("Not checked: that the bound holds; that is for its proof to show.")
    return _result(findings)


def _check_declarations(findings: _Findings, inputs: Inputs) -> None:
    manifest = findings.manifest
    problems = []
    if manifest.k < 2:
        problems.append("The manifest claims a k below 2.")
    if manifest.has_seed:
        problems.append("The manifest contains a seed, which may undo the shuffle.")
    if manifest.unknown_keys:
        problems.append(f"The manifest has {manifest.unknown_keys} keys of no known meaning.")
    findings.note("The claimed k is at least 2, and the manifest reveals no seed.", problems)
    missing = " and no ".join(manifest.lacking)
    findings.note(
        "The manifest says how the release was made, and what was checked and assumed.",
        [f"Caveats are missing: the manifest has no {missing}."] if missing else (),
    )
    if manifest.unsaid:
        lacking = " and no ".join(manifest.unsaid)
        read_as = " and ".join(UNSAID[key] for key in manifest.unsaid)
        findings.note(f"Not said: the manifest has no {lacking}: {read_as}.")
    findings.note(*schema_finding(manifest, inputs.schema, inputs.records))


def _check_release(findings: _Findings, table: TextTable, inputs: Inputs) -> None:
    """Columns, number of rows, grammar; leaves the published table in the findings."""
    manifest, source, records = inputs.manifest, inputs.source, inputs.records
    declared = {*source.columns, *(() if inputs.schema is None else inputs.schema.roles)}
    if not findings.note(
        "The columns are those of the manifest and no others.",
        header_problems(table, manifest, declared),
    ):
        return
    labels = None
    if manifest.order == "kept" and source.labels is not None:
        labels = source.labels[records.rows]
    findings.note("The release carries nothing beside its table.", baggage_problems(table, labels))
    findings.note(
        f"There is one published row per original record{class_sizes.but_for(manifest)}.",
        class_sizes.count_problems(table, manifest, records),
    )
    published, problems = parse_release(table, manifest, findings.hierarchies)
    findings.note("Every cell follows the grammar.", problems)
    if table.rows:
        findings.published = published


def _check_classes(findings: _Findings, published: PublishedTable) -> None:
    manifest = findings.manifest
    claims = {manifest.k, findings.k or manifest.k}
    sizes = class_sizes.ClassSizes.of(published, manifest)
    findings.note(
        "Every class has at least k rows, and so have rows of stars only; suppressed rows are "
        "counted.",
        [*sizes.problems(claims), *class_sizes.suppressed_problems(published, manifest)],
    )
    if sizes.hidden >= max(claims):
        findings.note(
            f"Not avoided: who finds a person in no class knows that one of the {sizes.hidden} "
            "rows of stars only is hers."
        )
    # Classes that share a sensitive value k does not forbid.
    columns = {name: published.untouched[name] for name in manifest.sensitive}
    if columns:
        findings.note(
            *class_sizes.homogeneous_finding(published.classes(), columns, manifest.homogeneous)
        )


def _check_units(findings: _Findings, published: PublishedTable) -> None:
    """Whether every class holds k units, which the original has to show."""
    manifest, records = findings.manifest, findings.records
    claimed = max(manifest.k, findings.k or 0)
    unit = repr(manifest.unit)
    shown = published.pseudonyms.get(str(manifest.unit))
    if shown is not None:
        counts = units.units_by_class(published.classes(), distinct(shown.texts)[1])
        findings.note(
            f"Every class holds at least k pseudonyms of the units {unit}.",
            units.few_units(counts, claimed, str(manifest.unit)),
        )
        return
    if records.units is None:
        missing = (
            f"The original has no column {unit}, whose values k counts: that every class holds "
            f"{claimed} of them cannot be checked. Give the original with this column."
        )
        findings.note("", [missing])
        return
    in_order = manifest.order == "kept"
    problems = units.unit_problems(
        published, records, claimed, name=str(manifest.unit), in_order=in_order
    )
    if problems is None:
        findings.note(
            f"Not checked: that every class holds {claimed} units of {unit}: too many records fit "
            "into too many classes."
        )
    elif in_order and published.n == records.n:
        findings.note(f"Every class holds at least k units of {unit}.", problems)
    else:
        findings.note(
            f"The original records can be handed out to the rows so that every class holds at "
            f"least k units of {unit}; which of them it was made of, shuffled rows do not show.",
            problems,
        )


def _check_pseudonyms(
    findings: _Findings, published: PublishedTable, key: bytes | str | Path | None
) -> None:
    """Hold pseudonyms against ids; with their key both are untouched columns from here on."""
    records = findings.records
    in_order = findings.manifest.order == "kept" and not findings.manifest.is_cover
    findings.note(
        *pseudonyms.finding(published, records, in_order=in_order, by_key=key is not None)
    )
    if key is not None:
        untouched = {**published.untouched, **published.pseudonyms}
        findings.published = replace(published, untouched=untouched)
        by_key = {**records.untouched, **pseudonyms.of_key(records.ids, key)}
        findings.records = replace(records, untouched=by_key)


def _check_stars(findings: _Findings, published: PublishedTable) -> None:
    """Mask or levels, if the manifest declares any."""
    manifest = findings.manifest
    exempt = np.zeros(published.n, np.bool_)
    if not manifest.stars_are_class:
        exempt |= published.suppressed.all(axis=1)
    if manifest.mask is not None:
        findings.note("Every cell is exact or a star.", mask_checks.inexact_problems(published))
        once = ", and each serves one row only" if manifest.mask.single_use else ""
        findings.note(
            f"The stars of every row are a pattern of the mask{once}.",
            mask_checks.mask_problems(published, manifest.mask, exempt),
        )
    if manifest.levels is not None:
        how = manifest.levels, findings.hierarchies, exempt
        findings.note(
            "Every cell is on the level of its column.",
            mask_checks.level_problems(published, *how)
            or mask_checks.recoded_problems(published, findings.records, *how),
        )


def _check_matches(findings: _Findings, published: PublishedTable) -> None:
    manifest, records = findings.manifest, findings.records
    claims = {max(1, manifest.k), findings.k or max(1, manifest.k)}
    left_out = records.n - published.n
    if left_out:
        found = covers.check_cover_of_some(records, published, claims)
    else:
        graph = PublishedMatches(records, published)
        found = covers.check_cover(records, graph, manifest, claims)
    findings.cover_reached = found.reached
    kept = covers.promise(manifest, f"k = {max(claims)}")
    if not found.decided:
        kept = f"every row keeps k = {max(claims)} records, in as many disjoint assignments"
    kept += f", but for {left_out} that are left out" if left_out and found.decided else ""
    findings.note(f"{kept[0].upper()}{kept[1:]}.", found.problems)
    if not found.decided:
        findings.note(
            f"Not checked: that one set of {left_out} records can be left out of all of these: too "
            "many records fit into too many rows."
        )
    findings.note(
        "Suppressed rows are counted.", class_sizes.suppressed_problems(published, manifest)
    )


def _check_promises(findings: _Findings, published: PublishedTable) -> None:
    """Diversity and limits, if the manifest promises any."""
    manifest = findings.manifest
    if manifest.diversity is not None:
        asked = published, findings.records, manifest.diversity, manifest.sensitive
        if not manifest.is_cover:
            findings.note(
                "Every class has the promised diversity of sensitive values.",
                promises.diversity_problems(*asked),
            )
        elif published.n == findings.records.n:
            findings.note(
                "The rows that can be a record show sensitive values of the promised diversity.",
                covers.cover_diversity_problems(*asked, manifest.k),
            )
        else:
            findings.note(
                "", ["A diversity is promised of a cover that leaves records out: none is known."]
            )
    if any(limit.most is not None for limit in manifest.limits):
        findings.note(
            "No cell exceeds its cap.",
            promises.cap_problems(published, manifest.limits, findings.hierarchies),
        )
    apart = sorted({repr(limit.attribute) for limit in manifest.limits if limit.most is None})
    if apart:
        findings.note(
            f"Not checked: that values of {', '.join(apart)} stay apart, since the manifest does "
            "not name them."
        )


def _check_content(findings: _Findings, published: PublishedTable) -> None:
    manifest, records = findings.manifest, findings.records
    findings.note(
        "Original values and published cells lie in the domains.",
        [*domain_problems(records), *truth.range_problems(published, records)],
    )
    if published.n + manifest.left_out.suppressed == records.n:
        each = "Every published row contains an original record of its own and shows its "
        if published.n == records.n:
            each = "Every original record has a published row of its own that contains it and "
            each += "shows its "
        findings.note(
            f"{each}sensitive and kept values.",
            truth.truth_problems(
                published, records, in_order=manifest.order == "kept", is_cover=manifest.is_cover
            ),
        )
    left_out = manifest.left_out.suppressed
    findings.ncp = loss_claims.normalised_penalty(published, records, left_out)
    as_stars = "; records left out count as rows of stars" if left_out else ""
    findings.note(
        f"The loss (ncp and gcp) was computed again from the published table{as_stars}.",
        loss_claims.loss_problems(manifest, findings.ncp, (published.n + left_out) * published.m),
    )
    if manifest.loss.weights is not None:
        name = manifest.loss.weights
        weights = weights_of(published.untouched[name], name, manifest.table.decimal)
        findings.note(
            f"The loss by the weights of {name!r} was computed again from the published table.",
            loss_claims.weighted_problems(manifest, published, records, weights),
        )
    if manifest.loss.star_costs is not None:
        findings.note(
            "The objective value was computed again from the cells that are not exact.",
            loss_claims.star_cost_problems(manifest, manifest.loss.star_costs, published, records),
        )
    elif not loss_claims.is_ncp(manifest.loss.name):
        name = manifest.loss.name
        findings.note(
            f"Not checked: the objective value of the loss {name!r}, which is not the ncp."
        )


def _result(findings: _Findings) -> Verification:
    manifest, published, ncp = findings.manifest, findings.published, findings.ncp
    m, left_out = len(manifest.quasi_identifiers), manifest.left_out.suppressed
    sizes = None if published is None else class_sizes.ClassSizes.of(published, manifest)
    # Of an objective whose value is the ncp, which the bound bounds too.
    is_ncp = loss_claims.is_ncp(manifest.loss.name) and manifest.loss.suppression_price is None
    bound = manifest.loss.bound if is_ncp else None
    reached, classes, promise = findings.cover_reached, None, None
    if sizes is not None and not manifest.is_cover:
        reached, classes = sizes.smallest, len(sizes.sizes)
    if manifest.unit is not None:
        promise = f"k counts units (column {manifest.unit!r}), k reached counts rows"
    elif manifest.is_cover and reached is not None:
        promise = covers.promise(manifest, reached)
    return Verification(
        ok=not findings.problems,
        recoding=manifest.recoding,
        k=manifest.k,
        k_reached=reached,
        promise=promise,
        classes=classes,
        suppressed=None if sizes is None else sizes.starred,
        left_out=left_out,
        n=None if published is None else published.n,
        m=m,
        objective_name=manifest.loss.name,
        objective=manifest.loss.objective,
        ncp=ncp,
        gcp=None if ncp is None or published is None else ncp / ((published.n + left_out) * m),
        bound=bound,
        gap=None if ncp is None else loss_claims.relative_gap(ncp, bound),
        problems=tuple(findings.problems),
        checks=tuple(findings.checks),
    )
