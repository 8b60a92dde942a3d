"""Between labels and the targets of the native half."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from ._input import Floats


def classes_of(y: Any, classes: Any = None) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """The classes in order, and the number of each label's class."""
    if classes is None and isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype == np.bool_:
        # Truth values are classes in any case, and need not be sorted to be told apart.
        there = [value for value, is_there in ((False, not y.all()), (True, y.any())) if is_there]
        found = np.array(there, dtype=np.bool_)
        return found, y.astype(np.intp) if len(found) == 2 else np.zeros(len(y), dtype=np.intp)
    check_classification_targets(y)
    labels = column_or_1d(y, warn=True)
    if classes is None:
        found, numbers = np.unique(labels, return_inverse=True)
        return found, numbers
    known = np.unique(classes)
    return known, numbers_of(labels, known)


def numbers_of(y: Any, classes: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """The number of each label's class among those that are known."""
    labels = column_or_1d(y, warn=True)
    strange = np.setdiff1d(labels, classes)
    if len(strange):
        raise ValueError(
            f"y has {len(strange)} labels that are not among the {len(classes)} classes of the model; "
            "name all classes in the first call of partial_fit, or fit anew"
        )
    return np.asarray(np.searchsorted(classes, labels), dtype=np.intp)


def targets(numbers: npt.NDArray[np.intp], classes: int, low: float = 0.0) -> Floats:
    """One column of -1 and 1 for two classes; for more, a column each, 1 for the row's own and `low` elsewhere."""
    if classes <= 2:
        return np.where(numbers == 1, 1.0, -1.0).reshape(-1, 1)
    table = np.full((len(numbers), classes), low)
    table[np.arange(len(numbers)), numbers] = 1.0
    return table
