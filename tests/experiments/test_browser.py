"""The pages in a real browser: no script fails, lists sort, both themes and small screens work.

Needs Chromium; its pictures stay in the folder that ``ANONYMIP_SCREENSHOTS`` names.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape
from PIL import Image

from anonymip import Attribute, Freeform, Microdata, Problem, load_instance, publish, solve
from anonymip.experiments import Experiment, MethodChoice, Samples, TableSource, run_experiment
from anonymip.experiments.pages import runs_page
from anonymip.experiments.report import html_report
from tests.experiments.test_report import release

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

#: Where axe-core lies, if it does.
AXE = os.environ.get("ANONYMIP_AXE")
DARK = ("--force-dark-mode", "--blink-settings=preferredColorScheme=0")
JUDGED = """<script>
axe.run().then(found => {
  const faults = found.violations.map(fault => `${fault.id}: ${fault.nodes[0].html}`);
  document.documentElement.dataset.axe = faults.join("; ") || "nothing wrong";
});
</script>"""
#: Sorts the list by each column, rising and falling, and leaves what it saw in the page.
CLICKS = """<script>
const seen = [];
window.addEventListener("error", event => seen.push("error: " + event.message));
for (const head of document.querySelectorAll("#methods th")) {
  for (const way of ["ascending", "descending"]) {
    head.querySelector("button").click();
    const cells = [...document.querySelectorAll("#methods tbody tr")]
      .map(row => row.cells[head.cellIndex]);
    const keys = cells.map(cell => cell.dataset.key).filter(key => key !== undefined).map(Number);
    const rising = keys.every((key, at) => at === 0 || keys[at - 1] <= key);
    const falling = keys.every((key, at) => at === 0 || keys[at - 1] >= key);
    if (head.getAttribute("aria-sort") !== way) seen.push("not marked " + way);
    if (keys.length && !(way === "ascending" ? rising : falling)) seen.push("not " + way);
  }
}
const root = document.documentElement;
const charts = [...document.querySelectorAll("svg")].filter(chart => chart.clientWidth);
const tables = [...document.querySelectorAll("table")];
const least = Math.min(...charts.map(chart => chart.getBoundingClientRect().width));
const letters = charts.flatMap(chart => [...chart.querySelectorAll("text")])
  .map(text => text.getBoundingClientRect().height);
Object.assign(root.dataset, {
  width: root.scrollWidth,
  chart: Math.round(least),
  charts: charts.length,
  outside: tables.filter(table => table.getBoundingClientRect().right > root.clientWidth).length,
  letters: Math.round(Math.min(...letters)),
  seen: seen.join("; ") || "nothing wrong",
});
</script>"""
#: A window of any width, since those of Chromium are no narrower than 500.
WINDOW = """<!doctype html><meta name="color-scheme" content="light dark">
<body style="margin: 0">
<iframe style="border: 0; width: {width}px; height: 2400px" srcdoc="{page}"></iframe>
<script>
addEventListener("load", () => {{
  const shown = document.querySelector("iframe").contentDocument.documentElement;
  Object.assign(document.documentElement.dataset, shown.dataset);
}});
</script>"""


def browse(page: Path, tmp_path: Path, width: int, *asked: str) -> subprocess.CompletedProcess[str]:
    """Open a page in Chromium without a screen."""
    assert CHROMIUM is not None
    quiet = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
    profile = f"--user-data-dir={tmp_path}/profile"
    asked = (*asked, "--hide-scrollbars", "--enable-logging=stderr", f"--window-size={width},2400")
    return subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", *quiet),
            *(*asked, profile, page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """Return reports of a small table, a wide one and a cover, and a page about runs."""
    experiment = Experiment(
        "Fourteen records",
        (TableSource("census:200,4,1", samples=Samples(5, 14, 1)),),
        (2, 3),
        tuple(map(MethodChoice, ("column-generation", "mondrian", "k-member", "ring", "anatomy"))),
    )
    frame = run_experiment(experiment, isolate=False).frame
    wide = pd.DataFrame({f"a rather long name {i}": np.arange(24) // 3 * i for i in range(30)})
    data = Microdata(wide, tuple(Attribute(column) for column in wide))
    cover = Problem(load_instance("census:60,4,1"), 3, Freeform())
    return {
        "release": html_report(release(), "people.csv", command="anonymip anonymize people.csv"),
        "wide": html_report(publish(solve(Problem(data, 3), "mondrian")), "wide.csv"),
        "cover": html_report(publish(solve(cover, "greedy")), "census"),
        "runs": runs_page(frame, "Fourteen records"),
    }


@pytest.mark.parametrize("name", ["release", "wide", "cover", "runs"])
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_are_drawn(
    pages: dict[str, str], name: str, width: int, theme: str, tmp_path: Path
) -> None:
    """Each has ink on paper of its theme, takes its window, and its script does what it says."""
    page = tmp_path / f"{name}.html"
    inside = pages[name].replace("</body>", f"{CLICKS}</body>")
    page.write_text(WINDOW.format(width=width, page=escape(inside)), encoding="utf-8")
    kept = Path(os.environ.get("ANONYMIP_SCREENSHOTS") or tmp_path)
    picture = kept / f"{name}-{width}-{theme}.png"
    dark = DARK if theme == "dark" else ()
    drawn = browse(page, tmp_path, width, f"--screenshot={picture}", *dark)
    assert "CONSOLE" not in drawn.stderr
    grey = Image.open(picture).convert("L")
    paper = max(grey.getcolors(256) or [], default=(0, 0))[1]
    assert paper > 200 if theme == "light" else paper < 60
    lightest, darkest = grey.getextrema()[::-1]
    assert int(lightest) - int(darkest) > 120
    found = browse(page, tmp_path, width, "--dump-dom").stdout
    seen = dict(re.findall(r'data-(\w+)="([^"]*)"', found.partition(">")[2].partition(">")[0]))
    assert seen["seen"] == "nothing wrong"
    assert int(seen["width"]) <= width
    # No part of a table hides behind the edge.
    assert int(seen["outside"]) == 0
    if name == "runs":
        # Pictures take the window, and each is shown once.
        assert int(seen["chart"]) > 0.9 * width
        assert int(seen["charts"]) == pages[name].count("<svg") / 2
        assert int(seen["letters"]) >= 8
    else:
        assert int(seen["charts"]) == pages[name].count("<svg")


@pytest.mark.skipif(AXE is None, reason="ANONYMIP_AXE names no axe.min.js")
@pytest.mark.parametrize("name", ["release", "wide", "cover"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_fault(pages: dict[str, str], name: str, theme: str, tmp_path: Path) -> None:
    """The rules of axe-core: names, order, contrast, roles."""
    assert AXE is not None
    page = tmp_path / f"{name}.html"
    script = Path(AXE).read_text(encoding="utf-8")
    page.write_text(
        pages[name].replace("</body>", f"<script>{script}</script>{JUDGED}</body>"),
        encoding="utf-8",
    )
    asked = ["--virtual-time-budget=30000", "--dump-dom", *(DARK if theme == "dark" else ())]
    found = browse(page, tmp_path, 1280, *asked).stdout
    assert re.findall(r'data-axe="([^"]*)"', found)[0] == "nothing wrong"
