"""Tickets of a store whose checkpoints go on to an archive."""

from __future__ import annotations

import json
from numbers import Real
from typing import Any

from velocpy.callers import name_call
from velocpy.choices import TierName
from velocpy.errors import DurabilityLost, InvalidType, VelocError
from velocpy.interfaces import Key
from velocpy.ondisk import bytes_of_key, bytes_of_text
from velocpy.ticket import GONE, Ticket

__all__ = ["ARCHIVE", "ArchivedTicket", "Entry", "name_in_archive"]

ARCHIVE: TierName = "archive"


def name_in_archive(history: str, key: Key) -> tuple[str, str]:
    """What the core calls a key of a history: texts that JSON changes nothing of."""
    return bytes_of_text(history), json.dumps(bytes_of_key(key))


class Entry:
    """A version of a checkpoint, as what brings it to the archive knows it. It keeps neither store nor ticket."""

    __slots__ = ("archived", "captures", "damaged", "gone", "history", "key", "name", "number")

    def __init__(self, number: int, history: str, key: Key) -> None:
        self.number, self.history, self.key = number, history, key
        self.name = name_in_archive(history, key)
        #: How often the key was captured since all ranks have last brought it together, this version included.
        self.captures = 1
        #: It is known to be there.
        self.archived = False
        #: It was dropped, replaced or consumed before that.
        self.gone = False
        #: A rank's part of the key has not the bytes that were captured.
        self.damaged = False

    def settled(self) -> bool:
        """Whether a wait for it may end."""
        return self.archived or self.gone or self.damaged

    def require_sound(self) -> None:
        """Raises `DurabilityLost` if a part of the key is damaged."""
        if self.damaged and not self.archived:
            raise DurabilityLost(
                f"a rank's part of checkpoint {self.key!r} of history {self.history!r} is damaged, so the key is not "
                "in the archive; the log of every rank names the part. Capture it again on that rank, or drop it.",
                history=self.history, key=self.key, tier=ARCHIVE,
            )  # fmt: skip


class ArchivedTicket(Ticket):
    """A ticket that also knows the archive."""

    __slots__ = ("_entry",)

    def __init__(self, history: Any, key: Key, identity: int, place: Any, entry: Entry) -> None:
        super().__init__(history, key, identity, place)
        self._entry = entry

    def durable(self, tier: TierName) -> bool:
        """As `Ticket.durable`."""
        return self._entry.archived if tier == ARCHIVE else super().durable(tier)

    def wait(self, tier: TierName | None = None, timeout: float | None = None) -> None:
        """As `Ticket.wait`."""
        archiving = self._history._store._archiving
        if tier != ARCHIVE or (archiving is None and not self._entry.archived):  # None: the store is closed
            super().wait(tier, timeout)
            return
        if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, Real)):
            raise InvalidType(f"timeout is a {type(timeout).__name__}; give seconds, as a number, or None.")
        if archiving is None or self._entry.archived:
            return
        try:
            archiving.wait_for(self, timeout)
        except VelocError as error:
            name_call(error, self._place)
            raise

    def _settled(self, tier: str | None) -> bool:
        if tier != ARCHIVE:
            return super()._settled(tier)
        flags, _, failed = self._state()
        return self._entry.settled() or bool(flags & GONE or failed)

    def _status(self) -> str:
        return f"durable in {ARCHIVE}" if self._entry.archived else super()._status()
