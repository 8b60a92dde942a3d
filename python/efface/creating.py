"""`efface.create`: from rows to a model file, with the options of the command ``efface fit``."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _core
from ._errors import warn_if_missed
from ._tables import is_path, rows_of
from .files import ModelFile


_RIDGE = ("ridge", "ridge_classifier")
_NETWORKS = ("bilstm", "lstm", "minilm")
_BAYES = ("naive_bayes", "gaussian_nb", "multinomial_nb", "complement_nb", "bernoulli_nb")

#: The models that an option has a meaning for; one that is given for another model would be ignored, and nobody would know.
_FOR = {
    "smoothing": _BAYES,
    "form": (*_RIDGE, *_NETWORKS),
    "epsilon": ("logistic",),
    "cell": ("kmeans",),
    "tree": ("kmeans",),
}

#: The values that an option can have; None is what the command does without it.
_WORDS = {
    "scale": ("standard", "minmax"),
    "analyzer": ("word", "char", "char_wb"),
    "norm": ("l2",),
    "form": ("auto", "factor", "inverse", "rows", "iterative"),
    "aggregate": ("vote", "mean"),
    "certify": ("certified", "descent_to_delete"),
    "head": ("ridge", "softmax"),
    "pooling": ("max", "mean", "last"),
}


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _share(name: str, value: int | float | None) -> dict[str, int | float] | None:
    """A whole number of rows, or a share of them."""
    if value is None:
        return None
    if isinstance(value, float) and 0.0 <= value <= 1.0:
        return {"share": value}
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return {"rows": value}
    raise ValueError(f"{name} = {value!r} is out of range; give a whole number of rows, or a share from 0.0 to 1.0")


def create(
    source: Any,
    path: str | os.PathLike[str],
    *,
    target: str | Iterable[str] = (),
    model: str = "ridge",
    alpha: float | str = 1.0,
    fit_intercept: bool = True,
    form: str | None = None,
    tolerance: float | None = None,
    smoothing: float | None = None,
    epsilon: float | None = None,
    delta: float = 1e-5,
    certify: str | None = None,
    noise: float | None = None,
    distance: float | None = None,
    n_clusters: int = 8,
    cell: float | None = None,
    tree: tuple[int, int] | None = None,
    id: str | None = None,
    subject: str | None = None,
    weight: str | None = None,
    text: str | Iterable[str] = (),
    categorical: str | Iterable[str] = (),
    numeric: str | Iterable[str] = (),
    dates: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
    positive: str | Iterable[str] = (),
    class_weight: str | Mapping[Any, float] | None = None,
    scale: str | None = None,
    impute: str | float | None = None,
    indicator: bool = False,
    tfidf: bool = False,
    sublinear: bool = False,
    norm: str | None = "l2",
    ngrams: tuple[int, int] = (1, 1),
    analyzer: str = "word",
    stop_words: str | Iterable[str] | None = None,
    min_df: int | float | None = None,
    max_df: int | float | None = None,
    vocabulary: Iterable[str] | None = None,
    max_features: int | None = None,
    n_hashed: int | None = None,
    max_levels: int | None = None,
    target_encode: str | Iterable[str] = (),
    target_smoothing: float = 10.0,
    polynomial: int | None = None,
    interactions: bool = False,
    fourier: int | None = None,
    fourier_scale: float = 1.0,
    pca: int | None = None,
    svd: int | None = None,
    where: str | None = None,
    delimiter: str | None = None,
    decimal_comma: bool = False,
    missing: Iterable[str] = (),
    memory: int | None = None,
    test: str | os.PathLike[str] | None = None,
    holdout: float | None = None,
    cv: int | None = None,
    seed: int = 0,
    n_shards: int | None = None,
    n_slices: int = 1,
    aggregate: str | None = None,
    head: str | None = None,
    max_tokens: int | None = None,
    encoder: str | os.PathLike[str] | None = None,
    hidden: int | None = None,
    layers: int | None = None,
    pooling: str | None = None,
    head_width: int | None = None,
    embeddings: str | os.PathLike[str] | None = None,
    embedding_words: str | os.PathLike[str] | None = None,
    embedding_width: int | None = None,
    train_embeddings: bool | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    dropout: float | None = None,
    validation: float | None = None,
    patience: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    encrypt: bool = False,
    recovery_key: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    replace: bool = False,
) -> ModelFile:
    """Fits a model to rows of files (CSV, JSON lines, Parquet, svmlight) or of memory and writes it to `path`. The options are those of
    the command ``efface fit``, which ``efface help fit`` and docs/features.md describe.

    Parameters
    ----------
    source : path, list of paths, frame, Arrow table, dict of columns, or list of dicts
    target : str or list of str
        The columns to predict; none for k-means and svmlight.
    model : {"ridge", "ridge_classifier", "logistic", "softmax", "svm", "poisson", "naive_bayes", "gaussian_nb", "multinomial_nb", \
"complement_nb", "bernoulli_nb", "kmeans", "bilstm", "lstm", "minilm"}
        The last three are networks over the words of ``text``: trained layers, or a pretrained encoder in the folder ``encoder``.
        ``naive_bayes`` is Gaussian where a column holds numbers, else multinomial.
    alpha : float or "auto"
        The penalty of the linear models; ``"auto"`` chooses it by leave-one-out (ridge) or five folds.
    form : {"auto", "factor", "inverse", "rows", "iterative"}, optional
        What a ridge model keeps in order to forget fast; ``--curvature`` of the command.
    epsilon, delta, certify, noise, distance :
        A logistic model trained with noise, so that forgetting is certified (ε, δ): "certified" has noise of this standard deviation in
        its objective, "descent_to_delete" comes within this distance of the optimum before anything is published.
    n_clusters, cell, tree :
        k-means: how many clusters, and the side of the lattice that centres lie on, or (levels, branches) of a tree instead.
    id, subject, weight : str, optional
        The columns that name a row, the person that it belongs to, and what it counts for.
    text, categorical, numeric, dates, ignore : str or list of str
        Columns read as words, as levels, as numbers, as days, and columns left out.
    class_weight : "balanced" or a mapping, optional
        What rows count for by their class.
    scale : {"standard", "minmax"}, optional
    impute : "mean" or a number, optional
        What gaps in numeric columns are filled with; ``indicator`` adds a feature that says where they were.
    tfidf, sublinear, norm, ngrams, analyzer, stop_words, min_df, max_df, vocabulary, max_features, n_hashed :
        How texts become features, as in scikit-learn's ``TfidfVectorizer`` and ``HashingVectorizer``.
    max_levels : int, optional
        The most values of a column that is one feature per value without being named.
    target_encode, target_smoothing :
        Columns whose levels become mean targets, drawn towards the mean of all rows as if that were so many rows more.
    polynomial, interactions, fourier, fourier_scale, pca, svd :
        What the features of all columns become: products of up to so many, so many random Fourier features by ``seed``, or so
        many components. One of the four.
    where, delimiter, decimal_comma, missing :
        Which rows of the files are read, and how the files are written.
    memory : int, optional
        Bytes of rows in memory; ridge and naive Bayes are fitted in batches where a file has more.
    test, holdout, cv :
        Rows that judge the model; ``summary()["scores"]`` has the figures.
    n_shards, n_slices, aggregate :
        A model in shards (SISA), which answer by "vote" or by "mean".
    head : {"ridge", "softmax"}, optional
        What scores the features of a network.
    max_tokens, encoder, hidden, layers, pooling, head_width, embeddings, embedding_words, embedding_width, train_embeddings :
        The encoder of a network and its word vectors, as docs/networks.md describes them; ``max_features`` is the most words that get
        vectors of their own. ``pooling`` is "max", "mean" or "last".
    epochs, batch_size, learning_rate, dropout, validation, patience, checkpoint :
        The training of a network.
    n_jobs : int, optional
        Threads of one fit.
    encrypt : bool
        Whether rows and arrays are encrypted, under a key in the key file.
    recovery_key : path, optional
        A new file for a key that hands over where the signing key is lost.
    overwrite : bool
        Whether a model at `path` is given up, and its log with it.
    replace : bool
        Whether the model at `path` is fitted anew on these rows while its log, keys and list of what it has forgotten go on.
    """
    balanced = isinstance(class_weight, str)
    if balanced and class_weight != "balanced":
        raise ValueError(f"class_weight = {class_weight!r} does not exist; 'balanced', a mapping and None do")
    if isinstance(alpha, str) and alpha != "auto":
        raise ValueError(f"alpha = {alpha!r} does not exist; a number and 'auto' do")
    if sublinear and not tfidf:
        raise ValueError("sublinear weighs counts of words; it needs tfidf=True")
    if isinstance(impute, str) and impute != "mean":
        raise ValueError(f"impute = {impute!r} does not exist; 'mean', a number and None do")
    chosen = {"scale": scale, "analyzer": analyzer, "norm": norm, "form": form, "aggregate": aggregate, "certify": certify}
    for name, value in {**chosen, "head": head, "pooling": pooling}.items():
        if value is not None and value not in _WORDS[name]:
            raise ValueError(f"{name} = {value!r} does not exist; {', '.join(map(repr, _WORDS[name]))} and None do")
    particular = {"smoothing": smoothing, "form": form, "epsilon": epsilon, "cell": cell, "tree": tree}
    for name, setting in particular.items():
        if setting is not None and model not in _FOR[name]:
            raise ValueError(f"{name} is for model={' or '.join(map(repr, _FOR[name]))}, not for model={model!r}")
    if epsilon is None and (certify, noise, distance) != (None, None, None):
        raise ValueError("certify, noise and distance are of a certified model; it needs epsilon")
    if distance is not None and certify != "descent_to_delete":
        raise ValueError("distance is for certify='descent_to_delete'")
    if noise is not None and certify == "descent_to_delete":
        raise ValueError("noise is for certify='certified'; descent_to_delete has a distance")
    if aggregate is not None and n_shards is None:
        raise ValueError("aggregate says how shards answer together; it needs n_shards")
    network = {
        "head": head,
        "max_tokens": max_tokens,
        "encoder": None if encoder is None else os.fspath(encoder),
        "hidden": hidden,
        "layers": layers,
        "pooling": pooling,
        "head_width": head_width,
        "embeddings": None if embeddings is None else os.fspath(embeddings),
        "embedding_words": None if embedding_words is None else os.fspath(embedding_words),
        "embedding_width": embedding_width,
        "train_embeddings": train_embeddings,
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "dropout": dropout,
        "validation": validation,
        "patience": patience,
        "checkpoint": None if checkpoint is None else os.fspath(checkpoint),
    }
    strangers = [name for name, value in network.items() if value is not None]
    if strangers and model not in _NETWORKS:
        raise ValueError(f"{strangers[0]} is for networks (model='bilstm', 'lstm' or 'minilm'), not for model={model!r}")
    several = not isinstance(source, (str, bytes)) and isinstance(source, Sequence)
    paths = [source] if is_path(source) else list(source) if several and all(map(is_path, source)) else None
    words: Any = "none" if stop_words is None else "english" if stop_words == "english" else None
    options = {
        "files": [os.fspath(each) for each in paths or ()],
        "target": _listed(target),
        "model": model,
        "alpha": None if isinstance(alpha, str) else alpha,
        "fit_intercept": fit_intercept,
        "form": form or "auto",
        "tolerance": tolerance,
        "smoothing": smoothing,
        "epsilon": epsilon,
        "delta": delta,
        "certify": certify or "certified",
        "noise": noise,
        "distance": distance,
        "n_clusters": n_clusters,
        "cell": cell,
        "tree": tree,
        "id": id,
        "subject": subject,
        "weight": weight,
        "text": _listed(text),
        "categorical": _listed(categorical),
        "numeric": _listed(numeric),
        "dates": _listed(dates),
        "ignore": _listed(ignore),
        "positive": [str(each) for each in _listed(positive)],
        "balanced": balanced,
        "class_weight": [(str(name), float(each)) for name, each in class_weight.items()]
        if isinstance(class_weight, Mapping)
        else [],
        "scale": scale or "none",
        "impute": None if impute is None else "mean" if impute == "mean" else "constant",
        "fill_value": 0.0 if impute is None or isinstance(impute, str) else float(impute),
        "indicator": indicator,
        "tfidf": tfidf,
        "sublinear": sublinear,
        "norm": norm,
        "ngrams": list(ngrams),
        "analyzer": analyzer,
        "stop_words": words or {"listed": _listed(stop_words or ())},
        "min_df": _share("min_df", min_df),
        "max_df": _share("max_df", max_df),
        "vocabulary": None if vocabulary is None else list(vocabulary),
        "max_features": max_features,
        "n_hashed": n_hashed,
        "max_levels": max_levels,
        "target_encode": _listed(target_encode),
        "target_smoothing": target_smoothing,
        "polynomial": polynomial,
        "interactions": interactions,
        "fourier": fourier,
        "fourier_scale": fourier_scale,
        "pca": pca,
        "svd": svd,
        "where": where,
        "delimiter": delimiter,
        "decimal_comma": decimal_comma,
        "missing": list(missing),
        "memory": memory,
        "test": None if test is None else os.fspath(test),
        "holdout": holdout,
        "cv": cv,
        "seed": seed,
        "n_shards": n_shards,
        "n_slices": n_slices,
        "aggregate": aggregate,
        "n_jobs": n_jobs,
        "encrypt": encrypt,
        "recovery_key": None if recovery_key is None else os.fspath(recovery_key),
        "network": network,
    }
    rows = None
    if paths is None:
        columns, records = rows_of(source)
        nothing = set(missing)
        if nothing:
            # Words in files become gaps as they are read.
            records = [[None if isinstance(cell, str) and cell.strip() in nothing else cell for cell in row] for row in records]
        rows = columns, records
    report, told = _core.fit_file(os.fspath(path), json.dumps(options), rows, overwrite, replace)
    for warning in told:
        warnings.warn(warning, UserWarning, stacklevel=2)
    relative = report["summary"]["relative_bound"]
    # A bound that says nothing is None there.
    bound = float("inf") if relative is None else relative
    warn_if_missed(report["tolerance_missed"], bound, report["tolerance"], 2)
    return ModelFile(path)
