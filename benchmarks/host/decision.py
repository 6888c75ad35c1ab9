"""One eviction decision over a full allocation table, alone and by the engine.

The benchmarks are Go's; this runs them and keeps what they say.
"""

from __future__ import annotations

from typing import Any

from velocpy.bench.report import Report
from velocpy.bench.timing import median

from . import gobench

BAR_US = 20


def run(rounds: int = 9) -> Report:
    """Runs Go's BenchmarkDecision from a checkout, of both packages that have one; the median of the rounds counts."""
    command = gobench.command(["policy/evict", "policy/engine"], "^BenchmarkDecision$", rounds)
    found = gobench.measure(command)
    times = {name.removeprefix("Decision/"): [ns / 1e3 for ns in units["ns/op"]] for name, units in found.items()}
    report = Report("decision", {"rounds": rounds, "fragments": 4096, "go": " ".join(command)})
    for name, values in times.items():
        row: dict[str, Any] = {"case": name, "median µs": median(values), "least µs": min(values), "all µs": [values]}
        report.rows.append(row)
        report.bar(f"eviction decision at 4096 fragments, {name}, µs", row["median µs"], BAR_US, at_least=False)
    return report
