"""A store keeps to its directory and its lock, whatever becomes of their names."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import velocpy
from velocpy.trial import owner

SIZES = {"host": "8MiB", "disk": "64MiB"}


def write(store: velocpy.Store, keys: range, seed: int, *, durable: bool = True) -> None:
    history = store.history("h")
    for key in keys:
        ticket = history.checkpoint(key, u=np.random.default_rng(seed + key).bytes(5000))
        if durable:
            ticket.wait("disk")


def holds(path: Path, keys: range, seed: int) -> None:
    with velocpy.open(path, mode="r", host="8MiB") as store:
        history = store.history("h")
        assert sorted(history) == list(keys)
        for key in keys:
            assert bytes(history.restore(key)["u"]) == np.random.default_rng(seed + key).bytes(5000)


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.mark.parametrize("relative", [False, True])
def test_another_store_in_place_of_a_renamed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    with velocpy.open("other", **SIZES) as store:
        write(store, range(5), seed=1000)
    other = files(tmp_path / "other")
    path = Path("store") if relative else tmp_path / "store"
    with caplog.at_level(logging.WARNING, "velocpy"), velocpy.open(path, **SIZES) as store:
        write(store, range(20), seed=0)
        path.rename("moved")
        Path("other").rename("store")
        write(store, range(20, 300), seed=0, durable=False)
        store.history("h").checkpoint(300, u=np.random.default_rng(300).bytes(5000)).wait("disk")
    holds(tmp_path / "moved", range(301), seed=0)
    assert files(tmp_path / "store") == other
    assert any("another name" in record.message for record in caplog.records)


def mount(*options: object) -> None:
    if subprocess.run(["mount", *map(str, options)], capture_output=True, check=False).returncode != 0:
        pytest.skip("nothing can be mounted here")


def unmount(point: Path) -> None:
    subprocess.run(["umount", "-l", point], capture_output=True, check=False)


@pytest.mark.parametrize("covered", [False, True])
def test_another_file_system_in_place_of_its_own(
    tmp_path: Path, covered: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Taken away and replaced, or covered: the store goes on in its own, and is found when that is mounted again."""
    own, other, point = tmp_path / "own", tmp_path / "other", tmp_path / "point"
    for place in (own, other, point):
        place.mkdir()
    with velocpy.open(other / "store", **SIZES) as store:
        write(store, range(5), seed=1000)
    kept = files(other / "store")
    mount("--bind", own, point)
    try:
        with caplog.at_level(logging.WARNING, "velocpy"), velocpy.open(point / "store", **SIZES) as store:
            write(store, range(20), seed=0)
            if not covered:
                unmount(point)
            mount("--bind", other, point)
            holds(point / "store", range(5), seed=1000)  # that is what the name leads to now
            write(store, range(20, 300), seed=0, durable=False)
            store.history("h").checkpoint(300, u=np.random.default_rng(300).bytes(5000)).wait("disk")
            assert bytes(store.history("h").restore(3)["u"]) == np.random.default_rng(3).bytes(5000)
    finally:
        unmount(point)
        if covered:
            unmount(point)
    holds(own / "store", range(301), seed=0)
    assert files(other / "store") == kept
    assert any("another name" in record.message for record in caplog.records)


def test_chdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere" / "store").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with velocpy.open("store", **SIZES) as store:
        os.chdir("elsewhere")
        write(store, range(100), seed=0)
        for key in range(100):
            assert bytes(store.history("h").restore(key)["u"]) == np.random.default_rng(key).bytes(5000)
    holds(tmp_path / "store", range(100), seed=0)
    assert not files(tmp_path / "elsewhere" / "store")


def test_chdir_with_scratch_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with velocpy.open("scratch", disk="64MiB", durable=False) as store:
        os.chdir("/")
        write(store, range(10), seed=0, durable=False)
        for key in range(10):
            assert bytes(store.history("h").restore(key)["u"]) == np.random.default_rng(key).bytes(5000)


def test_a_reader_follows_its_store(tmp_path: Path) -> None:
    with velocpy.open(tmp_path / "store", **SIZES) as store:
        write(store, range(5), seed=0)
    with velocpy.open(tmp_path / "other", **SIZES) as store:
        write(store, range(5), seed=1000)
    with velocpy.open(tmp_path / "store", mode="r", host="8MiB") as store:
        (tmp_path / "store").rename(tmp_path / "moved")
        (tmp_path / "other").rename(tmp_path / "store")
        for key in range(5):
            assert bytes(store.history("h").restore(key)["u"]) == np.random.default_rng(key).bytes(5000)


WRITER = """
import sys, velocpy
try:
    velocpy.open(sys.argv[1], host="8MiB", disk="64MiB").close()
except velocpy.errors.StoreLocked:
    sys.exit(3)
"""


def opens_elsewhere(path: Path) -> bool:
    """Whether another process can open a store for writing."""
    code = subprocess.run([sys.executable, "-c", WRITER, str(path)], check=False).returncode
    assert code in (0, 3)
    return code == 0


def test_copies_leave_the_lock_alone(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with velocpy.open(path, **SIZES) as store:
        write(store, range(5), seed=0)
        shutil.copytree(path, tmp_path / "backup")
        (path / "lock").open().close()
        assert not opens_elsewhere(path)
        with pytest.raises(velocpy.errors.StoreLocked):
            velocpy.open(path, **SIZES)
        write(store, range(5, 13), seed=0)
    holds(path, range(13), seed=0)
    holds(tmp_path / "backup", range(5), seed=0)


def test_a_removed_lock_file(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with velocpy.open(path, **SIZES) as store:
        write(store, range(5), seed=0)
        (path / "lock").unlink()
        assert not opens_elsewhere(path)  # the directory is locked too
        (path / "lock").unlink(missing_ok=True)  # what the store commits by itself makes it anew
        write(store, range(5, 13), seed=0)
        assert (path / "lock").exists()
        assert not opens_elsewhere(path)
    holds(path, range(13), seed=0)


def test_a_replaced_lock_file_ends_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = velocpy.open(path, **SIZES)
    write(store, range(5), seed=0)
    (path / "lock").unlink()
    (path / "lock").touch()  # as a process does that knows nothing of locks on directories
    before = files(path)
    with pytest.raises(velocpy.errors.StoreLost, match="replaced"):
        write(store, range(5, 6), seed=0)
    assert bytes(store.history("h").restore(5)["u"]) == np.random.default_rng(5).bytes(5000)
    with pytest.raises(velocpy.errors.StoreLost):
        store.close()
    catalog = {name: content for name, content in files(path).items() if name.startswith("catalog-")}
    assert all(content.startswith(before[name]) for name, content in catalog.items())
    holds(path, range(5), seed=0)


def test_a_removed_directory_ends_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = velocpy.open(path, **SIZES)
    write(store, range(5), seed=0)
    shutil.rmtree(path)
    with pytest.raises(velocpy.errors.StoreLost, match="removed"):
        write(store, range(5, 6), seed=0)
    with pytest.raises(velocpy.errors.StoreLost):
        store.close()
    assert not path.exists()


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "store"
    code = textwrap.dedent(
        f"""
        import os, signal, time, velocpy
        store = velocpy.open({str(path)!r}, host="8MiB", disk="64MiB")
        child = os.fork()
        if child == 0:
            time.sleep(60)
        print(child, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    with subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            parent.wait(30)
            os.kill(child, 0)
            assert opens_elsewhere(path)
        finally:
            os.kill(child, 9)


def test_the_holder_of_a_lock_is_known(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with velocpy.open(path, **SIZES):
        assert owner.holder(path / "lock") == os.getpid()
    assert owner.holder(path / "lock") is None
