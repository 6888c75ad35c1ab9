"""pyrevolve's own storages beside velocpy's, under the same adjoint."""

from __future__ import annotations

import contextlib
import logging
import time
from pathlib import Path
from typing import Any

import numpy as np

import velocpy
from velocpy.extra import MissingExtra

from .report import Report
from .timing import median

HALO = 4
FIELDS = 2  # of one checkpoint: what a scheme of second order in time needs
BAR = 5

# Whom a storage is held against: all of it in memory, or a quarter in memory and the rest on disk.
OURS = {
    "NumpyStorage": "VelocStorage, memory",
    "BytesStorage": "VelocStorage, memory",
    "DiskStorage": "VelocStorage, disk",
}


def run(folder: Path, edge: int = 160, steps: int = 100, slots: int = 40, rounds: int = 5) -> Report:
    """Time to make each storage and inside its save and load, for one reversal on fields with halos.

    Each reversal is one gradient of an inversion: pyrevolve makes its storage anew for each, a store stays open.
    """
    size = FIELDS * 4 * edge**3
    report = Report(
        "storages", {"rounds": rounds, "steps": steps, "slots": slots, "checkpoint_mib": round(size / 2**20, 1)}
    )
    names = [*OURS, *dict.fromkeys(OURS.values())]
    seconds: dict[str, list[float]] = {name: [] for name in names}
    gradients = set()
    try:
        import pyrevolve.logger
    except ImportError:
        raise MissingExtra("pyrevolve", "adjoint", "the benchmark of storages") from None
    pyrevolve.logger.logger.setLevel(logging.WARNING)  # its default writes several lines for each checkpoint
    with contextlib.ExitStack() as stack:
        stores = {
            name: stack.enter_context(_store(name, folder, size * slots)) for name in dict.fromkeys(OURS.values())
        }
        for number in range(rounds + 1):
            for name in names:
                began = time.perf_counter()
                storage = _storage(name, folder, edge, slots, stores.get(name))
                made = time.perf_counter() - began
                took, gradient = _reverse(storage, edge, steps, slots)
                gradients.add(gradient)
                if number > 0:
                    seconds[name].append(made + took)
    assert len(gradients) == 1, "the storages led to different gradients"
    for name in names:
        row: dict[str, Any] = {"storage": name, "seconds in storage": median(seconds[name])}
        if name in OURS:
            ratio = median([a / b for a, b in zip(seconds[name], seconds[OURS[name]], strict=True)])
            row |= {"beside": OURS[name], "by velocpy's": ratio}
            report.bar(f"{name}'s time in storage by that of {OURS[name]}", ratio, BAR, at_least=True)
        report.rows.append(row)
    report.rows[0]["seconds"] = [seconds]
    report.notes.append(
        "DiskStorage writes to the page cache of a file and never waits for the disk; "
        "velocpy's bytes go there with O_DIRECT."
    )
    return report


def _store(name: str, folder: Path, total: int) -> velocpy.Store:
    """The store of one of ours: with room for all, or for a quarter and the rest on disk."""
    if name.endswith("disk"):
        return velocpy.open(folder, host=total // 4, disk=2 * total)
    return velocpy.open(host=total * 5 // 4)


def _storage(name: str, folder: Path, edge: int, slots: int, store: velocpy.Store | None) -> Any:
    from pyrevolve.compression import init_compression
    from pyrevolve.profiling import Profiler
    from pyrevolve.storage import BytesStorage, DiskStorage, NumpyStorage

    from velocpy.adjoint.pyrevolve import VelocStorage

    entries = FIELDS * edge**3
    if name == "NumpyStorage":
        return NumpyStorage(entries, slots, np.float32, profiler=Profiler())
    if name == "BytesStorage":
        return BytesStorage(entries * 4, slots, np.float32, init_compression({"scheme": None}), profiler=Profiler())
    if store is None:
        return DiskStorage(entries, slots, np.float32, profiler=Profiler(), filedir=f"{folder}/")
    history = store.history("gradient")
    history.clear()
    return VelocStorage(history, entries, slots, np.float32, profiler=Profiler())


def _reverse(storage: Any, edge: int, steps: int, slots: int) -> tuple[float, bytes]:
    """Reverses a toy wave with the storage and returns the seconds spent in it, and the gradient."""
    from pyrevolve import Checkpoint, Operator
    from pyrevolve.pyrevolve import SingleLevelRevolver

    padded = [np.zeros((edge + 2 * HALO,) * 3, np.float32) for _ in range(FIELDS)]
    fields = [p[HALO:-HALO, HALO:-HALO, HALO:-HALO] for p in padded]
    fields[0][...] = np.linspace(0, 1, edge, dtype=np.float32)
    gradient = np.zeros_like(fields[0])

    class State(Checkpoint):  # type: ignore[misc]
        size = FIELDS * edge**3
        dtype = np.float32

        def get_data(self, timestep: int) -> list[Any]:
            return fields

        def get_data_location(self, timestep: int) -> list[Any]:
            return fields

    class Forward(Operator):  # type: ignore[misc]
        def apply(self, **step: int) -> None:
            for t in range(step["t_start"], step["t_end"]):
                np.multiply(fields[0], np.float32(0.999), out=fields[1])
                np.add(fields[1], np.float32(t * 1e-4), out=fields[0])

    class Reverse(Operator):  # type: ignore[misc]
        def apply(self, **step: int) -> None:
            np.add(gradient, fields[0], out=gradient)

    revolver = SingleLevelRevolver(State(), Forward(), Reverse(), slots, steps)
    revolver.storage_list[0] = storage
    clock = _Clock(storage)
    if hasattr(storage, "follow"):
        storage.follow(revolver.scheduler)
    revolver.apply_forward()
    revolver.apply_reverse()
    return clock.seconds, gradient.tobytes()


class _Clock:
    """Adds up the time inside save and load of one storage."""

    def __init__(self, storage: Any) -> None:
        self.seconds = 0.0
        for name in ("save", "load"):
            setattr(storage, name, self._timed(getattr(storage, name)))

    def _timed(self, call: Any) -> Any:
        def run(*args: Any) -> Any:
            began = time.perf_counter()
            try:
                return call(*args)
            finally:
                self.seconds += time.perf_counter() - began

        return run
