"""A rank that pushes its store into a bucket together with others: ``bucket_rank.py FOLDER PLACE [WHAT]``."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import distributed

import velocpy
from velocpy import errors
from velocpy.archive import Destination, push


def sent(folder: Path, place: str, ranks: Any, rank: int) -> dict[str, Any]:
    """Pushes three steps, and sends a fourth one in the background."""
    from test_archive import SIZES, state_of, store_of

    store = store_of(folder, rank)
    with velocpy.open(store, **SIZES) as opened:
        for step in range(3):
            opened.history("forward").checkpoint(step, **state_of(rank, step), meta={"loss": step / 2})
        pushed = asdict(push(opened, place, ranks=ranks, timeout=60))
    to = Destination(place, every=0.05, timeout=60)
    with velocpy.open(store, **SIZES, archive=to, ranks=ranks) as opened:
        opened.history("forward").checkpoint(3, **state_of(rank, 3), meta={"loss": 1.5}).wait("archive", timeout=60)
    return pushed


def killed(folder: Path, place: str, ranks: Any, rank: int, who: int, seconds: float) -> str:
    """Pushes after every step, until one of the ranks kills itself; the error that this one gets."""
    from test_archive import SIZES, state_of, store_of

    try:
        with velocpy.open(store_of(folder, rank), **SIZES) as store:
            push(store, place, ranks=ranks, timeout=20)
            if rank == who:
                threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
            for step in range(1000):
                store.history("forward").checkpoint(step, **state_of(rank, step), meta={"loss": step / 2})
                push(store, place, ranks=ranks, timeout=20)
    except errors.VelocError as error:
        return type(error).__name__
    return "no rank was killed"


def main(folder: Path, place: str, what: str = "") -> None:
    distributed.init_process_group("gloo")
    ranks, rank = distributed.group.WORLD, distributed.get_rank()
    report: Any
    if what:
        _, who, seconds = what.split(":")
        os.environ["VELOCPY_NODE"] = str(rank // 2)
        report = killed(folder, place, ranks, rank, int(who), float(seconds))
    else:
        report = {}
        for nodes in (1, 2):
            os.environ["VELOCPY_NODE"] = str(rank % nodes)
            report[nodes] = sent(folder / str(nodes), f"{place}-{nodes}", ranks, rank)
    (folder / f"report-{rank}.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
