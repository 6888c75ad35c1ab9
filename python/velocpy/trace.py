"""Traces: the events of a store's timeline in the form that Perfetto and chrome://tracing open.

`Store.write_trace` writes that of an open store, `write_trace` that of any events, also of a store that is closed.
https://ui.perfetto.dev shows the file, and reads it in the browser alone.

A trace has a process for what callers did and one for each tier, from the fastest down, and in these a track for each
kind of event: captures, flushes and loads (of the tier that gets the bytes), restores, evictions. Transfers that run
beside each other lie in tracks of their own, numbered, since slices of one track must not overlap; the events do not
tell which worker has made them. A slice has the name ``history[key]`` and, as arguments, the history, the key and the
bytes. A counter of each tier has the bytes of the checkpoints that lie there.
"""

from __future__ import annotations

import gzip
import heapq
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from . import replacing
from ._version import __version__
from .errors import InvalidArgument
from .plot.stays import TIERS, Event, Stay, record_of

__all__ = ["trace_events", "write_trace"]

#: Process of the calls that applications make; those of the tiers have the numbers from 2 on.
_CALLERS = 1
#: Names of tracks by the events in them, in the order in which they are shown.
_TRACKS = {
    "wait": "waits of callers",
    "capture": "capture",
    "restore": "restore",
    "load": "load",
    "flush": "flush",
    "evict": "evict",
    "consume": "consume",
    "drop": "drop",
}
#: Numbers of tracks of one kind: more transfers than that do not run beside each other.
_MOST_LANES = 1000
#: Whole numbers up to here are exact in JavaScript.
_EXACT = 1 << 53


def trace_events(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The events of a timeline as objects of the Trace Event Format: times and durations in microseconds.

    Parameters
    ----------
    events
        As `Store.timeline` gives them.

    Returns
    -------
    list of dict
        Names of processes and tracks first, then slices (``"X"``), instants (``"i"``) and counters (``"C"``) by time.
        Time 0 is when the store was opened.

    Examples
    --------
    >>> import numpy, velocpy
    >>> from velocpy.trace import trace_events
    >>> with velocpy.open(host="1MiB", timeline=100) as store:
    ...     _ = store.history("forward").checkpoint(7, u=numpy.zeros(100))
    ...     made = trace_events(store.timeline())
    >>> [(event["name"], event["cat"]) for event in made if event["ph"] == "X"]
    [('forward[7]', 'capture')]
    """
    ordered = sorted(events, key=lambda event: int(event["t_ns"]) - int(event.get("dur_ns", 0)))
    lanes = _Lanes()
    timed = [_timed(event, lanes) for event in ordered]
    record = record_of(ordered)
    timed += [counter for tier in TIERS for counter in _counters(tier, record.stays)]
    return [*lanes.names(), *sorted(timed, key=lambda event: float(event["ts"]))]


def write_trace(events: Iterable[Event], file: str | os.PathLike[str]) -> None:
    """Writes the events of a timeline as a trace, in place of a file that is there.

    Parameters
    ----------
    events
        As `Store.timeline` gives them.
    file
        Where to; a name that ends in ``.gz`` gets a compressed trace, which Perfetto opens too. A trace takes about 200
        bytes an event, compressed about 20.

    Raises
    ------
    OSError
        The file cannot be written. What was there before is there still.

    Examples
    --------
    >>> import json, numpy, tempfile, velocpy
    >>> from pathlib import Path
    >>> from velocpy.trace import write_trace
    >>> with velocpy.open(host="1MiB", timeline=100) as store, tempfile.TemporaryDirectory() as folder:
    ...     _ = store.history("forward").checkpoint(7, u=numpy.zeros(100))
    ...     write_trace(store.timeline(), Path(folder, "trace.json"))
    ...     sorted(json.loads(Path(folder, "trace.json").read_text()))
    ['displayTimeUnit', 'otherData', 'traceEvents']
    """
    trace = {
        "traceEvents": trace_events(events),
        "displayTimeUnit": "ms",
        "otherData": {"velocpy": __version__},
    }
    text = json.dumps(trace, separators=(",", ":")).encode("ascii")
    path = Path(file)
    if path.suffix == ".gz":
        text = gzip.compress(text, mtime=0)
    replacing.replace(path, lambda beside: beside.write_bytes(text))


class _Lanes:
    """Places for slices: a process and a track in which no slice overlaps another."""

    def __init__(self) -> None:
        #: By process and kind: numbers of lanes that are free, and those in use by the end of their last slice.
        self._free: dict[tuple[int, str], list[int]] = {}
        self._busy: dict[tuple[int, str], list[tuple[int, int]]] = {}
        self._count: dict[tuple[int, str], int] = {}

    def place(self, process: int, kind: str, start: int, end: int) -> int:
        """The track of a slice; slices come in the order of their starts."""
        which = (process, kind)
        free, busy = self._free.setdefault(which, []), self._busy.setdefault(which, [])
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane = self._count.get(which, 0)
            self._count[which] = lane + 1
        heapq.heappush(busy, (end, lane))
        return _track(kind, lane)

    def names(self) -> Iterator[dict[str, Any]]:
        """The names of all processes and tracks that have something, in the order in which they are shown."""
        for process in sorted({process for process, _ in self._count}):
            name = "calls" if process == _CALLERS else TIERS[process - 2]
            yield _metadata("process_name", process, 0, {"name": name})
            yield _metadata("process_sort_index", process, 0, {"sort_index": process})
        for (process, kind), count in sorted(self._count.items()):
            for lane in range(count):
                track = _track(kind, lane)
                name = _TRACKS[kind] + (f" {lane + 1}" if count > 1 else "")
                yield _metadata("thread_name", process, track, {"name": name})
                yield _metadata("thread_sort_index", process, track, {"sort_index": track})


def _track(kind: str, lane: int) -> int:
    return 1 + list(_TRACKS).index(kind) * _MOST_LANES + min(lane, _MOST_LANES - 1)


def _metadata(name: str, process: int, track: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": process, "tid": track, "ts": 0, "args": arguments}


def _timed(event: Event, lanes: _Lanes) -> dict[str, Any]:
    """A slice, or an instant for what took no time."""
    what, tier = str(event["what"]), str(event.get("tier", ""))
    if what not in _TRACKS:
        raise InvalidArgument(f"an event is a {what!r}; events are those that Store.timeline gives.")
    process = 2 + TIERS.index(tier) if tier in TIERS else _CALLERS
    end, took = int(event["t_ns"]), int(event.get("dur_ns", 0))
    start = max(end - took, 0)  # a wait that began before the store's clock is none
    history, key = _printable(event.get("history", "")), event.get("key")
    made = {
        "ph": "X" if took > 0 else "i",
        "name": f"{history}[{_printable(key)}]",
        "cat": what,
        "pid": process,
        "tid": lanes.place(process, what, start, max(end, start)),
        "ts": start / 1000,
    }
    made |= {"dur": (end - start) / 1000} if took > 0 else {"s": "t"}
    exact = isinstance(key, int) and abs(key) <= _EXACT
    arguments = {"history": history, "key": key if exact else _printable(key), "bytes": int(event.get("bytes", 0))}
    return made | {"args": arguments}


def _printable(text: object) -> str:
    """A name without lone surrogates, which are no valid JSON for every reader."""
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


def _counters(tier: str, stays: Iterable[Stay]) -> Iterator[dict[str, Any]]:
    """The bytes of the checkpoints in a tier, whenever they change."""
    changes: dict[int, int] = {}
    for stay in stays:
        if stay.tier == tier:
            changes[stay.start] = changes.get(stay.start, 0) + stay.nbytes
            changes[stay.end] = changes.get(stay.end, 0) - stay.nbytes
    held = 0
    for at in sorted(changes):
        held += changes[at]
        arguments = {"bytes": held}
        yield {
            "ph": "C", "name": f"bytes in {tier}", "pid": 2 + TIERS.index(tier), "tid": 0, "ts": at / 1000,
            "args": arguments,
        }  # fmt: skip
