"""Captures of many checkpoints in one call, compared with a loop of checkpoint()."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from bits import random_array, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import velocpy
from velocpy.errors import InvalidArgument, InvalidType, StoreClosed, TierFull, TierUnavailable, VelocError, WaitTimeout


@pytest.fixture
def stores() -> Iterator[tuple[velocpy.Store, velocpy.Store]]:
    """Two of the same kind, with little host memory: some checkpoints wait for room."""
    with velocpy.open(host="256KiB", disk="64MiB") as one, velocpy.open(host="256KiB", disk="64MiB") as other:
        yield one, other


@st.composite
def checkpoints(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Tuples of a key and regions of all kinds, at times with a meta; keys come twice, or are left to the store."""
    found: list[tuple[Any, ...]] = []
    for number in range(draw(st.integers(0, 40))):
        key = draw(st.one_of(st.integers(0, 9), st.sampled_from(["a", "b"]), st.none(), st.just(np.int16(7))))
        size = draw(st.sampled_from([0, 1, 100, 1000, 3000, 30_000]))
        array = random_array(size, np.uint8, seed=number)[:: draw(st.sampled_from([1, -1, 3]))]
        kind = draw(st.sampled_from(["mapping", "sequence", "tree", "scalar"]))
        regions: Any = {"u": array, "v": np.arange(number % 5)}
        if kind == "sequence":
            regions = [array, np.float64(number)]
        elif kind == "tree":
            regions = {"model": {"w": array}, "step": number}
        elif kind == "scalar":
            regions = {"x": np.array(number)}
        meta = draw(st.sampled_from([(), (), (None,), ({"loss": number},)]))
        found.append((key, regions, *meta))
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_checkpoints=checkpoints())
def test_many_is_a_loop(stores: tuple[velocpy.Store, velocpy.Store], given_checkpoints: list[tuple[Any, ...]]) -> None:
    name = f"h{time.monotonic_ns()}"
    loop, many = (store.history(name) for store in stores)
    tickets = many.checkpoint_many(iter(given_checkpoints))
    expected = [
        loop.checkpoint(key, regions, meta=more[0] if more else None) for key, regions, *more in given_checkpoints
    ]
    assert [ticket.key for ticket in tickets] == [ticket.key for ticket in expected]
    assert list(many) == list(loop)
    for key in loop:
        with loop.restore(key) as one, many.restore(key) as other:
            assert list(one) == list(other)
            assert one.meta == other.meta
            for label in one:
                assert same(one[label], other[label])
    for key, regions, *_ in given_checkpoints:
        if isinstance(regions, dict) and "step" in regions and key in many:
            with loop.restore(key) as one, many.restore(key) as other:
                assert str(one.tree) == str(other.tree)
    for ticket in tickets:
        ticket.wait()
    loop.clear()
    many.clear()


def test_mapping_and_options() -> None:
    with velocpy.open(host="16MiB", disk="64MiB") as store:
        history = store.history("h")
        tickets = history.checkpoint_many({i: {"u": np.full(100, i)} for i in range(300)}, tier="disk")
        assert [ticket.key for ticket in tickets] == list(range(300))
        assert len(history) == 300
        history.wait("disk")
        assert all(ticket.durable("disk") for ticket in tickets)
        assert history.checkpoint_many([]) == []
        assert history.checkpoint_many({}) == []
        arrays = [np.full(10, i) for i in range(3)]
        tickets = history.checkpoint_many([(None, [a]) for a in arrays], copy=False)
        for ticket in tickets:
            ticket.wait()
            assert ticket.captured
        assert [history.restore(ticket.key)[0][0] for ticket in tickets] == [0, 1, 2]


def test_nothing_is_captured_where_one_cannot_be() -> None:
    with velocpy.open(host="16MiB") as store:
        history = store.history("h")
        good = {"u": np.zeros(3)}
        for wrong, error in (
            ((2, {"u": object()}), InvalidType),
            ((2, {"u": np.array([object()])}), InvalidArgument),
            ((2, 7), InvalidType),
            ((2.5, good), InvalidType),
            ((2, good, object()), InvalidType),
            ((2,), InvalidType),
            ([2, good], InvalidType),
        ):
            with pytest.raises(error):
                history.checkpoint_many([(0, good), (1, good), wrong, (3, good)])  # type: ignore[list-item]
            assert len(history) == 0
        for options in ({"copy": 1}, {"tier": "nowhere"}, {"timeout": "soon"}):
            with pytest.raises(InvalidArgument):
                history.checkpoint_many([(0, good)], **options)  # type: ignore[arg-type]
        with pytest.raises(InvalidType):
            history.checkpoint_many(7)  # type: ignore[arg-type]
        with pytest.raises(TierUnavailable) as refused:
            history.checkpoint_many([(0, good)], tier="disk")
        assert refused.value.captured == 0
        assert len(history) == 0


def test_what_stands_when_the_third_of_five_fails() -> None:
    with velocpy.open(host="64KiB") as store:
        history = store.history("h")
        history.checkpoint(2, u=np.arange(5))
        sizes = [10, 20, 1 << 20, 30, 40]
        with pytest.raises(TierFull) as failed:
            history.checkpoint_many((key, {"u": np.full(size, key)}) for key, size in enumerate(sizes))
        assert (failed.value.captured, failed.value.key) == (2, 2)
        assert list(history) == [2, 0, 1]
        assert (history.restore(1)["u"] == np.full(20, 1)).all()
        assert (history.restore(2)["u"] == np.arange(5)).all()
        with pytest.raises(TierFull) as alone:
            history.checkpoint(9, u=np.zeros(1 << 20))
        assert alone.value.captured is None
    with pytest.raises(StoreClosed) as closed:
        history.checkpoint_many({5: {"u": np.zeros(3)}})
    assert closed.value.captured == 0
    assert isinstance(closed.value, VelocError)


@contextlib.contextmanager
def full(store: velocpy.Store) -> Iterator[velocpy.History]:
    """A history whose host tier has room for two checkpoints of 8 KiB beside a lease."""
    history = store.history("h")
    history.checkpoint("large", u=np.zeros(80 << 10, np.uint8))
    lease = history.restore("large")
    lease["u"]
    yield history
    lease.release()


def test_a_timeout_leaves_those_before() -> None:
    with velocpy.open(host="100KiB") as store, full(store) as history:
        items = {i: {"u": np.full(8 << 10, i, np.uint8)} for i in range(5)}
        began = time.monotonic()
        with pytest.raises(WaitTimeout) as late:
            history.checkpoint_many(items, timeout=0.2)
        assert 0.15 < time.monotonic() - began < 20
        assert (late.value.captured, late.value.key) == (2, 2)
        assert list(history) == ["large", 0, 1]


def test_ctrl_c_leaves_those_before() -> None:
    with velocpy.open(host="100KiB") as store, full(store) as history:
        items = {i: {"u": np.full(8 << 10, i, np.uint8)} for i in range(5)}
        main = threading.get_ident()
        timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            history.checkpoint_many(items, timeout=60)
        timer.join()
        assert list(history) == ["large", 0, 1]
        assert (history.restore(1)["u"] == 1).all()
        history.drop("large")


def test_room_that_another_thread_makes_is_waited_for() -> None:
    with velocpy.open(host="100KiB") as store:
        history = store.history("h")
        history.checkpoint("large", u=np.zeros(80 << 10, np.uint8))
        lease = history.restore("large", last=True)
        lease["u"]
        items = {i: {"u": np.full(8 << 10, i, np.uint8)} for i in range(5)}
        timer = threading.Timer(0.2, lease.release)
        timer.start()
        tickets = history.checkpoint_many(items, timeout=60)
        timer.join()
        assert [ticket.key for ticket in tickets] == [0, 1, 2, 3, 4]
        assert store.stats()["waits_ns"]["capture"] > 50_000_000


def test_many_threads_at_once() -> None:
    with velocpy.open(host="1MiB", disk="64MiB") as store:
        history = store.history("h")

        def capture(number: int) -> None:
            for start in range(0, 500, 50):
                history.checkpoint_many(
                    {f"{number}.{i}": {"u": np.full(200, 1000 * number + i)} for i in range(start, start + 50)}
                )

        threads = [threading.Thread(target=capture, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(history) == 2000
        for number in range(4):
            for i in range(0, 500, 7):
                assert (history.restore(f"{number}.{i}")["u"] == 1000 * number + i).all()
