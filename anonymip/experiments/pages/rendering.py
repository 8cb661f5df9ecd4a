"""From templates and figures to a page that needs nothing beside it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anonymip.experiments.names import Named, Names
from anonymip.experiments.style import (
    COLOURS,
    INK,
    drawing,
    legend_below,
)

#: Inches of a picture on a wide screen and on a narrow one, and how high it is if nobody says.
_WIDE, _NARROW, _HIGH = 11.6, 4.3, 4.4


@dataclass(frozen=True)
class Sheet:
    """What a picture of a page is drawn on: once for wide screens, once for narrow ones.

    Parameters
    ----------
    figure
        Its figure.
    is_narrow
        Whether there is room for no more than the plot, with all names below it.
    names
        Those beside what they name.
    """

    figure: Figure
    is_narrow: bool
    names: Names

    def name_ends(self, axes: Axes, named: Sequence[Named]) -> None:
        """Name lines at the right of the plot, on narrow screens below it."""
        if not self._below(axes):
            self.names.at_ends(axes, named)

    def name_points(self, axes: Axes, named: Sequence[Named]) -> None:
        """Name points beside them, on narrow screens below the plot."""
        if not self._below(axes):
            self.names.at_points(axes, named)

    def _below(self, axes: Axes) -> bool:
        if self.is_narrow:
            handles, labels = axes.get_legend_handles_labels()
            legend_below(self.figure, dict(zip(labels, handles, strict=True)))
        return self.is_narrow


def inline(draw: Callable[[Sheet], None], description: str, *, height: float = _HIGH) -> Markup:
    """Return a picture as elements of a page, in the page's own colours.

    Parameters
    ----------
    draw
        Draws it: a page shows the drawing that fits its window.
    description
        What it shows, for those who cannot see it.
    height
        Of the plot, in inches.
    """
    return Markup("").join(
        _drawn(draw, description, height, is_narrow=narrow) for narrow in (False, True)
    )


def _drawn(
    draw: Callable[[Sheet], None], description: str, height: float, *, is_narrow: bool
) -> Markup:
    kind = "narrow" if is_narrow else "wide"
    # Marks have their names from the salt: those of a drawing that is not shown draw nothing.
    with drawing(**{"svg.hashsalt": f"{kind}: {description}"}):
        size = (_NARROW, max(3.2, 0.8 * height)) if is_narrow else (_WIDE, height)
        figure = Figure(figsize=size, layout="constrained")
        sheet = Sheet(figure, is_narrow, Names(figure))
        draw(sheet)
        sheet.names.settle()
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    drawn = buffer.getvalue()
    drawn = drawn[drawn.index("<svg") :].replace(INK, "currentColor")
    for name, (light, _) in COLOURS.items():
        drawn = drawn.replace(light, f"var(--{name})")
    # A page tells its width; what names the picture's own would keep it from shrinking.
    drawn = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", drawn, count=1)
    drawn = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", drawn, count=1)
    # Names of groups are the same in all drawings, and nothing asks for them.
    asked = set(re.findall(r"#([\w.-]+)", drawn))
    drawn = re.sub(r' id="([\w.-]+)"', lambda found: found[0] * (found[1] in asked), drawn)
    label = Markup(' class="{}" role="img" aria-label="{}"').format(kind, description)
    # The drawing is matplotlib's: it escapes every text that it is given.
    return Markup(drawn.replace("<svg", f"<svg{label}", 1))


def render(template: str, **shown: object) -> str:
    """Return the page of a template; every text that is shown is escaped."""
    return _environment().get_template(template).render(shown, colours=COLOURS)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("anonymip.experiments.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
