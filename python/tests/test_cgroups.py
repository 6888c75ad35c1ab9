"""Limits of control groups, read from a tree of files as the kernel shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import velocpy
from velocpy import _core, budget, cgroups, limits

Tree = Callable[[str, Mapping[str, str]], None]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """Show the package a tree of cgroups: the lines of /proc/self/cgroup, and the texts of files by their paths."""

    def show(membership: str, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "root" / name).write_text(f"{text}\n")
        (tmp_path / "membership").write_text(membership)
        monkeypatch.setattr(cgroups, "ROOT", tmp_path / "root")
        monkeypatch.setattr(cgroups, "MEMBERSHIP", tmp_path / "membership")

    return show


JOB = {"job/memory.max": "1000", "job/memory.current": "300", "job/pids.max": "20", "job/pids.current": "17"}
STEP = {"job/step/memory.max": "max", "job/step/memory.current": "100", "job/step/pids.max": "max"}


def test_the_tightest_group_counts(tree: Tree) -> None:
    tree("0::/job/step\n", JOB | STEP | {"job/step/pids.max": "19", "job/step/pids.current": "1"})
    assert (cgroups.limit("memory"), cgroups.left("memory")) == (1000, 700)
    assert (cgroups.limit("pids"), cgroups.left("pids")) == (19, 3)
    assert budget.available_memory() == 700


def test_version_1(tree: Tree) -> None:
    memory = {"limit_in_bytes": "1000", "usage_in_bytes": "300"}
    files = {f"memory/job/memory.{name}": text for name, text in memory.items()}
    files["memory/memory.limit_in_bytes"] = f"{(1 << 63) - 4096}"  # none
    files |= {"pids/job/pids.max": "20", "pids/job/pids.current": "17"}
    tree("5:memory:/job\n4:cpu,pids:/job\n0::/\n", files)
    assert (cgroups.limit("memory"), cgroups.left("memory")) == (1000, 700)
    assert (cgroups.limit("pids"), cgroups.left("pids")) == (20, 3)


def test_no_limit(tree: Tree) -> None:
    tree("0::/job\n", {"job/pids.max": "max", "job/pids.current": "9"})
    assert (cgroups.limit("pids"), cgroups.left("pids"), cgroups.left("memory")) == (None, None, None)


def test_more_in_use_than_allowed(tree: Tree) -> None:
    """A limit may be lowered below the use."""
    tree("0::/job\n", {"job/pids.max": "5", "job/pids.current": "9"})
    assert cgroups.left("pids") == 0


def test_too_few_threads_in_the_cgroup(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """The core is refused before a thread is started: the trial would take the last ones from other processes."""
    tree("0::/job/step\n", JOB | STEP)
    started: list[int] = []
    monkeypatch.setattr(_core, "startable_threads", lambda count: started.append(count) or count)
    with pytest.raises(
        velocpy.errors.CoreUnavailable, match=r"may start 3 more threads, and the core needs 13: .*pids\.max"
    ):
        limits.require(2)
    assert not started
    (cgroups.ROOT / "job" / "pids.max").write_text("30\n")
    limits.require(2)
    assert started == [13]
