"""The disk below Unified Memory: a file, written and read by threads, for what device and host budget do not hold."""

from __future__ import annotations

import queue
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from .card import Bytes, Mark
from .spill import SpillFile
from .workload import Workload

THREADS = 3
AHEAD = 6  # checkpoints that are written before their room is wanted


class ManagedDisk:
    """Counts the bytes of managed memory in use; called by the application, except for `wait_for`."""

    def __init__(self, card: Any, workload: Workload, slots: list[Bytes], folder: Path) -> None:
        self._card, self._sizes, self._slots = card, workload.sizes, slots
        self._budget = workload.device + workload.host
        self._file = SpillFile(folder, workload.sizes)
        self._pool = ThreadPoolExecutor(THREADS, "managed disk")
        self._bounces: queue.Queue[Bytes] = queue.Queue()
        for piece in card.pinned(THREADS, workload.largest):
            self._bounces.put(piece)

    def begin(self, workload: Workload) -> None:
        """A new shot."""
        self._order = list(workload.keys if workload.hints == "all" else ())
        self._place = {key: place for place, key in enumerate(self._order)}
        self._next = 0
        self._held = 0
        self._below: dict[int, Future[Mark]] = {}
        self._writing: dict[int, Future[None]] = {}
        self._spilled: set[int] = set()
        self._fetching: dict[int, Future[None]] = {}
        self._file.written = self._file.read = 0

    def below(self, key: int, moved: Future[Mark]) -> None:
        """The checkpoint is on its way to the host, from where it can be written."""
        self._below[key] = moved

    def make_room(self, size: int) -> None:
        """Blocks until so many bytes fit into the budgets; writes somewhat ahead."""
        writing = sum(self._sizes[key] for key in self._writing)
        while self._below and self._held - writing + size > self._budget - AHEAD * max(self._sizes):
            # Who is wanted last, or the oldest.
            key = max(self._below, key=lambda k: self._place[k]) if self._place else next(iter(self._below))
            self._writing[key] = self._pool.submit(self._write, key, self._below.pop(key))
            writing += self._sizes[key]
        while self._held + size > self._budget and self._writing:
            self._wrote(next(iter(self._writing)))
        self._held += size

    def _wrote(self, key: int) -> None:
        self._writing.pop(key).result()
        self._spilled.add(key)
        self._held -= self._sizes[key]

    def write_all(self) -> None:
        """Everything lies in the file, and stays where it is."""
        for future in [self._pool.submit(self._write, key, moved) for key, moved in self._below.items()]:
            future.result()

    def turn(self) -> None:
        """The restores begin."""
        while self._writing:
            self._wrote(next(iter(self._writing)))
        self._fetch()

    def coming(self, key: int) -> bool:
        """Whether the bytes are in managed memory, or will be without anybody's doing."""
        return key not in self._spilled or key in self._fetching

    def wait_for(self, key: int) -> None:
        """Blocks until the bytes are in managed memory."""
        fetching = self._fetching.get(key)
        if fetching is not None:
            fetching.result()

    def demand(self, key: int) -> None:
        """Brings the bytes now, whatever the budget says."""
        if not self.coming(key):
            self._start(key)
        self.wait_for(key)

    def consumed(self, key: int) -> None:
        """The checkpoint is not needed any more."""
        self._held -= self._sizes[key]
        self._fetch()

    def _fetch(self) -> None:
        while self._next < len(self._order):
            key = self._order[self._next]
            if not self.coming(key):
                if self._held + self._sizes[key] > self._budget:
                    return
                self._start(key)
            self._next += 1

    def _start(self, key: int) -> None:
        self._held += self._sizes[key]
        self._fetching[key] = self._pool.submit(self._read, key)

    def _write(self, key: int, moved: Future[Mark]) -> None:
        moved.result().wait()
        size, bounce = self._sizes[key], self._bounces.get()
        try:
            memory = self._card.memory(bounce)
            np.copyto(np.frombuffer(memory, np.uint8)[:size], self._card.managed_view(self._slots[key]))
            self._file.write(key, memory, size)
        finally:
            self._bounces.put(bounce)

    def _read(self, key: int) -> None:
        size, bounce = self._sizes[key], self._bounces.get()
        try:
            memory = self._card.memory(bounce)
            self._file.load(key, memory, size)
            np.copyto(self._card.managed_view(self._slots[key]), np.frombuffer(memory, np.uint8)[:size])
        finally:
            self._bounces.put(bounce)

    def facts(self) -> dict[str, Any]:
        """Bytes over the disk."""
        return {"disk written GB": self._file.written / 1e9, "disk read GB": self._file.read / 1e9}

    def close(self) -> None:
        """Waits for the threads and gives everything back."""
        self._pool.shutdown()
        self._file.close()
