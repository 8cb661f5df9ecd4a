"""Every writer of the package: which files it makes private, also while they are written."""

from __future__ import annotations

import ast
import inspect
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from anonymip import Budget, Problem, certify, instances, load_instance, publish, solve
from anonymip.app import work
from anonymip.app.question import Asked
from anonymip.cli.app import run
from anonymip.exact.split_carry.checkpoint import Checkpoint, Fingerprint
from anonymip.experiments import leaderboard
from anonymip.experiments.leaderboard import problem_of
from anonymip.files import Outputs, writing
from anonymip.instances.library import catalogue, fetching
from anonymip.solvers import registry
from anonymip.solvers.adapters import cbc

PACKAGE = Path(__file__).resolve().parents[1] / "anonymip"

#: What writes a file by the rule of `anonymip.files`.
STAGING = {"stage", "write_text", "replacing", "start_growing"}
#: What else opens, makes or renames one; `open` counts where it is to write.
WRITING = {
    *("write_bytes", "mkdir", "makedirs", "mkstemp", "mkdtemp", "NamedTemporaryFile", "mkfifo"),
    *("TemporaryFile", "TemporaryDirectory", "copyfile", "to_parquet", "to_pickle", "to_excel"),
    *("savefig", "write_table", "dump", "save", "savez", "savetxt", "tofile", "FileHandler"),
    *("retrieve", "fdopen"),
}
#: These are methods of texts, frames and classes too, which write nothing.
OF_MODULES = {"copy", "replace", "rename", "link", "symlink", "move", "umask", "chmod"}
#: A file without any of these words writes nothing: it is not parsed.
NAMED = re.compile(rf"\b({'|'.join(STAGING | WRITING)}|open|ZipFile|to_csv|os|shutil)\b")
#: What writes otherwise, and why nobody else can read what is private in it.
OTHERS = {
    "app/session.py:Desk.new": "a folder of mode 700",
    "app/server.py:serve": "a folder of mode 700",
    "app/session.py:Session._write_schema": "into a folder of mode 700",
    "app/session.py:Session._fresh": "a folder of mode 700",
    "app/session.py:Session.project": "into memory",
    "app/table_step.py:_upload": "into a folder of mode 700",
    "app/work.py:bring": "into a folder of mode 700",
    "app/work.py:write_hierarchy": "into a file that is staged",
    "cli/app.py:run": "nothing: the null device",
    "cli/hierarchies.py:hierarchy": "into a file that is staged",
    "exact/split_carry/checkpoint.py:Checkpoint.write": "into a file that is staged",
    "experiments/pages.py:_drawn": "into memory",
    "experiments/running/results.py:RunStore.put": "into a file that is staged",
    "experiments/running/results.py:RunStore.results": "into a file that is staged",
    "experiments/style.py:png": "into memory",
    "experiments/style.py:save": "into a file that is staged",
    "experiments/thermometer.py:save_figure": "into a file that is staged",
    "instances/library/fetching.py:_keep": "into a file that is staged",
    "models/export.py:_write_lp": "into a file that is staged",
    "models/export.py:_write_nl": "into files that are staged",
    "publishing/release.py:_write_csv": "into a file that is staged",
    "publishing/release.py:_write_parquet": "into a file that is staged",
    "publishing/workbooks.py:write_workbook": "into a file that is staged",
    "privacy/reading/stored_files.py:file_here": "a folder of mode 700",
    "privacy/parts.py:_send": "into a folder of mode 700",
    "privacy/parts.py:verify_parts": "a folder of mode 700",
    "scale/part.py:_appearing": "a file of mode 600 in a folder of mode 700",
    "scale/part.py:_write": "into a file of mode 600",
    "scale/part.py:split": "into a file of mode 600",
    "scale/sources.py:_here": "a folder of mode 700",
    "scale/sources.py:source_of": "into a folder of mode 700",
    "scale/targets.py:Address._make": "folders at an address, of what is made to be given away",
    "scale/targets.py:Folder.put": "a folder in one of mode 700",
    "scale/targets.py:_move": "within a folder of mode 700",
    "runtime/kernel_cache.py:_own_folder": "nothing",
    "runtime/kernel_cache.py:content_of": "nothing",
    "runtime/kernel_cache.py:put": "code, mode 600 in a folder of mode 700",
    "runtime/kernel_cache.py:opened_folder": "a folder of mode 700",
    "runtime/kernel_cache.py:shared_compilation": "an empty file in a folder of mode 700",
    "runtime/worker_pool.py:run_isolated": "a folder of mode 700",
    "runtime/worker_pool.py:WorkerProcess.__init__": "a file of mode 600 without a name",
    "solvers/adapters/cbc.py:CbcSolver.solve": "a folder of mode 700",
    "solvers/adapters/cbc.py:_run": "a file of mode 600",
    "solvers/adapters/cbc.py:write_model": "a file of mode 600",
    "solvers/adapters/cbc.py:write_start": "a file of mode 600",
    "solvers/adapters/cplex.py:CplexSolver.session": "a log that start_growing made, or a private",
    "solvers/adapters/guardian.py:main": "nothing: what it starts writes with the umask 077",
    "solvers/adapters/packages.py:PackageSolver.solve": "a folder of mode 700",
}


def named(node: ast.AST) -> tuple[str, str]:
    """Return the name of what a node refers to, and of what that belongs to."""
    if isinstance(node, ast.Attribute):
        return node.attr, getattr(node.value, "id", "")
    return getattr(node, "id", ""), ""


def writes(node: ast.AST) -> bool:
    """Return whether a node stands for something that may write a file otherwise."""
    if isinstance(node, ast.Call):
        name, owner = named(node.func)
        if name in ("open", "ZipFile"):
            # The second argument of the function, the first of the method.
            is_method = isinstance(node.func, ast.Attribute) and owner not in ("zipfile", "archive")
            given = [*node.args[0 if is_method else 1 :][:1]]
            given += [word.value for word in node.keywords if word.arg == "mode"]
            modes = "".join(str(one.value) for one in given if isinstance(one, ast.Constant))
            return owner == "os" or (owner != "archive" and bool(set("wax+") & set(modes)))
        return (name in WRITING) or (name == "to_csv" and bool(node.args))
    name, owner = named(node)
    return name in OF_MODULES and owner in ("os", "shutil")


def stages(node: ast.AST) -> bool:
    """Return whether a node stands for something that writes by the rule."""
    return isinstance(node, ast.Attribute | ast.Name) and named(node)[0] in STAGING


@cache
def nodes() -> list[tuple[str, list[ast.AST]]]:
    """Return the functions of the package by file and name, each with what it consists of."""
    return [
        (f"{path.relative_to(PACKAGE).as_posix()}:{name}", [*own_nodes(body)])
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != PACKAGE / "files.py" and NAMED.search(text := path.read_text(encoding="utf-8"))
        for name, body in functions(ast.parse(text))
    ]


def places(is_wanted: Callable[[ast.AST], bool]) -> set[str]:
    """Return the functions of the package that hold a node of a kind."""
    return {place for place, held in nodes() if any(map(is_wanted, held))}


def functions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield the functions of a module by qualified name, and the module itself."""
    if not within:
        yield "<module>", tree
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = f"{within}.{node.name}".lstrip(".")
            yield name, node
            yield from functions(node, name)
        elif isinstance(node, ast.If | ast.With | ast.Try):
            yield from functions(node, within or ".")


def own_nodes(body: ast.AST) -> Iterator[ast.AST]:
    """Yield what a function consists of, without the functions of its own."""
    waiting = [body]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ImportFrom):
                yield node
                waiting.append(node)


def test_every_writer_is_known() -> None:
    """A new one keeps to the rule and is run below, or says here why it need not."""
    assert places(writes) == set(OTHERS)
    assert places(stages) == {place for run in RUNS for place in run.by}


@pytest.mark.parametrize(
    "source",
    [
        "def f(path):\n    open(path, 'w')",
        "def f(path):\n    path.open('ab')",
        "def f(path):\n    with open(path, mode='x') as file:\n        pass",
        "def f(path):\n    os.open(path, flags)",
        "def f(path):\n    shutil.copy(path, path)",
        "def f(frame, path):\n    frame.to_csv(path)",
        "def f(path):\n    np.save(path, 1)",
        "def f():\n    tempfile.NamedTemporaryFile()",
        "class A:\n    def f(self):\n        os.umask(0)",
    ],
)
def test_new_writers_are_seen(source: str) -> None:
    """The walk over the sources knows the ways to write a file."""
    found = {
        name for name, body in functions(ast.parse(source)) if any(map(writes, own_nodes(body)))
    }
    assert found in ({"f"}, {"A.f"})


@dataclass
class Watched:
    """What was staged in a run: by whom, and how the files were while they were written."""

    by: set[str] = field(default_factory=set)
    modes: set[int] = field(default_factory=set)

    def note(self) -> None:
        """Note the functions of the package that are at work."""
        for frame in inspect.stack(0):
            path = Path(frame.filename)
            if path.is_relative_to(PACKAGE):
                name = frame.frame.f_code.co_qualname
                self.by.add(f"{path.relative_to(PACKAGE).as_posix()}:{name}")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """Watch who stages outputs, and their modes when they are whole; the umask lets all read."""
    seen = Watched()
    stage, sync, grow = Outputs.stage, Outputs.sync, registry.start_growing

    def note_stage(outputs: Outputs, target: Path, **how: Any) -> Path:
        seen.note()
        return stage(outputs, target, **how)

    def note_sync(outputs: Outputs) -> None:
        seen.modes |= {mode_of(one.temporary) for one in outputs._outputs}
        sync(outputs)

    def note_log(target: Path) -> None:
        seen.note()
        grow(target)
        seen.modes.add(mode_of(target))

    monkeypatch.setattr(Outputs, "stage", note_stage)
    monkeypatch.setattr(Outputs, "sync", note_sync)
    monkeypatch.setattr(registry, "start_growing", note_log)
    before = os.umask(0o022)
    yield seen
    os.umask(before)


def mode_of(path: Path) -> int:
    """Return the mode of a file."""
    return stat.S_IMODE(path.stat().st_mode)


Act: TypeAlias = Callable[[Path, pytest.MonkeyPatch], object]


@dataclass(frozen=True)
class Run:
    """Something that writes, and what comes of it."""

    name: str  # for people
    act: Act  # takes the folder to write into, which is the working directory
    by: tuple[str, ...]  # the functions that stage the files
    #: Patterns of the files.
    private: tuple[str, ...] = ()
    public: tuple[str, ...] = ()


def command(*arguments: object) -> Act:
    """Return the run of a command."""

    def act(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert run([str(argument) for argument in arguments]) == 0

    return act


def experiment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the smallest experiment."""
    (folder / "small.toml").write_text(
        'name = "small"\nk = [2]\nbound = false\ntables = [{instance = "health-records"}]\n'
        '[[methods]]\nmethod = "initial"\n'
    )
    command(
        *("experiment", "small.toml", "-o", "new/out"),
        *("--report", "new/runs.html", "--json", "new/rows.json"),
    )(folder, monkeypatch)
    (folder / "small.toml").unlink()


def preparing(*arguments: object) -> Act:
    """Return the run of a command on a table of codes."""

    def act(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (folder / "codes.csv").write_text("zip,sex\n02138,F\n02139,M\n02138,F\n")
        command(*arguments)(folder, monkeypatch)
        (folder / "codes.csv").unlink()

    return act


def demo(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the demo, with few records in the place of its larger table."""
    few = {"census:1000,8,1": "census:40,3,1"}
    monkeypatch.setattr(instances, "load_instance", lambda n: load_instance(few.get(n, n)))
    command("demo", "--out", "new/out")(folder, monkeypatch)


def checkpoint(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a checkpoint."""
    Checkpoint(folder / "new" / "state", Fingerprint("", "", "")).write({"labels": np.arange(3)})


def from_python(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a release and a certificate without the command line."""
    problem = Problem(load_instance("health-records"), 3)
    publish(solve(problem, "initial")).write(folder / "new" / "release.parquet")
    certify(problem).write(folder / "new" / "proof.json")


def by_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make what the page makes: the hierarchy of a rule of codes, and a release."""
    (folder / "codes.csv").write_text("zip,sex\n02138,F\n02139,M\n02138,F\n02139,M\n")
    (folder / "s.toml").write_text('[attributes.zip]\nhierarchy = {mask = "right"}\n')
    text = (folder / "s.toml").read_text()
    work.write_hierarchy(folder, "codes.csv", text, "zip", folder / "zip.csv", Budget())
    work.make_release(folder, "codes.csv", "s.toml", Asked(k=2), "release-1", Budget())
    for name in ("codes.csv", "s.toml", "schema.toml"):
        (folder / name).unlink()


def library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a better release into a copy of the library."""
    entry = catalogue.find_entry("health-records-one-k-k3")
    (source,) = [file for file in catalogue.families() if entry in catalogue.read_family(file)]
    copy = folder / source.name
    copy.write_bytes(source.read_bytes())
    monkeypatch.setattr(catalogue, "families", lambda: [copy])
    monkeypatch.setattr(catalogue, "FOLDER", folder)
    better = replace(entry, loss=1.0)
    with writing() as outputs:
        catalogue.stage_entries([better], outputs)
        leaderboard.stage_release(better, solve(problem_of(entry)), outputs)


def fetched(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a table of public data that were downloaded."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    original = fetching.PUBLIC["adult"]
    source = replace(original, made=("adult/made.csv", "", lambda text: text))
    monkeypatch.setattr(fetching, "PUBLIC", {"adult": source})
    monkeypatch.setattr(fetching, "_download", lambda *_: b"")
    fetching.fetch("adult")


JSON = "cli/console.py:write_json"
TABLE = ("health-records", "-k", 2)
FAST = ("--method", "initial")
RUNS = (
    Run(
        "anonymize",
        command(
            *("anonymize", *TABLE, *FAST, "-o", "new/release.csv"),
            *("--report", "new/page.html", "--json", "new/record.json"),
        ),
        (
            "cli/tasks.py:anonymize",
            "cli/tasks.py:stage_release",
            "publishing/release.py:Release.stage",
            JSON,
        ),
        private=("new/record.json",),
        public=("new/release.csv", "new/release.csv.manifest.json", "new/page.html"),
    ),
    *(
        Run(
            f"solve by {solver}",
            command(
                *("solve", *TABLE, "--method", "equivalence-mip", "--solver", solver),
                *("--log", "new/solver.log", "--json", "new/record.json"),
            ),
            ("solvers/registry.py:_solve_form", JSON),
            private=("new/solver.log", "new/record.json"),
        )
        for solver in ("highs", "cbc")
    ),
    Run(
        "compare",
        command(
            *("compare", *TABLE, "--methods", "initial,mondrian", "--json", "new/rows.json"),
            *("--plot", "new/gap.png", "--csv", "new/rows.csv", "--markdown", "new/rows.md"),
            *("--report", "new/page.html"),
        ),
        ("cli/experiments.py:compare", "experiments/thermometer.py:save_figure", JSON),
        private=("new/rows.json",),
        public=("new/gap.png", "new/rows.csv", "new/rows.md", "new/page.html"),
    ),
    Run(
        "compare samples",
        command(
            *("compare", *TABLE, "--methods", "initial", "--samples", 1, "--sample-size", 6),
            *("--csv", "new/rows.csv", "--markdown", "new/rows.md", "--report", "new/page.html"),
            *("--json", "new/rows.json"),
        ),
        ("cli/experiments.py:_run_experiment", JSON),
        private=("new/rows.json",),
        public=("new/rows.csv", "new/rows.md", "new/page.html"),
    ),
    Run(
        "experiment",
        experiment,
        (
            "cli/experiments.py:_stage_page",
            "experiments/running/results.py:RunStore.put",
            "experiments/running/results.py:RunStore.write_plan",
            "experiments/running/results.py:RunStore.results",
            JSON,
        ),
        private=("new/rows.json", "new/out/experiment.json"),
        public=("new/runs.html", "new/out/results.*", "new/out/runs/*.parquet"),
    ),
    Run(
        "hierarchy",
        preparing("hierarchy", "codes.csv", "-q", "zip", "--mask", "right", "-o", "new/zip.csv"),
        ("cli/hierarchies.py:hierarchy",),
        private=("new/zip.csv",),
    ),
    Run(
        "inspect",
        preparing("inspect", "codes.csv", "-o", "new/schema.toml", "--json", "new/columns.json"),
        ("cli/tasks.py:inspect", JSON),
        private=("new/schema.toml", "new/columns.json"),
    ),
    Run(
        "leaderboard",
        command("leaderboard", "--known", "-o", "new/board.md", "--json", "new/board.json"),
        ("cli/inventory.py:leaderboard", JSON),
        private=("new/board.json",),
        public=("new/board.md",),
    ),
    Run(
        "demo",
        demo,
        ("cli/tasks.py:_demo_release", "cli/tasks.py:_demo_comparison"),
        public=("new/out/*",),
    ),
    Run(
        "certify",
        command("certify", *TABLE, "-o", "new/proof.json", "--json", "new/record.json"),
        ("cli/answers.py:certify", "exact/certifying/certificate.py:Certificate.stage", JSON),
        private=("new/proof.json", "new/record.json"),
        public=("new/check.py",),
    ),
    *(
        Run(
            f"export {name}",
            command("export", *TABLE, "-o", f"new/{name}", "--json", "new/record.json"),
            ("models/export.py:export_model", JSON),
            private=("new/*",),
        )
        for name in ("model.lp", "model.mps", "model.nl")
    ),
    Run(
        "checkpoint",
        checkpoint,
        ("exact/split_carry/checkpoint.py:Checkpoint.write",),
        private=("new/state",),
    ),
    Run(
        "Python",
        from_python,
        (
            "publishing/release.py:Release.write",
            "exact/certifying/certificate.py:Certificate.write",
        ),
        private=("new/proof.json",),
        public=("new/release.parquet", "new/release.parquet.manifest.json", "new/check.py"),
    ),
    Run(
        "the page",
        by_the_page,
        ("app/work.py:make_release", "app/work.py:write_hierarchy"),
        private=("zip.csv",),
        public=("release-1.csv", "release-1.csv.manifest.json", "release-1.html"),
    ),
    Run(
        "library",
        library,
        (
            "experiments/leaderboard.py:stage_release",
            "instances/library/catalogue.py:stage_entries",
        ),
        public=("*.toml", "releases/*.json"),
    ),
    Run(
        "fetch",
        fetched,
        ("instances/library/fetching.py:_keep",),
        private=("anonymip/data/adult/adult.data",),
        public=("anonymip/data/adult/made.csv",),
    ),
)


@pytest.mark.parametrize("asked", RUNS, ids=lambda asked: asked.name)
def test_files_are_private_unless_they_are_published(
    asked: Run, watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whoever writes them; while they are written all are, and missing folders are made."""
    monkeypatch.chdir(tmp_path)
    asked.act(tmp_path, monkeypatch)
    assert set(asked.by) <= watched.by
    assert watched.modes == {0o600}
    found = {path: mode_of(path) for path in tmp_path.rglob("*") if path.is_file()}
    private = {path for pattern in asked.private for path in tmp_path.glob(pattern)}
    public = {path for pattern in asked.public for path in tmp_path.glob(pattern)}
    assert all(any(tmp_path.glob(pattern)) for pattern in (*asked.private, *asked.public))
    assert found == {**dict.fromkeys(private, 0o600), **dict.fromkeys(public, 0o644)}


def test_files_of_cbc_are_private(monkeypatch: pytest.MonkeyPatch) -> None:
    """Model, start, solution and log lie in a folder of their owner's, and are private there."""
    modes: dict[str, int] = {}
    result = cbc._result

    def look(form: Any, folder: Path, *rest: Any) -> Any:
        modes.update({path.name: mode_of(path) for path in (folder, *folder.iterdir())})
        return result(form, folder, *rest)

    monkeypatch.setattr(cbc, "_result", look)
    before = os.umask(0o022)
    try:
        solve(Problem(load_instance("health-records"), 2), "equivalence-mip", solver="cbc")
    finally:
        os.umask(before)
    (folder,) = [name for name in modes if name.startswith("anonymip-cbc-")]
    assert modes.pop(folder) == 0o700
    assert {"model.lp", "start.txt", "cbc.log", "solution.bin"} <= set(modes)
    assert set(modes.values()) == {0o600}
