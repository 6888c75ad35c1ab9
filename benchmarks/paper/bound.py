"""What no engine can beat: the simulator's lower bound, at the rates that were measured in the same run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import velocpy
from benchmarks.engines.workload import Workload

FREE = 1e18  # bytes/s of a copy that is not made


def tiers_of(workload: Workload, rates: Mapping[str, float]) -> list[tuple[int, float, float]]:
    """The caches and their links, as the simulator takes them."""
    tiers = [(workload.device, rates["down"], rates["up"])]
    if workload.disk:
        tiers.append((workload.host, rates["disk write"], rates["disk read"]))
        tiers.append((workload.disk, 0.0, 0.0))
    else:
        tiers.append((workload.host, 0.0, 0.0))
    return tiers


def lower_bound(
    workload: Workload, rates: Mapping[str, float], interval: float | None = None, leases: bool = True
) -> tuple[float, float]:
    """Seconds, writing and reading, that the application is blocked at least.

    Captures copy on the device; restores do not when they are leases. Interval: the one that was measured.
    """
    common: dict[str, Any] = {
        "interval": workload.interval if interval is None else interval,
        "tiers": tiers_of(workload, rates),
        "wait_flushed": False,
    }

    def blocked(keys: tuple[int, ...], copy_rate: float) -> float:
        return float(velocpy.simulate(workload.sizes, keys, copy_rate=copy_rate, **common)["lower_bound"])

    # The bound is a sum of the two sweeps', so each can have copies of its own cost.
    writing = blocked((), rates["device"])
    restoring = FREE if leases else rates["device"]
    reading = blocked(workload.keys, restoring) - blocked((), restoring)
    return writing, reading
