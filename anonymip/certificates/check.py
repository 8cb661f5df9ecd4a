"""Prove the bound of a certificate again, with ``python check.py CERTIFICATE.json``.

Standard library and whole numbers only, nothing taken on trust: read it, then run it.

What is claimed. Record i of a table is published as what covers a set S of records with i in it,
and loses c(S). By "classes" the sets are the blocks of a partition, k records or more in each; by
"freeform" record i has a set of its own, of k records (or more, all alike), and each record lies in
as many of the sets as each holds records. No such release loses less than the bound.

By squared errors a class costs the sum of the weighted squared distances of its pairs, divided by
its number of records: what its records lie off their mean.

Why. c never falls when S grows, as is checked; and parts of a class lie no farther off their means.
So a class of 2k records or more can be cut in two without loss, and a best release consists of
*admissible* sets: classes of k to 2k - 1 records that cost |S| c(S), each record in one of them; or
sets of k records that cost c(S), each record in k of them. A certificate has a dual for each
record. The reduced cost of a set is its cost less the duals of its members. Added up over the sets
of a release this says: the release loses the sum of the duals, each as often as its record is
covered, and all reduced costs. If no admissible set has a negative one, the sum of the duals is a
bound. Rows that every release keeps have duals as well: there are at most n / k classes, and by a
cut (T, d) the sets' floor(|S in T| / d) add up to at most floor(|T| coverage / d).

Where the duals fall short of the bound, releases below it consist of sets whose reduced costs are
at most the difference: the pool, which `search` finds by itself. A tree deals with those releases.
A node has new duals, by which no set that is left may have a negative reduced cost; they leave
fewer sets, or none, or reach the bound. Two children share out what is left: sets that hold certain
records occur at most v times, or at least v + 1 times.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections import Counter
from fractions import Fraction
from typing import Any

_LARGEST = Fraction(sys.float_info.max)


class Rejected(Exception):
    """Why a certificate proves nothing."""


def demand(condition: bool, message: str) -> None:
    """Reject the certificate unless the condition holds."""
    if not condition:
        raise Rejected(message)


def whole(number: Any, least: float = -math.inf) -> int:
    """Return a number that must be a whole one."""
    demand(type(number) is int and number >= least, "a number is not whole, or too small")
    return int(number)


class Table:
    """The distinct records, numbered as they first occur, and what sets of them lose."""

    def __init__(self, given: Any) -> None:
        content = json.dumps([given["constant"], given["terms"], given["records"]])
        same = hashlib.sha256(content.encode()).hexdigest() == given["sha256"]
        demand(same, "the table is not the one that was certified")
        records = [tuple(record) for record in given["records"]]
        number = {record: place for place, record in enumerate(dict.fromkeys(records))}
        self.types = [number[record] for record in records]
        self.counts = Counter(self.types)
        self.n, self.k = len(records), whole(given["k"], 2)
        self.classes = given["recoding"] == "classes"
        demand(self.classes or given["recoding"] == "freeform", "the recoding is unknown")
        self.coverage = 1 if self.classes else self.k
        self.largest = min(2 * self.k - 1, self.n) if self.classes else self.k
        # All is counted in parts of 1 / scale; what releases lose are multiples of 1 / unit.
        self.unit, self.scale = whole(given["unit"], 1), whole(given["scale"], 1)
        demand(self.scale % self.unit == 0, "the scale is no multiple of the unit")
        self.constant = self.scaled(given["constant"])
        # Of a row: numbers whose maxima over a set add up, a bit for each value, ranks of values.
        ends: list[list[int]] = []
        bits: list[list[int]] = []
        ranks: list[list[int]] = []
        self.by_count: list[list[int]] = []
        self.by_ranks: list[tuple[str, list[list[int]]]] = []
        self.squared = any(term["kind"] == "squares" for term in given["terms"])
        self.sizes, self.weights = math.lcm(*range(1, self.largest + 1)), []
        for term in given["terms"]:
            demand((term["kind"] == "squares") == self.squared, "squares stand beside others")
            if self.squared:  # `weight` times the square of a difference
                self.weights.append(Fraction(term["weight"]))
                whole(term["column"], 0)
                continue
            values = [record[whole(term["column"], 0)] for record in number]
            if term["kind"] == "range":  # `low` times the least value, `high` times the largest
                low, high = Fraction(term["low"]), Fraction(term["high"])
                demand(low <= 0 <= high, "the loss can fall when a range grows")
                ends += [[self.scaled(end * Fraction(v)) for v in values] for end in (low, high)]
            elif term["kind"] == "set":  # by the number of values: 1, 2, ...
                by_count = [self.scaled(loss) for loss in term["losses"]]
                place = {value: bit for bit, value in enumerate(dict.fromkeys(values))}
                demand(by_count == sorted(by_count), "the loss can fall when a set grows")
                demand(len(place) <= len(by_count), "a term lacks losses")
                bits.append([1 << place[value] for value in values])
                self.by_count.append([0, *by_count])
            elif term["kind"] == "tree":  # by value; over more, the largest of the gaps between
                place = {value: rank for rank, value in enumerate(term["order"])}
                lines = [[self.scaled(loss) for loss in term[key]] for key in ("losses", "gaps")]
                demand(len(lines[0]) == len(place) == len(lines[1]) + 1, "losses lack")
                rises = all(gap >= max(lines[0][at : at + 2]) for at, gap in enumerate(lines[1]))
                demand(rises, "the loss can fall when a cell grows")
                while len(lines[-1]) > 2 ** (len(lines) - 2):  # of 1, 2, 4, ... gaps from one on
                    further = lines[-1][2 ** (len(lines) - 2) :]
                    lines.append([*map(max, lines[-1], further)])
                ranks.append([place[value] for value in values])
                self.by_ranks.append(("tree", lines))
            elif term["kind"] == "capped":  # by how far values lie apart, but no more than `most`
                place = {value: rank for rank, value in enumerate(term["order"])}
                line, most = [*map(self.scaled, term["losses"])], self.scaled(term["most"])
                demand(len(line) == len(place), "losses lack")
                demand(line == sorted(line) and most >= 0, "the loss can fall when a cell grows")
                ranks.append([place[value] for value in values])
                self.by_ranks.append(("capped", [line, [most]]))
            else:  # by the first value in the term's order, then by the last from there on
                place = {value: rank for rank, value in enumerate(term["order"])}
                rows = [[self.scaled(loss) for loss in row] for row in term["losses"]]
                demand([len(row) for row in rows] == [*range(len(place), 0, -1)], "losses lack")
                for row, after in zip(rows, [*rows[1:], []], strict=True):
                    wider = all(outer >= inner for outer, inner in zip(row[1:], after, strict=True))
                    demand(wider and row == sorted(row), "the loss can fall when a cell grows")
                ranks.append([place[value] for value in values])
                self.by_ranks.append(("order", rows))
        if self.squared:
            demand(self.classes and not self.constant, "squares are for classes alone")
            demand(min(self.weights) >= 0, "a weight is negative")
            columns = [term["column"] for term in given["terms"]]
            self.points = [tuple(Fraction(record[c]) for c in columns) for record in number]
        self.rows = [
            tuple(tuple(column[row] for column in columns) for columns in (ends, bits, ranks))
            for row in range(len(number))
        ]

    def scaled(self, number: Any) -> int:
        """Return a number in parts of 1 / scale."""
        units = Fraction(number) * self.unit
        demand(units.denominator == 1, "a loss is no multiple of the unit")
        return int(units) * (self.scale // self.unit)

    def apart(self, row: int, other: int) -> int:
        """Return the weighted squared distance of two records."""
        pairs = zip(self.weights, self.points[row], self.points[other], strict=True)
        parts = sum(weight * (one - two) ** 2 for weight, one, two in pairs) * self.scale
        # A class loses one s-th of these, s being its number of records.
        share = Fraction(parts, self.sizes * (self.scale // self.unit))
        demand(share.denominator == 1, "a class can lose no multiple of the unit")
        return int(parts)

    def set_cost(self, members: Any) -> int:
        """Return the cost of an admissible set of distinct records, held once or more."""
        if self.squared:
            pairs = sum(self.apart(a, b) for at, a in enumerate(members) for b in members[:at])
            demand(pairs % len(members) == 0, "a class loses no multiple of the unit")
            return pairs // len(members)
        loss, covered = 0, None
        for row in members:
            loss, covered = self.grown(covered, row)
        return self.cost(loss, len(members))

    def grown(self, covered: Any, row: int) -> tuple[int, Any]:
        """Return c of a set with one row more, and what it covers; None covers nothing."""
        ends, bits, ranks = self.rows[row]
        if covered is None:
            covered = (ends, bits, ranks, ranks)
        else:
            joined = map(max, covered[0], ends), map(int.__or__, covered[1], bits)
            covered = (*joined, map(min, covered[2], ranks), map(max, covered[3], ranks))
            covered = tuple(map(tuple, covered))
        loss = self.constant + sum(covered[0])
        for by_count, held in zip(self.by_count, covered[1], strict=True):
            loss += by_count[held.bit_count()]
        for (kind, by_ranks), first, last in zip(
            self.by_ranks, covered[2], covered[3], strict=True
        ):
            if kind == "capped":
                line, (most,) = by_ranks
                loss += min(line[last] - line[first], most)
            elif kind == "tree":
                line = by_ranks[(last - first).bit_length()]
                loss += max(line[first], line[last - (2 ** (last - first).bit_length() >> 1)])
            else:
                loss += by_ranks[first][last - first]
        return loss, covered

    def cost(self, loss: int, size: int) -> int:
        """Return the cost of an admissible set of so many records, or of one with so many yet."""
        return loss * size if self.classes else loss

    def release_loss(self, release: Any) -> int:
        """Return what a release loses: a list of classes, or of the sets of all records."""
        lies_in = Counter(whole(i, 0) for members in release for i in members)
        sizes, total = {len(members) for members in release}, 0
        demand(set(lies_in) == set(range(self.n)), "the release lacks records")
        demand(min(sizes) >= self.k, "a set of the release has fewer than k records")
        demand(self.classes or len(sizes) == 1, "the sets of the release differ in size")
        often = {1} if self.classes else sizes
        demand(set(lies_in.values()) == often, "a record lies in too few or too many sets")
        for i, members in enumerate(release):
            own = self.classes or (i in members and len(set(members)) == len(members))
            demand(own, "a set lacks its own record, or holds one twice")
            total += self.set_cost([self.types[j] for j in members])
        return total


class Duals:
    """Duals of the distinct records, of cuts, of the number of classes, and of splits."""

    def __init__(self, table: Table, given: Any, splits: Any = ()) -> None:
        self.of = [whole(dual) for dual in given["duals"]]
        demand(len(self.of) == len(table.rows), "there is not one dual for each distinct record")
        self.count = whole(given["count"], 0)
        demand(table.classes or self.count == 0, "only classes are limited in number")
        self.value = table.coverage * sum(dual * table.counts[t] for t, dual in enumerate(self.of))
        self.value -= self.count * (table.n // table.k)
        self.cuts: list[tuple[int, int]] = []
        self.counted_by: list[list[int]] = [[] for _ in table.rows]
        for rows, divisor, dual in given["cuts"]:
            for row in set(rows):
                self.counted_by[whole(row, 0)].append(len(self.cuts))
            self.cuts.append((whole(divisor, 1), whole(dual, 0)))
            most = table.coverage * sum(table.counts[row] for row in set(rows)) // divisor
            self.value -= dual * most
        self.splits: list[tuple[Counter[int], int]] = []
        for (rows, most, at_most), dual in zip(splits, given["splits"], strict=True):
            weight = -whole(dual, 0) if at_most else whole(dual, 0)
            self.value += weight * (most if at_most else most + 1)
            self.splits.append((rows, weight))

    def penalty(self, members: tuple[int, ...]) -> int:
        """Return what cuts and count add to the reduced cost of a set, and at least of larger."""
        if not self.cuts:
            return self.count
        within = Counter(cut for row in members for cut in self.counted_by[row])
        return self.count + sum(
            times // self.cuts[cut][0] * self.cuts[cut][1] for cut, times in within.items()
        )

    def reduced(self, members: tuple[int, ...], cost: int) -> int:
        """Return the reduced cost of a set."""
        held = Counter(members)
        less = sum(weight for rows, weight in self.splits if rows <= held)
        return cost + self.penalty(members) - sum(self.of[row] for row in members) - less


def search(table: Table, duals: Duals, limit: int) -> dict[tuple[int, ...], int]:
    """Return the admissible sets whose reduced cost is at most the limit, with their costs.

    A set begins with its first row in the order of falling duals. Then comes the row that lets it
    lose most, so that only rows which let it lose less may follow: their largest duals are what can
    still be taken off, and what it loses already is the least that any larger set loses.
    """
    if table.squared:
        return search_squares(table, duals, limit)
    found = {}

    def promising(size: int, loss: int, gain: int, rest: list[int]) -> bool:
        # `gain`: duals of the members less penalty; `rest`: falling duals of those that may follow.
        for total in range(size, table.largest + 1):
            if total >= table.k and table.cost(loss, total) - gain <= limit:
                return True
            if total - size == len(rest):
                return False
            gain += rest[total - size]
        return False

    def visit(
        members: tuple[int, ...], loss: int, covered: Any, gain: int, others: list[int]
    ) -> None:
        size = len(members)
        if size >= table.k:
            cost = table.cost(loss, size)
            if cost - gain + duals.penalty(members) <= limit:
                found[tuple(sorted(members))] = cost
        if size == table.largest:
            return
        most = table.largest - size
        copies = {row: min(table.counts[row] - members.count(row), most) for row in others}
        rest = sorted((duals.of[row] for row in others for _ in range(copies[row])), reverse=True)
        del rest[most:]
        grown = []
        for row in others:
            if copies[row]:
                larger, with_row = table.grown(covered, row)
                if promising(size + 1, larger, gain + duals.of[row] - duals.count, rest):
                    grown.append((larger, row, with_row))
        cheaper: list[int] = []
        rest = []
        for larger, row, with_row in sorted(grown):
            cheaper.append(row)
            rest = sorted(rest + [duals.of[row]] * (copies[row] - 1), reverse=True)[:most]
            taken, with_dual = (*members, row), gain + duals.of[row]
            if promising(size + 1, larger, with_dual - duals.penalty(taken), rest):
                visit(taken, larger, with_row, with_dual, cheaper.copy())
            rest = sorted([*rest, duals.of[row]], reverse=True)[:most]

    order = sorted(range(len(table.rows)), key=lambda row: -duals.of[row])
    for place, root in enumerate(order):
        visit((root,), *table.grown(None, root), duals.of[root], order[place:])
    return found


def search_squares(table: Table, duals: Duals, limit: int) -> dict[tuple[int, ...], int]:
    """Return the same under squared errors.

    A class P that grows by q records Q to s of them costs one s-th of the distances within P, of
    those between P and Q and of those within Q. Of the last each j of Q has at least its q - 1
    least distances to others, and counts half of them: rounded down, a sum of one term a record,
    of which the q least bound all that P may become. What may join is sorted by its term; then
    comes the one that is farthest in that order, so that each class is met once.
    """
    found = {}
    largest = table.largest
    between: dict[tuple[int, int], int] = {}
    near: dict[int, list[int]] = {}

    def apart(row: int, other: int) -> int:
        pair = (row, other) if row < other else (other, row)
        if pair not in between:
            between[pair] = table.apart(*pair)
        return between[pair]

    def promising(
        size: int, pairs: int, gain: int, sizes: list[int], others: list[tuple[int, int]]
    ) -> tuple[list[int], list[tuple[int, int]]]:
        # The sizes that are left, and of the others, with their distances, those that may join.
        left, kept = [], [False] * len(others)
        for total in sizes:
            q = total - size
            if not 0 < q <= len(others):
                continue
            terms = [
                (2 * far + near.get(row, [0] * largest)[q - 1]) // (2 * total) - duals.of[row]
                for row, far in others
            ]
            lowest = sorted(terms)[:q]
            bound = pairs // total - gain + sum(lowest)
            if bound <= limit:
                left.append(total)
                room = limit - bound + lowest[-1]
                kept = [one or term <= room for one, term in zip(kept, terms, strict=True)]
        return left, [one for one, may in zip(others, kept, strict=True) if may]

    def visit(
        members: tuple[int, ...], pairs: int, sizes: list[int], others: list[tuple[int, int]]
    ) -> None:
        size = len(members)
        gain = sum(duals.of[row] for row in members) - duals.penalty(members)
        if size >= table.k:
            demand(pairs % size == 0, "a class loses no multiple of the unit")
            if pairs // size - gain <= limit:
                found[tuple(sorted(members))] = pairs // size
        sizes, others = promising(size, pairs, gain, sizes, others)
        if not sizes:
            return
        others.sort(key=lambda one: (one[1] // sizes[0] - duals.of[one[0]], one[0]))
        for at, (row, far) in enumerate(others):
            # Of alike records the last one stands for all.
            if at + 1 == len(others) or others[at + 1][0] != row:
                rest = [(other, sofar + apart(other, row)) for other, sofar in others[:at]]
                visit((*members, row), pairs + far, sizes, rest)

    order = sorted(range(len(table.rows)), key=lambda row: -duals.of[row])
    sizes = list(range(table.k, largest + 1))
    for place, root in enumerate(order):
        near.clear()
        between.clear()
        others = [
            (row, table.apart(root, row))
            for row in order[place:]
            for _ in range(min(table.counts[row] - (row == root), largest - 1))
        ]
        gain = duals.of[root] - duals.count
        _, others = promising(1, 0, gain, sizes, others)
        # The least distances of each to the others that may join.
        rows = [row for row, _ in others]
        for row in set(rows):
            least = sorted(apart(row, other) for other in rows)[1:largest]
            least += [0] * (largest - 1 - len(least))
            near[row] = [sum(least[:q]) for q in range(largest)]
        visit((root,), 0, sizes, others)
    return found


def refute(
    table: Table, node: Any, left: dict[tuple[int, ...], int], splits: Any, goal: int
) -> None:
    """Prove that no release of the sets that are left, within the splits, loses at most `goal`."""
    duals = Duals(table, node, splits)
    reduced = {members: duals.reduced(members, cost) for members, cost in left.items()}
    demand(min(reduced.values(), default=0) >= 0, "the duals of a node exceed the cost of a set")
    left = {members: left[members] for members in left if duals.value + reduced[members] <= goal}
    if duals.value > goal or not left:
        return
    if "next" in node:
        refute(table, node["next"], left, splits, goal)
        return
    demand("split" in node, "a node of the tree does not reach the bound")
    rows, most = Counter(node["split"]["rows"]), whole(node["split"]["most"], 0)
    for branch, at_most in (("at_most", True), ("more", False)):
        refute(table, node[branch], left, (*splits, (rows, most, at_most)), goal)


def check(certificate: Any) -> tuple[Fraction | None, Fraction]:
    """Return loss and bound if the certificate proves them; else raise `Rejected`."""
    demand(certificate["format"] == "anonymip certificate 1", "the format is unknown")
    table = Table(certificate["problem"])
    bound, loss = Fraction(certificate["bound"]), None
    if certificate["release"] is not None:
        loss = Fraction(table.release_loss(certificate["release"]), table.scale)
        demand(loss == Fraction(certificate["loss"]), "the release does not lose what is said")
        demand(bound <= loss, "the release loses less than the bound")
    demand(max(abs(bound), loss or 0) < _LARGEST, "loss or bound are larger than floats")
    # Releases below the bound lose at most this, the largest multiple of the unit below it.
    goal = (math.ceil(bound * table.unit) - 1) * (table.scale // table.unit)
    proof = certificate["proof"]
    duals = Duals(table, proof)
    pool = search(table, duals, max(goal - duals.value, -1))
    if duals.value <= goal:
        missing = set(pool) - {tuple(members) for members in proof.get("pool", ())}
        demand(not missing, "the pool lacks a set, or the duals do not reach the bound")
    refute(table, proof, pool, (), goal)
    return loss, bound


def sentence(loss: Fraction | None, bound: Fraction) -> str:
    """Return loss and bound in words, the bound never rounded up."""
    # Of whole numbers, which may be larger than floats.
    power = math.log10(abs(bound.numerator) or 1) - math.log10(bound.denominator)
    digits = 5 - math.floor(power)
    below = math.floor(bound * Fraction(10) ** digits) / Fraction(10) ** digits
    # What is proven to the end is printed as the loss is.
    printed = f"{float(bound if loss == bound else below):.6g}"
    lost = "" if loss is None else f"loss {float(loss):.6g}; "
    return f"{lost}no release below {printed} exists."


def main(path: str) -> int:
    """Check the certificate in a file, print what it proves, and return 0 if it proves it."""
    try:
        with open(path, encoding="utf-8") as file:
            certificate = json.load(file)
        loss, bound = check(certificate)
    except Rejected as reason:
        print(f"REJECTED: {reason}")
        return 1
    except (ArithmeticError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        print(f"REJECTED: no certificate ({type(error).__name__})")
        return 1
    asked = certificate["problem"]
    print(f"{asked['recoding']}, k = {asked['k']}, {len(asked['records'])} records:")
    print(sentence(loss, bound))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else "python check.py CERTIFICATE.json")
