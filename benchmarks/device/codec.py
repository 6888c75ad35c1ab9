"""The codec's CUDA kernels: compared with the Go codec byte for byte, then timed beside a plain copy on the device.

It needs a CUDA driver, NumPy and click, and neither an installed velocpy nor a framework, so that it also runs as a
file of a checkout on a machine that has nothing but the kernels. From the root of the checkout::

    go test ./gocore/reduction/codec -run TestWriteContainers -args -containers "$PWD/containers"
    nvcc -std=c++17 -O3 -fatbin -arch=native -o velocpy_reduction.fatbin cuda/velocpy_reduction.cu
    python benchmarks/device/codec.py --fatbin velocpy_reduction.fatbin --golden containers --out codec.json

The containers need Go and no GPU; they may come from another machine. `-arch=native` needs the GPU.

Where `pip install nvidia-nvcomp-cu13` has brought NVIDIA's nvCOMP, its compressors run beside, on the same data
(`benchmarks/device/nvcomp.py`). They begin behind all rows of the kernels, and nothing new after `--limit` seconds.

The exit status is 1 if a byte was wrong. Speeds do not change it.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

if not __package__:  # run as a file
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.device import alone, containers, nvcomp
from benchmarks.device.encoded import ALL_MODES, THREADS, UNTOUCHED, Region, fill, tile
from benchmarks.device.kernels import Bytes, Driver, Work, timed
from benchmarks.device.samples import Sample, samples

if TYPE_CHECKING:
    from velocpy.bench.report import Report

BLOCK = 64 << 20
LARGE = 256 << 20
LEAST = 1000.0  # GB/s
OURS = "velocpy"
KINDS = ("bytes", "fp16", "bf16", "fp32", "fp64")
NOTES = (
    "Rates are GB/s of plain bytes, medians of the rounds, by CUDA events. Encoding includes the clearing of its "
    "state. A copy counts each byte once; it reads and writes it. locate: a kernel finds where the payloads begin.",
    "suited: the modes that a planner allows which knows the data; all: every mode. Data repeat after 64 MiB.",
)


def tiled(driver: Driver, block: Bytes, size: int) -> int:
    """New memory of the device, filled with copies of the block, of which the size is a multiple."""
    at = driver.allocate(size)
    tile(driver, at, block, size)
    return at


def wrong_bytes(region: Region, back: int, block: Bytes) -> int:
    """Decodes into `back` and counts the bytes that differ from copies of the block; chunks with a fault count too."""
    fill(region.driver, back, UNTOUCHED, region.size)
    region.locate()
    region.decode(back)
    wrong = int(np.count_nonzero(region.faults()))
    for offset in range(0, region.size, block.size):
        wrong += int(np.count_nonzero(region.driver.download(back + offset, block.size) != block))
    return wrong


def rates(region: Region, back: int, modes: int, rounds: int) -> dict[str, float]:
    """GB/s of plain bytes; a copy that is queued ahead keeps the host's part out of the time."""
    driver = region.driver

    def copy() -> None:
        driver.copy(back, region.plain, region.size)

    def locate_and_decode() -> None:
        region.locate_on_device()
        region.decode(back)

    works: dict[str, Work] = {
        "encode": lambda: region.encode(modes),
        "decode": lambda: region.decode(back),
        "locate and decode": locate_and_decode,
        "copy": copy,
    }
    times = timed(driver, works, rounds, copy)
    return {f"{name} GB/s": region.size / statistics.median(took) / 1e6 for name, took in times.items()}


def measure(driver: Driver, sample: Sample, size: int, rounds: int) -> Iterator[dict[str, Any]]:
    """A row for the suited modes and one for all; bytes are compared before the timed rounds and behind them."""
    reference = 0 if sample.reference is None else tiled(driver, sample.reference, size)
    region = Region(driver, sample.kind, size, tiled(driver, sample.plain, size), reference)
    back = driver.allocate(size)
    for label, modes in (("suited", sample.suited), ("all", ALL_MODES)):
        region.encode(modes)
        wrong = wrong_bytes(region, back, sample.plain)
        row = {"data": sample.name, "MiB": size >> 20, "codec": OURS, "modes": label, "ratio": size / region.length()}
        row |= rates(region, back, modes, rounds)
        shares = region.locate().shares()
        yield row | {"wrong bytes": wrong + wrong_bytes(region, back, sample.plain), "chunks": shares}
    driver.release()


def check(report: Report, driver: Driver, golden: Sequence[containers.Container], rounds: int) -> None:
    """Compares the kernels with the Go codec, and decodes damaged containers."""
    differences = [text for container in golden for text in containers.compare(driver, container)]
    report.never("parts of containers and of restored regions that differ from those of the Go codec", len(differences))
    damaged = containers.damage(driver, [c for c in golden if "-all" in c.name], rounds)
    report.never("damaged chunks without a fault that differ, and writes out of bounds", len(damaged.wrong))
    counts = {"containers": len(golden), "alignments": len(containers.SHIFTS)}
    report.settings |= counts | {"damaged chunks": damaged.chunks, "faults found": damaged.faults}
    report.remark(*(differences + damaged.wrong)[:20])


def judge(report: Report) -> None:
    """The bars of velocpy's rows: wrong bytes, and the least rates of the large regions with suited modes."""
    rows = [row for row in report.rows if row.get("codec", OURS) == OURS]
    report.never("bytes that differ after encoding and decoding", sum(row["wrong bytes"] for row in rows))
    large = [row for row in rows if row["modes"] == "suited" and row["MiB"] << 20 >= LARGE]
    for what in ("encode", "decode") if large else ():
        least = min(row[f"{what} GB/s"] for row in large)
        report.bar(f"{what}, suited modes, the least of all data, GB/s", least, LEAST, at_least=True)


def blocks_per_processor(driver: Driver) -> int:
    """How many blocks of threads run on one processor at once, by the kernel with the fewest."""
    names = [f"velocpy_{form}" for k in KINDS for form in (f"encode_{k}", f"encode_{k}_reference", f"decode_{k}")]
    return min(driver.blocks_per_processor(name, THREADS) for name in names)


def new_report(settings: dict[str, Any]) -> Report:
    """The report of this benchmark."""
    return alone.new_report("codec", settings)


def run(
    driver: Driver,
    golden: Sequence[containers.Container],
    sizes: Sequence[int],
    rounds: int,
    flips: int,
    peer: nvcomp.Library | None = None,
    limit: float = 60,
) -> Report:
    """The whole benchmark: `rounds` of each timing, and so many bits that are flipped in each chunk, one at a time.

    With a peer, nvCOMP is measured beside, for about `limit` seconds at most.
    """
    settings = {"card": driver.name, "rounds": rounds, "blocks per processor": blocks_per_processor(driver)}
    report = new_report(settings)
    check(report, driver, golden, flips)
    for size in sizes:
        for sample in samples(min(size, BLOCK)):
            report.rows += measure(driver, sample, size, rounds)
    report.notes += NOTES
    judge(report)
    nvcomp.beside(report, driver, peer, sizes, list(samples(min(BLOCK, *sizes))) if peer else (), limit)
    return report


@click.command()
@click.option("--fatbin", required=True, type=click.Path(path_type=Path, exists=True), help="The codec's kernels.")
@click.option(
    "--golden",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with containers of the Go codec.",
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the report here, as JSON.")
@click.option("--quick", is_flag=True, help="64 MiB, few repetitions: tells whether it runs, not how fast.")
@click.option("--rounds", default=9, type=click.IntRange(min=1), help="How often each is timed.")
@click.option("--limit", default=60.0, help="Seconds after which nvCOMP, where it is installed, begins nothing new.")
@click.option("--commit", default="", help="Commit of the source, where git cannot tell it.")
def main(fatbin: Path, golden: Path, out: Path | None, quick: bool, rounds: int, limit: float, commit: str) -> None:
    """Compare the codec's kernels with the Go codec on this machine's first GPU, and time them."""
    known = containers.read(golden)
    if not known:
        raise click.UsageError(f"{golden} has no containers: go test writes them, as the head of this file says")
    facts = alone.machine(" ".join(["python benchmarks/device/codec.py", *sys.argv[1:]]), commit)
    sizes = (BLOCK,) if quick else (LARGE, 1 << 30)
    repeated, flips = (3, 3) if quick else (rounds, 40)
    report = run(Driver(fatbin), known, sizes, repeated, flips, nvcomp.load(), limit)
    if quick:
        report.only_tried()
    alone.finish(report, facts, out)


if __name__ == "__main__":
    main()
