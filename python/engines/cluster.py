"""A cluster on loopback: a driver, two workers, a model of all their rows; with --kill, one worker is killed in mid-job.

    python cluster.py [--rows N] [--kill]

The engine is Ray, whose nodes are processes of their own; tasks of a node that is gone are done again on another. Rows have ids, so
that a task whose sums arrived twice would be found out when they are merged.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
from ray.cluster_utils import Cluster

from efface import Statistics, engines

FEATURES = [f"x{j}" for j in range(20)]


def write_rows(folder: Path, rows: int, parts: int) -> None:
    """Files of rows, as a lake holds them."""
    for part in range(parts):
        rng = np.random.default_rng(part)
        x = rng.normal(size=(rows // parts, len(FEATURES)))
        y = x.sum(axis=1) + rng.normal(size=len(x))
        names = [f"{part}-{i}" for i in range(len(x))]
        columns = {name: x[:, j] for j, name in enumerate(FEATURES)}
        pq.write_table(pa.table({**columns, "y": y, "id": names}), folder / f"{part}.parquet")


def read_file(batch: pa.Table) -> pa.Table:
    return pq.read_table(batch["path"][0].as_py())


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=200_000)
    arguments.add_argument("--kill", action="store_true", help="kill a worker in mid-job")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder, options.rows, parts=16)
        spec = Statistics(FEATURES, "y", row_id="id", key=os.urandom(32), reproducible=True)
        alone = engines.arrow(lambda: (pq.read_table(part) for part in sorted(folder.iterdir())), spec)

        # The driver's own node does no work: all tasks are the workers'.
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        workers = [cluster.add_node(num_cpus=1) for _ in range(2)]
        ray.init(address=cluster.address, log_to_driver=False)
        started = time.perf_counter()
        # Ray's own reader asks for the footers of files by an actor, which is not started again where its node is lost; tasks are.
        paths = [{"path": str(path)} for path in sorted(folder.iterdir())]
        rows = ray.data.from_items(paths, override_num_blocks=len(paths)).map_batches(read_file, batch_format="pyarrow", batch_size=1)
        try:
            # Nodes can be added by the main thread alone, so that the job has another.
            with ThreadPoolExecutor(1) as threads:
                job = threads.submit(engines.ray, rows, spec, batch_rows=options.rows // 64)
                if options.kill:
                    kill_when_busy(cluster, workers[0], job)
                statistics = job.result()
        finally:
            ray.shutdown()
            cluster.shutdown()
        print(f"{statistics.rows} rows on two workers in {time.perf_counter() - started:.1f} s")
        if bytes(statistics) != bytes(alone):
            raise SystemExit("the sums differ from those of one process")
        print("the same sums as in one process, to the last bit")
        model = statistics.ridge(alpha=1.0)
        print(f"coefficients from {model.coef_.min():.4f} to {model.coef_.max():.4f}, bound {model.relative_bound_:.1e}")


def kill_when_busy(cluster: Cluster, worker: object, job: Future[Statistics]) -> None:
    """Kills a worker's node, with no warning, once the job has taken a processor; none where the job is over before that is seen."""
    while ray.available_resources().get("CPU", 0) > 1:
        if wait([job], timeout=0.01).done:
            return
    os.kill(worker.all_processes["raylet"][0].process.pid, signal.SIGKILL)  # type: ignore[attr-defined]
    print("a worker was killed", flush=True)
    # Another takes its place, as a manager of clusters would see to.
    cluster.add_node(num_cpus=1)


if __name__ == "__main__":
    main()
