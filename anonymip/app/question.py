"""A question about a table, as the command line, as Python and as the options of the command."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import Path
from shlex import join

from anonymip.app.texts import say
from anonymip.cli.arguments import ProblemOptions, Question, RecodingOptions
from anonymip.cli.rules import LIMITING, Rules, StarRules
from anonymip.cli.tables import TableOptions
from anonymip.errors import InputError

ENDINGS = (".csv", ".xlsx", ".parquet")
#: The recodings that the page offers, in its order, as Python names them.
_KINDS = {
    "classes": "EquivalenceClasses",
    "freeform": "Freeform",
    "full-domain": "FullDomain",
    "pattern": "PatternGuided",
}
RECODINGS = tuple(_KINDS)


@dataclass
class Asked:
    """The answers to the questions of the second step; None asks for nothing."""

    k: int = 5
    recoding: str = "classes"
    effort: str = "normal"
    most_suppressed: float = 0.0  # a share of the records in percent
    l_diversity: float | None = None
    distinct_diversity: int | None = None
    t_closeness: float | None = None
    caps: dict[str, float] = field(default_factory=dict)  # by column
    weighted: bool = False  # whether the weights of the schema count
    ending: str = ".csv"

    @classmethod
    def of(cls, given: object) -> Asked:
        """Return what a project's file says. Raises InputError if that is none."""
        try:
            asked = cls(**given)  # type: ignore[arg-type]
            sound = asked.recoding in RECODINGS and asked.ending in ENDINGS
            for one in fields(cls):
                value, usual = getattr(asked, one.name), getattr(cls(), one.name)
                if isinstance(usual, dict):
                    sound &= all(map(_is_number, value.values()))
                elif isinstance(usual, bool | str | int):
                    sound &= type(value) is type(usual)
                else:
                    sound &= _is_number(value) or (value is None and usual is None)
        except (TypeError, AttributeError):
            sound = False
        if not sound:
            raise InputError(say("project.none"))
        return asked

    @property
    def suppressed_share(self) -> float:
        """The share of the records that may be suppressed; 0 where the recoding has no limit."""
        return round(self.most_suppressed / 100, 9) if self.recoding in LIMITING else 0.0

    def question(self, schema: Path) -> Question:
        """Return the options of ``anonymip anonymize`` that mean the same."""
        share = self.suppressed_share
        rules = Rules(
            l_diversity=self.l_diversity,
            distinct_diversity=self.distinct_diversity,
            t_closeness=self.t_closeness,
            caps=self._caps(),
        )
        return Question(
            TableOptions(schema=schema),
            RecodingOptions(None if self.recoding == "classes" else self.recoding),
            ProblemOptions(
                rules,
                StarRules(most_suppressed=repr(share) if share else None),
                "weighted-loss" if self.weighted else None,
            ),
        )

    def command(self, table: str, schema: str, name: str) -> str:
        """Return the command that writes the same release under a name."""
        asked = self.question(Path(schema))
        options = {
            "--recoding": asked.allowed.recoding,
            "--most-suppressed": asked.asked.stars.most_suppressed,
            "--l-diversity": self.l_diversity,
            "--distinct-diversity": self.distinct_diversity,
            "--t-closeness": self.t_closeness,
            "--objective": asked.asked.objective,
        }
        given = [part for key, one in options.items() if one is not None for part in (key, one)]
        caps = [part for cap in self._caps() for part in ("--cap", cap)]
        files = ["-o", f"{name}{self.ending}", "--report", f"{name}.html"]
        # A name that begins with a dash is no option.
        table = f"./{table}" if table.startswith("-") else table
        words = [table, "--schema", schema, "-k", self.k, *given, *caps, "--effort", self.effort]
        return join(["anonymip", "anonymize", *map(str, words), *files])

    def python(self, table: str, schema: str, name: str) -> str:
        """Return the lines of Python that write the same release under a name."""
        share, recoding = self.suppressed_share, repr(self.recoding)
        if share:
            recoding = f"anonymip.{_KINDS[self.recoding]}(most_suppressed={share!r})"
        diverse = {
            "l": self.l_diversity,
            "distinct": self.distinct_diversity,
            "t": self.t_closeness,
        }
        diversity = ", ".join(f"{key}={one!r}" for key, one in diverse.items() if one is not None)
        limits = ", ".join(f"anonymip.Cap({name!r}, {most!r})" for name, most in self.caps.items())
        parts = [
            "table",
            f"k={self.k}",
            f"recoding={recoding}",
            *(['objective="weighted-loss"'] if self.weighted else []),
            *([f"diversity=anonymip.Diversity({diversity})"] if diversity else []),
            *([f"limits=[{limits}]"] if limits else []),
        ]
        asked = "".join(f"    {part},\n" for part in parts)
        return (
            "import anonymip\n\n"
            f"schema = anonymip.read_schema({schema!r})\n"
            f"table = schema.read({table!r})\n"
            f"problem = anonymip.Problem(\n{asked})\n"
            f"solution = anonymip.solve(problem, effort={self.effort!r})\n"
            f"anonymip.publish(solution).write({name + self.ending!r})\n"
        )

    def _caps(self) -> list[str]:
        return [f"{name}={most!r}" for name, most in self.caps.items()]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
