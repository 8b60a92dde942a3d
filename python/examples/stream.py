"""A stream of deletions: people leave one after another, and the model is always that of those who stayed.

    python stream.py [--rows 20000] [--deletions 2000]

Prints what a deletion costs, the largest distance to retraining that any of them reported, and the distance that a
retraining at the end finds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import efface


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=20_000)
    options.add_argument("--deletions", type=int, default=2_000)
    asked = options.parse_args()

    rng = np.random.default_rng(0)
    X = rng.normal(size=(asked.rows, 100))
    y = X @ rng.normal(size=100) + rng.normal(size=asked.rows)
    people = rng.permutation(asked.rows)

    model = efface.Ridge(alpha=1.0).fit(X, y, row_ids=np.arange(asked.rows))
    started = time.perf_counter()
    largest = 0.0
    for person in people[: asked.deletions].tolist():
        largest = max(largest, model.forget(person).relative_bound)
    each = (time.perf_counter() - started) / asked.deletions

    stays = np.sort(people[asked.deletions :])
    fresh = efface.Ridge(alpha=1.0).fit(X[stays], y[stays])
    distance = float(np.linalg.norm(model.coef_ - fresh.coef_) / np.linalg.norm(fresh.coef_))
    print(f"{asked.deletions} deletions from {asked.rows} rows, {each * 1e6:.0f} µs each")
    print(f"largest relative bound reported: {largest:.1e}; distance to retraining at the end: {distance:.1e}")
    assert distance <= max(largest, 1e-12)


if __name__ == "__main__":
    main()
