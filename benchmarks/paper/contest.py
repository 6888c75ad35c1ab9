"""Plays cells: every contender of a group of cells with the same caches is opened once, and plays them one by one."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.engines.contenders import LISTED_TWICE, LeftOut, card_for, engine_for
from benchmarks.engines.engine import Engine
from benchmarks.engines.workload import Workload

from .cells import Cell
from .play import Outcome, Pace, Walls, compute_only, shot


@dataclasses.dataclass
class Played:
    """What one contender did in one cell; a contender listed twice has its runs apart."""

    cell: int  # its number in the group
    contender: str
    outcomes: list[Outcome]
    without: Walls
    left_out: str = ""


@dataclasses.dataclass
class Contest:
    """What a group came to, as seen by one process."""

    card: str
    rates: dict[str, float]
    played: list[Played]


def play_group(group: list[Cell], folder: Path, rank: int, pace: Pace, deadline: float) -> Contest:
    """Plays the cells, which agree in sizes and caches, until the deadline (as of `time.monotonic`)."""
    card = card_for(group[0].workload.largest, rank)
    with contextlib.closing(card):
        return _play(group, folder, card, pace, deadline)


def _play(group: list[Cell], folder: Path, card: Any, pace: Pace, deadline: float) -> Contest:
    first = group[0].workload
    source = card.device(first.largest)
    rates = card.rates(first.largest)
    played: list[Played] = []
    walls: dict[tuple[float, int], Walls] = {}
    for name in dict.fromkeys(name for cell in group for name in cell.contenders):
        if time.monotonic() > deadline:
            played.append(_absent(name, "no time was left"))
            continue
        engine, reason = _opened(name, card, first, folder)
        if not pace.agree(engine is not None) or engine is None:
            played.append(_absent(name, reason))
            if engine is not None:
                engine.close()
            continue
        with contextlib.closing(engine):
            new = True
            for number, cell in enumerate(group):
                if name not in cell.contenders:
                    continue
                if time.monotonic() > deadline:
                    played.append(_absent(name, "no time was left", number))
                    continue
                without = _without(walls, card, cell.workload, source, pace)
                warm = new and name not in LISTED_TWICE
                rounds = cell.rounds + (1 if new else 0)
                new = False
                outcomes = [shot(card, cell.workload, engine, source, without, pace, cell.trace) for _ in range(rounds)]
                for label, some in _listed(name, outcomes[1:] if warm else outcomes):
                    played.append(Played(number, label, some, without))
        del engine
        gc.collect()
        card.room()  # takes memory that the last one used out of the allocator's caches
    return Contest(card.name, rates, played)


def _opened(name: str, card: Any, workload: Workload, folder: Path) -> tuple[Engine | None, str]:
    """The engine, or why there is none."""
    try:
        return engine_for(name, card, workload, folder), f"{name}: another process could not"
    except LeftOut as reason:
        return None, str(reason)


def _absent(name: str, why: str, cell: int = 0) -> Played:
    return Played(cell, name, [], Walls(0, 0), why)


def _listed(name: str, outcomes: list[Outcome]) -> Iterator[tuple[str, list[Outcome]]]:
    if name in LISTED_TWICE and len(outcomes) > 1:
        yield f"{name}, first run", outcomes[:1]
        yield f"{name}, second run", outcomes[1:]
    elif name in LISTED_TWICE:
        yield f"{name}, later run", outcomes
    else:
        yield name, outcomes


def _without(walls: dict[tuple[float, int], Walls], card: Any, workload: Workload, source: Any, pace: Pace) -> Walls:
    """The loop without an engine; measured once for all cells with the same computation, and behind a warm-up."""
    key = (workload.interval, len(workload.keys))
    if key not in walls:
        if not walls:
            few = dataclasses.replace(workload, sizes=workload.sizes[:8])
            compute_only(card, few, source, pace)
        runs = [compute_only(card, workload, source, pace) for _ in range(2)]
        walls[key] = Walls(statistics.mean(run.writing for run in runs), statistics.mean(run.reading for run in runs))
    return walls[key]
