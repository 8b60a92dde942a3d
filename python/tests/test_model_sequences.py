"""Model files of random pipelines, after any sequence of rows that come, go and change, answer as scikit-learn's whole pipeline does that
is fitted on the rows that are there in the end."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn.linear_model
import sklearn.naive_bayes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler, TargetEncoder

import efface

NUMBERS = ["size", "age"]
SCALES = {"standard": StandardScaler, "minmax": MinMaxScaler, None: lambda: "passthrough"}


def rows(count: int, seed: int) -> pd.DataFrame:
    """Rows with gaps, rare levels and rare words, so that most that leave take a name, an extreme or a class's balance along."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"row": [f"r{at}" for at in range(count)]})
    frame["size"] = random.normal(50.0, 20.0, count).round(2)
    frame["age"] = np.where(random.random(count) < 0.15, np.nan, random.integers(1, 70, count))
    frame["town"] = random.choice(["Ulm", "Köln", "Bonn", "Kiel", "Oß"], count, p=[0.4, 0.3, 0.2, 0.07, 0.03])
    words = np.array([f"word{at}" for at in range(12)] + ["été", "straße", "rare", "rarer"])
    frame["note"] = [" ".join(random.choice(words, random.integers(0, 6))) for _ in range(count)]
    frame["price"] = frame["size"] + np.where(frame["town"] == "Ulm", 9.0, 0.0) + random.normal(0, 3, count)
    frame["kind"] = np.where(frame["size"] + random.normal(0, 20, count) > 60, "large", "small")
    return frame


def numbers(scale):
    return make_pipeline(SimpleImputer(), SCALES[scale]())


def linear(target, balanced):
    """The settings of a linear model here, and the model of scikit-learn."""
    if target == "price":
        return {"alpha": 0.5}, sklearn.linear_model.Ridge(alpha=0.5, solver="cholesky")
    weight = "balanced" if balanced else None
    theirs = sklearn.linear_model.LogisticRegression(
        C=2.0, solver="newton-cholesky", tol=1e-12, max_iter=1000, class_weight=weight
    )
    return {"model": "logistic", "alpha": 0.5, "tolerance": 1e-9, "class_weight": weight}, theirs


def pipeline(what, scale, target, balanced):
    """The columns in use, the options of a model file, and the same pipeline of scikit-learn."""
    filled = {"impute": "mean", "scale": scale}
    settings, model = linear(target, balanced)
    if what == "levels":
        levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        columns = make_column_transformer((numbers(scale), NUMBERS), (levels, ["town"]))
        return [*NUMBERS, "town"], {**filled, **settings}, make_pipeline(columns, model)
    if what == "products":
        columns = make_pipeline(
            make_column_transformer((numbers(scale or "standard"), NUMBERS)), PolynomialFeatures(2, include_bias=False)
        )
        return NUMBERS, {**filled, "scale": scale or "standard", "polynomial": 2, **settings}, make_pipeline(columns, model)
    if what == "components":
        levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        columns = make_column_transformer((numbers("standard"), NUMBERS), (levels, ["town"]))
        options = {**filled, "scale": "standard", "pca": 3, **settings}
        return [*NUMBERS, "town"], options, make_pipeline(columns, PCA(3, svd_solver="full"), model)
    if what == "mean targets":
        # scikit-learn's fit_transform cross-fits; the model is fitted on what its transform gives.
        return ["size", "town"], {"target_encode": "town", "target_smoothing": 3.0, **settings}, (TargetEncoder(smooth=3.0), model)
    if what == "weights of words":
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        options = {"text": "note", "tfidf": True, "sublinear": True, "ngrams": (1, 2), "min_df": 2, "max_features": 10_000, **settings}
        return ["note"], options, make_pipeline(make_column_transformer((words, "note"), sparse_threshold=0), model)
    options = {"text": "note", "model": "multinomial_nb", "max_features": 10_000}
    words = make_column_transformer((CountVectorizer(), "note"))
    return ["note"], options, make_pipeline(words, sklearn.naive_bayes.MultinomialNB())


def answers_of(pipeline, left, target):
    """What scikit-learn answers to the rows that it is fitted on."""
    if isinstance(pipeline, tuple):
        encoder, model = pipeline
        encoded = encoder.fit(left[["town"]], left[target]).transform(left[["town"]])
        features = np.column_stack([left["size"], encoded])
    else:
        features, model = left, pipeline
    model.fit(features, left[target])
    return model.predict_proba(features) if hasattr(model, "predict_proba") else model.predict(features)


STEPS = st.lists(st.tuples(st.sampled_from(["forget", "learn", "amend"]), st.integers(0, 999)), min_size=1, max_size=5)
KINDS = st.sampled_from(["levels", "products", "components", "mean targets", "weights of words", "counts"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(KINDS, st.sampled_from(list(SCALES)), st.booleans(), st.booleans(), STEPS, st.integers(0, 2**16))
def test_random_model_files(what, scale, classes, balanced, steps, seed):
    target = "kind" if classes or what == "counts" else "price"
    columns, options, theirs = pipeline(what, scale, target, balanced)
    frame = rows(70, seed)[["row", *columns, target]].set_index("row", drop=False)
    there, waiting = frame.iloc[:50].copy(), frame.iloc[50:]
    with tempfile.TemporaryDirectory() as folder:
        model = efface.create(there, Path(folder) / "m.efface", target=target, id="row", **options)
        for step, at in steps:
            if step == "forget":
                gone = there.index[[at % len(there), (at * 7 + 3) % len(there)]].unique()
                report = model.forget(list(gone))
                assert report.evidence.not_covered == [], report
                there = there.drop(index=gone)
            elif step == "learn":
                new, waiting = waiting.iloc[:2], waiting.iloc[2:]
                model.learn(new)
                there = pd.concat([there, new])
            else:
                old = there.index[at % len(there)]
                # The cells of another row under the id of this one.
                mended = there.iloc[[(at + 1) % len(there)]].assign(row=old).set_axis([old])
                model.amend(mended)
                there = pd.concat([there.drop(index=old), mended])
        found = model.predict_proba(there) if target == "kind" else model.predict(there)
    wanted = answers_of(theirs, there, target)
    # A logistic model is trained to its tolerance; prices are about 100.
    tolerance = 1e-6 if target == "kind" and what != "counts" else 1e-8
    assert np.allclose(found, wanted, rtol=0, atol=tolerance), (what, np.abs(found - wanted).max())
