"""Whether a model has forgotten, measured rather than claimed. ``docs/audit.md`` defines every number."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from . import _core, _input
from ._base import Forgetting
from ._html import table
from ._labels import classes_of, targets
from .clusters import KMeans, seed_of
from .linear import _columns, _threads


class Audit:
    """What an audit found. ``to_dict`` has everything; the attributes are its fields."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__.get("_fields", {})
        if name in fields:
            return fields[name]
        raise AttributeError(name)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return dict(self._fields)

    def _lines(self) -> dict[str, object]:
        """The numbers that are asked for first."""
        lines: dict[str, object] = {"forgotten": f"{self.forgotten} of {self.rows} rows"}
        if self.surviving_twins:
            lines["twins"] = f"{self.surviving_twins} of the rows live on as an equal row that stays"
        for each in self.methods:
            distance = each["distance"]
            left = distance["fraction"]
            share = "nothing to undo" if left is None else f"{left:.2e} of the way is left"
            length = "" if distance["l2"] is None else f"; distance {distance['l2']:.2e}"
            again = (each["relearning"] or {}).get("ratio")
            relearned = "" if again is None else f"; relearned in {again:.0%} of the time of retraining"
            lines[each["method"]] = f"{each['claim']}; {share}{length}{relearned}"
        for exposure in (self.membership or {}).get("exposures", []):
            attack = exposure["forgotten"]
            span = attack["auc_interval"]
            lines[f"attack, {exposure['state']}"] = f"AUC {attack['auc']:.3f} [{span['low']:.3f}, {span['high']:.3f}]"
        return lines

    def __repr__(self) -> str:
        lines = self._lines()
        width = max(len(name) for name in lines)
        return "Audit\n" + "\n".join(f"  {name:<{width}}  {value}" for name, value in lines.items())

    def _repr_html_(self) -> str:
        return table("Audit", self._lines())


class Injection:
    """What is left of a feature that only the forgotten rows had."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    @property
    def before(self) -> float:
        """The weight of the feature in the model that saw the rows."""
        return float(self._fields["before"])

    @property
    def left(self) -> dict[str, float]:
        """For each method, the weight afterwards as a share of that before; 0 is perfect."""
        return {way["method"]: float(way["ratio"]) for way in self._fields["ways"]}

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return dict(self._fields)

    def __repr__(self) -> str:
        left = ", ".join(f"{method}: {share:.3g}" for method, share in self.left.items())
        return f"Injection(before={self.before:.3g}, left={{{left}}})"

    def _repr_html_(self) -> str:
        return table("Injection", {"weight before": self.before, **self.left})


def _question(model: Any, X: Any, y: Any, forgotten: Any, row_ids: Any) -> tuple[str, Any, Any, Any, Any, bool]:
    """Recipe, features, targets, ids, ids to forget, and whether targets are classes."""
    if not isinstance(model, Forgetting):
        raise TypeError(f"model is a {type(model).__name__}; it must be an estimator of efface")
    fresh = clone(model)
    classes = bool(is_classifier(fresh))
    if isinstance(fresh, KMeans):
        X = _input.features(fresh, X, reset=True)
        table_ = np.zeros((X.shape[0], 1))
    elif classes:
        X, y = _input.features(fresh, X, reset=True, y=y)
        found, numbers = classes_of(y)
        table_ = targets(numbers, len(found), getattr(getattr(fresh, "estimator", fresh), "_low", 0.0))
    else:
        X, y = _input.features(fresh, X, reset=True, y=y, multi_output=True, y_numeric=True)
        table_ = _columns(y)
    ids = _input.ids_for(row_ids, X.shape[0], 0)
    chosen = np.asarray(forgotten)
    if chosen.dtype == np.bool_:
        if chosen.shape != ids.shape:
            raise ValueError(f"the mask has shape {chosen.shape} and X {len(ids)} rows; give one entry for each")
        gone = ids[chosen]
    else:
        gone = _input.ids(forgotten)
    recipe = json.dumps(fresh._recipe(table_.shape[1]))
    return recipe, _input.native(X), table_, ids, gone, classes


def _names(methods: str | Sequence[str]) -> list[str]:
    return [methods] if isinstance(methods, str) else list(methods)


def audit(
    model: Any,
    X: Any,
    y: Any,
    forgotten: Any,
    *,
    row_ids: Any = None,
    sample_weight: Any = None,
    methods: str | Sequence[str] = "auto",
    n_oracles: int = 32,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Audit:
    """Audits how an estimator with these settings forgets rows of these data.

    The estimator is fitted anew, with the rows and without them; every method is compared with the model that never saw
    them; and attackers are let loose on many models of each kind.

    Parameters
    ----------
    model : estimator
        Its settings count; whether it is fitted does not.
    X, y : the data, the rows to forget included; of k-means, y is ignored and may be None
    forgotten : row ids or a mask over X
    methods : str or list of str, default="auto"
    n_oracles : int, default=32
        Models for the attacks, 16 or more; 0 leaves the attacks out.

    Examples
    --------
    >>> import numpy as np, efface
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + rng.normal(size=120)
    >>> found = efface.audit(efface.Ridge(), X, y, [3, 7], methods=["exact", "influence"], n_oracles=0)
    >>> found.methods[0]["distance"]["fraction"] < 1e-9 < found.methods[1]["distance"]["fraction"]
    True
    """
    recipe, x, table_, ids, gone, classes = _question(model, X, y, forgotten, row_ids)
    weights = None if sample_weight is None else _input.straight(np.asarray(sample_weight, np.float64))
    if n_oracles < 0:
        raise ValueError(f"n_oracles = {n_oracles} is out of range; it must be 16 or more, or 0 for no attacks")
    found = _core.audit(
        recipe, x, table_, ids, weights, gone, classes, _names(methods), n_oracles, seed_of(random_state), _threads(n_jobs)
    )
    return Audit(found)


def feature_injection(
    model: Any,
    X: Any,
    y: Any,
    forgotten: Any,
    *,
    row_ids: Any = None,
    methods: str | Sequence[str] = ("auto",),
) -> Injection:
    """Plants a feature that only the rows to forget have, forgets them, and looks at what is left of its weight.

    >>> import numpy as np, efface
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> y = X @ [1.0, 2.0, 3.0, 4.0]
    >>> efface.feature_injection(efface.Ridge(alpha=0.1), X, y, [3, 7], methods=["exact"]).left
    {'exact': 0.0}
    """
    recipe, x, table_, ids, gone, _ = _question(model, X, y, forgotten, row_ids)
    return Injection(_core.injection(recipe, x, table_, ids, gone, _names(methods)))
