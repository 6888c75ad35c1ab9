"""Unified Memory with the advice and the prefetch calls of Maurya et al., HPDC'23, section 5.2.2, in the device budget.

Captures write into memory preferred on the device; the oldest move to the host when the budget nears its end. Before
restores, memory moves to the device in the hinted order, no more of it than the budget holds and is not consumed yet.
Consumed memory is preferred on the host again. The calls are made by a thread beside the application. What device and
host budget do not hold goes to a file: Unified Memory itself knows no disk.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .card import Bytes, Card, Lane, Mark
from .manageddisk import ManagedDisk
from .workload import Workload

CHUNK = 2 << 20
HEADROOM = 4  # checkpoints that may be on their way to the host while captures go on


class ManagedCard(Card, Protocol):
    """A device with managed memory."""

    def managed(self, size: int) -> Bytes:
        """Managed memory."""
        ...

    def release_managed(self, memory: Bytes) -> None:
        """Gives it back."""
        ...

    def prefer(self, memory: Bytes, device: bool) -> None:
        """Advises where it should lie."""
        ...

    def move(self, memory: Bytes, device: bool, lane: Lane = None) -> None:
        """Enqueues moving it."""
        ...

    def managed_view(self, memory: Bytes) -> np.ndarray:
        """The bytes as the host sees them."""
        ...


class Managed:
    """The paper's comparison. All it manages would fit into the card's free memory."""

    name = "unified memory"

    def __init__(self, card: ManagedCard, workload: Workload, folder: Path) -> None:
        self._card, self._workload = card, workload
        places = [-(-size // CHUNK) * CHUNK for size in workload.sizes]
        self._memory = card.managed(sum(places))
        self._slots: list[Bytes] = []
        at = 0
        for place, size in zip(places, workload.sizes, strict=True):
            self._slots.append(self._memory[at : at + size])
            at += place
        self._down, self._up = card.lane(), card.lane()
        self._caller = ThreadPoolExecutor(1, "managed")
        self._disk: ManagedDisk | None = None
        if workload.disk and workload.total > workload.device + workload.host:
            self._disk = ManagedDisk(card, workload, self._slots, folder)

    def begin(self, workload: Workload) -> None:
        self._workload = workload
        self._resident: deque[int] = deque()
        self._leaving: deque[tuple[int, Future[Mark]]] = deque()
        self._coming: dict[int, Future[Mark]] = {}
        self._held = 0  # bytes on the device, or on their way
        self._ahead: deque[int] = deque(self._workload.keys if self._workload.hints == "all" else ())
        self._waiting: list[Future[Mark]] = []
        self._last_used: Mark | None = None
        if self._disk:
            self._disk.begin(workload)

    def checkpoint(self, key: int, source: Bytes) -> None:
        size = len(source)
        if self._disk:
            self._disk.make_room(size)
        while self._held + size > self._workload.device and self._leaving:
            self._card.after([self._left().result()])
        slot = self._slots[key]
        self._card.prefer(slot, device=True)
        self._card.move(slot, device=True)
        self._card.copy(slot, source)
        self._held += size
        self._resident.append(key)
        captured = self._card.mark()
        leaving = sum(self._workload.sizes[k] for k, _ in self._leaving)
        while self._resident and self._held - leaving > self._workload.device - HEADROOM * self._workload.largest:
            oldest = self._resident.popleft()
            leaving += self._workload.sizes[oldest]
            self._leaves(oldest, captured)

    def _leaves(self, key: int, captured: Mark) -> None:
        future = self._caller.submit(self._leave, key, captured)
        self._leaving.append((key, future))
        if self._disk:
            self._disk.below(key, future)

    def _leave(self, key: int, captured: Mark) -> Mark:
        self._card.prefer(self._slots[key], device=False)
        self._card.after([captured], self._down)
        self._card.move(self._slots[key], device=False, lane=self._down)
        return self._card.mark(self._down)

    def _left(self) -> Future[Mark]:
        """Who leaves first does not count any more: what takes its room has to wait for it."""
        gone, future = self._leaving.popleft()
        self._held -= self._workload.sizes[gone]
        return future

    def _come(self, key: int, used: Mark | None, left: list[Future[Mark]]) -> Mark:
        if self._disk:
            self._disk.wait_for(key)
        self._card.prefer(self._slots[key], device=True)
        self._card.after([*([used] if used else []), *(future.result() for future in left)], self._up)
        self._card.move(self._slots[key], device=True, lane=self._up)
        return self._card.mark(self._up)

    def wait_flushed(self) -> None:
        while self._resident:
            oldest = self._resident.popleft()
            self._leaves(oldest, self._card.mark())
        while self._leaving:
            self._left().result().wait()
        if self._disk:
            self._disk.write_all()

    def turn(self) -> None:
        if self._disk:
            self._disk.turn()
        self._prefetch()

    def _prefetch(self) -> None:
        while self._ahead:
            key = self._ahead[0]
            if key in self._resident:
                self._ahead.popleft()
                continue
            if self._disk and not self._disk.coming(key):
                return
            size = self._workload.sizes[key]
            left: list[Future[Mark]] = []
            while self._held + size > self._workload.device and self._leaving:
                left.append(self._left())
            self._waiting += left
            if self._held + size > self._workload.device:
                return
            self._ahead.popleft()
            self._held += size
            self._coming[key] = self._caller.submit(self._come, key, self._last_used, self._waiting)
            self._waiting = []

    def restore(self, key: int, following: int | None) -> Bytes:
        coming = self._coming.pop(key, None)
        if coming is not None:
            self._card.after([coming.result()])
            self._resident.append(key)
        else:
            if key not in self._resident and key in self._ahead:
                self._ahead.remove(key)
            if self._disk:
                self._disk.demand(key)
        if self._workload.hints == "one" and following is not None:
            self._ahead = deque([following])
        self._prefetch()
        return self._slots[key]

    def done(self, key: int) -> None:
        self._last_used = self._card.mark()
        if key in self._resident:
            self._resident.remove(key)
            self._held -= self._workload.sizes[key]
        self._caller.submit(self._card.prefer, self._slots[key], False)
        if self._disk:
            self._disk.consumed(key)
        self._prefetch()

    def ready(self, key: int) -> bool:
        return key in self._resident or key in self._coming

    def facts(self) -> dict[str, Any]:
        return self._disk.facts() if self._disk else {}

    def close(self) -> None:
        self._caller.shutdown()
        if self._disk:
            self._disk.close()
        self._card.join()
        self._slots.clear()
        self._card.release_managed(self._memory)
