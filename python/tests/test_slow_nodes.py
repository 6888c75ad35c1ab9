"""A push takes account of how fast the nodes have written for the pushes before it (policy/aggregation/pace.go)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dying_ranks
import pytest
from dying_ranks import RANKS, Board, Ranks

import velocpy
from velocpy.archive import part, together
from velocpy.archive.alone import Options

NODES = (0, 0, 1, 1)


def test_a_run_remembers_slow_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The paces that one push answers go into the next one, by which no rank of the slow node writes then."""
    stores = [dying_ranks.store_of(tmp_path, rank) for rank in range(RANKS)]
    archive = tmp_path / "archive"
    chosen = Options(archive, 2, 2, False, None, 4096, 2, None)
    board = Board(NODES)
    finished = together.Run._finished
    answered: list[dict[str, float]] = []

    def slow(self: Any, *arguments: Any) -> dict[str, Any]:
        told = finished(self, *arguments)
        answered.append(dict(self._paces))
        self._paces = {"0": 1e-9, "2": 5e-9}  # a node has the number of its lowest rank
        return told

    monkeypatch.setattr(together.Run, "_finished", slow)

    def keep(key: int) -> None:
        dying_ranks.keep(tmp_path, {("forward", key): 0})

    def pushed(rank: int) -> int:
        run = together.joined(Ranks(board, rank), lambda: (chosen, stores[rank]), 30)
        keys = [run.push().pushed.keys]
        run._others.all_gather(b"")
        if rank == 0:
            keep(1)
        run._others.all_gather(b"")
        return sum([*keys, run.push().pushed.keys])

    keep(0)
    assert dying_ranks.all_ranks(board, pushed, lambda: None) == [2] * RANKS
    none, later = answered
    assert none == {}  # so few bytes say nothing
    assert later["0"] == 1e-9
    assert 1e-9 < later["2"] < 5e-9  # it has written nothing, and is tried again some time
    plans = [plan for plan in board.plans if not plan["done"]]
    assert [{NODES[each["leader"]] for each in plan["files"]} for plan in plans] == [{0, 1}, {0}]
    with velocpy.open(archive, host="16MiB", mode="r") as store:
        for rank in range(RANKS):
            for key in (0, 1):
                state = store.history(part("forward", rank)).restore(key)
                assert dying_ranks.same(state, rank, "forward", key, 0)
