"""The order in which a backward pass asks for what was saved.

PyTorch promises no order. Its engine runs the node that was created last among those that are ready, so a descending
order of the nodes' numbers is a good forecast. The last backward pass is a better one where it did the same: it leaves
out branches without a gradient. A wrong forecast costs time only.

PyTorch has a private function that tells the order of a graph task, `torch._C._current_graph_task_execution_order`. It
refuses while the engine may use several threads, and fails once a node has run. The first request for a saved tensor
comes after that in nearly all graphs, so this module does not use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Numbered(Protocol):
    """Something that was saved: its place in the forward pass, its node's number and its size."""

    ordinal: int
    node: int
    nbytes: int


Saved = TypeVar("Saved", bound=Numbered)


class Order:
    """Learns from each backward pass, and forecasts the next one."""

    def __init__(self) -> None:
        self._learnt: dict[tuple[int, int], int] = {}  # place in the last backward pass, by ordinal and size
        self._seen: dict[tuple[int, int], int] = {}

    def begin(self) -> None:
        """A backward pass begins."""
        if self._seen:
            self._learnt, self._seen = self._seen, {}

    def note(self, saved: Numbered) -> None:
        """It was asked for."""
        self._seen.setdefault((saved.ordinal, saved.nbytes), len(self._seen))

    def forecast(self, away: Iterable[Saved]) -> list[Saved]:
        """Those that are away, in the order in which they are expected to be asked for.

        As in the last backward pass, if it asked for at least half of them; else the latest node first.
        """
        waiting = list(away)
        known = [each for each in waiting if (each.ordinal, each.nbytes) in self._learnt]
        if known and 2 * len(known) >= len(waiting):
            return sorted(known, key=lambda each: self._learnt[each.ordinal, each.nbytes])
        return sorted(waiting, key=lambda each: (-each.node, -each.ordinal))
