"""A file that takes what host memory has no room for."""

from __future__ import annotations

import itertools
import os
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

BLOCK = 4096  # what O_DIRECT wants of offsets and lengths
STEP = 16 << 20  # bytes of one system call


class SpillFile:
    """Places of these sizes in an unlinked file; several threads may write and read different ones.

    ``direct`` goes past the page cache. Without it the file takes memory beyond anybody's budget.
    """

    def __init__(self, folder: Path, sizes: Sequence[int], direct: bool = True) -> None:
        self._offsets = [0, *itertools.accumulate(-(-size // BLOCK) * BLOCK for size in sizes)]
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as named:
            path = named.name
        flags = os.O_RDWR | (os.O_DIRECT if direct else 0)
        try:
            self._fd = os.open(path, flags)
            self.direct = direct
        except OSError:  # a file system that has no O_DIRECT
            self._fd = os.open(path, os.O_RDWR)
            self.direct = False
        Path(path).unlink()
        try:
            os.posix_fallocate(self._fd, 0, max(self._offsets[-1], 1))
        except OSError:  # not so much is free: perhaps not all of it is needed
            os.ftruncate(self._fd, self._offsets[-1])
        self.written = self.read = 0
        self._counting = threading.Lock()

    def write(self, place: int, memory: memoryview, size: int) -> None:
        """Writes the first size bytes, rounded up to whole blocks; memory has to reach that far."""
        moved = self._move(os.pwrite, place, memory, size)
        with self._counting:
            self.written += moved

    def load(self, place: int, memory: memoryview, size: int) -> None:
        """Reads what was written."""
        moved = self._move(lambda fd, part, at: os.preadv(fd, [part], at), place, memory, size)
        with self._counting:
            self.read += moved

    def _move(self, call, place: int, memory: memoryview, size: int) -> int:  # type: ignore[no-untyped-def]
        length = -(-size // BLOCK) * BLOCK
        at = 0
        while at < length:
            moved = call(self._fd, memory[at : min(at + STEP, length)], self._offsets[place] + at)
            if moved <= 0:
                raise OSError(f"the spill file ends at {at} of {length} bytes of place {place}")
            at += moved
        return length

    def close(self) -> None:
        """Gives the space back."""
        os.close(self._fd)
