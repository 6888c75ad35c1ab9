"""Checkpoints for benchmarks that read back: noise in which every block says whose it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK = 4 << 10

Bytes = npt.NDArray[np.uint8]


class Stamped:
    """The bytes of any checkpoint of one size, a multiple of 4 KiB: a block in the wrong place or checkpoint differs.

    >>> noise = Stamped(8192)
    >>> seven = noise.of(7).copy()
    >>> noise.same(7, seven), noise.same(8, seven)
    (True, False)
    """

    def __init__(self, size: int) -> None:
        if size <= 0 or size % BLOCK:
            raise ValueError(f"{size} is no multiple of {BLOCK}")
        self._bytes: Bytes = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
        self._stamps = self._bytes.view(np.uint64)[:: BLOCK // 8]

    def of(self, key: int) -> Bytes:
        """The bytes of this checkpoint, in memory that the next call writes over."""
        self._stamps[:] = key
        return self._bytes

    def same(self, key: int, array: Any) -> bool:
        """Whether the array has exactly the bytes of this checkpoint."""
        return np.array_equal(np.asarray(array), self.of(key))
