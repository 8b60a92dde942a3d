"""Sums of rows that merge, so that a model can be fitted wherever sums can run.

A worker feeds its share of the rows, batch by batch, and sends the bytes; whoever collects them merges. `efface.engines` does it on
Spark, Ray, Dask, Daft, Polars and DuckDB.

>>> import numpy as np
>>> from efface import Statistics
>>> X = np.random.default_rng(0).normal(size=(1000, 3))
>>> y = X @ [1.0, 2.0, 3.0] + 4
>>> spec = Statistics(["a", "b", "c"], "y")
>>> parts = [spec.empty().update(X[start : start + 250], y[start : start + 250]) for start in range(0, 1000, 250)]
>>> merged = spec.merged(bytes(part) for part in parts)
>>> model = merged.ridge(alpha=1.0)
>>> model.rows_, np.round(model.intercept_, 2).tolist()
(1000, 4.0)

Rows leave as they came; nothing of them stays in the sums.

>>> merged.remove(X[:5], y[:5]).ridge(alpha=1.0).rows_
995
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from .linear import _threads

Ranges = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class StatisticsRidge:
    """A ridge model that was made from statistics. It holds no rows."""

    coef_: npt.NDArray[np.float64]
    intercept_: Any
    rows_: int
    bound_: float
    """The most that all parameters together can be away from the exact minimum."""
    relative_bound_: float
    feature_names_in_: npt.NDArray[np.object_]

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Scores of rows: a 2-D array, or a frame with the columns that were summed."""
        if not isinstance(X, np.ndarray):
            columns, _, _ = _batch(next(_batches(X)), list(self.feature_names_in_), None, None)
            X = np.column_stack(columns)
        scores: npt.NDArray[np.float64] = X @ np.atleast_2d(self.coef_).T + self.intercept_
        return scores.ravel() if self.coef_.ndim == 1 else scores


class Statistics:
    """The sums that a linear model is made from.

    Parameters
    ----------
    features : list of str
        Columns to learn from, in order.
    target : str or list of str
        Columns to predict.
    row_id : str, optional
        The column of ids. Every row is then committed to, with ``key``, so that no row is counted twice and none is taken out that
        is not there; and ``training_set()`` is the same however many workers there were. 32 bytes a row.
    key : bytes of length 32, optional
        The secret of the commitments, shared by all workers. It is not in ``bytes(statistics)``.
    weight : str, optional
        A column of weights.
    reproducible : bool
        Whether the sums are to be the same to the last bit however rows are ordered or shared out. They are then integers on a grid,
        for which the least and the greatest number of every column must be known: give ``ranges``, or let `efface.engines` find them.
    ranges : dict, optional
        The least and the greatest number of every column, targets included.
    n_jobs : int, optional
        Threads that share a batch; -1 for all cores.
    """

    def __init__(
        self,
        features: Sequence[str],
        target: str | Sequence[str],
        *,
        row_id: str | None = None,
        key: bytes | None = None,
        weight: str | None = None,
        reproducible: bool = False,
        ranges: Ranges | None = None,
        n_jobs: int | None = None,
    ) -> None:
        if isinstance(features, str):
            raise TypeError("features is one string; give a list of the names of columns")
        if (row_id is None) != (key is None):
            raise ValueError("row_id and key go together: ids are committed to with a key of 32 secret bytes")
        if ranges is not None and not reproducible:
            raise ValueError("ranges are for reproducible=True; say so, or leave them out")
        if reproducible and weight is not None:
            raise ValueError("reproducible sums know no weights; leave weight out, or reproducible=False")
        self.features = [str(name) for name in features]
        self.targets = [target] if isinstance(target, str) else [str(name) for name in target]
        self.row_id = row_id
        self.key = key
        self.weight = weight
        self.reproducible = reproducible
        self.ranges = ranges
        self.n_jobs = n_jobs
        self._single = isinstance(target, str)
        self._core = None if reproducible and ranges is None else self._new()

    def _new(self) -> _core.Statistics:
        grids = None
        if self.reproducible:
            names = self.features + self.targets
            missing = [name for name in names if name not in (self.ranges or {})]
            if missing:
                raise ValueError(f"there is no range for {missing}; give the least and the greatest number of every column")
            assert self.ranges is not None
            grids = _core.column_grids([(float(low), float(high)) for low, high in (self.ranges[name] for name in names)])
        return _core.Statistics(self.features, self.targets, grids, self.key, _threads(self.n_jobs))

    @property
    def _sums(self) -> _core.Statistics:
        if self._core is None:
            raise ValueError(
                "reproducible sums must know the ranges of the columns first; give ranges=..., see Statistics.ranges_of"
            )
        return self._core

    @property
    def rows(self) -> int:
        """How many rows were summed."""
        return 0 if self._core is None else self._core.rows

    def empty(self, ranges: Ranges | None = None) -> Statistics:
        """Statistics of the same columns and no rows; of these ranges, where they are given."""
        return Statistics(
            self.features,
            self.targets[0] if self._single else self.targets,
            row_id=self.row_id,
            key=self.key,
            weight=self.weight,
            reproducible=self.reproducible,
            ranges=ranges or self.ranges,
            n_jobs=self.n_jobs,
        )

    def update(self, data: Any, y: Any = None, *, ids: Sequence[str] | None = None) -> Statistics:
        """Adds rows, and gives itself back.

        ``data`` is anything that speaks Arrow (a table, a batch or a stream of them, a frame of Polars, pandas or DuckDB), whose
        columns are found by name and, if they are float64, not copied; or a 2-D array with ``y``, and ``ids`` where rows have them.
        An error leaves the sums as they were before the batch that it is about.
        """
        return self._change(data, y, ids, remove=False)

    def remove(self, data: Any, y: Any = None, *, ids: Sequence[str] | None = None) -> Statistics:
        """Takes rows out. They must be as they were when they came."""
        return self._change(data, y, ids, remove=True)

    def _change(self, data: Any, y: Any, ids: Sequence[str] | None, remove: bool) -> Statistics:
        sums = self._sums
        if y is not None:
            x = np.ascontiguousarray(data, dtype=np.float64)
            table = np.ascontiguousarray(y, dtype=np.float64)
            table = table.reshape(-1, 1) if table.ndim == 1 else table
            if x.ndim != 2 or table.ndim != 2:
                raise ValueError(f"X has {x.ndim} dimensions and y {table.ndim}; X must have 2 and y 1 or 2")
            if self.weight is not None:
                raise ValueError("arrays have no column of weights; give a frame that has one")
            sums.change_tables(x, table, None if ids is None else [str(name) for name in ids], None, remove)
            return self
        if ids is not None:
            raise ValueError("ids are for arrays; of a frame, name the column with row_id")
        for batch in _batches(data):
            columns, names, weights = _batch(batch, self.features + self.targets, self.row_id, self.weight)
            sums.change_columns(columns, names, weights, remove)
        return self

    def ranges_of(self, data: Any) -> Ranges:
        """The least and the greatest number of every column of a frame, a table or a stream."""
        names = self.features + self.targets
        found: Ranges = {}
        for batch in _batches(data):
            columns, _, _ = _batch(batch, names, None, None)
            if len(columns[0]) == 0:
                continue
            some = {name: (float(column.min()), float(column.max())) for name, column in zip(names, columns)}
            found = merged_ranges([found, some])
        return found

    def merge(self, other: Statistics | bytes) -> Statistics:
        """Adds what another worker has summed, and gives itself back."""
        theirs = other._sums if isinstance(other, Statistics) else _core.Statistics.from_bytes(other, None, 1)
        self._sums.merge(theirs)
        return self

    def merged(self, parts: Iterable[bytes]) -> Statistics:
        """The statistics of all parts together, each merged once."""
        total = self.empty()
        for part in parts:
            total.merge(part)
        return total

    def __bytes__(self) -> bytes:
        return self._sums.to_bytes()

    def restored(self, data: bytes) -> Statistics:
        """Statistics of the same columns from their bytes."""
        again = self.empty()
        read = _core.Statistics.from_bytes(data, self.key, _threads(self.n_jobs))
        if read.features != self.features or read.targets != self.targets or read.is_exact != self.reproducible:
            raise ValueError("these statistics are of other columns or of another kind")
        again._core = read
        return again

    @classmethod
    def from_bytes(cls, data: bytes, *, key: bytes | None = None, n_jobs: int | None = None) -> Statistics:
        """Statistics from their bytes alone, such as an aggregate function of DataFusion gives. They merge and make models; to add or
        remove rows of frames with ids or weights, use `restored` of statistics that know those columns."""
        read = _core.Statistics.from_bytes(data, key, _threads(n_jobs))
        target = read.targets[0] if len(read.targets) == 1 else read.targets
        made = cls(read.features, target, n_jobs=n_jobs)
        made.reproducible = read.is_exact
        made.key = key
        made._core = read
        return made

    def training_set(self) -> str | None:
        """The root of the tree over the commitments to all rows; None without ids."""
        return self._sums.training_set()

    def ridge(self, alpha: float = 1.0, *, fit_intercept: bool = True, tolerance: float = 1e-9) -> StatisticsRidge:
        """The ridge model of these rows, in a time that does not depend on their number."""
        coef, intercept, bound, relative = self._sums.ridge(float(alpha), bool(fit_intercept), float(tolerance))
        return StatisticsRidge(
            coef_=coef[0] if self._single else coef,
            intercept_=float(intercept[0]) if self._single else intercept,
            rows_=self.rows,
            bound_=bound,
            relative_bound_=relative,
            feature_names_in_=np.array(self.features, dtype=object),
        )

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["_core"] = None if self._core is None else self._core.to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        data = state.pop("_core")
        self.__dict__.update(state)
        self._core = None if data is None else _core.Statistics.from_bytes(data, self.key, _threads(self.n_jobs))

    def __repr__(self) -> str:
        kind = "reproducible " if self.reproducible else ""
        return f"<{kind}statistics of {self.rows} rows, {len(self.features)} features, {len(self.targets)} targets>"


def merged_ranges(parts: Iterable[Ranges]) -> Ranges:
    """The ranges of all parts together."""
    found: Ranges = {}
    for part in parts:
        for name, (low, high) in part.items():
            least, most = found.get(name, (low, high))
            found[name] = (min(least, low), max(most, high))
    return found


def _batches(data: Any) -> Iterator[Any]:
    """Record batches of anything that speaks Arrow."""
    try:
        import pyarrow as pa
    except ImportError as missing:
        raise TypeError("reading frames and tables needs pyarrow; install it, or give arrays X and y") from missing
    if isinstance(data, pa.RecordBatch):
        yield data
    elif hasattr(data, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(data)
    elif hasattr(data, "__arrow_c_array__"):
        yield pa.record_batch(data)
    elif isinstance(data, Iterable) and not isinstance(data, (str, bytes, dict, np.ndarray)):
        for part in data:
            yield from _batches(part)
    else:
        raise TypeError(f"a {type(data).__name__} speaks no Arrow; give a table or a frame, or arrays X and y")


Batch = tuple[list[npt.NDArray[np.float64]], "list[str] | None", "npt.NDArray[np.float64] | None"]


def _batch(batch: Any, names: list[str], row_id: str | None, weight: str | None) -> Batch:
    exist = batch.schema.names
    wanted = [*names, *([row_id] if row_id else []), *([weight] if weight else [])]
    missing = [name for name in wanted if name not in exist]
    if missing:
        raise ValueError(f"there are no columns {missing}; there are {exist[:20]}")
    ids = None
    if row_id:
        column = batch.column(row_id)
        if column.null_count:
            raise ValueError(f"column {row_id!r} has {column.null_count} rows without an id; every row needs one")
        ids = [str(value) for value in column.to_pylist()]
    weights = _numbers(batch.column(weight), weight) if weight else None
    return [_numbers(batch.column(name), name) for name in names], ids, weights


def _numbers(column: Any, name: str) -> npt.NDArray[np.float64]:
    import pyarrow as pa

    if column.null_count:
        raise ValueError(f"column {name!r} has {column.null_count} missing values; fill them, or leave those rows out")
    if not pa.types.is_float64(column.type):
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
            raise ValueError(f"column {name!r} holds {column.type}; sums need numbers")
        # A boolean becomes a double by way of an integer.
        column = column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column
        column = column.cast(pa.float64())
    numbers: npt.NDArray[np.float64] = column.to_numpy(zero_copy_only=True)
    return numbers

