"""Model files from Python: forgetting in one transaction, receipts, and their verification."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import sklearn.linear_model
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler, TargetEncoder

import efface

ROWS = ["house,owner,rooms,area,price"] + [f"h{at},p{at % 7},{at % 5},{at * at % 31},{100 + at % 5 * 40}" for at in range(40)]


@pytest.fixture
def houses(tmp_path):
    (tmp_path / "houses.csv").write_text("\n".join(ROWS))
    return efface.create(
        tmp_path / "houses.csv", tmp_path / "houses.efface", target="price", id="house", subject="owner"
    )


def test_forget_by_id_and_by_person(houses):
    report = houses.forget(["h3", "h4"])
    assert (report.forgotten, report.rows, report.outcome) == (2, 38, "erased")
    assert report.evidence.claim == "exact"
    assert report.receipt.kind == "forget"
    again = houses.forget(subject=("owner", "p1"))
    assert again.forgotten == 6
    assert efface.open(houses.path).summary()["rows"] == 32
    with pytest.raises(efface.UnknownRowError, match="row h3 is not in this model; it was forgotten on"):
        houses.forget("h3")
    with pytest.raises(efface.UnknownRowError, match="h99"):
        houses.forget("h99")
    with pytest.raises(TypeError, match="either rows or a subject"):
        houses.forget("h1", subject=("owner", "p1"))


def test_a_named_request_has_one_effect(houses):
    first = houses.forget("h3", request_id="ticket-1")
    again = houses.forget("h3", request_id="ticket-1")
    assert not first.replayed and again.replayed and again.receipt == first.receipt
    with pytest.raises(ValueError):
        houses.forget("h4", request_id="ticket-1")


def test_rows_that_are_learned_under_a_name_are_learned_once(houses, tmp_path):
    frame = pd.DataFrame({"a": np.arange(30.0), "y": np.arange(30.0) % 7})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model = efface.create(frame, tmp_path / "m.efface", target="y")
    with pytest.warns(UserWarning, match=r"these 30 rows now count twice; a name for the request \(`request_id`\)"):
        first = model.learn(tmp_path / "rows.csv", request_id="night")
    again = model.learn(tmp_path / "rows.csv", request_id="night")
    assert (first.replayed, again.replayed, again.learned, again.receipt) == (False, True, 30, first.receipt)
    assert model.summary()["rows"] == 60
    with pytest.raises(ValueError, match="night"):
        model.learn(frame.assign(a=1.0), request_id="night")
    more = pd.DataFrame({"house": ["h90"], "owner": ["p9"], "rooms": [2], "area": [9], "price": [170]})
    assert not houses.learn(more, request_id="x").replayed and houses.learn(more, request_id="x").replayed


def test_test_rows_are_chosen_as_the_others_and_are_none_of_them(tmp_path):
    frame = pd.DataFrame({"id": range(60), "part": ["a", "b"] * 30, "x": np.arange(60.0), "y": np.arange(60.0) % 5})
    both, half = tmp_path / "both.csv", tmp_path / "half.csv"
    frame.to_csv(both, index=False)
    frame.assign(id=frame["id"] + 60).to_csv(half, index=False)
    fit = lambda test, **settings: efface.create(  # noqa: E731
        both, tmp_path / "m.efface", target="y", ignore="part", overwrite=True, test=test, **settings
    )
    scores = fit(half, id="id", where="part = a").summary()["scores"]
    assert scores[0]["quality"]["rows"] == 30
    for settings in ({"id": "id"}, {"ignore": ["part", "id"]}):
        with pytest.raises(ValueError, match="test rows are rows that the model is fitted on"):
            efface.create(both, tmp_path / "n.efface", target="y", where="part = a", test=both, **{"ignore": "part", **settings})


def test_cells_that_keep_a_column_from_being_numbers_are_named(tmp_path):
    frame = pd.DataFrame({"x": [str(at % 9) for at in range(40)], "z": np.arange(40.0) ** 2, "y": np.arange(40.0) % 5})
    frame.loc[7, "x"] = "n/a"
    with pytest.warns(UserWarning, match="`x` holds 39 numbers and 1 other cell, in line 8, .* add missing=.*n/a"):
        efface.create(frame, tmp_path / "m.efface", target="y")
    kept = efface.create(frame, tmp_path / "n.efface", target="y", missing=["n/a"], impute="mean")
    assert ["x", "numeric", 1] in [list(column) for column in kept.summary()["feature_columns"]]


def test_the_index_of_a_frame_is_no_feature(tmp_path):
    frame = pd.DataFrame({"x": np.arange(40.0) ** 2, "y": np.arange(40.0) % 5}, index=np.arange(40) * 7)
    frame.to_parquet(tmp_path / "rows.parquet")
    assert "__index_level_0__" in pa.parquet.read_table(tmp_path / "rows.parquet").column_names
    with pytest.warns(UserWarning, match="`__index_level_0__` holds the index of a pandas frame and is left out"):
        model = efface.create(tmp_path / "rows.parquet", tmp_path / "m.efface", target="y")
    assert [column[0] for column in model.summary()["feature_columns"]] == ["x"]
    named = efface.create(tmp_path / "rows.parquet", tmp_path / "n.efface", target="y", id="__index_level_0__")
    assert named.forget("7").forgotten == 1
    asked = efface.create(tmp_path / "rows.parquet", tmp_path / "o.efface", target="y", numeric="__index_level_0__")
    assert len(asked.summary()["feature_columns"]) == 2


def test_a_dry_run_writes_nothing(houses):
    report = houses.forget("h3", dry_run=True)
    assert report.dry_run and report.receipt is None
    assert houses.summary()["rows"] == 40


def test_receipts_verify_and_altered_ones_do_not(houses, tmp_path):
    key = houses.public_key
    receipt = houses.forget(["h3"]).receipt
    assert efface.verify(receipt, key).to_dict()["rows"]["removed"] == 1
    receipt.save(tmp_path / "receipt.cose")
    assert efface.verify(tmp_path / "receipt.cose", key) == receipt
    assert efface.verify(receipt.to_bytes(), key) == receipt
    assert efface.verify(str(tmp_path / "receipt.cose"), key) == receipt
    with pytest.raises(TypeError, match="not a dict"):
        efface.verify(receipt.to_dict(), key)
    with pytest.raises(efface.VerificationError):
        efface.verify(receipt.to_bytes().replace(b'"removed":1', b'"removed":2'), key)
    other = efface.create(tmp_path / "houses.csv", tmp_path / "other.efface", target="price", id="house")
    with pytest.raises(efface.VerificationError):
        efface.verify(receipt, other.public_key)
    with pytest.raises(efface.VerificationError):
        efface.verify(receipt, "no key")
    assert [each.kind for each in houses.receipts()] == ["fit", "forget"]
    assert all(check["passed"] for check in houses.verify(key))


def test_what_is_shown(houses):
    report = houses.forget("h3")
    assert repr(houses).endswith("model='ridge', rows=39)")
    assert repr(report).startswith("Report(outcome='erased', method=")
    assert repr(report.receipt).startswith("Receipt(sequence=1, kind='forget', outcome='erased', removed=1, added=0, id=")
    for each in (houses, report, report.receipt):
        page = each._repr_html_()
        assert page.startswith("<table>")
        if each is report:
            # Claim and bound are seen first, the rest is folded.
            assert page.index("claim") < page.index("bound") < page.index("<details>")
    assert "h3" not in json.dumps(report.receipt.to_dict()) and "p3" not in report.receipt._repr_html_()
    assert report.to_dict()["forgotten"] == 1


def test_learn_amend_and_predict(houses, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text(f"{ROWS[0]}\nh90,p9,2,9,170\n")
    assert houses.learn(new).learned == 1
    new.write_text(f"{ROWS[0]}\nh90,p9,2,9,180\n")
    assert houses.amend(new).outcome == "done"
    (found,) = houses.predict(new)
    assert found["id"] == "h90" and 140 < found["scores"][0] < 220
    assert "coefficients" in dict(houses.parameters()["tables"])
    assert houses.settle()["bytes_after"] > 0
    assert houses.checkpoint().count("\n") >= 3


def test_create_has_what_fit_has_and_predict_takes_tables(tmp_path):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({
        "row": [f"r{at}" for at in range(80)],
        "size": np.where(rng.random(80) < 0.1, np.nan, rng.normal(50.0, 9.0, 80)),
        "town": rng.choice(["Ulm", "Köln", "Bonn"], 80),
        "note": rng.choice(["very good house", "small old house", "no garden here", "good garden"], 80),
        "part": rng.choice(["a", "b"], 80, p=[0.9, 0.1]),
    })  # fmt: skip
    frame["kind"] = np.where(frame["size"].fillna(50.0) + rng.normal(0, 5, 80) > 52, "large", "small")
    table = tmp_path / "rows.csv"
    frame.to_csv(table, index=False, sep=";")
    settings = {
        "target": "kind", "model": "logistic", "id": "row", "alpha": 0.5, "tolerance": 1e-8, "numeric": "size",
        "categorical": "town", "text": "note", "scale": "standard", "impute": "mean", "indicator": True, "tfidf": True,
        "ngrams": (1, 2), "stop_words": ["no"], "min_df": 2, "max_df": 0.9, "class_weight": "balanced",
        "where": "part = a", "cv": 3, "delimiter": ";",
    }  # fmt: skip
    model = efface.create(table, tmp_path / "model.efface", **settings)
    used = frame[frame["part"] == "a"]
    assert model.summary()["rows"] == len(used) and model.summary()["scores"]
    report = model.forget(["r1", "r2"], allow_missing=True)
    assert not {each.code for each in report.evidence.not_covered} & {"feature_scale", "chosen_words"}
    with pytest.raises(AttributeError, match="it has .*claim"):
        _ = report.nonsense
    # The same from scikit-learn, on the rows that are left.
    left = used[~used["row"].isin(["r1", "r2"])]
    theirs = make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["size"]),
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["town"]),
            (TfidfVectorizer(ngram_range=(1, 2), stop_words=["no"], min_df=2, max_df=0.9), "note"),
            sparse_threshold=0,
        ),
        LogisticRegression(C=2.0, class_weight="balanced", solver="newton-cholesky", tol=1e-12, max_iter=1000),
    ).fit(left, left["kind"])
    asked = left.drop(columns="kind")
    assert model.predict(asked).tolist() == theirs.predict(asked).tolist()
    assert np.allclose(model.predict_proba(asked), theirs.predict_proba(asked), atol=1e-6)
    # An array has its columns in the order of the features; a frame may have them in any.
    names = [column[0] for column in model.summary()["feature_columns"]]
    assert model.predict(asked[names].to_numpy(dtype=object)).tolist() == model.predict(asked).tolist()
    with pytest.raises(ValueError, match=f"a column for each of {', '.join(names)}"):
        model.predict(np.zeros((2, 1)))
    more = frame.iloc[[0]].assign(row="new", part="a")
    assert model.learn(more).learned == 1 and model.amend(more.assign(size=70.0)).learned == 1
    for wrong in ({"scale": "robust"}, {"class_weight": "equal"}, {"alpha": "best"}, {"impute": "median"}):
        with pytest.raises(ValueError, match="does not exist"):
            efface.create(table, tmp_path / "x.efface", target="kind", **wrong)
    numbers = efface.create(
        table, tmp_path / "n.efface", target="size", delimiter=";", where="size > 0", ignore=["row", "note", "kind"]
    )
    assert numbers.predict(asked.dropna()).dtype == np.float64


@pytest.mark.parametrize("kind", ["ridge", "ridge_classifier", "svm", "two_svm", "poisson", "logistic", "softmax", "gaussian_nb", "multinomial_nb", "complement_nb", "bernoulli_nb"])
def test_onnx_answers_as_the_file_does(kind, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.integers(0, 3, size=(60, 3)), columns=["a", "b", "c"])
    classes = 2 if kind in ("logistic", "two_svm") else 3
    frame["y"] = (frame["a"] + rng.integers(0, 2, 60)) % classes
    frame["y"] = frame["y"] if kind in ("ridge", "poisson") else "class " + frame["y"].astype(str)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    scale = None if kind.endswith("_nb") else "standard"
    model = efface.create(tmp_path / "rows.csv", tmp_path / "m.efface", target="y", model=kind.removeprefix("two_"), scale=scale)
    model.forget(["3"])
    session = onnxruntime.InferenceSession(model.to_onnx(tmp_path / "m.onnx"))
    notes = session.get_modelmeta().custom_metadata_map
    assert json.loads(notes["features"]) == ["a", "b", "c"]
    x = frame[["a", "b", "c"]].to_numpy(dtype=float)
    if scale is not None:
        x = (x - json.loads(notes["feature_shift"])) / json.loads(notes["feature_scale"])
    if kind == "bernoulli_nb":
        x = (x > 0).astype(float)
    found, *rest = session.run(None, {"features": x.astype(np.float32)})
    if kind in ("ridge", "poisson"):
        assert np.allclose(found[:, 0], model.predict(frame), atol=1e-4) and rest == []
        return
    (named,) = rest
    assert named.tolist() == model.predict(frame).tolist()
    if kind in ("ridge_classifier", "svm", "two_svm"):
        return
    assert np.allclose(found, model.predict_proba(frame), atol=1e-5)
    labels = np.array(json.loads(notes["classes"]))[found.argmax(axis=1)]
    assert labels.tolist() == model.predict(frame).tolist()
    assert [each.kind for each in model.receipts()] == ["fit", "forget", "export"]


def test_frames_records_and_arrays_are_rows(houses):
    frame = pd.DataFrame({"house": ["h90", "h91"], "owner": ["p9", "p9"], "rooms": [2, 3], "area": [9.0, 4.0], "price": [170, 210]})
    expected = houses.predict(frame)
    assert expected.shape == (2,) and expected.dtype == np.float64
    same = [
        frame.to_dict("records"),
        {name: frame[name].tolist() for name in frame},
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
        frame[["rooms", "area"]].to_numpy(),
        [[2, 9.0], [3, 4.0]],
    ]
    for rows in same:
        assert np.array_equal(houses.predict(rows), expected)
    with pytest.raises(TypeError, match="give the path"):
        houses.predict(3)
    with pytest.raises(ValueError, match="1 and 2 rows"):
        houses.predict({"rooms": [1, 2], "area": [1]})
    assert houses.learn(frame).learned == 2
    assert houses.amend(frame.assign(price=[180, 220])).outcome == "done"
    assert houses.forget(["h90"]).forgotten == 1


def test_a_frame_is_fitted_whole_and_anew(tmp_path):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(10.0, 3.0, size=(60, 3)), columns=list("abc"))
    frame["y"] = frame["a"] - frame["b"] + rng.normal(size=60)
    frame["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(60), unit="D")
    frame["split"] = np.where(np.arange(60) < 50, "train", "test")
    frame.loc[3, "b"] = np.nan
    model = efface.create(
        frame, tmp_path / "m.efface", target="y", ignore="split", dates="day", where="split = train", scale="standard",
        impute="mean", alpha=0.5, holdout=0.2, encrypt=True,
    )  # fmt: skip
    assert model.summary()["scores"]
    text = pd.DataFrame({"t": ["good day", "bad day", "good work", "bad work"] * 5, "y": [1.0, 0.0] * 10})
    text["n"] = [f"n{at}" for at in range(20)]
    path = tmp_path / "t.efface"
    settings = {"target": "y", "id": "n", "text": "t", "tfidf": True, "ngrams": (1, 2), "fit_intercept": False}
    words = efface.create(text, path, stop_words=["day"], min_df=2, max_df=0.9, **settings)
    theirs = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), stop_words=["day"], min_df=2, max_df=0.9),
        sklearn.linear_model.Ridge(solver="cholesky", fit_intercept=False),
    ).fit(text["t"], text["y"])
    assert np.allclose(words.predict(text), theirs.predict(text["t"]), atol=1e-10)
    words.forget(["n0", "n1"])
    again = theirs.fit(text["t"][2:], text["y"][2:])
    assert np.allclose(words.predict(text), again.predict(text["t"]), atol=1e-10)
    # The log goes on, and what was forgotten stays so.
    with pytest.raises(efface.RefusedError, match="forgotten"):
        efface.create(text, path, replace=True, **settings)
    newer = efface.create(text[2:], path, replace=True, **settings)
    assert [each.kind for each in newer.receipts()] == ["fit", "forget", "refit"]
    for wrong, message in [
        ({"analyzer": "line"}, "'word', 'char', 'char_wb' and None do"),
        ({"norm": "l1"}, "'l2' and None do"),
        ({"min_df": 2.5}, "min_df = 2.5"),
        ({"sublinear": True}, "needs tfidf"),
        ({"target": "nothing"}, "nothing"),
    ]:
        with pytest.raises(ValueError, match=message):
            efface.create(frame, tmp_path / "x.efface", **{"target": "y", **wrong})
    with pytest.raises(TypeError, match="no names for its columns"):
        efface.create(np.zeros((3, 2)), tmp_path / "x.efface", target="y")


def test_files_that_are_no_models(tmp_path):
    (tmp_path / "no.efface").write_text("nothing of the kind")
    with pytest.raises(efface.BadModelError):
        efface.open(tmp_path / "no.efface")
    with pytest.raises(FileNotFoundError):
        efface.open(tmp_path / "absent.efface")
    with pytest.raises(ValueError, match="there is no model 'magic'"):
        efface.create(tmp_path / "no.efface", tmp_path / "x.efface", model="magic")


def test_hints_name_arguments_and_no_flags(houses, tmp_path):
    table, path = tmp_path / "houses.csv", tmp_path / "x.efface"

    def refused(**arguments):
        with pytest.raises(ValueError) as caught:
            efface.create(table, path, **arguments)
        assert "--" not in str(caught.value), caught.value
        return str(caught.value)

    assert refused().endswith("hint: name the column to predict with `target`")
    assert "hint: use model='softmax', or make two of them" in refused(target="owner", model="logistic")
    assert "model='ridge_classifier'" in refused(target="owner")
    assert "columns that must not count with `ignore`" in refused(target="price", model="kmeans")
    plain = efface.create(table, path, target="price")
    with pytest.raises(efface.UnknownRowError, match="name the column with `subject` when fitting"):
        plain.forget(subject=("owner", "p1"))
    with pytest.raises(efface.RefusedError, match="fit with `id` to amend rows"):
        plain.amend(table)
    with pytest.raises(efface.UnknownRowError, match="with `request_id` or `allow_missing` the log records"):
        houses.forget(subject=("owner", "nobody"))


def test_what_is_not_covered_has_a_code(houses):
    evidence = houses.forget("h3").evidence
    assert evidence.not_covered == [] and "forgotten_ids" in [what.code for what in evidence.kept_beside]
    (what,) = [what for what in houses.forget("h4").evidence.kept_beside if what.code == "forgotten_ids"]
    assert str(what) == what.detail and what.detail.startswith("that a row of a given id")
    receipt = houses.receipts()[-1].to_dict()
    assert {"code": what.code, "detail": what.detail} in receipt["kept_beside"]


def test_a_file_in_the_way_is_not_overwritten(houses, tmp_path):
    with pytest.raises(FileExistsError):
        efface.create(tmp_path / "houses.csv", houses.path, target="price", id="house")
    again = efface.create(tmp_path / "houses.csv", houses.path, target="price", id="house", overwrite=True)
    assert again.summary()["rows"] == 40


@pytest.mark.parametrize("step", ["polynomial", "interactions", "pca", "svd", "target"])
def test_features_of_all_columns_are_those_of_scikit_learn(step, tmp_path):
    rng = np.random.default_rng(8)
    frame = pd.DataFrame(rng.normal(2.0, [1.0, 2.0, 3.0, 5.0], size=(60, 4)), columns=list("abcd"))
    frame["town"] = rng.choice(["Ulm", "Köln", "Bonn", "Kiel"], 60)
    frame["y"] = frame["a"] * frame["b"] - frame["d"] + rng.normal(size=60)
    numbers = list("abcd")
    options, theirs = {
        "polynomial": ({"polynomial": 3}, PolynomialFeatures(3, include_bias=False)),
        "interactions": ({"polynomial": 2, "interactions": True}, PolynomialFeatures(2, interaction_only=True)),
        "pca": ({"pca": 2}, PCA(2)),
        "svd": ({"svd": 3}, TruncatedSVD(3, algorithm="arpack")),
        "target": (
            {"target_encode": "town", "target_smoothing": 4.0},
            make_column_transformer((TargetEncoder(smooth=4.0), ["town"]), remainder="passthrough"),
        ),
    }[step]
    columns = [*numbers, "town"] if step == "target" else numbers
    ignored = [] if step == "target" else ["town"]
    table = frame.assign(row=range(60))
    model = efface.create(table, tmp_path / "m.efface", target="y", id="row", alpha=0.3, ignore=ignored, **options)
    model.forget([str(row) for row in range(10)])
    left = frame.iloc[10:]
    # The plain encoding: scikit-learn's own fit_transform cross-fits mean targets.
    features = theirs.fit(left[columns], left["y"]).transform(left[columns])
    ridge = sklearn.linear_model.Ridge(alpha=0.3, solver="cholesky").fit(features, left["y"])
    assert np.allclose(model.predict(left[columns]), ridge.predict(features), rtol=1e-9, atol=1e-9)
    assert not {each.code for each in model.forget(["11"]).evidence.not_covered} & {"feature_components", "feature_scale"}


def test_a_certified_model_is_made_and_says_what_it_certifies(tmp_path):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc")).assign(row=range(200))
    frame["y"] = np.where(frame["a"] + rng.normal(size=200) > 0, "up", "down")
    options = {"target": "y", "id": "row", "model": "logistic", "alpha": 10.0, "epsilon": 1.0, "delta": 1e-4}
    model = efface.create(frame, tmp_path / "m.efface", **options)
    report = model.forget(["3"])
    assert report.claim == "certified" and report.evidence.not_covered == []
    with pytest.raises(ValueError, match="epsilon is for model='logistic'"):
        efface.create(frame, tmp_path / "x.efface", **{**options, "model": "ridge", "target": "a"})


def test_networks_are_made_and_forget(tmp_path):
    pets = ["the cat sat on the mat", "a dog ran in the park", "my cat purrs", "the dog barks at night"]
    stocks = ["shares fell on the market", "the bank raised its rates", "market rates rose", "bank shares gained"]
    texts = [f"{text} {at}" for at in range(6) for text in pets + stocks]
    frame = pd.DataFrame({"id": [f"d{at}" for at in range(48)], "text": texts, "kind": (["pets"] * 4 + ["stocks"] * 4) * 6})
    common = {"target": "kind", "id": "id", "text": "text", "seed": 1}
    tiny = {"hidden": 4, "epochs": 2, "batch_size": 8, "embedding_width": 6, "max_features": 30, "max_tokens": 12, "pooling": "mean"}
    model = efface.create(frame, tmp_path / "net.efface", model="bilstm", **common, **tiny)
    summary = model.summary()
    assert summary["network"]["max_tokens"] == 12 and summary["rows"] == 48
    assert set(model.predict(frame)) <= {"pets", "stocks"}
    with pytest.warns(efface.ToleranceWarning):
        report = model.forget("d3")
    assert report.rows == 47
    assert (report.evidence.claim, report.evidence.bound) == ("approximate", float("inf"))
    assert report.evidence.head_bound < 1e-6
    assert "encoder_training" in [each.code for each in report.evidence.not_covered]
    assert model.forget("d4", method="retrain").evidence.claim == "exact"
    sharded = efface.create(frame, tmp_path / "shards.efface", model="lstm", n_shards=2, head="softmax", layers=1, **common, **tiny)
    assert sharded.forget("d3").evidence.claim == "exact"
    # The command reads what Python wrote, and the other way round; --replace carries the log over.
    again = efface.create(frame.iloc[8:], tmp_path / "net.efface", model="bilstm", replace=True, **common, **tiny)
    assert [each.kind for each in again.receipts()] == ["fit", "forget", "forget", "refit"]
    for wrong, message in [
        ({"model": "minilm"}, "folder"),
        ({"model": "ridge", "hidden": 4}, "hidden is for networks"),
        ({"model": "bilstm", "head": "tree"}, "'ridge', 'softmax' and None do"),
        ({"model": "bilstm", "pooling": "sum"}, "'max', 'mean', 'last' and None do"),
        ({"model": "bilstm", "scale": "standard"}, "a network reads words as they are"),
        ({"model": "bilstm", "class_weight": "balanced"}, "weights of classes"),
        ({"model": "bilstm", "alpha": "auto"}, "would train a network anew"),
        ({"model": "bilstm", "embeddings": tmp_path / "none.txt", "max_features": 9}, "exclude each other"),
    ]:
        with pytest.raises(ValueError, match=message):
            efface.create(frame, tmp_path / "wrong.efface", **common, **wrong)
    with pytest.raises(OSError, match="none.txt"):
        efface.create(frame, tmp_path / "wrong.efface", model="bilstm", embeddings=tmp_path / "none.txt", **common)
    assert not (tmp_path / "wrong.efface").exists()


@pytest.mark.parametrize("kind", ["pca", "balanced ridge", "balanced naive Bayes"])
def test_what_changes_for_all_rows_follows_from_kept_sums(kind, tmp_path):
    random = np.random.default_rng(3)
    frame = pd.DataFrame(random.normal(size=(200, 4)) * [1, 2, 3, 4], columns=list("abcd"))
    frame["y"] = frame["a"] - frame["b"] + random.normal(size=200)
    frame["kind"] = np.where(frame["y"] > 1, "high", "low")
    frame["id"] = [f"r{at}" for at in range(200)]
    options = {
        "pca": {"target": "y", "ignore": ["kind"], "scale": "standard", "pca": 2},
        "balanced ridge": {"target": "kind", "ignore": ["y"], "model": "ridge_classifier", "class_weight": "balanced"},
        "balanced naive Bayes": {"target": "kind", "ignore": ["y"], "model": "gaussian_nb", "class_weight": "balanced"},
    }[kind]
    model = efface.create(frame, tmp_path / "model.efface", id="id", **options)
    report = model.forget(["r7", "r11"])
    assert report.evidence.claim == "exact" and report.evidence.rows_read == 2
    assert "kept sums" in report.evidence.reason and not report.evidence.not_covered
    rest = frame.drop([7, 11])
    fresh = efface.create(rest, tmp_path / "fresh.efface", id="id", **options)
    assert (model.predict(rest) == fresh.predict(rest)).all() if kind != "pca" else True
    for name, values in fresh.parameters().items():
        if name in ("coefficients", "intercept", "means", "variances", "class_prior"):
            np.testing.assert_allclose(np.array(model.parameters()[name], dtype=float), np.array(values, dtype=float), rtol=1e-10, atol=1e-12)


def test_create_takes_the_rare_options_of_fit_too(tmp_path):
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc")).assign(row=range(120))
    frame["y"] = frame["a"] + rng.normal(size=120)
    frame["side"] = np.where(frame["y"] > 0, "up", "down")

    def made(name, **options):
        return efface.create(frame, tmp_path / f"{name}.efface", **{"id": "row", "ignore": ["y", "side"], **options})

    ridge = made("ridge", target="y", ignore="side", form="inverse", n_jobs=2, recovery_key=tmp_path / "recovery.key")
    assert ridge.summary()["form"] == "inverse" and (tmp_path / "recovery.key").exists()
    votes = made("votes", target="side", model="logistic", ignore="y", n_shards=3, aggregate="mean", n_jobs=2)
    assert len(votes.predict(frame)) == 120
    descent = made(
        "descent", target="side", model="logistic", ignore="y", alpha=10.0, epsilon=1.0, certify="descent_to_delete", distance=0.01
    )
    assert "descent" in str(descent.summary()["recipe"])
    clusters = [made(f"clusters {at}", model="kmeans", n_clusters=2, **way) for at, way in enumerate([{"cell": 0.5}, {"tree": (1, 4)}])]
    assert all(len(set(each.predict(frame[list("abc")]))) == 2 for each in clusters)
    towns = frame.assign(town=rng.choice(["x", "y", "z"], 120))
    with pytest.raises(ValueError, match="town"):
        efface.create(towns, tmp_path / "levels.efface", target="y", id="row", ignore="side", max_levels=2)
    table = tmp_path / "rows.csv"
    frame.to_csv(table, index=False)
    with pytest.warns(UserWarning, match="batches"):
        batches = efface.create(table, tmp_path / "b.efface", target="y", id="row", ignore="side", memory=2000)
    assert np.allclose(batches.predict(frame), ridge.predict(frame), atol=1e-10)
    for wrong, words in [
        ({"form": "square"}, "'auto', 'factor', 'inverse', 'rows', 'iterative' and None do"),
        ({"cell": 0.1}, "cell is for model='kmeans', not for model='ridge'"),
        ({"smoothing": 1.0}, "smoothing is for model='naive_bayes'"),
        ({"noise": 1.0}, "it needs epsilon"),
        ({"aggregate": "mean"}, "it needs n_shards"),
    ]:
        with pytest.raises(ValueError, match=words):
            made("wrong", target="y", **wrong)


def test_a_model_that_is_no_better_than_a_constant_is_said(tmp_path):
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.normal(size=(40, 30))).add_prefix("x").assign(y=rng.normal(size=40), same=1.0)
    with pytest.warns(UserWarning) as told:
        model = efface.create(frame, tmp_path / "m.efface", target="y", alpha=1e-3)
    said = [str(each.message) for each in told]
    assert any("worse than a constant: RMSE" in each for each in said) and any("same value" in each for each in said), said
    found = model.evaluate(frame)
    (figures,) = found["quality"]["numbers"]
    assert found["rows"] == 40 and figures["rmse"] < figures["baseline_rmse"]
    with pytest.raises(ValueError, match="y"):
        model.evaluate(frame.drop(columns="y"))
