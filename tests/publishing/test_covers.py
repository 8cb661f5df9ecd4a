"""Tests of published covers: whose values a row shows, and what the manifest says of it."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from anonymip import (
    KK,
    Classes,
    Cover,
    Diversity,
    Freeform,
    InputError,
    InvalidAssignment,
    KConcealment,
    KOne,
    Microdata,
    NoSolution,
    OneK,
    Problem,
    Release,
    ReleaseWarning,
    Solution,
    census,
    load_instance,
    publish,
)
from anonymip.graphs import Deficiency, regular_subgraph
from anonymip.privacy import read_release
from anonymip.publishing.checking import broken_limits, hierarchy_paths, loss_of_table, read_back
from tests.by_hand import by_classes, table_of
from tests.random_covers import FIGURE_3, TABLE_4, any_cover, regular_cover, ring
from tests.random_problems import Case, cases

SEEDS = st.integers(0, 2**32 - 1)


def tagged(n: int = 12) -> Microdata:
    """Return a table whose kept column names the record, with row labels of its own."""
    data = census(n, 3, 1)
    frame = data.frame.assign(record=np.arange(n), ill=[f"d{row % 4}" for row in range(n)])
    frame.index = pd.Index(np.arange(n)[::-1] + 100)
    return Microdata(frame, data.attributes, sensitive=("ill",), keep=("record",))


def seeded(solution: Solution, seed: int, **settings: Any) -> Release:
    """Return the release of a solution by a seeded generator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return publish(solution, np.random.default_rng(seed), **settings)


def freeform(cover: Cover, data: Microdata | None = None, k: int = 3, **asked: Any) -> Solution:
    """Return a cover as a freeform solution."""
    data = tagged(cover.n) if data is None else data
    return Solution.of(Problem(data, k, Freeform(**asked)), cover, method="test")


@given(st.integers(4, 9), st.integers(2, 4), SEEDS)
def test_rows_show_values_of_a_record_of_their_set(n: int, k: int, seed: int) -> None:
    """Row i shows the cells of set i and both untouched values of one of its records, each once."""
    cover = regular_cover(n, k, np.random.default_rng(seed))
    solution = freeform(cover, k=k)
    release = seeded(solution, seed, keep_order=True)
    shown = release.frame["record"].to_numpy()
    assert sorted(shown.tolist()) == list(range(n))
    assert all(shown[i] in cover.of_record(i) for i in range(n))
    assert release.frame["ill"].tolist() == [f"d{record % 4}" for record in shown]
    assert release._matching is not None
    assert release._matching.tolist() == shown.tolist()
    cells = solution.description
    for i, text in enumerate(release.frame[solution.problem.microdata.names[0]]):
        ends = sorted({cells.lower[i, 0], cells.upper[i, 0]})
        written = "..".join(f"{end:.0f}" for end in ends)
        assert text == (written if len(ends) == 1 else f"[{written}]")


def test_rows_are_shuffled_as_a_whole() -> None:
    """The shuffle comes after the assignment; values stay with the cells."""
    solution = freeform(ring(12, 3))
    kept = seeded(solution, 5, keep_order=True).frame
    shuffled = seeded(solution, 5).frame
    assert shuffled["record"].tolist() != kept["record"].tolist()
    one, other = (frame.sort_values("record", ignore_index=True) for frame in (kept, shuffled))
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize(
    "cover", [ring(5, 3), regular_cover(8, 4, np.random.default_rng(2))], ids=str
)
def test_each_record_of_a_set_is_shown_equally_often(cover: Cover) -> None:
    """A chi-square test of 100 releases."""
    solution, draws = freeform(cover), 100
    met = Counter(
        (row, record)
        for seed in range(draws)
        for row, record in enumerate(seeded(solution, seed, keep_order=True).frame["record"])
    )
    degree = int(cover.sizes[0])
    expected = draws / degree
    for row in range(cover.n):
        counts = [met[row, int(record)] for record in cover.of_record(row)]
        statistic = sum((count - expected) ** 2 / expected for count in counts)
        assert sum(counts) == draws
        assert statistic < chi2.ppf(1 - 1e-5, degree - 1)


def test_releases_differ_and_do_not_warn() -> None:
    """Without a generator the assignment comes from the operating system, another each time."""
    solution = freeform(ring(40, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # That of the kept column, which is unique.
        warnings.simplefilter("ignore", ReleaseWarning)
        drawn = {tuple(publish(solution, keep_order=True).frame["record"]) for _ in range(3)}
    assert len(drawn) == 3


def test_a_given_generator_is_a_warning() -> None:
    """Of a cover the seed undoes the assignment; a shuffle of classes does not warn."""
    rng = np.random.default_rng(1)
    with pytest.warns(UserWarning, match="who has its seed can undo it"):
        release = publish(freeform(ring(12, 3)), rng)
    assert any("random numbers of its publisher" in text for text in release.manifest["assumed"])
    problem = Problem(tagged(), 3)
    classes = by_classes(problem, np.arange(12) // 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ReleaseWarning)
        assert publish(classes, rng)._matching is None


@settings(max_examples=50)
@given(cases(smallest=4, largest=7, suppression=False), SEEDS, st.booleans())
def test_every_freeform_release_verifies(case: Case, seed: int, keep_order: bool) -> None:
    """Any regular cover of any table, under any loss, is published, read back and holds."""
    cover = regular_cover(case.n, case.k, np.random.default_rng(seed))
    problem = case.problem().replace(recoding=Freeform())
    solution = Solution.of(problem, cover, method="test")
    release = seeded(solution, seed, keep_order=keep_order)
    assert release.verify().problems == ()
    table = read_release(
        release.frame, release.manifest, hierarchies=hierarchy_paths(problem.microdata)
    )
    naive = sum(case.set_loss(tuple(cover.of_record(i).tolist())) for i in range(case.n))
    assert loss_of_table(problem, table) == pytest.approx(naive, rel=1e-9)
    assert broken_limits(problem, table) == []
    read_back(solution, release.frame, release.manifest, None)


WEAKER = {"one-k": OneK, "k-one": KOne, "k-k": KK, "k-concealment": KConcealment}


@settings(max_examples=60)
@given(
    cases(smallest=4, largest=7, suppression=False),
    st.sampled_from(sorted(WEAKER)),
    st.sampled_from([0.3, 0.5]),
    SEEDS,
)
def test_every_release_of_a_weaker_notion_verifies(
    case: Case, name: str, share: float, seed: int
) -> None:
    """It claims its notion, and that the chances are not equal is assumed."""
    problem = case.problem().replace(recoding=WEAKER[name](), k=2)
    cover = any_cover(case.n, share, np.random.default_rng(seed))
    try:
        solution = Solution.of(problem, cover, method="test")
    except InvalidAssignment:
        assume(False)
    release = seeded(solution, seed)
    assert release.manifest["recoding"] == name
    assert any("equally likely" in text for text in release.manifest["assumed"])
    assert release.verify().problems == ()


def test_weaker_notions_with_a_diversity_hold_or_are_refused() -> None:
    """No release that its own verifier refuses: k-concealment keeps it, the others do not try."""
    rng = np.random.default_rng(6)
    ends: Counter[str] = Counter()
    for _ in range(200):
        n = int(rng.integers(4, 9))
        frame = pd.DataFrame({"a": rng.integers(0, 12, n), "ill": rng.choice(list("xyz"), n)})
        data = table_of(frame, "ill")
        diversity = Diversity(l=float(rng.choice([1.5, 2, 3])), distinct=int(rng.choice([1, 2, 3])))
        name = str(rng.choice(sorted(WEAKER)))
        cover = any_cover(n, float(rng.choice([0.5, 0.8])), rng)
        try:
            problem = Problem(data, int(rng.integers(2, 4)), WEAKER[name](), diversity=diversity)
            solution = Solution.of(problem, cover, method="test")
            release = seeded(solution, int(rng.integers(1000)))
        except (InputError, InvalidAssignment, NoSolution) as refusal:
            ends[type(refusal).__name__] += 1
            continue
        read_back(solution, release.frame, release.manifest, None)
        ends[name] += 1
    assert set(ends) == {"InputError", "InvalidAssignment", "NoSolution", "k-concealment"}
    assert ends["k-concealment"] >= 5


def test_weaker_examples_of_the_papers() -> None:
    """Table 4 of Wong et al. is (2, 2)-anonymous, Fig. 3 of Doka et al. has 2-concealment."""
    data = tagged(5)
    for cover, recoding in ((TABLE_4, KK()), (FIGURE_3, KConcealment())):
        problem = Problem(data, 2, recoding)
        release = seeded(Solution.of(problem, cover, method="test"), 1, keep_order=True)
        assert all(record in cover.of_record(i) for i, record in enumerate(release.frame["record"]))
        assert release.verify().ok


def test_degrees_of_each_record_are_released_as_k_concealment() -> None:
    """One record that hides among all others leaves these no two disjoint assignments."""
    star = Cover.of([range(5), [0, 1], [0, 2], [0, 3], [0, 4]])
    assert isinstance(regular_subgraph(star, 2), Deficiency)
    release = publish(freeform(star, k=2, degrees=(5, 2, 2, 2, 2)))
    assert release.manifest["recoding"] == "k-concealment"
    assert (
        "the rules of recoding freeform beyond those of k-concealment"
        in (release.manifest["assumed"])
    )
    assert release.verify().ok
    even = publish(freeform(ring(5, 3), k=2, degrees=(3,) * 5))
    assert even.manifest["recoding"] == "freeform"


def test_the_manifest_tells_sets_and_assumptions_but_no_assignment() -> None:
    """It has the keys of any other manifest; nothing in it depends on what was drawn."""
    solution = freeform(ring(12, 4))
    manifest = publish(solution).manifest
    assert manifest["recoding"] == "freeform"
    assert "4 disjoint assignments of records to rows exist" in manifest["checked"]
    assert any("random numbers of the operating system" in text for text in manifest["assumed"])
    assert any("fewer than k - c" in text for text in manifest["assumed"])
    classes = by_classes(
        solution.problem.replace(recoding=Problem(tagged(), 3).recoding), np.arange(12) // 4
    )
    assert manifest.keys() == publish(classes).manifest.keys()
    assert json.dumps(manifest) == json.dumps(publish(solution).manifest)


@pytest.mark.parametrize("is_of_classes", [True, False])
def test_only_covers_of_classes_leave_all_but_the_known_matches(is_of_classes: bool) -> None:
    """Of reciprocal sets the manifest assumes that no match is known, unless they are classes."""
    around = [[(record + step) % 12 for step in (-1, 0, 1)] for record in range(12)]
    cover = Cover.of_classes(Classes(np.arange(12) // 3)) if is_of_classes else Cover.of(around)
    assumed = publish(freeform(cover, k=3, reciprocal=True)).manifest["assumed"]
    assert any("fewer than k - c" in text for text in assumed) is not is_of_classes


def test_covers_are_written_and_read_back(tmp_path: Path) -> None:
    """Both file formats and both layouts; kept order too."""
    solution = freeform(ring(12, 3))
    for number, name in enumerate(("one.csv", "two.parquet")):
        layout = ("cells", "columns")[number]
        table, manifest = publish(solution, layout=layout, keep_order=bool(number)).write(
            tmp_path / name
        )
        assert table.is_file()
        assert "verified by separate code" in manifest.read_text(encoding="utf-8")


def test_categories_follow_the_assignment() -> None:
    """A categorical sensitive column is handed out like any other, and stays one."""
    frame = pd.DataFrame({"age": [30, 31, 60, 61, 62], "s": pd.Categorical(list("uvwxy"))})
    data = table_of(frame, "s")
    release = seeded(freeform(ring(5, 3), data), 3, keep_order=True)
    assert release._matching is not None
    assert release.frame["s"].tolist() == [list("uvwxy")[i] for i in release._matching]
    assert isinstance(release.frame["s"].dtype, pd.CategoricalDtype)


def test_health_records_of_the_paper() -> None:
    """The seven health records on a ring with k = 3: verified with three matches each."""
    solution = freeform(ring(7, 3), load_instance("health-records"))
    found = publish(solution).verify()
    assert found.ok
    assert found.k_reached == 3
