"""One generator a format: a valid file, damaged, and the command that reads it.

Each begins with a problem of the fuzzer of solves, writes what the command line needs for it, and
damages one file. What a damaged table says is read again by the judge; what a damaged schema or
hierarchy means is not, there the verifier and the rows of the release have to do.
"""

from __future__ import annotations

import copy
import csv
import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import anonymip
from tests.fuzzing.command_line import arguments_of, call, write_table
from tests.fuzzing.files.mutations import (
    TEXTS,
    damage_bytes,
    damage_lines,
    damage_rows,
    damage_tree,
)
from tests.fuzzing.judge.asked import Asked
from tests.fuzzing.judge.rules import Rules
from tests.fuzzing.judge.table import MISSING, Column, Table
from tests.fuzzing.package import problem_of
from tests.fuzzing.problems import draw_problem
from tests.fuzzing.solving import Findings

#: Seconds that a command may take; a bound or a proof on top of it.
_LIMIT = ["--time-limit", "10"]
_DECIMAL = re.compile(r"[ \t]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[ \t]*", re.ASCII)


class Unreadable(Exception):
    """The judge finds no table in a file that has to hold one."""


@dataclass
class Case:
    """A damaged file and the command that reads it."""

    format: str  # what the file is
    file: Path  # the damaged file
    arguments: list[str]  # of the command
    asked: Asked  # what the release must keep, as far as the judge knows
    outputs: list[Path] = field(default_factory=list)  # files that it may write
    #: What is asked of the release of a damaged table, read again by the judge.
    reread: Callable[[], Asked] | None = None


def _problem(rng: random.Random, allow: Callable[[Asked], bool] = lambda asked: True) -> Asked:
    """Return a problem with a loss that the command line knows by name."""
    while True:
        asked = draw_problem(rng, "command-line")
        if asked.loss.name not in ("affine", "product", "largest") and allow(asked):
            return asked


def _read_rows(path: Path) -> list[list[str]]:
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


def _text_of(rows: list[list[str]]) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def _asked_of(asked: Asked, names: list[str], rows: list[list[str]]) -> Asked:
    """Return what is asked of other rows under the same schema."""
    if len(set(names)) < len(names) or any(len(row) != len(names) for row in rows):
        raise Unreadable("columns with one name, or rows of different lengths")

    def texts(name: str) -> tuple[str, ...]:
        if name not in names:
            raise Unreadable("a column is gone")
        return tuple(row[names.index(name)] for row in rows)

    def values(column: Column) -> tuple[Any, ...]:
        found = texts(column.name)
        if column.kind != "numeric":
            if "" in found:
                raise Unreadable("a value is missing")
            return found
        if not all(_DECIMAL.fullmatch(text) for text in found):
            raise Unreadable("a number is none")
        return tuple(float(text) for text in found)

    table = asked.table
    columns = tuple(replace(column, values=values(column)) for column in table.columns)
    others = [
        tuple((name, texts(name)) for name, _ in given) for given in (table.sensitive, table.kept)
    ]
    return replace(asked, table=Table(columns, others[0], others[1]))


def _reread_csv(asked: Asked, path: Path) -> Asked:
    # A cell may be as long as it likes.
    before = csv.field_size_limit(2**31)
    try:
        text = path.read_bytes().decode("utf-8-sig")
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (ValueError, csv.Error):
        raise Unreadable("no text, or quotes that do not match") from None
    finally:
        csv.field_size_limit(before)
    rows = [line for line in lines if line and (len(lines[0]) < 2 or line != [" "])]
    if not rows:
        raise Unreadable("no header")
    return _asked_of(asked, rows[0], rows[1:])


def _anonymize(
    rng: random.Random, folder: Path, data: Path, schema: Path, asked: Asked
) -> tuple[list[str], list[Path]]:
    """Return the arguments that publish a table, and the files that they name."""
    release = folder / rng.choice(["release.csv", "release.csv", "release.parquet"])
    outputs = [release, release.with_name(release.name + ".manifest.json"), folder / "answers.json"]
    given = ["anonymize", str(data), "--schema", str(schema), *arguments_of(asked, rng), *_LIMIT]
    given += ["-o", str(release), "--json", str(outputs[2])]
    if rng.random() < 0.15:
        outputs.append(folder / "report.html")
        given += ["--report", str(outputs[3])]
    if rng.random() < 0.2:
        given += ["--layout", "columns"]
    if rng.random() < 0.2:
        given.append("--escape-formulas")
    return given, outputs


def _other_command(
    rng: random.Random, folder: Path, data: Path, schema: Path, asked: Asked
) -> tuple[list[str], list[Path]]:
    """Return the arguments of a command that publishes nothing, and the files that they name."""
    command = rng.choice(["solve", "compare", "bound", "export"])
    given = [command, str(data), "--schema", str(schema), *arguments_of(asked, rng)]
    outputs = [folder / "answers.json"]
    if command == "compare":
        outputs += [folder / "table.md", folder / "table.csv"]
        given += ["--markdown", str(outputs[1]), "--csv", str(outputs[2])]
    if command == "export":
        outputs += [folder / "model.lp"]
        given += ["-o", str(outputs[1])]
    given += ["--json", str(outputs[0])]
    return given + (_LIMIT if command in ("solve", "compare") else []), outputs


def _reading(
    rng: random.Random, folder: Path, data: Path, schema: Path, asked: Asked
) -> tuple[list[str], list[Path]]:
    publishes = rng.random() < 0.85
    return (_anonymize if publishes else _other_command)(rng, folder, data, schema, asked)


def _of_plain_values(asked: Asked) -> bool:
    """Return whether the judge reads the texts of damaged rows: no dates, steps or missing ones."""
    columns = asked.table.columns
    return all(column.scale is None for column in columns) and not any(
        one == MISSING
        for column in columns
        for one in column.values  # noqa: PD011
    )


def draw_csv(rng: random.Random, folder: Path, found: Findings) -> Case:
    """Return a table whose text is damaged."""
    asked = _problem(rng, _of_plain_values)
    data, schema = write_table(folder, asked)
    verified = rng.random() < 0.12 and _published(found, data, schema, asked, rng)
    if rng.random() < 0.6:
        rows = _read_rows(data)
        damage_rows(rng, rows)
        data.write_bytes(_text_of(rows).encode())
    else:
        data.write_bytes(damage_bytes(rng, data.read_bytes()))
    if verified:
        given = ["verify", str(data), str(data.with_name("release.csv")), "--schema", str(schema)]
        return Case("csv", data, given, asked, [], lambda: _reread_csv(asked, data))
    given, outputs = _reading(rng, folder, data, schema, asked)
    return Case("csv", data, given, asked, outputs, lambda: _reread_csv(asked, data))


def _published(found: Findings, data: Path, schema: Path, asked: Asked, rng: random.Random) -> bool:
    """Publish a table; return whether that is possible."""
    given = ["anonymize", str(data), "--schema", str(schema), *arguments_of(asked, rng), *_LIMIT]
    code, _ = call(found, "anonymize", [*given, "-o", str(data.with_name("release.csv"))])
    return code == 0


def _arrow(rng: random.Random, values: list[str]) -> pa.Array:
    """Return texts as a column of some Arrow type that holds as many values."""
    n = len(values)
    numbers = [rng.choice([0, 1, 2, 255, 2**40]) for _ in range(n)]
    small = [one % 100 for one in numbers]
    makers: tuple[Callable[[], pa.Array], ...] = (
        lambda: pa.array(numbers, pa.uint64()),
        lambda: pa.array(small, pa.int8()),
        lambda: pa.array(np.array(small, np.float16)),
        lambda: pa.array([float(one) for one in numbers], pa.float32()),
        lambda: pa.array([rng.choice([1.5, float("nan"), float("inf"), -0.0]) for _ in range(n)]),
        lambda: pa.array([rng.choice([None, 1, 2]) for _ in range(n)], pa.int64()),
        lambda: pa.array([None] * n, pa.null()),
        lambda: pa.array([one % 2 == 0 for one in numbers]),
        lambda: pa.array(small, pa.int32()).cast(pa.decimal128(12, 2)),
        lambda: pa.array(small, pa.int32()).cast(pa.date32()),
        lambda: pa.array(numbers, pa.int64()).cast(pa.timestamp("ns", tz="Europe/Oslo")),
        lambda: pa.array(numbers, pa.int64()).cast(pa.duration("us")),
        lambda: pa.array(small, pa.int32()).cast(pa.time32("s")),
        lambda: pa.array([value.encode()[:9] for value in values], pa.binary()),
        lambda: pa.array([value.encode()[:2].ljust(2) for value in values], pa.binary(2)),
        lambda: pa.array([rng.choice([value, None]) for value in values], pa.large_string()),
        lambda: pa.array(values).dictionary_encode(),
        lambda: pa.array([rng.choice(TEXTS[:-3]) for _ in range(n)]),
        lambda: pa.array([[value] for value in values]),
        lambda: pa.array([{"a": value, "b": 1} for value in values]),
        lambda: pa.array([[("key", value)] for value in values], pa.map_(pa.string(), pa.string())),
        lambda: pa.array([[1, 2]] * n, pa.list_(pa.int8(), 2)),
    )
    return rng.choice(makers)()


def _damaged_arrow(rng: random.Random, rows: list[list[str]]) -> pa.Table:
    """Return a table of unusual types, names or notes."""
    names, body = list(rows[0]), rows[1:]
    columns = [[row[at] for row in body] for at in range(len(names))]
    typed = [pa.array([_number(text) for text in column]) for column in columns]
    for _ in range(rng.choice([1, 1, 2])):
        at = rng.randrange(len(names))
        typed[at] = _arrow(rng, columns[at])
    kind = rng.randrange(8)
    if kind == 0:
        names[rng.randrange(len(names))] = rng.choice(["", names[0], "\x1b[31mred", "x" * 5_000])
    table = pa.Table.from_arrays(typed, names=names)
    if kind == 1:
        table = table.slice(0, rng.choice([0, 1]))
    if kind == 2:
        table = table.select([])
    if kind == 3:
        notes = {
            "index_columns": rng.choice([["gone"], [names[0]], 7, [{"kind": "range", "start": 5}]]),
            "columns": rng.choice([[], None, [{"name": names[0], "pandas_type": "datetime"}]]),
            "column_indexes": rng.choice([[], [{"name": "x"}], "x"]),
        }
        table = table.replace_schema_metadata({b"pandas": json.dumps(notes).encode()})
    if kind == 4:
        table = table.replace_schema_metadata({b"pandas": rng.choice([b"{", b"[]", b"\xff", b""])})
    return table


def _number(text: str) -> float | str:
    return float(text) if _DECIMAL.fullmatch(text) else text


def _whole_columns(rows: list[list[str]]) -> pa.Table:
    """Return the table as somebody would write it: columns of numbers as numbers."""
    frame = pd.DataFrame(rows[1:], columns=rows[0])
    for name in frame.columns:
        if all(_DECIMAL.fullmatch(text) for text in frame[name]):
            frame[name] = frame[name].astype(float)
    return pa.Table.from_pandas(frame)


def draw_parquet(rng: random.Random, folder: Path, found: Findings) -> Case:
    """Return a table in Parquet: damaged bytes, or types, names and notes that nobody expects."""
    asked = _problem(rng)
    data, schema = write_table(folder, asked)
    rows = _read_rows(data)
    file = folder / rng.choice(["people.parquet", "people.pq"])
    if rng.random() < 0.6:
        try:
            table = _damaged_arrow(rng, rows)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            # Numbers beside texts: no such column can be written.
            table = _whole_columns(rows)
        pq.write_table(table, file, compression=rng.choice(["snappy", "none", "zstd"]))
    else:
        pq.write_table(_whole_columns(rows), file)
        file.write_bytes(damage_bytes(rng, file.read_bytes()))
    data.unlink()
    given, outputs = _reading(rng, folder, file, schema, asked)
    return Case("parquet", file, given, asked, outputs)


_DEEP = "[" * 3_000 + "]" * 3_000
#: What stands behind a key of a schema.
_SETTINGS = (
    *(
        '""',
        '"numeric"',
        '"categorical"',
        '"hierarchical"',
        '"range"',
        '"set"',
        '"node"',
        '"\\u001b[31m"',
    ),
    *("true", "false", "0", "-1", "1.5", "nan", "inf", "-inf", "1e400", "9" * 5_000, "0x1F"),
    *("1979-05-27", "07:32:00", "[]", "[[]]", "[0]", "[1, 0]", "[0, 1e308]", "[nan, 1]", '["F"]'),
    *('["q0"]', '["q0", "q0"]', '["gone"]', "[1, 2]", "{}", '{file = "x"}', '{"a.b" = {c = []}}'),
    *("{bands = [5, 10], domain = [0, 99]}", "{bands = [0], domain = [0, 9]}", "{bands = 5}"),
    *('{groups = {a = ["b"], b = ["a"]}}', "{bands = [2, 3], domain = [0, 5]}", "{groups = []}"),
    *("{bands = [1e-300], domain = [0, 3]}", "{bands = [2], domain = [0, 999999999999]}"),
    *('"../../../etc/passwd"', '"/dev/null"', '"."', '"gone.paths"', '"a\\u0000b"', '"utf-16"'),
    *(
        '"punycode"',
        '"rot13"',
        '"undefined"',
        '"idna"',
        '","',
        '";"',
        '", "',
        '"ab"',
        '"\\t"',
        _DEEP,
    ),
    *(
        "[",
        "'",
        '"""',
        "\x00",
        "x" * 300,
        "{a = " * 500 + "1" + "}" * 500,
        '"' + "x" * 100_000 + '"',
    ),
)
#: The same by key: of the kind that it takes, and still not always allowed.
_FITTING = {
    "kind": ('"numeric"', '"categorical"', '"hierarchical"'),
    "domain": (
        "[0, 100]",
        "[-1e300, 1e300]",
        "[0, 0]",
        "[-inf, inf]",
        '["a", "b", "c"]',
        '["", ""]',
    ),
    "integer": ("true", "false"),
    "weight": ("0", "1e-320", "1e308", "2", "1.5", "-0.0", "inf", "9007199254740993"),
    "publish": ('"range"', '"set"', '"node"'),
    "hierarchy": (
        *("{bands = [5, 10], domain = [-20, 99]}", "{bands = [2], domain = [0, 400000]}"),
        *('{groups = {x = ["a", "b", "c", "*"]}, root = "all"}', '"people.csv"', '"schema.toml"'),
        *(
            '{groups = ["v0", "v1", "v2", "v3", "v4"]}',
            "{bands = [5], domain = [0, 9], origin = 0.5}",
        ),
    ),
    "sensitive": ("[]", '["q0"]', '["s0"]', '["gone"]', '["s0", "s0"]', '"s0"'),
    "keep": ("[]", '["q0"]', '["kept"]', '["s0"]', '["gone"]', '"kept"'),
    "never": ("[]", '["q0"]', '["q0", "q1", "q2"]'),
    "suppress_at_most": ("0", "1", "99", "1e9", "0.5"),
    "allow_all_stars": ("true", "false"),
}
_LINES = (
    *("[attributes.gone]", "[attributes]", "[table]", "[mask]", "[[attributes.q0]]", "[unknown]"),
    *('encoding = "latin-1"', 'encoding = "utf-16"', "header = false", 'separator = ";"'),
    *('columns = ["q0"]', 'missing = ["a", "?"]', 'drop = ["q0"]', 'keep = ["q0"]', "weight = 1"),
    *("suppress_at_most = 1", "suppress_at_most = -1", "suppress_at_most = 1.5", 'never = "q0"'),
    *("costs = {q0 = -1}", "costs = {q0 = nan}", 'patterns = [["q0"], []]', "patterns = [[[]]]"),
    *('together = [["q0"]]', "allow_all_stars = 1", 'at_most_one = ["q0", "q0"]', "a.b.c = 1"),
)


def draw_schema(rng: random.Random, folder: Path, found: Findings) -> Case:
    """Return a schema whose text is damaged."""
    asked = _problem(rng)
    data, schema = write_table(folder, asked)
    text = schema.read_text(encoding="utf-8")
    kind = rng.random()
    if kind < 0.5:
        schema.write_text(damage_lines(rng, text, _FITTING, _SETTINGS), encoding="utf-8")
    elif kind < 0.75:
        lines = text.splitlines()
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(_LINES))
        schema.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        schema.write_bytes(damage_bytes(rng, schema.read_bytes()))
    given, outputs = _reading(rng, folder, data, schema, asked)
    return Case("schema", schema, given, asked, outputs)


def _damage_paths(rng: random.Random, rows: list[list[str]]) -> None:
    """Make cycles, second parents, deep and short paths, other roots; or another, whole tree."""
    labels = [label for row in rows for label in row]
    at, row = rng.randrange(len(rows)), rng.choice(rows)
    kind = rng.randrange(13)
    if kind == 0:
        rows[at] = [rows[at][0], rng.choice(labels), *rows[at][1:]]
    elif kind == 1:
        rows[at][rng.randrange(len(rows[at]))] = rng.choice(labels)
    elif kind == 2:
        rows[at] = rows[at][::-1]
    elif kind == 3:
        row[1:-1] = [f"n{level}" for level in range(rng.choice([3, 5_000]))]
    elif kind == 4:
        rows[at] = rows[at][:1]
    elif kind == 5:
        rows[at][-1] = "another root"
    elif kind == 6:
        rows[at] = [rows[at][0]] * rng.choice([1, 2, 5])
    elif kind <= 8:
        rows += [[f"w{one}", *row[1:]] for one in range(rng.choice([1, 5_000]))]
    elif kind == 9:
        rng.shuffle(rows)
    elif kind == 10:
        for path in rows:
            path.append("above")
    else:
        # One label gets another name wherever it stands.
        old, new = rng.choice(labels), rng.choice([*TEXTS, labels[0]])
        for path in rows:
            path[:] = [new if label == old else label for label in path]


def draw_hierarchy(rng: random.Random, folder: Path, found: Findings) -> Case:
    """Return a file of paths that is damaged: cyclic, of two roots, of no text."""
    asked = _problem(rng, lambda asked: any(column.paths for column in asked.table.columns))
    data, schema = write_table(folder, asked)
    column = next(column for column in asked.table.columns if column.paths)
    file = folder / f"{column.name}.paths"
    rows, kind = [list(path) for path in column.paths], rng.random()
    if kind < 0.6:
        _damage_paths(rng, rows)
    elif kind < 0.75:
        damage_rows(rng, rows)
    text = "".join(";".join(row) + "\n" for row in rows).encode()
    file.write_bytes(text if kind < 0.75 else damage_bytes(rng, text))
    given, outputs = _reading(rng, folder, data, schema, asked)
    return Case("hierarchy", file, given, asked, outputs)


def draw_manifest(rng: random.Random, folder: Path, found: Findings) -> Case | None:
    """Return a manifest of a good release that says something else, or nothing that can be read."""
    asked = _problem(rng)
    data, schema = write_table(folder, asked)
    if not _published(found, data, schema, asked, rng):
        return None
    release = folder / "release.csv"
    file = folder / "release.csv.manifest.json"
    if rng.random() < 0.75:
        content = json.loads(file.read_text(encoding="utf-8"))
        file.write_bytes(damage_tree(rng, content).encode("utf-8", "surrogatepass"))
    else:
        file.write_bytes(damage_bytes(rng, file.read_bytes()))
    given = ["verify", str(data), str(release), "--schema", str(schema)]
    given += ["--json", str(folder / "answers.json")]
    return Case("manifest", file, given, asked, [folder / "answers.json"])


def _certifiable(asked: Asked) -> bool:
    return (
        asked.recoding in ("classes", "freeform")
        and not asked.suppression
        and asked.loss.name in ("gcp", "liang-gcp", "weighted-loss", "leaf-loss")
        and asked.table.n <= 7
    )


def draw_certificate(rng: random.Random, folder: Path, found: Findings) -> Case | None:
    """Return a certificate that says something else, or nothing that can be read."""
    asked = _problem(rng, _certifiable)
    data, schema = write_table(folder, asked)
    file = folder / "proof.json"
    given = ["certify", str(data), "--schema", str(schema), *arguments_of(asked, rng), *_LIMIT]
    code, _ = call(found, "certify", [*given, "-o", str(file)])
    if code != 0:
        return None
    if rng.random() < 0.8:
        content = json.loads(file.read_text(encoding="utf-8"))
        file.write_bytes(damage_tree(rng, content).encode("utf-8", "surrogatepass"))
    else:
        file.write_bytes(damage_bytes(rng, file.read_bytes()))
    return Case("certificate", file, ["check-certificate", str(file)], asked)


def _chained(asked: Asked) -> bool:
    return (
        asked.recoding == "classes"
        and not asked.suppression
        and asked.loss.name in ("gcp", "liang-gcp", "leaf-loss")
        and asked.rules == Rules()
        and asked.table.n > asked.k
    )


def _damaged_archive(rng: random.Random, data: bytes) -> bytes:
    """Return a checkpoint whose parts are other ones, in a whole archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(parts))
    kind = rng.randrange(8)
    if kind == 0:
        del parts[name]
    elif kind == 1:
        parts[rng.choice(["x.npy", "header", "../x.npy", "table.npy"])] = parts[name]
    elif kind == 2:
        parts[name] = damage_bytes(rng, parts[name])
    elif kind == 3:
        parts["header"] = damage_tree(rng, json.loads(parts["header"])).encode()
    elif name != "header":
        array = np.load(io.BytesIO(parts[name]))
        stream = io.BytesIO()
        np.save(stream, _other_array(rng, array), allow_pickle=True)
        parts[name] = stream.getvalue()
    stream = io.BytesIO()
    packed = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
    with zipfile.ZipFile(stream, "w", packed) as archive:
        for own, content in parts.items():
            archive.writestr(own, content)
    return stream.getvalue()


def _other_array(rng: random.Random, array: Any) -> Any:
    kind = rng.randrange(8)
    if kind == 0:
        return array.astype(rng.choice([np.float32, np.int8, np.bool_, np.complex128, object, str]))
    if kind == 1:
        return array.reshape(-1)[: rng.randrange(array.size + 1)]
    if kind == 2:
        return np.repeat(array, 3, axis=0) if array.ndim else array
    if kind == 3:
        return array[np.newaxis]
    if kind == 4:
        return np.zeros((0, *array.shape), array.dtype)
    changed = copy.deepcopy(array).reshape(-1)
    if changed.size and changed.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            changed[rng.randrange(changed.size)] = rng.choice([-1, -2, 0, 1, 7, 100, 127])
    return changed.reshape(array.shape)


def draw_checkpoint(rng: random.Random, folder: Path, found: Findings) -> Case | None:
    """Return a checkpoint that is damaged, or belongs to another run."""
    asked = _problem(rng, _chained)
    data, schema = write_table(folder, asked)
    file = folder / "run.checkpoint"
    run = asked if rng.random() > 0.15 else replace(asked, k=asked.k + 1)
    chains = {"chains": 2} if rng.random() < 0.3 else {}
    options = {"S": rng.choice([2, 3]), **chains}

    def chain() -> anonymip.Solution:
        # The table as the command line reads it: a checkpoint belongs to one table.
        own, read = problem_of(run), anonymip.read_schema(schema).read(data)
        problem = anonymip.Problem(read, run.k, own.recoding, own.objective)
        return anonymip.solve(problem, "split-carry", options=options, checkpoint=file)

    if not found.attempt("chain", chain) or not file.exists():
        return None
    undamaged = run is not asked or rng.random() < 0.08
    if not undamaged:
        before = file.read_bytes()
        whole = rng.random() < 0.6
        file.write_bytes(_damaged_archive(rng, before) if whole else damage_bytes(rng, before))
    given, outputs = _anonymize(rng, folder, data, schema, asked)
    given += ["--method", "split-carry", "--checkpoint", str(file), "--resume"]
    given += [f"--option=split-carry.{name}={value}" for name, value in options.items()]
    parts = [file.with_name(f"{file.name}.part-{number}") for number in range(2)]
    return Case("checkpoint", file, given, asked, [*outputs, file, *parts])


#: The generators by format, and their shares of the cases.
FORMATS: dict[str, tuple[Callable[[random.Random, Path, Findings], Case | None], int]] = {
    "csv": (draw_csv, 26),
    "parquet": (draw_parquet, 16),
    "schema": (draw_schema, 16),
    "hierarchy": (draw_hierarchy, 12),
    "manifest": (draw_manifest, 12),
    "certificate": (draw_certificate, 10),
    "checkpoint": (draw_checkpoint, 8),
}
