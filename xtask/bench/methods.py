"""Real data as plain arrays, and scikit-learn's logistic regression on them: the other half of `cargo xtask bench methods`.

    methods.py prepare DATA FOLDER   read, encode and split each data set; one folder of arrays each
    methods.py train FOLDER          train on those arrays, one JSON line each, beside the parameters that efface left there

The Rust half reads the same arrays, so that both sides see exactly the same matrices. Threads are set by the caller
through OMP_NUM_THREADS and OPENBLAS_NUM_THREADS.
"""

import csv
import gzip
import io
import json
import re
import statistics
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse
from scipy.special import expit, softmax

TOKEN = re.compile(r"(?u)\b\w\w+\b")
PENALTY = 1.0
WORDS = 1500
NUMERIC = ["age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week"]


def progress(text):
    print(text, file=sys.stderr, flush=True)


def table(path):
    if path.suffix == ".zst":
        import zstandard

        raw = path.open("rb")
        file = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(raw), encoding="utf-8", newline="")
    else:
        file = gzip.open(path, "rt", encoding="utf-8", newline="")
    with file:
        return list(csv.DictReader(file))


def standardised(x, train):
    spread = x[train].std(axis=0)
    return (x - x[train].mean(axis=0)) / np.where(spread == 0, 1, spread)


def every_fifth(n):
    """True for training rows."""
    return np.arange(n) % 5 != 4


def adult(data):
    rows = table(data / "adult/adult.csv.gz")
    train = np.array([row["split"] == "train" for row in rows])
    parts = [standardised(np.array([[float(row[name]) for name in NUMERIC] for row in rows]), train)]
    for name in rows[0]:
        if name in NUMERIC or name in ("split", "income"):
            continue
        values = np.array([row[name] for row in rows])
        # Levels of the training rows; a "?" is a level like any other.
        parts.append((values[:, None] == np.unique(values[train])[None, :]).astype(float))
    return np.hstack(parts), np.array([row["income"] == ">50K" for row in rows], dtype=np.uint8), train


def covertype(data):
    rows = table(data / "covertype/covertype-100k.csv.zst")
    x = np.array([[float(value) for value in row.values()] for row in rows])
    train = every_fifth(len(rows))
    classes = (x[:, -1] - 1).astype(np.uint8)
    return np.hstack([standardised(x[:, :10], train), x[:, 10:-1]]), classes, train


def clothing(data):
    rows = table(data / "womens-clothing/womens-clothing.csv.gz")
    train = every_fifth(len(rows))
    texts = [TOKEN.findall(row["text"].lower()) for row in rows]
    counts = Counter(word for words, here in zip(texts, train) if here for word in words)
    # By count, then by name, so that the choice does not depend on the order of the rows.
    common = sorted(counts, key=lambda word: (-counts[word], word))[:WORDS]
    columns = {word: at for at, word in enumerate(sorted(common))}
    x = scipy.sparse.lil_matrix((len(rows), WORDS), dtype=np.float32)
    for at, words in enumerate(texts):
        for word, count in Counter(words).items():
            if word in columns:
                x[at, columns[word]] = count
    return x.tocsr(), np.array([row["recommended"] == "1" for row in rows], dtype=np.uint8), train


def synthetic(_):
    n, test, d = 20_000, 4_000, 1_000
    rng = np.random.default_rng(11)
    x = rng.standard_normal((n + test, d))
    score = x @ rng.standard_normal(d) / np.sqrt(d) + rng.standard_normal(n + test)
    return x, (score > 0).astype(np.uint8), np.arange(n + test) < n


SETS = {"synthetic": synthetic, "adult": adult, "covertype": covertype, "clothing": clothing}


def write(folder, name, x, y):
    if scipy.sparse.issparse(x):
        x.sort_indices()
        x.indptr.astype("<u8").tofile(folder / f"{name}.starts")
        x.indices.astype("<u4").tofile(folder / f"{name}.columns")
        x.data.astype("<f4").tofile(folder / f"{name}.values")
    else:
        x.astype("<f8").tofile(folder / f"{name}.x")
    y.tofile(folder / f"{name}.y")


def read(folder, name, about):
    y = np.fromfile(folder / f"{name}.y", dtype=np.uint8)
    if not about["sparse"]:
        return np.fromfile(folder / f"{name}.x", dtype="<f8").reshape(len(y), about["width"]), y
    parts = [np.fromfile(folder / f"{name}.{part}", dtype=kind) for part, kind in
             (("values", "<f4"), ("columns", "<u4"), ("starts", "<u8"))]
    parts[1:] = [part.astype(np.int32) for part in parts[1:]]
    # The stored values are single; what is computed with them is not, on either side.
    return scipy.sparse.csr_matrix(tuple(parts), shape=(len(y), about["width"])).astype(np.float64), y


def prepare(data, folder):
    for name, make in SETS.items():
        progress(f"reading {name} …")
        x, y, train = make(Path(data))
        here = Path(folder) / name
        here.mkdir(parents=True, exist_ok=True)
        write(here, "train", x[train], y[train])
        write(here, "test", x[~train], y[~train])
        about = {"width": x.shape[1], "classes": int(y.max()) + 1, "sparse": scipy.sparse.issparse(x)}
        (here / "about.json").write_text(json.dumps(about))


def gradient(x, y, coefficients, intercept):
    """Σ∇ℓ + λθ; coefficients are outputs × features, intercepts are not penalised."""
    scores = x @ coefficients.T + intercept
    if len(coefficients) == 1:
        slope = expit(scores) - y[:, None]
    else:
        slope = softmax(scores, axis=1)
        slope[np.arange(len(y)), y] -= 1
    return np.append((x.T @ slope).T + PENALTY * coefficients, slope.sum(axis=0))


def joined(coefficients, intercept):
    # A constant added to all intercepts changes no probability: compare them about their mean.
    if len(intercept) > 1:
        intercept = intercept - intercept.mean()
    return np.append(coefficients, intercept)


def train(folder):
    import sklearn
    from sklearn.linear_model import LogisticRegression

    warnings.filterwarnings("ignore")
    for name in SETS:
        progress(f"scikit-learn trains on {name} …")
        here = Path(folder) / name
        about = json.loads((here / "about.json").read_text())
        x, y = read(here, "train", about)
        times = []
        while len(times) < 3 and (not times or times[0] < 5):
            start = time.perf_counter()
            model = LogisticRegression(solver="lbfgs", C=1 / PENALTY, tol=1e-12, max_iter=100_000).fit(x, y)
            times.append(time.perf_counter() - start)
        outputs = len(model.coef_)
        ours = np.fromfile(here / "theta", dtype="<f8")
        coefficients, intercept = ours[:-outputs].reshape(outputs, -1), ours[-outputs:]
        theirs = joined(model.coef_, model.intercept_)
        print(json.dumps({
            "what": "sklearn", "set": name, "rows": len(y), "width": about["width"], "outputs": outputs,
            "seconds": statistics.median(times), "iterations": int(model.n_iter_.max()),
            "gradient": np.linalg.norm(gradient(x, y, model.coef_, model.intercept_)),
            "our_gradient": np.linalg.norm(gradient(x, y, coefficients, intercept)),
            "difference": np.abs(joined(coefficients, intercept) - theirs).max() / np.linalg.norm(theirs),
            "sklearn": sklearn.__version__,
        }), flush=True)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    {"prepare": prepare, "train": train}[what](*rest)
