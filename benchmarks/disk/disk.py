"""How close the disk tier comes to the disk."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import velocpy
from velocpy.bench.report import Report
from velocpy.bench.timing import median

from . import ceiling

BAR = 0.90


def run(folder: Path, total: int = 4 << 30, size: int = 64 << 20, rounds: int = 5) -> Report:
    """Writes a history through a small host cache and reads it back, beside the best that the same disk does."""
    n = total // size
    best = ceiling.sweep(folder, min(total, ceiling.POINT))
    report = Report(
        "disk",
        {"rounds": rounds, "history_mib": total >> 20, "checkpoint_mib": size >> 20, "host_mib": (8 * size) >> 20},
    )
    report.measure({f"best way to {way}": str(best.best(way)) for way in ceiling.DIRECTIONS})
    source = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    seconds: dict[str, list[float]] = {"disk write": [], "velocpy write": [], "disk read": [], "velocpy read": []}
    for number in range(rounds + 1):
        took: dict[str, float] = {}
        for way in ceiling.DIRECTIONS:
            point = best.best(way)
            with ceiling.again(folder, total, point) as seconds_of:
                if way == "read":
                    seconds_of("write")  # what was never written need not be read
                took[f"disk {way}"] = seconds_of(way)
        with velocpy.open(
            folder, host=8 * size, disk=total + (1 << 20), durable=False, tuning=velocpy.Tuning(flush="eager")
        ) as store:
            history = store.history("disk")
            began = time.perf_counter()
            for i in range(n):
                source[:8] = np.frombuffer(i.to_bytes(8, "little"), np.uint8)
                history.checkpoint(i, u=source)
            history.wait("disk")
            took["velocpy write"] = time.perf_counter() - began
            took["velocpy read"] = _read(history, n, source)
            direct = store.stats()["tiers"]["disk"]["direct_io"]
        if number > 0:
            for name, value in took.items():
                seconds[name].append(value)
    rates = {name: total / median(values) / 1e9 for name, values in seconds.items()}
    report.rows.append(
        {f"{name} GB/s": rate for name, rate in rates.items()} | {"O_DIRECT": direct, "seconds": [seconds]}
    )
    report.rows += best.rows()
    for way in ceiling.DIRECTIONS:
        # The fastest of the sweep, of the rounds, and of velocpy's own.
        most = max(best.best(way).rate, *(total / s for s in seconds[f"disk {way}"] + seconds[f"velocpy {way}"]))
        ratio = median([total / s for s in seconds[f"velocpy {way}"]]) / most
        report.measure({f"ceiling of {way}s GB/s": round(most / 1e9, 3)})
        report.bar(f"sustained {way} of the disk's best", ratio, BAR, at_least=True)
    report.notes.append(
        "The disk's best is the fastest of all in this run: any depth and block size of the sweep, the best of these "
        "again in each round, or velocpy itself. velocpy's own rate is the median of its rounds."
    )
    return report


def _read(history: velocpy.History, n: int, source: np.ndarray) -> float:
    """Seconds to bring everything back, in the order of writing; all but the last few come from disk."""
    history.hint(range(n))
    began = time.perf_counter()
    for i in range(n):
        with history.restore(i) as state:
            head = state["u"][:8]
            assert int.from_bytes(head.tobytes(), "little") == i, "another checkpoint came back"
            assert state["u"][-1] == source[-1]
    return time.perf_counter() - began
