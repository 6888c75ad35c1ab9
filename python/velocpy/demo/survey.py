"""Who makes the sound and who listens: sources, receivers, and the length of a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .backend import Field
from .earth import Earth
from .wave import stable_step


@dataclass(frozen=True)
class Survey:
    """The geometry of an experiment; places are indices into the earth, and that of a source may have no cell.

    All sources and receivers lie at the same depth; the receivers fill that row (in 3-D: that plane).
    """

    earth: Earth
    sources: tuple[tuple[Any, ...], ...]
    receivers: tuple[Any, ...]
    dt: float
    steps: int
    order: int
    sponge: int
    wavelet: Field

    @property
    def field_bytes(self) -> int:
        """Size of what one step of a sweep keeps."""
        return int(np.prod(self.earth.shape)) * 4

    @property
    def history_bytes(self) -> int:
        """Size of the history of one shot."""
        return self.steps * self.field_bytes


def survey_over(
    earth: Earth, shots: int, steps: int | None = None, order: int = 8, sponge: int = 32, frequency: float | None = None
) -> Survey:
    """Shots spread evenly over an earth.

    Parameters
    ----------
    steps
        Length of a recording; by default as long as the waves need to the bottom and back.
    frequency
        Peak of the source's spectrum in Hz; by default the highest that the grid carries well.
    """
    slowest, fastest = float(earth.speed.min()), float(earth.speed.max())
    dt = stable_step(fastest, earth.spacing, earth.speed.ndim, order)
    if frequency is None:
        frequency = slowest / (earth.spacing * (9.0 if order == 8 else 12.0))
    if steps is None:
        there = earth.shape[0] * earth.spacing * float(np.mean(1.0 / earth.speed))
        steps = int((2.3 * there + 2.0 / frequency) / dt)
    depth = 4
    lines = [np.linspace(0, n, shots + 2)[1:-1].astype(int) for n in earth.shape[1:]]
    return Survey(
        earth=earth,
        sources=tuple((depth, *(int(line[shot]) for line in lines)) for shot in range(shots)),
        receivers=(depth, *([slice(None)] * (earth.speed.ndim - 1))),
        dt=dt,
        steps=steps,
        order=order,
        sponge=sponge,
        wavelet=ricker(frequency, dt, steps),
    )


def ricker(frequency: float, dt: float, steps: int) -> Field:
    """The Ricker wavelet, its peak 1.1 periods after the start."""
    phase = (np.pi * frequency * (np.arange(steps) * dt - 1.1 / frequency)) ** 2
    return np.asarray((1.0 - 2.0 * phase) * np.exp(-phase), dtype=np.float32)
