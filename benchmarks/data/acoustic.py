"""Three-dimensional acoustic wavefields of fp32, computed on the host by NumPy or on a device by PyTorch.

The scheme is of second order in time and of fourth order in space; the pressure is zero on the boundary. The earth has
eight layers, with velocities that vary along the second axis. A Ricker wavelet excites it at the centre of the volume.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

Put = Callable[[np.ndarray], Any]
"""Brings an array to where it is computed on."""

SLOWEST, FASTEST = 1500.0, 3000.0  # m/s
STABLE = 0.45  # cells that the fastest wave crosses in a step; the limit of the scheme is 0.5
WEIGHTS = (4 / 3, -1 / 12)  # of the second derivative, one and two cells away
CENTRE = -2.5
EDGE = len(WEIGHTS)
PERIOD = 34
"""Steps of the wavelet's peak period: 15 cells, where a wave is slowest."""


def shape_of(count: int) -> tuple[int, int, int]:
    """The volume of so many cells, a power of two: as near to a cube as powers of two allow.

    >>> shape_of(1 << 26)
    (256, 512, 512)
    """
    bits = count.bit_length() - 1
    if bits < 12 or count != 1 << bits:
        raise ValueError(f"{count} cells are no power of two from 4096 up")
    first, second = bits // 3, (bits + 1) // 3
    return 1 << first, 1 << second, 1 << (bits - first - second)


def early(shape: tuple[int, int, int], count: int) -> Iterable[int]:
    """Steps after which little more than the surroundings of the source is excited."""
    return range(len_of(shape) // 32, len_of(shape) // 32 + count)


def late(shape: tuple[int, int, int], count: int) -> Iterable[int]:
    """Steps after which the wave has crossed the volume."""
    return range(len_of(shape) * 5 // 4, len_of(shape) * 5 // 4 + 4 * count, 4)


def len_of(shape: tuple[int, int, int]) -> int:
    """Cells of the longest axis."""
    return max(shape)


def fields(put: Put, shape: tuple[int, int, int], steps: Iterable[int]) -> Iterator[Any]:
    """Copies of the pressure after each of the steps, which ascend."""
    now, before = put(np.zeros(shape, np.float32)), put(np.zeros(shape, np.float32))
    speed = put(_squared_steps(shape))
    inner = (slice(EDGE, -EDGE),) * 3
    centre = tuple(length // 2 for length in shape)
    done = 0
    for wanted in steps:
        for step in range(done, wanted):
            change = _laplacian(now)
            change *= speed
            before *= -1
            before += now
            before += now
            before[inner] += change
            before[centre] += ricker(step)
            now, before = before, now
        done = wanted
        yield now * 1


def ricker(step: int) -> float:
    """The wavelet's amplitude."""
    x = (np.pi * (step / PERIOD - 1)) ** 2
    return float((1 - 2 * x) * np.exp(-x))


def _squared_steps(shape: tuple[int, int, int]) -> np.ndarray:
    """The squares of the cells that a wave crosses in a step, without the boundary."""
    depth, length = np.meshgrid(*(np.arange(n)[EDGE:-EDGE] / n for n in shape[:2]), indexing="ij")
    layers = SLOWEST + (FASTEST - SLOWEST) * np.floor(8 * depth) / 8
    speeds = layers * (1 + 0.05 * np.sin(2 * np.pi * length))
    squares: np.ndarray = ((STABLE * speeds / speeds.max()) ** 2).astype(np.float32)
    return squares[:, :, None]


def _laplacian(field: Any) -> Any:
    inner = slice(EDGE, -EDGE)
    found = field[inner, inner, inner] * (3 * CENTRE)
    for axis in range(3):
        for away, weight in enumerate(WEIGHTS, start=1):
            sides = []
            for shift in (-away, away):
                place = [inner] * 3
                place[axis] = slice(EDGE + shift, field.shape[axis] - EDGE + shift)
                sides.append(field[tuple(place)])
            both = sides[0] + sides[1]
            both *= weight
            found += both
    return found
