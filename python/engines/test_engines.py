"""All engines on loopback: however they share rows out, the bytes are the same. `cargo xtask engines` installs and runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import efface
from efface import Statistics, engines

KEY = bytes(range(32))
ROWS = 60_000
FEATURES = [f"x{j}" for j in range(12)]


def make_table(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(rows, len(FEATURES))) * np.geomspace(1e-3, 1e3, len(FEATURES)) + 50
    y = x @ np.geomspace(1e3, 1e-3, len(FEATURES)) + rng.normal(size=rows)
    columns = {name: x[:, j] for j, name in enumerate(FEATURES)}
    return pa.table({**columns, "y": y, "id": [f"row {i}" for i in range(rows)]})


def make_spec(**options: object) -> Statistics:
    return Statistics(FEATURES, "y", row_id="id", key=KEY, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    table = make_table()
    for part, start in enumerate(range(0, ROWS, 17_000)):
        pq.write_table(table.slice(start, 17_000), folder / f"{part}.parquet", row_group_size=4_000)
    return folder


def on_arrow(folder: Path, spec: Statistics) -> Statistics:
    return engines.arrow(lambda: (pq.read_table(part) for part in sorted(folder.iterdir())), spec)


def on_polars(folder: Path, spec: Statistics) -> Statistics:
    import polars

    return engines.polars(polars.scan_parquet(folder / "*.parquet"), spec)


def on_duckdb(folder: Path, spec: Statistics) -> Statistics:
    import duckdb

    return engines.duckdb(duckdb.sql(f"SELECT * FROM '{folder}/*.parquet' ORDER BY y"), spec)


def on_sail(folder: Path, spec: Statistics) -> Statistics:
    """Sail in cluster mode, a driver and its workers in one process, spoken to as Spark is."""
    os.environ["SAIL_MODE"] = "local-cluster"
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer()
    server.start(background=True)
    try:
        _, port = server.listening_address
        spark = SparkSession.builder.remote(f"sc://localhost:{port}").getOrCreate()
        try:
            return engines.spark(spark.read.parquet(str(folder)), spec)
        finally:
            spark.stop()
    finally:
        server.stop()


def on_ray(folder: Path, spec: Statistics) -> Statistics:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        return engines.ray(ray.data.read_parquet(str(folder)), spec, batch_rows=9_000)
    finally:
        ray.shutdown()


def on_dask(folder: Path, spec: Statistics) -> Statistics:
    import dask.dataframe

    return engines.dask(dask.dataframe.read_parquet(folder), spec)


def on_daft(folder: Path, spec: Statistics) -> Statistics:
    import daft

    return engines.daft(daft.read_parquet(f"{folder}/*.parquet"), spec)


def on_datafusion(folder: Path, spec: Statistics) -> Statistics:
    import datafusion

    return engines.datafusion(datafusion.SessionContext().read_parquet(str(folder)), spec)


ENGINES = [on_arrow, on_polars, on_duckdb, on_sail, on_ray, on_dask, on_daft, on_datafusion]


@pytest.fixture(scope="module")
def truth() -> dict[bool, Statistics]:
    table = make_table()
    ranges = make_spec().ranges_of(table)
    # Shuffled and in one batch, on one thread.
    shuffled = table.take(np.random.default_rng(2).permutation(ROWS))
    return {True: make_spec(reproducible=True, ranges=ranges).update(shuffled), False: make_spec().update(shuffled)}


@pytest.mark.parametrize("run", ENGINES)
@pytest.mark.parametrize("reproducible", [True, False])
def test_every_engine_gives_the_sums_of_one_process(run, reproducible, folder, truth) -> None:
    found = run(folder, make_spec(reproducible=reproducible))
    wanted = truth[reproducible]
    assert found.rows == ROWS
    assert found.training_set() == wanted.training_set()
    if reproducible:
        assert bytes(found) == bytes(wanted)
    else:
        coef, expected = found.ridge().coef_, wanted.ridge().coef_
        assert np.linalg.norm(coef - expected) <= 1e-12 * np.linalg.norm(expected)


def fitting_session(folder: Path, spec: Statistics):
    """A session in which `efface_fit` sums the columns of a specification, and `rows` are the rows."""
    import datafusion
    import efface_datafusion

    session = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(3))
    session.register_udaf(datafusion.udaf(efface_datafusion.Fit(bytes(spec))))
    session.register_parquet("rows", str(folder))
    return session


def queried(session, query: str) -> list[bytes]:
    return [value for batch in session.sql(query).collect() for value in batch.column(0).to_pylist()]


ALL_COLUMNS = ", ".join(["y", *FEATURES])


@pytest.mark.parametrize("reproducible", [True, False])
def test_a_query_of_datafusion_gives_the_sums_of_one_process(reproducible, folder) -> None:
    table = make_table()
    ranges = Statistics(FEATURES, "y").ranges_of(table) if reproducible else None
    spec = Statistics(FEATURES, "y", reproducible=reproducible, ranges=ranges)
    wanted = spec.empty().update(table)
    [found] = queried(fitting_session(folder, spec), f"SELECT efface_fit({ALL_COLUMNS}) FROM rows")
    sums = Statistics.from_bytes(found)
    assert (sums.rows, sums.features, sums.targets, sums.reproducible) == (ROWS, FEATURES, ["y"], reproducible)
    if reproducible:
        assert found == bytes(wanted)
    coef, expected = sums.ridge().coef_, wanted.ridge().coef_
    assert np.linalg.norm(coef - expected) <= 1e-12 * np.linalg.norm(expected)
    # Groups and conditions are the engine's own business.
    session = fitting_session(folder, spec)
    groups = queried(session, f"SELECT efface_fit({ALL_COLUMNS}) FROM rows GROUP BY x0 > 50")
    assert len(groups) == 2
    assert spec.merged(groups).rows == ROWS
    [none] = queried(session, f"SELECT efface_fit({ALL_COLUMNS}) FROM rows WHERE y IS NULL")
    assert Statistics.from_bytes(none).rows == 0


def test_a_query_that_cannot_be_summed_is_an_error(folder, tmp_path) -> None:
    import efface_datafusion

    spec = Statistics(FEATURES, "y")
    session = fitting_session(folder, spec)
    for query, says in [
        ("SELECT efface_fit(y, x0) FROM rows", "efface_fit"),
        (f"SELECT efface_fit(DISTINCT {ALL_COLUMNS}) FROM rows", "DISTINCT"),
        (f"SELECT efface_fit({ALL_COLUMNS.replace('x3', 'nullif(x3, x3)')}) FROM rows", "missing values"),
        (f"SELECT efface_fit({ALL_COLUMNS.replace('x3', 'x3 / 0.0')}) FROM rows", "x3"),
    ]:
        with pytest.raises(Exception, match=says):
            queried(session, query)
    narrow = Statistics(FEATURES, "y", reproducible=True, ranges={name: (0.0, 1.0) for name in [*FEATURES, "y"]})
    with pytest.raises(Exception, match="wide enough"):
        queried(fitting_session(folder, narrow), f"SELECT efface_fit({ALL_COLUMNS}) FROM rows")
    for bad, says in [
        (b"", "end early"),
        (bytes(spec)[:-1] + b"x", "checksum"),
        (bytes(make_spec()), "row_id"),
        (bytes(spec.empty().update(make_table(10))), "rows already"),
    ]:
        with pytest.raises(ValueError, match=says):
            efface_datafusion.Fit(bad)


def test_a_file_with_another_schema_is_an_error(folder, tmp_path) -> None:
    for part in folder.iterdir():
        (tmp_path / part.name).write_bytes(part.read_bytes())
    table = make_table(100).drop_columns(["x3"])
    pq.write_table(table, tmp_path / "9.parquet")
    with pytest.raises(ValueError, match=r"no columns \['x3'\]"):
        on_arrow(tmp_path, make_spec())
    with pytest.raises(Exception, match="x3"):
        on_duckdb(tmp_path, make_spec())


def test_a_corrupt_row_group_is_an_error(folder, tmp_path) -> None:
    part = bytearray((folder / "0.parquet").read_bytes())
    part[1000:60_000] = os.urandom(59_000)
    (tmp_path / "0.parquet").write_bytes(part)
    with pytest.raises(Exception):
        on_arrow(tmp_path, make_spec())
    with pytest.raises(Exception):
        on_polars(tmp_path, make_spec())


def test_a_scheduler_that_is_gone_is_an_error(folder, tmp_path) -> None:
    """The server is killed before the job: the job fails, and there are no sums."""
    code = f"""
import os
os.environ["SAIL_MODE"] = "local-cluster"
from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession
from pyspark.sql.connect.client.retries import DefaultPolicy
import efface
server = SparkConnectServer()
server.start(background=True)
spark = SparkSession.builder.remote("sc://localhost:%d" % server.listening_address[1]).getOrCreate()
spark.client.set_retry_policies([DefaultPolicy(max_retries=1)])
frame = spark.read.parquet({str(folder)!r})
server.stop()
efface.engines.spark(frame, efface.Statistics(["x0"], "y"))
"""
    environment = {**os.environ, "GRPC_VERBOSITY": "NONE"}
    script = tmp_path / "job.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, timeout=900)
    assert done.returncode != 0
    assert "StatusCode.UNAVAILABLE" in done.stderr, done.stderr[-500:]


def test_a_cluster_that_loses_a_worker_ends_with_the_right_sums() -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "cluster.py"), "--kill"], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "a worker was killed" in done.stdout
    assert "the same sums as in one process" in done.stdout


def test_the_package_is_the_one_under_test() -> None:
    assert efface.__version__
