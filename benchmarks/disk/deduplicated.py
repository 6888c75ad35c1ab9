"""Histories that are de-duplicated, beside the same as they are, encoded, and as compressed files.

The data: graphlet degree vectors while they accumulate (Tan et al., ICPP'23, section 3), states of trainings, and
wavefields. `CELLS` has them by name.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import click

import velocpy
from benchmarks.data import graphlets, series
from benchmarks.data.graphs import KINDS as GRAPHS
from benchmarks.data.series import Series, same
from velocpy.bench.report import Report
from velocpy.bench.timing import median
from velocpy.choices import Compressor as Compressing
from velocpy.choices import Digest, Reduction

from .compressors import Compressor, compressors, forget, play

CHUNKS = (64, 128, 512, 1024)
#: The chunk length of the ways that are compared in every round, and with another digest.
CHUNK = 128
DEDUPLICATING: tuple[Reduction, ...] = ("basic", "list", "tree", "runs")
TRAININGS = ("full fp32", "full bf16", "LoRA", "embeddings")
#: The ways that every round has; the others come in the first round alone, and not for all series.
COMPARED = (
    *("raw", "codec", "codec zstd", "reference", *(f"{reduce} {CHUNK}" for reduce in DEDUPLICATING)),
    *(f"tree {CHUNK} zstd", "shuffle, zstd-1"),
)
LATEST = 2  # checkpoints that the host tier has room for


class Method(NamedTuple):
    """How a history is reduced."""

    reduce: Reduction
    chunk: int | None = None
    digest: Digest | None = None
    compress: Compressing | None = None

    @property
    def name(self) -> str:
        """The method with its chunk and compressor, and with the digest if it is not the usual one."""
        return " ".join(str(part) for part in self if part is not None)


class Cell(NamedTuple):
    """A series, and which methods and chunk lengths are tried on it."""

    group: str
    make: Callable[[], Series]
    #: Whether all are tried, or those of `COMPARED`.
    all: bool = True


def run(
    folder: Path,
    cells: str | None = None,
    rounds: int = 3,
    limit: float = float("inf"),
    vertices: int = 50_000,
    large: int = 2_020_000,
    megabytes: float = 52,
    side: int = 512,
    checkpoints: tuple[int, ...] = (20, 10, 5),
    chunks: tuple[int, ...] = CHUNKS,
) -> Report:
    """Writes and restores each series by each method, ``rounds`` times; every byte is compared.

    ``cells`` are groups or names of `cells_of`, with commas between; None: all but the large ones, and the brief
    ones of references, which are among the others. After ``limit``
    seconds no further series begins.
    """
    known = cells_of(vertices, large, megabytes, side, checkpoints)
    try:
        chosen = _chosen(known, cells)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    report = Report(
        "-".join(["deduplicated", *(dict.fromkeys(cell.group for cell in chosen.values()) if cells else ())]),
        {
            "rounds": rounds,
            "vertices": vertices,
            "vertices of large graphs": large,
            "a training's state in MB": megabytes,
            "side": side,
        },
    )
    report.measure({"load at the start": round(os.getloadavg()[0], 1)})
    began, differ = time.perf_counter(), 0
    for name, cell in chosen.items():
        if time.perf_counter() - began > limit:
            report.remark(f"Left out for lack of time: {name}.")
        elif cell.group in ("graphs", "fewer", "large") and not graphlets.has_compiler():
            report.remark(f"Left out without a C compiler: {name}.")
        elif cell.group == "training" and not _has_torch():
            report.remark(f"Left out without torch: {name}.")
        else:
            differ += _cell(report, folder, name, cell, rounds, chunks)
    report.never("bytes that differ, of all restores", differ)
    report.notes += [
        "'write s' is the sum of the times from checkpoint() until wait('disk') returns, one checkpoint after the "
        "other; of files it ends with fdatasync. 'restore s' is that of all restores in reverse, without a plan and "
        "without read-ahead, from a store that has been opened again, or from the files; no page is cached before. "
        "Neither has the time in which states are made and compared. Medians.",
        "'ratio' is the bytes of all checkpoints by those on the disk, 'ratio after first' the same without the first "
        "checkpoint. 'before encoding' is that of the bytes which no earlier checkpoint had, as they are, and of the "
        "metadata as they are stored, compressed where that is shorter. Tan et al. do not compress metadata, so it is "
        "not their ratio. 'metadata' are bytes of the stored form. 'whole' are checkpoints that refer to no earlier "
        "one.",
        f"Each compressor has one thread. The store may use all {os.cpu_count()} CPUs, and its de-duplicated bytes are "
        "encoded by the codec. Behind a method, 'zstd', 's2' and 'huff0' are compressors beside it (`compress=`).",
    ]
    return report


def cells_of(vertices: int, large: int, megabytes: float, side: int, checkpoints: tuple[int, ...]) -> dict[str, Cell]:
    """The series by name; the first of ``checkpoints`` is tried in full."""
    found = {}
    for number in checkpoints:
        for kind in GRAPHS:
            make = partial(series.of_graph, kind, vertices, number)
            full = number == checkpoints[0]
            found[f"{kind} {number}"] = Cell("graphs" if full else "fewer", make, full)
    for kind in TRAININGS:
        found[kind] = Cell("training", partial(series.of_training, kind, checkpoints[0], megabytes))
    for kind in TRAININGS:
        found[f"{kind} references"] = Cell("references", found[kind].make, all=False)
    found["wavefields"] = Cell("waves", partial(series.of_waves, side, checkpoints[0]))
    for kind in GRAPHS:
        found[f"{kind} large"] = Cell("large", partial(series.of_graph, kind, large, checkpoints[-1]), False)
    return found


def methods_of(chunks: tuple[int, ...]) -> list[Method]:
    """All methods with all chunk lengths."""
    tried = [Method("raw"), Method("codec"), Method("full"), Method("reference")]
    tried += [Method(reduce, chunk) for chunk in chunks for reduce in DEDUPLICATING]
    tried += [Method("codec", compress=each) for each in get_args(Compressing)]
    return [*tried, Method("tree", CHUNK, compress="zstd"), Method("tree", CHUNK, "murmur3")]


def _chosen(known: dict[str, Cell], cells: str | None) -> dict[str, Cell]:
    if cells is None:
        return {name: cell for name, cell in known.items() if cell.group not in ("large", "references")}
    chosen: dict[str, Cell] = {}
    for word in map(str.strip, cells.split(",")):
        found = {name: cell for name, cell in known.items() if word in (name, cell.group)}
        if not found:
            groups = dict.fromkeys(cell.group for cell in known.values())
            raise ValueError(f"no cell {word!r}; there are {', '.join([*groups, *known])}")
        chosen |= found
    return chosen


def _has_torch() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return bool(torch)


def _cell(report: Report, folder: Path, name: str, cell: Cell, rounds: int, chunks: tuple[int, ...]) -> int:
    """The rows of a series; returns the bytes that differ."""
    data = cell.make()
    size = data.size
    ways: dict[str, Callable[[Path], dict[str, Any]]] = {
        method.name: partial(_stream, method=method, data=data, size=size) for method in methods_of(chunks)
    }
    packers: dict[str, Compressor] = compressors()
    ways |= {each: partial(play, compressor=packer, series=data) for each, packer in packers.items()}
    if not cell.all:
        ways = {way: ways[way] for way in ways if way in COMPARED}
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    for way in _by_turns(list(ways), rounds, COMPARED):
        with tempfile.TemporaryDirectory(dir=folder) as path:
            found[way].append(ways[way](Path(path)))
    first = len(report.rows)
    report.rows += [_row(name, way, data, size, rows) for way, rows in found.items()]
    report.remark(f"{name}: {data.words}; {data.count} checkpoints of {size} bytes.")
    report.notes += _proportions(name, report.rows[first:], chunks)
    return sum(row["differ"] for rows in found.values() for row in rows)


def _by_turns(ways: list[str], rounds: int, every: Collection[str]) -> Iterator[str]:
    """All ways in the first round, then those of ``every``; each round begins with another one."""
    for number in range(rounds):
        turn = ways if number == 0 else [way for way in ways if way in every]
        shift = number * max(1, len(turn) // rounds) % max(1, len(turn))
        yield from turn[shift:] + turn[:shift]


def _row(name: str, way: str, data: Series, size: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    used = median([row["used"] for row in rows])
    first = median([row["first"] for row in rows])
    wrote, restored = [row["seconds"] for row in rows], [row["restored"] for row in rows]
    return {
        "data": name,
        "method": way,
        "bytes on disk": int(used),
        "metadata": rows[-1].get("metadata", ""),
        "whole": rows[-1].get("whole", ""),
        "ratio": data.count * size / used,
        "ratio after first": (data.count - 1) * size / max(1, used - first),
        "before encoding": (data.count - 1) * size / rows[-1]["unencoded"] if rows[-1].get("unencoded") else "",
        "rounds": len(rows),
        "write s": median(wrote),
        "restore s": median(restored),
        "bytes that differ": sum(row["differ"] for row in rows),
        "write seconds": wrote,
        "restore seconds": restored,
    }


def _proportions(name: str, rows: list[dict[str, Any]], chunks: tuple[int, ...]) -> list[str]:
    """Tree : List : Basic by their ratios, for each chunk length."""
    by_method = {row["method"]: row for row in rows}

    def proportion(column: str, chunk: int) -> str:
        tree, listed, basic = (by_method[f"{method} {chunk}"][column] for method in ("tree", "list", "basic"))
        return f"{tree / basic:.3f} : {listed / basic:.3f} : 1"

    return [
        f"{name}, {chunk} B: Tree : List : Basic are {proportion('ratio after first', chunk)} on the disk and "
        f"{proportion('before encoding', chunk)} before encoding, by their ratios after the first checkpoint."
        for chunk in chunks
        if by_method.get(f"tree {chunk}", {}).get("before encoding")
    ]


def _stream(path: Path, method: Method, data: Series, size: int) -> dict[str, Any]:
    """One series into a new store and back; seconds, and bytes on the disk."""
    host, disk = LATEST * size + (32 << 20), 2 * data.count * size + (64 << 20)
    wrote, first = 0.0, 0
    with velocpy.open(path, host=host, disk=disk) as store:
        history = store.history("series", **method._asdict())
        for number in range(data.count):
            state = data.state(number)
            began = time.perf_counter()
            history.checkpoint(number, state)
            store.wait("disk")
            wrote += time.perf_counter() - began
            if number == 0:
                first = store.stats()["tiers"]["disk"]["used"]
                then = store.stats()["histories"]["series"]["reduction"]
        did = store.stats()["histories"]["series"]["reduction"]
        used = store.stats()["tiers"]["disk"]["used"]
    assert did is not None
    assert then is not None
    forget(path)
    restored, differ = 0.0, 0
    with velocpy.open(path, host=host, disk=disk, tuning=velocpy.Tuning(prefetch=False)) as store:
        history = store.history("series")
        for number in reversed(range(data.count)):
            began = time.perf_counter()
            with history.restore(number) as back:
                restored += time.perf_counter() - began
                differ += same(back, data.state(number))
    later = (did["first_bytes"] - then["first_bytes"]) + (did["meta_bytes"] - then["meta_bytes"])
    return {
        "seconds": wrote,
        "restored": restored,
        "used": used,
        "first": first,
        "metadata": did["meta_bytes"],
        "whole": data.count - did["differences"],
        "unencoded": later if did["chunk"] else 0,
        "differ": differ,
    }
