"""A rank that pushes its store together with others: ``archive_rank.py mpi|torch FOLDER WHAT...``."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import velocpy
from velocpy import errors, ondisk
from velocpy.archive import Destination, push, together
from velocpy.archive.exchange import exchange_of


def communicator(kind: str) -> tuple[Any, int]:
    if kind == "mpi":
        from mpi4py import MPI

        return MPI.COMM_WORLD.Dup(), MPI.COMM_WORLD.Get_rank()
    from torch import distributed

    distributed.init_process_group("gloo")
    return distributed.group.WORLD, distributed.get_rank()


def interrupted(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def work(folder: Path, what: str, ranks: Any, rank: int) -> dict[str, Any]:
    from test_archive import NODES, SIZES, state_of, store_of

    folder = folder / what if what in NODES else folder
    os.environ["VELOCPY_NODE"] = str(rank // 2 if what.startswith(("nodes", "archiving")) else 0)
    path = store_of(folder, rank)
    if what == "elsewhere" and rank == 1:
        # As on another node: what rank 0 finds under this name is another store, or none.
        path = folder / "elsewhere"
    if what.startswith("archiving"):
        return archiving(folder, path, ranks, rank, *what.split(":")[1:])
    if what.startswith("killed"):
        return killed(folder, what, ranks, rank)
    with velocpy.open(path, **SIZES) as store:
        for step in range(4):
            store.history("forward").checkpoint(step, **state_of(rank, step), meta={"loss": step / 2})
        if what == "memory" and rank == 1:
            with velocpy.open(host="1MiB") as memory:
                return asdict(push(memory, folder / "archive", ranks=ranks))
        if what == "no path" and rank == 1:
            return asdict(push(b"\0", folder / "archive", ranks=ranks, files=2, timeout=60))  # type: ignore[arg-type]
        if what == "interrupted" and rank == 0:
            together.open_alone = interrupted
        if what == "locked" and rank == 0:
            push([store], folder / "archive")
            with velocpy.open(folder / "archive", **SIZES):
                return asdict(push(store, folder / "archive", ranks=ranks, files=2, timeout=60))
        files = {"other files": 1, "no files": 0, "many files": 3}.get(what, 2) if rank == 1 else 2
        if what in NODES:
            more = {"leaders": 1, "buffer": 4096}
            return asdict(push(store, folder / "archive", ranks=ranks, files=1, timeout=60, **more))
        return asdict(push(store, folder / "archive", ranks=ranks, files=files, timeout=60))


def archiving(folder: Path, path: Path, ranks: Any, rank: int, who: str = "", seconds: str = "") -> dict[str, Any]:
    """Keeps steps that go to an archive in the background, while the application uses its communicator.

    With ``archiving:RANK:SECONDS`` one of the ranks kills itself meanwhile.
    """
    from test_archive import SIZES, state_of

    if who:
        to = Destination(folder / "archive", leaders=1, buffer=4096, every=0.01, timeout=20)
        with velocpy.open(path, **SIZES, archive=to, ranks=ranks) as store:
            if rank == int(who):
                threading.Timer(float(seconds), os.kill, (os.getpid(), signal.SIGKILL)).start()
            for step in range(1000):
                meta = {"loss": step / 2}
                store.history("forward").checkpoint(step, **state_of(rank, step), meta=meta).wait("archive", timeout=40)
        raise AssertionError("no rank was killed")
    to = Destination(folder / "archive", files=2, every=0.1, timeout=60)
    with velocpy.open(path, **SIZES, archive=to, ranks=ranks) as store:
        for step in range(6):
            ticket = store.history("forward").checkpoint(step, **state_of(rank, step), meta={"loss": step / 2})
            assert exchange_of(ranks, 60).all_gather(b"%d" % step) == [b"%d" % step] * exchange_of(ranks, 60).size
        ticket.wait("archive", timeout=60)
        store.wait("archive", timeout=60)
        figures = store.stats()["archive"]
        assert figures is not None
        return {"waited": ticket.durable("archive"), "keys": figures["keys"]}


def killed(folder: Path, what: str, ranks: Any, rank: int) -> dict[str, Any]:
    """Pushes after every step, until one of the ranks, ``killed:RANK:SECONDS``, kills itself."""
    from test_archive import SIZES, state_of, store_of

    _, who, seconds = what.split(":")
    os.environ["VELOCPY_NODE"] = str(rank // 2)
    with velocpy.open(store_of(folder, rank), **SIZES) as store:
        push(store, folder / "archive", ranks=ranks, files=1, timeout=20)
        if rank == int(who):
            threading.Timer(float(seconds), os.kill, (os.getpid(), signal.SIGKILL)).start()
        for step in range(1000):
            store.history("forward").checkpoint(step, **state_of(rank, step), meta={"loss": step / 2})
            # One leader: the ranks of the other node send it what they have, in many messages.
            push(store, folder / "archive", ranks=ranks, files=1, leaders=1, buffer=4096, timeout=20)
    raise AssertionError("no rank was killed")


@contextmanager
def unseen(name: str) -> Iterator[None]:
    """As on another node: no store can be read in a directory of this name."""
    read = ondisk.View.__init__

    def refuse(self: Any, path: Path) -> None:
        if path.name == name:
            raise errors.NotAStore(f"there is no store in {path}")
        read(self, path)

    ondisk.View.__init__ = refuse  # type: ignore[method-assign]
    try:
        yield
    finally:
        ondisk.View.__init__ = read  # type: ignore[method-assign]


def report(folder: Path, what: str, ranks: Any, rank: int) -> dict[str, Any]:
    pushes = together.open_alone
    try:
        with unseen("elsewhere" if what == "elsewhere" and rank == 0 else ""):
            return {"pushed": work(folder, what, ranks, rank)}
    except (errors.VelocError, KeyboardInterrupt) as error:
        facts = {"error": type(error).__name__, "text": str(error), "rank": getattr(error, "rank", None)}
        return facts | {"exists": (folder / "archive").exists()}
    finally:
        together.open_alone = pushes


def main(kind: str, folder: Path, *what: str) -> None:
    ranks, rank = communicator(kind)
    said = {each: report(folder, each, ranks, rank) for each in what}
    (folder / f"report-{rank}.json").write_text(json.dumps(said))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
