"""One anonymization tool on one table, run by the interpreter of the tool's own environment.

``python peer_worker.py TOOL METHOD K TABLE SETTINGS OUTPUT``: TABLE is a CSV file of the
quasi-identifiers, SETTINGS a JSON file with the kinds of its columns and their hierarchies. OUTPUT
gets the rows as the tool publishes them, and beside it, ``OUTPUT.json``, what they took. Each tool
is used as its documentation shows. Nothing of AnonyMIP is imported but where it is the tool.
"""

# The tools are installed in environments of their own, where no type checker looks.
# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call"

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

Settings = dict[str, Any]
#: A column that tools ask for and that says nothing: they want a sensitive or an identifying one.
_ROW = "row"


def _typed(frame: pd.DataFrame, settings: Settings, text: str) -> pd.DataFrame:
    """Return the table with numbers, and with texts as a type of pandas."""
    typed = frame.copy()
    for name, kind in settings["kinds"].items():
        typed[name] = pd.to_numeric(typed[name]) if kind == "numeric" else typed[name].astype(text)
    return typed


def _names(settings: Settings, kind: str) -> list[str]:
    return [name for name, own in settings["kinds"].items() if own == kind]


def anonypy(frame: pd.DataFrame, k: int, method: str, settings: Settings) -> pd.DataFrame:
    """Mondrian of anonypy: its README's ``Preserver``."""
    import anonypy

    typed = _typed(frame, settings, "category").assign(**{_ROW: "x"})
    typed[_ROW] = typed[_ROW].astype("category")
    rows = anonypy.Preserver(typed, list(frame.columns), _ROW).anonymize_k_anonymity(k=k)
    one = [
        {key: cell[0] if isinstance(cell, list) else cell for key, cell in r.items()} for r in rows
    ]
    return pd.DataFrame(one).drop(columns=_ROW)


def anonypyx(frame: pd.DataFrame, k: int, method: str, settings: Settings) -> pd.DataFrame:
    """Mondrian or MDAV of anonypyx: its README's ``Anonymiser``."""
    import anonypyx

    # Its MDAV puts means into columns that pandas 3 keeps whole.
    typed = _typed(frame, settings, "category")
    typed = typed.astype(dict.fromkeys(_names(settings, "numeric"), float))
    published: pd.DataFrame = anonypyx.Anonymiser(
        typed,
        k=k,
        algorithm=method,
        feature_columns=list(frame.columns),
        generalisation_strategy="human-readable",
    ).anonymise()
    return published


def polarfrost(frame: pd.DataFrame, k: int, method: str, settings: Settings) -> pd.DataFrame:
    """Mondrian of polarfrost: its README's ``mondrian_k_anonymity``."""
    import polars
    from polarfrost import mondrian_k_anonymity

    typed = _typed(frame, settings, "object").assign(**{_ROW: "x"})
    table = polars.DataFrame({name: typed[name].to_list() for name in typed.columns})
    published = mondrian_k_anonymity(
        table,
        quasi_identifiers=list(frame.columns),
        sensitive_column=_ROW,
        k=k,
        categorical=_names(settings, "categorical"),
    )
    return pd.DataFrame(published.drop(_ROW).to_dicts())


def umbra_k(frame: pd.DataFrame, k: int, method: str, settings: Settings) -> pd.DataFrame:
    """Mondrian of umbra-k: its README's transformer."""
    from umbra_k import MondrianAnonymizer

    typed = _typed(frame, settings, "object")
    published: pd.DataFrame = MondrianAnonymizer(k=k, quasi_id=list(frame.columns)).fit_transform(
        typed
    )
    return published


def anonymity_api(frame: pd.DataFrame, k: int, method: str, settings: Settings) -> pd.DataFrame:
    """Mondrian of anonymity-api, which cuts at numbers alone."""
    from anonymity_api import anonymity

    typed = _typed(frame, settings, "object")
    published: pd.DataFrame = anonymity.k_anonymity(typed, list(frame.columns), k)
    return published


def lighthouse(frame: pd.DataFrame, k: int, method: str, settings: Settings) -> pd.DataFrame:
    """Core Mondrian of Project Lighthouse, with the hierarchies of the categories."""
    from project_lighthouse_anonymize.gtrees import GTree
    from project_lighthouse_anonymize.wrappers.k_anonymize import k_anonymize

    warnings.simplefilter("ignore")
    typed = _typed(frame, settings, "object")
    for name in _names(settings, "numeric"):
        typed[name] = typed[name].astype(float)
    typed[_ROW] = [str(number) for number in range(len(typed))]
    trees = {}
    for name in _names(settings, "categorical"):
        if name in settings["hierarchies"]:
            trees[name] = _tree(GTree, settings["hierarchies"][name], set(frame[name]))
    published, _, _ = k_anonymize(
        logging.getLogger("peer"), typed, list(frame.columns), k, trees, _ROW, parallelism=None
    )
    kept: pd.DataFrame = published
    return kept


def _tree(make: Any, paths: list[list[str]], observed: set[str]) -> Any:
    """Return the tree of paths from values to the root, as far as values occur."""
    tree, nodes = make(), {}
    for path in paths:
        if path[0] not in observed:
            continue
        parent = None
        for depth in range(len(path) - 1, -1, -1):
            key = (depth, path[depth])
            if key not in nodes:
                nodes[key] = tree.create_node(path[depth], parent=parent)
            parent = nodes[key]
    tree.add_default_geometric_sizes()
    return tree


def anjana(frame: pd.DataFrame, k: int, method: str, settings: Settings) -> pd.DataFrame:
    """Levels of hierarchies by ANJANA; the method says which percentage of records may go."""
    from anjana.anonymity import k_anonymity

    levels = {name: dict(pd.DataFrame(paths)) for name, paths in settings["hierarchies"].items()}
    most = float(method.split()[-2])
    published: pd.DataFrame = k_anonymity(
        frame.astype("object"), [], list(frame.columns), k, most, levels
    )
    return published[list(frame.columns)] if len(published) else published


def crowds(frame: pd.DataFrame, k: int, method: str, settings: Settings) -> pd.DataFrame:
    """Optimal lattice anonymization (OLA) of crowds, with its loss of precision."""
    from crowds.kanonymity import ola
    from crowds.kanonymity.generalizations import GenRule
    from crowds.kanonymity.information_loss import prec_loss

    def to_level(paths: list[list[str]], level: int) -> Callable[[str], str]:
        return {path[0]: path[level] for path in paths}.__getitem__

    # The last level, where all is one, comes by itself.
    rules = {
        name: GenRule([to_level(paths, level) for level in range(1, len(paths[0]) - 1)])
        for name, paths in settings["hierarchies"].items()
    }
    found = ola.anonymize(frame.astype("object"), rules, k=k, info_loss=prec_loss)
    published: pd.DataFrame = found[0]
    return published.fillna("*")


def anonymip(frame: pd.DataFrame, k: int, method: str, settings: Settings) -> pd.DataFrame:
    """AnonyMIP: a method alone, or ``auto`` at an effort with the bound that comes with it."""
    from anonymip import Attribute, Microdata, Problem, publish, solve

    attributes = tuple(Attribute(name, kind) for name, kind in settings["kinds"].items())
    problem = Problem(Microdata(_typed(frame, settings, "object"), attributes), k)
    if method.startswith("auto"):
        solution = solve(problem, effort=method.split()[1])  # type: ignore[arg-type]
    else:
        solution = solve(problem, method.split(",")[0], bound=False)
    published = publish(solution)
    return published.frame.assign(bound=solution.bound.value if solution.bound else None)


_TOOLS = {
    "anonypy": anonypy,
    "anonypyx": anonypyx,
    "polarfrost": polarfrost,
    "umbra-k": umbra_k,
    "anonymity-api": anonymity_api,
    "project-lighthouse-anonymize": lighthouse,
    "anjana": anjana,
    "crowds": crowds,
    "anonymip": anonymip,
}
#: Tools that compile what they run, at the first use of a process: a small table comes before.
_COMPILED = ("anonymip", "project-lighthouse-anonymize")
_FIRST = 300


def _seconds() -> float:
    """Return the processor seconds of this process and of those that it ended."""
    return sum(os.times()[:4])


def _most_memory() -> float:
    """Return the largest resident memory of this program, in MB.

    What the system reports as usage begins with that of the process that started this one.
    """
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def main(tool: str, method: str, k: str, table: str, settings: str, output: str) -> None:
    """Run one tool and write what it publishes and what that took."""
    warnings.simplefilter("ignore")
    frame = pd.read_csv(table, dtype=str, keep_default_na=False)
    asked = json.loads(Path(settings).read_text(encoding="utf-8"))
    run = _TOOLS[tool]
    if tool in _COMPILED:
        run(frame.iloc[:_FIRST].reset_index(drop=True), int(k), method, asked)
    begun = _seconds()
    published = run(frame, int(k), method, asked)
    taken = {"seconds": _seconds() - begun, "memory_mb": _most_memory()}
    published.to_csv(output, index=False)
    Path(f"{output}.json").write_text(json.dumps(taken), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
