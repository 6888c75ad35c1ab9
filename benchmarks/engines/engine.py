"""What a contender does: the calls of a shot."""

from __future__ import annotations

from typing import Any, Protocol

from .card import Bytes
from .workload import Workload


class Engine(Protocol):
    """Keeps the checkpoints of shots, one shot after the other."""

    name: str

    def begin(self, workload: Workload) -> None:
        """A new shot begins; nothing of the last one counts. Not timed. With all hints they are told here.

        It may differ from the one that the engine was made for in order and hints, not in sizes and caches.
        """
        ...

    def checkpoint(self, key: int, source: Bytes) -> None:
        """Captures the source as the application's lane will have it here; it is overwritten later on that lane."""
        ...

    def wait_flushed(self) -> None:
        """Returns when every checkpoint lies in the lowest tier."""
        ...

    def turn(self) -> None:
        """The restores begin."""
        ...

    def restore(self, key: int, following: int | None) -> Bytes:
        """The bytes of a checkpoint, valid on the application's lane until `done`. Following: what may be hinted."""
        ...

    def done(self, key: int) -> None:
        """What the application has enqueued so far was the last use of a checkpoint."""
        ...

    def ready(self, key: int) -> bool:
        """Whether the checkpoint lies, or will lie without anybody's doing, in the fastest tier. For traces only."""
        ...

    def facts(self) -> dict[str, Any]:
        """What the engine knows of the shot: bytes by link, reasons of blocking."""
        ...

    def close(self) -> None:
        """Gives everything back."""
        ...
