"""What calls cost the host in a loop that waits for the device before each of them: beside a ring, and a plain copy."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.engines.card import HostCard
from benchmarks.engines.ours import Ours
from benchmarks.engines.ring import Ring
from benchmarks.engines.workload import Workload
from velocpy.bench.report import Report
from velocpy.bench.timing import median

COUNT = 32  # checkpoints of one lap
SLACK_US = 20  # over the p99 of a plain copy


def beside_ring(report: Report, card: Any, size: int, rounds: int) -> None:
    """Writes and reads what fits into the device's tier, in turns with the ring; a first lap compares the bytes."""
    room = (COUNT + 2) * (size + (1 << 20))
    workload = Workload((size,) * COUNT, device=room, host=room)
    source, there = card.device(size), card.device(size)
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as closing:
        on_device = card.name != HostCard.name
        engines: dict[str, Any] = {
            "ring": Ring(card, workload, Path(folder)),
            "velocpy": Ours(workload, Path(folder), on_device=on_device),
        }
        for engine in engines.values():
            closing.callback(engine.close)
        for number in range(rounds + 1):
            for name, engine in list(engines.items())[:: 1 if number % 2 else -1]:
                wrote, read = _lap(card, engine, workload, source, compares=number == 0)
                if number:
                    times.setdefault(f"{name}: write", []).extend(wrote)
                    times.setdefault(f"{name}: read", []).extend(read)
            copied = [_after(card, lambda: card.copy(there, source)) for _ in range(COUNT)]
            if number:
                times.setdefault("copy()", []).extend(copied)
    for name in ("copy()", "ring: write", "velocpy: write", "ring: read", "velocpy: read"):
        what = f"{name}, the device waited for before"
        report.rows.append(
            {"what": what, "host median µs": median(times[name]) * 1e6, "host p99 µs": _p99(times[name])}
        )
    lease = median(times["velocpy: read"]) / median(times["ring: read"])
    report.bar("lease in a loop that waits for the device, host, by the ring's get", lease, 1.0, at_least=False)
    more = _p99(times["velocpy: write"]) - _p99(times["copy()"])
    report.bar("checkpoint() in that loop: its p99 over that of copy(), µs", more, SLACK_US, at_least=False)


def _lap(card: Any, engine: Any, workload: Workload, source: Any, *, compares: bool) -> tuple[list[float], list[float]]:
    """What each write and each read took the host."""
    engine.begin(workload)
    wrote, read = [], []
    for key in range(COUNT):
        card.stamp(source, key)
        wrote.append(_after(card, lambda key=key: engine.checkpoint(key, source)))  # type: ignore[misc]
    engine.turn()
    for key, following in zip(workload.keys, (*workload.keys[1:], None), strict=True):
        found: list[Any] = []
        read.append(_after(card, lambda key=key, then=following, to=found: to.append(engine.restore(key, then))))  # type: ignore[misc]
        if compares:
            card.compare(found[0], key)
        found.clear()
        engine.done(key)
    if card.differences():
        raise AssertionError("a checkpoint came back different")
    return wrote, read


def _after(card: Any, call: Callable[[], object]) -> float:
    """Seconds of a call behind which nothing is queued on the device."""
    card.join()
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _p99(times: list[float]) -> float:
    return sorted(times)[len(times) * 99 // 100] * 1e6
