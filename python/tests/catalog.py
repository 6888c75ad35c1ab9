"""A second reader of the catalog's log, written from docs/format.md alone: whole logs only, damage is an error."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import xxhash

BEGIN, SNAPSHOT, COMPLETE, BATCH, CLOSED = range(1, 6)
HEAD = struct.Struct("<4sI4Q")
MOST = 67108864


def frames(path: Path, store: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Kind, sequence and payload of the frames from the first byte on, up to the first place where none is whole."""
    number, data, offset = int(path.name.removeprefix("catalog-"), 16), path.read_bytes(), 0
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
        found = list(frames(path, store)) if re.fullmatch(r"catalog-[0-9a-f]{16}", path.name) else []
        if not found or found[0][0] != BEGIN:
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
            if kind in (SNAPSHOT, BATCH):
                result += records(payload)
    return result, last, closed
