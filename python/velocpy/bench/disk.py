"""How close the disk tier comes to the disk."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import velocpy

from .rawdisk import RawDisk
from .report import Report
from .timing import median

BAR = 0.90


def run(folder: Path, total: int = 4 << 30, size: int = 64 << 20, rounds: int = 5) -> Report:
    """Writes a history through a small host cache and reads it back, beside raw O_DIRECT on the same disk."""
    n = total // size
    report = Report(
        "disk",
        {"rounds": rounds, "history_mib": total >> 20, "checkpoint_mib": size >> 20, "host_mib": (8 * size) >> 20},
    )
    source = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    seconds: dict[str, list[float]] = {"raw write": [], "velocpy write": [], "raw read": [], "velocpy read": []}
    for number in range(rounds + 1):
        took: dict[str, float] = {}
        raw = RawDisk(folder, total)
        took["raw write"] = raw.write()
        took["raw read"] = raw.read()
        raw.close()
        with velocpy.open(folder, host=8 * size, disk=total + (1 << 20), flush="eager", durable=False) as store:
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
    for way in ("write", "read"):
        ratio = median([a / b for a, b in zip(seconds[f"raw {way}"], seconds[f"velocpy {way}"], strict=True)])
        report.bar(f"sustained {way} of raw O_DIRECT", ratio, BAR, at_least=True)
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
