"""Measuring by turns on a machine that others use too."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable

Contender = Callable[[], float]
"""Runs once and returns the seconds that count."""


def timed(work: Callable[[], object]) -> Contender:
    """A contender whose whole run counts."""

    def run() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return run


def by_turns(contenders: dict[str, Contender], rounds: int, *, seconds: float = math.inf) -> dict[str, list[float]]:
    """Runs every contender once a round, and returns the seconds of each; a first round does not count.

    Each round begins with another contender. After so many `seconds` no further round begins, but one always counts.
    """
    names = list(contenders)
    took: dict[str, list[float]] = {name: [] for name in names}
    began = time.perf_counter()
    for number in range(-1, rounds):
        if number > 0 and time.perf_counter() - began > seconds:
            break
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            lap = contenders[name]()
            if number >= 0:
                took[name].append(lap)
    return took


def median(values: list[float]) -> float:
    """The median, the figure that a noisy neighbour moves least."""
    return statistics.median(values)
