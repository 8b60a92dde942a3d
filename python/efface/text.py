"""A frozen sentence encoder. Its weights are public, so that forgetting the head is forgetting the model."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from . import _core


class MiniLM:
    """all-MiniLM-L6-v2, or a BERT of its kind, from a folder as sentence-transformers writes it.

    A text becomes the mean of its tokens' vectors, scaled to length 1 if ``modules.json`` lists ``Normalize``.
    Folders with another pooling are refused.

    Parameters
    ----------
    folder : path
    n_jobs : int, default=1
        Threads that encode.
    """

    def __init__(self, folder: str | os.PathLike[str], *, n_jobs: int = 1) -> None:
        self._encoder = _core.MiniLm(os.fspath(folder), n_jobs)

    @property
    def width(self) -> int:
        """The numbers that a text becomes."""
        return self._encoder.width

    @property
    def fingerprint(self) -> str:
        """SHA-256 of weights, tokenizer and settings: two encoders of one fingerprint give the same features."""
        return self._encoder.fingerprint

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """One row of numbers for every text."""
        if isinstance(texts, str):
            raise TypeError("texts is one str; give a list of them")
        return self._encoder.encode(list(texts))
