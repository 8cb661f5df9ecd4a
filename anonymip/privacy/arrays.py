"""The kinds of arrays that this room works on, each by a short name."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]  # shares and numbers of columns
Ints: TypeAlias = NDArray[np.int64]  # places of records, rows and types; counts
Codes: TypeAlias = NDArray[np.int32]  # values and cells by their place among the distinct ones
Flags: TypeAlias = NDArray[np.bool_]  # masks
