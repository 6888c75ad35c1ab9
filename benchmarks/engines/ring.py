"""What a good engineer writes in an afternoon: a ring of device slots, pinned host slots, side lanes, a spill file.

Every slot has room for the largest checkpoint. The host never waits for the device: who writes into a slot waits in its
lane. Prefetches follow the hints in their order; what leaves a cache is what the hints want last, or the oldest.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .card import Bytes, Card, Mark
from .spill import SpillFile
from .workload import Workload

DISK_THREADS = 3  # per direction; each moves a whole checkpoint
RESERVED = 4  # host slots that only reads from the disk may fill, so that they never wait for writes
NEVER = 1 << 40


@dataclasses.dataclass
class _Record:
    """Where a checkpoint is."""

    size: int
    device: int | None = None
    host: int | None = None
    disk: bool = False
    filled: Mark | None = None  # its device slot is: by the capture, or by a prefetch
    flushed: Mark | None = None  # its host slot is: by the flush
    moving: str = ""  # between host slot and disk: "spill" or "fetch"
    used: bool = False  # by the application, just now
    gone: bool = False


class Ring:
    """The baseline to beat."""

    def __init__(
        self, card: Card, workload: Workload, folder: Path, spill: str = "lazy", direct: bool = True, name: str = "ring"
    ) -> None:
        self.name = name
        self._card, self._workload, self._eager = card, workload, spill == "eager"
        count, size = len(workload.sizes), workload.largest
        slots = max(2, workload.device // size)
        self._device = [card.device(size) for _ in range(slots)]
        held = min(count, workload.host // size)
        self._host = card.pinned(held, size)
        if RESERVED >= held < count:
            raise ValueError(f"the ring wants more than {RESERVED} host slots")
        self._file = SpillFile(folder, workload.sizes, direct) if held < count else None
        self._down, self._up = card.lane(), card.lane()
        self._writers = ThreadPoolExecutor(DISK_THREADS, "spill") if self._file else None
        self._readers = ThreadPoolExecutor(DISK_THREADS, "fetch") if self._file else None
        self._turn = threading.Condition()
        self._records: dict[int, _Record] = {}
        self._failure: BaseException | None = None

    # --- the shot ---

    def begin(self, workload: Workload) -> None:
        with self._turn:
            self._settle()
            self._join()
            self._workload = workload
            self._records = {}
            self._free_device: list[tuple[int, list[Mark]]] = [(i, []) for i in range(len(self._device))]
            self._free_host: list[tuple[int, list[Mark]]] = [(i, []) for i in range(len(self._host))]
            self._on_device: dict[int, int] = {}
            self._on_host: dict[int, int] = {}
            self._pending: deque[int] = deque()
            self._spilling = 0
            self._all_down = self._reading = False
            self._urgent: int | None = None
            order = self._workload.keys if self._workload.hints == "all" else ()
            self._ahead = deque(order)
            self._place = {key: place for place, key in enumerate(order)}
            self._moved = {"down GB": 0, "up GB": 0}
            if self._file:
                self._file.written = self._file.read = 0

    def checkpoint(self, key: int, source: Bytes) -> None:
        with self._turn:
            while (free := self._device_slot(NEVER)) is None:
                self._wait()
            slot, marks = free
            self._card.after(marks)
            self._card.copy(self._device[slot][: len(source)], source)
            record = self._records[key] = _Record(len(source), device=slot, filled=self._card.mark())
            self._on_device[slot] = key
            assert record.filled is not None
            self._pending.append(key)
            self._flush()

    def wait_flushed(self) -> None:
        with self._turn:
            self._all_down = self._file is not None
            self._spill()
            while self._pending or (self._file and not all(r.disk for r in self._records.values())):
                self._wait()
                self._spill()
        for record in self._records.values():
            if record.flushed is not None:
                record.flushed.wait()

    def turn(self) -> None:
        with self._turn:
            self._reading = True
            self._advance()

    def restore(self, key: int, following: int | None) -> Bytes:
        with self._turn:
            self._urgent = key
            if self._workload.hints == "one":
                self._ahead = deque([] if following is None else [following])
            record = self._records[key]
            self._advance()
            while record.device is None:
                self._wait()
                self._advance()
            self._urgent, record.used = None, True
            assert record.filled is not None
            self._card.after([record.filled])
            return self._device[record.device][: record.size]

    def done(self, key: int) -> None:
        with self._turn:
            record = self._records[key]
            assert record.device is not None
            record.used, record.gone = False, True
            del self._on_device[record.device]
            self._free_device.append((record.device, [self._card.mark(), *_present(record.flushed)]))
            if record.host is not None and not record.moving:
                self._let_go(record)
            if record.flushed is None and key in self._pending:
                self._pending.remove(key)
            self._flush()
            self._advance()
            self._turn.notify_all()

    def ready(self, key: int) -> bool:
        with self._turn:
            return self._records[key].device is not None

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {name: value / 1e9 for name, value in self._moved.items()}
        if self._file:
            facts |= {"disk written GB": self._file.written / 1e9, "disk read GB": self._file.read / 1e9}
        return facts

    def close(self) -> None:
        try:
            with self._turn:
                self._settle()  # raises what a thread of the disk has failed with
        finally:
            for pool in (self._writers, self._readers):
                if pool:
                    pool.shutdown()
            self._join()
            self._device.clear()
            self._host.clear()
            if self._file:
                self._file.close()

    # --- what has to hold the lock ---

    def _flush(self) -> None:
        """Flushes what was captured, as far as there are host slots."""
        while self._pending:
            free = self._host_slot(NEVER, RESERVED if self._file else 0)
            if free is None:
                break
            slot, marks = free
            key = self._pending.popleft()
            record = self._records[key]
            assert record.device is not None
            self._card.after([*_present(record.filled), *marks], self._down)
            self._card.copy(self._host[slot][: record.size], self._device[record.device][: record.size], self._down)
            record.flushed, record.host = self._card.mark(self._down), slot
            self._on_host[slot] = key
            self._moved["down GB"] += record.size
            self._turn.notify_all()
        self._spill()

    def _spill(self) -> None:
        """Sends host slots to the disk: all of them, or as many as flushes wait for."""
        if not self._writers:
            return
        every = (self._eager and not self._reading) or self._all_down
        while self._spilling < (2 * DISK_THREADS if every else min(len(self._pending), 2 * DISK_THREADS)):
            keys = (k for k in self._on_host.values() if not self._records[k].disk and not self._records[k].moving)
            key = min(keys, default=None) if every else self._last_wanted(keys)
            if key is None:
                return
            self._records[key].moving = "spill"
            self._spilling += 1
            self._writers.submit(self._guarded, self._spill_one, key)

    def _advance(self) -> None:
        """Prefetches in the order of the hints; whoever the application waits for comes first."""
        if not self._reading:
            return
        while self._ahead and self._records[self._ahead[0]].gone:
            self._ahead.popleft()
        wanted = [key for key in self._wanted() if not self._records[key].gone]
        for key in wanted:
            record = self._records[key]
            if record.device is not None:
                continue
            if record.host is None or record.moving == "fetch":
                break
            free = self._device_slot(self._when(key))
            if free is None:
                break
            slot, marks = free
            self._card.after([*marks, *_present(record.flushed)], self._up)
            self._card.copy(self._device[slot][: record.size], self._host[record.host][: record.size], self._up)
            record.device, record.filled = slot, self._card.mark(self._up)
            self._on_device[slot] = key
            self._moved["up GB"] += record.size
        self._fetch(wanted)

    def _fetch(self, wanted: Iterable[int]) -> None:
        """Starts reads from the disk, in the order of the hints."""
        if not self._readers:
            return
        for key in wanted:
            record = self._records[key]
            if not record.disk or record.device is not None or record.host is not None:
                continue
            free = self._host_slot(self._when(key), 0)
            if free is None:
                return
            slot, marks = free
            record.host, record.moving, record.flushed = slot, "fetch", None
            self._on_host[slot] = key
            self._readers.submit(self._guarded, self._fetch_one, key, marks)

    def _wanted(self) -> Iterable[int]:
        if self._urgent is not None:
            yield self._urgent
        # No further than what can be moved ahead holds.
        reach = len(self._device) + (len(self._host) if self._file else 0)
        for place, key in enumerate(self._ahead):
            if place > reach:
                return
            if key != self._urgent:
                yield key

    def _device_slot(self, when: int) -> tuple[int, list[Mark]] | None:
        """A free slot, or that of whom is wanted last, if later than when; with what must have passed before."""
        if self._free_device:
            return self._free_device.pop(0)
        removable = (k for k in self._on_device.values() if self._removable(self._records[k]))
        key = self._last_wanted(removable)
        if key is None or (self._reading and self._when(key) <= when):
            return None
        record = self._records[key]
        slot = record.device
        assert slot is not None
        del self._on_device[slot]
        record.device = None
        return slot, [*_present(record.filled), *_present(record.flushed)]

    def _removable(self, record: _Record) -> bool:
        return not record.used and (record.flushed is not None or record.disk)

    def _host_slot(self, when: int, leave: int) -> tuple[int, list[Mark]] | None:
        """A free slot, or one whose checkpoint lies on the disk too; leaves some for others."""
        disk = self._on_host.values() if self._file else ()
        clean = [k for k in disk if self._records[k].disk and not self._records[k].moving]
        if len(self._free_host) + len(clean) <= leave:
            return None
        if self._free_host:
            return self._free_host.pop(0)
        key = self._last_wanted(clean)
        if key is None or (self._reading and when != NEVER and self._when(key) <= when):
            return None
        record = self._records[key]
        slot = record.host
        assert slot is not None
        del self._on_host[slot]
        record.host = None
        # A prefetch may still read it; once it does not, filled has passed.
        return slot, [*_present(record.filled), *_present(record.flushed)]

    def _last_wanted(self, keys: Iterable[int]) -> int | None:
        return max(keys, key=self._when, default=None)

    def _when(self, key: int) -> int:
        """When a checkpoint is wanted, as far as is known; among those of which nothing is, the oldest come last."""
        if key == self._urgent:
            return -1
        if self._place:
            return self._place[key]
        if key in self._ahead:
            return 0
        return NEVER - 1 - key

    def _let_go(self, record: _Record) -> None:
        slot = record.host
        assert slot is not None
        del self._on_host[slot]
        record.host = None
        self._free_host.append((slot, [*_present(record.filled), *_present(record.flushed)]))

    def _wait(self) -> None:
        if self._failure is not None:
            raise self._failure
        if not self._turn.wait(timeout=120):
            raise RuntimeError("the ring stands still")

    def _join(self) -> None:
        self._card.join()
        for lane in (self._down, self._up):
            self._card.mark(lane).wait()

    def _settle(self) -> None:
        """Waits for the threads of the disk."""
        while any(record.moving for record in self._records.values()):
            self._wait()

    # --- in the threads of the disk ---

    def _guarded(self, work, *arguments) -> None:  # type: ignore[no-untyped-def]
        try:
            work(*arguments)
        except BaseException as failure:
            with self._turn:
                self._failure = failure
                self._turn.notify_all()

    def _spill_one(self, key: int) -> None:
        record = self._records[key]
        assert record.flushed is not None
        assert record.host is not None
        assert self._file is not None
        record.flushed.wait()
        self._file.write(key, self._card.memory(self._host[record.host]), record.size)
        with self._turn:
            record.disk = True
            self._spilling -= 1
            self._moved_on(record)

    def _fetch_one(self, key: int, marks: list[Mark]) -> None:
        record = self._records[key]
        assert record.host is not None
        assert self._file is not None
        for mark in marks:
            mark.wait()
        self._file.load(key, self._card.memory(self._host[record.host]), record.size)
        with self._turn:
            self._moved_on(record)

    def _moved_on(self, record: _Record) -> None:
        record.moving = ""
        if record.gone and record.host is not None:
            self._let_go(record)
        self._flush()
        self._advance()
        self._turn.notify_all()


def _present(mark: Mark | None) -> tuple[Mark, ...]:
    return () if mark is None else (mark,)
