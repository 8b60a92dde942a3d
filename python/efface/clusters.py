"""k-means that forgets: the centres afterwards are, bit for bit, those of fitting the rows that are left."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning

from . import _input
from ._base import Forgetting
from ._core import Evidence
from ._rows import RowCall
from .linear import _number, _whole


def seed_of(random_state: Any) -> int:
    """A seed from what scikit-learn takes for one; None is 0, so that a fit can be repeated."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, (bool, np.bool_)):
        if not 0 <= random_state < 2**64:
            raise ValueError(f"random_state = {random_state} is out of range; it must be from 0 to 2**64 - 1")
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    raise TypeError(f"random_state is a {type(random_state).__name__}; it must be None, a whole number or a RandomState")


def _distinct(X: Any, weights: Any, enough: int) -> int:
    """How many points are distinct, as far as it matters: counting ends where there are enough."""
    seen: set[bytes] = set()
    for at in range(X.shape[0]):
        if weights is not None and weights[at] == 0.0:
            continue
        row = X[at].toarray() if sp.issparse(X) else X[at]
        # 0.0 and -0.0 are one point.
        seen.add((row + 0.0).tobytes())
        if len(seen) >= enough:
            break
    return max(1, len(seen))


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Forgetting):  # type: ignore[misc]
    """k-means clustering that can forget (Ginart et al. 2019).

    Parameters
    ----------
    n_clusters : int, default=8
    max_iter : int, default=10
        The most iterations of a run; it ends earlier when the loss does not fall.
    random_state : int, optional
        What all randomness follows from, together with the row ids.
    scheme : {"quantised", "divided"}, default="quantised"
        ``quantised`` puts centres on a random lattice, so that most forgets need no retraining; ``divided`` is a tree of
        small problems, of which a forget solves one path again.
    cell : float, default=0.05
        The side of a lattice cell, in the units of the features. A larger one forgets faster, with coarser centres.
    gamma : float, default=0.2
        A cluster below ``gamma / n_clusters`` of all rows is pulled back to its previous centre.
    height, width : int, default=1 and 16
        The levels below the root of the tree, and the children of a node.

    Examples
    --------
    >>> from efface import KMeans
    >>> model = KMeans(n_clusters=2).fit([[0.0], [0.1], [5.0], [5.1], [5.2]])
    >>> evidence = model.forget([4])
    >>> evidence.claim, evidence.bound
    ('exact', 0.0)
    >>> len(set(model.predict([[0.0], [5.0]]).tolist()))
    2
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        max_iter: int = 10,
        random_state: Any = None,
        scheme: str = "quantised",
        cell: float = 0.05,
        gamma: float = 0.2,
        height: int = 1,
        width: int = 16,
    ) -> None:
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.random_state = random_state
        self.scheme = scheme
        self.cell = cell
        self.gamma = gamma
        self.height = height
        self.width = width

    def _recipe(self, outputs: int) -> dict[str, Any]:
        if self.scheme == "quantised":
            scheme: dict[str, Any] = {
                "kind": "quantised",
                "epsilon": _number("cell", self.cell, above=0.0),
                "gamma": _number("gamma", self.gamma, least=0.0),
            }
        elif self.scheme == "divided":
            scheme = {"kind": "divided", "height": _whole("height", self.height), "width": _whole("width", self.width)}
        else:
            raise ValueError(f"scheme = {self.scheme!r} does not exist; 'quantised' and 'divided' do")
        return {
            "family": "k_means",
            "k": getattr(self, "_clusters", None) or _whole("n_clusters", self.n_clusters),
            "iterations": _whole("max_iter", self.max_iter),
            "seed": seed_of(self.random_state),
            "scheme": scheme,
        }

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, row_ids: Any = None, subject: Any = None
    ) -> KMeans:
        """Finds the centres; `y` is ignored. See :meth:`Ridge.fit` for the other arguments."""
        call = RowCall.of(X, row_ids, subject)
        with self._all_or_nothing():
            X = _input.features(self, X, reset=True)
            if X.shape[0] < _whole("n_clusters", self.n_clusters):
                raise ValueError(f"n_samples={X.shape[0]} should be >= n_clusters={self.n_clusters}.")
            weights = _input.weights(sample_weight, X)
            self._clusters = min(self.n_clusters, _distinct(X, weights, self.n_clusters))
            self._begin(X, np.zeros((X.shape[0], 1)), call, weights)
            self.n_iter_ = max(1, self._held().model.iterations)
        if self._clusters < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({self._clusters}) found smaller than n_clusters ({self.n_clusters}). Possibly "
                "due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        row_ids: Any = None,
        subject: Any = None,
        allow_forgotten: bool = False,
    ) -> KMeans:
        """Adds rows and finds the centres anew: a row that joins may win a place in the start."""
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight, row_ids=row_ids, subject=subject)
        call = RowCall.of(X, row_ids, subject)
        X = _input.features(self, X, reset=False)
        self._join(X, np.zeros((X.shape[0], 1)), call, _input.weights(sample_weight, X), allow_forgotten)
        return self

    def amend(self, X: Any, y: Any = None, sample_weight: Any = None, *, row_ids: Any) -> Evidence:
        """Replaces the content of rows and finds the centres anew."""
        self._held()
        call = RowCall.of(X, row_ids)
        X = _input.features(self, X, reset=False)
        return self._replace(X, np.zeros((X.shape[0], 1)), call, _input.weights(sample_weight, X))

    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, row_ids: Any = None, subject: Any = None
    ) -> Any:
        """Finds the centres and returns the cluster of each row."""
        return self.fit(X, y, sample_weight, row_ids=row_ids, subject=subject).labels_

    def transform(self, X: Any) -> _input.Floats:
        """The distance of each row to each centre."""
        held = self._held()
        X = _input.features(self, X, reset=False)
        return held.model.predict(_input.native(X))

    def predict(self, X: Any) -> npt.NDArray[np.int32]:
        """The number of the nearest centre."""
        return np.asarray(self.transform(X).argmin(axis=1), dtype=np.int32)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The negative sum of squared distances to the nearest centre."""
        squares = self.transform(X).min(axis=1) ** 2
        if sample_weight is not None:
            squares = squares * np.asarray(sample_weight, dtype=np.float64)
        return -float(squares.sum())

    @property
    def cluster_centers_(self) -> _input.Floats:
        """The centres, one line each."""
        centers: _input.Floats = self._held().parameters()["cluster_centers"]
        return centers

    @property
    def labels_(self) -> npt.NDArray[np.int32]:
        """The cluster of each row of the model, in the order of ``row_ids_``."""
        return np.asarray(self._held().model.predict_own().argmin(axis=1), dtype=np.int32)

    @property
    def inertia_(self) -> float:
        """The sum of squared distances of the model's rows to their centres, by weight."""
        model = self._held().model
        return float(model.weights @ model.predict_own().min(axis=1) ** 2)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)
