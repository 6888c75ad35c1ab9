"""What a shot needs of a device, and host memory in a device's place.

Bytes are one-dimensional arrays of bytes that can be sliced. Work is enqueued on lanes; without a lane it goes to the
application's. A mark stands for everything enqueued on a lane before it.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

Bytes = Any
Lane = Any

SALT = 0x9E3779B97F4A7C15


class Mark(Protocol):
    """A point in a lane."""

    def wait(self) -> None:
        """Blocks the calling thread until the point is reached."""
        ...


class Card(Protocol):
    """A device with a link to host memory."""

    name: str

    def lane(self) -> Lane:
        """A new lane beside the application's."""
        ...

    def device(self, size: int) -> Bytes:
        """Device memory; may cost time, and is given back when nobody holds it."""
        ...

    def pinned(self, count: int, size: int) -> list[Bytes]:
        """Count pieces of host memory at full link speed, each at an address O_DIRECT takes."""
        ...

    def memory(self, piece: Bytes) -> memoryview:
        """The bytes of a piece of host memory, for reading and writing files."""
        ...

    def copy(self, to: Bytes, source: Bytes, lane: Lane = None) -> None:
        """Enqueues a copy between any two places."""
        ...

    def copy_all(self, to: Sequence[Bytes], source: Sequence[Bytes]) -> None:
        """Enqueues copies of many pieces of device memory, in one call of the library."""
        ...

    def mark(self, lane: Lane = None) -> Mark:
        """The point that the lane has been told up to now."""
        ...

    def after(self, marks: Sequence[Mark], lane: Lane = None) -> None:
        """What is enqueued next waits for the marks; the calling thread does not."""
        ...

    def spin(self, seconds: float) -> None:
        """Enqueues a kernel that keeps the device busy for so long."""
        ...

    def stamp(self, to: Bytes, key: int) -> None:
        """Enqueues writing the bytes of a checkpoint."""
        ...

    def compare(self, found: Bytes, key: int) -> None:
        """Enqueues comparing all bytes with those of the checkpoint; differences are counted on the device."""
        ...

    def differences(self) -> int:
        """Waits, and says how many words differed since this was last asked."""
        ...

    def join(self) -> None:
        """Waits for the application's lane."""
        ...

    def seconds(self, work: Callable[[], object], head: float = 1e-3) -> float:
        """Waits, and says how long the device was busy with what work enqueues on the application's lane.

        The work is enqueued while the device is kept busy for head seconds, so that it never waits for the host.
        """
        ...

    def train(self, steps: int) -> None:
        """Enqueues kernels like those of a training step."""
        ...

    def rates(self, size: int) -> dict[str, float]:
        """Bytes/s of plain copies of so many bytes: ``device``, ``down``, ``up``, and ``both`` ways at once, in sum."""
        ...

    def room(self) -> int:
        """Bytes of device memory that are free."""
        ...

    def close(self) -> None:
        """Gives back what it keeps for the next engine; no memory of it is in use any more."""
        ...


def pattern(size: int) -> np.ndarray:
    """Bytes nobody writes by chance, the same everywhere; a checkpoint's are these and its key."""
    return np.random.default_rng(7).integers(0, 256, size, dtype=np.uint8)


def word_of(key: int) -> int:
    """The 64 bits, signed, by which the bytes of a checkpoint differ from the pattern."""
    word = (key + 1) * SALT % 2**64
    return word - 2**64 if word >= 2**63 else word


class _Passed:
    def wait(self) -> None:
        """Everything here is done when it is enqueued."""


class HostCard:
    """Host memory in place of a device: everything is done at once. For tests; what it measures means nothing."""

    name = "host memory"

    def __init__(self, largest: int) -> None:
        self._pattern = pattern(largest + 8)
        self._differences = 0

    def lane(self) -> Lane:
        return None

    def device(self, size: int) -> Bytes:
        return np.zeros(size, np.uint8)

    def pinned(self, count: int, size: int) -> list[Bytes]:
        pitch = -(-size // 4096) * 4096
        whole = np.frombuffer(mmap.mmap(-1, max(count * pitch, 1)), np.uint8)
        return [whole[i * pitch : i * pitch + pitch] for i in range(count)]

    def memory(self, piece: Bytes) -> memoryview:
        return memoryview(piece)

    def copy(self, to: Bytes, source: Bytes, lane: Lane = None) -> None:
        np.copyto(to, source)

    def copy_all(self, to: Sequence[Bytes], source: Sequence[Bytes]) -> None:
        for one, other in zip(to, source, strict=True):
            np.copyto(one, other)

    def mark(self, lane: Lane = None) -> Mark:
        return _Passed()

    def after(self, marks: Sequence[Mark], lane: Lane = None) -> None:
        for mark in marks:
            mark.wait()

    def spin(self, seconds: float) -> None:
        time.sleep(seconds)

    def expected(self, size: int, key: int) -> np.ndarray:
        """The bytes of a checkpoint."""
        words = self._pattern[: -(-size // 8) * 8].view(np.int64) ^ np.int64(word_of(key))
        return words.view(np.uint8)[:size]

    def stamp(self, to: Bytes, key: int) -> None:
        to[:] = self.expected(len(to), key)

    def compare(self, found: Bytes, key: int) -> None:
        self._differences += int(np.count_nonzero(found != self.expected(len(found), key)))

    def differences(self) -> int:
        found, self._differences = self._differences, 0
        return found

    def join(self) -> None:
        pass

    def seconds(self, work: Callable[[], object], head: float = 1e-3) -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    def train(self, steps: int) -> None:
        for _ in range(steps):
            np.dot(a := np.ones((64, 64)), a)

    def rates(self, size: int) -> dict[str, float]:
        a, b = np.ones(size, np.uint8), np.ones(size, np.uint8)
        began = time.perf_counter()
        for _ in range(4):
            np.copyto(a, b)
        rate = 4 * size / (time.perf_counter() - began)
        return {"device": rate, "down": rate, "up": rate, "both": rate}

    def room(self) -> int:
        return 1 << 40

    def close(self) -> None:
        pass

    # --- managed memory: any memory is ---

    def managed(self, size: int) -> Bytes:
        """Memory."""
        return np.zeros(size, np.uint8)

    def release_managed(self, memory: Bytes) -> None:
        """Nothing: nobody holds it any more."""

    def managed_view(self, memory: Bytes) -> np.ndarray:
        """The memory."""
        return np.asarray(memory)

    def prefer(self, memory: Bytes, device: bool) -> None:
        """Nothing: there is one place only."""

    def move(self, memory: Bytes, device: bool, lane: Lane = None) -> None:
        """Nothing: there is one place only."""
