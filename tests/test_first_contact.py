"""What a stranger does first, in a copy of the repository: README and the tutorial, as printed.

Their commands run in a shell; what they print is what the pages say, but for seconds and what the
pages leave out by a line of three dots. An everyday run takes the commands of README in its own
process; the demo is run by .ci/run.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

import anonymip
from anonymip.cli.app import run
from tests import profiles
from tests.test_examples import BLOCK
from tests.test_project import REPOSITORY, project_files

MAKE = shutil.which("make")
#: The name under which a reader is to save a block.
TITLED = re.compile(r'^```\w+ title="([\w.]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
#: What no two runs have in common: seconds, and progress on the way.
SECONDS = re.compile(r"\b\d+\.\d+ s\b")
PROGRESS = re.compile(r"^(compiling|warming up)\b.*\n", re.MULTILINE)
#: What a make that runs the tests would hand to the make under test.
OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "PACKAGE", "VENV")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the files of the project, with the environment where make would put it."""
    folder = tmp_path_factory.mktemp("clone")
    for file in project_files():
        place = folder / file.relative_to(REPOSITORY)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place)
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, call in {"anonymip": "-m anonymip", "python": ""}.items():
        script = programs / name
        python = shlex.quote(sys.executable)
        script.write_text(f'#!/bin/sh\nexport PYTHONPATH="{folder}"\nexec {python} {call} "$@"\n')
        script.chmod(0o755)
    (folder / ".venv" / ".installed-{}.{}.{}".format(*sys.version_info[:3])).touch()
    return folder


def in_shell(command: str, clone: Path, *, activated: bool = False) -> tuple[int, str]:
    """Run a command as a reader would; return its exit code and what it printed."""
    inherited = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    path = inherited["PATH"]
    if activated:
        path = f"{clone}/.venv/bin{os.pathsep}{path}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=clone,
        env={**inherited, "PATH": path, "PYTHON": sys.executable, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a block with what it says that they print."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command = re.match(r"(?:.*\\\n)*.*", part)
        assert command is not None
        yield command[0], part[command.end() :].strip("\n")


def same(said: str, printed: str) -> bool:
    """Return whether a text is what a page says it is; a line of three dots is any lines."""
    said, printed = (
        SECONDS.sub("? s", "".join(f"{line.rstrip()}\n" for line in text.splitlines()))
        for text in (said, PROGRESS.sub("", printed))
    )
    pattern = re.escape(said).replace(re.escape("...\n"), "(?:.*\n)*?")
    return re.fullmatch(pattern, printed) is not None


def in_process(command: str, clone: Path) -> tuple[int, str]:
    """Run a command of the program, or Python, in this process; return the same of it."""
    printed = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(printed):
        patch.chdir(clone)
        patch.setenv("COLUMNS", "200")
        program, *arguments = shlex.split(command.replace("\\\n", ""))
        if program == ".venv/bin/python":
            exec(compile(Path(*arguments).read_text(encoding="utf-8"), command, "exec"), {})
            return 0, printed.getvalue()
        assert program == ".venv/bin/anonymip"
        return run(arguments), printed.getvalue()


def run_page(page: str, clone: Path, enter: Callable[[str, Path], tuple[int, str]]) -> int:
    """Do what a page says, and return how many commands it has."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    number = 0
    blocks = {match.start(): match for match in BLOCK.finditer(text)}
    titles = {match.start(): match for match in TITLED.finditer(text)}
    for start, match in sorted(blocks.items()):
        if start in titles:
            (clone / titles[start][1]).write_text(titles[start][2], encoding="utf-8")
        elif match[1] == "console":
            for command, said in commands(match[2]):
                if not said and profiles.NAME != "thorough":
                    continue  # The page shows nothing of a comparison of all methods.
                code, printed = enter(command, clone)
                assert (code == 0) == (not said.startswith("error:")), printed
                if said:
                    assert same(said, printed), f"{command}\nprints\n{printed}\nnot\n{said}"
                number += 1
        elif match[1] == "python":
            (clone / "block.py").write_text(match[2], encoding="utf-8")
            code, printed = enter(".venv/bin/python block.py", clone)
            assert code == 0, printed
            assert same("".join(re.findall(r"^# (.*\n)", match[2], re.MULTILINE)), printed)
    return number


def test_readme_in_this_process(clone: Path) -> None:
    """What the commands of README print, but for ``make``, and its Python, README says."""
    (clone / "out").mkdir()  # as the demo does
    assert run_page("README.md", clone, in_process) >= 3


@pytest.mark.thorough
@pytest.mark.skipif(MAKE is None, reason="make is not installed")
def test_readme_as_printed(clone: Path) -> None:
    """Every command of README does what README says; ``make demo`` comes before the others.

    It proves with two solvers, publishes, verifies, compares, and leaves its files.
    """
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    made = re.findall(r"^(make [\w-]+)\b", text, re.MULTILINE)
    assert made == ["make demo", "make test"]
    # Other tests of this file write there too.
    shutil.rmtree(clone / "out", ignore_errors=True)
    code, printed = in_shell("make demo", clone)
    assert code == 0, printed
    assert printed.count("; proven optimal:") == 2
    for said in ("The release keeps its promises.", "[35..37]"):
        assert said in printed
    assert {path.name for path in (clone / "out").iterdir()} == {
        *("release.csv", "release.csv.manifest.json", "report.html"),
        *("comparison.md", "comparison.csv", "gap.png"),
    }
    code, printed = in_shell("make --dry-run test", clone)
    assert code == 0
    assert "-m pytest" in printed
    assert run_page("README.md", clone, in_shell) >= 4


@pytest.mark.thorough
def test_tutorial_as_printed(clone: Path) -> None:
    """Every command of the tutorial does what it says there, in an environment that is active."""
    assert run_page("docs/tutorial.md", clone, partial(in_shell, activated=True)) >= 7


def test_the_six_records_of_readme() -> None:
    """The table of README is the release of its left half, and loses what it says."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    cells = [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in re.findall(r"^\|.*\|$", text.partition("\n> loss")[0], re.MULTILINE)
    ]
    before = pd.read_csv(REPOSITORY / "examples" / "six.csv", dtype={"zip": str})
    shown = [row[:4] for row in cells if "---" not in row]
    assert [list(before), *before.astype(str).to_numpy().tolist()] == shown
    release = anonymip.anonymize(
        before, ["age", "sex", "zip"], k=3, sensitive=["disease"], keep_order=True
    )
    after = [row[5:] for row in cells if "---" not in row]
    assert len(before) == 6
    assert [list(release.frame), *release.frame.astype(str).to_numpy().tolist()] == after
    assert f"\n> {release}\n" in text


def test_examples_are_those_of_their_script(clone: Path) -> None:
    """The invented tables are what examples/make_tables.py writes, to the byte."""
    tables = sorted((REPOSITORY / "examples").glob("*.csv"))
    assert [table.name for table in tables] == ["messy_patients.csv", "people.csv", "six.csv"]
    for table in tables:
        (clone / "examples" / table.name).unlink()
    code, printed = in_shell(".venv/bin/python examples/make_tables.py", clone)
    assert code == 0, printed
    for table in tables:
        assert (clone / "examples" / table.name).read_bytes() == table.read_bytes()


def test_other_output_is_seen() -> None:
    """A changed number and a missing line are noticed; seconds and lines left out are not."""
    assert same("loss 1\n...\nend", "loss 1\nin 0.20 s\nmore\nend\n")
    assert same("in 0.10 s", "compiling kernels, first run only\nin 7.00 s   \n")
    assert not same("loss 1\n...\nend", "loss 2\nend\n")
    assert not same("loss 1\nend", "loss 1\nmore\nend\n")
