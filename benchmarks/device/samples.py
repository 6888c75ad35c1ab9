"""Data as the codec meets it: weights, a training step, wavefields, and what cannot be compressed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .encoded import Kind, only
from .kernels import Bytes

BF16, FP32 = Kind(2, 8), Kind(4, 8)
SIDE = 4096

Floats = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class Sample:
    """A region of one kind, and the modes that suit it, as a planner allows them that knows the data."""

    name: str
    kind: Kind
    suited: int
    plain: Bytes
    reference: Bytes | None = None


def samples(size: int) -> Iterator[Sample]:
    """Samples of so many bytes each, a multiple of 16 KiB. One at a time is made, as each may be large."""
    yield Sample("bf16 weights", BF16, only("exp"), bfloat16(weights(size // 2)))
    yield Sample("fp32 weights", FP32, only("exp"), _bytes(weights(size // 4)))
    yield Sample("fp32 wavefield", FP32, only("const", "diff"), _bytes(wavefield(size // 4)))
    yield Sample("fp32 zeros and spikes", FP32, only("const", "diff"), _bytes(spikes(size // 4)))
    yield Sample("random bytes as fp32", FP32, only("exp"), np.random.default_rng(3).integers(0, 256, size, np.uint8))
    before = weights(size // 2)
    step = np.random.default_rng(4).uniform(-1e-5, 1e-5, before.size).astype(np.float32)
    yield Sample("bf16 step of 1e-5, reference", BF16, only("xrz"), bfloat16(before + step), bfloat16(before))


def weights(n: int) -> Floats:
    """Gaussian, with a scale for each row of 1024."""
    random = np.random.default_rng(1)
    scales = 0.02 * np.exp(0.5 * random.standard_normal(-(-n // 1024), np.float32))
    values: Floats = random.standard_normal(n, np.float32)
    values *= np.repeat(scales, 1024)[:n]
    return values


def bfloat16(x: Floats) -> Bytes:
    """The bytes of the nearest bfloat16 numbers, ties to even."""
    bits = x.view(np.uint32)
    return _bytes(((bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16).astype(np.uint16))


def wavefield(n: int) -> Floats:
    """A ring wave in rows of SIDE numbers, with some oscillation inside, and zeros outside."""
    rows = n // SIDE
    y = np.arange(rows, dtype=np.float32)[:, None] - rows / 2
    x = np.arange(SIDE, dtype=np.float32)[None, :] - SIDE / 2
    d = np.sqrt(x * x + y * y)
    field: Floats = np.sin(d / 9) * np.exp(-((d - 900) ** 2) / 4e5) * (d < 0.35 * SIDE)
    return field.ravel()


def spikes(n: int) -> npt.NDArray[np.uint32]:
    """Zeros, and one number at about every hundredth place."""
    values = np.zeros(n, np.uint32)
    values[np.random.default_rng(2).integers(0, n, n // 100)] = 0x3F812345
    return values


def _bytes(values: npt.NDArray[Any]) -> Bytes:
    return values.view(np.uint8)
