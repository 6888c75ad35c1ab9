"""Algorithm 1 of Tan et al., ICPP'23, on one region: its stages on the device, and all of it with the copy to the host.

Each round labels a checkpoint whose chosen chunks have new bytes, and whose record has the bytes that they had before.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .beside import TELLING, Subject, struct
from .contest import GATHERERS, SEED, Times, staged
from .differences import DIGEST, TILE, Difference, Form, Numbers, Region
from .encoded import fill
from .kernels import Bytes, Driver, Work, turns
from .labels import COUNTED, COUNTS, CUT_END, CUT_STAGES, REST, SHIFT, STAGES, Labels, Record
from .ways import AHEAD, Host, stream

METHODS = ("list", "tree")
BEFORE, AFTER = 1, 2
"""Numbers of the checkpoint that fills the record, and of the one that is timed."""
PARTS = 16
"""Cuts of a region whose first occurrences are copied while others are labelled."""


class Streams:
    """Streams beside the driver's own: one labels while that scans, and one copies."""

    def __init__(self, driver: Driver) -> None:
        self.labels, self.copies = stream(driver, -5), stream(driver, 0)


class Entries:
    """Pinned memory for counts and entries of so many chunks."""

    def __init__(self, driver: Driver, chunks: int) -> None:
        self.counts, self.ends = driver.pinned(COUNTS.itemsize), driver.pinned(CUT_END * PARTS)
        self.firsts, self.shifts = driver.pinned(8 * chunks), driver.pinned(SHIFT * chunks)

    def stored(self, cut: int) -> int:
        """The bytes of first occurrences up to the end of a cut that has told it; -1: before all."""
        return 0 if cut < 0 else int(self.ends.view("<u8")[3 * cut + 2])

    def found(self) -> dict[str, int]:
        """The counts."""
        return {name: int(number) for name, number in zip(COUNTED, self.counts.view("<u8"), strict=False)}

    def poison(self) -> None:
        """Overwrites what was found: the next checkpoint may have the same entries and counts."""
        found = self.found()
        self.firsts[: 8 * found["first_entries"]] = self.shifts[: SHIFT * found["shift_entries"]] = 0x5A
        self.counts[:] = self.ends[:] = 0


class Deduplication:
    """A region that is de-duplicated again and again: its lineage on the device, and the results of a checkpoint."""

    def __init__(
        self,
        driver: Driver,
        form: Form,
        method: str,
        at: int,
        size: int,
        gathered: int,
        blocks: int,
        capacity: int,
        parts: int = 1,
    ) -> None:
        """Of parts, each has as many whole tiles, and as many chunks of whole words of the bitmap."""
        self.driver, self.form, self.method, self.gathered, self.size = driver, form, method, gathered, size
        chunks, tiles = -(-size // form.chunk), -(-size // TILE)
        self._leaves, self._leaves_bytes = driver.allocate(chunks * DIGEST), chunks * DIGEST
        self.sums, self.sums_bytes = driver.allocate(8 * tiles), 8 * tiles
        self._record = Record.of(driver, capacity, driver.allocate)
        whole = Region(at, size, self._leaves, 0, self.sums, chunks)
        each, own = size // parts, chunks // parts
        cuts = [
            Region(at + i * each, each, self._leaves + i * own * DIGEST, 0, self.sums + i * (each // TILE) * 8, own)
            for i in range(parts)
        ]
        self._made, self.labels = self._launches([whole], whole, blocks)
        self._parted, self._labels_by_cut = self._made, self.labels
        if parts > 1:
            self._parted, self._labels_by_cut = self._launches(cuts, whole, blocks)
        self._gathered = [driver.event() for _ in cuts]

    def _launches(self, cuts: Sequence[Region], whole: Region, blocks: int) -> tuple[Difference, Labels]:
        made = Difference(self.driver, self.form, SEED, [[cut] for cut in cuts], self.gathered, blocks)
        chunks = [part.chunks for part in made.parts]
        tree = self.method == "tree"
        return made, Labels(
            made,
            self._record,
            seed=SEED,
            tree=tree,
            data=self.gathered,
            blocks=blocks,
            cuts=chunks,
            regions=[whole],
        )

    def __str__(self) -> str:
        return f"{self.form}, {self.method}"

    def begin(self) -> None:
        """Queues the begin of a lineage: the record is empty, and to the first checkpoint all chunks have changed."""
        self._record.clear(self.driver)
        fill(self.driver, self._leaves, 0, self._leaves_bytes)

    def forget(self) -> None:
        """Queues the removal of all digests from the record."""
        self._record.clear(self.driver)

    def number(self, checkpoint: int) -> None:
        """Tells the number of the next checkpoint."""
        self.labels.begin(checkpoint)
        self._labels_by_cut.begin(checkpoint)

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

    def serial(self, host: Host, entries: Entries) -> int:
        """Brings first occurrences, entries and checksums' hashes to the host; returns the bytes of the first two."""
        self.queue()
        stream = self.driver.stream
        found = self._found(self.labels, host, entries, stream)
        host.take(host.data, 0, self.gathered, found["bytes"], stream)
        return found["bytes"] + self._take_entries(self.labels, found, host, entries, stream)

    def overlapped(self, host: Host, entries: Entries, streams: Streams) -> int:
        """The same by cuts: while one is scanned, the one before is labelled, and an earlier one is copied."""
        driver, made, labels = self.driver, self._parted, self._labels_by_cut
        labels.clear()
        made.clear()
        for number in range(len(made.parts) + AHEAD):
            if number < len(made.parts):
                part, ready = made.parts[number], self._gathered[number]
                part.scan()
                driver.call("cuEventRecord", ready, driver.stream)
                driver.call("cuStreamWaitEvent", streams.labels, ready, 0)
                part.list_changed(streams.labels)
                labels.queue(CUT_STAGES, number, streams.labels)
                values = {
                    "from": labels.ends + CUT_END * (number + 1),
                    "to": entries.ends.ctypes.data + CUT_END * number,
                }
                driver.launch("velocpy_beside_tell", 1, 32, struct(TELLING, **values), streams.labels)
                driver.call("cuEventRecord", ready, streams.labels)
            if number == len(made.parts) - 1:
                labels.queue(REST, stream=streams.labels)
            if number >= AHEAD:
                driver.call("cuEventSynchronize", self._gathered[number - AHEAD])
                begin, end = entries.stored(number - AHEAD - 1), entries.stored(number - AHEAD)
                host.take(host.data, begin, self.gathered + begin, end - begin, streams.copies)
        found = self._found(labels, host, entries, streams.labels)
        stored = self._take_entries(labels, found, host, entries, streams.labels)
        driver.call("cuStreamSynchronize", streams.copies)
        return found["bytes"] + stored

    def _found(self, labels: Labels, host: Host, entries: Entries, stream: object) -> dict[str, int]:
        host.take(entries.counts, 0, labels.counts, entries.counts.size, stream)
        host.take(host.sums, 0, self.sums, self.sums_bytes, stream)
        self.driver.call("cuStreamSynchronize", stream)
        return entries.found()

    def _take_entries(self, labels: Labels, found: dict[str, int], host: Host, entries: Entries, stream: object) -> int:
        sizes = 8 * found["first_entries"], SHIFT * found["shift_entries"]
        host.take(entries.firsts, 0, labels.first_entries, sizes[0], stream)
        host.take(entries.shifts, 0, labels.shift_entries, sizes[1], stream)
        self.driver.call("cuStreamSynchronize", stream)
        return sum(sizes)


class Labelling:
    """A method on a region of which chosen chunks change."""

    def __init__(self, form: Form, method: str, subject: Subject, gathered: int, parts: int) -> None:
        self.driver, self.subject, self.gathered = subject.driver, subject, gathered
        blocks = GATHERERS * subject.processors
        # All chunks of two checkpoints, and the nodes above them.
        capacity = 4 * (subject.size // form.chunk)
        size = subject.size
        self.work = Deduplication(subject.driver, form, method, subject.at, size, gathered, blocks, capacity, parts)
        self.labels = self.work.labels
        self.wrong_on_host = 0

    def ahead(self) -> None:
        """Queues a checkpoint whose digests an empty record gets, and then the change of the next one."""
        self.work.forget()
        self.subject.change()
        self.work.number(BEFORE)
        self.work.queue()
        self.subject.change()
        self.work.number(AFTER)

    def stages(self, rounds: int) -> Times:
        """Milliseconds of the device for each stage, and for all together, by round."""

        def begin() -> None:
            self.labels.clear()
            self.work.hash()

        works: dict[str, Work] = {"hash": begin}
        works |= {stage: functools.partial(self.labels.queue, {stage}) for stage in STAGES}
        return staged(self.driver, works, rounds, self.ahead)

    def on_host(self, host: Host, entries: Entries, streams: Streams, rounds: int) -> Times:
        """Milliseconds of the host until all is in pinned memory, by turns: serial, overlapped, and Full."""
        ways: dict[str, Callable[[], object]] = {
            "serial": lambda: self.work.serial(host, entries),
            "overlapped": lambda: self.work.overlapped(host, entries, streams),
            "Full": lambda: self._full(host),
        }
        names = list(ways)
        took: Times = {name: [] for name in ways}
        for number in range(-1, rounds):
            for name in turns(names, number):
                self.ahead()
                self.driver.synchronize()
                began = time.perf_counter()
                ways[name]()
                if number >= 0:
                    took[name].append((time.perf_counter() - began) * 1e3)
                if name != "Full":
                    self.wrong_on_host += self._wrong_on_host(host, entries)
        return took

    def _full(self, host: Host) -> None:
        host.take(host.data, 0, self.subject.at, self.subject.size, self.driver.stream)
        self.driver.synchronize()

    def _wrong_on_host(self, host: Host, entries: Entries) -> int:
        found = entries.found()
        firsts = entries.firsts.view("<u8")[: found["first_entries"]].copy()
        entries.poison()
        return self._wrong(found, firsts, host.data.ctypes.data)

    def wrong(self) -> int:
        """How much is wrong of a checkpoint whose chosen chunks have bytes that nothing else has."""
        counts = self.labels.counted()
        firsts = self.driver.download(self.labels.first_entries, 8 * counts["first_entries"]).view("<u8")
        return self._wrong(counts, firsts, self.gathered)

    def _wrong(self, counts: dict[str, int], firsts: npt.NDArray[np.uint64], data: int) -> int:
        chosen = self.subject.chosen
        want = {
            "changed": chosen.size,
            "firsts": chosen.size,
            "bytes": chosen.size * self.work.form.chunk,
            "shift_entries": 0,
        }
        wrong = sum(counts[name] != number for name, number in want.items())
        wrong += wrong_entries(firsts, chosen, tree=self.work.method == "tree")
        return wrong + self.subject.differing(data)

    def move(self) -> tuple[float, int]:
        """One checkpoint in which the halves of the region have changed places: all chunks are shifted duplicates.

        Returns its milliseconds on the device, and how much was wrong. Its chunks must all be different.
        """
        driver = self.driver
        self.work.begin()
        self.work.number(BEFORE)
        self.work.queue()
        self._swap()
        self.work.number(AFTER)
        began, ended = driver.event(), driver.event()
        driver.call("cuEventRecord", began, driver.stream)
        self.work.queue()
        driver.call("cuEventRecord", ended, driver.stream)
        driver.synchronize()
        counts = self.labels.counted()
        entries = 2 if self.work.method == "tree" else self.labels.chunks
        wrong = counts["firsts"] + abs(counts["shift_entries"] - entries)
        if not wrong:
            shifts = driver.download(self.labels.shift_entries, SHIFT * entries).view("<u8").reshape(-1, 3)
            wrong = wrong_moved(shifts, self.labels.chunks, self.work.form.chunk)
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


def wrong_moved(shifts: npt.NDArray[np.uint64], chunks: int, chunk: int) -> int:
    """In how many places entries of shifted duplicates are not those of all chunks whose halves have changed places.

    The checkpoint before has stored all chunks, in the order of positions.
    """
    position, level = shifts[:, 0] >> np.uint64(24), shifts[:, 0] & np.uint64(0xFFFFFF)
    size = np.uint64(1) << level
    moved = (position + np.uint64(chunks // 2)) % np.uint64(chunks) * np.uint64(chunk)
    wrong = np.count_nonzero(position != np.cumsum(size) - size) + int(size.sum() != chunks)
    return int(wrong + np.count_nonzero(shifts[:, 1] != BEFORE) + np.count_nonzero(shifts[:, 2] != moved))


def rows(
    driver: Driver, forms: Sequence[Form], block: Bytes, shares: Sequence[float], rounds: int, parts: int = PARTS
) -> Iterator[dict[str, Any]]:
    """Rows of both methods on a region whose bytes are those of the block, none of whose chunks are equal."""
    size = block.size
    chunks = size // min(form.chunk for form in forms)
    host, entries, streams = Host(driver, size, chunks, 1), Entries(driver, chunks), Streams(driver)
    for form in forms:
        for method in METHODS:
            subject, gathered = Subject(driver, block, size), driver.allocate(size)
            work = Labelling(form, method, subject, gathered, parts)
            for share in shares:
                subject.choose(form.chunk, share)
                took = work.stages(rounds)
                wrong, work.wrong_on_host = work.wrong(), 0
                took |= work.on_host(host, entries, streams, rounds)
                yield _row(work, f"{100 * share:g} %", took, wrong + work.wrong_on_host)
                subject.restore()
            moved = [work.move() for _ in range(rounds)]
            yield _row(work, "moved", {"on device": [ms for ms, _ in moved]}, sum(wrong for _, wrong in moved))
            driver.release()


def _row(work: Labelling, changed: str, took: Times, wrong: int) -> dict[str, Any]:
    size = work.subject.size
    row: dict[str, Any] = {"what": str(work.work), "MiB": size >> 20, "changed": changed, "wrong": wrong}
    device = ("hash", *STAGES)
    row |= {f"{n} µs": statistics.median(took[n]) * 1e3 for n in device if n in took}
    row |= {f"{n} GB/s": size / statistics.median(ms) / 1e6 for n, ms in took.items() if n not in device}
    if "Full" in took:
        row["GB/s"] = max(row["serial GB/s"], row["overlapped GB/s"])
        row["by Full"] = row["Full GB/s"] / row["GB/s"]
    return row | {f"{n} ms": ms for n, ms in took.items()}
