"""The ceiling of a disk: the best of what was tried, and never below what somebody has reached."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.disk import ceiling, disk
from benchmarks.disk.ceiling import Ceiling, Point

BLOCK = 64 << 10

FIO = """#!/usr/bin/env python3
import json, sys, pathlib
given = dict(a.lstrip("-").partition("=")[::2] for a in sys.argv[1:])
with open({log!r}, "a") as log:
    log.write(json.dumps(given) + "\\n")
pathlib.Path(given["filename"]).touch()
moved = int(given["size"]) - {short}
way = given["rw"]
print("note: something else\\n" + json.dumps({{"jobs": [{{way: {{"io_bytes": moved, "runtime": 500}}}}]}}))
sys.exit({status})
"""


def fio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: int = 0, status: int = 0) -> Path:
    """A program in place of fio that answers as it does."""
    tool = tmp_path / "bin" / "fio"
    tool.parent.mkdir()
    tool.write_text(FIO.format(log=str(tmp_path / "log"), short=short, status=status))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "log"


def without_fio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceiling.shutil, "which", lambda name: None)


def test_every_depth_and_block_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_fio(monkeypatch)
    found = ceiling.sweep(tmp_path, 5 * BLOCK, depths=(1, 3), blocks=(BLOCK, 2 * BLOCK))
    assert {(p.depth, p.block, p.direction) for p in found.points} == {
        (depth, block, way) for depth in (1, 3) for block in (BLOCK, 2 * BLOCK) for way in ("write", "read")
    }
    assert all(p.rate > 0 for p in found.points)
    assert not list(tmp_path.iterdir())
    assert len(found.rows()) == 8


def test_fio_takes_part_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = fio(tmp_path, monkeypatch)
    folder = tmp_path / "disk"
    folder.mkdir()
    found = ceiling.sweep(folder, 4 * BLOCK, depths=(2,), blocks=(BLOCK,))
    assert [(p.tool, p.direction) for p in found.points] == [
        ("threads", "write"),
        ("threads", "read"),
        ("fio io_uring", "write"),
        ("fio io_uring", "read"),
    ]
    assert found.points[2].rate == 4 * BLOCK / 0.5
    jobs = log.read_text().splitlines()
    assert len(jobs) == 3, "the first job makes room, and is not counted"
    assert all('"ioengine": "io_uring"' in job and '"direct": "1"' in job and '"iodepth": "2"' in job for job in jobs)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(("short", "status"), [(1, 0), (0, 3)])
def test_fio_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: int, status: int) -> None:
    fio(tmp_path, monkeypatch, short, status)
    with pytest.raises(RuntimeError, match="fio"):
        ceiling.sweep(tmp_path, 4 * BLOCK, depths=(1,), blocks=(BLOCK,))


def test_the_best_counts_and_whoever_was_faster() -> None:
    points = [
        Point("threads", way, depth, BLOCK, rate)
        for way in ("write", "read")
        for depth, rate in ((1, 5.0), (4, 9.0), (16, 7.0))
    ]
    found = Ceiling(tuple(points))
    assert (found.best("write").depth, found.best("read").rate) == (4, 9.0)
    assert ceiling.at_least(found.rates(), {"disk read": 11.0, "disk write": 2.0}) == {
        "disk read": 11.0,
        "disk write": 9.0,
    }


def test_velocpy_is_never_faster_than_the_ceiling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep that finds a slow disk makes nobody look good."""
    without_fio(monkeypatch)
    slow = Ceiling(tuple(Point("threads", way, 1, BLOCK, 1.0) for way in ("write", "read")))  # type: ignore[arg-type]
    monkeypatch.setattr(ceiling, "sweep", lambda *_: slow)
    report = disk.run(tmp_path, total=8 << 20, size=1 << 20, rounds=3)
    assert [bar.value <= 1 for bar in report.bars] == [True, True]
