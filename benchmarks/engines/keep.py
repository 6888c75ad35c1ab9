"""Everything stays in device memory: one copy per capture, nothing on the way back. Nobody blocks for less."""

from __future__ import annotations

from typing import Any

from .card import Bytes, Card
from .workload import Workload


class Keep:
    """The floor of blocked time."""

    name = "keep"

    def __init__(self, card: Card, workload: Workload) -> None:
        if workload.total > card.room():
            raise MemoryError("keep: the device has no room for all checkpoints")
        self._card = card
        self._slots = [card.device(size) for size in workload.sizes]

    def begin(self, workload: Workload) -> None:
        pass

    def checkpoint(self, key: int, source: Bytes) -> None:
        self._card.copy(self._slots[key], source)

    def wait_flushed(self) -> None:
        self._card.join()

    def turn(self) -> None:
        pass

    def restore(self, key: int, following: int | None) -> Bytes:
        return self._slots[key]

    def done(self, key: int) -> None:
        pass

    def ready(self, key: int) -> bool:
        return True

    def facts(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        self._slots.clear()
