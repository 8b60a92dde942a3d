"""Models that leave the process: safetensors, pickle, skops, MLflow, ONNX."""

from __future__ import annotations

import copy
import json
import pickle
import struct

import numpy as np
import pytest
from test_rows import LABELS, MANY, MODELS, X, Y, names, scores, table

import efface
import sklearn


@pytest.mark.parametrize(("model", "y"), MODELS, ids=names)
def test_save_and_load(model, y, tmp_path):
    x = table(model)
    fitted = sklearn.clone(model).fit(x, y, row_ids=np.arange(80) + 7)
    fitted.forget([9])
    fitted.save(tmp_path / "model.safetensors")
    loaded = efface.load(tmp_path / "model.safetensors")
    assert type(loaded) is type(fitted)
    assert repr(loaded) == repr(fitted)
    assert np.allclose(scores(loaded, x), scores(fitted, x), rtol=0, atol=1e-12)
    assert loaded.row_ids_.tolist() == fitted.row_ids_.tolist()
    assert np.allclose(*[scores(each, x) for each in (loaded, fitted) if each.forget([20, 50])], atol=1e-7)


@pytest.mark.parametrize(("model", "y"), MODELS, ids=names)
def test_pickle_and_copy(model, y):
    x = table(model)
    fitted = sklearn.clone(model).fit(x, y)
    for again in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert np.allclose(scores(again, x), scores(fitted, x), rtol=0, atol=1e-12)
        again.forget([3])
        assert (again.n_rows_, fitted.n_rows_) == (79, 80)


def test_sparse_and_weighted_rows_survive(tmp_path):
    import scipy.sparse as sp

    for kind in (np.float32, np.float64):
        fitted = efface.Ridge().fit(sp.csr_matrix(X.astype(kind)), Y, sample_weight=np.linspace(1, 2, 80))
        fitted.save(tmp_path / "m")
        loaded = efface.load(tmp_path / "m")
        loaded.forget([1])
        fitted.forget([1])
        assert np.allclose(loaded.coef_, fitted.coef_, atol=1e-12)


def test_the_file_is_plain_safetensors(tmp_path):
    efface.Ridge().fit(X, Y).save(tmp_path / "m.safetensors")
    raw = (tmp_path / "m.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    assert header["rows.ids"]["dtype"] == "U64"
    assert json.loads(header["__metadata__"]["efface"])["recipe"]["family"] == "ridge"


@pytest.mark.parametrize("damage", ["empty", "cut", "other", "note", "flipped"])
def test_damaged_files_are_refused(damage, tmp_path):
    model = efface.LogisticRegression().fit(X, LABELS)
    model.save(tmp_path / "m")
    raw = (tmp_path / "m").read_bytes()
    raw = {
        "empty": b"",
        "cut": raw[: len(raw) // 2],
        "other": raw.replace(b'"efface"', b'"effaxe"', 1),
        "note": raw.replace(b"LogisticRegression", b"LoglinearRegressor", 1),
        "flipped": raw.replace(b'family\\":\\"logistic', b'family\\":\\"gaussian', 1),
    }[damage]
    (tmp_path / "m").write_bytes(raw)
    with pytest.raises(ValueError):
        efface.load(tmp_path / "m")


def rewritten(raw, change):
    """A saved file with its cover changed."""
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    cover = json.loads(header["__metadata__"]["efface"])
    note = json.loads(cover["note"])
    change(cover, note)
    cover["note"] = json.dumps(note)
    header["__metadata__"]["efface"] = json.dumps(cover)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + raw[8 + length :]


@pytest.mark.parametrize(
    "change",
    [
        lambda cover, note: note.pop("estimator"),
        lambda cover, note: note.pop("attributes"),
        lambda cover, note: note.pop("names"),
        lambda cover, note: note["names"].update(next="x"),
        lambda cover, note: note["names"].update(next=-1),
        lambda cover, note: note["names"].update(key="00"),
        lambda cover, note: note["names"].update(key="zz"),
        lambda cover, note: note["names"].update(gone="00"),
        lambda cover, note: note["names"].update(texts=["a"] * 80),
        lambda cover, note: note["names"].update(texts=3),
        lambda cover, note: note["names"].update(subjects=["a"], has_subject=[True]),
        lambda cover, note: note["names"].update(subjects=[[]] * 80, has_subject=[True] * 80),
        lambda cover, note: note["attributes"].update(predict={"value": 3}),
        lambda cover, note: note["attributes"].update(__class__={"value": 3}),
        lambda cover, note: note["attributes"].update(classes_={"array": ["a"] * 9, "dtype": "<U1"}),
        lambda cover, note: note["attributes"].update(classes_={"array": ["a", "b"], "dtype": "V2000000000"}),
        lambda cover, note: note["attributes"].update(classes_={"array": [[], {}], "dtype": "object"}),
        lambda cover, note: note["attributes"].update(n_features_in_={"value": 6}),
        lambda cover, note: note["attributes"].pop("classes_"),
        lambda cover, note: note["estimator"].update({"class": "Ridge"}),
        lambda cover, note: note["estimator"].update({"class": "KMeans", "parameters": {}}),
        lambda cover, note: note["estimator"]["parameters"].update(C="big"),
        lambda cover, note: note["estimator"]["parameters"].update(shell="rm"),
        lambda cover, note: cover["recipe"].update(family="softmax"),
        lambda cover, note: cover.update(format=2),
    ],
)
def test_a_file_can_say_only_what_save_would(change, tmp_path):
    efface.LogisticRegression().fit(X, LABELS).save(tmp_path / "m")
    raw = (tmp_path / "m").read_bytes()
    (tmp_path / "m").write_bytes(rewritten(raw, lambda cover, note: None))
    assert efface.load(tmp_path / "m").n_rows_ == 80
    (tmp_path / "m").write_bytes(rewritten(raw, change))
    with pytest.raises(efface.BadModelError):
        efface.load(tmp_path / "m")


def test_a_class_of_ones_own_is_not_saved_for_nothing(tmp_path):
    class Mine(efface.Ridge):
        pass

    efface.Ridge().fit(X, Y).save(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    with pytest.raises(TypeError, match="Mine is a class of its own"):
        Mine().fit(X, Y).save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize(("model", "y"), [case for case in MODELS if not isinstance(case[0], efface.Sisa)], ids=names)
def test_skops(model, y, tmp_path):
    sio = pytest.importorskip("skops.io", reason="skops is not installed")
    x = table(model)
    fitted = sklearn.clone(model).fit(x, y)
    sio.dump(fitted, tmp_path / "m.skops")
    strangers = sio.get_untrusted_types(file=tmp_path / "m.skops")
    assert all(each.startswith("efface.") for each in strangers)
    loaded = sio.load(tmp_path / "m.skops", trusted=strangers)
    assert np.allclose(scores(loaded, x), scores(fitted, x), rtol=0, atol=1e-12)
    assert loaded.forget([3]).rows == 79


def test_mlflow(tmp_path):
    mlflow = pytest.importorskip("mlflow.pyfunc", reason="mlflow is not installed")
    from efface.mlflow import save_model

    fitted = efface.LogisticRegression().fit(X, LABELS)
    save_model(fitted, tmp_path / "m")
    loaded = mlflow.load_model(str(tmp_path / "m"))
    assert (loaded.predict(X) == fitted.predict(X)).all()


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (efface.Ridge(), Y),
        (efface.Ridge(), np.column_stack([Y, 2 * Y])),
        (efface.RidgeClassifier(), MANY),
        (efface.LogisticRegression(), LABELS),
        (efface.LogisticRegression(), MANY),
    ],
    ids=names,
)
def test_onnx(model, y, tmp_path):
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    fitted = sklearn.clone(model).fit(X, y)
    fitted.forget([1, 2])
    fitted.to_onnx(tmp_path / "m.onnx")
    assert fitted.to_onnx() == (tmp_path / "m.onnx").read_bytes()
    session = ort.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    (found,) = session.run(["scores"], {"features": X.astype(np.float32)})
    if hasattr(fitted, "predict_proba"):
        wanted = fitted.predict_proba(X)
    elif hasattr(fitted, "decision_function"):
        wanted = fitted.decision_function(X)
    else:
        wanted = fitted.predict(X)
    assert np.allclose(found, wanted.reshape(80, -1), atol=1e-5)


def test_evidence_is_pickled_and_copied():
    X = np.vander(np.linspace(-1.0, 1.0, 30), 4)
    y = X @ np.arange(4.0)
    ridge = efface.Ridge().fit(X, y)
    records = [ridge.forget([3]), ridge.forget([4], method="influence")]
    records.append(efface.LogisticRegression().fit(X, y > np.median(y)).forget(range(6), method="influence"))
    for record in records:
        for again in (pickle.loads(pickle.dumps(record)), copy.deepcopy(record)):
            assert again == record
            assert again.to_dict() == record.to_dict()
    assert not any(np.isnan(record.bound) for record in records)
    with pytest.raises(ValueError, match="no evidence"):
        type(records[0])._restore("{}", [0.0] * 4)
