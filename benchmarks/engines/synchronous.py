"""Synchronous pinned copies, as torch's ``save_on_cpu(pin_memory=True)`` makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .card import Bytes, Card
from .spill import SpillFile
from .workload import Workload


class Synchronous:
    """Each call waits for its copy; what the host has no room for goes through one more slot to the disk."""

    name = "synchronous"

    def __init__(self, card: Card, workload: Workload, folder: Path, direct: bool = True) -> None:
        self._card, self._sizes = card, workload.sizes
        count = len(workload.sizes)
        held = min(count, workload.host // workload.largest)
        self._slots = card.pinned(held, workload.largest)
        self._back = card.device(workload.largest)
        self._file = SpillFile(folder, workload.sizes, direct) if held < count else None
        self._held = held - 1 if self._file else held  # the last slot is the passage to the disk

    def begin(self, workload: Workload) -> None:
        pass

    def checkpoint(self, key: int, source: Bytes) -> None:
        slot = self._slots[min(key, self._held)] if self._file else self._slots[key]
        size = self._sizes[key]
        self._card.copy(slot[:size], source)
        self._card.join()
        if self._file and key >= self._held:
            self._file.write(key, self._card.memory(slot), size)

    def wait_flushed(self) -> None:
        pass

    def turn(self) -> None:
        pass

    def restore(self, key: int, following: int | None) -> Bytes:
        size = self._sizes[key]
        slot = self._slots[min(key, self._held)] if self._file else self._slots[key]
        if self._file and key >= self._held:
            self._file.load(key, self._card.memory(slot), size)
        self._card.copy(self._back[:size], slot[:size])
        self._card.join()
        return self._back[:size]

    def done(self, key: int) -> None:
        pass

    def ready(self, key: int) -> bool:
        return False

    def facts(self) -> dict[str, Any]:
        total = sum(self._sizes)
        facts = {"down GB": total / 1e9, "up GB": total / 1e9}
        if self._file:
            facts |= {"disk written GB": self._file.written / 1e9, "disk read GB": self._file.read / 1e9}
        return facts

    def close(self) -> None:
        self._slots.clear()
        if self._file:
            self._file.close()
