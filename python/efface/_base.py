"""What all estimators share: a model in the native half, rows that come and go, saving and loading."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError

from . import _input
from ._core import Evidence, Model
from ._errors import BadModelError, warn_if_missed
from ._rows import RowBook, RowCall

Self = TypeVar("Self", bound="Forgetting")


class Fitted:
    """A native model, the names of its rows, and the parameters as they were last asked for."""

    __slots__ = ("_known", "_version", "model", "names")

    def __init__(self, model: Model, names: RowBook) -> None:
        self.model = model
        self.names = names
        self._known: tuple[int, dict[str, Any]] | None = None

    def parameters(self) -> dict[str, Any]:
        """The parameters; asked of the model once after every change, whichever thread made it."""
        known = self._known
        if known is None or known[0] != self.model.version:
            self._known = known = self.model.parameters()
        return known[1]


class Forgetting(BaseEstimator):  # type: ignore[misc]
    """An estimator that can forget rows, take them in, and correct them.

    Rows have ids: whole numbers or texts that the caller chooses with ``row_ids`` (``"index"`` takes the index of a pandas
    frame), or else their position, counted through all calls. ``row_ids_`` lists the rows that the model stands for.
    ``subject`` names the person behind each row, so that ``forget(subject=...)`` finds all of them.
    """

    def _recipe(self, outputs: int) -> dict[str, Any]:
        raise NotImplementedError

    def _held(self) -> Fitted:
        held: Fitted | None = self.__dict__.get("_fitted")
        if held is None:
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before "
                "using this estimator."
            )
        return held

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _begin(self, X: Any, targets: _input.Floats, call: RowCall, weights: _input.Floats | None) -> None:
        """Fits the native model and takes it over once it is there."""
        names = RowBook()
        rows = names.plan(call, X.shape[0])
        recipe = json.dumps(self._recipe(targets.shape[1]))
        model = Model.fit(recipe, _input.native(X), targets, rows.ids, weights)
        names.enter(rows)
        self._fitted = Fitted(model, names)

    def _take(self, model: Model, attributes: dict[str, Any], names: RowBook) -> None:
        """Takes over what a file held, if it fits together."""
        classes = attributes.get("classes_")
        wanted = {
            "n_features_in_": int,
            "_flat": bool,
            "feature_names_in_": np.ndarray,
            "classes_": np.ndarray,
            "_class_factors": np.ndarray,
        }
        outputs = model.targets.shape[1]
        sound = (
            all(name in (*wanted, "n_iter_") for name in attributes)
            and all(isinstance(attributes[name], kind) for name, kind in wanted.items() if name in attributes)
            and attributes.get("n_features_in_") == model.width
            and is_classifier(self) == (classes is not None)
            and (is_regressor(self) == ("_flat" in attributes))
            and (outputs == 1 or not attributes.get("_flat", False))
            and (classes is None or (len(classes) <= 2 if outputs == 1 else len(classes) == outputs))
            and (getattr(self, "class_weight", None) is not None) == ("_class_factors" in attributes)
            and ("_class_factors" not in attributes or (classes is not None and len(attributes["_class_factors"]) == len(classes)))
            and json.loads(model.recipe)["family"] == self._recipe(outputs)["family"]
        )
        if not sound:
            raise BadModelError("the file holds an estimator that does not fit its model")
        for name, value in attributes.items():
            setattr(self, name, value)
        self._fitted = Fitted(model, names)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """A fit that fails, or is interrupted, leaves the estimator as it was, names and number of features included."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _join(
        self, X: Any, targets: _input.Floats, call: RowCall, weights: _input.Floats | None, allow_forgotten: bool
    ) -> Evidence:
        held = self._held()
        rows = held.names.joining(call, X.shape[0], allow_forgotten)
        before = held.model.version
        try:
            evidence = held.model.learn(_input.native(X), targets, rows.ids, weights)
        finally:
            # An interrupt may come too late to stop the change.
            if held.model.version != before:
                held.names.enter(rows)
        warn_if_missed(evidence.tolerance_missed, evidence.relative_bound, evidence.tolerance, 3)
        return evidence

    def _replace(self, X: Any, targets: _input.Floats, call: RowCall, weights: _input.Floats | None) -> Evidence:
        held = self._held()
        if call.row_ids is None:
            raise TypeError("amend needs row_ids: the names of the rows to replace")
        ids = held.names.named(call.row_ids, lambda: held.model.ids)
        if len(ids) != X.shape[0]:
            raise ValueError(f"there are {len(ids)} row ids for {X.shape[0]} rows; give one for each row")
        evidence = held.model.amend(_input.native(X), targets, ids, weights)
        warn_if_missed(evidence.tolerance_missed, evidence.relative_bound, evidence.tolerance, 3)
        return evidence

    def forget(
        self,
        row_ids: Any = None,
        method: str = "auto",
        *,
        subject: Any = None,
        tolerance: float | None = None,
        steps: int | None = None,
        measure: bool = False,
        clear_dead_columns: bool = False,
        allow_worse: bool = False,
    ) -> Evidence:
        """Takes rows out of the model, and out of its memory.

        Parameters
        ----------
        row_ids : int, str, array-like of them, or boolean mask
            The rows to forget, each named once. A mask has one entry for every row in ``row_ids_``, in that order.
        method : str, default="auto"
            How. ``efface.methods`` lists the names; one that makes no sense for the model is refused with the reason.
        subject : str or int, optional
            All rows of one person instead of ``row_ids``.
        tolerance : float, optional
            The relative distance bound that ``auto`` aims at, instead of the model's own. Where it cannot be reached, the rows
            are forgotten, the claim is ``approximate``, and a :class:`~efface.ToleranceWarning` tells the bound.
        steps, measure : optional
            The steps of ``newton`` on a logistic model, and whether it reads the rows that stay to measure its result.
        clear_dead_columns : bool, default=False
            Whether an approximate method is followed by setting the weights of columns that no retained row has to 0.
            ``Evidence.cleared`` tells how many there were, and their norm. Exact methods always clear them.
        allow_worse : bool, default=False
            Whether the result of an approximate method is accepted that is no nearer to retraining than the model is now, by
            ``Evidence.compared``. Otherwise such a request is refused.

        Returns
        -------
        Evidence
            What was done, and how far from retraining the result can be.
        """
        held = self._held()
        ids = self._asked(held, row_ids, subject)
        if steps is not None and steps < 1:
            raise ValueError(f"steps = {steps} is out of range; it must be 1 or more")
        before = held.model.version
        try:
            evidence = held.model.forget(ids, method, tolerance, steps, measure, clear_dead_columns, allow_worse)
        finally:
            if held.model.version != before:
                held.names.leave(ids)
        warn_if_missed(evidence.tolerance_missed, evidence.relative_bound, evidence.tolerance, 2)
        return evidence

    def _fit_evidence(self, forgotten: int) -> Evidence:
        """Returns the record of a fit that took the place of a forget of so many rows."""
        return self._held().model.fit_evidence(forgotten)

    @staticmethod
    def _asked(held: Fitted, row_ids: Any, subject: Any) -> _input.UInts:
        """The rows of a request."""
        if (row_ids is None) == (subject is None):
            raise TypeError("name either row_ids or a subject")
        return held.names.members(subject) if row_ids is None else held.names.named(row_ids, lambda: held.model.ids)

    @property
    def row_ids_(self) -> npt.NDArray[Any]:
        """The ids of the rows that the model stands for, numbers or texts, in the order of masks."""
        held = self._held()
        return np.asarray(held.names.names(held.model.ids))

    @property
    def n_rows_(self) -> int:
        """How many rows the model stands for."""
        return self._held().model.rows

    def settle(self: Self) -> Self:
        """Folds waiting changes into the curvature now, so that nothing of a forgotten row is left in it."""
        self._held().model.settle()
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        held = state.get("_fitted")
        if isinstance(held, Fitted):
            # Plain arrays and numbers, so that readers which trust no code can restore it.
            state["_fitted"] = np.frombuffer(held.model.to_bytes(""), dtype=np.uint8).copy()
            state["_names"] = held.names.state(held.model.ids)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        held = state.get("_fitted")
        if isinstance(held, np.ndarray):
            model, _ = Model.from_bytes(held.tobytes())
            state["_fitted"] = Fitted(model, RowBook.from_state(state.pop("_names"), model.ids))
        super().__setstate__(state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted estimator with its rows: safetensors and JSON, nothing that could be code.

        The file holds the rows, because forgetting needs them. ``efface.load`` reads it.
        """
        from ._persist import replace, write

        replace(Path(path), write(self))
