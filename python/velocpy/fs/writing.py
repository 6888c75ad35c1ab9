"""Files that are written."""

from __future__ import annotations

import io
import mmap
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np
from fsspec import AbstractFileSystem

from .directory import Array

_LEAST = 1 << 16


class Memory:
    """Bytes that grow without being copied: the system moves their pages."""

    def __init__(self) -> None:
        self.size = 0
        self._pages = mmap.mmap(-1, _LEAST, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def reserve(self, size: int) -> None:
        """Makes room for so many bytes; what was never written is zero."""
        if size > len(self._pages):
            self._pages.resize(max(size, 2 * len(self._pages)))

    def write(self, at: int, data: memoryview) -> None:
        """Writes bytes at a place."""
        end = at + data.nbytes
        self.reserve(end)
        self._pages[at:end] = data
        self.size = max(self.size, end)

    def truncate(self, size: int) -> None:
        """Makes it shorter or longer."""
        self.reserve(size)
        if size < self.size:
            self._pages[size : self.size] = bytes(self.size - size)
        self.size = size

    def array(self) -> Array:
        """The bytes; from now on nothing may change."""
        return np.frombuffer(self._pages, np.uint8, self.size)


class WriteFile(io.BufferedIOBase):
    """A file that is written. It lies in memory of this process until it is closed, beside the budgets of the store.

    `close` makes it visible, as a whole, and returns when it is durable: on disk, also after a loss of power. A storage
    option ``durable=False`` lets it return before. The former file of that name stays until then.
    It never comes to be when the ``with`` block of the file ends with an exception, after `discard`, and when the file
    is forgotten without being closed.

    Two ways hide an exception from the file, so that what was written before it becomes the file, as it does in other
    file systems: a ``with`` around `fsspec.open`, and one around a file in text mode or with compression. Use
    ``fs.open(path, "wb")``, or ``with fs.transaction``.
    """

    def __init__(
        self, fs: AbstractFileSystem, path: str, mode: str, commit: Callable[[Array], None], *, autocommit: bool
    ) -> None:
        super().__init__()
        self.fs, self.path, self.mode, self.autocommit = fs, path, mode, autocommit
        self._commit = commit
        self._memory: Memory | None = Memory()
        self._at = 0

    @property
    def name(self) -> str:
        """The path."""
        return self.path

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return 0 if self._memory is None else self._memory.size

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        memory, view = self._open(), memoryview(data).cast("B")
        memory.write(self._at, view)
        self._at += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        self._open()
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._open().size}[whence]
        if begin + offset < 0:
            raise ValueError(f"seek to {begin + offset}, before the beginning of the file")
        self._at = begin + offset
        return self._at

    def truncate(self, size: int | None = None) -> int:
        size = self._at if size is None else size
        self._open().truncate(size)
        return size

    def close(self) -> None:
        """Makes the file visible, and durable; in a transaction `commit` does."""
        if self.closed:
            return
        try:
            if self.autocommit:
                self.commit()
        finally:
            super().close()

    def commit(self) -> None:
        """Makes the file visible, and durable. Nothing after `discard`."""
        memory, self._memory = self._memory, None
        if memory is not None:
            self._commit(memory.array())

    def discard(self) -> None:
        """Closes the file so that it never comes to be. The former file of that name stays."""
        self._memory = None
        super().close()

    def _open(self) -> Memory:
        if self.closed or self._memory is None:
            raise ValueError(f"the file {self.path!r} is closed")
        return self._memory

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and not self.closed:
            self.discard()
        self.close()

    def __del__(self) -> None:
        if not self.closed and getattr(self, "_memory", None) is not None:
            self.discard()
            warnings.warn(
                f"the file {self.path!r} was not closed: nothing refers to it any more, and what was written is lost. "
                "Call close(), or use with.",
                ResourceWarning,
                stacklevel=2,
            )

    def __repr__(self) -> str:
        return f"<WriteFile {self.path!r}, {self.size} bytes>"
