"""From templates and figures to a page that needs nothing beside it."""

from __future__ import annotations

import io
import re
from functools import cache
from typing import Any

import matplotlib as mpl
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

#: Drawn in place of what is to have the colour of the page's text, light or dark.
_INK = "#010203"
#: Colours that stand out from white and from black.
PALETTE = (
    *("#3b7dd8", "#d1691f", "#2f9e5b", "#c2417c", "#8a6fd1"),
    *("#a38a12", "#1f9aa8", "#c4514a", "#7d8f2a", "#8c8c8c"),
)
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "anonymip",
    "font.size": 10,
    "font.family": "sans-serif",
    **dict.fromkeys(
        (
            *("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor"),
            *("xtick.color", "ytick.color", "grid.color"),
        ),
        _INK,
    ),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "legend.frameon": False,
    "grid.alpha": 0.2,
}


def drawing() -> Any:
    """Return a block within which figures are drawn in the style of the pages."""
    return mpl.rc_context(_STYLE)


def inline(figure: Figure, description: str) -> Markup:
    """Return a figure as an element of a page, in the page's own colours.

    Parameters
    ----------
    figure
        Drawn within :func:`drawing`.
    description
        What it shows, for those who cannot see it.
    """
    buffer = io.StringIO()
    with drawing():
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    drawn = buffer.getvalue()
    drawn = drawn[drawn.index("<svg") :].replace(_INK, "currentColor")
    # A page tells its width; what names the picture's own would keep it from shrinking.
    drawn = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", drawn, count=1)
    drawn = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", drawn, count=1)
    label = Markup(' role="img" aria-label="{}"').format(description)
    # The drawing is matplotlib's: it escapes every text that it is given.
    return Markup(drawn.replace("<svg", f"<svg{label}", 1))


def render(template: str, **shown: object) -> str:
    """Return the page of a template; every text that is shown is escaped."""
    return _environment().get_template(template).render(shown)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("anonymip.experiments.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
