"""SISA: any estimator in shards, each trained by itself, so that a forget retrains one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import MetaEstimatorMixin, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from . import _input
from ._base import Forgetting
from ._core import Evidence
from ._labels import classes_of, numbers_of, targets
from ._rows import RowCall
from .clusters import seed_of
from .linear import _columns, _threads, _whole


def _has_classes(self: Sisa) -> bool:
    return bool(is_classifier(self.estimator))


def _has_proba(self: Sisa) -> bool:
    if not hasattr(self.estimator, "predict_proba"):
        raise AttributeError(f"{type(self.estimator).__name__} has no predict_proba")
    return True


class Sisa(MetaEstimatorMixin, Forgetting):  # type: ignore[misc]
    """Shards of one estimator (Bourtoule et al. 2021). A forget trains the shards that saw the rows again: exact,
    whatever the estimator.

    Parameters
    ----------
    estimator : Ridge, RidgeClassifier, LogisticRegression, GaussianNB or MultinomialNB
    n_shards : int, default=4
        At most the number of rows. More shards forget faster and know less each.
    n_slices : int, default=1
        Checkpoints of a shard's training; pays for estimators that are trained in steps.
    aggregation : {"auto", "vote", "mean"}, default="auto"
        How the shards' answers become one: ``auto`` is the vote for classes and the mean for numbers.
    random_state : int, optional
        What the place of a row follows from, together with its id.
    n_jobs : int, optional
        How many shards are trained at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from efface import LogisticRegression, Sisa
    >>> X = np.linspace(-1, 1, 40).reshape(-1, 1)
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = Sisa(LogisticRegression(), n_shards=2).fit(X, y)
    >>> evidence = model.forget([3, 5])
    >>> evidence.claim, evidence.bound
    ('exact', 0.0)
    >>> model.predict([[0.9]])
    array([1])
    """

    classes_: Any

    def __init__(
        self,
        estimator: Any,
        *,
        n_shards: int = 4,
        n_slices: int = 1,
        aggregation: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_shards = n_shards
        self.n_slices = n_slices
        self.aggregation = aggregation
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags = inner.input_tags
        return tags

    def _way(self) -> str:
        if self.aggregation not in ("auto", "vote", "mean"):
            raise ValueError(f"aggregation = {self.aggregation!r} does not exist; 'auto', 'vote' and 'mean' do")
        if self.aggregation == "auto":
            return "vote" if is_classifier(self.estimator) else "mean"
        if self.aggregation == "vote" and not is_classifier(self.estimator):
            raise ValueError("numbers cannot be voted on; use aggregation='mean'")
        return self.aggregation

    def _recipe(self, outputs: int) -> dict[str, Any]:
        recipe = self.estimator._recipe(outputs)
        if recipe["family"] in ("k_means", "sisa"):
            raise TypeError(f"{type(self.estimator).__name__} cannot be trained in shards; it forgets by itself")
        fixed = getattr(self.estimator, "_fixes_priors", None)
        if fixed is not None and fixed():
            raise ValueError("shards learn the shares of the classes from their rows; leave the priors to the rows")
        if getattr(self.estimator, "class_weight", None) is not None:
            raise ValueError("shards would balance their classes each by itself; give sample_weight instead of class_weight")
        if "curvature" in recipe:
            recipe["curvature"] = False
        return {
            "family": "sisa",
            "recipe": recipe,
            "shards": _whole("n_shards", self.n_shards),
            "slices": _whole("n_slices", self.n_slices),
            "seed": seed_of(self.random_state),
            "aggregation": self._way(),
            "threads": _threads(self.n_jobs),
        }

    def _targets(self, y: Any) -> _input.Floats:
        low = getattr(self.estimator, "_low", 0.0)
        return targets(numbers_of(y, self.classes_), len(self.classes_), low)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, row_ids: Any = None, subject: Any = None) -> Sisa:
        """Deals the rows to shards by their ids and trains each; see :meth:`Ridge.fit` for the arguments."""
        return self._first(X, y, None, RowCall.of(X, row_ids, subject), sample_weight)

    def _check(self, X: Any) -> None:
        """Whether the estimator takes such features."""
        check = getattr(self.estimator, "_check", None)
        if check is not None:
            check(X)

    def _first(self, X: Any, y: Any, classes: Any, call: RowCall, sample_weight: Any) -> Sisa:
        if not isinstance(self.estimator, Forgetting):
            raise TypeError(
                f"estimator is a {type(self.estimator).__name__}; it must be an estimator of efface, such as Ridge(); "
                "SisaEnsemble takes those of scikit-learn"
            )
        with self._all_or_nothing():
            if _has_classes(self):
                X, y = _input.features(self, X, reset=True, y=y)
                self._check(X)
                found, numbers = classes_of(y, classes)
                if len(found) < 2:
                    raise ValueError(
                        "Sisa needs samples of at least 2 classes in the data, but the data contains one class"
                    )
                table = targets(numbers, len(found), getattr(self.estimator, "_low", 0.0))
                self.classes_ = found
            else:
                X, y = _input.features(self, X, reset=True, y=y, multi_output=True, y_numeric=True)
                table = _columns(y)
                self._flat = y.ndim == 1
            if X.shape[0] < _whole("n_shards", self.n_shards):
                raise ValueError(f"n_samples={X.shape[0]} should be >= n_shards={self.n_shards}.")
            self._begin(X, table, call, _input.weights(sample_weight, X))
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        row_ids: Any = None,
        subject: Any = None,
        allow_forgotten: bool = False,
    ) -> Sisa:
        """Adds rows: the shards that they fall to are trained again."""
        call = RowCall.of(X, row_ids, subject)
        if not self.__sklearn_is_fitted__():
            return self._first(X, y, classes, call, sample_weight)
        X, table = self._checked(X, y)
        self._join(X, table, call, _input.weights(sample_weight, X), allow_forgotten)
        return self

    def amend(self, X: Any, y: Any, sample_weight: Any = None, *, row_ids: Any) -> Evidence:
        """Replaces the content of rows; their shards are trained again."""
        self._held()
        call = RowCall.of(X, row_ids)
        X, table = self._checked(X, y)
        return self._replace(X, table, call, _input.weights(sample_weight, X))

    def _checked(self, X: Any, y: Any) -> tuple[Any, _input.Floats]:
        if _has_classes(self):
            X, y = _input.features(self, X, reset=False, y=y)
            self._check(X)
            return X, self._targets(y)
        X, y = _input.features(self, X, reset=False, y=y, multi_output=True, y_numeric=True)
        return X, _columns(y)

    def _scores(self, X: Any) -> _input.Floats:
        held = self._held()
        X = _input.features(self, X, reset=False)
        self._check(X)
        return held.model.predict(_input.native(X))

    @available_if(_has_classes)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> _input.Floats:
        """The share of votes or the mean score: one a row for two classes, above 0 for the second; else one a class."""
        scores = self._scores(X)
        if scores.shape[1] == 1:
            return scores[:, 0]
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """The class or the number that the shards agree on."""
        scores = self._scores(X)
        if not _has_classes(self):
            return scores[:, 0] if self._flat else scores
        numbers = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.classes_[numbers]

    @available_if(_has_proba)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> _input.Floats:
        """The share of shards that vote for each class, or the probabilities of the mean scores."""
        scores = self._scores(X)
        vote = self._way() == "vote"
        if scores.shape[1] == 1:
            positive = (scores + 1.0) / 2.0 if vote else expit(scores)
            return np.hstack([1.0 - positive, positive])
        return scores / scores.sum(axis=1, keepdims=True) if vote else np.asarray(softmax(scores, axis=1))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy for classes, R² for numbers."""
        measure = accuracy_score if _has_classes(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))
