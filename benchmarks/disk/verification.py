"""What it costs the application that restores are verified."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import velocpy
from velocpy.bench.report import Report
from velocpy.bench.stamped import Bytes, Stamped
from velocpy.bench.timing import median
from velocpy.choices import Verification

BAR = 5.0
CHOICES: tuple[Verification, ...] = ("off", "moved", "first")
DEFAULT: Verification = "moved"
Restore = Callable[[velocpy.History, int, Bytes], object]


def _into(history: velocpy.History, key: int, back: Bytes) -> None:
    history.restore(key, into={"u": back})


def _lease(history: velocpy.History, key: int, back: Bytes) -> None:
    history.restore(key).release()


def _read(history: velocpy.History, key: int, back: Bytes) -> None:
    with history.restore(key) as state:
        np.add.reduce(state["u"].view(np.uint64))


@dataclass(frozen=True)
class Case:
    """A way to restore, and what is known of it."""

    name: str
    restore: Restore
    held: bool  # to the bar
    planned: bool = True
    disk: bool = False  # where the checkpoints lie, and host memory holds few of them


CASES = (
    Case("into an array", _into, held=True),
    Case("lease", _lease, held=False),
    Case("lease, read once", _read, held=True),
    Case("lease, read once, in no order", _read, held=False, planned=False),
    Case("from disk, into an array", _into, held=True, disk=True),
    Case("from disk, lease, read once", _read, held=True, disk=True),
    Case("from disk, into an array, in no order", _into, held=True, planned=False, disk=True),
)

FEW = 4  # checkpoints that host memory holds at least when they lie on disk
LITTLE = 16  # … or this part of the bytes of all (as a divisor)


@dataclass(frozen=True)
class Amount:
    """How much of a case is restored."""

    size: int
    count: int
    host: int  # bytes of host memory

    @classmethod
    def of(cls, case: Case, size: int, total: int) -> Amount:
        """What ``total`` bytes allow: from disk at least four times what host memory holds of the pass before."""
        if not case.disk:
            return cls(size, total // size, (total // size + 1) * (size + 4096))
        host = max(total // LITTLE, (FEW + 1) * size)
        count = max(total // size, 4 * host // size)
        # In no order each waits for the disk alone: no more than it takes.
        return cls(size, count if case.planned else 4 * host // size, host)


def run(
    folder: Path,
    sizes: tuple[int, ...] = (64 << 10, 16 << 20, 128 << 20),
    total: int = 1 << 30,
    rounds: int = 9,
) -> Report:
    """Restores every checkpoint of a stream: without verification, by default and with ``verify="first"``."""
    report = Report("verification", {"rounds": rounds, "history_mib": total >> 20})
    for size in sizes:
        for case in CASES:
            seconds = _by_turns(case, folder, size, total, rounds)
            ratios = [a / b for a, b in zip(seconds[DEFAULT], seconds["off"], strict=True)]
            added = [a - b for a, b in zip(seconds[DEFAULT], seconds["off"], strict=True)]
            row: dict[str, Any] = {"KiB": size >> 10, "restore": case.name}
            row |= {f'verify="{verify}" µs': median(all_) * 1e6 for verify, all_ in seconds.items()}
            firsts = [a / b for a, b in zip(seconds["first"], seconds["off"], strict=True)]
            row |= {'"first": more, %': 100 * (median(firsts) - 1)}
            row |= {"more, %": 100 * (median(ratios) - 1), "more, ms per GB": median(added) / size * 1e12}
            report.rows.append(row | {"seconds": [seconds]})
            if case.held:
                what = f"{size >> 10} KiB, {case.name}: cost of verification, %"
                report.bar(what, row["more, %"], BAR, at_least=False)
    report.notes.append(
        'The bars are those of the default, verify="moved". From host memory each checkpoint is restored once after '
        'its capture, so that verify="first" compares all of them, and the default all that are copied and one lease '
        "in 16; a second restore would cost nothing more. 'From disk': one durable store, read by all three, "
        f"with host memory for {total // LITTLE >> 20} MiB or {FEW} checkpoints, and no guesses, as they would bring "
        "up in the others' turn what comes next. Times are those of one restore; stores take turns, a whole pass "
        "each, so that what one does in the background does not slow the other. A bare lease "
        "copies nothing: verified, it reads the bytes, which the application is about to do; 'read once' adds that "
        "reading (the sum of its 64-bit words). There is a plan: what comes from disk, and leases of 1 MiB and more, "
        "are compared ahead by other threads; 'in no order' there is none, nothing to guess, and the bytes are read "
        "twice."
    )
    return report


def _by_turns(case: Case, folder: Path, size: int, total: int, rounds: int) -> dict[str, list[float]]:
    """Mean seconds of a restore in each round, after one that does not count."""
    amount = Amount.of(case, size, total)
    count = amount.count
    stamped, back = Stamped(size), np.zeros(size, np.uint8)
    keys, order = list(range(count)), random.Random(1)
    seconds: dict[str, list[float]] = {verify: [] for verify in CHOICES}
    with _stores(case, folder, amount) as stores:
        turns = [(verify, store.history("h")) for verify, store in zip(CHOICES, stores, strict=True)]
        for number in range(rounds + 1):
            if not case.planned:
                order.shuffle(keys)
            if not case.disk:
                for key in range(count):
                    for _, history in turns:
                        history.checkpoint(key, u=stamped.of(key))
            first = number % len(turns)  # each goes first, in the middle and last equally often
            for verify, history in turns[first:] + turns[:first]:
                if case.planned:
                    history.hint(keys)
                began = time.perf_counter()
                for key in keys:
                    case.restore(history, key, back)
                if number > 0:
                    seconds[verify].append((time.perf_counter() - began) / count)
        for _, history in turns:
            history.restore(keys[-1], into={"u": back})
            assert stamped.same(keys[-1], back), "another checkpoint came back"
    return seconds


@contextmanager
def _stores(case: Case, folder: Path, amount: Amount) -> Iterator[list[velocpy.Store]]:
    """A store for each choice; from disk they read the same files, so that both get them at the same rate."""
    size, count, host = amount.size, amount.count, amount.host
    with ExitStack() as stack:
        if not case.disk:
            yield [stack.enter_context(velocpy.open(host=host, verify=verify)) for verify in CHOICES]
            return
        path = stack.enter_context(tempfile.TemporaryDirectory(dir=folder))
        with velocpy.open(
            path, host=host, disk=2 * count * (size + 4096) + (1 << 30), tuning=velocpy.Tuning(flush="eager")
        ) as store:
            history, stamped = store.history("h"), Stamped(size)
            for key in range(count):
                history.checkpoint(key, u=stamped.of(key))
        alike: dict[str, Any] = {"mode": "r", "tuning": velocpy.Tuning(guess=False)}
        yield [stack.enter_context(velocpy.open(path, host=host, verify=verify, **alike)) for verify in CHOICES]
