"""Kinds of checkpoints that a device encodes: wavefields, weights and noise, in device memory or on the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.data import acoustic
from benchmarks.engines.card import HostCard

KINDS = {
    "late": "3-D wavefields, late, fp32",
    "early": "3-D wavefields, early, fp32",
    "bf16": "weights, bf16",
    "fp32": "weights, fp32",
    "noise": "noise, bytes",
}


def chosen(cells: str | None) -> list[str]:
    """The kinds of names with commas between; None: all."""
    names = list(KINDS) if cells is None else [name.strip() for name in cells.split(",")]
    for name in names:
        if name not in KINDS:
            raise ValueError(f"no cell {name!r}; there are {', '.join(KINDS)}")
    return names


def made(kind: str, card: Any, size: int, count: int) -> list[Any]:
    """So many different arrays of size bytes."""
    on_host = card.name == HostCard.name
    if kind in ("late", "early"):
        shape = acoustic.shape_of(size // 4)
        steps = (acoustic.late if kind == "late" else acoustic.early)(shape, count)
        return list(acoustic.fields(_here if on_host else _on_device, shape, steps))
    return list((_drawn_on_host if on_host else _drawn_on_device)(kind, size, count))


def same(ours: Any, theirs: Any) -> bool:
    """Whether both have the same bytes."""
    if isinstance(theirs, np.ndarray):
        return bool(np.array_equal(ours.view(np.uint8), theirs.view(np.uint8)))
    import torch

    return bool(torch.equal(ours.view(torch.uint8), theirs.view(torch.uint8)))


def zeros(array: Any) -> float:
    """The share of its elements that are zero."""
    return float((array == 0).sum()) / float(np.prod(array.shape))


def _here(array: np.ndarray) -> np.ndarray:
    return array


def _on_device(array: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(array).cuda()


def _drawn_on_device(kind: str, size: int, count: int) -> Iterator[Any]:
    import torch

    random = torch.Generator("cuda").manual_seed(1)
    for _ in range(count):
        if kind == "noise":
            yield torch.randint(0, 256, (size,), dtype=torch.uint8, device="cuda", generator=random)
        elif kind == "fp32":
            yield torch.randn(size // 4, device="cuda", generator=random).mul_(0.02)
        else:
            yield torch.randn(size // 2, device="cuda", generator=random).mul_(0.02).bfloat16()


def _drawn_on_host(kind: str, size: int, count: int) -> Iterator[np.ndarray]:
    random = np.random.default_rng(1)
    for _ in range(count):
        if kind == "noise":
            yield random.integers(0, 256, size, dtype=np.uint8)
        elif kind == "fp32":
            yield random.standard_normal(size // 4, dtype=np.float32) * np.float32(0.02)
        else:  # NumPy has no bf16: the upper halves of fp32
            drawn = random.standard_normal(size // 2, dtype=np.float32) * np.float32(0.02)
            yield (drawn.view(np.uint32) >> 16).astype(np.uint16)
