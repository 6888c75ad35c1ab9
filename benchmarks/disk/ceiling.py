"""What a disk does at its best: large O_DIRECT transfers at every depth that is worth trying, by fio and by threads.

A ceiling that is too low makes everything beside it look good. So the best point of a sweep counts, for writing and for
reading each, and whoever was faster than that in the same run has found the ceiling (`Ceiling.at_least`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from velocpy.bench.rawdisk import RawDisk

MIB = 1 << 20
DEPTHS = (1, 4, 16, 32)
BLOCKS = (MIB, 4 * MIB)
#: Bytes of one point of the sweep, each way: about a second of a good drive.
POINT = 1 << 30

Direction = Literal["write", "read"]
DIRECTIONS: tuple[Direction, ...] = ("write", "read")


@dataclass(frozen=True)
class Point:
    """One way to move bytes, and what it did."""

    tool: str
    direction: Direction
    depth: int
    block: int
    rate: float  # bytes/s

    def __str__(self) -> str:
        return f"{self.tool}, {self.depth} at once of {self.block // MIB} MiB"


@dataclass(frozen=True)
class Ceiling:
    """The best points of a sweep."""

    points: tuple[Point, ...]

    def best(self, direction: Direction) -> Point:
        """The fastest point of a direction."""
        return max((p for p in self.points if p.direction == direction), key=lambda p: p.rate)

    def rates(self) -> dict[str, float]:
        """Bytes/s of both directions, by the names that reports use."""
        return {f"disk {direction}": self.best(direction).rate for direction in DIRECTIONS}

    def rows(self) -> list[dict[str, Any]]:
        """All points, for a report."""
        return [
            {"tool": p.tool, "way": p.direction, "depth": p.depth, "MiB": p.block // MIB, "GB/s": p.rate / 1e9}
            for p in self.points
        ]


def at_least(rates: dict[str, float], reached: dict[str, float]) -> dict[str, float]:
    """The rates, none below what somebody has reached in the same run."""
    return {name: max(rate, reached.get(name, 0.0)) for name, rate in rates.items()}


def sweep(
    folder: Path, total: int = POINT, depths: tuple[int, ...] = DEPTHS, blocks: tuple[int, ...] = BLOCKS
) -> Ceiling:
    """Tries every depth and block size in a file of ``total`` bytes: by threads, and by fio where it is installed."""
    points = []
    for block in blocks:
        size = max(total // block, 1) * block
        for depth in depths:
            for tool, run in tools().items():
                with run(folder, size, depth, block) as way:
                    for direction in DIRECTIONS:
                        points.append(Point(tool, direction, depth, block, size / way(direction)))
    return Ceiling(tuple(points))


@contextmanager
def again(folder: Path, total: int, point: Point) -> Iterator[Callable[[Direction], float]]:
    """The way of a point, on a new file: a call gives the seconds in which it moves ``total`` bytes in a direction."""
    with tools()[point.tool](folder, total // point.block * point.block, point.depth, point.block) as way:
        yield way


def tools() -> dict[str, Any]:
    """What there is to move bytes with."""
    return {"threads": _threads} | ({"fio io_uring": _fio} if shutil.which("fio") else {})


@contextmanager
def _threads(folder: Path, total: int, depth: int, block: int) -> Iterator[Callable[[Direction], float]]:
    disk = RawDisk(folder, total, depth, block)
    try:
        yield lambda direction: disk.write() if direction == "write" else disk.read()
    finally:
        disk.close()


@contextmanager
def _fio(folder: Path, total: int, depth: int, block: int) -> Iterator[Callable[[Direction], float]]:
    with tempfile.TemporaryDirectory(dir=folder) as own:
        yield lambda direction: _fio_seconds(Path(own) / "file", total, depth, block, direction)


def _fio_seconds(file: Path, total: int, depth: int, block: int, direction: Direction) -> float:
    """A file that is there is written over, as `RawDisk` does: the time to make room in it counts for neither."""
    if not file.exists():
        _fio_job(file, total, depth, block, "write")
    return _fio_job(file, total, depth, block, direction)


def _fio_job(file: Path, total: int, depth: int, block: int, direction: Direction) -> float:
    command = ["fio", "--name=ceiling", f"--filename={file}", f"--rw={direction}", f"--size={total}", f"--bs={block}"]
    command += ["--direct=1", "--fallocate=native", "--overwrite=0", "--ioengine=io_uring", f"--iodepth={depth}"]
    done = subprocess.run([*command, "--output-format=json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"fio: {done.stderr[-2000:] or done.returncode}")
    (job,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    if job[direction]["io_bytes"] != total:
        raise RuntimeError(f"fio moved {job[direction]['io_bytes']} of {total} bytes")
    return float(job[direction]["runtime"]) / 1e3
