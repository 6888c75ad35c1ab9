"""The order in which a backward pass asks for what was saved.

PyTorch promises no order. There are three forecasts. A wrong one costs time only.

- Predicted: PyTorch's engine runs nodes from the highest number to the lowest, and `velocpy.offloading.foresight` tells
  which ones. It is right where steps differ, and costs a little for each node.
- Learnt: that of the last backward pass. It costs nothing, and is right where steps are alike.
- Reversed: all that is away, from the highest number to the lowest. It has branches in it that get no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Literal, Protocol, TypeVar

#: Of so many numbers that a node may have, the greatest ones are tried.
_SPAN = 16

#: How an order was found.
Source = Literal["predicted", "learnt", "reversed"]


class Numbered(Protocol):
    """Something that was saved: its place in the forward pass, its size, and the nodes that saved it."""

    ordinal: int
    nbytes: int

    @property
    def saves(self) -> Iterable[tuple[int, int, int]]:
        """For each save the least and the greatest number that its node may have, and its place among all saves."""


Saved = TypeVar("Saved", bound=Numbered)


class Order:
    """Learns from each backward pass, and forecasts the next one."""

    def __init__(self) -> None:
        # Requests of the last backward pass and of this one, by ordinal and size; the forms and numbers of their steps.
        self._learnt: list[tuple[int, int]] = []
        self._seen: list[tuple[int, int]] = []
        self._seen_once: set[tuple[int, int]] = set()
        self._learnt_form = self._form = 0
        self._learnt_step = self._step = 0

    @property
    def steady(self) -> bool:
        """Whether this backward pass has asked as the last one did, in another step."""
        return (
            bool(self._seen)
            and self._form == self._learnt_form
            and self._step != self._learnt_step
            and self._seen == self._learnt
        )

    def begin(self, form: int, step: int) -> None:
        """A backward pass of a step begins; ``form`` is a number that steps have in common which save alike."""
        if self._seen:
            self._learnt, self._seen = self._seen, []
            self._seen_once.clear()
            self._learnt_form, self._learnt_step = self._form, self._step
        self._form, self._step = form, step

    def note(self, saved: Numbered) -> None:
        """A node has asked for it."""
        key = saved.ordinal, saved.nbytes
        self._seen.append(key)
        self._seen_once.add(key)

    def noted(self, saved: Numbered) -> bool:
        """Whether this backward pass has asked for it."""
        return (saved.ordinal, saved.nbytes) in self._seen_once

    def forecast(
        self, away: Iterable[Saved], node: int, nodes: Set[int] | None, *, anew: bool = False
    ) -> tuple[list[Saved], Source]:
        """Those that are away, in the order in which they are expected to be asked for.

        Where ``nodes`` tells those that this backward pass runs: from the highest number to the lowest among them, each
        block once for each node that saved it. Where it is None: as in the last backward pass, if its step was like
        this one, and it asked for at least half of the blocks. Else all from ``node``, which runs now, to the lowest.
        ``anew``: an earlier forecast of this backward pass was wrong.
        """
        waiting = list(away)
        if nodes is not None:
            before = node if anew else max(nodes, default=node)
            return _descending(waiting, lambda number: number in nodes and number <= before, again=True), "predicted"
        # Later nodes belong to other graphs: this one begins with its last node.
        behind = _descending(waiting, lambda number: number <= node)
        if not anew and self._form == self._learnt_form:
            places = {(each.ordinal, each.nbytes): each for each in behind}
            known = [places[key] for key in self._learnt if key in places]
            if known and 2 * len(set(map(id, known))) >= len(behind):
                return known, "learnt"
        return behind, "reversed"


def _descending(waiting: list[Saved], runs: Callable[[int], bool], *, again: bool = False) -> list[Saved]:
    """By the last node that runs and saved it; what one node saved is asked for in the order of the saves.

    ``again``: by all nodes that run and saved it.
    """
    placed = []
    for each in waiting:
        places: dict[int, int] = {}
        for first, last, save in each.saves:
            for number in range(last, max(first, last - _SPAN) - 1, -1):
                if runs(number):
                    places.setdefault(number, -save)
                    break
        if again:
            placed += [(place, each) for place in places.items()]
        elif places:
            placed.append((max(places.items()), each))
    placed.sort(key=lambda pair: pair[0], reverse=True)
    return [each for _, each in placed]
