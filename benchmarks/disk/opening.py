"""How long a durable store takes to be there again: with a million checkpoints, and after a kill amid writing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import velocpy
from velocpy.bench.report import Report
from velocpy.bench.stamped import Stamped
from velocpy.bench.timing import median

from . import processes

BAR = 1.0
COMPARED = 1000


def run(
    folder: Path,
    count: int = 1_000_000,
    size: int = 4 << 10,
    total: int = 10 << 30,
    part: int = 16 << 20,
    rounds: int = 3,
) -> Report:
    """Opens, lists and restores in new processes; kills writers halfway and opens what they left."""
    report = Report(
        "opening",
        {"rounds": rounds, "checkpoints": count, "bytes": size, "total_mib": total >> 20, "part_kib": part >> 10},
    )
    with tempfile.TemporaryDirectory(dir=folder) as path:
        _many(report, Path(path), count, size, rounds)
    _killed(report, folder, part, total, rounds)
    report.notes += [
        "Each open is that of a new process, which has loaded the core before; with it goes the time to list the keys "
        "and to restore the first checkpoint. 'cold': the store's files were not in the page cache.",
        "'velocpy ls' is the whole command, with the start of Python.",
        "'killed': a process writes, and dies by SIGKILL when half of the total is acknowledged. What it was told is "
        f"durable has to be there, and all that is there is compared; of the {count} checkpoints "
        f"{min(COMPARED, count)} are, chosen at random.",
    ]
    return report


def _many(report: Report, path: Path, count: int, size: int, rounds: int) -> None:
    stamped = Stamped(size)
    began = time.perf_counter()
    with velocpy.open(
        path, host=256 << 20, disk=count * size * 3 // 2 + (1 << 30), tuning=velocpy.Tuning(flush="eager")
    ) as store:
        history = store.history(processes.HISTORY)
        for key in range(count):
            history.checkpoint(key, u=stamped.of(key))
        store.wait("disk")
        written = time.perf_counter() - began
    report.rows.append({"what": "written, all durable", "checkpoints": count, "s": written})
    everything = []
    for what, mode, cold in (
        ("open", "a", False),
        ("open, cold", "a", True),
        ('open, mode="r"', "r", False),
        ('open, mode="r", cold', "r", True),
    ):
        seen = []
        for _ in range(rounds):
            if cold:
                _forget(path)
            seen.append(processes.opened(path, size, count, compare=COMPARED, mode=mode))
        everything += seen
        _row(report, what, seen)
        report.bar(f"{what}: s among {count}", report.rows[-1]["open s"], BAR, at_least=False)
    _list(report, path, count, rounds)
    _nothing_lost(report, f"among {count}", everything)


def _nothing_lost(report: Report, which: str, seen: list[dict[str, Any]]) -> None:
    report.never(f"acknowledged checkpoints that are missing, {which}", sum(s["missing"] for s in seen))
    report.never(f"checkpoints that differ, {which}", sum(s["different"] for s in seen))


def _row(report: Report, what: str, seen: list[dict[str, Any]]) -> None:
    row: dict[str, Any] = {"what": what, "checkpoints": seen[-1]["checkpoints"]}
    row |= {name: median([s[name] for s in seen]) for name in ("open s", "list s", "first restore s", "peak MiB")}
    report.rows.append(row | {"seen": seen})


def _list(report: Report, path: Path, count: int, rounds: int) -> None:
    """The command: its histories, and a line for each checkpoint of one."""
    for what, arguments, lines in (
        ("velocpy ls", [], 1),
        ("velocpy ls, every checkpoint", [processes.HISTORY], count),
        ("velocpy ls --json, every checkpoint", [processes.HISTORY, "--json"], count),
    ):
        seconds = []
        for _ in range(rounds):
            began = time.perf_counter()
            listed = _lines([sys.executable, "-m", "velocpy", "ls", str(path), *arguments])
            seconds.append(time.perf_counter() - began)
            if listed < lines:
                raise RuntimeError(f"{what}: {listed} lines")
        report.rows.append({"what": what, "checkpoints": count, "s": median(seconds), "seconds": seconds})
        report.bar(f"{what}: s among {count}", median(seconds), BAR, at_least=False)


def _lines(command: list[str]) -> int:
    """How many lines a command prints; none of them is kept."""
    count = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while chunk := process.stdout.read(1 << 16):
            count += chunk.count(b"\n")
    if process.returncode != 0:
        raise RuntimeError(f"{command}: {process.returncode}")
    return count


def _forget(path: Path) -> None:
    """Takes the store's files, which are clean, out of the page cache."""
    for file in path.iterdir():
        fd = os.open(file, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def _killed(report: Report, folder: Path, part: int, total: int, rounds: int) -> None:
    seen = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=folder) as path:
            acknowledged = _kill_halfway(Path(path), part, total)
            seen.append(processes.opened(Path(path), part, acknowledged, compare=total // part))
    what = f"killed amid {total >> 20} MiB"
    _row(report, what, seen)
    report.bar(f"{what}: s to open", report.rows[-1]["open s"], BAR, at_least=False)
    _nothing_lost(report, what, seen)


def _kill_halfway(path: Path, part: int, total: int) -> int:
    """How many checkpoints, the first ones, a process was told are durable before it died."""
    with subprocess.Popen(processes.command("write", path, part, total), stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        acknowledged = 0
        for acknowledged, line in enumerate(writer.stdout, 1):
            assert int(line) == acknowledged - 1
            if 2 * acknowledged * part >= total:
                break
        writer.kill()
        acknowledged += len(writer.stdout.readlines())  # what it said before it died
        if writer.wait() != -signal.SIGKILL:
            raise RuntimeError(f"the writer ended by itself: {writer.returncode}")
    return acknowledged
