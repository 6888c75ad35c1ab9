"""A rank that saves or loads sharded states: ``python -m benchmarks.training.sharded_rank SETTINGS``.

SETTINGS is a text of JSON. The variables are those of torchrun. Each rank writes what it has measured to the file
``OUT/ACTION-RANK.json``.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.staging import BlockingAsyncStager
from torch.distributed.checkpoint.state_dict_loader import load as load_state
from torch.distributed.checkpoint.state_dict_saver import async_save
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from velocpy.dcp import Reader, Stager, Writer

from . import peers
from .ways import BLOCKING, DEFAULT, FILES, OURS, READER

#: Columns of each tensor, and how many tensors there are.
COLUMNS, TENSORS = 1021, 48

#: Words of a tensor that all ranks have.
SMALL = 257


class Rank:
    """One rank, its device and its part of the state."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.folder = Path(settings["folder"])
        self.device: str = settings["device"]
        self.rounds: int = settings["rounds"]
        self.number, self.count = dist.get_rank(), dist.get_world_size()
        self.rows = max(settings["size"] // (4 * COLUMNS * TENSORS), 4)
        self.mesh: DeviceMesh = init_device_mesh(self.device, (self.count,))

    def join(self) -> None:
        """Waits for all ranks and for the device."""
        if self.device == "cuda":
            torch.cuda.synchronize()
        dist.barrier(group=_gloo())

    def state(self, make: Callable[[int, int, int], torch.Tensor]) -> dict[str, Any]:
        """Tensors that are sharded by rows, and small ones that each rank has. ``make`` gets name, row and rows."""
        tensors: dict[str, Any] = {}
        for name in range(TENSORS):
            rows = self.rows + name  # so that parts begin anywhere
            each = -(-rows // self.count)
            first = min(self.number * each, rows)
            local = make(name, first, min(each, rows - first))
            shape = torch.Size((rows, COLUMNS))
            tensors[f"layers.{name}.weight"] = DTensor.from_local(
                local, self.mesh, [Shard(0)], run_check=False, shape=shape, stride=(COLUMNS, 1)
            )
            small = make(name, 0, 1)[0, :SMALL].clone()
            tensors[f"layers.{name}.scale"] = DTensor.from_local(small, self.mesh, [Replicate()], run_check=False)
        return {"model": tensors, "step": 7}

    def words(self, name: int, first: int, rows: int) -> torch.Tensor:
        """Rows of a tensor, of which every element differs, as float32; some are NaN."""
        begin = (name << 28) + first * COLUMNS
        words = torch.arange(begin, begin + rows * COLUMNS, dtype=torch.int64, device=self.device)
        return (words * 2_654_435_761).to(torch.int32).view(torch.float32).view(rows, COLUMNS)

    def zeros(self, name: int, first: int, rows: int) -> torch.Tensor:
        """What is loaded into."""
        return torch.zeros(rows, COLUMNS, device=self.device)

    def differing(self, state: dict[str, Any]) -> int:
        """How many tensors of this rank are not those that were saved."""
        wanted = self.state(self.words)["model"]
        pairs = ((wanted[name].to_local(), tensor.to_local()) for name, tensor in state["model"].items())
        wrong = sum(not torch.equal(a.view(torch.int32), b.view(torch.int32)) for a, b in pairs)
        return wrong + int(state["step"] != 7)


def _gloo() -> Any:
    global _group
    if _group is None:
        _group = dist.new_group(backend="gloo")
    return _group


_group: Any = None


def save(rank: Rank) -> dict[str, Any]:
    """Saves by all ways in turns; seconds until the state may be changed, and until the checkpoint is complete."""
    laps: dict[str, list[tuple[float, float]]] = {}
    state = rank.state(rank.words)
    with contextlib.ExitStack() as opened:
        ways = dict(_savers(rank, opened))
        for number in range(1 + rank.rounds):
            names = list(ways)
            for name in names[number % len(names) :] + names[: number % len(names)]:
                rank.join()
                began = time.perf_counter()
                done = ways[name](state, f"save-{number % 2}")
                blocked = time.perf_counter() - began
                for tensor in state["model"].values():  # what is saved is the state of the call
                    tensor.to_local().view(torch.int32).bitwise_not_()
                done()
                whole = time.perf_counter() - began
                for tensor in state["model"].values():
                    tensor.to_local().view(torch.int32).bitwise_not_()
                if number:
                    laps.setdefault(name, []).append((blocked, whole))
    return {"laps": laps, "bytes": sum(tensor.to_local().nbytes for tensor in state["model"].values())}


def _savers(rank: Rank, opened: contextlib.ExitStack) -> Iterator[tuple[str, Any]]:
    ours = opened.enter_context(contextlib.closing(Stager()))
    writer = opened.enter_context(Writer(rank.folder / "velocpy", keep=1, host="256MiB"))
    yield OURS, _saver(writer, ours, rank.folder / "velocpy")
    theirs = {DEFAULT: peers.stager(rank.device == "cuda", True, rank.device == "cuda", rank.device == "cuda")}
    theirs[BLOCKING] = BlockingAsyncStager(cache_staged_state_dict=rank.device == "cuda")
    for name, stager in theirs.items():
        if hasattr(stager, "close"):
            opened.callback(stager.close)
        yield name, _saver(None, stager, rank.folder / "files")


def _saver(writer: Any, stager: Any, folder: Path) -> Callable[[Any, str], Callable[[], None]]:
    """A call that saves, returns when the state may be changed, and returns what waits for the end."""

    def call(state: Any, name: str) -> Callable[[], None]:
        to = FileSystemWriter(folder / name, overwrite=True) if writer is None else writer
        at = None if writer is None else name
        saved: Any = async_save(state, checkpoint_id=at, storage_writer=to, async_stager=stager, process_group=_gloo())
        staging = getattr(saved, "staging_completion", None)
        if staging is not None:
            staging.result()
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.current_stream().synchronize()
        upload = getattr(saved, "upload_completion", saved)
        return lambda: upload.result()

    return call


def load(rank: Rank) -> dict[str, Any]:
    """Loads the last checkpoint by both readers in turns, and counts the tensors that differ."""
    found: dict[str, Any] = {"laps": {}, "differ": 0}
    name = f"save-{rank.rounds % 2}"
    for _ in range(rank.rounds):
        for way in (READER, FILES):
            state = rank.state(rank.zeros)
            rank.join()
            began = time.perf_counter()
            if way == READER:
                with Reader(rank.folder / "velocpy") as reader:
                    load_state(state, storage_reader=reader, checkpoint_id=name, process_group=_gloo())
                    found["read"] = reader.read_nbytes
            else:
                load_state(state, storage_reader=FileSystemReader(rank.folder / "files" / name), process_group=_gloo())
            rank.join()
            found["laps"].setdefault(way, []).append(time.perf_counter() - began)
            found["differ"] += rank.differing(state)
            found["bytes"] = sum(tensor.to_local().nbytes for tensor in state["model"].values())
    return found


def main() -> None:
    """Does what the settings say."""
    warnings.simplefilter("ignore")
    settings = json.loads(sys.argv[1])
    if settings["device"] == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if settings["device"] == "cuda" else "gloo")
    try:
        rank = Rank(settings)
        found = {"save": save, "load": load}[settings["action"]](rank)
        path = Path(settings["out"], f"{settings['action']}-{rank.number}.json")
        path.write_text(json.dumps(found), encoding="utf-8")
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
