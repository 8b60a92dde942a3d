"""Steps before a model that forget: scikit-learn's transformers, which keep their rows and let them go.

Each is scikit-learn's own class with its settings, attributes and results, and beside these ``forget``. A step learns from all of
its rows together (a mean, a vocabulary, a direction), so that after a forget it is worked out again from the rows that are left:
what it holds then is what a fit without the row gives, to the bit.
"""

from __future__ import annotations

import pickle
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.decomposition import PCA as _PCA
from sklearn.decomposition import TruncatedSVD as _TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer as _CountVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer as _TfidfVectorizer
from sklearn.impute import SimpleImputer as _SimpleImputer
from sklearn.preprocessing import MinMaxScaler as _MinMaxScaler
from sklearn.preprocessing import OneHotEncoder as _OneHotEncoder
from sklearn.preprocessing import StandardScaler as _StandardScaler
from sklearn.utils.validation import _check_n_features

from . import _input
from ._errors import DuplicateRowError, RefusedError, UnknownRowError
from ._rows import RowCall

S = TypeVar("S", bound="ForgettingStep")
T = TypeVar("T", bound="StandardScaler")


def take(rows: Any, places: npt.NDArray[np.intp]) -> Any:
    """Some rows of a table, a frame or a list, in this order."""
    if hasattr(rows, "iloc"):
        return rows.iloc[places]
    if sp.issparse(rows):
        return rows.tocsr()[places]
    if isinstance(rows, np.ndarray) or hasattr(rows, "get_column"):
        return rows[places]
    return [rows[place] for place in places]


def count(rows: Any) -> int:
    """How many rows there are."""
    if not hasattr(rows, "shape") and not hasattr(rows, "__len__"):
        rows = np.asarray(rows)
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def copied(rows: Any) -> Any:
    """Returns a copy of rows that shares nothing with them that can change, at any depth. The caller's table may change
    later, a step may work in place, and a row that leaves must leave for good."""
    if not hasattr(rows, "shape") and not hasattr(rows, "__len__"):
        rows = np.array(rows)
    # Objects in cells are not copied by the copy methods of arrays and frames.
    kinds = np.asarray(rows.dtypes if hasattr(rows, "iloc") else getattr(rows, "dtype", object), dtype=object)
    if hasattr(rows, "copy") and not (kinds == np.dtype(object)).any():
        return rows.copy()
    return pickle.loads(pickle.dumps(rows))


def join(rows: Any, more: Any) -> Any:
    """Returns rows and, after them, a copy of more rows of the same kind."""
    more = copied(more)
    if hasattr(rows, "iloc"):
        import pandas as pd

        return pd.concat([rows, more])
    if sp.issparse(rows):
        return sp.vstack([rows, more]).tocsr()
    if isinstance(rows, np.ndarray):
        return np.concatenate([rows, np.asarray(more)])
    if hasattr(rows, "get_column"):
        return rows.vstack(more)
    return [*rows, *more]


class RowNames:
    """The names of rows in their order: whole numbers or texts that the caller chose, or positions."""

    __slots__ = ("_places", "names", "next")

    @classmethod
    def of(cls, X: Any, row_ids: Any, first: int = 0) -> RowNames:
        """Returns the names of the rows of a table. ``"index"`` stands for the index of a frame."""
        return cls(RowCall.of(X, row_ids).row_ids, count(X), first)

    def __init__(self, row_ids: Any, rows: int, first: int = 0) -> None:
        if row_ids is None:
            row_ids = range(first, first + rows)
        self.names: list[Any] = [plain(each) for each in row_ids]
        if len(self.names) != rows:
            raise ValueError(f"there are {len(self.names)} row ids for {rows} rows; give one for each row")
        self._places = {name: place for place, name in enumerate(self.names)}
        if len(self._places) != rows:
            seen: set[Any] = set()
            twice = next(name for name in self.names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise DuplicateRowError(f"row id {twice!r} is given twice; every row needs a name of its own")
        numbers = [name for name in self.names if isinstance(name, int)]
        self.next = max([first + rows, *(number + 1 for number in numbers)])

    def places(self, row_ids: Any) -> npt.NDArray[np.intp]:
        """Where the named rows stand; a mask has an entry for every row."""
        array = np.asarray(row_ids)
        if array.dtype == np.bool_:
            if array.shape != (len(self.names),):
                raise ValueError(
                    f"the mask has shape {array.shape} and there are {len(self.names)} rows; give one entry for each"
                )
            return np.flatnonzero(array)
        asked = [plain(each) for each in (row_ids if array.ndim else [row_ids])]
        if len(set(asked)) != len(asked):
            raise DuplicateRowError("a row id is named twice; name every row once")
        for name in asked:
            if name not in self._places:
                raise UnknownRowError(f"there is no row of id {name!r}")
        return np.array([self._places[name] for name in asked], dtype=np.intp)

    def without(self, places: npt.NDArray[np.intp]) -> tuple[RowNames, npt.NDArray[np.intp]]:
        """The names that are left, and where their rows stood."""
        left = np.setdiff1d(np.arange(len(self.names)), places)
        names = RowNames([self.names[place] for place in left], len(left))
        names.next = max(names.next, self.next)
        return names, left


def plain(name: Any) -> Any:
    """A row id as a whole number or a text."""
    if isinstance(name, (bool, np.bool_)) or not isinstance(name, (int, str, np.integer)):
        raise TypeError(f"a row id is a {type(name).__name__}; row ids are whole numbers or texts")
    return int(name) if isinstance(name, np.integer) else str(name) if isinstance(name, str) else name


class ForgettingStep:
    """Rows that a transformer was fitted on, and their leaving."""

    #: scikit-learn's class, whose fit decides what the step holds.
    _theirs: Any = None
    _kept: Any
    _names: RowNames
    #: Weights of the rows, where the step was given some.
    _weights: _input.Floats | None = None

    def fit(self: S, X: Any, y: Any = None, *, row_ids: Any = None) -> S:
        """Fits the step; ``row_ids`` names the rows, which are else named by their position."""
        self._first(X, row_ids)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, row_ids: Any = None) -> Any:
        """Fits the step and returns the features of its rows."""
        return self._first(X, row_ids)

    def partial_fit(self: S, X: Any, y: Any = None, *, row_ids: Any = None) -> S:
        """Adds rows; the step is then that of all rows."""
        self._more(X, row_ids)
        return self

    def _first(self, X: Any, row_ids: Any, sample_weight: Any = None) -> Any:
        return self._learn(copied(X), RowNames.of(X, row_ids), _input.weights(sample_weight, X))

    def _more(self, X: Any, row_ids: Any, sample_weight: Any = None) -> None:
        if "_names" not in self.__dict__:
            self._first(X, row_ids, sample_weight)
            return
        if "n_features_in_" in self.__dict__:
            _check_n_features(self, X, reset=False)
        more = RowNames.of(X, row_ids, self._names.next)
        names = RowNames([*self._names.names, *more.names], len(self._names.names) + count(X))
        weights = joined_weights(self._weights, len(self._names.names), _input.weights(sample_weight, X), count(X))
        self._learn(join(self._kept, X), names, weights)

    def _learn(self, rows: Any, names: RowNames, weights: _input.Floats | None) -> Any:
        """Takes over what scikit-learn's class learns from the rows. A fit that fails leaves the step as it was."""
        learned = self._theirs(**self.get_params(deep=False))  # type: ignore[attr-defined]
        settings = {} if weights is None else {"sample_weight": weights}
        # A step with copy=False changes the table that it reads.
        features = learned.fit_transform(rows if getattr(learned, "copy", True) else copied(rows), **settings)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self.__dict__.update(vars(learned))
        self._kept = rows
        self._names = names
        self._weights = weights
        return features

    def forget(self: S, row_ids: Any) -> S:
        """Takes rows out: the step is then that of the rows that are left, and keeps no copy of those that went."""
        if "_names" not in self.__dict__:
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' before 'forget'.")
        names, left = self._names.without(self._names.places(row_ids))
        if not len(left):
            raise RefusedError("no row would be left to learn from; fit anew on other rows")
        self._learn(take(self._kept, left), names, None if self._weights is None else self._weights[left])
        return self

    @property
    def row_ids_(self) -> list[Any]:
        """The names of the rows that the step stands for."""
        return list(self._names.names)


def joined_weights(
    weights: _input.Floats | None, rows: int, more: _input.Floats | None, more_rows: int
) -> _input.Floats | None:
    """Returns the weights of rows and, after them, of more rows. Rows without weights weigh 1."""
    if weights is None and more is None:
        return None
    parts = [(weights, rows), (more, more_rows)]
    return np.concatenate([np.ones(length) if part is None else part for part, length in parts])


class StandardScaler(ForgettingStep, _StandardScaler):  # type: ignore[misc]
    """Mean 0 and standard deviation 1, as scikit-learn's ``StandardScaler``, that can forget. Like it, it takes weights of rows.

    >>> import numpy as np
    >>> from efface import StandardScaler
    >>> scaler = StandardScaler().fit(np.array([[0.0], [2.0], [100.0]])).forget([2])
    >>> float(scaler.mean_[0]), float(scaler.scale_[0])
    (1.0, 1.0)
    """

    _theirs = _StandardScaler

    def fit(self: T, X: Any, y: Any = None, sample_weight: Any = None, *, row_ids: Any = None) -> T:
        """Fits the step; ``row_ids`` names the rows, which are else named by their position."""
        self._first(X, row_ids, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, *, row_ids: Any = None) -> Any:
        """Fits the step and returns the features of its rows."""
        return self._first(X, row_ids, sample_weight)

    def partial_fit(self: T, X: Any, y: Any = None, sample_weight: Any = None, *, row_ids: Any = None) -> T:
        """Adds rows; the step is then that of all rows."""
        self._more(X, row_ids, sample_weight)
        return self


class MinMaxScaler(ForgettingStep, _MinMaxScaler):  # type: ignore[misc]
    """From the least to the greatest value, as scikit-learn's ``MinMaxScaler``, that can forget."""

    _theirs = _MinMaxScaler


class SimpleImputer(ForgettingStep, _SimpleImputer):  # type: ignore[misc]
    """Filled gaps, as scikit-learn's ``SimpleImputer``, that can forget."""

    _theirs = _SimpleImputer


class OneHotEncoder(ForgettingStep, _OneHotEncoder):  # type: ignore[misc]
    """A feature for each level, as scikit-learn's ``OneHotEncoder``, that can forget: a level leaves with its last row."""

    _theirs = _OneHotEncoder


class CountVectorizer(ForgettingStep, _CountVectorizer):  # type: ignore[misc]
    """Counts of words, as scikit-learn's ``CountVectorizer``, that can forget: words are chosen anew from the rows that are left.

    >>> from efface import CountVectorizer
    >>> words = CountVectorizer().fit(["good film", "bad film", "odd"]).forget([2])
    >>> words.get_feature_names_out().tolist()
    ['bad', 'film', 'good']
    """

    _theirs = _CountVectorizer


class TfidfVectorizer(ForgettingStep, _TfidfVectorizer):  # type: ignore[misc]
    """Weighed words, as scikit-learn's ``TfidfVectorizer``, that can forget."""

    _theirs = _TfidfVectorizer


class PCA(ForgettingStep, _PCA):  # type: ignore[misc]
    """Principal components, as scikit-learn's ``PCA``, that can forget."""

    _theirs = _PCA


class TruncatedSVD(ForgettingStep, _TruncatedSVD):  # type: ignore[misc]
    """Truncated singular vectors, as scikit-learn's ``TruncatedSVD``, that can forget."""

    _theirs = _TruncatedSVD
