"""Stores whose checkpoints go on to an archive in the background: ``velocpy.open(archive=)``."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RunPython
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_archive import SIZES, kept_steps, require, require_harmless, same, state_of, store_of, together, under_mpi
from test_archive_shares import Transport

import velocpy
from velocpy import errors, knobs, ondisk
from velocpy.archive import Destination, background, part, push
from velocpy.archive import together as together_

SOON = 0.05


def opened(folder: Path, **options: Any) -> velocpy.Store:
    return velocpy.open(store_of(folder, 0), **SIZES, archive=Destination(folder / "archive", every=SOON, **options))


def keep(store: velocpy.Store, rank: int, step: int, **options: Any) -> velocpy.Ticket:
    meta = {"loss": step / 2}
    return store.history("forward", **options).checkpoint(step, **state_of(rank, step), meta=meta)


@pytest.mark.parametrize("options", [{}, {"reduce": "codec"}, {"reduce": "tree", "chunk": 64}])
def test_one_process(options: dict[str, Any], tmp_path: Path) -> None:
    with opened(tmp_path, files=1) as store:
        tickets = [keep(store, 0, step, **options) for step in range(5)]
        assert not tickets[4].durable("archive") or 4 in kept_steps(tmp_path / "archive")
        tickets[4].wait("archive", timeout=60)
        tickets[2].wait("archive", timeout=60)
        assert tickets[4].durable("archive")
        assert "durable in archive" in repr(tickets[4])
        assert 4 in kept_steps(tmp_path / "archive")
        store.wait("archive", timeout=60)
        require(tmp_path / "archive", 1, range(5))
        store.history("forward", **options).checkpoint_many({5: state_of(0, 5)})
        keep(store, 0, 6, **options)
        stats = store.stats()["archive"]
        assert stats is not None
        assert (stats["keys"], stats["failures"]) in [(number, 0) for number in range(5, 8)]
        assert stats["pushes"] > 0
        assert stats["bytes"] > 0
        assert stats["pushing_ns"] > 0
    with velocpy.open(tmp_path / "archive", mode="r") as archive:  # closing has waited for the rest
        mine = archive.history(part("forward", 0))
        assert all(same(mine.restore(step), 0, step) for step in range(7))


def test_what_was_there_before(tmp_path: Path) -> None:
    """A run that goes on: what an earlier process has kept without an archive goes there, too."""
    with velocpy.open(store_of(tmp_path, 0), **SIZES) as store:
        keep(store, 0, 0)
    with opened(tmp_path) as store:
        store.wait("archive", timeout=60)
        require(tmp_path / "archive", 1, [0])


def test_tasks_wait(tmp_path: Path) -> None:
    with opened(tmp_path) as store:

        async def both() -> list[velocpy.Ticket]:
            return await asyncio.gather(*(keep(store, 0, step).until("archive", timeout=60) for step in range(2)))

        assert all(ticket.durable("archive") for ticket in asyncio.run(both()))


def test_what_is_dropped_or_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that went before it was known to be there owes nothing; the one that has replaced it gets there."""
    gate = threading.Event()
    look = background.Background._look

    def held(self: background.Background) -> Any:
        gate.wait(60)
        return look(self)

    monkeypatch.setattr(background.Background, "_look", held)
    with opened(tmp_path) as store:
        dropped, replaced, stays = (keep(store, 0, step) for step in (0, 1, 2))
        store.wait("disk")
        store.history("forward").drop(0)
        again = store.history("forward").checkpoint(1, **state_of(0, 9))
        gate.set()
        for ticket in (dropped, replaced):
            with pytest.raises(errors.CheckpointDropped):
                ticket.wait("archive", timeout=60)
            assert not ticket.durable("archive")
        again.wait("archive", timeout=60)
        stays.wait("archive", timeout=60)
        store.wait("archive", timeout=60)
        archived = stays.durable("archive")
        store.history("forward").drop(2)  # what is in the archive stays there
        assert archived
        assert stays.durable("archive")
    with velocpy.open(tmp_path / "archive", mode="r") as archive:
        assert sorted(archive.history("forward")) == [1, 2]
        assert same(archive.history(part("forward", 0)).restore(1), 0, 9)


def test_only_some_histories(tmp_path: Path) -> None:
    with opened(tmp_path, histories=["forward"]) as store:
        other = store.history("scratch").checkpoint(0, u=np.zeros(3))
        keep(store, 0, 0).wait("archive", timeout=60)
        with pytest.raises(errors.InvalidArgument, match="histories"):
            other.wait("archive")
        store.wait("archive", timeout=60)
        assert not other.durable("archive")
    assert [history.name for history in ondisk.contents(tmp_path / "archive").histories] == [
        "forward", part("forward", 0),
    ]  # fmt: skip


def between_pushes(path: Path) -> velocpy.Store:
    """A store that no other can be opened beside, or pushed into."""
    while True:
        with contextlib.suppress(errors.StoreLocked):
            return velocpy.open(path, **SIZES)
        time.sleep(0.01)


def test_an_archive_that_another_process_writes_to(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Those who wait hear of it. Pushes are tried again, and one line of the log tells of all."""
    with velocpy.open(store_of(tmp_path, 1), **SIZES) as other:
        keep(other, 0, 0)
    push([store_of(tmp_path, 1)], tmp_path / "archive")
    with opened(tmp_path) as store:
        with caplog.at_level(logging.WARNING, "velocpy"), between_pushes(tmp_path / "archive"):
            ticket = keep(store, 0, 1)
            for _ in range(2):
                with pytest.raises(errors.StoreLocked):
                    ticket.wait("archive", timeout=60)
            assert not ticket.durable("archive")
            assert [record.message for record in caplog.records if "tried again" in record.message][1:] == []
        while True:
            try:
                ticket.wait("archive", timeout=60)
            except errors.StoreLocked:  # of a push that had begun before
                continue
            break
        figures = store.stats()["archive"]
        assert figures is not None
        assert figures["failures"] >= 2
    assert kept_steps(tmp_path / "archive") == [0, 1]


def hold_pushes(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """No push begins before the event is set."""
    gate = threading.Event()
    push_now = background.Run.push

    def held(self: background.Run, *of: Any) -> Any:
        gate.wait(60)
        return push_now(self, *of)

    monkeypatch.setattr(background.Run, "push", held)
    return gate


def test_a_part_that_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = hold_pushes(monkeypatch)
    store = opened(tmp_path)
    large = np.random.default_rng(0).integers(0, 256, 4 << 20, np.uint8)  # too large for a commit area
    bad, good = store.history("forward").checkpoint(0, u=large), keep(store, 0, 1)
    store.wait("disk")
    (data,) = store_of(tmp_path, 0).glob("data-*")
    at = data.read_bytes().index(large[:4096].tobytes())
    with data.open("r+b") as file:
        file.seek(at + 100)
        file.write(bytes([~int(large[100]) & 255]))
        file.flush()
        os.fsync(file.fileno())  # a push reads past the page cache
    gate.set()
    with pytest.raises(errors.DurabilityLost, match="damaged") as caught:
        bad.wait("archive", timeout=60)
    assert (caught.value.history, caught.value.key, caught.value.tier) == ("forward", 0, "archive")
    good.wait("archive", timeout=60)
    for wait in (bad.wait, store.wait, store.history("forward").wait):
        with pytest.raises(errors.DurabilityLost):
            wait("archive", timeout=60)
    with pytest.raises(errors.DurabilityLost, match="damaged"):
        store.close()
    assert kept_steps(tmp_path / "archive") == [1]


def test_timeouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = hold_pushes(monkeypatch)
    store = opened(tmp_path)
    ticket = keep(store, 0, 0)
    store.wait("disk")
    for wait in (ticket.wait, store.wait):
        with pytest.raises(errors.WaitTimeout, match="archive"):
            wait("archive", timeout=0.1)
    with pytest.raises(errors.WaitTimeout, match="still open"):
        store.close(timeout=0.3)  # the last push is under way
    later = keep(store, 0, 1)  # the store goes on, and so does the archive
    gate.set()
    later.wait("archive", timeout=60)
    ticket.wait("archive", timeout=60)
    store.close()
    store.close()
    assert kept_steps(tmp_path / "archive") == [0, 1]
    with pytest.raises(errors.StoreClosed):
        store.wait("archive")


def test_a_program_that_ends_well(tmp_path: Path) -> None:
    def program() -> None:
        with opened(tmp_path) as store:
            keep(store, 0, 0)
            sys.exit(0)

    with pytest.raises(SystemExit):
        program()
    require(tmp_path / "archive", 1, [0])


def test_python_ends_before_it_is_closed(tmp_path: Path, run_python: RunPython) -> None:
    done = run_python(
        """
        import sys, numpy, velocpy
        from velocpy.archive import Destination
        to = Destination(sys.argv[1] + "/archive", every=3)
        store = velocpy.open(sys.argv[1] + "/rank-0", host="16MiB", disk="256MiB", archive=to)
        store.history("forward").checkpoint(0, u=numpy.zeros(3))
        """,
        str(tmp_path),
        env={"VELOCPY_EXIT_TIMEOUT": "60"},
    )
    assert done.returncode == 0, done.stderr
    assert kept_steps(tmp_path / "archive") == [0]


@pytest.mark.filterwarnings("ignore:unclosed")
def test_a_store_that_is_collected(tmp_path: Path) -> None:
    """It is closed, as any other, and its directory can be opened again."""
    store = opened(tmp_path)
    ticket = keep(store, 0, 0)
    ticket.wait("archive", timeout=60)
    keep(store, 0, 1)
    del store, ticket
    gc.collect()
    for _ in range(100):
        with contextlib.suppress(errors.StoreLocked):
            velocpy.open(store_of(tmp_path, 0), **SIZES).close()
            break
        time.sleep(0.1)
    else:
        raise AssertionError("the store is still open")


def test_a_push_that_fails_in_another_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody has foreseen is one of that push. If what pushes has ended, nobody waits for it in vain."""
    fails = threading.Event()
    fails.set()
    push_now, look = background.Run.push, background.Background._look

    def push_or_fail(self: background.Run, *of: Any) -> Any:
        if fails.is_set():
            raise OSError("the network is down")
        return push_now(self, *of)

    def look_or_fail(self: background.Background) -> Any:
        if gone.is_set():
            raise OSError("the core is gone")
        return look(self)

    gone = threading.Event()
    monkeypatch.setattr(background.Run, "push", push_or_fail)
    monkeypatch.setattr(background.Background, "_look", look_or_fail)
    store = opened(tmp_path)
    ticket = keep(store, 0, 0)
    with pytest.raises(errors.TierUnavailable, match="network is down"):
        ticket.wait("archive", timeout=60)
    fails.clear()
    for _ in range(2):
        with contextlib.suppress(errors.TierUnavailable):  # of a push that had begun before
            ticket.wait("archive", timeout=60)
    gone.set()
    late = keep(store, 0, 1)
    for wait in (late.wait, store.wait, store.history("forward").wait):
        with pytest.raises(errors.TierUnavailable, match="core is gone"):
            wait("archive", timeout=60)
    with pytest.raises(errors.TierUnavailable, match="core is gone"):
        store.close()
    require(tmp_path / "archive", 1, [0])


@pytest.mark.parametrize("flush", [True, False])
def test_an_error_does_not_wait(flush: bool, tmp_path: Path) -> None:
    """What is durable stays on the disk of the rank, and the next process brings it."""
    store = opened(tmp_path)
    keep(store, 0, 0).wait("disk")
    if flush:
        with pytest.raises(ZeroDivisionError), store:
            _ = 1 / 0
    else:
        store.close(flush=False)
    assert store.closed
    with opened(tmp_path):
        pass
    require(tmp_path / "archive", 1, [0])


def test_bad_calls(tmp_path: Path) -> None:
    path = store_of(tmp_path, 0)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "file").write_text("of others")
    for kind, words, options in [
        (errors.InvalidArgument, "archive=", {"ranks": object()}),
        (errors.InvalidType, "communicator", {"ranks": object(), "archive": tmp_path / "a"}),
        (errors.InvalidArgument, "prefix", {"archive": "s3://bucket"}),
        (errors.InvalidArgument, "every", {"archive": Destination(tmp_path / "a", every=0)}),
        (errors.InvalidArgument, "timeout", {"archive": Destination(tmp_path / "a", timeout=-1)}),
        (errors.InvalidArgument, "files", {"archive": Destination(tmp_path / "a", files=0)}),
        (errors.InvalidArgument, "at most 1", {"archive": Destination(tmp_path / "a", files=2)}),
        (errors.InvalidType, "histories", {"archive": Destination(tmp_path / "a", histories=[3])}),  # type: ignore[list-item]
        (errors.InvalidType, "give a path", {"archive": 3}),
        (errors.InvalidArgument, "durable", {"archive": tmp_path / "a", "durable": False}),
        (errors.InvalidArgument, "archive", {"archive": path}),
        (errors.InvalidArgument, "reads as a size", {"archive": "1GiB"}),
        (errors.ForeignDirectory, "foreign", {"archive": tmp_path / "foreign"}),
        (errors.VelocError, "not a directory", {"archive": tmp_path / "foreign" / "file"}),
        (errors.VelocError, "File name too long", {"archive": tmp_path / ("a" * 300)}),
    ]:
        with pytest.raises(kind, match=words):
            velocpy.open(path, **SIZES, **options)
    with velocpy.open(path, **SIZES):
        pass
    with pytest.raises(errors.InvalidArgument, match="mode='r'"):
        velocpy.open(path, mode="r", archive=tmp_path / "a")
    assert not (tmp_path / "a").exists()
    with opened(tmp_path) as store, pytest.raises(errors.InvalidArgument, match="progress"):
        store.wait("archive", progress=True)
    with velocpy.open(path, **SIZES) as store, pytest.raises(errors.VelocError):
        keep(store, 0, 0).wait("archive", timeout=1)


# ---- several ranks ----


class Crew:
    """Ranks that are threads of this process. A double of the transport brings their messages."""

    def __init__(self, folder: Path, nodes: list[int], seed: int = 0, **options: Any) -> None:
        self._folder, self._nodes = folder, nodes
        self._to = Destination(folder / "archive", every=options.pop("every", SOON), **options)
        self._transport = Transport(len(nodes), seed, slow=0.001)
        self._exchanges = [self._transport.exchange(rank, 60) for rank in range(len(nodes))]

    def run(self, work: Callable[[velocpy.Store, int], Any], **options: Any) -> list[Any]:
        """What each rank's work returns or raises, and the end of its store."""
        local = threading.local()
        own, name = background.own_exchange_of, knobs.node_name

        def one(rank: int) -> Any:
            local.rank = rank
            try:
                path = options.get("paths", {}).get(rank, store_of(self._folder, rank))
                with velocpy.open(path, **SIZES, archive=self._to, ranks=self._exchanges[rank]) as store:
                    return work(store, rank)
            except BaseException as error:
                return error

        background.own_exchange_of = lambda ranks, _: ranks  # type: ignore[assignment]
        knobs.node_name = lambda: str(self._nodes[local.rank])  # type: ignore[assignment]
        try:
            with ThreadPoolExecutor(len(self._nodes)) as threads:
                return list(threads.map(one, range(len(self._nodes))))
        finally:
            background.own_exchange_of, knobs.node_name = own, name  # type: ignore[assignment]


def raised(came: list[Any]) -> None:
    """Raises what a rank has raised."""
    for each in came:
        if isinstance(each, BaseException):
            raise each


class Awaited:
    """Rank 0 captures something, which is not in the archive before rank 1 has captured it, too."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._late, self._meanwhile = threading.Event(), meanwhile

    def capture(self, rank: int, do: Callable[[], velocpy.Ticket]) -> None:
        if rank == 1:
            self._late.wait(60)
        ticket = do()
        if rank == 0:
            with pytest.raises(errors.WaitTimeout):
                ticket.wait("archive", timeout=0.5)
            assert not ticket.durable("archive")
            self._meanwhile()
            self._late.set()
        ticket.wait("archive", timeout=60)


def test_a_key_is_there_when_every_rank_has_it(tmp_path: Path) -> None:
    awaited = Awaited()

    def work(store: velocpy.Store, rank: int) -> None:
        awaited.capture(rank, lambda: keep(store, rank, 0))
        require(tmp_path / "archive", 2, [0])

    raised(Crew(tmp_path, [0, 1]).run(work))


def test_a_key_that_ranks_capture_anew(tmp_path: Path) -> None:
    """The archive has the old versions of all ranks until all of them have new ones."""
    both = threading.Barrier(2, timeout=60)

    def require_version(step: int) -> None:
        with velocpy.open(tmp_path / "archive", mode="r") as archive:
            found = [archive.history(part("forward", rank)).restore(0) for rank in range(2)]
        assert [same(each, rank, step) for rank, each in enumerate(found)] == [True, True]

    awaited = Awaited(lambda: require_version(0))

    def work(store: velocpy.Store, rank: int) -> None:
        history = store.history("forward")
        history.checkpoint(0, **state_of(rank, 0)).wait("archive", timeout=60)
        both.wait()
        awaited.capture(rank, lambda: history.checkpoint(0, **state_of(rank, 1)))
        require_version(1)

    raised(Crew(tmp_path, [0, 1]).run(work))


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(nodes=st.lists(st.integers(0, 1), min_size=1, max_size=3), seed=st.integers(0, 1000))
def test_what_a_ticket_says_holds(tmp_path_factory: pytest.TempPathFactory, nodes: list[int], seed: int) -> None:
    """Ranks keep, replace and drop keys in one random order, at paces of their own. Whenever a wait ends well the
    archive has that version of that rank, or a later one, and of all ranks the same; at the end it has the last of all.
    """
    folder = tmp_path_factory.mktemp("ranks")
    last: list[dict[int, int]] = [{} for _ in nodes]

    def has(rank: int, key: int, version: int) -> bool:
        with velocpy.open(folder / "archive", mode="r") as archive:
            found = archive.history(part("forward", rank)).restore(key)
        return same(found, rank, version)

    def work(store: velocpy.Store, rank: int) -> None:
        rng, own = random.Random(seed), random.Random(f"{seed} {rank}")
        history = store.history("forward", reduce=own.choice(["raw", "codec", "tree"]))
        keys = rng.sample(range(4), 4)
        for turn in range(12):
            key = keys[turn] if turn < 4 else rng.randrange(4)
            ticket = history.checkpoint(key, **state_of(rank, turn))
            last[rank][key] = turn
            if own.random() < 0.3:
                time.sleep(own.random() * 0.05)
            if turn > 6 and rng.random() < 0.3:
                try:
                    ticket.wait("archive", timeout=60)
                except errors.CheckpointDropped:
                    raise AssertionError("no other thread drops it") from None
                assert all(has(each, key, turn) for each in range(len(nodes)))
                if rng.random() < 0.5:
                    history.drop(key)
                    assert has(rank, key, turn)  # what is there stays
                    last[rank][key] = turn + 100
                    history.checkpoint(key, **state_of(rank, turn + 100))

    raised(Crew(folder, nodes, seed, files=min(2, len(nodes))).run(work))
    assert kept_steps(folder / "archive") == list(range(4))
    for rank in range(len(nodes)):
        assert all(has(rank, key, version) for key, version in last[rank].items())
    assert ondisk.check(folder / "archive", read_data=True).sound


def test_a_rank_that_cannot_open(tmp_path: Path) -> None:
    """All raise, and no store stays open."""
    (tmp_path / "file").write_text("none of a store")
    came = Crew(tmp_path, [0, 0, 1]).run(lambda *_: "open", paths={1: tmp_path / "file"})
    assert isinstance(came[1], errors.InvalidArgument)
    for rank in (0, 2):
        assert isinstance(came[rank], errors.RankFailed)
        assert came[rank].rank == 1
    for rank in (0, 2):
        with velocpy.open(store_of(tmp_path, rank), **SIZES):
            pass
    assert not (tmp_path / "archive").exists()


def test_a_rank_that_ends_with_an_error(tmp_path: Path) -> None:
    """The others hear which one, whether they wait or close, and their stores have what they have captured."""

    def work(store: velocpy.Store, rank: int) -> None:
        keep(store, rank, 0).wait("archive", timeout=60)
        if rank == 2:
            raise ZeroDivisionError("too far")
        ticket = keep(store, rank, 1)
        if rank == 0:
            with pytest.raises(errors.RankFailed, match=r"rank 2 .*too far"):
                ticket.wait("archive", timeout=60)

    came = Crew(tmp_path, [0, 0, 0]).run(work)
    assert isinstance(came[2], ZeroDivisionError)
    for rank in (0, 1):
        assert isinstance(came[rank], errors.RankFailed)
        assert came[rank].rank == 2
        assert kept_steps(store_of(tmp_path, rank)) == [0, 1]
    require(tmp_path / "archive", 3, [0])


def test_a_push_that_one_rank_cannot_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ranks hear of it, and none waits for another."""
    carry_on, failing = together_.carry_on, threading.Event()

    def refused(*of: Any, **options: Any) -> Any:
        if failing.is_set():
            raise OSError("a stale handle")
        return carry_on(*of, **options)

    monkeypatch.setattr(together_, "carry_on", refused)

    def work(store: velocpy.Store, rank: int) -> str:
        failing.set()
        with pytest.raises(errors.VelocError, match="stale handle"):
            keep(store, rank, 0).wait("archive", timeout=60)
        return "waited"

    came = Crew(tmp_path, [0, 0]).run(work)  # closing tries again, and then gives up
    assert all(isinstance(each, errors.VelocError) and "stale handle" in str(each) for each in came)


def test_a_wait_that_nobody_can_fulfil(tmp_path: Path) -> None:
    """The other rank has closed its store, and waits for this one."""

    def work(store: velocpy.Store, rank: int) -> None:
        keep(store, rank, 0)
        if rank == 0:
            ticket = store.history("log").checkpoint(0, u=np.zeros(3))
            for wait in (ticket.wait, store.wait):
                with pytest.raises(errors.DurabilityLost, match="not all ranks"):
                    wait("archive", timeout=60)

    raised(Crew(tmp_path, [0, 0]).run(work))
    require(tmp_path / "archive", 2, [0])


def test_names_that_are_no_unicode(tmp_path: Path) -> None:
    """Two surrogates that form a pair are not the character that the pair stands for."""
    name, key = "\ud83d\ude00", "\ud83d\ude01"
    awaited = Awaited()

    def work(store: velocpy.Store, rank: int) -> None:
        awaited.capture(rank, lambda: store.history(name).checkpoint(key, u=np.zeros(3)))

    raised(Crew(tmp_path, [0, 0]).run(work))
    with velocpy.open(tmp_path / "archive", mode="r") as archive:
        assert list(archive.history(name)) == [key]


def test_what_not_all_ranks_have_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def work(store: velocpy.Store, rank: int) -> None:
        for step in range(2 + rank):
            keep(store, rank, step)

    with caplog.at_level(logging.WARNING, "velocpy"):
        raised(Crew(tmp_path, [0, 0]).run(work))
    require(tmp_path / "archive", 2, [0, 1])
    assert ["1 checkpoints of this rank" in record.message for record in caplog.records] == [True]


def require_archived(tmp_path: Path, count: int, said: list[dict[str, Any]]) -> None:
    for each in said:
        (report,) = each.values()
        assert report["pushed"] == {"waited": True, "keys": 6}
    require(tmp_path / "archive", count, range(6))


def test_ranks_of_torch(tmp_path: Path) -> None:
    """Rank 2 is on another node."""
    require_archived(tmp_path, 3, together(3, tmp_path, "archiving"))


def test_a_rank_that_is_killed(tmp_path: Path) -> None:
    """As one that is killed while all of them push: those that wait for the archive, and close, hear of it."""
    require_harmless(tmp_path, "archiving")


@pytest.mark.mpi
def test_ranks_of_mpi(tmp_path: Path) -> None:
    require_archived(tmp_path, 3, under_mpi(3, tmp_path, "archiving"))
