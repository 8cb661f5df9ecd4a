"""Closed orders in which equal sensitive values keep a distance."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from anonymip.recodings import Diversity
from anonymip.runtime.arrays import Ints
from anonymip.runtime.kernels import kernel

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
