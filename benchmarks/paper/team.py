"""Processes that do the same, and the answers of all of them."""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from typing import Any


class MemberFailed(RuntimeError):
    """One of several processes failed, and with it the run."""


def run(team: Sequence[Any], answers: Any, patience: float) -> list[Any]:
    """Starts the processes and waits for one answer of each; a text is the report of a failure.

    Raises
    ------
    MemberFailed
        For such a text, for a process that ended without an answer, and when patience (seconds) is over.
    """
    for process in team:
        process.start()
    deadline = time.monotonic() + patience
    found: list[Any] = []
    try:
        while len(found) < len(team):
            answer = _next(team, answers, len(found), deadline)
            if isinstance(answer, str):
                raise MemberFailed(f"one of {len(team)} processes failed:\n{answer}")
            found.append(answer)
    finally:
        for process in team:
            process.join(timeout=30 if len(found) == len(team) else 1)
            if process.is_alive():
                process.kill()
    return found


def _next(team: Sequence[Any], answers: Any, had: int, deadline: float) -> Any:
    while True:
        ended = sum(process.exitcode is not None for process in team)
        broken = [process.exitcode for process in team if process.exitcode]
        try:
            return answers.get(timeout=1)
        except queue.Empty:
            if broken or ended > had:
                raise MemberFailed(f"a process ended without an answer: {broken}") from None
            if time.monotonic() > deadline:
                raise MemberFailed("the processes do not answer") from None
