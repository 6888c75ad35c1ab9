"""Plays shots: the application's loop, with an engine and without one.

The device computes, the host follows one interval behind, as an application does that launches its next step while this
one runs: what an engine does in time costs nothing. The same loop without an engine is the time that is not blocked.
"""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from benchmarks.engines.card import Bytes, Card, Mark
from benchmarks.engines.engine import Engine
from benchmarks.engines.workload import Workload

Fence = Callable[[], None]


def alone() -> None:
    """The fence of a process that has no others to wait for."""


@dataclasses.dataclass
class Pace:
    """How the processes of a run go along with each other."""

    fence: Fence = alone  # between the phases
    step: Fence | None = None  # in every iteration, when they are coupled
    agree: Callable[[bool], bool] = bool  # whether all of them say yes


@dataclasses.dataclass
class Walls:
    """Seconds that the phases took."""

    writing: float
    reading: float


@dataclasses.dataclass
class Outcome:
    """What one shot cost."""

    blocked_writing: float
    blocked_reading: float
    flushing: float  # seconds between the phases, where the restores wait for the flushes
    checkpoint_calls: list[float]  # host seconds of each call
    restore_calls: list[float]
    differences: int
    distances: list[int]
    facts: dict[str, Any]

    @property
    def blocked(self) -> float:
        """Seconds, writing and reading."""
        return self.blocked_writing + self.blocked_reading


def compute_only(card: Card, workload: Workload, source: Bytes, pace: Pace | None = None) -> Walls:
    """The loop without an engine."""
    pace = pace or Pace()
    pace.fence()
    began = time.perf_counter()
    for key in _paced(card, workload, range(len(workload.sizes)), pace):
        card.stamp(source[: workload.sizes[key]], key)
    card.join()
    writing = time.perf_counter() - began
    card.stamp(source, 0)
    card.join()
    pace.fence()
    began = time.perf_counter()
    for key in _paced(card, workload, workload.keys, pace):
        card.compare(source[: workload.sizes[key]], 0)
    card.join()
    reading = time.perf_counter() - began
    if card.differences():
        raise AssertionError("the bytes that never left differ")
    return Walls(writing, reading)


def shot(
    card: Card,
    workload: Workload,
    engine: Engine,
    source: Bytes,
    without: Walls,
    pace: Pace | None = None,
    trace: bool = False,
) -> Outcome:
    """Plays one shot; every byte restored is compared on the device, in time that `compute_only` spends likewise."""
    pace = pace or Pace()
    engine.begin(workload)
    captures: list[float] = []
    pace.fence()
    began = time.perf_counter()
    write(card, workload, engine, source, captures, pace)
    writing = time.perf_counter() - began
    flushing = 0.0
    if workload.wait_flushed:
        began = time.perf_counter()
        engine.wait_flushed()
        flushing = time.perf_counter() - began
    pace.fence()
    restores: list[float] = []
    distances: list[int] = []
    began = time.perf_counter()
    read(card, workload, engine, restores, distances if trace else None, pace)
    reading = time.perf_counter() - began
    return Outcome(
        writing - without.writing,
        reading - without.reading,
        flushing,
        captures,
        restores,
        card.differences(),
        distances,
        engine.facts(),
    )


def write(
    card: Card,
    workload: Workload,
    engine: Engine,
    source: Bytes,
    calls: list[float],
    pace: Pace | None = None,
    first: int = 0,
) -> None:
    """The forward sweep, from its first checkpoint or a later one; the source is overwritten in every step."""
    for key in _paced(card, workload, range(first, len(workload.sizes)), pace or Pace()):
        state = source[: workload.sizes[key]]
        card.stamp(state, key)
        began = time.perf_counter()
        engine.checkpoint(key, state)
        calls.append(time.perf_counter() - began)
    card.join()


def read(
    card: Card,
    workload: Workload,
    engine: Engine,
    calls: list[float],
    distances: list[int] | None = None,
    pace: Pace | None = None,
) -> None:
    """The backward sweep."""
    order = workload.keys
    engine.turn()
    for place, key in enumerate(_paced(card, workload, order, pace or Pace())):
        following = order[place + 1] if place + 1 < len(order) else None
        began = time.perf_counter()
        found = engine.restore(key, following)
        calls.append(time.perf_counter() - began)
        card.compare(found, key)
        del found
        engine.done(key)
        if distances is not None:
            distances.append(_distance(engine, order, place))
    card.join()


def _distance(engine: Engine, order: tuple[int, ...], place: int) -> int:
    """How many of the next restores find their checkpoint in the fastest tier, up to the first that does not."""
    ahead = 0
    while place + 1 + ahead < len(order) and engine.ready(order[place + 1 + ahead]):
        ahead += 1
    return ahead


def _paced(card: Card, workload: Workload, keys, pace: Pace):  # type: ignore[no-untyped-def]
    """The keys, each behind its computation; the host is one interval ahead of the device at most."""
    marks: deque[Mark] = deque()
    for key in keys:
        card.spin(workload.interval)
        if pace.step is not None:
            card.join()
            pace.step()
        yield key
        marks.append(card.mark())
        if len(marks) > 1:
            marks.popleft().wait()
