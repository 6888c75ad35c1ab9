"""Arrays for tests, and comparison to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def random_array(shape: Any, dtype: Any = np.float64, seed: int = 0) -> np.ndarray[Any, Any]:
    """Random bytes under a dtype: NaN payloads, denormals and negative zeros among them."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)
    if dtype.kind == "b":
        raw &= 1
    return raw.view(dtype).reshape(shape) if count else np.empty(shape, dtype)


def bits(array: Any) -> bytes:
    """The bytes of an array in C order, whatever its library and strides."""
    if type(array).__module__.partition(".")[0] == "torch":
        import torch

        flat = array.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
        return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return np.asarray(array).tobytes()


def same(one: Any, other: Any) -> bool:
    """Equal dtype, shape and bytes."""
    return one.dtype == other.dtype and tuple(one.shape) == tuple(other.shape) and bits(one) == bits(other)


def alike(one: Any, other: Any, leaves: Callable[[Any, Any], bool]) -> bool:
    """Whether two states have the same containers, in them leaves of the same types that are the same by `leaves`."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key], leaves) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(alike(*pair, leaves) for pair in zip(one, other, strict=True))
    return leaves(one, other)
