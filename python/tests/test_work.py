"""Long work: the interpreter's lock is free, and Ctrl-C is heard."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import efface

rng = np.random.default_rng(0)


def interrupted(work, waits_for):
    """Runs `work`, with Ctrl-C from a second thread once the native half is at work.

    The second thread can run only when the first gives up the interpreter's lock. After `waits_for` is set, that is when
    the native half lets go of it, because the interpreter itself never switches threads in the meantime.
    """
    other = threading.Thread(target=lambda: (waits_for.wait(), _thread.interrupt_main()))
    interval = sys.getswitchinterval()
    # A shell that starts the tests in the background tells them to ignore Ctrl-C.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    other.start()
    sys.setswitchinterval(1e6)
    spent = time.process_time()
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        sys.setswitchinterval(interval)
        other.join()
        signal.signal(signal.SIGINT, handler)
    # Processor time, of which other work on the machine takes none. To its end, the work would take minutes of it.
    assert time.process_time() - spent < 40


def announced(kind):
    """An estimator class that says when its fit is about to enter the native half."""
    begun = threading.Event()

    class Announced(kind):
        def _recipe(self, outputs):
            recipe = super()._recipe(outputs)
            begun.set()
            return recipe

    # scikit-learn reads the names of settings from the constructor.
    Announced.__init__ = kind.__init__
    return Announced, begun


def many_shards(kind=efface.Sisa):
    # A training of the rows for each of 400 slices.
    return kind(efface.LogisticRegression(), n_shards=2, n_slices=200)


@pytest.mark.parametrize("kind", ["sisa", "kmeans"])
def test_an_interrupt_ends_a_fit(kind):
    if kind == "sisa":
        x = rng.normal(size=(60_000, 60))
        made, begun = announced(efface.Sisa)
        model = many_shards(made)
        fit = lambda: model.fit(x, x[:, 0] > 0)  # noqa: E731
    else:
        x = rng.normal(size=(100_000, 40))
        made, begun = announced(efface.KMeans)
        model = made(400, max_iter=2000, cell=1e-6)
        fit = lambda: model.fit(x)  # noqa: E731
    interrupted(fit, begun)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(NotFittedError):
        model.predict(x)


def test_an_interrupt_leaves_the_model_of_before():
    x = rng.normal(size=(60_000, 60))
    made, begun = announced(efface.Sisa)
    model = many_shards(made).set_params(n_slices=1).fit(x[:300, :5], x[:300, 0] > 0)
    before = model.predict_proba(x[:50, :5])
    begun.clear()
    interrupted(lambda: model.set_params(n_slices=200).fit(x, x[:, 0] > 0), begun)
    assert np.array_equal(model.predict_proba(x[:50, :5]), before)
    assert model.n_rows_ == 300 and model.n_features_in_ == 5


def test_parameters_are_never_older_than_a_forget():
    x = rng.normal(size=(400, 5))
    y = x @ np.arange(5.0)
    model = efface.Ridge().fit(x, y)
    done = threading.Event()
    # A reader that is always about to remember what it has just asked for.
    other = threading.Thread(target=lambda: [model.coef_ for _ in iter(done.is_set, True)])
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    other.start()
    try:
        for row in range(300):
            model.forget(row)
            assert np.array_equal(model.coef_, model._held().model.parameters()[1]["coef"][0])
    finally:
        sys.setswitchinterval(interval)
        done.set()
        other.join()


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
