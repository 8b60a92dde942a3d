"""Estimators as safetensors files. The arrays are the native half's; what Python adds is JSON in the file's note."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ._base import Fitted, Forgetting
from ._core import Model


def _known() -> dict[str, type[Forgetting]]:
    from . import bayes, clusters, linear, sisa

    classes: list[type[Forgetting]] = [
        linear.Ridge,
        linear.RidgeClassifier,
        linear.LogisticRegression,
        bayes.GaussianNB,
        bayes.MultinomialNB,
        clusters.KMeans,
        sisa.Sisa,
    ]
    return {each.__name__: each for each in classes}


def _outline(estimator: Forgetting) -> dict[str, Any]:
    """The class and the settings of an estimator."""
    parameters = {}
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, Forgetting):
            value = _outline(value)
        elif isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, np.generic):
            value = value.item()
        elif value is not None and not isinstance(value, (bool, int, float, str, list, tuple, dict)):
            raise TypeError(f"{name} is a {type(value).__name__}, which JSON cannot hold; use a plain value to save")
        parameters[name] = value
    return {"class": type(estimator).__name__, "parameters": parameters}


def _build(outline: dict[str, Any]) -> Forgetting:
    known = _known()
    name = outline["class"]
    if name not in known:
        raise ValueError(f"the file holds a {name!r}; {', '.join(known)} can be loaded")
    parameters = {
        key: _build(value) if isinstance(value, dict) and "class" in value else value
        for key, value in outline["parameters"].items()
    }
    return known[name](**parameters)


def _attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": "object" if value.dtype.kind == "O" else value.dtype.str}
    return {"value": value.item() if isinstance(value, np.generic) else value}


def write(estimator: Forgetting) -> bytes:
    """The bytes of a file."""
    held = estimator._held()
    attributes = {
        name: _attribute(value)
        for name, value in vars(estimator).items()
        if name not in estimator.get_params(deep=False) and name != "_fitted"
    }
    note = {"estimator": _outline(estimator), "attributes": attributes, "next_id": held.next_id}
    return held.model.to_bytes(json.dumps(note))


def load(path: str | os.PathLike[str]) -> Any:
    """Reads an estimator that ``save`` wrote. No code in the file is run: there is none.

    >>> import efface, numpy as np, os, tempfile
    >>> model = efface.Ridge().fit(np.eye(3), [1.0, 2.0, 3.0])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> model.save(path)
    >>> efface.load(path).forget([2]).rows
    2
    """
    model, text = Model.from_bytes(Path(path).read_bytes())
    note = json.loads(text)
    if not isinstance(note, dict) or "estimator" not in note:
        raise ValueError("the file holds a model but no estimator; it was not written by save()")
    estimator = _build(note["estimator"])
    for name, entry in note["attributes"].items():
        value = np.array(entry["array"], dtype=entry["dtype"]) if "array" in entry else entry["value"]
        setattr(estimator, name, value)
    estimator._fitted = Fitted(model, int(note["next_id"]))
    return estimator
