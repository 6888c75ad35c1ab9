"""What modules below `velocpy.store` need of stores, histories, tickets, leases and plans, as protocols.

A page for notebooks, a picture or a record reads a few attributes of an object and never makes one. It is typed by one
of these, so that it imports no module that imports it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from types import EllipsisType
from typing import Any, Protocol, SupportsIndex, TypeVar

from . import _core as shim
from .errors import InvalidType, VelocError
from .figures import ArchiveStats, Stats

Key = int | str

#: An index of one axis.
AxisIndex = SupportsIndex | slice | EllipsisType

#: Indices of a region, as NumPy's basic indexing takes them: for one axis, or for several in a tuple.
Index = AxisIndex | tuple[AxisIndex, ...]

#: What of regions is restored: indices by their names, or those of the only one.
Parts = Mapping[Any, Index] | Index


class StoreState(Protocol):
    """What every reader of a store needs; `velocpy.Store` has it."""

    _config: dict[str, Any]
    #: Counters at the last record of what moved; `velocpy.records` keeps them here.
    _recorded: dict[str, int]
    #: Its number among the stores that the process has opened.
    _turn: int

    @property
    def _core(self) -> shim.Store: ...

    @property
    def closed(self) -> bool: ...

    @property
    def path(self) -> Path | None: ...

    @property
    def durable(self) -> bool: ...

    def stats(self) -> Stats: ...


class HistoryState(Protocol):
    """What every reader of a history needs; `velocpy.History` has it."""

    @property
    def _core(self) -> shim.History: ...

    @property
    def name(self) -> str: ...

    def _status(self) -> str: ...

    def __iter__(self) -> Iterator[Key]: ...

    def __len__(self) -> int: ...


class StoreContents(StoreState, Protocol):
    """A store with the histories in it."""

    @property
    def histories(self) -> Sequence[HistoryState]: ...


class Archiving(Protocol):
    """What a store, its histories and its tickets need of what brings checkpoints to an archive."""

    @property
    def alone(self) -> bool: ...

    def ticket(self, history: Any, key: Key, identity: int, place: Any) -> Any: ...

    def wait_for(self, ticket: Any, timeout: float | None) -> None: ...

    def wait(self, timeout: float | None, history: str | None = None) -> None: ...

    def leave(self, timeout: float | None) -> VelocError | None: ...

    def abandon(self, why: str, *, wait: bool = True) -> None: ...

    def stats(self) -> ArchiveStats: ...


class HistoryOwner(Protocol):
    """What a history needs of the store that made it."""

    _archiving: Archiving | None

    _lookahead: int
    _debug: bool
    _places: tuple[int, ...]

    @property
    def _core(self) -> shim.Store: ...

    @property
    def closed(self) -> bool: ...

    def _require_open(self) -> None: ...

    def _streams(self, stream: Any) -> tuple[int, ...]: ...

    def _stays(self, what: str, behind: str) -> InvalidType: ...


class TicketIssuer(Protocol):
    """What a ticket needs of the history that made it, which it keeps alive with its store."""

    @property
    def _core(self) -> shim.History: ...

    @property
    def _store(self) -> HistoryOwner: ...

    @property
    def name(self) -> str: ...


class LoopOwner(Protocol):
    """What a loop over a plan needs of its history."""

    @property
    def _core(self) -> shim.History: ...

    @property
    def _store(self) -> HistoryOwner: ...


class AwaitedTicket(Protocol):
    """What a task's wait needs of a ticket."""

    def wait(self, tier: Any = None, timeout: float | None = None) -> None: ...

    def _settled(self, tier: str | None) -> bool: ...


RestoredT = TypeVar("RestoredT", covariant=True)


class RestoreLoop(Protocol[RestoredT]):
    """What `History.restore_iter` returns: for ``for``, and in tasks of asyncio for ``async for``."""

    def __iter__(self) -> Iterator[tuple[Key, RestoredT]]: ...

    def __next__(self) -> tuple[Key, RestoredT]: ...

    def __aiter__(self) -> AsyncIterator[tuple[Key, RestoredT]]: ...


class TicketState(Protocol):
    """What a page of a ticket shows."""

    key: Key

    @property
    def _history(self) -> TicketIssuer: ...

    def _status(self) -> str: ...


class LeaseState(Protocol):
    """What a page of a lease shows."""

    @property
    def key(self) -> Key: ...

    @property
    def released(self) -> bool: ...

    def _held(self) -> shim.LeaseMemory: ...


class PlanState(Protocol):
    """What a page of a plan shows."""

    def _status(self) -> str: ...
