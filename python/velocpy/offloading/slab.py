"""Pinned host memory in segments, which grow up to a budget, and the slots that are cut from it."""

from __future__ import annotations

import ctypes
import logging
import mmap
import threading
from collections.abc import Callable
from typing import Any

from velocpy import pinned

log = logging.getLogger("velocpy")

#: Slots begin at multiples of this, so that copies of the device are aligned.
GRAIN = 512

#: A segment is at least this large, and at most `_MOST` unless one storage needs more.
_LEAST, _MOST = 64 << 20, 1 << 30

#: Events that a free range remembers before those that have passed are left out.
_EVENTS = 8


class Slot:
    """A range of a segment that one storage has."""

    __slots__ = ("address", "after", "buffer", "nbytes", "segment", "start")

    def __init__(self, segment: Segment, start: int, nbytes: int, after: list[Any]) -> None:
        self.segment = segment
        self.start = start
        self.nbytes = nbytes
        #: Events of the device behind which the range may be written.
        self.after = after
        #: The memory, for as many bytes as were asked for.
        self.buffer = memoryview(segment.memory)[start : start + nbytes]
        self.address = segment.address + start


class Segment:
    """One mapping, and its free ranges in the order of their addresses."""

    __slots__ = ("_unregister", "address", "free", "memory", "nbytes", "pinned")

    def __init__(self, nbytes: int, register: Callable[[int, int], Callable[[], None] | None] | None) -> None:
        self.memory = pinned.mapped(nbytes)
        self.nbytes = nbytes
        pinned.keep_from_children(self.memory)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self._unregister = None if register is None else register(self.address, nbytes)
        self.pinned = self._unregister is not None
        #: (start, bytes, events behind which the range may be written).
        self.free: list[tuple[int, int, list[Any]]] = [(0, nbytes, [])]

    @property
    def empty(self) -> bool:
        """Whether no slot has a part of it."""
        return len(self.free) == 1 and self.free[0][1] == self.nbytes

    def end(self) -> None:
        """Unregisters the memory. Every copy from or to it has ended."""
        if self._unregister is not None:
            self._unregister()
            self._unregister = None


class Slab:
    """Host memory of at most ``budget`` bytes, which grows by segments. Its caller holds a lock."""

    def __init__(self, budget: int, register: Callable[[int, int], Callable[[], None] | None] | None) -> None:
        self._register = register
        self.budget = budget
        self.segments: list[Segment] = []
        #: Bytes in slots.
        self.used = 0
        self._warned = False

    @property
    def mapped(self) -> int:
        """Bytes of all segments."""
        return sum(segment.nbytes for segment in self.segments)

    @property
    def pinned(self) -> int:
        """Bytes that are registered with the driver."""
        return sum(segment.nbytes for segment in self.segments if segment.pinned)

    def take(self, nbytes: int) -> Slot | None:
        """A slot; None: there is no room for it within the budget."""
        size = _rounded(nbytes)
        best: tuple[int, Segment, int] | None = None
        for segment in self.segments:
            for index, (_, free, _after) in enumerate(segment.free):
                if free >= size and (best is None or free < best[0]):
                    best = free, segment, index
        if best is None:
            grown = self._grow(size)
            if grown is None:
                return None
            best = grown.nbytes, grown, 0
        _, segment, index = best
        start, free, after = segment.free[index]
        if free == size:
            del segment.free[index]
        else:
            segment.free[index] = (start + size, free - size, list(after))
        self.used += size
        return Slot(segment, start, nbytes, after)

    def give(self, slot: Slot, after: list[Any]) -> None:
        """Frees a slot; what the events stand for may still read or write it on a device."""
        segment, start, size = slot.segment, slot.start, _rounded(slot.nbytes)
        slot.buffer.release()
        ranges = segment.free
        low, high = 0, len(ranges)
        while low < high:
            middle = (low + high) // 2
            if ranges[middle][0] < start:
                low = middle + 1
            else:
                high = middle
        if low < len(ranges) and start + size == ranges[low][0]:
            _, more, events = ranges.pop(low)
            size, after = size + more, after + events
        if low > 0 and ranges[low - 1][0] + ranges[low - 1][1] == start:
            start, more, events = ranges.pop(low - 1)
            size, after, low = size + more, events + after, low - 1
        if len(after) > _EVENTS:
            after = [event for event in after if not event.query()]
        ranges.insert(low, (start, size, after))
        self.used -= _rounded(slot.nbytes)

    def end(self, keep: bool) -> None:
        """Gives the segments back: to later slabs of the process, or to the system. No slot is in use."""
        segments, self.segments = self.segments, []
        for segment in segments:
            if keep and segment.empty and segment.pinned == (self._register is not None):
                segment.free = [(0, segment.nbytes, [])]
                with _idle_lock:
                    _idle.append(segment)
            else:
                segment.end()

    def _grow(self, size: int) -> Segment | None:
        left = self.budget - self.mapped
        if size > left:
            return None
        segment = _idle_segment(size, left, self._register is not None)
        if segment is None:
            wanted = max(size, min(max(_LEAST, self.mapped // 4), _MOST))
            try:
                segment = Segment(min(_paged(wanted), max(left, size)), self._register)
            except OSError as error:  # a limit of the process or of the system
                if not self._warned:
                    self._warned = True
                    log.warning("host memory for storages that are offloaded cannot be mapped: %s", error)
                return None
        self.segments.append(segment)
        return segment


#: Segments of slabs that have ended: to register memory takes longer than to use it.
_idle: list[Segment] = []
#: A context that ends in a garbage collection takes it within itself.
_idle_lock = threading.RLock()


def _idle_segment(least: int, most: int, pinned: bool) -> Segment | None:
    with _idle_lock:
        for index, segment in enumerate(_idle):
            if least <= segment.nbytes <= most and segment.pinned == pinned:
                return _idle.pop(index)
    return None


def trim() -> int:
    """Gives memory back to the system that slabs which have ended have left to later ones. Returns its bytes."""
    with _idle_lock:
        segments = list(_idle)
        _idle.clear()
    for segment in segments:
        segment.end()
    return sum(segment.nbytes for segment in segments)


def _rounded(nbytes: int) -> int:
    return -(-nbytes // GRAIN) * GRAIN


def _paged(nbytes: int) -> int:
    return -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
