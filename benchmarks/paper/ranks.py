"""Several processes that play the same cells at the same time."""

from __future__ import annotations

import multiprocessing
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from . import team
from .cells import Cell
from .contest import Contest, play_group
from .play import Pace

PATIENCE = 300  # seconds that a process waits for the others


def play(group: list[Cell], folder: Path, deadline: float, rounds: int = 1) -> list[Contest]:
    """Plays a group of cells in rounds, in as many processes as it wants; one contest for each."""
    processes = group[0].processes
    if processes == 1:
        return [play_group(group, folder, 0, Pace(), deadline, rounds)]
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes)
    answers: Any = context.Queue()
    votes = context.Array("b", processes)
    left = deadline - time.monotonic()
    members = [
        context.Process(target=_rank, args=(rank, group, folder, rounds, barrier, votes, answers), daemon=True)
        for rank in range(processes)
    ]
    return team.run(members, answers, left + PATIENCE)


def _rank(
    rank: int, group: list[Cell], folder: Path, rounds: int, barrier: threading.Barrier, votes: Any, answers: Any
) -> None:
    def meet() -> None:
        barrier.wait(PATIENCE)

    def agree(yes: bool) -> bool:
        votes[rank] = yes
        meet()
        agreed = all(votes[:])
        meet()
        return agreed

    try:
        pace = Pace(meet, meet if group[0].coupled else None, agree)
        # No deadline of its own: all have to play the same.
        answers.put(play_group(group, folder, rank, pace, time.monotonic() + 10 * PATIENCE, rounds))
    except BaseException:
        barrier.abort()
        answers.put(traceback.format_exc())
