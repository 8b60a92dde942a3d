"""Whole pipelines that forget, beside scikit-learn's whole pipeline refitted on the rows that are left.

    pipelines.py EFFACE DATA [TITLE]

With a part of a title, only the pipelines that have it are run. For each pipeline a model is fitted once; then 1, 10 and 100 rows are forgotten one request after the other. After each request the
answers to all rows that are left are compared with those of scikit-learn's pipeline fitted on these rows.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

EFFACE, DATA = sys.argv[1], Path(sys.argv[2])
WANTED = sys.argv[3] if len(sys.argv) > 3 else ""
BATCHES = (1, 10, 100)


def efface(*args):
    done = subprocess.run([EFFACE, *map(str, args)], capture_output=True, text=True)
    if done.returncode not in (0, 8):
        sys.exit(f"efface {' '.join(map(str, args))}: {done.stderr}")
    return done.stdout


def answers(path, rows, classes):
    """One line per row: the prediction of a regression, the scores of a classifier."""
    lines = [json.loads(line) for line in efface("predict", path, rows, "--json").splitlines()]
    if classes is None:
        return np.array([[line["prediction"]] for line in lines]), None
    scores = np.array([list(line["scores"].values()) for line in lines], dtype=float)
    return scores, np.array([line["prediction"] for line in lines])


def theirs(pipeline, x, classes):
    if classes is None:
        return pipeline.predict(x).reshape(-1, 1), None
    model = pipeline[-1]
    if isinstance(model, MultinomialNB):
        scores = model.predict_joint_log_proba(pipeline[:-1].transform(x))
    else:
        scores = pipeline.decision_function(x).reshape(len(x), -1)
    return scores, pipeline.predict(x)


def run(title, table, target, options, make, inputs, classify=False):
    if WANTED not in title:
        return
    table = table.reset_index(drop=True)
    table.insert(0, "row", [f"r{at}" for at in range(len(table))])
    classes = sorted(table[target].unique()) if classify else None
    random = np.random.default_rng(0)
    order = random.permutation(len(table))
    with tempfile.TemporaryDirectory() as folder:
        path, rows = Path(folder) / "model.efface", Path(folder) / "rows.csv"
        table.to_csv(rows, index=False)
        fitted = json.loads(efface("fit", rows, "--id", "row", "--target", target, *options, "-o", path, "--json"))
        start = time.perf_counter()
        make().fit(inputs(table), table[target])
        their_fit = time.perf_counter() - start
        left = np.arange(len(table))
        taken = 0
        for batch in BATCHES:
            gone = order[taken : taken + batch]
            taken += batch
            report = json.loads(efface("forget", path, "--ids", ",".join(f"r{at}" for at in gone), "--json"))
            left = np.setdiff1d(left, gone)
            kept = table.iloc[left]
            start = time.perf_counter()
            pipeline = make().fit(inputs(kept), kept[target])
            seconds = time.perf_counter() - start
            kept.to_csv(rows, index=False)
            ours, our_labels = answers(path, rows, classes)
            wanted, labels = theirs(pipeline, inputs(kept), classes)
            far = np.abs(ours - wanted).max() / max(1.0, np.abs(wanted).max())
            y = kept[target].to_numpy()
            if classify:
                scores = (our_labels.astype(str) == y.astype(str)).mean(), (labels == y).mean()
            else:
                spread = ((y - y.mean()) ** 2).sum()
                scores = tuple(1 - ((y - each[:, 0]) ** 2).sum() / spread for each in (ours, wanted))
            extra = [each["code"] for each in report["evidence"]["not_covered"]]
            print(
                f"| {title if batch == 1 else ''} | {batch} | {report['evidence']['rows_read']:,} of {len(left):,} | {far:.0e} "
                f"| {scores[0]:.3f} / {scores[1]:.3f} | {fitted['seconds']:.2f} s / {their_fit:.2f} s "
                f"| {report['seconds'] * 1e3:.0f} ms / {seconds * 1e3:.0f} ms ({seconds / report['seconds']:.1f}×) "
                f"| {', '.join(extra) or 'none'} |",
                flush=True,
            )


def numbers(*scalers):
    return lambda: make_pipeline(*(scaler() for scaler in scalers), Ridge(alpha=1.0, solver="cholesky"))


def sparse_ridge():
    """Ridge with a constant on sparse rows, which scikit-learn solves by iteration alone: as far as it goes."""
    return Ridge(alpha=1.0, solver="sparse_cg", tol=1e-14, max_iter=100_000)


def generated(rows):
    random = np.random.default_rng(1)
    table = pd.DataFrame(random.normal(3.0, 2.0, size=(rows, 3)), columns=["a", "b", "c"])
    table["y"] = table["a"] - 2 * table["b"] + random.normal(size=rows)
    for column in "ab":
        table.loc[random.random(rows) < 0.1, column] = np.nan
    table["town"] = random.choice([f"town {at}" for at in range(30)], size=rows)
    return table


print("| pipeline | forgets | rows read | apart from scikit-learn | score, ours / theirs | fit | forget / their refit | not covered of the model |")
print("|---|---:|---:|---:|---|---|---|---|")
houses = pd.read_csv(DATA / "california-housing/california-housing.csv")
feature_columns = [name for name in houses if name != "median_house_value"]
run(
    "California housing: standard scores, ridge",
    houses, "median_house_value", ["--scale", "standard"], numbers(StandardScaler), lambda t: t[feature_columns],
)
run(
    "California housing: min-max, ridge",
    houses, "median_house_value", ["--scale", "minmax"], numbers(MinMaxScaler), lambda t: t[feature_columns],
)
run(
    "California housing: standard scores, five principal components, ridge",
    houses, "median_house_value", ["--scale", "standard", "--pca", "5"],
    numbers(StandardScaler, lambda: PCA(5, svd_solver="full")), lambda t: t[feature_columns],
)
made = generated(50_000)
run(
    "generated: gaps filled, standard scores, levels, ridge",
    made, "y", ["--impute", "mean,indicator", "--scale", "standard"],
    lambda: make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["a", "b", "c"]),
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["town"]),
        ),
        Ridge(alpha=1.0, solver="cholesky"),
    ),
    lambda t: t[["a", "b", "c", "town"]],
)
adult = pd.read_csv(DATA / "adult/adult.csv.gz").drop(columns=["split"])
adult = adult.fillna("(missing)")
measured = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
named = [name for name in adult if name not in measured and name != "income"]
run(
    "Adult: standard scores, levels, logistic",
    adult, "income", ["--model", "logistic", "--scale", "standard", "--tolerance", "1e-8"],
    lambda: make_pipeline(
        make_column_transformer((StandardScaler(), measured), (OneHotEncoder(handle_unknown="ignore"), named)),
        LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000, solver="newton-cholesky"),
    ),
    lambda t: t[measured + named], classify=True,
)
run(
    "Adult: standard scores, levels, balanced classes, ridge",
    adult, "income", ["--scale", "standard", "--classify", "--class-weight", "balanced"],
    lambda: make_pipeline(
        make_column_transformer(
            (StandardScaler(), measured), (OneHotEncoder(handle_unknown="ignore", sparse_output=False), named)
        ),
        RidgeClassifier(alpha=1.0, solver="cholesky", class_weight="balanced"),
    ),
    lambda t: t[measured + named], classify=True,
)
clothes = pd.read_csv(DATA / "womens-clothing/womens-clothing.csv.gz")[["stars", "text"]].dropna()
run(
    "Women's clothing: tf-idf of words and pairs in 20 rows or more, ridge",
    clothes, "stars", ["--text", "text", "--tfidf", "--ngrams", "1,2", "--min-df", "20", "--vocab", "1000000"],
    lambda: make_pipeline(TfidfVectorizer(ngram_range=(1, 2), min_df=20), sparse_ridge()),
    lambda t: t["text"],
)
run(
    "Women's clothing: words in 20 rows or more, ridge",
    clothes, "stars", ["--text", "text", "--min-df", "20", "--vocab", "1000000"],
    lambda: make_pipeline(CountVectorizer(min_df=20), sparse_ridge()),
    lambda t: t["text"],
)
bbc = pd.read_csv(DATA / "bbc/bbc-text.csv")
run(
    "BBC: words without stop words, naive Bayes",
    bbc, "category", ["--text", "text", "--stop-words", "english", "--vocab", "1000000", "--model", "naive-bayes"],
    lambda: make_pipeline(CountVectorizer(stop_words="english"), MultinomialNB()),
    lambda t: t["text"], classify=True,
)
