"""Pages of HTML, each complete in itself: how they are written, and the page about runs."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anonymip.experiments.names import Named, Names
from anonymip.experiments.overview import COLUMNS, overview, overview_texts, reasons
from anonymip.experiments.pictures import draw_front
from anonymip.experiments.style import COLOURS, INK, Look, drawing, legend_below, looks_of
from anonymip.experiments.summaries import drawn_front, pareto_front
from anonymip.experiments.thermometer import Column, draw_columns
from anonymip.status import Stopped
from anonymip.tolerances import OPTIMALITY_RELATIVE, same_loss

#: Inches of a picture on a wide screen and on a narrow one, and how high it is if nobody says.
_WIDE, _NARROW, _HIGH = 11.6, 4.3, 4.4


def inline(
    draw: Callable[[Axes], Sequence[Named]],
    description: str,
    *,
    height: float = _HIGH,
    at_points: bool = False,
) -> Markup:
    """Return a picture of one plot as elements of a page, in the page's own colours.

    There is one for wide screens and one for narrow ones, of which a page shows what fits its
    window. `draw`: draws the plot, and returns the names in it. `description`: what it shows, for
    those who cannot see it. `height`: of the plot, in inches. `at_points`: whether names stand
    beside their points, or else at the right of the plot.
    """
    sizes = {"wide": (_WIDE, height), "narrow": (_NARROW, max(3.2, 0.8 * height))}
    drawn = (_drawn(draw, kind, size, description, at_points) for kind, size in sizes.items())
    return Markup("").join(drawn)


def _drawn(
    draw: Callable[[Axes], Sequence[Named]],
    kind: str,
    size: tuple[float, float],
    description: str,
    at_points: bool,
) -> Markup:
    # Marks have their names from the salt: those of a drawing that is not shown draw nothing.
    with drawing(**{"svg.hashsalt": f"{kind}: {description}"}):
        figure = Figure(figsize=size, layout="constrained")
        axes, names = figure.add_subplot(), Names(figure)
        named = draw(axes)
        if kind == "narrow" and named:
            # There is room for no more than the plot.
            handles, labels = axes.get_legend_handles_labels()
            legend_below(figure, dict(zip(labels, handles, strict=True)))
        elif at_points:
            names.at_points(axes, named)
        else:
            names.at_ends(axes, named)
        names.settle()
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
    return _TEMPLATES.get_template(template).render(shown, colours=COLOURS)


_TEMPLATES = Environment(
    loader=PackageLoader("anonymip.experiments"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def optimum_chart(means: pd.DataFrame, looks: Mapping[str, Look]) -> Markup:
    """Return, for each k, the mean losses of methods above and the mean best bound below.

    `means`: of one table and recoding: ``k``, ``label``, ``shown``, ``floor`` (missing if there is
    no bound) and ``proven``, whether the floor is the optimum. `looks`: of all labels of the page.
    """
    columns = []
    for k, rows in means.groupby("k"):
        floor, proven = rows["floor"].iloc[0], bool(rows["proven"].iloc[0])
        losses = rows.dropna(subset=["shown"]).set_index("label")["shown"]
        columns.append(
            Column(
                int(str(k)),
                {str(label): float(loss) for label, loss in losses.items()},
                None if pd.isna(floor) else float(floor),
                proven,
                "proven optimum" if proven else "proven bound",
            )
        )

    def draw(axes: Axes) -> list[Named]:
        axes.set_ylabel("loss")
        return draw_columns(axes, columns, looks)

    return inline(draw, "Losses of the methods above, the optimum or the best bound below")


def time_chart(front: pd.DataFrame, looks: Mapping[str, Look]) -> Markup | None:
    """Return the mean loss of each method against its mean time, those that none beats joined.

    `front`: ``label``, ``ratio``, ``seconds`` and ``on_front``. `looks`: of all labels of the page.
    """
    points, joined = drawn_front(front)
    if len(points) < 2:
        return None

    def draw(axes: Axes) -> list[Named]:
        axes.set_xlabel("seconds")
        axes.set_ylabel("loss over the least found")
        return draw_front(axes, points, joined, loss="ratio", time="seconds", looks=looks)

    return inline(draw, "Mean loss of each method against its mean time", at_points=True)


def spread_chart(runs: pd.DataFrame, looks: Mapping[str, Look]) -> Markup:
    """Return the ratios of all runs of each method, a line of points with its median.

    `runs`: ``label`` and ``ratio``, one row a run. `looks`: of all labels of the page.
    """
    labels = list(dict.fromkeys(map(str, runs["label"])))

    def draw(axes: Axes) -> tuple[()]:
        for at, label in enumerate(labels):
            ratios = runs.loc[runs["label"] == label, "ratio"].to_numpy(np.float64)
            # Points of equal ratios lie beside each other, in the order of the runs.
            aside = 0.5 * (np.arange(len(ratios)) / max(1, len(ratios) - 1) - 0.5)
            axes.plot(ratios, at + aside, **looks[label].dots, markersize=4, alpha=0.6)
            middle = float(np.median(ratios))
            axes.plot([middle, middle], [at - 0.38, at + 0.38], color=looks[label].colour)
        axes.set_yticks(range(len(labels)), labels)
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlabel("loss over the least known")
        axes.grid(axis="x")
        return ()

    return inline(draw, "Ratios of all runs of each method", height=1.0 + 0.4 * len(labels))


_PROBLEM = ["instance", "n", "m", "sample", "k"]
_TABLE = ["instance", "n", "m", "recoding"]
_MOST_PICTURES = 8  # more tables are in the list of methods alone
#: Columns of the list that are numbers, and what they are sorted by.
_KEYS = {"k": "k", "loss": "loss", "to optimum": "ratio", "gap": "gap", "seconds": "seconds"}


def runs_page(frame: pd.DataFrame, title: str) -> str:
    """Return a page about runs, the rows of an experiment's table, complete in itself."""
    runs = _measured(frame)
    solved = runs.dropna(subset=["shown"])
    tables = list(solved.groupby(_TABLE, sort=False, dropna=False))
    looks = looks_of(frame["label"])
    # Of one table its name is in the question.
    one = int(len(frame.drop_duplicates(_TABLE[:3])) == 1)
    over = solved["shown"] / solved["least"].where(solved["least"] != 0)
    measured = solved.assign(ratio=over.fillna(1.0), all="")
    front = pareto_front(measured, by=["all"], loss="ratio")
    return render(
        "runs.html",
        title=title,
        question=_question(frame),
        answers=_answers(solved),
        tables=[_table(names, rows, looks) for names, rows in tables[:_MOST_PICTURES]],
        left_out=max(0, len(tables) - _MOST_PICTURES),
        times=time_chart(front, looks),
        spread=spread_chart(solved, looks) if len(set(solved["sample"])) > 1 else None,
        measured_by="proven optimum" if solved["proven"].all() else "best bound or least loss",
        columns=[{"name": name, "number": name in _KEYS} for name in COLUMNS[one:]],
        rows=[row[one:] for row in _rows(frame)],
        refusals=reasons(frame),
        surroundings=_surroundings(frame),
    )


def _measured(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with what is shown of them, and what they are measured by.

    ``shown``: the loss, of GCP the mean penalty of a cell; ``floor``: the optimum of the problem if
    it is proven, else its best bound, likewise; ``least``: the least loss that a method of the
    recoding found; ``ratio``: the loss over the floor, or over the least without one.
    """
    is_gcp = frame["objective_name"] == "gcp"
    shown = frame["loss"].mask(is_gcp, frame["gcp"]).astype("float64")
    unit = (shown / frame["loss"].astype("float64")).replace([np.inf, -np.inf], np.nan)
    bound = frame["bound"].astype("float64") * unit
    proven = frame["status"] == Stopped.OPTIMAL.value
    keyed = frame.assign(shown=shown, best=bound, optimum=shown.where(proven))
    groups = keyed.groupby([*_PROBLEM, "recoding"], dropna=False, sort=False)
    optimum = groups["optimum"].transform("min")
    floor = optimum.fillna(groups["best"].transform("max"))
    least = groups["shown"].transform("min")
    by = floor.where(floor > 0, least)
    ratio = (shown / by.where(by != 0)).mask((shown == 0) & (by == 0), 1.0)
    return keyed.assign(floor=floor, proven=optimum.notna(), least=least, ratio=ratio)


def _question(frame: pd.DataFrame) -> str:
    tables = frame.drop_duplicates(["instance", "n", "m"])
    samples = len(set(frame["sample"].dropna()))
    which = f"{tables['instance'].iloc[0]}" if len(tables) == 1 else f"{len(tables)} tables"
    size = tables.iloc[0]
    if len(tables) == 1 and pd.notna(size["n"]):
        which += f" ({int(size['n']):,} records of {int(size['m'])} attributes)"
    if samples > 1:
        which += f", {samples} samples"
    ks = ", ".join(str(k) for k in sorted(set(frame["k"])))
    objectives = ", ".join(dict.fromkeys(frame["objective_name"].dropna()))
    methods = frame["label"].nunique()
    counted = f"{methods} method{'s' if methods > 1 else ''}"
    come = "come" if methods > 1 else "comes"
    asked = f"with k = {ks} and the loss {objectives}"
    return f"How near the optimum {counted} {come} on {which}, {asked}."


def _answers(solved: pd.DataFrame) -> list[str]:
    """Return, for each k and recoding, which method loses least and what is proven about it."""
    lines = []
    for (k, recoding), rows in solved.groupby(["k", "recoding"], sort=False):
        groups = rows.groupby("label", sort=False)["shown"]
        # Means compare on the same problems alone.
        whole = groups.mean()[groups.size() == groups.size().max()]
        loss = float(whole.min())
        best = [str(label) for label, mean in whole.items() if same_loss(mean, loss)]
        mine = rows[rows["label"] == best[0]]
        text = f"k = {k}, {recoding}: {_who(best, groups.ngroups)}, {loss:.5g}"
        if mine["proven"].all():
            over = float(mine["ratio"].mean()) - 1
            above = f"{100 * over:.2g} % above the proven optimum"
            text += ", the proven optimum." if over <= OPTIMALITY_RELATIVE else f", {above}."
        elif mine["floor"].notna().all() and loss > 0:
            part = 1 - float(mine["floor"].mean()) / loss
            saved = "less than 0.01" if part < 1e-4 else f"at most {100 * part:.3g}"
            text += f"; {saved} % of it could be saved."
        else:
            text += "; no bound is known."
        lines.append(text)
    return lines


def _who(best: list[str], of: int) -> str:
    if len(best) == 1:
        return f"{best[0]} loses least"
    if len(best) == of:
        return f"all {of} methods lose the same"
    return f"{', '.join(best[:-1])} and {best[-1]} lose least"


def _table(names: Any, rows: pd.DataFrame, looks: Mapping[str, Look]) -> dict[str, str]:
    instance, n, m, recoding = names
    size = "" if pd.isna(n) else f" ({int(n):,} x {int(m)})"
    groups = rows.groupby(["k", "label"], sort=False)
    means = groups.agg(shown=("shown", "mean")).reset_index()
    floors = (
        rows.drop_duplicates([*_PROBLEM])
        .groupby("k")
        .agg(floor=("floor", lambda values: values.mean(skipna=False)), proven=("proven", "all"))
    )
    picture = optimum_chart(means.merge(floors.reset_index(), on="k"), looks)
    return {"name": f"{instance}{size}, {recoding}", "picture": picture}


def _rows(frame: pd.DataFrame) -> list[list[dict[str, str | None]]]:
    shown = []
    table = overview(frame)
    for (_, numbers), texts in zip(table.iterrows(), overview_texts(frame), strict=True):
        row = []
        for name, text in zip(COLUMNS, texts, strict=True):
            value = numbers[_KEYS[name]] if name in _KEYS else None
            # What is not known stands behind what is; this is how browsers spell it.
            key = None if value is None else "Infinity" if pd.isna(value) else repr(float(value))
            row.append({"text": text, "key": key})
        shown.append(row)
    return shown


def _surroundings(frame: pd.DataFrame) -> list[str]:
    lines = [f"AnonyMIP {', '.join(dict.fromkeys(frame['anonymip'].dropna()))}"]
    columns = ["machine", "cores", "system", "python", "numpy"]
    for machine in frame[columns].dropna().drop_duplicates().to_dict("records"):
        lines.append(
            f"{machine['machine']}, {machine['cores']} cores, {machine['system']}; "
            f"Python {machine['python']}, NumPy {machine['numpy']}"
        )
    seeds = sorted(set(frame["seed"].dropna()))
    if seeds:
        lines.append(f"seeds {', '.join(str(seed) for seed in seeds)}")
    return lines
