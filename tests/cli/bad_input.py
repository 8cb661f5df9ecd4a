"""Cases of bad input: what is given, and what the message must say.

One file, since it is one table of cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PEOPLE = "age,sex,zip\n1,F,01\n2,M,02\n3,F,01\n4,M,02\n"
AGE_SEX = ("-q", "age", "-q", "sex")
SECRET = "x9secret"


@dataclass(frozen=True)
class Case:
    """A table, the arguments that make it bad input, and what the message must say.

    `secret` is the offending value, which only --show-values may show; `commands` are those that
    the case concerns.
    """

    name: str
    words: tuple[str, ...]
    arguments: tuple[str, ...] = (*AGE_SEX, "-k", "2")
    table: str = PEOPLE
    files: Mapping[str, str] = field(default_factory=dict)
    secret: str | None = None
    instance: str = "people.csv"
    commands: tuple[str, ...] = ("solve", "compare", "bound", "anonymize")


def schema(*lines: str) -> dict[str, str]:
    """Return a schema file that lies beside the table."""
    return {"people.toml": "\n".join(lines) + "\n"}


SOLVING = ("solve", "compare", "anonymize")
#: One value of k, good for all tables here.
K = ("-k", "2")
CASES = (
    Case("unknown column", ("'nope'", "quasi-identifier", "Check its name"), ("-q", "nope", *K)),
    Case(
        "near miss in a file without header",
        ("unknown column", "Check its name"),
        ("-q", SECRET[:-1], *K),
        table=PEOPLE.replace("age", SECRET),
        secret=SECRET,
    ),
    Case(
        "near miss of a name in the schema",
        ("'agee'", "Did you mean 'age'?"),
        ("-q", "agee", *K),
        files=schema("[attributes.age]"),
    ),
    Case("unknown sensitive", ("'nope'", "sensitive"), (*AGE_SEX, "--sensitive", "nope", *K)),
    Case("unknown kept column", ("'nope'", "keep"), (*AGE_SEX, "--keep", "nope", *K)),
    Case("unknown dropped column", ("'nope'", "drop"), (*AGE_SEX, "--drop", "nope", *K)),
    Case("two roles", ("'age'", "sensitive", "one role"), (*AGE_SEX, "--sensitive", "age", *K)),
    Case("named twice", ("twice",), ("-q", "age", "-q", "age:numeric", *K)),
    Case("unknown kind", ("'age:weird'", "age:", "numeric"), ("-q", "age:weird", *K)),
    Case("no quasi-identifier", ("-q",), ("--sensitive", "age", *K)),
    Case("no schema at all", ("people.csv", "-q", "--schema"), K),
    Case("k of one", ("k is 1", "at least 2"), (*AGE_SEX, "-k", "1")),
    Case("k of zero", ("k is 0", "at least 2"), (*AGE_SEX, "-k", "0")),
    Case("k above n", ("k is 5", "4 records"), (*AGE_SEX, "-k", "5")),
    Case(
        "outside a numeric domain",
        ("'age'", "domain", "row 4", "Widen"),
        K,
        files=schema("[attributes.age]", "domain = [1, 3]", "[attributes.sex]"),
        table=PEOPLE.replace("4,", "424242,"),
        secret="424242",
    ),
    Case(
        "outside a categorical domain",
        ("'sex'", "domain", "row 2"),
        K,
        files=schema("[attributes.age]", "[attributes.sex]", 'domain = ["F", "M"]'),
        table=PEOPLE.replace("2,M", f"2,{SECRET}"),
        secret=SECRET,
    ),
    Case(
        "missing from its hierarchy",
        ("'sex'", "missing from its hierarchy", "row 4", "Add"),
        K,
        files={
            **schema("[attributes.age]", "[attributes.sex]", 'hierarchy = "sex.csv"'),
            "sex.csv": "F;*\nM;*\n",
        },
        table=PEOPLE.replace("4,M", f"4,{SECRET}"),
        secret=SECRET,
    ),
    Case(
        "no such hierarchy file",
        ("nowhere.csv",),
        K,
        files=schema("[attributes.age]", "[attributes.sex]", 'hierarchy = "nowhere.csv"'),
    ),
    Case("missing number", ("'age'", "row 3", "--missing"), table=PEOPLE.replace("3,F", ",F")),
    Case("missing text", ("'sex'", "row 3", "--missing"), table=PEOPLE.replace("3,F", "3,")),
    Case(
        "missing number as a category",
        ("'age'", "row 3", "--missing drop"),
        (*AGE_SEX, *K, "--missing", "category"),
        table=PEOPLE.replace("3,F", ",F"),
    ),
    Case("unknown missing policy", ("'skip'", "drop"), (*AGE_SEX, *K, "--missing", "skip")),
    Case(
        "all rows left out",
        ("no rows",),
        (*AGE_SEX, *K, "--missing", "drop"),
        table="age,sex,zip\n,F,01\n,M,02\n",
    ),
    Case(
        "numeric column with text",
        ("'age'", "numeric", "row 3", "categorical"),
        ("-q", "age:numeric", "-q", "sex", *K),
        table=PEOPLE.replace("3,F", f"{SECRET},F"),
        secret=SECRET,
    ),
    Case(
        "numeric column with an infinite number",
        ("'age'", "finite", "row 3"),
        ("-q", "age:numeric", "-q", "sex", *K),
        table=PEOPLE.replace("3,F", "1e999,F"),
        secret="1e999",
    ),
    Case(
        "whole number too large to be exact",
        ("'age'", "2^53", "row 3"),
        table=PEOPLE.replace("3,F", "9007199254740993,F"),
        secret="9007199254740993",
    ),
    Case(
        "integer column with a fraction",
        ("'age'", "integer", "row 3"),
        K,
        files=schema("[attributes.age]", "integer = true", "[attributes.sex]"),
        table=PEOPLE.replace("3,F", "3.25,F"),
        secret="3.25",
    ),
    Case(
        "negative weight",
        ("'age'", "weight is -1", "at least 0"),
        K,
        files=schema("[attributes.age]", "weight = -1", "[attributes.sex]"),
    ),
    Case(
        "all weights zero",
        ("weights are 0", "at least one"),
        (*K, "--objective", "weighted-loss"),
        files=schema("[attributes.age]", "weight = 0", "[attributes.sex]", "weight = 0.0"),
    ),
    Case("duplicate column names", ("duplicate", "Rename"), table="age,sex,sex\n1,F,F\n2,M,M\n"),
    Case("empty table", ("no rows", "at least k"), table="age,sex,zip\n"),
    Case("empty file", ("people.csv", "empty"), table=""),
    Case("too many cells", ("people.csv", "3"), table=PEOPLE + "5,F,01,9\n"),
    Case("too few cells", ("people.csv", "5"), table=PEOPLE + "5,F\n"),
    Case(
        "undeclared identifier",
        ("'name'", "--keep", "--drop"),
        table="age,sex,name\n1,F,Ann\n2,M,Bob\n3,F,Cyd\n4,M,Dan\n",
    ),
    Case("unknown instance", ("'nowhere'", "anonymip instances"), K, instance="nowhere"),
    Case("a folder for a table", ("'.' is a folder", "Name the file"), K, instance="."),
    Case("a name too long for a file", ("no instance and no file",), K, instance="a" * 5000),
    Case("a generated table beyond memory", ("n is above",), K, instance=f"census:{'9' * 30},2,1"),
    Case(
        "a star beyond numbers",
        ("'age'", "1e100"),
        (*AGE_SEX, *K, "--suppression-cost", "age=1e308"),
    ),
    Case(
        "a weight beyond numbers",
        ("'age'", "1e100"),
        K,
        files=schema("[attributes.age]", "weight = 1e308", "[attributes.sex]", "weight = 1e308"),
    ),
    Case("bad generator call", ("census:n,m,seed",), K, instance="census:40"),
    Case("a generator's limits", ("m is 100", "35"), K, instance="census:40,100,1"),
    Case("roles for an instance", ("own schema", "-q"), (*AGE_SEX, *K), instance="aggarwal-4"),
    Case("no such schema", ("nowhere.toml",), (*K, "--schema", "nowhere.toml")),
    Case(
        "schema is no TOML", ("people.toml", "TOML", "line 1"), K, files=schema("[attributes.age")
    ),
    Case(
        "schema nested too deep",
        ("people.toml", "nested too deep"),
        K,
        files=schema(f"deep = {'{a=' * 400}1{'}' * 400}"),
    ),
    Case(
        "schema with an endless number",
        ("people.toml", "TOML"),
        K,
        files=schema("[attributes.age]", f"weight = {'9' * 5000}"),
    ),
    Case(
        "schema with an unknown key",
        ("people.toml", "attributes.age.kid", "kind"),
        K,
        files=schema("[attributes.age]", 'kid = "numeric"'),
    ),
    Case(
        "schema with an unknown section",
        ("people.toml", "tabel", "table"),
        K,
        files=schema("[attributes.age]", "[tabel]"),
    ),
    Case(
        "schema with a value of a wrong type",
        ("people.toml", "attributes.age.weight", "number"),
        K,
        files=schema("[attributes.age]", 'weight = "heavy"'),
    ),
    Case(
        "schema with a text for a truth value",
        ("people.toml", "table.header", "true or false"),
        K,
        files=schema("[attributes.age]", "[table]", 'header = "no"'),
    ),
    Case(
        "schema with a reversed domain",
        ("'age'", "domain", "lowest"),
        K,
        files=schema("[attributes.age]", "domain = [9, 1]"),
    ),
    Case(
        "schema with a long separator",
        ("separator", "one character"),
        K,
        files=schema("[attributes.age]", "[table]", 'separator = "::"'),
    ),
    Case(
        "schema with an unknown encoding",
        ("people.csv", "encoding"),
        K,
        files=schema("[attributes.age]", "[table]", 'encoding = "klingon"'),
    ),
    Case(
        "schema with an encoding of words",
        ("'punycode'", "utf-8"),
        K,
        files=schema("[attributes.age]", "[table]", 'encoding = "punycode"'),
    ),
    Case(
        "schema with an encoding of nothing",
        ("'undefined'", "utf-8"),
        K,
        files=schema("[attributes.age]", "[table]", 'encoding = "undefined"'),
    ),
    Case("unknown recoding", ("'patterns'", "classes"), (*AGE_SEX, *K, "--recoding", "patterns")),
    Case("time limit of zero", ("--time-limit", "positive"), (*AGE_SEX, *K, "--time-limit", "0")),
    Case(
        "unknown objective",
        ("'entropy'", "gcp", "FILE.py:NAME"),
        (*AGE_SEX, *K, "--objective", "entropy"),
    ),
    Case("no such objective file", ("mine.py",), (*AGE_SEX, *K, "--objective", "mine.py:loss")),
    Case(
        "file for the folder of the JSON",
        ("people.csv/", "existing folder"),
        (*AGE_SEX, *K, "--json", "people.csv/result.json"),
    ),
    Case("JSON over the table", ("people.csv", "input"), (*AGE_SEX, *K, "--json", "people.csv")),
    Case(
        "JSON over the schema",
        ("people.toml", "input"),
        (*K, "--json", "./people.toml"),
        files=schema("[attributes.age]"),
    ),
    Case(
        "option without a method",
        ("'strict=no'", "METHOD.NAME=VALUE"),
        (*AGE_SEX, *K, "--option", "strict=no"),
        commands=SOLVING,
    ),
    Case(
        "option of another method",
        ("mondrian", "option"),
        (*AGE_SEX, *K, "--option", "mondrian.strict=no"),
        commands=("solve", "anonymize"),
    ),
    Case(
        "unknown option",
        ("mondrian", "'depth'", "strict"),
        (*AGE_SEX, *K, "--method", "mondrian", "--option", "mondrian.depth=3"),
        commands=("solve", "anonymize"),
    ),
    Case(
        "option of a wrong type",
        ("mondrian.strict", "'maybe'", "true or false"),
        (*AGE_SEX, *K, "--method", "mondrian", "--option", "mondrian.strict=maybe"),
        commands=("solve", "anonymize"),
    ),
    Case(
        "unknown method",
        ("'simplex'", "greedy-search"),
        (*AGE_SEX, *K, "--method", "simplex"),
        commands=("solve", "anonymize"),
    ),
    Case(
        "unknown solver",
        ("'oracle'", "highs", "cbc"),
        (*AGE_SEX, *K, "--method", "equivalence-mip", "--solver", "oracle"),
        commands=("solve", "anonymize"),
    ),
    Case(
        "negative gap",
        ("gap", "-1"),
        (*AGE_SEX, *K, "--method", "equivalence-mip", "--gap", "-1"),
        commands=("solve", "anonymize"),
    ),
    Case(
        "no threads",
        ("threads", "0"),
        (*AGE_SEX, *K, "--method", "equivalence-mip", "--threads", "0"),
        commands=("solve", "anonymize"),
    ),
    Case(
        "unknown warm start",
        ("'cold'", "greedy-search"),
        (*AGE_SEX, *K, "--method", "equivalence-mip", "--warm-start", "cold"),
        commands=("solve",),
    ),
    Case(
        "warm start of a heuristic",
        ("mondrian", "warm_start"),
        (*AGE_SEX, *K, "--method", "mondrian", "--warm-start", "initial"),
        commands=("solve",),
    ),
    Case(
        "log in a file",
        ("people.csv/", "existing folder"),
        (*AGE_SEX, *K, "--log", "people.csv/solver.log"),
        commands=("solve",),
    ),
    Case(
        "unknown compared method",
        ("'simplex'", "greedy-search"),
        (*AGE_SEX, *K, "--methods", "mondrian,simplex"),
        commands=("compare",),
    ),
    Case(
        "option of a method that is not compared",
        ("'k-member'", "mondrian"),
        (*AGE_SEX, *K, "--methods", "mondrian", "--option", "k-member.search=scan"),
        commands=("compare",),
    ),
    Case(
        "one k of several above n",
        ("k is 5", "4 records"),
        (*AGE_SEX, "-k", "2-6"),
        commands=("compare",),
    ),
    Case(
        "samples without their size",
        ("--sample-size", "Give both"),
        (*AGE_SEX, *K, "--samples", "3"),
        commands=("compare",),
    ),
    Case(
        "samples larger than the table",
        ("5 records", "has 4"),
        (*AGE_SEX, *K, "--samples", "3", "--sample-size", "5", "--methods", "initial"),
        commands=("compare",),
    ),
    Case(
        "a picture of several recodings",
        ("--plot", "Use --report FILE.html"),
        (*AGE_SEX, *K, "--methods", "initial,hungarian", "--plot", "gap.png"),
        commands=("compare",),
    ),
    Case(
        "a picture of samples",
        ("--plot", "Use --report FILE.html"),
        (*AGE_SEX, *K, "--samples", "2", "--sample-size", "4", "--plot", "gap.png"),
        commands=("compare",),
    ),
    Case(
        "unknown kind of picture",
        ("gap.bmp", ".png"),
        (*AGE_SEX, *K, "--plot", "gap.bmp", "--csv", "table.csv"),
        commands=("compare",),
    ),
    Case(
        "Markdown in a file",
        ("people.csv/", "existing folder"),
        (*AGE_SEX, *K, "--csv", "table.csv", "--markdown", "people.csv/table.md"),
        commands=("compare",),
    ),
    Case(
        "unknown layout",
        ("'table'", "cells"),
        (*AGE_SEX, *K, "--layout", "table"),
        commands=("anonymize",),
    ),
    Case(
        "layout whose columns are taken",
        ("'age_upper'", "cells"),
        (*AGE_SEX, "--keep", "age_upper", *K, "--layout", "columns"),
        table=PEOPLE.replace("zip", "age_upper"),
        commands=("anonymize",),
    ),
    Case(
        "report in a file",
        ("people.csv/", "existing folder"),
        (*AGE_SEX, *K, "--report", "people.csv/report.html"),
        commands=("anonymize",),
    ),
    Case(
        "report over the release",
        ("release.csv", "ends in .html"),
        (*AGE_SEX, *K, "--report", "release.csv"),
        commands=("anonymize",),
    ),
    Case(
        "JSON over the manifest",
        ("release.csv.manifest.json", "own"),
        (*AGE_SEX, *K, "--json", "release.csv.manifest.json"),
        commands=("anonymize",),
    ),
)

#: Files of objectives with a fault.
OBJECTIVES = {
    "syntax": ("def loss(record:\n", ("SyntaxError", "mine.py")),
    "own error": ("raise OSError('no disk')\n", ("OSError", "no disk")),
    "leaves": ("import sys\nsys.exit(3)\n", ("SystemExit", "mine.py")),
    "no such import": ("import nothing_of_this_name\n", ("ModuleNotFoundError",)),
    "another name": ("def cost(record):\n    return 1\n", ("'loss'", "mine.py")),
    "no function": ("loss = 3\n", ("'loss'",)),
    "unknown attribute": ("def loss(record):\n    return record.spread['zip']\n", ("'zip'", "age")),
    "width of a text": (
        "def loss(record):\n    return record.width['sex']\n",
        ("'sex'", "numeric"),
    ),
    "branches": (
        "def loss(record):\n    return 1 if record.spread['age'] > 0.5 else 0\n",
        ("branches", "np.where"),
    ),
    "sums the batch": (
        "import numpy as np\ndef loss(record):\n    return np.sum(record.spread['age'])\n",
        ("np.sum", "element-wise"),
    ),
    "returns a text": ("def loss(record):\n    return 'much'\n", ("returns a str",)),
    "fails": ("def loss(record):\n    return {}['price']\n", ("KeyError", "line 2")),
    "takes nothing": ("def loss():\n    return 1\n", ("'loss'", "cannot be traced")),
}
