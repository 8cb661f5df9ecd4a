"""Releases as Excel workbooks: texts stay texts, dates are dates, nothing is a formula."""

from __future__ import annotations

import re
from datetime import date, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonymip.errors import InputError, missing_extra

#: What a sheet and a cell hold, by Excel's specifications and limits.
_ROWS, _COLUMNS, _SIGNS = 1_048_576, 16_384, 32_767
_EXACT = 2**53  # whole numbers that a spreadsheet, which counts in floating point, keeps
#: Signs that XML has none for, or reads as others.
_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]")


def write_workbook(frame: pd.DataFrame, path: Path | BytesIO) -> None:
    """Write a table into the only sheet of a workbook.

    Texts are written as texts, whatever they begin with: a spreadsheet runs none of them. Moments
    with a time zone and whole numbers that have too many digits for a spreadsheet become texts.
    Raises InputError if openpyxl is missing, or a sheet cannot hold the table.
    """
    try:
        from openpyxl import Workbook
    except ImportError:
        raise missing_extra("excel", "Excel files are written by openpyxl") from None
    if len(frame) >= _ROWS or len(frame.columns) > _COLUMNS:
        raise InputError(
            f"a sheet of Excel holds {_ROWS - 1:,} rows and {_COLUMNS:,} columns",
            remedy="Write CSV or Parquet",
        )
    book = Workbook(write_only=True)
    sheet = book.create_sheet("release")
    try:
        # All cells before the first is written: a sheet that is left half written stays open.
        columns = [frame.iloc[:, place].astype(object) for place in range(len(frame.columns))]
        cells = zip(*(column.where(column.notna(), None) for column in columns), strict=True)
        rows = [[_cell(value, sheet) for value in row] for row in (map(str, frame.columns), *cells)]
        for row in rows:
            sheet.append(row)
    except (ValueError, TypeError, OverflowError) as error:
        # The error's own text quotes values.
        raise InputError(
            f"the table cannot be written as Excel ({type(error).__name__}): a cell holds "
            "something that no cell of a workbook can",
            remedy="Write CSV or Parquet",
        ) from error
    book.save(path)


def _cell(value: Any, sheet: Any) -> Any:
    """Return what stands in a cell; raises ValueError for a text that would not come back."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _EXACT:
        value = str(value)
    if isinstance(value, datetime):
        # Excel knows no zones, and of moments of pandas no nanoseconds.
        exact = value.tzinfo is None and not getattr(value, "nanosecond", None)
        value = value if exact else value.isoformat()
    elif not isinstance(value, (bool, int, float, date, type(None))):
        value = str(value)
    if isinstance(value, float) and not np.isfinite(value):
        value = str(value)
    if not isinstance(value, str):
        return value
    if len(value) > _SIGNS or _NO_TEXT.search(value):
        raise ValueError
    if not value.startswith(("=", "#")):
        return value or None
    # What looks like a formula or an error is neither.
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, value=value)
    cell.data_type = "s"
    return cell
