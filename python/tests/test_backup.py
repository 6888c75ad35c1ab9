"""Copies of stores that are being written to."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import velocpy
from velocpy import ondisk
from velocpy.backup import backup

SIZES = {"host": "8MiB", "disk": "256MiB"}


def numbered(seed: int) -> np.ndarray:
    """An array of which the first element tells all the others."""
    array = np.random.default_rng(seed).integers(0, 1 << 62, size=2000)
    array[0] = seed
    return array


def test_beside_a_writer(tmp_path: Path) -> None:
    stop = threading.Event()
    begun, durable = (
        [50],
        [0],
    )  # the latest seed that the writer has begun with, and the latest that is durable for sure

    with velocpy.open(tmp_path / "store", **SIZES) as store:
        history = store.history("h")

        def write() -> None:
            while not stop.is_set():
                begun[0] += 1
                ticket = history.checkpoint(begun[0] % 50, u=numbered(begun[0]))
                if begun[0] % 10 == 0:
                    ticket.wait("disk")
                    durable[0] = begun[0]

        for seed in range(50):
            history.checkpoint(seed, u=numbered(seed))
        history.wait(
            "disk"
        )  # from now on each key has a version on disk: a newer one takes its place when it is durable
        writer = threading.Thread(target=write)
        writer.start()
        try:
            for n in range(5):
                done = store.backup(tmp_path / f"copy{n}")
                assert done.damaged == 0
                assert done.checkpoints == 50
                seen = begun[0]
                while durable[0] <= seen:
                    stop.wait(0.001)
        finally:
            stop.set()
            writer.join()
    before = 0
    for n in range(5):
        assert ondisk.check(tmp_path / f"copy{n}", read_data=True).sound
        with velocpy.open(tmp_path / f"copy{n}", mode="r", host="8MiB") as copy:
            newest = 0
            for key in range(50):
                array = copy.history("h").restore(key)["u"]
                seed = int(array[0])
                assert seed % 50 == key
                np.testing.assert_array_equal(array, numbered(seed))
                newest = max(newest, seed)
        assert newest > before
        before = newest


def test_a_copy_goes_on_as_a_store(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "store", **SIZES) as store:
        history = store.history("h")
        history.retain(last=3)
        for key in range(5):
            history.checkpoint(key, u=numbered(key))
        store.history("other").checkpoint("text", a=np.arange(3), b=np.float32(2))
    done = backup(tmp_path / "store", tmp_path / "below" / "copy")
    assert (done.checkpoints, done.older, done.damaged) == (4, 0, 0)
    with velocpy.open(tmp_path / "below" / "copy", **SIZES) as copy:
        assert sorted(copy.history("h")) == [2, 3, 4]
        copy.history("h").checkpoint(5, u=numbered(5))
        copy.wait("disk")
    with velocpy.open(tmp_path / "below" / "copy", mode="r", host="8MiB") as copy:
        assert sorted(copy.history("h")) == [3, 4, 5]
        assert copy.history("other").restore("text")["b"] == 2
    assert sorted(p.name for p in (tmp_path / "below").iterdir()) == ["copy"]


def test_refusals_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with velocpy.open(tmp_path / "store", **SIZES) as store:
        store.history("h").checkpoint(0, u=numbered(1))
        with pytest.raises(velocpy.errors.InvalidArgument, match="not an empty directory"):
            store.backup(tmp_path / "full")
        (tmp_path / "store").rename(tmp_path / "moved")
        with pytest.raises(velocpy.errors.InvalidArgument, match="any more"):
            store.backup(tmp_path / "copy")
        assert backup(tmp_path / "moved", tmp_path / "copy").checkpoints == 1
    with pytest.raises(velocpy.errors.NotAStore):
        backup(tmp_path / "full", tmp_path / "copy2")
    with velocpy.open(host="8MiB") as memory, pytest.raises(velocpy.errors.InvalidArgument, match="durable"):
        memory.backup(tmp_path / "copy3")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy", "full", "moved"]


def test_the_command(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "store", **SIZES) as store:
        store.history("h").checkpoint(0, u=numbered(1)).wait("disk")
        command = [sys.executable, "-m", "velocpy", "backup", str(tmp_path / "store"), str(tmp_path / "copy")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 checkpoints, ")
