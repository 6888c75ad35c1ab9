"""What the host does alone where it has no device: decoding, de-duplication, and the search for a schedule.

The benchmarks are Go's; each has one goroutine. This runs them and keeps what they say.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from velocpy.bench.report import Report
from velocpy.bench.timing import median

from . import gobench


class Kind(NamedTuple):
    """A benchmark of Go: its packages and its name, and of what it says the unit, the figure's name, scale and bar."""

    packages: tuple[str, ...]
    name: str
    unit: str
    #: With the benchmark's own name in the place of the braces.
    words: str
    scale: float
    bound: float
    at_least: bool


KINDS = (
    Kind(("reduction/codec",), "^BenchmarkDecode$", "MB/s", "chunks, {}, GB/s", 1e-3, 1, True),
    Kind(("reduction/object",), "^BenchmarkDecode$", "MB/s", "checkpoints, {}, GB/s", 1e-3, 1, True),
    Kind(
        ("reduction/dedup",),
        "^BenchmarkUnchanged$/^(64|128|512|1024|4096)$/^tree$/^blocks=true$",
        "of-plain",
        "de-duplication of what has not changed, {}, by the rate of XXH3 alone",
        1,
        0.6,
        True,
    ),
    Kind(("policy/schedule",), "^BenchmarkThousand$", "ns/op", "schedule of 1000 checkpoints, {}, ms", 1e-6, 10, False),
)
NOTES = (
    "chunks: payloads of the codec's chunks, with their hashes. checkpoints: all containers of one, in memory, with "
    "the hashes; 'object' decodes the reference, too, where there is one. Rates are those of the plain bytes.",
    "de-duplication compares digests of 4 KiB first, as stores do. XXH3 alone hashes chunks of the same length.",
)


def run(rounds: int = 5, duration: str = "") -> Report:
    """Runs Go's benchmarks from a checkout; the median of the rounds counts."""
    report = Report("twins", {"rounds": rounds})
    report.measure({"load at the start": round(os.getloadavg()[0], 1)})
    for kind in KINDS:
        for name, values in gobench.measure(gobench.command(kind.packages, kind.name, rounds, duration)).items():
            figures = [kind.scale * value for value in values[kind.unit]]
            case = re.sub(r"^Decode/|^Thousand/|^Unchanged/|/tree|/blocks=true", "", name).replace("_", " ")
            what = kind.words.format(case)
            report.rows.append({"what": what, "median": median(figures), "all": figures})
            report.bar(what, median(figures), kind.bound, at_least=kind.at_least)
    report.notes += NOTES
    return report
