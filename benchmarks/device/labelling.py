"""Algorithm 1 of Tan et al., ICPP'23, on one region: its stages on the device, and all of it with the copy to the host.

Each round labels a checkpoint whose chosen chunks have new bytes, and whose record has the bytes that they had before.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .beside import Subject
from .contest import GATHERERS, SEED, Times
from .differences import DIGEST, TILE, Difference, Form, Numbers, Region
from .encoded import fill
from .kernels import Bytes, Driver, Work
from .labels import COUNTED, COUNTS, SHIFT, STAGES, Labels, Record
from .ways import Host

METHODS = ("list", "tree")
BEFORE, AFTER = 1, 2
"""Numbers of the checkpoint that fills the record, and of the one that is timed."""


class Entries:
    """Pinned memory for counts and entries of so many chunks."""

    def __init__(self, driver: Driver, chunks: int) -> None:
        self.counts = driver.pinned(COUNTS.itemsize)
        self.firsts, self.shifts = driver.pinned(8 * chunks), driver.pinned(SHIFT * chunks)

    def found(self) -> dict[str, int]:
        """The counts."""
        return {name: int(number) for name, number in zip(COUNTED, self.counts.view("<u8"), strict=False)}


class Deduplication:
    """A region that is de-duplicated again and again: its lineage on the device, and the results of a checkpoint."""

    def __init__(
        self, driver: Driver, form: Form, method: str, at: int, size: int, gathered: int, blocks: int, capacity: int
    ) -> None:
        self.driver, self.form, self.method, self.gathered, self.size = driver, form, method, gathered, size
        chunks, tiles = -(-size // form.chunk), -(-size // TILE)
        self._leaves, self._leaves_bytes = driver.allocate(chunks * DIGEST), chunks * DIGEST
        self.sums, self.sums_bytes = driver.allocate(8 * tiles), 8 * tiles
        region = Region(at, size, self._leaves, 0, self.sums, chunks)
        self._made = Difference(driver, form, SEED, [[region]], gathered, blocks)
        self._record = Record.of(driver, capacity, driver.allocate)
        tree = method == "tree"
        self.labels = Labels(self._made, self._record, seed=SEED, tree=tree, data=gathered, blocks=blocks)

    def __str__(self) -> str:
        return f"{self.form}, {self.method}"

    def begin(self) -> None:
        """Queues the begin of a lineage: the record is empty, and to the first checkpoint all chunks have changed."""
        self._record.clear(self.driver)
        fill(self.driver, self._leaves, 0, self._leaves_bytes)

    def forget(self) -> None:
        """Queues the removal of all digests from the record."""
        self._record.clear(self.driver)

    def hash(self) -> None:
        """Queues the scan and the listing of what has changed."""
        self._made.clear()
        self._made.parts[0].scan()
        self._made.parts[0].list_changed()

    def queue(self) -> None:
        """Queues everything."""
        self.labels.clear()
        self.hash()
        self.labels.queue()

    def copy(self, host: Host, entries: Entries) -> int:
        """Copies first occurrences, entries and checksums' hashes to pinned memory; returns the first two's bytes."""
        stream = self.driver.stream
        host.take(entries.counts, 0, self.labels.counts, entries.counts.size, stream)
        host.take(host.sums, 0, self.sums, self.sums_bytes, stream)
        self.driver.synchronize()
        found = entries.found()
        sizes = found["bytes"], 8 * found["first_entries"], SHIFT * found["shift_entries"]
        host.take(host.data, 0, self.gathered, sizes[0], stream)
        host.take(entries.firsts, 0, self.labels.first_entries, sizes[1], stream)
        host.take(entries.shifts, 0, self.labels.shift_entries, sizes[2], stream)
        self.driver.synchronize()
        return sum(sizes)


class Labelling:
    """A method on a region of which chosen chunks change."""

    def __init__(self, form: Form, method: str, subject: Subject, gathered: int) -> None:
        self.driver, self.subject, self.gathered = subject.driver, subject, gathered
        blocks = GATHERERS * subject.processors
        # All chunks of two checkpoints, and the nodes above them.
        capacity = 4 * (subject.size // form.chunk)
        size = subject.size
        self.work = Deduplication(subject.driver, form, method, subject.at, size, gathered, blocks, capacity)
        self.labels = self.work.labels

    def ahead(self) -> None:
        """Queues a checkpoint whose digests an empty record gets, and then the change of the next one."""
        self.work.forget()
        self.subject.change()
        self.labels.begin(BEFORE)
        self.work.queue()
        self.subject.change()
        self.labels.begin(AFTER)

    def stages(self, rounds: int) -> Times:
        """Milliseconds of the device for each stage, and for all together, by round."""
        driver = self.driver

        def begin() -> None:
            self.labels.clear()
            self.work.hash()

        works: list[Work] = [begin, *(functools.partial(self.labels.queue, {stage}) for stage in STAGES)]
        names = ("hash", *STAGES)
        took: Times = {name: [] for name in (*names, "on device")}
        events = [driver.event() for _ in range(len(works) + 1)]
        for number in range(-1, rounds):
            self.ahead()
            driver.call("cuEventRecord", events[0], driver.stream)
            for event, work in zip(events[1:], works, strict=True):
                work()
                driver.call("cuEventRecord", event, driver.stream)
            driver.synchronize()
            if number >= 0:
                pairs = [*zip(events, events[1:], strict=False), (events[0], events[-1])]
                for name, (first, last) in zip(took, pairs, strict=True):
                    took[name].append(driver.milliseconds(first, last))
        return took

    def on_host(self, host: Host, entries: Entries, rounds: int) -> list[float]:
        """Milliseconds of the host until first occurrences, entries and checksums' hashes are in pinned memory."""
        took = []
        for number in range(-1, rounds):
            self.ahead()
            self.driver.synchronize()
            began = time.perf_counter()
            self.work.queue()
            self.work.copy(host, entries)
            if number >= 0:
                took.append((time.perf_counter() - began) * 1e3)
        return took

    def wrong(self) -> int:
        """How much is wrong of a checkpoint whose chosen chunks have bytes that nothing else has."""
        chosen, counts = self.subject.chosen, self.labels.counted()
        want = {
            "changed": chosen.size,
            "firsts": chosen.size,
            "bytes": chosen.size * self.work.form.chunk,
            "shift_entries": 0,
        }
        if any(counts[name] != number for name, number in want.items()):
            return 1
        entries = self.driver.download(self.labels.first_entries, 8 * counts["first_entries"]).view("<u8")
        return wrong_entries(entries, chosen, tree=self.work.method == "tree") + self.subject.differing(self.gathered)

    def move(self) -> tuple[float, int]:
        """One checkpoint in which the halves of the region have changed places: all chunks are shifted duplicates.

        Returns its milliseconds on the device, and how much was wrong. Its chunks must all be different.
        """
        driver = self.driver
        self.work.begin()
        self.labels.begin(BEFORE)
        self.work.queue()
        self._swap()
        self.labels.begin(AFTER)
        began, ended = driver.event(), driver.event()
        driver.call("cuEventRecord", began, driver.stream)
        self.work.queue()
        driver.call("cuEventRecord", ended, driver.stream)
        driver.synchronize()
        counts = self.labels.counted()
        entries = 2 if self.work.method == "tree" else self.labels.chunks
        wrong = counts["firsts"] + abs(counts["shift_entries"] - entries)
        self._swap()
        return driver.milliseconds(began, ended), wrong

    def _swap(self) -> None:
        at, half = self.subject.at, self.subject.size // 2
        self.driver.copy(self.gathered, at, half)
        self.driver.copy(at, at + half, half)
        self.driver.copy(at + half, self.gathered, half)


def wrong_entries(entries: npt.NDArray[np.uint64], chosen: Numbers, *, tree: bool) -> int:
    """In how many places entries of first occurrences are not those of the chosen chunks.

    Those of a tree are its largest subtrees, of a number of chunks that is a power of two.
    """
    position, level = entries >> np.uint64(24), entries & np.uint64(0xFFFFFF)
    if not entries.size:
        return chosen.size
    if not tree and level.any():
        return int(np.count_nonzero(level))
    size = np.uint64(1) << level
    before = np.cumsum(size) - size
    covered = np.repeat(position - before, size.astype(np.int64)) + np.arange(int(size.sum()), dtype=np.uint64)
    if covered.size != chosen.size:
        return max(covered.size, chosen.size)
    wrong = np.count_nonzero(covered != chosen) + np.count_nonzero(position % size)
    left, right = position[:-1], position[1:]
    siblings = (level[:-1] == level[1:]) & (left + size[:-1] == right) & (left // size[:-1] % np.uint64(2) == 0)
    return int(wrong + (np.count_nonzero(siblings) if tree else 0))


def rows(
    driver: Driver, forms: Sequence[Form], block: Bytes, shares: Sequence[float], rounds: int
) -> Iterator[dict[str, Any]]:
    """Rows of both methods on a region whose bytes are those of the block, none of whose chunks are equal."""
    size = block.size
    chunks = size // min(form.chunk for form in forms)
    host, entries = Host(driver, size, chunks, 1), Entries(driver, chunks)
    for form in forms:
        for method in METHODS:
            subject, gathered = Subject(driver, block, size), driver.allocate(size)
            work = Labelling(form, method, subject, gathered)
            for share in shares:
                subject.choose(form.chunk, share)
                took = work.stages(rounds)
                wrong = work.wrong()
                took["to the host"] = work.on_host(host, entries, rounds)
                yield _row(work, f"{100 * share:g} %", took, wrong + work.wrong())
                subject.restore()
            moved = [work.move() for _ in range(rounds)]
            yield _row(work, "moved", {"on device": [ms for ms, _ in moved]}, sum(wrong for _, wrong in moved))
            driver.release()


def _row(work: Labelling, changed: str, took: Times, wrong: int) -> dict[str, Any]:
    size = work.subject.size
    row: dict[str, Any] = {"what": str(work.work), "MiB": size >> 20, "changed": changed, "wrong": wrong}
    row |= {f"{n} µs": statistics.median(ms) * 1e3 for n, ms in took.items() if n not in ("on device", "to the host")}
    row |= {f"{n} GB/s": size / statistics.median(took[n]) / 1e6 for n in ("on device", "to the host") if n in took}
    return row | {f"{n} ms": ms for n, ms in took.items()}
