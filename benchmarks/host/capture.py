"""How close a capture into the host cache comes to copying the bytes as fast as the machine can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import velocpy
from velocpy.bench import memcpy
from velocpy.bench.report import Report
from velocpy.bench.timing import Contender, by_turns, median, timed

RING = 768 << 20  # the copies go round through this much memory, so that no cache holds their destination
BAR_PLAIN, BAR_CHECKED = 0.90, 0.75


def run(sizes: tuple[int, ...] = (1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20), rounds: int = 15) -> Report:
    """Times checkpoint() of one array against memcpy, with the checksum off and on."""
    report = Report("capture", {"rounds": rounds, "ring_mib": RING >> 20})
    for size in sizes:
        row = _one_size(size, rounds)
        report.rows.append(row)
        for name, bar in (("checksum off", BAR_PLAIN), ("checksum on", BAR_CHECKED)):
            report.bar(f"{size >> 20} MiB, {name}, of the best memcpy", row[f"{name}: of the best"], bar, at_least=True)
    report.notes.append("A figure of 1.0 is the best memcpy of the same run; sources are warm, destinations are not.")
    return report


def _one_size(size: int, rounds: int) -> dict[str, Any]:
    slots = max(RING // size, 3)
    repeat = max(1, min(slots, (128 << 20) // size))
    source = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    ring = np.ones(slots * size, np.uint8)
    with (
        memcpy.contenders() as contenders,
        velocpy.open(host=(slots + 1) * (size + 4096), tuning=velocpy.Tuning(checksum=False)) as plain,
        velocpy.open(host=(slots + 1) * (size + 4096)) as checked,
    ):
        ways: dict[str, Contender] = {
            name: _round(lambda i, way=way: way(ring[i * size : (i + 1) * size], source), slots, repeat)  # type: ignore[misc]
            for name, way in contenders.items()
        }
        baselines = list(ways)
        for name, store in (("checksum off", plain), ("checksum on", checked)):
            history = store.history("capture")
            for i in range(slots):
                history.checkpoint(i, u=source)
            ways[name] = _round(lambda i, h=history: h.checkpoint(i, u=source), slots, repeat)  # type: ignore[misc]
        seconds = by_turns(ways, rounds)
        last = checked.history("capture").restore(0)["u"]
        assert np.array_equal(last, source), "the checkpoint is not what was captured"
    rates = {name: size * repeat / median(values) / 1e9 for name, values in seconds.items()}
    ceiling = max(rates[name] for name in baselines)
    row: dict[str, Any] = {"MiB": size >> 20} | {f"{name} GB/s": rate for name, rate in rates.items()}
    for name in ("checksum off", "checksum on"):
        row[f"{name}: of the best"] = rates[name] / ceiling
    return row | {"seconds": [seconds]}


def _round(copy: Callable[[int], object], slots: int, repeat: int) -> Contender:
    """Copies repeat times, going on through the ring where the last round ended."""
    at = 0

    def work() -> None:
        nonlocal at
        for _ in range(repeat):
            copy(at % slots)
            at += 1

    return timed(work)
