"""Restores into arrays of what the disk alone has: they take no memory for the bytes, and are verified on their way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bits import random_array, same
from conftest import RunPython
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import velocpy

MIB = 1 << 20
SHAPES = [(0, 3), (7,), (65_537,), (300_001,), (512, 1031), (3, 200, 333)]


def places(array: np.ndarray[Any, Any], how: str) -> np.ndarray[Any, Any]:
    """An empty array of this shape that lies in memory in another way."""
    if how == "columns":
        return np.empty_like(array, order="F")
    if how == "backwards":
        return np.empty((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)[..., ::-2]
    if how == "odd":
        return np.ndarray(array.shape, array.dtype, np.empty(array.nbytes + 1, np.uint8), 1)
    return np.empty_like(array)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_bits_come_back(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path: Path = tmp_path_factory.mktemp("streams") / "store"
    dtypes = data.draw(
        st.lists(st.sampled_from([np.uint8, np.float32, np.float64, np.complex128]), min_size=1, max_size=4)
    )
    # All bits, so also NaN with payloads.
    state = {f"r{i}": random_array(data.draw(st.sampled_from(SHAPES)), each, i) for i, each in enumerate(dtypes)}
    with velocpy.open(path, host="16MiB", disk="256MiB") as store:
        store.history("h").checkpoint(0, state).wait("disk")
    with velocpy.open(path, host="16MiB", mode="r") as store:
        for _ in range(2):  # the second time also to the host tier
            into, parts = {}, {}
            for name, array in state.items():
                first, last = sorted(data.draw(st.tuples(*[st.integers(0, array.shape[0])] * 2)))
                parts[name] = np.s_[first:last] if data.draw(st.booleans()) else np.s_[:]
                into[name] = places(
                    array[parts[name]], data.draw(st.sampled_from(["rows", "columns", "backwards", "odd"]))
                )
            whole = all(part == np.s_[:] for part in parts.values())
            store.history("h").restore(0, into=into, parts=None if whole else parts)
            for name, array in state.items():
                assert same(into[name], array[parts[name]]), name


def test_no_memory_for_the_bytes(tmp_path: Path) -> None:
    u = np.random.default_rng(1).integers(0, 256, 48 * MIB, np.uint8)
    with velocpy.open(tmp_path / "store", host="64MiB", disk="256MiB") as store:
        store.history("h").checkpoint(0, u=u).wait("disk")
        store.history("h").checkpoint(1, u=u).wait("disk")
    with velocpy.open(tmp_path / "store", host="64MiB", mode="r") as store:
        history, into = store.history("h"), np.empty_like(u)

        before = store.stats()["mapped_bytes"]
        history.restore(0, into={"u": into})
        assert (into == u).all()
        host = store.stats()["tiers"]["host"]
        assert host["used"] == host["resident_bytes"] == 0
        assert store.stats()["mapped_bytes"] - before < 10 * MIB
        assert "host" not in history.tiers(0)
        history.restore(0, into={"u": into})
        assert "host" in history.tiers(0)
        history.restore(1)
        assert "host" in history.tiers(1)


DAMAGE = """
import numpy as np, os, sys
import velocpy

path, rng = sys.argv[1], np.random.default_rng(2)
u = rng.integers(0, 256, 5 << 20, np.uint8)
v = rng.integers(0, 256, 300_000, np.uint8)
into = {"u": np.empty_like(u), "v": np.empty_like(v)}
with velocpy.open(path, host="16MiB", disk="128MiB") as store:
    store.history("h").checkpoint(0, u=u, v=v)
for at in (0, 262_144, 5_242_879, 5_242_880 + 100):
    with velocpy.open(path, host="16MiB", disk="128MiB") as store:
        history = store.history("h")
        assert "host" not in history.tiers(0)
        history._core.corrupt(0, 2, at)
        try:
            history.restore(0, into=into)
        except velocpy.errors.CorruptCheckpoint as error:
            assert (error.region, error.tier) == ("u" if at < 5 << 20 else "v", "disk"), vars(error)
        else:
            raise AssertionError("nobody noticed")
        history._core.corrupt(0, 2, at)
        history.restore(0, into=into)
        assert (into["u"] == u).all() and (into["v"] == v).all()
"""


def test_damage_is_found(run_python: RunPython, tmp_path: Path) -> None:
    done = run_python(DAMAGE, str(tmp_path / "store"), env={"VELOCPY_TEST_HOOKS": "1"})
    assert done.returncode == 0, done.stderr
