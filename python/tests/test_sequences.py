"""Any sequence of rows that come, go and change leaves the model of the rows as they are in the end."""

from __future__ import annotations

import numpy as np
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
