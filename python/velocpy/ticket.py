"""Tickets: what a store has promised for one version of a checkpoint, and whether it is kept."""

from __future__ import annotations

from collections.abc import Generator
from numbers import Real
from typing import Any, NoReturn

from . import html
from .callers import Place, name_call
from .choices import TierName
from .errors import TIERS, InvalidArgument, InvalidType, VelocError, WaitTimeout
from .interfaces import TicketIssuer

CAPTURED, GONE = 1, 2
NO_TIER = -1


def tier_number(tier: str | None) -> int:
    """The contract's number of a tier."""
    if tier is None:
        return NO_TIER
    if not isinstance(tier, str):
        raise InvalidType(f"a tier is named by a str, not {type(tier).__name__}; the tiers are {', '.join(TIERS)}.")
    if tier not in TIERS:
        raise InvalidArgument(f"there is no tier {tier!r}; the tiers are {', '.join(TIERS)}.")
    return TIERS.index(tier)


class Ticket:
    """What `History.checkpoint` returns. Light; nothing depends on its being kept.

    Examples
    --------
    >>> import numpy, velocpy
    >>> with velocpy.open(host="16MiB", disk="64MiB") as store:
    ...     ticket = store.history("forward").checkpoint(0, u=numpy.zeros(4))
    ...     ticket.wait("disk")
    ...     ticket.captured, ticket.durable("disk")
    (True, True)
    """

    __slots__ = ("_history", "_id", "_place", "key")

    #: Key of the checkpoint; the store's choice where none was given.
    key: int | str

    def __init__(self, history: TicketIssuer, key: int | str, identity: int, place: Place | None = None) -> None:
        self._history = history
        self.key = key
        self._id = identity
        self._place = place

    @property
    def captured(self) -> bool:
        """Whether the bytes are in the store.

        Until then sources that were given with ``copy=False`` must not be touched. Others may be overwritten at once;
        those on a device in the order of the stream, which comes to the copy a little later than the call returns.
        """
        return bool(self._state()[0] & CAPTURED)

    @property
    def dropped(self) -> bool:
        """Whether this version was dropped, replaced or consumed: it owes nothing any more."""
        return bool(self._state()[0] & GONE)

    def durable(self, tier: TierName) -> bool:
        """Whether the bytes survive the loss of every tier above ``tier``."""
        if tier is None:
            raise InvalidArgument(f"durable() takes the name of a tier; the tiers are {', '.join(TIERS)}.")
        return bool(self._state()[1] >> tier_number(tier) & 1)

    def wait(self, tier: TierName | None = None, timeout: float | None = None) -> None:
        """Waits until the bytes are captured, or durable in ``tier``.

        Asking makes a lazy flush urgent. Interrupted, it has changed nothing. What is raised tells the line that had
        called `History.checkpoint`, in its message and as ``called``.

        In "archive", of a store that was opened with ``archive=``, they are durable once the parts of all ranks of the
        key are there: then they survive the loss of every node.

        Raises
        ------
        WaitTimeout
            After ``timeout`` seconds.
        CheckpointDropped
            When the version went before it got there.
        DurabilityLost, TierFull, TierIOError
            When it will never get there.
        RankFailed, StoreLocked, VelocError
            In "archive": by what the latest push has failed. The next one goes on by itself, unless a rank has gone.
        """
        number = tier_number(tier)
        try:
            self._history._core.wait_ticket(self._id, self.key, number, timeout)
        except VelocError as error:
            name_call(error, self._place)
            raise

    def __await__(self) -> Generator[Any, None, Ticket]:
        """Waits in a task of asyncio until the bytes are captured; gives the ticket."""
        return self.until().__await__()

    async def until(self, tier: TierName | None = None, timeout: float | None = None) -> Ticket:
        """Waits in a task of asyncio until the bytes are captured, or durable in ``tier``; gives the ticket.

        The same as `wait`, but the event loop goes on. One thread waits for all tickets of all tasks. A task that is
        cancelled stops to wait at once; the checkpoint and its flushes go on.

        Raises
        ------
        WaitTimeout, CheckpointDropped, DurabilityLost, TierFull, TierIOError, StoreClosed
            As `wait`.

        Examples
        --------
        >>> import asyncio, numpy, velocpy
        >>> async def save(history):
        ...     ticket = await history.checkpoint(0, u=numpy.zeros(4), copy=False)  # captured
        ...     await ticket.until("disk", timeout=60)
        ...     return ticket.durable("disk")
        >>> with velocpy.open(host="16MiB", disk="64MiB") as store:
        ...     asyncio.run(save(store.history("forward")))
        True
        """
        patient = _is_positive(timeout)
        try:
            self.wait(tier, 0 if patient else timeout)
        except WaitTimeout:
            if not patient:
                raise
        else:
            return self
        from . import waiting  # it imports asyncio, which programs without tasks do not need

        await waiting.reached(self, tier, timeout)
        return self

    def _settled(self, tier: str | None) -> bool:
        """Whether a wait would end now, or may: a flush that failed may have been begun again."""
        flags, durable, failed = self._state()
        if tier is None:
            return bool(flags & (CAPTURED | GONE))
        return bool(flags & GONE or failed or durable >> tier_number(tier) & 1)

    def _state(self) -> tuple[int, int, int]:
        return self._history._store._core.ticket(self._id)

    def _status(self) -> str:
        """The state in a few words; of a closed store, or after a fork, that instead."""
        try:
            flags, durable, _ = self._state()
        except VelocError as error:
            return "store closed" if self._history._store.closed else type(error).__name__
        if flags & GONE:
            return "dropped"
        lowest = [name for number, name in enumerate(TIERS) if durable >> number & 1]
        return f"durable in {lowest[-1]}" if lowest else "captured" if flags & CAPTURED else "not captured yet"

    def __copy__(self) -> Ticket:
        return self

    def __reduce__(self) -> NoReturn:
        raise self._history._store._stays("Ticket", "")

    def __repr__(self) -> str:
        return f"<Ticket {self._history.name!r}[{self.key!r}]: {self._status()}>"

    def _repr_html_(self) -> str:
        return html.ticket(self)


def _is_positive(timeout: Any) -> bool:
    """Whether there is something to wait for: no timeout, or one of some seconds."""
    return timeout is None or (isinstance(timeout, Real) and not isinstance(timeout, bool) and float(timeout) > 0)
