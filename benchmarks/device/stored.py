"""Histories of a device that go on to a disk, encoded with others or each by itself, beside the same as they are.

The device tier holds a sixth of the checkpoints, the host tier an eighth, and the disk all that the method leaves of
them. So the disk bounds the sweeps, in both directions.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import velocpy
from benchmarks.engines.card import HostCard
from benchmarks.engines.contenders import card_for
from benchmarks.engines.software import software
from velocpy.bench.report import Report
from velocpy.bench.timing import median

from .device import opened
from .histories import HELD, METHODS, MIB, MOST_LOSS, laps_of, row_of
from .kinds import KINDS, chosen, made

COUNT = 48  # checkpoints of a history
LEAST = 3  # rounds that count, whatever time they take
ON_HOST = 6  # checkpoints that the host tier holds
TIMES = ("calls", "forward", "to disk", "restore")


def run(folder: Path, size: int = 64 * MIB, rounds: int = 3, cells: str | None = None, limit: float = 120) -> Report:
    """Checkpoints of size bytes of the kinds ``cells``, through a scratch tier in ``folder``; every byte is compared.

    The kinds share ``limit`` seconds: after its share a kind begins no further round, but three count. On host memory,
    where there is no GPU, nothing is encoded on a device.
    """
    try:
        names = chosen(cells)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    card = card_for(64 << 10)
    held = {"on the device": HELD, "on the host": ON_HOST}
    report = Report("stored", {"size_mib": size / MIB, "checkpoints": COUNT, "rounds": rounds} | held)
    report.settings |= {"kinds": ", ".join(names), "card": card.name} | software()
    with contextlib.closing(card):
        report.measure({f"{name} GB/s": round(rate / 1e9, 2) for name, rate in card.rates(size).items()})
        differ, began = 0, time.monotonic()
        with _stores(card, folder, size) as stores:
            for number, name in enumerate(names, start=1):
                arrays = made(name, card, size, COUNT)
                differ += _play(report, card, stores, name, arrays, rounds, began + limit * number / len(names))
                arrays.clear()
    report.never("bytes that differ, of all restores", differ)
    if card.name == HostCard.name:
        report.drop_measured()
    report.notes += [
        "'to disk' is the time until all checkpoints lie on the disk, and 'restore' that of the reverse sweep behind "
        "it, comparisons included. 'by raw' are medians of the ratios of a round's times. Rates are of plain bytes, "
        "and can exceed those of the disk. 'disk MiB' is what the disk tier has then.",
        "Each round has new histories: 'auto' begins without knowledge. The files are opened without the page cache "
        "where the file system allows.",
    ]
    return report


@contextlib.contextmanager
def _stores(card: Any, folder: Path, size: int) -> Iterator[dict[str, velocpy.Store]]:
    """A store for plain bytes and one for reduced histories."""
    slot = size + MIB
    device, host, disk = HELD * slot + size // 2, ON_HOST * slot, 2 * COUNT * slot
    with (
        opened(card, device, host, path=str(folder / "plain"), disk=disk, durable=False) as plain,
        opened(card, device, host, path=str(folder / "reduced"), disk=disk, durable=False) as reduced,
    ):
        yield {"raw": plain} | dict.fromkeys(METHODS[1:], reduced)


def _play(
    report: Report,
    card: Any,
    stores: dict[str, velocpy.Store],
    name: str,
    arrays: list[Any],
    rounds: int,
    until: float,
) -> int:
    """All rounds of one kind. Returns how many bytes differed."""
    found, differ = laps_of(card, stores, name, arrays, rounds, until, "disk", LEAST)
    total = sum(array.nbytes for array in arrays)
    for method, laps in found.items():
        row = row_of(KINDS[name], method, laps, found["raw"], total, TIMES)
        report.rows.append(row | {"disk MiB": median([lap["disk"] for lap in laps]) / MIB})
    for each in TIMES[2:]:
        what = f"{KINDS[name]}: time of auto by raw's, {each}"
        report.bar(what, report.rows[-1][f"{each} by raw"], MOST_LOSS, at_least=False)
    return differ
