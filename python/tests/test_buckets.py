"""Archives in a bucket of an object store: a real server, faults on the way to it, and processes that are killed."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import second_bucket
import xxhash
from click.testing import CliRunner
from launching import launch_ranks
from object_store import BUCKET, SECRET, Fault, Proxy, Request, Server, environment, proxied, serving
from test_archive import SIZES, compute, kept_steps, require, same, state_of, store_of
from test_archive_shares import Transport, options, push_all

import velocpy
from velocpy import errors, ondisk
from velocpy.archive import Destination, Pushed, buckets, part, pull, push
from velocpy.cli import main

_numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of all tests here."""
    with serving(tmp_path_factory.mktemp("objects")) as running:
        yield running


@pytest.fixture
def reached(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The same, and the environment that reaches it."""
    use(monkeypatch, server.url)
    return server


@pytest.fixture
def proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy before the server, and the environment that reaches it."""
    with proxied(server) as running:
        use(monkeypatch, running.url)
        yield running


def use(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name, value in environment(url).items():
        monkeypatch.setenv(name, value)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, this process knows nothing of what it has read: another program reaches the server."""
    monkeypatch.setenv("AWS_EXECUTION_ENV", f"test {next(_numbers)}")


@pytest.fixture
def prefix() -> str:
    """A prefix of its own for each test."""
    return f"run-{next(_numbers)}"


@pytest.fixture
def place(prefix: str) -> str:
    return f"s3://{BUCKET}/{prefix}"


def add(store: Path, rank: int, step: int, **options: Any) -> None:
    """A rank goes on."""
    with velocpy.open(store, **SIZES) as opened:
        history = opened.history("forward", **options)
        history.checkpoint(step, **state_of(rank, step), meta={"loss": step / 2}).wait("disk")


@pytest.mark.parametrize("options", [{}, {"reduce": "codec"}, {"reduce": "tree", "chunk": 64}, {"reduce": "reference"}])
def test_what_ranks_have_kept_comes_back(options: dict[str, Any], reached: Server, place: str, tmp_path: Path) -> None:
    stores = compute(tmp_path, 3, range(6), **options)
    done = push(stores, place)
    assert (done.keys, done.parts, done.known, done.files) == (6, 18, 0, 1)
    assert done.sent_nbytes > done.nbytes
    assert done.requests > 3
    require(place, 3, range(6))
    forms = {entry.form for rank in range(3) for entry in ondisk.checkpoints(place, part("forward", rank))}
    assert forms == {entry.form for store in stores for entry in ondisk.checkpoints(store, "forward")}
    again = push(stores, place)
    assert (again.keys, again.known, again.files, again.sent_nbytes) == (0, 6, 0, 0), "nothing is sent twice"
    for rank, store in enumerate(stores):
        add(store, rank, 6, **options)
    more = push(stores, place)
    assert (more.keys, more.parts, more.known) == (1, 3, 6)
    require(place, 3, range(7))
    pulled = pull(place, tmp_path / "again", rank=1)
    assert (pulled.checkpoints, pulled.damaged) == (7, 0)
    with velocpy.open(tmp_path / "again", mode="r", host="16MiB") as store:
        assert all(same(store.history("forward").restore(step), 1, step) for step in range(7))


def test_a_pack_of_many_parts_has_its_bytes(reached: Server, place: str, tmp_path: Path) -> None:
    large = np.random.default_rng(1).integers(0, 256, 70 << 20, np.uint8)
    with velocpy.open(tmp_path / "rank-0", host="256MiB", disk="1GiB") as store:
        store.history("forward").checkpoint(0, u=large, v=np.arange(5))
    done = push([tmp_path / "rank-0"], place)
    assert done.requests >= 5, "it went in parts"
    with velocpy.open(place, mode="r", host="256MiB") as archive:
        restored = archive.history(part("forward", 0)).restore(0)
        assert np.array_equal(restored["u"], large)
        assert restored["v"].tolist() == [0, 1, 2, 3, 4]


def test_keys_are_replaced_and_stale_parts_go(reached: Server, place: str, tmp_path: Path) -> None:
    stores = compute(tmp_path, 3, range(2))
    push(stores, place)
    with velocpy.open(stores[0], **SIZES) as store:
        store.history("forward").checkpoint(1, **state_of(0, 9), meta={})
    push(stores[:2], place)
    with velocpy.open(place, mode="r", host="16MiB") as archive:
        assert archive.history("forward").restore(1)["ranks"].tolist() == [0, 1]
        assert same(archive.history(part("forward", 0)).restore(1), 0, 9)
        assert same(archive.history(part("forward", 1)).restore(1), 1, 1)
        assert 1 not in archive.history(part("forward", 2))


def test_an_open_reader_sees_what_it_saw_and_refreshes(reached: Server, place: str, tmp_path: Path) -> None:
    stores = compute(tmp_path, 1, range(2))
    push(stores, place)
    with velocpy.open(place, mode="r", host="16MiB") as archive:
        seen = archive.history(part("forward", 0))
        add(stores[0], 0, 2)
        push(stores, place)
        assert sorted(seen) == [0, 1]
        assert same(seen.restore(1), 0, 1)
        archive.refresh()
        assert sorted(seen) == [0, 1, 2]
        assert same(seen.restore(2), 0, 2)
        assert archive.path is None


def test_many_commits_need_few_requests_to_open(
    proxy: Proxy, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = compute(tmp_path, 1, range(1))
    for step in range(1, 40):
        push(stores, place)
        add(stores[0], 0, step)
    push(stores, place)
    forget(monkeypatch)
    proxy.seen.clear()
    assert ondisk.contents(place).histories[0].checkpoints == 40
    kinds = [request.kind() for request in proxy.seen]
    assert kinds.count("GET ?list-type") == 1
    assert len(kinds) <= 4, kinds
    assert push(stores, place).requests == 1, "what this process has read is not read again"


def test_an_archive_that_is_made_anew_is_another(reached: Server, prefix: str, place: str, tmp_path: Path) -> None:
    stores = compute(tmp_path, 1, range(2))
    push(stores, place)
    shutil.rmtree(reached.folder / BUCKET / prefix)
    with pytest.raises(errors.NotAStore):
        ondisk.contents(place)
    assert push(stores, place).keys == 2
    require(place, 1, range(2))
    shutil.rmtree(reached.folder / BUCKET / prefix)
    code = "import sys; from velocpy.archive import push; push(sys.argv[2:], sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, place, *map(str, stores)], check=True)
    require(place, 1, range(2))


def test_commands_work_on_a_bucket(reached: Server, place: str, tmp_path: Path) -> None:
    stores = compute(tmp_path, 2, range(3))

    def run(*arguments: str) -> Any:
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, (done.output, done.exception)
        return done.output

    said = json.loads(run("push", *map(str, stores), place, "--json"))
    assert (said["keys"], said["parts"], said["files"]) == (3, 6, 1)
    assert said["requests"] > 0
    assert "3 were there" in run("push", *map(str, stores), place)
    assert json.loads(run("ls", place, "forward", "--json").splitlines()[0])["key"] == 0
    assert "slow" in run("show", place, "rank 1/forward", "2")
    assert "no damage" in run("check", place, "--read-data")
    assert "3 checkpoints of rank 1" in run("pull", place, str(tmp_path / "again"), "--rank", "1")
    run("export", place, "rank 1/forward", "2", str(tmp_path / "two.npz"))
    with np.load(tmp_path / "two.npz") as exported:
        assert np.array_equal(exported["slow"], state_of(1, 2)["slow"])
    run("backup", place, str(tmp_path / "copy"))
    assert ondisk.check(tmp_path / "copy", read_data=True).sound
    assert "0 files would be removed" in run("gc", place, "--dry-run")


# What is refused.


def test_wrong_places_are_refused(reached: Server, prefix: str, place: str, tmp_path: Path) -> None:
    stores = compute(tmp_path, 1, range(1))
    for wrong in ("s3://", f"s3://{BUCKET}", f"s3://{BUCKET}/", f"s3://{BUCKET}/a//b", "s3:///a"):
        with pytest.raises(errors.InvalidArgument, match="prefix"):
            push(stores, wrong)
        with pytest.raises(errors.InvalidArgument, match="prefix"):
            velocpy.open(wrong, mode="r", host="16MiB")
    for call in (
        lambda: push(stores, Path(place)),
        lambda: ondisk.contents(Path(place)),
        lambda: velocpy.open(Path(place), mode="r", host="16MiB"),
        lambda: pull(Path(place), tmp_path / "again", rank=0),
    ):
        with pytest.raises(errors.InvalidArgument, match="lost a slash"):
            call()
    with pytest.raises(errors.TierIOError, match='no bucket "missing"'):
        push(stores, "s3://missing/run")
    with pytest.raises(errors.NotAStore):
        ondisk.contents(place)
    with pytest.raises(errors.NotAStore):
        velocpy.open(place, mode="r", host="16MiB")
    with pytest.raises(errors.InvalidArgument, match="mode='r'"):
        velocpy.open(place, host="16MiB", disk="1GiB")
    with pytest.raises(errors.InvalidArgument, match="files"):
        push(stores, place, files=2)
    assert reached.files(prefix) == []


def test_objects_of_others_are_left_alone(reached: Server, prefix: str, place: str, tmp_path: Path) -> None:
    theirs = reached.folder / BUCKET / prefix / "data.bin"
    theirs.parent.mkdir()
    theirs.write_bytes(b"theirs")
    with pytest.raises(errors.InvalidArgument, match="objects of others"):
        push(compute(tmp_path, 1, range(1)), place)
    assert reached.files(prefix) == [theirs]
    assert theirs.read_bytes() == b"theirs"


def test_wrong_credentials_are_denied_and_never_told(
    reached: Server, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stores = compute(tmp_path, 1, range(1))
    push(stores, place)
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-" + SECRET)
    for call in (lambda: push(stores, place), lambda: ondisk.contents(place)):
        with pytest.raises(errors.AccessDenied, match="credentials") as caught:
            call()
        assert isinstance(caught.value, PermissionError)
        assert "hush" not in str(caught.value) + repr(caught.value.__cause__) + caplog.text
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(errors.AccessDenied, match="credentials"):
        ondisk.contents(place)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        f"[other]\naws_access_key_id = throwaway\naws_secret_access_key = {SECRET}\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert push(stores, place).known == 1, "a profile in ~/.aws is found"


def test_without_a_server_it_ends(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, "http://127.0.0.1:1")
    with pytest.raises(errors.TierIOError, match="refused"):
        push(compute(tmp_path, 1, range(1)), place)
    use(monkeypatch, "nonsense")
    with pytest.raises(errors.TierIOError, match="AWS_ENDPOINT_URL"):
        ondisk.contents(place)


def test_later_versions_are_told(
    reached: Server, prefix: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = compute(tmp_path, 1, range(1))
    push(stores, place)
    forget(monkeypatch)
    identity = reached.folder / BUCKET / prefix / "velocpy.store"
    content = identity.read_bytes()
    later = bytearray(content[:4096])
    later[8] = 2
    later[48:56] = _xxh3(bytes(later[:48]))
    identity.write_bytes(bytes(later) * 2)
    with pytest.raises(errors.FormatTooNew):
        push(stores, place)
    identity.write_bytes(content)
    (commit,) = reached.files(f"{prefix}/commits")
    body = bytearray(commit.read_bytes()[:-8])
    body[8] = 2
    commit.write_bytes(bytes(body) + _xxh3(bytes(body)))
    with pytest.raises(errors.FormatTooNew):
        ondisk.contents(place)


def _xxh3(content: bytes) -> bytes:
    return xxhash.xxh3_64_intdigest(content).to_bytes(8, "little")


def test_without_the_program_the_call_says_so(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "PROGRAM", "velocpy-missing")
    monkeypatch.setenv("AWS_PROFILE", "none that a running program has")
    with pytest.raises(errors.TierUnavailable, match="velocpy-missing"):
        ondisk.contents(place)


# Faults on the way.


@pytest.mark.parametrize("status", [500, 503])
@pytest.mark.parametrize(
    "kind", ["GET velocpy.store", "PUT velocpy.store", "GET ?list-type", "PUT packs", "PUT commits", "GET commits"]
)
def test_a_request_that_fails_once_is_repeated(
    kind: str, status: int, proxy: Proxy, place: str, tmp_path: Path
) -> None:
    stores = compute(tmp_path, 2, range(2))
    if kind == "GET commits":
        push(stores[:1], place)
    proxy.fail_once(kind, Fault(status=status))
    assert push(stores, place).keys == 2
    codes = [code for request, code in proxy.statuses if request.kind() == kind]
    assert codes[0] == status
    assert codes[1] in (200, 206, 404)
    require(place, 2, range(2))


@pytest.mark.parametrize("kind", ["PUT velocpy.store", "PUT packs", "PUT commits"])
def test_a_lost_reply_counts_once(
    kind: str, proxy: Proxy, prefix: str, place: str, server: Server, tmp_path: Path
) -> None:
    stores = compute(tmp_path, 2, range(2))
    proxy.fail_once(kind, Fault(lose_reply=True))
    assert push(stores, place).keys == 2
    assert len([request for request in proxy.seen if request.kind() == kind]) >= 2, "it was sent again"
    assert len(server.files(f"{prefix}/commits")) == 1
    assert len(server.files(f"{prefix}/packs")) == 1
    require(place, 2, range(2))


@pytest.mark.parametrize("cut", [0, 1, 5000])
def test_a_cut_reply_is_read_to_its_end(cut: int, proxy: Proxy, place: str, tmp_path: Path) -> None:
    stores = compute(tmp_path, 1, range(1))
    push(stores, place)
    proxy.fail_once("GET packs", Fault(cut=cut))
    with velocpy.open(place, mode="r", host="16MiB") as archive:
        assert same(archive.history(part("forward", 0)).restore(0), 0, 0)
    assert len([request for request in proxy.seen if request.kind() == "GET packs"]) >= 2


def test_bytes_that_change_on_the_way_there_are_sent_again(proxy: Proxy, place: str, tmp_path: Path) -> None:
    stores = compute(tmp_path, 1, range(2))
    for kind in ("PUT packs", "PUT commits", "PUT velocpy.store"):
        proxy.fail_once(kind, Fault(alter_sent=True))
        push(stores, f"{place}/{kind[4:]}")
        assert any(request.kind() == kind and code >= 400 for request, code in proxy.statuses), "the server has noticed"
        require(f"{place}/{kind[4:]}", 1, range(2))


def test_bytes_that_change_on_the_way_back_are_noticed(
    proxy: Proxy, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(compute(tmp_path, 1, range(2)), place)
    forget(monkeypatch)
    proxy.fail_once("GET commits", Fault(alter_received=True))
    require(place, 1, range(2))
    proxy.fault = lambda request: Fault(alter_received=True) if request.kind() == "GET packs" else None
    with velocpy.open(place, mode="r", host="16MiB") as archive, pytest.raises(errors.CorruptCheckpoint):
        archive.history(part("forward", 0)).restore(0)
    assert not ondisk.check(place, read_data=True).sound
    forget(monkeypatch)
    proxy.fault = lambda request: Fault(alter_received=True) if request.kind() == "GET commits" else None
    with pytest.raises(errors.DamagedStore):
        ondisk.contents(place)


def test_a_wrong_etag_of_a_part_is_asked_for_again(proxy: Proxy, place: str, tmp_path: Path) -> None:
    """The server refuses to make the object. The push begins its batch again, and finds the parts with their ETags."""
    with velocpy.open(tmp_path / "rank-0", host="128MiB", disk="1GiB") as store:
        store.history("forward").checkpoint(0, u=np.ones(20 << 20, np.uint8))
    proxy.fail_once("PUT packs?partNumber", Fault(headers={"ETag": '"0123456789abcdef0123456789abcdef"'}))
    done = push([tmp_path / "rank-0"], place)
    assert (done.keys, done.sent_nbytes < 21 << 20) == (1, True)
    assert 400 in [status for _, status in proxy.statuses]
    with velocpy.open(place, mode="r", host="128MiB") as archive:
        assert archive.history(part("forward", 0)).restore(0)["u"].all()


def test_a_slow_server_is_waited_for(proxy: Proxy, place: str, tmp_path: Path) -> None:
    stores = compute(tmp_path, 1, range(2))
    proxy.fault = lambda request: Fault(before=lambda: time.sleep(0.2))
    assert push(stores, place).keys == 2
    require(place, 1, range(2))


def test_a_server_that_keeps_failing_ends_the_push(proxy: Proxy, place: str, tmp_path: Path) -> None:
    stores = compute(tmp_path, 1, range(2))
    push(stores, place)
    add(stores[0], 0, 2)
    proxy.fault = lambda request: Fault(status=503) if request.method == "PUT" else None
    with pytest.raises(errors.TierIOError):
        push(stores, place)
    proxy.fault = None
    require(place, 1, range(2))
    assert push(stores, place).keys == 1


# Several writers.


class Connection:
    """A connection to a program velocpy-s3 of its own, with the messages of gocore/base/wire."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        program = Path(velocpy.__file__).with_name("velocpy-s3")
        with theirs:
            self._process = subprocess.Popen([program, str(theirs.fileno())], pass_fds=[theirs.fileno()])

    def ask(self, body: bytes = b"", **request: Any) -> tuple[dict[str, Any], bytes]:
        text = json.dumps({"bucket": BUCKET, **request}).encode()
        self._ours.sendall(struct.pack("<IQ", len(text), len(body)) + text + body)
        head, nbytes = struct.unpack("<IQ", self._exactly(12))
        return json.loads(self._exactly(head)), self._exactly(nbytes)

    def _exactly(self, nbytes: int) -> bytes:
        return self._ours.recv(nbytes, socket.MSG_WAITALL) if nbytes else b""

    def close(self) -> None:
        self._ours.close()
        self._process.wait()


#: CRC-32C of b"0", b"1", …, as the header has it.
_SUMS = ["Yp4a4A==", "kPWZ4w==", "g6VqFw==", "cc7pFA==", "pQSN/w==", "V28O/A==", "RD/9CA==", "tlR+Cw=="]


def test_of_writers_of_one_object_one_wins(reached: Server, prefix: str) -> None:
    """What the order of commits rests on: a conditional PUT, of which the server lets one through."""
    connections = [Connection() for _ in _SUMS]
    for number in range(20):
        key = f"{prefix}/{number}"
        together = threading.Barrier(len(connections))
        answers: dict[int, Any] = {}

        def put(writer: int, key: str = key, together: threading.Barrier = together, to: Any = answers) -> None:
            together.wait()
            body = str(writer).encode()
            to[writer], _ = connections[writer].ask(body, op="put", key=key, new=True, sum=_SUMS[writer])

        threads = [threading.Thread(target=put, args=(writer,)) for writer in range(len(connections))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (winner,) = (writer for writer, answer in answers.items() if not answer.get("why"))
        assert {answer.get("why") for writer, answer in answers.items() if writer != winner} == {"exists"}
        assert (reached.folder / BUCKET / prefix / str(number)).read_bytes() == str(winner).encode()
    for connection in connections:
        connection.close()


def test_of_two_pushes_one_begins_again(proxy: Proxy, prefix: str, place: str, server: Server, tmp_path: Path) -> None:
    """The first one waits with its commit until the second one has made the same number."""
    first, second = compute(tmp_path / "first", 1, range(3)), compute(tmp_path / "second", 1, range(5))
    push(first, place, histories=["none"])
    held = []

    def choose(request: Request) -> Fault | None:
        if request.kind() == "PUT commits" and not held:
            held.append(request)
            return Fault(before=lambda: held.append(push({1: second[0]}, place)))
        return None

    proxy.fault = choose
    done = push({0: first[0]}, place, partial=True)
    assert done.keys == 3
    assert 412 in [code for request, code in proxy.statuses if request.kind() == "PUT commits"], (
        "the server has refused it"
    )
    with velocpy.open(place, mode="r", host="16MiB") as archive:
        assert sorted(archive.history(part("forward", 0))) == [0, 1, 2]
        assert sorted(archive.history("forward")) == [0, 1, 2, 3, 4]
    assert ondisk.check(place, read_data=True).sound


def test_many_pushes_at_once_lose_nothing(reached: Server, place: str, tmp_path: Path) -> None:
    stores = {
        rank: compute(
            tmp_path / str(rank),
            1,
            range(3),
        )[0]
        for rank in range(4)
    }
    results: dict[int, Any] = {}

    def bring(rank: int) -> None:
        with velocpy.open(stores[rank], **SIZES) as store:  # a history of its own: no push drops another's parts
            store.history(f"h{rank}").checkpoint(0, u=np.full(10, rank)).wait("disk")
        while rank not in results:
            with contextlib.suppress(errors.StoreLocked):
                results[rank] = push({rank: stores[rank]}, place, histories=[f"h{rank}"])

    threads = [threading.Thread(target=bring, args=(rank,)) for rank in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with velocpy.open(place, mode="r", host="16MiB") as archive:
        for rank in stores:
            assert archive.history(part(f"h{rank}", rank)).restore(0)["u"].tolist() == [rank] * 10
    assert ondisk.check(place, read_data=True).sound


def test_the_loser_of_every_race_is_told(proxy: Proxy, place: str, tmp_path: Path) -> None:
    mine, theirs = compute(tmp_path / "mine", 1, range(1)), compute(tmp_path / "theirs", 1, range(1))
    steps = itertools.count(1)

    def overtake() -> None:
        proxy.fault = None
        add(theirs[0], 0, next(steps))
        push({1: theirs[0]}, place, partial=True)
        proxy.fault = choose

    def choose(request: Request) -> Fault | None:
        return Fault(before=overtake) if request.kind() == "PUT commits" else None

    proxy.fault = choose
    with pytest.raises(errors.StoreLocked, match="another process keeps changing"):
        push(mine, place)
    proxy.fault = None
    assert ondisk.check(place, read_data=True).sound


# Killed processes, and what they leave.

_PUSH = """
import sys
from velocpy.archive import push
print(push(sys.argv[2:], sys.argv[1]).keys)
"""


def killed_at(proxy: Proxy, number: int, carried_out: bool, *arguments: str) -> bool:
    """Kills a push at one of its requests, before the server gets it or after. False: it has ended before."""
    command = [sys.executable, "-c", _PUSH, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    began = len(proxy.seen)

    def kill() -> None:
        process.send_signal(signal.SIGKILL)
        process.wait()

    def choose(request: Request) -> Fault | None:
        if request.number - began != number:
            return None
        return Fault(after=kill, lose_reply=True) if carried_out else Fault(before=kill, status=403)

    proxy.fault = choose
    process.wait()
    proxy.fault = None
    return process.returncode == -signal.SIGKILL


def test_a_push_that_is_killed_leaves_old_or_new(
    proxy: Proxy, prefix: str, place: str, server: Server, tmp_path: Path
) -> None:
    """Kills at every request of a push, before it is carried out and after."""
    stores = compute(tmp_path, 2, range(2))
    push(stores, place)
    for rank, store in enumerate(stores):
        add(store, rank, 2)
    calm = len(proxy.seen)
    push(stores, f"{place}-calm")
    needed = len(proxy.seen) - calm
    kills = 0
    for number, carried_out in itertools.product(range(needed), (False, True)):
        kills += killed_at(proxy, number, carried_out, place, *map(str, stores))
        found = sorted(checkpoint.key for checkpoint in ondisk.checkpoints(place, "forward"))
        assert found in ([0, 1], [0, 1, 2])
        require(place, 2, found)
    assert kills >= needed
    push(stores, place)
    require(place, 2, range(3))
    assert len(server.files(f"{prefix}/packs")) >= 2
    ondisk.collect(place, age=0)
    assert len(server.files(f"{prefix}/packs")) == 2, "what was left is gone"
    require(place, 2, range(3))


def killed_once(proxy: Proxy, kind: str, place: str, store: Path) -> None:
    """Kills a push at the first request of a kind.

    The program that sends the requests outlives the process for a moment. A request that is refused like this one it
    does not repeat.
    """
    process = subprocess.Popen([sys.executable, "-c", _PUSH, place, str(store)], stderr=subprocess.DEVNULL)

    def kill() -> None:
        process.send_signal(signal.SIGKILL)
        process.wait()

    proxy.fail_once(kind, Fault(before=kill, status=403))
    assert process.wait() == -signal.SIGKILL
    proxy.fault = None


def test_the_next_push_goes_on_with_what_a_killed_one_has_sent(proxy: Proxy, place: str, tmp_path: Path) -> None:
    """All parts have arrived, and only the request that makes an object of them has not."""
    array = np.random.default_rng(0).integers(0, 1 << 60, 6 << 20)
    with velocpy.open(tmp_path / "rank-0", host="128MiB", disk="1GiB") as store:
        store.history("forward").checkpoint(0, u=array)
    killed_once(proxy, "POST packs?uploadId", place, tmp_path / "rank-0")
    done = push([tmp_path / "rank-0"], place)
    assert done.keys == 1
    assert done.sent_nbytes < 1 << 20 < done.nbytes, "the parts were not sent again"
    with velocpy.open(place, mode="r", host="128MiB") as archive:
        assert np.array_equal(archive.history(part("forward", 0)).restore(0)["u"], array)
    assert ondisk.collect(place, dry_run=True, age=0).removed_files == 0
    assert ondisk.check(place, read_data=True).sound


@pytest.mark.parametrize("kind", ["PUT packs?partNumber", "POST packs?uploadId"])
def test_parts_of_a_push_that_is_killed_are_collected(kind: str, proxy: Proxy, place: str, tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "rank-0", host="128MiB", disk="1GiB") as store:
        store.history("forward").checkpoint(0, u=np.arange(5 << 20))
    killed_once(proxy, kind, place, tmp_path / "rank-0")
    assert ondisk.collect(place, dry_run=True, age=0).removed_files > 0, "the upload was left"
    ondisk.collect(place, age=0)
    assert ondisk.collect(place, dry_run=True, age=0).removed_files == 0
    assert push([tmp_path / "rank-0"], place).keys == 1
    with velocpy.open(place, mode="r", host="128MiB") as archive:
        assert np.array_equal(archive.history(part("forward", 0)).restore(0)["u"], np.arange(5 << 20))


def test_the_program_that_is_killed_is_started_again(reached: Server, place: str, tmp_path: Path) -> None:
    stores = compute(tmp_path, 1, range(1))
    push(stores, place)
    with velocpy.open(place, mode="r", host="16MiB") as archive:
        buckets._running[-1].process.kill()
        buckets._running[-1].process.wait()
        with pytest.raises(errors.VelocError, match="velocpy-s3"):
            archive.history(part("forward", 0)).restore(0)
    require(place, 1, range(1))


def test_the_program_ends_with_its_process(reached: Server, place: str, tmp_path: Path) -> None:
    code = """
import os, sys
from velocpy import ondisk
from velocpy.archive import buckets
try:
    ondisk.contents(sys.argv[1])
except FileNotFoundError:
    pass
print(buckets._running[-1].process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code, place], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    try:
        program = os.pidfd_open(int(done.stdout))
    except ProcessLookupError:
        return  # it has ended already
    try:
        ended, _, _ = select.select([program], [], [], 60)
        assert ended, "the program goes on without its process"
    finally:
        os.close(program)


def test_collecting_leaves_what_checkpoints_need(reached: Server, prefix: str, place: str, tmp_path: Path) -> None:
    stores = compute(tmp_path, 1, range(2))
    push(stores, place)
    with velocpy.open(stores[0], **SIZES) as store:
        for step in range(2):
            store.history("forward").checkpoint(step, **state_of(0, step), meta={"loss": step / 2})
    push(stores, place)  # the keys are replaced, so the first pack has nothing but dead bytes
    (reached.folder / BUCKET / prefix / "packs" / "0000000000000000-left").write_bytes(b"of a push that has died")
    foreseen = ondisk.collect(place, dry_run=True, age=0)
    assert foreseen.removed_files >= 2
    assert len(reached.files(f"{prefix}/packs")) == 3
    assert ondisk.collect(place, age=3600).removed_files == 0, "all is young"
    assert len(reached.files(f"{prefix}/packs")) == 3
    assert ondisk.collect(place, age=0).removed_files >= 2
    assert len(reached.files(f"{prefix}/packs")) == 1
    require(place, 1, range(2))
    add(stores[0], 0, 2)
    push(stores, place)
    require(place, 1, range(3))


@pytest.mark.parametrize("options", [{}, {"reduce": "tree", "chunk": 64}])
def test_flipped_bits_are_found(
    options: dict[str, Any], reached: Server, prefix: str, place: str, tmp_path: Path
) -> None:
    push(compute(tmp_path, 2, range(4), **options), place)
    (pack,) = reached.files(f"{prefix}/packs")
    content = pack.read_bytes()
    rng = np.random.default_rng(7)
    found = 0
    for at in rng.integers(0, len(content), 30).tolist():
        pack.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        report = ondisk.check(place, read_data=True)
        found += not report.sound
        with velocpy.open(place, mode="r", host="16MiB") as archive:
            for rank, step in itertools.product(range(2), range(4)):
                with contextlib.suppress(errors.CorruptCheckpoint):
                    assert same(archive.history(part("forward", rank)).restore(step), rank, step), (
                        "wrong bytes came back"
                    )
    assert found > 3, "padding alone has no checksum"
    pack.write_bytes(content)
    assert ondisk.check(place, read_data=True).sound


def test_damage_in_a_store_does_not_get_there(reached: Server, place: str, tmp_path: Path) -> None:
    stores = compute(tmp_path, 2, range(3), reduce="codec")
    (data,) = sorted(stores[1].glob("data-*"))
    extent = ondisk.describe(stores[1], "forward", 1).extents[0]
    with data.open("r+b") as file:
        file.seek(extent.offset + 100)
        byte = file.read(1)
        file.seek(extent.offset + 100)
        file.write(bytes([byte[0] ^ 1]))
    done = push(stores, place)
    assert done.keys == 2
    assert len(done.damaged) == 1
    assert "rank 1" in done.damaged[0]
    assert sorted(entry.key for entry in ondisk.checkpoints(place, "forward")) == [0, 2]
    assert ondisk.check(place, read_data=True).sound


def test_a_copy_asks_for_many_checkpoints_at_once(proxy: Proxy, place: str, tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "rank-0", **SIZES) as store:
        for step in range(300):
            store.history("forward").checkpoint(step, u=np.full(100, step))
    push([tmp_path / "rank-0"], place)
    proxy.seen.clear()
    assert pull(place, tmp_path / "again", rank=0).checkpoints == 300
    assert len([request for request in proxy.seen if request.kind() == "GET packs"]) < 10
    with velocpy.open(tmp_path / "again", mode="r", host="16MiB") as again:
        assert all(again.history("forward").restore(step)["u"][99] == step for step in range(300))


@pytest.mark.parametrize("options", [{}, {"reduce": "tree", "chunk": 64}])
def test_the_objects_are_what_the_format_says(
    options: dict[str, Any], reached: Server, prefix: str, place: str, tmp_path: Path
) -> None:
    """Another reader makes an ordinary store of them, before there is a whole catalog and behind it."""
    stores = compute(tmp_path, 2, range(3), **options)
    push(stores, place)
    objects = reached.folder / BUCKET / prefix
    assert second_bucket.unpacked(objects, tmp_path / "first") == 1
    require(tmp_path / "first", 2, range(3))
    ondisk.collect(place, age=0)
    for rank, store in enumerate(stores):
        add(store, rank, 3, **options)
    push(stores, place)
    assert second_bucket.unpacked(objects, tmp_path / "second") == 3
    require(tmp_path / "second", 2, range(4))


def _page(root: Path) -> list[str]:
    """The examples of docs/archive.md that name a bucket."""
    found = re.findall(r"```text\n(.*?)```", (root / "docs" / "archive.md").read_text(), flags=re.DOTALL)
    return [text for text in found if "s3://bucket" in text]


def test_the_examples_of_the_page_run(reached: Server, root: Path, tmp_path: Path) -> None:
    for rank in range(4):
        with velocpy.open(tmp_path / "run" / f"rank-{rank:05d}", **SIZES) as store:
            store.history("forward").checkpoint(0, u=np.array([rank]))
    commands, program = _page(root)
    lines = commands.replace("s3://bucket/run", f"s3://{BUCKET}/page").splitlines()
    assert lines[0].startswith("export AWS_ACCESS_KEY_ID=")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    script = "\n".join(["set -e", f'velocpy() {{ {sys.executable} -m velocpy "$@"; }}', *lines[1:]])
    environ = {**os.environ, "PATH": path}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "rank 3/forward" in done.stdout
    code = "import velocpy\n" + program.replace("s3://bucket/run", f"s3://{BUCKET}/page")
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "[1]"


# While a run goes on.


def test_a_store_sends_what_it_keeps(reached: Server, place: str, tmp_path: Path) -> None:
    to = Destination(place, every=0.05)
    with velocpy.open(tmp_path / "rank-0", **SIZES, archive=to) as store:
        for step in range(4):
            ticket = store.history("forward").checkpoint(step, **state_of(0, step), meta={"loss": step / 2})
        ticket.wait("archive", timeout=120)
        stats = store.stats()["archive"]
    assert stats is not None
    assert stats["requests"] > 0
    assert stats["sent_bytes"] > stats["bytes"] > 0
    require(place, 1, range(4))


# Ranks of one node and of several.


def test_ranks_push_together(reached: Server, place: str, tmp_path: Path) -> None:
    """In processes of their own, on one node and on two: what they push, and what their stores send by themselves."""
    pytest.importorskip("torch")
    launch_ranks(Path(__file__).with_name("bucket_rank.py"), 3, tmp_path, place)
    said = [json.loads((tmp_path / f"report-{rank}.json").read_text()) for rank in range(3)]
    for nodes, packs in ("1", 1), ("2", 3):
        pushed = [each[nodes] for each in said]
        assert pushed == [pushed[0]] * 3
        assert (pushed[0]["keys"], pushed[0]["parts"], pushed[0]["files"]) == (3, 9, packs)
        assert pushed[0]["sent_nbytes"] > pushed[0]["nbytes"]
        require(f"{place}-{nodes}", 3, range(4))


@pytest.mark.parametrize("reduced", [{}, {"reduce": "codec"}, {"reduce": "tree", "chunk": 64}, {"reduce": "reference"}])
def test_each_node_uploads_what_its_stores_have(
    reduced: dict[str, Any], reached: Server, place: str, tmp_path: Path
) -> None:
    """Between ranks goes metadata alone. A second push brings what is new, and a run on other nodes goes on."""
    compute(tmp_path, 4, range(3), **reduced)
    transport = Transport(4)
    came = push_all(tmp_path, transport, [0, 1, 0, 1], options(place, 1))
    assert isinstance(came[0], Pushed), came
    assert [came[0]] * 4 == came
    assert (came[0].keys, came[0].parts, came[0].files) == (3, 12, 3)
    assert set(transport.counts) == {(1, 0), (3, 0)}, "rank 0 gets the catalogs of the other node"
    require(place, 4, range(3))
    again = push_all(tmp_path, Transport(4), [0, 1, 0, 1], options(place, 1))[0]
    assert isinstance(again, Pushed)
    assert (again.keys, again.known, again.files) == (0, 3, 0)
    for rank in range(4):
        with velocpy.open(store_of(tmp_path, rank), **SIZES) as store:
            store.history("forward", **reduced).checkpoint(3, **state_of(rank, 3), meta={"loss": 1.5}).wait("disk")
    more = push_all(tmp_path, Transport(4), [0, 1, 2, 3], options(place, 1))[0]
    assert isinstance(more, Pushed)
    assert (more.keys, more.parts, more.known, more.files) == (1, 4, 3, 5)
    require(place, 4, range(4))


@pytest.mark.parametrize("op", ["share", "share_begin", "share_upload", "share_end", "share_close"])
def test_a_rank_that_fails_harms_no_key(
    op: str, reached: Server, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rank raises its own error, and the others raise its number."""
    compute(tmp_path, 3, range(2))
    first = threading.Lock()
    ask = ondisk.Opened.ask

    def fails(self: Any, asked: str, *rest: Any, **more: Any) -> Any:
        if asked == op and first.acquire(blocking=False):
            raise errors.TierIOError("on purpose")
        return ask(self, asked, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(ondisk.Opened, "ask", fails)
        came = push_all(tmp_path, Transport(3), [0, 1, 1], options(place, 1), timeout=30)
    assert sorted(type(each).__name__ for each in came) == ["RankFailed", "RankFailed", "TierIOError"], came
    again = push_all(tmp_path, Transport(3), [0, 1, 1], options(place, 1))[0]
    assert isinstance(again, Pushed)
    assert again.keys + again.known == 2
    require(place, 3, range(2))


def test_a_rank_that_is_killed(reached: Server, place: str, tmp_path: Path) -> None:
    """The others raise, each key is there as a whole, and a push of what the stores have completes it.

    Each commit plays another rank and moment.
    """
    pytest.importorskip("torch")
    moment = random.Random(os.environ.get("VELOCPY_TURN"))
    who, count = moment.randrange(4), 4
    what = f"killed:{who}:{moment.random() * 1.5}"
    launch_ranks(Path(__file__).with_name("bucket_rank.py"), count, tmp_path, place, what, killed=who)
    for rank in set(range(count)) - {who}:
        assert json.loads((tmp_path / f"report-{rank}.json").read_text()) in ("RankFailed", "WaitTimeout")
    with contextlib.suppress(errors.NotAStore):
        require(place, count, kept_steps(place))
    push([store_of(tmp_path, rank) for rank in range(count)], place)
    whole = set.intersection(*(set(kept_steps(store_of(tmp_path, rank))) for rank in range(count)))
    assert set(kept_steps(place)) >= whole
    require(place, count, kept_steps(place))
    ondisk.collect(place, age=0)
    require(place, count, kept_steps(place))


@pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::FutureWarning"
)  # DCP warns where there is one process alone
def test_checkpoints_of_torch_come_back_from_a_bucket(reached: Server, place: str, tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    dcp: Any = pytest.importorskip("torch.distributed.checkpoint")
    dcps: Any = pytest.importorskip("velocpy.dcp")
    with dcps.Writer(tmp_path / "run", archive=place, **SIZES) as writer:
        dcp.save({"x": torch.arange(9.0)}, storage_writer=writer, checkpoint_id="a", no_dist=True)
    state = {"x": torch.zeros(9)}
    with dcps.Reader(place, host="16MiB") as reader:
        assert reader.checkpoints() == ("a",)
        dcp.load(state, storage_reader=reader, checkpoint_id="a", no_dist=True)
    assert torch.equal(state["x"], torch.arange(9.0))
