"""A process that uses velocpy:// by paths alone: ``fs_rank.py save|write|contend|count PATH``."""

from __future__ import annotations

import os
import sys
import warnings

import fsspec

from velocpy.fs import VelocFileSystem

OPTIONS = {"host": "4MiB", "disk": "64MiB"}


def save(path: str) -> None:
    """Both ranks save two checkpoints of sharded tensors, the second in the place of the first."""
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for seed in (1, 2):
        whole = torch.randn(1000, 33, generator=torch.Generator().manual_seed(seed))
        dcp.save({"rows": distribute_tensor(whole, mesh, [Shard(0)]), "seed": seed}, checkpoint_id=path)
    state = {"rows": distribute_tensor(torch.zeros(1000, 33), mesh, [Shard(1)]), "seed": 0}
    dcp.load(state, checkpoint_id=path)
    assert torch.equal(state["rows"].full_tensor(), whole)
    assert state["seed"] == 2
    dist.destroy_process_group()


def write(path: str) -> None:
    """Writes a file, says so, and waits to be killed or told to end; meanwhile it writes another file."""
    fs = VelocFileSystem(**OPTIONS)
    with fs.open(f"{path}/whole", "wb") as file:
        file.write(b"whole" * 100_000)
    file = fs.open(f"{path}/half", "wb")
    file.write(b"half" * 100_000)
    print("ready", flush=True)
    sys.stdin.readline()
    file.discard()


def contend(path: str) -> None:
    """Replaces one file again and again, beside others that do so."""
    fs = VelocFileSystem(**OPTIONS)
    for number in range(5):
        fs.pipe_file(f"{path}/own-{os.environ['RANK']}-{number}", b"x" * number)
        fs.pipe_file(f"{path}/shared", f"{os.environ['RANK']} {number}".encode())
    print(fs.cat_file(f"{path}/shared").decode())


def count(path: str) -> None:
    """Replaces a file by each line that comes in, and says so."""
    fs = VelocFileSystem(**OPTIONS)
    for line in sys.stdin:
        fs.pipe_file(f"{path}/count", line.strip().encode())
        print("written", flush=True)


def main() -> None:
    action, path = sys.argv[1:]
    warnings.simplefilter("ignore")
    fsspec.register_implementation("velocpy", VelocFileSystem, clobber=True)
    {"save": save, "write": write, "contend": contend, "count": count}[action](path)


if __name__ == "__main__":
    main()
