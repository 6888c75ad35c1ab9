"""How many bytes of saved storages stay on a device, and which ones have to go.

This module knows numbers only. In the first step, those that were saved first go when no more may stay: they are needed
last. From the second step on it is known how many bytes there will be. Then those that go are spread over the forward
pass, so that the link is busy during all of it, and of the backward pass, too. The ones saved last stay: their copies
would not be over before they are needed. So the bytes that may be leaving at once beside the budget, which a backward
pass finds on the device anyway, are not copied.
"""

from __future__ import annotations

from collections.abc import Callable

#: Of the bytes of a forward pass, those behind this share stay.
_SPREAD = 0.9


class Residency:
    """The account of one device.

    Parameters
    ----------
    budget
        Gives the bytes that may stay; it is asked again after each ``every`` bytes that were saved.
    every
        Bytes.
    stash
        Bytes beside the budget that may stay where it is known that no more come behind them.
    measured
        Whether the budget follows the memory in use. Then a step needs no account where the last one has fitted.
    """

    __slots__ = (
        "_ask",
        "_budget",
        "_every",
        "_since",
        "alive",
        "away",
        "held",
        "leaving",
        "measured",
        "outgrown",
        "peak",
        "spare",
        "spread",
        "stash",
        "tail",
        "to_move",
    )

    def __init__(self, budget: Callable[[int], int], every: int, *, stash: int = 0, measured: bool = False) -> None:
        self._ask = budget
        self._every = every
        self.stash = stash
        #: Bytes that may stay beside the budget, in this step.
        self.tail = 0
        self.measured = measured
        self._budget: int | None = None
        self._since = 0
        #: Bytes of all storages that a graph has.
        self.alive = 0
        #: Bytes of those that have left, or are to leave.
        self.away = 0
        #: Bytes of those that are on the device.
        self.held = 0
        #: Bytes among those that leave: they are held until their copies have ended.
        self.leaving = 0
        #: The most bytes that were alive at once in this step.
        self.peak = 0
        #: Bytes that have to be away at the peak, as the last step tells.
        self.to_move = 0
        #: Bytes that this step may save without an account.
        self.spare = 0
        #: Whether the last step has saved more than that: the next one is accounted for.
        self.outgrown = False
        #: Over so many bytes of a forward pass those that go are spread.
        self.spread = 0.0

    @property
    def budget(self) -> int:
        """Bytes that may stay."""
        if self._budget is None or self._since >= self._every:
            self._budget, self._since = self._ask(self.held), 0
        return self._budget

    def begin_step(self) -> None:
        """A forward pass begins: the last one has told how many bytes there will be."""
        self._budget = None
        self.tail = self.stash if self.peak or self.spare else 0
        self.to_move = max(0, self.peak - self.budget - self.tail)
        self.spread = _SPREAD * self.peak
        self.spare = self.budget + self.tail if self.measured and not self.to_move and not self.outgrown else 0
        self.outgrown = False
        self.peak = self.alive

    def save(self, nbytes: int) -> bool:
        """Accounts for a storage that was saved; tells whether it is to leave at once."""
        alive = self.alive = self.alive + nbytes
        self.held += nbytes
        self._since += nbytes
        if alive > self.peak:
            self.peak = alive
        return self.away < self.to_move and self.away * self.spread <= alive * self.to_move

    @property
    def excess(self) -> int:
        """Bytes that have to leave although no forecast said so; negative: room."""
        return self.held - self.leaving - self.budget - self.tail

    @property
    def beside(self) -> int:
        """Bytes on the device beside the budget: those that leave, and those that stay as the last ones of a step."""
        return self.leaving + max(0, self.held - self.leaving - self.budget)
