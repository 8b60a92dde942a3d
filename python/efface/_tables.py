"""Tables in memory for model files: frames, records and arrays as names and rows of cells."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

NamedRows = tuple[list[str], list[list[Any]]]
Columns = tuple[list[str], list[list[Any]]]

_KINDS = "the path of a file, a frame, an Arrow table, a dict of columns, a list of dicts, or an array"


def is_path(source: Any) -> bool:
    """Whether rows are in a file of that name."""
    return isinstance(source, (str, os.PathLike))


def rows_of(data: Any, names: Callable[[], list[str] | None] = lambda: None) -> NamedRows:
    """The names of the columns, and the cells row by row. An array, which has no names, has those that `names` gives."""
    found, columns = _found(data, names)
    return found, [list(row) for row in zip(*columns)]


def _found(data: Any, names: Callable[[], list[str] | None]) -> Columns:
    if isinstance(data, np.ndarray) or (isinstance(data, list) and data and isinstance(data[0], (list, tuple, np.ndarray))):
        return _array(np.asarray(data), names())
    if isinstance(data, Sequence) and data and all(isinstance(each, Mapping) for each in data):
        known = list(dict.fromkeys(str(name) for record in data for name in record))
        return known, [[plain(record.get(name)) for record in data] for name in known]
    if isinstance(data, Mapping):
        return _columns([(name, data[name]) for name in data])
    if hasattr(data, "iloc") and hasattr(data, "items"):
        return _columns(list(data.items()))
    if hasattr(data, "get_columns"):
        return _columns([(each.name, each.to_list()) for each in data.get_columns()])
    if hasattr(data, "__arrow_c_stream__"):
        try:
            import pyarrow as pa
        except ImportError as missing:
            raise TypeError(f"a {type(data).__name__} speaks Arrow, and reading it needs pyarrow; install pyarrow") from missing
        table = pa.table(data)
        return _columns([(name, column.to_pylist()) for name, column in zip(table.column_names, table.columns)])
    raise TypeError(f"rows are a {type(data).__name__}; give {_KINDS}")


def _array(array: Any, columns: list[str] | None) -> Columns:
    if columns is None:
        raise TypeError("an array has no names for its columns; give a frame, or the path of a file")
    if array.ndim != 2 or array.shape[1] != len(columns):
        raise ValueError(
            f"the array has shape {array.shape}; it must have a column for each of {', '.join(columns)}, in this order"
        )
    return list(columns), [[plain(value) for value in array[:, at].tolist()] for at in range(len(columns))]


def _columns(pairs: list[tuple[Any, Any]]) -> Columns:
    names = [str(name) for name, _ in pairs]
    columns = [[plain(value) for value in (column.tolist() if hasattr(column, "tolist") else column)] for _, column in pairs]
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise ValueError(f"the columns have {' and '.join(map(str, sorted(lengths)))} rows; they must be equally long")
    return names, columns


def plain(value: Any) -> Any:
    """A cell as a number, a text or None."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if value is None or isinstance(value, (int, float, str)):
        return value
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, (datetime.date, datetime.datetime)):
        # pandas' missing time is one too, and equals nothing.
        return value.isoformat() if value == value else None
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if type(value).__name__ == "Decimal":
        return float(value)
    return value
