"""A CUDA device by torch, the application on a stream of its own."""

from __future__ import annotations

import ctypes
import importlib
import mmap
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .card import Bytes, Lane, Mark, word_of
from .driver import ADVISE_ACCESSED_BY, ADVISE_PREFERRED, HOST, Driver

TOUCHERS = 8
PAGE = 4096
HUGE = 2 << 20
MATRIX = 8192


class _Event:
    """A mark; waiting sleeps, it does not spin."""

    __slots__ = ("event",)

    def __init__(self, event: Any) -> None:
        self.event = event

    def wait(self) -> None:
        """Blocks, without the interpreter's lock."""
        self.event.synchronize()


class CudaCard:
    """One GPU. The thread that makes it is the application."""

    def __init__(self, index: int, largest: int) -> None:
        self._torch: Any = importlib.import_module("torch")
        torch = self._torch
        self._index = index
        torch.cuda.set_device(index)
        self.name = torch.cuda.get_device_name(index)
        self._application = torch.cuda.Stream(index)
        torch.cuda.set_stream(self._application)
        words = -(-largest // 8) + 1
        self._pattern = torch.randint(-(2**62), 2**62, (words,), device=f"cuda:{index}", dtype=torch.int64)
        self._scratch = torch.empty_like(self._pattern)
        self._mask = torch.empty(words, device=f"cuda:{index}", dtype=torch.bool)
        self._differences = torch.zeros((), device=f"cuda:{index}", dtype=torch.int64)
        self.driver = Driver()
        self._blocks = torch.cuda.get_device_properties(index).multi_processor_count
        self._pinned: dict[int, list[Any]] = {}
        self._matrices: list[Any] | None = None
        self.pinned_by_driver = False  # one allocation by the driver, as most programs pin
        self.join()

    # --- memory ---

    def device(self, size: int) -> Bytes:
        return self._torch.empty(size, dtype=self._torch.uint8, device=f"cuda:{self._index}")

    def pinned(self, count: int, size: int) -> list[Bytes]:
        pitch = -(-size // HUGE) * HUGE
        if self.pinned_by_driver:
            memory = (ctypes.c_uint8 * (count * pitch)).from_address(self.driver.pin(count * pitch))
            whole = self._torch.from_numpy(np.ctypeslib.as_array(memory))
            return [whole[i * pitch : (i + 1) * pitch] for i in range(count)]
        for other in [p for p in self._pinned if p != pitch]:
            self._unpin(other)
        slots = self._pinned.setdefault(pitch, [])
        if len(slots) < count:
            slots += self._pin(count - len(slots), pitch)
        return slots[:count]

    def close(self) -> None:
        for pitch in list(self._pinned):
            self._unpin(pitch)
        self._torch.cuda.empty_cache()

    def _pin(self, count: int, pitch: int) -> list[Any]:
        """Huge pages, touched by several threads, registered slot by slot: many times faster than asking the driver."""
        whole = mmap.mmap(-1, count * pitch + HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        whole.madvise(mmap.MADV_HUGEPAGE)
        memory = np.frombuffer(whole, np.uint8)
        skip = -memory.ctypes.data % HUGE
        memory = memory[skip : skip + count * pitch]
        share = -(-len(memory) // TOUCHERS // PAGE) * PAGE

        def touch(part: np.ndarray) -> None:
            part[::PAGE] = 0

        team = [threading.Thread(target=touch, args=(memory[i * share : (i + 1) * share],)) for i in range(TOUCHERS)]
        for thread in team:
            thread.start()
        for thread in team:
            thread.join()
        slots = [memory[i * pitch : (i + 1) * pitch] for i in range(count)]
        for slot in slots:
            self.driver.register(slot.ctypes.data, pitch)
        return [self._torch.from_numpy(slot) for slot in slots]

    def _unpin(self, pitch: int) -> None:
        self._torch.cuda.synchronize()
        for slot in self._pinned.pop(pitch):
            self.driver.unregister(slot.data_ptr())

    def memory(self, piece: Bytes) -> memoryview:
        return memoryview(piece.numpy())

    def room(self) -> int:
        self._torch.cuda.empty_cache()
        return int(self._torch.cuda.mem_get_info(self._index)[0])

    # --- lanes ---

    def lane(self) -> Lane:
        return self._torch.cuda.Stream(self._index)

    def copy(self, to: Bytes, source: Bytes, lane: Lane = None) -> None:
        if lane is None:
            to.copy_(source, non_blocking=True)
        else:
            with self._torch.cuda.stream(lane):
                to.copy_(source, non_blocking=True)

    def copy_all(self, to: Sequence[Bytes], source: Sequence[Bytes]) -> None:
        self._torch._foreach_copy_(to, source)

    def mark(self, lane: Lane = None) -> Mark:
        event = self._torch.cuda.Event(blocking=True)
        event.record(self._application if lane is None else lane)
        return _Event(event)

    def after(self, marks: Sequence[Mark], lane: Lane = None) -> None:
        stream = self._application if lane is None else lane
        for mark in marks:
            assert isinstance(mark, _Event)
            stream.wait_event(mark.event)

    def join(self) -> None:
        self._application.synchronize()

    # --- the application's work ---

    def spin(self, seconds: float) -> None:
        self.driver.spin(seconds, self._application.cuda_stream, self._blocks)

    def stamp(self, to: Bytes, key: int) -> None:
        torch, size = self._torch, len(to)
        words = size // 8
        torch.bitwise_xor(self._pattern[:words], word_of(key), out=to[: words * 8].view(torch.int64))
        if size % 8:
            to[words * 8 :].copy_(self._tail(size, key))

    def compare(self, found: Bytes, key: int) -> None:
        torch, size = self._torch, len(found)
        words = size // 8
        scratch, mask = self._scratch[:words], self._mask[:words]
        torch.bitwise_xor(found[: words * 8].view(torch.int64), self._pattern[:words], out=scratch)
        torch.ne(scratch, word_of(key), out=mask)
        self._differences += mask.sum()
        if size % 8:
            self._differences += (found[words * 8 :] != self._tail(size, key)).sum()

    def _tail(self, size: int, key: int) -> Any:
        word = self._torch.bitwise_xor(self._pattern[size // 8 : size // 8 + 1], word_of(key))
        return word.view(self._torch.uint8)[: size % 8]

    def differences(self) -> int:
        self.join()
        found = int(self._differences.item())
        self._differences.zero_()
        return found

    # --- ceilings ---

    def seconds(self, work: Callable[[], object], head: float = 1e-3) -> float:
        torch = self._torch
        began, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.join()
        self.spin(head)
        began.record(self._application)
        work()
        ended.record(self._application)
        ended.synchronize()
        return float(began.elapsed_time(ended)) / 1e3

    def train(self, steps: int) -> None:
        if self._matrices is None:
            shape = (MATRIX, MATRIX)
            self._matrices = [self._torch.ones(shape, dtype=self._torch.bfloat16, device=f"cuda:{self._index}")] * 2
            self._matrices.append(self._torch.empty_like(self._matrices[0]))
        for _ in range(steps):
            self._torch.mm(self._matrices[0], self._matrices[1], out=self._matrices[2])

    def rates(self, size: int) -> dict[str, float]:
        one, two = self.device(size), self.device(size)
        (there, back) = self.pinned(2, size)
        there, back = there[:size], back[:size]
        side = self.lane()
        rates = {
            "device": self._rate(size, [(two, one, None)]),
            "down": self._rate(size, [(there, one, None)]),
            "up": self._rate(size, [(one, there, None)]),
        }
        rates["both"] = self._rate(2 * size, [(there, one, None), (two, back, side)])
        return rates

    def _rate(self, nbytes: int, copies: list[tuple[Bytes, Bytes, Lane]], repeat: int = 12) -> float:
        best = 0.0
        for _ in range(3):
            self._torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(repeat):
                for to, source, lane in copies:
                    self.copy(to, source, lane)
            self._torch.cuda.synchronize()
            best = max(best, repeat * nbytes / (time.perf_counter() - began))
        return best

    # --- managed memory ---

    def managed(self, size: int) -> Bytes:
        """Managed memory as bytes; `release_managed` gives it back."""
        if size > self.room():
            raise MemoryError("managed memory: more than the card has free")
        at = self.driver.managed(size)
        self.driver.advise(at, size, ADVISE_ACCESSED_BY, self._index)
        return self._torch.as_tensor(_Interface(at, size), device=f"cuda:{self._index}")

    def release_managed(self, memory: Bytes) -> None:
        """Gives managed memory back; nobody uses it any more."""
        self._torch.cuda.synchronize()
        self.driver.free(memory.data_ptr())

    def managed_view(self, memory: Bytes) -> np.ndarray:
        """Managed memory as the host sees it; pages that lie on the device come when they are touched."""
        return np.ctypeslib.as_array((ctypes.c_uint8 * len(memory)).from_address(memory.data_ptr()))

    def prefer(self, memory: Bytes, device: bool) -> None:
        """Advises where managed memory should lie."""
        self.driver.enter()
        where = self._index if device else HOST
        self.driver.advise(memory.data_ptr(), len(memory), ADVISE_PREFERRED, where)

    def move(self, memory: Bytes, device: bool, lane: Lane = None) -> None:
        """Enqueues moving managed memory to the device or to the host."""
        self.driver.enter()
        stream = self._application if lane is None else lane
        where = self._index if device else HOST
        self.driver.prefetch(memory.data_ptr(), len(memory), where, stream.cuda_stream)


class _Interface:
    """An address in the form that torch takes."""

    def __init__(self, at: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (at, False),
            "strides": None,
            "version": 3,
        }
