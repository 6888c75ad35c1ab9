"""The log and the records of the second reader, written from docs/format.md alone: damage is an error."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import xxhash

BEGIN, SNAPSHOT, COMPLETE, BATCH, CLOSED = range(1, 6)
HEAD = struct.Struct("<4sI4Q")
MOST = 67108864
#: Where the first complete of a file stands, and where the parts of its snapshot begin.
FIRST_COMPLETE, PARTS = 56, 104


def frames(path: Path, store: bytes, offset: int = 0) -> Iterator[tuple[int, int, bytes]]:
    """Kind, sequence and payload of the frames from one place on, up to the first place where none is whole."""
    number, data = int(path.name.removeprefix("catalog-"), 16), path.read_bytes()
    while offset + HEAD.size <= len(data):
        magic, kind, sequence, length, payload_sum, head_sum = HEAD.unpack_from(data, offset)
        sealed = store + struct.pack("<6Q", number, offset, kind, sequence, length, payload_sum)
        start, end = offset + HEAD.size, offset + HEAD.size + length
        if (
            magic != b"VFJ1"
            or length > MOST
            or xxhash.xxh3_64_intdigest(sealed) != head_sum
            or not BEGIN <= kind <= CLOSED
        ):
            return
        ending = -(-end // 8) * 8
        payload, padding = data[start:end], data[end:ending]
        if ending > len(data) or xxhash.xxh3_64_intdigest(payload) != payload_sum or any(padding):
            return
        yield kind, sequence, payload
        offset = ending


def whole(path: Path, store: bytes) -> list[tuple[int, int, bytes]]:
    """The frames of a file, none when it has no begin and none follows from a batch that was written before it."""
    found = list(frames(path, store))
    if len(found) == 1 and found[0][2][8:] == struct.pack("<Q", 1):  # the first complete was not written, or is damaged
        found += frames(path, store, PARTS)
    if not found:
        found = list(frames(path, store, FIRST_COMPLETE))
        if found and found[0][0] == BATCH:
            return [(BEGIN, 0, struct.pack("<QQ", found[0][1] - 1, 0)), *found]
    return found if found and found[0][0] == BEGIN else []


def records(payload: bytes) -> Iterator[bytes]:
    """The records of a snapshot's part or of a batch."""
    at = 0
    while at < len(payload):
        (length,) = struct.unpack_from("<I", payload, at)
        yield payload[at + 4 : at + 4 + length]
        at += 4 + length


def read(store_dir: Path, store: bytes) -> tuple[list[bytes], int, bool]:
    """All records that count, the number of the last batch, and whether the log was closed behind it."""
    files: list[tuple[int, bool, list[tuple[int, int, bytes]]]] = []
    for path in sorted(store_dir.iterdir()):
        found = whole(path, store) if re.fullmatch(r"catalog-[0-9a-f]{16}", path.name) else []
        if not found:
            continue
        behind, flags = struct.unpack("<QQ", found[0][2])
        if flags > 1:
            raise ValueError("of a later version")
        if flags and not any(kind == COMPLETE for kind, _, _ in found):
            continue
        if flags:
            files.clear()
        files.append((behind, bool(flags), found))
    result: list[bytes] = []
    last, closed = 0, False
    for number, (behind, snapshot, found) in enumerate(files):
        limit = files[number + 1][0] if number + 1 < len(files) else None
        if not snapshot and last < behind:
            raise ValueError(f"batches {last + 1} to {behind} are missing")
        last, closed = behind, False
        for kind, sequence, payload in found:
            if kind == BATCH and (limit is None or sequence <= limit):
                if sequence != last + 1:
                    raise ValueError(f"batch {last + 1} is missing")
                last = sequence
            elif kind == BATCH:
                break
            closed = kind == CLOSED
            if kind == SNAPSHOT:  # empty records fill a part up
                result += [record for record in records(payload) if record]
            if kind == BATCH:
                result += records(payload)
    return result, last, closed


HISTORY, LAYOUT, PUT, DROP, CLEAR, RETENTION, SERIAL, COMMITS = range(1, 9)
LEAF, BLOCK = 262144, 4096
RAW, ENCODED, DIFFERENCE, ENCODED_SECTIONS, DIFFERENCE_SECTIONS, REFERRING = range(6)
MOST_PLAIN = 1 << 30  # bytes of a container before the encoding
MOST_CONTAINERS, MOST_METADATA, MOST_SOURCES = 1 << 60, 1 << 31, 1024  # of an object: bytes of its parts, and number

Key = int | bytes


class Fields:
    """A body that is read from its front on."""

    def __init__(self, body: bytes) -> None:
        self.body, self.at = body, 0

    def take(self, count: int) -> bytes:
        if count > len(self.body) - self.at:
            raise ValueError("a body is too short")
        self.at += count
        return self.body[self.at - count : self.at]

    def numbers(self, types: str) -> tuple[int, ...]:
        types = "<" + types
        return struct.unpack(types, self.take(struct.calcsize(types)))

    def zero(self, types: str) -> None:
        if any(self.numbers(types)):
            raise ValueError("a reserved field is used")

    def key(self) -> Key:
        (kind,) = self.numbers("B")
        self.zero("B")
        if kind == 0:
            return self.numbers("q")[0]
        if kind != 1:
            raise ValueError("of a later version")
        (length,) = self.numbers("I")
        return self.take(length)

    def rest(self) -> bytes:
        return self.take(len(self.body) - self.at)

    def end(self) -> None:
        if self.at < len(self.body):
            raise ValueError("a body is too long")


@dataclass
class Layout:
    slot: int
    regions: list[tuple[int, int]]
    text: bytes

    def leaves(self) -> int:
        counts = (-(-size // LEAF) for _, size in self.regions)
        return sum(count for count in counts if count > 1)


@dataclass
class Source:
    """An object of a lineage: the own one of a difference, or one that it needs."""

    number: int
    containers: int
    metadata: int
    extents: list[tuple[int, ...]]

    def blocks(self) -> int:
        return -(-(self.containers + self.metadata) // BLOCK) * BLOCK


@dataclass
class Row:
    serial: int
    layout: Layout
    content: int
    align: int = 0
    extents: list[tuple[int, ...]] = field(default_factory=list)
    sums: tuple[int, ...] | None = None
    leaves: tuple[int, ...] | None = None
    meta: bytes = b""
    time: int = 0
    #: Of an encoded row: plain bytes of a container, and the length of each.
    part: int = 0
    containers: tuple[int, ...] = ()
    #: Of a difference: its lineage, its own object and those that it needs.
    lineage: int = 0
    own: Source | None = None
    sources: list[Source] = field(default_factory=list)

    @property
    def is_encoded(self) -> bool:
        return self.content in (ENCODED, ENCODED_SECTIONS)

    @property
    def is_difference(self) -> bool:
        return self.content in (DIFFERENCE, DIFFERENCE_SECTIONS, REFERRING)

    @property
    def versions(self) -> tuple[int, ...]:
        """Of its containers: those that may be."""
        return (1, 2) if self.content in (ENCODED_SECTIONS, DIFFERENCE_SECTIONS) else (1,)

    def parts(self) -> list[tuple[int, int]]:
        """Where in the slot the plain bytes of each container of an encoded row belong: offset and length."""
        return [
            (offset + at, min(self.part, size - at))
            for offset, size in self.layout.regions
            for at in range(0, size, self.part)
        ]

    def blocks(self) -> int:
        """The bytes of its extents."""
        if self.own is not None:
            return self.own.blocks()
        stored = self.layout.slot if self.content == RAW else sum(self.containers)
        return max(-(-stored // BLOCK), 1) * BLOCK


@dataclass
class Catalog:
    """What records add up to. A record that is refused leaves it in pieces."""

    names: dict[int, bytes] = field(default_factory=dict)
    layouts: dict[int, Layout] = field(default_factory=dict)
    rows: dict[bytes, dict[Key, Row]] = field(default_factory=dict)
    retention: dict[bytes, tuple[bool, int, int, list[Key]]] = field(default_factory=dict)
    #: Where the best are kept: how many, the names that lead to a number, and whether the largest are the best.
    best: dict[bytes, tuple[int, list[bytes], bool]] = field(default_factory=dict)
    serial: int = 0
    #: The data file in whose commit area the log goes on.
    commits: int = 0

    def apply(self, record: bytes) -> None:
        rest = Fields(record)
        while rest.at < len(record):
            (kind,) = rest.numbers("B")
            rest.zero("BBB")
            (length,) = rest.numbers("I")
            body = Fields(rest.take(length))
            if kind in READERS:
                READERS[kind](self, body)
                body.end()
            elif kind < 128:
                raise ValueError("of a later version")

    def history(self, body: Fields) -> None:
        (number,) = body.numbers("I")
        name = body.rest()
        if self.names.setdefault(number, name) != name:
            raise ValueError("an id stands for two names")
        self.rows.setdefault(name, {})

    def layout(self, body: Fields) -> None:
        (number,) = body.numbers("I")
        body.zero("I")
        slot, count = body.numbers("QI")
        body.zero("I")
        layout = Layout(slot, [], b"")
        end = 0
        for _ in range(count):
            offset, size = body.numbers("QQ")
            if not end <= offset <= offset + size <= slot:
                raise ValueError("regions overlap, or leave the slot")
            layout.regions.append((offset, size))
            end = offset + size
        layout.text = body.rest()
        if self.layouts.setdefault(number, layout) != layout:
            raise ValueError("an id stands for two layouts")

    def put(self, body: Fields) -> None:
        history, number, serial, content, flags = body.numbers("IIQBB")
        key, rows, layout = body.key(), self.rows[self.names[history]], self.layouts[number]
        row = Row(serial, layout, content)
        if content > REFERRING:
            body.rest()
        elif flags > 7:
            raise ValueError("of a later version")
        else:
            if flags & 4:
                (row.time,) = body.numbers("Q")
                if not 0 < row.time < 1 << 63:
                    raise ValueError("a time is none")
            row.align, count = body.numbers("II")
            row.extents = [body.numbers("QQQ") for _ in range(count)]
            row.sums = body.numbers(f"{len(layout.regions)}Q") if flags & 1 else None
            row.leaves = body.numbers(f"{layout.leaves()}Q") if flags & 2 else None
            if row.is_encoded:
                self.encoding(body, row)
            if row.is_difference:
                self.difference(body, row)
            if sum(size for _, _, size in row.extents) != row.blocks():
                raise ValueError("the extents do not hold the slot")
            row.meta = body.take(body.numbers("I")[0])
        if key in rows and rows[key].serial >= serial:
            raise ValueError("an older version replaces a newer one")
        rows[key] = row
        self.serial = max(self.serial, serial)

    def encoding(self, body: Fields, row: Row) -> None:
        row.part, count = body.numbers("QI")
        if row.part % LEAF or not 0 < row.part <= MOST_PLAIN:
            raise ValueError("a container of plain bytes that cannot be")
        row.containers = body.numbers(f"{count}I")
        for (_, plain), length in zip(row.parts(), row.containers, strict=True):
            most = -(-(64 + 11 * -(-plain // 16384)) // 16) * 16 + -(-plain // 16) * 16
            if length % 16 or not 0 < length <= most:
                raise ValueError("a container of a length that cannot be")

    def difference(self, body: Fields, row: Row) -> None:
        row.lineage, number = body.numbers("QI")
        row.own = self.object(body, number, row.extents)
        (count,) = body.numbers("I")
        if count > MOST_SOURCES:
            raise ValueError("too many sources")
        for _ in range(count):
            (number,) = body.numbers("I")
            source = self.object(body, number, [])
            (extents,) = body.numbers("I")
            source.extents = [body.numbers("QQQ") for _ in range(extents)]
            if sum(size for _, _, size in source.extents) != source.blocks():
                raise ValueError("the extents do not hold the source")
            row.sources.append(source)
        numbers = [source.number for source in [*row.sources, row.own]]
        if numbers != sorted(set(numbers)):
            raise ValueError("sources that do not ascend, or are later than the checkpoint")

    def object(self, body: Fields, number: int, extents: list[tuple[int, ...]]) -> Source:
        containers, metadata = body.numbers("QQ")
        if containers % 16 or containers > MOST_CONTAINERS or not 0 < metadata <= MOST_METADATA:
            raise ValueError("an object that cannot be")
        return Source(number, containers, metadata, extents)

    def ending(self, body: Fields) -> tuple[dict[Key, Row], int]:
        (history,) = body.numbers("I")
        body.zero("I")
        (serial,) = body.numbers("Q")
        self.serial = max(self.serial, serial)
        return self.rows[self.names[history]] if history in self.names else {}, serial

    def drop(self, body: Fields) -> None:
        rows, serial = self.ending(body)
        key = body.key()
        if key in rows and rows[key].serial <= serial:
            del rows[key]

    def clear(self, body: Fields) -> None:
        rows, serial = self.ending(body)
        for key in [key for key, row in rows.items() if row.serial <= serial]:
            del rows[key]

    def retain(self, body: Fields) -> None:
        history, flags, last, every, count = body.numbers("IIQQI")
        if flags > 7:
            raise ValueError("of a later version")
        name = self.names[history]
        self.retention[name] = (bool(flags & 1), last, every, [body.key() for _ in range(count)])
        self.best.pop(name, None)
        if flags & 6:
            best, count = body.numbers("QI")
            path = [body.take(body.numbers("I")[0]) for _ in range(count)]
            if not flags & 2 or not best or not 1 <= count <= 1000 or sum(map(len, path)) > 65536:
                raise ValueError("a rule about the best that cannot be")
            self.best[name] = (best, path, bool(flags & 4))

    def given(self, body: Fields) -> None:
        self.serial = max(self.serial, *body.numbers("Q"))

    def goes_on(self, body: Fields) -> None:
        (self.commits,) = body.numbers("Q")


READERS = {
    HISTORY: Catalog.history,
    LAYOUT: Catalog.layout,
    PUT: Catalog.put,
    DROP: Catalog.drop,
    CLEAR: Catalog.clear,
    RETENTION: Catalog.retain,
    SERIAL: Catalog.given,
    COMMITS: Catalog.goes_on,
}


def catalog(given: Iterable[bytes]) -> Catalog:
    """What records add up to."""
    result = Catalog()
    for record in given:
        result.apply(record)
    return result
