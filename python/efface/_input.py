"""What users hand over, made into what the native half reads: arrays, row ids, weights.

Tables become arrays as scikit-learn makes them, with its checks and its messages. A contiguous array of float32 or float64
passes through here without a copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, validate_data

UInts = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

_RANGE = "row ids are whole numbers from 0 to 2**64 - 1"
# X is checked without y.
_ALONE: Any = object()
_KINDS = "a numpy array, a scipy sparse matrix, a pandas or polars frame, or an Arrow table"


def table(X: Any) -> Any:
    """An Arrow stream as an array; everything else as it is."""
    if isinstance(X, np.ndarray) or sp.issparse(X) or not hasattr(X, "__arrow_c_stream__"):
        if isinstance(X, (str, bytes, dict, set)):
            raise TypeError(f"X is a {type(X).__name__}; it must be {_KINDS}")
        return X
    if hasattr(X, "__array__") and hasattr(X, "shape") and hasattr(X, "columns") and not hasattr(X, "schema"):
        # pandas: scikit-learn takes the column names along.
        return X
    if hasattr(X, "to_numpy") and hasattr(X, "columns") and hasattr(X, "get_column"):
        # polars: likewise.
        return X
    try:
        import pyarrow as pa
    except ImportError as missing:
        raise TypeError(
            f"X is a {type(X).__name__} that speaks Arrow, and reading it needs pyarrow; "
            "install pyarrow, or hand over X as a numpy array"
        ) from missing
    columns = pa.table(X)
    for name, column in zip(columns.column_names, columns.columns):
        kind = column.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise TypeError(f"column {name!r} holds {kind}; every column must hold numbers")
    if columns.num_columns == 0:
        return np.empty((columns.num_rows, 0))
    kinds = {column.type for column in columns.columns}
    dtype = np.float32 if kinds == {pa.float32()} else np.float64
    arrays = [column.to_numpy().astype(dtype, copy=False) for column in columns.columns]
    return np.column_stack(arrays)


def features(estimator: Any, X: Any, *, reset: bool, y: Any = _ALONE, **checks: Any) -> Any:
    """X, or X and y, as scikit-learn checks them."""
    settings = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C", "accept_large_sparse": True}
    if y is _ALONE:
        return validate_data(estimator, table(X), reset=reset, **settings, **checks)
    return validate_data(estimator, table(X), y, reset=reset, **settings, **checks)


def native(X: Any) -> Any:
    """X for the native half: an array, or the parts of a CSR matrix in order."""
    if not sp.issparse(X):
        return straight(X)
    X = X.tocsr()
    if X.shape[1] > 2**32:
        # Column numbers have 32 bits; cut off, they would be those of other columns.
        raise ValueError(f"X has {X.shape[1]} columns; a sparse table may have 2**32")
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return (
        straight(X.indptr.astype(np.int64, copy=False)),
        straight(X.indices.astype(np.uint32, copy=False)),
        straight(X.data),
        X.shape[1],
    )


def straight(array: Any) -> Any:
    """The array, copied if its numbers do not lie one after the other, each in its place."""
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else array.copy(order="C")


def ids(row_ids: Any) -> UInts:
    """Row ids as unsigned numbers."""
    if type(row_ids) is int:
        # By far the commonest request names one row.
        if 0 <= row_ids < 2**64:
            return np.array([row_ids], dtype=np.uint64)
        raise ValueError(f"row id {row_ids} is out of range; {_RANGE}")
    array = np.asarray(row_ids)
    if array.dtype.kind == "f" and isinstance(row_ids, (list, tuple)) and all(type(each) is int for each in row_ids):
        # numpy takes small and very large whole numbers together for float64.
        array = np.asarray(row_ids, dtype=object)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1:
        raise ValueError(f"row ids have {array.ndim} dimensions; they must be a flat list")
    if array.size == 0:
        return np.empty(0, dtype=np.uint64)
    if array.dtype.kind == "O":
        for value in array:
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
                raise TypeError(f"a row id is a {type(value).__name__}; {_RANGE}")
            if not 0 <= int(value) < 2**64:
                raise ValueError(f"row id {value} is out of range; {_RANGE}")
        return array.astype(np.uint64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"row ids are of type {array.dtype}; {_RANGE}")
    if array.dtype.kind == "i" and array.min() < 0:
        raise ValueError(f"row id {array.min()} is negative; {_RANGE}")
    found: UInts = straight(array.astype(np.uint64, copy=False))
    return found


def ids_for(row_ids: Any, rows: int, first: int) -> UInts:
    """The ids of new rows: those given, one for each, or the next positions."""
    if row_ids is None:
        if first + rows > 2**64:
            raise ValueError(f"there is no position after row id {first - 1}; give row_ids")
        return np.arange(rows, dtype=np.uint64) + np.uint64(first)
    if np.asarray(row_ids).dtype == np.bool_:
        raise TypeError(f"row ids are of type bool; {_RANGE}")
    found = ids(row_ids)
    if len(found) != rows:
        raise ValueError(f"there are {len(found)} row ids for {rows} rows; give one for each row")
    return found


def weights(sample_weight: Any, X: Any) -> Floats | None:
    """Weights, checked as scikit-learn does."""
    if sample_weight is None:
        return None
    checked = _check_sample_weight(sample_weight, X, dtype=np.float64)
    found: Floats = straight(checked)
    return found
