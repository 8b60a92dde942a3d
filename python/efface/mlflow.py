"""Estimators for MLflow: ``save_model`` writes a pyfunc model whose data is the safetensors file of the estimator."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from ._base import Forgetting
from ._persist import load


def save_model(estimator: Forgetting, path: str | os.PathLike[str], **settings: Any) -> None:
    """Writes an MLflow model that ``mlflow.pyfunc.load_model`` reads. It needs mlflow and this package, and no pickle."""
    import mlflow.pyfunc

    settings.setdefault("pip_requirements", ["efface"])
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "estimator.safetensors"
        estimator.save(data)
        mlflow.pyfunc.save_model(
            path=os.fspath(path), loader_module="efface.mlflow", data_path=os.fspath(data), **settings
        )


def _load_pyfunc(path: str) -> Any:
    """What MLflow calls: the estimator has the `predict` that it wants."""
    found = Path(path)
    return load(found / "estimator.safetensors" if found.is_dir() else found)
