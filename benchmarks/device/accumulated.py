"""Small checkpoints on their way from a device to the host: as they are, encoded each alone, and encoded together.

Maurya et al., HiPC'23, figure 2: what a call of an encoder costs beside its bytes tells on small checkpoints.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

import click

import velocpy
from benchmarks.engines.contenders import card_for
from benchmarks.engines.software import software
from velocpy.bench.report import Report
from velocpy.bench.timing import median

from .device import opened
from .histories import turns
from .kinds import KINDS, chosen, made, same

KIB, MIB = 1 << 10, 1 << 20
SIZES = (128 * KIB, 256 * KIB, 512 * KIB, MIB, 2 * MIB, 4 * MIB)
TOTAL = 256 * MIB
MOST = 512
"""Checkpoints of a history."""
WAYS = {"none": ("raw", True), "each alone": ("codec", False), "together": ("codec", True)}
"""Method of reduction, and whether small checkpoints are encoded together."""
ROOM = 1792 * MIB
"""Of the device tier: enough for the largest groups that a device encodes at once."""


def run(
    sizes: tuple[int, ...] = SIZES,
    total: int = TOTAL,
    rounds: int = 5,
    cells: str | None = None,
    limit: float = 60,
    room: int = ROOM,
) -> Report:
    """Histories of ``total`` bytes of the kinds ``cells``, flushed at once when all of it lies on the device.

    The cells share ``limit`` seconds: after its share one begins no further round, but one counts. Every restored byte
    is compared. On host memory, where there is no GPU, nothing is encoded.
    """
    try:
        names = chosen(cells or "bf16,late")
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    card = card_for(64 << 10)
    report = Report("accumulated", {"total_mib": total / MIB, "rounds": rounds, "kinds": ", ".join(names)})
    report.settings |= {"card": card.name} | software()
    tunings = {together: velocpy.Tuning(flush="lazy", together=together) for together in (True, False)}
    with contextlib.closing(card), contextlib.ExitStack() as stack:
        report.measure({f"{name} GB/s": round(rate / 1e9, 2) for name, rate in card.rates(total).items()})
        stores = {
            way: stack.enter_context(opened(card, room, 4 * total, tuning=tunings[together]))
            for way, (_, together) in WAYS.items()
        }
        differ, began = 0, time.monotonic()
        played = [(name, size) for name in names for size in sizes]
        for number, (name, size) in enumerate(played, start=1):
            until = began + limit * number / len(played)
            differ += _play(report, card, stores, name, size, min(total // size, MOST), rounds, until)
    report.never("bytes that differ, of all restores", differ)
    report.notes += [
        "'to host' is the time from the first wait, when all checkpoints lie on the device, until all lie on the host. "
        "Rates are of plain bytes, medians of rounds; 'by' are medians of the ratios of a round's times. 'together' "
        "counts the checkpoints of the last round that were encoded with others."
    ]
    return report


def _play(
    report: Report,
    card: Any,
    stores: dict[str, velocpy.Store],
    name: str,
    size: int,
    count: int,
    rounds: int,
    until: float,
) -> int:
    """All rounds of one kind and size. Returns how many bytes differed."""
    arrays = made(name, card, size, count)
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    differ = 0
    for number in range(rounds + 1):
        if number > 1 and time.monotonic() > until:
            break
        for way in turns(tuple(WAYS), number):
            lap = _lap(card, stores[way], f"{name} {size} {number}", WAYS[way][0], arrays, compared=number == rounds)
            differ += lap["differ"]
            if number:  # the first round loads kernels
                found[way].append(lap)
    for way, laps in found.items():
        row: dict[str, Any] = {"what": KINDS[name], "KiB": size // KIB, "checkpoints": count, "way": way}
        row |= {"rounds counted": len(laps), "to host s": median([lap["to host"] for lap in laps])}
        row |= {"GB/s": count * size / row["to host s"] / 1e9, "ratio": median([lap["ratio"] for lap in laps])}
        for other in WAYS:
            pairs = zip(laps, found[other], strict=True)
            row[f"by {other}"] = median([lap["to host"] / one["to host"] for lap, one in pairs])
        row |= {"together": laps[-1]["together"], "to host s of rounds": [lap["to host"] for lap in laps]}
        report.rows.append(row)
    arrays.clear()
    return differ


def _lap(
    card: Any, store: velocpy.Store, name: str, method: Any, arrays: list[Any], *, compared: bool
) -> dict[str, Any]:
    """Flushes one history. If it is compared, the device gives it up first, so that it comes back from the host."""
    history = store.history(name, reduce=method)
    for key, array in enumerate(arrays):
        history.checkpoint(key, u=array)
    card.join()
    began = time.perf_counter()
    history.wait("host")
    took = time.perf_counter() - began
    did = store.stats()["histories"][name]["reduction"]
    differ = differing(card, history, arrays) if compared else 0
    history.clear()
    total = sum(array.nbytes for array in arrays)
    sent = did["encoded_to"] + did["plain_bytes"] if did and method != "raw" else total
    return {
        "to host": took,
        "differ": differ,
        "ratio": total / max(sent, 1),
        "together": did["accumulated"] if did else 0,
    }


PUSHED = 64 * MIB


def differing(card: Any, history: velocpy.History, arrays: list[Any]) -> int:
    """How many bytes of a history differ from the arrays when they come back from the host."""
    _push_off(card, history.store)
    differ = 0
    for key, array in enumerate(arrays):
        with history.restore(key) as lease:
            differ += array.nbytes * (not same(lease["u"], array))
    history.wait()
    return differ


def _push_off(card: Any, store: velocpy.Store) -> None:
    """Fills the device's tier with checkpoints that nobody needs, and drops them."""
    tier = store.stats()["tiers"].get("device")
    if tier is None:
        return
    source = card.device(min(PUSHED, tier["capacity"] // 8))
    pushing = store.history("pushing")
    for key in range(tier["capacity"] // source.nbytes):
        pushing.checkpoint(key, u=source)
    card.join()
    pushing.clear()
