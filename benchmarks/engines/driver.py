"""The few calls of the CUDA driver that torch does not offer: a busy kernel, managed memory, plain allocations."""

from __future__ import annotations

import ctypes
from typing import Any

# Waits on the device's own clock, so that its length does not depend on clock rates.
SPIN = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 nanoseconds)
{
    .reg .u64 %end, %now, %span;
    .reg .pred %more;
    ld.param.u64 %span, [nanoseconds];
    mov.u64 %end, %globaltimer;
    add.u64 %end, %end, %span;
again:
    mov.u64 %now, %globaltimer;
    setp.lt.u64 %more, %now, %end;
    @%more bra again;
    ret;
}
"""

HOST = -1  # the host, where a device is asked for
ATTACH_GLOBAL = 1
ADVISE_PREFERRED, ADVISE_ACCESSED_BY = 3, 5
PORTABLE = 1


class DriverFailed(RuntimeError):
    """A call of the driver returned an error."""


class Driver:
    """libcuda, in the context that is current when this is made; every thread calls `enter` first."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._context = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(self._context))
        if not self._context.value:
            raise DriverFailed("no CUDA context is current: import torch and touch the device first")
        module, self._spin = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(SPIN))
        self._call("cuModuleGetFunction", ctypes.byref(self._spin), module, ctypes.c_char_p(b"spin"))

    def enter(self) -> None:
        """Makes the context current in the calling thread."""
        self._call("cuCtxSetCurrent", self._context)

    def spin(self, seconds: float, stream: int, blocks: int) -> None:
        """Enqueues a kernel of so many blocks, of a warp each, that ends after so many seconds."""
        span = ctypes.c_uint64(int(seconds * 1e9))
        parameters = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(span), ctypes.c_void_p))
        shape = [ctypes.c_uint(n) for n in (blocks, 1, 1, 32, 1, 1, 0)]
        self._call("cuLaunchKernel", self._spin, *shape, ctypes.c_void_p(stream), parameters, None)

    def managed(self, size: int) -> int:
        """Address of managed memory."""
        at = ctypes.c_uint64()
        self._call("cuMemAllocManaged", ctypes.byref(at), ctypes.c_size_t(size), ctypes.c_uint(ATTACH_GLOBAL))
        return at.value

    def advise(self, at: int, size: int, advice: int, where: int) -> None:
        """Tells where managed memory is best, or who will read it."""
        self._call("cuMemAdvise", ctypes.c_uint64(at), ctypes.c_size_t(size), ctypes.c_int(advice), ctypes.c_int(where))

    def prefetch(self, at: int, size: int, where: int, stream: int) -> None:
        """Enqueues moving managed memory."""
        self._call(
            "cuMemPrefetchAsync",
            ctypes.c_uint64(at),
            ctypes.c_size_t(size),
            ctypes.c_int(where),
            ctypes.c_void_p(stream),
        )

    def allocate(self, size: int) -> int:
        """Address of device memory, mapped when this returns."""
        at = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(size))
        return at.value

    def free(self, at: int) -> None:
        """Gives back managed or device memory."""
        self._call("cuMemFree_v2", ctypes.c_uint64(at))

    def pin(self, size: int) -> int:
        """Address of pinned host memory, made by the driver."""
        at = ctypes.c_void_p()
        self._call("cuMemHostAlloc", ctypes.byref(at), ctypes.c_size_t(size), ctypes.c_uint(PORTABLE))
        return int(at.value or 0)

    def unpin(self, at: int) -> None:
        """Gives back pinned memory."""
        self._call("cuMemFreeHost", ctypes.c_void_p(at))

    def register(self, at: int, size: int) -> None:
        """Pins host memory that exists."""
        self._call("cuMemHostRegister_v2", ctypes.c_void_p(at), ctypes.c_size_t(size), ctypes.c_uint(PORTABLE))

    def unregister(self, at: int) -> None:
        """Takes the pinning back."""
        self._call("cuMemHostUnregister", ctypes.c_void_p(at))

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code != 0:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(code, ctypes.byref(text))
            raise DriverFailed(f"{name}: {(text.value or b'').decode()} ({code})")
