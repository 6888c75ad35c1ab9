"""A stream of checkpoints that all have to be durable, beside the disk itself and what others keep checkpoints with."""

from __future__ import annotations

import os
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import velocpy
from velocpy.bench.report import Report
from velocpy.bench.stamped import BLOCK, Stamped
from velocpy.bench.timing import by_turns, median
from velocpy.budget import parse_size

from . import savers, synced

LARGE = 4 << 20  # a checkpoint of so many bytes is held to the bar of the large ones
BARS = {"large": 0.95, "small": 0.60}

# A stream of those that velocpy is compared with is no longer than this, or a round would take minutes.
BRIEF = {"large": 1 << 30, "small": 64 << 20}

IN_FLIGHT = 16 << 20  # bytes that an application has on their way, as far as there are checkpoints enough
MOST = 64

WINDOW, ALONE = "velocpy", "velocpy, one at a time"


@dataclass(frozen=True)
class Stream:
    """So many bytes, in checkpoints of so many.

    >>> Stream.of("64KiB:1MiB")
    Stream(size=65536, total=1048576)
    """

    size: int
    total: int

    @classmethod
    def of(cls, text: str) -> Stream:
        """Of ``SIZE:TOTAL``."""
        size, _, total = text.partition(":")
        stream = cls(parse_size(size, "the size of a checkpoint"), parse_size(total, "the total of a stream"))
        if stream.size % BLOCK or stream.total < stream.size:
            raise ValueError(f"{text}: checkpoints are multiples of {BLOCK >> 10} KiB, and a stream has at least one.")
        return stream

    @property
    def count(self) -> int:
        """How many checkpoints."""
        return self.total // self.size

    @property
    def window(self) -> int:
        """How many of them are on their way at once: from 4 large ones to 64 small ones."""
        return min(max(4, IN_FLIGHT // self.size), MOST)

    @property
    def kind(self) -> str:
        """Which bar it is held to."""
        return "large" if self.size >= LARGE else "small"

    def brief(self) -> Stream:
        """As much of it as others are asked for."""
        return Stream(self.size, max(self.size, min(self.total, BRIEF[self.kind])))

    def __str__(self) -> str:
        size = f"{self.size >> 20} MiB" if self.size >= 1 << 20 else f"{self.size >> 10} KiB"
        return f"{self.count} × {size}"


STREAMS = (Stream(128 << 20, 4 << 30), Stream(64 << 10, 512 << 20))


class Way:
    """One way to make a stream durable: a call that returns its seconds, and counts what did not come back right."""

    def __init__(self, stream: Stream, once: Callable[[Stamped], tuple[float, int]], group: int = 1) -> None:
        self.stream, self.group = stream, group
        self.differences = 0
        self._stamped, self._once = Stamped(stream.size), once

    def __call__(self) -> float:
        os.sync()  # what the one before has left behind, removed files above all, is not this one's to bring down
        seconds, differences = self._once(self._stamped)
        self.differences += differences
        return seconds

    def rates(self, seconds: list[float]) -> list[float]:
        """Bytes a second."""
        return [self.stream.count * self.stream.size / took for took in seconds]


def run(folder: Path, streams: tuple[Stream, ...] = STREAMS, rounds: int = 3, beside: bool = True) -> Report:
    """Seconds from the first checkpoint to the last acknowledgement; everybody's bytes are read back and compared.

    Beside: whether other libraries save the streams too.
    """
    others, absent = savers.available() if beside else ({}, [])
    ceiling = "fio" if synced.has_fio() else "raw"
    report = Report("durable", {"rounds": rounds, "streams": ", ".join(map(str, streams)), "ceiling": ceiling})
    for stream in streams:
        _play(report, folder, stream, others, rounds)
    report.never(
        "checkpoints that did not come back as they were, everybody's",
        sum(row.get("differences", 0) for row in report.rows),
    )
    report.remark(*absent)
    report.notes += [
        *([] if synced.has_fio() else ["fio is not installed: the ceiling is this benchmark's own O_DIRECT writer."]),
        f"{WINDOW!r} has as many checkpoints on their way as the column says and waits for the oldest; "
        f"{ALONE!r} waits for each before the next. What they wrote is read from the store closed and opened again.",
        "'raw' and 'fio' write a preallocated file with O_DIRECT and call fdatasync after as many checkpoints as the "
        "column says: after each, and after as many as velocpy made durable together. 'of the ceiling' is by the "
        f"one of {ceiling} with the same number. torch.save, safetensors and HDF5: file, fsync, rename, fsync of the "
        "directory. DCP: FileSystemWriter with sync_files, which syncs no directory. The streams of these four are no "
        f"longer than {BRIEF['large'] >> 20} MiB, and {BRIEF['small'] >> 20} MiB in small checkpoints. Before each "
        "turn everything that others have left in memory is synced.",
    ]
    return report


def _play(
    report: Report, folder: Path, stream: Stream, others: dict[str, tuple[savers.Save, savers.Load]], rounds: int
) -> None:
    groups: list[float] = []
    windowed = Way(stream, partial(_velocpy, folder, stream, stream.window, groups))
    windowed()  # tells how many checkpoints share a sync
    windowed.group = max(1, round(groups[-1]))
    ways = {WINDOW: windowed, ALONE: Way(stream, partial(_velocpy, folder, stream, 1, []))}
    for group in sorted({1, windowed.group}):
        for name, ceiling in _ceilings(folder, stream, group).items():
            ways[name] = Way(stream, ceiling, group)
    for name, (save, load) in others.items():
        ways[name] = Way(stream.brief(), partial(_saved, folder, stream.brief(), save, load))
    seconds = by_turns(dict(ways), rounds)
    rates = {name: way.rates(seconds[name]) for name, way in ways.items()}
    for name, way in ways.items():
        most = rates[_named("fio" if synced.has_fio() else "raw", way.group)]
        ratio = median([a / b for a, b in zip(rates[name], most, strict=True)])
        report.rows.append(
            {
                "stream": str(stream),
                "who": name,
                "on their way": stream.window if name == WINDOW else 1,
                "per sync": way.group,
                "GB/s": median(rates[name]) / 1e9,
                "checkpoints/s": median(rates[name]) / stream.size,
                "of the ceiling": ratio,
                "differences": way.differences,
                "seconds": seconds[name],
                "about": [{"stream": str(stream)}],
            }
        )
        if name == WINDOW:
            report.rows[-1]["checkpoints per sync"] = groups
            report.bar(f"{stream}: of the ceiling with {way.group} per sync", ratio, BARS[stream.kind], at_least=True)


def _named(tool: str, group: int) -> str:
    return f"{tool}, sync after {group}"


def _ceilings(folder: Path, stream: Stream, group: int) -> dict[str, Callable[[Stamped], tuple[float, int]]]:
    """The disk itself, which nobody compares."""
    total, piece = stream.count * stream.size, group * stream.size
    tools: dict[str, Callable[[], float]] = {"raw": partial(synced.raw, folder, total, piece)}
    if synced.has_fio():
        tools["fio"] = partial(synced.fio, folder, total, stream.size, group)
    return {_named(name, group): lambda _, tool=tool: (tool(), 0) for name, tool in tools.items()}  # type: ignore[misc]


def _velocpy(folder: Path, stream: Stream, window: int, groups: list[float], stamped: Stamped) -> tuple[float, int]:
    """One stream into a new store. Adds how many checkpoints shared a sync to the groups."""
    host, disk = (window + 4) * stream.size + (64 << 20), stream.total * 3 // 2 + (1 << 30)
    with tempfile.TemporaryDirectory(dir=folder) as path:
        with velocpy.open(path, host=host, disk=disk, tuning=velocpy.Tuning(flush="eager")) as store:
            history = store.history("stream")
            waiting: deque[velocpy.Ticket] = deque()
            began = time.perf_counter()
            for key in range(stream.count):
                waiting.append(history.checkpoint(key, u=stamped.of(key)))
                if len(waiting) >= window:
                    waiting.popleft().wait("disk")
            for ticket in waiting:
                ticket.wait("disk")
            seconds = time.perf_counter() - began
            groups.append(stream.count / store.stats()["tiers"]["disk"]["commits"])
        with velocpy.open(path, host=host, disk=disk) as store:
            history = store.history("stream")
            history.hint(range(stream.count))
            differences = 0
            for key in range(stream.count):
                with history.restore(key) as state:
                    differences += not stamped.same(key, state["u"])
    return seconds, differences


def _saved(folder: Path, stream: Stream, save: savers.Save, load: savers.Load, stamped: Stamped) -> tuple[float, int]:
    with tempfile.TemporaryDirectory(dir=folder) as own:
        began = time.perf_counter()
        for key in range(stream.count):
            save(Path(own, str(key)), stamped.of(key))
        seconds = time.perf_counter() - began
        differences = sum(not stamped.same(key, load(Path(own, str(key)))) for key in range(stream.count))
    return seconds, differences
