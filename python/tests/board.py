"""The driver's double as an application of Python sees it: memory, streams and work of its own beside a store.

For processes whose core was built with the tag ``velocpy_double`` (see `gocore/cabi/devices_double.go`). What is not
ordered by streams and events is late there and found: see `Board.misuse`.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from typing import Any

LEGACY, PER_THREAD = 1, 2

_STAGED = 1 << 20  # what a copy from pageable memory has read when the call returns


class Board:
    """The device 0 of the double."""

    def __init__(self) -> None:
        core = ctypes.CDLL(os.environ["VELOCPY_CORE"])
        self._core: Any = core
        core.veloc_double_allocate.restype = ctypes.c_uint64
        core.veloc_double_allocate.argtypes = [ctypes.c_int64]
        core.veloc_double_stream.restype = ctypes.c_uint64
        core.veloc_double_copy.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint64]
        core.veloc_double_follow.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
        core.veloc_double_hold.restype = ctypes.c_uint64
        core.veloc_double_hold.argtypes = [ctypes.c_uint64]
        core.veloc_double_release.argtypes = [ctypes.c_uint64]

    def allocate(self, nbytes: int) -> int:
        """Address of device memory, which is full of the same byte."""
        address: int = self._core.veloc_double_allocate(nbytes)
        assert address, "the double has no memory left"
        return address

    def stream(self, blocking: bool = False) -> int:
        """Handle of a new stream; blocking: ordered against the legacy default stream."""
        handle: int = self._core.veloc_double_stream(int(blocking))
        assert handle
        return handle

    def fill(self, address: int, content: bytes, stream: int) -> None:
        """Queues a write."""
        for at in range(0, len(content), _STAGED):
            part = content[at : at + _STAGED]
            here = ctypes.cast(ctypes.c_char_p(part), ctypes.c_void_p).value
            assert self._core.veloc_double_copy(address + at, here, len(part), stream) == 0

    def copy(self, to: int, address: int, nbytes: int, stream: int) -> None:
        """Queues a copy on the device."""
        assert self._core.veloc_double_copy(to, address, nbytes, stream) == 0

    def follow(self, stream: int, other: int) -> None:
        """Makes what is queued in a stream from now on wait for what is queued in the other."""
        assert self._core.veloc_double_follow(stream, other) == 0

    def hold(self, stream: int) -> Callable[[], None]:
        """Queues a kernel that ends when the function returned is called."""
        held = self._core.veloc_double_hold(stream)
        assert held
        return lambda: self._core.veloc_double_release(held)

    def settle(self) -> None:
        """Waits until every stream is empty."""
        self._core.veloc_double_settle()

    def look(self, address: int, nbytes: int) -> bytes:
        """What lies there when everything queued has happened."""
        self.settle()
        return ctypes.string_at(address, nbytes)

    def misuse(self) -> list[str]:
        """Accesses that nothing orders, among what else a real driver might have let pass."""
        self.settle()
        buffer, length = ctypes.create_string_buffer(1 << 20), ctypes.c_int64()
        assert self._core.veloc_double_misuse(buffer, ctypes.c_int64(len(buffer)), ctypes.byref(length)) == 0
        found: list[str] = json.loads(buffer.raw[: length.value])
        return found
