"""What real clients do all day: rewrite slots for ever, read a constant at every step, keep several histories alive."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from bits import random_array, same

import velocpy

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def store() -> Iterator[velocpy.Store]:
    with velocpy.open(host="1MiB", disk="64MiB") as opened:
        yield opened


def test_slots_rewritten_ten_thousand_times(store: velocpy.Store) -> None:
    """Nothing is dropped, sizes change, half of the slots do not fit the memory: the room in use does not grow."""
    history = store.history("slots")
    slots, most = 7, 400 * KIB
    written: dict[int, np.ndarray] = {}  # type: ignore[type-arg]
    for version in range(10_000):
        slot = version % slots
        size = most if version % 100 < slots else 64 + version % 1000
        written[slot] = np.full(size, version % 251, np.uint8)
        history.checkpoint(slot, u=written[slot])
        if version % 97 == 0:
            seen = (version * 5) % slots
            if seen in written:
                assert same(history.restore(seen)["u"], written[seen])
    assert len(history) == slots
    for slot, u in written.items():
        assert same(history.restore(slot)["u"], u)
    tiers = store.stats()["tiers"]
    assert tiers["host"]["used"] <= MIB
    assert tiers["disk"]["used"] <= slots * (most + 4 * KIB)
    assert tiers["disk"]["high_water"] <= 3 * slots * (most + 4 * KIB)


def test_one_slot_read_many_times(store: velocpy.Store) -> None:
    history = store.history("h")
    u = random_array(50_000)
    history.checkpoint("u", u=u)
    into = np.empty_like(u)
    for i in range(50):
        history.checkpoint(i, v=np.full(100_000, i, np.uint8))
        lease = history.restore("u")
        assert same(lease["u"], u)
        assert same(history.restore("u", into={"u": into})["u"], u)
    assert same(history.restore("u", last=True)["u"], u)
    assert "u" not in history


def test_three_histories_at_once(store: velocpy.Store) -> None:
    """A hinted reverse sweep, one that the store has to guess, and slots, beside a constant that every step reads."""
    forward, velocity, slots = (store.history(name) for name in ("forward", "velocity", "slots"))
    constant = random_array(20_000)
    store.history("model").checkpoint("c", c=constant)
    steps = 120
    forward.hint(reversed(range(steps)), last=True)
    for i in range(steps):
        assert same(store.history("model").restore("c")["c"], constant)
        forward.checkpoint(i, u=np.full(30_000, i % 256, np.uint8))
        velocity.checkpoint(("even", "odd")[i % 2] + str(i), v=np.full(20_000 + i, i % 256, np.uint8))
        slots.checkpoint(i % 5, w=np.full(40_000, i % 256, np.uint8))
    total = 0
    for i, state in forward.restore_iter():
        assert (state["u"] == i % 256).all()
        name = ("even", "odd")[i % 2] + str(i)
        v = velocity.restore(name, last=True)["v"]
        v += 1
        assert (v == (i + 1) % 256).all()
        assert v.size == 20_000 + i
        assert same(store.history("model").restore("c")["c"], constant)
        total += 1
    assert (total, len(forward), len(velocity)) == (steps, 0, 0)
    assert [slots.restore(k)["w"][0] for k in range(5)] == [(steps - 5 + k) % 256 for k in range(5)]
