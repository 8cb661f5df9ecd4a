"""What an objective of the members tier sees: the original values of the members of classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.record import Feature


class Members:
    """The members of B classes of s records each.

    Attributes
    ----------
    rows : numpy.ndarray
        (B, s) int64, the records.
    attributes : tuple of str
        Names of the quasi-identifiers.
    value : Feature
        (B, s) float64: numbers of numeric attributes and of categories that are numbers, else
        ranks.
    code : Feature
        (B, s) int32, ranks among the observed values.
    kind : Feature
        Kind of the attribute.
    """

    def __init__(self, microdata: Microdata, rows: NDArray[np.int64]) -> None:
        self._microdata = microdata
        self.rows = rows
        self.attributes = microdata.names
        self.value = Feature(microdata.names, lambda name: microdata.values[rows, self._at(name)])
        self.code = Feature(microdata.names, lambda name: microdata.codes[rows, self._at(name)])
        self.kind = Feature(microdata.names, lambda name: microdata.attributes[self._at(name)].kind)

    @property
    def microdata(self) -> Microdata:
        """The table that the members are records of."""
        return self._microdata

    def _at(self, name: str) -> int:
        try:
            return self._microdata.names.index(name)
        except ValueError:
            raise InputError(
                f"the objective reads attribute {name!r}, which is no quasi-identifier",
                remedy=f"Quasi-identifiers are {', '.join(self._microdata.names)}",
            ) from None
