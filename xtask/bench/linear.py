"""The linear core's algebra in numpy, and ridge in scikit-learn, one JSON line each: the other half of `cargo xtask bench`.

    linear.py deletion D     the closed form with the rows of XA^-1 kept, and retraining
    linear.py fit N D        scikit-learn's Ridge(solver="cholesky")

Threads are set by the caller through OMP_NUM_THREADS and OPENBLAS_NUM_THREADS.
"""

import json
import statistics
import sys
import time

import numpy as np

KS = [1, 5, 10, 30, 50, 100, 200]


def say(**fields):
    print(json.dumps(fields), flush=True)


def status(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))


def median(work):
    times = []
    start = time.perf_counter()
    while len(times) < 3 or (len(times) < 101 and time.perf_counter() - start < 0.4):
        trial = len(times)
        one = time.perf_counter()
        work(trial)
        times.append(time.perf_counter() - one)
    return statistics.median(times)


def regression(n, d):
    rng = np.random.default_rng(7)
    mix = rng.standard_normal((d, d)) / np.sqrt(d)
    x = rng.standard_normal((n, d)) @ mix.T
    y = x @ rng.standard_normal(d) + rng.standard_normal(n)
    return x, y


def ids(n, k, trial):
    return [(i * 7919 + trial * 104_729) % n for i in range(k)]


def deletion(d):
    n = 10 * d
    x, y = regression(n, d)

    def train():
        a = x.T @ x
        a[np.diag_indices(d)] += 1e-4
        return a, np.linalg.solve(a, x.T @ y)

    seconds = median(lambda _: train())
    say(what="numpy retrain", d=d, seconds=seconds, numpy=np.__version__)
    a, theta = train()
    z = np.linalg.solve(a, x.T).T.copy()
    for k in KS:

        def forget(trial):
            gone = ids(n, k, trial)
            xd, zd = x[gone], z[gone]
            error = np.linalg.solve(np.eye(k) - xd @ zd.T, y[gone] - xd @ theta)
            return theta - error @ zd

        say(what="numpy cell", d=d, k=k, seconds=median(forget))


def fit(n, d):
    import sklearn
    from sklearn.linear_model import Ridge

    x, y = regression(n, d)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = status("VmRSS:")
    seconds = median(lambda _: Ridge(alpha=1.0, solver="cholesky").fit(x, y))
    peak = status("VmHWM:")
    say(what="sklearn fit", n=n, d=d, seconds=seconds, peak=peak, peak_before=before, sklearn=sklearn.__version__)


if __name__ == "__main__":
    what, *numbers = sys.argv[1:]
    {"deletion": deletion, "fit": fit}[what](*map(int, numbers))
