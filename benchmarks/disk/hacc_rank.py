"""A rank of the benchmark `hacc`: ``hacc_rank.py flush|keep|restart|beside SETTINGS``, under mpiexec.

The settings are one JSON object; the lowest rank writes what was found, as JSON, to standard output.
"""

from __future__ import annotations

import importlib
import json
import mmap
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import velocpy
from benchmarks.data.particles import PARTICLE, State, differing, loads, move, particles
from benchmarks.disk.flushes import BLOCK, HISTORY, Adios, Collective, Local, Own, Push, Run, Way
from benchmarks.disk.hacc import NOT_INSTALLED
from benchmarks.disk.pushes import PIECE, direct
from velocpy.archive import part
from velocpy.bench.timing import by_turns

#: What the figures of a way are called, before the number of files.
OWN, PUSH, NODES = "a file for each rank", "archive", "archive of nodes"
MPI_IO, BP5 = "MPI-IO", "ADIOS2"
DIRECT, ALL_WRITE, FROM_MEMORY = " with O_DIRECT", " where all write", " from memory"
PLAIN, PLAIN_DIRECT, RESTORED = "plain reads", "plain reads with O_DIRECT", "archive"
ALONE, BESIDE_PUSH, BESIDE_OWN = "alone", "beside a push", "beside a copy by each rank"

#: Parameters of ADIOS2. Of the other forms than the default: no least and largest values.
FORMS: dict[str, dict[str, str]] = {
    "": {},
    DIRECT: {
        "StatsLevel": "0",
        "DirectIO": "On",
        "DirectIOAlignOffset": str(BLOCK),
        "DirectIOAlignBuffer": str(BLOCK),
    },
    ALL_WRITE: {"StatsLevel": "0", "AggregationType": "EveryoneWrites"},
}


def made(world: MPI.Intracomm, folder: Path, *, variables: bool, uneven: bool, size: int, count: int) -> Run:
    """The checkpoints of this rank, in a store and as plain bytes; sizes are those of a rank on average."""
    mine = int(size * loads(world.size, uneven=uneven)[world.rank])

    def states() -> Iterator[State]:
        if variables:
            state = particles(world.rank, mine // PARTICLE)
            for _ in range(count):
                yield state
                move(state)
        else:
            rng = np.random.default_rng(world.rank)
            for _ in range(count):
                yield {"u": rng.integers(0, 256, mine, np.uint8)}

    path = folder / f"rank-{world.rank:05d}"
    with velocpy.open(path, host=2 * mine + (16 << 20), disk=2 * count * mine + (64 << 20)) as store:
        for step, state in enumerate(states()):
            store.history(HISTORY).checkpoint(step, state).wait("disk")
    local = Local(folder / f"local-{world.rank:05d}", states)
    return Run(world, local, path, folder / "shared", memoryview(b""))


def ways_of(run: Run, files: list[int], of_node: int) -> dict[str, Way]:
    """All ways, by name."""
    ways: dict[str, Way] = {OWN: Own(run, run.world.size)}
    for each in files:
        ways[f"{PUSH}, {each} files"] = Push(run, each)
        ways[f"{NODES}, {each} files"] = Push(run, each, of_node)
        ways[f"{MPI_IO}, {each} files"] = Collective(run, each)
        ways[f"{MPI_IO}{FROM_MEMORY}, {each} files"] = Collective(run, each, memory=True)
        try:
            for form, parameters in FORMS.items():
                ways[f"{BP5}{form}, {each} files"] = Adios(run, each, parameters)
            ways[f"{BP5}{DIRECT}{FROM_MEMORY}, {each} files"] = Adios(run, each, FORMS[DIRECT], memory=True)
        except (ImportError, ValueError):
            continue
    return ways


def flush(world: MPI.Intracomm, settings: dict[str, Any]) -> dict[str, Any]:
    """Seconds of each way until all bytes are on the medium, and bytes that differ; the first round is compared."""
    folder = Path(settings["folder"])
    run = made(world, folder, **settings["data"])
    memory = memoryview(mmap.mmap(-1, run.local.nbytes))
    run.local.read(memory, 0)
    run = run._replace(memory=memory)
    ways = ways_of(run, settings["files"], settings["of_node"])
    faults: dict[str, int] = {}

    def lap(name: str, way: Way) -> float:
        took = _timed(world, way.flush, way.clear)
        if name not in faults:
            faults[name] = world.allreduce(way.differing())
            world.Barrier()
        return took

    took = by_turns({name: partial(lap, name, way) for name, way in ways.items()}, settings["rounds"])
    return {"took": took, "faults": faults, "bytes": world.allreduce(_bytes(run.local)), "adios2": _adios2()}


def keep(world: MPI.Intracomm, settings: dict[str, Any]) -> dict[str, Any]:
    """An archive, and a file for each rank, that other runs restart from."""
    run = made(world, Path(settings["folder"]), **settings["data"])
    push = Push(run, settings["keep"])
    _timed(world, push.flush, push.clear)
    _note_places(run)
    return {"faults": {PUSH: world.allreduce(push.differing())}}


def restart(world: MPI.Intracomm, settings: dict[str, Any]) -> dict[str, Any]:
    """Seconds until a run of this many ranks has the last checkpoint of a run of another number; all is compared."""
    old, count, shared = settings["ranks"], settings["data"]["count"], Path(settings["folder"])
    archive, step = shared / "shared" / "push", count - 1
    shares = [(rank, begin, end) for rank, begin, end in _shares(old, world.size)[world.rank]]
    sizes = [int(settings["data"]["size"] * load) // PARTICLE for load in loads(old, uneven=settings["data"]["uneven"])]
    cuts = [slice(int(sizes[rank] * begin), int(sizes[rank] * end)) for rank, begin, end in shares]
    into = [_empty(cut.stop - cut.start) for cut in cuts]
    places = [json.loads((shared / f"places-{rank}.json").read_text()) for rank, _, _ in shares]
    nbytes = sum(array.nbytes for state in into for array in state.values())
    found: list[State] = []

    def restored() -> None:
        with velocpy.open(archive, host="16MiB", mode="r") as store:
            for (rank, _, _), cut, state in zip(shares, cuts, into, strict=True):
                history = store.history(part(HISTORY, rank))
                whole = cut == slice(0, sizes[rank])
                history.restore(step, into=state, parts=None if whole else dict.fromkeys(state, np.s_[cut]))
        found[:] = into

    def plain(flags: int) -> None:
        found[:] = [
            _read(shared / f"local-{rank:05d}", where[step], cut, into=None if flags else state, flags=flags)
            for (rank, _, _), where, cut, state in zip(shares, places, cuts, into, strict=True)
        ]

    faults: dict[str, int] = {}

    def lap(name: str, read: Callable[[], None]) -> float:
        for state in into:
            for array in state.values():
                array.fill(0)
        took = _timed(world, read, partial(_forget, shared))
        expected = [
            {name: array[cut] for name, array in _particles(rank, sizes[rank], step).items()}
            for (rank, _, _), cut in zip(shares, cuts, strict=True)
        ]
        wrong = sum(differing(*pair) for pair in zip(found, expected, strict=True))
        faults[name] = faults.get(name, 0) + world.allreduce(wrong)
        return took

    reads: dict[str, Callable[[], None]] = {
        RESTORED: restored,
        PLAIN: partial(plain, 0),
        PLAIN_DIRECT: partial(plain, os.O_DIRECT),
    }
    took = by_turns({name: partial(lap, name, read) for name, read in reads.items()}, settings["rounds"])
    return {"took": took, "faults": faults, "bytes": world.allreduce(nbytes)}


def beside(world: MPI.Intracomm, settings: dict[str, Any]) -> dict[str, Any]:
    """Seconds of so many steps of all ranks, alone and beside a flush, and those of the flush."""
    run = made(world, Path(settings["folder"]), **settings["data"])
    ways: dict[str, Way | None] = {
        ALONE: None,
        BESIDE_PUSH: Push(run, 1),
        BESIDE_OWN: Own(run, world.size),
    }
    state = particles(world.rank, settings["particles"])
    flushed: dict[str, list[float]] = {name: [] for name in ways}

    def steps() -> None:
        for _ in range(settings["steps"]):
            move(state)
            world.allreduce(float(state["phi"][0]))

    def lap(name: str, way: Way | None) -> float:
        took = [0.0]

        def flushing() -> None:
            began = time.perf_counter()
            if way is not None:
                way.flush()
            took[0] = time.perf_counter() - began

        thread = threading.Thread(target=flushing)

        def work() -> None:
            thread.start()
            steps()

        lasted = _timed(world, work, way.clear if way is not None else None)
        thread.join()
        flushed[name].append(world.allreduce(took[0], MPI.MAX))
        return lasted

    took = by_turns({name: partial(lap, name, way) for name, way in ways.items()}, settings["rounds"])
    faults = {name: world.allreduce(way.differing()) for name, way in ways.items() if way is not None}
    return {"took": took, "flushed": flushed, "faults": faults, "bytes": world.allreduce(_bytes(run.local))}


def _timed(world: MPI.Intracomm, work: Callable[[], object], before: Callable[[], object] | None = None) -> float:
    """The seconds of the slowest rank. Nothing is dirty before; the lowest rank makes that so."""
    world.Barrier()
    if world.rank == 0:
        if before is not None:
            before()
        os.sync()
    world.Barrier()
    began = time.perf_counter()
    work()
    return float(world.allreduce(time.perf_counter() - began, MPI.MAX))


def _bytes(local: Local) -> int:
    """Bytes of the arrays of all checkpoints of a rank."""
    return sum(int(np.prod(shape)) * dtype.itemsize for _, _, each in local.places for _, dtype, shape in each.values())


def _note_places(run: Run) -> None:
    """Writes where the arrays of this rank's checkpoints lie in its file, for the runs that restart from them."""
    places = [{name: at + begin for name, (begin, _, _) in shapes.items()} for at, _, shapes in run.local.places]
    (run.local.path.parent / f"places-{run.world.rank}.json").write_text(json.dumps(places))


def _adios2() -> str:
    """Version and kind of the ADIOS2 that is there."""
    try:
        adios2: Any = importlib.import_module("adios2")
    except ImportError:
        return NOT_INSTALLED
    return f"{adios2.__version__} {'with' if adios2.is_built_with_mpi else 'without'} MPI"


def _shares(old: int, new: int) -> list[list[tuple[int, float, float]]]:
    """Of each rank of a new run: which ranks of the old one it has, each from a part of its particles to another."""
    if new >= old:
        times = new // old
        return [[(rank // times, rank % times / times, (rank % times + 1) / times)] for rank in range(new)]
    return [[(rank, 0.0, 1.0) for rank in range(mine * old // new, (mine + 1) * old // new)] for mine in range(new)]


def _empty(count: int) -> State:
    return {name: np.zeros_like(array, shape=count) for name, array in particles(0, 0).items()}


def _particles(rank: int, count: int, step: int) -> State:
    state = particles(rank, count)
    for _ in range(step):
        move(state)
    return state


def _read(path: Path, places: dict[str, int], cut: slice, *, into: State | None, flags: int) -> State:
    """Some particles of a rank's file: into arrays by the page cache, or from the disk alone into blocks of memory."""
    found: State = {}
    with direct(path, os.O_RDONLY) if flags else opened(path) as file:
        for name, sample in particles(0, 0).items():
            size = sample.dtype.itemsize
            begin, end = places[name] + cut.start * size, places[name] + cut.stop * size
            if into is not None:
                _fill(file, into[name].view(np.uint8).data, begin)
                found[name] = into[name]
                continue
            first = begin // BLOCK * BLOCK
            memory = memoryview(mmap.mmap(-1, -(-(end - first) // BLOCK) * BLOCK + BLOCK))
            _fill(file, memory[:-BLOCK], first)
            found[name] = np.frombuffer(memory, sample.dtype, cut.stop - cut.start, begin - first)
    return found


def _fill(file: int, memory: memoryview, at: int) -> None:
    done = 0
    while done < len(memory):
        read = os.preadv(file, [memory[done : done + PIECE]], at + done)
        if not read:
            break  # the file ends within the last block
        done += read


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A descriptor that reads by the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _forget(shared: Path) -> None:
    """Drops from the page cache what the ranks read."""
    os.sync()
    for file in [*shared.glob("local-*"), *(shared / "shared" / "push").rglob("*")]:
        if file.is_file():
            with opened(file) as descriptor:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def main(what: str, settings: dict[str, Any]) -> None:
    """Does one of these with all ranks."""
    world: MPI.Intracomm = MPI.COMM_WORLD
    found = {"flush": flush, "keep": keep, "restart": restart, "beside": beside}[what](world, settings)
    if world.rank == 0:
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
