"""Plays cells: every contender of a group of cells with the same caches is opened once a round, and plays them all."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import statistics
import time
from collections.abc import Iterable, Iterator
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


def play_group(group: list[Cell], folder: Path, rank: int, pace: Pace, deadline: float, rounds: int = 1) -> Contest:
    """Plays the cells, which agree in sizes and caches, until the deadline (as of `time.monotonic`).

    In each round every contender is opened anew, beginning with another one.
    """
    card = card_for(group[0].workload.largest, rank)
    with contextlib.closing(card):
        return _play(group, folder, card, pace, deadline, rounds)


def _play(group: list[Cell], folder: Path, card: Any, pace: Pace, deadline: float, rounds: int) -> Contest:
    first = group[0].workload
    source = card.device(first.largest)
    rates = card.rates(first.largest)
    # Before any contender is opened: an open store pins memory beside the loop.
    baselines = _baselines(group, card, source, pace)
    names = _names(group)
    played: dict[str, list[Played]] = {name: [] for name in names}
    for number in range(rounds):
        for name in turns(names, number):
            if time.monotonic() > deadline:
                played[name].append(_absent(name, _no_time(name, number)))
                continue
            engine, reason = _opened(name, card, first, folder)
            if not pace.agree(engine is not None) or engine is None:
                played[name].append(_absent(name, reason))
                if engine is not None:
                    engine.close()
                continue
            with contextlib.closing(engine):
                played[name] += _shots(group, name, engine, card, source, baselines, pace, deadline, number)
            del engine
            gc.collect()
            card.room()  # takes memory that the last one used out of the allocator's caches
    return Contest(card.name, rates, merged(each for name in names for each in played[name]))


def _names(group: list[Cell]) -> list[str]:
    """The contenders of all cells, in the order of the results."""
    return list(dict.fromkeys(name for cell in group for name in cell.contenders))


def turns(names: list[str], number: int) -> list[str]:
    """The contenders in the order of a round: velocpy begins the first round, the next contender the next round.

    >>> turns(["keep", "ring", "velocpy"], 0), turns(["keep", "ring", "velocpy"], 1)
    (['velocpy', 'keep', 'ring'], ['keep', 'ring', 'velocpy'])
    """
    ours = names.index("velocpy") if "velocpy" in names else 0
    shift = (ours + number) % len(names)
    return names[shift:] + names[:shift]


def _shots(
    group: list[Cell],
    name: str,
    engine: Engine,
    card: Any,
    source: Any,
    baselines: list[Walls],
    pace: Pace,
    deadline: float,
    number: int,
) -> list[Played]:
    """The shots of a contender that has just been opened, in all of its cells."""
    played: list[Played] = []
    new = True
    for place, (cell, without) in enumerate(zip(group, baselines, strict=True)):
        if name not in cell.contenders:
            continue
        if time.monotonic() > deadline:
            played.append(_absent(name, _no_time(name, number), place))
            continue
        warm = new and name not in LISTED_TWICE
        shots = cell.rounds + (1 if new else 0)
        new = False
        outcomes = [shot(card, cell.workload, engine, source, without, pace, cell.trace) for _ in range(shots)]
        for label, some in _listed(name, outcomes[1:] if warm else outcomes):
            played.append(Played(place, label, some, without))
    return played


def merged(played: Iterable[Played]) -> list[Played]:
    """The same with the outcomes of all rounds together, in the order of the first ones; absences stay as they are."""
    together: dict[tuple[int, str], Played] = {}
    absent: list[Played] = []
    for each in played:
        if each.left_out:
            absent.append(each)
            continue
        key = (each.cell, each.contender)
        if key in together:
            together[key].outcomes += each.outcomes
        else:
            together[key] = dataclasses.replace(each, outcomes=list(each.outcomes))
    return [*together.values(), *absent]


def _opened(name: str, card: Any, workload: Workload, folder: Path) -> tuple[Engine | None, str]:
    """The engine, or why there is none."""
    try:
        return engine_for(name, card, workload, folder), f"{name}: another process could not"
    except LeftOut as reason:
        return None, str(reason)


def _absent(name: str, why: str, cell: int = 0) -> Played:
    return Played(cell, name, [], Walls(0, 0), why)


def _no_time(name: str, number: int) -> str:
    return f"{name}: no time was left{f' in round {number + 1}' if number else ''}"


def _listed(name: str, outcomes: list[Outcome]) -> Iterator[tuple[str, list[Outcome]]]:
    if name in LISTED_TWICE and len(outcomes) > 1:
        yield f"{name}, first run", outcomes[:1]
        yield f"{name}, second run", outcomes[1:]
    elif name in LISTED_TWICE:
        yield f"{name}, later run", outcomes
    else:
        yield name, outcomes


def _baselines(group: list[Cell], card: Any, source: Any, pace: Pace) -> list[Walls]:
    """The loop without an engine, for each cell; measured once for all that compute the same, and behind a warm-up."""
    first = group[0].workload
    compute_only(card, dataclasses.replace(first, sizes=first.sizes[:8]), source, pace)
    walls: dict[tuple[float, int], Walls] = {}
    for cell in group:
        key = _computation(cell.workload)
        if key not in walls:
            runs = [compute_only(card, cell.workload, source, pace) for _ in range(2)]
            writing, reading = (run.writing for run in runs), (run.reading for run in runs)
            walls[key] = Walls(statistics.mean(writing), statistics.mean(reading))
    return [walls[_computation(cell.workload)] for cell in group]


def _computation(workload: Workload) -> tuple[float, int]:
    return workload.interval, len(workload.keys)
