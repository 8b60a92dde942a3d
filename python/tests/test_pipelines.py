"""Steps and pipelines that forget are those of scikit-learn fitted without the rows."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.decomposition
import sklearn.feature_extraction.text
import sklearn.impute
import sklearn.linear_model
import sklearn.naive_bayes
import sklearn.preprocessing
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import efface

RANDOM = np.random.default_rng(3)
TABLE = RANDOM.normal(5.0, 3.0, size=(40, 4))
GAPS = np.where(RANDOM.random(TABLE.shape) < 0.2, np.nan, TABLE)
LEVELS = RANDOM.integers(0, 9, size=(40, 2)).astype(str).astype(object)
TEXTS = [" ".join(f"word{at}" for at in RANDOM.integers(0, 30, size=6)) for _ in range(40)]
TARGET = TABLE @ [1.0, -2.0, 0.5, 0.0] + RANDOM.normal(size=40)
CLASSES = np.where(TARGET > np.median(TARGET), "up", "down")
GONE = [0, 7, 39]
LEFT = np.setdiff1d(np.arange(40), GONE)


def some(rows, places):
    return [rows[at] for at in places] if isinstance(rows, list) else rows[places]


STEPS = [
    (efface.StandardScaler(), sklearn.preprocessing.StandardScaler(), TABLE),
    (efface.MinMaxScaler(), sklearn.preprocessing.MinMaxScaler(), TABLE),
    (efface.SimpleImputer(add_indicator=True), sklearn.impute.SimpleImputer(add_indicator=True), GAPS),
    (
        efface.OneHotEncoder(handle_unknown="ignore"),
        sklearn.preprocessing.OneHotEncoder(handle_unknown="ignore"),
        LEVELS,
    ),
    (
        efface.CountVectorizer(max_features=12),
        sklearn.feature_extraction.text.CountVectorizer(max_features=12),
        TEXTS,
    ),
    (
        efface.TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True),
        sklearn.feature_extraction.text.TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True),
        TEXTS,
    ),
    (efface.PCA(2), sklearn.decomposition.PCA(2), TABLE),
    (efface.TruncatedSVD(2, random_state=0), sklearn.decomposition.TruncatedSVD(2, random_state=0), TABLE),
]


def dense(table):
    return table.toarray() if hasattr(table, "toarray") else np.asarray(table)


@pytest.mark.parametrize("step, theirs, rows", STEPS, ids=lambda each: type(each).__name__)
def test_a_step_is_that_of_the_rows_that_are_left(step, theirs, rows):
    step, theirs = clone(step), clone(theirs)
    assert np.array_equal(dense(step.fit_transform(rows)), dense(clone(theirs).fit_transform(rows)), equal_nan=True)
    step.forget(GONE)
    left = some(rows, LEFT)
    assert np.array_equal(dense(step.transform(left)), dense(theirs.fit(left).transform(left)), equal_nan=True)
    assert step.row_ids_ == LEFT.tolist()
    step.partial_fit(some(rows, GONE), row_ids=["a", "b", "c"])
    everything = left + some(rows, GONE) if isinstance(rows, list) else np.concatenate([left, rows[GONE]])
    found = step.transform(everything)
    assert np.allclose(dense(found), dense(theirs.fit(everything).transform(everything)), equal_nan=True)
    with pytest.raises(efface.UnknownRowError, match="no row of id 99"):
        step.forget([99])
    with pytest.raises(efface.DuplicateRowError, match="twice"):
        step.forget(["a", "a"])
    with pytest.raises(efface.RefusedError, match="no row would be left"):
        step.forget(step.row_ids_)
    with pytest.raises(NotFittedError):
        clone(step).forget([0])
    assert pickle.loads(pickle.dumps(step)).row_ids_ == step.row_ids_


def test_a_vocabulary_that_becomes_empty_leaves_the_step_as_it_was():
    words = efface.CountVectorizer().fit(["good", "x"])
    with pytest.raises(ValueError, match="empty vocabulary"):
        words.forget([0])
    assert words.get_feature_names_out().tolist() == ["good"] and words.row_ids_ == [0, 1]


def test_a_constant_column_is_not_divided_by_its_spread():
    scaler = efface.StandardScaler().fit([[1.0], [1.0], [5.0]]).forget(2)
    assert scaler.scale_.tolist() == [1.0]


PIPELINES = [
    (lambda: efface.Pipeline([("s", efface.StandardScaler()), ("m", efface.Ridge(alpha=0.5))]), TABLE, TARGET, 1e-10),
    (
        lambda: efface.Pipeline(
            [("i", efface.SimpleImputer()), ("s", efface.MinMaxScaler()), ("m", efface.Ridge(alpha=0.5))]
        ),
        GAPS,
        TARGET,
        1e-10,
    ),
    (
        lambda: efface.Pipeline([("t", efface.TfidfVectorizer()), ("m", efface.LogisticRegression(tol=1e-10))]),
        TEXTS,
        CLASSES,
        1e-6,
    ),
    (
        lambda: efface.Pipeline([("c", efface.CountVectorizer()), ("m", efface.MultinomialNB())]),
        TEXTS,
        CLASSES,
        1e-10,
    ),
    (lambda: efface.Pipeline([("p", efface.PCA(2)), ("m", efface.GaussianNB())]), TABLE, CLASSES, 1e-10),
]


def answers(pipeline, rows):
    last = pipeline.steps[-1][1]
    return pipeline.predict_proba(rows) if hasattr(last, "predict_proba") else pipeline.predict(rows)


@pytest.mark.parametrize("make, rows, y, tolerance", PIPELINES)
def test_a_pipeline_is_that_of_the_rows_that_are_left(make, rows, y, tolerance):
    pipeline = make().fit(rows, y)
    evidence = pipeline.forget(GONE)
    assert evidence.rows == 37 and evidence.forgotten == 3 and evidence.not_covered == []
    left = some(rows, LEFT)
    fresh = make().fit(left, y[LEFT])
    assert np.allclose(answers(pipeline, left), answers(fresh, left), atol=tolerance, rtol=0)
    theirs = {
        "StandardScaler": sklearn.preprocessing.StandardScaler(),
        "SimpleImputer": sklearn.impute.SimpleImputer(),
        "MinMaxScaler": sklearn.preprocessing.MinMaxScaler(),
        "TfidfVectorizer": sklearn.feature_extraction.text.TfidfVectorizer(),
        "CountVectorizer": sklearn.feature_extraction.text.CountVectorizer(),
        "PCA": sklearn.decomposition.PCA(2),
        "Ridge": sklearn.linear_model.Ridge(alpha=0.5),
        "LogisticRegression": sklearn.linear_model.LogisticRegression(tol=1e-12, max_iter=10_000),
        "MultinomialNB": sklearn.naive_bayes.MultinomialNB(),
        "GaussianNB": sklearn.naive_bayes.GaussianNB(),
    }
    whole = make_pipeline(*(theirs[type(step).__name__] for _, step in pipeline.steps)).fit(left, y[LEFT])
    assert np.allclose(answers(pipeline, left), answers(whole, left), atol=max(tolerance, 1e-6), rtol=0)


def test_features_that_stay_let_the_model_forget_by_itself():
    levels = np.array([["a"], ["b"], ["a"], ["b"], ["a"], ["b"]], dtype=object)
    pipeline = efface.Pipeline([("o", efface.OneHotEncoder()), ("m", efface.Ridge(form="rows"))])
    pipeline.fit(levels, np.arange(6.0))
    evidence = pipeline.forget([1])
    assert not evidence.features_changed and evidence.method != "retrain" and evidence.claim == "exact"
    assert pipeline.forget([3, 5]).features_changed, "a level left with its last row"
    assert pipeline[:-1].transform(levels[:1]).shape == (1, 1)


def test_any_pipeline_of_scikit_learn_becomes_forgettable():
    frame = pd.DataFrame(TABLE, columns=list("abcd"), index=[f"row {at}" for at in range(40)])
    frame["colour"] = LEVELS[:, 0]
    columns = ColumnTransformer(
        [
            ("numbers", sklearn.preprocessing.StandardScaler(), list("abcd")),
            ("levels", sklearn.preprocessing.OneHotEncoder(handle_unknown="ignore"), ["colour"]),
        ]
    )
    theirs = make_pipeline(columns, sklearn.linear_model.LogisticRegression())
    pipeline = efface.forgettable(theirs).fit(frame, CLASSES, row_ids="index")
    assert not hasattr(theirs[-1], "coef_"), "the steps are copies"
    evidence = pipeline.forget(["row 3", "row 4"])
    keep = [at for at in range(40) if at not in (3, 4)]
    theirs.fit(frame.iloc[keep], CLASSES[keep])
    assert np.array_equal(pipeline[-1].coef_, theirs[-1].coef_)
    assert (evidence.method, evidence.claim, evidence.bound) == ("retrain", "exact", 0.0)
    with pytest.raises(efface.RefusedError, match="was forgotten"):
        pipeline.partial_fit(frame.iloc[[3]], CLASSES[[3]], row_ids=["row 3"])
    pipeline.partial_fit(frame.iloc[[3]], CLASSES[[3]], row_ids=["row 3"], allow_forgotten=True)
    assert len(pipeline.row_ids_) == 39
    with pytest.raises(TypeError, match="Pipeline of scikit-learn"):
        efface.forgettable(sklearn.linear_model.Ridge())


def test_a_step_that_cannot_forget_is_refused_or_named():
    pipeline = efface.Pipeline([("s", frozen()), ("m", efface.Ridge())]).fit(TABLE, TARGET)
    with pytest.raises(efface.RefusedError, match="step 's' was fitted elsewhere"):
        pipeline.forget([1])
    assert len(pipeline.row_ids_) == 40
    named = pipeline.set_params(strangers="name").forget([1]).not_covered
    assert named == ["step 's': it was fitted elsewhere and may know the rows"]
    with pytest.raises(ValueError, match="strangers = 'ignore' does not exist"):
        efface.Pipeline([("m", efface.Ridge())], strangers="ignore").fit(TABLE, TARGET)


def frozen():
    return FrozenEstimator(sklearn.preprocessing.StandardScaler().fit(TABLE))


HIDDEN = {
    "s__a": lambda: ColumnTransformer([("a", frozen(), [0, 1, 2, 3])]),
    "s__remainder": lambda: ColumnTransformer([("a", "drop", [])], remainder=frozen()),
    "s__frozenestimator": lambda: make_pipeline(sklearn.preprocessing.MinMaxScaler(), frozen()),
    "s__featureunion__b": lambda: make_pipeline(FeatureUnion([("b", frozen())])),
    "s__func": lambda: FunctionTransformer(sklearn.preprocessing.StandardScaler().fit(TABLE).transform),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_part_that_was_fitted_elsewhere_is_found_at_any_depth(name):
    pipeline = efface.Pipeline([("s", HIDDEN[name]()), ("m", efface.Ridge())]).fit(TABLE, TARGET)
    for request in (lambda: pipeline.forget([1]), lambda: pipeline.amend(TABLE[:1], TARGET[:1], row_ids=[1])):
        with pytest.raises(efface.RefusedError, match=f"step '{name}' was fitted elsewhere"):
            request()
    assert len(pipeline.row_ids_) == 40
    evidence = pipeline.set_params(strangers="name").forget([1])
    assert evidence.not_covered == [f"step {name!r}: it was fitted elsewhere and may know the rows"]
    assert (evidence.claim, evidence.bound, evidence.relative_bound) == ("approximate", np.inf, np.inf)
    assert evidence.model.claim == "exact", "of the last step alone"


def test_a_frozen_part_is_refused_in_shards_and_as_the_last_step():
    trained = FrozenEstimator(sklearn.linear_model.Ridge().fit(TABLE, TARGET))
    shards = efface.SisaEnsemble(make_pipeline(frozen(), sklearn.linear_model.Ridge()), n_shards=2).fit(TABLE, TARGET)
    with pytest.raises(efface.RefusedError, match="estimator__frozenestimator was fitted elsewhere"):
        shards.forget([1])
    assert len(shards.row_ids_) == 40
    with pytest.raises(efface.RefusedError, match="step 'm' was fitted elsewhere"):
        efface.Pipeline([("s", efface.StandardScaler()), ("m", trained)]).fit(TABLE, TARGET).forget([1])


def centred(rows):
    return rows - np.asarray(rows).mean(axis=0)


@pytest.mark.parametrize("last", [efface.Ridge(alpha=0.5), efface.GaussianNB(), efface.LinearSVC()], ids=lambda last: type(last).__name__)
@pytest.mark.parametrize("function", [centred, lambda rows: np.column_stack([rows, np.argsort(np.asarray(rows)[:, 0])])])
def test_features_that_depend_on_all_rows_of_a_call_are_compared_with_those_of_the_fit(last, function):
    y = TARGET if isinstance(last, efface.Ridge) else CLASSES
    make = lambda: efface.Pipeline([("f", FunctionTransformer(function)), ("m", clone(last))])  # noqa: E731
    pipeline = make().fit(TABLE, y)
    evidence = pipeline.forget(GONE)
    assert evidence.features_changed and (evidence.method, evidence.claim) == ("retrain", "exact")
    fresh = make().fit(TABLE[LEFT], y[LEFT])
    weights = "theta_" if isinstance(last, efface.GaussianNB) else "coef_"
    assert np.array_equal(getattr(pipeline[-1], weights), getattr(fresh[-1], weights))


def objects():
    return [list(row) for row in TABLE]


def cells():
    """A table of one column, with a list in each cell."""
    table = np.empty((40, 1), dtype=object)
    table[:, 0] = objects()
    return table


SHARED = {
    "list of lists": objects,
    "list of arrays": lambda: [row.copy() for row in TABLE],
    "cells of a frame": lambda: pd.DataFrame({"x": objects()}),
    "cells of an array": cells,
    "array": TABLE.copy,
    "frame": lambda: pd.DataFrame(TABLE.copy()),
    "polars frame": lambda: pl.DataFrame(TABLE, schema=list("abcd")),
}


def unpacked(rows):
    """Rows that may lie in cells, as one table."""
    rows = rows.to_numpy() if hasattr(rows, "to_numpy") else rows
    cells = [row[0] if len(row) == 1 else row for row in rows]
    return np.array([np.asarray(cell, dtype=np.float64) for cell in cells])


def spoil(rows):
    """Changes rows in place, as a caller may who goes on working with them."""
    if isinstance(rows, pd.DataFrame) and rows.shape[1] > 1:
        rows.iloc[:, :] = 99.0
        return
    if isinstance(rows, pl.DataFrame):
        rows[0, 0] = 99.0
        return
    for row in rows.to_numpy() if hasattr(rows, "to_numpy") else rows:
        cell = row[0] if len(row) == 1 else row
        cell[:] = [99.0] * 4


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        (kind, made)
        for kind in ("pipeline", "step", "shards")
        for made in SHARED
        # A scaler takes no cells that are lists.
        if kind != "step" or not made.startswith("cells")
    ],
)
def test_what_the_caller_does_with_rows_later_changes_nothing(kind, made):
    def fit(rows, y):
        if kind == "step":
            return efface.StandardScaler().fit(rows)
        if kind == "shards":
            inner = make_pipeline(FunctionTransformer(unpacked), sklearn.linear_model.Ridge())
            return efface.SisaEnsemble(inner, n_shards=2).fit(rows, y)
        return efface.Pipeline([("f", FunctionTransformer(unpacked)), ("s", efface.StandardScaler()), ("m", efface.Ridge())]).fit(rows, y)

    y = TARGET.copy()
    rows, more = SHARED[made](), SHARED[made]()
    model = fit(rows, y)
    y[:] = 0.0
    spoil(rows)
    arguments = () if kind == "step" else (TARGET[:3].copy(),)
    first = more[:3] if not hasattr(more, "iloc") else more.iloc[:3]
    model.partial_fit(first, *arguments, row_ids=["a", "b", "c"])
    spoil(more)
    model.forget([*GONE, "a", "b", "c"])
    if kind == "step":
        assert np.allclose(model.mean_, TABLE[LEFT].mean(axis=0), atol=1e-12, rtol=0)
        return
    intact = SHARED[made]()
    left = some(intact, LEFT) if not hasattr(intact, "iloc") else intact.iloc[LEFT]
    if kind == "shards":
        left_model = efface.SisaEnsemble(model.estimator, n_shards=2).fit(left, TARGET[LEFT], row_ids=LEFT)
    else:
        left_model = fit(left, TARGET[LEFT])
    assert np.allclose(model.predict(left), left_model.predict(left), atol=1e-10, rtol=0)


def test_a_step_that_works_in_place_leaves_the_kept_rows_as_they_came():
    make = lambda: efface.Pipeline([("s", efface.StandardScaler(copy=False)), ("m", efface.Ridge(alpha=0.5))])  # noqa: E731
    mine = TABLE.copy()
    pipeline = make().fit(mine, TARGET)
    step = efface.StandardScaler(copy=False).fit(mine)
    assert np.array_equal(mine, TABLE)
    pipeline.forget(GONE)
    step.forget(GONE)
    fresh = make().fit(TABLE[LEFT], TARGET[LEFT])
    assert np.allclose(pipeline[-1].coef_, fresh[-1].coef_, atol=1e-12, rtol=0)
    assert np.array_equal(step.mean_, TABLE[LEFT].mean(axis=0))


@pytest.mark.parametrize(
    "last",
    [
        efface.Ridge(),
        efface.RidgeClassifier(class_weight="balanced"),
        efface.LogisticRegression(),
        efface.LogisticRegression(class_weight="balanced"),
        efface.LinearSVC(),
        efface.PoissonRegressor(),
        efface.GaussianNB(),
        efface.KMeans(2),
        efface.Sisa(efface.LogisticRegression(), n_shards=2),
        sklearn.linear_model.LogisticRegression(),
    ],
    ids=lambda last: type(last).__name__,
)
def test_a_pipeline_that_was_fitted_anew_claims_exact(last):
    y = np.abs(TARGET) if isinstance(last, (efface.Ridge, efface.PoissonRegressor)) else CLASSES
    pipeline = efface.Pipeline([("s", efface.StandardScaler()), ("m", clone(last))]).fit(TABLE, y)
    evidence = pipeline.forget(GONE)
    assert (evidence.features_changed, evidence.method, evidence.claim) == (True, "retrain", "exact")
    assert evidence.bound < 1e-5
    if evidence.model is not None:
        assert (evidence.model.method, evidence.model.claim, evidence.model.forgotten) == ("retrain", "exact", 3)
        assert (evidence.model.rows, evidence.model.rows_read) == (37, 37)


def test_weights_of_rows_leave_with_them():
    weights = RANDOM.uniform(0.5, 3.0, size=40)
    scaler = efface.StandardScaler().fit(TABLE[:30], None, weights[:30])
    scaler.partial_fit(TABLE[30:], None, weights[30:]).forget(GONE)
    theirs = sklearn.preprocessing.StandardScaler().fit(TABLE[LEFT], None, weights[LEFT])
    assert np.array_equal(scaler.mean_, theirs.mean_) and np.array_equal(scaler.scale_, theirs.scale_)
    plain = efface.StandardScaler().fit(TABLE[:30]).partial_fit(TABLE[30:], sample_weight=weights[30:])
    assert np.allclose(plain.mean_, np.average(TABLE, axis=0, weights=np.r_[np.ones(30), weights[30:]]))
    make = lambda: efface.SisaEnsemble(sklearn.linear_model.Ridge(), n_shards=2)  # noqa: E731
    shards = make().fit(TABLE, TARGET, weights)
    assert not np.allclose(shards.predict(TABLE), make().fit(TABLE, TARGET).predict(TABLE))
    shards.forget(GONE)
    fresh = make().fit(TABLE[LEFT], TARGET[LEFT], weights[LEFT], row_ids=LEFT)
    assert np.array_equal(shards.predict(TABLE), fresh.predict(TABLE))
    for make in (efface.MinMaxScaler, lambda: efface.Pipeline([("m", efface.Ridge())])):
        with pytest.raises(TypeError, match="positional"):
            make().fit(TABLE, TARGET, weights)


def test_the_index_of_a_frame_names_rows_everywhere():
    frame = pd.DataFrame(TABLE[:5], index=list("abcde"))
    made = [
        efface.StandardScaler().fit(frame, row_ids="index"),
        efface.Pipeline([("m", efface.Ridge())]).fit(frame, TARGET[:5], row_ids="index"),
        efface.SisaEnsemble(sklearn.linear_model.Ridge(), n_shards=1).fit(frame, TARGET[:5], row_ids="index"),
    ]
    for model in made:
        assert list(model.row_ids_) == list("abcde")


def test_ids_that_make_no_sense_are_refused():
    pipeline = efface.Pipeline([("s", efface.StandardScaler()), ("m", efface.Ridge())])
    with pytest.raises(efface.DuplicateRowError, match="given twice"):
        pipeline.fit(TABLE[:3], TARGET[:3], row_ids=["a", "b", "a"])
    with pytest.raises(ValueError, match="2 row ids for 3 rows"):
        pipeline.fit(TABLE[:3], TARGET[:3], row_ids=["a", "b"])
    with pytest.raises(TypeError, match="whole numbers or texts"):
        pipeline.fit(TABLE[:3], TARGET[:3], row_ids=[1.5, 2.5, 3.5])
    with pytest.raises(NotFittedError):
        pipeline.forget([0])
    pipeline.fit(TABLE, TARGET)
    assert pipeline.forget(np.arange(40) < 2).rows == 38, "a mask names rows by their place"


STEP = st.tuples(st.sampled_from(["forget", "learn"]), st.integers(0, 99))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(range(len(PIPELINES))), st.lists(STEP, min_size=1, max_size=6))
def test_any_sequence_equals_a_refit(which, steps):
    make, rows, y, tolerance = PIPELINES[which]
    there = list(range(30))
    waiting = list(range(30, 40))
    pipeline = make().fit(some(rows, there), y[there], row_ids=there)
    for kind, at in steps:
        if kind == "forget":
            gone = there.pop(at % len(there))
            pipeline.forget([gone])
        elif waiting:
            new = waiting.pop()
            pipeline.partial_fit(some(rows, [new]), y[[new]], row_ids=[new])
            there.append(new)
    fresh = make().fit(some(rows, there), y[there])
    left = some(rows, there)
    assert np.allclose(answers(pipeline, left), answers(fresh, left), atol=tolerance, rtol=0)
    assert pipeline.row_ids_ == there


def test_fewer_points_than_clusters_are_said():
    with pytest.warns(ConvergenceWarning, match="Number of distinct clusters"):
        efface.KMeans(n_clusters=3).fit([[0.0], [0.0], [0.0], [9.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        efface.KMeans(n_clusters=2).fit([[0.0], [0.0], [0.0], [9.0]])
