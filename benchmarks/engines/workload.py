"""A shot: which checkpoints are written, in which order they are read, and what the engine is told of it."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import random
from pathlib import Path

MIB, GIB = 1 << 20, 1 << 30

#: Sizes of compressed checkpoints; `gocore/policy/sim` reads the same file in its tests.
TRACE = Path(__file__).resolve().parents[1] / "data" / "rtm-checkpoint-sizes.csv"

ORDERS = ("sequential", "reverse", "irregular")
HINTS = ("none", "one", "all")
SEED = 20  # of the irregular order: the same for every engine and every run


@dataclasses.dataclass(frozen=True)
class Workload:
    """One shot and the caches it may use."""

    sizes: tuple[int, ...]
    order: str = "reverse"
    hints: str = "all"
    wait_flushed: bool = False  # the restores begin when every checkpoint lies in the lowest tier
    interval: float = 2.5e-3  # seconds of computation before each call
    device: int = 2 * GIB
    host: int = 26 * GIB
    disk: int = 0  # bytes; 0: no disk
    restores: bool = True

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise ValueError(f"order {self.order!r} is none of {', '.join(ORDERS)}")
        if self.hints not in HINTS:
            raise ValueError(f"hints {self.hints!r} are none of {', '.join(HINTS)}")
        if not self.sizes or min(self.sizes) <= 0:
            raise ValueError("a shot has checkpoints, and they have bytes")

    @property
    def keys(self) -> tuple[int, ...]:
        """The checkpoints in the order of their restores."""
        return keys(self.order, len(self.sizes)) if self.restores else ()

    @property
    def total(self) -> int:
        """Bytes of all checkpoints."""
        return sum(self.sizes)

    @property
    def largest(self) -> int:
        """Bytes of the largest checkpoint."""
        return max(self.sizes)

    @property
    def compute(self) -> float:
        """Seconds of computation, writing and reading."""
        return self.interval * (len(self.sizes) + len(self.keys))


def keys(order: str, count: int) -> tuple[int, ...]:
    """The restores of count checkpoints.

    >>> keys("reverse", 3), sorted(keys("irregular", 3))
    ((2, 1, 0), [0, 1, 2])
    """
    forward = list(range(count))
    if order == "reverse":
        forward.reverse()
    elif order == "irregular":
        random.Random(SEED).shuffle(forward)
    return tuple(forward)


def uniform(count: int, size: int = 128 * MIB) -> tuple[int, ...]:
    """Checkpoints of one size."""
    return (size,) * count


def variable(total: int | None = None, count: int | None = None, rank: int = 0) -> tuple[int, ...]:
    """Sizes of the trace, repeated until they make up total bytes, or count of them.

    The trace is read row by row, since in one of its columns (one GPU each) all sizes are nearly the same; rank is the
    column to begin with.
    """
    if (total is None) == (count is None):
        raise ValueError("say either how many bytes or how many checkpoints")
    trace = trace_sizes()
    endless = itertools.islice(itertools.cycle(trace), rank % len(trace), None)
    if count is not None:
        return tuple(itertools.islice(endless, count))
    sizes: list[int] = []
    left = total or 0
    while left > 0:
        sizes.append(next(endless))
        left -= sizes[-1]
    return tuple(sizes)


def trace_sizes() -> tuple[int, ...]:
    """Sizes of compressed checkpoints of a reverse time migration; ``data/README.md`` names their source."""
    text = TRACE.read_text(encoding="ascii")
    return tuple(int(cell) for row in csv.reader(text.splitlines()) for cell in row)
