"""The methods of the package; their functions are named, not imported."""

from __future__ import annotations

from types import MappingProxyType

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

#: All built-in methods by name.
BUILT_IN: MappingProxyType[str, MethodSpec] = MappingProxyType(
    {
        spec.name: spec
        for spec in (
            MethodSpec(
                "auto",
                "classes",
                "selection",
                "anonymip.methods.selection:auto",
                "picks by size and says what it picked",
                takes=("solver", "gap", "threads", "log", "solver_options"),
                also=("freeform", "one-k", "k-one", "k-k", "k-concealment"),
            ),
            MethodSpec(
                "equivalence-mip",
                "classes",
                "exact",
                "anonymip.exact.model_solve:equivalence_mip",
                f"{_LIANG}, Section 2.2",
                takes=("solver", "gap", "threads", "log", "solver_options"),
                options=(
                    MethodOption(
                        "formulation",
                        "auto",
                        "auto, indicator, bigm, hull, strengthened, set-partition",
                    ),
                    MethodOption(
                        "integer_ends", True, "integer variables for integer ends, eq. (27)"
                    ),
                    MethodOption(
                        "warm_start",
                        "best",
                        "best, none, initial, ordered-cut, greedy-search, k-member",
                    ),
                ),
            ),
            MethodSpec(
                "initial",
                "classes",
                "heuristic",
                "anonymip.heuristics.initial:initial",
                f"{_LIANG}, Section 2.3",
                options=(_ORDER,),
            ),
            MethodSpec(
                "ordered-cut",
                "classes",
                "heuristic",
                "anonymip.heuristics.ordered_cut:ordered_cut",
                "Hansen & Mukherjee 2003, any order",
                options=(_ORDER,),
            ),
            MethodSpec(
                "greedy-search",
                "classes",
                "heuristic",
                "anonymip.heuristics.greedy_search:greedy_search",
                f"{_LIANG}, Algorithm 2",
                options=(_ORDER, _SEARCH),
            ),
            MethodSpec(
                "k-member",
                "classes",
                "heuristic",
                "anonymip.heuristics.k_member:k_member",
                "Byun et al. 2007",
                options=(_SEARCH,),
            ),
            MethodSpec(
                "mondrian",
                "classes",
                "heuristic",
                "anonymip.heuristics.mondrian:mondrian",
                "LeFevre et al. 2006",
                options=(MethodOption("strict", True, "equal values stay together"),),
            ),
            MethodSpec(
                "hilbert",
                "classes",
                "heuristic",
                "anonymip.heuristics.hilbert:hilbert",
                f"HR and HS of {_WONG}, Section 7.1",
                options=(
                    MethodOption("cells", "objective", "what the cut counts: objective, HR, HS"),
                ),
            ),
            MethodSpec(
                "hp",
                "classes",
                "heuristic",
                "anonymip.heuristics.hp:hp",
                f"{_WONG}, Fig. 8, one class a partition",
            ),
            MethodSpec(
                "anatomy",
                "classes",
                "heuristic",
                "anonymip.heuristics.anatomy:anatomy",
                "Xiao & Tao 2006, groups generalized; needs a diversity",
                needs=("diversity",),
            ),
            MethodSpec(
                "hilbert-diversity",
                "classes",
                "heuristic",
                "anonymip.heuristics.hilbert_diversity:hilbert_diversity",
                "Ghinita et al. 2007; needs a diversity",
                needs=("diversity",),
                options=(_RING_ORDER,),
            ),
            MethodSpec(
                "freeform-mip",
                "freeform",
                "exact",
                "anonymip.exact.freeform_solve:freeform_mip",
                f"{_DOKA}, eqs. (4)-(11)",
                needs=("monotone",),
                takes=("solver", "gap", "threads", "log", "solver_options"),
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
            MethodSpec(
                "greedy",
                "freeform",
                "heuristic",
                "anonymip.heuristics.greedy:greedy",
                f"{_DOKA}, Algorithm 1",
                options=(
                    MethodOption("chooser", "published", "who chooses: published, originals"),
                    _RECIPROCAL,
                    _PART,
                    _JOBS,
                ),
            ),
            MethodSpec(
                "sort-greedy",
                "freeform",
                "heuristic",
                "anonymip.heuristics.sort_greedy:sort_greedy",
                f"{_DOKA}, Algorithm 2",
                options=(_RECIPROCAL, _PART, _JOBS),
            ),
            MethodSpec(
                "hungarian",
                "freeform",
                "heuristic",
                "anonymip.heuristics.hungarian:hungarian",
                f"{_DOKA}, Section 7",
                options=(_RECIPROCAL, _PART, _JOBS),
            ),
            MethodSpec(
                "min-cost-flow",
                "freeform",
                "heuristic",
                "anonymip.heuristics.min_cost_flow:min_cost_flow",
                f"{_DOKA}, Section 8",
            ),
            MethodSpec(
                "ring",
                "freeform",
                "heuristic",
                "anonymip.heuristics.ring:ring",
                f"{_WONG}, Section 5.1, whole table",
                options=(_RING_ORDER,),
            ),
            MethodSpec(
                "nh",
                "freeform",
                "heuristic",
                "anonymip.heuristics.nh:nh",
                f"{_WONG}, Section 5.3, a ring a partition",
                options=(
                    MethodOption("order", "cardinality", "as for ring, within each partition"),
                ),
            ),
            MethodSpec(
                "k-concealment",
                "k-concealment",
                "heuristic",
                "anonymip.heuristics.k_concealment:k_concealment",
                "Tassa et al. 2012, Gionis et al. 2008",
                options=(
                    MethodOption("join", "increase", "what joining records minimize: or loss"),
                ),
                needs=("tables",),
            ),
            MethodSpec(
                "reassign",
                "freeform",
                "heuristic",
                "anonymip.heuristics.reassign:reassign",
                f"improves a cover of {_DOKA} by assignments",
                options=(
                    MethodOption(
                        "from_method",
                        "sort-greedy",
                        "start: sort-greedy, greedy, hungarian, ring, nh",
                    ),
                    MethodOption("patience", 3, "passes without gain before it stops"),
                    _PART,
                    _JOBS,
                ),
            ),
        )
    }
)
