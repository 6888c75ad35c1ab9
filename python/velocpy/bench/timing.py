"""Measuring by turns on a machine that others use too."""

from __future__ import annotations

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


def by_turns(contenders: dict[str, Contender], rounds: int) -> dict[str, list[float]]:
    """Runs every contender once a round, each round beginning with another one, after one round that does not count."""
    names = list(contenders)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(-1, rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            took = contenders[name]()
            if number >= 0:
                seconds[name].append(took)
    return seconds


def median(values: list[float]) -> float:
    """The median, the figure that a noisy neighbour moves least."""
    return statistics.median(values)
