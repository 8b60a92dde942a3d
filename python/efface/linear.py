"""Linear models: ridge and Poisson regression, the classifier face of ridge, logistic regression, and linear SVMs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.extmath import safe_sparse_dot

from . import _core, _input
from ._base import Forgetting
from ._core import Evidence
from ._errors import RefusedError, warn_if_missed
from ._labels import classes_of, numbers_of, targets
from ._rows import RowCall

L = TypeVar("L", bound="_Linear")
R = TypeVar("R", bound="_LinearRegressor")
C = TypeVar("C", bound="_LinearClassifier")

Array = npt.NDArray[Any]


def _threads(n_jobs: int | None) -> int:
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, (bool, np.bool_)) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(f"n_jobs = {n_jobs!r} is out of range; it must be None, 1 or more, or below 0 for all cores")
    cores = os.cpu_count() or 1
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


def _number(
    name: str, value: Any, *, above: float | None = None, least: float | None = None, infinite: bool = False
) -> float:
    """A setting as a number within its range."""
    range_ = f"above {above:g}" if above is not None else f"{least:g} or more"
    range_ = range_ if infinite else f"{range_}, and finite"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} is a {type(value).__name__}; it must be a number {range_}")
    number = float(value)
    if np.isnan(number) or (np.isinf(number) and not infinite) or (above is not None and number <= above) or (least is not None and number < least):
        raise ValueError(f"{name} = {value} is out of range; it must be {range_}")
    return number


class _Linear(Forgetting):
    """Scores that are sums."""

    def _scores(self, X: Any) -> _input.Floats:
        held = self._held()
        X = _input.features(self, X, reset=False)
        known = held.parameters()
        scores = safe_sparse_dot(X, known["coef"].T, dense_output=True) + known["intercept"]
        return np.asarray(scores, dtype=np.float64)

    def _onnx(self, coef: _input.Floats, intercept: _input.Floats, activation: str, path: Any) -> bytes:
        model = _core.head(
            np.ascontiguousarray(coef, dtype=np.float32),
            np.ascontiguousarray(intercept, dtype=np.float32),
            activation,
        )
        if path is not None:
            Path(path).write_bytes(model)
        return model


class _LinearRegressor(RegressorMixin, _Linear):  # type: ignore[misc]
    """Numbers by scores."""

    #: Whether there may be several targets.
    _several = True

    def fit(self: R, X: Any, y: Any, sample_weight: Any = None, *, row_ids: Any = None, subject: Any = None) -> R:
        """Fits the model from scratch.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
        sample_weight : array-like of shape (n_rows,), optional
        row_ids : array-like of int or str, "index", optional
            A name for each row: its position where none is given, the index of a pandas frame for ``"index"``.
        subject : array-like of str or int, optional
            The person that each row belongs to; ``forget(subject=...)`` then finds all rows of one.
        """
        call = RowCall.of(X, row_ids, subject)
        with self._all_or_nothing():
            X, y = _input.features(self, X, reset=True, y=y, multi_output=self._several, y_numeric=True)
            self._flat = y.ndim == 1
            weights = _input.weights(sample_weight, X)
            self._begin(X, _columns(y), call, weights)
        return self

    def partial_fit(
        self: R,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        row_ids: Any = None,
        subject: Any = None,
        allow_forgotten: bool = False,
    ) -> R:
        """Adds rows to the model; the result is that of fitting all rows.

        A forgotten id, or a row of a forgotten subject, is refused unless ``allow_forgotten`` says otherwise.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight, row_ids=row_ids, subject=subject)
        call = RowCall.of(X, row_ids, subject)
        X, y = _input.features(self, X, reset=False, y=y, multi_output=self._several, y_numeric=True)
        self._join(X, _columns(y), call, _input.weights(sample_weight, X), allow_forgotten)
        return self

    def amend(self, X: Any, y: Any, sample_weight: Any = None, *, row_ids: Any) -> Evidence:
        """Replaces the content of rows; the result is that of fitting the rows as corrected.

        >>> import numpy as np
        >>> from efface import Ridge
        >>> model = Ridge(alpha=1e-6).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 20.0])
        >>> model.amend([[2.0]], [2.0], row_ids=[2]).learned
        1
        >>> float(np.round(model.coef_[0], 3))
        1.0
        """
        self._held()
        call = RowCall.of(X, row_ids)
        X, y = _input.features(self, X, reset=False, y=y, multi_output=self._several, y_numeric=True)
        return self._replace(X, _columns(y), call, _input.weights(sample_weight, X))

    def predict(self, X: Any) -> _input.Floats:
        """The predicted targets."""
        scores = self._scores(X)
        return scores[:, 0] if self._flat else scores

    @property
    def coef_(self) -> _input.Floats:
        """The coefficients, of shape (n_features,) or (n_targets, n_features)."""
        coef: _input.Floats = self._held().parameters()["coef"]
        return coef[0] if self._flat else coef

    @property
    def intercept_(self) -> Any:
        """The constant, or one for each target; 0 without one."""
        intercept = self._held().parameters()["intercept"]
        return float(intercept[0]) if self._flat else intercept


class Ridge(MultiOutputMixin, _LinearRegressor):  # type: ignore[misc]
    """Least squares with a quadratic penalty, as scikit-learn's ``Ridge``, that can forget.

    Minimises ``||y - Xw||^2 + alpha * ||w||^2``. Forgetting is exact: the parameters afterwards are those of fitting the
    rows that are left, up to a bound that every request reports.

    Parameters
    ----------
    alpha : float, default=1.0
        The penalty, 0 or more.
    fit_intercept : bool, default=True
        Whether to fit a constant, which is not penalised.
    form : {"auto", "factor", "inverse", "rows", "iterative"}, default="auto"
        How the curvature is kept. ``rows`` forgets fastest and takes the most memory.
    tol : float, default=1e-9
        The relative distance bound above which the model refactors itself.
    n_jobs : int, optional
        Threads for the large products; -1 is all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from efface import Ridge
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0]])
    >>> y = np.array([0.0, 1.0, 2.0, 50.0])
    >>> model = Ridge(alpha=1e-6).fit(X, y, row_ids=[7, 8, 9, 10])
    >>> evidence = model.forget([10])
    >>> evidence.claim, evidence.rows
    ('exact', 3)
    >>> np.round(model.predict([[3.0]]), 3)
    array([3.])
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        form: str = "auto",
        tol: float = 1e-9,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.form = form
        self.tol = tol
        self.n_jobs = n_jobs

    def _recipe(self, outputs: int) -> dict[str, Any]:
        return _ridge(self)

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """The model as ONNX, from ``features`` to ``scores``, in single precision; written to `path` where one is given."""
        known = self._held().parameters()
        return self._onnx(known["coef"], known["intercept"], "none", path)


def _columns(y: Any) -> _input.Floats:
    table: _input.Floats = _input.straight(np.asarray(y, dtype=np.float64))
    return table.reshape(-1, 1) if table.ndim == 1 else table


def _whole(name: str, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} is a {type(value).__name__}; it must be a whole number, 1 or more")
    if value < 1:
        raise ValueError(f"{name} = {value} is out of range; it must be 1 or more")
    return int(value)


def _ridge(estimator: Any) -> dict[str, Any]:
    """The recipe of a ridge model."""
    forms = ("auto", "factor", "inverse", "rows", "iterative")
    if estimator.form not in forms:
        raise ValueError(f"form = {estimator.form!r} does not exist; {', '.join(forms)} do")
    return {
        "family": "ridge",
        "lambda": _number("alpha", estimator.alpha, least=0.0),
        "intercept": bool(estimator.fit_intercept),
        "form": estimator.form,
        "tolerance": _number("tol", estimator.tol, above=0.0),
        "threads": _threads(estimator.n_jobs),
        "settle_after": 32,
        "max_iterations": 10_000,
    }


class _LinearClassifier(ClassifierMixin, _Linear):  # type: ignore[misc]
    """Classes by scores."""

    classes_: Array

    # What a row has in the columns of other classes.
    _low = 0.0

    def _check_classes(self, classes: Array) -> None:
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes in the data, but the data contains only "
                f"one class: {classes[0]!r}"
            )

    # Whether balanced weights count rows by their own weights, as scikit-learn's class of the name does.
    _weighs_classes = False
    class_weight: Any

    def _fit(self, X: Any, y: Any, classes: Any, call: RowCall, sample_weight: Any) -> None:
        with self._all_or_nothing():
            X, y = _input.features(self, X, reset=True, y=y)
            found, numbers = classes_of(y, classes)
            self._check_classes(found)
            weights = _input.weights(sample_weight, X)
            self.classes_ = found
            self.__dict__.pop("_class_factors", None)
            if self.class_weight is not None:
                own = np.ones(X.shape[0]) if weights is None else weights
                self._class_factors = self._factors(numbers, own)
                weights = own * self._class_factors[numbers]
            self._begin(X, targets(numbers, len(found), self._low), call, weights)

    def _factors(self, numbers: npt.NDArray[np.intp], own: _input.Floats) -> _input.Floats:
        """What the rows of each class count for, beside their own weights."""
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(
                    f"class_weight = {self.class_weight!r} does not exist; 'balanced', a dict and None do"
                )
            counted = own if self._weighs_classes else np.ones_like(own)
            counts = np.bincount(numbers, weights=counted, minlength=len(self.classes_))
            there = counts > 0
            factors = np.ones(len(self.classes_))
            factors[there] = counts.sum() / (there.sum() * counts[there])
            return factors
        factors = np.ones(len(self.classes_))
        for label, weight in dict(self.class_weight).items():
            at = np.flatnonzero(self.classes_ == label)
            if not len(at):
                raise ValueError(
                    f"class_weight names the class {label!r}, which y does not have; it has "
                    f"{', '.join(map(repr, self.classes_.tolist()))}"
                )
            factors[at[0]] = _number(f"class_weight[{label!r}]", weight, above=0.0)
        return factors

    def _weighed(self, numbers: npt.NDArray[np.intp], weights: _input.Floats | None) -> _input.Floats | None:
        """Weights of new rows, with those of their classes as they are now."""
        if self.class_weight is None:
            return weights
        own = np.ones(len(numbers)) if weights is None else weights
        return np.asarray(own * self._class_factors[numbers])

    def _rebalance(self, gone: _input.UInts, corrected: int = 0) -> Evidence | None:
        """Takes rows out and works balanced weights out again for those that stay; None where weights do not follow from rows."""
        if not isinstance(self.class_weight, str):
            return None
        held = self._held()
        model = held.model
        stays = ~np.isin(model.ids, gone)
        scores = model.targets
        numbers = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
        own = (model.weights / self._class_factors[numbers])[stays]
        factors = self._factors(numbers[stays], own)
        evidence = model.refit(gone, np.ascontiguousarray(own * factors[numbers[stays]]), corrected)
        held.names.leave(gone)
        self._class_factors = factors
        warn_if_missed(evidence.tolerance_missed, evidence.relative_bound, evidence.tolerance, 3)
        return evidence

    def forget(self, row_ids: Any = None, method: str = "auto", *, subject: Any = None, **settings: Any) -> Evidence:
        """Takes rows out of the model; see :meth:`Ridge.forget`. With ``class_weight="balanced"`` the weights of all rows change, so
        that the rows that stay are fitted anew."""
        if not isinstance(self.class_weight, str):
            return super().forget(row_ids, method, subject=subject, **settings)
        if method not in ("auto", "retrain"):
            raise RefusedError(
                f"balanced weights of classes follow from the rows, and {method} would leave them as they are; use auto or retrain"
            )
        held = self._held()
        gone = self._asked(held, row_ids, subject)
        strange = gone[~np.isin(gone, held.model.ids)]
        if len(strange) or len(np.unique(gone)) < len(gone) or len(gone) >= held.model.rows:
            # The native half has the words for it.
            return super().forget(row_ids, method, subject=subject, **settings)
        evidence = self._rebalance(gone)
        assert evidence is not None
        return evidence

    def fit(
        self: C, X: Any, y: Any, sample_weight: Any = None, *, row_ids: Any = None, subject: Any = None
    ) -> C:
        """Fits the model from scratch; see :meth:`Ridge.fit` for the arguments."""
        self._fit(X, y, None, RowCall.of(X, row_ids, subject), sample_weight)
        return self

    def partial_fit(
        self: C,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        row_ids: Any = None,
        subject: Any = None,
        allow_forgotten: bool = False,
    ) -> C:
        """Adds rows to the model; the result is that of fitting all rows.

        The first call fits. It may name ``classes`` that have no row yet where the model can do without them.
        """
        call = RowCall.of(X, row_ids, subject)
        if not self.__sklearn_is_fitted__():
            self._fit(X, y, classes, call, sample_weight)
            return self
        X, y = _input.features(self, X, reset=False, y=y)
        numbers = numbers_of(y, self.classes_)
        weights = self._weighed(numbers, _input.weights(sample_weight, X))
        self._join(X, targets(numbers, len(self.classes_), self._low), call, weights, allow_forgotten)
        self._rebalance(np.empty(0, dtype=np.uint64))
        return self

    def amend(self, X: Any, y: Any, sample_weight: Any = None, *, row_ids: Any) -> Evidence:
        """Replaces the content of rows; the result is that of fitting the rows as corrected."""
        self._held()
        call = RowCall.of(X, row_ids)
        X, y = _input.features(self, X, reset=False, y=y)
        numbers = numbers_of(y, self.classes_)
        weights = self._weighed(numbers, _input.weights(sample_weight, X))
        evidence = self._replace(X, targets(numbers, len(self.classes_), self._low), call, weights)
        return self._rebalance(np.empty(0, dtype=np.uint64), X.shape[0]) or evidence

    def decision_function(self, X: Any) -> _input.Floats:
        """The scores: one a row for two classes, above 0 for the second; else one for each class."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The most likely class of each row."""
        scores = self.decision_function(X)
        numbers = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[numbers])

    @property
    def coef_(self) -> _input.Floats:
        """The coefficients, of shape (1, n_features) for two classes, else (n_classes, n_features)."""
        coef: _input.Floats = self._held().parameters()["coef"]
        return coef

    @property
    def intercept_(self) -> _input.Floats:
        """The constants, one for each score; 0 without one."""
        intercept: _input.Floats = self._held().parameters()["intercept"]
        return intercept


class RidgeClassifier(_LinearClassifier):
    """Ridge regression on -1 and 1, decided by the largest score, as scikit-learn's ``RidgeClassifier``.

    The parameters are those of :class:`Ridge`, and ``class_weight``: ``"balanced"``, or a dict from classes to numbers, as in
    scikit-learn. Balanced weights follow from the rows, so that a change fits the rows that are then there anew.

    Examples
    --------
    >>> from efface import RidgeClassifier
    >>> model = RidgeClassifier().fit([[0.0], [1.0], [4.0], [5.0]], ["no", "no", "yes", "yes"])
    >>> model.forget([0]).claim
    'exact'
    >>> model.predict([[4.5]])
    array(['yes'], dtype='<U3')
    """

    _low = -1.0

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        form: str = "auto",
        tol: float = 1e-9,
        n_jobs: int | None = None,
        class_weight: Any = None,
    ) -> None:
        self.class_weight = class_weight
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.form = form
        self.tol = tol
        self.n_jobs = n_jobs

    def _recipe(self, outputs: int) -> dict[str, Any]:
        return _ridge(self)

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """The scores as ONNX, from ``features`` to ``scores``; see :meth:`Ridge.to_onnx`."""
        known = self._held().parameters()
        return self._onnx(known["coef"], known["intercept"], "none", path)


class LogisticRegression(_LinearClassifier):
    """Logistic regression, binary or multinomial, as scikit-learn's ``LogisticRegression``, that can forget.

    Minimises ``C * sum of losses + ||w||^2 / 2``; the constant is not penalised. Training goes to the optimum, and the
    solver is always the same. ``forget`` takes a Newton step on kept curvature and reports how far from retraining it can
    be; where that is more than ``forget_tol``, it goes on until it is not.

    Parameters
    ----------
    C : float, default=1.0
        The inverse of the penalty, above 0; ``numpy.inf`` is no penalty.
    penalty : {"l2", None}, default="l2"
        ``None`` is the same as ``C=numpy.inf``.
    fit_intercept : bool, default=True
    tol : float, default=1e-10
        Training stops at this norm of the gradient of the sum of losses.
    max_iter : int, default=200
        Steps before giving up with :class:`~efface.NotConvergedError`.
    forget_tol : float, default=3e-4
        The relative distance bound that ``forget``, ``partial_fit`` and ``amend`` must reach. A smaller one costs passes over
        the rows; what is called exact reaches 1e-6 in any case.
    n_jobs : int, optional
        Threads for passes over the rows; -1 is all cores.
    class_weight : "balanced" or dict, optional
        What rows count for by their class. Balanced weights follow from the rows, so that a change fits the rows that are then
        there anew.
    form : {"auto", "iterative"}, default="auto"
        Whether curvature is kept where that makes ``forget`` faster, or never: a fit over many dense rows of several classes then takes a
        fraction of the time and of the memory, and every ``forget`` some passes over the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from efface import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> model = LogisticRegression(C=10.0).fit(X, [0, 0, 1, 0, 1, 1])
    >>> evidence = model.forget([2])
    >>> evidence.relative_bound < 1e-4
    True
    >>> again = LogisticRegression(C=10.0).fit(np.delete(X, 2, axis=0), [0, 0, 0, 1, 1])
    >>> np.allclose(model.coef_, again.coef_, rtol=1e-3)
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        penalty: str | None = "l2",
        fit_intercept: bool = True,
        tol: float = 1e-10,
        max_iter: int = 200,
        forget_tol: float = 3e-4,
        n_jobs: int | None = None,
        class_weight: Any = None,
        form: str = "auto",
    ) -> None:
        self.class_weight = class_weight
        self.form = form
        self.C = C
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.forget_tol = forget_tol
        self.n_jobs = n_jobs

    _weighs_classes = True

    def _recipe(self, outputs: int) -> dict[str, Any]:
        if self.penalty not in ("l2", None):
            raise ValueError(f"penalty = {self.penalty!r} is not supported; it must be 'l2' or None")
        if self.form not in ("auto", "iterative"):
            raise ValueError(f"form = {self.form!r} does not exist; auto, iterative do")
        inverse = _number("C", self.C, above=0.0, infinite=True)
        recipe: dict[str, Any] = {
            "family": "logistic" if outputs == 1 else "softmax",
            "lambda": 0.0 if self.penalty is None or np.isinf(inverse) else 1.0 / inverse,
            "intercept": bool(self.fit_intercept),
            "gradient": _number("tol", self.tol, above=0.0),
            "tolerance": _number("forget_tol", self.forget_tol, above=0.0),
            "threads": _threads(self.n_jobs),
            "max_iterations": _whole("max_iter", self.max_iter),
            "curvature": self.form == "auto",
        }
        if outputs == 1:
            recipe["privacy"] = None
        return recipe

    def _fit(self, X: Any, y: Any, classes: Any, call: RowCall, sample_weight: Any) -> None:
        super()._fit(X, y, classes, call, sample_weight)
        steps = max(1, self._held().model.iterations)
        self.n_iter_ = np.array([steps], dtype=np.int32)

    def predict_proba(self, X: Any) -> _input.Floats:
        """The probability of every class, one line for each row."""
        scores = self._scores(X)
        if scores.shape[1] == 1:
            positive = expit(scores)
            return np.hstack([1.0 - positive, positive])
        return np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: Any) -> _input.Floats:
        """The logarithms of :meth:`predict_proba`."""
        return np.log(self.predict_proba(X))

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """The probabilities of all classes as ONNX, from ``features`` to ``scores``; see :meth:`Ridge.to_onnx`."""
        known = self._held().parameters()
        coef, intercept = known["coef"], known["intercept"]
        if len(intercept) == 1:
            # softmax(0, s) is (1 - p, p).
            coef = np.vstack([np.zeros_like(coef), coef])
            intercept = np.append(0.0, intercept)
        return self._onnx(coef, intercept, "softmax", path)


def _penalised(estimator: Any, family: str, penalty: float) -> dict[str, Any]:
    """The recipe of a model of a convex loss with a penalty."""
    return {
        "family": family,
        "lambda": penalty,
        "intercept": bool(estimator.fit_intercept),
        "tolerance": _number("forget_tol", estimator.forget_tol, above=0.0),
        "max_iterations": _whole("max_iter", estimator.max_iter),
    }


class LinearSVC(_LinearClassifier):
    """A linear support vector machine with the squared hinge loss, as scikit-learn's ``LinearSVC(loss="squared_hinge", dual=False)``,
    that can forget.

    Minimises ``C * sum of max(0, 1 - y * score)^2 + (||w||^2 + b^2) / 2``; three classes or more have a score each, against all
    others. The penalty makes the loss strongly convex, so that the gradient over it bounds the distance to retraining. ``forget``
    takes Newton steps over the rows that are left, from where the model stands.

    Parameters
    ----------
    C : float, default=1.0
        The inverse of the penalty, above 0 and finite.
    fit_intercept : bool, default=True
        Whether to fit a constant, which is penalised as in scikit-learn.
    max_iter : int, default=200
        Newton steps before giving up with :class:`~efface.NotConvergedError`.
    forget_tol : float, default=1e-6
        The relative distance bound that a change must reach.
    class_weight : "balanced" or dict, optional
        What rows count for by their class.

    Examples
    --------
    >>> from efface import LinearSVC
    >>> model = LinearSVC().fit([[0.0], [1.0], [4.0], [5.0]], ["no", "no", "yes", "yes"])
    >>> model.forget([0]).claim
    'exact'
    >>> model.predict([[4.5]])
    array(['yes'], dtype='<U3')
    """

    _weighs_classes = True

    def __init__(
        self,
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        max_iter: int = 200,
        forget_tol: float = 1e-6,
        class_weight: Any = None,
    ) -> None:
        self.class_weight = class_weight
        self.C = C
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.forget_tol = forget_tol

    def _recipe(self, outputs: int) -> dict[str, Any]:
        return _penalised(self, "linear_svm", 1.0 / _number("C", self.C, above=0.0))

    def _fit(self, X: Any, y: Any, classes: Any, call: RowCall, sample_weight: Any) -> None:
        super()._fit(X, y, classes, call, sample_weight)
        self.n_iter_ = max(1, self._held().model.iterations)

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """The scores as ONNX, from ``features`` to ``scores``; see :meth:`Ridge.to_onnx`."""
        known = self._held().parameters()
        return self._onnx(known["coef"], known["intercept"], "none", path)


class PoissonRegressor(_LinearRegressor):
    """Poisson regression with a logarithmic link, as scikit-learn's ``PoissonRegressor``, that can forget.

    Minimises ``mean of exp(score) - y * score, by weight, + alpha / 2 * ||w||^2``; the constant is not penalised. The gradient over the
    penalty bounds the distance to retraining.

    Parameters
    ----------
    alpha : float, default=1.0
        The penalty, above 0: bounds divide by it.
    fit_intercept : bool, default=True
    max_iter : int, default=200
        Newton steps before giving up with :class:`~efface.NotConvergedError`.
    forget_tol : float, default=1e-6
        The relative distance bound that a change must reach.

    Examples
    --------
    >>> from efface import PoissonRegressor
    >>> model = PoissonRegressor(alpha=0.1).fit([[0.0], [1.0], [2.0], [3.0]], [1, 2, 4, 90])
    >>> model.forget([3]).claim
    'exact'
    >>> float(model.predict([[1.0]])[0].round(2))
    2.04
    """

    _several = False

    def __init__(
        self, alpha: float = 1.0, *, fit_intercept: bool = True, max_iter: int = 200, forget_tol: float = 1e-6
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.forget_tol = forget_tol

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _recipe(self, outputs: int) -> dict[str, Any]:
        return _penalised(self, "poisson", _number("alpha", self.alpha, above=0.0))

    def _begin(self, X: Any, targets: _input.Floats, call: RowCall, weights: _input.Floats | None) -> None:
        super()._begin(X, targets, call, weights)
        self.n_iter_ = max(1, self._held().model.iterations)

    def predict(self, X: Any) -> _input.Floats:
        """The predicted means."""
        return np.asarray(np.exp(self._scores(X)[:, 0]))
