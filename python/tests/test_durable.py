"""Stores that outlive their process."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import RunPython

import velocpy
from velocpy import ondisk
from velocpy.choices import FlushRule


def filled(path: Path, count: int = 20, **options: object) -> dict[int | str, dict[str, np.ndarray]]:
    """Makes a store, and says what it holds."""
    rng = np.random.default_rng(7)
    kept: dict[int | str, dict[str, np.ndarray]] = {}
    with velocpy.open(path, host="8MiB", disk="64MiB", **options) as store:  # type: ignore[arg-type]
        history = store.history("run")
        for i in range(count):
            state = {
                "u": rng.standard_normal((i, 7)),
                "bits": rng.integers(0, 1 << 63, i * 31, dtype=np.uint64).view(np.float64),  # NaN payloads among them
                "none": np.zeros((0, 3), np.int16),
                "f": np.asfortranarray(rng.integers(0, 9, (5, 4, 3), dtype=np.int8)),
            }
            history.checkpoint(i, state, meta={"step": i})
            kept[i] = state
        history.checkpoint("a name \0 of its own", last=np.arange(100_000, dtype=np.float32))
        kept["a name \0 of its own"] = {"last": np.arange(100_000, dtype=np.float32)}
    return kept


def same(store: velocpy.Store, kept: dict[int | str, dict[str, np.ndarray]]) -> None:
    history = store.history("run")
    assert list(history) == list(kept)
    assert len(history) == len(kept)
    for key, state in kept.items():
        with history.restore(key) as lease:
            assert list(lease) == list(state)
            for name, array in state.items():
                assert lease[name].dtype == array.dtype
                assert lease[name].shape == array.shape
                assert np.asarray(lease[name]).tobytes("A") == array.tobytes("A") or (
                    lease[name].tobytes() == array.tobytes()
                )
            if isinstance(key, int):
                assert lease.meta == {"step": key}


@pytest.mark.parametrize("flush", ["lazy", "eager"])
def test_what_was_closed_is_found(tmp_path: Path, flush: FlushRule) -> None:
    kept = filled(tmp_path / "new" / "store", tuning=velocpy.Tuning(flush=flush))
    with velocpy.open(tmp_path / "new" / "store", host="1MiB", disk="1MiB") as store:
        assert [history.name for history in store.histories] == ["run"]
        same(store, kept)
    with velocpy.open(tmp_path / "new" / "store", host=None, disk="64MiB") as store:
        same(store, kept)
    with velocpy.open(tmp_path / "new" / "store", mode="r", host="64MiB") as store:
        same(store, kept)


def test_names_with_lone_surrogates(tmp_path: Path) -> None:
    names = ["a\udc80b", "\ud800", "ü€😀", "\ud83d"]
    with velocpy.open(tmp_path / "store", host="1MiB", disk="16MiB", timeline=100) as store:
        for name in names:
            store.history(name).checkpoint(name, u=np.zeros(3)).wait("disk")
        assert set(store.stats()["histories"]) == set(names)
        assert {(event["history"], event["key"]) for event in store.timeline()} == {(name, name) for name in names}
    with velocpy.open(tmp_path / "store", mode="r", host="1MiB") as store:
        assert {history.name: list(history) for history in store.histories} == {name: [name] for name in names}


@pytest.mark.parametrize("checksum", [True, False])
def test_a_checkpoint_of_nothing(tmp_path: Path, checksum: bool) -> None:
    """None of its bytes are on disk; it is found, restored, checked and copied all the same."""
    path = tmp_path / "store"
    with velocpy.open(path, host="1MiB", disk="16MiB", tuning=velocpy.Tuning(checksum=checksum)) as store:
        store.history("run").checkpoint(1, none=np.zeros((0, 3), np.int16))
        store.history("run").checkpoint(2, {})
    with velocpy.open(path, host=None, disk="16MiB", tuning=velocpy.Tuning(checksum=checksum)) as store:
        assert list(store.history("run")) == [1, 2]
        store.backup(tmp_path / "copy")
    for there in (path, tmp_path / "copy"):
        assert ondisk.check(there).damaged == 0
        with velocpy.open(there, mode="r") as store:
            assert store.history("run").restore(1)["none"].shape == (0, 3)


def test_drops_that_the_disk_refuses_are_told_of(tmp_path: Path, run_python: RunPython) -> None:
    """By close, which closes all the same; and one that is possible again by then is made."""
    done = run_python(
        """
import errno, resource, sys
import numpy as np
import velocpy
from velocpy.choices import FlushRule

everything = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
for refused in (True, False):
    store = velocpy.open(sys.argv[1], host="8MiB", disk="8MiB")
    history = store.history("run")
    history.checkpoint("stays", u=np.arange(10.0))
    history.checkpoint("goes", u=np.arange(20.0))
    store.wait("disk")
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    history.drop("goes")
    assert list(history) == ["stays"]
    if not refused:
        resource.setrlimit(resource.RLIMIT_FSIZE, everything)
    try:
        store.close()
        assert not refused
    except velocpy.errors.TierIOError as error:
        assert refused and error.errno == errno.EFBIG and error.tier == "disk" and "drops 1" in str(error), error
    assert store.closed
    store.close()  # told once
    resource.setrlimit(resource.RLIMIT_FSIZE, everything)
    try:
        with velocpy.open(sys.argv[1], host="8MiB", disk="8MiB") as store:
            store.history("other").checkpoint(1, u=np.arange(10.0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
            raise ValueError("the application's")
    except velocpy.errors.TierIOError as error:  # what was captured did not become durable
        assert isinstance(error.__context__, ValueError) and not error.__suppress_context__, error.__context__
    resource.setrlimit(resource.RLIMIT_FSIZE, everything)
    with velocpy.open(sys.argv[1], mode="r") as reader:
        assert list(reader.history("run")) == (["stays", "goes"] if refused else ["stays"])
        print(len(reader.history("run")))
""",
        str(tmp_path / "store"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2", "1"]


def test_another_process_finds_it(tmp_path: Path, run_python: RunPython) -> None:
    kept = filled(tmp_path)
    done = run_python(
        """
import sys, velocpy
with velocpy.open(sys.argv[1], host="4MiB") as store:
    run = store.history("run")
    print(len(run), float(run.restore(9)["u"].sum()))
    run.drop(3)
    run.checkpoint(100, u=run.restore(1)["u"])
""",
        str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    count, total = done.stdout.split()
    assert (int(count), float(total)) == (len(kept), pytest.approx(float(kept[9]["u"].sum()), abs=0))
    with velocpy.open(tmp_path, mode="r") as store:
        run = store.history("run")
        assert 3 not in run
        assert np.array_equal(run.restore(100)["u"], kept[1]["u"])


def test_one_writer_at_a_time_and_readers_beside_it(tmp_path: Path) -> None:
    kept = filled(tmp_path)
    with velocpy.open(tmp_path, host="1MiB") as writer:
        with pytest.raises(velocpy.errors.StoreLocked, match=r"open for writing.*mode='r'"):
            velocpy.open(tmp_path, host="1MiB")
        with velocpy.open(tmp_path, mode="r", host="1MiB") as one, velocpy.open(tmp_path, mode="r", host=None) as two:
            same(one, kept)
            same(two, kept)
            writer.history("run").checkpoint(77, u=np.zeros(3)).wait("disk")
            assert 77 not in one.history("run")
            with velocpy.open(tmp_path, mode="r", host="1MiB") as three:
                assert 77 in three.history("run")
    velocpy.open(tmp_path, host="1MiB").close()


def test_the_store_that_has_it_open_here_is_named(tmp_path: Path) -> None:
    """By its repr and its path, whatever name the second opening takes; stores of other directories are not."""
    (tmp_path / "link").symlink_to(tmp_path / "one")
    with (
        velocpy.open(tmp_path / "two", host="2MiB", disk="8MiB"),
        velocpy.open(tmp_path / "one", host="1MiB", disk="8MiB") as writer,
        velocpy.open(tmp_path / "one", mode="r", host="3MiB"),
    ):
        opened = re.escape(f"It is open here as {writer!r}, opened at {__file__}:")
        named = rf"{opened}\d+, which is in velocpy\.stores\(\), path {re.escape(str(tmp_path / 'one'))}\.$"
        for name in ("one", "link", "two/../one"):
            with pytest.raises(velocpy.errors.StoreLocked) as locked:
                velocpy.open(tmp_path / name, host="1MiB")
            assert re.search(named, str(locked.value))
        assert writer in velocpy.stores()


def test_a_writer_in_another_process_is_not_named(tmp_path: Path, run_python: RunPython) -> None:
    """Nor is a reader that this process has of the same store."""
    filled(tmp_path)
    program = """
    import sys, velocpy
    reader = velocpy.open(sys.argv[1], mode="r", host="1MiB")
    try:
        velocpy.open(sys.argv[1], host="1MiB")
    except velocpy.errors.StoreLocked as error:
        print(error)
    """
    with velocpy.open(tmp_path, host="1MiB"):
        done = run_python(program, str(tmp_path))
    assert "is open for writing, here or in another process" in done.stdout, done.stderr
    assert "open here as" not in done.stdout


def test_a_reader_changes_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with velocpy.open(tmp_path, mode="r", host="1MiB") as store:
        run = store.history("run")
        for change in (
            lambda: run.checkpoint(5, u=np.zeros(2)),
            lambda: run.drop(5),
            run.clear,
            lambda: run.restore(5, last=True),
            lambda: run.retain(last=1),
        ):
            with pytest.raises(velocpy.errors.ReadOnlyStore, match="reading only"):
                change()
        assert 5 in run
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_what_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(velocpy.errors.NotAStore, match="no store"):
        velocpy.open(tmp_path, mode="r")
    with pytest.raises(velocpy.errors.NotAStore):
        velocpy.open(tmp_path / "missing", mode="r")
    assert not (tmp_path / "missing").exists()
    with pytest.raises(velocpy.errors.InvalidArgument, match="mode"):
        velocpy.open(tmp_path, mode="w")
    with pytest.raises(velocpy.errors.InvalidArgument, match="durable"):
        velocpy.open(host="1MiB", durable=True)
    with pytest.raises(velocpy.errors.InvalidArgument, match="mode='r'"):
        velocpy.open(mode="r")


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    identity = tmp_path / "velocpy.store"
    raw = bytearray(identity.read_bytes())
    import xxhash

    for copy in (0, 4096):
        raw[copy + 8] = 99
        raw[copy + 48 : copy + 56] = xxhash.xxh3_64_intdigest(bytes(raw[copy : copy + 48])).to_bytes(8, "little")
    identity.write_bytes(raw)
    for options in ({}, {"mode": "r"}):
        with pytest.raises(velocpy.errors.FormatTooNew, match="later version"):
            velocpy.open(tmp_path, host="1MiB", **options)


def test_durable_survives_a_kill(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            """
import sys, numpy as np, velocpy
store = velocpy.open(sys.argv[1], host="8MiB", disk="64MiB", tuning=velocpy.Tuning(flush="lazy"))
run = store.history("run")
for i in range(1000):
    ticket = run.checkpoint(i, u=np.full(1000 + i, i))
    if i % 3 == 0:
        ticket.wait("disk")
        print(i, flush=True)
""",
            str(tmp_path),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(30)]
    process.kill()
    acknowledged += [int(line) for line in process.stdout.read().splitlines()]
    process.wait()
    process.stdout.close()
    with velocpy.open(tmp_path, host="8MiB") as store:
        run = store.history("run")
        assert set(acknowledged) <= set(run)
        for i in run:
            assert isinstance(i, int)
            assert np.array_equal(run.restore(i)["u"], np.full(1000 + i, i))


def test_close_makes_everything_durable_or_says_why_not(tmp_path: Path) -> None:
    store = velocpy.open(tmp_path, host="8MiB", disk="1MiB", tuning=velocpy.Tuning(flush="lazy"))
    for i in range(4):
        store.history("run").checkpoint(i, u=np.full(50_000, i))
    with pytest.raises(velocpy.errors.TierFull):
        store.close()
    assert store.closed
    with velocpy.open(tmp_path, host="8MiB", disk="4MiB") as again:
        run = again.history("run")
        found = list(run)
        assert found
        for i in found:
            assert np.array_equal(run.restore(i)["u"], np.full(50_000, i))
        run.checkpoint(9, u=np.zeros(3))
        again.close(flush=False)


def test_retention_outlives_the_process(tmp_path: Path) -> None:
    with velocpy.open(tmp_path, host="8MiB", disk="64MiB") as store:
        run = store.history("run")
        run.retain(last=3, every=10, named=True, keys=[7])
        for i in range(40):
            run.checkpoint(i, u=np.full(1000, i)).wait("disk")
        run.checkpoint("named", u=np.zeros(1)).wait("disk")
        assert sorted(run, key=str) == sorted([0, 7, 10, 20, 30, 38, 39, "named"], key=str)
    with velocpy.open(tmp_path, host="8MiB") as store:
        run = store.history("run")
        run.checkpoint(41, u=np.zeros(3)).wait("disk")
        assert sorted(run, key=str) == sorted([0, 7, 10, 20, 30, 39, 41, "named"], key=str)


@pytest.mark.parametrize("host", ["8MiB", "256KiB", None])
def test_retention_keeps_what_was_written_last(tmp_path: Path, host: str | None) -> None:
    """Checkpoints of all sizes become durable in any order; which of them stay, the order of their writing tells."""
    rng = np.random.default_rng(5)
    rules: list[tuple[dict[str, object], list[int | str]]] = [
        ({"last": 1}, [11]),
        ({"last": 3}, [9, 10, 11]),
        ({"last": 1, "every": 5, "keys": [7]}, [0, 5, 7, 10, 11]),
        ({"last": 2, "named": True}, ["a", "b", 10, 11]),
    ]
    for attempt in range(40):
        rule, kept = rules[attempt % len(rules)]
        path = tmp_path / str(attempt)
        with velocpy.open(path, host=host, disk="64MiB") as store:
            run = store.history("run")
            run.retain(**rule)  # type: ignore[arg-type]
            if "named" in rule:
                run.checkpoint("a", u=rng.random(100))
                run.checkpoint("b", u=rng.random(10))
            for i in range(12):
                run.checkpoint(i, u=np.full(int(rng.integers(0, 20_000)), i))
                if rng.random() < 0.3:
                    time.sleep(float(rng.random()) / 200)
        with velocpy.open(path, mode="r", host="8MiB") as store:
            assert list(store.history("run")) == kept, (attempt, rule)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 96 MiB of its own."""
    at = tmp_path / "small"
    at.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", at], capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield at
    subprocess.run(["umount", "-l", at], check=True)


def fill(path: Path) -> None:
    """Takes all that a file system has left."""
    with path.open("wb", buffering=0) as filler:
        for step in (1 << 20, 4096, 1):
            try:
                while True:
                    filler.write(bytes(step))
            except OSError as full:
                if full.errno != errno.ENOSPC:
                    raise


def test_a_full_file_system(small_disk: Path) -> None:
    """What fails while others fill the disk takes no room from the store, which goes on when there is space again."""
    rng = np.random.default_rng(3)
    with velocpy.open(small_disk / "store", host="64MiB", disk="64MiB") as store:
        run = store.history("run")
        run.checkpoint("first", u=np.arange(1000)).wait("disk")
        fill(small_disk / "filler")
        failed: list[int | None] = []
        for i in range(400):
            try:
                run.checkpoint(i % 8, u=rng.random(65_536)).wait("disk")
            except velocpy.errors.TierIOError as error:
                failed.append(error.errno)
        assert len(failed) > 300
        assert set(failed) == {errno.ENOSPC}
        assert store.stats()["tiers"]["disk"]["used"] < 20 * 65_536 * 8
        assert len(list((small_disk / "store").iterdir())) < 10
        (small_disk / "filler").unlink()
        last = rng.random(65_536)
        run.checkpoint("last", u=last).wait("disk")
    with velocpy.open(small_disk / "store", mode="r", host="64MiB") as store:
        run = store.history("run")
        assert set(run) == {"first", "last", *range(8)}
        assert np.array_equal(run.restore("last")["u"], last)
        assert np.array_equal(run.restore("first")["u"], np.arange(1000))


def test_nothing_is_free(small_disk: Path, run_python: RunPython) -> None:
    """A store whose process died can be opened for writing, and cleared up, where nothing is free."""
    path = small_disk / "store"
    run_python(
        f"""
        import os, numpy, velocpy
        store = velocpy.open({str(path)!r}, host="8MiB", disk="64MiB")
        run = store.history("run")
        for i in range(8):
            run.checkpoint(i, u=numpy.full(200_000, i)).wait("disk")
        os._exit(0)
        """
    )
    fill(small_disk / "filler")
    files = {file.name for file in path.iterdir()}
    with velocpy.open(path, host="8MiB", disk="64MiB") as store:
        run = store.history("run")
        for i in range(4):
            run.drop(i)
    with velocpy.open(path, mode="r", host="8MiB") as store:
        assert list(store.history("run")) == [4, 5, 6, 7]
    got = ondisk.collect(path)
    assert got.file_nbytes > 0
    assert len(list(path.iterdir())) <= len(files) + 1
    with velocpy.open(path, host="8MiB", disk="64MiB") as store:
        run = store.history("run")
        run.checkpoint(9, u=np.zeros(1000)).wait("disk")
        assert list(run) == [4, 5, 6, 7, 9]


def test_threads_write_one_durable_store(tmp_path: Path) -> None:
    with velocpy.open(tmp_path, host="4MiB", disk="64MiB") as store:

        def work(number: int) -> None:
            mine = store.history(f"thread {number}")
            for i in range(60):
                mine.checkpoint(i % 7, u=np.full(200 * number + i, i)).wait("disk")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with velocpy.open(tmp_path, mode="r", host="4MiB") as store:
        for number in range(6):
            mine = store.history(f"thread {number}")
            assert sorted(mine) == list(range(7))  # type: ignore[type-var]
            for i in range(53, 60):
                assert np.array_equal(mine.restore(i % 7)["u"], np.full(200 * number + i, i))
