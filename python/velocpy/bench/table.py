"""The table of ``velocpy bench``: the fastest plain copy, velocpy, and the ratio of their rates."""

from __future__ import annotations

from typing import Any

from .timing import median


def compared(what: str, size: int, plain: dict[str, list[float]], ours: list[float]) -> dict[str, Any]:
    """One row: `size` bytes in so many seconds, by each of the plain ways and by velocpy; medians count.

    >>> row = compared("capture", 10**9, {"memcpy": [0.5, 0.5], "slow": [1.0, 1.0]}, [0.25, 0.25])
    >>> row["plain copy"], row["plain GB/s"], row["velocpy GB/s"], row["ratio"]
    ('memcpy', 2.0, 4.0, 2.0)
    """
    best = min(plain, key=lambda name: median(plain[name]))
    least, took = median(plain[best]), median(ours)
    return {
        "what": what,
        "plain copy": best,
        "plain GB/s": size / least / 1e9,
        "velocpy GB/s": size / took / 1e9,
        "ratio": least / took,
        "seconds": [{"velocpy": ours, **plain}],
    }
