"""The ceiling of the disk tier: what O_DIRECT does on the same disk without anything around it."""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BLOCK = 4 << 20


class RawDisk:
    """A preallocated, unlinked file that several threads read and write in large aligned blocks.

    The threads give the disk as many transfers at once; Python's lock is free while they wait.
    """

    def __init__(self, folder: Path, size: int, threads: int = 4, block: int = BLOCK) -> None:
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as named:
            self._path = named.name
        self.direct = True
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_DIRECT)
        except OSError:  # tmpfs and some others
            self.direct = False
            self._fd = os.open(self._path, os.O_RDWR)
        Path(self._path).unlink()
        os.posix_fallocate(self._fd, 0, size)
        self._size, self._threads, self._block = size, threads, block
        self._buffers = [mmap.mmap(-1, block) for _ in range(threads)]
        for buffer in self._buffers:
            buffer.write(os.urandom(block))

    def write(self) -> float:
        """Seconds to write all of it."""
        return self._all(lambda buffer, at: os.pwrite(self._fd, buffer, at))

    def read(self) -> float:
        """Seconds to read all of it."""
        return self._all(lambda buffer, at: os.preadv(self._fd, [buffer], at))

    def write_synced(self, piece: int) -> float:
        """Seconds to write all of it, front to back, with an fdatasync after each ``piece`` bytes."""

        def write(at: int, end: int) -> None:
            length = min(self._block, end - at)
            if os.pwrite(self._fd, memoryview(self._buffers[0])[:length], at) != length:
                raise OSError(f"short transfer at {at}")

        with ThreadPoolExecutor(self._threads) as pool:
            began = time.perf_counter()
            for start in range(0, self._size, piece):
                end = min(start + piece, self._size)
                if end - start <= self._block:
                    write(start, end)
                else:
                    list(pool.map(lambda at, end=end: write(at, end), range(start, end, self._block)))
                os.fdatasync(self._fd)
            return time.perf_counter() - began

    def close(self) -> None:
        """Gives the space back."""
        os.close(self._fd)

    def _all(self, move) -> float:  # type: ignore[no-untyped-def]
        places = iter(range(0, self._size, self._block))
        lock = threading.Lock()
        failures: list[BaseException] = []

        def work(buffer: mmap.mmap) -> None:
            try:
                while True:
                    with lock:
                        at = next(places, None)
                    if at is None:
                        return
                    if move(buffer, at) != self._block:
                        raise OSError(f"short transfer at {at}")
            except BaseException as failure:
                failures.append(failure)

        team = [threading.Thread(target=work, args=(buffer,)) for buffer in self._buffers]
        began = time.perf_counter()
        for thread in team:
            thread.start()
        for thread in team:
            thread.join()
        if failures:
            raise failures[0]
        return time.perf_counter() - began
