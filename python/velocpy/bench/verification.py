"""What it costs the application that restores are verified."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import velocpy

from .report import Report
from .stamped import Bytes, Stamped
from .timing import median

BAR = 5.0
CHOICES = ("off", "first")
Restore = Callable[[velocpy.History, int, Bytes], object]


def _into(history: velocpy.History, key: int, back: Bytes) -> None:
    history.restore(key, into={"u": back})


def _lease(history: velocpy.History, key: int, back: Bytes) -> None:
    history.restore(key).release()


def _read(history: velocpy.History, key: int, back: Bytes) -> None:
    with history.restore(key) as state:
        np.add.reduce(state["u"].view(np.uint64))


IN_NO_ORDER = "lease, read once, in no order"
RESTORES: dict[str, Restore] = {
    "into an array": _into,
    "lease": _lease,
    "lease, read once": _read,
    IN_NO_ORDER: _read,
}
HELD = ("into an array", "lease, read once")  # to the bar


def run(sizes: tuple[int, ...] = (64 << 10, 16 << 20, 128 << 20), total: int = 1 << 30, rounds: int = 9) -> Report:
    """Restores every checkpoint of a stream once from the host tier: with ``verify="first"`` and without."""
    report = Report("verification", {"rounds": rounds, "history_mib": total >> 20})
    for size in sizes:
        for name, restore in RESTORES.items():
            keys = list(range(total // size))
            planned = name != IN_NO_ORDER
            if not planned:
                random.Random(1).shuffle(keys)
            seconds = _by_turns(restore, size, keys, planned, rounds)
            ratios = [a / b for a, b in zip(seconds["first"], seconds["off"], strict=True)]
            added = [a - b for a, b in zip(seconds["first"], seconds["off"], strict=True)]
            row: dict[str, Any] = {"KiB": size >> 10, "restore": name}
            row |= {f'verify="{verify}" µs': median(all_) * 1e6 for verify, all_ in seconds.items()}
            row |= {"more, %": 100 * (median(ratios) - 1), "more, ms per GB": median(added) / size * 1e12}
            report.rows.append(row | {"seconds": [seconds]})
            if name in HELD:
                report.bar(f"{size >> 10} KiB, {name}: cost of verification, %", row["more, %"], BAR, at_least=False)
    report.notes.append(
        'Each checkpoint is restored once after its capture, so that verify="first" compares all of them; a second '
        "restore would cost nothing more. Times are those of one restore; two stores take turns, a whole pass each, so "
        "that what one does in the background does not slow the other. A bare lease copies nothing: verified, it reads "
        "the bytes, which the application is about to do; 'read once' adds that reading (the sum of its 64-bit words). "
        "There is a plan, and leases of 1 MiB and more are compared ahead; 'in no order' there is none, nothing to "
        "guess, and the bytes are read twice."
    )
    return report


def _by_turns(restore: Restore, size: int, keys: list[int], planned: bool, rounds: int) -> dict[str, list[float]]:
    """Mean seconds of a restore in each round, after one that does not count."""
    stamped, back = Stamped(size), np.zeros(size, np.uint8)
    host = (len(keys) + 1) * (size + 4096)
    seconds: dict[str, list[float]] = {verify: [] for verify in CHOICES}
    with velocpy.open(host=host, verify="off") as off, velocpy.open(host=host, verify="first") as first:
        turns = [(verify, store.history("h")) for verify, store in zip(CHOICES, (off, first), strict=True)]
        for number in range(rounds + 1):
            for key in range(len(keys)):
                for _, history in turns:
                    history.checkpoint(key, u=stamped.of(key))
            for verify, history in turns[:: 1 if number % 2 else -1]:
                if planned:
                    history.hint(keys)
                began = time.perf_counter()
                for key in keys:
                    restore(history, key, back)
                if number > 0:
                    seconds[verify].append((time.perf_counter() - began) / len(keys))
        for _, history in turns:
            history.restore(keys[-1], into={"u": back})
            assert stamped.same(keys[-1], back), "another checkpoint came back"
    return seconds
