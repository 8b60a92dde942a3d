"""Every kind of table that is taken, and every bad input: the exception that scikit-learn users expect, and a model that
is as it was before."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import efface

rng = np.random.default_rng(3)
X = np.round(rng.normal(size=(40, 4)), 2)
Y = X @ [1.0, 2.0, -1.0, 0.5] + 1.0
WANTED = efface.Ridge().fit(X, Y).coef_


def close(model, tolerance=1e-10):
    return np.allclose(model.coef_, WANTED, atol=tolerance)


@pytest.mark.parametrize(
    "made",
    [
        X.tolist(),
        np.asfortranarray(X),
        np.repeat(X, 2, axis=0)[::2],
        np.ascontiguousarray(X[:, ::-1])[:, ::-1],
        sp.csr_matrix(X),
        sp.csc_matrix(X),
        sp.coo_array(X),
        sp.csr_array(X.astype(object).astype(np.float64)),
        X.astype(object),
    ],
    ids=["list", "fortran", "strided", "reversed", "csr", "csc", "coo", "csr_array", "object"],
)
def test_arrays_of_every_layout(made):
    assert close(efface.Ridge().fit(made, Y))


def test_single_precision_stays_single():
    model = efface.Ridge().fit(X.astype(np.float32), Y)
    assert close(model, 1e-6)
    assert model._held().model.row_bytes < efface.Ridge().fit(X, Y)._held().model.row_bytes


def test_half_precision_and_whole_numbers_are_widened():
    half = X.astype(np.float16)
    assert np.allclose(efface.Ridge().fit(half, Y).coef_, efface.Ridge().fit(half.astype(float), Y).coef_)
    whole = (X * 100).astype(np.int16)
    assert np.allclose(efface.Ridge().fit(whole, Y).coef_, efface.Ridge().fit(whole.astype(float), Y).coef_)


def test_sparse_parts_in_any_order():
    assert sp.csr_matrix(X + 10).nnz == X.size
    matrix = sp.csr_matrix(X + 10)
    matrix.indices = matrix.indices.reshape(40, -1)[:, ::-1].ravel().copy()
    matrix.data = matrix.data.reshape(40, -1)[:, ::-1].ravel().copy()
    matrix.has_sorted_indices = False
    before = matrix.indices.copy()
    assert np.allclose(efface.Ridge().fit(matrix, Y).coef_, WANTED, atol=1e-8)
    assert np.array_equal(matrix.indices, before)
    wide = sp.csr_matrix(X)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    assert close(efface.Ridge().fit(wide, Y))


def test_read_only_arrays():
    x, y = X.copy(), Y.copy()
    x.flags.writeable = y.flags.writeable = False
    ids = np.arange(40)
    ids.flags.writeable = False
    model = efface.Ridge().fit(x, y, row_ids=ids)
    assert close(model)
    model.forget(ids[:3])
    assert model.predict(x).shape == (40,)


def misplaced(array):
    """The array, one byte off the place where its numbers ought to lie."""
    memory = np.zeros(array.nbytes + 1, dtype=np.uint8)
    found = np.ndarray(array.shape, array.dtype, buffer=memory, offset=1)
    found[...] = array
    assert not found.flags.aligned
    return found


def test_ids_and_tables_of_any_stride_and_place():
    every = np.arange(40, dtype=np.uint64)
    assert close(efface.Ridge().fit(misplaced(X), misplaced(Y), row_ids=misplaced(every), sample_weight=np.ones(80)[::2]))
    backwards = efface.Ridge().fit(X, Y, row_ids=every[::-1])
    backwards.forget(every[:20:2])
    assert np.array_equal(backwards.row_ids_, np.setdiff1d(every, every[:20:2])[::-1])
    backwards.forget(misplaced(every[1:3:2]))
    assert np.allclose(backwards.predict(misplaced(X)), backwards.predict(X))
    assert efface.KMeans(2).fit(misplaced(X)).transform(misplaced(X)).shape == (40, 2)
    assert efface.Ridge().fit(X, Y).forget(np.array([1, 2], dtype=">u8")).rows == 38


def test_a_sparse_table_too_wide_for_its_column_numbers():
    wide = sp.csr_matrix((np.ones(3), np.array([2**32 + 5, 1, 2]), np.array([0, 1, 2, 3])), shape=(3, 2**33))
    with pytest.raises(ValueError, match=r"a sparse table may have 2\*\*32"):
        efface.Ridge().fit(wide, [1.0, 2.0, 3.0])


def test_positions_end_with_the_largest_number():
    model = efface.Ridge().fit(X[:3], Y[:3], row_ids=[0, 1, 2**64 - 3])
    model.partial_fit(X[3:5], Y[3:5])
    assert model.row_ids_.tolist() == [0, 1, 2**64 - 3, 2**64 - 2, 2**64 - 1]
    with pytest.raises(ValueError, match="no position after row id 18446744073709551615"):
        model.partial_fit(X[5:6], Y[5:6])


def test_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = efface.Ridge().fit(frame, pd.Series(Y), row_ids=pd.Series(np.arange(40)))
    assert close(model) and list(model.feature_names_in_) == list("abcd")
    assert np.allclose(model.predict(frame), efface.Ridge().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c", "d"]])


def test_polars():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(X, schema=list("abcd"))
    model = efface.Ridge().fit(frame, pl.Series(Y))
    assert close(model)
    # scikit-learn before 1.8 does not see the names of a polars frame.
    assert list(getattr(model, "feature_names_in_", "abcd")) == list("abcd")


def test_arrow_tables_and_streams():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({name: X[:, at] for at, name in enumerate("abcd")})
    assert close(efface.Ridge().fit(table, Y))

    class Stream:
        """Speaks Arrow and nothing else."""

        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    model = efface.Ridge().fit(Stream(), Y)
    assert close(model)
    assert np.allclose(model.predict(Stream()), model.predict(X))
    with pytest.raises(TypeError, match="column 'a' holds string"):
        efface.Ridge().fit(pa.table({"a": ["x", "y"]}), [1.0, 2.0])
    with pytest.raises(ValueError, match="NaN"):
        efface.Ridge().fit(pa.table({"a": [1.0, None]}), [1.0, 2.0])


@pytest.mark.parametrize("bad", ["text", {"a": [1.0]}, b"bytes", {1.0, 2.0}])
def test_what_is_no_table_is_a_type_error(bad):
    with pytest.raises(TypeError, match="must be a numpy array"):
        efface.Ridge().fit(bad, Y)


FITTED = {
    "ridge": lambda: efface.Ridge().fit(X, Y),
    "logistic": lambda: efface.LogisticRegression().fit(X, Y > 1),
    "bayes": lambda: efface.GaussianNB().fit(X, Y > 1),
    "kmeans": lambda: efface.KMeans(n_clusters=2).fit(X),
    "sisa": lambda: efface.Sisa(efface.Ridge(), n_shards=2).fit(X, Y),
}


def told(model):
    return model.transform(X) if isinstance(model, efface.KMeans) else model.predict(X)


@pytest.fixture(params=FITTED)
def model(request):
    return FITTED[request.param]()


@pytest.mark.parametrize(
    ("ids", "exception", "message"),
    [
        ([40], efface.UnknownRowError, "row 40 is not in this model"),
        ([40], KeyError, "row 40"),
        ([40], ValueError, "row 40"),
        ([1, 1], efface.DuplicateRowError, "row 1 is named twice"),
        ([-1], ValueError, "row id -1 is negative"),
        (-1, ValueError, "row id -1 is out of range"),
        (2**64, ValueError, "out of range"),
        ([2**70], ValueError, "out of range"),
        ([2**64 - 1], efface.UnknownRowError, "18446744073709551615"),
        ([0.0], TypeError, "float64"),
        (["a"], TypeError, "whole numbers"),
        ([None], TypeError, "NoneType"),
        ([[1, 2]], ValueError, "2 dimensions"),
        (np.zeros(3, dtype=bool), ValueError, "mask has shape"),
        (np.arange(40), ValueError, "would leave none"),
        (np.ones(40, dtype=bool), ValueError, "would leave none"),
    ],
)
def test_bad_requests_change_nothing(model, ids, exception, message):
    before = told(model)
    with pytest.raises(exception, match=message):
        model.forget(ids)
    assert np.array_equal(told(model), before)
    assert model.n_rows_ == 40
    model.forget([0])


def bad(value):
    table = X.copy()
    table[3, 2] = value
    return table


@pytest.mark.parametrize(
    ("x", "y", "exception", "message"),
    [
        (bad(np.nan), Y, ValueError, "contains NaN"),
        (bad(np.inf), Y, ValueError, "infinity"),
        (X, np.where(np.arange(40) == 2, np.nan, Y), ValueError, "contains NaN"),
        (X[:, 0], Y, ValueError, "Expected 2D array"),
        (X[:39], Y, ValueError, "inconsistent numbers of samples"),
        (X.reshape(10, 4, 4), Y, ValueError, "dim 3"),
        (X.astype(complex), Y, ValueError, "Complex data not supported"),
        (np.array([["a", "b", "c", "d"]] * 40), Y, ValueError, "could not convert string to float"),
        (np.array([[{}] * 4] * 40, dtype=object), Y, TypeError, "argument must be a string"),
        (np.empty((0, 4)), np.empty(0), ValueError, "0 sample"),
        (np.empty((40, 0)), Y, ValueError, "0 feature"),
        (sp.csr_matrix(bad(np.nan)), Y, ValueError, "contains NaN"),
        (X, None, ValueError, "y"),
    ],
)
def test_bad_tables(x, y, exception, message):
    model = efface.Ridge().fit(X, Y)
    with pytest.raises(exception, match=message):
        efface.Ridge().fit(x, y)
    with pytest.raises(exception):
        model.partial_fit(x, y)
    with pytest.raises(exception):
        model.amend(x, y, row_ids=np.arange(40))
    assert np.array_equal(model.coef_, WANTED) and model.n_rows_ == 40


def test_an_empty_frame():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="0 sample"):
        efface.Ridge().fit(pd.DataFrame({"a": [], "b": []}), [])


@pytest.mark.parametrize(
    ("ids", "exception", "message"),
    [
        ([1], ValueError, "1 row ids for 40 rows"),
        (np.zeros(40, dtype=int), efface.DuplicateRowError, "row 0 is named twice"),
        (-np.arange(40), ValueError, "negative"),
        (np.arange(40) + 0.5, TypeError, "float64"),
        (np.zeros(40, dtype=bool), TypeError, "bool"),
    ],
)
def test_bad_ids_at_fit(ids, exception, message):
    model = efface.Ridge().fit(X, Y)
    with pytest.raises(exception, match=message):
        model.fit(X, Y, row_ids=ids)
    assert np.array_equal(model.coef_, WANTED)


@pytest.mark.parametrize("made", FITTED)
def test_a_refit_that_fails_leaves_everything(made):
    model = FITTED[made]()
    before, attributes = told(model), set(vars(model))
    pd = pytest.importorskip("pandas")
    wide = pd.DataFrame(np.hstack([X, X]), columns=list("abcdefgh"))
    with pytest.raises(ValueError, match="1 row ids for 40 rows"):
        model.fit(wide, np.where(Y > 1, "a", "b") if hasattr(model, "classes_") else Y, row_ids=[1])
    assert np.array_equal(told(model), before)
    assert set(vars(model)) == attributes and model.n_features_in_ == 4


@pytest.mark.parametrize("made", FITTED)
def test_amend_wants_names(made):
    model = FITTED[made]()
    with pytest.raises(TypeError, match="amend needs row_ids"):
        model.amend(X, Y > 1 if hasattr(model, "classes_") else Y, row_ids=None)


def test_rows_that_join_need_new_names():
    model = efface.Ridge().fit(X, Y)
    with pytest.raises(efface.DuplicateRowError, match="row 3 is named twice"):
        model.partial_fit(X[:2], Y[:2], row_ids=[100, 3])
    with pytest.raises(efface.UnknownRowError, match="row 100"):
        model.amend(X[:1], Y[:1], row_ids=[100])
    assert np.array_equal(model.coef_, WANTED) and model.n_rows_ == 40


@pytest.mark.parametrize("weights", [np.full(40, -1.0), np.full(40, np.nan), np.ones(3)])
def test_bad_weights(weights):
    with pytest.raises(ValueError):
        efface.Ridge().fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize("made", [efface.Ridge, efface.LogisticRegression, efface.GaussianNB, efface.KMeans])
def test_before_a_fit(made):
    for work in (
        lambda m: m.forget([0]),
        lambda m: m.predict(X),
        lambda m: m.amend(X, Y, row_ids=np.arange(40)),
        lambda m: m.row_ids_,
        lambda m: m.save("nowhere"),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            work(made())


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (efface.Ridge(alpha=-1.0), "alpha = -1.0 is out of range"),
        (efface.Ridge(alpha=np.nan), "alpha = nan"),
        (efface.Ridge(alpha=np.inf), "alpha = inf"),
        (efface.KMeans(2, random_state=2**64), "random_state = 18446744073709551616"),
        (efface.Sisa(efface.GaussianNB(priors=[0.5, 0.5])), "leave the priors to the rows"),
        (efface.Sisa(efface.MultinomialNB(fit_prior=False)), "leave the priors to the rows"),
        (efface.Ridge(form="square"), "form = 'square' does not exist"),
        (efface.LogisticRegression(form="rows"), "form = 'rows' does not exist"),
        (efface.Ridge(n_jobs=0), "n_jobs = 0"),
        (efface.LogisticRegression(max_iter=0), "max_iter = 0"),
        (efface.LogisticRegression(C=0.0), "C = 0.0 is out of range"),
        (efface.LogisticRegression(penalty="l1"), "penalty = 'l1' is not supported"),
        (efface.GaussianNB(var_smoothing=-1.0), "var_smoothing"),
        (efface.MultinomialNB(alpha=0.0), "alpha = 0.0"),
        (efface.KMeans(n_clusters=41), "n_samples=40 should be >= n_clusters=41"),
        (efface.KMeans(scheme="round"), "scheme = 'round'"),
        (efface.Sisa(efface.Ridge(), n_shards=41), "n_samples=40 should be >= n_shards=41"),
        (efface.Sisa(efface.Ridge(), aggregation="vote"), "cannot be voted on"),
    ],
)
def test_bad_settings(made, message):
    with pytest.raises(ValueError, match=message):
        made.fit(np.abs(X), (Y > 1).astype(int))


def test_shards_of_strangers():
    with pytest.raises(TypeError, match="must be an estimator of efface"):
        efface.Sisa(object()).fit(X, Y)
    with pytest.raises(TypeError, match="cannot be trained in shards"):
        efface.Sisa(efface.KMeans(2)).fit(X, Y)


def test_rows_that_determine_nothing():
    twice = np.column_stack([X, X])
    with pytest.raises(np.linalg.LinAlgError, match="do not determine the parameters"):
        efface.Ridge(alpha=0.0).fit(twice, Y)
    few = efface.Ridge(alpha=0.0).fit(X[:5], Y[:5])
    before = few.coef_.copy()
    with pytest.raises(np.linalg.LinAlgError):
        few.forget([0])
    assert np.array_equal(few.coef_, before)


def test_classes_that_a_plane_separates():
    with pytest.raises(np.linalg.LinAlgError, match="no finite optimum"):
        efface.LogisticRegression(C=np.inf).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])


def test_training_that_does_not_end():
    with pytest.raises(efface.NotConvergedError, match="raise the penalty"):
        efface.LogisticRegression(max_iter=1).fit(X, Y > 1)


def test_labels_that_are_new():
    model = efface.LogisticRegression().fit(X, Y > 1)
    with pytest.raises(ValueError, match="not among the 2 classes"):
        model.partial_fit(X[:1], [7])
    with pytest.raises(ValueError, match="only one class"):
        efface.LogisticRegression().fit(X, np.zeros(40))


@pytest.mark.parametrize("made", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("bad", "words"),
    [(np.nan, "Input X contains NaN"), (np.inf, "Input X contains infinity"), (-1.0, "Negative values in data")],
)
def test_naive_bayes_refuses_in_the_words_of_scikit_learn(made, bad, words):
    counts = np.ones((6, 3))
    labels = np.arange(6) % 2 == 0
    model = efface.MultinomialNB().fit(made(counts), labels)
    before = model.feature_log_prob_.copy()
    spoilt = counts.copy()
    spoilt[4, 1] = bad
    with pytest.raises(ValueError, match=words):
        model.fit(made(spoilt), labels)
    assert (model.feature_log_prob_ == before).all()


@pytest.mark.parametrize("labels", [[True, False, True], [True, True, True], [False, False, False]])
def test_truth_values_are_classes_as_any_other_labels_are(labels):
    counts = np.arange(9.0).reshape(3, 3)
    quick = efface.MultinomialNB().fit(counts, np.array(labels))
    plain = efface.MultinomialNB().fit(counts, [int(label) for label in labels])
    assert quick.classes_.dtype == np.bool_
    assert quick.classes_.astype(int).tolist() == plain.classes_.tolist()
    assert (quick.predict(counts).astype(int) == plain.predict(counts)).all()
