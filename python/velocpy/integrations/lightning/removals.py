"""Removals of checkpoints that wait until those that were saved later are durable."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from velocpy.errors import CheckpointDropped, VelocError, WaitTimeout
from velocpy.ticket import Ticket

#: Tells a file from another one that takes its name.
Identity = tuple[int, int]


def identity(file: Path | None) -> Identity | None:
    """Which file this is, or which link; None: there is none."""
    if file is not None:
        with suppress(OSError):
            found = file.lstat()
            return found.st_ino, found.st_mtime_ns
    return None


@dataclass(frozen=True)
class Removal:
    """A removal that was asked for: of a file, of data, or of both."""

    #: The path as Lightning gave it; None: the file stands for another checkpoint now, or is gone.
    path: Any
    #: Which file it was then.
    identity: Identity | None
    #: Keys of the data.
    keys: tuple[str, ...]
    #: Keys of the checkpoints that were not durable then, and not to be removed.
    after: frozenset[str]


class Removals:
    """The checkpoints that are not known to be durable, and the removals that wait for them.

    A removal is due when each checkpoint for which it waits is durable, or is removed by a removal that is due: then
    those are durable for which that one waited.
    """

    def __init__(self) -> None:
        self._tickets: dict[str, Ticket] = {}  # in the order of their saves
        self._lost: set[str] = set()  # will never be durable, which the caller knows
        self._waiting: list[Removal] = []

    def saved(self, ticket: Ticket) -> None:
        """Notes a checkpoint that is not durable yet."""
        self._tickets[str(ticket.key)] = ticket

    def is_durable(self, key: str) -> bool:
        """Whether a checkpoint that exists is known to be durable."""
        return key not in self._tickets and key not in self._lost

    def ask(self, path: Any, which: Identity | None, keys: Iterable[str]) -> None:
        """Notes a removal."""
        keys = tuple(keys)
        going = {key for removal in self._waiting for key in removal.keys}.union(keys)
        after = frozenset(key for key in (*self._tickets, *self._lost) if key not in going)
        self._waiting.append(Removal(path, which, keys, after))

    def take_due(self) -> list[Removal]:
        """The removals that may be carried out now, in the order in which they were asked for; they are forgotten."""
        due: list[Removal] = []
        replaced: set[str] = set()
        for removal in reversed(self._waiting):  # what replaces the checkpoints of one was asked for later
            if all(self.is_durable(key) or key in replaced for key in removal.after):
                due.insert(0, removal)
                replaced.update(removal.keys)
        self._waiting = [removal for removal in self._waiting if removal not in due]
        for key in replaced:
            self._tickets.pop(key, None)
            self._lost.discard(key)
        return due

    def look(self) -> list[VelocError]:
        """Looks which checkpoints have become durable. Returns why others never will, each once."""
        return self._wait(dict(self._tickets), 0)

    def wait(self) -> list[VelocError]:
        """Waits until the checkpoints that stay are durable. Returns why others never will be."""
        going = {key for removal in self._waiting for key in removal.keys}
        return self._wait({key: ticket for key, ticket in self._tickets.items() if key not in going}, None)

    def _wait(self, tickets: dict[str, Ticket], timeout: float | None) -> list[VelocError]:
        failures = []
        for key, ticket in tickets.items():
            try:
                ticket.wait("disk", timeout=timeout)  # a wait also makes a lazy store begin to write
            except WaitTimeout:
                continue
            except VelocError as error:
                self._lost.add(key)
                if not isinstance(error, CheckpointDropped):  # which its owner knows
                    failures.append(error)
            del self._tickets[key]
        return failures
