"""Benchmarks of Go, run from a checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence

import click

from benchmarks import ROOT

LINE = re.compile(r"^Benchmark(?P<name>\S+?)(?:-\d+)?\s+\d+\s+(?P<rest>[\d.].*)$", re.MULTILINE)

Measured = dict[str, dict[str, list[float]]]
"""By the benchmark's name and by the unit: the value of each round."""


def command(packages: Sequence[str], name: str, rounds: int, duration: str = "") -> list[str]:
    """The command that runs a benchmark. One package at a time: the next would be built while one is measured."""
    choice = ["-run", "^$", "-bench", name, "-count", str(rounds), *(["-benchtime", duration] if duration else [])]
    return ["go", "test", "-p", "1", *(f"./gocore/{package}" for package in packages), *choice]


def measure(words: Sequence[str]) -> Measured:
    """What a command's benchmarks say.

    Raises
    ------
    click.ClickException
        There is no Go, or it says nothing that is understood.
    """
    if shutil.which("go") is None:
        raise click.ClickException("this benchmark needs Go")
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = parse(said)
    if not found:
        raise click.ClickException(f"Go said nothing that is understood: {said}")
    return found


def parse(said: str) -> Measured:
    """The values of each benchmark, in the order of the lines."""
    found: Measured = {}
    for line in LINE.finditer(said):
        words = line["rest"].split()
        for value, unit in zip(words[::2], words[1::2], strict=True):
            found.setdefault(line["name"], {}).setdefault(unit, []).append(float(value))
    return found
