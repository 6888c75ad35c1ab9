"""Lineages that the Go package has labelled, compared with the results of the CUDA kernels."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from .containers import difference
from .differences import Difference, Form
from .kernels import Bytes, Driver
from .labels import SHIFT, SLOT, Labels, Record
from .lineages import FACTS, GATHERERS, ROOM, TOGETHER, Checkpoint, Room, Written, place, sequences

CAPACITY = struct.Struct("<Q")


@dataclasses.dataclass(frozen=True)
class Labelled:
    """A checkpoint, whose data are its first occurrences, with its entries and the length of the record behind it."""

    checkpoint: Checkpoint
    firsts: Bytes
    shifts: Bytes
    recorded: int


@dataclasses.dataclass(frozen=True)
class Lineage:
    """Checkpoints of the same regions, with the method List or Tree."""

    form: Form
    tree: bool
    seed: int
    capacity: int
    checkpoints: tuple[Labelled, ...]

    def __str__(self) -> str:
        return f"{self.form}, {'tree' if self.tree else 'list'}"

    @classmethod
    def of(cls, name: str, file: bytes) -> Lineage:
        """Reads a file of labelsFile in gocore/reduction/dedup, which defines the form."""
        chunk, tree, checkpoints, regions, seed = FACTS.unpack_from(file)
        (capacity,) = CAPACITY.unpack_from(file, FACTS.size)
        parts = sequences(name, file, FACTS.size + CAPACITY.size)

        def labelled() -> Labelled:
            written = tuple(Written(*(next(parts) for _ in range(4))) for _ in range(regions))
            checkpoint = Checkpoint(written, next(parts), next(parts))
            return Labelled(checkpoint, next(parts), next(parts), int(next(parts).view("<u8")[0]))

        found = tuple(labelled() for _ in range(checkpoints))
        if next(parts, None) is not None:
            raise ValueError(f"{name} has more than its {checkpoints} checkpoints")
        return cls(Form(chunk, False), bool(tree), seed, capacity, found)


def read(folder: Path) -> list[Lineage]:
    """All lineages of a folder."""
    return [Lineage.of(path.stem, path.read_bytes()) for path in sorted(folder.glob("*.labels"))]


def compare(driver: Driver, lineage: Lineage) -> list[str]:
    """Labels each checkpoint after the one before it, and tells what differs from the Go package."""
    found: list[str] = []
    before: Labelled | None = None
    record = np.full(2 * lineage.capacity * SLOT, 0xFF, np.uint8)
    for number, now in enumerate(lineage.checkpoints):
        texts, record = _compared(driver, lineage, number, record, before, now)
        found += [f"{lineage}, checkpoint {number}: {text}" for text in texts]
        driver.release()
        before = now
    return found


def _compared(
    driver: Driver, lineage: Lineage, number: int, record: Bytes, before: Labelled | None, now: Labelled
) -> tuple[list[str], Bytes]:
    room, written = Room(driver), now.checkpoint.regions
    olds = before.checkpoint.regions if before else (None,) * len(written)
    regions = [place(room, lineage.form, i, *pair) for i, pair in enumerate(zip(olds, written, strict=True))]
    regions = [region for region in regions if region.size > 0]
    launches = [regions[i : i + TOGETHER] for i in range(0, len(regions), TOGETHER)]
    data = room.place("data", sum(r.size for r in regions), 48)
    room.want(data, now.checkpoint.data)
    made = Difference(driver, lineage.form, lineage.seed, launches, data, GATHERERS, room.allocate)
    kept = Record(room.allocate(record.size), 2 * lineage.capacity, lineage.capacity, room.allocate(8))
    half = made.chunks // 64 * 32
    labels = Labels(
        made,
        kept,
        seed=lineage.seed,
        tree=lineage.tree,
        data=data,
        blocks=GATHERERS,
        allocate=room.allocate,
        cuts=[half, made.chunks - half],
    )
    room.give(kept.at, record)
    room.give(kept.length, np.array([before.recorded if before else 0], "<u8").view(np.uint8))
    room.give(labels.table, labels.rows)
    driver.upload(room.base, room.before)
    made.clear()
    labels.clear()
    for part in made.parts:
        part.scan()
        part.list_changed()
    labels.begin(number)
    labels.queue()
    texts = [*room.wrong(driver.download(room.base, ROOM)), *_wrong(driver, labels, now)]
    return texts, driver.download(kept.at, record.size)


def _wrong(driver: Driver, labels: Labels, now: Labelled) -> Iterator[str]:
    counts = labels.counted()
    wanted = {
        "changed": int(np.unpackbits(now.checkpoint.changed).sum()),
        "bytes": now.checkpoint.data.size,
        "first_entries": now.firsts.size // 8,
        "shift_entries": now.shifts.size // SHIFT,
        "recorded": now.recorded,
    }
    for name, number in wanted.items():
        if counts[name] != number:
            yield f"{name}: {counts[name]}, not {number}"
    for name, at, want in (
        ("entries of first occurrences", labels.first_entries, now.firsts),
        ("entries of shifted duplicates", labels.shift_entries, now.shifts),
    ):
        text = difference(driver.download(at, want.size), want) if want.size else ""
        if text:
            yield f"{name}: {text}"


def counted(lineages: Sequence[Lineage]) -> dict[str, int]:
    """How much was compared, for the settings of a report."""
    entries = sum(labelled.shifts.size // SHIFT for lineage in lineages for labelled in lineage.checkpoints)
    return {"labelled lineages": len(lineages), "shifted duplicates": entries}
