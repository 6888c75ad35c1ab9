"""Containers that the Go codec has written, compared with those of the CUDA kernels, whole and damaged."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .encoded import CHUNK, GUARD, HEADER, UNTOUCHED, Kind, Region, Tables, fill, place
from .kernels import Bytes, Driver

FACTS = struct.Struct("<4I2Q")
SHIFTS = (0, 3)


@dataclasses.dataclass(frozen=True)
class Container:
    """A region, the modes that were allowed for it, and its container by the Go codec."""

    name: str
    kind: Kind
    modes: int
    plain: Bytes
    reference: Bytes | None
    encoded: Bytes

    @classmethod
    def of(cls, name: str, file: bytes) -> Container:
        """Reads a file of TestWriteContainers in gocore/reduction/codec, which defines the form."""
        word, exponent, modes, referenced, size, length = FACTS.unpack_from(file)
        if len(file) != FACTS.size + size * (2 if referenced else 1) + length:
            raise ValueError(f"{name} has {len(file)} bytes, which is not what its first {FACTS.size} bytes tell")
        parts = np.frombuffer(file, np.uint8, offset=FACTS.size)
        reference = parts[size : 2 * size] if referenced else None
        return cls(name, Kind(word, exponent), modes, parts[:size], reference, parts[parts.size - length :])

    def on(self, driver: Driver, shift: int = 0) -> Region:
        """The region on the device, with region and reference at different distances from aligned addresses."""
        plain = place(driver, self.plain, shift)
        reference = 0 if self.reference is None else place(driver, self.reference, shift and shift + 5)
        return Region(driver, self.kind, self.plain.size, plain, reference)


def read(folder: Path) -> list[Container]:
    """All containers of a folder."""
    return [Container.of(path.stem, path.read_bytes()) for path in sorted(folder.glob("*.bin"))]


def compare(driver: Driver, container: Container) -> list[str]:
    """Encodes and decodes at two alignments; tells what differs from the Go codec, or was written out of bounds."""
    found = []
    for shift in SHIFTS:
        region = container.on(driver, shift)
        texts = [*_encoded(region, container), *_decoded(region, container, shift)]
        found += [f"{container.name}, shift {shift}: {text}" for text in texts]
        driver.release()
    return found


def _encoded(region: Region, want: Container) -> Iterator[str]:
    """What differs in the kernel's container. The host writes the header, the kernel does not."""
    fill(region.driver, region.container, UNTOUCHED, region.bound + GUARD)
    region.encode(want.modes)
    got, end = region.driver.download(region.container, region.bound + GUARD), want.encoded.size
    if region.length() != end:
        yield f"a length of {region.length()} bytes, not {end}"
    tables = slice(HEADER, Tables.end(region.chunks))
    for what, part in (("tables", tables), ("payloads", slice(region.payloads_at, end))):
        if text := difference(got[part], want.encoded[part]):
            yield f"{what}: {text}"
    if (got[:HEADER] != UNTOUCHED).any() or (got[end:] != UNTOUCHED).any():
        yield "the encoder wrote outside of tables and payloads"


def _decoded(region: Region, want: Container, shift: int) -> Iterator[str]:
    """What differs in the region that the kernel decodes from the Go codec's container."""
    region.driver.upload(region.container, want.encoded)
    offsets = region.locate().offsets()
    fill(region.driver, region.offsets_at, UNTOUCHED, offsets.nbytes)
    region.locate_on_device()
    if text := difference(region.offsets(), offsets):
        yield f"offsets of payloads: {text}"
        region.locate()  # a payload that is looked for elsewhere may be at no aligned address
    back, intact = decode_guarded(region, shift)
    if faults := np.count_nonzero(region.faults()):
        yield f"faults in {faults} of {region.chunks} chunks"
    if text := difference(back, want.plain):
        yield f"decoded bytes: {text}"
    if not intact:
        yield "the decoder wrote outside of the region"
    if want.reference is not None:
        region.decode(region.reference)
        if text := difference(region.driver.download(region.reference, region.size), want.plain):
            yield f"bytes decoded in place of the reference: {text}"


def decode_guarded(region: Region, shift: int = 0) -> tuple[Bytes, bool]:
    """The bytes that the kernel decodes, and whether it left those around them alone."""
    driver, before = region.driver, GUARD + shift
    total = before + region.size + GUARD
    room = driver.allocate(total)
    fill(driver, room, UNTOUCHED, total)
    region.decode(room + before)
    got = driver.download(room, total)
    around = np.concatenate((got[:before], got[before + region.size :]))
    return got[before : before + region.size], not (around != UNTOUCHED).any()


def difference(got: npt.NDArray[Any], want: npt.NDArray[Any]) -> str:
    """How many bytes or numbers differ and which is the first; empty if none does."""
    wrong = np.flatnonzero(got != want)
    what = "bytes" if want.itemsize == 1 else "numbers"
    return f"{wrong.size} of {want.size} {what} differ, the first is [{wrong[0]}]" if wrong.size else ""


@dataclasses.dataclass
class Damage:
    """Chunks in which a bit of the payload was flipped: all, those with a fault, and texts on what was wrong.

    A chunk may be right without a fault, for its payload may have bits that decoding does not read.
    """

    chunks: int = 0
    faults: int = 0
    wrong: list[str] = dataclasses.field(default_factory=list)


def damage(driver: Driver, containers: Sequence[Container], rounds: int) -> Damage:
    """Decodes each container so many times, with another flipped bit in the payload of every chunk each time."""
    found, random = Damage(), np.random.default_rng(1)
    for container in containers:
        for _ in range(rounds):
            region = container.on(driver)
            _decode_damaged(region, container, random, found)
            driver.release()
    return found


def _decode_damaged(region: Region, container: Container, random: np.random.Generator, found: Damage) -> None:
    region.driver.upload(region.container, flipped(container.encoded, region.chunks, random))
    region.locate()
    back, intact = decode_guarded(region)
    faults = region.faults()
    found.chunks += region.chunks
    found.faults += int(np.count_nonzero(faults))
    for chunk in np.flatnonzero(faults == 0):
        part = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        if text := difference(back[part], container.plain[part]):
            found.wrong.append(f"{container.name}: chunk {chunk} has no fault, and {text}")
    if not intact:
        found.wrong.append(f"{container.name}: the decoder wrote outside of the region")
    if (faults > 2).any():
        found.wrong.append(f"{container.name}: chunks with faults {np.unique(faults)}")


def flipped(encoded: Bytes, chunks: int, random: np.random.Generator) -> Bytes:
    """A copy with one flipped bit in each payload: for half of them among its first bytes, where its tables are."""
    damaged = encoded.copy()
    tables = Tables.of(encoded[HEADER : Tables.end(chunks)])
    for at, length in zip(tables.offsets().astype(np.int64), tables.lengths, strict=True):
        near = random.random() < 0.5
        damaged[at + random.integers(min(length, 64) if near else length)] ^= np.uint8(1 << random.integers(8))
    return damaged
