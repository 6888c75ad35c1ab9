"""Ways of a checkpoint to pinned host memory: all its bytes, or what has changed, serially, overlapped or directly."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np

from .beside import TELLING, struct
from .differences import TILE, TOTALS, Difference, Form, Numbers, Part
from .kernels import Bytes, Driver

AHEAD = 3
"""Parts whose kernels are queued before the first part is waited for."""
WRITERS = 64
"""Blocks of threads that gather into host memory: few, so that others scan meanwhile."""


class Host:
    """Pinned memory of the host, and which chunks the last way has copied there."""

    def __init__(self, driver: Driver, size: int, chunks: int, parts: int) -> None:
        self.driver = driver
        self.data, self.map = driver.pinned(size), driver.pinned(-(-chunks // 32) * 4)
        self.sums, self.totals = driver.pinned(8 * -(-size // TILE)), driver.pinned(TOTALS * parts)
        #: For each part that was copied: its chunks, how many have changed, and whether they are listed.
        self.parts: list[tuple[int, int, bool]] = []

    def poison(self) -> None:
        """Overwrites all but the data, which differs from that of each time before anyway."""
        for array in (self.map, self.sums, self.totals):
            array[:] = 0x5A
        self.parts = []

    def take(self, to: Bytes, offset: int, source: int, size: int, stream: object) -> None:
        """Queues a copy from the device."""
        if size:
            at = ctypes.c_void_p(to.ctypes.data + offset)
            self.driver.call("cuMemcpyDtoHAsync_v2", at, ctypes.c_uint64(source), ctypes.c_size_t(size), stream)

    def take_changes(self, part: Part, changed: int, bitmap: int, stream: object) -> None:
        """Queues a copy of the part's list, or of its piece of the bitmap if that is shorter, to the piece's place."""
        offset = sum(p[0] for p in self.parts) // 8
        size = part.chunks // 8
        listed = 4 * changed <= size
        self.parts.append((part.chunks, changed, listed))
        source, length = (part.list, 4 * changed) if listed else (bitmap + offset, size)
        self.take(self.map, offset, source, length, stream)

    def tell(self, part: Part, number: int, stream: object) -> None:
        """Queues a kernel that writes the totals of a part into host memory."""
        values = {"from": part.totals, "to": self.totals.ctypes.data + TOTALS * number}
        self.driver.launch("velocpy_beside_tell", 1, 32, struct(TELLING, **values), stream)

    def told(self, number: int) -> tuple[int, int]:
        """The changed chunks of a part that has told its totals, and where its data begins."""
        changed, _, begin = (int(n) for n in self.totals.view("<u8")[3 * number :][:3])
        return changed, begin

    def wrong_chunks(self, form: Form, count: int, chosen: Numbers) -> int:
        """In how many places lists and bitmaps of so many chunks are not those of the chosen ones, which ascend."""
        wrong, begin = 0, 0
        for chunks, changed, listed in self.parts:
            edges = np.searchsorted(chosen, [begin, begin + chunks])
            want = chosen[edges[0] : edges[1]] - np.uint32(begin)
            got = self.map[begin // 8 :][: 4 * changed if listed else chunks // 8]
            wrong += wrong_list(got.view("<u4"), form.marks(want)) if listed else wrong_bitmap(got, want, chunks)
            begin += chunks
        return wrong + abs(count - begin)


def wrong_list(got: Numbers, want: Numbers) -> int:
    """In how many places two lists differ."""
    if got.size != want.size:
        return max(got.size, want.size)
    return int(np.count_nonzero(got != want))


def wrong_bitmap(got: Bytes, chosen: Numbers, chunks: int) -> int:
    """How many bytes of a bitmap are not those of the chosen chunks."""
    flags = np.full(chunks, chosen.size == chunks, np.bool_)
    if chosen.size < chunks:
        flags[chosen] = True
    return int(np.count_nonzero(got[: -(-chunks // 8)] != np.packbits(flags, bitorder="little")))


class Ways:
    """The ways of one form of de-duplication. Each returns when everything is in host memory."""

    def __init__(self, host: Host, whole: Difference, parted: Difference, direct: Difference) -> None:
        self.driver, self.host = host.driver, host
        self.whole, self.parted, self.directed = whole, parted, direct
        self.copies, self.listing = stream(self.driver, 0), stream(self.driver, -5)
        self._scanned, self._gathered = ([self.driver.event() for _ in parted.parts] for _ in range(2))

    def full(self) -> None:
        """All bytes, by one copy."""
        region = self.whole.parts[0].regions[0]
        self.host.take(self.host.data, 0, region.at, region.size, self.driver.stream)
        self.driver.synchronize()

    def serial(self) -> None:
        """One launch of each kernel, and then the copies, whose lengths the host learns in between."""
        host, part, stream = self.host, self.whole.parts[0], self.driver.stream
        self.whole.queue()
        host.tell(part, 0, stream)
        self._take_sums(part, 0, stream)
        self.driver.synchronize()
        changed, _ = host.told(0)
        host.take(host.data, 0, self.whole.data, changed * self.whole.form.chunk, stream)
        host.take_changes(part, changed, self.whole.changed, stream)
        self.driver.synchronize()

    def overlapped(self) -> None:
        """In parts: while one is copied, the next ones are scanned, listed and gathered."""
        host, made = self.host, self.parted
        made.clear()
        for number in range(len(made.parts) + AHEAD):
            if number < len(made.parts):
                part = made.parts[number]
                self._scan_and_list(part, number)
                part.gather(self.listing)
                host.tell(part, number, self.listing)
                self.driver.call("cuEventRecord", self._gathered[number], self.listing)
            ready = number - AHEAD
            if ready >= 0:
                self.driver.call("cuEventSynchronize", self._gathered[ready])
                changed, begin = host.told(ready)
                self._take_sums(made.parts[ready], ready, self.copies)
                host.take(host.data, begin, made.data + begin, changed * made.form.chunk, self.copies)
                host.take_changes(made.parts[ready], changed, made.changed, self.copies)
        self.driver.call("cuStreamSynchronize", self.copies)

    def direct(self) -> None:
        """In parts: kernels gather into host memory, and the host waits once, at the end."""
        host, made = self.host, self.directed
        made.clear()
        for number, part in enumerate(made.parts):
            self._scan_and_list(part, number)
            part.gather(self.listing)
            self.driver.call("cuStreamWaitEvent", self.copies, self._scanned[number], 0)
            self._take_sums(part, number, self.copies)
        host.take(host.map, 0, made.changed, made.map_bytes, self.listing)
        for stream in (self.copies, self.listing):
            self.driver.call("cuStreamSynchronize", stream)
        host.parts = [(made.chunks, 0, False)]

    def _scan_and_list(self, part: Part, number: int) -> None:
        """Queues the scan, and behind it, beside the next scan, the listing."""
        part.scan()
        self.driver.call("cuEventRecord", self._scanned[number], self.driver.stream)
        self.driver.call("cuStreamWaitEvent", self.listing, self._scanned[number], 0)
        part.list_changed(self.listing)

    def _take_sums(self, part: Part, number: int, stream: object) -> None:
        size = 8 * part.tiles
        self.host.take(self.host.sums, number * size, part.regions[0].sums, size, stream)


def stream(driver: Driver, priority: int) -> ctypes.c_void_p:
    """A new stream. Of two with blocks of threads to begin, that of the lower number is first."""
    made = ctypes.c_void_p()
    driver.call("cuStreamCreateWithPriority", ctypes.byref(made), 1, priority)
    return made


def graph(driver: Driver, queue: Callable[[], object]) -> ctypes.c_void_p:
    """A graph of what the call queues on the driver's own stream, ready to be launched."""
    made, ready = ctypes.c_void_p(), ctypes.c_void_p()
    driver.call("cuStreamBeginCapture_v2", driver.stream, 2)
    queue()
    driver.call("cuStreamEndCapture", driver.stream, ctypes.byref(made))
    driver.call("cuGraphInstantiateWithFlags", ctypes.byref(ready), made, ctypes.c_uint64(0))
    return ready
