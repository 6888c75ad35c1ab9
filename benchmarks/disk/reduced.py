"""Durable streams of histories that are reduced, beside the same stream as it is.

Three kinds of data: wavefields of the demo's migration (fp32), weights as they are drawn before a training (bf16, if
torch is there, else fp32), and random bytes, which nothing makes smaller.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import velocpy
from velocpy.bench.report import Report
from velocpy.bench.timing import by_turns, median
from velocpy.choices import Reduction
from velocpy.demo.backend import numpy_backend
from velocpy.demo.earth import layered_earth
from velocpy.demo.survey import survey_over
from velocpy.demo.wave import Wave

DISTINCT = 8  # checkpoints that differ; a stream repeats them, which the codec does not notice
LEAST_GAIN = 1.3  # of the time of the stream as it is, where it is compressible and "auto" encodes
MOST_LOSS = 1.03  # of that time, of that of a reverse sweep, and of the bytes on disk, for every kind of data


def run(folder: Path, side: int = 512, total: int = 512 << 20, rounds: int = 5) -> Report:
    """Fields of ``side`` by ``side`` numbers of 4 bytes, so many bytes of them; every byte is compared.

    Seconds are those from the first checkpoint until all are durable, and those of a reverse sweep over the store when
    it has been opened again.
    """
    report = Report("reduced", {"side": side, "total": total, "rounds": rounds})
    count = max(2, total // (4 * side * side))
    for name, fields in samples(side).items():
        _play(report, folder, name, fields, count, rounds)
    report.never("bytes that differ, of all restores", sum(row["bytes that differ"] for row in report.rows))
    report.notes += [
        "A stream is as long for every method, in checkpoints of one field. 'flush by raw' and 'restore by raw' are "
        "medians of the ratios of a round's times. 'encoded' is how many checkpoints were, in the last round.",
        f"'auto' has to be at least {LEAST_GAIN} times as fast as 'raw' on data that the codec makes smaller, or to "
        "choose the plain bytes; and never to take more than 3 % longer, or 3 % more of the disk.",
    ]
    return report


def samples(side: int) -> dict[str, list[Any]]:
    """Checkpoints of each kind of data."""
    noise = np.random.default_rng(1)
    random = [noise.integers(0, 256, (side, side, 4), dtype=np.uint8) for _ in range(DISTINCT)]
    drawn = [noise.standard_normal((side, 2 * side)).astype(np.float32) * 0.02 for _ in range(DISTINCT)]
    return {"wavefield": list(wavefields(side)), "weights": [_halved(weights) for weights in drawn], "random": random}


def _halved(weights: np.ndarray) -> Any:
    """As bfloat16, with half of the bytes; half of the numbers where torch is missing."""
    try:
        import torch
    except ImportError:
        return np.ascontiguousarray(weights[:, ::2])
    return torch.from_numpy(weights).bfloat16()


def wavefields(side: int) -> Iterator[np.ndarray]:
    """States of the demo's wave at even distances, from soon after the shot on until it has crossed the earth."""
    survey = survey_over(layered_earth((side, side)), shots=1)
    wave = Wave(numpy_backend(), survey.earth.speed, survey.earth.spacing, survey.dt)
    source, every = survey.sources[0], max(1, survey.steps // (DISTINCT + 1))
    strength = wave.gain(source)
    for step in range(every * DISTINCT):
        wave.step()
        wave.earth[source] += float(survey.wavelet[step]) * strength
        if step % every == every - 1:
            yield np.array(wave.earth)


def _play(report: Report, folder: Path, name: str, fields: list[Any], count: int, rounds: int) -> None:
    found: dict[Reduction, list[dict[str, Any]]] = {"raw": [], "codec": [], "auto": []}
    ways = {method: partial(_stream, folder, method, fields, count, found[method]) for method in found}
    seconds: dict[Any, list[float]] = by_turns({str(method): way for method, way in ways.items()}, rounds)
    plain = count * _bytes(fields[0])
    for method, took in seconds.items():
        rows = found[method][-len(took) :]  # the first round does not count
        backs = [row["restored"] for row in rows]
        raw_backs = [row["restored"] for row in found["raw"][-len(took) :]]
        by_raw = [mine / raw for mine, raw in zip(took, seconds["raw"], strict=True)]
        report.rows.append(
            {
                "data": name,
                "method": method,
                "checkpoints": count,
                "encoded": rows[-1]["encoded"],
                "ratio": rows[-1]["ratio"],
                "GB/s": plain / median(took) / 1e9,
                "flush by raw": median(by_raw),
                "restore by raw": median([mine / raw for mine, raw in zip(backs, raw_backs, strict=True)]),
                "bytes that differ": sum(row["differ"] for row in found[method]),
                "seconds": took,
                "restore seconds": backs,
            }
        )
    raw, codec, auto = report.rows[-3:]
    report.bar(f"{name}: time of auto by raw's", auto["flush by raw"], MOST_LOSS, at_least=False)
    report.bar(f"{name}: time of auto's reverse sweep by raw's", auto["restore by raw"], MOST_LOSS, at_least=False)
    report.bar(f"{name}: bytes of auto by raw's", raw["ratio"] / auto["ratio"], MOST_LOSS, at_least=False)
    if codec["ratio"] > LEAST_GAIN and auto["encoded"] > count // 2:
        report.bar(f"{name}: raw's time by auto's, which encodes", 1 / auto["flush by raw"], LEAST_GAIN, at_least=True)


def _stream(folder: Path, method: Reduction, fields: list[Any], count: int, found: list[dict[str, Any]]) -> float:
    """One stream into a new store; adds what came of it."""
    size = _bytes(fields[0])
    os.sync()  # what the one before has left behind is not this one's to bring down
    with tempfile.TemporaryDirectory(dir=folder) as path:
        with velocpy.open(path, host=16 * size + (16 << 20), disk=2 * count * size + (64 << 20)) as store:
            history = store.history("stream", reduce=method)
            began = time.perf_counter()
            for key in range(count):
                history.checkpoint(key, u=fields[key % len(fields)])
            store.wait("disk")
            seconds = time.perf_counter() - began
            did = store.stats()["histories"]["stream"]["reduction"]
            used = store.stats()["tiers"]["disk"]["used"]
        with velocpy.open(path, host=16 * size + (16 << 20), disk=2 * count * size + (64 << 20)) as store:
            history = store.history("stream")
            history.hint(reversed(range(count)))
            began, differ = time.perf_counter(), 0
            for at, state in history.restore_iter():
                differ += size * (not _same(state["u"], fields[int(at) % len(fields)]))
            restored = time.perf_counter() - began
    found.append(
        {"encoded": did["encoded"] if did else 0, "ratio": count * size / used, "restored": restored, "differ": differ}
    )
    return seconds


def _bytes(field: Any) -> int:
    return int(field.nbytes)


def _same(ours: Any, theirs: Any) -> bool:
    """Bit by bit."""
    if isinstance(theirs, np.ndarray):
        return bool(ours.tobytes() == theirs.tobytes())
    import torch

    return bool(torch.equal(ours.view(torch.int16), theirs.view(torch.int16)))
