"""Problems drawn for a table: recoding, loss and rules."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.fuzzing.judge.asked import WEAKER, Asked
from tests.fuzzing.judge.losses import Loss
from tests.fuzzing.judge.rules import Rules
from tests.fuzzing.judge.stars import Mask
from tests.fuzzing.judge.table import Column, Table
from tests.fuzzing.tables import draw_table, with_holes

#: Areas, and their shares of the cases.
AREAS = {
    "classes": 28,
    "freeform": 20,
    "weaker": 18,
    "pattern": 14,
    "full-domain": 6,
    "command-line": 14,
}
_RECODINGS = {
    "classes": ("classes",),
    "freeform": ("freeform",),
    "weaker": WEAKER,
    "pattern": ("pattern", "pattern", "pattern", "pattern-levels"),
    "full-domain": ("full-domain",),
    "command-line": (
        "classes",
        "classes",
        "freeform",
        "pattern",
        "pattern-levels",
        "full-domain",
        *WEAKER,
    ),
}
_MASKED = ("pattern", "pattern-levels")


def draw_area(rng: random.Random, only: str | None) -> str:
    """Return an area."""
    drawn = rng.choices(list(AREAS), list(AREAS.values()))[0]
    return drawn if only is None else only


def draw_problem(rng: random.Random, area: str) -> Asked:
    """Return a problem of an area."""
    recoding = rng.choice(_RECODINGS[area])
    k = rng.choice([2, 2, 3])
    n = rng.randint(max(4, k), _most_records(recoding, k))
    large = rng.random() < 0.06
    if large:
        n, k = rng.randint(8, 30), rng.choice([2, 3, 4, 5])
    ruled = rng.random() < 0.35
    table = draw_table(rng, n, rng.randint(1, 3), diverse=ruled)
    loss = _loss(rng, table, recoding)
    asked = Asked(table, k, recoding, loss)
    if ruled:
        asked = replace(asked, rules=_rules(rng, asked))
    if ruled and recoding == "classes" and rng.random() < 0.3:
        asked = _with_units(rng, asked)
    suppressing = recoding in ("classes", "pattern", "full-domain") and not loss.of_members
    suppressing |= recoding == "freeform" and not loss.of_members and not asked.rules.diverse
    if suppressing and rng.random() < 0.2:
        asked = replace(asked, suppression=True)
        if rng.random() < 0.5:
            asked = replace(asked, most_suppressed=rng.randint(0, n))
    if recoding in _MASKED:
        asked = replace(asked, mask=_mask(rng, len(table.columns)))
    if recoding == "pattern":
        asked = replace(asked, single_use=rng.random() < 0.12)
    if recoding == "freeform" and area != "command-line":
        asked = _special_cover(rng, asked)
    if rng.random() < 0.2 and not loss.of_members:
        limited = frozenset(a for a, *_ in (*asked.rules.caps, *asked.rules.apart))
        asked = replace(asked, table=with_holes(rng, asked.table, limited))
    return asked


def _most_records(recoding: str, k: int) -> int:
    if recoding == "k-concealment":
        return 5
    if recoding in WEAKER:
        return 6 if k == 2 else 5
    return 7 if recoding != "freeform" or k == 2 else 6


def _loss(rng: random.Random, table: Table, recoding: str) -> Loss:
    m = len(table.columns)
    numbers = all(column.kind == "numeric" for column in table.columns)
    counted = all(
        column.kind != "numeric" or column.integer or column.publish == "set"
        for column in table.columns
    )
    weighed = sum(column.weight for column in table.columns) > 0
    names = ["gcp"] * 4 + ["liang-gcp", "leaf-loss", "suppressions"]
    if weighed:
        names += ["weighted-loss", "weighted-loss-binary", "hierarchy-loss"]
    if counted:
        names += ["set-gcp", "set-gcp"]
    if recoding not in _MASKED:
        names += ["affine", "bottleneck-gcp", "product", "largest"]
    if numbers and recoding == "classes":
        names += ["sse"] * 4
    if recoding in _MASKED:
        names = ["gcp", "gcp", "suppressions", "suppressions"]
        names += ["hierarchy-loss", "weighted-loss"] if weighed else []
    name = rng.choice(names)
    if name == "suppressions":
        return Loss(name, tuple(rng.choice([1.0, 2.0, 0.5, 1e9, 1e-9, 0.3]) for _ in range(m)))
    if name in ("product", "largest"):
        return Loss(name, tuple(rng.choice([1.0, 0.5, 0.25, 2.0]) for _ in range(m)))
    if name == "affine":
        costs = tuple(rng.choice([1.0, 1.0, 3.0, 1e-6, 1e6, 1e9, 0.1]) for _ in range(m))
        return Loss(name, costs, rng.choice([0.0, 0.0, 1.0, 1e6, 1e9]))
    return Loss(name)


def _rules(rng: random.Random, asked: Asked) -> Rules:
    table, rules = asked.table, Rules()
    weak = asked.recoding in ("one-k", "k-one", "k-k")
    if not weak or rng.random() < 0.05:
        kind = rng.randrange(4)
        if kind == 0:
            rules = replace(rules, l=rng.choice([1.5, 2, 3, 4 / 3]))
        elif kind == 1:
            rules = replace(rules, distinct=2)
        elif kind == 2 and asked.recoding in ("pattern", "full-domain"):
            t = rng.choice([0.0, 0.2, 0.3333333333333333, 0.5])
            rules = replace(rules, t=t, ordered=rng.random() < 0.5)
    if asked.recoding in (*_MASKED, "full-domain"):
        return rules
    for a, column in enumerate(table.columns):
        if rng.random() < 0.3:
            rules = replace(rules, caps=(*rules.caps, (a, _cap(rng, column))))
        if rng.random() < 0.12:
            values = sorted(set(column.values))
            if len(values) > 1:
                rules = replace(rules, apart=(*rules.apart, (a, *rng.sample(values, 2))))
    return rules


def _with_units(rng: random.Random, asked: Asked) -> Asked:
    """Return a problem of k units a class, beside a diversity of rows or in place of one."""
    units = tuple(rng.choice("ABCDEFGH"[: asked.k + 4]) for _ in range(asked.table.n))
    rules, sensitive = replace(asked.rules, unit=asked.k), asked.table.sensitive
    if rng.random() < 0.5:
        rules, sensitive = replace(rules, l=1, distinct=1), ()
    table = replace(asked.table, sensitive=(("u", units), *sensitive))
    return replace(asked, table=table, rules=rules)


def _cap(rng: random.Random, column: Column) -> float:
    if column.paths:
        return float(rng.randint(1, column.height))
    if column.publish == "set":
        return float(rng.randint(1, 3))
    one, other = rng.choice(column.values), rng.choice(column.values)
    most = float(abs(one - other))
    # None a little wider than the cap: by how much rounding is forgiven is not what is judged.
    for width in sorted(abs(a - b) for a in column.values for b in column.values):
        if most < width <= most * (1 + 1e-7):
            most = width
    return most


def _mask(rng: random.Random, m: int) -> Mask:
    kind, columns = rng.randrange(4), list(range(m))
    rng.shuffle(columns)
    stars = rng.random() < 0.4
    if kind == 0:
        return Mask(allow_all_stars=stars)
    if kind == 1:
        return Mask(suppress_at_most=rng.randint(0, m), allow_all_stars=stars)
    if kind == 2:
        drawn = {tuple(a for a in range(m) if rng.random() < 0.5) for _ in range(rng.randint(1, 4))}
        return Mask(patterns=tuple(sorted(drawn)), allow_all_stars=stars)
    mask = Mask(never=tuple(columns[2:]) if rng.random() < 0.5 else (), allow_all_stars=stars)
    if m > 1:
        pair = (tuple(sorted(columns[:2])),)
        both = rng.random() < 0.5
        mask = replace(mask, together=pair) if both else replace(mask, at_most_one=pair)
    return mask


def _special_cover(rng: random.Random, asked: Asked) -> Asked:
    if rng.random() < 0.08 and asked.table.n <= 6:
        return replace(asked, reciprocal=True)
    if rng.random() < 0.08 and not asked.rules.diverse and not asked.suppression:
        degrees = tuple(rng.randint(asked.k, asked.k + 1) for _ in range(asked.table.n))
        return replace(asked, degrees=tuple(min(one, asked.table.n) for one in degrees))
    return asked
