"""Bredereck et al. 2013, Tables 1 to 8, and Fig. 1: patterns beside Mondrian and optima.

The values of the tables are not in the text of the paper; its prose says what they show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from anonymip.experiments.running.specification import Experiment, MethodChoice
from reproductions.papers.data import ADULT_KINDS, CANADA, CMC, NURSERY
from reproductions.series import all_proven, both, columns_of, is_below, mean_of, within
from reproductions.specification import Finding, Panel, Reproduction, Series, Source, Statement

PAPER = "Bredereck et al. 2013"
_GREEDY, _MONDRIAN, _ILP = "pattern-greedy", "mondrian", "pattern-ilp"
_KS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 25, 50, 75, 100)
_FEW = (2, 5, 10, 25, 100)
_ADULT_2 = (
    *("age", "workclass", "education", "marital-status", "occupation", "race", "sex"),
    *("native-country", "income"),
)
_USER: Mapping[str, object] = {
    "suppress_at_most": 2,
    "never": ["education", "income"],
    "together": [["workclass", "occupation"]],
    "at_most_one": [["age", "sex", "race"]],
    "allow_all_stars": True,
}
_TWO: Mapping[str, object] = {"suppress_at_most": 2, "allow_all_stars": True}
_MEASURES = (
    ("usefulness", "usefulness"),
    ("cpu_seconds", "processor seconds"),
    ("classes", "output row types"),
    ("average", "average size"),
    ("largest", "largest size"),
)
_STARS = ("suppressed_cells", "suppressed cells")
_SERIES: Mapping[str, Series] = {name: mean_of(name, "k") for name, _ in (*_MEASURES, _STARS)}


def _panels(*, stars: bool = False) -> tuple[Panel, ...]:
    measures = (_STARS, *_MEASURES) if stars else _MEASURES
    return tuple(
        Panel(title, "k", title, _SERIES[name], log_x=True, log_y=name == "cpu_seconds")
        for name, title in measures
    )


def _beside(
    source: Source,
    second: str,
    ks: tuple[int, ...],
    *,
    rows: int | None = None,
    attributes: tuple[str, ...] | int | None = None,
    mask: Mapping[str, object] | None = None,
) -> tuple[Experiment, ...]:
    """Return the greedy heuristic beside another method on one table."""
    if not source.is_here and isinstance(attributes, tuple):
        attributes, mask = len(attributes), _TWO if mask else None
    return (
        Experiment(
            name="patterns",
            tables=(source.table(rows=rows, attributes=attributes),),
            k=ks,
            methods=(MethodChoice(_GREEDY), MethodChoice(second)),
            recodings={} if mask is None else {"pattern": mask},
            objective="suppressions" if second == _ILP else "gcp",
            time_limit=600.0,
            bound=False,
        ),
    )


def _lower(measure: str, x_from: float | None = None) -> Callable[[pd.DataFrame], Finding]:
    return is_below(_SERIES[measure], (_GREEDY,), (_MONDRIAN,), x_from=x_from)


_FASTER = Statement(
    "the greedy heuristic is faster than Mondrian", "Section 3.5", _lower("cpu_seconds")
)
_USEFUL = Statement(
    "its usefulness is lower, that is better, at every k", "Section 3.5", _lower("usefulness")
)
_SMALLER = Statement("its average output row type is smaller", "Section 3.5", _lower("average"))
_FASTER_BELOW = Statement(
    "it gets slower with growing k, Mondrian faster", "Section 3.5", lambda rows: _time_trends(rows)
)


def _time_trends(rows: pd.DataFrame) -> Finding:
    table = columns_of(_SERIES["cpu_seconds"], rows, (_GREEDY, _MONDRIAN))
    first, last = table.iloc[0], table.iloc[-1]
    text = "; ".join(
        f"{one}: {first[one]:.3g} s to {last[one]:.3g} s" for one in (_GREEDY, _MONDRIAN)
    )
    slower, faster = last[_GREEDY] > first[_GREEDY], last[_MONDRIAN] < first[_MONDRIAN]
    return Finding(bool(slower and faster), text)


def _useful_between(low: float, high: float) -> Callable[[pd.DataFrame], Finding]:
    def check(rows: pd.DataFrame) -> Finding:
        table = columns_of(_SERIES["usefulness"], rows, (_GREEDY, _MONDRIAN))
        ratio = table[_MONDRIAN] / table[_GREEDY]
        text = f"Mondrian's usefulness is {ratio.min():.3g} to {ratio.max():.3g} times the greedy's"
        return Finding(bool(ratio.min() >= low and ratio.max() <= high), text)

    return check


_TIMES = "Running times are those of programs: our Mondrian cuts compiled arrays, theirs is of 2006"

TABLE1 = Reproduction(
    name="bredereck-table1",
    paper=PAPER,
    place="Table 1 and Fig. 1",
    title="Adult, all patterns: greedy heuristic and Mondrian",
    sources=(ADULT_KINDS,),
    full=lambda: _beside(ADULT_KINDS, _MONDRIAN, _KS),
    quick=lambda: _beside(ADULT_KINDS, _MONDRIAN, (2, 10, 100), rows=1000),
    shrunk="1,000 records in place of 32,561, k = 2, 10 and 100",
    panels=_panels(),
    statements=(
        _FASTER,
        _FASTER_BELOW,
        _USEFUL,
        Statement(
            "Mondrian's usefulness is 1.5 to 1.7 times the greedy heuristic's",
            "Section 3.5",
            _useful_between(1.5, 1.7),
        ),
        _SMALLER,
    ),
    remarks=(_TIMES,),
    minutes=0.7,
)
TABLE2 = Reproduction(
    name="bredereck-table2",
    paper=PAPER,
    place="Table 2",
    title="Adult-2, all patterns: greedy heuristic and Mondrian",
    sources=(ADULT_KINDS,),
    full=lambda: _beside(ADULT_KINDS, _MONDRIAN, _KS, attributes=_ADULT_2),
    quick=lambda: _beside(ADULT_KINDS, _MONDRIAN, _FEW, rows=5000, attributes=_ADULT_2),
    shrunk="5,000 records in place of 32,561, five values of k",
    panels=_panels(),
    statements=(
        _FASTER,
        Statement(
            "the usefulness of both is similar (within 10 %)",
            "Section 3.5",
            both(
                within(_SERIES["usefulness"], _MONDRIAN, _GREEDY, 0.1),
                within(_SERIES["usefulness"], _GREEDY, _MONDRIAN, 0.1),
            ),
        ),
        Statement(
            "the greedy heuristic is slightly more useful, but at k = 50",
            "Section 3.5",
            is_below(_SERIES["usefulness"], (_GREEDY,), (_MONDRIAN,), x_to=25),
        ),
    ),
    remarks=(_TIMES,),
    minutes=0.2,
)
TABLE3 = Reproduction(
    name="bredereck-table3",
    paper=PAPER,
    place="Table 3",
    title="Nursery, all patterns: greedy heuristic and Mondrian",
    sources=(NURSERY,),
    full=lambda: _beside(NURSERY, _MONDRIAN, _KS),
    quick=lambda: _beside(NURSERY, _MONDRIAN, _FEW, rows=4000),
    shrunk="4,000 records in place of 12,960, five values of k",
    panels=_panels(),
    statements=(
        _FASTER,
        Statement(
            "Mondrian is more useful at every k but 5",
            "Section 3.5",
            both(
                is_below(_SERIES["usefulness"], (_MONDRIAN,), (_GREEDY,), x_to=4),
                is_below(_SERIES["usefulness"], (_MONDRIAN,), (_GREEDY,), x_from=6),
            ),
        ),
        Statement(
            "at k = 5 the greedy heuristic is more useful",
            "Section 3.5",
            is_below(_SERIES["usefulness"], (_GREEDY,), (_MONDRIAN,), x_from=5, x_to=5),
        ),
        Statement(
            "its average and largest output row types are smaller",
            "Section 3.5",
            both(_lower("average"), _lower("largest")),
        ),
    ),
    remarks=(_TIMES,),
    minutes=0.1,
)
TABLE4 = Reproduction(
    name="bredereck-table4",
    paper=PAPER,
    place="Table 4",
    title="CMC, all patterns: greedy heuristic and Mondrian",
    sources=(CMC,),
    full=lambda: _beside(CMC, _MONDRIAN, _KS),
    quick=lambda: _beside(CMC, _MONDRIAN, _FEW, rows=700),
    shrunk="700 records in place of 1,473, five values of k",
    panels=_panels(),
    statements=(
        _FASTER,
        _USEFUL,
        Statement(
            "Mondrian has at least a fifth less output row types",
            "Section 3.5",
            is_below(_SERIES["classes"], (_MONDRIAN,), (_GREEDY,), by=0.8),
        ),
        _SMALLER,
    ),
    remarks=(_TIMES,),
    minutes=0.1,
)
TABLE5 = Reproduction(
    name="bredereck-table5",
    paper=PAPER,
    place="Table 5",
    title="Canada, all patterns: greedy heuristic and Mondrian",
    sources=(CANADA,),
    full=lambda: _beside(CANADA, _MONDRIAN, _KS),
    quick=lambda: _beside(CANADA, _MONDRIAN, _FEW, rows=5000),
    shrunk="5,000 records in place of 100,000, five values of k",
    panels=_panels(),
    statements=(
        Statement(
            "the greedy heuristic is at least three times faster than Mondrian",
            "Section 3.5",
            is_below(_SERIES["cpu_seconds"], (_GREEDY,), (_MONDRIAN,), by=1 / 3),
        ),
        _USEFUL,
        Statement(
            "it has at least four times as many output row types",
            "Section 3.5",
            is_below(_SERIES["classes"], (_MONDRIAN,), (_GREEDY,), by=1 / 4),
        ),
        Statement(
            "Mondrian's average and largest output row types are smaller",
            "Section 3.5",
            both(
                is_below(_SERIES["average"], (_MONDRIAN,), (_GREEDY,)),
                is_below(_SERIES["largest"], (_MONDRIAN,), (_GREEDY,)),
            ),
        ),
    ),
    remarks=(_TIMES,),
    minutes=0.4,
)


def _stars_within(most: float, x_from: float | None = None) -> Callable[[pd.DataFrame], Finding]:
    return within(_SERIES["suppressed_cells"], _GREEDY, _ILP, most, x_from=x_from)


_PROVEN = Statement(
    "the integer program finds the optimum at every k",
    "Section 3.6",
    lambda rows: all_proven(rows, _ILP),
)


def _times_faster(times: float) -> Statement:
    return Statement(
        f"the greedy heuristic is at least {times:g} times faster",
        "Section 3.6",
        is_below(_SERIES["cpu_seconds"], (_GREEDY,), (_ILP,), by=1 / times),
    )


TABLE6 = Reproduction(
    name="bredereck-table6",
    paper=PAPER,
    place="Table 6",
    title="Nursery, all patterns: greedy heuristic and optimum",
    sources=(NURSERY,),
    full=lambda: _beside(NURSERY, _ILP, _KS),
    quick=lambda: _beside(NURSERY, _ILP, _FEW),
    shrunk="five values of k",
    panels=_panels(stars=True),
    statements=(
        _PROVEN,
        Statement(
            "the greedy heuristic suppresses no more than the optimum at any k",
            "Section 3.6",
            _stars_within(0.0),
        ),
        _times_faster(25),
    ),
    minutes=0.1,
)
TABLE7 = Reproduction(
    name="bredereck-table7",
    paper=PAPER,
    place="Table 7",
    title="CMC, at most two suppressed cells: greedy heuristic and optimum",
    sources=(CMC,),
    full=lambda: _beside(CMC, _ILP, _KS, mask=_TWO),
    quick=lambda: _beside(CMC, _ILP, _FEW, mask=_TWO),
    shrunk="five values of k",
    panels=_panels(stars=True),
    statements=(
        _PROVEN,
        Statement(
            "at k = 2 the greedy heuristic suppresses 1.4 times the optimum (1.35 to 1.45)",
            "Section 3.6",
            lambda rows: _ratio_at(rows, 2, 1.35, 1.45),
        ),
        Statement(
            "from k = 25 on it suppresses no more than the optimum",
            "Section 3.6",
            _stars_within(0.0, x_from=25),
        ),
        _times_faster(10),
    ),
    minutes=0.1,
)
TABLE8 = Reproduction(
    name="bredereck-table8",
    paper=PAPER,
    place="Table 8",
    title="Adult-2, the patterns of a user: greedy heuristic and optimum",
    sources=(ADULT_KINDS,),
    full=lambda: _beside(
        ADULT_KINDS, _ILP, (2, 3, 10, 25, 50, 75, 100), attributes=_ADULT_2, mask=_USER
    ),
    quick=lambda: _beside(
        ADULT_KINDS, _ILP, (3, 25, 100), rows=6000, attributes=_ADULT_2, mask=_USER
    ),
    shrunk="6,000 records in place of 32,561, k = 3, 25 and 100",
    panels=_panels(stars=True),
    statements=(
        _PROVEN,
        Statement(
            "the greedy heuristic suppresses at most 1.31 times the optimum",
            "Section 3.6",
            _stars_within(0.31),
        ),
        Statement(
            "its usefulness is slightly better at every k",
            "Section 3.6",
            is_below(_SERIES["usefulness"], (_GREEDY,), (_ILP,)),
        ),
        Statement(
            "the optimum has more output row types and a smaller average",
            "Section 3.6",
            both(
                is_below(_SERIES["classes"], (_GREEDY,), (_ILP,)),
                is_below(_SERIES["average"], (_ILP,), (_GREEDY,)),
            ),
        ),
    ),
    minutes=0.3,
)


def _ratio_at(rows: pd.DataFrame, k: int, low: float, high: float) -> Finding:
    table = columns_of(_SERIES["suppressed_cells"], rows[rows["k"] == k], (_GREEDY, _ILP))
    ratio = float((table[_GREEDY] / table[_ILP]).iloc[0])
    return Finding(low <= ratio <= high, f"{ratio:.4g} times at k = {k}")


REPRODUCTIONS = (TABLE1, TABLE2, TABLE3, TABLE4, TABLE5, TABLE6, TABLE7, TABLE8)
