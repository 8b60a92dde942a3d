"""Any sequence of rows that come, go and change leaves the model of the rows as they are in the end."""

from __future__ import annotations

import numpy as np
import sklearn.decomposition
import sklearn.impute
import sklearn.linear_model
import sklearn.pipeline
import sklearn.preprocessing
import sklearn.tree
from hypothesis import given, settings
from hypothesis import strategies as st

import efface

WIDTH = 3
FINITE = st.floats(-8, 8, width=32).map(lambda value: round(value, 2))
ROW = st.tuples(st.lists(FINITE, min_size=WIDTH, max_size=WIDTH), FINITE)
STEP = st.one_of(
    st.tuples(st.just("add"), st.lists(ROW, min_size=1, max_size=4)),
    st.tuples(st.just("forget"), st.lists(st.integers(0, 60), min_size=1, max_size=4)),
    st.tuples(st.just("amend"), st.lists(st.tuples(st.integers(0, 60), ROW), min_size=1, max_size=3)),
)
START = st.lists(ROW, min_size=8, max_size=16)


def play(model, start, steps, label):
    """Plays the steps on the model, and on a plain dict beside it."""
    rows = dict(enumerate(start))
    arrays = lambda some: (np.array([x for x, _ in some]), np.array([label(x, y) for x, y in some]))  # noqa: E731
    model.fit(*arrays(start))
    fresh = len(start)
    for kind, what in steps:
        if kind == "add":
            model.partial_fit(*arrays(what))
            rows.update({fresh + at: row for at, row in enumerate(what)})
            fresh += len(what)
        elif kind == "forget":
            here = sorted(rows)
            gone = sorted({here[at % len(here)] for at in what})
            if len(gone) < len(here) - 6:
                model.forget(gone)
                for each in gone:
                    del rows[each]
        else:
            here = sorted(rows)
            new = {here[at % len(here)]: row for at, row in what}
            model.amend(*arrays(list(new.values())), row_ids=list(new))
            rows.update(new)
    ids = sorted(rows)
    assert sorted(model.row_ids_.tolist()) == ids
    return ids, arrays([rows[each] for each in ids])


@settings(max_examples=40, deadline=None)
@given(START, st.lists(STEP, max_size=8), st.sampled_from(["factor", "inverse", "rows", "iterative"]))
def test_ridge(start, steps, form):
    model = efface.Ridge(alpha=0.5, form=form)
    _, (x, y) = play(model, start, steps, lambda _, y: y)
    fresh = efface.Ridge(alpha=0.5).fit(x, y)
    assert np.allclose(model.coef_, fresh.coef_, atol=1e-7)
    assert np.allclose(model.intercept_, fresh.intercept_, atol=1e-7)


@settings(max_examples=40, deadline=None)
@given(START, st.lists(STEP, max_size=8))
def test_naive_bayes(start, steps):
    model = efface.GaussianNB()
    _, (x, y) = play(model, start + [([0.0] * WIDTH, 1.0), ([1.0] * WIDTH, -1.0)], steps, lambda _, y: y > 0)
    fresh = efface.GaussianNB().fit(x, y) if len(set(y)) > 1 else None
    if fresh is not None:
        assert np.allclose(model.theta_, fresh.theta_, atol=1e-9)
        assert np.allclose(model.var_, fresh.var_, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(START, st.lists(STEP, max_size=6))
def test_logistic(start, steps):
    # The class follows from a coin that every row carries, so that no class runs out of rows for good.
    anchors = [([float(at), -1.0, 1.0], side) for at in range(4) for side in (-1.0, 1.0)]
    label = lambda _, y: int(y > 0)  # noqa: E731
    model = efface.LogisticRegression(C=1.0, forget_tol=1e-6)
    try:
        _, (x, y) = play(model, anchors + start, steps, label)
    except ValueError as error:
        assert "would have no row" in str(error)
        return
    fresh = efface.LogisticRegression(C=1.0).fit(x, y)
    assert np.allclose(model.coef_, fresh.coef_, atol=1e-4)


@settings(max_examples=15, deadline=None)
@given(START, st.lists(STEP, max_size=6))
def test_shards(start, steps):
    model = efface.Sisa(efface.Ridge(), n_shards=3)
    ids, (x, y) = play(model, start, steps, lambda _, y: y)
    fresh = efface.Sisa(efface.Ridge(), n_shards=3).fit(x, y, row_ids=ids)
    assert np.allclose(model.predict(x), fresh.predict(x), atol=1e-8)


SCALERS = st.sampled_from([None, "standard", "minmax"])
GAPS = st.sampled_from([None, "mean", "median"])
LAST = st.sampled_from(["ridge", "logistic", "pca", "trees"])


def pipeline(scale, fill, last, theirs):
    """The same pipeline of our steps, or of scikit-learn's."""
    ours = None if theirs else efface
    steps = []
    if fill is not None:
        steps.append(("fill", (ours or sklearn.impute).SimpleImputer(strategy=fill)))
    if scale is not None:
        kind = "StandardScaler" if scale == "standard" else "MinMaxScaler"
        steps.append(("scale", getattr(ours or sklearn.preprocessing, kind)()))
    if last == "pca":
        steps.append(("turn", (ours or sklearn.decomposition).PCA(n_components=2, svd_solver="full")))
    if last in ("ridge", "pca"):
        model = efface.Ridge(alpha=0.5) if ours else sklearn.linear_model.Ridge(alpha=0.5, solver="svd")
    elif last == "trees":
        # A model that is not ours is fitted anew.
        model = sklearn.tree.DecisionTreeRegressor(random_state=0, max_depth=3)
    else:
        settings = {"C": 1.0, "tol": 1e-10}
        model = (
            efface.LogisticRegression(**settings, forget_tol=1e-8)
            if ours
            else sklearn.linear_model.LogisticRegression(**settings, solver="newton-cholesky", max_iter=500)
        )
    steps.append(("model", model))
    return efface.Pipeline(steps) if ours else sklearn.pipeline.Pipeline(steps)


@settings(max_examples=40, deadline=None)
@given(START, st.lists(STEP, max_size=5), SCALERS, GAPS, LAST, st.integers(0, 2**16))
def test_random_pipelines(start, steps, scale, fill, last, holes):
    coin = np.random.default_rng(holes)
    # Rows that keep columns apart and both classes alive, and gaps where they are filled.
    anchors = [([float(at), float(at * at % 5), -float(at % 3)], side) for at in range(6) for side in (-1.0, 1.0)]
    label = (lambda y: int(y > 0)) if last == "logistic" else float
    rows = {}

    def fresh(some):
        x = np.array([each for each, _ in some], dtype=np.float64).reshape(len(some), WIDTH)
        if fill is not None:
            x[coin.random(x.shape) < 0.1] = np.nan
        return x, np.array([label(y) for _, y in some])

    def take(x, y, ids):
        rows.update({each: (x[at], y[at]) for at, each in enumerate(ids)})

    x, y = fresh(anchors + start)
    ids = [f"a{at}" for at in range(len(x))]
    ours = pipeline(scale, fill, last, False).fit(x, y, row_ids=ids)
    take(x, y, ids)
    for kind, what in steps:
        here = sorted(rows)
        if kind == "add":
            x, y = fresh(what)
            new = [f"n{len(rows)}-{coin.integers(2**60)}" for _ in what]
            ours.partial_fit(x, y, row_ids=new)
            take(x, y, new)
        elif kind == "forget":
            gone = sorted({each for each in (here[at % len(here)] for at in what) if not each.startswith("a")} or [])
            if gone:
                assert ours.forget(gone).not_covered == []
                for each in gone:
                    del rows[each]
        else:
            new = {here[at % len(here)]: row for at, row in what if not here[at % len(here)].startswith("a")}
            if new:
                x, y = fresh(list(new.values()))
                ours.amend(x, y, row_ids=list(new))
                take(x, y, list(new))
    kept = ours.row_ids_
    x, y = (np.array(each) for each in zip(*(rows[each] for each in kept)))
    theirs = pipeline(scale, fill, last, True).fit(x, y)
    answer = (lambda model: model.predict_proba(x)) if last == "logistic" else (lambda model: model.predict(x))
    assert np.allclose(answer(ours), answer(theirs), atol=1e-6 if last == "logistic" else 1e-9)
