"""The CUDA kernels of de-duplication: compared with the Go package byte for byte, then timed on a region of 4 GiB.

It needs a CUDA driver, NumPy and click, and neither an installed velocpy nor a framework, so that it also runs from a
checkout on a machine that has nothing but the kernels, or nvcc. From the root of the checkout::

    go test ./gocore/reduction/dedup -run TestWriteLineages -args -lineages "$PWD/lineages"
    python -m benchmarks.device.dedup --golden lineages --out benchmarks/results/dedup.json

The lineages need Go and no GPU; they may come from another machine.

The exit status is 1 if a byte was wrong. Speeds do not change it.
"""

from __future__ import annotations

import dataclasses
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.device import alone, labelled, labelling, lineages
from benchmarks.device.beside import RESIDENT, TILE, Subject, comparison_works
from benchmarks.device.contest import Contest, Times
from benchmarks.device.differences import FORMS, Form
from benchmarks.device.kernels import Bytes, Driver, Work, timed
from benchmarks.device.ways import Host, graph

if TYPE_CHECKING:
    from velocpy.bench.report import Report

SOURCE = Path(__file__).with_name("dedup.cu")
SHARES = (0.0, 0.001, 0.01, 0.1, 1.0)
JUDGED_CHUNK, BARS = 128, {0.0: 3000.0, 0.01: 1900.0, 1.0: 53.0}  # GB/s
SLOWER, SMALL_US = 1.03, 20.0
NOTES = (
    "Rates are GB/s of the region's bytes, medians of the rounds. scan, list, gather and 'on device' are times of the "
    "device by CUDA events, with the clearing of their state; a copy that is queued ahead keeps the host's part out.",
    "serial, overlapped, direct and Full are times of the host, until everything is in pinned host memory: changed "
    "chunks, the list of them or the bitmap, whichever is shorter, and the checksums' hashes. "
    "serial: copies follow the kernels. overlapped: one part is copied while the next are scanned. direct: "
    "kernels gather into host memory. Full copies the region. 'by Full' is the fastest way's time by Full's.",
    "Changed chunks lie at random, one among as many neighbours as the share asks for. Every word of them changes.",
    "Rows of a list or a tree label the changed chunks, too: with subtrees, entries and a record in the memory of the "
    "device, which has the bytes of the checkpoint before. moved: the halves of the region have changed places.",
    "'of reading' is the time of a kernel that only reads the region by that of the kernels on the device. A scan also "
    "reads 16 bytes of an old digest for each chunk, or, with digests of blocks, for each 4 KiB and each chunk in them "
    "that have changed.",
)


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What is measured: bytes of regions, parts of the large one, and forms."""

    large: int = 4 << 30
    #: Of the block that the large region repeats.
    repeated: int = 64 << 20
    small: int = 2 << 20
    #: Of a copy that takes a small region out of the caches.
    spare: int = 256 << 20
    parts: int = 16
    forms: Sequence[Form] = FORMS
    #: Of a region none of whose chunks are equal, and the lengths of its chunks.
    labelled: int = 4 << 30
    labelled_chunks: Sequence[int] = (128, 512)


SIZES, QUICK = Sizes(), Sizes(large=256 << 20, labelled=256 << 20)


def compiled(folder: Path) -> Path:
    """The fatbin of the kernels for the GPU of this machine."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    fatbin = folder / "dedup.fatbin"
    subprocess.run([nvcc, "-std=c++17", "-O3", "-arch=native", "-fatbin", "-o", str(fatbin), str(SOURCE)], check=True)
    return fatbin


def percent(share: float) -> str:
    """A share as text."""
    return f"{100 * share:g} %"


def ceilings(subject: Subject, gathered: int, host: Host, rounds: int) -> Times:
    """Milliseconds of reading the region by either of two grids, of a copy on the device, and of one over the link."""
    driver, tiles, few = subject.driver, -(-subject.size // TILE), subject.processors * RESIDENT

    def copy() -> None:
        driver.copy(gathered, subject.at, subject.size)

    works: dict[str, Work] = {
        "reading, a block of threads for each tile": lambda: subject.read(tiles),
        "reading, resident blocks of threads": lambda: subject.read(few),
        "copy on the device": copy,
        "copy to the host": lambda: host.take(host.data, 0, subject.at, subject.size, driver.stream),
    }
    return timed(driver, works, rounds, copy)


def rate(size: int, milliseconds: Sequence[float]) -> float:
    """GB/s of the median."""
    return size / statistics.median(milliseconds) / 1e6


def large(
    driver: Driver, report: Report, block: Bytes, size: int, parts: int, rounds: int, forms: Sequence[Form]
) -> None:
    """Adds the ceilings and the rows of the large region to the report."""
    host = Host(driver, size, size // min(form.chunk for form in forms), parts)
    subject = Subject(driver, block, size)
    report.never("comparisons of known bytes that differ from their right result", int(not comparison_works(subject)))
    found = ceilings(subject, driver.allocate(size), host, rounds)
    driver.release()
    reading = min(statistics.median(took) for name, took in found.items() if name.startswith("reading"))
    report.rows += [
        {"what": name, "MiB": size >> 20, "GB/s": rate(size, took), "ms": took} for name, took in found.items()
    ]
    for chunk in dict.fromkeys(form.chunk for form in forms):
        report.rows += rows(driver, [f for f in forms if f.chunk == chunk], block, host, parts, rounds, reading)


def rows(
    driver: Driver, forms: Sequence[Form], block: Bytes, host: Host, parts: int, rounds: int, reading: float
) -> list[dict[str, Any]]:
    """The rows of the forms of one chunk length, whose Full is that of all their rounds."""
    size = host.data.size
    subject, gathered = Subject(driver, block, size), driver.allocate(size)
    contests = [Contest(form, subject, host, gathered, parts) for form in forms]
    made: list[dict[str, Any]] = []
    full: list[float] = []
    for share in SHARES:
        subject.choose(forms[0].chunk, share)
        for contest in contests:
            stages = contest.stages(rounds)
            wrong = contest.wrong_on_device()
            ways, more = contest.on_host(rounds, full=share == 1)
            full += ways.pop("Full", [])
            row: dict[str, Any] = {"what": str(contest.form), "MiB": size >> 20, "changed": percent(share)}
            row |= {f"{name} µs": statistics.median(stages[name]) * 1e3 for name in ("scan", "list", "gather")}
            row |= {"on device GB/s": rate(size, stages["on device"])}
            row["of reading"] = reading / statistics.median(stages["on device"])
            row |= {f"{name} GB/s": rate(size, took) for name, took in ways.items()}
            row |= {"GB/s": max(rate(size, took) for took in ways.values()), "wrong": wrong + more}
            made.append(row | {f"{name} ms": took for name, took in (stages | ways).items()})
        subject.restore()
    for row in made:
        row["by Full"] = rate(size, full) / row["GB/s"]
    made[-1]["wrong"] += int(not subject.intact())
    driver.release()
    what = f"Full, beside {forms[0].chunk} B"
    return [{"what": what, "MiB": size >> 20, "GB/s": rate(size, full), "ms": full}, *made]


def small(
    driver: Driver, block: Bytes, forms: Sequence[Form], spare_bytes: int, rounds: int
) -> Iterator[dict[str, Any]]:
    """Rows of a small region whose bytes no cache holds: by launches, and by one launch of a graph."""
    size = block.size
    host = Host(driver, size, size // min(form.chunk for form in forms), 1)
    for form in forms:
        subject, gathered, spare = Subject(driver, block, size), driver.allocate(size), driver.allocate(2 * spare_bytes)
        contest = Contest(form, subject, host, gathered, 1)
        contest.whole.queue()  # the driver loads a kernel at its first launch
        driver.synchronize()
        ready = graph(driver, contest.whole.queue)
        works: dict[str, Work] = {
            "launches": contest.whole.queue,
            "graph": lambda ready=ready: driver.call("cuGraphLaunch", ready, driver.stream),  # type: ignore[misc]
        }

        def ahead(subject: Subject = subject, spare: int = spare) -> None:
            subject.change()
            driver.copy(spare, spare + spare_bytes, spare_bytes)

        for share in (0.0, 0.01, 1.0):
            subject.choose(form.chunk, share)
            took = timed(driver, works, rounds, ahead)
            wrong = contest.wrong_on_device()
            took |= {f"{name}, host": [_waited(subject, work) for _ in range(rounds)] for name, work in works.items()}
            wrong += contest.wrong_on_device()
            ways, more = contest.on_host(rounds, full=False)
            took |= {f"{name} to the host": times for name, times in ways.items()}
            row = {"what": f"{form}, small", "MiB": size >> 20, "changed": percent(share), "wrong": wrong + more}
            row |= {f"{name} µs": statistics.median(times) * 1e3 for name, times in took.items()}
            yield row | {f"{name} ms": times for name, times in took.items()}
            subject.restore()
        driver.release()


def _waited(subject: Subject, work: Work) -> float:
    """Milliseconds of the host for work that it waits for, behind a change."""
    subject.change()
    subject.driver.synchronize()
    began = time.perf_counter()
    work()
    subject.driver.synchronize()
    return (time.perf_counter() - began) * 1e3


def judge(report: Report) -> None:
    """The bars: wrong results, and the rates of the form of 128-byte chunks whose least rate by its bar is best."""
    report.never("chunks, digests' hashes and bytes that differ in the large and the small region", _wrong(report.rows))
    rates = {(row["what"], row["changed"]): row["GB/s"] for row in report.rows if "by Full" in row}
    forms = [form for form in FORMS if form.chunk == JUDGED_CHUNK and (str(form), percent(0)) in rates]
    if not forms:
        return

    def least(form: Form) -> float:
        return min(float(rates[str(form), percent(share)]) / bound for share, bound in BARS.items())

    form = max(forms, key=least)
    report.settings["form of the bars"] = str(form)
    for share, bound in BARS.items():
        what = f"{JUDGED_CHUNK} B, {percent(share)} changed, with the copy to the host, GB/s"
        report.bar(what, rates[str(form), percent(share)], bound, at_least=True)
    tree = f"{JUDGED_CHUNK} B, tree"
    for share, bound in BARS.items() if (tree, percent(0)) in rates else ():
        what = f"{tree}, {percent(share)} changed, with the copy to the host, GB/s"
        report.bar(what, rates[tree, percent(share)], bound, at_least=True)
    slowest = max(row["by Full"] for row in report.rows if "by Full" in row and "hash ms" not in row)
    report.bar("all chunk lengths and shares, time by Full's, the most", slowest, SLOWER, at_least=False)
    trees = [row["by Full"] for row in report.rows if "hash ms" in row and "by Full" in row and "tree" in row["what"]]
    if trees:
        report.bar("trees of all shares, time by Full's, the most", max(trees), SLOWER, at_least=False)
    times = [min(row["launches µs"], row["graph µs"]) for row in report.rows if row["what"] == f"{form}, small"]
    if times:
        what = f"2 MiB, {JUDGED_CHUNK} B, scan, list and gather on the device, the slowest share, µs"
        report.bar(what, max(times), SMALL_US, at_least=False)


def _wrong(rows: Sequence[dict[str, Any]]) -> int:
    return sum(row.get("wrong", 0) for row in rows)


@dataclasses.dataclass(frozen=True)
class Golden:
    """What the Go package has made."""

    lineages: Sequence[lineages.Lineage]
    labelled: Sequence[labelled.Lineage]

    @classmethod
    def read(cls, folder: Path) -> Golden:
        """All of a folder."""
        return cls(lineages.read(folder), labelled.read(folder))


def check(report: Report, driver: Driver, golden: Golden) -> None:
    """Compares the kernels with the Go package."""
    differences = [text for lineage in golden.lineages for text in lineages.compare(driver, lineage)]
    differences += [text for lineage in golden.labelled for text in labelled.compare(driver, lineage)]
    report.never("parts of results that differ from those of the Go package", len(differences))
    report.settings |= lineages.counted(golden.lineages) | labelled.counted(golden.labelled)
    report.remark(*differences[:20])


def run(driver: Driver, golden: Golden, sizes: Sizes, rounds: int) -> Report:
    """The whole benchmark."""
    report = alone.new_report("dedup", {"card": driver.name, "rounds": rounds, "parts": sizes.parts})
    check(report, driver, golden)
    random = np.random.default_rng(7)
    block = random.integers(0, 256, sizes.repeated, np.uint8)
    large(driver, report, block, sizes.large, sizes.parts, rounds, sizes.forms)
    forms = [form for form in sizes.forms if form.chunk == JUDGED_CHUNK]
    report.rows += small(driver, random.integers(0, 256, sizes.small, np.uint8), forms, sizes.spare, 5 * rounds)
    block = random.integers(0, 1 << 64, sizes.labelled // 8, np.uint64).view(np.uint8)
    chunks = [Form(chunk, False) for chunk in sizes.labelled_chunks]
    report.rows += labelling.rows(driver, chunks, block, (0.0, 0.01, 1.0), rounds, min(sizes.parts, labelling.PARTS))
    report.notes += NOTES
    judge(report)
    return report


@click.command()
@click.option("--fatbin", type=click.Path(path_type=Path, exists=True), help="Of dedup.cu; without it nvcc makes it.")
@click.option(
    "--golden",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with lineages of the Go package.",
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the report here, as JSON.")
@click.option("--quick", is_flag=True, help="256 MiB, one round: tells whether it runs, not how fast.")
@click.option("--rounds", default=7, type=click.IntRange(min=1), help="How often each is timed.")
@click.option("--commit", default="", help="Commit of the source, where git cannot tell it.")
def main(fatbin: Path | None, golden: Path, out: Path | None, quick: bool, rounds: int, commit: str) -> None:
    """Compare the kernels of de-duplication with the Go package on this machine's first GPU, and time them."""
    known = Golden.read(golden)
    if not known.lineages or not known.labelled:
        raise click.UsageError(f"{golden} has no lineages: go test writes them, as the head of this file says")
    facts = alone.machine(" ".join(["python -m benchmarks.device.dedup", *sys.argv[1:]]), commit)
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(fatbin or compiled(Path(folder)))
    report = run(driver, known, QUICK if quick else SIZES, 1 if quick else rounds)
    if quick:
        report.only_tried()
    alone.finish(report, facts, out)


if __name__ == "__main__":
    main()
