"""A second reader of the objects of a lineage, written from docs/deduplication-format.md alone.

What it finds wrong is an error.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import NamedTuple

import xxhash
from second_decoder import decode

PART = 262144  # divides the plain bytes of a container
MOST_PARTS = 64
FULL, BASIC, LIST, TREE, RUNS = range(1, 6)


def check(right: bool, what: str) -> None:
    if not right:
        raise ValueError(what)


def text(name: bytes) -> str:
    return name.decode("utf-8", "surrogatepass")


class Place(NamedTuple):
    """Where the bytes of a chunk begin."""

    checkpoint: int
    offset: int


@dataclass
class Region:
    name: str
    size: int
    chunk: int
    places: list[Place] = field(default_factory=list)  # of its chunks

    @property
    def chunks(self) -> int:
        return -(-self.size // self.chunk)


class Numbers:
    """Reads bytes from the first one on."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        check(0 <= size <= len(self.data) - self.at, "bytes are missing")
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            check(shift < 70, "a varint is too long")

    def end(self) -> None:
        check(self.at == len(self.data), "superfluous bytes")


def unpacked(body: bytes, plain: int, form: int) -> bytes:
    """The plain bytes of a compressed body."""
    import zstandard  # most stores are read without it

    check(len(body) < plain <= len(body) << 15, "a length that no frame has")
    try:
        body = zstandard.ZstdDecompressor().decompress(body, max_output_size=plain)
    except zstandard.ZstdError as error:
        raise ValueError("a damaged frame") from error
    check(len(body) == plain, "a frame of another length")
    return rows_of(body) if form == 1 else body


def rows_of(data: bytes) -> bytes:
    """A difference whose entries were in columns."""
    firsts, shifts = struct.unpack_from("<QQ", data, 32)
    check(88 + 8 * firsts + 16 * shifts <= len(data), "entries are missing")
    begin = len(data) - 8 - 16 * shifts - 8 * firsts
    numbers = Numbers(data)
    parts = [numbers.take(begin), *map(packed, entries(numbers, firsts))]
    parts += [
        packed(entry) + packed(source)
        for entry, source in zip(entries(numbers, shifts), words(numbers, shifts), strict=True)
    ]
    return b"".join([*parts, numbers.take(8)])


def packed(word: int) -> bytes:
    return struct.pack("<Q", word)


def words(numbers: Numbers, count: int) -> list[int]:
    """Integers whose bytes are in eight columns."""
    data = numbers.take(8 * count)
    return [int.from_bytes(data[i::count], "little") for i in range(count)]


def entries(numbers: Numbers, count: int) -> list[int]:
    """Entries in columns, whose positions are differences."""
    found, before = [], 0
    for word in words(numbers, count):
        before = word + (before & -1 << 24) & (1 << 64) - 1
        found.append(before)
    return found


class Object:
    """An object, with its metadata opened and verified.

    Its containers are of the versions that are given; others are its sources.
    """

    def __init__(
        self, data: bytes, containers: int, versions: tuple[int, ...] = (1,), others: tuple[Object, ...] = ()
    ) -> None:
        meta = data[containers:]
        check(len(meta) >= 64, "no metadata")
        fields = struct.unpack_from("<8sIIQBBBBIQIIQQ", meta)
        magic, version, self.number, self.lineage, self.form, self.refers, *rest = fields
        part, zero, self.regions, table, body, plain, body_sum, own_sum = rest
        check((magic, version, zero) == (b"VELOCOBJ", 1, 0) and self.refers < 2, "no object of this version")
        check(part < MOST_PARTS, "a part that is too long")
        self.part = (part + 1) * PART
        check(64 + table + body == len(meta), "the parts of the metadata have another length")
        check(xxhash.xxh3_64_intdigest(meta[:56] + meta[64 : 64 + table]) == own_sum, "a damaged header or table")
        self.body = meta[64 + table :]
        check(xxhash.xxh3_64_intdigest(self.body) == body_sum, "a damaged body")
        if plain != body:
            self.body = unpacked(self.body, plain, self.form)
        numbers = Numbers(meta[64 : 64 + table])
        reference = self.reference(numbers.varint(), others) if self.refers else None
        self.sizes = [numbers.varint() for _ in range(self.regions)]
        check(reference is None or reference.sizes == self.sizes, "a reference with other lengths")
        check(reference is None or reference.part == self.part, "a reference with another part")
        at, self.firsts = 0, b""
        for size in self.sizes:
            for begin in range(0, size, self.part):
                length, plain, here = 16 * numbers.varint(), min(self.part, size - begin), len(self.firsts)
                before = None if reference is None else reference.firsts[here : here + plain]
                self.firsts += decode(data[at : at + length], plain, before, versions=versions)
                at += length
        numbers.end()
        check(at == containers, "the containers have another length")

    def reference(self, number: int, others: tuple[Object, ...]) -> Object:
        """The object with which the containers were encoded."""
        check([other.number for other in others] == [number], "the reference is not the only source")
        check(number < self.number and not others[0].refers, "a reference that cannot be one")
        return others[0]


class Lineage:
    """Objects of a lineage by number."""

    def __init__(self, objects: dict[int, Object]) -> None:
        self.objects = objects

    def restore(self, number: int, sources: list[int]) -> dict[str, bytes]:
        """The regions of a checkpoint, from its own object and the sources alone."""
        objects = {n: self.objects[n] for n in [*sources, number]}
        restored = {}
        for region in locate(objects, number):
            parts = []
            for i, place in enumerate(region.places):
                length = min(region.chunk, region.size - i * region.chunk)
                part = objects[place.checkpoint].firsts[place.offset : place.offset + length]
                check(len(part) == length, "a source ends behind the first occurrences")
                parts.append(part)
            restored[region.name] = b"".join(parts)
        return restored


def locate(objects: dict[int, Object], number: int) -> list[Region]:
    """The map of a checkpoint, chunk by chunk."""
    own = objects[number]
    check(own.number == number, "another object")
    return opened_map(own) if own.form == 2 else opened_difference(objects, own)


def opened_map(own: Object) -> list[Region]:
    numbers = Numbers(own.body)
    chunk = 1 << numbers.take(1)[0]
    checkpoints = [own.number]
    before = 0
    for _ in range(numbers.varint()):
        before += numbers.varint()
        checkpoints.append(before)
    offsets = opened_offsets(numbers)
    nexts = [0] * len(checkpoints)
    regions: list[Region] = []
    for _ in range(own.regions):
        name = text(numbers.take(numbers.varint()))
        region = Region(name, numbers.varint(), chunk)
        lasts: dict[int, tuple[int, int]] = {}
        while len(region.places) < region.chunks:
            run(numbers, offsets, region, checkpoints, nexts, lasts)
        regions.append(region)
    numbers.end()
    check(not offsets, "superfluous offsets")
    return regions


def opened_offsets(numbers: Numbers) -> list[int]:
    """The offsets that runs take from a list, the last one first."""
    count, width = numbers.varint(), numbers.take(1)[0]
    check(width <= 6 and count <= len(numbers.data), "no list of offsets")
    data = numbers.take(count * width)
    return [int.from_bytes(data[i::count], "little") for i in reversed(range(count))]


def run(
    numbers: Numbers,
    offsets: list[int],
    region: Region,
    checkpoints: list[int],
    nexts: list[int],
    lasts: dict[int, tuple[int, int]],
) -> None:
    count, how = divmod(numbers.varint(), 4)
    which = numbers.varint()
    begin = len(region.places) * region.chunk
    if how == 0:
        offset = nexts[which]
    elif how == 1:
        last_begin, last_offset = lasts[which]
        offset = last_offset + begin - last_begin
    else:
        check(bool(offsets), "an offset is missing")
        offset = offsets.pop()
    check(0 < count <= region.chunks - len(region.places), "a run of no chunks, or of too many")
    step = 0 if how == 3 else region.chunk
    region.places += [Place(checkpoints[which], offset + i * step) for i in range(count)]
    if how == 3:
        nexts[which] = offset + region.chunk
    else:
        nexts[which] = offset + min(count * region.chunk, region.size - begin)
        lasts[which] = begin, offset


def opened_difference(objects: dict[int, Object], own: Object) -> list[Region]:
    data = own.body
    fields = struct.unpack_from("<8sI4BIIIIQQQQQQ", data)
    magic, version, method, _, log, has_base, number, base, count, references = fields[:10]
    firsts, shifts, stored, length, seed, names_length = fields[10:]
    check((magic, version, number, seed) == (b"VELOCDIF", 1, own.number, own.lineage), "another difference")
    check(length == len(data) and stored == len(own.firsts), "another length")
    check(xxhash.xxh3_64_intdigest(data[:-8]) == struct.unpack("<Q", data[-8:])[0], "a damaged difference")
    numbers = Numbers(data)
    numbers.take(80)
    rows = [struct.unpack("<QQQ", numbers.take(24)) for _ in range(count)]
    regions = [Region(text(numbers.take(row[2])), row[0], 1 << log) for row in rows]
    numbers.take(-names_length % 8)
    listed = [own.number, *struct.unpack(f"<{references}I", numbers.take(4 * references))]
    numbers.take(-4 * references % 8)
    positions = [(region, i) for region in regions for i in range(region.chunks)]
    labels: dict[int, Place | None] = {}  # by position; None for a first occurrence
    if method == FULL:
        labels = dict.fromkeys(range(len(positions)))
    elif method == BASIC:
        bitmap = numbers.take(-(-len(positions) // 8))
        numbers.take(-len(bitmap) % 8)
        labels = {p: None for p in range(len(positions)) if bitmap[p // 8] >> p % 8 & 1}
    for _ in range(firsts):
        labels |= dict.fromkeys(covered(positions, method, *struct.unpack("<Q", numbers.take(8))))
    for _ in range(shifts):
        entry, source = struct.unpack("<QQ", numbers.take(16))
        step = 0 if source >> 63 else 1 << log
        checkpoint, offset = listed[source >> 48 & 0x7FFF], source & (1 << 48) - 1
        for i, position in enumerate(covered(positions, method, entry)):
            labels[position] = Place(checkpoint, offset + i * step)
    numbers.take(8)
    numbers.end()
    before = {region.name: region for region in locate(objects, base)} if has_base else {}
    used = 0
    for position, (region, i) in enumerate(positions):
        place = labels[position] if position in labels else before[region.name].places[i]
        if place is None:
            place = Place(own.number, used)
            used += min(region.chunk, region.size - i * region.chunk)
        region.places.append(place)
    check(used == stored, "superfluous first occurrences")
    return regions


def covered(positions: list[tuple[Region, int]], method: int, entry: int) -> range:
    position, extent = entry >> 24, entry & 0xFFFFFF
    region, i = positions[position]
    count = {LIST: 1, TREE: min(1 << extent, region.chunks - i), RUNS: extent}[method]
    return range(position, position + count)
