"""A writer of containers of version 2, from docs/reduction-format.md alone. Its payloads are not those of velocpy."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import xxhash

SECTION, CHUNK = 262144, 16384
PLAIN, FRAMES, SNAPPY, CHUNKS = range(4)


def padded(data: bytes) -> bytes:
    """The bytes, with zeros up to a multiple of 16."""
    return data + bytes(-len(data) % 16)


def chunked(region: bytes) -> bytes:
    """A container of version 1 of which only chunks of equal bytes are encoded."""
    parts = [region[at : at + CHUNK] for at in range(0, len(region), CHUNK)]
    tables = b"".join(struct.pack("<Q", xxhash.xxh3_64_intdigest(part)) for part in parts)
    modes = bytes(part == part[:1] * len(part) for part in parts)
    parts = [part[:1] if mode else part for part, mode in zip(parts, modes, strict=True)]
    tables += b"".join(struct.pack("<H", len(part)) for part in parts) + modes
    payloads = b"".join(map(padded, parts))
    total = len(padded(bytes(64) + tables)) + len(payloads)
    head = padded(struct.pack("<IBBHQQQ16x", 1, 1, 0, 0, len(region), len(parts), total) + tables)
    return struct.pack("<8sQ", b"VELOCFC\0", xxhash.xxh3_64_intdigest(head)) + head + payloads


@dataclass
class Sectioned:
    """What a container says; every field may be wrong, and the hash of the header is right."""

    plain: int
    word: int
    hashes: list[int]
    payloads: list[bytes]
    forms: list[int]
    exponent: int = 0
    flags: int = 0
    count: int | None = None
    lengths: list[int] = field(default_factory=list)
    longer: int = 0

    def sealed(self) -> bytes:
        """The container."""
        lengths = self.lengths or [len(payload) for payload in self.payloads]
        tables = struct.pack(f"<{len(self.hashes)}Q{len(lengths)}I", *self.hashes, *lengths) + bytes(self.forms)
        payloads = b"".join(map(padded, self.payloads))
        total = len(padded(bytes(64) + tables)) + len(payloads) + self.longer
        count = len(self.hashes) if self.count is None else self.count
        head = struct.pack("<IBBHQQQ16x", 2, self.word, self.exponent, self.flags, self.plain, count, total)
        head = padded(head + tables)
        return struct.pack("<8sQ", b"VELOCFC\0", xxhash.xxh3_64_intdigest(head)) + head + payloads


def sectioned(region: bytes, word: int, forms: Sequence[int]) -> Sectioned:
    """The container of a region. Its sections have these forms, by turns; plain bytes stand where a form makes more."""
    made = Sectioned(len(region), word, [], [], [])
    for number, at in enumerate(range(0, len(region), SECTION)):
        part = region[at : at + SECTION]
        form = forms[number % len(forms)]
        payload = WRITERS[form](part, word)
        if len(payload) > len(part):
            form, payload = PLAIN, part
        made.hashes.append(xxhash.xxh3_64_intdigest(part))
        made.payloads.append(payload)
        made.forms.append(form)
    return made


def planes(part: bytes, word: int) -> bytes:
    """Byte 0 of each word, then byte 1 of each, and so on; and what is left."""
    whole = len(part) // word * word
    return np.frombuffer(part[:whole], np.uint8).reshape(-1, word).T.tobytes() + part[whole:]


def frame(content: bytes, checksum: bool = False) -> bytes:
    """A frame of Zstandard, whose window is no longer than a section."""
    import zstandard  # most containers are written without it

    settings = zstandard.ZstdCompressionParameters(window_log=18, write_checksum=checksum)
    return zstandard.ZstdCompressor(compression_params=settings).compress(content)


def frames(part: bytes, word: int) -> bytes:
    """One for all planes but the last byte, and one with a checksum for that."""
    whole = planes(part, word)
    return frame(whole[:-1]) + frame(whole[-1:], checksum=True)


def snappy(content: bytes) -> bytes:
    """A block of Snappy, with copies of each kind."""
    parts, at, start = [varint(len(content))], 0, 0
    seen: dict[bytes, int] = {}
    while at + 4 <= len(content):
        before = seen.get(content[at : at + 4])
        seen[content[at : at + 4]] = at
        if before is None:
            at += 1
            continue
        length = 4
        while at + length < len(content) and length < 64 and content[before + length] == content[at + length]:
            length += 1
        parts += [literal(content[start:at]), copy(at - before, length)]
        at = start = at + length
    return b"".join([*parts, literal(content[start:])])


def literal(data: bytes) -> bytes:
    if not data:
        return b""
    size = len(data) - 1
    if size < 60:
        return bytes([size << 2]) + data
    told = size.to_bytes(-(-size.bit_length() // 8), "little")
    return bytes([59 + len(told) << 2]) + told + data


def copy(offset: int, length: int) -> bytes:
    if length <= 11 and offset < 2048:
        return bytes([1 | length - 4 << 2 | offset >> 8 << 5, offset & 255])
    if offset < 65536:
        return bytes([2 | length - 1 << 2]) + struct.pack("<H", offset)
    return bytes([3 | length - 1 << 2]) + struct.pack("<I", offset)


WRITERS: dict[int, Callable[[bytes, int], bytes]] = {
    PLAIN: lambda part, _: part,
    FRAMES: frames,
    SNAPPY: lambda part, word: snappy(planes(part, word)),
    CHUNKS: lambda part, _: chunked(part),
}


def block(kind: int, size: int, content: bytes, last: int = 1) -> bytes:
    """A block of a frame: of kind 0 its bytes, of kind 1 a byte that repeats, of kind 2 compressed ones."""
    return (size << 3 | kind << 1 | last).to_bytes(3, "little") + content


def bare(size: int, blocks: bytes) -> bytes:
    """A frame of Zstandard of one segment of so many bytes, of blocks that may be anything."""
    return struct.pack("<IBI", 0xFD2FB528, 0xA0, size) + blocks


def hostile(region: bytes, word: int) -> dict[str, bytes]:
    """Containers of a region with 100 bytes or more, of which something is wrong or may be. Their hashes are right."""
    whole, size = planes(region, word), len(region)
    good = sectioned(region, word, [FRAMES])

    def with_payload(payload: bytes, form: int = FRAMES) -> bytes:
        return replace(good, payloads=[payload], forms=[form]).sealed()

    def with_frame(blocks: bytes, told: int = size) -> bytes:
        return with_payload(bare(told, blocks))

    raw = block(0, size, whole)
    nested = sectioned(region, word, [SNAPPY]).sealed()
    half = size // 2
    made = {
        "right": good.sealed(),
        "flags": replace(good, flags=1).sealed(),
        "an unknown form": replace(good, forms=[4]).sealed(),
        "form 255": replace(good, forms=[255]).sealed(),
        "no section": replace(good, count=0).sealed(),
        "two sections": replace(good, count=2).sealed(),
        "a longer container": replace(good, longer=16).sealed(),
        "another hash": replace(good, hashes=[1]).sealed(),
        "a word of 3 bytes": replace(good, word=3).sealed(),
        "no exponent of floats": replace(good, exponent=9).sealed(),
        "a payload beyond the end": replace(good, lengths=[min(size, len(good.payloads[0]) + 16)]).sealed(),
        "no payload": with_payload(b""),
        "a short payload": with_payload(good.payloads[0][:-1]),
        "a byte behind the frames": with_payload(good.payloads[0] + b"\0"),
        "plain bytes that are too few": with_payload(region[:-1], PLAIN),
        "frames in another form": with_payload(good.payloads[0], SNAPPY),
        "chunks that are none": with_payload(good.payloads[0], CHUNKS),
        "sections in a section": with_payload(nested, CHUNKS),
        "chunks of fewer bytes": with_payload(chunked(bytes(size - 1)), CHUNKS),
        "frames of fewer bytes": with_payload(frame(whole[:-1])),
        "frames of more bytes": with_payload(frame(whole + b"\0")),
        "an empty frame behind": with_payload(good.payloads[0] + frame(b"")),
        "a frame that grows": with_payload(frame(bytes(4 << 20))),
        "blocks that grow": with_frame(b"".join(block(1, 131072, b"\0", 0) for _ in range(9)) + block(1, 1, b"\0")),
        "a frame with a wrong length": with_frame(block(1, 1, whole[:1]), size - 1),
        "a reserved block": with_frame(block(3, 0, b"")),
        "a block that is not the last": with_frame(block(1, size, b"\0", 0)),
        "a frame with a dictionary": with_payload(
            struct.pack("<IBBI", 0xFD2FB528, 0xA1, 7, half) + block(1, half, b"\0")
        ),
        "a window of 512 KiB": with_payload(struct.pack("<IBB", 0xFD2FB528, 0, 9 << 3) + block(1, 10, b"\0")),
        "a skippable frame before": with_payload(struct.pack("<II", 0x184D2A50, 3) + b"abc" + good.payloads[0]),
        "a copy of nothing": with_payload(varint(size) + copy(1, 8), SNAPPY),
        "a copy from before": with_payload(varint(size) + literal(whole[:4]) + copy(5, 8), SNAPPY),
        "a copy at no distance": with_payload(varint(size) + literal(whole[:4]) + copy(0, 8), SNAPPY),
        "a block of fewer bytes": with_payload(varint(size) + literal(whole[:4]), SNAPPY),
        "a block of more bytes": with_payload(
            varint(size) + literal(whole[:1]) + copy(1, 64) * (size // 64 + 1), SNAPPY
        ),
        "a block of another length": with_payload(varint(size - 1) + literal(whole[:1]) + copy(1, 64), SNAPPY),
        "a block of 4 GiB": with_payload(varint((1 << 32) - 1) + literal(whole[:1]), SNAPPY),
        "a length without an end": with_payload(b"\xff" * 10, SNAPPY),
        "a literal beyond the end": with_payload(varint(size) + b"\xfc\xff\xff\xff\xff" + whole[:9], SNAPPY),
    }
    if len(bare(size, raw)) <= size:
        made["a raw block"] = with_frame(raw)
    return made


def varint(size: int) -> bytes:
    """The length before a block of Snappy."""
    told = b""
    while size > 127:
        told += bytes([size & 127 | 128])
        size >>= 7
    return told + bytes([size])


def damaged(container: bytes, rng: random.Random) -> bytes:
    """The container with one change, whose header has a right hash where its tables are whole."""
    changed = bytearray(container)
    at = rng.randrange(16, len(changed))
    changed[at] = rng.randrange(256)
    count = int.from_bytes(changed[32:40], "little")
    tables = 64 + 13 * count + -(64 + 13 * count) % 16
    if tables <= len(changed):
        changed[8:16] = struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(changed[16:tables])))
    return bytes(changed)
