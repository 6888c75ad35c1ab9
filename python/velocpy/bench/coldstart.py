"""The evaluation of seed 004: what the first checkpoints of a process cost, all that it makes ready included."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from velocpy.budget import available_memory

from .gpu import team
from .gpu.card import HostCard
from .gpu.cold import Cold, Start, begin, physical_memory, touch
from .gpu.contenders import has_gpu
from .gpu.workload import GIB, MIB
from .report import Report
from .shot import LEAST

STRATEGIES = ("velocpy", "velocpy concurrent", "velocpy sequential", "velocpy direct")
EVERYBODY = (*STRATEGIES, "velocpy large device", "direct pinning", "ring", "keep", "unified memory")
INTERVALS = (5e-3, 10e-3, 20e-3, 50e-3, 100e-3)
TIMES = {1: 50.0, 2: 30.0, 4: 30.0}  # less blocked than direct pinning, by processes

GROUPS: dict[str, Callable[[], list[Start]]] = {
    "tiny": lambda: [
        Start("tiny", "uniform", 1e-3, 16, MIB, 8 * MIB, processes, ("velocpy", "direct pinning", "keep"), 256 << 10)
        for processes in (1, 2)
    ],
    "quick": lambda: [Start("quick", "uniform", 10e-3)],
    "bars": lambda: [
        Start("bar", "uniform", 10e-3, contenders=("velocpy", "direct pinning", "keep"), processes=processes)
        for processes in (1, 4)
    ],
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
            starts += [start for group in GROUPS if group not in ("tiny", "quick") for start in GROUPS[group]()]
        elif name in GROUPS:
            starts += GROUPS[name]()
        else:
            raise ValueError(f"no cells {name!r}; there are {', '.join((*GROUPS, 'all'))}")
    return starts


def run(folder: Path, cells: str | None = None, limit: float = 500) -> Report:
    """Begins cold with every contender of the cells chosen; what limit seconds do not suffice for is left out."""
    cells = cells or ("quick" if has_gpu() else "tiny")
    try:
        starts = chosen(cells)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    deadline = time.monotonic() + limit
    memory = physical_memory()
    report = Report("coldstart-" + cells.replace(",", "-"), {"cells": cells})
    warmed = min(available_memory() * 7 // 8, 2 * max(start.host * start.processes for start in starts))
    for when in ("before", "again"):  # what the machine's host has given stays, or does not
        report.measure({f"touched {when} GB/s": round(touch(warmed) / 1e9, 2)})
    for start in (start.fitted(memory) for start in starts):
        for name in start.contenders:
            if time.monotonic() > deadline:
                report.remark(f"Not played, no time was left: {start.name}, {name}.")
                continue
            try:
                colds = begin(start, name, folder)
            except team.MemberFailed as failure:
                report.remark(f"Failed: {start.name}, {name}: {failure}")
                continue
            reasons = [cold.left_out for cold in colds if cold.left_out]
            if reasons:
                report.remark(f"Left out: {reasons[0]} ({start.name}).")
                continue
            report.settings["card"] = colds[0].card
            report.rows.append(row_of(start, name, colds))
    if report.settings.get("card") != HostCard.name:
        add_bars(report)
    report.notes.append(
        "Each contender begins in fresh processes that have made their CUDA context and nothing else. Blocked: wall "
        "time from before open to the last capture, less the computation. As much of the machine's memory as they use "
        "was touched before, and again, at the rates above."
    )
    return report


def row_of(start: Start, name: str, colds: list[Cold]) -> dict[str, Any]:
    """One contender: means over the processes."""
    return {
        "figure": start.figure,
        "start": start.name,
        "who": name,
        "blocked s": statistics.mean(cold.blocked for cold in colds),
        "open ms": statistics.mean(cold.opening for cold in colds) * 1e3,
        "first captured ms": statistics.mean(cold.first for cold in colds) * 1e3,
        "each": [[cold.blocked, cold.opening, cold.first, cold.facts] for cold in colds],
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
        starts.setdefault(row["start"], {})[row["who"]] = row
    for start, rows in starts.items():
        ours, pinned = rows.get("velocpy"), rows.get("direct pinning")
        if ours is None:
            continue
        if pinned is not None:
            bound = TIMES.get(ours["about"][0]["processes"], 30.0)
            times = pinned["blocked s"] / max(ours["blocked s"], LEAST)
            report.bar(f"{start}: direct pinning's blocked time by ours", times, bound, at_least=True)
        report.bar(f"{start}: open beyond the context, ms", ours["open ms"], 20, at_least=False)
        report.bar(f"{start}: first checkpoint captured after open, ms", ours["first captured ms"], 5, at_least=False)
