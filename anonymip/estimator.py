"""An estimator for pipelines: a table is fitted, and its release is what it transforms to.

Everything is done by :func:`anonymip.anonymize`. Scikit-learn is not needed, and not
imported unless it asks.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.anonymization import anonymize
from anonymip.errors import InputError, unknown_name
from anonymip.instances import Attribute
from anonymip.instances.readers import as_pandas
from anonymip.objectives import MembersObjective, Objective
from anonymip.publishing.release import Release
from anonymip.recodings import Recoding


@dataclass(eq=False)
class Anonymizer:
    """Anonymize a table as a step of a pipeline.

    Rows stay in their order, and all of them stay, so that what belongs to them (a target, other
    columns) still does; who knows the order of the original knows the class of each person. For a
    table to give away, :func:`anonymip.anonymize` shuffles.

    Parameters
    ----------
    k
        Records that must look alike.
    quasi_identifiers
        As in :func:`anonymip.anonymize`; None: all columns without another role.
    sensitive, keep, drop, missing, recoding, objective, method, layout
        As there. Use the layout ``"columns"`` where the next step wants numbers.
    settings
        Further arguments of it by name: ``{"time_limit": 60, "unit": "patient"}``.

    Attributes
    ----------
    release_ : Release
        What was fitted: frame, manifest, solution with bound and gap; ``release_.verify()``.
    n_features_in_ : int
        Columns of the fitted table.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if they are texts.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [34, 36, 61, 65], "sex": ["F", "F", "M", "M"]})
    >>> step = Anonymizer(k=2)
    >>> step.fit_transform(people)["age"].tolist()
    ['[34..36]', '[34..36]', '[61..65]', '[61..65]']
    >>> step.release_.solution.is_optimal
    True
    """

    k: int = 5
    quasi_identifiers: Sequence[str | Attribute] | None = None
    sensitive: Sequence[str] = ()
    keep: Sequence[str] = ()
    drop: Sequence[str] = ()
    missing: str = "error"
    recoding: Recoding | str | None = None
    objective: Objective | MembersObjective | str | None = None
    method: str = "auto"
    layout: str = "cells"
    settings: Mapping[str, Any] | None = None

    def fit(self, X: Any, y: object = None) -> Anonymizer:  # noqa: N803 scikit-learn's name
        """Anonymize a table.

        `X`: the table: a data frame, as `anonymize` takes it, or an array of shape (n, m), whose
        columns are called ``x0``, ``x1`` and so on. `y`: not looked at. Raises InputError,
        NoSolution, VerificationFailed as `anonymize` does; if a record would be left out, since its
        row would be missing.
        """
        table = _table(X)
        beside = self.settings or {}
        named = [*self.sensitive, *self.keep, *self.drop, *beside.get("pseudonyms", ())]
        named += [beside.get("unit"), beside.get("weights")]
        asked = self.quasi_identifiers
        if asked is None:
            asked = [name for name in map(str, as_pandas(table).columns) if name not in named]
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("k", "quasi_identifiers", "settings"):
            del known[name]
        settings: dict[str, Any] = {"keep_order": True, **known, **beside}
        release: Release = anonymize(table, asked, self.k, **settings)
        rows, columns = as_pandas(table).shape
        if len(release.table) < rows:
            raise InputError(
                f"{rows - len(release.table)} of {rows} records would be left out, and the next "
                "step of a pipeline wants a row for each",
                remedy="Give settings={'suppressed': 'starred'} or another policy for missing "
                "values, or use anonymip.anonymize",
            )
        self.release_ = release
        self.n_features_in_ = columns
        self.__dict__.pop("feature_names_in_", None)
        names = list(as_pandas(table).columns)
        if not isinstance(X, np.ndarray) and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return the release of the fitted table, of its kind or as :meth:`set_output` says.

        Raises InputError for any other table: a row that was not there when classes were made
        would not be one of k that look alike.
        """
        original = self._fitted().solution.problem.microdata.original
        given = as_pandas(_table(X))
        if not given.set_axis(list(map(str, given.columns)), axis=1).equals(
            original.set_axis(list(map(str, original.columns)), axis=1)
        ):
            raise InputError(
                "this is not the fitted table, and what is new in it would not be protected: k "
                "records look alike because their classes were made together",
                remedy="Give the whole table to fit_transform",
            )
        kind = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        if kind == "default":
            return self.release_.frame
        if kind == "pandas":
            return self.release_.table
        import narwhals as nw
        import pyarrow as pa

        table = pa.Table.from_pandas(self.release_.table, preserve_index=False)
        return nw.from_arrow(table, backend=kind).to_native()

    def fit_transform(self, X: Any, y: object = None) -> Any:  # noqa: N803
        """Anonymize a table and return its release, as :meth:`fit` and :meth:`transform` do."""
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the columns of the release."""
        return np.array(list(self._fitted().table.columns), dtype=object)

    def set_output(self, *, transform: str | None = None) -> Anonymizer:
        """Say what `transform` returns: ``"pandas"``, ``"polars"``, or ``"default"``: as it came.

        None changes nothing.
        """
        kinds = ("default", "pandas", "polars")
        if transform is not None:
            if transform not in kinds:
                raise unknown_name("kind of output", transform, kinds)
            self._sklearn_output_config = {"transform": transform}
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` makes no difference."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Anonymizer:
        """Set parameters; what is fitted stays until the next :meth:`fit`."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise unknown_name("parameter", name, known)
            setattr(self, name, value)
        return self

    def _fitted(self) -> Release:
        """Return the release; raises scikit-learn's own error without one where that is loaded."""
        if hasattr(self, "release_"):
            return self.release_
        if sys.modules.get("sklearn") is not None:
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this Anonymizer is not fitted yet. Call fit first")
        raise InputError("this Anonymizer is not fitted yet", remedy="Call fit first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "release_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(string=True, categorical=True),
        )


def _table(given: Any) -> Any:
    """Return a data frame as it is, an array as one of pandas."""
    if not isinstance(given, np.ndarray):
        return given
    if given.ndim != 2:
        raise InputError(
            f"X is an array of {given.ndim} dimensions", remedy="Give a table: rows and columns"
        )
    return pd.DataFrame(given, columns=[f"x{place}" for place in range(given.shape[1])])
