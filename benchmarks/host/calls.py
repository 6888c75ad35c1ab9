"""What one call costs: tiny checkpoints, one by one and many in one call, leases that copy nothing."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import numpy as np

import velocpy
from velocpy.bench.report import Report
from velocpy.bench.timing import median

CALLS = 2000
MANY = 1000


def small(rounds: int = 15, many: bool = True) -> Report:
    """checkpoint() of ten arrays of 1 KiB, beside ten numpy copies into a dictionary; a thousand of 1 KiB at once.

    Without `many` it also runs on a core that cannot capture many checkpoints in one call.
    """
    report = Report("small", {"rounds": rounds, "calls_per_round": CALLS})
    arrays = {f"field{i}": np.random.default_rng(i).random(128) for i in range(10)}
    with velocpy.open(host="512MiB") as store:
        history = store.history("small")
        kept: dict[int, dict[str, object]] = {}
        ways: dict[str, Callable[[int], object]] = {
            "checkpoint()": lambda i: history.checkpoint(i, arrays),
            "checkpoint(), rewriting one key": lambda _: history.checkpoint(-1, arrays),
            "ten numpy copies": lambda i: kept.__setitem__(i, {name: a.copy() for name, a in arrays.items()}),
        }
        for name, way in ways.items():
            report.rows.append({"what": name} | _quantiles(way, rounds))
        history.restore(7, into=(back := {name: np.zeros_like(a) for name, a in arrays.items()}))
        assert all(np.array_equal(back[name], a) for name, a in arrays.items())
    if many:
        report.rows += _many(rounds)
    report.bar("checkpoint() of ten 1-KiB regions, median, µs", report.rows[0]["median µs"], 30, at_least=False)
    return report


def _many(rounds: int) -> list[dict[str, object]]:
    """A thousand checkpoints of one array of 1 KiB, in a loop and in one call, round by round in turns."""
    arrays = np.random.default_rng(1).random((MANY, 128))
    took: dict[str, list[float]] = {"in a loop": [], "in one call": []}
    with velocpy.open(host="64MiB") as store:
        loop, many = store.history("loop"), store.history("many")

        def one_by_one() -> None:
            for key, array in enumerate(arrays):
                loop.checkpoint(key, u=array)

        def at_once() -> None:
            many.checkpoint_many((key, {"u": array}) for key, array in enumerate(arrays))

        for number in range(rounds + 1):
            loop.clear()
            many.clear()
            for name, way in (("in a loop", one_by_one), ("in one call", at_once)):
                began = time.perf_counter()
                way()
                if number > 0:
                    took[name].append((time.perf_counter() - began) / MANY)
        for history in (loop, many):
            for key, array in enumerate(arrays):
                with history.restore(key) as state:
                    assert np.array_equal(state["u"], array)
    plain = median(took["in a loop"])
    return [
        {"what": f"{MANY} of 1 KiB, {name}", "median µs": median(times) * 1e6, "of a loop": median(times) / plain}
        for name, times in took.items()
    ]


def lease(sizes: tuple[int, ...] = (4 << 10, 1 << 20, 64 << 20), rounds: int = 15) -> Report:
    """restore() of what lies in the host cache, and the first look at its array."""
    report = Report("lease", {"rounds": rounds, "calls_per_round": CALLS})
    with velocpy.open(host="1GiB") as store:
        history = store.history("lease")
        for size in sizes:
            array = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
            history.checkpoint(size, u=array)
            began = time.perf_counter()
            with history.restore(size) as state:
                first = time.perf_counter() - began
                address = state["u"].ctypes.data
                assert np.array_equal(state["u"], array)
            with history.restore(size) as state:
                assert state["u"].ctypes.data == address, (
                    "two leases of one checkpoint show two places: something copied"
                )
            row = {"bytes": size, "first lease, verified, µs": first * 1e6}
            row |= _quantiles(lambda _, size=size: history.restore(size).release(), rounds)  # type: ignore[misc]
            looked = _quantiles(lambda _, size=size: history.restore(size)["u"], rounds)  # type: ignore[misc]
            row["with its array, median µs"] = looked["median µs"]
            report.rows.append(row)
            report.bar(f"lease of {size >> 10} KiB, median, µs", row["median µs"], 20, at_least=False)
    report.notes.append(
        "The bytes are verified when they are lent for the first time since they came to the tier; "
        "later leases trust them."
    )
    return report


def _quantiles(call: Callable[[int], object], rounds: int) -> dict[str, float]:
    """Time per call: the median over the rounds, and the 99th percentile of single calls."""
    means, singles = [], []
    at = 0
    for number in range(rounds + 1):
        laps = [time.perf_counter()]
        for _ in range(CALLS):
            call(at)
            at += 1
            laps.append(time.perf_counter())
        if number > 0:
            means.append((laps[-1] - laps[0]) / CALLS)
            singles += [b - a for a, b in itertools.pairwise(laps)]
    singles.sort()
    return {
        "median µs": median(means) * 1e6,
        "p99 µs": singles[len(singles) * 99 // 100] * 1e6,
    }
