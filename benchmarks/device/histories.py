"""Histories that a device encodes on their way to the host, beside the same histories as they are.

The link bounds them: checkpoints are written back to back, and the device tier holds a third of them.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, cast

import click

import velocpy
from benchmarks.engines.card import HostCard
from benchmarks.engines.contenders import card_for
from benchmarks.engines.software import software
from velocpy.bench.report import Report
from velocpy.bench.timing import median
from velocpy.choices import Reduction

from .device import opened
from .kinds import KINDS, chosen, made, same, zeros

COUNT = 24  # checkpoints of a history
HELD = 8  # of them, by the device tier
CHUNKS = 12  # checkpoints of the application's loop
LONGER = 1.15  # the loop's computation between two checkpoints, by the time of a plain copy of one
LEAST_GAIN, MOST_LOSS = 1.5, 1.03
METHODS: tuple[Reduction, ...] = ("raw", "codec", "reference", "tree", "auto")
MIB = 1 << 20


def run(size: int = 256 * MIB, rounds: int = 5, cells: str | None = None, limit: float = 240) -> Report:
    """Checkpoints of size bytes, four times a power of two, of the kinds ``cells``; every restored byte is compared.

    The kinds share ``limit`` seconds: after its share a kind begins no further round, but one counts. On host memory,
    where there is no GPU, nothing is encoded.
    """
    try:
        names = chosen(cells)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    card = card_for(64 << 10)
    report = Report("encoded", {"size_mib": size / MIB, "checkpoints": COUNT, "held": HELD, "rounds": rounds})
    report.settings |= {"kinds": ", ".join(names), "card": card.name} | software()
    with contextlib.closing(card):
        report.measure({f"{name} GB/s": round(rate / 1e9, 2) for name, rate in card.rates(size).items()})
        differ = 0
        with _stores(card, size, COUNT) as stores:
            began = time.monotonic()
            for number, name in enumerate(names, start=1):
                arrays = made(name, card, size, COUNT)
                until = began + limit * number / len(names)
                differ += _play(report, card, stores, name, arrays, rounds, until)
                if number == 1:
                    differ += _beside(report, card, name, arrays, rounds)
                arrays.clear()
    report.never("bytes that differ, of all restores", differ)
    if card.name == HostCard.name:
        report.drop_measured()
    report.notes += [
        "'calls' is the time in checkpoint(), 'forward' that until the last capture has ended on the device, 'to host' "
        "that until all checkpoints lie on the host, 'restore' that of the reverse sweep, comparisons included. "
        "'by raw' are medians of the ratios of a round's times. Rates are of plain bytes: 'to host' GB/s and 'restore' "
        "GB/s can exceed those of the link. 'encoded', those of them 'with another' checkpoint, and 'plain' count the "
        "checkpoints of the last round.",
        "Each round has new histories: 'auto' begins without knowledge. Checkpoints of a history all differ. "
        "Both budgets of a device hold the same number of checkpoints, with the memory that encoding and "
        "de-duplication need or without.",
        "The application's loop takes checkpoints between matrix products; the store flushes at once.",
    ]
    return report


@contextlib.contextmanager
def _stores(card: Any, size: int, count: int, **options: Any) -> Iterator[dict[str, velocpy.Store]]:
    """A store for plain bytes and one for reduced histories, whose device sets memory aside for these."""
    slot = size + MIB
    device, host = HELD * slot + size // 8 * 7, (count + 2) * slot
    with opened(card, device, host, **options) as plain, opened(card, device, host, **options) as reduced:
        yield {"raw": plain} | dict.fromkeys(METHODS[1:], reduced)


def turns(names: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    """Each round begins with another one."""
    shift = number % len(names)
    return names[shift:] + names[:shift]


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
    found, differ = laps_of(card, stores, name, arrays, rounds, until)
    total = sum(array.nbytes for array in arrays)
    share = zeros(arrays[0])
    rows = {method: row_of(KINDS[name], method, laps, found["raw"], total) for method, laps in found.items()}
    report.rows += [row | {"zeros": share} for row in rows.values()]
    _bars(report, KINDS[name], rows, waves=name in ("late", "early"))
    return differ


def laps_of(
    card: Any,
    stores: dict[str, velocpy.Store],
    name: str,
    arrays: list[Any],
    rounds: int,
    until: float,
    tier: Literal["host", "disk"] = "host",
    least: int = 1,
) -> tuple[dict[str, list[dict[str, Any]]], int]:
    """The laps of each method, in rounds of which at least so many count, and how many bytes differed in all."""
    found: dict[str, list[dict[str, Any]]] = {method: [] for method in METHODS}
    differ = 0
    for number in range(rounds + 1):
        if number > least and time.monotonic() > until:
            break
        for method in turns(METHODS, number):
            history = stores[method].history(f"{name} {method} {number}", reduce=method)
            lap = _lap(card, stores[method], history, arrays, tier)
            differ += lap["differ"]
            if number:  # the first round loads kernels, and makes files
                found[method].append(lap)
    return found, differ


def _lap(
    card: Any, store: velocpy.Store, history: velocpy.History, arrays: list[Any], tier: Literal["host", "disk"]
) -> dict[str, Any]:
    """Writes one history, down to a tier, and restores it."""
    card.join()
    calls, began = 0.0, time.perf_counter()
    for key, array in enumerate(arrays):
        called = time.perf_counter()
        history.checkpoint(key, u=array)
        calls += time.perf_counter() - called
    card.join()
    forward = time.perf_counter() - began
    history.wait(tier)
    down = time.perf_counter() - began
    stats = store.stats()
    did = stats["histories"][history.name]["reduction"]
    differ, began = 0, time.perf_counter()
    order = range(len(arrays) - 1, -1, -1)
    history.hint(order, last=True)
    for key in order:
        with history.restore(key, last=True) as lease:
            differ += arrays[key].nbytes * (not same(lease["u"], arrays[key]))
    card.join()
    restored = time.perf_counter() - began
    history.wait()
    history.clear()
    lap: dict[str, Any] = {
        "calls": calls,
        "forward": forward,
        f"to {tier}": down,
        "restore": restored,
        "differ": differ,
    }
    if tier == "disk":
        lap["disk"] = stats["tiers"]["disk"]["used"]
    counts = {"encoded": 0, "with another": 0, "plain": len(arrays)}
    if did:
        counts = {"encoded": did["encoded"], "with another": did["differences"], "plain": did["plain"]}
    went = (did["encoded_to"] + did["plain_bytes"], did["encoded_from"] + did["plain_bytes"]) if did else (0, 0)
    return lap | counts | {"ratio": went[1] / went[0] if went[0] else 1.0}


TIMES = ("calls", "forward", "to host", "restore")


def row_of(
    kind: str,
    method: str,
    laps: list[dict[str, Any]],
    raw: list[dict[str, Any]],
    total: int,
    times: tuple[str, ...] = TIMES,
) -> dict[str, Any]:
    """The medians of a method, and the times of every round."""
    row: dict[str, Any] = {"what": kind, "method": method, "rounds counted": len(laps)}
    row |= {f"{time_of} s": median([lap[time_of] for lap in laps]) for time_of in times}
    row |= {f"{way} GB/s": total / row[f"{way} s"] / 1e9 for way in times[2:]}
    row |= {"ratio": median([lap["ratio"] for lap in laps])}
    row |= {count: laps[-1][count] for count in ("encoded", "with another", "plain")}
    for each in times:
        row[f"{each} by raw"] = median([lap[each] / one[each] for lap, one in zip(laps, raw, strict=True)])
    keys = (*times, "ratio", "encoded", "plain")
    return row | {f"{key} of rounds": [lap[key] for lap in laps] for key in keys}


def _bars(report: Report, kind: str, rows: dict[str, dict[str, Any]], *, waves: bool) -> None:
    """Wavefields have to gain; no kind may lose."""
    auto = rows["auto"]
    if waves:
        gain = 1 / auto["calls by raw"]
        report.bar(f"{kind}: raw's blocked time by auto's", gain, LEAST_GAIN, at_least=True)
    for each in ("forward", "to host", "restore"):
        report.bar(f"{kind}: time of auto by raw's, {each}", auto[f"{each} by raw"], MOST_LOSS, at_least=False)
    tree = rows["tree"]["to host by raw"]
    report.bar(f"{kind}: time of tree by raw's, to host", tree, MOST_LOSS, at_least=False)


def _beside(report: Report, card: Any, name: str, arrays: list[Any], rounds: int) -> int:
    """How much longer the application's loop takes beside flushes. Returns how many bytes differed."""
    size = arrays[0].nbytes
    steps = _steps(card, report.settings["down GB/s"] * 1e9, size)
    times: dict[str, list[float]] = {"alone": [], "raw": [], "codec": [], "tree": []}
    differ = 0
    with _stores(card, size, CHUNKS, tuning=velocpy.Tuning(flush="eager")) as stores:
        for number in range(rounds + 1):
            for method in turns(tuple(times), number):
                if method == "alone":
                    took = card.seconds(partial(_train, card, steps, lambda _: None))
                else:
                    reduce = cast(Reduction, method)
                    history = stores[method].history(f"beside {method} {number}", reduce=reduce)
                    took = card.seconds(partial(_train, card, steps, partial(_write, history, arrays)))
                    differ += _restored(history, arrays)
                if number:
                    times[method].append(took)
    for method, each in times.items():
        by_alone = median([took / alone for took, alone in zip(each, times["alone"], strict=True)])
        row = {"what": f"application's loop, {KINDS[name]}", "method": method, "rounds counted": len(each)}
        row |= {"device s": median(each), "by alone": by_alone, "device seconds of rounds": each}
        report.rows.append(row | {"matrix products per checkpoint": steps})
    for method, what in (("codec", "encode"), ("tree", "de-duplicate")):
        slower = median([ours / raw for ours, raw in zip(times[method], times["raw"], strict=True)])
        report.bar(f"application beside flushes that {what}, by beside raw ones", slower, MOST_LOSS, at_least=False)
    return differ


def _steps(card: Any, rate: float, size: int) -> int:
    """Matrix products that take a little longer than a plain copy of a checkpoint to the host."""
    if card.name == HostCard.name:
        return 1
    card.seconds(lambda: card.train(2))  # makes the matrices
    each: float = card.seconds(lambda: card.train(8)) / 8
    return math.ceil(LONGER * size / rate / each)


def _train(card: Any, steps: int, write: Callable[[int], object]) -> None:
    for key in range(CHUNKS):
        card.train(steps)
        write(key)


def _write(history: velocpy.History, arrays: list[Any], key: int) -> None:
    history.checkpoint(key, u=arrays[key])


def _restored(history: velocpy.History, arrays: list[Any]) -> int:
    """Restores the loop's checkpoints as last. Returns how many bytes differed."""
    history.wait("host")
    differ = 0
    for key in reversed(range(CHUNKS)):
        with history.restore(key, last=True) as lease:
            differ += arrays[key].nbytes * (not same(lease["u"], arrays[key]))
    history.wait()
    history.clear()
    return differ
