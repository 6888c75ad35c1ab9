"""The first checkpoints of a process that has done nothing yet but make its CUDA context (Maurya et al., HiPC'22)."""

from __future__ import annotations

import dataclasses
import mmap
import multiprocessing
import os
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import velocpy
from benchmarks.engines.card import HostCard
from benchmarks.engines.contenders import LeftOut, card_for, fitting
from benchmarks.engines.engine import Engine
from benchmarks.engines.keep import Keep
from benchmarks.engines.managed import Managed
from benchmarks.engines.ours import Ours
from benchmarks.engines.ring import Ring
from benchmarks.engines.workload import GIB, Workload, uniform, variable

from . import team
from .play import Pace, compute_only, write

PATIENCE = 200
SAMPLE = 32  # iterations by which the loop without an engine is measured
TOUCHERS = 12
PAGE = 4096


@dataclasses.dataclass(frozen=True)
class Start:
    """What begins cold: the checkpoints, their interval, and how many processes do the same."""

    figure: str
    sizes: str
    interval: float
    count: int = 256
    device: int = 4 * GIB
    host: int = 33 * GIB  # the checkpoints, and some room for fragments
    processes: int = 1
    contenders: tuple[str, ...] = ("velocpy", "direct pinning", "keep", "unified memory")
    size: int = 128 << 20
    fresh: bool = False  # on memory that the machine has never used

    @property
    def name(self) -> str:
        """What distinguishes it, in words."""
        many = f", {self.processes} processes" if self.processes > 1 else ""
        return f"{self.count} {self.sizes}, {self.interval * 1e3:g} ms{many}{', fresh memory' if self.fresh else ''}"

    def workload(self, rank: int) -> Workload:
        """The shot of one process; nothing is read."""
        sizes = uniform(self.count, self.size) if self.sizes == "uniform" else variable(count=self.count, rank=rank)
        return Workload(sizes, interval=self.interval, device=self.device, host=self.host, restores=False)

    def fitted(self, memory: int) -> Start:
        """With fewer checkpoints, where the processes' host caches would take more than two thirds of the memory."""
        share = memory * 2 // 3 // self.processes
        if self.host <= share:
            return self
        count = max(8, int(self.count * share / self.host))
        return dataclasses.replace(self, host=share, count=count)


@dataclasses.dataclass
class Cold:
    """What one process saw; seconds."""

    opening: float
    first: float  # from the end of open to the first checkpoint captured
    blocked: float  # open included
    card: str
    facts: dict[str, Any]
    left_out: str = ""


def engine_for(name: str, card: Any, workload: Workload, folder: Path) -> Engine:
    """Opens a contender, with all that it does beforehand."""
    kind, _, variant = name.partition(" ")
    if name == "direct pinning":
        card.pinned_by_driver = True
        return Ring(card, workload, folder, name=name)
    if name == "ring":
        return Ring(card, workload, folder)
    if name == "unified memory":
        return Managed(card, workload, folder)
    if name == "keep":
        return Keep(card, workload)
    if kind == "velocpy":
        on_device = not isinstance(card, HostCard)
        if variant == "large device":
            large = dataclasses.replace(workload, device=workload.host)
            return Ours(large, folder, on_device=on_device, name=name)
        options: dict[str, Any] = {"pinning": variant} if variant else {}
        return Ours(workload, folder, on_device=on_device, name=name, **options)
    raise ValueError(f"nobody is called {name!r}")


def begin(start: Start, name: str, folder: Path) -> list[Cold]:
    """Lets one contender begin, in fresh processes; one answer for each."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(start.processes)
    answers: Any = context.Queue()
    members = [
        context.Process(target=_begin, args=(start, name, folder, rank, barrier, answers), daemon=True)
        for rank in range(start.processes)
    ]
    return team.run(members, answers, 2 * PATIENCE)


def _begin(start: Start, name: str, folder: Path, rank: int, barrier: threading.Barrier, answers: Any) -> None:
    try:
        answers.put(measure(start, name, folder, rank, lambda: _meet(barrier)))
    except LeftOut as reason:
        barrier.abort()
        answers.put(Cold(0, 0, 0, "", {}, str(reason)))
    except threading.BrokenBarrierError:
        answers.put(Cold(0, 0, 0, "", {}, "another process could not"))
    except BaseException:
        barrier.abort()
        answers.put(traceback.format_exc())


def _meet(barrier: threading.Barrier) -> None:
    barrier.wait(PATIENCE)


def measure(start: Start, name: str, folder: Path, rank: int, fence: Callable[[], None]) -> Cold:
    """Opens the contender and writes all checkpoints, the first one at once."""
    work = start.workload(rank)
    card = card_for(work.largest, rank)
    source = card.device(work.largest)
    few = dataclasses.replace(work, sizes=work.sizes[:SAMPLE])
    compute_only(card, few, source)
    without = compute_only(card, few, source).writing / len(few.sizes)
    card.stamp(source[: work.sizes[0]], 0)
    card.join()
    fence()
    with fitting(name):
        return _measured(name, card, work, folder, source, without, fence)


def _measured(
    name: str, card: Any, work: Workload, folder: Path, source: Any, without: float, fence: Callable[[], None]
) -> Cold:
    """Without: seconds of one iteration of the loop that has no engine."""
    began = time.perf_counter()
    try:
        engine = engine_for(name, card, work, folder)
    except (MemoryError, ImportError, TypeError) as reason:
        raise LeftOut(f"{name}: {reason}") from reason
    opened = time.perf_counter()
    engine.begin(work)
    engine.checkpoint(0, source[: work.sizes[0]])
    card.join()
    first = time.perf_counter()
    write(card, work, engine, source, [], Pace(), first=1)
    wall = time.perf_counter() - began
    fence()
    facts = engine.facts()
    engine.close()
    return Cold(opened - began, first - opened, wall - without * (len(work.sizes) - 1), card.name, facts)


class Touched:
    """Memory of which every page is present, and how fast it became so; given back at the end of a ``with``.

    The memory of a fresh virtual machine is slow the first time: its host maps it then. What comes later is not.
    """

    def __init__(self, nbytes: int) -> None:
        self._whole = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._whole.madvise(mmap.MADV_HUGEPAGE)
        self.rate = nbytes / self._touch(nbytes)  # bytes/s

    def _touch(self, nbytes: int) -> float:
        memory = np.frombuffer(self._whole, np.uint8)
        threads = touch_threads()
        share = -(-nbytes // threads // PAGE) * PAGE

        def work(part: np.ndarray) -> None:
            part[::PAGE] = 1

        began = time.perf_counter()
        many = [threading.Thread(target=work, args=(memory[i * share : (i + 1) * share],)) for i in range(threads)]
        for thread in many:
            thread.start()
        for thread in many:
            thread.join()
        took = time.perf_counter() - began
        many.clear()
        return took

    @property
    def address(self) -> int:
        """Where the memory begins."""
        return int(np.frombuffer(self._whole, np.uint8).ctypes.data)

    def __enter__(self) -> Touched:
        return self

    def __exit__(self, *_: object) -> None:
        self._whole.close()


def touch_threads() -> int:
    """Threads that touch memory: as many as a store takes."""
    return min(max(len(os.sched_getaffinity(0)) * 3 // 4, 1), TOUCHERS)


def register_rate(nbytes: int) -> float:
    """GB/s at which memory that has been touched is registered with the driver, with nothing beside: a ceiling."""
    import torch

    cudart: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    with Touched(nbytes) as touched:
        base, piece = touched.address, 64 << 20
        began = time.perf_counter()
        for at in range(base, base + nbytes, piece):
            if cudart.cudaHostRegister(at, piece, 0) != cudart.cudaError.success:
                raise RuntimeError(f"{piece} bytes were not registered")
        rate = nbytes / (time.perf_counter() - began) / 1e9
        for at in range(base, base + nbytes, piece):
            cudart.cudaHostUnregister(at)
    return rate


def pin_rate(nbytes: int) -> float:
    """GB/s at which a store makes its host tier ready, in a fresh process in which nothing else happens."""
    context = multiprocessing.get_context("spawn")
    answers: Any = context.Queue()
    member = context.Process(target=_pin, args=(nbytes, answers), daemon=True)
    rate: float = team.run([member], answers, PATIENCE)[0]
    return rate


def _pin(nbytes: int, answers: Any) -> None:
    try:
        card_for(GIB)
        began = time.perf_counter()
        with velocpy.open(device=GIB, host=nbytes) as store:
            while store.stats()["tiers"]["host"]["pinned_bytes"] < nbytes:
                if time.perf_counter() - began > PATIENCE:
                    raise TimeoutError("the host tier is not pinned")
                time.sleep(2e-3)
            answers.put(nbytes / (time.perf_counter() - began) / 1e9)
    except BaseException:
        answers.put(traceback.format_exc())


def physical_memory() -> int:
    """Bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
