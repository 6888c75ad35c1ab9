"""Histories whose checkpoints are encoded with an earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import second_reader
from catalog import DIFFERENCE, REFERRING
from test_deduplication import regions_of_all_kinds, same, saved, settled

import velocpy
from velocpy import errors, ondisk
from velocpy.lineage import lineage

State = dict[str, np.ndarray[Any, Any]]
SMALL: Any = {"host": "8MiB", "disk": "128MiB"}


def training(count: int, size: int = 40_000, step: float = 1e-5) -> Iterator[State]:
    """States of a training: weights and moments that all move, and an embedding that stays."""
    random = np.random.default_rng(size)
    w = random.standard_normal(size, np.float32)
    frozen = random.standard_normal(size // 2, np.float32)
    for _ in range(count):
        yield {"w": w.copy(), "half": w.astype(np.float16), "frozen": frozen}
        w += step * random.standard_normal(size, np.float32)


def write(path: Path | None, states: list[State]) -> velocpy.Store:
    store = velocpy.open(path, **SMALL)
    history = store.history("h", reduce="reference")
    for step, state in enumerate(states):
        history.checkpoint(step, state).wait("disk")
    return store


def contents(path: Path) -> list[int]:
    """What the rows of the history have, by key."""
    rows = second_reader.histories(path).rows[b"h"]
    return [rows[key].content for key in range(len(rows))]


def test_weights_that_drift_take_what_has_changed(tmp_path: Path) -> None:
    states = list(training(12))
    size = sum(array.nbytes for array in states[0].values())
    with write(tmp_path / "s", states) as store:
        found = saved(store)
        assert (found["method"], found["encoded"], found["plain"]) == ("reference", 12, 0)
        assert found["differences"] >= 9
        assert found["encoded_to"] < 0.6 * 12 * size
        for step in (11, 0, 5, 6):
            with store.history("h").restore(step) as state:
                same(state, states[step])
    with velocpy.open(tmp_path / "s", mode="r", host="8MiB") as store:
        for step in reversed(range(12)):
            same(store.history("h").restore(step), states[step])
        part = np.zeros(1000, np.float32)
        store.history("h").restore(7, into={"w": part}, parts={"w": np.s_[20_001:21_001]})
        assert (part == states[7]["w"][20_001:21_001]).all()
    kept = second_reader.everything(tmp_path / "s")["h"]
    for step, (regions, _) in kept.items():
        same({region.name: region.array for region in regions}, states[int(step)])
    report = ondisk.check(tmp_path / "s", read_data=True)
    assert (report.checkpoints, report.faults) == (12, ())
    assert [checkpoint.key for checkpoint in lineage(tmp_path / "s", "h").checkpoints] == list(range(12))


@pytest.mark.parametrize("durable", [False, True])
def test_all_dtypes_come_back_bit_by_bit(tmp_path: Path, durable: bool) -> None:
    states = [regions_of_all_kinds(step // 2) for step in range(6)]  # every second one has other regions
    path = tmp_path / "s" if durable else None
    with write(path, states) as store:
        assert saved(store)["differences"] == 3
        for step in (5, 0, 3, 2, 4, 1):
            with store.history("h").restore(step) as state:
                same(state, states[step])
    if path is not None:
        for step, (regions, _) in second_reader.everything(path)["h"].items():
            same({region.name: region.array for region in regions}, states[int(step)])


def test_an_anchor_stays_as_long_as_it_is_needed(tmp_path: Path) -> None:
    states = list(training(6))
    with write(tmp_path / "s", states) as store:
        history, all_of_them = store.history("h"), settled(store)
        history.drop(0)
        assert settled(store) == all_of_them
        for step in range(1, 6):
            same(history.restore(step), states[step])
            history.drop(step)
        assert settled(store) < all_of_them // 4  # the writer may still refer to the last anchor


def test_damage_of_an_anchor_is_told_of_every_checkpoint_that_needs_it(tmp_path: Path) -> None:
    path = tmp_path / "s"
    states = list(training(5))
    with write(path, states):
        pass
    referring = [key for key, content in enumerate(contents(path)) if content == REFERRING]
    assert len(referring) >= 3
    assert contents(path)[0] == DIFFERENCE
    extents = second_reader.histories(path).rows[b"h"][0].extents
    file, offset, size = extents[0]
    with (path / f"data-{file:016x}").open("r+b") as data:
        data.seek(second_reader.behind(second_reader.identity(path), offset) + size // 3)
        (byte,) = data.read(1)
        data.seek(-1, 1)
        data.write(bytes([byte ^ 1]))
    report = ondisk.check(path, read_data=True)
    assert {fault.key for fault in report.faults} == {0, *referring}
    with velocpy.open(path, mode="r", host="8MiB") as store:
        for key in (0, *referring):
            with pytest.raises(errors.CorruptCheckpoint):
                store.history("h").restore(key)


def test_a_copy_has_the_anchors(tmp_path: Path) -> None:
    states = list(training(6))
    with write(tmp_path / "s", states) as store:
        store.history("h").drop(0)
        store.backup(tmp_path / "copy")
    with velocpy.open(tmp_path / "copy", mode="r", host="8MiB") as store:
        for step in range(1, 6):
            same(store.history("h").restore(step), states[step])
    kept = second_reader.everything(tmp_path / "copy")["h"]
    assert len(kept) == 5
