"""SISA over any estimator of scikit-learn: shards that are trained by themselves, in Python."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, r2_score

from . import _input
from ._errors import RefusedError
from ._rows import ForgottenNames
from .linear import _whole
from .pipelines import PipelineEvidence, parts_fitted_elsewhere
from .steps import RowNames, copied, count, join, joined_weights, take


class _OneClass:
    """A shard whose rows are all of one class, from which most estimators cannot be fitted."""

    def __init__(self, label: Any) -> None:
        self.label = label

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of its rows, for every row."""
        return np.full(count(X), self.label)


class SisaEnsemble(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Shards of any estimator of scikit-learn (Bourtoule et al. 2021). A forget fits the shards that held the rows again, by
    scikit-learn's own code: the ensemble is then that of a fit without the rows. :class:`Sisa` does the same for the estimators of
    efface, faster.

    Parameters
    ----------
    estimator : estimator of scikit-learn
        A classifier or a regressor. Where its ``random_state`` is None, every shard gets one that follows from `random_state` and
        its number, so that the same rows give the same shard.
    n_shards : int, default=4
    random_state : int, default=0
        What the place of a row follows from, together with its id.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import efface
    >>> X = np.linspace(-1, 1, 60).reshape(-1, 1)
    >>> model = efface.SisaEnsemble(DecisionTreeClassifier(), n_shards=3).fit(X, (X[:, 0] > 0).astype(int))
    >>> evidence = model.forget([3, 5])
    >>> evidence.claim, evidence.rows
    ('exact', 58)
    >>> model.predict([[0.9]])
    array([1])
    """

    _names: RowNames
    _models: list[Any]
    _weights: _input.Floats | None = None

    def __init__(self, estimator: Any, *, n_shards: int = 4, random_state: int = 0) -> None:
        self.estimator = estimator
        self.n_shards = n_shards
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier" if is_classifier(self.estimator) else "regressor"
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_models" in self.__dict__

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, row_ids: Any = None) -> SisaEnsemble:
        """Deals the rows to shards by their ids, whole numbers or texts, and fits each. Weights of rows are for estimators whose
        ``fit`` takes ``sample_weight``."""
        names = RowNames.of(X, row_ids)
        weights = _input.weights(sample_weight, X)
        self._put(copied(X), np.array(y), weights, names, range(_whole("n_shards", self.n_shards)))
        self._forgotten = ForgottenNames()
        return self

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, row_ids: Any = None, allow_forgotten: bool = False
    ) -> SisaEnsemble:
        """Adds rows: the shards that they fall to are fitted again."""
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight, row_ids=row_ids)
        more = RowNames.of(X, row_ids, self._names.next)
        self._forgotten.check(more.names, allow_forgotten)
        names = RowNames([*self._names.names, *more.names], len(self._names.names) + len(more.names))
        touched = {self._shard_of(name) for name in more.names}
        weights = joined_weights(self._weights, len(self._names.names), _input.weights(sample_weight, X), count(X))
        self._put(join(self._rows, X), np.concatenate([self._targets, np.asarray(y)]), weights, names, touched)
        self._forgotten.drop(more.names)
        return self

    def forget(self, row_ids: Any) -> PipelineEvidence:
        """Takes rows out: ids, one id, or a boolean mask over ``row_ids_``."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("This SisaEnsemble instance is not fitted yet. Call 'fit' before 'forget'.")
        for part in parts_fitted_elsewhere("estimator", self.estimator):
            raise RefusedError(f"{part} was fitted elsewhere and is frozen, so that it may know these rows; fit it in the shards")
        gone = self._names.places(row_ids)
        forgotten = {self._names.names[place] for place in gone}
        names, left = self._names.without(gone)
        if not len(left):
            raise RefusedError("no row would be left to learn from; fit anew on other rows")
        weights = None if self._weights is None else self._weights[left]
        touched = {self._shard_of(name) for name in forgotten}
        self._put(take(self._rows, left), self._targets[left], weights, names, touched)
        self._forgotten.add(forgotten)
        return PipelineEvidence(
            method="sisa", claim="exact", forgotten=len(gone), rows=len(left), bound=0.0, relative_bound=0.0,
            features_changed=False,
        )  # fmt: skip

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """What most shards answer, or the mean of their numbers. The earlier class wins a tie. A shard with rows of one class
        has a vote only where no shard has rows of two."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("This SisaEnsemble instance is not fitted yet. Call 'fit' before 'predict'.")
        models = [model for model in self._models if model is not None]
        able = [model for model in models if not isinstance(model, _OneClass)]
        answers = [model.predict(X) for model in able or models]
        if not is_classifier(self.estimator):
            return np.asarray(np.mean(answers, axis=0))
        classes = np.unique(self._targets)
        votes = np.array([[np.equal(answer, each) for each in classes] for answer in answers]).sum(axis=0)
        return np.asarray(classes[votes.argmax(axis=0)])

    def score(self, X: Any, y: Any) -> float:
        """Accuracy for classes, R² for numbers."""
        return float((accuracy_score if is_classifier(self.estimator) else r2_score)(y, self.predict(X)))

    @property
    def row_ids_(self) -> npt.NDArray[Any]:
        """The ids of the rows that the ensemble stands for, in the order of masks."""
        return np.array(self._names.names)

    def _shard_of(self, name: Any) -> int:
        """The shard of a row: of its id and the seed alone, so that no other row has a say in it."""
        digest = hashlib.blake2b(f"{self.random_state}:{type(name).__name__}:{name}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") % self.n_shards

    def _put(
        self, rows: Any, targets: npt.NDArray[Any], weights: _input.Floats | None, names: RowNames, touched: Any
    ) -> None:
        """Fits some shards to these rows and takes all over. One that cannot be fitted leaves the ensemble as it was."""
        models = list(self.__dict__.get("_models", [None] * self.n_shards))
        shards = np.array([self._shard_of(name) for name in names.names])
        for shard in sorted(touched):
            places = np.flatnonzero(shards == shard)
            models[shard] = None
            if len(places) and is_classifier(self.estimator) and len(np.unique(targets[places])) == 1:
                models[shard] = _OneClass(targets[places[0]])
            elif len(places):
                model = clone(self.estimator)
                if "random_state" in model.get_params() and model.get_params()["random_state"] is None:
                    model.set_params(random_state=(self.random_state + shard) % 2**32)
                settings = {} if weights is None else {"sample_weight": weights[places]}
                models[shard] = model.fit(take(rows, places), targets[places], **settings)
        self._models = models
        self._rows = rows
        self._targets = targets
        self._weights = weights
        self._names = names
