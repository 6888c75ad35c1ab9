"""copy=False: the source is read later, kept alive meanwhile, and let go afterwards."""

from __future__ import annotations

import gc
import time
import weakref

import numpy as np
from bits import random_array, same

import velocpy

MIB = 1 << 20


class Tracked(np.ndarray):  # type: ignore[type-arg]
    """An array that can be watched."""


def tracked(array: np.ndarray) -> Tracked:  # type: ignore[type-arg]
    return array.view(Tracked)


def test_bytes_are_those_of_the_source() -> None:
    with velocpy.open(host="16MiB", disk="256MiB") as store:
        history = store.history("h")
        arrays = [random_array(MIB // 8, seed=i) for i in range(64)]
        tickets = [history.checkpoint(i, u=u, copy=False) for i, u in enumerate(arrays)]
        for ticket in tickets:
            ticket.wait(timeout=30)
            assert ticket.captured
        for i, u in enumerate(arrays):
            assert same(history.restore(i)["u"], u)


def test_kept_alive_until_captured_then_let_go() -> None:
    with velocpy.open(host="16MiB", disk="256MiB") as store:
        history = store.history("h")
        gone = []
        for i in range(40):
            u = tracked(random_array(MIB // 8, seed=i).copy())
            gone.append(weakref.ref(u))
            history.checkpoint(i, u=u, copy=False)
            del u
        history.wait(timeout=30)
        for i in range(40):
            assert same(history.restore(i)["u"], random_array(MIB // 8, seed=i))
        deadline = time.monotonic() + 20
        while any(ref() is not None for ref in gone) and time.monotonic() < deadline:
            history.checkpoint("more", u=np.zeros(3))
            gc.collect()
        assert [ref() for ref in gone] == [None] * 40
        assert store._core.kept_sources() == 0


def test_strided_and_temporary_sources() -> None:
    with velocpy.open(host="4MiB", disk="256MiB") as store:
        history = store.history("h")
        base = random_array((512, 1024), np.int64)
        for i in range(20):
            history.checkpoint(i, {"rows": base[i::7, ::-3], "new": base[i] + 1}, copy=False)
        history.wait(timeout=30)
        for i in range(20):
            lease = history.restore(i)
            assert same(lease["rows"], base[i::7, ::-3])
            assert same(lease["new"], base[i] + 1)


def test_restore_right_away() -> None:
    with velocpy.open(host="4MiB", disk="256MiB") as store:
        history = store.history("h")
        for i in range(60):
            u = random_array(MIB // 8, seed=i)
            history.checkpoint(i % 5, u=u, copy=False)
            assert same(history.restore(i % 5)["u"], u)


def test_dropped_and_closed_before_captured() -> None:
    store = velocpy.open(host="4MiB", disk="256MiB")
    history = store.history("h")
    arrays = [random_array(MIB // 8, seed=i) for i in range(40)]
    for i, u in enumerate(arrays):
        history.checkpoint(i, u=u, copy=False)
        if i % 2:
            history.drop(i)
    del arrays, u
    store.close()
    assert store._core.kept_sources() == 0


def test_larger_than_the_host_tier() -> None:
    with velocpy.open(host="1MiB", disk="256MiB") as store:
        history = store.history("h")
        u = random_array(16 * MIB // 8)
        ticket = history.checkpoint(0, u=u, copy=False)
        ticket.wait(timeout=60)
        assert same(history.restore(0)["u"], u)
