"""``python -m benchmarks compare``: the core of a change beside that of the commit before it."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks import ON_GPU
from benchmarks.engines.contenders import has_gpu
from velocpy.bench import machine
from velocpy.bench.report import Report
from velocpy.bench.timing import median
from velocpy.cli.output import examples, json_option, message

from .medians import DRAWS, SHARE, compared
from .rounds import CORES, Core, measured, play
from .timings import FORMS, Timing, timings

BAR = 1.03
LOUD = 0.10  # a bar with more noise says little
_COLD = "coldstart: the comparison does not touch the machine's memory before; a system gives out fresh pages first."
EXAMPLES = (
    "python -m benchmarks compare --before old.so --after new.so --before-commit 12ab --after-commit 34cd",
    "python -m benchmarks compare disk durable --before old.so --after new.so --rounds 9",
    "python -m benchmarks compare --before old.so --before-package old --after new.so",
)


class Series:
    """The values of one timing, round by round, of both cores."""

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self.values: dict[str, list[float]] = {core: [] for core in CORES}

    def complete(self, rounds: int) -> bool:
        """Whether every round of both cores has it; a ratio needs positive values."""
        return all(len(values) == rounds and min(values) > 0 for values in self.values.values())


def report_of(reports: Iterable[tuple[str, str, dict[str, Any]]], settings: dict[str, Any]) -> Report:
    """Compares the timings of all rounds; `settings` has the number of rounds."""
    found: dict[tuple[str, str], Series] = {}
    differences: dict[str, int] = {}
    for name, core, result in reports:
        faults = sum(int(bar["value"]) for bar in result["bars"] if not bar["measured"])
        differences[core] = differences.get(core, 0) + faults
        for what, timing in timings(result).items():
            found.setdefault((name, what), Series(timing)).values[core].append(timing.value)
    report = Report("compare", settings)
    missing = _add_rows(report, found)
    for name in dict.fromkeys(name for name, _ in found):
        worst = max((row["ratio"] - row["noise"] for row in report.rows if _held(row, name)), default=None)
        if worst is not None:
            report.bar(f"{name}: the worst ratio of medians, less its noise", worst, BAR, at_least=False)
    report.never("timings of velocpy that a round lacks", len(missing))
    for core, count in differences.items():
        report.never(f"{core}: faults that the benchmarks counted, such as bytes that differ", count)
    report.notes += [
        "Each benchmark runs in a fresh process, by one core and then by the other; every round reverses the order. "
        f"{_packages(settings)} A ratio above 1 is a core that is slower than the one before: of "
        "times after by before, of rates before by after. Spread: the interquartile range of the "
        "rounds by their median.",
        f"Noise, from the same rounds, a core against itself: {DRAWS} times two sets of as many rounds are drawn with "
        f"replacement from those of one core; {SHARE:.0%} of the ratios of their medians exceed 1 by no more. The "
        "larger one of the two cores counts. The bar holds where the ratio is at most 1.03 + noise.",
        _hidden(report.rows),
        *slower(report.rows),
        "Tails, first calls, and baselines that use no core are shown, and not held to the bar.",
        *(_COLD for name in {name for name, _ in found} if name == "coldstart"),
        *(f"Missing in a round: {text}." for text in missing),
    ]
    return report


def _add_rows(report: Report, found: dict[tuple[str, str], Series]) -> list[str]:
    """Adds a row for each timing, and returns the names of those that a round lacks; baselines may come and go."""
    missing = []
    for (name, what), series in found.items():
        if not series.complete(report.settings["rounds"]):
            if not series.timing.baseline:
                missing.append(f"{name}: {what}")
            continue
        each = compared(series.values["before"], series.values["after"], rate=series.timing.rate)
        report.rows.append(
            {
                "benchmark": name,
                "timing": what,
                "before": each.before,
                "after": each.after,
                "ratio": each.ratio,
                "spread before": each.spread_before,
                "spread after": each.spread_after,
                "noise": each.noise,
                "bar": _verdict(series.timing, each.ratio, each.noise),
                "rounds": [series.values],
            }
        )
    return missing


def _packages(settings: dict[str, Any]) -> str:
    own = [core for core in CORES if settings.get(f"{core}: own package")]
    if own:
        return f"The Python package of the core {' and of that '.join(own)} is its own, as their interfaces differ."
    return "The Python package is the same for both."


def _hidden(rows: list[dict[str, Any]]) -> str:
    """How many timings are so noisy that their bar says little."""
    held = [row["noise"] for row in rows if row["bar"] in ("holds", "misses")]
    loud = sum(noise > LOUD for noise in held)
    return f"{loud} of {len(held)} timings have more noise than {LOUD:.0%}, which hides as much."


def slower(rows: Iterable[dict[str, Any]]) -> list[str]:
    """What the timings of a benchmark say together: a small loss of all is no noise, even if each holds its bar."""
    ratios: dict[str, list[float]] = {}
    for row in rows:
        if row["bar"] in ("holds", "misses"):
            ratios.setdefault(row["benchmark"], []).append(row["ratio"])
    return [
        f"{name}: {sum(ratio > 1 for ratio in found)} of {len(found)} timings are slower, "
        f"median ratio {median(found):.3g}."
        for name, found in ratios.items()
    ]


def _verdict(timing: Timing, ratio: float, noise: float) -> str:
    if timing.baseline:
        return "baseline"
    if not timing.held:
        return "shown"
    return "holds" if ratio - noise <= BAR else "misses"


def _held(row: dict[str, Any], name: str) -> bool:
    return row["benchmark"] == name and row["bar"] in ("holds", "misses")


def digest(core: Path) -> str:
    """The beginning of a core's SHA-256, which tells cores of the same commit apart."""
    return hashlib.sha256(core.read_bytes()).hexdigest()[:12]


_core = click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True)
_package = click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True)
_folder = click.Path(path_type=Path, file_okay=False, resolve_path=True)


@click.command(epilog=examples(*EXAMPLES), context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[NAMES]...", type=click.Choice(list(FORMS)))
@click.option("--before", type=_core, required=True, help="The core to compare with: a libvelocpy_core.so.")
@click.option("--after", type=_core, required=True, help="The core that is compared.")
@click.option("--before-package", type=_package, help="Where `pip install --target` put its package.")
@click.option("--after-package", type=_package, help="The same for the other core.")
@click.option("--before-commit", default="unknown", help="The commit that the first core was built from.")
@click.option("--after-commit", default="unknown", help="The commit that the other core was built from.")
@click.option("--rounds", type=click.IntRange(min=2), default=5, show_default=True, help="Runs of each core.")
@click.option("--folder", type=_folder, help="Where the disk tier lies; default: a temporary folder.")
@click.option("--out", type=_folder, help="Write compare.json here.")
@json_option
def main(
    names: tuple[str, ...],
    before: Path,
    after: Path,
    before_package: Path | None,
    after_package: Path | None,
    before_commit: str,
    after_commit: str,
    rounds: int,
    folder: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run the benchmarks NAMES (when none is named all that can be compared) by two cores, in turns."""
    names = tuple(dict.fromkeys(names or (name for name in FORMS if name not in ON_GPU or has_gpu())))
    facts = machine.describe(" ".join(["python -m benchmarks", *sys.argv[1:]]))
    settings: dict[str, Any] = {"rounds": rounds, "benchmarks": " ".join(names)}
    settings |= {"before": before_commit, "after": after_commit}
    settings |= {"core before": digest(before), "core after": digest(after)}
    both = {"before": Core(before, before_package), "after": Core(after, after_package)}
    settings |= {f"{name}: own package": True for name, core in both.items() if core.package is not None}
    with tempfile.TemporaryDirectory() as scratch:
        measure = partial(measured, folder=folder or Path(scratch))
        report = report_of(play(names, both, rounds, measure), settings)
    if as_json:
        click.echo(message("benchmark", report.facts(facts)))
    else:
        report.show()
    if out is not None:
        click.echo(f"  written: {report.save(out, facts)}", err=as_json)
