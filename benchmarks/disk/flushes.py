"""Ways in which the ranks of a run bring their checkpoints from the local disk into K files, all by the same ranks.

Each rank has its checkpoints twice on its local disk: in a store of velocpy, and as plain bytes in one file, which the
other ways read with O_DIRECT. What a way has written is on the medium when it returns.
"""

from __future__ import annotations

import importlib
import mmap
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

import velocpy
from benchmarks.data.particles import State, differing
from benchmarks.disk.pushes import PIECE, direct
from velocpy.archive import part, push

BLOCK = 4096
HISTORY = "particles"

#: Bytes that a rank gives to MPI-IO, and that it reads for ADIOS2, by one call.
CALL = 16 << 20


class Local:
    """The checkpoints of a rank as plain bytes in one file, each from a block of its own on."""

    def __init__(self, path: Path, states: Callable[[], Iterator[State]]) -> None:
        self.path = path
        #: Of each checkpoint: where it lies, and its arrays, at their places and without their bytes.
        self.places: list[tuple[int, int, dict[str, tuple[int, np.dtype[Any], tuple[int, ...]]]]] = []
        with path.open("wb") as file:
            for state in states():
                begin, shapes = file.tell(), {}
                for name, array in state.items():
                    shapes[name] = (file.tell() - begin, array.dtype, array.shape)
                    file.write(array.data)
                file.write(bytes(-file.tell() % BLOCK))
                self.places.append((begin, file.tell() - begin, shapes))
            self.nbytes = file.tell()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def pieces(self, size: int) -> list[tuple[int, int]]:
        """Offsets and lengths of all bytes, in pieces of so many."""
        return [(at, min(size, self.nbytes - at)) for at in range(0, self.nbytes, size)]

    def read(self, into: memoryview, at: int) -> None:
        """Reads bytes from the disk, and not from the page cache."""
        with direct(self.path, os.O_RDONLY) as file:
            done = 0
            while done < len(into):
                done += os.preadv(file, [into[done : done + PIECE]], at + done)

    def arrays(self, step: int, of: memoryview) -> State:
        """The arrays of a checkpoint, in the memory that has its bytes."""
        return {
            name: np.frombuffer(of, dtype, int(np.prod(shape)), at).reshape(shape)
            for name, (at, dtype, shape) in self.places[step][2].items()
        }


class Run(NamedTuple):
    """The ranks, and what this one has."""

    world: MPI.Intracomm
    local: Local
    store: Path
    #: Where all ranks write.
    shared: Path
    #: The checkpoints' bytes in memory, for the ways that need no local disk; empty if these are not played.
    memory: memoryview

    def states(self) -> Iterator[State]:
        """The checkpoints of this rank, as they were written."""
        buffer = memoryview(mmap.mmap(-1, max(length for _, length, _ in self.local.places)))
        for step, (at, length, _) in enumerate(self.local.places):
            self.local.read(buffer[:length], at)
            yield self.local.arrays(step, buffer)


class Way:
    """One of the ways; `flush` is timed, and `differing` says how many bytes of this rank are not as they were."""

    def __init__(self, run: Run, files: int) -> None:
        self.run, self.files = run, files
        self.target = run.shared / type(self).__name__.lower()

    def clear(self) -> None:
        """Removes what was written before; the lowest rank calls it."""
        shutil.rmtree(self.target, ignore_errors=True)
        self.target.mkdir(parents=True)

    def flush(self) -> None:
        raise NotImplementedError

    def differing(self) -> int:
        raise NotImplementedError


class Push(Way):
    """A push of velocpy: so many neighbouring ranks are a node, or all of them if that is 0."""

    def __init__(self, run: Run, files: int, of_node: int = 0) -> None:
        super().__init__(run, files)
        self._of_node = of_node
        self._ranks = run.world.Dup()

    def clear(self) -> None:
        shutil.rmtree(self.target, ignore_errors=True)

    def flush(self) -> None:
        os.environ["VELOCPY_NODE"] = str(self.run.world.rank // self._of_node if self._of_node else 0)
        done = push(self.run.store, self.target, ranks=self._ranks, files=self.files)
        if done.files != self.files:
            raise RuntimeError(f"the push went to {done.files} files, and not to {self.files}")

    def differing(self) -> int:
        count = 0
        room = max(length for _, length, _ in self.run.local.places)
        with velocpy.open(self.target, host=2 * room + (16 << 20), mode="r") as archive:
            history = archive.history(part(HISTORY, self.run.world.rank))
            for step, expected in enumerate(self.run.states()):
                found: State = dict(history.restore(step)) if step in history else {}
                count += differing(found, expected)
        return count


class Own(Way):
    """Each rank copies its checkpoints into a file of its own, with O_DIRECT, and with its room made before."""

    def flush(self) -> None:
        local, buffer = self.run.local, memoryview(mmap.mmap(-1, PIECE))
        path = self.target / str(self.run.world.rank)
        path.touch()
        with direct(path, os.O_WRONLY) as to:
            os.posix_fallocate(to, 0, local.nbytes)
            for at, length in local.pieces(PIECE):
                local.read(buffer[:length], at)
                os.pwritev(to, [buffer[:length]], at)
            os.fsync(to)

    def differing(self) -> int:
        return _differing_from(self.run, self.target / str(self.run.world.rank), 0)


class Collective(Way):
    """MPI-IO: all ranks of a file write by collective calls, what is read from the local disk or lies in memory."""

    def __init__(self, run: Run, files: int, memory: bool = False) -> None:
        super().__init__(run, files)
        world: Any = run.world
        self._memory = memory
        self._group = world.rank * files // world.size
        self._ranks: Any = world.Split(self._group, world.rank)
        self._begin = self._ranks.exscan(run.local.nbytes) or 0
        self._pieces = run.local.pieces(CALL)
        self._calls = self._ranks.allreduce(len(self._pieces), MPI.MAX)

    def flush(self) -> None:
        buffer = memoryview(mmap.mmap(-1, CALL))
        file = MPI.File.Open(self._ranks, str(self.target / str(self._group)), MPI.MODE_CREATE | MPI.MODE_WRONLY)
        for number in range(self._calls):
            at, length = self._pieces[number] if number < len(self._pieces) else (0, 0)
            if self._memory:
                sent = self.run.memory[at : at + length]
            else:
                sent = buffer[:length]
                self.run.local.read(sent, at)
            file.Write_at_all(self._begin + at, sent)
        file.Sync()
        file.Close()

    def differing(self) -> int:
        return _differing_from(self.run, self.target / str(self._group), self._begin)


class Adios(Way):
    """ADIOS2's BP5: each checkpoint a step, with as many aggregators as files.

    Without MPI, as in its wheels, ADIOS2 does not aggregate: then each rank writes a BP5 of its own.
    """

    def __init__(self, run: Run, files: int, parameters: dict[str, str], memory: bool = False) -> None:
        super().__init__(run, files)
        self._memory = memory
        self._adios: Any = importlib.import_module("adios2")
        self._mode: Any = importlib.import_module("adios2.bindings").Mode
        self._together = bool(self._adios.is_built_with_mpi)
        if not self._together and files < run.world.size:
            raise ValueError(f"ADIOS2 without MPI does not write {files} files of {run.world.size} ranks")
        self._parameters = {"NumAggregators": str(files), "NumSubFiles": str(files)} if self._together else {}
        self._parameters |= parameters
        self._path = self.target / ("all.bp" if self._together else f"{run.world.rank}.bp")
        counts = [
            {name: int(np.prod(shape)) for name, (_, _, shape) in shapes.items()} for _, _, shapes in run.local.places
        ]
        every: list[list[dict[str, int]]] = run.world.allgather(counts) if self._together else [counts]
        rank = run.world.rank if self._together else 0
        #: Of each checkpoint and variable: how much all ranks have, where this one begins, and how much it has.
        self._extents = [
            {
                name: (
                    sum(each[step][name] for each in every),
                    sum(each[step][name] for each in every[:rank]),
                    count,
                )
                for name, count in mine.items()
            }
            for step, mine in enumerate(counts)
        ]

    def flush(self) -> None:
        local = self.run.local
        io = self._io()
        engine = io.open(str(self._path), self._mode.Write)
        room = max(length for _, length, _ in local.places)
        buffer = memoryview(b"") if self._memory else memoryview(mmap.mmap(-1, room))
        variables: dict[str, Any] = {}
        for step, (at, length, _) in enumerate(local.places):
            if self._memory:
                arrays = local.arrays(step, self.run.memory[at : at + length])
            else:
                local.read(buffer[:length], at)
                arrays = local.arrays(step, buffer[:length])
            engine.begin_step()
            for name, array in arrays.items():
                whole, begin, count = self._extents[step][name]
                if name not in variables:
                    variables[name] = io.define_variable(name, array, [whole], [begin], [count])
                engine.put(variables[name], array, self._mode.Deferred)
            engine.end_step()
        engine.close()
        if self._together:
            self.run.world.Barrier()
            written = sorted(self._path.iterdir())[self.run.world.rank :: self.run.world.size]
        else:
            written = sorted(self._path.iterdir())
        for file in [*written, self._path]:
            descriptor = os.open(file, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)

    def differing(self) -> int:
        there = len(list(self._path.glob("data.*")))
        if there != (self.files if self._together else 1):
            raise RuntimeError(f"ADIOS2 wrote {there} files, and not {self.files}")
        count, io = 0, self._io()
        engine = io.open(str(self._path), self._mode.Read)
        for step, expected in enumerate(self.run.states()):
            engine.begin_step()
            found: State = {}
            for name, array in expected.items():
                variable = io.inquire_variable(name)
                variable.set_selection([[self._extents[step][name][1]], [array.size]])
                found[name] = np.empty_like(array)
                engine.get(variable, found[name], self._mode.Sync)
            count += differing(found, expected)
            engine.end_step()
        engine.close()
        return count

    def _io(self) -> Any:
        # The object of the library has to outlive what it makes.
        self._library = self._adios.Adios(comm=self.run.world) if self._together else self._adios.Adios()
        io = self._library.declare_io("particles")
        io.set_engine("BP5")
        io.set_parameters(self._parameters)
        return io


def _differing_from(run: Run, path: Path, begin: int) -> int:
    """Bytes of this rank that a file has otherwise than its local one, from a place on."""
    count = 0
    with run.local.path.open("rb") as ours, path.open("rb") as theirs:
        theirs.seek(begin)
        for _, length in run.local.pieces(PIECE):
            one, other = ours.read(length), theirs.read(length)
            if len(one) != len(other):
                return count + length
            count += int(np.count_nonzero(np.frombuffer(one, np.uint8) != np.frombuffer(other, np.uint8)))
    return count
