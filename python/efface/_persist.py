"""Estimators as safetensors files. The arrays are the native half's; what Python adds is JSON in the file's note."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from ._base import Forgetting
from ._core import Model
from ._errors import BadModelError
from ._rows import RowBook

# What a fit leaves behind beside the native model. A file can set nothing else.
_ATTRIBUTES = ("n_features_in_", "feature_names_in_", "classes_", "n_iter_", "_flat", "_class_factors")


def _known() -> dict[str, type[Forgetting]]:
    from . import bayes, clusters, linear, sisa

    classes: list[type[Forgetting]] = [
        linear.Ridge,
        linear.RidgeClassifier,
        linear.LogisticRegression,
        linear.LinearSVC,
        linear.PoissonRegressor,
        bayes.GaussianNB,
        bayes.MultinomialNB,
        bayes.ComplementNB,
        bayes.BernoulliNB,
        clusters.KMeans,
        sisa.Sisa,
    ]
    return {each.__name__: each for each in classes}


def _outline(estimator: Forgetting) -> dict[str, Any]:
    """The class and the settings of an estimator."""
    if _known().get(type(estimator).__name__) is not type(estimator):
        raise TypeError(
            f"{type(estimator).__name__} is a class of its own, which load() does not know; use pickle, or save an estimator "
            "of efface itself"
        )
    parameters = {}
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, Forgetting):
            value = _outline(value)
        elif isinstance(value, dict):
            # JSON would make texts of the classes that are its keys.
            value = {"pairs": [[_plain(key), _plain(each)] for key, each in value.items()]}
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
        raise BadModelError(f"the file holds a {name!r}; {', '.join(known)} can be loaded")
    return known[name](**{key: _setting(value) for key, value in outline["parameters"].items()})


def _setting(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return dict(value["pairs"]) if "pairs" in value else _build(value)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _attribute(value: Any) -> dict[str, Any]:
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": "object" if value.dtype.kind == "O" else value.dtype.str}
    return {"value": value.item() if isinstance(value, np.generic) else value}


def _value(entry: dict[str, Any]) -> Any:
    if "array" not in entry:
        value = entry["value"]
        if not isinstance(value, (bool, int)):
            raise TypeError(f"an attribute is a {type(value).__name__}")
        return value
    listed, kind = entry["array"], np.dtype(entry["dtype"])
    if kind.kind not in "biufUO" or not isinstance(listed, list) or not all(isinstance(each, (bool, int, float, str)) for each in listed):
        raise TypeError("an attribute is no list of labels")
    # The file says how long a text may be; the texts themselves know better, and ask for no more memory than they take.
    return np.array(listed, dtype=np.str_ if kind.kind == "U" else kind)


def replace(path: Path, data: bytes) -> None:
    """Writes a file beside its place and moves it there: a file of before stays whole until the new one is."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        beside.write_bytes(data)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write(estimator: Forgetting) -> bytes:
    """The bytes of a file."""
    held = estimator._held()
    attributes = {
        name: _attribute(value)
        for name, value in vars(estimator).items()
        if name in _ATTRIBUTES
    }
    kept = held.names.state(held.model.ids)
    names = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in kept.items()}
    note = {"estimator": _outline(estimator), "attributes": attributes, "names": names}
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
    try:
        note = json.loads(text)
        estimator = _build(note["estimator"])
        attributes = {name: _value(entry) for name, entry in note["attributes"].items()}
        estimator._take(model, attributes, RowBook.from_state(note["names"], model.ids))
    except BadModelError:
        raise
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as wrong:
        raise BadModelError(
            f"the file holds a model, but its estimator cannot be read; it was not written by save() ({wrong})"
        ) from wrong
    return estimator
