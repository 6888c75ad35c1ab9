"""Checkpoints of sharded states by `velocpy.dcp`, beside the files of torch.distributed.checkpoint.

Each rank is a process, with a GPU of its own where there are as many. A training is blocked until it may change its
state again.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from benchmarks import ROOT
from benchmarks.engines.contenders import has_gpu
from velocpy.bench.report import Report
from velocpy.bench.timing import median

from .ways import BLOCKING, DEFAULT, FILES, OURS, READER

#: Ranks that save, and those that load, again as many and fewer.
RANKS = ((1, (1,)), (2, (2, 1)))

_PATIENCE = 300.0


def run(
    folder: Path, total: int = 2 << 30, rounds: int = 5, ranks: tuple[tuple[int, tuple[int, ...]], ...] = RANKS
) -> Report:
    """Saves and loads a state of ``total`` bytes, sharded over one and over two ranks.

    On host memory where there is no GPU, without figures.
    """
    if importlib.util.find_spec("torch") is None:
        raise click.ClickException("the benchmark of sharded states needs torch: pip install torch")
    import torch

    there = torch.cuda.device_count() if has_gpu() else 0
    device = "cuda" if there else "cpu"
    report = Report("sharded", {"rounds": rounds, "state MiB": total >> 20, "torch": torch.__version__})
    report.settings |= {"device": torch.cuda.get_device_name() if there else "host memory", "devices": there}
    differ = 0
    for count, loading in ranks:
        if device == "cuda" and there < count:
            report.remark(f"{count} ranks were not played: {there} CUDA device is here.")
            continue
        place = folder / f"sharded-{count}"
        place.mkdir(parents=True)
        try:
            common = {"folder": str(place), "out": str(place), "size": total, "rounds": rounds, "device": device}
            _show_saves(report, count, _launch(count, {**common, "action": "save"}))
            for after in loading:
                differ += _show_loads(report, count, _launch(after, {**common, "action": "load"}))
        finally:
            shutil.rmtree(place)
    report.never("tensors that differ from those of the state at the call", differ)
    if device == "cpu":
        report.drop_measured()
    report.notes += [
        "'blocked' is the time from async_save until the state may be changed, of the slowest rank; 'complete' until "
        "the checkpoint is there as a whole. Files are synced, and so are stores.",
        "A stager that all options are given to copies one state only in some versions of PyTorch, and is made anew "
        "then. BlockingAsyncStager keeps its pinned memory.",
    ]
    return report


def _show_saves(report: Report, count: int, found: list[dict[str, Any]]) -> None:
    blocked = {}
    nbytes = sum(each["bytes"] for each in found)
    for way in (OURS, DEFAULT, BLOCKING):
        laps = [[each["laps"][way][number] for each in found] for number in range(len(found[0]["laps"][way]))]
        blocked[way] = median([max(lap[0] for lap in ranks) for ranks in laps])
        whole = median([max(lap[1] for lap in ranks) for ranks in laps])
        row = {"ranks": count, "does": "saves", "way": way, "blocked ms": blocked[way] * 1e3}
        report.rows.append(row | {"complete s": whole, "GB/s": nbytes / whole / 1e9})
    theirs = min(blocked[DEFAULT], blocked[BLOCKING])
    name = f"{count} ranks: blocked time by the least of async_save with pinned staging"
    report.bar(name, blocked[OURS] / theirs, 0.5, at_least=False)


def _show_loads(report: Report, count: int, found: list[dict[str, Any]]) -> int:
    after, nbytes = len(found), sum(each["bytes"] for each in found)
    for way in (READER, FILES):
        laps = [max(each["laps"][way][number] for each in found) for number in range(len(found[0]["laps"][way]))]
        row = {"ranks": f"{count} → {after}", "does": "loads", "way": way, "complete s": median(laps)}
        report.rows.append(row | {"GB/s": nbytes / median(laps) / 1e9})
    read = sum(each["read"] for each in found) / nbytes
    report.bar(f"{count} → {after} ranks: bytes read by those asked for", read, 1.1, at_least=False)
    return int(sum(each["differ"] for each in found))


def _launch(count: int, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """What so many ranks have found.

    Raises
    ------
    ClickException
        One of them has failed.
    """
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(count)}
    command = [sys.executable, "-m", "benchmarks.training.sharded_rank", json.dumps(settings)]
    running = [
        subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(count)
    ]
    try:
        said = [each.communicate(timeout=_PATIENCE)[0] for each in running]
    finally:
        for each in running:
            each.kill()
    if any(each.returncode for each in running):
        raise click.ClickException("a rank has failed:\n" + "\n".join(text[-3000:] for text in said))
    action, out = settings["action"], Path(settings["out"])
    return [json.loads((out / f"{action}-{rank}.json").read_text(encoding="utf-8")) for rank in range(count)]
