"""The exceptions of this package. Each has a parent that scikit-learn users already catch."""

from __future__ import annotations

import warnings

import numpy as np


class UnknownRowError(KeyError, ValueError):
    """A row id is not in the model: it was never there, or it has been forgotten already."""

    def __str__(self) -> str:
        # A KeyError would show the message in quotes.
        return str(self.args[0]) if self.args else ""


class DuplicateRowError(ValueError):
    """A row id is named twice, or is in the model already."""


class NotDeterminedError(np.linalg.LinAlgError):
    """The rows that are left do not determine the parameters; a penalty would."""


class NotConvergedError(RuntimeError):
    """Training stopped before its tolerance."""


class RefusedError(ValueError):
    """The engine does not do what was asked, and says why."""


class BadModelError(ValueError):
    """A file is not a model, is damaged, or is of a newer version."""


class ToleranceWarning(UserWarning):
    """A change was made, but the bound on its distance to retraining is above the tolerance: its claim is approximate."""


class VerificationError(ValueError):
    """A receipt does not hold. The message begins with the check that failed."""


def warn_if_missed(missed: bool, relative_bound: float, tolerance: float | None, depth: int) -> None:
    """Warns of a change that missed its tolerance; `depth` calls lie between the caller of this package and here."""
    if missed:
        warnings.warn(
            f"the distance to retraining is at most {relative_bound:.1e} (relative), above the tolerance of "
            f"{tolerance or 0.0:.1e}; the result is approximate",
            ToleranceWarning,
            stacklevel=depth + 1,
        )
