"""Tasks of asyncio: they wait for tickets and loop over plans while the event loop goes on, and may be cancelled."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import RunPython

import velocpy
from velocpy import streams
from velocpy import tasks as task_loops

MIB = 1 << 20

#: A guard against hangs: no test waits for it to pass.
GUARD = 60


@pytest.fixture
def store() -> Iterator[velocpy.Store]:
    with velocpy.open(host=8 * MIB, disk=64 * MIB) as opened:
        yield opened


def filled(store: velocpy.Store, count: int = 30) -> velocpy.History:
    """A history of checkpoints of 1 MiB, most of which lie on the disk alone."""
    history = store.history("h")
    for i in range(count):
        history.checkpoint(i, u=np.full(MIB, i, np.uint8))
    store.wait("disk")
    return history


def crowded(history: velocpy.History) -> tuple[int | str, list[velocpy.Lease]]:
    """Leases that leave no room in the host tier, and a key that lies on the disk alone."""
    leases = [history.restore(key) for key in list(history) if history.ready(key)]
    key = next(key for key in list(history) if not history.ready(key))
    with pytest.raises(velocpy.errors.TierFull):
        history.restore(key)
    return key, leases


def uncaptured(store: velocpy.Store, count: int = 1) -> tuple[list[velocpy.Ticket], list[velocpy.Lease]]:
    """Tickets of arrays with ``copy=False`` that find no room while the leases live. The store has no disk."""
    history = store.history("h")
    for i in range(8):
        history.checkpoint(i, u=np.full(MIB, i, np.uint8))
    leases = [history.restore(i) for i in range(8)]
    tickets = [history.checkpoint(100 + i, u=np.full(100, i), copy=False, timeout=GUARD) for i in range(count)]
    return tickets, leases


def make_room(store: velocpy.Store) -> None:
    """Drops what `uncaptured` has filled the store with, once its leases have gone."""
    for i in range(8):
        store.history("h").drop(i)


@pytest.fixture
def memory() -> Iterator[velocpy.Store]:
    """A store without a disk, of 8 MiB."""
    with velocpy.open(host=8 * MIB) as opened:
        yield opened


@asynccontextmanager
async def heartbeat() -> AsyncIterator[list[int]]:
    """Counts the turns of the event loop while the block runs."""
    beats = [0]

    async def beat() -> None:
        while True:
            beats[0] += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(beat())
    try:
        yield beats
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    async def look() -> None:
        while not condition():
            await asyncio.sleep(0.001)

    await asyncio.wait_for(look(), GUARD)


async def begun(coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """A task that has come to its first wait."""
    task = asyncio.create_task(coroutine)
    await turns()
    return task


async def cancelled(task: asyncio.Task[Any]) -> None:
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, GUARD)


async def step(loop: AsyncIterator[Any]) -> Any:
    return await anext(loop)


def workers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("velocpy-")]


# --- tickets


def test_a_ticket_is_awaited(store: velocpy.Store) -> None:
    async def main() -> None:
        history = store.history("h")
        ticket = history.checkpoint(0, u=np.zeros(9))
        assert await ticket is ticket
        assert await ticket.until("disk") is ticket
        assert ticket.durable("disk")
        assert set(await asyncio.gather(ticket, ticket.until("host"))) == {ticket}

    for _ in range(3):  # each run has an event loop of its own
        asyncio.run(main())


def test_the_event_loop_goes_on_while_a_ticket_is_awaited(memory: velocpy.Store) -> None:
    async def main() -> None:
        (ticket,), leases = uncaptured(memory)
        async with heartbeat() as beats:
            task = await begun(ticket.until())
            await until(lambda: beats[0] > 1000)
            assert not task.done()
            assert workers() == ["velocpy-waiter"]
            leases.clear()
            make_room(memory)
            assert await asyncio.wait_for(task, GUARD) is ticket
            assert ticket.captured

    asyncio.run(main())


def test_a_thousand_tickets_need_one_thread(memory: velocpy.Store) -> None:
    async def main() -> None:
        tickets, leases = uncaptured(memory, 1000)
        before = threading.active_count()
        tasks = [asyncio.create_task(ticket.until()) for ticket in tickets]
        await turns()
        assert not any(task.done() for task in tasks)
        assert threading.active_count() == before + 1
        leases.clear()
        make_room(memory)
        assert await asyncio.wait_for(asyncio.gather(*tasks), GUARD) == tickets
        assert threading.active_count() <= before + 1

    asyncio.run(main())


def test_some_of_many_waits_are_cancelled(memory: velocpy.Store) -> None:
    async def main() -> None:
        tickets, leases = uncaptured(memory, 50)
        tasks = [asyncio.create_task(ticket.until()) for ticket in tickets]
        await turns()
        for task in tasks[::2]:
            await cancelled(task)
        assert not any(task.done() for task in tasks[1::2])
        leases.clear()
        make_room(memory)
        assert await asyncio.wait_for(asyncio.gather(*tasks[1::2]), GUARD) == tickets[1::2]
        await asyncio.gather(*tickets)

    asyncio.run(main())


def test_the_thread_ends_with_the_last_wait(memory: velocpy.Store) -> None:
    async def main() -> None:
        (ticket,), leases = uncaptured(memory)
        for _ in range(3):
            task = await begun(ticket.until())
            assert workers() == ["velocpy-waiter"]
            await cancelled(task)
            await until(lambda: not workers())
        assert not ticket.captured
        leases.clear()

    asyncio.run(main())


def test_timeouts_of_tickets(memory: velocpy.Store) -> None:
    async def main() -> None:
        tickets, leases = uncaptured(memory, 2)
        with pytest.raises(velocpy.errors.WaitTimeout, match=r"not captured after 0\.03 s .*key 100"):
            await asyncio.gather(tickets[0].until(timeout=0.03), tickets[1].until(timeout=GUARD))
        with pytest.raises(velocpy.errors.WaitTimeout, match="after 0 s"):
            await tickets[0].until(timeout=0)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(tickets[0], 0.01)
        leases.clear()

    asyncio.run(main())


@pytest.mark.parametrize("wrong", [-1, float("nan"), "soon", True, [1]])
def test_wrong_timeouts_of_tickets(store: velocpy.Store, wrong: Any) -> None:
    async def main() -> None:
        ticket = store.history("h").checkpoint(0, u=np.zeros(9))
        with pytest.raises(velocpy.errors.InvalidArgument):
            await ticket.until("disk", timeout=wrong)

    asyncio.run(main())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.timeout is new in Python 3.11")
def test_timeouts_of_asyncio(store: velocpy.Store, memory: velocpy.Store) -> None:
    async def main() -> None:
        (ticket,), held = uncaptured(memory)
        history = filled(store)
        key, leases = crowded(history)
        history.hint([key])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await ticket
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await anext(aiter(history.restore_iter(timeout=GUARD)))
        held.clear()
        leases.clear()
        assert [got async for got, _ in history.restore_iter()] == [key]

    asyncio.run(main())


def test_errors_of_tickets(store: velocpy.Store) -> None:
    async def main() -> None:
        history = store.history("h")
        replaced, ticket = (history.checkpoint(0, u=np.zeros(9)) for _ in range(2))
        with pytest.raises(velocpy.errors.InvalidArgument, match="there is no tier"):
            await ticket.until("floppy")  # type: ignore[arg-type]
        with pytest.raises(velocpy.errors.TierUnavailable):
            await ticket.until("archive")
        with pytest.raises(velocpy.errors.CheckpointDropped) as raised:
            await replaced.until("disk")
        assert (raised.value.history, raised.value.key) == ("h", 0)

    asyncio.run(main())


def test_a_checkpoint_that_is_dropped_before_its_capture_ends_the_wait(memory: velocpy.Store) -> None:
    """Nothing reads its arrays any more. `Ticket.wait` returns if it begins after the drop, and else raises."""

    async def main() -> None:
        tickets, leases = uncaptured(memory, 2)
        tasks = [asyncio.create_task(ticket.until()) for ticket in tickets]
        await turns()
        memory.history("h").drop(101)
        (ended,) = await asyncio.wait_for(asyncio.gather(tasks[1], return_exceptions=True), GUARD)
        assert ended is tickets[1] or isinstance(ended, velocpy.errors.CheckpointDropped)
        await cancelled(tasks[0])
        leases.clear()

    asyncio.run(main())


def test_a_full_disk_is_told_to_every_task() -> None:
    random = np.random.default_rng(0)

    async def main() -> None:
        tickets = [history.checkpoint(i, u=random.integers(0, 255, MIB, np.uint8)) for i in range(8)]
        ended = await asyncio.gather(*(ticket.until("disk") for ticket in tickets), return_exceptions=True)
        assert [type(each) for each in ended] == [velocpy.Ticket] * 4 + [velocpy.errors.TierFull] * 4

    with velocpy.open(host="16MiB", disk="4MiB") as store:
        history = store.history("h")
        asyncio.run(asyncio.wait_for(main(), GUARD))


def test_a_store_that_is_closed_ends_the_waits_for_tickets() -> None:
    async def main() -> None:
        store = velocpy.open(host=8 * MIB)
        tickets, leases = uncaptured(store, 20)
        tasks = [asyncio.create_task(ticket.until()) for ticket in tickets]
        await turns()
        await asyncio.to_thread(store.close)
        ended = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), GUARD)
        assert {type(each) for each in ended} == {velocpy.errors.StoreClosed}
        with pytest.raises(velocpy.errors.StoreClosed):
            await tickets[0]
        leases.clear()

    asyncio.run(main())


def test_an_event_loop_that_ends_without_its_tasks(memory: velocpy.Store) -> None:
    """The thread forgets the waits of a closed loop."""
    (ticket,), leases = uncaptured(memory)
    loop = asyncio.new_event_loop()
    task = loop.create_task(ticket.until())
    loop.run_until_complete(turns())
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    asyncio.run(until(lambda: not workers()))
    leases.clear()


# --- loops over the plan


@pytest.mark.parametrize("last", [False, True])
def test_a_loop_in_hinted_order_while_the_event_loop_goes_on(store: velocpy.Store, last: bool) -> None:
    async def main() -> None:
        history = filled(store)
        history.hint(reversed(range(30)))
        seen = []
        async with heartbeat() as beats:
            async for key, lease in history.restore_iter(last=last):
                assert lease["u"][MIB - 1] == key
                assert lease.writable == last
                seen.append((key, beats[0]))
        assert [key for key, _ in seen] == list(reversed(range(30)))
        assert all(one < other for (_, one), (_, other) in zip(seen, seen[1:], strict=False))
        del lease
        assert len(history) == (0 if last else 30)

    asyncio.run(main())


def test_a_loop_into_arrays_and_parts(store: velocpy.Store) -> None:
    async def main() -> None:
        history = filled(store)
        history.hint([3, 5])
        into = {"u": np.zeros(10, np.uint8)}
        async for key, given in history.restore_iter(into=into, parts={"u": np.s_[20:30]}):
            assert given is into
            assert (into["u"] == key).all()
        assert key == 5

    asyncio.run(main())


def test_a_loop_ends_with_its_plan(store: velocpy.Store) -> None:
    async def main() -> None:
        history = filled(store, 6)
        history.hint([1, 2])
        restores = history.restore_iter()
        loop = aiter(restores)
        assert aiter(loop) is loop
        assert [key async for key, _ in loop] == [1, 2]
        history.hint([3])
        assert [key async for key, _ in loop] == []
        assert [key async for key, _ in restores] == [3]

    asyncio.run(main())


def test_several_loops_at_once(store: velocpy.Store) -> None:
    async def sweep(name: str) -> list[int]:
        history = store.history(name)
        for i in range(10):
            history.checkpoint(i, u=np.full(MIB // 2, i, np.uint8))
        history.hint(reversed(range(10)), last=True)
        return [int(lease["u"][7]) async for _, lease in history.restore_iter()]

    async def main() -> None:
        swept = await asyncio.wait_for(asyncio.gather(*(sweep(f"h{n}") for n in range(5))), GUARD)
        assert swept == [list(reversed(range(10)))] * 5

    asyncio.run(main())


def test_errors_of_a_loop(store: velocpy.Store) -> None:
    async def main() -> None:
        history = filled(store, 3)
        history.hint([1, 77, 2])
        loop = aiter(history.restore_iter())
        assert (await anext(loop))[0] == 1
        for _ in range(2):  # the same key until it is given up
            with pytest.raises(velocpy.errors.CheckpointNotFound, match="no checkpoint 77"):
                await anext(loop)
        history.checkpoint(77, u=np.zeros(3))
        assert [key async for key, _ in loop] == [77, 2]
        history.hint([1])
        with pytest.raises(velocpy.errors.InvalidArgument):
            await anext(aiter(history.restore_iter(timeout=-1)))

        def keys() -> Iterator[int]:
            yield 1
            raise ZeroDivisionError

        history.hint_clear()
        with pytest.raises(ZeroDivisionError):
            history.hint(keys())

    asyncio.run(main())


def test_a_loop_without_room(store: velocpy.Store) -> None:
    async def main() -> None:
        history = filled(store)
        key, leases = crowded(history)
        history.hint([key])
        with pytest.raises(velocpy.errors.TierFull):
            await anext(aiter(history.restore_iter()))
        with pytest.raises(velocpy.errors.WaitTimeout, match=rf"after 0\.01 s .*key {key}"):
            await anext(aiter(history.restore_iter(timeout=0.01)))
        async with heartbeat() as beats:
            task = await begun(step(aiter(history.restore_iter(timeout=GUARD))))
            await until(lambda: beats[0] > 1000)
            assert not task.done()
            leases.clear()  # what one task gives back is room for another
            got, lease = await asyncio.wait_for(task, GUARD)
        assert (got, lease["u"][0]) == (key, key)

    asyncio.run(main())


@pytest.mark.parametrize("last", [False, True])
def test_a_step_is_cancelled_while_it_waits_for_room(store: velocpy.Store, last: bool) -> None:
    async def main() -> None:
        history = filled(store)
        key, leases = crowded(history)
        history.hint([key, 29])
        loop = aiter(history.restore_iter(last=last, timeout=GUARD))
        await cancelled(await begun(step(loop)))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(step(loop), 0.01)
        leases.clear()
        assert [got async for got, _ in loop] == [key, 29]

    asyncio.run(main())


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stops restores in their threads when they have succeeded and their tasks have not heard of it."""
    gate = SimpleNamespace(succeeded=threading.Event(), go=threading.Event())
    offer = task_loops._Step.offer

    def stopped(self: task_loops._Step, *, may_be_refused: bool) -> None:
        gate.succeeded.set()
        assert gate.go.wait(GUARD)
        offer(self, may_be_refused=may_be_refused)

    monkeypatch.setattr(task_loops._Step, "offer", stopped)
    return gate


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("again", ["this loop", "another loop", "a loop without asyncio"])
def test_a_step_is_cancelled_when_its_restore_has_succeeded(
    store: velocpy.Store, held: SimpleNamespace, last: bool, again: str
) -> None:
    """The lease is given back, and the next step has the same key."""

    async def main() -> None:
        history = filled(store, 3)
        history.hint([2, 1])
        loop = aiter(history.restore_iter(last=last))
        task = await begun(step(loop))
        await until(held.succeeded.is_set)
        task.cancel()
        await turns()
        task.cancel()  # a second one changes nothing
        await turns()
        assert not task.done(), "the thread is not done"
        held.go.set()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, GUARD)
        assert 2 in history
        if again == "a loop without asyncio":
            assert [key for key, _ in history.restore_iter()] == [2, 1]
        else:
            rest = loop if again == "this loop" else history.restore_iter()
            assert [key async for key, _ in rest] == [2, 1]

    asyncio.run(main())


def test_a_step_is_cancelled_between_success_and_its_task(
    store: velocpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop knows of the success, and the task is cancelled before it runs."""
    wake = task_loops._wake

    async def main() -> None:
        history = filled(store, 3)
        history.hint([2, 1])
        loop = aiter(history.restore_iter(last=True))
        task = asyncio.create_task(step(loop))

        def wake_too_late(offered: asyncio.Future[None]) -> None:
            wake(offered)
            assert offered.done()
            task.cancel()

        monkeypatch.setattr(task_loops, "_wake", wake_too_late)
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, GUARD)
        monkeypatch.setattr(task_loops, "_wake", wake)
        assert [key async for key, _ in loop] == [2, 1]

    asyncio.run(main())


def test_a_cancelled_step_into_arrays_is_due_again(store: velocpy.Store, held: SimpleNamespace) -> None:
    async def main() -> None:
        history = filled(store, 3)
        history.hint([2, 1])
        into = np.zeros(MIB, np.uint8)
        task = await begun(step(aiter(history.restore_iter(into=[into]))))
        await until(held.succeeded.is_set)
        held.go.set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [int(into[0]) async for _ in history.restore_iter(into=[into])] == [2, 1]

    asyncio.run(main())


def test_what_a_cancelled_step_has_consumed_comes_with_the_next(store: velocpy.Store, held: SimpleNamespace) -> None:
    async def main() -> None:
        history = filled(store, 3)
        history.hint([2, 1])
        into = np.zeros(MIB, np.uint8)
        loop = aiter(history.restore_iter(last=True, into=[into]))
        task = await begun(step(loop))
        await until(held.succeeded.is_set)
        held.go.set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert 2 not in history
        assert [(key, int(into[0])) async for key, _ in loop] == [(2, 2), (1, 1)]

    asyncio.run(main())


def test_a_lease_that_a_cancelled_task_has_not_used_is_given_back(store: velocpy.Store) -> None:
    async def body(history: velocpy.History, reached: asyncio.Event) -> None:
        async for _, lease in history.restore_iter(last=True):
            reached.set()
            await asyncio.sleep(GUARD)
            lease["u"]

    async def main() -> None:
        history = filled(store, 3)
        history.hint([2, 1])
        reached = asyncio.Event()
        task = asyncio.create_task(body(history, reached))
        await reached.wait()
        assert 2 not in history
        await cancelled(task)
        del task
        gc.collect()
        assert 2 in history
        assert [key async for key, _ in history.restore_iter()] == [2, 1]

    asyncio.run(main())


def test_a_store_that_is_closed_ends_a_loop() -> None:
    async def main() -> None:
        store = velocpy.open(host=8 * MIB, disk=64 * MIB)
        history = filled(store)
        key, leases = crowded(history)
        history.hint([key])
        task = await begun(step(aiter(history.restore_iter(timeout=GUARD))))
        await asyncio.to_thread(store.close)
        with pytest.raises(velocpy.errors.StoreClosed):
            await asyncio.wait_for(task, GUARD)
        with pytest.raises(velocpy.errors.StoreClosed):
            history.restore_iter()
        leases.clear()

    asyncio.run(main())


def test_a_loop_that_is_left_ends_its_thread(store: velocpy.Store) -> None:
    async def main() -> None:
        history = filled(store, 6)
        history.hint([5, 4, 3])
        async for key, _ in history.restore_iter():
            if key == 4:
                break
        await until(lambda: not workers())

    asyncio.run(main())


def test_an_event_loop_that_ends_in_the_middle_of_a_step(
    store: velocpy.Store, held: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread gives the lease back and ends, although nobody answers it."""
    monkeypatch.setattr(task_loops, "_LOOK", 0.01)
    history = filled(store, 3)
    history.hint([2])
    loop = asyncio.new_event_loop()
    task = loop.create_task(step(aiter(history.restore_iter(last=True))))
    loop.run_until_complete(until(held.succeeded.is_set))
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()
    held.go.set()
    asyncio.run(until(lambda: 2 in history))
    del task
    gc.collect()


# --- streams


class Library:
    """The part of torch that has streams: current ones by thread and device."""

    def __init__(self) -> None:
        self._threads = threading.local()
        self.cuda = SimpleNamespace(
            is_initialized=lambda: True, current_stream=self.current_stream, set_stream=self.set_stream
        )
        self._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda n: self.current_stream(n).cuda_stream)

    def _streams(self) -> dict[Any, SimpleNamespace]:
        return self._threads.__dict__

    def current_stream(self, device: int) -> SimpleNamespace:
        return self._streams().get(device, SimpleNamespace(device=device, cuda_stream=1))

    def set_stream(self, stream: SimpleNamespace) -> None:
        self._streams()[stream.device] = stream


def test_another_thread_adopts_the_streams_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Library()
    monkeypatch.setitem(sys.modules, "torch", torch)
    torch.set_stream(SimpleNamespace(device=0, cuda_stream=70))
    torch.set_stream(SimpleNamespace(device=2, cuda_stream=72))
    taken = streams.CurrentStreams((1, 3))
    found: list[int] = []

    def look() -> None:
        taken.adopt()
        found.extend(torch.current_stream(device).cuda_stream for device in (0, 1, 2))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [70, 1, 72]


def test_the_streams_of_a_step_are_those_of_its_task(store: velocpy.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are taken anew for each step, in the thread of the event loop."""
    torch = Library()
    monkeypatch.setitem(sys.modules, "torch", torch)
    history = filled(store, 3)
    monkeypatch.setattr(store, "_places", (1,))
    asked = []

    def current(stream: Any) -> tuple[int, ...]:
        asked.append((torch.current_stream(0).cuda_stream, threading.current_thread() is threading.main_thread()))
        return ()

    monkeypatch.setattr(store, "_streams", current)

    async def main() -> None:
        history.hint([2, 1])
        loop = aiter(history.restore_iter())
        for handle in (70, 71):
            torch.set_stream(SimpleNamespace(device=0, cuda_stream=handle))
            await anext(loop)

    asyncio.run(main())
    assert asked == [(70, False), (71, False)]


# --- what it costs others


def test_asyncio_is_imported_by_those_alone_who_use_it(run_python: RunPython) -> None:
    done = run_python(
        """
        import sys, numpy, velocpy
        before = "asyncio" in sys.modules
        with velocpy.open(host="1MiB") as store:
            history = store.history("h")
            history.checkpoint(0, u=numpy.zeros(3)).wait()
            history.hint([0])
            for _ in history.restore_iter():
                pass
        assert ("asyncio" in sys.modules) == before
        """
    )
    assert done.returncode == 0, done.stderr
