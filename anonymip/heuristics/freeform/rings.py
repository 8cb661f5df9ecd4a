"""Rings on closed orders: their sets, and orders, sizes and parts that make them diverse.

In a diverse order equal sensitive values keep a distance.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Classes, Cover
from anonymip.errors import InputError, NoSolution
from anonymip.orders.lexicographic_parts import Parts
from anonymip.orders.orders import find_order
from anonymip.problem import Problem
from anonymip.recodings import Diversity, Freeform
from anonymip.runtime.arrays import Codes, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel


def ring_degree(problem: Problem, method: str) -> tuple[int, bool]:
    """Return the size of the sets that the recoding asks for and whether they are reciprocal.

    Raises InputError if the records are to have sets of different sizes.
    """
    recoding = problem.recoding
    if not isinstance(recoding, Freeform):
        return problem.k, False
    sizes = recoding.sizes(problem)
    if sizes.min() != sizes.max():
        raise InputError(
            f"{method} gives all records sets of one size, asked for are {sizes.min()} to "
            f"{sizes.max()}",
            remedy="Use greedy, sort-greedy or freeform-mip for degrees of their own",
        )
    return int(sizes[0]), recoding.reciprocal


def ring_of_all(problem: Problem, order: Ints, method: str) -> Cover:
    """Return the ring of the whole table on a closed order.

    Records move in the order, and sets grow, where the problem asks for diverse or reciprocal sets.
    Raises what :func:`ring_degree`, :func:`diverse_parts` and :func:`reciprocal_degree` do.
    """
    degree, reciprocal = ring_degree(problem, method)
    parts = Parts(order, np.zeros(1, np.int64))
    if problem.diversity is not None:
        parts, degree = diverse_parts(problem, parts, degree, method)
    if reciprocal:
        degree = reciprocal_degree(problem, degree, problem.n % 2 == 1)
    return Cover.of(ring_sets(parts.order, parts.starts, degree, reciprocal))


def reciprocal_degree(problem: Problem, degree: int, odd: bool) -> int:
    """Return the size of sets with which every part has a reciprocal ring: the given one or more.

    A reciprocal graph on s records in sets of d has s (d - 1) / 2 edges besides its loops, so s or
    d is odd only one at a time: with s odd and d even there is none. `odd`: whether some part has
    an odd number of records.

    Raises NoSolution if the table has no room for one more, or the recoding names the degrees.
    """
    if degree % 2 == 1 or not odd:
        return degree
    recoding = problem.recoding
    if degree == problem.n or (isinstance(recoding, Freeform) and recoding.degrees is not None):
        raise NoSolution(
            f"an odd number of records has no reciprocal sets of {degree}",
            remedy=f"Ask for k = {degree + 1}, or for sets that need not be reciprocal",
        )
    return degree + 1


def ring_sets(order: Ints, starts: Ints, degree: int, reciprocal: bool = False) -> Codes:
    """Return (n, degree) the set of each record on the ring of its part, ascending.

    The set of a record are the record and the next ones on the closed order of its part. A
    reciprocal ring takes half of them from before it; of an even number, the one left over is
    paired off within segments of the ring.

    `starts`: where each part begins in `order`; parts have `degree` records or more. `reciprocal`:
    whether i lies in the set of l if l lies in that of i; with an even degree all parts need an
    even number of records. Every record lies in as many sets as its set has records: the graph is
    regular. Complexity: O(n degree).
    """
    n = len(order)
    sizes = np.diff(np.append(starts, n))
    size, begin = np.repeat(sizes, sizes), np.repeat(starts, sizes)
    within = np.arange(n) - begin
    if not reciprocal:
        reach = np.arange(degree)
    else:
        half = (degree - 1) // 2
        reach = np.arange(-half, half + 1)
    # One subtraction closes the ring faster than a remainder.
    places = within[:, None] + reach
    places += np.where(places < 0, size[:, None], 0)
    places -= np.where(places >= size[:, None], size[:, None], 0)
    if reciprocal and degree % 2 == 0:
        places = np.column_stack([places, _partners(within, size, degree)])
    sets = np.empty((n, degree), np.int32)
    sets[order] = order[places + begin[:, None]]
    sets.sort(axis=1)
    return sets


def _partners(within: Ints, size: Ints, degree: int) -> Ints:
    """Return (n,) the place across a segment: too far away to be a neighbour already.

    Segments have `degree` records, the last one of a part up to twice as many.
    """
    segment = np.minimum(within // degree, size // degree - 1)
    first = segment * degree
    length = np.where(segment == size // degree - 1, size - first, degree)
    return first + (within - first + length // 2) % length


#: Parts of more than so many times the size of a set, made by merging, are split again.
_LARGE = 20
#: Sizes of sets tried one by one; then they grow by a quarter each.
_TRIED_SIZES = 8


def diverse_parts(problem: Problem, parts: Parts, degree: int, method: str) -> tuple[Parts, int]:
    """Return parts with diverse closed orders, and the size of sets of all their rings.

    Any so many consecutive records of such an order are diverse. So are then the sets of the ring,
    and the values of the rows of each record if it is published along a shift (Wong et al. 2010,
    Section 6). Sets grow from `degree` until there are such orders: to a multiple of l, with which
    two sets of one value need not be wholly different, and at worst to the whole table.

    Parts that have too many records of a value are merged with a neighbour until none is left;
    large parts made in this way are split again where both pieces are diverse (there pieces have
    each value at most once, here they may be larger, which loses less). `parts`: of at least
    `degree` records each. Raises NoSolution, which names the `method`, if the recoding names the
    degrees, and there are no such parts.
    """
    assert problem.diversity is not None
    sensitive = problem.microdata.sensitive_codes
    for size in _sizes(problem, degree):
        if not has_room(parts.order, sensitive, size, problem.diversity):
            continue
        pieces = _merged(parts, sensitive, size, problem.diversity)
        if pieces is not None:
            sizes = [len(piece) for piece in pieces]
            starts = np.cumsum(sizes) - np.array(sizes, np.int64)
            return Parts(np.concatenate(pieces), starts.astype(np.int64)), size
    raise NoSolution(
        f"{method} finds no closed order in which any {degree} consecutive records have the "
        f"{problem.diversity}",
        remedy="Ask for degrees that are multiples of l, for less, or use freeform-mip",
    )


def classes_for_rings(problem: Problem) -> list[tuple[int, Diversity]]:
    """Return sizes of sets, and what classes of so many records need to hold diverse rings.

    In the ring of a class of s records, sets of d hold a value d / s times as often as the class
    does, rounded up: classes in which it makes up floor(d / l) / d or less have room. The first
    size is the least one that the table has room for; where l does not divide it, that asks more
    than l, and the next size, which allows one more of a value, is a second choice.
    """
    diversity, found = problem.diversity, list[tuple[int, Diversity]]()
    assert diversity is not None
    every, (numerator, denominator) = np.arange(problem.n), diversity.ratio
    for size in _sizes(problem, ring_degree(problem, "a ring")[0]):
        most = size * denominator // numerator
        if most >= 1 and has_room(every, problem.microdata.sensitive_codes, size, diversity):
            divides = most * numerator == size * denominator
            found.append((size, diversity if divides else replace(diversity, l=size / most)))
            if divides or len(found) == 2:
                break
    return found


def rings_in_classes(problem: Problem, classes: Classes, size: int, budget: Budget) -> Cover:
    """Return a cover whose sets are diverse rings within classes, or within some of them together.

    It loses no more than the classes where each has a closed order that is diverse; others are
    merged with neighbours on the Hilbert curve, as parts are (:func:`diverse_parts`). `classes`: of
    `size` records or more, none left out. `budget`: of the curve. Raises NoSolution if there are no
    such parts.
    """
    rank = np.argsort(find_order(problem, "hilbert", budget))
    first = np.full(int(classes.labels.max()) + 1, problem.n)
    np.minimum.at(first, classes.labels, rank)
    order = np.lexsort((rank, first[classes.labels]))
    starts = np.flatnonzero(np.diff(classes.labels[order], prepend=-1)).astype(np.int64)
    parts, size = diverse_parts(problem, Parts(order, starts), size, "a ring in each class")
    reciprocal = ring_degree(problem, "a ring")[1]
    return Cover.of(ring_sets(parts.order, parts.starts, size, reciprocal))


def _sizes(problem: Problem, degree: int) -> Iterator[int]:
    """Yield sizes of sets: the least one, then those that allow one more of a value, up to n."""
    assert problem.diversity is not None
    recoding, n = problem.recoding, problem.n
    # Only of an odd number are the sets of a reciprocal ring consecutive records.
    odd = isinstance(recoding, Freeform) and recoding.reciprocal
    if degree % 2 == 1 or not odd:
        yield degree
    if isinstance(recoding, Freeform) and recoding.degrees is not None:
        return
    numerator, denominator = problem.diversity.ratio
    size, tried, least = degree, 0, degree
    while size < n - 1:
        size += 1
        before = size - 2 if odd else size - 1
        one_more = size * denominator // numerator > before * denominator // numerator
        if one_more and size >= least and (not odd or size % 2 == 1):
            yield size
            tried += 1
            if tried >= _TRIED_SIZES:
                least = size + size // 4
    if degree < n:
        yield n


def _merged(
    parts: Parts, sensitive: NDArray[np.integer], size: int, diversity: Diversity
) -> list[Ints] | None:
    """Return diverse closed orders of merged parts; None if even one part for all has none."""
    whole = np.split(parts.order, parts.starts[1:])
    done: list[Ints] = []
    taken: list[Ints] = []
    at = 0
    while at < len(whole):
        part, alone, first = whole[at], True, at
        at += 1
        found = diverse_order(part, sensitive, size, diversity)
        while found is None and (done or at < len(whole)):
            alone = False
            left = np.concatenate([taken[-1], part]) if done else None
            right = whole[at] if at < len(whole) else None
            # The left neighbour is diverse already: joining it may suffice where the right one
            # brings needs of its own.
            if left is not None:
                found = diverse_order(left, sensitive, size, diversity)
            if left is not None and (found is not None or right is None):
                part = left
                done.pop()
                taken.pop()
            elif right is not None:
                # Ever more at once, so that merging thousands takes few steps.
                more = max(1, (at - first) // 4)
                part, at = np.concatenate([part, *whole[at : at + more]]), at + more
                found = diverse_order(part, sensitive, size, diversity)
        if found is None:
            return None
        if alone or len(found) <= _LARGE * size:
            done.append(found)
            taken.append(part)
        else:
            for piece in _split(found, sensitive, size, diversity):
                done.append(piece)
                taken.append(piece)
    return done


def _split(
    order: Ints, sensitive: NDArray[np.integer], size: int, diversity: Diversity
) -> list[Ints]:
    """Cut a diverse order into pieces that are diverse on their own, of twice a set or more."""
    pieces: list[Ints] = []
    begin, length = 0, 2 * size
    while len(order) - begin >= length + 2 * size:
        piece = diverse_order(order[begin : begin + length], sensitive, size, diversity)
        rest = order[begin + length :]
        if piece is None or not has_room(rest, sensitive, size, diversity):
            length += max(1, length // 4)
            continue
        pieces.append(piece)
        begin, length = begin + length, 2 * size
    rest = order[begin:]
    last = diverse_order(rest, sensitive, size, diversity)
    while last is None and pieces:
        # The pieces before give records back until the rest has an order of its own.
        rest = np.concatenate([pieces.pop(), rest])
        last = diverse_order(rest, sensitive, size, diversity)
    return [*pieces, order if last is None else last]


#: How far away a record is looked for that can change places with one that fits nowhere near.
_SWAP_REACH = 3000
_SWAP_PASSES = 4
#: Places of the closed order at which it begins to place records, until that succeeds.
_BEGINNINGS = 8
#: Windows looked at at a time.
_BATCH = 100_000


def is_diverse_around(
    order: Ints, sensitive: NDArray[np.integer], window: int, diversity: Diversity
) -> bool:
    """Return whether any `window` consecutive records of a closed order are diverse.

    The first record follows the last; the window is at most the length of the order.
    """
    n = len(order)
    for begin in range(0, n, _BATCH):
        starts = np.arange(begin, min(begin + _BATCH, n))
        places = (starts[:, None] + np.arange(window)) % n
        if not diversity.met_by(sensitive[order[places]]).all():
            return False
    return True


def diverse_order(
    order: Ints, sensitive: NDArray[np.integer], window: int, diversity: Diversity
) -> Ints | None:
    """Return an order in which any so many consecutive records are diverse, near the given one.

    The order is closed: the first record follows the last. Records come in the given order, but
    those that would spoil a window wait until they fit; values of which so many are left that they
    would not fit later are served first. What then still spoils a window changes places with the
    nearest record with which that helps. If that fails wherever on the closed order it begins, and
    there is one sensitive column, equal values are spread evenly over the whole order, which
    succeeds if l is a whole number, the window a multiple of it, and no value has more than a share
    of 1/l.

    `order`: all records, or some of them. `sensitive`: (n, columns) codes of all records.
    `diversity`: what consecutive records must have (Wong et al. 2010, Section 6: no l of them share
    a value). None if no order is found. Complexity: O(n window log v) for v combinations of
    sensitive values, and O(window) for each change of places tried.
    """
    n = len(order)
    if n < window or not has_room(order, sensitive, window, diversity):
        return None
    if is_diverse_around(order, sensitive, window, diversity):
        return order
    numerator, denominator = diversity.ratio
    most = window * denominator // numerator
    codes = np.ascontiguousarray(sensitive[order], np.int64)
    combinations = np.unique(codes, axis=0, return_inverse=True)[1].ravel().astype(np.int64)
    distinct = int(diversity.distinct)
    for begin in range(0, n, max(1, n // _BEGINNINGS)):
        turned = np.roll(combinations, -begin)
        moved = np.roll(codes, -begin, axis=0)
        places = _place(moved, turned, window, most, distinct)
        places = (places + begin) % n
        _repair(codes, places, window, most, distinct, min(_SWAP_REACH, n // 2))
        if is_diverse_around(order[places], sensitive, window, diversity):
            return order[places]
    if sensitive.shape[1] > 1:
        return None
    spread = order[_spread(codes[:, 0], window, most, diversity)]
    return spread if is_diverse_around(spread, sensitive, window, diversity) else None


def has_room(
    order: Ints, sensitive: NDArray[np.integer], window: int, diversity: Diversity
) -> bool:
    """Return whether the numbers of equal values allow an order in which windows are diverse.

    Each record lies in as many windows as they are long, and each window holds a value only so
    often. Necessary, not sufficient.
    """
    numerator, denominator = diversity.ratio
    most = window * denominator // numerator
    for column in range(sensitive.shape[1]):
        counts = np.bincount(sensitive[order, column])
        if int(counts.max()) * window > len(order) * most:
            return False
        if np.count_nonzero(counts) < diversity.distinct or window < diversity.distinct:
            return False
    return True


@kernel
def _place(codes: Ints, combinations: Ints, window: int, most: int, distinct: int) -> Ints:
    """Return the places in the given order, each as early as it fits."""
    n, columns = codes.shape
    # Records of each value that are not placed yet.
    left = np.zeros((columns, codes.max() + 1), np.int64)
    for at in range(n):
        for column in range(columns):
            left[column, codes[at, column]] += 1
    # A heap of the first record not yet placed of each combination, and which one follows it.
    last, following = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    heads = [np.int64(0) for _ in range(0)]
    for at in range(n):
        if last[combinations[at]] < 0:
            heapq.heappush(heads, np.int64(at))
        else:
            following[last[combinations[at]]] = at
        last[combinations[at]] = at
    placed = np.full(n, -1, np.int64)
    waiting = np.empty(n, np.int64)
    counts = np.zeros(codes.max() + 1, np.int64)
    top = int(left.max())
    # How many values have so many records left.
    having = np.zeros(top + 1, np.int64)
    for number in left.ravel():
        having[number] += 1
    for place in range(n):
        rest = n - place
        while top > 0 and having[top] == 0:
            top -= 1
        # Values of which so many are left that any other choice would leave too little room.
        urgent = top * window > (rest - window) * most
        # The first record that fits; if a value is urgent the first with such a value, and `second`
        # is the first without.
        chosen, second, waits = -1, -1, 0
        while len(heads) > 0:
            head = int(heapq.heappop(heads))
            if _fits(codes, placed, place, head, window, most, distinct, counts):
                most_left = False
                for column in range(columns):
                    most_left |= left[column, codes[head, column]] == top
                if most_left or not urgent:
                    chosen = head
                    break
                if second < 0:
                    second = head
            waiting[waits] = head
            waits += 1
        # If nothing fits the first of all is placed, although it spoils a window.
        if chosen < 0:
            chosen = second if second >= 0 else int(waiting[0])
        # Those passed over wait for the next place.
        for number in range(waits):
            if waiting[number] != chosen:
                heapq.heappush(heads, waiting[number])
        placed[place] = chosen
        # The heap goes on with the next record of the same combination.
        if following[chosen] >= 0:
            heapq.heappush(heads, following[chosen])
        for column in range(columns):
            value = codes[chosen, column]
            having[left[column, value]] -= 1
            left[column, value] -= 1
            having[left[column, value]] += 1
    return placed


@kernel
def _fits(
    codes: Ints,
    placed: Ints,
    place: int,
    at: int,
    window: int,
    most: int,
    distinct: int,
    counts: Ints,
) -> bool:
    """Return whether a record at a place spoils no window of those that are placed."""
    n = len(placed)
    for column in range(codes.shape[1]):
        value = codes[at, column]
        # A window slides over the places around; what is not placed yet counts nothing.
        inside = 1
        for back in range(1, window):
            inside += _shows(codes, placed, (place - back) % n, column, value)
        if inside > most:
            return False
        for step in range(1, min(window, n - window + 1)):
            inside += _shows(codes, placed, (place + step) % n, column, value)
            inside -= _shows(codes, placed, (place + step - window) % n, column, value)
            if inside > most:
                return False
        if distinct > 1 and not _has_distinct(
            codes[:, column], placed, place, value, window, distinct, counts
        ):
            return False
    return True


@kernel
def _shows(codes: Ints, placed: Ints, place: int, column: int, value: int) -> int:
    return 1 if placed[place] >= 0 and codes[placed[place], column] == value else 0


@kernel
def _has_distinct(
    values: Ints, placed: Ints, place: int, value: int, window: int, distinct: int, counts: Ints
) -> bool:
    """Return whether windows that end here or later can still have enough values."""
    counts[value] += 1
    different, length, enough = 1, 1, True
    while enough:
        enough = different + window - length >= distinct
        if length == window or length > place:
            break
        earlier = values[placed[place - length]]
        if counts[earlier] == 0:
            different += 1
        counts[earlier] += 1
        length += 1
    counts[value] = 0
    for back in range(1, length):
        counts[values[placed[place - back]]] = 0
    return enough


@kernel
def _spoiled(
    codes: Ints, placed: Ints, place: int, window: int, most: int, distinct: int, counts: Ints
) -> int:
    """Return what is too much or too little in the windows that hold a place."""
    n, spoiled = len(placed), 0
    for column in range(codes.shape[1]):
        different, over = 0, 0
        last = min(window, n)
        for step in range(-window + 1, last):
            value = codes[placed[(place + step) % n], column]
            counts[value] += 1
            different += counts[value] == 1
            over += counts[value] > most
            if step >= 0:
                spoiled += over + max(0, distinct - different)
                first = codes[placed[(place + step - window + 1) % n], column]
                over -= counts[first] > most
                counts[first] -= 1
                different -= counts[first] == 0
        for step in range(last - window + 1, last):
            counts[codes[placed[(place + step) % n], column]] = 0
    return spoiled


@kernel
def _repair(codes: Ints, placed: Ints, window: int, most: int, distinct: int, reach: int) -> None:
    """Let records that spoil windows change places with the nearest with which that helps."""
    n = len(placed)
    counts = np.zeros(codes.max() + 1, np.int64)
    for _ in range(_SWAP_PASSES):
        clean, failed = True, 0
        for place in range(n):
            here = _spoiled(codes, placed, place, window, most, distinct, counts)
            if here == 0:
                continue
            clean = False
            helped = False
            # The nearest swap that lowers what is spoiled around both places.
            for distance in range(1, reach + 1):
                for sign in (-1, 1):
                    other = (place + sign * distance) % n
                    before = here + _spoiled(codes, placed, other, window, most, distinct, counts)
                    placed[place], placed[other] = placed[other], placed[place]
                    after = _spoiled(codes, placed, place, window, most, distinct, counts)
                    after += _spoiled(codes, placed, other, window, most, distinct, counts)
                    if after < before:
                        helped = True
                        break
                    placed[place], placed[other] = placed[other], placed[place]
                if helped:
                    break
            failed += not helped
            # So many places at which no swap helps: the order is given up.
            if failed > 20:
                return
        if clean:
            return


def _spread(codes: Ints, window: int, most: int, diversity: Diversity) -> Ints:
    """Return places of a given order such that equal values lie evenly spaced.

    The circle is cut into segments. The records, frequent values first, fill the first place of
    every segment, then the second of every segment, and so on; so the records of one value lie in
    segments of their own, one segment from the next. A value with a record for every segment
    begins in the first one; a less frequent one that goes on in the next column leaves out a
    segment at least.
    """
    n = len(codes)
    numerator, denominator = diversity.ratio
    if denominator == 1:
        # Segments of l with one record of a value; windows are as diverse as their parts.
        window, most = (numerator, 1) if window % numerator == 0 else (window, most)
    segments = max(1, n * most // window)
    counts = np.bincount(codes)
    by_value = np.lexsort((np.arange(n), codes, -counts[codes]))
    if most == 1:
        sizes = n // segments + (np.arange(segments) < n % segments)
        begins = np.cumsum(sizes) - sizes
    else:
        begins = -(-np.arange(segments) * n // segments)
        sizes = np.diff(np.append(begins, n))
    column = np.arange(n) - np.repeat(begins, sizes)
    slots = np.lexsort((np.arange(n), column))
    places = np.empty(n, np.int64)
    places[slots] = by_value
    return places
