"""Archives in a bucket: pushes, restores and pulls, beside minio-go alone with the best part size.

One machine runs the server, versitygw on a loopback port, and the client. The server keeps objects in files of the same
disk, without syncs. So the rates are those of the processors and of the page cache.
"""

from __future__ import annotations

import os
import shutil
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import velocpy
from benchmarks.disk.alone import Alone, Object, Pieces, Way, alone
from benchmarks.disk.objects import BUCKET, environment, serving
from velocpy.archive import part, pull, push
from velocpy.bench.report import Report
from velocpy.bench.timing import Contender, by_turns, median

MIB = 1 << 20

#: Of the rate of minio-go alone with the best part size and number of threads.
LEAST = 0.9

#: So many points of a sweep take part in the rounds.
SHORTLIST = 2

UPLOADS, DOWNLOADS = ("upload", "upload-by-putobject"), ("download",)

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def run(
    folder: Path,
    total: int = 512 * MIB,
    ranks: tuple[int, ...] = (1, 4),
    checkpoints: int = 4,
    rounds: int = 5,
    parts: tuple[int, ...] = (5 * MIB, 16 * MIB, 32 * MIB, 64 * MIB),
    threads: tuple[int, ...] = (2, 4, 8, 16),
) -> Report:
    """`total` bytes in so many checkpoints of each rank; all bytes that come back are compared."""
    report = Report(
        "bucket",
        {
            "bytes": total,
            "ranks": list(ranks),
            "checkpoints of a rank": checkpoints,
            "rounds": rounds,
            "parts": list(parts),
            "threads": list(threads),
        },
    )
    report.measure({f"disk {what}, GB/s": round(rate / 1e9, 3) for what, rate in _disk(folder, total).items()})
    differing = 0
    for number in ranks:
        own = folder / f"bucket-{number}"
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir(parents=True)
        try:
            with serving(own / "objects") as server, _environment(environment(server.url)), alone(own) as peer:
                case = _Case(own, number, total // number // checkpoints // 4096 * 4096, checkpoints, peer)
                differing += case.measure(report, rounds, parts, threads)
        finally:
            shutil.rmtree(own, ignore_errors=True)
    report.never("bytes that differ, or checkpoints that are missing", differing)
    report.notes += [
        "Each round removes the objects of the last one, and syncs the disk, before a clock starts. 'minio-go alone' "
        "is the program s3/alone, with the version of minio-go that velocpy-s3 has. A sweep plays each part size with "
        f"each number of threads three times, of which the first does not count. The {SHORTLIST} fastest are played in "
        "every round, in turns with velocpy, and the one with the better median is the baseline.",
        "Uploads: all ways read the same bytes from the data files of the stores, past the page cache with O_DIRECT; "
        "'upload-by-putobject' reads them through the page cache, which has none of them before. All send the CRC-32C "
        "of each part, with which the server compares the part, and sign no SHA-256 of it. minio-go alone compares the "
        "bytes that it has read with nothing. A push compares them with the checksums of the checkpoints, and commits.",
        "Downloads: minio-go alone reads ranges into memory that is there already, or into a new file past the page "
        "cache, which it syncs, and compares no bytes while the clock runs; the server sends no checksum of a range. "
        "Restores open the archive and read every checkpoint into arrays that are there already, one after the other, "
        "as hints have told before, and verify their checksums. A pull also makes a durable store, whose bytes it "
        "reads back and verifies.",
        "'upload-from-memory' sends parts that were read, and whose checksums were taken, before the clock starts, and "
        "'download-to-nowhere' reads into one buffer of each thread: they show what the server does at most beside a "
        "client on the same processors.",
    ]
    return report


@contextmanager
def _environment(given: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(given)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _disk(folder: Path, total: int) -> dict[str, float]:
    """Bytes/s of a file that this process writes and syncs, and writes without a sync, as the server does."""
    folder.mkdir(parents=True, exist_ok=True)
    block, rates = np.random.default_rng(0).bytes(4 * MIB), {}
    for what in ("write", "write and sync"):
        os.sync()
        file = folder / "probe"
        began = time.perf_counter()
        with file.open("wb", buffering=0) as opened:
            for _ in range(max(total // len(block), 1)):
                opened.write(block)
            if what != "write":
                os.fsync(opened.fileno())
        rates[what] = max(total // len(block), 1) * len(block) / (time.perf_counter() - began)
        file.unlink()
    return rates


class _Case:
    """So many ranks' stores, and a running server."""

    def __init__(self, folder: Path, ranks: int, size: int, count: int, peer: Alone) -> None:
        self.folder, self.ranks, self.size, self.count, self.peer = folder, ranks, size, count, peer
        self.total = ranks * size * count
        self.stores = [folder / f"rank-{rank:05d}" for rank in range(ranks)]
        self.states = [[_state(rank, step, size) for step in range(count)] for rank in range(ranks)]
        self.back = [[np.zeros(size, np.uint8) for _ in range(count)] for _ in range(ranks)]
        self.objects = []
        for rank, path in enumerate(self.stores):
            with velocpy.open(path, host=4 * size + 16 * MIB, disk=2 * count * size + 64 * MIB) as store:
                for step in range(count):
                    store.history("forward").checkpoint(step, u=self.states[rank][step])
            pieces = _pieces(path, size)
            _require_same(pieces, self.states[rank])
            self.objects.append(Object(f"alone/{path.name}", pieces))
        self.differing, self._pushes = 0, 0
        self.push()  # restores and pulls may come first in a round

    def measure(self, report: Report, rounds: int, parts: tuple[int, ...], threads: tuple[int, ...]) -> int:
        """Adds rows and bars to a report; returns how many bytes differ."""
        who = f"{self.ranks} rank{'s' if self.ranks > 1 else ''}"
        grid = [(length, number) for length in parts for number in threads]
        uploads = self.shortlist(report, who, [Way(task, *point) for task in UPLOADS for point in grid])
        downloads = self.shortlist(report, who, [Way(task, *point) for task in DOWNLOADS for point in grid])
        best_up, best_down = uploads[0], downloads[0]
        files = [way._replace(task="download-to-files") for way in downloads]
        from_memory = best_up._replace(task="upload-from-memory")
        to_nowhere = best_down._replace(task="download-to-nowhere")
        theirs = {str(way): self.contender(way) for way in (*uploads, from_memory, *downloads, *files, to_nowhere)}
        restores: dict[str, Contender] = {"restores": self.restore}
        if self.ranks > 1:
            restores[f"restores by {self.ranks} threads"] = partial(self.restore, self.ranks)
        took = by_turns({"push": self.push, **theirs, **restores, "pull": self.pull}, rounds)
        peers = {"push": uploads, **dict.fromkeys(restores, downloads), "pull": files}
        for name, laps in took.items():
            row = self.row(who, name, laps)
            if name in peers:
                by, peer = self.ratio(took, laps, peers[name])
                report.bar(f"{who}: {name}, rate by that of minio-go alone", by, LEAST, at_least=True)
                row |= {"rate by minio-go alone": by, "minio-go alone": peer}
            report.rows.append(row)
        return self.differing + self.peer.differing

    def shortlist(self, report: Report, who: str, ways: list[Way]) -> list[Way]:
        """The fastest of a sweep."""
        took = by_turns({str(way): self.contender(way) for way in ways}, 2)
        best = sorted(ways, key=lambda way: min(took[str(way)]))[:SHORTLIST]
        for way in ways:
            report.rows.append(self.row(f"{who}, sweep", str(way), took[str(way)]))
        return best

    def ratio(self, took: dict[str, list[float]], laps: list[float], ways: list[Way]) -> tuple[float, str]:
        """The rate by that of the way with the best median, in the rounds."""
        best = min((str(way) for way in ways), key=lambda name: median(took[name]))
        by = median([b / a for a, b in zip(laps, took[best], strict=True)])
        return round(by, 3), f"{self.total / median(took[best]) / 1e9:.3f} GB/s: {best}"

    def row(self, who: str, way: str, laps: list[float]) -> dict[str, Any]:
        """A row of the report."""
        return {"case": who, "way": way, "GB/s": round(self.total / median(laps) / 1e9, 3)}

    def contender(self, way: Way) -> Contender:
        """A way of minio-go alone."""

        def lap() -> float:
            if way.task.startswith("upload"):
                self.clear("alone")
            elif way.task == "download-to-files":
                self.clear("files")
            return self.peer.seconds(way, self.objects, self.folder / "files")

        return lap

    def clear(self, name: str) -> None:
        """Removes objects or files of the last lap."""
        for path in (self.folder / name, self.folder / "objects" / BUCKET / name):
            shutil.rmtree(path, ignore_errors=True)
        (self.folder / name).mkdir()
        os.sync()

    def push(self) -> float:
        """A push of all stores into an empty prefix."""
        self.clear("ours")
        self._pushes += 1
        # A new prefix: of an archive that was there before, velocpy would know the catalog.
        self.place = f"s3://{BUCKET}/ours/{self._pushes}"
        began = time.perf_counter()
        push([str(path) for path in self.stores], self.place)
        return time.perf_counter() - began

    def restore(self, threads: int = 1) -> float:
        """A reader that restores everything; threads share the ranks."""
        for arrays in self.back:
            for array in arrays:
                array.fill(0)
        began = time.perf_counter()
        with velocpy.open(self.place, host=2 * self.size + 16 * MIB, mode="r") as archive:

            def of(rank: int) -> None:
                history = archive.history(part("forward", rank))
                history.hint(range(self.count))
                for step in range(self.count):
                    history.restore(step, into={"u": self.back[rank][step]})

            if threads == 1:
                for rank in range(self.ranks):
                    of(rank)
            else:
                with ThreadPoolExecutor(threads) as pool:
                    list(pool.map(of, range(self.ranks)))
        took = time.perf_counter() - began
        self.compare()
        return took

    def compare(self) -> None:
        """Counts bytes that did not come back."""
        for back, state in zip(self.back, self.states, strict=True):
            for one, other in zip(back, state, strict=True):
                if not np.array_equal(one, other):
                    self.differing += int(np.count_nonzero(one != other))

    def pull(self) -> float:
        """Pulls of all ranks, each into a store of its own, one after the other."""
        self.clear("pulled")
        began = time.perf_counter()
        for rank in range(self.ranks):
            pull(self.place, self.folder / "pulled" / str(rank), rank=rank)
        took = time.perf_counter() - began
        for array in (each for back in self.back for each in back):
            array.fill(0)
        for rank in range(self.ranks):
            with velocpy.open(self.folder / "pulled" / str(rank), host=2 * self.size + 16 * MIB, mode="r") as store:
                for step in range(self.count):
                    store.history("forward").restore(step, into={"u": self.back[rank][step]})
        self.compare()
        return took


def _state(rank: int, step: int, size: int) -> Bytes:
    return np.random.default_rng([rank, step]).integers(0, 256, size, np.uint8)


def _pieces(store: Path, size: int) -> Pieces:
    """Where the data files of a store have checkpoints of so many bytes."""
    pieces = []
    for file in sorted(store.glob("data-*")):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            pieces += [(file, at, length) for at, length in _extents(descriptor) if length >= size]
        finally:
            os.close(descriptor)
    return pieces


def _extents(descriptor: int) -> Iterator[tuple[int, int]]:
    """Ranges of a file that were written."""
    at, end = 0, os.fstat(descriptor).st_size
    while at < end:
        try:
            at = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError:  # there is no more
            return
        hole = os.lseek(descriptor, at, os.SEEK_HOLE)
        yield at, hole - at
        at = hole


def _require_same(pieces: Pieces, states: list[Bytes]) -> None:
    """Raises unless pieces of files have the bytes of checkpoints."""
    size, found = len(states[0]), set()
    for file, at, length in pieces:
        with file.open("rb") as opened:
            opened.seek(at)
            for _ in range(length // size):
                found.add(zlib.crc32(opened.read(size)))
    if found != {zlib.crc32(state.data) for state in states} or sum(length for *_, length in pieces) != size * len(
        states
    ):
        raise RuntimeError("the data files of a store have other bytes than its checkpoints, where the benchmark looks")
