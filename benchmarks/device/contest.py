"""One form of de-duplication on one region: rounds of its kernels, and of its ways to the host beside Full."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from .beside import Subject
from .differences import BLOCK, DIGEST, TILE, TOTALS, Difference, Form, Region
from .kernels import Driver, Work, turns
from .ways import WRITERS, Host, Ways, wrong_bitmap, wrong_list

GATHERERS = 4
"""Blocks of threads that gather on the device, for each processor."""
SEED = 0x0123456789ABCDEF
AHEAD = 512 << 20
"""Bytes of the copy that keeps the device busy while the host queues."""

Times = dict[str, list[float]]


def staged(driver: Driver, works: dict[str, Work], rounds: int, ahead: Work) -> Times:
    """Milliseconds of the device for each of works in a row, and "on device" for all together, by round."""
    events = [driver.event() for _ in range(len(works) + 1)]
    took: Times = {name: [] for name in (*works, "on device")}
    for number in range(-1, rounds):
        ahead()
        driver.call("cuEventRecord", events[0], driver.stream)
        for event, work in zip(events[1:], works.values(), strict=True):
            work()
            driver.call("cuEventRecord", event, driver.stream)
        driver.synchronize()
        if number >= 0:
            pairs = [*zip(events, events[1:], strict=False), (events[0], events[-1])]
            for name, (begin, end) in zip(took, pairs, strict=True):
                took[name].append(driver.milliseconds(begin, end))
    return took


class Contest:
    """The memory of a form, and its rounds. The region's size is a multiple of the parts' number of tiles."""

    def __init__(self, form: Form, subject: Subject, host: Host, gathered: int, parts: int) -> None:
        driver = self.driver = subject.driver
        self.form, self.subject, self.host, self.gathered = form, subject, host, gathered
        size = subject.size
        self._leaves, self._sums = driver.allocate(size // form.chunk * DIGEST), driver.allocate(size // TILE * 8)
        self._digests = driver.allocate(size // BLOCK * DIGEST) if form.blocks else 0
        gatherers = GATHERERS * subject.processors
        self.whole = Difference(driver, form, SEED, self._regions(1), gathered, gatherers)
        parted = Difference(driver, form, SEED, self._regions(parts), gathered, gatherers)
        direct = Difference(driver, form, SEED, self._regions(parts), host.data.ctypes.data, WRITERS)
        self._ways = Ways(host, self.whole, parted, direct)

    def _regions(self, count: int) -> list[list[Region]]:
        """The region in parts. All of its digests count as comparable: to the first scan all chunks have changed."""
        each = self.subject.size // count
        return [[self._region(at, each)] for at in range(0, self.subject.size, each)]

    def _region(self, at: int, size: int) -> Region:
        leaves, sums = self._leaves + at // self.form.chunk * DIGEST, self._sums + at // TILE * 8
        region = Region(self.subject.at + at, size, leaves, 0, sums, size // self.form.chunk)
        if self.form.blocks:
            region.digests, region.old_digests = self._digests + at // BLOCK * DIGEST, size // BLOCK
        return region

    def ahead(self) -> None:
        """Queues a change of the chosen chunks, and a copy within the room for results."""
        self.subject.change()
        half = self.subject.size // 2
        self.driver.copy(self.gathered, self.gathered + half, min(half, AHEAD))

    def stages(self, rounds: int) -> Times:
        """Milliseconds of the device for each kernel, and for all together, by round."""
        part = self.whole.parts[0]

        def scan() -> None:
            self.whole.clear()
            part.scan()

        return staged(self.driver, {"scan": scan, "list": part.list_changed, "gather": part.gather}, rounds, self.ahead)

    def on_host(self, rounds: int, *, full: bool) -> tuple[Times, int]:
        """Milliseconds of the host for each way, by turns, and how much was wrong in host memory after the last round.

        Full is compared where all chunks are chosen, and must not be asked for elsewhere.
        """
        ways: dict[str, Callable[[], None]] = {
            "serial": self._ways.serial,
            "overlapped": self._ways.overlapped,
            "direct": self._ways.direct,
        }
        if full:
            ways["Full"] = self._ways.full
        names, wrong = list(ways), 0
        took: Times = {name: [] for name in names}
        for number in range(-1, rounds):
            for name in turns(names, number):
                milliseconds = self._timed(ways[name])
                if number >= 0:
                    took[name].append(milliseconds)
                if number == rounds - 1:
                    wrong += self._wrong_data() + (0 if name == "Full" else self._wrong_rest())
        return took, wrong

    def _timed(self, way: Callable[[], None]) -> float:
        self.host.poison()
        self.subject.change()
        self.driver.synchronize()
        began = time.perf_counter()
        way()
        return (time.perf_counter() - began) * 1e3

    def wrong_on_device(self) -> int:
        """How much is wrong in the results of the last launches on the device."""
        part, chosen, download = self.whole.parts[0], self.subject.chosen, self.driver.download
        marks = self.form.marks(chosen)
        if download(part.totals, TOTALS).view("<u8").tolist() != [chosen.size, 0, 0]:
            return 1
        listed = download(part.list, 4 * chosen.size).view("<u4") if chosen.size else chosen
        wrong = wrong_list(listed, marks)
        wrong += wrong_bitmap(download(part.marks, 4 * part.words), marks, 32 * part.words)
        wrong += wrong_bitmap(download(self.whole.changed, self.whole.map_bytes), chosen, part.chunks)
        return wrong + self.subject.differing(self.gathered)

    def _wrong_data(self) -> int:
        return self.subject.differing(self.host.data.ctypes.data)

    def _wrong_rest(self) -> int:
        """Of chunks and hashes. Where nothing changes, the hashes of the region's checksum repeat as its bytes do."""
        repeated = self.subject.block.size // TILE
        sums = self.host.sums.view("<u8")[: self.subject.size // TILE]
        wrong = int(np.count_nonzero(sums != self.driver.download(self._sums, sums.nbytes).view("<u8")))
        if not self.subject.chosen.size:
            wrong += int(np.count_nonzero(sums.reshape(-1, repeated) != sums[:repeated]))
        return wrong + self.host.wrong_chunks(self.form, self.whole.chunks, self.subject.chosen)
