"""What a call costs, and a record weighs, when a store holds a thousand and a million checkpoints."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

import numpy as np

import velocpy
from velocpy.bench.report import Report
from velocpy.bench.timing import median

SAMPLE = 2000
DICT = "a dict of copies"


def run(counts: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000), rounds: int = 9) -> Report:
    """Fills a store and times checkpoint, lease, restore into and drop among what is there, backwards and at random.

    The cycle is all four of them, one after the other.
    """
    report = Report("scale", {"rounds": rounds, "calls_per_round": SAMPLE, "region_bytes": 64})
    u = np.arange(8.0)
    copies: dict[int, np.ndarray] = {}
    with velocpy.open(host=2 * 64 * max(counts)) as store:
        history = store.history("scale")
        _touch(history, u)
        before = _resident() - _host_resident(store)
        filled = 0
        for count in counts:
            for i in range(filled, count):
                history.checkpoint(i, u=u)
            filled = count
            gc.collect()
            weight = (_resident() - _host_resident(store) - before) / count
            for order, keys in _orders(count).items():
                row = {"checkpoints": count, "order": order, "bytes per record": weight}
                costs = _calls(history, keys, u, rounds)
                report.rows.append(row | costs | {"cycle µs": sum(costs.values())})
        for count in counts:  # apart, for what they weigh
            for i in range(len(copies), count):
                copies[i] = u.copy()
            for order, keys in _orders(count).items():
                row = {"checkpoints": count, "order": f"{order}, {DICT}"}
                costs = _calls_of_dict(copies, keys, u, rounds)
                report.rows.append(row | costs | {"cycle µs": sum(costs.values())})
    for order in ("backwards", "random"):
        first, *_, last = (row for row in report.rows if row["order"] == order)
        for name in ("checkpoint µs", "lease µs", "into µs", "drop µs", "cycle µs"):
            what = f"{order}, {name[:-3]}: cost among {last['checkpoints']} by cost among {first['checkpoints']}"
            report.bar(what, last[name] / first[name], 1.2, at_least=False)
    weight = next(row["bytes per record"] for row in report.rows if row["checkpoints"] == max(counts))
    report.bar(f"bytes per record among {max(counts)}", weight, 1024, at_least=False)
    report.notes += [
        "Few checkpoints leave the process's own growth (garbage collector, pools) in the bytes per record.",
        f"{DICT!r}: the same by hand, a Python dict of NumPy copies. What it costs more among many is the machine's: "
        "what lies anywhere in memory is in no cache.",
        *_growth(report),
    ]
    return report


def _growth(report: Report) -> list[str]:
    """What the dict's cycles cost more among many."""
    notes = []
    for order in ("backwards", "random"):
        first, *_, last = (row["cycle µs"] for row in report.rows if row["order"] == f"{order}, {DICT}")
        notes.append(f"{order}: a cycle of {DICT} costs {last / first:.2f} times as much among the most as the fewest.")
    return notes


def _orders(count: int) -> dict[str, list[int]]:
    sample = min(SAMPLE, count)
    return {
        "backwards": list(range(count - 1, count - 1 - sample, -1)),
        "random": np.random.default_rng(count).choice(count, sample, replace=False).tolist(),
    }


def _touch(history: velocpy.History, u: np.ndarray) -> None:
    """Brings code and pools to where they stay."""
    for i in range(SAMPLE):
        history.checkpoint(i, u=u)
    history.clear()


def _calls(history: velocpy.History, keys: list[int], u: np.ndarray, rounds: int) -> dict[str, float]:
    back = np.zeros_like(u)
    times: dict[str, list[float]] = {"checkpoint µs": [], "lease µs": [], "into µs": [], "drop µs": []}
    for _ in range(rounds):
        times["lease µs"].append(_each(keys, lambda k: history.restore(k).release()))
        times["into µs"].append(_each(keys, lambda k: history.restore(k, into={"u": back})))
        assert np.array_equal(back, u)
        times["drop µs"].append(_each(keys, history.drop))
        times["checkpoint µs"].append(_each(keys, lambda k: history.checkpoint(k, u=u)))
    return {name: median(values) for name, values in times.items()}


def _calls_of_dict(copies: dict[int, np.ndarray], keys: list[int], u: np.ndarray, rounds: int) -> dict[str, float]:
    back = np.zeros_like(u)
    times: dict[str, list[float]] = {"checkpoint µs": [], "lease µs": [], "into µs": [], "drop µs": []}
    for _ in range(rounds):
        times["lease µs"].append(_each(keys, lambda k: copies[k].view()))
        times["into µs"].append(_each(keys, lambda k: np.copyto(back, copies[k])))
        assert np.array_equal(back, u)
        times["drop µs"].append(_each(keys, copies.pop))
        times["checkpoint µs"].append(_each(keys, lambda k: copies.__setitem__(k, u.copy())))
    return {name: median(values) for name, values in times.items()}


def _each(keys, call) -> float:  # type: ignore[no-untyped-def]
    began = time.perf_counter()
    for k in keys:
        call(k)
    return (time.perf_counter() - began) / len(keys) * 1e6


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _host_resident(store: velocpy.Store) -> int:
    """Bytes of the host cache that are present: the largest anonymous mapping of the budget's size."""
    capacity = store.stats()["tiers"]["host"]["capacity"]
    resident, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split()[0]
        if "-" in head and not head.endswith(":"):
            low, high = (int(x, 16) for x in head.split("-"))
            inside = capacity <= high - low <= capacity + (4 << 20)
        elif inside and head == "Rss:":
            resident = max(resident, int(line.split()[1]) << 10)
    return resident
