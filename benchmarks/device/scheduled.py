"""Schedules of Maurya et al., HiPC'23, section IV: what is encoded alone, together, or not at all, measured.

Synthetic checkpoints as in section IV-C2: of a ratio R, a part 1 / R of the elements is random and the others are zero.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import velocpy
from benchmarks.engines.card import HostCard
from benchmarks.engines.contenders import card_for
from benchmarks.engines.software import software
from velocpy import schedule
from velocpy.bench.report import Report
from velocpy.bench.timing import median
from velocpy.schedule import Schedule

from .accumulated import differing
from .device import opened
from .histories import turns

MIB = 1 << 20
TOTAL = 16384 * MIB
ROOM = 1792 * MIB
"""Of the device tier: enough for the largest groups that a device encodes at once, and less than a history."""
SOURCES = 8
"""Different arrays of each ratio."""


class Cell(NamedTuple):
    """Checkpoints of a size, whose ratios change from part to part, and the rate at which they are made."""

    size: int
    ratios: tuple[float, ...]
    pace: float
    """By the rate of the link; 0: as fast as the application's calls return."""

    @property
    def text(self) -> str:
        """As a row shows it."""
        ratios = " then ".join(f"{ratio:g}" for ratio in self.ratios)
        return f"{self.size // MIB} MiB, ratio {ratios}, " + (f"{self.pace:g} x link" if self.pace else "no pause")


CELLS = tuple(
    Cell(size * MIB, ratios, pace)
    for size in (16, 4)
    for ratios in ((1.2,), (4.0,), (20.0, 4.0, 1.2))
    for pace in (0.8, 2.0)
)

#: The letters that repeat; "none" moves plain bytes by a history that is not reduced.
FIXED = {"none": "", "C": "C", "AX": "AX", "AAAX": "AAAX", "A7X": "AAAAAAAX"}
PLANNED = ("profile", "last ones", "queued")
"""By a profile of an earlier run; by the last checkpoints; and without a schedule, what is queued together."""
WAYS = (*FIXED, *PLANNED)


def run(
    cells: tuple[Cell, ...] = CELLS,
    total: int = TOTAL,
    rounds: int = 5,
    limit: float = 240,
    room: int = ROOM,
) -> Report:
    """Histories of ``total`` bytes: for how long the application makes them, and until all of it is on the host.

    The cells share ``limit`` seconds: after its share one begins no further round, but one counts. The first
    counted round compares every restored byte. On host memory, where there is no GPU, nothing is encoded.
    """
    card = card_for(64 << 10)
    report = Report("scheduled", {"total_mib": total / MIB, "device_mib": room / MIB, "rounds": rounds})
    report.settings |= {"card": card.name} | software()
    with contextlib.closing(card), tempfile.TemporaryDirectory() as folder:
        rates = card.rates(min(total, 256 * MIB))
        report.measure({f"{name} GB/s": round(rate / 1e9, 2) for name, rate in rates.items()})
        link = min(rates.values())
        with opened(card, room, total + 2 * room) as store:
            differ, began = 0, time.monotonic()
            for number, cell in enumerate(cells, start=1):
                until = began + limit * number / len(cells)
                differ += _play(report, card, store, cell, total // cell.size, link, rounds, until, Path(folder))
    report.never("bytes that differ, of all restores", differ)
    if card.name == HostCard.name:
        report.drop_measured()
    report.notes += [
        "'application' is the time until the last capture has returned, the pauses included, and 'to host' until all "
        "checkpoints lie on the host: medians of rounds. 'by best' is the ratio to the least median of none, C, AX, "
        "AAAX and A7X. 'letters' counts the decisions of the last round; '-': what "
        "was queued moved together."
    ]
    return report


def _play(
    report: Report,
    card: Any,
    store: velocpy.Store,
    cell: Cell,
    count: int,
    link: float,
    rounds: int,
    until: float,
    folder: Path,
) -> int:
    """All rounds of one cell. Returns how many bytes differed."""
    kinds = [[_drawn(card, cell.size, ratio, number) for number in range(SOURCES)] for ratio in cell.ratios]
    arrays = [kinds[len(kinds) * key // count][key % SOURCES] for key in range(count)]
    pause = cell.size / (cell.pace * link) if cell.pace else 0.0
    profile = folder / f"{cell.text}.json"
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    differ = 0
    for number in range(rounds + 1):
        if number > 1 and time.monotonic() > until:
            break
        for way in turns(WAYS, number) if number else WAYS:
            name = f"{cell.text} {way} {number}"
            lap = _lap(card, store, name, _options(way, profile), arrays, pause, compared=number == 1)
            differ += lap["differ"]
            if number:  # the first round loads kernels, and measures for the profile
                found[way].append(lap)
            elif way == "last ones" and lap["course"]:
                schedule.write(profile, lap["course"].profile)
    _rows(report, cell, count, found)
    return differ


def _options(way: str, profile: Path) -> dict[str, Any]:
    if way == "none":
        return {"reduce": "raw"}
    if way == "queued":
        return {"reduce": "codec"}
    told = {"profile": Schedule(profile=profile), "last ones": Schedule()}
    return {"reduce": "codec", "schedule": told.get(way) or Schedule(repeat=FIXED[way])}


def _lap(
    card: Any,
    store: velocpy.Store,
    name: str,
    options: dict[str, Any],
    arrays: list[Any],
    pause: float,
    *,
    compared: bool,
) -> dict[str, Any]:
    """One history, captured at the pace."""
    history = store.history(name, **options)
    card.join()
    began = now = time.perf_counter()
    for key, array in enumerate(arrays):
        end = now + pause
        while now < end:  # the application computes
            now = time.perf_counter()
        history.checkpoint(key, u=array)
        now = time.perf_counter()
    card.join()
    application = time.perf_counter() - began
    history.wait("host")
    took = time.perf_counter() - began
    differ = differing(card, history, arrays) if compared else 0
    course = history.course
    history.clear()
    return {"application": application, "to host": took, "differ": differ, "course": course}


def _rows(report: Report, cell: Cell, count: int, found: dict[str, list[dict[str, Any]]]) -> None:
    for way, laps in found.items():
        row: dict[str, Any] = {"what": cell.text, "checkpoints": count, "way": way, "rounds counted": len(laps)}
        for what in ("application", "to host"):
            fixed = [median([lap[what] for lap in found[each]]) for each in FIXED]
            row[f"{what} s"] = median([lap[what] for lap in laps])
            row[f"{what} by best"] = row[f"{what} s"] / min(fixed)
        calls = laps[-1]["course"].profile["measurements"] if laps[-1]["course"] else []
        row["call MiB"] = median([call["bytes"] / MIB for call in calls]) if calls else None
        row["call µs"] = median([call["seconds"] * 1e6 for call in calls]) if calls else None
        letters = laps[-1]["course"].letters if laps[-1]["course"] else ""
        row["letters"] = " ".join(f"{letter}{letters.count(letter)}" for letter in "UCAX-" if letter in letters)
        row["application s of rounds"] = [lap["application"] for lap in laps]
        report.rows.append(row)
        if way in PLANNED:
            report.bar(
                f"application time, {way}, by the best fixed way: {cell.text}",
                row["application by best"],
                1.02,
                at_least=False,
            )


def _drawn(card: Any, size: int, ratio: float, seed: int) -> Any:
    """An array of floats of which one in so many is not zero."""
    random = np.random.default_rng(seed)
    values = np.zeros(size // 4, np.float32)
    part = max(1, int(len(values) / ratio))
    values[:part] = random.standard_normal(part, dtype=np.float32)
    if card.name == HostCard.name:
        return values
    import torch

    return torch.from_numpy(values).cuda()
