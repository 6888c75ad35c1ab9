"""Tickets: captured, durable, dropped; timeouts; light and harmless to lose."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

import velocpy
from velocpy import Ticket


@pytest.fixture
def store() -> Iterator[velocpy.Store]:
    with velocpy.open(host="8MiB", disk="64MiB") as opened:
        yield opened


def test_captured_and_durable(store: velocpy.Store) -> None:
    history = store.history("h")
    ticket = history.checkpoint(3, u=np.zeros(100_000))
    assert ticket.key == 3
    assert ticket.captured
    assert not ticket.dropped
    assert ticket.durable("host")
    ticket.wait("disk", timeout=30)
    assert ticket.durable("disk")
    assert history.tiers(3)[-1] == "disk"


def test_replaced_and_dropped(store: velocpy.Store) -> None:
    history = store.history("h")
    first = history.checkpoint(1, u=np.zeros(3))
    second = history.checkpoint(1, u=np.ones(3))
    assert first.dropped
    assert not second.dropped
    with pytest.raises(velocpy.errors.CheckpointDropped) as raised:
        first.wait("disk")
    assert raised.value.key == 1
    assert raised.value.history == "h"
    history.drop(1)
    assert second.dropped
    store.wait("disk", timeout=10)  # what was dropped owes nothing


def test_consumed(store: velocpy.Store) -> None:
    history = store.history("h")
    ticket = history.checkpoint(1, u=np.zeros(3))
    history.restore(1, last=True).release()
    assert ticket.dropped


def test_unknown_and_missing_tiers(store: velocpy.Store) -> None:
    ticket = store.history("h").checkpoint(1, u=np.zeros(3))
    for name in ("floppy", "", "DISK", 3):
        with pytest.raises(velocpy.errors.InvalidArgument):
            ticket.wait(name)  # type: ignore[arg-type]
        with pytest.raises(velocpy.errors.InvalidArgument):
            ticket.durable(name)  # type: ignore[arg-type]
    with pytest.raises(velocpy.errors.TierUnavailable):
        ticket.wait("archive", timeout=5)


def test_a_checkpoint_for_a_tier_that_is_not_there() -> None:
    with velocpy.open(host="1MiB") as store:
        history = store.history("h")
        history.checkpoint(0, u=np.zeros(1))
        for tier in ("disk", "device", "archive"):
            with pytest.raises(velocpy.errors.TierUnavailable, match="it has host") as raised:
                history.checkpoint(0, u=np.ones(1), tier=tier)
            assert (raised.value.tier, raised.value.key, raised.value.history) == (tier, 0, "h")
        assert history.restore(0)["u"][0] == 0


def test_timeouts(store: velocpy.Store) -> None:
    ticket = store.history("h").checkpoint(1, u=np.zeros(3))
    ticket.wait("disk", timeout=10)
    ticket.wait("disk", timeout=0)
    for wrong in (-1, float("nan"), "soon", True, [1]):
        with pytest.raises((velocpy.errors.InvalidArgument, TypeError)):
            ticket.wait("disk", timeout=wrong)  # type: ignore[arg-type]
    ticket.wait("disk", timeout=float("inf"))
    ticket.wait("disk", timeout=np.float32(1))  # type: ignore[arg-type]


def test_timeout_is_a_timeout_error() -> None:
    with velocpy.open(host="1MiB") as store:
        history = store.history("h")
        history.checkpoint(0, u=np.zeros(900_000, np.uint8))
        lease = history.restore(0)
        began = time.monotonic()
        with pytest.raises(TimeoutError) as raised:
            history.checkpoint(1, u=np.zeros(900_000, np.uint8), timeout=0.2)
        assert isinstance(raised.value, velocpy.errors.WaitTimeout)
        assert 0.15 < time.monotonic() - began < 10
        assert 1 not in history
        assert lease["u"].size == 900_000


def test_lost_tickets_are_harmless(store: velocpy.Store) -> None:
    history = store.history("h")
    for i in range(500):
        history.checkpoint(i, u=np.full(2000, i), copy=i % 2 == 0)
        if i % 100 == 0:
            gc.collect()
    gc.collect()
    history.wait(timeout=30)
    for i in range(500):
        assert history.restore(i)["u"][0] == i


def test_light(store: velocpy.Store) -> None:
    ticket = store.history("h").checkpoint(1, u=np.zeros(3))
    assert sys.getsizeof(ticket) <= 64
    assert not hasattr(ticket, "__dict__")


def test_store_keeps_a_key_of_its_own(store: velocpy.Store) -> None:
    history = store.history("h")
    history.checkpoint(0, u=np.zeros(1))
    keys = [history.checkpoint(u=np.full(1, i)).key for i in range(20)]
    assert len(set(keys)) == 20
    assert 0 not in keys
    assert [history.restore(key)["u"][0] for key in keys] == list(range(20))


def test_wait_for_everything(store: velocpy.Store) -> None:
    tickets: list[Ticket] = []
    for name in ("a", "b"):
        tickets += [store.history(name).checkpoint(i, u=np.zeros(50_000)) for i in range(8)]
    store.history("a").wait("disk", timeout=30)
    assert all(ticket.durable("disk") for ticket in tickets[:8])
    store.wait("disk", timeout=30)
    assert all(ticket.durable("disk") for ticket in tickets)
