"""A figure that notebooks show by itself, with nothing else set up."""

from __future__ import annotations

import io

from matplotlib.axes import Axes
from matplotlib.figure import Figure

#: Marks of methods, in their order.
MARKERS = "ovs^D<>pP*X"
#: Dots an inch in a notebook.
_RESOLUTION = 96


class Picture(Figure):
    """A figure of matplotlib that a notebook shows as the value of a cell.

    Notebooks know figures once pyplot has drawn one, which would choose a window system.
    """

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=_RESOLUTION, bbox_inches="tight")
        return buffer.getvalue()


def add_legend(axes: Axes) -> None:
    """Name each thing once, beside what is drawn."""
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    axes.legend(unique.values(), unique.keys(), loc="center left", bbox_to_anchor=(1.0, 0.5))
