"""Rows that are named by texts, forgotten names that do not come back, and weights of classes."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model, naive_bayes
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import efface

rng = np.random.default_rng(3)
X = rng.normal(size=(90, 4))
Y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.normal(size=90)
MANY = np.digitize(X[:, 0] + 0.5 * rng.normal(size=90), [-1.0, 0.3])
NAMES = [f"row {at}" for at in range(90)]
FRAME = pd.DataFrame(X, columns=list("abcd"), index=NAMES)


@pytest.mark.parametrize(
    ("made", "y"),
    [
        (efface.Ridge, Y),
        (lambda: efface.LogisticRegression(forget_tol=1e-8), MANY),
        (efface.GaussianNB, MANY),
        (lambda: efface.RidgeClassifier(class_weight="balanced"), MANY),
    ],
)
def test_rows_are_named_by_the_index_of_a_frame(made, y, tmp_path):
    model = made().fit(FRAME, y, row_ids=FRAME.index)
    by_number = made().fit(FRAME, y)
    gone = ["row 7", "row 80"]
    assert model.forget(gone).rows == 88
    by_number.forget([7, 80])
    assert np.allclose(model.predict(FRAME).astype(float), by_number.predict(FRAME).astype(float), atol=1e-12)
    assert model.row_ids_.tolist() == [name for name in NAMES if name not in gone]
    # A mask goes over the rows that are there, and one name stands for itself.
    model.forget(model.row_ids_ == "row 3")
    model.forget("row 4")
    assert len(model.row_ids_) == 86
    with pytest.raises(efface.UnknownRowError, match="'row 7': it has been forgotten"):
        model.forget("row 7")
    with pytest.raises(efface.UnknownRowError, match="'nobody': it was never there"):
        model.forget(["row 9", "nobody"])
    with pytest.raises(TypeError, match="named by texts"):
        model.forget([9])
    with pytest.raises(efface.DuplicateRowError):
        model.forget(["row 9", "row 9"])
    path = tmp_path / "model.safetensors"
    model.save(path)
    for again in (efface.load(path), copy.deepcopy(model)):
        assert again.row_ids_.tolist() == model.row_ids_.tolist()
        with pytest.raises(efface.RefusedError, match="was forgotten"):
            again.partial_fit(FRAME.iloc[[7]], y[[7]], row_ids=["row 7"])


@pytest.mark.parametrize("names", [NAMES, list(range(90))])
def test_a_forgotten_row_comes_back_only_where_that_is_allowed(names):
    model = efface.Ridge().fit(X, Y, row_ids=names)
    whole = model.coef_.copy()
    model.forget([names[5]])
    with pytest.raises(efface.RefusedError, match="allow_forgotten=True"):
        model.partial_fit(X[[5]], Y[[5]], row_ids=[names[5]])
    assert model.n_rows_ == 89
    model.partial_fit(X[[5]], Y[[5]], row_ids=[names[5]], allow_forgotten=True)
    assert np.allclose(model.coef_, whole, atol=1e-10) and model.n_rows_ == 90
    with pytest.raises(efface.DuplicateRowError):
        model.partial_fit(X[[5]], Y[[5]], row_ids=[names[5]])
    model.amend(X[[5]] + 1.0, Y[[5]], row_ids=[names[5]])
    corrected = X.copy()
    corrected[5] += 1.0
    assert np.allclose(model.coef_, efface.Ridge().fit(corrected, Y).coef_, atol=1e-8)


def test_an_index_with_duplicates_is_refused():
    twice = [*NAMES[:-1], NAMES[0]]
    with pytest.raises(efface.DuplicateRowError, match="'row 0' is given twice"):
        efface.Ridge().fit(X, Y, row_ids=twice)
    with pytest.raises(TypeError, match="whole numbers"):
        efface.Ridge().fit(X, Y).partial_fit(X[:1], Y[:1], row_ids=["a"])


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (RandomForestClassifier(n_estimators=5), np.where(MANY == 0, "a", "b")),
        (make_pipeline(StandardScaler(), KNeighborsRegressor(3)), Y),
    ],
)
def test_shards_of_any_estimator_are_those_of_a_fit_without_the_rows(estimator, y):
    model = efface.SisaEnsemble(estimator, n_shards=3, random_state=5).fit(FRAME, y, row_ids=FRAME.index)
    gone = ["row 2", "row 50"]
    left = [at for at, name in enumerate(NAMES) if name not in gone]
    before = list(model._models)
    assert model.forget(gone).claim == "exact"
    touched = {model._shard_of(name) for name in gone}
    assert all((model._models[shard] is not before[shard]) == (shard in touched) for shard in range(3))
    fresh = efface.SisaEnsemble(estimator, n_shards=3, random_state=5).fit(FRAME.iloc[left], y[left], row_ids=FRAME.index[left])
    assert np.array_equal(model.predict(FRAME), fresh.predict(FRAME))
    with pytest.raises(efface.RefusedError, match="was forgotten"):
        model.partial_fit(FRAME.iloc[[2]], y[[2]], row_ids=["row 2"])
    model.partial_fit(FRAME.iloc[[2, 50]], y[[2, 50]], row_ids=gone, allow_forgotten=True)
    assert len(model.row_ids_) == 90 and model.score(FRAME, y) > 0.5
    with pytest.raises(TypeError, match="SisaEnsemble"):
        efface.Sisa(estimator).fit(X, y)


WEIGHTS = rng.uniform(0.5, 2.0, size=90)


@pytest.mark.parametrize("weight", ["balanced", {0: 3.0, 2: 0.25}])
@pytest.mark.parametrize("own", [None, WEIGHTS])
@pytest.mark.parametrize("y", [MANY, np.where(MANY == 2, "b", "a")])
def test_weights_of_classes_are_those_of_scikit_learn(weight, own, y):
    if isinstance(weight, dict) and y is not MANY:
        weight = {"a": 3.0}
    gone = [3, 17, 60]
    left = np.setdiff1d(np.arange(90), gone)
    some = lambda which: None if own is None else own[which]  # noqa: E731
    pairs = [
        (efface.LogisticRegression(class_weight=weight, forget_tol=1e-9),
         linear_model.LogisticRegression(class_weight=weight, solver="newton-cholesky", tol=1e-12, max_iter=1000)),
        (efface.RidgeClassifier(class_weight=weight), linear_model.RidgeClassifier(class_weight=weight)),
    ]  # fmt: skip
    for ours, theirs in pairs:
        ours.fit(X, y, sample_weight=own)
        theirs.fit(X, y, sample_weight=own)
        assert np.allclose(ours.coef_, theirs.coef_, atol=1e-6)
        evidence = ours.forget(gone)
        assert evidence.rows == 87 and evidence.forgotten == 3
        theirs.fit(X[left], y[left], sample_weight=some(left))
        assert np.allclose(ours.coef_, theirs.coef_, atol=1e-6), type(ours)
        fresh = type(ours)(**ours.get_params()).fit(X[left], y[left], sample_weight=some(left))
        assert np.allclose(ours.coef_, fresh.coef_, atol=1e-8)
        # Rows that join and rows that change have a say in the weights, too.
        ours.partial_fit(X[gone], y[gone], sample_weight=some(gone), row_ids=[1000, 1001, 1002])
        theirs.fit(X, y, sample_weight=own)
        assert np.allclose(ours.coef_, theirs.coef_, atol=1e-6)
        ours.amend(X[[5]], y[[17]], row_ids=[5], sample_weight=some([5]))
        changed = y.copy()
        changed[5] = y[17]
        theirs.fit(X, changed, sample_weight=own)
        assert np.allclose(ours.coef_, theirs.coef_, atol=1e-6)


def test_weights_of_classes_that_cannot_be_are_named():
    with pytest.raises(ValueError, match="'balanced', a dict and None do"):
        efface.LogisticRegression(class_weight="equal").fit(X, MANY)
    with pytest.raises(ValueError, match="it has 0, 1, 2"):
        efface.RidgeClassifier(class_weight={7: 1.0}).fit(X, MANY)
    with pytest.raises(ValueError, match="class_weight"):
        efface.Sisa(efface.LogisticRegression(class_weight="balanced")).fit(X, MANY)
    with pytest.raises(efface.RefusedError, match="use auto or retrain"):
        efface.LogisticRegression(class_weight="balanced").fit(X, MANY).forget([1], "influence")


COUNTS = rng.poisson(1.0, size=(90, 6)).astype(float)


@pytest.mark.parametrize("name", ["ComplementNB", "BernoulliNB", "MultinomialNB"])
@pytest.mark.parametrize("settings", [{}, {"alpha": 0.3}, {"fit_prior": False}, {"class_prior": [0.2, 0.5, 0.3]}])
def test_naive_bayes_of_counts_is_that_of_scikit_learn(name, settings):
    ours = getattr(efface, name)(**settings).fit(COUNTS, MANY, sample_weight=WEIGHTS)
    gone = [2, 44, 81]
    left = np.setdiff1d(np.arange(90), gone)
    assert ours.forget(gone).claim == "exact"
    theirs = getattr(naive_bayes, name)(**settings).fit(COUNTS[left], MANY[left], sample_weight=WEIGHTS[left])
    assert np.allclose(ours.feature_log_prob_, theirs.feature_log_prob_, atol=1e-12)
    assert np.allclose(ours.class_log_prior_, theirs.class_log_prior_, atol=1e-12)
    assert np.allclose(ours.predict_proba(COUNTS), theirs.predict_proba(COUNTS), atol=1e-10)
    assert (ours.predict(COUNTS) == theirs.predict(COUNTS)).all()
