"""What numpy and scikit-learn take where `speed` of the Rust benchmarks measures efface, as a table or one JSON line each.

    speed.py stream D [N COUNT] [--threads 1] [--json]   one row after another leaves, d columns
    speed.py fit N D [--threads 1,2,4] [--json]          X'X alone, scikit-learn's Ridge, and efface where it is installed

In a stream, `closed form` has the vectors of XA^-1 for all rows and never brings them up to date, so that only its first answer
is right; `kept inverse` brings A^-1 up to date by Sherman and Morrison. `PRU` and `INF` are the algorithms of Izzo et al. and of
Koh and Liang as Cao et al. print them, with the hat matrix and A^-1 given; their answers are approximate.
"""

import json
import os
import sys

words = sys.argv[1:]
as_json = "--json" in words
threads = next((words[at + 1] for at, word in enumerate(words) if word == "--threads"), "1")

if "," in threads:
    # Threads are fixed when numpy is loaded: one process for each number.
    import subprocess

    at = words.index("--threads")
    for count in threads.split(","):
        subprocess.run([sys.executable, __file__, *words[: at + 1], count, *words[at + 2 :]], check=True)
    sys.exit()

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = threads

import platform
import time

import numpy as np

try:
    import efface
except ImportError:
    efface = None

CAUSES = 10


def table(n, d, correlated):
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, (n, d))
    if correlated:
        x *= 0.1
        x += rng.uniform(-1, 1, (n, CAUSES)) @ rng.uniform(-1, 1, (CAUSES, d))
    return x, x @ rng.uniform(-1, 1, d) + rng.uniform(-1, 1, n)


def say(fields):
    if as_json:
        print(json.dumps(fields), flush=True)
    else:
        print(" | ".join(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in fields.items()), flush=True)


def spread_of(times):
    times = np.sort(np.array(times))
    return {"p50": float(times[len(times) // 2]), "p99": float(times[int(len(times) * 0.99)]), "mean": float(times.mean())}


def timed(work, rows):
    """Processor time where there is one thread, so that other programs do not count; the time of day otherwise."""
    clock = time.thread_time if threads == "1" else time.perf_counter
    times = []
    for row in rows:
        start = clock()
        work(row)
        times.append(clock() - start)
    return spread_of(times)


def stream(d, n=None, count=None):
    d = int(d)
    n = int(n or 10 * d)
    count = int(count or 200)
    for correlated in (False, True):
        x, y = table(n, d, correlated)
        kind = "correlated" if correlated else "independent"
        inverse = np.linalg.inv(x.T @ x + np.eye(d))
        theta = inverse @ (x.T @ y)
        rows = [i * 7919 % n for i in range(count)]
        z = {i: x[i] @ inverse for i in rows}
        state = {"theta": theta.copy(), "inverse": inverse.copy()}

        def closed_form(i):
            return theta - z[i] * ((y[i] - x[i] @ theta) / (1 - x[i] @ z[i]))

        def kept_inverse(i):
            solved = state["inverse"] @ x[i]
            left = 1 - x[i] @ solved
            state["theta"] = state["theta"] - solved * ((y[i] - x[i] @ state["theta"]) / left)
            state["inverse"] += np.outer(solved, solved / left)

        def influence(i):
            return theta - inverse @ (x[i] * (y[i] - x[i] @ theta))

        def projection_residual(i):
            # One row: its leave-one-out prediction from its leverage, then a step along the row alone.
            error = y[i] - x[i] @ theta
            predicted = y[i] - error / (1 - x[i] @ z[i])
            return theta - x[i] * ((x[i] @ theta - predicted) / (x[i] @ x[i]))

        for name, work in (("closed form", closed_form), ("kept inverse", kept_inverse), ("INF", influence), ("PRU", projection_residual)):
            say({"what": "numpy stream", "d": d, "n": n, "columns": kind, "threads": int(threads), "who": name, **timed(work, rows)})
        if efface is not None:
            model = efface.Ridge(n_jobs=int(threads)).fit(x, y)
            say({"what": "python stream", "d": d, "n": n, "columns": kind, "threads": int(threads), "who": "efface.Ridge.forget", **timed(model.forget, rows)})


def least(work, runs=3):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def fit(n, d):
    import sklearn
    from sklearn.linear_model import Ridge

    x, y = table(int(n), int(d), False)
    fields = {
        "what": "numpy fit", "n": int(n), "d": int(d), "threads": int(threads), "X'X": least(lambda: x.T @ x),
        f"scikit-learn {sklearn.__version__}": least(lambda: Ridge(solver="cholesky").fit(x, y)),
    }
    if efface is not None:
        fields["efface"] = least(lambda: efface.Ridge(n_jobs=int(threads)).fit(x, y))
        single = x.astype(np.float32)
        fields["efface, float32"] = least(lambda: efface.Ridge(n_jobs=int(threads)).fit(single, y))
        fields["efface/X'X"] = fields["efface"] / fields["X'X"]
    say(fields)


if __name__ == "__main__":
    plain = [word for at, word in enumerate(words) if not word.startswith("--") and (at == 0 or words[at - 1] != "--threads")]
    if not as_json:
        print(f"# {platform.processor() or platform.machine()}, numpy {np.__version__}, {threads} threads", flush=True)
    {"stream": stream, "fit": fit}[plain[0]](*plain[1:])
