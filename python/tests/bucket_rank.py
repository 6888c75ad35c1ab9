"""A rank that pushes its store into a bucket together with others: ``bucket_rank.py FOLDER PLACE``."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import distributed

import velocpy
from velocpy import errors
from velocpy.archive import Destination, push


def refused(place: str, store: Path, ranks: Any) -> list[str]:
    """What ranks on two nodes are told, by a push and when they open stores."""
    from test_archive import SIZES

    told = []
    try:
        push(store, place + "-nodes", ranks=ranks, timeout=60)
    except errors.VelocError as error:
        told.append(type(error).__name__)
    try:
        velocpy.open(store, **SIZES, archive=place + "-nodes", ranks=ranks)
    except errors.VelocError as error:
        told.append(type(error).__name__)
    return told


def main(folder: Path, place: str) -> None:
    from test_archive import SIZES, state_of, store_of

    distributed.init_process_group("gloo")
    ranks, rank = distributed.group.WORLD, distributed.get_rank()
    os.environ["VELOCPY_NODE"] = "one"
    store = store_of(folder, rank)
    with velocpy.open(store, **SIZES) as opened:
        for step in range(3):
            opened.history("forward").checkpoint(step, **state_of(rank, step), meta={"loss": step / 2})
        pushed = asdict(push(opened, place, ranks=ranks, timeout=60))
    to = Destination(place, every=0.05, timeout=60)
    with velocpy.open(store, **SIZES, archive=to, ranks=ranks) as opened:
        opened.history("forward").checkpoint(3, **state_of(rank, 3), meta={"loss": 1.5}).wait("archive", timeout=60)
    os.environ["VELOCPY_NODE"] = str(rank % 2)
    report = {"pushed": pushed, "refused": refused(place, store, ranks)}
    (folder / f"report-{rank}.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
