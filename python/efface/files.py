"""Model files and receipts: what the command `efface` writes, from Python."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from ._core import Evidence
from ._errors import warn_if_missed
from ._html import table
from ._tables import is_path, rows_of


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

    def learn(self, source: Any, *, request_id: str | None = None) -> Report:
        """Adds the rows of a file, or of a frame whose columns are those of the file that the model was fitted on.

        Parameters
        ----------
        request_id : str, optional
            The caller's name for the request: one effect, however often it comes. Without it, the same rows are learned twice
            where they have no ids; that is a ``UserWarning``.
        """
        fields, evidence, remarks = self._file.learn(self._rows(source), request_id)
        for remark in remarks:
            warnings.warn(remark, UserWarning, stacklevel=2)
        return self._report(fields, evidence)

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
        if is_path(source):
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

    def evaluate(self, source: Any) -> dict[str, Any]:
        """How good the model is on rows of a file or a frame that have its target: the figures of ``efface evaluate``, beside those of the
        best constant answer."""
        return self._file.evaluate(self._rows(source))

    def _rows(self, source: Any) -> Any:
        """A path, or the columns and rows of a frame, of records or of an array."""
        if is_path(source):
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
    """Opens a model file that the command ``efface fit`` or :func:`efface.create` wrote.

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
