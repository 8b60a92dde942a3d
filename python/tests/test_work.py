"""Long work: the interpreter's lock is free, and Ctrl-C is heard."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

import efface

rng = np.random.default_rng(0)


def long_fit():
    # Far more work than the test waits for: a run over the rows for each of many thousand shards.
    x = rng.normal(size=(60_000, 60))
    return lambda: efface.Sisa(efface.LogisticRegression(), n_shards=2, n_slices=200).fit(x, x[:, 0] > 0)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
@pytest.mark.parametrize("kind", ["sisa", "kmeans"])
def test_an_interrupt_ends_a_fit(kind):
    if kind == "sisa":
        fit = long_fit()
    else:
        x = rng.normal(size=(100_000, 40))
        fit = lambda: efface.KMeans(200, max_iter=500, cell=1e-6).fit(x)  # noqa: E731
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    started = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            fit()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - started < 20


def test_other_threads_run_during_a_fit():
    x = rng.normal(size=(40_000, 150))
    counted = 0
    done = threading.Event()

    def count():
        nonlocal counted
        while not done.is_set():
            counted += 1

    other = threading.Thread(target=count)
    other.start()
    efface.Ridge().fit(x, x[:, 0])
    seen = counted
    done.set()
    other.join()
    assert seen > 1000


def test_many_threads_may_forget_from_one_model():
    x = rng.normal(size=(400, 5))
    y = x @ np.arange(5.0)
    model = efface.Ridge().fit(x, y)
    threads = [
        threading.Thread(target=lambda at=at: [model.forget(row) for row in range(at, 200, 4)]) for at in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert model.n_rows_ == 200
    assert np.allclose(model.coef_, efface.Ridge().fit(x[200:], y[200:]).coef_, atol=1e-9)
