"""The same through the command line, in this process: exit codes, files, messages."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import random
import tempfile
from fractions import Fraction
from pathlib import Path

from anonymip import METHODS
from anonymip.cli.app import run
from tests.fuzzing.judge.asked import COVERS, Asked
from tests.fuzzing.judge.releases import differs, release_problems
from tests.fuzzing.judge.table import MISSING, Column
from tests.fuzzing.package import attribute_of
from tests.fuzzing.solving import Findings

#: Losses that the command line knows by name.
_NAMED = (
    *("gcp", "leaf-loss", "set-gcp", "liang-gcp", "weighted-loss", "weighted-loss-binary"),
    *("hierarchy-loss", "bottleneck-gcp", "sse"),
)

#: Seconds for a command, which a busy machine with an empty cache does not need.
_LIMIT = "120"


def _text(value: object) -> str:
    if isinstance(value, float):
        return repr(value).removesuffix(".0") if value == int(value) else repr(value)
    return str(value)


def write_table(folder: Path, asked: Asked) -> tuple[Path, Path]:
    """Write a table and its schema; return both paths."""
    table, data, schema = asked.table, folder / "people.csv", folder / "schema.toml"
    others = (*table.sensitive, *table.kept)
    with open(data, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([c.name for c in table.columns] + [name for name, _ in others])
        for record in range(table.n):
            writer.writerow(
                [
                    "NA" if column.values[record] == MISSING else _text(column.told[record])
                    for column in table.columns
                ]
                + [values[record] for _, values in others]
            )
    lines = [line for column in table.columns for line in _section(folder, column)]
    names = [name for name, _ in table.sensitive]
    lines += ["[table]", 'missing = ["", "NA"]']
    if asked.rules.unit:
        lines.append(f"unit = {json.dumps(names.pop(0))}")
    lines.append(f"sensitive = {json.dumps(names)}")
    lines += [f"keep = {json.dumps([name for name, _ in table.kept])}", *_mask(asked)]
    schema.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return data, schema


def _section(folder: Path, column: Column) -> list[str]:
    lines = [f"[attributes.{column.name}]", f'kind = "{column.kind}"']
    missing = ['missing = "own"'] * column.misses
    if column.scale is not None:
        return [lines[0], *_scale(column), f"weight = {column.weight!r}", *missing]
    if column.domain is not None:
        numeric = column.kind == "numeric"
        given = [float(one) for one in column.domain] if numeric else list(column.domain)
        lines.append(f"domain = {json.dumps(given, ensure_ascii=False)}")
    if column.kind == "numeric":
        lines.append(f"integer = {json.dumps(column.integer)}")
        lines.append(f'publish = "{column.publish}"')
    lines.append(f"weight = {column.weight!r}")
    if column.paths:
        file = folder / f"{column.name}.paths"
        file.write_text("".join(";".join(path) + "\n" for path in column.paths), encoding="utf-8")
        lines.append(f'hierarchy = "{file.name}"')
    return [*lines, *missing]


def _scale(column: Column) -> list[str]:
    scale = attribute_of(column)
    given = {"kind": scale.kind, "publish": scale.publish, **scale.scaling}
    if scale.kind == "numeric":
        given["integer"] = scale.integer
    return [f"{name} = {json.dumps(one)}" for name, one in given.items() if one is not None]


def _mask(asked: Asked) -> list[str]:
    mask, names = asked.mask, [column.name for column in asked.table.columns]
    if asked.recoding not in ("pattern", "pattern-levels"):
        return []

    def named(groups: tuple[tuple[int, ...], ...]) -> str:
        return json.dumps([[names[a] for a in group] for group in groups])

    lines = ["[mask]", f"allow_all_stars = {json.dumps(mask.allow_all_stars)}"]
    lines.append(f"single_use = {json.dumps(asked.single_use)}")
    if mask.suppress_at_most is not None:
        lines.append(f"suppress_at_most = {mask.suppress_at_most}")
    if mask.never:
        lines.append(f"never = {json.dumps([names[a] for a in mask.never])}")
    for rule in ("together", "at_most_one"):
        if getattr(mask, rule):
            lines.append(f"{rule} = {named(getattr(mask, rule))}")
    if mask.patterns is not None:
        lines.append(f"patterns = {named(mask.patterns)}")
    return lines


def arguments_of(asked: Asked, rng: random.Random) -> list[str]:
    """Return the options that ask for a problem."""
    rules, names = asked.rules, [column.name for column in asked.table.columns]
    given = ["-k", str(asked.k), "--recoding", asked.recoding]
    if asked.loss.name == "suppressions":
        for name, cost in zip(names, asked.loss.costs, strict=True):
            given += ["--suppression-cost", f"{name}={cost!r}"]
    else:
        given += ["--objective", asked.loss.name]
    if asked.suppression:
        given.append("--suppression")
    if asked.most_suppressed is not None:
        given += ["--most-suppressed", str(asked.most_suppressed)]
    if rules.l > 1:
        given += ["--l-diversity", repr(rules.l)]
    if rules.distinct > 1:
        given += ["--distinct-diversity", str(rules.distinct)]
    if rules.t is not None:
        given += ["--t-closeness", repr(rules.t)]
    if rules.ordered and rules.t is not None:
        given.append("--ordered-closeness")
    for a, most in rules.caps:
        given += ["--cap", f"{names[a]}={most!r}"]
    for a, one, two in rules.apart:
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow([_text(one), _text(two)])
        given += ["--apart", f"{names[a]}={line.getvalue()}"]
    if rng.random() < 0.1:
        given += ["--solver", "cbc"]
    return given


def call(found: Findings, what: str, arguments: list[str]) -> tuple[int, str]:
    """Return the exit code of a command and what it says; an internal error is a fault."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = run(arguments)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        found.fault(f"{what}: {type(error).__name__} leaves the command line: {error}")
        return 4, said.getvalue()
    text = said.getvalue()
    if code not in (0, 1, 2, 3) or "please report" in text.lower():
        found.fault(f"{what}: exit {code}: {text.strip()[-300:]}")
    return code, text


def run_commands(found: Findings, asked: Asked, rng: random.Random) -> None:
    """Anonymize, verify and bound a table through the command line, and judge the files."""
    if asked.loss.name not in (*_NAMED, "suppressions"):
        return
    known, optimum = (False, None) if asked.table.n > 7 else asked.optimum()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, schema = write_table(folder, asked)
        given = [str(data), "--schema", str(schema), *arguments_of(asked, rng)]
        release, answers = folder / "release.csv", folder / "answers.json"
        outputs = ["-o", str(release), "--json", str(answers), "--time-limit", _LIMIT]
        if asked.suppression and rng.random() < 0.3:
            outputs.append("--publish-suppressed")
        if asked.suppression and asked.most_suppressed is None:
            # As many as the judge lets go: most of a small table is more than one in twenty.
            outputs += ["--most-suppressed", str(asked.table.n)]
        if rng.random() < 0.2:
            outputs += ["--report", str(folder / "report.html")]
        found.solves += 1
        code, text = call(found, "anonymize", ["anonymize", *given, *outputs])
        if code == 2:
            found.refusals["anonymize: " + text.strip().splitlines()[-1][:100]] += 1
        if code == 1:
            found.fault(f"anonymize: exit 1: {text.strip()[-300:]}")
        # The assignment of a cover may not be found that keeps a diversity.
        if (
            code == 3
            and optimum is not None
            and not (asked.recoding in COVERS and asked.rules.diverse)
        ):
            found.fault(f"anonymize: exit 3, the judge has {float(optimum)!r}")
        if code == 0:
            _judge_files(found, asked, release, answers, optimum if known else None)
            check = ["verify", str(data), str(release), "--schema", str(schema)]
            code, text = call(found, "verify", check)
            if code != 0:
                found.fault(f"verify: exit {code} of an honest release: {text.strip()[-300:]}")
            _tamper(found, asked, release, check, rng)
        if rng.random() < 0.4:
            _other_commands(found, asked, given, folder, rng)
        if rng.random() < 0.3:
            _bound(found, given, answers, optimum if known else None)


def _other_commands(
    found: Findings, asked: Asked, given: list[str], folder: Path, rng: random.Random
) -> None:
    """Run a command whose answers are not judged: it must end as it may, and say so in words."""
    outputs = ["--json", str(folder / "other.json")]
    command = rng.choice(["solve", "compare", "export", "parquet"])
    if command == "solve":
        method = rng.choice(sorted(METHODS))
        limit = rng.choice(["20", "0.001"])
        call(found, "solve", ["solve", *given, *outputs, "--method", method, "--time-limit", limit])
        found.solves += 1
    elif command == "compare":
        outputs += ["--markdown", str(folder / "table.md"), "--time-limit", _LIMIT]
        call(found, "compare", ["compare", *given, *outputs, *rng.choice([[], ["--exact"]])])
        found.solves += 1
    elif command == "export":
        call(found, "export", ["export", *given, *outputs, "-o", str(folder / "model.lp")])
    else:
        release = folder / "release.parquet"
        code, _ = call(found, "parquet", ["anonymize", *given, "-o", str(release)])
        found.solves += 1
        if code == 0:
            code, text = call(found, "verify", ["verify", given[0], str(release), *given[1:3]])
            if code != 0:
                found.fault(f"verify: exit {code} of a Parquet file: {text.strip()[-300:]}")


def _bound(found: Findings, given: list[str], answers: Path, optimum: Fraction | None) -> None:
    code, _ = call(found, "bound", ["bound", *given, "--json", str(answers)])
    if code == 0 and optimum is not None:
        bound = json.loads(answers.read_text(encoding="utf-8"))[0]["bound"]
        if bound is not None and Fraction(bound) > optimum * (1 + Fraction(1, 10**9)):
            found.fault(f"bound: {bound!r} above the optimum {float(optimum)!r}")


def _judge_files(
    found: Findings, asked: Asked, release: Path, answers: Path, optimum: Fraction | None
) -> None:
    manifest = release.with_name(release.name + ".manifest.json")
    for problem in release_problems(asked, release, manifest):
        found.fault(f"anonymize: the judge says: {problem}")
    judge_answers(found, answers, optimum)


def judge_answers(found: Findings, answers: Path, optimum: Fraction | None) -> None:
    """Compare loss, bound and status in an answer with the optimum, where it is known."""
    answer = json.loads(answers.read_text(encoding="utf-8"))[0]
    if optimum is None:
        return
    bound = answer["bound"]
    if bound is not None and Fraction(bound) > optimum * (1 + Fraction(1, 10**9)):
        found.fault(f"anonymize: bound {bound!r} above the optimum {float(optimum)!r}")
    claimed = Fraction(answer["objective"])
    if answer["status"] == "optimal" and claimed - optimum > optimum * Fraction(1, 10**6):
        found.fault(f"anonymize: optimal at {float(claimed)!r}, the optimum is {float(optimum)!r}")
    if claimed < optimum and differs(float(claimed), optimum):
        found.fault(f"anonymize: loss {float(claimed)!r} below the optimum {float(optimum)!r}")


def _tamper(
    found: Findings, asked: Asked, release: Path, check: list[str], rng: random.Random
) -> None:
    """Exchange two cells of a release; the verifier must see what the judge sees."""
    with open(release, encoding="utf-8", newline="") as stream:
        lines = list(csv.reader(stream))
    if len(lines) < 3:
        return
    one, other = rng.sample(range(1, len(lines)), 2)
    at = rng.randrange(len(lines[0]))
    if lines[one][at] == lines[other][at]:
        return
    lines[one][at] = lines[other][at]
    with open(release, "w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(lines)
    wrong = release_problems(asked, release, release.with_name(release.name + ".manifest.json"))
    code, text = call(found, "verify tampered", check)
    if wrong and code not in (1, 2):
        found.fault(f"verify: exit {code} of a tampered release: {wrong[0]}; {text.strip()[-200:]}")
