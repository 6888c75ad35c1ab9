"""Storages as checkpoints of a history: the way to the disk."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from velocpy.errors import CheckpointDropped, DurabilityLost, TierFull, TierIOError, VelocError
from velocpy.store import Store
from velocpy.ticket import Ticket


class Written:
    """Passes when the store has the bytes of a source that it reads where they are."""

    __slots__ = ("_ticket",)

    def __init__(self, ticket: Ticket) -> None:
        self._ticket = ticket

    def query(self) -> bool:
        """Whether the source may go."""
        return self._ticket.captured

    def synchronize(self) -> None:
        """Waits for it.

        Raises
        ------
        TierFull, TierIOError, DurabilityLost
            The store will never have the bytes.
        """
        self._ticket.wait()


class Stored:
    """A history in which each storage is a checkpoint under a key that is used once."""

    def __init__(self, store: Callable[[], Store], name: str) -> None:
        self._open = store
        self._name = name
        self._history: Any = None
        self._keys: Any = None

    def put(self, source: Any) -> tuple[int, Written]:
        """Begins to write the bytes of an array, which stays as it is until they are written.

        Raises
        ------
        TierFull, TierIOError
        """
        history = self._opened()
        key = next(self._keys)
        return key, Written(history.checkpoint(key, (source,), copy=False))

    def get(self, key: int, into: Any) -> None:
        """Fills an array; waits for the disk.

        Raises
        ------
        CorruptCheckpoint, TierIOError
        """
        self._opened().restore(key, into=(into,))

    def hint(self, keys: Iterable[int]) -> None:
        """Tells in which order storages will be needed, so that the store reads ahead."""
        history = self._opened()
        history.hint_clear()
        history.hint(list(keys))

    def drop(self, key: int) -> None:
        """Forgets a storage; a source that is still read is the caller's again."""
        if self._history is not None:
            with suppress(VelocError):  # the store is closed, or this is a forked child
                self._history.drop(key)

    def _opened(self) -> Any:
        if self._history is None:
            history = self._open().history(self._name)
            self._keys = itertools.count(1 + max((key for key in history if isinstance(key, int)), default=-1))
            self._history = history
        return self._history


#: What a store says when it cannot take a storage.
REFUSED = (TierFull, TierIOError, DurabilityLost, CheckpointDropped)
