"""Host memory: captures and restores beside plain copies of the same bytes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import velocpy
from velocpy.budget import available_memory

from . import memcpy
from .report import Report
from .stamped import Bytes, Stamped
from .table import compared
from .timing import Contender, by_turns, timed

SIZE = 64 << 20
#: Copies go round through so much memory, so that no processor cache holds what they read or write next.
RING = 768 << 20


def run(size: int = SIZE, rounds: int = 7, ring: int = RING, seconds: float = 20) -> Report:
    """Checkpoints of `size` bytes: checkpoint() and restore(into=) beside the fastest plain copy."""
    slots = max(min(ring, available_memory() // 8) // size, 3)
    report = Report("memory", {"checkpoint": f"{size >> 10} KiB", "memory": f"{slots * size >> 10} KiB"})
    stamped, back = Stamped(size), np.zeros(size, np.uint8)
    source = stamped.of(0).copy()
    plain = np.ones(slots * size, np.uint8)
    into: dict[str, Contender] = {}
    out: dict[str, Contender] = {}
    with memcpy.contenders() as contenders, velocpy.open(host=(slots + 1) * (size + (64 << 10))) as store:
        history = store.history("memory")
        for name, copy in contenders.items():
            into[f"{name}, in"] = _in_turn(slots, lambda at, copy=copy: copy(_slot(plain, at, size), source))  # type: ignore[misc]
            out[f"{name}, out"] = _in_turn(slots, lambda at, copy=copy: copy(back, _slot(plain, at, size)))  # type: ignore[misc]
        ways = {
            **into,
            "capture": _in_turn(slots, lambda at: history.checkpoint(at, u=source)),
            **out,
            "restore": _in_turn(slots, lambda at: history.restore(at, into={"u": back})),
        }
        for key in range(slots):
            history.checkpoint(key, u=source)
        took = by_turns(ways, rounds, seconds=seconds)
        different = 0
        for key in range(slots):
            history.checkpoint(key, u=stamped.of(key))
        for key in range(slots):
            history.restore(key, into={"u": back})
            different += not stamped.same(key, back)
    report.settings["rounds"] = len(took["capture"])
    report.rows += [
        compared("capture", size, _named(into, took), took["capture"]),
        compared("restore", size, _named(out, took), took["restore"]),
    ]
    report.never("checkpoints that came back different", different)
    return report


def _named(ways: dict[str, Contender], took: dict[str, list[float]]) -> dict[str, list[float]]:
    """The seconds of these ways, by the names of the copies."""
    return {name.rpartition(",")[0]: took[name] for name in ways}


def _slot(ring: Bytes, at: int, size: int) -> Bytes:
    return ring[at * size : (at + 1) * size]


def _in_turn(slots: int, copy: Callable[[int], object]) -> Contender:
    """One copy a run, of one slot after the other."""
    at = -1

    def work() -> None:
        nonlocal at
        at = (at + 1) % slots
        copy(at)

    return timed(work)
