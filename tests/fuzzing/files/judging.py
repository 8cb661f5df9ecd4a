"""Run the command that reads a damaged file, and judge how it ends and what it leaves."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import random
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from anonymip.certificates import check as stand_alone
from tests.fuzzing.command_line import call, judge_answers
from tests.fuzzing.files.formats import FORMATS, Case, Unreadable
from tests.fuzzing.files.mutations import CANARY
from tests.fuzzing.judge.asked import COVERS, Asked
from tests.fuzzing.judge.releases import Malformed, release_problems
from tests.fuzzing.judge.rules import Rules
from tests.fuzzing.solving import Findings

#: Exit codes that a damaged file may bring, by command; 0: it still holds.
_CODES = {"verify": (0, 1, 2), "check-certificate": (0, 1, 2)}
_OLD = b"what was here before\n"


def run_file_case(
    seed: int, index: int, only: str | None = None, show: Callable[[str], None] | None = None
) -> Findings:
    """Return what a damaged file brought; one file counts as one solve.

    `seed, index`: they determine the case. `only`: the format; None draws one. `show`: gets the
    command, the damaged file and what the command says.
    """
    rng = random.Random(f"file {seed}:{index}")
    names = list(FORMATS)
    drawn = rng.choices(names, [share for _, share in FORMATS.values()])[0]
    name = drawn if only is None else only
    found = Findings(name)
    before = tempfile.tempdir
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as place:
        warnings.simplefilter("ignore")
        folder, scratch = Path(place) / "desk", Path(place) / "scratch"
        folder.mkdir()
        scratch.mkdir()
        tempfile.tempdir = str(scratch)
        try:
            case = _draw(rng, name, folder, found)
            if case is not None:
                found.solves += 1
                found.attempt("judge", lambda: _run(found, case, folder, scratch, rng, show))
        finally:
            tempfile.tempdir = before
    return found


def _draw(rng: random.Random, name: str, folder: Path, found: Findings) -> Case | None:
    """Return a case of a format; not every problem has the release that a file is made of."""
    for attempt in range(50):
        own = folder / f"attempt{attempt}"
        own.mkdir()
        case = FORMATS[name][0](rng, own, found)
        if case is not None:
            return case
    found.fault(f"{name}: no problem of fifty has a valid file")
    return None


def _state(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _run(
    found: Findings,
    case: Case,
    folder: Path,
    scratch: Path,
    rng: random.Random,
    show: Callable[[str], None] | None,
) -> None:
    if rng.random() < 0.4:
        # What lies there already must stay, unless it is replaced by something whole.
        for output in case.outputs:
            if not output.exists() and "checkpoint" not in output.name:
                output.write_bytes(_OLD)
    before = _state(folder)
    command = case.arguments[0]
    what = f"{case.format}, {command}"
    code, text = call(found, what, case.arguments)
    after = _state(folder)
    if show is not None:
        show(f"{case.asked}\nanonymip {' '.join(case.arguments)}")
        show(f"{case.file.name}: {before[case.file][:2_000]!r}\nexit {code}: {text[-2_000:]}")
    # That an internal error is none of them, the call has noted.
    if code not in _CODES.get(command, (0, 2, 3)) and code != 4:
        found.fault(f"{what}: exit {code}: {text.strip()[-300:]}")
    if code == 2:
        found.refusals[f"{what}: {_shape(text)}"] += 1
    if code == 3 and not _may_be_unsolvable(case):
        found.fault(f"{what}: exit 3: {text.strip()[-300:]}")
    _judge_words(found, what, case, code, text, before[case.file])
    _judge_folder(found, what, case, code, before, after)
    if any(scratch.iterdir()):
        found.fault(f"{what}: leaves {sorted(path.name for path in scratch.iterdir())}")
    if code != 0:
        return
    if command == "anonymize":
        _judge_release(found, what, case)
    elif command == "verify":
        _judge_verified(found, what, case)
    elif command == "check-certificate":
        _judge_certificate(found, what, case)


def _shape(text: str) -> str:
    said = text.rpartition("error: ")[2].strip().replace("\n", " ")
    return re.sub(r"\d+", "#", re.sub(r"\S*/", "", said))[:110]


def _may_be_unsolvable(case: Case) -> bool:
    """Return whether there may be no release: what a damaged file asks for is not always known.

    Nor is there one where more records would be suppressed than the command asks for.
    """
    if case.asked.suppression:
        return True
    if case.reread is None:
        return case.format in ("parquet", "schema", "hierarchy", "checkpoint")
    try:
        asked = case.reread()
    except Unreadable:
        return False
    if asked.table.n > 7 or (asked.recoding in COVERS and asked.rules.diverse):
        return True
    return asked.optimum()[1] is None


def _judge_words(
    found: Findings, what: str, case: Case, code: int, text: str, content: bytes
) -> None:
    """Look for tracebacks, sequences that terminals obey, values, and failures without a word."""
    if "Traceback" in text:
        found.fault(f"{what}: a traceback: {text.strip()[-300:]}")
    if any(sign in text for sign in ("\x1b", "\x9b", "\x00")):
        found.fault(f"{what}: a sequence that a terminal obeys: {text.strip()[-200:]!r}")
    if code == 2 and not ("error: " in text or "Usage: " in text):
        found.fault(f"{what}: exit 2 without a word: {text.strip()[-200:]!r}")
    # The name of a column is no value: in a damaged table it may be one.
    header = content.partition(b"\n")[0]
    is_table = case.format == "csv" and CANARY.encode() not in header
    if is_table and CANARY in text:
        found.fault(f"{what}: a message tells a value: {text.strip()[-300:]!r}")


def _judge_folder(
    found: Findings,
    what: str,
    case: Case,
    code: int,
    before: dict[Path, bytes],
    after: dict[Path, bytes],
) -> None:
    """Look whether inputs stay, outputs come whole or not at all, and nothing else is left."""
    changed = [path for path in {*before, *after} if before.get(path) != after.get(path)]
    allowed = case.outputs if code == 0 or case.arguments[0] == "verify" else []
    # A run that ended early may be gone on with; what it was to go on from is kept where it failed.
    strange = [path for path in changed if path not in allowed]
    if strange:
        names = ", ".join(sorted(path.name for path in strange))
        found.fault(f"{what}: exit {code} changes, removes or leaves {names}")


def _rows(path: Path) -> list[list[str]]:
    """Return the rows of a release, and its header as the first of them."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        columns = [[str(value) for value in column] for column in table.to_pydict().values()]
        return [list(table.column_names), *map(list, zip(*columns, strict=True))]
    with open(path, encoding="utf-8", newline="") as stream:
        return [line for line in csv.reader(stream) if line]


def _judge_release(found: Findings, what: str, case: Case) -> None:
    """Verify the release by the package's verifier, and by the judge as far as it can read."""
    release, schema = case.outputs[0], case.arguments[3]
    manifest = case.outputs[1]
    verify = ["verify", case.arguments[1], str(release), "--schema", schema]
    code, text = call(found, f"{what}: verify", verify)
    if code != 0:
        found.fault(f"{what}: verify: exit {code} of an honest release: {text.strip()[-300:]}")
    content = json.loads(manifest.read_text(encoding="utf-8"))
    for wrong in _class_problems(case.asked, content, release):
        found.fault(f"{what}: the judge says: {wrong}")
    if case.reread is None and case.format != "checkpoint":
        return
    try:
        asked = case.asked if case.reread is None else case.reread()
    except Unreadable as error:
        found.fault(f"{what}: published, although the judge finds: {error}")
        return
    if release.suffix == ".csv" and "formulas" not in content["table"]:
        for wrong in release_problems(asked, release, manifest):
            found.fault(f"{what}: the judge says: {wrong}")
    if asked.table.n <= 7:
        judge_answers(found, case.outputs[2], asked.optimum()[1])


def _class_problems(asked: Asked, content: dict[str, Any], release: Path) -> list[str]:
    """Return what the rows alone show: fewer than k that are alike."""
    names, *rows = _rows(release)
    if content["k"] != asked.k:
        return [f"k is {content['k']} in the manifest, {asked.k} was asked for"]
    own = [c["name"] for c in content["columns"] if c["role"] == "quasi-identifier"]
    if content["table"]["layout"] == "columns":
        ends = {f"{name}{end}" for name in own for end in ("_lower", "_upper")}
        own = [name for name in names if name in own or name in ends]
    if asked.recoding in COVERS:
        return []
    at = [names.index(name) for name in own]
    alike = Counter(tuple(row[one] for one in at) for row in rows)
    return [f"{count} rows look alike" for count in alike.values() if count < asked.k]


def _judge_verified(found: Findings, what: str, case: Case) -> None:
    """Let the judge look at what `verify` passes, with the k that the manifest claims."""
    data, release = Path(case.arguments[1]), Path(case.arguments[2])
    manifest = release.with_name(release.name + ".manifest.json")
    try:
        asked = case.asked if case.reread is None else case.reread()
        content = json.loads(manifest.read_text(encoding="utf-8-sig"))
        claimed = content["k"]
        if type(claimed) is not int or not 2 <= claimed <= asked.table.n:
            found.fault(f"{what}: passed with a k of {claimed!r}")
            return
        if "left_out" not in content:
            # As before 0.7: every suppressed record has its row.
            content["left_out"] = {"suppressed": 0}
        judged = manifest.with_name("judged.json")
        judged.write_text(json.dumps(content), encoding="utf-8")
        wrong = release_problems(replace(asked, k=claimed), release, judged)
    except Unreadable as error:
        wrong = [f"{data.name}: {error}"]
    except (Malformed, KeyError, TypeError, ValueError, AttributeError) as error:
        wrong = [f"{type(error).__name__}: {error}"]
    for one in wrong:
        found.fault(f"{what}: passed, although the judge says: {one}")


def _judge_certificate(found: Findings, what: str, case: Case) -> None:
    """Let ``check.py`` see what is accepted, and the judge where the problem is the same."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = stand_alone.main(str(case.file))
    if code != 0:
        found.fault(f"{what}: check.py says {said.getvalue().strip()}")
        return
    content = json.loads(case.file.read_text(encoding="utf-8"))
    asked = case.asked
    if asked.rules != Rules() or content["problem"]["k"] != asked.k:
        return
    if content["problem"]["recoding"] != asked.recoding:
        return
    known, optimum = asked.optimum()
    if (
        known
        and optimum is not None
        and Fraction(content["bound"]) > optimum * (1 + Fraction(1, 10**9))
    ):
        found.fault(f"{what}: bound {content['bound']} above the optimum {float(optimum)!r}")
