"""Naive Bayes: models that are sums over their rows, and forget by subtraction."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_non_negative

from . import _input
from ._base import Forgetting
from ._core import Evidence
from ._labels import classes_of, numbers_of, targets
from ._rows import RowCall
from .linear import _number

B = TypeVar("B", bound="_NaiveBayes")

Array = npt.NDArray[Any]


class _NaiveBayes(ClassifierMixin, Forgetting):  # type: ignore[misc]
    """Classes by the likelihood of features that are taken to be independent."""

    classes_: Array

    def _given_priors(self) -> Any:
        """Priors that the user has set, where there are some."""
        raise NotImplementedError

    def _fixed_priors(self) -> Any:
        """Priors that do not follow from the rows, where there are some."""
        return self._given_priors()

    def _fixes_priors(self) -> bool:
        return self._given_priors() is not None

    def _priors_in_scores(self) -> Any:
        """Priors that take the place of the learned ones in scores, where there are some."""
        return self._fixed_priors()

    def _check(self, X: Any) -> None:
        """Whether the features can be what the likelihood takes them for."""

    def _fit(self, X: Any, y: Any, classes: Any, call: RowCall, sample_weight: Any) -> None:
        with self._all_or_nothing():
            X, y = _input.features(self, X, reset=True, y=y, ensure_all_finite=False)
            found, numbers = classes_of(y, classes)
            self._check_priors(len(found))
            self.classes_ = found
            try:
                self._begin(X, targets(numbers, len(found)), call, _input.weights(sample_weight, X))
            except ValueError:
                # The native half looks at every number in any case. scikit-learn's checks only find the words for what is wrong.
                assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
                self._check(X)
                raise

    def fit(
        self: B, X: Any, y: Any, sample_weight: Any = None, *, row_ids: Any = None, subject: Any = None
    ) -> B:
        """Fits the model from scratch; see :meth:`Ridge.fit` for the arguments."""
        self._fit(X, y, None, RowCall.of(X, row_ids, subject), sample_weight)
        return self

    def partial_fit(
        self: B,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        row_ids: Any = None,
        subject: Any = None,
        allow_forgotten: bool = False,
    ) -> B:
        """Adds rows to the model; the first call fits and should name all ``classes``."""
        call = RowCall.of(X, row_ids, subject)
        if not self.__sklearn_is_fitted__():
            self._fit(X, y, classes, call, sample_weight)
            return self
        X, y = _input.features(self, X, reset=False, y=y)
        self._check(X)
        table = targets(numbers_of(y, self.classes_), len(self.classes_))
        self._join(X, table, call, _input.weights(sample_weight, X), allow_forgotten)
        return self

    def amend(self, X: Any, y: Any, sample_weight: Any = None, *, row_ids: Any) -> Evidence:
        """Replaces the content of rows; the result is that of fitting the rows as corrected."""
        self._held()
        call = RowCall.of(X, row_ids)
        X, y = _input.features(self, X, reset=False, y=y)
        self._check(X)
        table = targets(numbers_of(y, self.classes_), len(self.classes_))
        return self._replace(X, table, call, _input.weights(sample_weight, X))

    def _check_priors(self, classes: int) -> None:
        priors = self._given_priors()
        if priors is None:
            return
        if len(priors) != classes:
            raise ValueError("Number of priors must match number of classes.")
        if (priors < 0).any():
            raise ValueError("Priors must be non-negative.")
        if not np.isclose(priors.sum(), 1.0):
            raise ValueError("The sum of the priors should be 1.")

    def predict_joint_log_proba(self, X: Any) -> _input.Floats:
        """log P(class) + log P(row | class), one column for each class."""
        held = self._held()
        X = _input.features(self, X, reset=False)
        self._check(X)
        scores = held.model.predict(_input.native(X))[:, : len(self.classes_)]
        priors = self._priors_in_scores()
        if priors is not None:
            learned = held.parameters()["class_prior"][: len(self.classes_)]
            with np.errstate(divide="ignore"):
                shift = np.log(priors) - np.log(np.where(learned > 0, learned, 1.0))
            # A class without rows stays impossible, whatever its prior.
            scores = np.where(learned > 0, scores + shift, scores)
        return scores

    def predict(self, X: Any) -> Array:
        """The most likely class of each row."""
        numbers = self.predict_joint_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[numbers])

    def predict_log_proba(self, X: Any) -> _input.Floats:
        """The logarithm of the probability of every class."""
        joint = self.predict_joint_log_proba(X)
        return np.asarray(joint - logsumexp(joint, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> _input.Floats:
        """The probability of every class, one line for each row."""
        return np.exp(self.predict_log_proba(X))

    def _known(self, name: str) -> _input.Floats:
        held = self._held()
        values: _input.Floats = held.parameters()[name]
        return values[: len(self.classes_)]

    @property
    def class_count_(self) -> _input.Floats:
        """The weight of the rows of each class."""
        return self._known("class_count")


class GaussianNB(_NaiveBayes):
    """Gaussian naive Bayes, as scikit-learn's ``GaussianNB``, that can forget.

    Parameters
    ----------
    priors : array-like, optional
        The probabilities of the classes; their share of the rows where none are given.
    var_smoothing : float, default=1e-9
        The share of the largest variance of a feature that is added to all variances.

    Examples
    --------
    >>> from efface import GaussianNB
    >>> model = GaussianNB().fit([[0.0], [1.0], [4.0], [5.0], [9.0]], [0, 0, 1, 1, 1])
    >>> model.forget([4]).bound
    0.0
    >>> model.theta_.ravel().tolist()
    [0.5, 4.5]
    """

    def __init__(self, *, priors: Any = None, var_smoothing: float = 1e-9) -> None:
        self.priors = priors
        self.var_smoothing = var_smoothing

    def _recipe(self, outputs: int) -> dict[str, Any]:
        return {"family": "gaussian_nb", "var_smoothing": _number("var_smoothing", self.var_smoothing, least=0.0)}

    def _given_priors(self) -> Any:
        return None if self.priors is None else np.asarray(self.priors, dtype=np.float64)

    @property
    def theta_(self) -> _input.Floats:
        """The mean of each feature in each class."""
        return self._known("theta")

    @property
    def var_(self) -> _input.Floats:
        """The variance of each feature in each class."""
        return self._known("var")

    @property
    def epsilon_(self) -> float:
        """What is added to all variances."""
        return float(self._held().parameters()["epsilon"][0])

    @property
    def class_prior_(self) -> _input.Floats:
        """The probability of each class."""
        priors = self._fixed_priors()
        return self._known("class_prior") if priors is None else priors


class _CountedNB(_NaiveBayes):
    """Naive Bayes whose parameters are the logarithms of shares of counts."""

    alpha: float
    fit_prior: bool
    class_prior: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        # As scikit-learn says of its own: on numbers that are no counts it does badly.
        tags.classifier_tags.poor_score = True
        return tags

    def _check(self, X: Any) -> None:
        check_non_negative(X, f"{type(self).__name__} (input X)")

    def _given_priors(self) -> Any:
        return None if self.class_prior is None else np.asarray(self.class_prior, dtype=np.float64)

    def _fixes_priors(self) -> bool:
        return self.class_prior is not None or not self.fit_prior

    def _fixed_priors(self) -> Any:
        if self.class_prior is None and not self.fit_prior:
            return np.full(len(self.classes_), 1.0 / len(self.classes_))
        return self._given_priors()

    @property
    def feature_log_prob_(self) -> _input.Floats:
        """The logarithms that scores are made of, a line for each class, as scikit-learn's class has them."""
        return self._known("feature_log_prob")

    @property
    def class_log_prior_(self) -> _input.Floats:
        """The logarithm of the probability of each class."""
        priors = self._fixed_priors()
        with np.errstate(divide="ignore"):
            return np.log(self._known("class_prior") if priors is None else priors)


class MultinomialNB(_CountedNB):
    """Naive Bayes over counts, as scikit-learn's ``MultinomialNB``, that can forget.

    Parameters
    ----------
    alpha : float, default=1.0
        Added to every count; above 0.
    fit_prior : bool, default=True
        Whether the classes' shares of the rows count; otherwise all are alike.
    class_prior : array-like, optional
        The probabilities of the classes.

    Examples
    --------
    >>> from efface import MultinomialNB
    >>> model = MultinomialNB().fit([[2, 0], [1, 1], [0, 3]], ["a", "a", "b"])
    >>> model.forget([1]).claim
    'exact'
    >>> model.predict([[1, 0]])
    array(['a'], dtype='<U1')
    """

    def __init__(self, *, alpha: float = 1.0, fit_prior: bool = True, class_prior: Any = None) -> None:
        self.alpha = alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _recipe(self, outputs: int) -> dict[str, Any]:
        return {"family": "multinomial_nb", "alpha": _number("alpha", self.alpha, above=0.0)}


class ComplementNB(_CountedNB):
    """Naive Bayes over the counts of all other classes, as scikit-learn's ``ComplementNB``, that can forget.

    The parameters are those of :class:`MultinomialNB`; priors have no say where there are two classes or more.

    Examples
    --------
    >>> from efface import ComplementNB
    >>> model = ComplementNB().fit([[2, 0], [1, 1], [0, 3]], ["a", "a", "b"])
    >>> model.forget([1]).claim
    'exact'
    """

    def __init__(self, *, alpha: float = 1.0, fit_prior: bool = True, class_prior: Any = None) -> None:
        self.alpha = alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _recipe(self, outputs: int) -> dict[str, Any]:
        return {"family": "complement_nb", "alpha": _number("alpha", self.alpha, above=0.0)}

    def _priors_in_scores(self) -> Any:
        return None


class BernoulliNB(_CountedNB):
    """Naive Bayes over what is there and what is not, as scikit-learn's ``BernoulliNB``, that can forget.

    Parameters
    ----------
    alpha, fit_prior, class_prior :
        As in :class:`MultinomialNB`.
    binarize : float, default=0.0
        A feature is there where its value is above this; 0 or more.

    Examples
    --------
    >>> from efface import BernoulliNB
    >>> model = BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"])
    >>> model.forget([1]).claim
    'exact'
    """

    def __init__(
        self, *, alpha: float = 1.0, binarize: float = 0.0, fit_prior: bool = True, class_prior: Any = None
    ) -> None:
        self.alpha = alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags

    def _check(self, X: Any) -> None:
        """Any number is above the threshold or not."""

    def _recipe(self, outputs: int) -> dict[str, Any]:
        return {
            "family": "bernoulli_nb",
            "alpha": _number("alpha", self.alpha, above=0.0),
            "threshold": _number("binarize", self.binarize, least=0.0),
        }
