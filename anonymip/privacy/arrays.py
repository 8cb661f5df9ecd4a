"""The kinds of arrays that this room works on, each by a short name."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Shares and numbers of columns.
Floats: TypeAlias = NDArray[np.float64]
#: Places of records, rows and types; counts.
Ints: TypeAlias = NDArray[np.int64]
#: Values and cells by their place among the distinct ones.
Codes: TypeAlias = NDArray[np.int32]
#: Masks.
Flags: TypeAlias = NDArray[np.bool_]
