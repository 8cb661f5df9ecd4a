"""The methods of the package; their functions are named, not imported.

One file, since it is one table: a method is found in it by its name.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from anonymip.methods.spec import MethodOption, MethodSpec

_ORDER = MethodOption(
    "order", "variance", "variance, cardinality, snake, hilbert, neighbour; with +2opt"
)
_SEARCH = MethodOption("search", "auto", "auto, tree or scan: same result, other speed")
_RING_ORDER = MethodOption(
    "order", "hilbert", "hilbert, variance, cardinality, snake, neighbour; with +2opt"
)
_RECIPROCAL = MethodOption("reciprocal", False, "symmetric sets")
_PART = MethodOption("part", 0, "records of a part, solved one by one; 0: the whole table")
_JOBS = MethodOption("jobs", 0, "processes for parts; 0: as many as there are cores, two at most")
_LIANG = "Liang & Samavi 2020"
_WONG = "Wong et al. 2010"
_DOKA = "Doka et al. 2015"
_BREDERECK = "Bredereck et al. 2013"
_AGGARWAL = "Aggarwal et al. 2005"

#: Settings that methods with a model read.
_MODEL = ("solver", "gap", "threads", "log", "solver_options")
#: Recodings of the rooms whose methods do not solve classes.
_RECODINGS = MappingProxyType(
    {"freeform": "freeform", "patterns": "pattern", "full_domain": "full-domain"}
)


def _method(place: str, source: str, **more: Any) -> MethodSpec:
    """Return the method at the end of a place: a function of its file, which both bear its name."""
    floor, wing, name = place.split(".")
    module = f"anonymip.{place.replace('-', '_')}"
    given: dict[str, Any] = {
        "recoding": _RECODINGS.get(wing, "classes"),
        "role": "exact" if floor == "exact" else "heuristic",
        **more,
    }
    target = f"{module}:{module.rpartition('.')[2]}"
    return MethodSpec(name, target=target, source=source, **given)


_METHODS = (
    MethodSpec(
        "auto",
        "classes",
        "selection",
        "anonymip.methods.selection:auto",
        "picks by size and says what it picked",
        takes=(*_MODEL, "checkpoint", "resume", "effort"),
        also=(
            *("freeform", "one-k", "k-one", "k-k", "k-concealment"),
            *("pattern", "pattern-levels", "full-domain"),
        ),
        keeps=("closeness",),
    ),
    _method(
        "exact.column_generation.column-generation",
        "set partitioning by sets that are priced in, with rank-1 cuts",
        needs=("sum", "superadditive"),
        takes=("solver", "gap", "threads", "effort"),
        options=(
            MethodOption("bound_only", False, "end with the linear program's bound"),
            MethodOption("memory", 1.0, "gigabytes that a pool of sets may hold"),
        ),
        also=("freeform",),
    ),
    _method(
        "exact.classes.equivalence-mip",
        f"{_LIANG}, Section 2.2",
        takes=(*_MODEL, "effort"),
        options=(
            MethodOption(
                "formulation", "auto", "auto, indicator, bigm, hull, strengthened, set-partition"
            ),
            MethodOption("integer_ends", True, "integer variables for integer ends, eq. (27)"),
            MethodOption(
                "warm_start", "best", "best, none, initial, ordered-cut, greedy-search, k-member"
            ),
        ),
    ),
    _method(
        "exact.split_carry.split-carry",
        f"{_LIANG}, Algorithm 1",
        role="heuristic",
        takes=("solver", "gap", "threads", "solver_options", "checkpoint", "resume"),
        options=(
            MethodOption("S", 3, "sets of k new records in each link, 2 or more"),
            MethodOption("boundary", 0, "records at the end of a link; 0: k"),
            _ORDER,
            MethodOption(
                "subsolver",
                "exact",
                "exact, auto, indicator, bigm, hull, strengthened, set-partition",
            ),
            MethodOption("carry", "classes", "classes, or least: rows of least part"),
            MethodOption("fixed", 0, "records of every link; 0: S k and those carried over"),
            MethodOption("accept", 0, "classes fixed of a link of `fixed` records"),
            MethodOption("prefer", "oldest", "which these are: oldest, or of least loss"),
            MethodOption("pass_time", True, "links use what others left of their time"),
            MethodOption("link_time", 0.0, "seconds of a link at most, 0 for no limit"),
            MethodOption("chains", 1, "segments of the order with a chain each"),
            MethodOption("jobs", 0, "chains at a time; 0: as many as cores, two at most"),
        ),
    ),
    _method(
        "heuristics.local_search.local-search",
        "improves classes by moves, swaps and classes taken apart",
        takes=("effort",),
        options=(
            MethodOption(
                "from_method",
                "best",
                "start: best of several, greedy-search, k-member, mdav, forest, edge-cover, "
                "hilbert, hp, mondrian, ordered-cut, initial, diving, split-carry",
            ),
            MethodOption("order", "", "order of the one start named; empty for its default"),
            MethodOption("trials", True, "take classes apart where moves gain nothing"),
        ),
    ),
    _method("heuristics.classes.initial", f"{_LIANG}, Section 2.3", options=(_ORDER,)),
    _method(
        "heuristics.classes.ordered-cut", "Hansen & Mukherjee 2003, any order", options=(_ORDER,)
    ),
    _method(
        "heuristics.classes.greedy-search",
        f"{_LIANG}, Algorithm 2",
        takes=("effort",),
        options=(_ORDER, _SEARCH),
    ),
    _method(
        "heuristics.classes.k-member", "Byun et al. 2007", takes=("effort",), options=(_SEARCH,)
    ),
    _method(
        "heuristics.classes.mdav",
        "Domingo-Ferrer & Torra 2005; numeric attributes",
        needs=("numeric",),
    ),
    _method(
        "heuristics.classes.mondrian",
        "LeFevre et al. 2006",
        options=(MethodOption("strict", True, "equal values stay together"),),
    ),
    _method(
        "heuristics.classes.hilbert",
        f"HR and HS of {_WONG}, Section 7.1",
        options=(MethodOption("cells", "objective", "what the cut counts: objective, HR, HS"),),
    ),
    _method("heuristics.classes.hp", f"{_WONG}, Fig. 8 as printed, one class a partition"),
    _method(
        "heuristics.classes.anatomy",
        "Xiao & Tao 2006, groups generalized; needs a diversity",
        needs=("diversity",),
    ),
    _method(
        "heuristics.approximation.forest", f"{_AGGARWAL}, Section 4, with its factor and bound"
    ),
    _method(
        "heuristics.approximation.edge-cover", f"{_AGGARWAL}, Section 5, k = 2", needs=("k=2",)
    ),
    _method(
        "heuristics.approximation.two-factor", f"{_AGGARWAL}, Section 6, k = 3", needs=("k=3",)
    ),
    _method(
        "heuristics.classes.hilbert-diversity",
        "Ghinita et al. 2007; needs a diversity",
        needs=("diversity",),
        options=(_RING_ORDER,),
    ),
    _method(
        "exact.freeform.freeform-mip",
        f"{_DOKA}, eqs. (4)-(11)",
        needs=("sizes",),
        takes=(*_MODEL, "effort"),
        options=(
            MethodOption("formulation", "auto", "auto, assignment, set-cover, freeform"),
            MethodOption("own_record", "fixed", "fixed: own record in its set, or free"),
            MethodOption("ranges", "bounds", "bounds as in the paper, or gaps: stronger"),
            MethodOption("integer_ends", True, "integer variables for integer ends"),
            MethodOption("strengthened", True, "rows for what neighbours cost at least"),
            MethodOption("warm_start", "best", "best, none, or the name of a heuristic"),
        ),
        also=("one-k", "k-one", "k-k", "k-concealment"),
    ),
    _method(
        "heuristics.freeform.greedy",
        f"{_DOKA}, Algorithm 1, the published records choosing as in the authors' program",
        options=(
            MethodOption(
                "chooser",
                "published",
                "who chooses: published (the authors' program), or originals (the paper's text)",
            ),
            _RECIPROCAL,
            _PART,
            _JOBS,
        ),
    ),
    _method(
        "heuristics.freeform.sort-greedy",
        f"{_DOKA}, Algorithm 2, weights as in the authors' program",
        options=(
            MethodOption(
                "weight",
                "loss",
                "loss: what the record will have (the authors' program), or increase "
                "(the paper's text)",
            ),
            MethodOption(
                "repair",
                "published",
                "who finds a match by exchange: published (the authors' program), or "
                "originals (the paper's text)",
            ),
            _RECIPROCAL,
            _PART,
            _JOBS,
        ),
    ),
    _method(
        "heuristics.freeform.hungarian", f"{_DOKA}, Section 7", options=(_RECIPROCAL, _PART, _JOBS)
    ),
    _method("heuristics.freeform.min-cost-flow", f"{_DOKA}, Section 8"),
    _method(
        "heuristics.freeform.ring", f"{_WONG}, Section 5.1, whole table", options=(_RING_ORDER,)
    ),
    _method(
        "heuristics.freeform.nh",
        f"{_WONG}, Section 5.3, a ring a partition",
        options=(MethodOption("order", "cardinality", "as for ring, within each partition"),),
    ),
    _method(
        "heuristics.freeform.nearest-sets",
        "least sets of k, or k - 1 records that hide all; Gionis et al. 2008",
        recoding="k-one",
        takes=("effort",),
        needs=("tables",),
        also=("k-k", "one-k", "k-concealment"),
    ),
    _method(
        "heuristics.freeform.k-concealment",
        "Tassa et al. 2012, Gionis et al. 2008",
        recoding="k-concealment",
        options=(MethodOption("join", "increase", "what joining records minimize: or loss"),),
        needs=("tables",),
    ),
    _method(
        "heuristics.freeform.reassign",
        f"improves a cover of {_DOKA} by assignments",
        takes=("effort",),
        options=(
            MethodOption(
                "from_method", "sort-greedy", "start: sort-greedy, greedy, hungarian, ring, nh"
            ),
            MethodOption("patience", 3, "passes without gain before it stops"),
            _PART,
            _JOBS,
        ),
    ),
    _method(
        "exact.patterns.pattern-ilp",
        f"{_BREDERECK}, (5)-(8)",
        needs=("stars",),
        takes=_MODEL,
        options=(
            MethodOption("formulation", "auto", "auto, pattern, pattern-strong, parts"),
            MethodOption("second_goal", "none", "none, or rows: most different rows"),
            MethodOption("warm_start", "greedy", "greedy, search, none"),
            MethodOption("nodes", 0, "most nodes of the solver in a call; 0: no limit"),
        ),
        keeps=("closeness",),
    ),
    _method(
        "exact.patterns.pattern-levels",
        f"{_BREDERECK}, Section 5: hierarchies in place of stars",
        recoding="pattern-levels",
        needs=("levels",),
        takes=_MODEL,
        options=(
            MethodOption(
                "formulation", "auto", "auto, pattern, pattern-strong, parts; search: no proof"
            ),
            MethodOption("warm_start", "greedy", "greedy, search, none"),
        ),
    ),
    _method(
        "exact.patterns.pattern-fpt",
        f"{_BREDERECK}, Theorem 3, for tiny tables",
        needs=("stars",),
        options=(MethodOption("most_rows", 20, "rows among which all sets are tried"),),
    ),
    _method(
        "exact.patterns.pattern-pairs",
        f"{_BREDERECK}, Theorem 2, k = 2",
        needs=("stars", "k=2"),
        takes=_MODEL,
    ),
    _method(
        "heuristics.patterns.pattern-greedy",
        f"{_BREDERECK}, Algorithm 1",
        needs=("stars",),
        options=(
            MethodOption("mode", "strict", "strict, or paper: what is left is suppressed"),
            MethodOption("orders", 1, "orders of patterns of one cost that are tried"),
        ),
        keeps=("closeness",),
    ),
    _method(
        "heuristics.patterns.pattern-search",
        "improves what pattern-greedy found",
        needs=("stars",),
        options=(MethodOption("passes", 20, "most passes over the rows"),),
        keeps=("closeness",),
    ),
    _method(
        "exact.full_domain.full-domain",
        "Samarati 2001; lattice search as in Kohlmayer et al. 2012",
        needs=("published",),
        keeps=("closeness",),
    ),
)

#: All built-in methods by name.
BUILT_IN: MappingProxyType[str, MethodSpec] = MappingProxyType(
    {spec.name: spec for spec in _METHODS}
)
