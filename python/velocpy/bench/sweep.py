"""The adjoint's pattern: a history eight times the host budget, read backwards, with work between the calls."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

import velocpy

from . import memcpy
from .rawdisk import RawDisk
from .report import Report

HISTORY_BY_HOST = 8
SLACK = 1.5  # the compute interval, in units of the time in which the disk takes one checkpoint


def run(folder: Path, count: int = 256, size: int = 16 << 20, rounds: int = 3) -> Report:
    """Reverse sweeps with and without hints; what was found, and how long the calls blocked, beside the lower bound."""
    host = count * size // HISTORY_BY_HOST
    rates = _disk_rates(folder, count * size // 4)
    interval = SLACK * size / min(rates["disk write"], rates["disk read"])
    rates["copy after a pause"] = _copy_rate(size, host, interval)
    rates["copy back to back"] = _copy_rate(size, host, 0)
    report = Report(
        "sweep",
        {
            "rounds": rounds,
            "checkpoints": count,
            "checkpoint_mib": size >> 20,
            "host_mib": host >> 20,
            "interval_ms": round(interval * 1e3, 3),
        }
        | {f"{name} GB/s": round(rate / 1e9, 3) for name, rate in rates.items()},
    )
    for hints in ("all", "none"):
        runs = [_sweep(folder, count, size, host, interval, hints) for _ in range(rounds)]
        bounds = {
            pace: velocpy.simulate(
                [size] * count,
                order=list(reversed(range(count))),
                interval=interval,
                tiers=[(host, rates["disk write"], rates["disk read"]), (count * size * 2, 0, 0)],
                copy_rate=rates[f"copy {pace}"],
                hints=hints,
            )
            for pace in ("after a pause", "back to back")
        }
        compute = 2 * count * interval
        blocked = statistics.median(r["blocked s"] for r in runs)
        row: dict[str, Any] = {
            "hints": hints,
            "found in host": statistics.median(r["found"] for r in runs),
            "mean prefetch distance": statistics.median(r["distance"] for r in runs),
            "blocked s": blocked,
            "of it copying s": statistics.median(r["copying s"] for r in runs),
            "lower bound s, copies after a pause": bounds["after a pause"]["lower_bound"],
            "lower bound s, copies back to back": bounds["back to back"]["lower_bound"],
            "compute s": compute,
            "runs": [runs],
        }
        report.rows.append(row)
        report.bar(
            f"hints {hints}: restores that find their checkpoint in the host cache",
            row["found in host"],
            0.95,
            at_least=True,
        )
        for pace, bound in bounds.items():
            most = 1.2 * bound["lower_bound"] + 0.01 * compute
            report.bar(f"hints {hints}: blocked s, the bound's copies {pace}", blocked, most, at_least=False)
    return report


def _disk_rates(folder: Path, total: int) -> dict[str, float]:
    raw = RawDisk(folder, total)
    raw.write()
    writes = [total / raw.write() for _ in range(3)]
    reads = [total / raw.read() for _ in range(3)]
    raw.close()
    return {"disk write": statistics.median(writes), "disk read": statistics.median(reads)}


def _copy_rate(size: int, host: int, interval: float) -> float:
    """The rate of the best memcpy with a pause before each copy, round as much memory as the host has.

    Without a pause caches and clocks are warm: faster than any copy of the sweep can be, and the stricter ceiling.
    """
    source, ring = np.ones(size, np.uint8), np.ones(host, np.uint8)
    best = 0.0
    for way in memcpy.contenders().values():
        rates = []
        for i in range(24):
            time.sleep(interval)
            source[:: len(source) // 64] = i
            at = i * size % (host - size + 1)
            began = time.perf_counter()
            way(ring[at : at + size], source)
            rates.append(size / (time.perf_counter() - began))
        best = max(best, statistics.median(rates))
    return best


def _sweep(folder: Path, count: int, size: int, host: int, interval: float, hints: str) -> dict[str, float]:
    field = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    back = np.empty_like(field)
    blocked = 0.0
    with velocpy.open(folder, host=host, disk=count * size * 2) as store:
        history = store.history("sweep")
        if hints == "all":
            history.hint(reversed(range(count)), last=True)
        for i in range(count):
            time.sleep(interval)
            _stamp(field, i)
            began = time.perf_counter()
            history.checkpoint(i, u=field)
            blocked += time.perf_counter() - began
        for i in reversed(range(count)):
            time.sleep(interval)
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
