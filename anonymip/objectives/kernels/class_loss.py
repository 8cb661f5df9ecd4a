"""Kernels that keep the description of one growing class and its record loss.

Every heuristic and bound works through these few functions, so that all see one loss. They run on
row types in whatever order the caller arranges; attributes that the loss ignores do not appear.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.tables import CAPPED, LossTables
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


class KernelRows(Packed, read_only=True):
    """Rows as the kernels read them, one array a kind of loss term, and the loss."""

    tables: LossTables  # the loss
    range_values: Floats  # (t, r) float64, values from the domain's lower end
    #: (t, s), (t, p) int32, ranks in the levels.
    set_codes: Codes
    pair_codes: Codes


class ClassState(Packed):
    """Description of one class while it grows."""

    #: Ends of the ranges.
    low: Annotated[Floats, "r"]
    high: Annotated[Floats, "r"]
    stamp: Annotated[Ints, "1"]  # number of the class, counted up whenever a new one is opened
    #: Stamp of the last class that held each level, all set attributes in a row.
    member: Annotated[Ints, "levels"]
    member_start: Ints  # (s,) offset of an attribute in `member`
    counts: Annotated[Ints, "s"]  # number of values in each set
    listed: Annotated[Codes, "s, capacity"]  # the values themselves, as long as there is room
    #: Ranks of the range ends.
    pair_low: Annotated[Codes, "p"]
    pair_high: Annotated[Codes, "p"]


def kernel_rows(microdata: Microdata, tables: LossTables, rows: Ints) -> KernelRows:
    """Return the given rows, in the given order, as the kernels read them."""
    arrays = (
        np.ascontiguousarray(
            microdata.values[np.ix_(rows, tables.range_columns)] - tables.range_origin
        ),
        np.ascontiguousarray(microdata.codes[np.ix_(rows, tables.set_columns)]),
        np.ascontiguousarray(microdata.codes[np.ix_(rows, tables.pair_columns)]),
    )
    for array in arrays:
        array.setflags(write=False)
    return KernelRows(tables, *arrays)


def new_state(tables: LossTables, capacity: int) -> ClassState:
    """Return the workspace of one class; `capacity` values of each set are listed."""
    starts = np.concatenate([[0], np.cumsum(tables.set_sizes)]).astype(np.int64)
    r, s, p = tables.term_counts
    return ClassState.of_sizes(
        r=r, s=s, p=p, levels=starts[-1], capacity=capacity, member_start=starts[:-1].copy()
    )


@kernel
def open_class(rows: KernelRows, state: ClassState, row: int) -> None:
    """Start a class with one row."""
    for r in range(len(state.low)):
        state.low[r] = rows.range_values[row, r]
        state.high[r] = rows.range_values[row, r]
    state.stamp[0] += 1
    for s in range(len(state.counts)):
        code = rows.set_codes[row, s]
        state.member[state.member_start[s] + code] = state.stamp[0]
        state.counts[s] = 1
        state.listed[s, 0] = code
    for p in range(len(state.pair_low)):
        state.pair_low[p] = rows.pair_codes[row, p]
        state.pair_high[p] = rows.pair_codes[row, p]


@kernel
def join_class(rows: KernelRows, state: ClassState, row: int) -> None:
    """Add a row to the class."""
    for r in range(len(state.low)):
        value = rows.range_values[row, r]
        state.low[r] = min(state.low[r], value)
        state.high[r] = max(state.high[r], value)
    for s in range(len(state.counts)):
        code = rows.set_codes[row, s]
        if state.member[state.member_start[s] + code] != state.stamp[0]:
            state.member[state.member_start[s] + code] = state.stamp[0]
            if state.counts[s] < state.listed.shape[1]:
                state.listed[s, state.counts[s]] = code
            state.counts[s] += 1
    for p in range(len(state.pair_low)):
        code = rows.pair_codes[row, p]
        state.pair_low[p] = min(state.pair_low[p], code)
        state.pair_high[p] = max(state.pair_high[p], code)


@kernel
def range_loss(tables: LossTables, r: int, low: float, high: float) -> float:
    """Return the loss of a published range.

    The width is taken first: of two large ends that lie close together the difference is exact,
    that of their losses is mostly rounding.
    """
    slope = tables.range_low[r] + tables.range_high[r]
    return tables.range_high[r] * (high - low) + slope * low


@kernel
def ends_loss(tables: LossTables, p: int, low: int, high: int) -> float:
    """Return the loss of a cell by its lowest and its highest rank in O(1)."""
    start, stride = tables.pair_start[p], tables.pair_strides[p]
    if stride > 0:
        return tables.pair_losses[start + low * stride + high]
    if stride == CAPPED:
        end = start + tables.pair_sizes[p]
        width = tables.pair_losses[start + high] - tables.pair_losses[start + low]
        return min(tables.pair_losses[end] * width, tables.pair_losses[end + 1])
    if stride < 0:
        return 0.0 if high <= tables.pair_losses[start + low] else np.inf
    # The highest node over two neighbours of a range: two lines overlap.
    if low == high:
        return tables.pair_losses[start + low]
    # The exponent of a float is the whole part of its logarithm.
    doubled = (np.float64(high - low).view(np.int64) >> 52) - 1023
    line = start + (1 + doubled) * tables.pair_sizes[p]
    return max(
        tables.pair_losses[line + low], tables.pair_losses[line + high - (np.int64(1) << doubled)]
    )


@kernel
def record_loss(tables: LossTables, state: ClassState) -> float:
    """Return the loss of publishing one record as the class."""
    loss = tables.constant
    for r in range(len(state.low)):
        loss += range_loss(tables, r, state.low[r], state.high[r])
    for s in range(len(state.counts)):
        loss += tables.set_losses[tables.set_start[s] + state.counts[s]]
    for p in range(len(state.pair_low)):
        loss += ends_loss(tables, p, state.pair_low[p], state.pair_high[p])
    return loss


@kernel
def joined_loss(rows: KernelRows, state: ClassState, row: int) -> float:
    """Return the record loss of the class if it took in a row."""
    loss = rows.tables.constant
    for r in range(len(state.low)):
        value = rows.range_values[row, r]
        low = min(state.low[r], value)
        high = max(state.high[r], value)
        loss += range_loss(rows.tables, r, low, high)
    for s in range(len(state.counts)):
        count = state.counts[s]
        if state.member[state.member_start[s] + rows.set_codes[row, s]] != state.stamp[0]:
            count += 1
        loss += rows.tables.set_losses[rows.tables.set_start[s] + count]
    for p in range(len(state.pair_low)):
        code = rows.pair_codes[row, p]
        low_code = min(state.pair_low[p], code)
        high_code = max(state.pair_high[p], code)
        loss += ends_loss(rows.tables, p, low_code, high_code)
    return loss


@kernel
def pair_loss(rows: KernelRows, one: int, other: int) -> float:
    """Return the record loss of a class of two rows, or of one row if they are the same."""
    loss = rows.tables.constant
    for r in range(len(rows.tables.range_columns)):
        first, second = rows.range_values[one, r], rows.range_values[other, r]
        low, high = min(first, second), max(first, second)
        loss += range_loss(rows.tables, r, low, high)
    for s in range(len(rows.tables.set_columns)):
        count = 1 if rows.set_codes[one, s] == rows.set_codes[other, s] else 2
        loss += rows.tables.set_losses[rows.tables.set_start[s] + count]
    for p in range(len(rows.tables.pair_columns)):
        low_code = min(rows.pair_codes[one, p], rows.pair_codes[other, p])
        high_code = max(rows.pair_codes[one, p], rows.pair_codes[other, p])
        loss += ends_loss(rows.tables, p, low_code, high_code)
    return loss
