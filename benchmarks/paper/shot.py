"""The evaluation of Maurya et al., HPDC'23: shots of checkpoints from device memory and back, beside other engines."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from benchmarks.disk import ceiling
from benchmarks.engines.contenders import has_gpu
from velocpy.bench.report import Report

from . import ranks, team
from .bound import lower_bound
from .cells import ABOUT, Cell, chosen, together
from .contest import Contest, Played
from .play import Outcome

# Of what engines count: bytes by link, and why calls waited.
SHOWN = ("down GB", "up GB", "disk written GB", "disk read GB", "for room s", "for bytes s", "hits")
LEAST = 1e-3  # seconds: below this a throughput says nothing


def run(
    folder: Path, cells: str | None = None, limit: float = 500, rounds: int | None = None, *, sweep: bool = True
) -> Report:
    """Plays the cells chosen; groups that limit seconds do not suffice for are left out, and said so.

    In each of the rounds every contender is opened anew and plays each of its cells once. Without rounds it is opened
    once, and plays a cell as often as the cell says. Without sweep the disk's ceiling is what velocpy reached.
    """
    cells = cells or ("quick" if has_gpu() else "tiny")
    try:
        groups = together(chosen(cells))
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if rounds is not None:
        groups = [[dataclasses.replace(cell, rounds=1) for cell in group] for group in groups]
    deadline = time.monotonic() + limit
    report = Report("shot-" + cells.replace(",", "-").replace(":", "-"), {"cells": cells})
    if rounds is not None:
        report.settings["rounds"] = rounds
    rates = _disk_rates(folder, groups) if sweep else {"disk write": 0.0, "disk read": 0.0}
    for group in groups:
        if time.monotonic() > deadline:
            report.remark(*(f"Not played, no time was left: {cell.figure}: {cell.name}." for cell in group))
            continue
        try:
            contests = ranks.play(group, folder, deadline, rounds or 1)
        except team.MemberFailed as failure:
            report.remark(*(f"Failed: {cell.figure}: {cell.name}: {failure}" for cell in group))
            continue
        report.settings["card"] = contests[0].card
        rates = ceiling.at_least(rates, reached(contests))
        measured = contests[0].rates | rates
        report.measure({f"{name} GB/s": round(rate / 1e9, 3) for name, rate in measured.items()})
        for number, cell in enumerate(group):
            report.rows += rows_of(cell, number, contests, measured)
        report.remark(*_absences(group, contests))
    add_bars(report)
    figures = dict.fromkeys(row["figure"] for row in report.rows)
    report.notes += dict.fromkeys(ABOUT[name] for f in figures if (name := f if f in ABOUT else f.split()[0]) in ABOUT)
    report.notes.append(
        "Contenders play one after another in the same process, each opened once a round and velocpy first in the "
        "first round, the next one in the next, after a run that does not count "
        "(Unified Memory's first run is listed). Blocked: wall time less that of the same loop without an engine, both "
        "with every restored byte compared on "
        "the device. The bound is the simulator's, at the rates measured in this run; a lease copies nothing."
    )
    if any(str(row["who"]).startswith("ring page cache") for row in report.rows):
        report.notes.append("ring page cache: uses memory beyond its budget, for the page cache.")
    return report


def _disk_rates(folder: Path, groups: list[list[Cell]]) -> dict[str, float]:
    """What the disk does at its best; nothing when no cell uses it."""
    most = max((cell.workload.disk for group in groups for cell in group), default=0)
    if not most:
        return {}
    return ceiling.sweep(folder, min(most // 4, ceiling.POINT)).rates()


def reached(contests: Iterable[Contest]) -> dict[str, float]:
    """What the disk has done at the least in this run: what velocpy moved, in all the time in which it may have."""
    rates = {"disk write": 0.0, "disk read": 0.0}
    for played in (p for contest in contests for p in contest.played if p.contender.startswith("velocpy")):
        for outcome in played.outcomes:
            reading = played.without.reading + outcome.blocked_reading + outcome.flushing
            whole = played.without.writing + outcome.blocked_writing + reading
            moved = outcome.facts
            rates["disk read"] = max(rates["disk read"], moved.get("disk read GB", 0) * 1e9 / reading)
            rates["disk write"] = max(rates["disk write"], moved.get("disk written GB", 0) * 1e9 / whole)
    return rates


def rows_of(cell: Cell, number: int, contests: list[Contest], rates: Mapping[str, float]) -> list[dict[str, Any]]:
    """The rows of one cell: each contender's medians over rounds, means over processes, beside the bound."""
    by_name: dict[str, list[Played]] = {}
    for contest in contests:
        for played in contest.played:
            if played.cell == number and played.outcomes:
                by_name.setdefault(played.contender, []).append(played)
    return [_row(cell, name, everywhere, rates) for name, everywhere in by_name.items()]


def _row(cell: Cell, name: str, played: list[Played], rates: Mapping[str, float]) -> dict[str, Any]:
    work = cell.workload
    interval = statistics.mean(p.without.writing for p in played) / len(work.sizes)
    bound = lower_bound(work, rates, interval, leases=name != "velocpy into")
    outcomes = [outcome for p in played for outcome in p.outcomes]
    writing = statistics.mean(statistics.median(o.blocked_writing for o in p.outcomes) for p in played)
    reading = statistics.mean(statistics.median(o.blocked_reading for o in p.outcomes) for p in played)
    distances = [d for o in outcomes for d in o.distances]
    row: dict[str, Any] = {
        "figure": cell.figure,
        "shot": cell.name,
        "who": name,
        "writing s": writing,
        "reading s": reading,
        "blocked s": writing + reading,
        "bound s": sum(bound),
        "write GB/s": work.total / max(writing, LEAST) / 1e9,
        "read GB/s": work.total / max(reading, LEAST) / 1e9,
        **_calls("checkpoint", [t for o in outcomes for t in o.checkpoint_calls]),
        **_calls("restore", [t for o in outcomes for t in o.restore_calls]),
        "differences": sum(o.differences for o in outcomes),
    }
    if distances:
        row["prefetch distance"] = statistics.mean(distances)
        row["distances"] = [o.distances for o in outcomes]
    if work.wait_flushed:
        row["flushing s"] = statistics.mean(o.flushing for o in outcomes)
    row |= {name: value for name, value in _facts(outcomes).items() if name in SHOWN}
    row["compute s"] = interval * (len(work.sizes) + len(work.keys))
    row["rounds"] = [[_raw(o) for o in p.outcomes] for p in played]
    row["bounds"] = list(bound)
    row["about"] = [about(cell)]
    return row


def about(cell: Cell) -> dict[str, Any]:
    """What distinguishes the cell, for pictures."""
    work = cell.workload
    return {
        "sizes": cell.sizes,
        "count": len(work.sizes),
        "bytes": work.total,
        "order": work.order,
        "hints": work.hints,
        "wait": work.wait_flushed,
        "interval ms": work.interval * 1e3,
        "device": work.device,
        "host": work.host,
        "disk": work.disk,
        "processes": cell.processes,
        "coupled": cell.coupled,
    }


def _raw(outcome: Outcome) -> dict[str, Any]:
    return {
        "writing s": outcome.blocked_writing,
        "reading s": outcome.blocked_reading,
        "facts": outcome.facts,
    }


def _facts(outcomes: list[Outcome]) -> dict[str, float]:
    """Medians of what the engines counted."""
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.facts)
    return {name: statistics.median(o.facts.get(name, 0) for o in outcomes) for name in names}


def _calls(what: str, seconds: list[float]) -> dict[str, float]:
    if not seconds:
        return {}
    ordered = sorted(seconds)
    return {
        f"{what} µs": statistics.median(ordered) * 1e6,
        f"{what} p99 µs": ordered[len(ordered) * 99 // 100] * 1e6,
    }


def _absences(group: list[Cell], contests: list[Contest]) -> list[str]:
    absences = {f"{p.left_out} ({group[p.cell].name})": None for c in contests for p in c.played if p.left_out}
    return [f"Left out: {text}." for text in absences]


# --- the bars ---

RING_SHARE = {
    ("link all", "sequential"): 0.5,
    ("link all", "reverse"): 0.5,
    ("link all", "irregular"): 0.5,
    ("link one", "sequential"): 0.6,
    ("link one", "reverse"): 0.6,
    ("link one", "irregular"): 0.6,
    ("link none", "sequential"): 0.3,
    ("link none", "reverse"): 0.3,
    ("link none", "irregular"): 1.0,
}
DISK_RING_SHARE = {"uniform": 0.4, "variable": 0.25}
MANAGED_TIMES = {"uniform": 10.0, "variable": 25.0}


def add_bars(report: Report) -> None:
    """The bars that the rows decide."""
    shots: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for row in report.rows:
        shots.setdefault((row["figure"], row["shot"]), {})[row["who"]] = row
    for (figure, shot), rows in shots.items():
        ours = rows.get("velocpy")
        if ours is None:
            continue
        facts = ours["about"][0]
        blocked, bound = ours["blocked s"], ours["bound s"]
        if figure.startswith("link"):
            _beside(report, f"{shot}: of the ring's blocked time", blocked, _blocked(rows, ("ring",)),
                    RING_SHARE[figure, facts["order"]])  # fmt: skip
            report.notes += _floors(shot, rows)
        if figure == "link all":
            most = 1.15 * bound + 0.01 * ours["compute s"]
            report.bar(f"{shot}: blocked s, 1.15 × bound + 1 % of the compute time", blocked, most, at_least=False)
        if figure == "disk":
            report.bar(f"{shot}: blocked time by its bound", blocked / max(bound, LEAST), 1.2, at_least=False)
            rings = _blocked(rows, ("ring lazy", "ring eager"))
            _beside(report, f"{shot}: of the O_DIRECT ring's (the better one)", blocked, rings,
                    DISK_RING_SHARE[facts["sizes"]])  # fmt: skip
        if figure == "paper":
            report.bar(f"{shot}: blocked time by its bound", blocked / max(bound, LEAST), 1.2, at_least=False)
            managed = _blocked(rows, ("unified memory, second run", "unified memory, later run"))
            if managed is not None:
                report.bar(f"{shot}: Unified Memory's blocked time by ours", managed / max(blocked, LEAST),
                           MANAGED_TIMES[facts["sizes"]], at_least=True)  # fmt: skip
    if report.rows:
        differing = sum(row["differences"] for row in report.rows)
        report.never("restored words that differ, everybody's", differing)


def _floors(shot: str, rows: Mapping[str, dict[str, Any]]) -> list[str]:
    """What can be had beside the ring: by keeping everything on the device, and by doing without checksums."""
    ring = _blocked(rows, ("ring",))
    floors = {"everything kept on the device": "keep", "velocpy without checksums": "velocpy unchecked"}
    found = {what: rows[who]["blocked s"] for what, who in floors.items() if who in rows}
    if not ring or not found:
        return []
    return [f"{shot}: of the ring's blocked time, " + ", ".join(f"{w}: {b / ring:.2f}" for w, b in found.items()) + "."]


def _beside(report: Report, what: str, blocked: float, theirs: float | None, bound: float) -> None:
    if theirs is not None:
        report.bar(what, blocked / max(theirs, LEAST), bound, at_least=False)


def _blocked(rows: Mapping[str, dict[str, Any]], names: Iterable[str]) -> float | None:
    """The least blocked time of these."""
    return min((rows[name]["blocked s"] for name in names if name in rows), default=None)
