"""The arguments that forbid releases: diversity, limits of cells, and which cells may be stars."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from anonymip.cli.options import an_option
from anonymip.errors import InputError

if TYPE_CHECKING:
    from anonymip.objectives import MembersObjective, Objective
    from anonymip.recodings import Apart, Diversity, Limit, Recoding


@dataclass(frozen=True)
class Rules:
    """The options that forbid releases."""

    l_diversity: float | None = an_option(
        None, "No sensitive value makes up more than 1/L of a class."
    )
    distinct_diversity: int | None = an_option(None, "Distinct sensitive values in every class.")
    t_closeness: float | None = an_option(
        None, "How far the sensitive values of a class may lie from the table's."
    )
    ordered_closeness: bool = an_option(False, "Sensitive numbers lie on a line for --t-closeness.")
    caps: list[str] | None = an_option(
        None, "ATTRIBUTE=MOST: widest range, most values of a set, highest level.", "--cap"
    )
    aparts: list[str] | None = an_option(
        None, "ATTRIBUTE=VALUE,VALUE: no published cell covers both.", "--apart"
    )

    def diversity(self) -> Diversity | None:
        """Return the diversity that every class must have; None asks for nothing."""
        asked = (self.l_diversity, self.distinct_diversity, self.t_closeness)
        if all(one is None for one in asked) and not self.ordered_closeness:
            return None
        from anonymip.recodings import Diversity

        return Diversity(
            l=1 if self.l_diversity is None else self.l_diversity,
            distinct=1 if self.distinct_diversity is None else self.distinct_diversity,
            t=self.t_closeness,
            ordered=self.ordered_closeness,
        )

    def limits(self) -> tuple[Limit, ...]:
        """Return the limits of generalization."""
        from anonymip.recodings import Cap

        caps = (
            _numbered(text, "cap", "ATTRIBUTE=MOST", "--cap age=10") for text in self.caps or ()
        )
        return (*(Cap(*cap) for cap in caps), *map(_apart, self.aparts or ()))


def _numbered(text: str, what: str, form: str, example: str) -> tuple[str, float]:
    """Return what stands before the last equals sign of a text, and the number behind it."""
    named, equals, number = text.rpartition("=")
    try:
        if equals and named:
            return named, float(number)
    except ValueError:
        pass
    raise InputError(f"{what} {text!r} is not {form}", remedy=f"For example {example}")


def _apart(text: str) -> Apart:
    attribute, equals, listed = text.partition("=")
    try:
        values = next(csv.reader([listed], strict=True), [])
    except csv.Error:
        values = []
    if not (equals and attribute) or len(values) != 2:
        raise InputError(
            "--apart is not ATTRIBUTE=VALUE,VALUE",
            remedy="For example --apart job=clerk,farmer; quote commas: --apart 'job=\"a,b\",c'",
            value=text,
        )
    from anonymip.recodings import Apart

    return Apart(attribute, *values)


#: Recodings whose search keeps a limit of suppression.
LIMITING = ("classes", "freeform", "full-domain", "pattern")
#: Those of them that take a price of a suppressed record.
PRICED = ("classes", "freeform", "pattern")


@dataclass(frozen=True)
class StarRules:
    """The options that make a mask, and the section ``[mask]`` of the schema behind them.

    An option stands in place of what the section says of the same rule.
    """

    suppress_at_most: int | None = an_option(None, "Most stars of a record (patterns).")
    never: list[str] | None = an_option(None, "COLUMN[,COLUMN...]: never suppressed (patterns).")
    together: list[str] | None = an_option(
        None, "COLUMN,COLUMN...: suppressed together or not at all."
    )
    at_most_one: list[str] | None = an_option(
        None, "COLUMN,COLUMN...: at most one of them is suppressed."
    )
    allow_all_stars: bool = an_option(False, "Allow rows of stars only, by k records or more.")
    single_use: bool = an_option(False, "Records of one pattern must all look alike.")
    costs: list[str] | None = an_option(
        None,
        "COLUMN=COST of a star, or COLUMN,COLUMN...=COST of a whole pattern.",
        "--suppression-cost",
    )
    most_suppressed: str | None = an_option(
        None,
        "Records that may be suppressed: a number, or a share (0.01, 1%). classes, freeform, "
        "full-domain and pattern keep to it in their search. Without it anonymize writes nothing "
        "if more than one in twenty are.",
    )
    suppression_price: float | None = an_option(
        None,
        "Loss of a suppressed record (classes, freeform, pattern); default: that of a row of "
        "stars.",
    )
    section: Mapping[str, Any] = field(default_factory=dict)

    def given(self) -> dict[str, Any]:
        """Return the rules that options give, by the keys of the section."""
        from anonymip.recodings.patterns import listed_columns

        rules: dict[str, Any] = {
            "suppress_at_most": self.suppress_at_most,
            "never": [name for text in self.never or () for name in listed_columns(text)],
            "together": list(map(listed_columns, self.together or ())),
            "at_most_one": list(map(listed_columns, self.at_most_one or ())),
            "allow_all_stars": self.allow_all_stars or None,
            "single_use": self.single_use or None,
        }
        return {key: one for key, one in rules.items() if one is not None and one != []}

    def most(self) -> int | float | None:
        """Return the number or share of records that may be suppressed, None if it is not given."""
        text = self.most_suppressed
        if text is None:
            return None
        number, percent, rest = text.strip().partition("%")
        try:
            if rest:
                raise ValueError(rest)
            return (
                float(number) / 100 if percent else int(text) if text.isdecimal() else float(text)
            )
        except ValueError:
            raise InputError(
                f"--most-suppressed is {text!r}",
                remedy="Give a number of records, or a share of them, as 0.01 or 1%",
            ) from None

    def only_of(self, recoding: str) -> StarRules:
        """Return those of the rules that a recoding has, beside others that have the rest."""
        if recoding == "pattern":
            return self
        if recoding == "pattern-levels":
            return replace(self, most_suppressed=None, suppression_price=None)
        kept = self.most_suppressed if recoding in LIMITING else None
        price = self.suppression_price if recoding in PRICED else None
        return StarRules(costs=self.costs, most_suppressed=kept, suppression_price=price)

    def options(self, recoding: str, suppression: bool) -> dict[str, Any]:
        """Return the rules as the options of a recoding, which experiments have too."""
        options: dict[str, Any] = {"suppression": True} if suppression else {}
        if recoding in ("pattern", "pattern-levels"):
            options |= self.given()
            if self.costs:
                options["costs"] = dict(map(_cost, self.costs))
        if self.most_suppressed is not None:
            options.pop("suppression", None)
            options["most_suppressed"] = self.most()
        if self.suppression_price is not None:
            options["suppression_price"] = self.suppression_price
        return options

    def recoding_name(self, named: str | None, methods: tuple[str, ...]) -> str | None:
        """Return the name of the recoding that rules or costs bring, or what is named.

        `named`: the recoding that is named; None lets the rules bring theirs. `methods`: the
        methods that are named, which go before the schema and before costs.
        """
        rules = self.given()
        if rules and named not in (None, "pattern", "pattern-levels"):
            raise InputError(
                f"{_option(rules)} is a rule of the recoding pattern, not of {named}",
                remedy="Use --recoding pattern, or leave the rule out",
            )
        if self.most_suppressed is not None and not rules:
            return self._limiting(named, methods)
        if named is not None:
            return named
        if not (rules or self.costs or self.section):
            return None
        from anonymip.methods import find_method

        specs = [find_method(method) for method in methods]
        others = [s for s in specs if s.role != "selection" and not s.solves("pattern")]
        if not others:
            return "pattern"
        if rules:
            raise InputError(
                f"{_option(rules)} is a rule of the recoding pattern, which {others[0].name} does "
                "not solve",
                remedy="See 'anonymip methods', or leave the rule out",
            )
        return None

    def _limiting(self, named: str | None, methods: tuple[str, ...]) -> str:
        """Return the recoding that takes a limit: the one that is asked for, else classes."""
        from anonymip.methods import find_method

        specs = [find_method(method) for method in methods]
        brought = [spec.recoding for spec in specs if spec.role != "selection"]
        default = "pattern" if self.section or self.costs else "classes"
        meant = {named} if named is not None else set(brought) or {default}
        if len(meant) == 1 and meant <= set(LIMITING):
            return str(meant.pop())
        other = named or next((one for one in brought if one not in LIMITING), default)
        raise InputError(
            f"--most-suppressed is for the recodings {', '.join(LIMITING[:-1])} and "
            f"{LIMITING[-1]}, and this one is {other}",
            remedy="Add --recoding classes, or use --suppression where the recoding has it, which "
            "allows any number of records",
        )

    def recoding(self, name: str, suppression: bool) -> Recoding:
        """Return the recoding of a name with the rules that are given for it."""
        from anonymip.recodings.registry import make_recoding

        if self.suppression_price is not None and name not in PRICED:
            raise InputError(
                f"--suppression-price is for {', '.join(PRICED)}, and the recoding is {name}",
                remedy="Leave it out, or write an objective with another loss of stars",
            )
        return make_recoding(name, self.options(name, suppression), self.section)[0]

    def objective(
        self, found: Objective | MembersObjective, recoding: str
    ) -> Objective | MembersObjective:
        """Return the objective: what stars cost, if that is given, else the one that was found.

        Costs of a schema hold for patterns, and where no other objective than the default is
        named.
        """
        from anonymip.recodings.patterns import read_mask_section

        takes_costs = found.name in ("gcp", "suppressions")
        costs: Mapping[str, Any] = dict(map(_cost, self.costs or ()))
        if costs and not takes_costs:
            raise InputError(
                f"--suppression-cost prices stars, and the objective is {found.name}",
                remedy="Leave one of the two out",
            )
        if not costs and takes_costs and recoding in ("pattern", "pattern-levels"):
            costs = self.section.get("costs", {})
        return read_mask_section({"costs": costs}).objective or found


def _cost(text: str) -> tuple[str, float]:
    example = "--suppression-cost age=2, or --suppression-cost age,zip=2.5"
    return _numbered(text, "suppression cost", "COLUMN=COST", example)


def _option(rules: Mapping[str, Any]) -> str:
    return "--" + next(iter(rules)).replace("_", "-")
