"""A process that is going to be killed: it works on stores, one after the other, and shows what it is doing.

As a program: ``victim.py PATH SHOWN SEED [DEVICE]``. It shows the number of its present work in the first byte of the
file SHOWN. When the first store has given every checkpoint back bit by bit it prints a line, and goes on until it is
killed. It ends by itself only with an error. Without a device the arrays are NumPy's, with one they are raw memory.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import sys
from pathlib import Path
from typing import Any

import numpy as np

import velocpy
from velocpy.knobs import kernels_path

#: What it may be at. The next work begins where the last one ends.
WORKS = ("start", "open", "checkpoint", "flush", "lease", "restore", "close")

MIB = 1 << 20
HELD = 4


class Host:
    """Arrays in host memory."""

    largest, count = MIB // 2 + 7, 48

    def __init__(self) -> None:
        self.budgets = {"host": 8 * MIB, "disk": 64 * MIB}
        self._back = np.empty(self.largest, np.uint8)

    def source(self, values: np.ndarray[Any, Any]) -> Any:
        return values

    def destination(self, nbytes: int) -> Any:
        return self._back[:nbytes]

    def read(self, array: Any) -> np.ndarray[Any, Any]:
        return np.asarray(array)


class Device:
    """Raw memory of a device, always the same: what is in it has to be captured before it is written again."""

    largest, count = 4 * MIB + 7, 56

    def __init__(self, number: int) -> None:
        self.budgets = {"device": {number: 64 * MIB}, "host": 96 * MIB, "disk": 512 * MIB}
        self._number = number
        from benchmarks.device.kernels import Driver

        self._driver = Driver(Path(kernels_path()), number)
        self._source, self._back = (self._driver.allocate(self.largest) for _ in range(2))

    def source(self, values: np.ndarray[Any, Any]) -> Any:
        self._driver.call(
            "cuMemcpyHtoD_v2",
            ctypes.c_uint64(self._source),
            ctypes.c_void_p(values.ctypes.data),
            ctypes.c_size_t(values.size),
        )
        return self._source, values.size, self._number

    def destination(self, nbytes: int) -> Any:
        return self._back, nbytes, self._number

    def read(self, array: Any) -> np.ndarray[Any, Any]:
        if isinstance(array, tuple):
            address, size, _ = array
        elif hasattr(array, "__cuda_array_interface__"):
            shown = array.__cuda_array_interface__
            address, (size,) = shown["data"][0], shown["shape"]
        else:
            return np.asarray(array)
        values = np.empty(size, np.uint8)
        self._driver.call(
            "cuMemcpyDtoH_v2", ctypes.c_void_p(values.ctypes.data), ctypes.c_uint64(address), ctypes.c_size_t(size)
        )
        return values


class Victim:
    """Its folder, its memory, and what it shows."""

    def __init__(self, path: str, shown: str, seed: int, place: Host | Device) -> None:
        self._path, self._place = path, place
        with Path(shown).open("r+b") as file:
            self._shown = mmap.mmap(file.fileno(), 1)
        self._noise = np.random.default_rng(seed).integers(0, 256, place.largest, dtype=np.uint8)

    def show(self, work: str) -> None:
        self._shown[0] = WORKS.index(work)

    def values(self, key: int) -> np.ndarray[Any, Any]:
        """Random bytes, of another process others, and for every key another number of them."""
        return self._noise[: self._noise.size - 8191 * key] + np.uint8(key)

    def compare(self, key: int, array: Any) -> None:
        if not np.array_equal(self._place.read(array), self.values(key)):
            raise AssertionError(f"checkpoint {key} differs")

    def work(self) -> None:
        """Keeps a history larger than the memory, and takes it back."""
        place = self._place
        self.show("open")
        with velocpy.open(self._path, durable=False, **place.budgets) as store:
            history = store.history("h")
            history.hint(reversed(range(place.count)))
            self.show("checkpoint")
            for key in range(place.count):
                ticket = history.checkpoint(key, u=place.source(self.values(key)))
            self.show("flush")
            ticket.wait("disk", timeout=60)
            self.show("lease")
            leases = {key: history.restore(key) for key in range(place.count - HELD, place.count)}
            for key, lease in leases.items():
                self.compare(key, lease["u"])
            self.show("restore")
            for key in reversed(range(place.count)):
                back = place.destination(self.values(key).size)
                history.restore(key, into={"u": back}, last=True)
                self.compare(key, back)
            self.show("close")


def main(path: str, shown: str, seed: str, device: str | None = None) -> None:
    place = Host() if device is None else Device(int(device))
    victim = Victim(path, shown, int(seed), place)
    for done in itertools.count():
        victim.work()
        if done == 0:
            print("works", flush=True)


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # where `benchmarks` lies
    main(*sys.argv[1:])
