"""The sums of a model on the engine that the data is in already.

Every function takes the engine's own frame and empty `Statistics`, and gives the statistics of all its rows. Workers send sums, not
rows. With ``reproducible=True`` all engines give the same bytes; the ranges of the columns are found by a pass of its own unless they
were given.

>>> import polars as pl, efface  # doctest: +SKIP
>>> spec = efface.Statistics(["a", "b"], "y", reproducible=True)  # doctest: +SKIP
>>> efface.engines.polars(pl.scan_parquet("rows/*.parquet"), spec).ridge(alpha=1.0)  # doctest: +SKIP

A worker must have this package in the same version; another one is an error and no wrong sum.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._core import __version__
from .statistics import Ranges, Statistics, merged_ranges

__all__ = ["arrow", "daft", "dask", "datafusion", "duckdb", "polars", "ray", "spark"]


class _Task:
    """What a worker does with its batches; it travels to the worker, and what it gives back are bytes."""

    def __init__(self, spec: Statistics, find_ranges: bool) -> None:
        self.spec = spec
        self.find_ranges = find_ranges
        self.version = __version__

    def __call__(self, batches: Iterable[Any]) -> bytes:
        import efface

        if efface.__version__ != self.version:
            raise RuntimeError(
                f"this worker has efface {efface.__version__} and the driver {self.version}; install one version everywhere"
            )
        if self.find_ranges:
            return json.dumps(self.spec.ranges_of(batches)).encode()
        return bytes(self.spec.empty().update(batches))


def _collect(spec: Statistics, run: Callable[[_Task], Iterable[bytes]]) -> Statistics:
    """One pass over the rows, or two where the ranges are not known."""
    if spec.rows:
        raise ValueError("these statistics have rows already; give empty ones, and merge the result")
    if spec.reproducible and spec.ranges is None:
        found: list[Ranges] = [
            {name: (low, high) for name, (low, high) in json.loads(part).items()} for part in run(_Task(spec, True))
        ]
        ranges = merged_ranges(found)
        if not ranges:
            raise ValueError("there are no rows; a model needs at least one")
        spec = spec.empty(ranges)
    return spec.merged(run(_Task(spec, False)))


def arrow(make_batches: Callable[[], Iterable[Any]], spec: Statistics) -> Statistics:
    """A stream of Arrow batches in this process. ``make_batches`` begins a new pass each time that it is called."""
    return _collect(spec, lambda task: [task(make_batches())])


def polars(frame: Any, spec: Statistics) -> Statistics:
    """A Polars ``LazyFrame`` or ``DataFrame``, batch by batch."""
    columns = _columns(spec)

    def run(task: _Task) -> list[bytes]:
        lazy = frame.lazy().select(columns)
        return [task(batch.to_arrow() for batch in lazy.collect_batches())]

    return _collect(spec, run)


def duckdb(relation: Any, spec: Statistics, *, batch_rows: int = 100_000) -> Statistics:
    """A DuckDB relation, such as ``duckdb.sql("SELECT * FROM 'rows/*.parquet'")``."""
    chosen = relation.select(*(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in _columns(spec)))
    return _collect(spec, lambda task: [task(chosen.to_arrow_reader(batch_rows))])


def spark(frame: Any, spec: Statistics) -> Statistics:
    """A Spark or Sail ``DataFrame``: one worker a partition, by ``mapInArrow``."""

    def run(task: _Task) -> list[bytes]:
        def work(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            yield pa.record_batch({"statistics": pa.array([task(batches)], pa.binary())})

        rows = frame.select(*_columns(spec)).mapInArrow(work, "statistics binary").collect()
        return [bytes(row["statistics"]) for row in rows]

    return _collect(spec, run)


def ray(dataset: Any, spec: Statistics, *, batch_rows: int | None = None) -> Statistics:
    """A Ray ``Dataset``: blocks as they are read, or batches of so many rows."""

    def run(task: _Task) -> list[bytes]:
        def work(table: Any) -> Any:
            import pyarrow as pa

            return pa.table({"statistics": pa.array([task([table])], pa.binary())})

        chosen = dataset.select_columns(_columns(spec))
        parts = chosen.map_batches(work, batch_format="pyarrow", batch_size=batch_rows)
        return [bytes(row["statistics"]) for row in parts.iter_rows()]

    return _collect(spec, run)


def dask(frame: Any, spec: Statistics) -> Statistics:
    """A Dask ``DataFrame``: one task a partition."""
    import dask as dask_package

    def run(task: _Task) -> list[bytes]:
        def work(partition: Any) -> bytes:
            import pyarrow as pa

            return task([pa.Table.from_pandas(partition, preserve_index=False)])

        parts = [dask_package.delayed(work)(part) for part in frame[_columns(spec)].to_delayed()]
        return list(dask_package.compute(*parts))

    return _collect(spec, run)


def daft(frame: Any, spec: Statistics) -> Statistics:
    """A Daft ``DataFrame``, partition by partition."""

    def run(task: _Task) -> list[bytes]:
        chosen = frame.select(*_columns(spec))
        return [task([part.to_arrow()]) for part in chosen.iter_partitions()]

    return _collect(spec, run)


def datafusion(frame: Any, spec: Statistics) -> Statistics:
    """A DataFusion ``DataFrame``: every partition sums its own rows, by the aggregate function of the package ``efface-datafusion``.

    Rows with ids or weights come to this process batch by batch instead: a query has nowhere to keep commitments.
    """
    columns = spec.targets + spec.features

    def run(task: _Task) -> list[bytes]:
        if task.find_ranges or spec.row_id or spec.weight:
            return [task(batch.to_pyarrow() for batch in frame.select(*_quoted(_columns(spec))).execute_stream())]
        from datafusion import col, udaf
        from efface_datafusion import Fit

        fit = udaf(Fit(bytes(task.spec)))
        summed = frame.aggregate([], [fit(*(col(name) for name in _quoted(columns))).alias("statistics")])
        return [bytes(value) for batch in summed.collect() for value in batch.column("statistics").to_pylist()]

    return _collect(spec, run)


def _quoted(names: list[str]) -> list[str]:
    """Names as DataFusion reads them to the letter."""
    return ['"' + name.replace('"', '""') + '"' for name in names]


def _columns(spec: Statistics) -> list[str]:
    others = [name for name in (spec.row_id, spec.weight) if name]
    return spec.features + spec.targets + others
