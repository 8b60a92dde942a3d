"""The Python package beside scikit-learn, in one run: fits, forgetting one row, and what a call costs over Rust.

    python package.py [fit] [forget] [call] [stream]

Times are the least of several runs, the two sides in turn, so that other work on the machine weighs on both. Both have one
thread: OpenBLAS with more of them waits by spinning, and suffers out of proportion on a busy machine.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    # Read when numpy is loaded.
    os.environ[name] = "1"

import numpy as np
import sklearn
from sklearn import cluster, linear_model, naive_bayes

import efface

JOBS = 1


def least(runs, *works):
    """The least time of each work over rounds in which all take turns."""
    best = [float("inf")] * len(works)
    for _ in range(runs):
        for at, work in enumerate(works):
            started = time.perf_counter()
            work()
            best[at] = min(best[at], time.perf_counter() - started)
    return best


def problem(rows, width, kind=np.float64):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, width)).astype(kind)
    y = X @ rng.normal(size=width) + rng.normal(size=rows)
    return X, y


def fits():
    print(f"\n## Fit beside scikit-learn {sklearn.__version__}, one thread\n")
    print("| model | rows × features | efface | scikit-learn | efface ÷ scikit-learn |\n|---|---|---|---|---|")

    def line(name, shape, ours, theirs, runs=3):
        a, b = least(runs, ours, theirs)
        print(f"| {name} | {shape[0]:,} × {shape[1]} | {a:.3f} s | {b:.3f} s | {a / b:.2f} |", flush=True)

    for kind in (np.float64, np.float32):
        X, y = problem(100_000, 500, kind)
        line(
            f"Ridge, {np.dtype(kind).name}",
            X.shape,
            lambda: efface.Ridge(n_jobs=JOBS).fit(X, y),
            lambda: linear_model.Ridge(solver="cholesky").fit(X, y.astype(kind)),
        )
    X, y = problem(20_000, 100)
    labels = y > 0.5
    line(
        "RidgeClassifier",
        X.shape,
        lambda: efface.RidgeClassifier(n_jobs=JOBS).fit(X, labels),
        lambda: linear_model.RidgeClassifier(solver="cholesky").fit(X, labels),
    )
    newton = linear_model.LogisticRegression(solver="newton-cholesky", tol=1e-8)
    line(
        "LogisticRegression (both to the optimum: newton-cholesky, tol 1e-8)",
        X.shape,
        lambda: efface.LogisticRegression(n_jobs=JOBS).fit(X, labels),
        lambda: newton.fit(X, labels),
    )
    line(
        "LogisticRegression (scikit-learn as it comes: lbfgs, tol 1e-4)",
        X.shape,
        lambda: efface.LogisticRegression(n_jobs=JOBS).fit(X, labels),
        lambda: linear_model.LogisticRegression().fit(X, labels),
    )
    many = np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75]))
    line(
        "LogisticRegression, 4 classes (newton-cholesky, tol 1e-8)",
        X[:, :40].shape,
        lambda: efface.LogisticRegression(n_jobs=JOBS).fit(X[:, :40], many),
        lambda: newton.fit(X[:, :40], many),
    )
    line(
        "GaussianNB",
        X.shape,
        lambda: efface.GaussianNB().fit(X, labels),
        lambda: naive_bayes.GaussianNB().fit(X, labels),
    )
    counts = np.random.default_rng(0).poisson(0.3, size=(20_000, 100)).astype(float)
    line(
        "MultinomialNB",
        counts.shape,
        lambda: efface.MultinomialNB().fit(counts, labels),
        lambda: naive_bayes.MultinomialNB().fit(counts, labels),
    )
    line(
        "KMeans, 8 clusters, 10 iterations",
        X.shape,
        lambda: efface.KMeans(8, max_iter=10).fit(X),
        lambda: cluster.KMeans(8, max_iter=10, n_init=1, random_state=0).fit(X),
    )
    a = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"\nLargest resident size of the run: {a / 1e6:.2f} GB.")


def forgets():
    X, y = problem(100_000, 500)
    model = efface.Ridge(n_jobs=JOBS).fit(X, y)
    model.forget(99_999)
    times = []
    for row in range(400):
        started = time.perf_counter()
        model.forget(row)
        times.append(time.perf_counter() - started)
    stays = np.ones(len(X), dtype=bool)
    stays[:400] = stays[99_999] = False
    kept, targets = X[stays], y[stays]
    theirs = linear_model.Ridge(solver="cholesky")
    (refit,) = least(3, lambda: theirs.fit(kept, targets))
    distance = np.linalg.norm(model.coef_ - theirs.coef_) / np.linalg.norm(theirs.coef_)
    each = float(np.median(times))
    print("\n## Forgetting one row, n = 100,000, d = 500\n")
    print(f"Refitting with scikit-learn: {refit:.3f} s. `forget(row)` from Python: {each * 1e6:.0f} µs (median of 400; mean")
    print(f"{np.mean(times) * 1e6:.0f} µs, the folding of every 62nd request included): {refit / each:,.0f}× faster by the")
    print(f"median, {refit / np.mean(times):,.0f}× by the mean. Relative distance of the coefficients afterwards: {distance:.1e}.")


def calls():
    print("\n## What a call of `forget` costs over Rust\n")
    print("| rows × features | form | in Rust | from Python | over Rust |\n|---|---|---|---|---|")
    for rows, width, form in [(20_000, 20, "factor"), (20_000, 100, "factor"), (20_000, 100, "rows")]:
        X, y = problem(rows, width)
        # The two sides take turns on twin models, so that both see the same machine.
        ours, native = (efface.Ridge(form=form).fit(X, y) for _ in range(2))
        seconds, inside = [], []
        for row in range(4000):
            started = time.perf_counter()
            ours.forget(row)
            seconds.append(time.perf_counter() - started)
            inside.extend(native._held().model.time_forget(np.array([row], dtype=np.uint64)))
        a, b = float(np.median(inside)) * 1e6, float(np.median(seconds)) * 1e6
        print(f"| {rows:,} × {width} | {form} | {a:.1f} µs | {b:.1f} µs | {b - a:.1f} µs |", flush=True)


def streams():
    """One row after another, beside what numpy takes for its closed forms on the same table."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "speed.py")
    for width, rows, count in [(1000, 12_000, 10_000), (3000, 12_000, 2000)]:
        print(f"\n## {count:,} rows forgotten one after another from Python, {rows:,} × {width:,}\n", flush=True)
        subprocess.run([sys.executable, script, "stream", str(width), str(rows), str(count)], check=True)


PARTS = {"fit": fits, "forget": forgets, "call": calls, "stream": streams}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
