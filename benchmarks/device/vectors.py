"""Graphlet degree vectors that accumulate, checkpointed from a device (Tan et al., ICPP'23, section 3.2).

Each checkpoint goes to pinned host memory: whole, de-duplicated by the methods Basic, List and Tree, or compressed by
nvCOMP. From the root of the checkout, on a machine with a GPU, nvcc and a C compiler::

    python -m benchmarks.device.vectors --out benchmarks/results/vectors.json

The exit status is 1 if a byte was wrong. Speeds do not change it.
"""

from __future__ import annotations

import dataclasses
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click
import numpy as np

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.data import series
from benchmarks.data.graphs import KINDS
from benchmarks.device import alone, nvcomp
from benchmarks.device.beside import processors
from benchmarks.device.contest import GATHERERS, SEED
from benchmarks.device.dedup import compiled
from benchmarks.device.differences import DIGEST, TILE, TOTALS, Difference, Form, Region
from benchmarks.device.encoded import fill
from benchmarks.device.kernels import Bytes, Driver, turns
from benchmarks.device.labelling import Deduplication, Entries
from benchmarks.device.ways import Host

if TYPE_CHECKING:
    from velocpy.bench.report import Report

CHUNK, WORD = 64, 4
EVENTS = ("message race", "mesh exchange")
LIST_BAR, RATIO_BAR, SPEED_BAR = 4.0, 1.0, 10.0
ZSTD = "nvCOMP Zstd (bytes)"
NOTES = (
    f"Chunks of {CHUNK} B. Times are of the host, from the state on the device until everything is in pinned memory, "
    "all checkpoints together, the first one included; medians of the rounds. Metadata are entries or the bitmap. "
    "First occurrences are not compressed. Of nvCOMP only payloads count, and one copy brings as many to the host.",
    "Every checkpoint of the first round is restored and compared.",
)


class Way(Protocol):
    """A way of checkpoints to the host."""

    at: int
    """Where a state has to be on the device."""

    def begin(self) -> None:
        """Begins a series."""

    def checkpoint(self, number: int) -> int:
        """Brings a checkpoint, counted from 1, to the host; returns the bytes that are stored of it."""

    def restored(self, size: int) -> Bytes:
        """The bytes of the last checkpoint, from what has been stored so far."""


class Full:
    """All bytes."""

    def __init__(self, driver: Driver, host: Host, at: int, size: int) -> None:
        self.driver, self.host, self.at, self.size = driver, host, at, size

    def begin(self) -> None: ...

    def checkpoint(self, _: int) -> int:
        self.host.take(self.host.data, 0, self.at, self.size, self.driver.stream)
        self.driver.synchronize()
        return self.size

    def restored(self, size: int) -> Bytes:
        return self.host.data[:size].copy()


class Basic:
    """Chunks that have changed, and a bitmap of them."""

    def __init__(self, driver: Driver, host: Host, at: int, size: int, gathered: int, blocks: int) -> None:
        self.driver, self.host, self.at, self.size, self._gathered = driver, host, at, size, gathered
        self._chunks = -(-size // CHUNK)
        self._leaves, self._sums = driver.allocate(self._chunks * DIGEST), driver.allocate(-(-size // TILE) * 8)
        region = Region(at, size, self._leaves, 0, self._sums, self._chunks)
        self._made = Difference(driver, Form(CHUNK, False), SEED, [[region]], gathered, blocks)
        self._state = np.zeros((0, CHUNK), np.uint8)

    def begin(self) -> None:
        fill(self.driver, self._leaves, 0, self._chunks * DIGEST)
        self._state = np.zeros((self._chunks, CHUNK), np.uint8)

    def checkpoint(self, _: int) -> int:
        host, part, stream = self.host, self._made.parts[0], self.driver.stream
        self._made.queue()
        host.take(host.totals, 0, part.totals, TOTALS, stream)
        host.take(host.sums, 0, self._sums, -(-self.size // TILE) * 8, stream)
        self.driver.synchronize()
        changed, lost, _ = (int(n) for n in host.totals.view("<u8")[:3])
        stored = changed * CHUNK - lost
        host.take(host.data, 0, self._gathered, stored, stream)
        host.take(host.map, 0, self._made.changed, -(-self._chunks // 8), stream)
        self.driver.synchronize()
        return stored + -(-self._chunks // 8)

    def restored(self, size: int) -> Bytes:
        chosen = np.flatnonzero(np.unpackbits(self.host.map, bitorder="little", count=self._chunks))
        self._state[chosen] = _rows(self.host.data, chosen.size)
        return self._state.reshape(-1)[:size]


class Labelled:
    """First occurrences, and the entries of List or Tree."""

    def __init__(self, host: Host, entries: Entries, work: Deduplication, at: int) -> None:
        self.host, self.entries, self.work, self.at = host, entries, work, at
        self._state, self._stored = np.zeros((0, CHUNK), np.uint8), [np.zeros((0, CHUNK), np.uint8)]

    def begin(self) -> None:
        self.work.begin()
        self._state = np.zeros((-(-self.work.size // CHUNK), CHUNK), np.uint8)
        self._stored = self._stored[:1]  # checkpoints are counted from 1

    def checkpoint(self, number: int) -> int:
        self.work.number(number)
        return self.work.serial(self.host, self.entries)

    def restored(self, size: int) -> Bytes:
        found = self.entries.found()
        firsts = self.entries.firsts.view("<u8")[: found["first_entries"]]
        shifts = self.entries.shifts.view("<u8").reshape(-1, 3)[: found["shift_entries"]]
        chosen, _ = _expanded(firsts, len(self._state))
        self._stored.append(_rows(self.host.data, chosen.size).copy())
        self._state[chosen] = self._stored[-1]
        covered, entry = _expanded(shifts[:, 0], len(self._state))
        first = (shifts[:, 0] >> np.uint64(24)).astype(np.int64)[entry]
        row = shifts[:, 2].astype(np.int64)[entry] // CHUNK + covered - first
        for source in np.unique(shifts[:, 1]):
            mine = shifts[:, 1][entry] == source
            self._state[covered[mine]] = self._stored[int(source)][row[mine]]
        return self._state.reshape(-1)[:size]


class Compressed:
    """A compressor of nvCOMP."""

    def __init__(self, host: Host, area: nvcomp.Area, compressor: nvcomp.Compressor) -> None:
        self.host, self.area, self.compressor, self.at = host, area, compressor, area.plain

    def begin(self) -> None: ...

    def checkpoint(self, _: int) -> int:
        self.compressor.compress()
        length = self.compressor.length()
        self.host.take(self.host.data, 0, self.area.room, length, self.area.driver.stream)
        self.area.driver.synchronize()
        return length

    def restored(self, size: int) -> Bytes:
        self.compressor.check()
        self.compressor.decompress()
        return self.area.driver.download(self.area.back, size)


def _rows(data: Bytes, chunks: int) -> Bytes:
    """The first chunks of the data, as rows; the last one may be longer than it was."""
    return data[: chunks * CHUNK].reshape(-1, CHUNK)


def _expanded(entries: Any, chunks: int) -> tuple[Any, Any]:
    """The chunks that entries cover, of so many, and the entry of each. The last node of a level may have fewer."""
    position = (entries >> np.uint64(24)).astype(np.int64)
    size = np.minimum(np.int64(1) << (entries & np.uint64(0xFFFFFF)).astype(np.int64), chunks - position)
    entry = np.repeat(np.arange(entries.size), size)
    within = np.arange(int(size.sum())) - (np.cumsum(size) - size)[entry]
    return position[entry] + within, entry


@dataclasses.dataclass
class Play:
    """The rounds of a way on a series: seconds of each, the bytes that are stored, and how many bytes are wrong."""

    seconds: list[float] = dataclasses.field(default_factory=list)
    stored: int = 0
    wrong: int = 0


def play(driver: Driver, way: Way, states: Sequence[Bytes], into: Play) -> None:
    """One round. The first is compared."""
    compares, took, stored = not into.seconds, 0.0, 0
    way.begin()
    for number, state in enumerate(states, 1):
        driver.upload(way.at, state)
        began = time.perf_counter()
        stored += way.checkpoint(number)
        took += time.perf_counter() - began
        if compares:
            into.wrong += int(np.count_nonzero(way.restored(state.size) != state))
    into.seconds.append(took)
    into.stored = stored


def ways_of(
    report: Report, driver: Driver, size: int, checkpoints: int, library: nvcomp.Library | None
) -> dict[str, Way]:
    """All ways of states of a size, by name. Remarks tell which of nvCOMP's choices are left out, and why."""
    chunks = -(-size // CHUNK)
    room = -(-size // nvcomp.CHUNK) * nvcomp.CHUNK
    host, entries = Host(driver, room + (1 << 20), chunks, 1), Entries(driver, chunks)
    at, gathered, blocks = driver.allocate(room), driver.allocate(room), GATHERERS * processors(driver)
    found: dict[str, Way] = {
        "Full": Full(driver, host, at, size),
        "Basic": Basic(driver, host, at, size, gathered, blocks),
    }
    capacity = 2 * chunks * min(2, checkpoints)
    for method in ("list", "tree"):
        work = Deduplication(driver, Form(CHUNK, False), method, at, size, gathered, blocks, capacity)
        found[method.capitalize()] = Labelled(host, entries, work, at)
    if library is None or library.major != nvcomp.MAJOR:
        return found
    for choice in nvcomp.choices(WORD):
        name = f"{nvcomp.NAME}{choice.name} ({choice.options})"
        try:
            needs = nvcomp.needs_of(library, driver, choice, room)
            if needs.temp > nvcomp.MOST:
                raise RuntimeError(f"it asks for {needs.temp >> 30} GiB of temporary memory")
            area = nvcomp.Area(driver, room, [needs])
            found[name] = Compressed(host, area, nvcomp.opened(library, area, choice))
        except RuntimeError as error:
            report.remark(f"{name}: {error}.")
    return found


def rows(
    report: Report, driver: Driver, kind: str, data: series.Series, library: nvcomp.Library | None, rounds: int
) -> Iterator[dict[str, Any]]:
    """The rows of a graph: all ways, by turns."""
    states = [series.flat(data.state(number)["gdv"]).copy() for number in range(data.count)]
    ways = ways_of(report, driver, states[0].size, data.count, library)
    found = {name: Play() for name in ways}
    for number in range(rounds):
        for name in turns(list(ways), number):
            play(driver, ways[name], states, found[name])
    total = sum(state.size for state in states)
    for name, played in found.items():
        seconds = statistics.median(played.seconds)
        row: dict[str, Any] = {"graph": kind, "way": name, "checkpoints": data.count, "MB each": states[0].size / 1e6}
        row |= {"ratio": total / played.stored, "GB/s": total / seconds / 1e9, "wrong": played.wrong}
        yield row | {"s": played.seconds}
    driver.release()


def judge(report: Report) -> None:
    """The bars of each graph."""
    report.never("bytes of restored vectors that differ", sum(row["wrong"] for row in report.rows))
    found = {(row["graph"], row["way"]): row for row in report.rows}
    for kind in dict.fromkeys(row["graph"] for row in report.rows):
        tree = found[kind, "Tree"]
        if kind in EVENTS:
            ratio = tree["ratio"] / found[kind, "List"]["ratio"]
            report.bar(f"{kind}, Tree: its ratio by List's", ratio, LIST_BAR, at_least=True)
        if (kind, ZSTD) in found:
            zstd = found[kind, ZSTD]
            report.bar(f"{kind}, Tree: its ratio by Zstd's", tree["ratio"] / zstd["ratio"], RATIO_BAR, at_least=True)
            report.bar(f"{kind}, Tree: its rate by Zstd's", tree["GB/s"] / zstd["GB/s"], SPEED_BAR, at_least=True)


def run(
    driver: Driver, make: Callable[[str], series.Series], kinds: Sequence[str], rounds: int, limit: float
) -> Report:
    """The whole benchmark; after so many seconds no further graph begins."""
    library, began = nvcomp.load(), time.monotonic()
    report = alone.new_report("vectors", {"card": driver.name, "rounds": rounds})
    if library is None:
        report.remark(nvcomp.MISSING)
    else:
        report.settings["nvCOMP"] = library.version
    for kind in kinds:
        if time.monotonic() - began > limit:
            report.remark(f"Left out for lack of time: {kind}.")
            continue
        data = make(kind)
        report.remark(f"{kind}: {data.words}.")
        report.rows += rows(report, driver, kind, data, library, rounds)
    report.notes += NOTES
    judge(report)
    return report


@click.command()
@click.option("--fatbin", type=click.Path(path_type=Path, exists=True), help="Of dedup.cu; without it nvcc makes it.")
@click.option("--graphs", default=",".join(KINDS), help="Kinds of graphs, with commas between.")
@click.option("--vertices", default=200_000, type=click.IntRange(min=1000))
@click.option("--checkpoints", default=20, type=click.IntRange(min=2))
@click.option("--rounds", default=3, type=click.IntRange(min=1))
@click.option("--limit", default=float("inf"), help="Seconds after which no further graph begins.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the report here, as JSON.")
@click.option("--commit", default="", help="Commit of the source, where git cannot tell it.")
def main(
    fatbin: Path | None,
    graphs: str,
    vertices: int,
    checkpoints: int,
    rounds: int,
    limit: float,
    out: Path | None,
    commit: str,
) -> None:
    """De-duplicate and compress graphlet degree vectors on this machine's first GPU."""
    kinds = [kind.strip() for kind in graphs.split(",")]
    if strange := [kind for kind in kinds if kind not in KINDS]:
        raise click.UsageError(f"no graph {strange[0]!r}; there are {', '.join(KINDS)}")
    facts = alone.machine(" ".join(["python -m benchmarks.device.vectors", *sys.argv[1:]]), commit)
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(fatbin or compiled(Path(folder)))
    report = run(driver, lambda kind: series.of_graph(kind, vertices, checkpoints), kinds, rounds, limit)
    alone.finish(report, facts, out)


if __name__ == "__main__":
    main()
