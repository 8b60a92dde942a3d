"""Audits from Python."""

from __future__ import annotations

import numpy as np
import pytest
from test_rows import LABELS, MANY, X, Y

import efface


def test_an_audit_tells_methods_apart():
    found = efface.audit(efface.Ridge(), X, Y, [1, 2, 3], methods=["exact", "influence"], n_oracles=16)
    exact, influence = found.methods
    assert exact["distance"]["l2"] < 1e-9 < influence["distance"]["l2"]
    assert [each["state"] for each in found.membership["exposures"]] == ["before", "retrain", "exact", "influence"]
    assert "exact" in repr(found) and "AUC" in found._repr_html_()
    assert found.to_dict()["forgotten"] == 3


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (efface.RidgeClassifier(), LABELS),
        (efface.RidgeClassifier(), MANY),
        (efface.LogisticRegression(), LABELS),
        (efface.LogisticRegression(), MANY),
        (efface.GaussianNB(), LABELS),
    ],
)
def test_audits_of_classifiers(model, y):
    mask = np.arange(80) < 4
    found = efface.audit(model, X, y, mask, n_oracles=0)
    assert found.membership is None and found.forgotten == 4
    assert 0.5 < found.utility_retrained["accuracy"] <= 1.0


def test_clusters_and_shards_are_audited():
    clusters = efface.audit(efface.KMeans(3), X, None, [1, 2, 3], methods=["q_kmeans"], n_oracles=16)
    assert clusters.methods[0]["distance"]["l2"] == 0.0 and clusters.methods[0]["relearning"] is None
    assert clusters.utility_before["rmse"] > 0.0 and clusters.membership["oracles"] == 16
    shards = efface.audit(efface.Sisa(efface.LogisticRegression(), n_shards=2), X, LABELS, [1, 2], n_oracles=0)
    assert shards.methods[0]["distance"]["l2"] is None
    assert shards.methods[0]["distance"]["largest_prediction_change"] == 0.0
    assert "exact" in repr(shards)


def test_relearning_takes_as_long_as_for_a_retrained_model():
    found = efface.audit(efface.Ridge(alpha=0.1), X, Y, [1, 2, 3], methods=["exact", "influence"], n_oracles=0)
    exact, influence = (each["relearning"] for each in found.methods)
    assert abs(exact["ratio"] - 1.0) <= 1 / 64 and influence["ratio"] < 1.0
    assert "of the time of retraining" in repr(found)


def test_twins_are_told():
    x, y = np.vstack([X, X[:1]]), np.append(Y, Y[0])
    assert efface.audit(efface.Ridge(), x, y, [0], n_oracles=0).surviving_twins == 1


def test_an_injected_feature_is_gone():
    found = efface.feature_injection(efface.Ridge(alpha=0.1), X, Y, [1, 2], methods=["exact", "influence"])
    assert found.left["exact"] == 0.0 < found.left["influence"]
    assert repr(found).startswith("Injection(before=") and "influence" in found._repr_html_()


def test_bad_questions():
    with pytest.raises(TypeError, match="estimator of efface"):
        efface.audit(object(), X, Y, [1])
    with pytest.raises(efface.UnknownRowError):
        efface.audit(efface.Ridge(), X, Y, [99], n_oracles=0)
    with pytest.raises(ValueError, match="oracles"):
        efface.audit(efface.Ridge(), X, Y, [1], n_oracles=3)
    with pytest.raises(ValueError):
        efface.feature_injection(efface.KMeans(2), X, Y, [1])
