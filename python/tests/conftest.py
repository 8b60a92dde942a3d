"""Data sets that the tests share. They are not in the repository; tests that want one skip without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("EFFACE_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


@pytest.fixture
def data() -> Path:
    """The folder of the data sets."""
    if not DATA.is_dir():
        pytest.skip(f"{DATA} is not there; set EFFACE_DATA to the folder of the data sets")
    return DATA
