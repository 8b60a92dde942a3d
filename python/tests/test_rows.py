"""Rows that come, go and change: ids, masks, routing, methods, evidence."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
import sklearn
import sklearn.linear_model
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import efface

rng = np.random.default_rng(7)
X = rng.normal(size=(80, 5))
Y = X @ [1.0, -1.0, 0.5, 0.0, 2.0] + 0.1 * rng.normal(size=80)
LABELS = np.where(X[:, 0] + 0.3 * rng.normal(size=80) > 0, "yes", "no")
MANY = np.digitize(X[:, 0], [-0.7, 0.7])

MODELS = [
    (efface.Ridge(), Y),
    (efface.Ridge(), np.column_stack([Y, -Y])),
    (efface.RidgeClassifier(), LABELS),
    (efface.RidgeClassifier(), MANY),
    (efface.LogisticRegression(forget_tol=1e-6), LABELS),
    (efface.LogisticRegression(forget_tol=1e-6), MANY),
    (efface.GaussianNB(), LABELS),
    (efface.MultinomialNB(), MANY),
    (efface.ComplementNB(), MANY),
    (efface.BernoulliNB(), LABELS),
    (efface.LinearSVC(), LABELS),
    (efface.LinearSVC(class_weight="balanced"), MANY),
    (efface.PoissonRegressor(), np.abs(Y)),
    (efface.LogisticRegression(class_weight="balanced"), LABELS),
    (efface.LogisticRegression(class_weight={0: 2.0, 2: 0.5}, forget_tol=1e-6), MANY),
    (efface.RidgeClassifier(class_weight="balanced"), MANY),
    (efface.KMeans(n_clusters=3), None),
    (efface.Sisa(efface.Ridge(), n_shards=3), Y),
    (efface.Sisa(efface.LogisticRegression(forget_tol=1e-6), n_shards=3, n_slices=2), MANY),
    (efface.Sisa(efface.GaussianNB(), n_shards=3), LABELS),
]


def table(model):
    return np.abs(np.round(X * 3)) if isinstance(model, (efface.MultinomialNB, efface.ComplementNB)) else X


def of(y, which):
    return None if y is None else y[which]


def scores(model, x):
    if isinstance(model, efface.KMeans):
        return model.transform(x)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(x)
    return model.decision_function(x) if hasattr(model, "decision_function") else model.predict(x)


def names(case):
    return type(case).__name__ if not isinstance(case, np.ndarray) else f"{case.dtype.kind}{case.ndim}"


@pytest.mark.parametrize(("model", "y"), MODELS, ids=names)
def test_forget_equals_a_fit_without_the_rows(model, y):
    x = table(model)
    ids = np.arange(80) * 10
    fitted = sklearn.clone(model).fit(x, y, row_ids=ids)
    gone = [30, 210, 790]
    evidence = fitted.forget(gone)
    stays = ~np.isin(ids, gone)
    fresh = sklearn.clone(model).fit(x[stays], of(y, stays), row_ids=ids[stays])
    assert np.allclose(scores(fitted, x), scores(fresh, x), atol=1e-6)
    assert (evidence.forgotten, evidence.rows, fitted.n_rows_) == (3, 77, 77)
    assert not np.isin(fitted.row_ids_, gone).any()


CLASSES = [each for each in (getattr(efface, name) for name in efface.__all__) if inspect.isclass(each)]


def test_no_class_is_left_out_of_these_tests():
    assert {type(model) for model, _ in MODELS} == {each for each in CLASSES if hasattr(each, "amend") and hasattr(each, "save")} - {
        efface.ModelFile
    }


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_names_of_rows_are_given_by_keyword_and_weights_come_third(kind):
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        parameters = inspect.signature(method).parameters
        # The first argument of forget can be nothing but the rows.
        if name.startswith("_") or name == "forget":
            continue
        for each in {"row_ids", "subject"} & set(parameters):
            assert parameters[each].kind is inspect.Parameter.KEYWORD_ONLY, f"{kind.__name__}.{name}"
        if name in ("fit", "fit_transform", "fit_predict", "amend") and "row_ids" in parameters:
            by_position = [each.name for each in parameters.values() if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
            assert by_position[1:] in (["X", "y", "sample_weight"], ["X", "y"]), f"{kind.__name__}.{name}"


@pytest.mark.parametrize(("model", "y"), MODELS, ids=names)
def test_the_third_argument_is_weights(model, y):
    x = table(model)
    weights = np.arange(80) % 3 + 1
    by_position = sklearn.clone(model).fit(x, y, weights)
    by_name = sklearn.clone(model).fit(x, y, sample_weight=weights)
    assert np.array_equal(scores(by_position, x), scores(by_name, x))
    assert by_position.row_ids_.tolist() == list(range(80)), "weights are no names"
    by_position.amend(x[:2], of(y, slice(0, 2)), weights[:2], row_ids=[0, 1])
    assert np.allclose(scores(by_position, x), scores(by_name, x), atol=1e-6)
    with pytest.raises(TypeError, match="positional"):
        model.fit(x, y, weights, np.arange(80))


@pytest.mark.parametrize(("model", "y"), MODELS, ids=names)
def test_a_mask_is_a_choice_of_rows(model, y):
    x = table(model)
    mask = np.arange(80) % 20 == 3
    a = sklearn.clone(model).fit(x, y)
    b = sklearn.clone(model).fit(x, y)
    a.forget(mask)
    b.forget(np.flatnonzero(mask))
    assert np.array_equal(scores(a, x), scores(b, x))


@pytest.mark.parametrize(("model", "y"), MODELS, ids=names)
def test_partial_fit_and_amend_equal_a_fit(model, y):
    x = table(model)
    wrong = x.copy()
    wrong[5] = wrong[6] + 1
    first, rest = np.arange(60), np.arange(60, 80)
    fitted = sklearn.clone(model).fit(wrong[first], of(y, first))
    fitted.partial_fit(x[rest], of(y, rest))
    assert fitted.row_ids_.max() == 79
    evidence = fitted.amend(x[[5]], of(y, [5]), row_ids=[5])
    assert (evidence.forgotten, evidence.learned) == (1, 1)
    fresh = sklearn.clone(model).fit(x, y)
    assert np.allclose(scores(fitted, x), scores(fresh, x), atol=1e-6)


def test_positions_go_on_after_the_largest_id():
    model = efface.Ridge().fit(X[:2], Y[:2], row_ids=[5, 100])
    model.forget([100])
    model.partial_fit(X[2:4], Y[2:4])
    assert model.row_ids_.tolist() == [5, 101, 102]


@pytest.mark.parametrize("method", ["retrain", "exact", "newton", "summation", "influence"])
def test_methods_by_name(method):
    model = efface.Ridge().fit(X, Y)
    evidence = model.forget([1], method=method)
    assert evidence.method == method
    assert evidence.claim == ("approximate" if method == "influence" else "exact")


def test_a_method_of_another_model_is_refused_with_the_reason():
    model = efface.LogisticRegression().fit(X, LABELS)
    with pytest.raises(ValueError, match="no closed form; use newton"):
        model.forget([1], method="exact")
    with pytest.raises(ValueError, match="magic"):
        model.forget([1], method="magic")
    assert model.n_rows_ == 80
    assert model.forget([1], method="newton", steps=2, measure=True).method == "newton"
    assert model.forget([2], tolerance=1e-9).relative_bound <= 1e-9


def test_evidence_reads_well():
    evidence = efface.Ridge().fit(X, Y).forget(3)
    assert repr(evidence).startswith('Evidence(method="exact", claim="exact", forgotten=1, learned=0, rows=79, bound=')
    told = evidence.to_dict()
    assert told["claim"] == {"kind": "exact"}
    assert told["rows_read"] == 1 and told["bound"] == evidence.bound
    assert "<table>" in evidence._repr_html_() and "relative_bound" in evidence._repr_html_()
    assert evidence.reason is not None and evidence.not_covered == []


def test_an_empty_request_changes_nothing():
    model = efface.Ridge().fit(X, Y)
    before = model.coef_.copy()
    assert model.forget([]).forgotten == 0
    assert np.array_equal(model.coef_, before)


def test_the_old_arrays_stay_as_they_were():
    model = efface.Ridge().fit(X, Y)
    before = model.coef_
    kept = before.copy()
    model.forget([0])
    assert np.array_equal(before, kept) and not np.array_equal(model.coef_, kept)


def test_the_model_keeps_its_own_rows():
    mine = X.copy()
    model = efface.Ridge().fit(mine, Y)
    mine[:] = 0.0
    model.forget([0])
    assert np.allclose(model.coef_, efface.Ridge().fit(X[1:], Y[1:]).coef_, atol=1e-10)


def test_a_model_in_single_precision_learns_what_it_keeps():
    single = X.astype(np.float32)
    model = efface.Ridge().fit(single, Y)
    model.amend(X[:3], Y[:3], row_ids=[0, 1, 2])
    model.partial_fit(X[:5], Y[:5])
    model.forget([0, 1, 2, 80, 81, 82, 83, 84])
    assert np.allclose(model.coef_, efface.Ridge().fit(single[3:], Y[3:]).coef_, rtol=0, atol=1e-13)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="row 99"):
        model.partial_fit(np.full((1, 5), 1e200), Y[:1], row_ids=[99])
    assert np.array_equal(model.coef_, before) and model.n_rows_ == 77


def test_inertia_counts_weights():
    once, twice = (efface.KMeans(n_clusters=3).fit(X, sample_weight=np.full(80, w)) for w in (1.0, 2.0))
    assert np.allclose(2 * once.inertia_, twice.inertia_)
    assert np.allclose(once.inertia_, -once.score(X))


def test_row_ids_travel_through_a_pipeline():
    ids = np.arange(80) + 1000
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), efface.LogisticRegression().set_fit_request(row_ids=True))
        pipe.fit(X, LABELS, row_ids=ids)
    assert pipe[-1].row_ids_.tolist() == ids.tolist()
    assert pipe[-1].forget([1007]).rows == 79


def test_row_ids_travel_through_a_grid_search():
    ids = np.arange(80) + 1000
    seen = []

    class Spy(efface.Ridge):
        def fit(self, X, y, sample_weight=None, *, row_ids=None):
            seen.append(np.asarray(row_ids))
            return super().fit(X, y, sample_weight, row_ids=row_ids)

    with sklearn.config_context(enable_metadata_routing=True):
        steps = Pipeline([("scale", StandardScaler()), ("model", Spy().set_fit_request(row_ids=True))])
        search = GridSearchCV(steps, {"model__alpha": [0.1, 1.0]}, cv=3).fit(X, Y, row_ids=ids)
    assert len(seen) == 7
    assert all(set(each) <= set(ids) for each in seen)
    best = search.best_estimator_[-1]
    assert best.row_ids_.tolist() == ids.tolist()
    assert best.forget([1000, 1079]).rows == 78


def test_a_class_may_disappear_where_the_model_allows_it():
    y = np.array([0] * 79 + [1])
    nb = efface.GaussianNB().fit(X, y)
    nb.forget([79])
    assert (nb.predict(X) == 0).all()
    logistic = efface.LogisticRegression().fit(X, y)
    before = logistic.coef_.copy()
    with pytest.raises(ValueError, match="class 1 of 2 would have no row"):
        logistic.forget([79])
    assert np.array_equal(logistic.coef_, before) and logistic.n_rows_ == 80


def test_thousands_of_rows_one_by_one():
    x = rng.normal(size=(1500, 6))
    y = x @ np.arange(6.0)
    model = efface.Ridge().fit(x, y)
    for row in range(1000):
        model.forget(row)
    fresh = efface.Ridge().fit(x[1000:], y[1000:])
    assert np.allclose(model.coef_, fresh.coef_, atol=1e-9)


def test_a_missed_tolerance_is_a_warning_and_a_field():
    model = efface.Ridge(tol=1e-300).fit(X, Y)
    with pytest.warns(efface.ToleranceWarning, match="above the tolerance of 1.0e-300") as caught:
        evidence = model.forget([3])
    assert caught[0].filename == __file__
    assert (evidence.claim, evidence.tolerance, evidence.tolerance_missed) == ("approximate", 1e-300, True)
    assert evidence.to_dict()["tolerance_missed"] is True
    with pytest.warns(efface.ToleranceWarning) as caught:
        model.partial_fit(X[:1], Y[:1], row_ids=[1000])
    assert caught[0].filename == __file__
    with pytest.warns(efface.ToleranceWarning):
        assert model.amend(X[1:2], Y[1:2], row_ids=[1000]).learned == 1
    for model in [efface.Ridge().fit(X, Y), efface.LogisticRegression().fit(X, LABELS)]:
        with pytest.warns(efface.ToleranceWarning, match="above the tolerance of 1.0e-300"):
            evidence = model.forget([4], tolerance=1e-300)
        assert (evidence.claim, evidence.tolerance_missed, model.n_rows_) == ("approximate", True, 79)


def test_a_tolerance_that_is_kept_is_no_warning(recwarn):
    evidence = efface.Ridge().fit(X, Y).forget([3])
    assert (evidence.claim, evidence.tolerance, evidence.tolerance_missed) == ("exact", 1e-9, False)
    assert pickle.loads(pickle.dumps(evidence)) == evidence
    assert not [each for each in recwarn if each.category is efface.ToleranceWarning]


@pytest.mark.parametrize("slices", [1, 2])
@pytest.mark.parametrize("rare", [1, 4])
def test_shards_that_lack_a_class_tell_the_others_apart(slices, rare):
    generator = np.random.default_rng(3)
    labels = np.array([0] * 60 + [1] * 60 + [2] * 60 + [3] * rare)
    rows = generator.normal(size=(len(labels), 4)) + 4 * np.eye(4)[labels]
    kept = labels != 3
    estimators = [efface.LogisticRegression(), efface.RidgeClassifier(), efface.GaussianNB()]
    for estimator in estimators:
        model = efface.Sisa(estimator, n_shards=8, n_slices=slices).fit(rows, labels)
        assert model.score(rows[kept], labels[kept]) > 0.9, estimator
        assert model.forget(np.flatnonzero(~kept)).claim == "exact"
        assert model.score(rows[kept], labels[kept]) > 0.9, estimator
        assert 3 not in model.predict(rows)


def test_an_ensemble_survives_a_shard_of_one_class():
    generator = np.random.default_rng(3)
    labels = np.array([0] * 60 + [1] * 3)
    rows = generator.normal(size=(len(labels), 2)) + 6 * labels[:, None]
    model = efface.SisaEnsemble(sklearn.linear_model.LogisticRegression(), n_shards=8).fit(rows, labels)
    assert model.score(rows, labels) > 0.9
    model.forget(np.flatnonzero(labels == 1).tolist())
    assert model.score(rows[:60], labels[:60]) == 1.0
