"""Where every checkpoint was, and from when to when: read off the events of a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

#: Tiers from the fastest down.
TIERS = ("device", "host", "disk", "archive")

#: An event as `Store.timeline` gives it.
Event = Mapping[str, Any]


@dataclass(frozen=True)
class Stay:
    """A copy of a checkpoint in a tier, from ``start`` to ``end`` (ns)."""

    row: int
    tier: str
    start: int
    end: int
    nbytes: int


class Transfer(NamedTuple):
    """Bytes that were written to a tier from ``start`` to ``end`` (ns), on their way "down" or "up"."""

    tier: str
    start: int
    end: int
    nbytes: int
    way: str


@dataclass(frozen=True)
class Record:
    """What the events of a store tell, in columns that a picture needs.

    A row is one version of a checkpoint, in the order of capture. ``groups`` gives each history its rows, as
    ``(name, first, after)``, where a history's rows lie together.
    """

    stays: list[Stay]
    captures: list[tuple[int, int]]  # (time, row)
    restores: list[tuple[int, int]]
    transfers: list[Transfer]
    waits: list[tuple[int, int]]  # (start, end)
    groups: list[tuple[str, int, int]]
    start: int
    end: int


def record_of(events: Iterable[Event]) -> Record:
    """Orders events by time and follows every checkpoint through the tiers."""
    ordered = sorted(events, key=lambda event: int(event["t_ns"]))
    return _Tracker(ordered).record()


class _Tracker:
    """Follows checkpoints: which version a key means now, and where it lies since when."""

    def __init__(self, ordered: list[Event]) -> None:
        self._ordered = ordered
        self._row: dict[tuple[str, Any], int] = {}
        self._former: dict[tuple[str, Any], int] = {}  # a load may end after the restore that consumed what it brings
        self._size: list[int] = []
        self._history: list[str] = []
        self._open: dict[tuple[int, str], int] = {}
        self._stays: list[Stay] = []
        self._captures: list[tuple[int, int]] = []
        self._restores: list[tuple[int, int]] = []
        self._transfers: list[Transfer] = []
        self._waits: list[tuple[int, int]] = []

    def record(self) -> Record:
        """The columns, once every event has been taken."""
        for event in self._ordered:
            self._take(event)
        end = max((int(event["t_ns"]) for event in self._ordered), default=0)
        start = min((int(event["t_ns"]) - int(event.get("dur_ns", 0)) for event in self._ordered), default=0)
        for row, tier in list(self._open):
            self._leave(row, tier, end)
        return Record(
            self._stays, self._captures, self._restores, self._transfers, self._waits, self._groups(), start, end
        )

    def _take(self, event: Event) -> None:
        what, at, took = event["what"], int(event["t_ns"]), int(event.get("dur_ns", 0))
        if what == "wait":
            self._waits.append((at - took, at))
            return
        name = (str(event.get("history", "")), event.get("key"))
        if what == "capture":
            self._capture(name, at, int(event["bytes"]), str(event["tier"]))
            return
        live = self._row.get(name)
        row = self._former.get(name) if live is None and what == "load" else live
        if row is None:  # its capture is older than the first event kept
            return
        if what in ("flush", "load"):
            if live is not None:
                self._open.setdefault((row, str(event["tier"])), at)
            way = "down" if what == "flush" else "up"
            self._transfers.append(Transfer(str(event["tier"]), at - took, at, int(event["bytes"]), way))
        elif what == "evict":
            self._leave(row, str(event["tier"]), at)
        elif what == "restore":
            self._restores.append((at, row))
            if event.get("last"):
                self._forget(name, at)
        elif what in ("drop", "consume"):
            self._forget(name, at)

    def _capture(self, name: tuple[str, Any], at: int, nbytes: int, tier: str) -> None:
        self._forget(name, at)
        row = self._row[name] = len(self._size)
        self._size.append(nbytes)
        self._history.append(name[0])
        self._captures.append((at, row))
        self._open[row, tier] = at

    def _forget(self, name: tuple[str, Any], at: int) -> None:
        row = self._row.pop(name, None)
        if row is not None:
            self._former[name] = row
            for tier in TIERS:
                self._leave(row, tier, at)

    def _leave(self, row: int, tier: str, at: int) -> None:
        since = self._open.pop((row, tier), None)
        if since is not None:
            self._stays.append(Stay(row, tier, since, at, self._size[row]))

    def _groups(self) -> list[tuple[str, int, int]]:
        groups: list[tuple[str, int, int]] = []
        for row, name in enumerate(self._history):
            if groups and groups[-1][0] == name:
                groups[-1] = (name, groups[-1][1], row + 1)
            else:
                groups.append((name, row, row + 1))
        return groups if len({name for name, _, _ in groups}) == len(groups) else []
