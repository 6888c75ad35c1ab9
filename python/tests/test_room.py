"""The room that an open store takes: on disk little more than its checkpoints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import velocpy


def bytes_on_disk(directory: Path) -> int:
    """What the files of a directory take, those without a name that this process has open among them."""
    named = [file.stat() for file in directory.rglob("*") if file.is_file()]
    nameless = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            if str(descriptor.readlink()).startswith(f"{directory}/") and descriptor.stat().st_nlink == 0:
                nameless.append(descriptor.stat())
        except FileNotFoundError:  # the one that listed the directory
            continue
    assert named or nameless
    return sum(status.st_blocks * 512 for status in named + nameless)


@pytest.mark.parametrize("durable", [True, False])
def test_a_store_with_one_small_checkpoint_takes_little_room(tmp_path: Path, durable: bool) -> None:
    with velocpy.open(tmp_path, host="4MiB", disk="1GiB", durable=durable) as store:
        store.history("run").checkpoint(0, u=np.arange(100.0)).wait("disk")
        assert 800 < bytes_on_disk(tmp_path) < 4 << 20


def test_a_store_takes_at_most_twice_what_it_holds(tmp_path: Path) -> None:
    u = np.random.default_rng(1).integers(0, 255, 3 << 20, dtype=np.uint8)
    with velocpy.open(tmp_path, host="16MiB", disk="1GiB") as store:
        run = store.history("run")
        for i in range(12):
            run.checkpoint(i, u=u + i).wait("disk")
            held = (i + 1) * u.nbytes
            assert held < bytes_on_disk(tmp_path) < 2 * held + (4 << 20)
        for i in range(12):
            assert np.array_equal(run.restore(i)["u"], u + i)
