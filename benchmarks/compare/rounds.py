"""Rounds of benchmarks by two cores, each benchmark in a fresh process, the order of the cores alternating."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from benchmarks import ROOT

CORES = ("before", "after")


class Core(NamedTuple):
    """A core, and the Python package that it is used by."""

    library: Path
    #: A folder that ``pip install --target`` installed velocpy into. Without it: the package of this process.
    package: Path | None = None

    def environment(self) -> dict[str, str]:
        """The environment of a process that uses them."""
        found = os.environ | {"VELOCPY_CORE": str(self.library)}
        if self.package is not None:
            found["PYTHONPATH"] = os.pathsep.join(filter(None, [str(self.package), os.environ.get("PYTHONPATH")]))
        return found


Measure = Callable[[str, Core], dict[str, Any]]
"""Measures a benchmark by a core, and returns its report."""


def order(number: int, place: int) -> tuple[str, ...]:
    """The cores in the order of a round, for the benchmark at a place.

    >>> order(0, 0), order(1, 0), order(1, 1)
    (('before', 'after'), ('after', 'before'), ('before', 'after'))
    """
    return CORES if (number + place) % 2 == 0 else CORES[::-1]


def play(
    names: Sequence[str], cores: Mapping[str, Core], rounds: int, measure: Measure
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Benchmark, core and report, as they come. The two cores follow each other in every benchmark of every round."""
    for number in range(rounds):
        for place, name in enumerate(names):
            for core in order(number, place):
                began = time.perf_counter()
                result = measure(name, cores[core])
                took = time.perf_counter() - began
                click.echo(f"round {number + 1} of {rounds}: {name}, {core}: {took:.1f} s", err=True)
                yield name, core, result


def measured(name: str, core: Core, folder: Path) -> dict[str, Any]:
    """The report of a benchmark that runs in a process with this core."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "benchmarks", name, "--brief", "--folder", str(folder), "--out", out]
        done = subprocess.run(command, cwd=ROOT, env=core.environment(), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise click.ClickException(f"{name} with {core.library} failed: {(done.stderr or done.stdout)[-2000:]}")
        (written,) = Path(out).glob(f"{name}*.json")  # shot and coldstart add the names of their cells
        result: dict[str, Any] = json.loads(written.read_text(encoding="utf-8"))
    return result
