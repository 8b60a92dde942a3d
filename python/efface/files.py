"""Model files and receipts: what the command `efface` writes, from Python."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import Evidence
from ._errors import warn_if_missed
from ._html import table
from ._tables import rows_of


class Receipt:
    """A signed receipt with its proofs: what an auditor needs, and no content of any row."""

    def __init__(self, file: bytes) -> None:
        self._bytes = bytes(file)
        self._receipt: dict[str, Any] = _core.read_receipt(self._bytes)

    @property
    def id(self) -> str:
        """Its name."""
        return str(self._receipt["id"])

    @property
    def sequence(self) -> int:
        """Its place in the log, from 0."""
        return int(self._receipt["sequence"])

    @property
    def kind(self) -> str:
        """What was asked for: ``fit``, ``forget``, ``learn``, …."""
        return str(self._receipt["kind"])

    @property
    def outcome(self) -> str:
        """What came of it."""
        return str(self._receipt["outcome"])

    def to_dict(self) -> dict[str, Any]:
        """The receipt alone, as it was signed."""
        return dict(self._receipt)

    def to_bytes(self) -> bytes:
        """The bytes of the receipt's file, proofs included."""
        return self._bytes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file that ``efface verify`` reads."""
        Path(path).write_bytes(self._bytes)

    def __repr__(self) -> str:
        rows = self._receipt["rows"]
        return (
            f"Receipt(sequence={self.sequence}, kind={self.kind!r}, outcome={self.outcome!r}, "
            f"removed={rows['removed']}, added={rows['added']}, id={self.id!r})"
        )

    def _repr_html_(self) -> str:
        return table("Receipt", self._receipt)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Receipt) and self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)


class Report:
    """What a change to a model file did."""

    def __init__(self, fields: dict[str, Any], evidence: Evidence, receipt: Receipt | None) -> None:
        self._fields = fields
        self.evidence = evidence
        self.receipt = receipt

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__.get("_fields", {})
        if name in fields:
            return fields[name]
        raise AttributeError(f"a report has no {name!r}; it has {', '.join(sorted([*fields, 'evidence', 'receipt']))}")

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return dict(self._fields)

    def __repr__(self) -> str:
        shown = ("outcome", "method", "claim", "forgotten", "learned", "rows", "bound")
        return f"Report({', '.join(f'{name}={self._fields[name]!r}' for name in shown)})"

    def _repr_html_(self) -> str:
        return table("Report", {name: value for name, value in self._fields.items() if name != "evidence"})


class ModelFile:
    """A model in a file: every change is one transaction and leaves a signed receipt.

    :func:`open` makes one.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._file = _core.ModelFile(os.fspath(path), read_only)

    def forget(
        self,
        row_ids: str | int | Iterable[str | int] | None = None,
        *,
        subject: tuple[str, str] | None = None,
        method: str = "auto",
        tolerance: float | None = None,
        request_id: str | None = None,
        allow_missing: bool = False,
        dry_run: bool = False,
    ) -> Report:
        """Takes rows out of the model and out of the file.

        Parameters
        ----------
        row_ids : str or list of str, optional
            The rows, as the id column names them.
        subject : (column, value), optional
            All rows of one person instead.
        method : str
            As ``efface forget --help`` lists them. ``fine_tune``, ``neggrad_plus`` and ``scrub`` train a network further, at
            their default settings.
        request_id : str, optional
            The caller's name for the request: one effect, however often it comes.
        allow_missing : bool
            Whether rows that are not here are passed over.
        dry_run : bool
            Compute everything and write nothing.
        """
        if isinstance(row_ids, (bytes, bytearray)):
            # Its elements would pass for ids.
            raise TypeError("row_ids is bytes; ids are texts")
        ids: list[str] | None = None
        if row_ids is not None:
            ids = [str(each) for each in ([row_ids] if isinstance(row_ids, (str, int)) else row_ids)]
        fields, evidence = self._file.forget(ids, subject, method, tolerance, request_id, allow_missing, dry_run)
        return self._report(fields, evidence)

    def learn(self, source: Any) -> Report:
        """Adds the rows of a file, or of a frame whose columns are those of the file that the model was fitted on."""
        return self._report(*self._file.learn(self._rows(source)))

    def amend(self, source: Any) -> Report:
        """Replaces rows by those of the same id in a file or a frame."""
        return self._report(*self._file.amend(self._rows(source)))

    def _report(self, fields: dict[str, Any], evidence: Evidence) -> Report:
        warn_if_missed(evidence.tolerance_missed, evidence.relative_bound, evidence.tolerance, 3)
        logged = fields.get("receipt")
        receipt = None if logged is None else self.receipt(logged["sequence"])
        return Report(fields, evidence, receipt)

    def predict(self, source: Any) -> Any:
        """What the model answers.

        Parameters
        ----------
        source : path, frame, or array
            For a file, a dict for every row comes back, with its id, scores and label. For a frame, whose columns are found by
            name, or an array, whose columns are in the order of ``summary()["feature_columns"]``, an array: labels of a
            classifier or clusters, else numbers, with a column for each target where there are several.
        """
        found = self._file.predict(self._rows(source))
        if _is_path(source):
            return found
        if found and found[0]["label"] is not None:
            return np.array([each["label"] for each in found])
        scores = np.array([each["scores"] for each in found], dtype=np.float64)
        return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores

    def predict_proba(self, source: Any) -> npt.NDArray[np.float64]:
        """The probability of every class, a line for each row of a file, a frame or an array."""
        found = self._file.predict(self._rows(source))
        if any(each["probabilities"] is None for each in found):
            raise AttributeError(f"a model of {self.summary()['model']} has no probabilities")
        return np.array([each["probabilities"] for each in found], dtype=np.float64)

    def _rows(self, source: Any) -> Any:
        """A path, or the columns and rows of a frame, of records or of an array."""
        if _is_path(source):
            return os.fspath(source)
        return rows_of(source, lambda: [column[0] for column in self.summary()["feature_columns"]])

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """A linear model, naive Bayes, or a network as ONNX, in single precision; written to `path` where one is given.

        The input is a row of features as the model is fed with them; the metadata of the file name ``features`` and ``classes``, and
        the shift and scale of numbers. The log gets a receipt of the copy, and a later forget withdraws it.
        """
        model = self._file.to_onnx(None if path is None else os.fspath(path))
        if path is not None:
            Path(path).write_bytes(model)
        return model

    def receipt(self, which: int | str) -> Receipt:
        """The receipt of this number or id, with its proofs."""
        return Receipt(self._file.bundle(str(which)))

    def receipts(self) -> list[Receipt]:
        """All receipts, oldest first."""
        return [self.receipt(each["sequence"]) for each in self._file.receipts()]

    @property
    def public_key(self) -> str:
        """The public keys of the log, one a line: what :func:`verify` wants. One key, unless it was replaced."""
        return self._file.public_keys()

    def checkpoint(self) -> str:
        """The signed head of the log."""
        return self._file.checkpoint()

    def verify(self, key: str | None = None) -> list[dict[str, Any]]:
        """Recomputes from what is stored all that the log says; every check says whether it ``passed``."""
        return self._file.verify(key)

    def summary(self) -> dict[str, Any]:
        """What the file holds."""
        return self._file.summary()

    def parameters(self) -> dict[str, Any]:
        """The parameters, by name."""
        return self._file.parameters()

    def settle(self) -> dict[str, Any]:
        """Gives back the places of forgotten rows."""
        return self._file.settle()

    def __repr__(self) -> str:
        summary = self.summary()
        return f"ModelFile({os.fspath(self.path)!r}, model={summary['model']!r}, rows={summary['rows']})"

    def _repr_html_(self) -> str:
        return table("ModelFile", self.summary())


def open(path: str | os.PathLike[str], *, read_only: bool = False) -> ModelFile:
    """Opens a model file that the command ``efface fit`` or :func:`create` wrote.

    >>> import efface, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> table = os.path.join(folder, "houses.csv")
    >>> rows = ["house,owner,rooms,price", "h1,ann,3,210", "h2,bob,5,340", "h3,ann,2,150", "h4,cy,4,280"]
    >>> with __builtins__["open"](table, "w") as file:
    ...     _ = file.write("\\n".join(rows))
    >>> model = efface.create(table, os.path.join(folder, "houses.efface"), target="price", id="house", subject="owner")
    >>> report = model.forget(subject=("owner", "ann"))
    >>> report.forgotten, report.claim
    (2, 'exact')
    >>> efface.verify(report.receipt, model.public_key).kind
    'forget'
    """
    return ModelFile(path, read_only=read_only)


def _is_path(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike))


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
    tolerance: float | None = None,
    smoothing: float | None = None,
    epsilon: float | None = None,
    delta: float = 1e-5,
    noise: float | None = None,
    n_clusters: int = 8,
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
    test: str | os.PathLike[str] | None = None,
    holdout: float | None = None,
    cv: int | None = None,
    seed: int = 0,
    n_shards: int | None = None,
    n_slices: int = 1,
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
    epsilon, delta, noise :
        A logistic model trained with noise of this standard deviation in its objective, so that forgetting is certified (ε, δ).
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
    target_encode, target_smoothing :
        Columns whose levels become mean targets, drawn towards the mean of all rows as if that were so many rows more.
    polynomial, interactions, fourier, fourier_scale, pca, svd :
        What the features of all columns become: products of up to so many, so many random Fourier features by ``seed``, or so
        many components. One of the four.
    where, delimiter, decimal_comma, missing :
        Which rows of the files are read, and how the files are written.
    test, holdout, cv :
        Rows that judge the model; ``summary()["scores"]`` has the figures.
    n_shards, n_slices :
        A model in shards (SISA).
    head : {"ridge", "softmax"}, optional
        What scores the features of a network.
    max_tokens, encoder, hidden, layers, pooling, head_width, embeddings, embedding_words, embedding_width, train_embeddings :
        The encoder of a network and its word vectors, as docs/networks.md describes them; ``max_features`` is the most words that get
        vectors of their own. ``pooling`` is "max", "mean" or "last".
    epochs, batch_size, learning_rate, dropout, validation, patience, checkpoint, n_jobs :
        The training of a network.
    encrypt : bool
        Whether rows and arrays are encrypted, under a key in the key file.
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
    if scale not in (None, "standard", "minmax"):
        raise ValueError(f"scale = {scale!r} does not exist; 'standard', 'minmax' and None do")
    if analyzer not in ("word", "char", "char_wb"):
        raise ValueError(f"analyzer = {analyzer!r} does not exist; 'word', 'char' and 'char_wb' do")
    if norm not in (None, "l2"):
        raise ValueError(f"norm = {norm!r} does not exist; 'l2' and None do")
    if sublinear and not tfidf:
        raise ValueError("sublinear weighs counts of words; it needs tfidf=True")
    if isinstance(impute, str) and impute != "mean":
        raise ValueError(f"impute = {impute!r} does not exist; 'mean', a number and None do")
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
        "n_jobs": n_jobs,
    }
    given = [name for name, value in network.items() if value is not None]
    if given and model not in ("bilstm", "lstm", "minilm"):
        raise ValueError(f"{given[0]} is for networks (model='bilstm', 'lstm' or 'minilm'), not for model={model!r}")
    if head not in (None, "ridge", "softmax"):
        raise ValueError(f"head = {head!r} does not exist; 'ridge', 'softmax' and None do")
    if pooling not in (None, "max", "mean", "last"):
        raise ValueError(f"pooling = {pooling!r} does not exist; 'max', 'mean', 'last' and None do")
    several = not isinstance(source, (str, bytes)) and isinstance(source, Sequence)
    paths = [source] if _is_path(source) else list(source) if several and all(map(_is_path, source)) else None
    words: Any = "none" if stop_words is None else "english" if stop_words == "english" else None
    options = {
        "files": [os.fspath(each) for each in paths or ()],
        "target": _listed(target),
        "model": model,
        "alpha": None if isinstance(alpha, str) else alpha,
        "fit_intercept": fit_intercept,
        "tolerance": tolerance,
        "smoothing": smoothing,
        "epsilon": epsilon,
        "delta": delta,
        "noise": noise,
        "n_clusters": n_clusters,
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
        "test": None if test is None else os.fspath(test),
        "holdout": holdout,
        "cv": cv,
        "seed": seed,
        "n_shards": n_shards,
        "n_slices": n_slices,
        "encrypt": encrypt,
        "network": network,
    }
    rows = rows_of(source) if paths is None else None
    report = _core.fit_file(os.fspath(path), json.dumps(options), rows, overwrite, replace)
    relative = report["summary"]["relative_bound"]
    # A bound that says nothing is None there.
    bound = float("inf") if relative is None else relative
    warn_if_missed(report["tolerance_missed"], bound, report["tolerance"], 2)
    return ModelFile(path)


def verify(receipt: Receipt | bytes | str | os.PathLike[str], key: str) -> Receipt:
    """Checks a receipt against public keys of its log: signature, place in the log, head of the log.

    Parameters
    ----------
    receipt : Receipt, the bytes of its file, or the path of the file
    key : str
        The public keys, one a line, as ``ModelFile.public_key`` or ``efface keys`` gives it.

    Returns
    -------
    Receipt
        The receipt, verified. Anything that does not hold raises :class:`~efface.VerificationError`.
    """
    if not isinstance(receipt, Receipt):
        if isinstance(receipt, (str, os.PathLike)):
            receipt = Path(receipt).read_bytes()
        if not isinstance(receipt, bytes):
            raise TypeError(f"a receipt is its bytes or its file, not a {type(receipt).__name__}")
        _core.verify_bundle(receipt, key)
        return Receipt(receipt)
    _core.verify_bundle(receipt.to_bytes(), key)
    return receipt
