"""Lineages that the Go package has de-duplicated, compared with the results of the CUDA kernels."""

from __future__ import annotations

import dataclasses
import itertools
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .containers import difference
from .differences import DIGEST, TILE, Difference, Form, Part, Region
from .encoded import UNTOUCHED
from .kernels import Bytes, Driver

FACTS = struct.Struct("<4IQ")
TOGETHER = 3
"""Regions of a launch, so that one launch's data begins where that of another ends."""
GATHERERS = 3
ROOM, GAP, ALIGN = 3 << 20, 32, 64


@dataclasses.dataclass(frozen=True)
class Written:
    """A region of a checkpoint, and what the Go package makes of it."""

    plain: Bytes
    leaves: Bytes
    digests: Bytes
    sums: Bytes


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """All regions of a checkpoint, the bitmap of their changed chunks, and these chunks."""

    regions: tuple[Written, ...]
    changed: Bytes
    data: Bytes


@dataclasses.dataclass(frozen=True)
class Lineage:
    """Checkpoints of the same regions."""

    form: Form
    seed: int
    checkpoints: tuple[Checkpoint, ...]

    @classmethod
    def of(cls, name: str, file: bytes) -> Lineage:
        """Reads a file of TestWriteLineages in gocore/reduction/dedup, which defines the form."""
        chunk, blocks, checkpoints, regions, seed = FACTS.unpack_from(file)
        parts = sequences(name, file, FACTS.size)
        found = tuple(
            Checkpoint(tuple(Written(*itertools.islice(parts, 4)) for _ in range(regions)), next(parts), next(parts))
            for _ in range(checkpoints)
        )
        if next(parts, None) is not None:
            raise ValueError(f"{name} has more than its {checkpoints} checkpoints")
        return cls(Form(chunk, bool(blocks)), seed, found)


def sequences(name: str, file: bytes, at: int) -> Iterator[Bytes]:
    """The sequences of bytes of a file, from an offset on."""
    while at < len(file):
        size = struct.unpack_from("<Q", file, at)[0]
        if at + 8 + size > len(file):
            raise ValueError(f"{name} ends at byte {len(file)}, in a sequence of {size} bytes")
        yield np.frombuffer(file, np.uint8, size, at + 8)
        at += 8 + size


def read(folder: Path) -> list[Lineage]:
    """All lineages of a folder."""
    return [Lineage.of(path.stem, path.read_bytes()) for path in sorted(folder.glob("*.bin"))]


class Room:
    """Memory of the device as it is before the launches and has to be after them. No kernel may write between parts."""

    def __init__(self, driver: Driver) -> None:
        self.base, self.used = driver.allocate(ROOM), 0
        self.before = np.full(ROOM, UNTOUCHED, np.uint8)
        self.after = self.before.copy()
        self.scratch = np.zeros(ROOM, np.bool_)
        self.names: dict[int, str] = {}  # by offset

    def place(self, name: str, size: int, skew: int = 0) -> int:
        """The address of a new part, so many bytes behind an aligned one."""
        at = -(-(self.used + GAP) // ALIGN) * ALIGN + skew
        self.used = at + size
        if self.used + GAP > ROOM:
            raise ValueError(f"{name} does not fit into {ROOM} bytes")
        self.names[at] = name
        return self.base + at

    def allocate(self, size: int) -> int:
        """The address of a part that is expected to be used for results which are not compared."""
        at = self.place("scratch", size)
        self.scratch[at - self.base :][:size] = True
        return at

    def hold(self, at: int, content: Bytes) -> None:
        """What the part holds before."""
        self.give(at, content)
        self.want(at, content)

    def give(self, at: int, content: Bytes) -> None:
        """What a part holds before that is not compared."""
        self.before[at - self.base :][: content.size] = content

    def want(self, at: int, content: npt.NDArray[np.generic], name: str = "") -> None:
        """What the part, which may get a name now, has to hold afterwards; it is compared."""
        if name:
            self.names[at - self.base] = name
        text = content.reshape(-1).view(np.uint8)
        self.after[at - self.base :][: text.size] = text
        self.scratch[at - self.base :][: text.size] = False

    def wrong(self, got: Bytes) -> Iterator[str]:
        """Which parts, or bytes behind them, differ from what has to be there."""
        differs = (got != self.after) & ~self.scratch
        if not differs.any():
            return
        places = sorted(self.names.items())
        edges = [*(at for at, _ in places), ROOM]
        for (at, name), end in zip(places, edges[1:], strict=True):
            if differs[at:end].any():
                want = np.where(self.scratch[at:end], got[at:end], self.after[at:end])
                yield f"{name}: {difference(got[at:end], want)}"
        if differs[: edges[0]].any():
            yield "bytes before the first part"


def compare(driver: Driver, lineage: Lineage) -> list[str]:
    """De-duplicates each checkpoint after the one before it, and tells what differs from the Go package."""
    found = []
    before: Checkpoint | None = None
    for number, checkpoint in enumerate(lineage.checkpoints):
        texts = _compared(driver, lineage, before, checkpoint)
        found += [f"{lineage.form}, checkpoint {number}: {text}" for text in texts]
        driver.release()
        before = checkpoint
    return found


def _compared(driver: Driver, lineage: Lineage, before: Checkpoint | None, now: Checkpoint) -> list[str]:
    room = Room(driver)
    olds = before.regions if before else (None,) * len(now.regions)
    regions = [place(room, lineage.form, i, *pair) for i, pair in enumerate(zip(olds, now.regions, strict=True))]
    regions = [region for region in regions if region.size > 0]
    launches = [regions[i : i + TOGETHER] for i in range(0, len(regions), TOGETHER)]
    data = room.place("data", sum(r.size for r in regions), 48)
    room.want(data, now.data)
    made = Difference(driver, lineage.form, lineage.seed, launches, data, GATHERERS, room.allocate)
    bitmap = np.zeros(made.map_bytes, np.uint8)
    bitmap[: now.changed.size] = now.changed
    room.want(made.changed, bitmap, "bitmap")
    flags = np.unpackbits(now.changed, bitorder="little", count=made.chunks)
    stored = 0
    for part in made.parts:
        own, flags = flags[: part.chunks], flags[part.chunks :]
        stored = _expect(room, lineage.form, part, own, stored)
    driver.upload(room.base, room.before)
    made.queue()
    return list(room.wrong(driver.download(room.base, ROOM)))


def place(room: Room, form: Form, number: int, old: Written | None, new: Written) -> Region:
    """Lays a region out, with what is kept of the checkpoint before, and with what the kernels have to make of it."""
    name, n = f"region {number} of {new.plain.size} B", new.plain.size
    region = Region(room.place(name, n, number % 4 * 16), n, 0, 0, 0)
    room.hold(region.at, new.plain)
    region.sums = room.place(f"{name}, checksums", new.sums.size, 8)
    region.leaves = room.place(f"{name}, digests of chunks", new.leaves.size, 16)
    region.digests = room.place(f"{name}, digests of blocks", new.digests.size, 32)
    if old is not None:
        same = old.plain.size == n
        region.comparable = new.leaves.size // DIGEST if same else min(old.plain.size, n) // form.chunk
        region.old_digests = old.digests.size // DIGEST
        room.hold(region.leaves, old.leaves[: new.leaves.size])
        room.hold(region.digests, old.digests[: new.digests.size])
    room.want(region.sums, new.sums)
    room.want(region.leaves, new.leaves)
    room.want(region.digests, new.digests)
    return region


def _expect(room: Room, form: Form, part: Part, flags: Bytes, stored: int) -> int:
    """Tells the room the results of one launch, by the flags of its chunks. Returns how many bytes are stored then."""
    marks = np.zeros(32 * part.words, np.uint8)
    chosen, lost, tile = [np.zeros(0, np.uint32)], 0, 0
    for region in part.regions:
        chunks = -(-region.size // form.chunk)
        own, flags = flags[:chunks], flags[chunks:]
        chosen.append(form.marks(np.flatnonzero(own).astype(np.uint32)) + np.uint32(32 * form.words * tile))
        lost += int(own[-1]) * (-region.size % form.chunk)
        tile += -(-region.size // TILE)
    listed = np.concatenate(chosen)
    marks[listed] = 1
    room.want(part.marks, np.packbits(marks, bitorder="little"), "marks")
    room.want(part.list, listed, "list")
    totals = np.array([listed.size, lost, stored], np.uint64)
    room.want(part.totals, totals, "totals")
    behind = np.full(4 * part.chunks - listed.nbytes, UNTOUCHED, np.uint8)
    room.want(part.list + listed.nbytes, behind)
    return stored + listed.size * form.chunk - lost


def counted(lineages: Sequence[Lineage]) -> dict[str, int]:
    """How much was compared, for the settings of a report."""
    checkpoints = [checkpoint for lineage in lineages for checkpoint in lineage.checkpoints]
    return {"lineages": len(lineages), "checkpoints": len(checkpoints), "regions": len(checkpoints[0].regions)}
