"""Pages that show measurements: ``python -m benchmarks.pages`` writes them from the result files.

A benchmark writes its pages when it has been measured; nothing is measured for them here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from anonymip.experiments.style import png
from anonymip.files import replacing
from benchmarks import adult, engine_table, formulations, leaderboard, microaggregation, peers

REPOSITORY = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
#: Result files that readers of the pages may want to have.
_ELSEWHERE = {"peers": REPOSITORY / "docs" / "results" / "peers.csv"}


@dataclass(frozen=True)
class Page:
    """What shows the measurements of a benchmark.

    `benchmark`: its name. `file`: path from the repository's top. `text`: returns what the page
    shows of the measurements, in Markdown. `block`: name of the markers around it; None if it is
    the whole page.
    """

    benchmark: str
    file: str
    text: Callable[[pd.DataFrame], str]
    block: str | None = None

    @property
    def path(self) -> Path:
        """The file."""
        return REPOSITORY / self.file

    def written(self, measured: pd.DataFrame) -> str:
        """Return the page with these measurements.

        Raises ValueError if the markers are not there.
        """
        text = self.text(measured)
        if self.block is None:
            return text
        begin, end = f"<!-- {self.block}: begin -->", f"<!-- {self.block}: end -->"
        before, found, rest = self.path.read_text(encoding="utf-8").partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"{self.file} has no markers {begin} and {end}")
        return f"{before}{begin}\n{text.strip()}\n{end}{after}"


PAGES = (
    Page("formulations", "docs/formulations.md", formulations.markdown, "formulations"),
    Page("adult", "README.md", adult.sentences, "adult"),
    Page("adult", "docs/methods.md", adult.markdown, "adult"),
    Page("leaderboard", "docs/methods.md", leaderboard.markdown, "leaderboard"),
    Page("leaderboard", "docs/results/leaderboard.md", leaderboard.page),
    Page("microaggregation", "docs/gallery.md", microaggregation.markdown, "microaggregation"),
    Page("peers", "docs/peers.md", peers.markdown, "peers"),
    Page("exact-engine", "docs/results/exact_engine.md", engine_table.page),
)


@dataclass(frozen=True)
class Drawing:
    """A picture that shows the measurements of a benchmark.

    `benchmark`: its name. `file`: path from the repository's top. `draw`: returns the picture of
    the measurements, and of those beside them. `beside`: path of a file with measurements that are
    drawn beside, if there is one.
    """

    benchmark: str
    file: str
    draw: Callable[[pd.DataFrame, pd.DataFrame | None], Figure]
    beside: str

    @property
    def path(self) -> Path:
        """The file."""
        return REPOSITORY / self.file

    @property
    def others(self) -> pd.DataFrame | None:
        """What is drawn beside; None if its file is not there."""
        file = REPOSITORY / self.beside
        return pd.read_csv(file) if file.is_file() else None

    def digest(self, measured: pd.DataFrame) -> str:
        """Return what tells the measurements that it is of from others."""
        text = measured.to_csv(index=False)
        text += "" if self.others is None else self.others.to_csv(index=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def write(self, measured: pd.DataFrame) -> None:
        """Draw it, and write into it of which measurements it is."""
        with replacing(self.path, public=True) as (temporary,):
            temporary.write_bytes(png(self.draw(measured, self.others), self.digest(measured)))


#: Other tools on the same tables; see ``python -m benchmarks peers``.
PEERS = "docs/results/peers.csv"
DRAWINGS = (Drawing("adult", "docs/results/adult.png", adult.picture, PEERS),)


def result_file(benchmark: str) -> Path:
    """Return where the measurements of a benchmark lie."""
    return _ELSEWHERE.get(benchmark, RESULTS / f"{benchmark}.csv")


def stored(benchmark: str) -> pd.DataFrame:
    """Return the measurements of a benchmark as its file has them."""
    return pd.read_csv(result_file(benchmark))


def write_pages(benchmark: str) -> None:
    """Write the pages and pictures of a benchmark from its result file, if it has any."""
    for page in PAGES:
        if page.benchmark == benchmark:
            text = page.written(stored(benchmark))
            with replacing(page.path, public=True) as (temporary,):
                temporary.write_text(text, encoding="utf-8")
    for drawing in DRAWINGS:
        if drawing.benchmark == benchmark:
            drawing.write(stored(benchmark))


if __name__ == "__main__":
    for name in dict.fromkeys(page.benchmark for page in PAGES):
        write_pages(name)
