"""The kinds of arrays that are handed from room to room, each by a short name."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]  # losses, duals, values
Ints: TypeAlias = NDArray[np.int64]  # places of records, types and columns; counts
#: Coded values of a table, nodes of hierarchies, labels of classes.
Codes: TypeAlias = NDArray[np.int32]
Flags: TypeAlias = NDArray[np.bool_]  # masks
