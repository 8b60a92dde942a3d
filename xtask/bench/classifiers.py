"""Generated rows of several classes, and what refitting them costs: the other half of `cargo xtask bench classifiers`.

    classifiers.py prepare FOLDER ROWS WIDTH CLASSES WORDS   rows as plain arrays; WORDS a row of text, 0 for dense rows, or
                                                             correlated: dense rows made of twelve hidden numbers each
    classifiers.py refit FOLDER GONE                         scikit-learn without the rows GONE (0,7919,…), one JSON line

The Rust half reads the same arrays. Threads are set by the caller through OMP_NUM_THREADS and OPENBLAS_NUM_THREADS.
"""

import json
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse


def dense(rng, n, width, classes):
    x = rng.standard_normal((n, width))
    # Gumbel noise makes the classes those of a softmax, so that no plane tells them apart.
    scores = x @ (rng.standard_normal((width, classes)) * (3 / np.sqrt(width))) + rng.gumbel(size=(n, classes))
    return x, scores.argmax(axis=1).astype(np.uint8)


def correlated(rng, n, width, classes):
    x = rng.standard_normal((n, 12)) @ rng.standard_normal((12, width)) + 0.02 * rng.standard_normal((n, width))
    scores = x @ (0.1 * rng.standard_normal((width, classes))) + rng.gumbel(size=(n, classes))
    return x, scores.argmax(axis=1).astype(np.uint8)


def text(rng, n, width, classes, words):
    """Word counts as tf-idf rows of norm 1: a third of the words are of the row's class, all are Zipf's."""
    rank = 1 / np.arange(1, width + 1)
    classes_of_rows = rng.choice(classes, size=n, p=rank[:classes] / rank[:classes].sum())
    # A class with one row would lose it.
    classes_of_rows[: 3 * classes] = np.arange(3 * classes) % classes
    rows = []
    for at, c in enumerate(classes_of_rows):
        count = max(5, rng.poisson(words))
        own = rng.random(count) < 0.33
        drawn = np.minimum((np.exp(rng.random(count) * np.log(width)) - 1).astype(int), width - 1)
        # A class has its own order of the vocabulary.
        drawn[own] = (drawn[own] * 7919 + 104729 * (c + 1)) % width
        columns, counts = np.unique(drawn, return_counts=True)
        rows.append((np.full(len(columns), at), columns, 1 + np.log(counts)))
    at, columns, values = (np.concatenate(part) for part in zip(*rows))
    x = scipy.sparse.csr_matrix((values, (at, columns)), shape=(n, width))
    seen = np.bincount(x.indices, minlength=width)
    x = x @ scipy.sparse.diags(1 + np.log((1 + n) / (1 + seen)))
    norms = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
    return scipy.sparse.csr_matrix(scipy.sparse.diags(1 / norms) @ x), classes_of_rows.astype(np.uint8)


def prepare(folder, n, width, classes, words):
    n, width, classes = int(n), int(width), int(classes)
    rng = np.random.default_rng(n + width + classes)
    is_text = words not in ("0", "correlated")
    if is_text:
        x, y = text(rng, n, width, classes, int(words))
    else:
        x, y = (correlated if words == "correlated" else dense)(rng, n, width, classes)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if is_text:
        x.sort_indices()
        x.indptr.astype("<u8").tofile(folder / "starts")
        x.indices.astype("<u4").tofile(folder / "columns")
        x.data.astype("<f8").tofile(folder / "values")
    else:
        x.astype("<f8").tofile(folder / "x")
    y.tofile(folder / "y")
    about = {"rows": n, "width": width, "classes": classes, "sparse": is_text}
    (folder / "about.json").write_text(json.dumps(about))


def read(folder):
    about = json.loads((folder / "about.json").read_text())
    y = np.fromfile(folder / "y", dtype=np.uint8)
    if not about["sparse"]:
        return np.fromfile(folder / "x", dtype="<f8").reshape(len(y), about["width"]), y
    parts = [np.fromfile(folder / part, dtype=kind) for part, kind in
             (("values", "<f8"), ("columns", "<u4"), ("starts", "<u8"))]
    parts[1:] = [part.astype(np.int32) for part in parts[1:]]
    return scipy.sparse.csr_matrix(tuple(parts), shape=(len(y), about["width"])), y


def joined(coefficients, intercept):
    # A constant added to all intercepts changes no probability: compare them about their mean.
    if len(intercept) > 1:
        intercept = intercept - intercept.mean()
    return np.append(coefficients, intercept)


def refit(folder, gone):
    import sklearn
    from sklearn.linear_model import LogisticRegression

    warnings.filterwarnings("ignore")
    folder = Path(folder)
    x, y = read(folder)
    kept = np.ones(len(y), dtype=bool)
    kept[[int(row) for row in gone.split(",")]] = False
    x, y = x[kept], y[kept]

    def timed(most, **settings):
        times = []
        while len(times) < most and sum(times) < 10:
            start = time.perf_counter()
            model = LogisticRegression(**settings).fit(x, y)
            times.append(time.perf_counter() - start)
        return statistics.median(times), joined(model.coef_, model.intercept_)

    seconds, rough = timed(3)
    tight_seconds, tight = timed(1, solver="newton-cg", tol=1e-10, max_iter=1000)
    # What efface reached without the same rows.
    ours = np.fromfile(folder / "theta", dtype="<f8").reshape(-1, x.shape[1] + 1)
    ours = joined(ours[:, 1:].copy(), ours[:, 0].copy())
    print(json.dumps({
        "what": "sklearn", "seconds": seconds, "tight_seconds": tight_seconds,
        "distance": np.linalg.norm(rough - tight) / np.linalg.norm(tight),
        "our_distance": np.linalg.norm(ours - tight) / np.linalg.norm(tight),
        "sklearn": sklearn.__version__,
    }), flush=True)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    {"prepare": prepare, "refit": refit}[what](*rest)
