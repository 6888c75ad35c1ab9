"""A rank that writes its store's data files by MPI-IO: ``collective.py FOLDER FILES STORE...``, under mpiexec."""

from __future__ import annotations

import mmap
import os
import sys
import time
from pathlib import Path
from typing import Any

from mpi4py import MPI

from benchmarks.disk.pushes import PIECE, direct, pieces


def main(folder: Path, files: int, stores: list[Path]) -> None:
    """Prints the seconds of the slowest rank."""
    world: MPI.Intracomm = MPI.COMM_WORLD
    group = world.rank * files // world.size
    comm: Any = world.Split(group, world.rank)
    mine = list(pieces(stores[world.rank], 1 << 62))
    nbytes = sum(length for _, _, length, _ in mine)
    start = comm.exscan(nbytes) or 0
    calls = comm.allreduce(len(mine), MPI.MAX)
    buffer = mmap.mmap(-1, PIECE)
    world.Barrier()
    began = time.perf_counter()
    file = MPI.File.Open(comm, str(folder / str(group)), MPI.MODE_CREATE | MPI.MODE_WRONLY)
    for number in range(calls):
        length, at = 0, 0
        if number < len(mine):
            source, offset, length, at = mine[number]
            with direct(source, os.O_RDONLY) as read:
                os.preadv(read, [memoryview(buffer)[:length]], offset)
        file.Write_at_all(start + at, memoryview(buffer)[:length])
    file.Sync()
    file.Close()
    took = world.allreduce(time.perf_counter() - began, MPI.MAX)
    if world.rank == 0:
        sys.stdout.write(f"{took}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), [Path(store) for store in sys.argv[3:]])
