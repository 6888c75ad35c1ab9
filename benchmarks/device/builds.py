"""Builds of the codec's kernels beside each other, in turns on one device: what a change of their source gains.

    python -m benchmarks.device.builds --golden containers before.fatbin after.fatbin --out builds.json

Each build is compared with the Go codec first, as `benchmarks/device/codec.py` does, whose head says how fatbins and
containers are made. Other columns of rates are those of the builds by name; `by BUILD` is a rate by the first build's.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.device import alone, codec, containers
from benchmarks.device.encoded import ALL_MODES, Region
from benchmarks.device.kernels import Driver, Work, timed
from benchmarks.device.samples import Sample, samples

if TYPE_CHECKING:
    from velocpy.bench.report import Report


def measure(drivers: Mapping[str, Driver], sample: Sample, size: int, rounds: int) -> Iterator[dict[str, Any]]:
    """Rows of encoding and decoding with the suited modes and with all, and of what was wrong, by any build."""
    first = next(iter(drivers.values()))
    plain = codec.tiled(first, sample.plain, size)
    reference = 0 if sample.reference is None else codec.tiled(first, sample.reference, size)
    back = first.allocate(size)
    regions = {name: Region(driver, sample.kind, size, plain, reference) for name, driver in drivers.items()}

    def copy() -> None:
        first.copy(back, plain, size)

    for label, modes in (("suited", sample.suited), ("all", ALL_MODES)):
        wrong = 0
        for region in regions.values():
            region.encode(modes)
            wrong += codec.wrong_bytes(region, back, sample.plain)
        works: dict[str, dict[str, Work]] = {
            "encode": {name: partial(region.encode, modes) for name, region in regions.items()},
            "decode": {name: partial(region.decode, back) for name, region in regions.items()},
        }
        for what, by_build in works.items():
            took = timed(first, by_build | {"copy": copy}, rounds, copy)
            rates = {name: size / statistics.median(times) / 1e6 for name, times in took.items()}
            row: dict[str, Any] = {"data": sample.name, "MiB": size >> 20, "modes": label, "what": what}
            row |= {f"{name} GB/s": rate for name, rate in rates.items()}
            row |= {f"by {name}": rates[name] / rates[next(iter(regions))] for name in list(regions)[1:]}
            yield row | {"wrong bytes": wrong} | {f"{name} ms": times for name, times in took.items()}
    for driver in drivers.values():
        driver.release()


def run(
    drivers: Mapping[str, Driver], golden: Sequence[containers.Container], sizes: Sequence[int], rounds: int
) -> Report:
    """The whole comparison."""
    first = next(iter(drivers.values()))
    report = alone.new_report("builds", {"card": first.name, "rounds": rounds})
    for name, driver in drivers.items():
        driver.stream = first.stream  # so that events of one stream time them all
        report.settings[f"blocks per processor, {name}"] = codec.blocks_per_processor(driver)
        differences = [text for container in golden for text in containers.compare(driver, container)]
        report.never(f"{name}: parts that differ from those of the Go codec", len(differences))
        report.remark(*differences[:5])
    for size in sizes:
        for sample in samples(min(size, codec.BLOCK)):
            report.rows += measure(drivers, sample, size, rounds)
    report.never("bytes that differ after encoding and decoding", sum(row["wrong bytes"] for row in report.rows))
    return report


@click.command()
@click.argument("fatbins", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--golden", required=True, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the report here, as JSON.")
@click.option("--rounds", default=9, type=click.IntRange(min=1), help="How often each is timed.")
def main(fatbins: tuple[Path, ...], golden: Path, out: Path | None, rounds: int) -> None:
    """Time the builds FATBINS of the codec's kernels, the first of which the others are compared with."""
    known = containers.read(golden)
    facts = alone.machine(" ".join(["python -m benchmarks.device.builds", *sys.argv[1:]]), "")
    drivers = {path.stem: Driver(path) for path in fatbins}
    alone.finish(run(drivers, known, (codec.LARGE,), rounds), facts, out)


if __name__ == "__main__":
    main()
