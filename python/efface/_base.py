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
from ._errors import BadModelError, DuplicateRowError, RefusedError, UnknownRowError, warn_if_missed

Self = TypeVar("Self", bound="Forgetting")


class Fitted:
    """A native model, the parameters as they were last asked for, the names of rows, and the first position that is free."""

    __slots__ = ("_known", "_version", "forgotten", "labels", "model", "names", "next_id")

    def __init__(self, model: Model, next_id: int, labels: dict[str, int] | None = None) -> None:
        self.model = model
        self.next_id = next_id
        #: Where rows are named by texts, the number of each row in the native half.
        self.labels = labels
        #: The other way round.
        self.names: dict[int, str] = {}
        #: The names of rows that were forgotten, which may not come back by accident.
        self.forgotten: set[int | str] = set()
        self._known: tuple[int, dict[str, Any]] | None = None

    def parameters(self) -> dict[str, Any]:
        """The parameters; asked of the model once after every change, whichever thread made it."""
        known = self._known
        if known is None or known[0] != self.model.version:
            self._known = known = self.model.parameters()
        return known[1]

    def took(self, ids: _input.UInts, names: list[str] | None = None) -> None:
        """After rows came under these ids."""
        if len(ids):
            self.next_id = max(self.next_id, int(ids.max()) + 1)
        if names is not None and self.labels is not None:
            self.labels.update(zip(names, ids.tolist()))
            self.names.update(zip(ids.tolist(), names))
        if self.forgotten:
            self.forgotten.difference_update(ids.tolist() if names is None else names)

    def left(self, ids: _input.UInts) -> None:
        """After the rows of these ids were forgotten."""
        gone = ids.tolist()
        if self.labels is None:
            self.forgotten.update(gone)
            return
        names = [self.names.pop(number) for number in gone]
        for name in names:
            del self.labels[name]
        self.forgotten.update(names)

    def new_ids(self, row_ids: Any, rows: int, allow_forgotten: bool) -> tuple[_input.UInts, list[str] | None]:
        """The numbers of rows that join, and their names where these are texts."""
        names = _input.texts(row_ids)
        if (names is None) != (self.labels is None):
            kind = "whole numbers" if self.labels is None else "texts"
            raise TypeError(f"the rows of this model are named by {kind}; name new rows likewise")
        ids, names = named_ids(row_ids, rows, self.next_id)
        back = [name for name in (names or ids.tolist()) if name in self.forgotten]
        if back and not allow_forgotten:
            raise RefusedError(f"row id {back[0]!r} was forgotten; allow_forgotten=True takes it in again")
        for name in names or ():
            if self.labels is not None and name in self.labels:
                raise DuplicateRowError(f"row id {name!r} is in the model already; amend() replaces its content")
        return ids, names

    def outline(self) -> dict[str, Any]:
        """The names of rows as plain lists."""
        outline: dict[str, Any] = {"forgotten": sorted(self.forgotten, key=str)}
        if self.labels is not None:
            outline["names"] = list(self.labels)
            outline["numbers"] = list(self.labels.values())
        return outline

    def take_names(self, outline: dict[str, Any]) -> None:
        """The inverse of :meth:`outline`, if it fits the model."""
        forgotten = outline["forgotten"]
        if "names" in outline:
            self.labels = dict(zip(outline["names"], outline["numbers"]))
            self.names = dict(zip(outline["numbers"], outline["names"]))
            numbers = sorted(self.labels.values())
            if not all(isinstance(name, str) for name in self.labels) or numbers != sorted(self.model.ids.tolist()):
                raise BadModelError("the file names rows that its model does not have")
        self.forgotten = set(forgotten)

    def ids_of(self, names: list[str]) -> _input.UInts:
        """The numbers of rows that are named by texts."""
        if self.labels is None:
            raise TypeError("the rows of this model are named by whole numbers, and not by texts")
        if len(set(names)) < len(names):
            raise DuplicateRowError("a row id is named twice; name every row once")
        for name in names:
            if name not in self.labels:
                why = "it has been forgotten" if name in self.forgotten else "it was never there"
                raise UnknownRowError(f"there is no row of id {name!r}: {why}")
        return np.array([self.labels[name] for name in names], dtype=np.uint64)


def named_ids(row_ids: Any, rows: int, first: int) -> tuple[_input.UInts, list[str] | None]:
    """The numbers of new rows, and their names where these are texts."""
    names = _input.texts(row_ids)
    if names is None:
        return _input.ids_for(row_ids, rows, first), None
    if len(names) != rows:
        raise ValueError(f"there are {len(names)} row ids for {rows} rows; give one for each row")
    if len(set(names)) < rows:
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise DuplicateRowError(f"row id {twice!r} is given twice; every row needs a name of its own")
    return _input.ids_for(None, rows, first), names


class Forgetting(BaseEstimator):  # type: ignore[misc]
    """An estimator that can forget rows, take them in, and correct them.

    Rows have ids: whole numbers or texts that the caller chooses with ``row_ids`` (``row_ids=frame.index`` for a frame), or else
    their position, counted through all calls. A forgotten id does not come back by ``partial_fit`` unless that is allowed. ``row_ids_`` lists the rows that the model stands for.
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

    def _begin(self, X: Any, targets: _input.Floats, row_ids: Any, weights: _input.Floats | None) -> None:
        """Fits the native model and takes it over once it is there."""
        ids, names = named_ids(row_ids, X.shape[0], 0)
        recipe = json.dumps(self._recipe(targets.shape[1]))
        model = Model.fit(recipe, _input.native(X), targets, ids, weights)
        fitted = Fitted(model, 0, None if names is None else {})
        fitted.took(ids, names)
        self._fitted = fitted

    def _take(self, model: Model, attributes: dict[str, Any], next_id: int, names: dict[str, Any]) -> None:
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
            and next_id >= 0
            and (getattr(self, "class_weight", None) is not None) == ("_class_factors" in attributes)
            and ("_class_factors" not in attributes or len(attributes["_class_factors"]) == len(attributes["classes_"]))
            and json.loads(model.recipe)["family"] == self._recipe(outputs)["family"]
        )
        if not sound:
            raise BadModelError("the file holds an estimator that does not fit its model")
        for name, value in attributes.items():
            setattr(self, name, value)
        fitted = Fitted(model, next_id)
        fitted.take_names(names)
        self._fitted = fitted

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
        self, X: Any, targets: _input.Floats, row_ids: Any, weights: _input.Floats | None, allow_forgotten: bool = False
    ) -> Evidence:
        held = self._held()
        ids, names = held.new_ids(row_ids, X.shape[0], allow_forgotten)
        before = held.model.version
        try:
            evidence = held.model.learn(_input.native(X), targets, ids, weights)
        finally:
            # An interrupt may come too late to stop the change.
            if held.model.version != before:
                held.took(ids, names)
        warn_if_missed(evidence.tolerance_missed, evidence.relative_bound, evidence.tolerance, 3)
        return evidence

    def _replace(self, X: Any, targets: _input.Floats, row_ids: Any, weights: _input.Floats | None) -> Evidence:
        held = self._held()
        if row_ids is None:
            raise TypeError("amend needs row_ids: the names of the rows to replace")
        names = _input.texts(row_ids)
        ids = _input.ids_for(row_ids, X.shape[0], 0) if names is None else held.ids_of(names)
        if len(ids) != X.shape[0]:
            raise ValueError(f"there are {len(ids)} row ids for {X.shape[0]} rows; give one for each row")
        evidence = held.model.amend(_input.native(X), targets, ids, weights)
        warn_if_missed(evidence.tolerance_missed, evidence.relative_bound, evidence.tolerance, 3)
        return evidence

    def forget(
        self,
        row_ids: Any,
        method: str = "auto",
        *,
        tolerance: float | None = None,
        steps: int | None = None,
        measure: bool = False,
        clear_dead_columns: bool = False,
    ) -> Evidence:
        """Takes rows out of the model, and out of its memory.

        Parameters
        ----------
        row_ids : int, str, array-like of them, or boolean mask
            The rows to forget, each named once, as ``fit`` named them. A mask has one entry for every row in ``row_ids_``, in that order.
        method : str, default="auto"
            How. ``efface.methods`` lists the names; one that makes no sense for the model is refused with the reason.
        tolerance : float, optional
            The relative distance bound that ``auto`` must reach: where it cannot, an error says so and nothing changes.
            Without it the model's own is aimed at, and missing that is a :class:`~efface.ToleranceWarning`.
        steps, measure : optional
            The steps of ``newton`` on a logistic model, and whether it reads the rows that stay to measure its result.
        clear_dead_columns : bool, default=False
            Whether an approximate method is followed by setting the weights of columns that no retained row has to 0.
            ``Evidence.cleared`` tells how many there were, and their norm. Exact methods always clear them.

        Returns
        -------
        Evidence
            What was done, and how far from retraining the result can be.
        """
        held = self._held()
        ids = self._named(held, row_ids)
        if steps is not None and steps < 1:
            raise ValueError(f"steps = {steps} is out of range; it must be 1 or more")
        before = held.model.version
        try:
            evidence = held.model.forget(ids, method, tolerance, steps, measure, clear_dead_columns)
        finally:
            # An interrupt may come too late to stop the change.
            if held.model.version != before:
                held.left(ids)
        warn_if_missed(evidence.tolerance_missed, evidence.relative_bound, evidence.tolerance, 2)
        return evidence

    @staticmethod
    def _named(held: Fitted, row_ids: Any) -> _input.UInts:
        if type(row_ids) is int and held.labels is None:
            return _input.ids(row_ids)
        names = _input.texts(row_ids)
        if names is not None:
            return held.ids_of(names)
        array = np.asarray(row_ids)
        if held.labels is not None and array.size and array.dtype != np.bool_:
            raise TypeError("the rows of this model are named by texts; name them so")
        if array.dtype != np.bool_:
            return _input.ids(row_ids if array.dtype.kind in "fO" else array)
        here = held.model.ids
        if array.shape != here.shape:
            raise ValueError(f"the mask has shape {array.shape} and the model {len(here)} rows; give one entry for each")
        return np.asarray(here[array])

    @property
    def row_ids_(self) -> npt.NDArray[Any]:
        """The ids of the rows that the model stands for, in the order of masks."""
        held = self._held()
        if held.labels is None:
            return held.model.ids
        return np.array([held.names[number] for number in held.model.ids.tolist()])

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
            state["_next_id"] = held.next_id
            state["_row_names"] = held.outline()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        held = state.get("_fitted")
        if isinstance(held, np.ndarray):
            model, _ = Model.from_bytes(held.tobytes())
            fitted = Fitted(model, int(state.pop("_next_id")))
            fitted.take_names(state.pop("_row_names"))
            state["_fitted"] = fitted
        super().__setstate__(state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted estimator with its rows: safetensors and JSON, nothing that could be code.

        The file holds the rows, because forgetting needs them. ``efface.load`` reads it.
        """
        from ._persist import replace, write

        replace(Path(path), write(self))
