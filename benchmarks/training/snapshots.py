"""Snapshots of a model and its optimizer by `velocpy.Checkpointer`, beside the stager of PyTorch with all its options.

A training is blocked by a snapshot until it may change its state again: until the call has returned, or the future of
the stager is done, and the current stream has come by.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import click

import velocpy
from benchmarks.engines.contenders import has_gpu
from velocpy.bench.report import Report
from velocpy.bench.timing import median

from . import peers
from .state import Training

GIB, MIB = 1 << 30, 1 << 20
WARM = 1  # rounds that do not count: memory is made ready in them
STEPS = 24  # steps of the training that are timed alone before a snapshot, and as many behind it
ON_DEVICE, ON_HOST, STAGER = "velocpy, device tier", "velocpy, host tier", "DefaultStager, all options"
MARGINS = {ON_DEVICE: 2.0, ON_HOST: 5.0}  # ms


def run(size: int = 16 * GIB, rounds: int = 5, limit: float = 300) -> Report:
    """Snapshots of ``size`` bytes of parameters and moments; on host memory where there is no GPU, without figures.

    After ``limit`` seconds no further round begins.
    """
    try:
        import torch
    except ImportError as error:
        raise click.ClickException("the benchmark of snapshots needs torch: pip install torch") from error
    until = time.monotonic() + limit
    training = Training(size, "cuda" if has_gpu() else "cpu")
    report = Report("snapshots", {"state_gib": round(training.nbytes / GIB, 3), "rounds": rounds})
    report.settings |= {"card": training.name, "torch": torch.__version__}
    rates = {"device copy": training.device_rate(), "link": training.link_rate()}
    report.measure({f"{name} GB/s": round(rate / 1e9, 2) for name, rate in rates.items()})
    with contextlib.ExitStack() as opened:
        ways = dict(_ways(training, opened))
        laps: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        for number in range(WARM + rounds):
            if number > WARM and time.monotonic() > until:
                break
            for way in _turned(list(ways), number):
                lap = _lap(training, ways[way])
                if number >= WARM:
                    laps[way].append(lap)
    report.settings["rounds"] = len(laps[STAGER])
    _show(report, training, rates, laps)
    if training.device == "cpu":
        report.drop_measured()
    return report


class Way:
    """A way to take a snapshot of the training, and to have it back."""

    def __init__(self, save: Callable[[], Callable[[], bool]], differ: Callable[[], int]) -> None:
        #: Takes a snapshot, returns when the training may change its state, and what it returns tells whether the
        #: background has ended.
        self.save = save
        #: Brings the snapshot back, and counts the bytes that are wrong.
        self.differ = differ


def _ways(training: Training, opened: contextlib.ExitStack) -> Iterator[tuple[str, Way]]:
    slot = training.nbytes + 64 * MIB
    host = 2 * slot
    device = host if training.device == "cuda" else None
    eager = velocpy.Tuning(flush="eager")
    parts: dict[str, Any] = {"model": training.model, "optimizer": training.optimizer, "keep": 1, "random": False}
    store = opened.enter_context(velocpy.open(device=device, host=host, tuning=eager))
    yield ON_DEVICE, _ours(training, velocpy.Checkpointer(store, **parts))
    yield ON_HOST, _ours(training, opened.enter_context(velocpy.Checkpointer(host=host, disk=None, **parts)))
    yield STAGER, _theirs(training, opened)


def _ours(training: Training, checkpointer: velocpy.Checkpointer) -> Way:
    steps = iter(range(1 << 30))

    def save() -> Callable[[], bool]:
        ticket = checkpointer.save(next(steps))
        training.join()
        return lambda: ticket.durable("host")

    def differ() -> int:
        checkpointer.restore()
        return training.differences()

    return Way(save, differ)


def _theirs(training: Training, opened: contextlib.ExitStack) -> Way:
    on_gpu = training.device == "cuda"
    stager = peers.stager(on_gpu, True, on_gpu, on_gpu)
    opened.callback(stager.close)
    staged: list[Any] = []

    def save() -> Callable[[], bool]:
        found = stager.stage(training.state())
        staged[:] = [found.result() if hasattr(found, "result") else found]
        training.join()
        return lambda: True

    return Way(save, lambda: training.differences(staged[0]))


def _turned(ways: list[str], number: int) -> list[str]:
    return ways[number % len(ways) :] + ways[: number % len(ways)]


def _lap(training: Training, way: Way) -> dict[str, float]:
    """One snapshot: how long the training is blocked, how its steps go meanwhile, and the bytes that are wrong."""
    training.begin()
    alone = [training.step() for _ in range(STEPS)]
    began = time.perf_counter()
    ended = way.save()
    lap = {"blocked": time.perf_counter() - began}
    training.spoil()
    beside: list[float] = []
    while not ended():
        beside.append(training.step())
    lap["drained"] = time.perf_counter() - began
    alone += [training.step() for _ in range(STEPS)]  # a device changes its rate while it works
    lap["differ"] = way.differ()
    lap["beside"] = median(beside) / median(alone) if beside else float("nan")
    return lap


def _show(report: Report, training: Training, rates: dict[str, float], laps: dict[str, list[dict[str, float]]]) -> None:
    ceilings = {ON_DEVICE: rates["device copy"], ON_HOST: rates["link"], STAGER: rates["link"]}
    theirs = median([lap["blocked"] for lap in laps[STAGER]])
    for way, found in laps.items():
        blocked, least = median([lap["blocked"] for lap in found]), training.nbytes / ceilings[way]
        row = {"way": way, "blocked ms": blocked * 1e3, "at the ceiling's rate ms": least * 1e3}
        row |= {"drained ms": median([lap["drained"] for lap in found]) * 1e3, "stager's by it": theirs / blocked}
        steps = [lap["beside"] for lap in found if lap["beside"] == lap["beside"]]
        row["step beside, by alone"] = median(steps) if steps else "–"
        report.rows.append(row)
        if way == STAGER:
            continue
        report.bar(f"{way}: blocked beyond the ceiling, ms", (blocked - least) * 1e3, MARGINS[way], at_least=False)
        report.bar(f"{way}: the stager's blocked time by ours", theirs / blocked, 2, at_least=True)
        if steps:
            report.bar(f"{way}: a step beside what drains, by one alone", median(steps), 1.02, at_least=False)
    report.never("bytes that differ", int(sum(lap["differ"] for found in laps.values() for lap in found)))
    report.remark(*peers.remarks())
    report.notes += [
        "'blocked' is the time until the call has returned, or the future of the stager is done, and the current "
        "stream has come by.",
        "The ceilings are a copy of as many bytes on the device, and a copy from the device into pinned host memory.",
        "'drained' is the time until the snapshot lies in host memory; the state is changed and steps run meanwhile. "
        "Steps alone are timed before the call and behind that.",
    ]
