"""A region that changes, plain reading, and a comparison of bytes: what de-duplication is measured with.

The kernels are those of benchmarks/device/beside_dedup.cuh.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .differences import Numbers
from .encoded import fill
from .kernels import Bytes, Driver

THREADS = 256
TILE = THREADS * 8 * 16
"""Bytes that a block of threads reads in one step."""
RESIDENT = 8
"""Blocks of threads for each processor, where few take all steps."""
CHUNK = 32
"""The chunks by which the comparison is tried."""

READING = np.dtype([*((n, "<u8") for n in ("from", "vectors", "sum")), ("blocks", "<u4"), ("reserved", "<u4")])
CHOSEN = np.dtype(
    [
        *((n, "<u8") for n in ("region", "chunks", "count", "data", "wrong")),
        *((n, "<u4") for n in ("shift", "value", "blocks", "reserved")),
    ]
)
TELLING = np.dtype([("from", "<u8"), ("to", "<u8")])


def struct(form: np.dtype[Any], **values: int) -> np.ndarray[Any, Any]:
    """A kernel's parameter."""
    parameter = np.zeros(1, form)
    for name, value in values.items():
        parameter[name] = value
    return parameter


def processors(driver: Driver) -> int:
    """Multiprocessors of the device."""
    count = ctypes.c_int()
    driver.call("cuDeviceGetAttribute", ctypes.byref(count), 16, 0)
    return count.value


class Subject:
    """A region that is filled with copies of a block, and chunks of it that change again and again."""

    def __init__(self, driver: Driver, block: Bytes, size: int) -> None:
        self.driver, self.block, self.size = driver, block, size
        self.processors = processors(driver)
        self.at = driver.allocate(size)
        self.chosen: Numbers = np.zeros(0, np.uint32)
        self._count = driver.allocate(8)
        self._chunks, self._shift, self._changes, self._value = 0, 4, 0, 0
        driver.upload(self.at, block)
        for offset in range(block.size, size, block.size):
            driver.copy(self.at + offset, self.at, block.size)

    def choose(self, chunk: int, share: float, seed: int = 1) -> None:
        """Chooses one of so many neighbouring chunks each, at random, to be changed from now on."""
        count = self.size // chunk
        stride = round(1 / share) if share else count + 1
        first = np.arange(count // stride, dtype=np.uint32) * np.uint32(stride)
        if stride > 1:
            first += np.random.default_rng(seed).integers(0, stride, first.size, dtype=np.uint32)
        self.chosen, self._shift = first, chunk.bit_length() - 1
        if first.size:
            self._chunks = self.driver.allocate(first.nbytes)
            self.driver.upload(self._chunks, first.view(np.uint8))

    def change(self) -> None:
        """Queues a change of every word of the chosen chunks, which never get bytes that they had before."""
        self._changes += 1
        self._apply(self._changes * 0x9E3779B1 & 0xFFFFFFFF)

    def restore(self) -> None:
        """Queues the way back to the bytes of the block."""
        self._apply(0)

    def _apply(self, value: int) -> None:
        if self.chosen.size:
            parameter = self._parameter(0, value=value ^ self._value)
            self.driver.launch("velocpy_beside_change", int(parameter["blocks"][0]), THREADS, parameter)
        self._value = value

    def differing(self, data: int) -> int:
        """How many vectors of the data, of the device or of pinned host memory, are not those of the chosen chunks."""
        fill(self.driver, self._count, 0, 8)
        if self.chosen.size:
            parameter = self._parameter(data)
            self.driver.launch("velocpy_beside_compare", int(parameter["blocks"][0]), THREADS, parameter)
        return self._counted()

    def read(self, blocks: int) -> None:
        """Queues the reading of the whole region, by so many blocks of threads."""
        numbers = {"from": self.at, "vectors": self.size // 16, "sum": self._count, "blocks": blocks}
        self.driver.launch("velocpy_beside_read", blocks, THREADS, struct(READING, **numbers))

    def intact(self) -> bool:
        """Whether the region has the sum of its words, and its first block all bytes, of the unchanged block."""
        fill(self.driver, self._count, 0, 8)
        self.read(self.processors * RESIDENT)
        want = int(self.block.view("<u4").sum(dtype=np.uint64)) * (self.size // self.block.size)
        return self._counted() == want and bool((self.driver.download(self.at, self.block.size) == self.block).all())

    def _counted(self) -> int:
        return int(self.driver.download(self._count, 8).view("<u8")[0])

    def _parameter(self, data: int, value: int = 0) -> np.ndarray[Any, Any]:
        vectors = self.chosen.size << (self._shift - 4)
        blocks = min(-(-vectors // THREADS), self.processors * RESIDENT)
        places = {"region": self.at, "chunks": self._chunks, "data": data, "wrong": self._count}
        return struct(CHOSEN, **places, count=self.chosen.size, shift=self._shift, value=value, blocks=blocks)


def comparison_works(subject: Subject) -> bool:
    """Whether the comparison finds one wrong byte, and none where there is none."""
    driver = subject.driver
    subject.choose(CHUNK, 0.01)
    lines = subject.block.reshape(-1, CHUNK)
    right = lines[subject.chosen % len(lines)].reshape(-1)
    if not right.size:
        raise ValueError(f"a region of {subject.size} bytes is too small")
    wrong = right.copy()
    wrong[right.size // 2] ^= 1
    found = []
    for data in (right, wrong):
        at = driver.allocate(data.size)
        driver.upload(at, data)
        found.append(subject.differing(at))
    return found == [0, 1]
