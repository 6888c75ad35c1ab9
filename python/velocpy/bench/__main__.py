"""``python -m velocpy.bench``: what can be measured, by name."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from . import calls, capture, coldstart, decision, device, disk, machine, scale, shot, storages, sweep
from .gpu.contenders import has_gpu
from .report import Report

BENCHMARKS: dict[str, tuple[Callable[..., Report], str]] = {
    "capture": (capture.run, "captures into the host cache, beside memcpy"),
    "lease": (calls.lease, "leases from the host cache"),
    "small": (calls.small, "checkpoints of ten 1-KiB regions"),
    "decision": (decision.run, "eviction decisions over 4096 fragments (needs Go and a checkout)"),
    "disk": (disk.run, "the disk tier, beside raw O_DIRECT"),
    "sweep": (sweep.run, "reverse sweeps over eight times the host budget"),
    "scale": (scale.run, "a thousand to a million checkpoints"),
    "storages": (storages.run, "pyrevolve's storages under the same adjoint"),
    "shot": (shot.run, "seed 000's evaluation: shots through GPU, host and disk, beside its baselines"),
    "device": (device.run, "captures, transfers and leases of device memory, beside plain copies"),
    "coldstart": (coldstart.run, "seed 004's evaluation: the first checkpoints of a process"),
}

# Without a GPU they run on host memory when they are asked for by name, which shows nothing but that they run.
ON_GPU = ("shot", "device", "coldstart")

# Small enough for a test: that they run and check their bytes, not what they measure.
QUICK: dict[str, dict[str, object]] = {
    "capture": {"sizes": (1 << 20,), "rounds": 1},
    "lease": {"sizes": (4 << 10,), "rounds": 1},
    "small": {"rounds": 1},
    "decision": {"rounds": 1},
    "disk": {"total": 64 << 20, "size": 8 << 20, "rounds": 1},
    "sweep": {"count": 32, "size": 1 << 20, "rounds": 1},
    "scale": {"counts": (100, 1000), "rounds": 1},
    "storages": {"sizes": (storages.Size(24, 12, 4),), "shot": (32, 32), "steps": 12, "slots": 4, "rounds": 1},
    "shot": {"cells": "tiny"},
    "device": {"size": 64 << 10, "rounds": 2},
    "coldstart": {"cells": "tiny"},
}


@click.command(epilog=f"NAMES: {', '.join(BENCHMARKS)}.")
@click.argument("names", nargs=-1, metavar="[NAMES]...", type=click.Choice(sorted(BENCHMARKS)))
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the disk tier lies; default: a temporary folder.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Write one JSON file for each benchmark here."
)
@click.option("--quick", is_flag=True, help="Tiny sizes, one round: tells whether it runs, not how fast.")
@click.option(
    "--cells", help="Which cells of shot and coldstart, with commas between; a wrong name lists the right ones."
)
@click.option("--limit", type=float, help="Seconds after which shot and coldstart begin nothing new; 500 by default.")
def main(
    names: tuple[str, ...], folder: Path | None, out: Path | None, quick: bool, cells: str | None, limit: float | None
) -> None:
    """Run the benchmarks NAMES (when none is named all that this machine can) and say which bars hold."""
    asked = {name: value for name, value in (("cells", cells), ("limit", limit)) if value is not None}
    with tempfile.TemporaryDirectory() as scratch:
        for name in names or [name for name in BENCHMARKS if name not in ON_GPU or has_gpu()]:
            run = BENCHMARKS[name][0]
            settings = QUICK[name] if quick else {}
            known = inspect.signature(run).parameters
            settings = settings | {option: value for option, value in asked.items() if option in known}
            if "folder" in known:
                settings = settings | {"folder": folder or Path(scratch)}
            report = run(**settings)
            report.show()
            if out is not None:
                click.echo(f"  written: {report.save(out, machine.describe())}")


if __name__ == "__main__":
    main(prog_name="python -m velocpy.bench")
