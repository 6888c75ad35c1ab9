"""A second reader of stores, written from docs/format.md alone, in plain Python: what it finds wrong is an error."""

from __future__ import annotations

import contextlib
import json
import struct
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from catalog import BLOCK, LEAF, RAW, REFERRING, Catalog, Fields, Key, Row, Source, catalog, read
from second_decoder import decode
from second_object import Lineage, Object

MAGIC = b"VELOCPY\0"
HEAD = 4096
COMMITTED = 1 << 24  # bytes that a writer commits in a commit area at most


@dataclass
class Identity:
    """What makes a directory a store."""

    store: bytes
    segment: int
    heads: bool
    index: int
    commits: int


def identity(path: Path) -> Identity:
    """The one of a store; one right copy is enough, and the first file decides."""
    first, second = (path / "velocpy.store", path / "velocpy.copy")
    data = first.read_bytes() if first.exists() else b""
    right = [copy for copy in (data[:4096], data[4096:8192]) if len(copy) == 4096 and _is_right(copy)]
    if not right and second.exists():
        right = [copy for copy in (second.read_bytes(),) if len(copy) == 4096 and _is_right(copy)]
    if not right or right[0] != right[-1]:
        raise ValueError("no identity, or two")
    version, zero, store, segment, needed = struct.unpack_from("<II16sQQ", right[0], 8)
    if version != 1 or needed not in (0, 1, 3, 7):
        raise ValueError("of a later version")
    if zero or segment % 4096 or not 4096 <= segment <= 1 << 50:
        raise ValueError("an identity that cannot be")
    half = min(max(-(-segment // (32 * 4096)) * 4096, 16384), 1 << 26)
    area = min(max(-(-segment // (1024 * 4096)) * 4096, 16384), 1 << 18)
    return Identity(store, segment, bool(needed & 1), 2 * half if needed & 2 else 0, area if needed & 4 else 0)


def _is_right(copy: bytes) -> bool:
    (told,) = struct.unpack_from("<Q", copy, 48)
    return copy[:8] == MAGIC and xxhash.xxh3_64_intdigest(copy[:48]) == told and not any(copy[56:])


@dataclass
class Region:
    """A region of a checkpoint."""

    name: str | int
    library: int
    place: int
    dtype: str
    array: np.ndarray[Any, Any]


def checkpoint(path: Path, row: Row) -> tuple[list[Region], Any]:
    """The regions of a row, and its meta, with that the values of a tree; every checksum is compared."""
    found = identity(path)
    if row.is_difference:
        slot = _restored(path, found, row)
    else:
        slot = b"".join(_extent(path, found, *extent) for extent in row.extents)
    if row.is_encoded:
        slot = _decoded(row, slot)
    regions, _ = _described(row.layout.text, slot)
    spans = [(offset, offset + size) for offset, size in row.layout.regions]
    if [(begin, end) for _, begin, end in regions] != spans:
        raise ValueError("the description is that of another layout")
    leaves = []
    for number, (begin, end) in enumerate(spans):
        hashes = [
            xxhash.xxh3_64_intdigest(slot[at : min(at + LEAF, end)]) for at in range(begin, max(end, begin + 1), LEAF)
        ]
        if len(hashes) > 1:
            leaves += hashes
            hashes = [xxhash.xxh3_64_intdigest(struct.pack(f"<{len(hashes)}Q", *hashes))]
        if row.sums is not None and row.sums[number] != hashes[0]:
            raise ValueError(f"region {number} is not what was captured")
    if row.leaves is not None and list(row.leaves) != leaves:
        raise ValueError("the leaves are not what was captured")
    return [region for region, _, _ in regions], json.loads(row.meta.decode("utf-8", "surrogatepass") or "null")


def _decoded(row: Row, stored: bytes) -> bytes:
    """The slot of an encoded row, with zeros between the regions."""
    slot = bytearray(row.layout.slot)
    at = 0
    for (offset, size), length in zip(row.parts(), row.containers, strict=True):
        slot[offset : offset + size] = decode(stored[at : at + length], size, versions=row.versions)
        at += length
    return bytes(slot)


def _restored(path: Path, found: Identity, row: Row) -> bytes:
    """The slot of a difference, from its own object and its sources, with zeros between the regions."""
    assert row.own is not None
    objects: dict[int, Object] = {}
    for source in row.sources:
        objects[source.number] = _object(path, found, row, source)
        if objects[source.number].refers:
            raise ValueError("a source has a reference")
    objects[row.own.number] = _object(path, found, row, row.own, tuple(objects.values()))
    if objects[row.own.number].refers != (row.content == REFERRING):
        raise ValueError("the catalog says something else of a reference")
    regions = Lineage(objects).restore(row.own.number, [source.number for source in row.sources])
    described, _ = _described(row.layout.text, bytes(row.layout.slot))
    names = [region.name for region, _, _ in described]
    if any(isinstance(name, int) or len(_bytes_of(name)) > 65535 for name in names):
        names = [f"#{number}" for number in range(len(names))]
    if list(regions) != names:
        raise ValueError("the object has other regions")
    slot = bytearray(row.layout.slot)
    for (offset, size), data in zip(row.layout.regions, regions.values(), strict=True):
        if len(data) != size:
            raise ValueError("the object has a region of another length")
        slot[offset : offset + size] = data
    return bytes(slot)


def _bytes_of(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _object(path: Path, found: Identity, row: Row, source: Source, others: tuple[Object, ...] = ()) -> Object:
    data = b"".join(_extent(path, found, *extent) for extent in source.extents)
    opened = Object(data[: source.containers + source.metadata], source.containers, row.versions, others)
    if (opened.lineage, opened.number) != (row.lineage, source.number):
        raise ValueError("an object of another checkpoint")
    return opened


def _extent(path: Path, found: Identity, number: int, offset: int, size: int) -> bytes:
    with (path / f"data-{number:016x}").open("rb") as file:
        if found.heads and file.read(HEAD) != head(found, number):
            raise ValueError(f"data file {number} is another's, or has a damaged head")
        file.seek(behind(found, offset))
        return file.read(size)


def head(found: Identity, number: int) -> bytes:
    """What a data file of a store begins with, where its files have heads."""
    said = struct.pack("<8sII16sQQ", b"VELOCDAT", 2 if found.index else 1, 0, found.store, number, found.segment)
    said += struct.pack("<Q", found.index + found.commits) if found.index else b""
    return (said + struct.pack("<Q", xxhash.xxh3_64_intdigest(said))).ljust(HEAD, b"\0")


def behind(found: Identity, offset: int) -> int:
    """Where in a data file an offset in its segment lies."""
    return offset + (HEAD + found.index + found.commits if found.heads else 0)


def indexed(path: Path, number: int) -> dict[bytes, dict[Key, Row]]:
    """The rows that the index of a data file says: of each key the one with the largest serial, whatever its bytes."""
    found = identity(path)
    with (path / f"data-{number:016x}").open("rb") as file:
        file.seek(HEAD)
        index = file.read(found.index)
    said: dict[bytes, dict[Key, Row]] = {}
    for start in (0, found.index // 2):
        at = start
        while index[at : at + 8] == b"VELOCIDX":
            generation, payload = _frame(found, number, index, at)
            if not generation:
                raise ValueError(f"a frame at {at} of no generation")
            for history, rows in catalog([payload]).rows.items():
                for key, row in rows.items():
                    before = said.setdefault(history, {}).get(key)
                    if before is None or before.serial < row.serial:
                        said[history][key] = row
            at += 64 + -(-len(payload) // 8) * 8
    return said


def _frame(found: Identity, number: int, area: bytes, at: int) -> tuple[int, bytes]:
    """Generation, or batch, and payload of a frame in the index or the commit area of a data file."""
    turn, store, of, length, payload_sum, head_sum = struct.unpack_from("<Q16s4Q", area, at + 8)
    payload = area[at + 64 : at + 64 + length]
    sealed = area[at : at + 56] + struct.pack("<Q", at)
    if (store, of) != (found.store, number):
        raise ValueError(f"a frame at {at} of another file")
    if (xxhash.xxh3_64_intdigest(payload), xxhash.xxh3_64_intdigest(sealed)) != (payload_sum, head_sum):
        raise ValueError(f"a damaged frame at {at}")
    return turn, payload


def committed(path: Path, number: int, batch: int) -> tuple[list[bytes], bool]:
    """What the commit area of a data file says behind the last batch of the log, and whether the last record counts.

    If not, that depends on the bytes of what it puts.
    """
    found = identity(path)
    file = path / f"data-{number:016x}"
    if not file.exists():
        return [], True
    with file.open("rb") as opened:
        opened.seek(HEAD + found.index)
        area = opened.read(found.commits)
    whole: list[tuple[int, int, bytes]] = []
    for at in range(0, len(area), 4096):
        if area[at : at + 8] == b"VELOCCMT":
            with contextlib.suppress(ValueError):  # a torn one, or one that was written over
                whole.append((at, *_frame(found, number, area, at)))
    latest = max((behind for _, behind, _ in whole), default=0)
    if latest > batch:
        raise ValueError(f"batches {batch + 1} to {latest} are missing")
    said = [(at, payload) for at, behind, payload in whole if behind == batch]
    end = 0
    for at, payload in said:
        if at != end:
            raise ValueError(f"a frame is missing at {end}")
        end = -(-(at + 64 + len(payload)) // 4096) * 4096
    return [payload for _, payload in said], _is_begun(found, number, area, end, batch)


def _is_begun(found: Identity, number: int, area: bytes, at: int, batch: int) -> bool:
    """Whether another frame behind a batch was begun at an offset, so that the one before it was acknowledged."""
    head = struct.pack("<8sQ16sQ", b"VELOCCMT", batch, found.store, number)
    return area[at : at + len(head)] == head


def _described(text: bytes, slot: bytes) -> tuple[list[tuple[Region, int, int]], Any]:
    """Regions with their places, and the structure of a tree."""
    body = Fields(text)
    magic, version, kind, count = body.numbers("sBBI")
    if magic != b"L" or version != 2 or kind > 2:
        raise ValueError("of a later version")
    regions = [_region(body, number, kind == 1, slot) for number in range(count)]
    structure = json.loads(body.rest()) if kind == 2 else None
    body.end()
    return regions, structure


def tree(path: Path, row: Row) -> Any:
    """What was captured as a tree: its containers, and in them the regions' arrays and the values."""
    regions, (values, _) = checkpoint(path, row)
    _, structure = _described(row.layout.text, bytes(row.layout.slot))
    left, arrays = iter(values), iter([region.array for region in regions])
    whole = _together(structure, arrays, left)
    if [*left, *arrays]:
        raise ValueError("there are more leaves than the structure has")
    return whole


def _together(node: Any, arrays: Iterator[Any], values: Iterator[Any]) -> Any:
    if node in ("array", "value"):
        return next(arrays if node == "array" else values)
    kind, items = node[0], node[1:]
    if kind in ("dict", "ordered"):
        pairs = [(key, _together(item, arrays, values)) for key, item in zip(items[::2], items[1::2], strict=True)]
        return OrderedDict(pairs) if kind == "ordered" else dict(pairs)
    return {"list": list, "tuple": tuple}[kind](_together(item, arrays, values) for item in items)


def _region(body: Fields, number: int, sequence: bool, slot: bytes) -> tuple[Region, int, int]:
    name = body.take(body.numbers("I")[0]).decode("utf-8", "surrogatepass")
    library, place = body.numbers("Bi")
    text = body.take(body.numbers("I")[0]).decode()
    itemsize, axes = body.numbers("QB")
    shape = body.numbers(f"{axes}Q")
    (order,) = body.numbers("B")
    listed = body.numbers(f"{axes}B") if order == 2 else tuple(range(axes))[:: -1 if order else 1]
    offset, size = body.numbers("QQ")
    dtype = np.dtype(f"V{itemsize}") if text.startswith("=") else _dtype(text)
    if dtype.itemsize != itemsize or dtype.hasobject or order > 2 or sorted(listed) != list(range(axes)) or offset % 64:
        raise ValueError("a description that cannot be")
    lying = np.frombuffer(slot[offset : offset + size], f"V{itemsize}") if size else np.empty(0, f"V{itemsize}")
    array = lying.reshape([shape[axis] for axis in listed]).transpose(np.argsort(listed)).view(dtype)
    return Region(number if sequence else name, library, place, text, array), offset, offset + size


def _dtype(text: str) -> np.dtype[Any]:
    if not text.startswith(("[", "{")):
        return np.dtype(text)
    told = json.loads(text)
    if isinstance(told, list):
        return np.dtype((_dtype(told[0]), tuple(told[1])))
    parts = {name: told[name] for name in ("names", "offsets", "itemsize")}
    return np.dtype({**parts, "formats": [_dtype(each) for each in told["formats"]]})


def histories(path: Path) -> Catalog:
    """What the catalog of a store says, and the commit area behind it."""
    found = identity(path)
    given, last, _ = read(path, found.store)
    listed = catalog(given)
    ahead, acknowledged = committed(path, listed.commits, last) if found.commits and listed.commits else ([], True)
    behind = catalog(given + ahead)
    if acknowledged:
        return behind
    before = catalog(given + ahead[:-1])
    new = [
        row
        for history, rows in behind.rows.items()
        for key, row in rows.items()
        if before.rows.get(history, {}).get(key) != row and (row.content == RAW or row.is_encoded)
    ]
    elsewhere = any(number != listed.commits for row in new for number, _, _ in row.extents)
    too_much = sum(max(row.blocks(), -(-row.layout.slot // BLOCK) * BLOCK) for row in new) > COMMITTED
    if elsewhere or too_much or any(row.sums is None for row in new):
        return before
    try:
        for row in new:
            checkpoint(path, row)
    except ValueError:  # the last frame was not acknowledged
        return before
    return behind


def everything(path: Path) -> dict[str, dict[Key, tuple[list[Region], Any]]]:
    """All checkpoints of a store."""
    return {
        name.decode("utf-8", "surrogatepass"): {key: checkpoint(path, row) for key, row in rows.items()}
        for name, rows in histories(path).rows.items()
    }
