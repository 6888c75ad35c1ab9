"""One of several processes that a launcher started on this node: keeps a history in a store and takes it back.

As a program: ``rank.py KIND PATH RESULTS HOST DISK [mpi4py]``. All work in the folder PATH at once, with the same names
and within the budgets HOST and DISK. Arrays are of the KIND numpy, or torch on a GPU of its own. What a rank saw goes
to a file in the folder RESULTS. With the last argument, MPI has to agree with what the launcher's variables say.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import velocpy
from velocpy import knobs

MIB = 1 << 20
COUNT, LARGEST = 64, 2 * MIB + 5
PATIENCE = 60


class Numpy:
    """Arrays in host memory."""

    device: int | None = None

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}

    def array(self, values: np.ndarray[Any, Any]) -> Any:
        return values

    def values(self, array: Any) -> np.ndarray[Any, Any]:
        return np.asarray(array)


class Torch:
    """Tensors on the GPU that this rank has chosen, as programs under torchrun do."""

    def __init__(self, local: int) -> None:
        import torch

        self.device: int | None = local % torch.cuda.device_count()
        torch.cuda.set_device(self.device)
        torch.cuda.init()
        self.options: dict[str, Any] = {"device": "32MiB"}  # on the current device
        self._torch = torch

    def array(self, values: np.ndarray[Any, Any]) -> Any:
        return self._torch.from_numpy(values).cuda()

    def values(self, array: Any) -> np.ndarray[Any, Any]:
        assert array.device.index == self.device, array.device
        values: np.ndarray[Any, Any] = array.cpu().numpy()
        return values


def told(*names: str) -> int:
    """What the launcher says."""
    return next(int(os.environ[name]) for name in names if name in os.environ)


def meet(results: Path, rank: int, size: int) -> None:
    """Waits until all ranks are here."""
    (results / f"here-{rank}").touch()
    deadline = time.monotonic() + PATIENCE
    while len(list(results.glob("here-*"))) < size:
        assert time.monotonic() < deadline, "the others did not come"
        time.sleep(0.005)


def agree_with_mpi(rank: int, size: int) -> None:
    """MPI counts the ranks, and those of this node, as the launcher's variables do."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    assert (world.rank, world.size) == (rank, size)
    assert world.Split_type(MPI.COMM_TYPE_SHARED).size == knobs.node_processes()


def main(kind: str, path: str, results: str, host: str, disk: str, *more: str) -> None:
    rank = told("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
    size = told("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
    local = told("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
    if "mpi4py" in more:
        agree_with_mpi(rank, size)
    arrays = Torch(local) if kind == "torch" else Numpy()
    noise = np.random.default_rng(rank).integers(0, 256, LARGEST, dtype=np.uint8)
    meet(Path(results), rank, size)
    with velocpy.open(path, host=host, disk=disk, durable=False, **arrays.options) as store:
        history = store.history("h")
        history.hint(reversed(range(COUNT)), last=True)
        for key in range(COUNT):
            history.checkpoint(key, u=arrays.array(noise[8191 * key :] + np.uint8(key)))
        meet(Path(results), rank + size, 2 * size)  # everybody has written everything
        for key, state in history.restore_iter():
            same = np.array_equal(arrays.values(state["u"]), noise[8191 * key :] + np.uint8(key))
            assert same, f"checkpoint {key} of rank {rank} differs"
        stats = store.stats()
    seen = {"rank": rank, "size": size, "processes": knobs.node_processes(), "device": arrays.device}
    seen |= {"restores": stats["restores"]["count"], "tiers": stats["tiers"]}
    (Path(results) / f"rank-{rank}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
