"""The adjoint's pattern: a history eight times the host budget, read backwards, with work between the calls."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import velocpy
from benchmarks.disk import ceiling
from velocpy.bench.report import Report
from velocpy.choices import Hints

from . import rhythm

HISTORY_BY_HOST = 8
HINTS: tuple[Hints, ...] = ("all", "none")
SLACK = 1.5  # the compute interval, in units of the time in which the disk takes one checkpoint


def run(folder: Path, count: int = 256, size: int = 16 << 20, rounds: int = 3, interval: float = 0.0) -> Report:
    """Reverse sweeps with and without hints; what was found, and how long the calls blocked, beside the lower bound.

    Interval: seconds of computation; 0: in proportion to the time that the disk takes, as measured in this run.

    The bound's copies are as fast as the fastest way to copy that was seen in the same rhythm, the sweep's own
    included, without a disk at work beside it: a policy could let transfers rest while it copies.
    """
    host = count * size // HISTORY_BY_HOST
    rates = ceiling.sweep(folder, min(count * size // 4, ceiling.POINT)).rates()
    interval = interval or SLACK * size / min(rates["disk write"], rates["disk read"])
    report = Report(
        "sweep",
        {
            "rounds": rounds,
            "checkpoints": count,
            "checkpoint_mib": size >> 20,
            "host_mib": host >> 20,
        },
    )
    report.measure({"interval_ms": round(interval * 1e3, 3)})
    report.measure({f"{name} GB/s": round(rate / 1e9, 3) for name, rate in rates.items()})
    for name, rest in rhythm.intervals().items():
        ways = rhythm.copy_rates(size, host, partial(rest, interval))
        report.measure({f"{way}, {name}, GB/s": round(rate / 1e9, 2) for way, rate in ways.items()})
        for hints in HINTS:
            runs = [_sweep(folder, count, size, host, partial(rest, interval), hints) for _ in range(rounds)]
            _judge(report, name, hints, runs, ways, rates, (count, size, host, interval))
    report.notes.append(
        "Copies go into and out of as much memory as the host tier has, with the interval before each and no disk at "
        "work: the bound takes the fastest of them, or the sweep's own where that was faster. A bound above what was "
        "measured would be none: so says the last bar of each row."
    )
    return report


def _judge(
    report: Report,
    name: str,
    hints: Hints,
    runs: list[dict[str, float]],
    ways: dict[str, float],
    rates: dict[str, float],
    shot: tuple[int, int, int, float],
) -> None:
    """Adds a row and its bars."""
    count, size, host, interval = shot
    own = max(2 * count * size / r["copying s"] for r in runs)
    bound = velocpy.simulate(
        [size] * count,
        order=list(reversed(range(count))),
        interval=interval,
        tiers=[(host, rates["disk write"], rates["disk read"]), (count * size * 2, 0, 0)],
        copy_rate=max(own, *ways.values()),
        hints=hints,
    )["lower_bound"]
    compute = 2 * count * interval
    blocked = statistics.median(r["blocked s"] for r in runs)
    least = min(r["blocked s"] for r in runs)
    copying = statistics.median(r["copying s"] for r in runs)
    row: dict[str, Any] = {
        "interval": name,
        "hints": hints,
        "found in host": statistics.median(r["found"] for r in runs),
        "mean prefetch distance": statistics.median(r["distance"] for r in runs),
        "blocked s": blocked,
        "of it copying s": copying,
        "copies GB/s": 2 * count * size / copying / 1e9,
        "the bound's copies GB/s": max(own, *ways.values()) / 1e9,
        "lower bound s": bound,
        "compute s": compute,
        "runs": [runs],
    }
    report.rows.append(row)
    what, found = f"{name}, hints {hints}", row["found in host"]
    report.bar(f"{what}: restores that find their checkpoint in the host cache", found, 0.95, at_least=True)
    report.bar(f"{what}: blocked s", blocked, 1.2 * bound + 0.01 * compute, at_least=False)
    report.bar(f"{what}: the bound, of the least blocked", bound / least, 1, at_least=False)


def _sweep(folder: Path, count: int, size: int, host: int, rest: Callable[[], None], hints: Hints) -> dict[str, float]:
    field = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    back = np.empty_like(field)
    blocked = 0.0
    with velocpy.open(folder, host=host, disk=count * size * 2, durable=False) as store:
        history = store.history("sweep")
        if hints == "all":
            history.hint(reversed(range(count)), last=True)
        for i in range(count):
            rest()
            _stamp(field, i)
            began = time.perf_counter()
            history.checkpoint(i, u=field)
            blocked += time.perf_counter() - began
        for i in reversed(range(count)):
            rest()
            began = time.perf_counter()
            history.restore(i, into={"u": back}, last=True)
            blocked += time.perf_counter() - began
            _stamp(field, i)
            assert np.array_equal(back, field), f"checkpoint {i} came back different"
        stats = store.stats()
    waits = stats["waits_ns"]
    return {
        "blocked s": blocked,
        "copying s": (waits["capture_copy"] + waits["restore_copy"]) / 1e9,
        "waiting for room s": waits["capture"] / 1e9,
        "waiting for bytes s": waits["restore"] / 1e9,
        "found": stats["restores"]["hits"] / stats["restores"]["count"],
        "distance": stats["restores"]["prefetch_distance_mean"],
    }


def _stamp(field: np.ndarray, i: int) -> None:
    """Makes the field of step i differ from all others, at both ends and between."""
    field.view(np.uint64)[:: len(field) // 64] = i * 0x9E3779B97F4A7C15 % 2**64
