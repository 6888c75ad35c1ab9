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
    "steps": "weights of a training, bf16",
    "frozen": "weights of which 1 % change, bf16",
    "noise": "noise, bytes",
}
STEP = 1e-5  # of a training's weights, whose deviation is 0.02


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
    if kind in ("steps", "frozen"):
        yield from _trained_on_device(kind, size, count, random)
        return
    for _ in range(count):
        if kind == "noise":
            yield torch.randint(0, 256, (size,), dtype=torch.uint8, device="cuda", generator=random)
        elif kind == "fp32":
            yield torch.randn(size // 4, device="cuda", generator=random).mul_(0.02)
        else:
            yield torch.randn(size // 2, device="cuda", generator=random).mul_(0.02).bfloat16()


def _trained_on_device(kind: str, size: int, count: int, random: Any) -> Iterator[Any]:
    import torch

    weights = torch.randn(size // 2, device="cuda", generator=random).mul_(0.02)
    step = torch.empty_like(weights)
    rows = weights.view(-1, 1024)
    for _ in range(count):
        if kind == "steps":
            weights.add_(step.normal_(generator=random), alpha=STEP)
        else:
            chosen_rows = torch.randint(
                0, rows.shape[0], (max(1, rows.shape[0] // 100),), device="cuda", generator=random
            )
            rows[chosen_rows] = torch.randn(chosen_rows.numel(), 1024, device="cuda", generator=random).mul_(0.02)
        yield weights.bfloat16()


def _halves(drawn: np.ndarray) -> np.ndarray:
    """The upper halves of fp32: NumPy has no bf16."""
    return (drawn.view(np.uint32) >> 16).astype(np.uint16)


def _trained_on_host(kind: str, size: int, count: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    weights = random.standard_normal(size // 2, dtype=np.float32) * np.float32(0.02)
    rows = weights.reshape(-1, 1024)
    for _ in range(count):
        if kind == "steps":
            weights += random.standard_normal(weights.size, dtype=np.float32) * np.float32(STEP)
        else:
            chosen_rows = random.integers(0, rows.shape[0], max(1, rows.shape[0] // 100))
            rows[chosen_rows] = random.standard_normal((chosen_rows.size, 1024), dtype=np.float32) * np.float32(0.02)
        yield _halves(weights)


def _drawn_on_host(kind: str, size: int, count: int) -> Iterator[np.ndarray]:
    random = np.random.default_rng(1)
    if kind in ("steps", "frozen"):
        yield from _trained_on_host(kind, size, count, random)
        return
    for _ in range(count):
        if kind == "noise":
            yield random.integers(0, 256, size, dtype=np.uint8)
        elif kind == "fp32":
            yield random.standard_normal(size // 4, dtype=np.float32) * np.float32(0.02)
        else:
            yield _halves(random.standard_normal(size // 2, dtype=np.float32) * np.float32(0.02))
