"""Files that are read."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from fsspec import AbstractFileSystem

from .directory import Directory
from .entries import Entry

#: Bytes that small reads read ahead: a few leaves of the checksum.
BLOCK = 1 << 20


class RawFile(io.RawIOBase):
    """The bytes of a file, read from the store straight into the caller's memory."""

    mode = "rb"

    def __init__(self, directory: Directory, name: str, entry: Entry) -> None:
        super().__init__()
        self.name = name
        self.size = entry.size
        self._directory, self._entry, self._at = directory, entry, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        if begin + offset < 0:
            raise ValueError(f"seek to {begin + offset}, before the beginning of the file")
        self._at = begin + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        count = max(0, min(memoryview(buffer).nbytes, self.size - self._at))
        self._directory.read(self.name, self._entry, self._at, np.frombuffer(buffer, np.uint8, count))
        self._at += count
        return count


class ReadFile(io.BufferedReader):
    """A file that is read. Large reads go straight to where they are wanted, small ones read a block ahead.

    It shows the file as it was when it was opened. Once that is replaced or removed, reads raise `CheckpointDropped`.
    """

    def __init__(self, fs: AbstractFileSystem, path: str, raw: RawFile, block: int | None) -> None:
        #: As other files of fsspec have it.
        self.blocksize = block or BLOCK
        super().__init__(raw, max(1, min(self.blocksize, raw.size)))
        self.fs, self.path, self.size = fs, path, raw.size

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:  # else the buffer would grow step by step
            size = max(0, self.size - self.tell())
        return super().read(size)

    def info(self) -> dict[str, Any]:
        """What the file system says of the file now."""
        info: dict[str, Any] = self.fs.info(self.path)
        return info

    def __reduce__(self) -> Any:
        return _reopened, (self.fs, self.path, self.blocksize, self.tell())


def _reopened(fs: AbstractFileSystem, path: str, block: int, at: int) -> Any:
    file = fs.open(path, "rb", block_size=block)
    file.seek(at)
    return file
