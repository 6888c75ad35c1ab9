"""One eviction decision over a full allocation table, alone and by the engine.

The benchmarks are Go's; this runs them and keeps what they say.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import click

from benchmarks import ROOT
from velocpy.bench.report import Report
from velocpy.bench.timing import median

BAR_US = 20
LINE = re.compile(r"^Benchmark(?P<name>Decision\S*?)(?:-\d+)?\s+\d+\s+(?P<ns>[\d.]+) ns/op", re.MULTILINE)


def run(rounds: int = 9) -> Report:
    """Runs Go's BenchmarkDecision from a checkout, of both packages that have one; the median of the rounds counts."""
    if shutil.which("go") is None:
        raise click.ClickException("the benchmark 'decision' needs Go")
    # One at a time: the second would be built while the first is measured.
    packages = ["./gocore/policy/evict", "./gocore/policy/engine"]
    command = ["go", "test", "-p", "1", *packages, "-run", "^$", "-bench", "^BenchmarkDecision$", "-count", str(rounds)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    times: dict[str, list[float]] = {}
    for match in LINE.finditer(said):
        times.setdefault(match["name"].removeprefix("Decision/"), []).append(float(match["ns"]) / 1e3)
    if not times:
        raise click.ClickException(f"Go said nothing that is understood: {said}")
    report = Report("decision", {"rounds": rounds, "fragments": 4096, "go": " ".join(command)})
    for name, values in times.items():
        row: dict[str, Any] = {"case": name, "median µs": median(values), "least µs": min(values), "all µs": [values]}
        report.rows.append(row)
        report.bar(f"eviction decision at 4096 fragments, {name}, µs", row["median µs"], BAR_US, at_least=False)
    return report
