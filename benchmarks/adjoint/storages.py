"""pyrevolve's own storages beside velocpy's, under the same adjoint."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import velocpy
from velocpy.bench.report import Report
from velocpy.bench.timing import median
from velocpy.extra import MissingExtra

from . import adjoints, limited

BAR = 5
MEMORY, TIERS, DISK = "VelocStorage, memory", "VelocStorage, memory and disk below", "VelocStorage, disk"
COPY = "one copy"

# Whom a storage is held against: with as much memory as it has itself, a page cache included.
OURS = {"NumpyStorage": MEMORY, "BytesStorage": MEMORY, "DiskStorage": TIERS}

REST = 1.0  # seconds: a virtual machine's host writes on when the machine is done

LIMITED_LEAST = 1 << 30  # of a history: below, an interpreter's own growth would be what the limit limits

Timed = tuple[float, int, str]


class Size(NamedTuple):
    """Of a reversal: cubes of edge³ elements, steps, and slots for checkpoints."""

    edge: int
    steps: int = 100
    slots: int = 40

    def history(self) -> int:
        """Bytes of a checkpoint in every slot."""
        return adjoints.FIELDS * 4 * self.edge**3 * self.slots


# Up to 128 MiB, the checkpoints of the paper's shots; fewer of the large ones: all contenders are in memory at once.
SIZES = (Size(34), Size(64), Size(102), Size(160), Size(200, steps=60, slots=24), Size(256, steps=40, slots=16))


def run(
    folder: Path,
    sizes: tuple[Size, ...] = SIZES,
    shot: tuple[int, int] = (216, 336),
    steps: int = 100,
    slots: int = 40,
    rounds: int = 5,
) -> Report:
    """Time to make each storage and inside its save and load: the demo's adjoint first, then a series of sizes.

    Each reversal is one gradient of an inversion: pyrevolve makes its storage anew for each, a store stays open.
    """
    report = Report(
        "storages",
        {"rounds": rounds, "shot": shot, "steps": steps, "slots": slots, "sizes": [size._asdict() for size in sizes]},
    )
    try:
        import pyrevolve.logger
    except ImportError:
        raise MissingExtra("pyrevolve", "adjoint", "the benchmark of storages") from None
    pyrevolve.logger.logger.setLevel(logging.WARNING)  # its default writes several lines for each checkpoint
    _compare(report, "the demo's shot", adjoints.Shot(shot, steps), folder, steps, slots, rounds)
    for size in sizes:
        _compare(report, "toy wave", adjoints.Toy(size.edge), folder, size.steps, size.slots, rounds)
    _under_limits(report, folder, sizes, rounds)
    report.notes += [
        f"{COPY!r} is one NumPy copy of each array, into memory that was touched before: a storage that keeps bytes "
        "can hardly do less. A storage that takes less than five times as long leaves no room for the bar.",
        f"{TIERS!r}: DiskStorage writes to the page cache and does not wait for the disk, so velocpy has a host "
        "budget that holds what the page cache holds, and its disk tier below that.",
        "'limited' runs have one memory limit, that of a control group: a quarter of the history and "
        f"{limited.MARGIN >> 20} MiB more: both then need the disk.",
    ]
    return report


def _compare(
    report: Report, what: str, adjoint: adjoints.Adjoint, folder: Path, steps: int, slots: int, rounds: int
) -> None:
    total = adjoint.entries * 4 * slots
    names = [*OURS, *dict.fromkeys(OURS.values()), COPY]
    runs: dict[str, list[Timed]] = {name: [] for name in names}
    with contextlib.ExitStack() as stack:
        stores = {name: stack.enter_context(opened(name, folder, total * 5 // 4, total)) for name in names}
        kept = np.ones((slots, adjoint.entries), np.float32)
        for number in range(rounds + 1):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                storage = _Copies(kept) if name == COPY else None
                timed = once(name, adjoint, folder, steps, slots, stores[name], storage)
                if number > 0:
                    runs[name].append(timed)
                if name in ("DiskStorage", TIERS):
                    os.sync()  # what it has left to be written would slow the next one down
                    time.sleep(REST)
    assert len({gradient for all_ in runs.values() for _, _, gradient in all_}) == 1, "the gradients differ"
    label = f"{what}, {adjoint.entries * 4 / 2**20:.3g} MiB"
    seconds = {name: [s for s, _, _ in all_] for name, all_ in runs.items()}
    for name in names:
        _row(report, label, name, seconds, runs[name][0][1], OURS.get(name))
        if name in OURS:
            report.rows[-1]["by one copy's"] = _ratio(seconds[name], seconds[COPY])


def _under_limits(report: Report, folder: Path, sizes: tuple[Size, ...], rounds: int) -> None:
    large = [size for size in sizes if size.history() >= LIMITED_LEAST]
    if not large or not limited.possible():
        report.remark("Nothing was run under a memory limit: too small, or no control group to be had.")
        return
    for size in large:
        _under_a_limit(report, folder, size, rounds)


def _under_a_limit(report: Report, folder: Path, size: Size, rounds: int) -> None:
    budget = size.history() // 4
    runs = {name: limited.run(name, folder, *size, rounds, budget) for name in ("DiskStorage", DISK)}
    assert len({r["gradient"] for r in runs.values()}) == 1, "the gradients differ"
    seconds = {name: r["seconds"] for name, r in runs.items()}
    for name, r in runs.items():
        label = f"limited, toy wave, {size.history() / size.slots / 2**20:.3g} MiB"
        _row(report, label, name, seconds, r["calls"], DISK if name == "DiskStorage" else None)


def _row(
    report: Report, label: str, name: str, seconds: dict[str, list[float]], calls: int, beside: str | None
) -> None:
    row: dict[str, Any] = {"adjoint": label, "storage": name, "seconds in storage": median(seconds[name])}
    row["µs per call"] = row["seconds in storage"] / calls * 1e6
    if beside is not None:
        row |= {"beside": beside, "by velocpy's": _ratio(seconds[name], seconds[beside])}
        report.bar(f"{label}: {name}'s time in storage by that of {beside}", row["by velocpy's"], BAR, at_least=True)
    report.rows.append(row | {"all seconds": [seconds[name]]})


def _ratio(one: list[float], other: list[float]) -> float:
    return median([a / b for a, b in zip(one, other, strict=True)])


def opened(name: str, folder: Path, host: int, total: int) -> contextlib.AbstractContextManager[velocpy.Store | None]:
    """The store of one of ours, with so much memory for a history of ``total`` bytes; None for all others."""
    if name == MEMORY:
        return velocpy.open(host=host)
    if name in (TIERS, DISK):
        return velocpy.open(folder, host=host, disk=2 * total, durable=False)
    return contextlib.nullcontext()


def once(
    name: str,
    adjoint: adjoints.Adjoint,
    folder: Path,
    steps: int,
    slots: int,
    store: velocpy.Store | None,
    storage: Any = None,
) -> Timed:
    """One gradient, with a storage that is made for it unless it is given."""
    began = time.perf_counter()
    if storage is None:
        storage = _storage(name, folder, adjoint.entries, slots, store)
    made = time.perf_counter() - began
    took, calls, gradient = adjoints.reverse(adjoint, storage, steps, slots)
    return made + took, calls, gradient


def _storage(name: str, folder: Path, entries: int, slots: int, store: velocpy.Store | None) -> Any:
    from pyrevolve.compression import init_compression
    from pyrevolve.profiling import Profiler
    from pyrevolve.storage import BytesStorage, DiskStorage, NumpyStorage

    from velocpy.adjoint.pyrevolve import VelocStorage

    if name == "NumpyStorage":
        return NumpyStorage(entries, slots, np.float32, profiler=Profiler())
    if name == "BytesStorage":
        return BytesStorage(entries * 4, slots, np.float32, init_compression({"scheme": None}), profiler=Profiler())
    if store is None:
        return DiskStorage(entries, slots, np.float32, profiler=Profiler(), filedir=f"{folder}/")
    history = store.history("gradient")
    history.clear()
    return VelocStorage(history, entries, slots, np.float32, profiler=Profiler())


class _Copies:
    """Not a storage to use: arrays that are there already, and one copy for each array of a save or load."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    def save(self, key: int, data: list[Any]) -> None:
        """Copies in."""
        for array, place in self._places(key, data):
            np.copyto(place, array)

    def load(self, key: int, locations: list[Any]) -> None:
        """Copies out."""
        for array, place in self._places(key, locations):
            np.copyto(array, place)

    def _places(self, key: int, arrays: list[Any]) -> list[tuple[Any, Any]]:
        places, at = [], 0
        for array in arrays:
            places.append((array, self._memory[key, at : at + array.size].reshape(array.shape)))
            at += array.size
        return places
