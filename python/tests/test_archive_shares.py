"""Ranks of several nodes that push together: threads of a process, whose messages a double of the transport brings."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_archive import compute, require, store_of

import velocpy
from velocpy import errors, knobs, ondisk
from velocpy.archive import Pushed, exchange, shares, together
from velocpy.archive.alone import Options
from velocpy.archive.exchange import Bytes, _await
from velocpy.archive.shares import _TRAILER, Share

PAGE = 4096


@dataclass
class Transport:
    """What is on its way between ranks. Messages of one pair keep their order; those of others overtake them."""

    ranks: int
    seed: int = 0
    #: Seconds that a message takes at most.
    slow: float = 0.0
    #: Is told sender, receiver and number of a message; "lost", "twice", "changed", "blank", "refused" or "".
    fate: Callable[[int, int, int], str] = lambda *_: ""
    guard: threading.Condition = field(default_factory=threading.Condition)
    said: dict[int, dict[int, bytes]] = field(default_factory=lambda: defaultdict(dict))
    sent: dict[tuple[int, int], deque[tuple[float, bytes]]] = field(default_factory=lambda: defaultdict(deque))
    counts: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    nbytes: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))

    def exchange(self, rank: int, timeout: float | None) -> Ranks:
        return Ranks(self, rank, timeout)


class Ranks:
    """The exchange of one rank."""

    def __init__(self, transport: Transport, rank: int, timeout: float | None) -> None:
        self.any_thread = True
        self._t, self.rank, self.size, self._timeout = transport, rank, transport.ranks, timeout
        self._calls = 0
        self._random = random.Random(f"{transport.seed} {rank}")

    def all_gather(self, text: bytes) -> list[bytes]:
        self._calls += 1
        with self._t.guard:
            said = self._t.said[self._calls]
            said[self.rank] = text
            self._t.guard.notify_all()
            if not self._t.guard.wait_for(lambda: len(said) == self.size, self._timeout or 30):
                raise errors.WaitTimeout("not all ranks have come")
        return [said[rank] for rank in range(self.size)]

    def broadcast(self, text: bytes) -> bytes:
        return self.all_gather(text)[0]

    def send(self, to: int, bytes_: Bytes) -> Any:
        way = (self.rank, to)
        with self._t.guard:
            self._t.counts[way] += 1
            self._t.nbytes[way] += len(bytes_)
            fate = self._t.fate(self.rank, to, self._t.counts[way])
            content = bytearray(bytes_.tobytes())
            if fate == "changed":
                content[len(content) // 3] ^= 4
            if fate == "blank":
                content[-_TRAILER.itemsize :] = bytes(_TRAILER.itemsize)
            if fate == "refused":
                raise OSError("the message was refused")
            for _ in range({"lost": 0, "twice": 2}.get(fate, 1)):
                self._t.sent[way].append((time.monotonic() + self._random.random() * self._t.slow, bytes(content)))
        return Parcel(lambda: True)

    def receive(self, sender: int, into: Bytes) -> Any:
        way = (sender, self.rank)

        def come() -> bool:
            with self._t.guard:
                waiting = self._t.sent[way]
                if not waiting or waiting[0][0] > time.monotonic():
                    return False
                content = waiting.popleft()[1]
            assert len(content) == len(into)
            into[:] = np.frombuffer(content, np.uint8)
            return True

        return Parcel(come)

    def wait(self, parcel: Any) -> None:
        _await(parcel.done, self._timeout)

    def close(self) -> None:
        """There is nothing to give back."""


class Parcel:
    def __init__(self, come: Callable[[], bool]) -> None:
        self._come, self._done = come, False

    def done(self) -> bool:
        self._done = self._done or self._come()
        return self._done


def options(archive: Path | str, files: int, buffer: int = PAGE, buffers: int = 2, leaders: int | None = 1) -> Options:
    return Options(archive, files, 2, False, None, buffer, buffers, leaders)


def push_all(
    folder: Path, transport: Transport, nodes: list[int], chosen: Options, timeout: float | None = 20
) -> list[Pushed | BaseException]:
    """What the push of each rank returns or raises."""
    came: dict[int, Pushed | BaseException] = {}
    local = threading.local()
    kept = knobs.node_name

    def run(rank: int) -> None:
        local.rank = rank
        try:
            exchange = transport.exchange(rank, 60)  # only messages of a plan have the short timeout of some tests
            came[rank] = together.push_together(exchange, store_of(folder, rank), lambda: chosen, timeout)
        except BaseException as error:
            came[rank] = error

    try:
        knobs.node_name = lambda: str(nodes[local.rank])  # type: ignore[assignment]
        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(transport.ranks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        knobs.node_name = kept  # type: ignore[assignment]
    return [came[rank] for rank in range(transport.ranks)]


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    nodes=st.lists(st.integers(0, 2), min_size=2, max_size=4),
    files=st.integers(1, 3),
    pages=st.integers(1, 20),
    buffers=st.integers(1, 4),
    leaders=st.sampled_from([None, 1, 2]),
    slow=st.sampled_from([0.0, 0.002]),
    seed=st.integers(0, 1000),
)
def test_whatever_lies_where(
    tmp_path_factory: pytest.TempPathFactory,
    nodes: list[int], files: int, pages: int, buffers: int, leaders: int | None, slow: float, seed: int,
) -> None:  # fmt: skip
    """Every rank says the same, all parts are there, and a second push sends nothing."""
    folder = tmp_path_factory.mktemp("run")
    compute(folder, len(nodes), range(2))
    chosen = options(folder / "archive", min(files, len(nodes)), pages * PAGE, buffers, leaders)
    transport = Transport(len(nodes), seed, slow)
    came = push_all(folder, transport, nodes, chosen)
    assert [came[0]] * len(nodes) == came
    assert isinstance(came[0], Pushed)
    assert (came[0].keys, came[0].parts) == (2, 2 * len(nodes))
    require(folder / "archive", len(nodes), range(2))
    again = push_all(folder, Transport(len(nodes), seed), nodes, chosen)
    assert isinstance(again[0], Pushed)
    assert (again[0].keys, again[0].known) == (0, 2)


def test_what_lies_on_the_leaders_node_is_not_sent(tmp_path: Path) -> None:
    """Rank 3 is alone on its node, with fewer bytes than the others together: it sends them, and nobody else does."""
    compute(tmp_path, 4, range(3))
    transport = Transport(4)
    came = push_all(tmp_path, transport, [0, 0, 0, 1], options(tmp_path / "archive", 1))
    assert isinstance(came[0], Pushed)
    bytes_of_rank = came[0].nbytes // 4
    assert {way for way, nbytes in transport.nbytes.items() if nbytes} == {(3, 0)}
    assert transport.nbytes[3, 0] > bytes_of_rank // 2
    require(tmp_path / "archive", 4, range(3))


def test_with_a_leader_on_every_node_nothing_is_sent(tmp_path: Path) -> None:
    """That is the default: two nodes write into one file."""
    compute(tmp_path, 4, range(3))
    transport = Transport(4)
    chosen = options(tmp_path / "archive", 1, leaders=None)
    assert isinstance(push_all(tmp_path, transport, [0, 0, 1, 1], chosen)[0], Pushed)
    assert set(transport.counts) == {(2, 0), (3, 0)}  # metadata alone
    assert set(transport.counts.values()) == {1}
    require(tmp_path / "archive", 4, range(3))


def test_threads_copy_pieces_of_what_need_not_be_read_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan names a checkpoint once, however long it is. Encoded ones are read back to be verified."""
    monkeypatch.setattr(shares, "_PIECE", PAGE)
    asked: list[tuple[int, int, int]] = []
    ask = Share.ask

    def spy(share: Share, op: str, data: Any = None, **request: Any) -> Any:
        if op == "share_copy":
            asked.append((request["copy"], request["at"], request["length"]))
        return ask(share, op, data, **request)

    monkeypatch.setattr(Share, "ask", spy)
    compute(tmp_path, 4, range(2), reduce="codec")
    chosen = options(tmp_path / "archive", 1, leaders=None)
    assert isinstance(push_all(tmp_path, Transport(4), [0, 0, 1, 1], chosen)[0], Pushed)
    assert {length for _, _, length in asked} == {PAGE}
    assert len(set(asked)) == len(asked) > len({copy for copy, _, _ in asked})
    require(tmp_path / "archive", 4, range(2))


def test_the_simulation_has_the_numbers_of_what_it_simulates() -> None:
    """`gocore/policy/aggregation/sim` is a twin of the steps of a rank, and of its waiting for others."""
    aggregation = Path(__file__).resolve().parents[2] / "gocore" / "policy" / "aggregation"
    if not aggregation.is_dir():
        pytest.skip("not a checkout")
    text = "".join(
        path.read_text(encoding="utf-8") for path in [*aggregation.glob("*.go"), *aggregation.glob("sim/*.go")]
    )

    def number(name: str) -> int:
        (value,) = re.findall(rf"^\t{name} += ([0-9_]+(?: << [0-9]+)?)$", text, re.MULTILINE)
        base, _, shift = value.partition(" << ")
        return int(base) << int(shift or 0)

    def numbers(names: str) -> list[int]:
        (values,) = re.findall(rf"^\t{names} += ([0-9_, ]+)$", text, re.MULTILINE)
        return [int(value) for value in values.split(", ")]

    assert number("ahead") == shares._AHEAD
    assert number("trailer") == _TRAILER.itemsize
    assert number("CopyBytes") == shares._PIECE
    assert number("metadataPiece") == together._PIECE
    assert number("metadataSenders") == together._SENDERS
    assert numbers("shortestLook, longest") == [round(1e9 * each) for each in (shares._SHORTEST, shares._LONGEST)]
    assert numbers("shortestWait, longestWait") == [
        round(1e9 * each) for each in (exchange._SHORTEST, exchange._LONGEST)
    ]


@given(st.lists(st.integers(0, 20), max_size=30), st.integers(1, 30), st.integers(1, 5))
def test_catalogs_come_in_batches(lengths: list[int], piece: int, senders: int) -> None:
    """Every rank that sends a catalog is in one batch, in order, and a batch is as large as its bounds allow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(together, "_PIECE", piece)
        patch.setattr(together, "_SENDERS", senders)
        batches = list(together._batches(lengths))
    assert [each for batch in batches for each in batch.items()] == [x for x in enumerate(lengths) if x[1]]
    for batch in batches:
        assert len(batch) == 1 or (sum(batch.values()) <= piece and len(batch) <= senders)
    for batch, following in zip(batches, batches[1:], strict=False):
        assert len(batch) == senders or sum(batch.values()) + next(iter(following.values())) > piece


@pytest.mark.parametrize(("piece", "senders"), [(16 << 20, 64), (16 << 20, 2), (100, 64)])
def test_catalogs_of_several_batches(piece: int, senders: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catalogs come from some ranks at once, and in pieces."""
    monkeypatch.setattr(together, "_PIECE", piece)
    monkeypatch.setattr(together, "_SENDERS", senders)
    compute(tmp_path, 6, range(2))
    transport = Transport(6, slow=0.002)
    came = push_all(tmp_path, transport, list(range(6)), options(tmp_path / "archive", 6))
    assert isinstance(came[0], Pushed), came
    require(tmp_path / "archive", 6, range(2))


def test_buffers_of_catalogs_that_do_not_come_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MPI may write into them later, when the push has been given up."""
    monkeypatch.setattr(together, "_abandoned", [])
    compute(tmp_path, 3, range(1))
    transport = Transport(3, fate=lambda sender, to, _: "lost" if sender == 1 else "")
    kept = transport.exchange
    monkeypatch.setattr(transport, "exchange", lambda rank, _: kept(rank, 1.0))
    came = push_all(tmp_path, transport, [0, 1, 2], options(tmp_path / "archive", 3))
    assert isinstance(came[0], errors.WaitTimeout), came
    assert [len(parcels) for parcels in together._abandoned] == [2]


@pytest.mark.parametrize("fate", ["changed", "blank", "refused"])
def test_a_message_that_does_not_come_as_it_was_sent(fate: str, tmp_path: Path) -> None:
    """All ranks raise, one of them its own error, nothing is in the archive, and the next push brings everything."""
    compute(tmp_path, 3, range(2))
    nodes, chosen = [0, 1, 2], options(tmp_path / "archive", 1)
    # Rank 2 has the most bytes, and leads. Rank 1 has sent its metadata to rank 0.
    strange = Transport(3, fate=lambda sender, to, n: fate if (sender, to, n) == (1, 2, 2) else "")
    came = push_all(tmp_path, strange, nodes, chosen, timeout=20)
    own = 1 if fate == "refused" else 2
    if own == 2:
        assert isinstance(came[2], errors.CorruptCheckpoint), came
        assert ("changed on their way" if fate == "changed" else "other bytes than the plan says") in str(came[2])
    else:
        assert isinstance(came[1], OSError)
        assert "the message was refused" in str(came[1])
    for rank in {0, 1, 2} - {own}:
        assert isinstance(came[rank], errors.RankFailed | errors.WaitTimeout), came
    assert push_all(tmp_path, Transport(3), nodes, chosen)[0].keys == 2  # type: ignore[union-attr]
    require(tmp_path / "archive", 3, range(2))


def test_a_message_of_an_earlier_plan(tmp_path: Path) -> None:
    """The last message of a push comes twice. The next push, by the same communicator, does not take it for its own."""

    def keep(key: int) -> None:
        for rank in range(2):
            with velocpy.open(store_of(tmp_path, rank), host="1MiB", disk="64MiB") as store:
                store.history("forward").checkpoint(key, u=np.full((2 - rank) * PAGE, key, np.uint8))

    def stale(sender: int, to: int, number: int) -> str:
        """Behind the catalog of rank 1, the message of the earlier plan comes first."""
        if (sender, to, number) == (1, 0, 2):
            again.sent[1, 0].extend(twice.sent[1, 0])
        return ""

    nodes, chosen = [0, 1], options(tmp_path / "archive", 1)
    keep(0)
    twice = Transport(2, fate=lambda sender, to, n: "twice" if (sender, to, n) == (1, 0, 2) else "")
    assert push_all(tmp_path, twice, nodes, chosen)[0].keys == 1  # type: ignore[union-attr]
    assert len(twice.sent[1, 0]) == 1
    keep(1)
    again = Transport(2, fate=stale)
    came = push_all(tmp_path, again, nodes, chosen)
    assert isinstance(came[0], errors.CorruptCheckpoint), came
    assert push_all(tmp_path, Transport(2), nodes, chosen)[0].keys == 1  # type: ignore[union-attr]
    assert ondisk.check(tmp_path / "archive", read_data=True).sound


def test_a_message_that_is_lost(tmp_path: Path) -> None:
    """The rank that waits for it says for whom it waits, and no rank waits longer than its timeout."""
    compute(tmp_path, 2, range(2))
    lost = Transport(2, fate=lambda sender, _, n: "lost" if (sender, n) == (0, 3) else "")
    began = time.monotonic()
    came = push_all(tmp_path, lost, [0, 1], options(tmp_path / "archive", 1), timeout=1)
    assert time.monotonic() - began < 60
    assert isinstance(came[1], errors.WaitTimeout)
    assert "from rank 0" in str(came[1])
    assert isinstance(came[0], errors.RankFailed)
    assert came[0].rank == 1
    assert push_all(tmp_path, Transport(2), [0, 1], options(tmp_path / "archive", 1))[0].keys == 2  # type: ignore[union-attr]
    require(tmp_path / "archive", 2, range(2))


@pytest.mark.parametrize(
    "op", ["share_begin", "share_read", "share_write", "share_copy", "share_end", "metadata", "share_close"]
)
@pytest.mark.parametrize("kind", [errors.TierIOError, KeyboardInterrupt])
def test_a_rank_that_fails(op: str, kind: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a rank fails in its share, all raise before any timeout: it its own error, the others its name."""
    compute(tmp_path, 4, range(3))
    first = threading.Lock()
    ask = together.Opened.ask

    def fails(self: Any, asked: str, *rest: Any, **more: Any) -> Any:
        if asked == op and first.acquire(blocking=False):
            raise kind("on purpose")
        return ask(self, asked, *rest, **more)

    nodes, chosen = [0, 0, 1, 2], options(tmp_path / "archive", 2)
    with monkeypatch.context() as patch:
        patch.setattr(together.Opened, "ask", fails)
        came = push_all(tmp_path, Transport(4), nodes, chosen, timeout=30)
    assert first.locked()
    own = [rank for rank, each in enumerate(came) if isinstance(each, kind)]
    assert len(own) == 1, came
    for rank, each in enumerate(came):
        if rank != own[0]:
            assert isinstance(each, errors.RankFailed), came
            assert each.rank == own[0]
            assert f"rank {own[0]} " in str(each)
            assert "on purpose" in str(each)
    again = push_all(tmp_path, Transport(4), nodes, chosen)[0]
    assert isinstance(again, Pushed)
    assert (again.keys, again.known) == ((0, 3) if op == "share_close" else (3, 0))
    require(tmp_path / "archive", 4, range(3))


def test_a_rank_that_is_interrupted(tmp_path: Path) -> None:
    """A signal breaks nothing off between two messages: what it raises is raised when the push has ended."""
    going, result = threading.Event(), []

    def call() -> int:
        going.set()
        time.sleep(0.3)
        result.append(1)
        return 1

    def interrupt() -> None:
        going.wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        together.sheltered(call)
    assert result == [1]


def test_ranks_that_name_one_store(tmp_path: Path) -> None:
    """All refuse it: each rank has a store of its own."""
    compute(tmp_path, 1, range(1))
    came: list[BaseException] = []
    transport = Transport(2)

    def run(rank: int) -> None:
        chosen = options(tmp_path / "archive", 1)
        with pytest.raises(errors.InvalidArgument, match="the ranks 0 and 1 have the same store") as caught:
            together.push_together(transport.exchange(rank, 10), store_of(tmp_path, 0), lambda: chosen, 10)
        came.append(caught.value)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(came) == 2


def test_an_archive_that_only_one_node_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that finds no archive, or another one, under the name of it: all raise, and say what is wrong."""
    compute(tmp_path, 2, range(2))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    opened = Share.open

    def elsewhere_for_rank_1(self: Share, **request: Any) -> Any:
        if request["rank"] == 1:
            request["to"] = os.fsencode(elsewhere).hex()
        return opened(self, **request)

    monkeypatch.setattr(Share, "open", elsewhere_for_rank_1)
    came = push_all(tmp_path, Transport(2), [0, 1], options(tmp_path / "archive", 2))
    assert isinstance(came[1], errors.InvalidArgument)
    assert "storage that all nodes share" in str(came[1])
    assert isinstance(came[0], errors.RankFailed)
    assert not list(elsewhere.iterdir())


def test_a_leader_has_so_many_buffers_however_many_ranks_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers of a rank are bounded by what was asked for: 3 for receiving here, though 5 ranks send many messages."""
    compute(tmp_path, 6, range(2))
    used: set[int] = set()
    receive = Ranks.receive

    def counted(self: Ranks, sender: int, into: Bytes) -> Any:
        if len(into) == PAGE + _TRAILER.itemsize:  # no metadata
            used.add(into.__array_interface__["data"][0])
        return receive(self, sender, into)

    monkeypatch.setattr(Ranks, "receive", counted)
    transport = Transport(6)
    came = push_all(tmp_path, transport, list(range(6)), options(tmp_path / "archive", 1, PAGE, 3))
    assert isinstance(came[0], Pushed), came
    assert len(used) == 3
    assert sum(transport.counts.values()) > 50
    require(tmp_path / "archive", 6, range(2))
