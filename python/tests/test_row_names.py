"""What rows are called: texts, the index of a frame, persons; and names that do not come back."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import efface

rng = np.random.default_rng(3)
X = rng.normal(size=(40, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=40)
LABELS = np.where(Y > 0, "yes", "no")
NAMES = [f"row {at}" for at in range(40)]
PEOPLE = [f"p{at % 8}" for at in range(40)]
MODELS = [
    (efface.Ridge(), Y),
    (efface.RidgeClassifier(), LABELS),
    (efface.LogisticRegression(forget_tol=1e-6), LABELS),
    (efface.GaussianNB(), LABELS),
    (efface.KMeans(n_clusters=3), None),
    (efface.Sisa(efface.Ridge(), n_shards=3), Y),
]


def of(y, which):
    return None if y is None else y[which]


def answers(model):
    return model.transform(X) if isinstance(model, efface.KMeans) else model.predict(X)


@pytest.mark.parametrize(("model", "y"), MODELS, ids=lambda case: type(case).__name__)
def test_texts_name_rows(model, y):
    model.fit(X, y, row_ids=NAMES)
    assert model.row_ids_.tolist() == NAMES
    assert model.forget(["row 3", "row 17"]).rows == 38
    model.forget("row 5")
    stays = [at for at in range(40) if at not in (3, 5, 17)]
    assert model.row_ids_.tolist() == [NAMES[at] for at in stays]
    # Models that draw at random draw by the name, so that one which never saw the rows draws the same.
    fresh = type(model)(**model.get_params(deep=False)).fit(X[stays], of(y, stays), row_ids=[NAMES[at] for at in stays])
    if y is LABELS:
        assert (answers(model) == answers(fresh)).all()
    else:
        assert np.allclose(answers(model), answers(fresh), atol=1e-6)
    with pytest.raises(efface.UnknownRowError, match="row 3"):
        model.forget("row 3")
    with pytest.raises(TypeError, match="named by texts"):
        model.forget(3)


@pytest.mark.parametrize(("model", "y"), MODELS, ids=lambda case: type(case).__name__)
def test_a_person_is_forgotten_with_all_rows(model, y):
    model.fit(X, y, subject=PEOPLE)
    assert model.forget(subject="p3").forgotten == 5
    assert not np.isin(model.row_ids_, np.arange(3, 40, 8)).any()
    with pytest.raises(efface.UnknownRowError, match="p3"):
        model.forget(subject="p3")
    with pytest.raises(TypeError, match="either"):
        model.forget()
    with pytest.raises(TypeError, match="either"):
        model.forget([1], subject="p1")
    again = model.fit(X, y)
    with pytest.raises(ValueError, match="no subjects"):
        again.forget(subject="p1")


def test_the_index_of_a_frame_names_rows():
    frame = pd.DataFrame(X, columns=list("abc"), index=NAMES)
    model = efface.Ridge().fit(frame, Y, row_ids="index")
    model.forget(frame.index[frame["a"] > 1])
    left = frame.index[~(frame["a"] > 1)]
    assert model.row_ids_.tolist() == left.tolist()
    fresh = efface.Ridge().fit(frame.loc[left], Y[frame["a"] <= 1])
    assert np.allclose(model.coef_, fresh.coef_)
    model.amend(frame.loc[left[:2]] + 1, [0.0, 1.0], row_ids="index")
    numbered = pd.DataFrame(X, index=np.arange(40) * 7)
    assert efface.Ridge().fit(numbered, Y, row_ids="index").forget(14).rows == 39
    twice = pd.DataFrame(X, index=["a", "b"] * 20)
    with pytest.raises(efface.DuplicateRowError, match="'a' is given twice"):
        efface.Ridge().fit(twice, Y, row_ids="index")
    with pytest.raises(TypeError, match="has none"):
        efface.Ridge().fit(X, Y, row_ids="index")
    with pytest.raises(TypeError, match="one text"):
        efface.Ridge().fit(X, Y, row_ids="a")


@pytest.mark.parametrize(("model", "y"), MODELS, ids=lambda case: type(case).__name__)
def test_a_forgotten_name_does_not_come_back_unasked(model, y):
    model.fit(X, y, row_ids=NAMES, subject=PEOPLE)
    model.forget("row 3")
    before = model.row_ids_.tolist()
    with pytest.raises(efface.RefusedError, match="'row 3' was forgotten"):
        model.partial_fit(X[3:4], of(y, slice(3, 4)), row_ids=["row 3"])
    assert model.row_ids_.tolist() == before
    model.partial_fit(X[3:4], of(y, slice(3, 4)), row_ids=["row 3"], allow_forgotten=True)
    # What was allowed once is a row like any other.
    model.forget("row 3")
    model.forget(subject="p1")
    with pytest.raises(efface.RefusedError, match="subject 'p1'"):
        model.partial_fit(X[:1], of(y, slice(0, 1)), row_ids=["new"], subject=["p1"])
    with pytest.raises(efface.DuplicateRowError, match="'row 0' is in the model"):
        model.partial_fit(X[:1], of(y, slice(0, 1)), row_ids=["row 0"])
    with pytest.raises(TypeError, match="named by texts"):
        model.partial_fit(X[:1], of(y, slice(0, 1)))


def test_numbers_do_not_come_back_either():
    model = efface.Ridge().fit(X, Y)
    model.forget([4, 5])
    with pytest.raises(efface.RefusedError, match="row id 5 was forgotten"):
        model.partial_fit(X[5:6], Y[5:6], row_ids=[5])
    # Positions count on.
    assert 40 in model.partial_fit(X[5:6], Y[5:6]).row_ids_
    with pytest.raises(efface.RefusedError):
        pickle.loads(pickle.dumps(model)).partial_fit(X[4:5], Y[4:5], row_ids=[4])


@pytest.mark.parametrize("how", ["pickle", "save"])
def test_names_are_kept_with_the_model(how, tmp_path):
    model = efface.Ridge().fit(X, Y, row_ids=NAMES, subject=PEOPLE)
    model.forget(subject="p2")
    model.forget("row 0")
    if how == "pickle":
        raw = pickle.dumps(model)
        other = pickle.loads(raw)
    else:
        model.save(tmp_path / "m")
        raw = (tmp_path / "m").read_bytes()
        other = efface.load(tmp_path / "m")
    # Of what was forgotten there is no name left.
    assert b"row 0" not in raw
    assert b"row 10" not in raw
    assert b"p2" not in raw
    assert other.row_ids_.tolist() == model.row_ids_.tolist()
    with pytest.raises(efface.RefusedError):
        other.partial_fit(X[:1], Y[:1], row_ids=["row 0"])
    assert other.forget(subject="p7").forgotten == 5


@pytest.mark.parametrize(
    ("names", "people", "exception", "message"),
    [
        (["a"] * 40, None, efface.DuplicateRowError, "given twice"),
        (["a", 1] * 20, None, TypeError, "among texts"),
        ([1, "a"] * 20, None, TypeError, "whole numbers"),
        (["a"], None, ValueError, "1 row ids for 40"),
        (None, ["a"], ValueError, "1 subjects for 40"),
        (None, [1.5] * 40, TypeError, "float"),
        (None, [None] * 40, TypeError, "NoneType"),
    ],
)
def test_names_that_make_no_sense(names, people, exception, message):
    with pytest.raises(exception, match=message):
        efface.Ridge().fit(X, Y, row_ids=names, subject=people)
