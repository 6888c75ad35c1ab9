"""The evaluation of Maurya et al., HiPC'22: what the first checkpoints of a process cost, open included."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from benchmarks.engines.card import HostCard
from benchmarks.engines.contenders import has_gpu
from benchmarks.engines.workload import GIB, MIB
from velocpy.bench.report import Report
from velocpy.budget import available_memory

from . import team
from .cold import Cold, Start, Touched, begin, physical_memory, pin_rate, register_rate, touch_threads
from .shot import LEAST

STRATEGIES = ("velocpy", "velocpy pipeline", "velocpy concurrent", "velocpy sequential", "velocpy direct")
EVERYBODY = (*STRATEGIES, "velocpy large device", "direct pinning", "ring", "keep", "unified memory")
INTERVALS = (5e-3, 10e-3, 20e-3, 50e-3, 100e-3)
BEYOND_KEEP = 0.1  # seconds blocked beyond those of an engine that keeps everything in device memory
FRESH = 1.15  # blocked time by its bound, where no page was ever used
PIN_RATE, LEAST_THREADS = 35.0, 8  # GB/s of memory touched and registered, with so many threads and more
PROBE, FRESH_PROBE, SPARE = 33 * GIB, 8 * GIB, 8 * GIB
TIMES = {1: 50.0, 2: 30.0, 4: 30.0}  # less blocked than direct pinning, by processes

GROUPS: dict[str, Callable[[], list[Start]]] = {
    "tiny": lambda: [
        Start("tiny", "uniform", 1e-3, 16, MIB, 8 * MIB, processes, ("velocpy", "direct pinning", "keep"), 256 << 10)
        for processes in (1, 2)
    ],
    "quick": lambda: [Start("quick", "uniform", 10e-3)],
    "cores": lambda: [Start("cores", "uniform", 10e-3, 128, host=17 * GIB, contenders=("velocpy",))],
    "bars": lambda: [
        Start("bar", "uniform", 10e-3, contenders=("velocpy", "direct pinning", "keep"), processes=processes)
        for processes in (1, 4)
    ],
    "fresh": lambda: [Start("fresh", "uniform", 10e-3, contenders=("velocpy",), fresh=True)],
    "everybody": lambda: [Start("everybody", "uniform", 10e-3, contenders=EVERYBODY)],
    "uniform": lambda: [Start("interval", "uniform", i) for i in INTERVALS],
    "variable": lambda: [Start("interval", "variable", i, host=38 * GIB) for i in INTERVALS],
    "strategies": lambda: [Start("strategies", "uniform", i, contenders=STRATEGIES) for i in INTERVALS],
    "processes": lambda: [Start("processes", "uniform", 20e-3, processes=n) for n in (1, 2, 4)],
}


def chosen(names: str) -> list[Start]:
    """The cells of names with commas between.

    >>> [start.name for start in chosen("quick")]
    ['256 uniform, 10 ms']
    """
    starts: list[Start] = []
    for name in names.split(","):
        if name == "all":
            starts += [
                start
                for group in GROUPS
                if group not in ("tiny", "quick", "cores", "fresh")
                for start in GROUPS[group]()
            ]
        elif name in GROUPS:
            starts += GROUPS[name]()
        else:
            raise ValueError(f"no cells {name!r}; there are {', '.join((*GROUPS, 'all'))}")
    return starts


def run(folder: Path, cells: str | None = None, limit: float = 500, rounds: int = 3, *, touch: bool = True) -> Report:
    """Begins cold with every contender of the cells chosen, in rounds; after limit seconds nothing new begins.

    Without touch, the machine's memory is not touched before, and pinning is not measured alone.
    """
    cells = cells or ("quick" if has_gpu() else "tiny")
    try:
        starts = chosen(cells)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    deadline = time.monotonic() + limit
    memory = physical_memory()
    report = Report("coldstart-" + cells.replace(",", "-"), {"cells": cells, "rounds": rounds})
    starts = [start.fitted(memory) for start in starts]
    if any(start.fresh for start in starts):
        _on_fresh_memory(report, [start for start in starts if start.fresh], folder, deadline)
    used = [start for start in starts if not start.fresh]
    if used:
        _on_used_memory(report, used, folder, deadline, rounds, touch=touch)
    if report.settings.get("card") != HostCard.name:
        add_bars(report)
    report.notes.append(
        "Each contender begins in fresh processes that have made their CUDA context and nothing else. Blocked: wall "
        "time from before open to the last capture, less the computation. Figures are medians over the rounds, and "
        "means over the processes of a round."
    )
    return report


def _on_used_memory(
    report: Report, starts: list[Start], folder: Path, deadline: float, rounds: int, *, touch: bool
) -> None:
    """Nearly all of the machine's memory is touched before: a system gives out pages that it has never used first."""
    if touch and has_gpu():
        for when, amount in (("before", available_memory() - SPARE), ("again", PROBE)):
            with Touched(amount) as touched:
                again = round(touched.rate / 1e9, 2)
                report.measure({f"touched {when} GB/s": again})
        pinned = [pin_rate(PROBE) for _ in range(rounds)]
        report.rows.append(
            {"figure": "pinning", "start": f"{PROBE >> 30} GiB", "who": "velocpy", "rounds": rounds}
            | {"touched and pinned GB/s": statistics.median(pinned), "each": [pinned]}
            | {"touched alone GB/s": again, "pinned alone GB/s": register_rate(PROBE)}
        )
    for start in starts:
        for name in start.contenders:
            found = [_begun(report, start, name, folder, deadline) for _ in range(rounds)]
            if played := [colds for colds in found if colds is not None]:
                report.rows.append(row_of(start, name, played))


def _on_fresh_memory(report: Report, starts: list[Start], folder: Path, deadline: float) -> None:
    """Measures how fast never-used memory is touched, holds what it has touched, and begins on other such memory."""
    for start in starts:
        for name in start.contenders:
            with Touched(FRESH_PROBE) as touched:
                colds = _begun(report, start, name, folder, deadline)
            if colds is not None:
                bound = fresh_bound(start.workload(0).sizes, start.device, start.interval, touched.rate)
                report.rows.append(
                    row_of(start, name, [colds]) | {"touched GB/s": touched.rate / 1e9, "bound s": bound}
                )


def fresh_bound(sizes: tuple[int, ...], device: int, interval: float, rate: float) -> float:
    """Seconds blocked at least: what the device does not hold is flushed to pages that somebody touches first.

    >>> fresh_bound((10,) * 10, 40, 1.0, 5.0)
    3.0
    """
    return max(0.0, (sum(sizes) - device) / rate - interval * (len(sizes) - 1))


def _begun(report: Report, start: Start, name: str, folder: Path, deadline: float) -> list[Cold] | None:
    """One contender of one round; None, with a note, if it did not play."""
    if time.monotonic() > deadline:
        report.remark(f"Not played in every round, no time was left: {start.name}, {name}.")
        return None
    try:
        colds = begin(start, name, folder)
    except team.MemberFailed as failure:
        report.remark(f"Failed: {start.name}, {name}: {failure}")
        return None
    reasons = [cold.left_out for cold in colds if cold.left_out]
    if reasons:
        report.remark(f"Left out: {reasons[0]} ({start.name}).")
        return None
    report.settings["card"] = colds[0].card
    return colds


def row_of(start: Start, name: str, rounds: list[list[Cold]]) -> dict[str, Any]:
    """One contender: medians over the rounds of means over the processes."""

    def figure(of: Callable[[Cold], float]) -> float:
        return statistics.median(statistics.mean(of(cold) for cold in colds) for colds in rounds)

    return {
        "figure": start.figure,
        "start": start.name,
        "who": name,
        "rounds": len(rounds),
        "blocked s": figure(lambda cold: cold.blocked),
        "open ms": figure(lambda cold: cold.opening) * 1e3,
        "first captured ms": figure(lambda cold: cold.first) * 1e3,
        "each": [[[cold.blocked, cold.opening, cold.first, cold.facts] for cold in colds] for colds in rounds],
        "about": [
            {
                "sizes": start.sizes,
                "interval ms": start.interval * 1e3,
                "count": start.count,
                "processes": start.processes,
                "device": start.device,
                "host": start.host,
            }
        ],
    }


def add_bars(report: Report) -> None:
    """The bars that the rows decide."""
    starts: dict[str, dict[str, dict[str, Any]]] = {}
    for row in report.rows:
        if "touched and pinned GB/s" in row:
            if touch_threads() >= LEAST_THREADS:
                what = f"{row['start']}: touched and pinned by {touch_threads()} threads, GB/s"
                report.bar(what, row["touched and pinned GB/s"], PIN_RATE, at_least=True)
            continue
        starts.setdefault(row["start"], {})[row["who"]] = row
    for start, rows in starts.items():
        ours, pinned, keep = rows.get("velocpy"), rows.get("direct pinning"), rows.get("keep")
        if ours is None:
            continue
        processes = ours["about"][0]["processes"]
        if ours.get("bound s"):
            ratio = ours["blocked s"] / max(ours["bound s"], LEAST)
            report.bar(f"{start}: blocked time by the bound of the touch rate", ratio, FRESH, at_least=False)
        if pinned is not None:
            bound = TIMES.get(processes, 30.0)
            times = pinned["blocked s"] / max(ours["blocked s"], LEAST)
            report.bar(f"{start}: direct pinning's blocked time by ours", times, bound, at_least=True)
        if keep is not None and processes == 1:
            more = ours["blocked s"] - keep["blocked s"]
            report.bar(f"{start}: blocked beyond keep, s", more, BEYOND_KEEP, at_least=False)
        report.bar(f"{start}: open beyond the context, ms", ours["open ms"], 20, at_least=False)
        report.bar(f"{start}: first checkpoint captured after open, ms", ours["first captured ms"], 5, at_least=False)
