"""The CUDA driver's calls on kernels that are compiled for this processor."""

from __future__ import annotations

import ctypes
import mmap
import struct
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from build_support.toolchain import find_cxx

PROCESSORS = 3
ROOM = 16 << 20
FIXED_NOREPLACE = 0x100000

Fault = Callable[["EmulatedDriver", str, np.ndarray], None]
"""Makes a kernel wrong: it is called behind each launch."""


def compiled(source: Path, program: Path) -> Path:
    """The program that runs the kernels of a source."""
    flags = ["-std=c++17", "-O1", "-U_FORTIFY_SOURCE", "-Wno-unknown-pragmas", "-x", "c++"]
    subprocess.run([find_cxx(), *flags, str(source), "-o", str(program)], check=True)
    return program


class EmulatedDriver:
    """Memory of device and host are one, at the same address in this process and in the one that runs the kernels.

    Each call takes effect at once, in the order of the calls, whatever the stream. Pinned memory grows from the end of
    the memory, and is not freed by a release, as with the driver itself.
    """

    name, stream = "emulated", ctypes.c_void_p()
    base = 0x3000_0000_0000

    def __init__(self, program: Path, fault: Fault | None = None) -> None:
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
            file.truncate(ROOM)
            self._memory = _mapped(self.base, ROOM, file.fileno())
            path = file.name.encode()
            self._ask(struct.pack("<IQQI", 5, self.base, ROOM, len(path)) + path)
        self._used, self._end = 0, ROOM
        self._fault = fault
        self._captured: list[tuple[Any, ...]] | None = None
        self._graphs: list[list[tuple[Any, ...]]] = []

    def _ask(self, words: bytes) -> None:
        """Has the process do something, and the hash of nothing behind it, whose answer is waited for."""
        self._process.stdin.write(words + struct.pack("<IQ", 1, 0))
        self._process.stdin.flush()
        assert len(self._process.stdout.read(8)) == 8, "the kernels' process has ended"

    def close(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0
        self._memory = np.zeros(0, np.uint8)
        _libc().munmap(ctypes.c_void_p(self.base), ctypes.c_size_t(ROOM))

    def allocate(self, size: int) -> int:
        at = self._used
        self._used += -(-size // 256) * 256
        assert self._used <= self._end
        return self.base + at

    def pinned(self, size: int) -> np.ndarray:
        self._end -= -(-size // 256) * 256
        assert self._used <= self._end
        return self._memory[self._end :][:size]

    def release(self) -> None:
        self._used = 0

    def part(self, at: int, size: int) -> np.ndarray:
        begin = at - self.base
        assert 0 <= begin <= begin + size <= self._used or self._end <= begin <= begin + size <= ROOM
        return self._memory[begin:][:size]

    def upload(self, to: int, data: np.ndarray) -> None:
        self.part(to, data.size)[:] = data

    def download(self, at: int, size: int) -> np.ndarray:
        return self.part(at, size).copy()

    def copy(self, to: int, source: int, size: int) -> None:
        self.part(to, size)[:] = self.part(source, size)

    def call(self, name: str, *arguments: Any) -> None:
        if self._captured is not None and name != "cuStreamEndCapture":
            self._captured.append((self.call, name, *arguments))
        elif name == "cuMemsetD8Async":
            at, value, size, _ = arguments
            self.part(at.value, size.value)[:] = value.value
        elif name == "cuMemcpyDtoDAsync_v2":
            to, source, size, _ = arguments
            self.copy(to.value, source.value, size.value)
        elif name == "cuMemcpyDtoHAsync_v2":
            to, source, size, _ = arguments
            self.part(to.value, size.value)[:] = self.part(source.value, size.value)
        elif name == "cuDeviceGetAttribute":
            arguments[0]._obj.value = PROCESSORS
        elif name == "cuStreamBeginCapture_v2":
            self._captured = []
        elif name == "cuStreamEndCapture":
            self._graphs.append(self._captured or [])
            self._captured = None
            arguments[1]._obj.value = len(self._graphs)
        elif name == "cuGraphInstantiateWithFlags":
            arguments[0]._obj.value = arguments[1].value
        elif name == "cuGraphLaunch":
            for work, *rest in self._graphs[arguments[0].value - 1]:
                work(*rest)
        else:
            waits = {"cuEventRecord", "cuStreamWaitEvent", "cuEventSynchronize", "cuStreamSynchronize"}
            assert name in {"cuStreamCreateWithPriority", *waits}

    def launch(self, name: str, blocks: int, threads: int, parameter: np.ndarray, stream: object = None) -> None:
        assert blocks > 0, f"{name}: a driver refuses a launch without blocks"
        if self._captured is not None:
            self._captured.append((self.launch, name, blocks, threads, parameter.copy()))
            return
        text = name.encode()
        words = struct.pack("<II", 3, len(text)) + text
        self._ask(words + struct.pack("<III", blocks, threads, parameter.nbytes) + parameter.tobytes())
        if self._fault is not None:
            self._fault(self, name, parameter)

    def synchronize(self) -> None: ...

    def event(self) -> None: ...

    def milliseconds(self, begin: object, end: object) -> float:
        return 1.0

    def blocks_per_processor(self, name: str, threads: int) -> int:
        return 4


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _mapped(at: int, size: int, file: int) -> np.ndarray:
    """A file's bytes as memory at an address that is free."""
    call = _libc().mmap
    call.restype = ctypes.c_void_p
    protection, kind = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | FIXED_NOREPLACE
    found = call(ctypes.c_void_p(at), ctypes.c_size_t(size), protection, kind, file, ctypes.c_long(0))
    assert found == at, f"no memory at {at:#x}"
    return np.ctypeslib.as_array(ctypes.cast(at, ctypes.POINTER(ctypes.c_uint8)), (size,))
