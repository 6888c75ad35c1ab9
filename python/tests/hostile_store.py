"""Stores that nobody has written: every checksum is right, and what they say of their checkpoints is anything.

As a program it makes such stores and asks everything of each of them: `hostile_store.py FOLDER SEED SECONDS`. It ends
with 1 and the seed when something else than an error of velocpy comes, or when `velocpy check` and a restore disagree.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import random
import resource
import shutil
import struct
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import catalog
import numpy as np
import xxhash
from sectioned import CHUNKS, FRAMES, PLAIN, SNAPPY, chunked, damaged, sectioned

import velocpy
from velocpy import interchange, ondisk

STORE = bytes(range(16))
SEGMENT = 1 << 20
#: What a process may take beside what it takes before the first store, in bytes; its stores declare 16 MiB.
ROOM = 300 << 20
#: Whether there is a compressor for the sections of containers.
HAS_FRAMES = importlib.util.find_spec("zstandard") is not None


@dataclass(frozen=True)
class Region:
    """A region as its description has it."""

    name: bytes
    dtype: bytes
    itemsize: int
    shape: tuple[int, ...]
    offset: int
    nbytes: int
    library: int = 0
    place: int = 0
    order: int = 0
    listed: bytes = b""

    def encoded(self) -> bytes:
        """Its bytes in a description."""
        return b"".join(
            (
                struct.pack("<I", len(self.name)) + self.name,
                struct.pack("<Bi", self.library & 255, self.place),
                struct.pack("<I", len(self.dtype)) + self.dtype,
                struct.pack("<qB", self.itemsize, len(self.shape)),
                struct.pack(f"<{len(self.shape)}q", *self.shape),
                bytes([self.order & 255]) + self.listed,
                struct.pack("<qq", self.offset, self.nbytes),
            )
        )


def described(regions: Sequence[Region], sequence: int = 0) -> bytes:
    """The text of a layout."""
    head = b"L" + struct.pack("<BBI", 2, sequence, len(regions))
    return head + b"".join(region.encoded() for region in regions)


@dataclass
class Checkpoint:
    """What a catalog says of one."""

    text: bytes
    slot: int
    spans: list[tuple[int, int]]
    meta: bytes = b""
    extents: list[tuple[int, int, int]] = field(default_factory=list)
    #: Plain bytes of a container, and what the row says of the containers' lengths; none: the checkpoint is raw.
    part: int = 0
    lengths: list[int] = field(default_factory=list)
    #: None: the containers have chunks; else they have sections, and this part of them is damaged.
    sections: float | None = None
    #: The containers; none: noise in new ones.
    given: list[bytes] = field(default_factory=list)


def plain(regions: Sequence[Region], **changes: Any) -> Checkpoint:
    """A checkpoint whose catalog agrees with the description about places."""
    spans = [(region.offset, region.nbytes) for region in regions]
    slot = max((offset + nbytes for offset, nbytes in spans), default=0)
    return replace(Checkpoint(described(regions), slot, spans), **changes)


def containers(each: Checkpoint) -> list[bytes]:
    """The containers of noise that an encoded checkpoint needs."""
    if each.given:
        return each.given
    noise = random.Random(each.slot)
    made = []
    for _, nbytes in each.spans:
        for at in range(0, nbytes, each.part):
            region = noise.randbytes(min(each.part, nbytes - at))
            if each.sections is None:
                made.append(chunked(region))
                continue
            period = noise.choice([1, 37])  # it can be compressed
            region = (region[:period] * len(region))[: len(region)]
            form = noise.choice([PLAIN, FRAMES, SNAPPY, CHUNKS])
            container = sectioned(region, noise.choice([1, 2, 4, 8]), [form]).sealed()
            made.append(damaged(container, noise) if noise.random() < each.sections else container)
    return made


def encoded(whole: Checkpoint, part: int = catalog.LEAF, sections: float | None = None) -> Checkpoint:
    """The same checkpoint in containers; `write` writes those, too."""
    each = replace(whole, part=part, sections=sections)
    return replace(each, lengths=[len(packed) for packed in containers(each)])


def _identity(segment: int) -> bytes:
    block = struct.pack("<8sII16sQQ", b"VELOCPY\0", 1, 0, STORE, segment, 0)
    return (block + struct.pack("<Q", xxhash.xxh3_64_intdigest(block))).ljust(4096, b"\0") * 2


def _frame(kind: int, sequence: int, payload: bytes, offset: int) -> bytes:
    payload_sum = xxhash.xxh3_64_intdigest(payload)
    sealed = STORE + struct.pack("<6Q", 1, offset, kind, sequence, len(payload), payload_sum)
    head = catalog.HEAD.pack(b"VFJ1", kind, sequence, len(payload), payload_sum, xxhash.xxh3_64_intdigest(sealed))
    return head + payload + bytes(-len(payload) % 8)


def _item(kind: int, body: bytes) -> bytes:
    return struct.pack("<II", kind, len(body)) + body


def write(
    path: Path,
    checkpoints: Sequence[Checkpoint],
    *,
    segment: int = SEGMENT,
    history: bytes = b"h",
    data: int | None = None,
) -> None:
    """Writes a store with keys from 0 on, whose bytes lie one behind the other in data files of ``data`` bytes."""
    path.mkdir(parents=True)
    records = [_item(catalog.HISTORY, struct.pack("<I", 1) + history)]
    at = 0
    packed: list[tuple[tuple[int, int, int], Checkpoint]] = []
    for key, each in enumerate(checkpoints):
        spans = b"".join(struct.pack("<QQ", *span) for span in each.spans)
        layout = struct.pack("<IIQII", key + 1, 0, each.slot, len(each.spans), 0) + spans + each.text
        room = max(-(-(sum(each.lengths) if each.part else each.slot) // 4096), 1) * 4096
        extents = each.extents
        if not extents:
            for start in range(at, at + room, segment) if at % segment == 0 else [at]:
                extents.append((start // segment + 1, start % segment, min(room, segment)))
            at += room
        if each.part:
            packed.append((each.extents[0], each))
        content = (catalog.ENCODED if each.sections is None else catalog.ENCODED_SECTIONS) if each.part else catalog.RAW
        put = struct.pack("<IIQBB", 1, key + 1, key + 1, content, 0) + struct.pack("<BBq", 0, 0, key)
        put += struct.pack("<II", 64, len(extents)) + b"".join(struct.pack("<QQQ", *extent) for extent in extents)
        if each.part:
            put += struct.pack(f"<QI{len(each.lengths)}I", each.part, len(each.lengths), *each.lengths)
        put += struct.pack("<I", len(each.meta)) + each.meta
        records.append(_item(catalog.LAYOUT, layout) + _item(catalog.PUT, put))
    payload = b"".join(struct.pack("<I", len(record)) + record for record in records)
    begin = _frame(catalog.BEGIN, 0, struct.pack("<QQ", 0, 0), 0)
    (path / "velocpy.store").write_bytes(_identity(segment))
    (path / "catalog-0000000000000001").write_bytes(begin + _frame(catalog.BATCH, 1, payload, len(begin)))
    (path / "lock").touch()
    data = at if data is None else data
    for number in range(-(-data // segment)):
        noise = random.Random(number).randbytes(min(segment, data - number * segment))
        (path / f"data-{number + 1:016x}").write_bytes(noise)
    for (number, offset, _), each in packed:
        if (number - 1) * segment < data:
            with (path / f"data-{number:016x}").open("r+b") as file:
                file.seek(offset)
                file.write(b"".join(containers(each)))


# --- what the descriptions say
# --------------------------------------------------------------------------------------------------

RIGHT = [
    "|b1",
    "|i1",
    "<i2",
    ">i4",
    "<i8",
    "|u1",
    "<u4",
    "<f2",
    "<f4",
    ">f8",
    "<f16",
    "<c8",
    "<c16",
    "<c32",
    "|S5",
    "<U3",
    "|V7",
    "<M8[D]",
    "<m8[25us]",
    "<M8",
    "=bfloat16",
    "=float8_e4m3fn",
    "=int4",
]
WRONG = [
    *[
        "|O",
        "O",
        "|O8",
        "<O",
        "T",
        "|T16",
        "<",
        "f8",
        "float64",
        "i4,f8",
        "<f3",
        "<f80",
        "<U-1",
        "<U536870912",
        "|V2147483648",
        "<M8[]",
        "<M8[0s]",
        "<M8[fortnight]",
    ],
    *[
        "=",
        "=os",
        "=load",
        "=nn",
        "=Tensor",
        "=float99",
        "=__doc__",
        "=dtype",
        "{",
        "[",
        "{}",
        "[]",
        "[[",
        "Float64",
        "object",
        "datetime64",
        "<a5",
    ],
    *('["|O", [1]]', '["<f4", [2]]', '{"names": 1}', "", " ", "\0", "<f8\0", "\ud800", "<i8\n", "|b1 "),
    *("[" * 3000, '{"a":' * 3000, '["' * 3000),
]
HUGE = [-1, -(2**63), 2**63 - 1, 2**31, 2**40, 2**50, 2**62, 0, 1]
#: Structures of trees, and whether they are, of no region.
STRUCTURES = [
    *(b'["list"]', b'["dict","a","value",-7,["tuple","value"]]', b'["ordered"]', b'["list",["list","value"],"value"]'),
    *(b"", b"{}", b"[]", b'"array"', b'["list","array"]', b'["set"]', b'["dict","a"]', b'["dict",null,"value"]'),
    *(b'["dict","a","value","\\u0061","value"]', b'["list",' * 50_000, b'["list",' * 101 + b"]" * 101, b'["list"] '),
    *(b'["list",3]', b"\xff", b'["list"', b'["dict",-0,"value"]', b'["dict",1.0,"value"]', b'["list","value",]'),
]
METAS = [
    *(b"[[1,2],null]", b"[[],null]", b'[[NaN,"a"],{}]', b"[[1,[2]],null]", b"[[1],null]", b"[[],[],[]]", b"[{},null]"),
    *(b"", b"{}", b'{"t": 0.5}', b"[NaN, -Infinity]", b'"\\ud800"', b"\xff", b"{", b"[" * 60_000, b'{"a":' * 3000),
    *(b"[" * 900 + b"]" * 900, b"1" * 5000, b"\xef\xbb\xbf1", b"n", b"1 2", b'"\x01"', b"\xff\xfe1\0", b"1\0"),
]


def structure(rng: random.Random, depth: int) -> str:
    """A dtype with fields, of which something may be wrong."""
    formats = [dtype(rng, depth + 1) for _ in range(rng.randrange(4))]
    offsets, end = [], 0
    for text in formats:
        offsets.append(end)
        with contextlib.suppress(Exception):
            end += velocpy.arrays.dtype_from_text(text).itemsize
    whole: dict[str, Any] = {
        "names": [f"f{i}" for i in range(len(formats))],
        "formats": formats,
        "offsets": offsets,
        "titles": [rng.choice([None, None, f"t{i}", i]) for i in range(len(formats))],
        "itemsize": end + rng.choice([0, 0, 3]),
        "aligned": rng.random() < 0.3,
    }
    if rng.random() < 0.3:
        name = rng.choice(list(whole))
        wrong = rng.choice([None, -1, 2**31, 2**70, 1.5, "x", [], {}, [[]], [None], ["f0", "f0"], "drop"])
        if wrong == "drop":
            del whole[name]
        elif isinstance(whole[name], list) and whole[name] and rng.random() < 0.7:
            whole[name][rng.randrange(len(whole[name]))] = wrong
        else:
            whole[name] = wrong
    return json.dumps(whole)


def dtype(rng: random.Random, depth: int = 0) -> str:
    """A dtype that may be one."""
    kind = rng.random()
    if depth < 4 and kind < 0.3:
        return structure(rng, depth)
    if depth < 4 and kind < 0.35 and depth > 0:
        return json.dumps(
            [dtype(rng, depth + 1), rng.choice([[2], [2, 3], [], [0], [-1], [2**31], [2**16] * 4, "x", None])]
        )
    text = rng.choice(RIGHT if kind < 0.8 else WRONG)
    if kind > 0.97 and text:
        at = rng.randrange(len(text))
        text = text[:at] + chr(rng.randrange(128)) + text[at + 1 :]
    return text


#: A dtype may tell of items of 2 GiB, and the test writes every byte.
LARGEST_ITEM = 1 << 16


def region(rng: random.Random, number: int, offset: int) -> Region:
    """A region that is right as far as its dtype is."""
    size = LARGEST_ITEM + 1
    while size > LARGEST_ITEM:
        text, size = dtype(rng), 8
        with contextlib.suppress(Exception):
            size = velocpy.arrays.dtype_from_text(text).itemsize
    shape = tuple(rng.randrange(4) for _ in range(rng.randrange(4)))
    count = 1
    for length in shape:
        count *= length
    order = rng.randrange(3)
    listed = bytes(rng.sample(range(len(shape)), len(shape))) if order == 2 else b""
    library = rng.choice([0, 0, 0, 1, 2, 3, 4])
    return Region(
        f"r{number}".encode(),
        text.encode("utf-8", "surrogatepass"),
        size,
        shape,
        offset,
        size * count,
        library,
        0,
        order,
        listed,
    )


def worse(rng: random.Random, region: Region) -> Region:
    """The same with one field that is wrong, or may be."""
    change: dict[str, Any] = rng.choice(
        [
            {"name": rng.choice([b"", b"\xff", b"\xed\xa0\x80", b"x" * 5000, b"r0"])},
            {"itemsize": rng.choice([*HUGE, region.itemsize - 1, region.itemsize + 1, region.itemsize * 2])},
            {"shape": (*region.shape, rng.choice(HUGE))},
            {"dtype": b"|V0", "itemsize": 0, "nbytes": 0, "shape": (rng.choice(HUGE),), "order": 0, "listed": b""},
            {"shape": (1,) * rng.choice([32, 33, 64, 65, 255])},
            {"order": rng.randrange(256)},
            {"order": 2, "listed": bytes(rng.randrange(4) for _ in region.shape)},
            {"offset": rng.choice([*HUGE, region.offset + 1, region.offset + 8, region.offset + 64])},
            {"nbytes": rng.choice([*HUGE, region.nbytes + 1, region.nbytes * 2])},
            {"library": rng.randrange(256)},
            {"place": rng.choice([1, 5, -1, 2**31 - 1, -(2**31)])},
            {"dtype": rng.choice(RIGHT + WRONG).encode("utf-8", "surrogatepass")},
        ]
    )
    return replace(region, **change)


def checkpoint(rng: random.Random) -> Checkpoint:
    """One of which the catalog accepts everything that it looks into."""
    regions: list[Region] = []
    end = 0
    for number in range(rng.randrange(4)):
        regions.append(region(rng, number, end))
        end = -(-(regions[-1].offset + regions[-1].nbytes) // 64) * 64
    spans = [(each.offset, each.nbytes) for each in regions]
    sequence = 0
    if regions and rng.random() < 0.6:
        at = rng.randrange(len(regions))
        regions[at] = worse(rng, regions[at])
        offset, nbytes = regions[at].offset, regions[at].nbytes
        if at == len(regions) - 1 and spans[at][0] <= offset <= 1 << 16 and 0 <= nbytes <= 1 << 16:
            spans[at] = offset, nbytes
            end = offset + nbytes
    if rng.random() < 0.2:
        sequence = rng.choice([1, 3, 255])
        regions = [replace(each, name=b"") for each in regions]
    elif rng.random() < 0.3:
        sequence = 2
    text = described(regions, sequence)
    if sequence == 2:
        text += rng.choice(STRUCTURES).replace(b"]", b',"array"' * len(regions) + b"]", 1)
    if rng.random() < 0.1:
        at = rng.randrange(len(text))
        text = rng.choice([text[:at], text + b"x", text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]])
    whole = Checkpoint(text, end, spans, rng.choice(METAS))
    if rng.random() < 0.6:
        return whole
    return encoded(whole, sections=rng.choice([None, 0, 0.3]) if HAS_FRAMES else None)


# --- what is asked of them
# --------------------------------------------------------------------------------------------------


def touch(array: Any) -> None:
    """Reads all of an array; its values are noise, of which NumPy cannot print every one."""
    if isinstance(array, np.ndarray):
        array.tobytes()
        array.copy()
    elif hasattr(array, "clone"):
        with contextlib.suppress(NotImplementedError):  # torch has dtypes that it cannot do much with
            array.clone()


def ask(store: velocpy.Store, path: Path, key: int, beside: Path) -> tuple[bool, bool]:
    """Asks everything of a checkpoint: whether its description and its meta were called damaged."""
    history = store.history("h")
    bad = bad_meta = False

    def tried(call: Callable[[], Any]) -> Any:
        nonlocal bad
        try:
            return call()
        except velocpy.errors.CorruptCheckpoint:
            bad = True
        except velocpy.errors.VelocError:
            pass
        return None

    lease = tried(lambda: history.restore(key))
    for label in () if lease is None else list(lease):
        with contextlib.suppress(velocpy.errors.InvalidType, velocpy.errors.TierUnavailable):
            touch(lease[label])
    described = bad
    values = tried(lambda: history.restore(key, ()))
    for call in (
        lambda: history.meta(key),
        lambda: lease and lease.meta,
        lambda: None if values is None else values.tree,
    ):
        try:
            call()
        except velocpy.errors.CorruptCheckpoint:
            bad_meta = True
        except velocpy.errors.CheckpointNotFound:  # the catalog has refused it
            pass
    tried(lambda: history.restore(key, ["r0"]))
    tried(lambda: history.restore(key, into={"r0": np.zeros(3)}))
    tried(lambda: history.restore(key, into=[np.zeros(2)]))
    repr(lease)
    if not bad:
        tried(lambda: ondisk.describe(path, "h", key))
        if key % 8 == 0:
            tried(lambda: interchange.export(path, "h", key, beside / "file.npz"))
            tried(lambda: interchange.export(path, "h", key, beside / "file.safetensors"))
    return described, bad_meta


def examine(path: Path, beside: Path, count: int) -> None:
    """Asks everything of a store; a check has to say of which checkpoints something is damaged."""
    report = ondisk.check(path, read_data=True)
    told = {fault.key for fault in report.faults if fault.kind in ("description", "changed")}
    with velocpy.open(path, mode="r", host="16MiB") as store:
        for key in range(count):
            described, meta = ask(store, path, key, beside)
            if (described or meta) != (key in told):
                raise AssertionError(f"key {key}: a restore says {described, meta}, check {key in told}")


def main(folder: str, seed: int, seconds: float) -> None:
    """Makes stores and asks them, until the time is over."""
    rng, path, beside = random.Random(seed), Path(folder) / "store", Path(folder)
    for module in ("torch", "ml_dtypes", "safetensors"):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    until = time.monotonic() + seconds
    done = before = 0
    while time.monotonic() < until:
        all_of_them = [checkpoint(rng) for _ in range(64)]
        write(path, all_of_them)
        try:
            examine(path, beside, len(all_of_them))
        except BaseException:
            print(f"seed {seed}, after {done}: {path}", flush=True)
            raise
        shutil.rmtree(path)
        done += len(all_of_them)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        before = before or most
        if most > before + ROOM:
            raise AssertionError(f"seed {seed}, after {done}: {most - before} bytes more than at first")
    print(f"{done} checkpoints")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
