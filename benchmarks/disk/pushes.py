"""What ranks have kept, brought into few files: an archive, beside a file for each rank and MPI-IO.

Gossman et al., section 5.1: ranks with checkpoints of one size, give or take a fifth, which lie on a local disk; the
flush to shared storage alone is timed. Here one disk is both.
"""

from __future__ import annotations

import mmap
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import velocpy
from benchmarks.disk.ranked import launcher, said_by_ranks
from velocpy.archive import part, push
from velocpy.bench.report import Report
from velocpy.bench.timing import Contender, by_turns, median

#: Bytes of one read and one write of the copies.
PIECE = 4 << 20

#: Of the rate of a file for each rank, with as many files as ranks, and with a quarter.
LEAST, LEAST_OF_FEW = 0.9, 0.8
#: Of the rate of MPI-IO's collective writes into as many files.
LEAST_OF_MPI = 1.6

ARCHIVE, TOGETHER, MPI = "archive, {} files", "archive of {} nodes, {} files, {} leaders", "MPI-IO, {} files"

#: Ranks of a node, where ranks push together.
OF_NODE = 2


def run(
    folder: Path, ranks: int = 8, size: int = 32 << 20, count: int = 4, rounds: int = 5, mpi: bool = True
) -> Report:
    """So many checkpoints of each rank, of `size` bytes more or less; all of the archive's are compared."""
    stores = [folder / f"rank-{rank:05d}" for rank in range(ranks)]
    sizes = [_size(rank, size) for rank in range(ranks)]
    for rank, path in enumerate(stores):
        _keep(path, rank, sizes[rank], count)
    total = count * sum(sizes)
    few, nodes = max(ranks // 4, 1), max(ranks // OF_NODE, 1)
    # Files and leaders of a file: first those by default, and at last the paper's one leader, to which most is sent.
    travelled = [(nodes, 1), (max(nodes // 4, 1), min(nodes, 4)), (max(nodes // 4, 1), 1)]
    report = Report(
        "archive",
        {
            "ranks": ranks,
            "bytes": total,
            "checkpoints": count,
            "rounds": rounds,
            "piece": PIECE,
            "few": few,
            "nodes": nodes,
        },
    )
    contenders: dict[str, Contender] = {
        f"a file for each rank, {depth} at once": partial(_copied, stores, sizes, count, folder, depth)
        for depth in (1, 2)
    }
    for files in sorted({ranks, few, 1}, reverse=True):
        contenders[ARCHIVE.format(files)] = partial(_pushed, stores, folder / "archive", files)
    mpiexec = launcher() if mpi else None
    if mpiexec is None:
        report.remark("MPI-IO and ranks of several nodes were not played: there is no mpiexec, or no mpi4py.")
    else:
        for files, leaders in travelled:
            contenders[TOGETHER.format(nodes, files, leaders)] = partial(
                _together, mpiexec, stores, folder / "archive", files, leaders, ranks
            )
        for files in sorted({ranks, few}, reverse=True):
            contenders[MPI.format(files)] = partial(_written, mpiexec, stores, folder, files, ranks)
    took = by_turns(contenders, rounds)
    rates = {name: median([total / seconds for seconds in laps]) for name, laps in took.items()}
    copies = max((name for name in rates if name.startswith("a file")), key=lambda name: rates[name])
    for name, laps in took.items():
        ratios = [theirs / ours for ours, theirs in zip(laps, took[copies], strict=True)]
        report.rows.append(
            {"way": name, "GB/s": round(rates[name] / 1e9, 3), "rate by a file for each rank": round(median(ratios), 3)}
        )
    ratio = {row["way"]: row["rate by a file for each rank"] for row in report.rows}
    report.bar(
        f"{ranks} files, rate by that of a file for each rank", ratio[ARCHIVE.format(ranks)], LEAST, at_least=True
    )
    report.bar(
        f"{few} files, rate by that of a file for each rank", ratio[ARCHIVE.format(few)], LEAST_OF_FEW, at_least=True
    )
    if mpiexec is not None:
        for files, leaders in travelled:
            what = f"{nodes} nodes, {files} files, {leaders} leaders of each, rate by that of a file for each rank"
            least = LEAST if files == nodes else LEAST_OF_FEW
            report.bar(what, ratio[TOGETHER.format(nodes, files, leaders)], least, at_least=True)
    for files in sorted({ranks, few}, reverse=True):
        if mpiexec is not None:
            ours, theirs = took[ARCHIVE.format(files)], took[MPI.format(files)]
            by = median([b / a for a, b in zip(ours, theirs, strict=True)])
            report.bar(f"{files} files, rate by that of MPI-IO", by, LEAST_OF_MPI, at_least=True)
    report.never("bytes that differ, or parts that are missing, of the last archive", _differing(folder, sizes, count))
    report.notes += [
        "Seconds until everything is on the disk. 'a file for each rank' copies the data files of each store by so "
        "many threads of its own, with O_DIRECT; the number of threads that is faster is the peer. It compares nothing "
        "with checksums, and the archive does.",
        "MPI-IO: each rank reads its data files with O_DIRECT, and all ranks of a file write by collective calls; the "
        "start of the processes does not count, the sync of the files does.",
        f"'of {nodes} nodes': every rank is a process, and {OF_NODE} of them are a node that cannot read the "
        "stores of others: what has no leader of its file on its node goes to one by MPI, through the memory of this "
        "machine. The processors do all of that beside the copies.",
    ]
    return report


def _size(rank: int, size: int) -> int:
    """Sizes differ by up to a fifth from rank to rank, in whole blocks."""
    return int(size * (0.8 + 0.4 * (rank * 7 % 8) / 7)) // 4096 * 4096


def _state(rank: int, step: int, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng([rank, step]).integers(0, 256, size, np.uint8)


def _keep(path: Path, rank: int, size: int, count: int) -> None:
    with velocpy.open(path, host=4 * size + (16 << 20), disk=2 * count * size + (64 << 20)) as store:
        for step in range(count):
            store.history("forward").checkpoint(step, u=_state(rank, step, size))


def _pushed(stores: list[Path], archive: Path, files: int) -> float:
    shutil.rmtree(archive, ignore_errors=True)
    os.sync()
    began = time.perf_counter()
    push(stores, archive, files=files)
    return time.perf_counter() - began


def _copied(stores: list[Path], sizes: list[int], count: int, folder: Path, depth: int) -> float:
    shutil.rmtree(folder / "copies", ignore_errors=True)
    (folder / "copies").mkdir()
    os.sync()
    began = time.perf_counter()
    copying = [
        thread
        for rank, path in enumerate(stores)
        for thread in _copiers(path, folder / "copies" / str(rank), sizes[rank] * count, depth)
    ]
    for thread in copying:
        thread.start()
    for thread in copying:
        thread.join()
    for file in (folder / "copies").iterdir():
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
    return time.perf_counter() - began


def _copiers(store: Path, to: Path, nbytes: int, depth: int) -> Iterator[threading.Thread]:
    """Threads that copy as many bytes of a store's data files as its checkpoints have."""
    to.touch()
    all_of_them = list(pieces(store, nbytes))
    for first in range(depth):
        yield threading.Thread(target=_copy, args=(all_of_them[first::depth], to))


def pieces(store: Path, nbytes: int) -> Iterator[tuple[Path, int, int, int]]:
    """File, offset, length and offset in the copy of each piece of what a store has."""
    at = 0
    for file in sorted(store.glob("data-*")):
        size = file.stat().st_size // 4096 * 4096
        for offset in range(0, size, PIECE):
            length = min(PIECE, size - offset, nbytes - at)
            if length > 0:
                yield file, offset, length, at
                at += length


def _copy(some: list[tuple[Path, int, int, int]], to: Path) -> None:
    buffer = mmap.mmap(-1, PIECE)
    with direct(to, os.O_WRONLY) as written:
        for file, offset, length, at in some:
            view = memoryview(buffer)[:length]
            with direct(file, os.O_RDONLY) as read:
                os.preadv(read, [view], offset)
            os.pwritev(written, [view], at)


@contextmanager
def direct(file: Path, flags: int) -> Iterator[int]:
    """A descriptor past the page cache, where the file system has that."""
    try:
        descriptor = os.open(file, flags | os.O_DIRECT)
    except OSError:
        descriptor = os.open(file, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _together(mpiexec: str, stores: list[Path], archive: Path, files: int, leaders: int, ranks: int) -> float:
    shutil.rmtree(archive, ignore_errors=True)
    return _by_ranks(mpiexec, ranks, "together.py", archive, files, leaders, OF_NODE, *stores)


def _written(mpiexec: str, stores: list[Path], folder: Path, files: int, ranks: int) -> float:
    target = folder / "mpi"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    return _by_ranks(mpiexec, ranks, "collective.py", target, files, *stores)


def _by_ranks(mpiexec: str, ranks: int, script: str, *arguments: object) -> float:
    """The seconds that so many ranks of MPI say they needed."""
    os.sync()
    return float(said_by_ranks(mpiexec, ranks, Path(__file__).with_name(script), *arguments).split()[-1])


def _differing(folder: Path, sizes: list[int], count: int) -> int:
    """Bytes of the last archive that differ; a part that is missing counts as all its bytes."""
    differing = 0
    with velocpy.open(folder / "archive", host=4 * max(sizes) + (16 << 20), mode="r") as archive:
        for rank, size in enumerate(sizes):
            history = archive.history(part("forward", rank))
            for step in range(count):
                if step not in history:
                    differing += size
                    continue
                differing += int(np.count_nonzero(history.restore(step)["u"] != _state(rank, step, size)))
    return differing
