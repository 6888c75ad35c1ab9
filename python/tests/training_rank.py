"""A rank that trains on a device of its own: ``training_rank.py fsdp|ddp REPORT``, under torchrun's variables.

It takes the same steps without velocpy, with saved tensors that leave the device, and once more from a snapshot.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import velocpy

WAY, REPORT = sys.argv[1:]
WIDTH, LAYERS, STEPS, SAVED = 256, 4, 4, 1


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def made() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(7)
    model: torch.nn.Module = torch.nn.Sequential(*(Block() for _ in range(LAYERS))).cuda()
    if WAY == "fsdp":
        for block in model:
            fully_shard(block)
        fully_shard(model)
    else:
        model = DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=True)


def step(number: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer, context: Any) -> None:
    generator = torch.Generator("cuda").manual_seed(100 * number + dist.get_rank())
    x = torch.randn(8, 128, WIDTH, device="cuda", generator=generator)
    with context:
        loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def parameters(model: torch.nn.Module) -> list[torch.Tensor]:
    """This rank's parts, as they are now."""
    parts = (each.to_local() if hasattr(each, "to_local") else each for each in model.parameters())
    return [part.detach().clone() for part in parts]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def run() -> dict[str, Any]:
    model, optimizer = made()
    wanted = []
    for number in range(STEPS):
        step(number, model, optimizer, contextlib.nullcontext())
        wanted.append(parameters(model))
    model, optimizer = made()
    found: dict[str, Any] = {}
    offload = velocpy.offload(device=0, stash=0, min_offload_size="16KiB", host="256MiB")
    with velocpy.Checkpointer(model=model, optimizer=optimizer, device="64MiB", host="256MiB") as checkpointer:
        found["offloaded"] = []
        for number in range(STEPS):
            step(number, model, optimizer, offload)
            found["offloaded"].append(same(parameters(model), wanted[number]))
            if number == SAVED:
                checkpointer.save(number)
        checkpointer.rollback(to=SAVED)
        found["back"] = same(parameters(model), wanted[SAVED])
        for number in range(SAVED + 1, STEPS):
            step(number, model, optimizer, offload)
        found["again"] = same(parameters(model), wanted[-1])
    found["moved"] = offload.stats()["moved"]
    offload.close()
    return found


def main() -> None:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    try:
        Path(REPORT, f"{WAY}-{dist.get_rank()}.json").write_text(json.dumps(run()))
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
