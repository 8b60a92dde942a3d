"""Coefficients beside scikit-learn's (1.9.1, numpy 2.4.6) on real data, after a fit and after a forget."""

from __future__ import annotations

import csv
import gzip
import io

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model, naive_bayes, svm
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import efface


def read(path):
    text = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else open(path, encoding="utf-8")
    with text:
        return list(csv.DictReader(io.StringIO(text.read())))


@pytest.fixture
def housing(data):
    rows = read(data / "california-housing" / "california-housing.csv")
    numeric = [name for name in rows[0] if name not in ("median_house_value", "ocean_proximity", "MedHouseVal")]
    target = "median_house_value" if "median_house_value" in rows[0] else "MedHouseVal"
    rows = [row for row in rows if all(row[name] != "" for name in numeric)]
    X = np.array([[float(row[name]) for name in numeric] for row in rows])
    y = np.array([float(row[target]) for row in rows])
    return StandardScaler().fit_transform(X), y / y.std()


@pytest.fixture
def adult(data):
    rows = read(data / "adult" / "adult.csv.gz")
    names = list(rows[0])
    target = names[-1]
    numbers = [name for name in names[:-1] if rows[0][name].strip().lstrip("-").isdigit()]
    words = [name for name in names[:-1] if name not in numbers]
    X = np.hstack([
        StandardScaler().fit_transform(np.array([[float(row[name]) for name in numbers] for row in rows])),
        OneHotEncoder(sparse_output=False, min_frequency=50).fit_transform([[row[name] for name in words] for row in rows]),
    ])
    return X[:12000], np.array([row[target].strip().rstrip(".") for row in rows])[:12000]


@pytest.fixture
def clothing(data):
    rows = read(data / "womens-clothing" / "womens-clothing.csv.gz")
    rows = [row for row in rows if row["text"].strip()][:6000]
    X = CountVectorizer(min_df=20, max_features=500).fit_transform([row["text"] for row in rows]).astype(np.float64)
    return X.tocsr(), np.array([int(float(row["stars"])) for row in rows])


GONE = np.array([3, 17, 256, 1999, 4242])


def without(X, y):
    stays = np.ones(X.shape[0], dtype=bool)
    stays[GONE] = False
    return X[stays], y[stays]


def near(ours, theirs, tolerance):
    size = max(1.0, np.abs(theirs.coef_).max())
    assert np.abs(ours.coef_ - theirs.coef_).max() <= tolerance * size
    assert np.abs(ours.intercept_ - theirs.intercept_).max() <= tolerance * size


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_ridge_on_houses(housing, kind):
    X, y = housing[0].astype(kind), housing[1]
    ours = efface.Ridge(alpha=2.0).fit(X, y)
    wide = X.astype(np.float64)
    near(ours, linear_model.Ridge(alpha=2.0, solver="cholesky").fit(wide, y), 1e-8)
    ours.forget(GONE)
    near(ours, linear_model.Ridge(alpha=2.0, solver="cholesky").fit(*without(wide, y)), 1e-8)


def test_ridge_on_words(clothing):
    X, y = clothing[0], clothing[1].astype(float)
    theirs = linear_model.Ridge(alpha=5.0, solver="cholesky")
    ours = efface.Ridge(alpha=5.0).fit(X, y)
    near(ours, theirs.fit(X.toarray(), y), 1e-8)
    ours.forget(GONE)
    near(ours, theirs.fit(*without(X.toarray(), y)), 1e-8)


def test_ridge_classifier_on_adult(adult):
    X, y = adult
    ours = efface.RidgeClassifier(alpha=1.0).fit(X, y)
    theirs = linear_model.RidgeClassifier(alpha=1.0, solver="cholesky")
    near(ours, theirs.fit(X, y), 1e-8)
    ours.forget(GONE)
    near(ours, theirs.fit(*without(X, y)), 1e-8)
    assert (ours.predict(X) == theirs.predict(X)).all()


def test_ridge_classifier_of_many_classes(clothing):
    X, y = clothing
    ours = efface.RidgeClassifier(alpha=5.0).fit(X, y)
    theirs = linear_model.RidgeClassifier(alpha=5.0, solver="cholesky").fit(X.toarray(), y)
    near(ours, theirs, 1e-8)


def test_logistic_on_adult(adult):
    X, y = adult
    ours = efface.LogisticRegression(C=0.5).fit(X, y)
    theirs = linear_model.LogisticRegression(C=0.5, tol=1e-10, max_iter=500, solver="newton-cholesky")
    near(ours, theirs.fit(X, y), 1e-5)
    ours.forget(GONE)
    near(ours, theirs.fit(*without(X, y)), 1e-5)
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_logistic_on_words(clothing):
    X, y = clothing[0][:, :250], (clothing[1] >= 4).astype(int)
    ours = efface.LogisticRegression(C=0.2, forget_tol=1e-6).fit(X, y)
    theirs = linear_model.LogisticRegression(C=0.2, tol=1e-10, max_iter=500, solver="newton-cholesky")
    near(ours, theirs.fit(X.toarray(), y), 1e-5)
    ours.forget(GONE)
    near(ours, theirs.fit(*without(X.toarray(), y)), 1e-5)


@pytest.mark.parametrize("form", ["auto", "iterative"])
def test_multinomial_logistic_on_words(clothing, form):
    X, y = clothing[0][:2500, :50].toarray(), clothing[1][:2500]
    gone = GONE[GONE < 2500]
    stays = np.setdiff1d(np.arange(2500), gone)
    ours = efface.LogisticRegression(C=0.2, forget_tol=1e-6, form=form).fit(X, y)
    theirs = linear_model.LogisticRegression(C=0.2, tol=1e-10, max_iter=500, solver="newton-cholesky")
    near(ours, theirs.fit(X, y), 1e-5)
    evidence = ours.forget(gone)
    # Kept curvature is of earlier parameters, which is told.
    assert any("curvature" in str(kept) for kept in evidence.kept_beside) == (form == "auto")
    near(ours, theirs.fit(X[stays], y[stays]), 1e-5)
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_naive_bayes(adult, clothing):
    X, y = clothing
    ours, theirs = efface.MultinomialNB().fit(X, y), naive_bayes.MultinomialNB().fit(*without(X, y))
    assert ours.forget(GONE).bound == 0.0
    assert np.allclose(ours.feature_log_prob_, theirs.feature_log_prob_, rtol=0, atol=1e-12)
    assert (ours.predict(X) == theirs.predict(X)).all()
    X, y = adult
    ours, theirs = efface.GaussianNB().fit(X, y), naive_bayes.GaussianNB().fit(*without(X, y))
    ours.forget(GONE)
    assert np.allclose(ours.theta_, theirs.theta_, atol=1e-10)
    assert np.allclose(ours.var_, theirs.var_, atol=1e-10)


def test_sample_weights():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(60, 4)), rng.uniform(0.1, 3, size=60)
    y = X @ [1, -2, 3, 0] + rng.normal(size=60)
    near(efface.Ridge().fit(X, y, sample_weight=w), linear_model.Ridge().fit(X, y, sample_weight=w), 1e-10)
    labels = y > 0
    ours = efface.LogisticRegression().fit(sp.csr_matrix(X), labels, sample_weight=w)
    near(ours, linear_model.LogisticRegression(tol=1e-10, max_iter=1000).fit(X, labels, sample_weight=w), 1e-5)


def test_no_penalty():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = (X @ [1, -1, 0.5] + rng.logistic(size=300)) > 0
    theirs = linear_model.LogisticRegression(C=np.inf, tol=1e-10, solver="newton-cholesky").fit(X, y)
    near(efface.LogisticRegression(C=np.inf).fit(X, y), theirs, 1e-5)
    near(efface.LogisticRegression(penalty=None).fit(X, y), theirs, 1e-5)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_linear_svm(classes, intercept):
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(300, 6))
    y = np.digitize(X @ rng.normal(size=6) + rng.normal(size=300), [0.0, 1.0][: classes - 1])
    weights = rng.uniform(0.5, 2.0, size=300)
    ours = efface.LinearSVC(C=0.3, fit_intercept=intercept).fit(X, y, sample_weight=weights)
    ours.forget(range(10))
    theirs = svm.LinearSVC(C=0.3, dual=False, fit_intercept=intercept, tol=1e-12, max_iter=100_000)
    theirs.fit(X[10:], y[10:], sample_weight=weights[10:])
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert np.allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    assert (ours.predict(X) == theirs.predict(X)).all()


@pytest.mark.parametrize("intercept", [True, False])
def test_poisson(intercept):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 5))
    y = rng.poisson(np.exp(X @ [0.5, -0.3, 0.0, 0.2, 0.1] + 0.4))
    weights = rng.uniform(0.5, 2.0, size=400)
    ours = efface.PoissonRegressor(alpha=0.05, fit_intercept=intercept).fit(X, y, sample_weight=weights)
    evidence = ours.forget(range(10))
    theirs = linear_model.PoissonRegressor(alpha=0.05, fit_intercept=intercept, solver="newton-cholesky", tol=1e-12)
    theirs.fit(X[10:], y[10:], sample_weight=weights[10:])
    assert evidence.claim == "exact"
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-8)
    assert np.allclose(ours.predict(X), theirs.predict(X), rtol=1e-7)
