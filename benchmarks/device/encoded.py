"""A region on a CUDA device and the launches of the codec's kernels for it, as cuda/parameters.h defines them."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from .kernels import Bytes, Driver

CHUNK = 16384
THREADS = 256
LOCATED = 1024
"""Chunks whose payloads a block of threads locates."""
HEADER, ENTRY, ALIGN = 64, 11, 16
MODES = ("raw", "const", "diff", "exp", "xrz", "step")
ALL_MODES = (1 << len(MODES)) - 1
GUARD, UNTOUCHED = 64, 0xA5
CELL = 16
"""Bytes on both sides of an output, and their value: a kernel that writes out of bounds changes them."""

_COMMON = ("plain", "reference", "bytes", "container")
ENCODING = np.dtype([*((n, "<u8") for n in (*_COMMON, "state", "length")), ("modes", "<u4"), ("reserved", "<u4")])
DECODING = np.dtype([*((n, "<u8") for n in (*_COMMON, "offsets", "faults")), ("first", "<u4"), ("reserved", "<u4")])
LOCATING = np.dtype([(n, "<u8") for n in ("bytes", "container", "state", "offsets")])


def only(*names: str) -> int:
    """The set of these modes and raw."""
    return 1 | sum(1 << MODES.index(name) for name in names)


def round_up(n: int) -> int:
    """The next multiple of the payloads' alignment."""
    return (n + ALIGN - 1) // ALIGN * ALIGN


@dataclasses.dataclass(frozen=True)
class Kind:
    """How the bytes of a region are read: bytes of a word, and bits of a float's exponent, 0 for integers."""

    word: int
    exponent: int

    @property
    def kernel(self) -> str:
        """The part of the kernels' names. Integers have the kernels of the float of their size."""
        if self.word == 2:
            return "fp16" if self.exponent == 5 else "bf16"
        return {1: "bytes", 4: "fp32", 8: "fp64"}[self.word]

    def permitted(self, modes: int) -> int:
        """The modes that the kernels may use: integers have no exponents."""
        return modes if self.exponent else modes & ~(1 << MODES.index("exp"))


@dataclasses.dataclass(frozen=True)
class Tables:
    """A container's tables: for each chunk the bytes of its payload, and its mode."""

    lengths: npt.NDArray[np.int64]
    modes: Bytes

    @classmethod
    def of(cls, tables: Bytes) -> Tables:
        """From the bytes behind the header: all hashes, then all lengths, then all modes."""
        chunks = tables.size // ENTRY
        lengths = tables[8 * chunks : 10 * chunks].view("<u2").astype(np.int64)
        return cls(lengths, tables[10 * chunks :])

    @staticmethod
    def end(chunks: int) -> int:
        """The offset of the tables' end."""
        return HEADER + ENTRY * chunks

    def offsets(self) -> npt.NDArray[np.uint64]:
        """Where each payload begins in the container."""
        room = (self.lengths + ALIGN - 1) // ALIGN * ALIGN
        return (np.cumsum(room) - room + payloads_at(self.lengths.size)).astype(np.uint64)

    def shares(self) -> str:
        """The percentage of chunks in each mode that occurs."""
        counts = np.bincount(self.modes, minlength=len(MODES))
        names = (*MODES, *(f"mode {m}" for m in range(len(MODES), counts.size)))
        return ", ".join(f"{names[m]} {100 * n / self.modes.size:.0f} %" for m, n in enumerate(counts) if n)


def payloads_at(chunks: int) -> int:
    """The offset of the first payload."""
    return round_up(Tables.end(chunks))


def fill(driver: Driver, at: int, value: int, size: int, stream: object = None) -> None:
    """Queues a memset of the device's memory, on the driver's own stream unless another is named."""
    arguments = ctypes.c_uint64(at), ctypes.c_ubyte(value), ctypes.c_size_t(size)
    driver.call("cuMemsetD8Async", *arguments, driver.stream if stream is None else stream)


def tile(driver: Driver, at: int, block: Bytes, size: int) -> None:
    """Fills memory of the device with copies of the block, of which the size is a multiple."""
    driver.upload(at, block)
    for offset in range(block.size, size, block.size):
        driver.copy(at + offset, at, block.size)


def place(driver: Driver, data: Bytes, shift: int) -> int:
    """Uploads data to new memory of the device, so many bytes behind an aligned address."""
    at = driver.allocate(-(-(data.size + shift) // CELL) * CELL) + shift  # kernels read whole cells
    driver.upload(at, data)
    return at


class Region:
    """A region of the device and the memory that its encoding and decoding need, until the driver's release."""

    def __init__(self, driver: Driver, kind: Kind, size: int, plain: int, reference: int = 0) -> None:
        self.driver, self.kind, self.size = driver, kind, size
        self.plain, self.reference = plain, reference
        self.chunks = -(-size // CHUNK)
        self.payloads_at = payloads_at(self.chunks)
        self.bound = self.payloads_at + round_up(size)
        self.container = driver.allocate(self.bound + GUARD)
        self._state = driver.allocate(8 * self.chunks)
        self._length = driver.allocate(8)
        self.offsets_at = driver.allocate(8 * self.chunks)
        self._faults = driver.allocate(self.chunks)

    def encode(self, modes: int) -> None:
        """Queues the clearing of the kernel's state, and the kernel."""
        parameter = self._parameter(ENCODING, state=self._state, length=self._length)
        parameter["modes"] = self.kind.permitted(modes)
        fill(self.driver, self._state, 0, 8 * self.chunks)
        form = "_reference" if self.reference else ""
        self.driver.launch(f"velocpy_encode_{self.kind.kernel}{form}", self.chunks, THREADS, parameter)

    def decode(self, to: int) -> None:
        """Queues the decoding of all chunks; `locate` has to be called before."""
        parameter = self._parameter(DECODING, plain=to, offsets=self.offsets_at, faults=self._faults)
        self.driver.launch(f"velocpy_decode_{self.kind.kernel}", self.chunks, THREADS, parameter)

    def locate(self) -> Tables:
        """The host's part of decoding: tells the device where the payloads begin. Returns the container's tables."""
        tables = Tables.of(self.driver.download(self.container + HEADER, ENTRY * self.chunks))
        self.driver.upload(self.offsets_at, tables.offsets().view(np.uint8))
        fill(self.driver, self._faults, 77, self.chunks)  # no fault has this number: the kernel has to write each
        return tables

    def locate_on_device(self) -> None:
        """Queues the clearing of the kernel's state, and the kernel that finds where the payloads begin."""
        blocks = -(-self.chunks // LOCATED)
        parameter = np.zeros(1, LOCATING)
        places = {"container": self.container, "state": self._state, "offsets": self.offsets_at}
        for name, value in ({"bytes": self.size} | places).items():
            parameter[name] = value
        fill(self.driver, self._state, 0, 8 * blocks)
        self.driver.launch("velocpy_locate", blocks, THREADS, parameter)

    def offsets(self) -> npt.NDArray[np.uint64]:
        """Where the payloads begin, as the device knows it."""
        return self.driver.download(self.offsets_at, 8 * self.chunks).view("<u8")

    def length(self) -> int:
        """Bytes of the container, as the kernel tells them."""
        return int(self.driver.download(self._length, 8).view("<u8")[0])

    def faults(self) -> Bytes:
        """For each chunk: 0 if it was decoded, 1 if its payload was malformed, 2 if its hash was wrong."""
        return self.driver.download(self._faults, self.chunks)

    def _parameter(self, struct: np.dtype[Any], **addresses: int) -> np.ndarray[Any, Any]:
        parameter = np.zeros(1, struct)
        values = {"plain": self.plain, "reference": self.reference, "bytes": self.size, "container": self.container}
        for name, value in (values | addresses).items():
            parameter[name] = value
        return parameter
