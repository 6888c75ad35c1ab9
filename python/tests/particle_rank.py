"""A rank of a run that moves particles: ``particle_rank.py FOLDER RUN FROM TO``, under mpiexec.

The run goes on from step FROM, whose particles the archive in FOLDER has unless it is 0, keeps each step up to TO, and
pushes them into the archive. The ranks of a first run begin with particles of their own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import velocpy
from benchmarks.data.particles import PARTICLE, State, joined, loads, move, particles
from velocpy.archive import part, push

#: Particles of all ranks of the first run, and the number of these.
COUNT, FIRST = 40_000, 4


def first(rank: int) -> State:
    """What a rank of the first run begins with."""
    return particles(rank, int(COUNT / FIRST * loads(FIRST, uneven=True)[rank]))


def restart(archive: Path, step: int, world: Any) -> State:
    """The particles of this rank's share of the ranks that the archive has."""
    with velocpy.open(archive, host="16MiB", mode="r") as store:
        ranks = store.history("particles").restore(step)["ranks"]
        mine = ranks[len(ranks) * world.rank // world.size : len(ranks) * (world.rank + 1) // world.size]
        return joined(dict(store.history(part("particles", rank)).restore(step)) for rank in map(int, mine))


def main(folder: Path, run: str, begin: int, end: int) -> None:
    from mpi4py import MPI  # not above: the test reads this module, and starts no MPI

    world = MPI.COMM_WORLD
    archive = folder / "archive"
    state = restart(archive, begin, world) if begin else first(world.rank)
    room = (end - begin + 1) * sum(array.nbytes for array in state.values())
    assert room == (end - begin + 1) * PARTICLE * len(state["pid"])
    with velocpy.open(folder / run / f"rank-{world.rank:05d}", host="16MiB", disk=2 * room + (64 << 20)) as store:
        for step in range(begin + 1, end + 1):
            move(state)
            store.history("particles").checkpoint(step, state)
            store.wait("disk")  # the next step moves the same arrays
        done = push(store, archive, ranks=world.Dup(), files=2, timeout=60)
    assert done.keys == end - begin, done


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
