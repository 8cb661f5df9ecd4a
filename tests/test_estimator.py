"""The estimator: thin over `anonymize`, strict about new rows, and one that scikit-learn takes."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from anonymip import Anonymizer, Diversity, InputError, anonymize
from anonymip.errors import ReleaseWarning

AGES = [34, 36, 61, 65, 41, 43]


def people() -> pd.DataFrame:
    """Return six persons."""
    return pd.DataFrame({"age": AGES, "sex": list("FFMMFM"), "ill": list("abcabc")})


def test_it_is_anonymize() -> None:
    """What it gives is the release in the order of the rows, with bound, gap and verification."""
    step = Anonymizer(k=2, sensitive=["ill"], settings={"diversity": Diversity(2)})
    found = step.fit_transform(people())
    direct = anonymize(
        people(), ["age", "sex"], 2, sensitive=["ill"], diversity=Diversity(2), keep_order=True
    )
    pd.testing.assert_frame_equal(found, direct.frame)
    assert found["ill"].tolist() == people()["ill"].tolist()
    assert step.release_.solution.gap == direct.solution.gap
    assert step.release_.solution.is_optimal
    assert step.release_.verify().ok
    assert step.get_feature_names_out().tolist() == ["age", "sex", "ill"]
    assert step.feature_names_in_.tolist() == ["age", "sex", "ill"]
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(step)).transform(people()), found)


@pytest.mark.parametrize("change", ["fewer", "more", "other", "order", "columns"])
def test_other_tables_are_refused(change: str) -> None:
    """New rows, and rows that are changed, moved or missing, have no release."""
    step = Anonymizer(k=2, drop=["ill"]).fit(people())
    table = people()
    others = {
        "fewer": table.iloc[:4],
        "more": pd.concat([table, table.iloc[:1]], ignore_index=True),
        "other": table.assign(age=[35, *AGES[1:]]),
        "order": table.iloc[::-1].reset_index(drop=True),
        "columns": table[["age", "sex"]],
    }
    with pytest.raises(InputError, match=r"not the fitted table.*would not be protected"):
        step.transform(others[change])


def test_every_row_is_wanted() -> None:
    """A release that leaves records out is refused, since rows would no longer belong together."""
    table = people().astype({"age": "Int64"})
    table.loc[0, "age"] = pd.NA
    with pytest.raises(InputError, match="1 of 6 records would be left out"):
        Anonymizer(k=2, drop=["ill"], missing="drop").fit(table)


def test_units_pseudonyms_and_weights() -> None:
    """Columns that settings give a role are no quasi-identifiers; k counts units."""
    visits = pd.concat([people(), people()]).assign(who=[*"ababcc", *"ddefef"], w=range(1, 13))
    visits = visits.reset_index(drop=True)
    asked = {"unit": "who", "weights": "w"}
    step = Anonymizer(k=2, sensitive=["ill"], settings=asked)
    with pytest.warns(ReleaseWarning, match="nearly unique"):
        found = step.fit_transform(visits)
    assert list(found) == ["age", "sex", "ill", "w"]
    assert visits["who"].groupby([found["age"], found["sex"]]).nunique().min() >= 2
    assert step.release_.manifest["weights"]["column"] == "w"
    assert step.release_.verify().ok
    step.set_params(settings={**asked, "pseudonyms": ["who"]})
    with pytest.warns(ReleaseWarning, match="links the rows"):
        found = step.fit_transform(visits)
    assert found.groupby("who")["w"].apply(list).tolist() == (
        visits.groupby(found["who"])["w"].apply(list).tolist()
    )
    assert visits["who"].groupby(found["who"]).nunique().max() == 1
    refused = Anonymizer(k=2, recoding="freeform", settings={"unit": "who"})
    with pytest.raises(InputError, match="does not count units"):
        refused.fit(visits.drop(columns="w"))


@pytest.mark.parametrize("kind", ["default", "pandas", "polars"])
def test_output(kind: str) -> None:
    """Tables come back as they came, or as `set_output` says; numbers are numbers."""
    step = Anonymizer(k=2, drop=["ill"], layout="columns").set_output(transform=kind)
    found = step.fit_transform(pl.from_pandas(people()))
    assert isinstance(found, pd.DataFrame if kind == "pandas" else pl.DataFrame)
    assert list(found["age_lower"]) == list(step.release_.table["age_lower"])
    assert (found["age_lower"].to_numpy() <= AGES).all()
    assert (found["age_upper"].to_numpy() >= AGES).all()


def test_arrays() -> None:
    """Columns of an array have numbers for names; an array of another shape is no table."""
    found = Anonymizer(k=2, layout="columns").fit_transform(
        np.array(AGES, dtype=float).reshape(3, 2)
    )
    assert list(found) == ["x0_lower", "x0_upper", "x1_lower", "x1_upper"]
    with pytest.raises(InputError, match="1 dimensions"):
        Anonymizer().fit(np.array(AGES))


def test_parameters() -> None:
    """They are set and got by name, unknown ones are refused, and what is fitted stays."""
    step = Anonymizer(k=3)
    assert step.set_params(k=2, drop=["ill"]).get_params()["k"] == step.k == 2
    for action in (lambda: step.set_params(j=1), lambda: step.set_output(transform="lists")):
        with pytest.raises(InputError, match="unknown"):
            action()


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used where scikit-learn cannot be imported; unfitted it says so itself."""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    step = Anonymizer(k=2, quasi_identifiers=["age"], drop=["ill"])
    with pytest.raises(InputError, match="not fitted"):
        step.transform(people())
    assert len(step.fit_transform(people())) == 6


def test_a_pipeline_of_scikit_learn() -> None:
    """Scikit-learn clones it, puts it before other steps, and gives its table to them."""
    base = pytest.importorskip("sklearn.base")
    exceptions = pytest.importorskip("sklearn.exceptions")
    pipeline = pytest.importorskip("sklearn.pipeline")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    step = Anonymizer(k=2, drop=["ill"], layout="columns").set_output(transform="pandas")
    copy = base.clone(step)
    assert copy.get_params() == step.get_params()
    with pytest.raises(exceptions.NotFittedError):
        copy.transform(people())
    steps = [("k", copy), ("scale", preprocessing.MinMaxScaler())]
    made = pipeline.Pipeline(steps).set_params(k__quasi_identifiers=["age"], k__drop=["sex", "ill"])
    found: Any = made.fit_transform(people())
    assert found.shape == (6, 2)
    assert found.min() == 0
    assert found.max() == pytest.approx(1)


#: Of scikit-learn's checks those that ask nothing of tables that were not fitted.
CHECKS = (
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_valid_tag_types",
    "check_mixin_order",
    "check_dict_unchanged",
    "check_estimators_overwrite_params",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
    "check_estimators_unfitted",
    "check_estimators_pickle",
    "check_set_output_transform",
    "check_n_features_in",
    "check_fit1d",
    "check_transformer_general",
)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CHECKS)
def test_checks_of_scikit_learn(name: str) -> None:
    """It passes those of scikit-learn's own checks that apply."""
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    getattr(checks, name)("Anonymizer", Anonymizer(k=2, method="mondrian", layout="columns"))
