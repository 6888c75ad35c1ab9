"""A rank that pushes its store: ``together.py ARCHIVE FILES LEADERS OF_NODE STORE...``, under mpiexec."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from mpi4py import MPI

from velocpy.archive import push


def main(archive: Path, files: int, leaders: int, of_node: int, stores: list[Path]) -> None:
    """Prints the seconds of the slowest rank. So many neighbouring ranks are on a node; nodes send each other bytes."""
    world: MPI.Intracomm = MPI.COMM_WORLD
    os.environ["VELOCPY_NODE"] = str(world.rank // of_node)
    world.Barrier()
    began = time.perf_counter()
    push(stores[world.rank], archive, ranks=world, files=files, leaders=leaders)
    took = world.allreduce(time.perf_counter() - began, MPI.MAX)
    if world.rank == 0:
        sys.stdout.write(f"{took}\n")


if __name__ == "__main__":
    to, numbers, stores_of_all = sys.argv[1], sys.argv[2:5], sys.argv[5:]
    count, each, of_one_node = map(int, numbers)
    main(Path(to), count, each, of_one_node, [Path(store) for store in stores_of_all])
