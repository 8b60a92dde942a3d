"""The sums of one table on every engine, two workers each: seconds without start-up, beside a plain loop over the files.

    cargo xtask engines bench [ROWS COLUMNS [ENGINE ...]]

ENGINE is one of those named in the first column of the table; the loop always runs, because all others are told as shares of it.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from efface import Statistics, engines


def write(folder: Path, rows: int, columns: int, parts: int = 8) -> list[str]:
    names = [f"x{j}" for j in range(columns)]
    for part in range(parts):
        rng = np.random.default_rng(part)
        x = rng.normal(size=(rows // parts, columns))
        table = {name: x[:, j] for j, name in enumerate(names)}
        pq.write_table(pa.table({**table, "y": x.sum(axis=1) + rng.normal(size=len(x))}), folder / f"{part}.parquet")
    return names


def timed(run: Callable[[Statistics], Statistics], spec: Statistics) -> tuple[float, Statistics]:
    best = float("inf")
    for _ in range(2):
        started = time.perf_counter()
        found = run(spec)
        best = min(best, time.perf_counter() - started)
    return best, found


def main() -> None:
    rows, columns = (int(a) for a in sys.argv[1:3]) if len(sys.argv) > 2 else (1_000_000, 100)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = write(folder, rows, columns)
        plain = Statistics(names, "y", n_jobs=-1)
        ranges = engines.arrow(lambda: ds.dataset(folder).to_batches(), Statistics(names, "y", reproducible=True)).ranges
        exact = Statistics(names, "y", reproducible=True, ranges=ranges, n_jobs=-1)
        print(f"{rows} x {columns}, {os.cpu_count()} cores; seconds without start-up, the better of two")
        print("| engine | sums | reproducible sums | of the loop | sha-256 |\n|---|---|---|---|---|")
        base = 0.0
        wanted = [LOOP, *(sys.argv[3:] or list(STARTS)[1:])]
        for label, start in ((label, STARTS[label]) for label in wanted):
            run, stop = start(folder)
            try:
                seconds, found = timed(run, plain)
                exactly, summed = timed(run, exact)
            finally:
                stop()
            base = base or seconds
            digest = hashlib.sha256(bytes(summed)).hexdigest()[:12]
            print(f"| {label} | {seconds:.2f} | {exactly:.2f} | {seconds / base:.2f} | {digest} |", flush=True)
            assert found.rows == rows


LOOP = "a loop over the files"


def nothing() -> None:
    pass


def loop(folder: Path):
    return lambda spec: engines.arrow(lambda: ds.dataset(folder).to_batches(), spec), nothing


def polars_engine(folder: Path):
    import polars

    return lambda spec: engines.polars(polars.scan_parquet(folder / "*.parquet"), spec), nothing


def duckdb_engine(folder: Path):
    import duckdb

    return lambda spec: engines.duckdb(duckdb.sql(f"SELECT * FROM '{folder}/*.parquet'"), spec), nothing


def sail_engine(folder: Path):
    os.environ["SAIL_MODE"] = "local-cluster"
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer()
    server.start(background=True)
    spark = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()

    def stop() -> None:
        spark.stop()
        server.stop()

    return lambda spec: engines.spark(spark.read.parquet(str(folder)), spec), stop


def ray_engine(folder: Path):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    return lambda spec: engines.ray(ray.data.read_parquet(str(folder)), spec), ray.shutdown


def dask_engine(folder: Path):
    import dask.dataframe

    return lambda spec: engines.dask(dask.dataframe.read_parquet(folder), spec), nothing


def daft_engine(folder: Path):
    import daft

    return lambda spec: engines.daft(daft.read_parquet(f"{folder}/*.parquet"), spec), nothing


def datafusion_engine(folder: Path):
    import datafusion

    session = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(2))
    return lambda spec: engines.datafusion(session.read_parquet(str(folder)), spec), nothing


STARTS = {
    LOOP: loop,
    "Polars": polars_engine,
    "DuckDB": duckdb_engine,
    "Sail, local cluster": sail_engine,
    "Ray": ray_engine,
    "Dask": dask_engine,
    "Daft": daft_engine,
    "DataFusion": datafusion_engine,
}

if __name__ == "__main__":
    main()
