"""Sums that merge: against scikit-learn, in any order, on the engines that are installed."""

from __future__ import annotations

import importlib
import pickle

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import efface
from efface import Statistics, engines

pa = pytest.importorskip("pyarrow")

KEY = bytes(range(32))


@pytest.fixture
def table():
    rng = np.random.default_rng(3)
    n = 4000
    x = rng.normal(size=(n, 3)) * [1.0, 20.0, 1e-3] + [0.0, 5000.0, 0.0]
    y = x @ [1.0, -0.2, 300.0] + rng.normal(size=n)
    names = [f"person-{i}" for i in range(n)]
    return pa.table({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y, "id": names, "w": rng.integers(0, 4, n)})


def arrays(table):
    return np.column_stack([table[name] for name in "abc"]), table["y"].to_numpy()


def spec(**options):
    return Statistics(["a", "b", "c"], "y", **options)


@pytest.mark.parametrize("intercept", [True, False])
def test_it_is_the_model_of_scikit_learn(table, intercept):
    x, y = arrays(table)
    truth = Ridge(alpha=0.7, fit_intercept=intercept, solver="cholesky").fit(x, y)
    exact = spec(reproducible=True, ranges=spec().ranges_of(table)).update(table)
    for statistics in (spec().update(table), spec().update(x, y), exact):
        model = statistics.ridge(alpha=0.7, fit_intercept=intercept)
        assert np.allclose(model.coef_, truth.coef_, rtol=1e-9, atol=0)
        assert np.allclose(model.predict(x[:9]), truth.predict(x[:9]), rtol=1e-10)
        assert np.allclose(model.predict(table.slice(0, 9)), truth.predict(x[:9]), rtol=1e-10)
        # What rounded sums can be off by is counted at its worst: no rows are there to tell more.
        assert model.relative_bound_ < (1e-9 if statistics.reproducible else 1e-7)


def test_rows_leave_without_a_trace(table):
    ranges = spec().ranges_of(table)
    options = {"row_id": "id", "key": KEY, "reproducible": True, "ranges": ranges}
    whole = spec(**options).update(table)
    left = spec(**options).update(table.slice(40))
    assert bytes(whole) != bytes(left)
    whole.remove(table.slice(0, 40))
    assert bytes(whole) == bytes(left)
    assert whole.training_set() == left.training_set()
    before = bytes(whole)
    with pytest.raises(ValueError, match="person-3.* is not among"):
        whole.remove(table.slice(3, 1))
    with pytest.raises(ValueError, match="person-77.* is summed already"):
        whole.update(table.slice(77, 2))
    with pytest.raises(ValueError, match="in both"):
        whole.merge(bytes(left))
    assert bytes(whole) == before


def test_weights_are_those_of_scikit_learn(table):
    x, y = arrays(table)
    truth = Ridge(alpha=0.7, solver="cholesky").fit(x, y, sample_weight=table["w"].to_numpy())
    model = spec(weight="w").update(table).ridge(alpha=0.7)
    assert np.allclose(model.coef_, truth.coef_, rtol=1e-9, atol=0)


def test_several_targets(table):
    x, y = arrays(table)
    two = Statistics(["a", "b"], ["y", "c"]).update(table).ridge(alpha=2.0)
    truth = Ridge(alpha=2.0, solver="cholesky").fit(x[:, :2], np.column_stack([y, x[:, 2]]))
    assert np.allclose(two.coef_, truth.coef_, rtol=1e-8, atol=1e-15)
    assert two.predict(x[:4, :2]).shape == (4, 2)


def test_it_travels(table):
    made = spec(row_id="id", key=KEY).update(table)
    again = pickle.loads(pickle.dumps(made))
    assert bytes(again) == bytes(made) and again.rows == 4000
    assert KEY not in bytes(made)
    assert bytes(made.restored(bytes(made))) == bytes(made)
    for data in (bytes(made)[:-1], b"", b"efface-S", bytes(made) + b"\0"):
        with pytest.raises(efface.BadModelError):
            spec().merge(data)
    with pytest.raises(ValueError, match="other columns"):
        Statistics(["a"], "y").restored(bytes(spec()))


def test_bytes_alone_tell_what_was_summed(table):
    for options in ({}, {"reproducible": True, "ranges": spec().ranges_of(table)}):
        whole = spec(**options).update(table)
        again = Statistics.from_bytes(bytes(whole))
        assert (again.features, again.targets, again.rows) == (whole.features, whole.targets, whole.rows)
        assert (again.reproducible, bytes(again)) == (whole.reproducible, bytes(whole))
        assert again.ridge().coef_.tolist() == whole.ridge().coef_.tolist()
        assert again.training_set() == whole.training_set()
    with pytest.raises(efface.BadModelError):
        Statistics.from_bytes(b"")


def test_bad_input_says_what_to_do(table):
    with pytest.raises(ValueError, match=r"no columns \['z'\]"):
        Statistics(["a", "z"], "y").update(table)
    with pytest.raises(ValueError, match="holds string"):
        Statistics(["a", "id"], "y").update(table)
    with pytest.raises(ValueError, match="1 missing value"):
        spec().update(pa.table({"a": [1.0, None], "b": [1.0, 2.0], "c": [1.0, 2.0], "y": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="go together"):
        spec(row_id="id")
    with pytest.raises(ValueError, match="32 bytes"):
        spec(row_id="id", key=b"short")
    with pytest.raises(ValueError, match="ranges of the columns first"):
        spec(reproducible=True).update(table)
    narrow = spec(reproducible=True, ranges={"a": (-1, 1), "b": (4000, 6000), "c": (-1, 1), "y": (-1e5, 1e5)})
    with pytest.raises(ValueError, match="column \"a\""):
        narrow.update(table)
    assert narrow.rows == 0
    with pytest.raises(ValueError, match="there are no rows"):
        spec().ridge()
    with pytest.raises(ValueError, match="rows already"):
        engines.arrow(lambda: [table], spec().update(table))
    with pytest.raises(ValueError, match="there are no rows"):
        engines.arrow(lambda: [table.slice(0, 0)], spec(reproducible=True))
    with pytest.raises(TypeError, match="speaks no Arrow"):
        spec().update(7)
    with pytest.raises(ValueError, match="NaN"):
        spec().update(np.full((2, 3), np.nan), np.ones(2))


def test_another_version_is_no_wrong_sum(table):
    task = engines._Task(spec(), False)
    task.version = "0.0.1"
    with pytest.raises(RuntimeError, match="install one version everywhere"):
        task([table])


def frames(table):
    """The table on every engine that is installed, shared out in its own way."""

    def has(name):
        try:
            return importlib.import_module(name)
        except ImportError:
            return None

    if polars := has("polars"):
        frame = polars.from_arrow(table)
        yield "polars", lambda s: engines.polars(frame, s)
        yield "polars, reversed", lambda s: engines.polars(frame.lazy().reverse(), s)
    if duckdb := has("duckdb"):
        yield "duckdb", lambda s: engines.duckdb(duckdb.from_arrow(table), s, batch_rows=700)
    yield "arrow", lambda s: engines.arrow(lambda: table.to_batches(max_chunksize=333), s)


def test_engines_give_the_same_bytes(table):
    options = {"row_id": "id", "key": KEY}
    exact = {}
    rounded = {}
    for name, run in frames(table):
        exact[name] = run(spec(reproducible=True, **options))
        rounded[name] = run(spec(**options)).ridge()
    assert len({bytes(statistics) for statistics in exact.values()}) == 1
    whole = spec().update(table).ridge()
    for model in rounded.values():
        assert np.linalg.norm(model.coef_ - whole.coef_) <= 1e-12 * np.linalg.norm(whole.coef_)
