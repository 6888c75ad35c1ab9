"""A rank that saves or loads a checkpoint of DCP: ``dcp_rank.py save|load|fail PATH REPORT DEVICE [ARCHIVE]``.

The variables are those of torchrun. DEVICE is cpu, or cuda: then each rank has a device of its own. What is saved goes
on to ARCHIVE, if there is one.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from velocpy.archive import Destination
from velocpy.dcp import Reader, Writer

ROWS = 1_000
ACTION, PATH, REPORT, DEVICE, *ARCHIVE = sys.argv[1:]


def mesh() -> DeviceMesh:
    return init_device_mesh(DEVICE, (dist.get_world_size(),))


def whole(seed: int) -> torch.Tensor:
    return torch.randn(ROWS, 33, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def trained(steps: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    """A model whose parameters are sharded over the ranks."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(33, 64), torch.nn.Tanh(), torch.nn.Linear(64, 7)).to(DEVICE)
    fully_shard(model, mesh=mesh())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for step in range(steps):
        model(whole(step)[:8]).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def tensors(value: Any) -> dict[str, Any]:
    """Tensors that are sharded by rows, by columns, and not at all."""
    return {
        "rows": distribute_tensor(value(1), mesh(), [Shard(0)]),
        "columns": distribute_tensor(value(2), mesh(), [Shard(1)]),
        "everywhere": distribute_tensor(value(3), mesh(), [Replicate()]),
        "plain": value(4),
    }


def save() -> dict[str, Any]:
    model, optimizer = trained(2)
    weights, moments = get_state_dict(model, optimizer)
    archived = {"archive": Destination(ARCHIVE[0], every=0.1), "ranks": dist.group.WORLD} if ARCHIVE else {}
    with Writer(PATH, host="32MiB", disk="256MiB", **archived) as writer:
        for name in ("first", "second"):
            state = {**tensors(whole), "model": weights, "optimizer": moments, "rank": dist.get_rank(), "name": name}
            dcp.save(state, storage_writer=writer, checkpoint_id=name)
        state["name"] = "third"
        result = dcp.async_save(state, storage_writer=writer, checkpoint_id="third")
        getattr(result, "upload_completion", result).result()
    return {"model": full(model.state_dict()), "optimizer": full(optimizer.state_dict())}


def fail() -> dict[str, Any]:
    """The last rank raises behind a save, while all have their writers open."""
    archive = Destination(ARCHIVE[0], every=0.1)
    try:
        with Writer(PATH, host="32MiB", disk="256MiB", archive=archive, ranks=dist.group.WORLD) as writer:
            dcp.save({"x": torch.zeros(9)}, storage_writer=writer, checkpoint_id="a")
            if dist.get_rank() == dist.get_world_size() - 1:
                raise ZeroDivisionError
    except Exception as error:
        return {"raised": type(error).__name__}
    return {"raised": None}


def load() -> dict[str, Any]:
    model, optimizer = trained(1)
    weights, moments = get_state_dict(model, optimizer)
    state = {
        **tensors(lambda seed: torch.zeros(ROWS, 33, device=DEVICE)),
        "model": weights,
        "optimizer": moments,
        "name": "",
    }
    with Reader(PATH) as reader:
        dcp.load(state, storage_reader=reader, checkpoint_id="third")
        read = reader.read_nbytes
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    same = {}
    for number, name in enumerate(("rows", "columns", "everywhere", "plain"), 1):
        found = state[name].full_tensor() if isinstance(state[name], DTensor) else state[name]
        same[name] = torch.equal(found, whole(number))
    saved = json.loads(Path(REPORT, "save-0.json").read_text())
    for name, part in (("model", model), ("optimizer", optimizer)):
        same[name] = json.loads(json.dumps(full(part.state_dict()))) == saved[name]
    asked = sum(local.numel() * local.element_size() for local in leaves(state))
    return {"same": same, "name": state["name"], "read": read, "asked": asked}


def full(node: Any) -> Any:
    if isinstance(node, DTensor):
        return node.full_tensor().tolist()
    if isinstance(node, torch.Tensor):
        return node.tolist()
    if isinstance(node, dict):
        return {key: full(value) for key, value in node.items()}
    return [full(each) for each in node] if isinstance(node, (list, tuple)) else node


def leaves(node: Any) -> Any:
    if isinstance(node, torch.Tensor):
        yield node.to_local() if isinstance(node, DTensor) else node
    elif isinstance(node, dict):
        for each in node.values():
            yield from leaves(each)


def main() -> None:
    torch.set_num_threads(1)
    if DEVICE == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if DEVICE == "cuda" else "gloo")
    try:
        found = {"save": save, "load": load, "fail": fail}[ACTION]()
        Path(REPORT, f"{ACTION}-{os.environ['RANK']}.json").write_text(json.dumps(found))
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
