"""Tickets of a store whose checkpoints go on to an archive."""

from __future__ import annotations

from typing import Any

from velocpy.callers import name_call
from velocpy.choices import TierName
from velocpy.errors import VelocError
from velocpy.ticket import GONE, Ticket

__all__ = ["ARCHIVE", "ArchivedTicket"]

ARCHIVE: TierName = "archive"


class ArchivedTicket(Ticket):
    """A ticket that also knows the archive."""

    __slots__ = ("_archived",)

    #: True: it is there; an error: it will not get there; None: it is not known to be there.
    _archived: bool | VelocError | None

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self._archived = None

    def durable(self, tier: TierName) -> bool:
        """As `Ticket.durable`."""
        return self._archived is True if tier == ARCHIVE else super().durable(tier)

    def wait(self, tier: TierName | None = None, timeout: float | None = None) -> None:
        """As `Ticket.wait`."""
        archiving = self._history._store._archiving
        if tier != ARCHIVE or (archiving is None and self._archived is not True):  # None: the store is closed
            super().wait(tier, timeout)
            return
        if archiving is None or self._archived is True:
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
        return self._archived is not None or bool(flags & GONE or failed)

    def _status(self) -> str:
        return f"durable in {ARCHIVE}" if self._archived is True else super()._status()
