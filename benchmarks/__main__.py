"""``python -m benchmarks``: what can be measured, by name."""

from __future__ import annotations

import inspect
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from benchmarks import ON_GPU
from benchmarks.adjoint import storages
from benchmarks.compare import cores
from benchmarks.device import accumulated, device, histories, scheduled, stored
from benchmarks.disk import buckets, commits, deduplicated, disk, durable, hacc, opening, pushes, reduced, verification
from benchmarks.engines.contenders import has_gpu
from benchmarks.host import aggregation, calls, capture, decision, scale, sweep, twins
from benchmarks.paper import coldstart, shot
from benchmarks.training import offload, sharded, snapshots, staging
from velocpy.bench import machine
from velocpy.bench.report import Report
from velocpy.budget import parse_size
from velocpy.cli.output import colour, examples, json_option, message
from velocpy.cli.terms import in_terms_of_commands

T = TypeVar("T")

BENCHMARKS: dict[str, tuple[Callable[..., Report], str]] = {
    "capture": (capture.run, "captures into the host cache, beside memcpy"),
    "lease": (calls.lease, "leases from the host cache"),
    "small": (calls.small, "checkpoints of ten 1-KiB regions"),
    "decision": (decision.run, "eviction decisions over 4096 fragments (needs Go)"),
    "twins": (twins.run, "decoding, de-duplication and schedules on one core of the host (needs Go)"),
    "disk": (disk.run, "the disk tier, beside the best that the disk does"),
    "sweep": (sweep.run, "reverse sweeps over eight times the host budget"),
    "scale": (scale.run, "a thousand to a million checkpoints"),
    "durable": (durable.run, "durable streams of checkpoints, beside fio and other ways to keep checkpoints"),
    "commits": (commits.run, "durable commits one at a time, beside SQLite and the disk itself"),
    "reduced": (reduced.run, "durable streams of reduced histories, beside the same as they are"),
    "deduplicated": (
        deduplicated.run,
        "de-duplicated histories of graphlet counts, trainings and wavefields, beside compressors",
    ),
    "archive": (pushes.run, "the stores of ranks brought into few files, beside a file for each rank and MPI-IO"),
    "bucket": (buckets.run, "archives in a bucket of a local server, beside minio-go alone (needs Go)"),
    "hacc": (hacc.run, "particles of ranks brought into few files, beside ADIOS2 and MPI-IO, and read by other ranks"),
    "aggregation": (aggregation.run, "archives of up to 16,384 ranks, simulated by the policy of a push (needs Go)"),
    "opening": (opening.run, "opening a store with a million checkpoints, and one whose writer was killed"),
    "staging": (staging.run, "states staged for dcp.async_save, beside the stagers of PyTorch (needs torch)"),
    "sharded": (sharded.run, "checkpoints of sharded states, beside the files of PyTorch (needs torch)"),
    "verification": (verification.run, "what it costs the application that restores are verified"),
    "storages": (storages.run, "pyrevolve's storages under the same adjoint"),
    "shot": (shot.run, "Maurya et al., HPDC'23: shots through GPU, host and disk, beside its baselines"),
    "device": (device.run, "captures, transfers and leases of device memory, beside plain copies"),
    "encoded": (histories.run, "histories that a device encodes on their way to the host, beside the same as they are"),
    "stored": (stored.run, "histories of a device that go on to a disk, beside the same as they are"),
    "accumulated": (accumulated.run, "Maurya et al., HiPC'23: small checkpoints encoded each alone, and together"),
    "scheduled": (scheduled.run, "Maurya et al., HiPC'23: schedules of what is encoded, beside fixed ones"),
    "offload": (offload.run, "training steps whose saved tensors leave the device, beside other ways (needs torch)"),
    "snapshots": (snapshots.run, "snapshots of a model and its optimizer, beside PyTorch's stager (needs torch)"),
    "coldstart": (coldstart.run, "Maurya et al., HiPC'22: the first checkpoints of a process"),
}

# Small enough for a test: that they run and check their bytes, not what they measure.
QUICK: dict[str, dict[str, object]] = {
    "capture": {"sizes": (1 << 20,), "rounds": 1},
    "lease": {"sizes": (4 << 10,), "rounds": 1},
    "small": {"rounds": 1},
    "decision": {"rounds": 1},
    "twins": {"rounds": 1, "duration": "1x"},
    "disk": {"total": 64 << 20, "size": 8 << 20, "rounds": 1},
    "sweep": {"count": 32, "size": 1 << 20, "rounds": 1},
    "scale": {"counts": (100, 1000), "rounds": 1},
    "durable": {"streams": (durable.Stream(1 << 20, 4 << 20), durable.Stream(4 << 10, 32 << 10)), "rounds": 1},
    "commits": {"streams": (durable.Stream(4 << 20, 8 << 20), durable.Stream(4 << 10, 32 << 10)), "rounds": 1},
    "reduced": {"side": 160, "total": 1 << 20, "rounds": 1},
    "deduplicated": {
        "vertices": 2000,
        "megabytes": 0.3,
        "side": 96,
        "checkpoints": (3,),
        "chunks": (128,),
        "rounds": 1,
    },
    "archive": {"ranks": 4, "size": 256 << 10, "count": 2, "rounds": 1, "mpi": False},
    "bucket": {"total": 8 << 20, "ranks": (2,), "checkpoints": 2, "rounds": 1, "parts": (5 << 20,), "threads": (2,)},
    "hacc": {"ranks": 4, "size": 256 << 10, "rounds": 1, "particles": 1000, "steps": 10, "kinds": hacc.KINDS[2:]},
    "aggregation": {"ranks": (16,)},
    "opening": {"count": 200, "total": 8 << 20, "part": 256 << 10, "rounds": 1},
    "staging": {"total": 4 << 20, "rounds": 1},
    "sharded": {"total": 4 << 20, "rounds": 1, "ranks": ((2, (1,)),)},
    "verification": {"sizes": (64 << 10,), "total": 1 << 20, "rounds": 1},
    "storages": {"sizes": (storages.Size(24, 12, 4),), "shot": (32, 32), "steps": 12, "slots": 4, "rounds": 1},
    "shot": {"cells": "tiny"},
    "device": {"size": 64 << 10, "rounds": 2},
    "encoded": {"size": 64 << 10, "rounds": 1},
    "stored": {"size": 128 << 10, "rounds": 1},
    "accumulated": {"sizes": (16 << 10,), "total": 256 << 10, "rounds": 1, "room": 1 << 20},
    "scheduled": {"cells": (scheduled.Cell(64 << 10, (4.0,), 0),), "total": 512 << 10, "rounds": 1, "room": 1 << 20},
    "offload": {
        "settings": (offload.Setting("tiny", 2, 64, 2, 64, False), offload.Setting("again", 2, 64, 2, 64, True)),
        "rounds": 1,
        "host": 64 << 20,
        "stash": 1 << 20,
    },
    "snapshots": {"size": 4 << 20, "rounds": 1},
    "coldstart": {"cells": "tiny"},
}

# Seconds each, and repetitions enough for medians: for `benchmarks.compare`, not for figures to show.
BRIEF: dict[str, dict[str, object]] = {
    "small": {"rounds": 9, "many": False},
    "capture": {"sizes": (1 << 20, 16 << 20, 64 << 20), "rounds": 5},
    "lease": {"rounds": 9},
    "sweep": {"count": 64, "size": 4 << 20, "rounds": 3, "interval": 4e-3},
    "disk": {"total": 256 << 20, "size": 8 << 20, "rounds": 3},
    "durable": {
        "streams": (durable.Stream(4 << 20, 128 << 20), durable.Stream(64 << 10, 16 << 20)),
        "rounds": 5,
        "beside": False,
    },
    "scale": {"counts": (1_000, 20_000), "rounds": 9},
    "device": {"rounds": 4},
    "shot": {"cells": "cores", "sweep": False},
    "coldstart": {"cells": "cores", "rounds": 2, "touch": False},
}

# Commands that are no benchmarks.
COMMANDS: dict[str, click.Command] = {"compare": cores.main}

EXAMPLES = (
    "python -m benchmarks --quick",
    "python -m benchmarks disk --folder /scratch/run --json",
    "python -m benchmarks --out benchmarks/results",
    "python -m benchmarks compare --help",
)


def _size(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    return None if text is None else _or_refused(lambda: parse_size(text, param.name or "size"))


def _streams(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[durable.Stream, ...] | None:
    return None if text is None else _or_refused(lambda: tuple(map(durable.Stream.of, text.split(","))))


def _or_refused(read: Callable[[], T]) -> T:
    try:
        return read()
    except ValueError as error:
        raise click.BadParameter(in_terms_of_commands(str(error))) from None


@click.command(
    epilog=f"NAMES: {', '.join(BENCHMARKS)}.\n\n{examples(*EXAMPLES)}",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("names", nargs=-1, metavar="[NAMES]...", type=click.Choice(sorted(BENCHMARKS)))
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False, resolve_path=True),
    help="Where the disk tier lies; default: a temporary folder.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Write one JSON file for each benchmark here."
)
@click.option("--quick", is_flag=True, help="Tiny sizes, one round: tells whether it runs, not how fast.")
@click.option("--brief", is_flag=True, help="Small sizes, a few rounds: what compare runs by each core.")
@click.option(
    "--cells",
    help="Which cells of shot, coldstart, deduplicated, encoded, stored and accumulated, with commas between; a wrong "
    "name lists all.",
)
@click.option("--rounds", type=click.IntRange(min=1), help="How often everything is measured; the medians are shown.")
@click.option(
    "--streams",
    callback=_streams,
    metavar="SIZE:TOTAL,...",
    help="Of durable and commits: checkpoints of which size, and how much of them, as in 128MiB:4GiB,64KiB:128MiB.",
)
@click.option("--count", type=click.IntRange(min=1), help="How many checkpoints opening and sweep have.")
@click.option("--total", callback=_size, metavar="SIZE", help="How much opening, verification, staging and disk take.")
@click.option(
    "--limit",
    type=float,
    help="Seconds after which shot, coldstart, deduplicated, encoded, stored and accumulated begin nothing new.",
)
@json_option
def main(
    names: tuple[str, ...],
    folder: Path | None,
    out: Path | None,
    quick: bool,
    brief: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run the benchmarks NAMES (when none is named all that this machine can) and say which bars hold."""
    if quick and brief:
        raise click.UsageError("--quick and --brief exclude each other")
    asked = {name: value for name, value in options.items() if value is not None}
    with tempfile.TemporaryDirectory() as scratch:
        for name in names or [name for name in BENCHMARKS if name not in ON_GPU or has_gpu()]:
            run = BENCHMARKS[name][0]
            settings = QUICK[name] if quick else BRIEF.get(name, {}) if brief else {}
            known = inspect.signature(run).parameters
            settings = settings | {option: value for option, value in asked.items() if option in known}
            if "folder" in known:
                settings = settings | {"folder": folder or Path(scratch)}
            report = run(**settings)
            if quick:
                report.only_tried()
            facts = machine.describe(" ".join(["python -m benchmarks", *sys.argv[1:]]))
            if as_json:
                click.echo(message("benchmark", report.facts(facts)))
            else:
                report.show()
            if out is not None:
                click.echo(f"  written: {report.save(out, facts)}", err=as_json)


if __name__ == "__main__":
    if (command := COMMANDS.get("".join(sys.argv[1:2]))) is not None:
        command(sys.argv[2:], prog_name=f"python -m benchmarks {sys.argv[1]}", color=colour())
    main(prog_name="python -m benchmarks", color=colour())
