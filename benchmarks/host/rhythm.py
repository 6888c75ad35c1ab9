"""The ceiling of copies in a sweep: the best way to copy when something else happened between two copies."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable

import numpy as np

import velocpy
from velocpy.bench import memcpy

COPIES = 24  # of each way, in each direction
PIECE = 1 << 18  # elements that a computing interval works on between two looks at the clock

Rest = Callable[[], None]


def intervals() -> dict[str, Callable[[float], None]]:
    """What an application may do between two calls, by name: sleep, or compute with arrays of its own."""
    return {"sleeping": time.sleep, "computing": Computing().run}


class Computing:
    """A core busy with arithmetic on three arrays that together are larger than a core's caches."""

    def __init__(self, elements: int = 4 << 20) -> None:
        self._a, self._b, self._c = (np.full(elements, x, np.float32) for x in (0.5, 1.5, 0.0))
        self._at = 0

    def run(self, seconds: float) -> None:
        """Computes for so long, and at most one piece longer."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            piece = slice(self._at, self._at + PIECE)
            np.multiply(self._a[piece], self._b[piece], out=self._c[piece])
            self._at = (self._at + PIECE) % len(self._a)


def copy_rates(size: int, host: int, rest: Rest) -> dict[str, float]:
    """Bytes/s of each way to copy, with ``rest`` before each copy: the better of both directions, medians.

    The memory at the other end goes round, as much of it as the host tier has. Everything was touched before.
    """
    field, ring = np.ones(size, np.uint8), np.ones(host, np.uint8)
    with memcpy.contenders() as copies:
        ways = copies | {"memmove": _memmove}
        rates = {name: max(_rates(way, field, ring, rest)) for name, way in ways.items()}
    del ring
    return rates | {"velocpy without a disk": max(_own_rates(field, host, rest))}


def _memmove(to: np.ndarray, source: np.ndarray) -> None:
    ctypes.memmove(to.ctypes.data, source.ctypes.data, source.nbytes)


def _rates(way: memcpy.Copy, field: np.ndarray, ring: np.ndarray, rest: Rest) -> list[float]:
    size = len(field)
    places = [ring[at : at + size] for at in range(0, len(ring) - size + 1, size)]
    seconds: dict[str, list[float]] = {"in": [], "out": []}
    for i in range(2 * COPIES):
        rest()
        place = places[i % len(places)]
        field[:: max(1, size // 64)] = i % 256
        direction, to, source = ("out", field, place) if i % 2 else ("in", place, field)
        began = time.perf_counter()
        way(to, source)
        seconds[direction].append(time.perf_counter() - began)
    return [size / statistics.median(s) for s in seconds.values()]


def _own_rates(field: np.ndarray, host: int, rest: Rest) -> list[float]:
    """What the store's own copies do, calls around them left out, when no disk is at work and nothing is verified."""
    size = len(field)
    keys = max(1, host // size - 1)  # a key that is written again needs room beside its old version
    seconds: dict[str, list[float]] = {"capture_copy": [], "restore_copy": []}
    with velocpy.open(host=host, verify="off", tuning=velocpy.Tuning(checksum=False)) as store:
        history = store.history("rhythm")
        for i in range(keys):
            history.checkpoint(i, u=field)
        for i in range(COPIES):
            for name in seconds:
                rest()
                before = _waited(store, name)
                if name == "capture_copy":
                    history.checkpoint(i % keys, u=field)
                else:
                    history.restore((i + keys // 2) % keys, into={"u": field})
                seconds[name].append((_waited(store, name) - before) / 1e9)
    return [size / statistics.median(s) for s in seconds.values()]


def _waited(store: velocpy.Store, name: str) -> int:
    """Nanoseconds that calls took so far for a reason."""
    waits: dict[str, int] = {**store.stats()["waits_ns"]}  # type: ignore[dict-item]
    return waits[name]
