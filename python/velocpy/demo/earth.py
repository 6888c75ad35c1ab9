"""The earth that the demo images: gently folded layers, a lens, and what a velocity analysis would know of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .backend import Field

#: Speeds of the layers, top to bottom, in m/s.
LAYERS = (1500.0, 1850.0, 2150.0, 2450.0, 2900.0)
#: Depths of the boundaries between them, as fractions of the whole depth.
BOUNDARIES = (0.22, 0.40, 0.60, 0.82)
#: Speed inside the lens, in m/s: slower than the layer around it.
LENS = 1800.0


@dataclass(frozen=True)
class Earth:
    """Speeds of sound on a regular grid; axis 0 points down.

    ``speed`` is the truth, from which the recordings come; ``smooth`` is the model that the migration is given: right
    on the large scale, without a single reflector.
    """

    speed: Field
    smooth: Field
    spacing: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return self.speed.shape


def layered_earth(shape: tuple[int, ...], spacing: float = 10.0) -> Earth:
    """Folded layers with an ellipsoidal lens, in two or three dimensions.

    Examples
    --------
    >>> earth = layered_earth((60, 80))
    >>> earth.speed.shape, float(earth.speed.min()), float(earth.speed.max())
    ((60, 80), 1500.0, 2900.0)
    """
    depth, *across = np.meshgrid(*(np.linspace(0.0, 1.0, n) for n in shape), indexing="ij", sparse=True)
    speed = np.full(shape, LAYERS[0], dtype=np.float32)
    for number, (boundary, below) in enumerate(zip(BOUNDARIES, LAYERS[1:], strict=True)):
        fold = sum(np.cos(2.0 * np.pi * (x * (1.1 + 0.2 * number) + 0.13 * number)) for x in across) / len(across)
        speed[np.broadcast_to(depth > boundary + 0.022 * number * fold, shape)] = below
    return Earth(np.where(lens(shape), np.float32(LENS), speed), _smoothed(speed), spacing)


def lens(shape: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """The cells inside the lens."""
    depth, *across = np.meshgrid(*(np.linspace(-0.5, 0.5, n) for n in shape), indexing="ij", sparse=True)
    distance = (depth / 0.055) ** 2 + sum((x / 0.13) ** 2 for x in across)
    return np.asarray(distance < 1.0)


def _smoothed(speed: Field) -> Field:
    """Slowness under repeated running means: times of travel stay right where reflectors vanish."""
    slowness = 1.0 / speed.astype(np.float64)
    for axis, cells in enumerate(slowness.shape):
        width = max(1, cells // 24)
        for _ in range(3):
            slowness = _running_mean(slowness, axis, width)
    return np.asarray(1.0 / slowness, dtype=np.float32)


def _running_mean(
    field: np.ndarray[tuple[int, ...], np.dtype[np.float64]], axis: int, width: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The mean over ``2 * width + 1`` cells, the edges continued."""
    along = np.moveaxis(field, axis, 0)
    padded = np.concatenate([along[:1].repeat(width + 1, 0), along, along[-1:].repeat(width, 0)])
    total = padded.cumsum(axis=0)
    return np.moveaxis((total[2 * width + 1 :] - total[: -2 * width - 1]) / (2 * width + 1), 0, axis)
