"""Labels of a checkpoint's changed chunks, subtrees of them, and the record: their memory and launches on a device.

They are defined by cuda/dedup_label_parameters.h. The results are those of gocore/reduction/dedup with the methods List
and Tree.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from .differences import DIGEST, SECRET, THREADS, WORD, Allocate, Difference, Region, role
from .encoded import fill
from .kernels import Bytes, Driver

PART = 4 * THREADS
"""Elements of a list that a block of threads reads."""
FEW = 4 * PART
"""With at most so many nodes in a level, one block of threads joins those of all levels above."""
LEVELS = 40
SLOT, SHIFT = 32, 24
"""Bytes of a slot of the record, and of an entry of shifted duplicates."""

CUT_STAGES, REST = ("find", "label", "gather"), ("join", "entries", "record")
STAGES = CUT_STAGES + REST
"""In this order. find searches the record, label finds duplicates within the checkpoint, join makes subtrees.

The first ones are for each cut, the others for all cuts together.
"""
CUT_END = 24
"""Bytes of what is counted up to the end of a cut: changed chunks, first occurrences, and their bytes."""

_NUMBERS = ("regions", "shift", "checkpoint", "oldest", "level", "tree", "mask", "blocks", "cut", "reserved")
_PLACES = (
    *("table", "changed", "counts", "ends", "before", "state", "list", "firsts", "shifts", "from", "to", "spare"),
    *("sources", "flags", "extent", "joined", "nodes", "chunk_table", "node_table", "record"),
    *("data", "first_entries", "shift_entries"),
)
LABELS = np.dtype(
    [
        *((n, "<u4") for n in _NUMBERS),
        *((n, "<u8") for n in ("first_word", "words", "node_seed")),
        ("key", "<u8", 4),
        *((n, "<u8") for n in ("slots", "capacity", *_PLACES)),
    ]
)
COUNTED = ("changed", "firsts", "bytes", "first_entries", "shift_entries", "recorded")
COUNTS = np.dtype(
    [
        *((n, "<u8") for n in COUNTED),
        *((n, "<u8", LEVELS) for n in ("first_nodes", "shift_nodes", "joined_nodes", "recorded_nodes")),
    ]
)


@dataclasses.dataclass(frozen=True)
class Record:
    """The record of a lineage on a device: where its slots and the number of its entries are."""

    at: int
    slots: int
    capacity: int
    length: int

    @classmethod
    def of(cls, driver: Driver, capacity: int, allocate: Allocate) -> Record:
        """An empty record. Half of its slots stay empty, so that searches are short."""
        record = cls(allocate(max(1, 2 * capacity) * SLOT), 2 * capacity, capacity, allocate(8))
        record.clear(driver)
        return record

    def clear(self, driver: Driver) -> None:
        """Queues the removal of all entries."""
        fill(driver, self.at, 0xFF, max(1, self.slots) * SLOT)
        fill(driver, self.length, 0, 8)


@dataclasses.dataclass(frozen=True)
class Step:
    """One launch: its stage and cut, its kernel, its blocks of threads, and what its parameter has of its own.

    One that reads parts has a state, of two words for each block.
    """

    stage: str
    cut: int
    kernel: str
    blocks: int
    reads_parts: bool
    values: dict[str, int]


class Labels:
    """The labels of a checkpoint whose changed chunks a `Difference` has marked: their memory, and the launches."""

    def __init__(
        self,
        made: Difference,
        record: Record,
        *,
        seed: int,
        tree: bool,
        data: int,
        blocks: int,
        allocate: Allocate | None = None,
        cuts: Sequence[int] = (),
        regions: Sequence[Region] = (),
    ) -> None:
        """Of cuts, the chunks are given; without, all chunks are one. Regions may be joined that lie side by side."""
        driver = self.driver = made.driver
        allocate = allocate or driver.allocate
        self.record, self.tree, self.chunks, self.data, self._blocks = record, tree, made.chunks, data, blocks
        self._regions = list(regions) or [r for part in made.parts for r in part.regions]
        mask = (1 << (2 * self.chunks - 1).bit_length()) - 1
        lists = {name: allocate(4 * self.chunks) for name in ("list", "firsts", "shifts", "wave", "next wave")}
        self._waves = lists.pop("wave"), lists.pop("next wave")
        self._first, self._shift = lists["firsts"], lists["shifts"]
        arrays = {"sources": 8, "flags": 1, "extent": 1, "joined": 1, "nodes": DIGEST}
        arrays |= {"first_entries": 8, "shift_entries": SHIFT}
        places = lists | {name: allocate(size * self.chunks) for name, size in arrays.items()}
        self.first_entries, self.shift_entries = places["first_entries"], places["shift_entries"]
        self._ones, self._ones_bytes = allocate(8 * (mask + 1)), 8 * (mask + 1)
        places |= {"chunk_table": self._ones, "node_table": self._ones + 4 * (mask + 1)}
        self.rows = self._rows(made.form.chunk)
        self.table = allocate(self.rows.size)
        driver.upload(self.table, self.rows)
        places |= {"table": self.table, "changed": made.changed, "data": data}
        places |= {"record": record.at, "before": record.length, "slots": record.slots, "capacity": record.capacity}
        self._ends_bytes = CUT_END * (len(cuts or (0,)) + 1)
        self.ends = places["ends"] = allocate(self._ends_bytes)
        # A cut without chunks has nothing to launch, and a driver refuses a launch without blocks.
        steps = [step for step in self._steps(_ranges(cuts or (self.chunks,))) if step.blocks]
        states = [16 * step.blocks if step.reads_parts else 0 for step in steps]
        self._zeros_bytes = COUNTS.itemsize + sum(states)
        self._zeros = self.counts = places["counts"] = allocate(self._zeros_bytes)
        common = np.zeros(1, LABELS)
        numbers = {"regions": len(self._regions), "shift": made.form.shift, "tree": int(tree), "mask": mask}
        numbers |= {"blocks": blocks, "node_seed": role(seed, 3)}
        for name, value in (places | numbers).items():
            common[name] = value
        common["key"][0] = [(w + (-role(seed, 3) if i % 2 else role(seed, 3))) & WORD for i, w in enumerate(SECRET[:4])]
        self._launches = []
        at = self.counts + COUNTS.itemsize
        for step, size in zip(steps, states, strict=True):
            parameter = common.copy()
            for name, value in ({"state": at} | step.values).items():
                parameter[name] = value
            self._launches.append((step, parameter))
            at += size

    def _rows(self, chunk: int) -> Bytes:
        before = 0
        rows = np.zeros((len(self._regions), 4), "<u8")
        for row, region in zip(rows, self._regions, strict=True):
            row[:] = region.at, region.size, region.leaves, before
            before += -(-region.size // chunk)
        return rows.reshape(-1).view(np.uint8)

    def _steps(self, cuts: Sequence[tuple[int, int]]) -> Iterator[Step]:
        for cut, (first, words) in enumerate(cuts):
            values = {"cut": cut, "first_word": first, "words": words}
            yield self._parts("find", "positions", words, values, cut)
            yield self._grid("find", "find", values, cut)
            yield self._grid("label", "label", values, cut)
            yield self._parts("label", "place", min(32 * words, self.chunks), values, cut)
            yield self._grid("gather", "gather_firsts", values, cut)
        if self.tree:
            yield from self._raised("firsts", self._first)
            yield self._grid("join", "put_nodes")
            yield from self._raised("shifts", self._shift)
        yield self._parts("entries", "list_firsts", self.chunks)
        yield self._parts("entries", "list_shifts", self.chunks)
        if self.record.slots:
            yield self._grid("record", "find_new_chunks")
            if self.tree:
                yield self._grid("record", "find_new_nodes")
            yield self._grid("record", "add_new")

    def _raised(self, kind: str, first: int) -> Iterator[Step]:
        """A wave for each level that may have many nodes, and one launch for all others."""
        begin, level = first, 0
        while True:
            waves = {"level": level, "from": begin, "to": self._waves[level % 2], "spare": self._waves[(level + 1) % 2]}
            nodes = (self.chunks >> level) + len(self._regions)
            if nodes <= FEW:
                yield Step("join", 0, f"raise_few_{kind}", 1, False, waves)
                return
            yield self._parts("join", f"raise_{kind}", nodes, waves)
            begin, level = waves["to"], level + 1

    def _grid(self, stage: str, kernel: str, values: dict[str, int] | None = None, cut: int = 0) -> Step:
        return Step(stage, cut, kernel, self._blocks, False, values or {})

    def _parts(
        self, stage: str, kernel: str, elements: int, values: dict[str, int] | None = None, cut: int = 0
    ) -> Step:
        return Step(stage, cut, kernel, -(-elements // PART), True, values or {})

    def begin(self, checkpoint: int) -> None:
        """Tells the launches the checkpoint's number. The places of all checkpoints in the record are used."""
        for _, parameter in self._launches:
            parameter["checkpoint"] = checkpoint

    def clear(self) -> None:
        """Queues the clearing of counts, states and tables."""
        fill(self.driver, self._zeros, 0, self._zeros_bytes)
        fill(self.driver, self.ends, 0, self._ends_bytes)
        fill(self.driver, self._ones, 0xFF, self._ones_bytes)

    def queue(self, stages: Collection[str] = STAGES, cut: int | None = None, stream: object = None) -> None:
        """Queues the launches of some stages, which come one behind the other; None: those of all cuts."""
        for step, parameter in self._launches:
            if step.stage in stages and cut in (None, step.cut):
                self.driver.launch(f"velocpy_dedup_{step.kernel}", step.blocks, THREADS, parameter, stream)
        if "record" in stages and self.record.slots:
            source = ctypes.c_uint64(self.counts + 8 * COUNTED.index("recorded"))
            on = self.driver.stream if stream is None else stream
            self.driver.call(
                "cuMemcpyDtoDAsync_v2", ctypes.c_uint64(self.record.length), source, ctypes.c_size_t(8), on
            )

    def counted(self) -> dict[str, int]:
        """What the launches have counted, but for the levels."""
        counts = self.driver.download(self.counts, COUNTS.itemsize).view(COUNTS)[0]
        return {name: int(counts[name]) for name in COUNTED}


def _ranges(cuts: Sequence[int]) -> list[tuple[int, int]]:
    """The first word of the bitmap, and the number of words, of cuts of so many chunks."""
    found, first = [], 0
    for chunks in cuts:
        if first % 32:
            raise ValueError(f"a cut begins with chunk {first}, which is not the first one of a word of the bitmap")
        found.append((first // 32, -(-chunks // 32)))
        first += chunks
    return found
