"""The efface command on real data, beside scikit-learn's Ridge refitted on the rows that are left.

    data.py EFFACE DATA

Features are rebuilt here from the names that the model exports, so that both sides see the same columns.
"""

import csv
import gzip
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import sklearn
from sklearn.linear_model import Ridge

EFFACE, DATA = sys.argv[1], Path(sys.argv[2])
TOKEN = re.compile(r"(?u)\b\w\w+\b")


def table(name):
    path = DATA / name
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def efface(*args):
    done = subprocess.run([EFFACE, *map(str, args)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"efface {' '.join(map(str, args))}: {done.stderr}")
    return json.loads(done.stdout)


def matrix(rows, names, text):
    columns = {name: at for at, name in enumerate(names)}
    x = np.zeros((len(rows), len(names)))
    for at, row in enumerate(rows):
        if text:
            for word in TOKEN.findall(row[text].lower()):
                if word in columns:
                    x[at, columns[word]] += 1
            continue
        for key, value in row.items():
            if key in columns:
                x[at, columns[key]] = float(value)
            elif f"{key}={value}" in columns:
                x[at, columns[f"{key}={value}"]] = 1
    return x


def by_qr(x, y, penalty):
    """Ridge without normal equations: QR of the centred, scaled rows stacked on the penalty. Slow, and right to more digits."""
    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale[scale == 0] = 1
    stacked = np.vstack([(x - mean) / scale, np.diag(np.sqrt(penalty) / scale)])
    q, r = np.linalg.qr(stacked)
    target = np.append(y - y.mean(), np.zeros(x.shape[1]))
    coefficients = np.linalg.solve(r, q.T @ target) / scale
    return np.append(coefficients, y.mean() - mean @ coefficients)


def distance(model, theirs, names):
    ours = np.array([model["coefficients"].get(name, [0.0])[0] for name in names] + model["intercept"])
    return np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)


def run(title, name, options, target, text, choose, who):
    rows = table(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.efface"
        fitted = efface("fit", DATA / name, *options, "-o", path, "--json")
        before = efface("export", path, "--format", "json")
        names = list(before["coefficients"])
        x, y = matrix(rows, names, text), np.array([target(row) for row in rows])
        ridge = Ridge(alpha=before["lambda"], solver="cholesky").fit(x, y)
        gone = choose(rows)
        report = efface("forget", path, *who(rows, gone), "--json")
        after = efface("export", path, "--format", "json")
        kept = np.setdiff1d(np.arange(len(rows)), gone)
        start = time.perf_counter()
        refit = Ridge(alpha=before["lambda"], solver="cholesky").fit(x[kept], y[kept])
        seconds = time.perf_counter() - start
        full, left = np.append(ridge.coef_, ridge.intercept_), np.append(refit.coef_, refit.intercept_)
        moved = np.linalg.norm(full - left) / np.linalg.norm(left)
        exact = by_qr(x[kept], y[kept], before["lambda"])
        print(
            f"| {title} | {len(rows):,} × {len(names):,} | {fitted['seconds']:.2f} s | {len(gone)} "
            f"| {report['seconds'] * 1e3:.0f} ms | {seconds * 1e3:.0f} ms | {moved:.0e} "
            f"| {distance(before, full, names):.0e} | {distance(after, left, names):.0e} | {distance(after, exact, names):.0e} "
            f"| {report['evidence']['relative_bound']:.0e} |"
        )


def first_ten(rows):
    return list(range(10))


def busiest(column):
    def choose(rows):
        name = Counter(row[column] for row in rows).most_common(1)[0][0]
        return [at for at, row in enumerate(rows) if row[column] == name]

    return choose


def by_position(rows, gone):
    return ["--ids", ",".join(map(str, gone))]


def by_column(column):
    return lambda rows, gone: ["--ids", ",".join(rows[at][column] for at in gone)]


def by_subject(column):
    return lambda rows, gone: ["--subject", f"{column}={rows[gone[0]][column]}"]


print(f"\n## Real data, the command from file to file, beside scikit-learn {sklearn.__version__} (numpy {np.__version__})\n")
print("Distances are relative to the norm of coefficients and constant; λ = 1. A forget reads and rewrites the model file.\n")
print(
    "| data | rows × features | fit, from the file | rows forgotten | forget | scikit-learn refit, in memory "
    "| refit moved by | fit − scikit-learn | forgotten − scikit-learn refit | forgotten − QR of the rest | reported bound |"
)
print("|" + "---|" * 11)
stars = lambda row: float(row["stars"])
words = ["--vocab", "1500", "--lambda", "1"]
run(
    "women's clothing, words → stars", "womens-clothing/womens-clothing.csv.gz",
    ["--text", "text", "--target", "stars", "--id", "id", *words], stars, "text", first_ten, by_column("id"),
)
run(
    "musical instruments, words → stars, one reviewer", "amazon-musical/musical-instruments.csv.gz",
    ["--text", "text", "--target", "stars", "--subject", "reviewer_id", *words], stars, "text",
    busiest("reviewer_id"), by_subject("reviewer_id"),
)
run(
    "California housing → value", "california-housing/california-housing.csv",
    ["--target", "median_house_value", "--lambda", "1"], lambda row: float(row["median_house_value"]), None,
    first_ten, by_position,
)
run(
    "Adult, mixed columns → income class", "adult/adult.csv.gz",
    ["--target", "income", "--classify", "--ignore", "split", "--lambda", "1"],
    lambda row: 1.0 if row["income"] == ">50K" else -1.0, None, first_ten, by_position,
)
