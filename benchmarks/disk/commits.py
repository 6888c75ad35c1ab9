"""Commits one at a time, each durable before the next, beside SQLite's write-ahead log and the disk itself."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import velocpy
from velocpy.bench.report import Report
from velocpy.bench.stamped import Stamped
from velocpy.bench.timing import by_turns, median

from . import synced
from .durable import Stream, Way

STREAMS = (Stream(64 << 10, 64 << 20), Stream(128 << 20, 2 << 30))

# What a stream's commits a second are held against, and how much of that they are to reach.
BARS = {"small": ("SQLite", 0.9), "large": ("raw", 0.9)}


def run(folder: Path, streams: tuple[Stream, ...] = STREAMS, rounds: int = 5) -> Report:
    """Seconds of a stream in which every checkpoint is acknowledged before the next; everybody's bytes are compared."""
    report = Report("commits", {"rounds": rounds, "streams": ", ".join(map(str, streams))})
    for stream in streams:
        _play(report, folder, stream, rounds)
    differences = sum(row["differences"] for row in report.rows)
    report.never("checkpoints that did not come back as they were", differences)
    report.notes += [
        f"'SQLite' {sqlite3.sqlite_version}: a table of keys and blobs, journal_mode=WAL, synchronous=FULL, a "
        "transaction for each checkpoint. 'raw' writes a preallocated file with O_DIRECT, and calls fdatasync after "
        "each checkpoint: the ceiling, which nobody reads back. Ratios are medians over the rounds, of commits a "
        "second in the same round.",
    ]
    return report


def _play(report: Report, folder: Path, stream: Stream, rounds: int) -> None:
    ways = {
        "velocpy": Way(stream, partial(_velocpy, folder, stream)),
        "SQLite": Way(stream, partial(_sqlite, folder, stream)),
        "raw": Way(stream, lambda _: (synced.raw(folder, stream.count * stream.size, stream.size), 0)),
    }
    seconds = by_turns(dict(ways), rounds)
    ratios: dict[str, dict[str, float]] = {
        name: {other: median([b / a for a, b in zip(took, seconds[other], strict=True)]) for other in ways}
        for name, took in seconds.items()
    }
    for name, way in ways.items():
        report.rows.append(
            {
                "stream": str(stream),
                "who": name,
                "commits/s": median(way.rates(seconds[name])) / stream.size,
                "µs/commit": median(seconds[name]) / stream.count * 1e6,
                "of SQLite": ratios[name]["SQLite"],
                "of raw": ratios[name]["raw"],
                "differences": way.differences,
                "seconds": seconds[name],
            }
        )
    other, bound = BARS[stream.kind]
    report.bar(f"{stream}: commits a second, of {other}", ratios["velocpy"][other], bound, at_least=True)


def _velocpy(folder: Path, stream: Stream, stamped: Stamped) -> tuple[float, int]:
    host, disk = 2 * stream.size + (64 << 20), stream.total * 3 // 2 + (1 << 30)
    with tempfile.TemporaryDirectory(dir=folder) as path:
        with velocpy.open(path, host=host, disk=disk, tuning=velocpy.Tuning(flush="eager")) as store:
            history = store.history("stream")
            began = time.perf_counter()
            for key in range(stream.count):
                history.checkpoint(key, u=stamped.of(key)).wait("disk")
            seconds = time.perf_counter() - began
        with velocpy.open(path, mode="r", host=host) as store:
            history = store.history("stream")
            differences = 0
            for key in range(stream.count):
                with history.restore(key) as state:
                    differences += not stamped.same(key, state["u"])
    return seconds, differences


def _sqlite(folder: Path, stream: Stream, stamped: Stamped) -> tuple[float, int]:
    with tempfile.TemporaryDirectory(dir=folder) as path:
        name = Path(path, "stream.db")
        with closing(sqlite3.connect(name, isolation_level=None)) as base:
            base.execute("PRAGMA journal_mode=WAL")
            base.execute("PRAGMA synchronous=FULL")
            base.execute("CREATE TABLE stream (key INTEGER PRIMARY KEY, bytes BLOB)")
            began = time.perf_counter()
            for key in range(stream.count):
                base.execute("INSERT INTO stream VALUES (?, ?)", (key, stamped.of(key).data))
            seconds = time.perf_counter() - began
        with closing(sqlite3.connect(name)) as base:
            differences = 0
            for key in range(stream.count):
                row = base.execute("SELECT bytes FROM stream WHERE key = ?", (key,)).fetchone()
                differences += row is None or not _same(stamped, key, row[0])
    return seconds, differences


def _same(stamped: Stamped, key: int, blob: bytes) -> bool:
    return bytes(stamped.of(key)) == blob
