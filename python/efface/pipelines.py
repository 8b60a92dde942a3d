"""Pipelines that forget: one request through all steps, and evidence of the whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline as _Pipeline

from ._base import Forgetting
from ._core import Evidence
from ._errors import RefusedError
from ._rows import ForgottenNames
from .steps import RowNames, copied, join, take

_STRANGERS = ("refuse", "name")


@dataclass(frozen=True)
class PipelineEvidence:
    """What a pipeline did to forget rows, and how far from a pipeline fitted without them it can be."""

    #: How the last step forgot: its own method where the features stayed as they were, else ``retrain``.
    method: str
    #: ``exact``, ``certified`` or ``approximate``, of the whole pipeline; ``approximate`` where a step may still know the rows.
    claim: str
    #: Rows taken out.
    forgotten: int
    #: Rows that are left.
    rows: int
    #: An upper bound on the distance of the last step's parameters to those of retraining; 0 where a step is refitted whose
    #: fit is its definition, infinite where a step may still know the rows.
    bound: float
    #: The same as a fraction of the parameters' norm.
    relative_bound: float
    #: Whether the features of the rows that are left changed, so that the last step was fitted anew.
    features_changed: bool
    #: Steps that still know the rows, where the pipeline was told to go on; empty when the whole has forgotten.
    not_covered: list[str] = field(default_factory=list)
    #: The evidence of the last step; None where it has none of its own.
    model: Evidence | None = None


class Pipeline(_Pipeline):  # type: ignore[misc]
    """scikit-learn's ``Pipeline`` that can forget rows from all of its steps.

    It keeps the rows as they came. A forget fits every step before the last again on the rows that are left, which is what
    each of them is defined by. Where this leaves the features as they were, the last step forgets with its own method; where
    they change, it is fitted anew. Either way the whole is the pipeline of a fit without the rows.

    Parameters
    ----------
    steps : list of (name, estimator)
        As in scikit-learn. The last step may be any estimator; one of efface forgets by itself where it can.
    strangers : {"refuse", "name"}, default="refuse"
        What becomes of a request where a step was fitted elsewhere and frozen, so that nobody knows whether it saw the
        rows: the request is refused, or the step is named in ``not_covered``.
    memory, verbose :
        As in scikit-learn. ``memory`` must be None: a cache would keep what steps made of forgotten rows.

    Examples
    --------
    >>> import numpy as np
    >>> import efface
    >>> X = np.random.default_rng(0).normal(3.0, 2.0, size=(50, 2))
    >>> y = X @ [1.0, -1.0]
    >>> pipeline = efface.Pipeline([("scale", efface.StandardScaler()), ("model", efface.Ridge(alpha=0.1))])
    >>> evidence = pipeline.fit(X, y).forget([3, 14])
    >>> evidence.claim, evidence.rows, evidence.not_covered
    ('exact', 48, [])
    """

    def __init__(self, steps: Any, *, strangers: str = "refuse", memory: Any = None, verbose: bool = False) -> None:
        self.strangers = strangers
        super().__init__(steps, memory=memory, verbose=verbose)

    def fit(self, X: Any, y: Any = None, *, row_ids: Any = None) -> Pipeline:
        """Fits all steps. As in scikit-learn, a pipeline takes no weights of rows.

        Parameters
        ----------
        X : table, frame, or list of texts
        y : array-like, optional
        row_ids : array-like of int or str, "index", optional
            A name for each row: its position where none is given, the index of a frame for ``"index"``.
        """
        self._check()
        names = RowNames.of(X, row_ids)
        self._fit_all(copied(X), None if y is None else np.array(y), names)
        self._forgotten = ForgottenNames()
        return self

    def partial_fit(
        self, X: Any, y: Any = None, *, row_ids: Any = None, allow_forgotten: bool = False
    ) -> Pipeline:
        """Adds rows; the pipeline is then that of all rows. A forgotten id may not come back unless that is allowed."""
        if not self._has_rows():
            return self.fit(X, y, row_ids=row_ids)
        more = RowNames.of(X, row_ids, self._names.next)
        self._forgotten.check(more.names, allow_forgotten)
        names = RowNames([*self._names.names, *more.names], len(self._names.names) + len(more.names))
        rows = join(self._rows, X)
        targets = None if self._targets is None else np.concatenate([self._targets, np.asarray(y)])
        self._fit_all(rows, targets, names)
        self._forgotten.drop(more.names)
        return self

    def amend(self, X: Any, y: Any = None, *, row_ids: Any) -> Pipeline:
        """Replaces the content of rows; the pipeline is then that of the rows as corrected, which stand behind the others."""
        if not self._has_rows():
            raise NotFittedError("This Pipeline instance is not fitted yet. Call 'fit' before 'amend'.")
        self._strangers()
        corrected = RowNames.of(X, row_ids)
        names, left = self._names.without(self._names.places(corrected.names))
        together = RowNames([*names.names, *corrected.names], len(names.names) + len(corrected.names))
        together.next = max(together.next, names.next)
        rows = join(take(self._rows, left), X)
        targets = None if self._targets is None else np.concatenate([self._targets[left], np.asarray(y)])
        self._fit_all(rows, targets, together)
        return self

    def forget(self, row_ids: Any, method: str = "auto", *, tolerance: float | None = None) -> PipelineEvidence:
        """Takes rows out of every step.

        Parameters
        ----------
        row_ids : int, str, array-like of them, or boolean mask
        method, tolerance :
            How the last step forgets, where it is one of efface and its features stay; see :meth:`efface.Ridge.forget`.
        """
        if not self._has_rows():
            raise NotFittedError("This Pipeline instance is not fitted yet. Call 'fit' before 'forget'.")
        strangers = self._strangers()
        gone = self._names.places(row_ids)
        names, left = self._names.without(gone)
        if not len(left):
            raise RefusedError("no row would be left to learn from; fit anew on other rows")
        rows = take(self._rows, left)
        targets = None if self._targets is None else self._targets[left]
        before, model = self.steps[:-1], self.steps[-1][1]
        fitted, features = _fitted_features(before, rows, targets)
        # The features that the model was fitted on: what a step makes of rows may depend on all rows that it is given.
        changed = not _same(take(self._features, left), features)
        evidence = None
        if not changed and isinstance(model, Forgetting):
            evidence = model.forget(model.row_ids_[gone], method, tolerance=tolerance)
        else:
            model = _fit_last(model, features, targets)
            if isinstance(model, Forgetting):
                evidence = model._fit_evidence(len(gone))
        forgotten = {self._names.names[place] for place in gone}
        self._put([*fitted, (self.steps[-1][0], model)], rows, targets, names, features)
        self._forgotten.add(forgotten)
        return PipelineEvidence(
            method="retrain" if evidence is None else evidence.method,
            claim="approximate" if strangers else "exact" if evidence is None else evidence.claim,
            forgotten=len(gone),
            rows=len(left),
            bound=np.inf if strangers else 0.0 if evidence is None else evidence.bound,
            relative_bound=np.inf if strangers else 0.0 if evidence is None else evidence.relative_bound,
            features_changed=changed,
            not_covered=[f"step {name!r}: it was fitted elsewhere and may know the rows" for name in strangers],
            model=evidence,
        )

    @property
    def row_ids_(self) -> list[Any]:
        """The names of the rows that the pipeline stands for."""
        return list(self._names.names)

    def __sklearn_is_fitted__(self) -> bool:
        # A part of a pipeline is fitted where its steps are, and has no rows of its own.
        return self._has_rows() or bool(super().__sklearn_is_fitted__())

    def _has_rows(self) -> bool:
        return "_names" in self.__dict__

    def _check(self) -> None:
        if self.strangers not in _STRANGERS:
            raise ValueError(f"strangers = {self.strangers!r} does not exist; {' and '.join(map(repr, _STRANGERS))} do")
        if self.memory is not None:
            raise ValueError("memory keeps what steps made of rows, and no forget reaches it; leave it out")

    def _strangers(self) -> list[str]:
        """Returns the names of the parts that were fitted elsewhere. There are none unless they may be named."""
        found = [part for name, step in self.steps for part in parts_fitted_elsewhere(name, step)]
        if found and self.strangers == "refuse":
            raise RefusedError(
                f"step {found[0]!r} was fitted elsewhere and is frozen, so that it may know these rows; fit it in the "
                'pipeline, or set strangers="name" to go on and have it named'
            )
        return found

    def _fit_all(self, rows: Any, targets: Any, names: RowNames) -> None:
        """Fits all steps to rows. A step that cannot be fitted leaves the pipeline as it was."""
        fitted, features = _fitted_features(self.steps[:-1], rows, targets)
        last, model = self.steps[-1]
        self._put([*fitted, (last, _fit_last(model, features, targets))], rows, targets, names, features)

    def _put(self, steps: list[Any], rows: Any, targets: Any, names: RowNames, features: Any) -> None:
        self.steps = steps
        self._rows = rows
        self._targets = targets
        self._names = names
        # The features that the last step was fitted on.
        self._features = features


def _fitted_features(steps: Any, rows: Any, targets: Any) -> tuple[list[Any], Any]:
    """Returns new steps fitted on rows, and the features that they make of them."""
    # A step may change the table that it is given.
    features = copied(rows) if len(steps) else rows
    fitted = []
    for name, step in steps:
        if step is not None and step != "passthrough":
            step = clone(step)
            fit_transform = getattr(step, "fit_transform", None)
            if fit_transform is None:
                features = step.fit(features, targets).transform(features)
            else:
                features = fit_transform(features, targets)
        fitted.append((name, step))
    return fitted, features


def _fit_last(model: Any, features: Any, targets: Any) -> Any:
    if model is None or model == "passthrough":
        return model
    return clone(model).fit(features, targets)


def parts_fitted_elsewhere(name: str, part: Any) -> Iterator[str]:
    """Yields the names of the parts of an estimator that a fit leaves as they were fitted before, at any depth: parts that say how they
    are cloned, as a ``FrozenEstimator`` does, and methods of an estimator that are used as functions. ``name`` is the name of the part."""
    usual = BaseEstimator.__sklearn_clone__
    if isinstance(part, (list, tuple, dict)):
        for each in part.values() if isinstance(part, dict) else part:
            named = isinstance(each, tuple) and bool(each) and isinstance(each[0], str)
            yield from parts_fitted_elsewhere(f"{name}__{each[0]}" if named else name, each)
    elif isinstance(part, type):
        return
    elif hasattr(getattr(part, "__self__", None), "get_params"):
        yield name
    elif getattr(type(part), "__sklearn_clone__", usual) is not usual:
        yield name
    elif hasattr(part, "get_params"):
        for key, value in part.get_params(deep=False).items():
            listed = isinstance(value, (list, tuple, dict))
            yield from parts_fitted_elsewhere(name if listed else f"{name}__{key}", value)


def _same(a: Any, b: Any) -> bool:
    """Returns True if two tables are equal to the bit, and so are the names of their columns."""
    if list(getattr(a, "columns", ())) != list(getattr(b, "columns", ())):
        return False
    if sp.issparse(a) and sp.issparse(b):
        a, b = a.tocsr(), b.tocsr()
        return bool(
            a.shape == b.shape
            and np.array_equal(a.indptr, b.indptr)
            and np.array_equal(a.indices, b.indices)
            and np.array_equal(a.data, b.data)
        )
    if sp.issparse(a) or sp.issparse(b):
        return False
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
        return False
    return bool(a.shape == b.shape and np.array_equal(a, b, equal_nan=True))


def forgettable(pipeline: _Pipeline, *, strangers: str = "refuse") -> Pipeline:
    """A pipeline of scikit-learn as one that forgets, with copies of its steps. It has still to be fitted: a fitted pipeline does
    not hold the rows that it was fitted on, so that nobody could take them out of it.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import efface
    >>> pipeline = efface.forgettable(make_pipeline(StandardScaler(), LogisticRegression()))
    >>> pipeline.fit([[0.0], [1.0], [2.0], [9.0]], [0, 0, 1, 1], row_ids=["a", "b", "c", "d"]).forget("d").rows
    3
    """
    if not isinstance(pipeline, _Pipeline):
        raise TypeError(f"forgettable takes a Pipeline of scikit-learn, not a {type(pipeline).__name__}")
    steps = [(name, step if step is None or step == "passthrough" else clone(step)) for name, step in pipeline.steps]
    return Pipeline(steps, strangers=strangers, verbose=pipeline.verbose)
