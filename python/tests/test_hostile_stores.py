"""Stores from elsewhere: whatever they say, only errors of velocpy come, and `check` tells of it."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RunPython
from hostile_store import HAS_FRAMES, METAS, RIGHT, Region, checkpoint, described, encoded, plain, structure, write
from second_decoder import decode
from sectioned import CHUNKS, FRAMES, PLAIN, SNAPPY, damaged, hostile, sectioned

import velocpy
from velocpy import arrays, interchange, ondisk

ITEM = Region(b"u", b"<f8", 8, (4,), 0, 32)


def kinds(path: Path) -> set[str]:
    return {fault.kind for fault in ondisk.check(path, read_data=True).faults}


def with_dtype(text: str, **changes: Any) -> Region:
    return Region(b"u", text.encode(), **{"itemsize": 8, "shape": (4,), "offset": 0, "nbytes": 32} | changes)


@pytest.mark.parametrize(
    "region",
    [
        with_dtype("|O"),
        with_dtype('{"aligned":false,"formats":["|O"],"itemsize":8,"names":["a"],"offsets":[0],"titles":[null]}'),
        with_dtype("<f8", itemsize=1, nbytes=4),
        with_dtype("<f8", itemsize=4, nbytes=16),
        with_dtype("<c32", itemsize=2, nbytes=8),
        with_dtype("[" * 5000),
        with_dtype("float64"),
        with_dtype("=load", library=1, itemsize=65, nbytes=260),
        with_dtype("|V0", itemsize=0, nbytes=0, shape=(1 << 62,)),
        with_dtype("<f8", order=2, listed=b"\x07"),
        with_dtype("<f8", order=9),
        with_dtype("<f8", place=-1),
        with_dtype("<f8", library=77),
        Region(b"\xff", b"<f8", 8, (4,), 0, 32),
        Region(b"u", b"\xff", 8, (4,), 0, 32),
        Region(b"u", b"<c16", 16, (2,), 8, 32),
    ],
    ids=lambda region: f"{region.dtype[:20]!r}-{region.itemsize}-{region.order}-{region.library}-{region.name!r}",
)
def test_a_description_that_cannot_be_one(tmp_path: Path, region: Region) -> None:
    path = tmp_path / "store"
    write(path, [plain([ITEM]), plain([region])])
    faults = ondisk.check(path).faults
    assert [(fault.kind, fault.key, fault.region) for fault in faults] == [("description", 1, None)]
    assert "key 1" in str(faults[0])
    with velocpy.open(path, mode="r", host="4MiB") as store:
        history = store.history("h")
        for call in (
            lambda: history.restore(1),
            lambda: history.restore(1, ["u"]),
            lambda: history.restore(1, into={"u": np.zeros(4)}),
        ):
            with pytest.raises(velocpy.errors.CorruptCheckpoint) as raised:
                call()
            assert (raised.value.history, raised.value.key) == ("h", 1)
        assert history.restore(0)["u"].shape == (4,)
    with pytest.raises(velocpy.errors.DamagedStore):
        ondisk.describe(path, "h", 1)
    ondisk.repair(path, drop=faults)
    assert not ondisk.check(path, read_data=True).faults
    with velocpy.open(path, host="4MiB", disk="64MiB") as store:
        assert list(store.history("h")) == [0]


@pytest.mark.parametrize("meta", [meta for meta in METAS if meta])
def test_a_meta(tmp_path: Path, meta: bytes) -> None:
    path = tmp_path / "store"
    write(path, [plain([ITEM], meta=meta)])
    damaged = kinds(path) == {"description"}
    with velocpy.open(path, mode="r", host="4MiB") as store:
        lease = store.history("h").restore(0)
        assert lease["u"].size == 4
        for call in (lambda: lease.meta, lambda: store.history("h").meta(0)):
            if damaged:
                with pytest.raises(velocpy.errors.CorruptCheckpoint):
                    call()
            else:
                call()


@pytest.mark.parametrize("slot", [1 << 40, 1 << 50, 1 << 60])
@pytest.mark.parametrize("read", [False, True])
def test_a_slot_that_no_file_holds(tmp_path: Path, run_python: RunPython, slot: int, read: bool) -> None:
    path = tmp_path / "store"
    whole = with_dtype("|u1", itemsize=1, shape=(slot,), nbytes=slot)
    segment = 1 << 50
    extents = [(number + 1, 0, min(slot, segment)) for number in range(-(-slot // segment))]
    write(path, [plain([whole], extents=extents)], segment=segment, data=0)
    (path / "data-0000000000000001").write_bytes(bytes(8192))
    done = run_python(
        f"""
        import resource, velocpy
        from velocpy import ondisk
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        report = ondisk.check({str(path)!r}, read_data={read})
        assert [fault.kind for fault in report.faults][:1] == ["missing"], report
        assert sum(fault.nbytes for fault in report.faults) == {slot} - 8192, report
        with velocpy.open({str(path)!r}, mode="r", host="16MiB") as store:
            for call in (lambda: store.history("h").restore(0), lambda: store.history("h").restore(0, ["u"])):
                try:
                    call()
                except velocpy.errors.VelocError as error:
                    expected = (velocpy.errors.CorruptCheckpoint, velocpy.errors.TierIOError)
                    assert isinstance(error, expected), repr(error)
                else:
                    raise AssertionError("restored")
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
        assert grown < 160, grown
        """
    )
    assert done.returncode == 0, done.stderr[-2000:]


def bytes_of(count: int) -> Region:
    return with_dtype("|u1", itemsize=1, shape=(count,), nbytes=count)


def test_containers_are_decoded(tmp_path: Path) -> None:
    whole = [plain([ITEM]), encoded(plain([ITEM])), encoded(plain([bytes_of(600_000)])), encoded(plain([]))]
    if HAS_FRAMES:
        whole.append(encoded(plain([bytes_of(600_000)]), 1 << 20, sections=0))
    write(tmp_path / "store", whole)
    report = ondisk.check(tmp_path / "store", read_data=True)
    assert (report.checkpoints, report.faults) == (len(whole), ())
    data = tmp_path / "store" / "data-0000000000000001"
    data.write_bytes(random.Random(1).randbytes(data.stat().st_size))
    faults = ondisk.check(tmp_path / "store", read_data=True).faults
    assert {(fault.kind, fault.key) for fault in faults} == {("changed", key) for key in (1, 2, 4)[: len(whole) - 2]}
    assert all("container" in fault.why for fault in faults)


def stored(path: Path, region: bytes, containers: list[bytes]) -> None:
    """A store in which each container, of this region, is that of a checkpoint."""
    whole = plain([bytes_of(len(region))])
    each = [replace(whole, part=1 << 18, lengths=[len(container)], given=[container]) for container in containers]
    write(path, [replace(one, sections=0, extents=[]) for one in each])


@pytest.mark.skipif(not HAS_FRAMES, reason="zstandard is not installed")
@pytest.mark.parametrize(("word", "noise"), [(1, 50), (2, 50), (4, 50), (8, 50), (2, 1)])
def test_hostile_sections(tmp_path: Path, word: int, noise: int) -> None:
    """The core refuses the containers of version 2 that the second reader refuses, and gives the bytes of others."""
    region = (random.Random(word).randbytes(noise) * 2003)[:2003]
    made = hostile(region, word)
    del made["a skippable frame before"]  # which is no frame of Zstandard; the core passes over it
    rng = random.Random(word)
    for form in (PLAIN, FRAMES, SNAPPY, CHUNKS):
        good = sectioned(region, word, [form]).sealed()
        made |= {f"form {form}, change {n}": damaged(good, rng) for n in range(100)}
    right = {}
    for name, container in made.items():
        with contextlib.suppress(ValueError):
            right[name] = decode(container, len(region))
    assert right.pop("right") == region
    assert set(right.values()) == {region}
    assert 20 < len(right) < 400
    stored(tmp_path / "store", region, list(made.values()))
    faults = ondisk.check(tmp_path / "store", read_data=True).faults
    assert {fault.kind for fault in faults} == {"changed"}
    refused = {fault.key for fault in faults}
    assert [name for key, name in enumerate(made) if key not in refused] == ["right", *right]
    with velocpy.open(tmp_path / "store", mode="r", host="16MiB") as store:
        history = store.history("h")
        for key in range(len(made)):
            if key in refused:
                with pytest.raises(velocpy.errors.CorruptCheckpoint):
                    history.restore(key)
            else:
                assert history.restore(key)["u"].tobytes() == region


@pytest.mark.parametrize("length", [1 << 10, (1 << 30) + 720_960])
def test_containers_that_no_file_holds(tmp_path: Path, run_python: RunPython, length: int) -> None:
    """Rows take memory in proportion, and containers that are not there none."""
    path = tmp_path / "store"
    count = 2000
    room = -(-count * length // 4096) * 4096
    huge = plain([bytes_of(count << 30)], part=1 << 30, lengths=[length] * count, extents=[(2, 0, room)])
    write(path, [huge], segment=1 << 50, data=0)
    done = run_python(
        f"""
        import resource
        from velocpy import ondisk
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for read in (False, True):
            faults = ondisk.check({str(path)!r}, read_data=read).faults
            assert [fault.kind for fault in faults] == ["missing"], faults
            assert faults[0].nbytes == {count * length}, faults
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
        assert grown < 160, grown
        """
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.filterwarnings("ignore")
def test_what_is_written_is_accepted(tmp_path: Path) -> None:
    """The core refuses no description that this version writes."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    texts = [*RIGHT, *(structure(rng, 0) for _ in range(200))]
    kept: dict[int, np.ndarray[Any, Any]] = {}
    path = tmp_path / "store"
    with velocpy.open(path, host="16MiB", disk="64MiB") as store:
        history = store.history("h")
        for key, text in enumerate(texts):
            try:
                dtype = arrays.dtype_from_text(text)
            except velocpy.errors.VelocError:
                continue
            if dtype.itemsize > 1 << 16 or dtype.subdtype is not None:
                continue
            array = np.zeros((3, 2), dtype)
            array = array.T if rng.random() < 0.5 else array
            try:
                history.checkpoint(key, [array], meta={"deep": text})
            except velocpy.errors.InvalidType:  # NumPy takes anything for a title
                continue
            kept[key] = array
        torch = pytest.importorskip("torch")
        for name in vars(torch):
            if isinstance(getattr(torch, name), torch.dtype):
                try:
                    tensor = torch.empty(3, dtype=getattr(torch, name))
                    history.checkpoint(name, u=tensor)
                except (velocpy.errors.VelocError, RuntimeError, NotImplementedError):
                    continue
    assert not [texts[int(fault.key or 0)] for fault in ondisk.check(path).faults]
    assert len(kept) > 60
    with velocpy.open(path, mode="r", host="16MiB") as store:
        for key in store.history("h"):
            (shown,) = store.history("h").restore(key).values()
            if isinstance(key, int):
                assert shown.dtype == kept[key].dtype
                assert shown.shape == kept[key].shape


def test_a_meta_that_is_too_deep_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Python itself would write it."""
    from velocpy.history import META_DEPTH, _meta_bytes

    for depth in (900, META_DEPTH, META_DEPTH + 1, 5000):
        text = "[" * depth + '"[[[\\"["' + "]" * depth
        monkeypatch.setattr("velocpy.history.json.dumps", lambda *_, text=text, **__: text)
        if depth <= META_DEPTH:
            assert _meta_bytes("x") == text.encode()
        else:
            with pytest.raises(velocpy.errors.InvalidArgument, match="deep"):
                _meta_bytes("x")


ONE = b'["dict","m",["list","array","value"]]'


@pytest.mark.parametrize(
    ("structure", "meta", "shown"),
    [
        (b"", b"[[1],null]", False),
        (b'"array"', b"[[],null]", False),
        (b'["list"]', b"[[],null]", False),
        (b'["list","array","array"]', b"[[],null]", False),
        (b'["dict","m","array","m","value"]', b"[[1],null]", False),
        (b'["list",' * 101 + b'"array"' + b"]" * 101, b"[[],null]", False),
        (ONE + b" x", b"[[1],null]", False),
        (ONE, b"", True),
        (ONE, b"[[],null]", True),
        (ONE, b"[[1,2],null]", True),
        (ONE, b"[[[1]],null]", True),
        (ONE, b"[[1]]", True),
        (ONE, b'{"t": 1}', True),
    ],
)
def test_a_tree_that_cannot_be_one(tmp_path: Path, structure: bytes, meta: bytes, shown: bool) -> None:
    path = tmp_path / "store"
    right = plain([ITEM], text=described([ITEM], 2) + ONE, meta=b"[[1],null]")
    write(path, [right, plain([ITEM], text=described([ITEM], 2) + structure, meta=meta)])
    assert [(fault.kind, fault.key) for fault in ondisk.check(path).faults] == [("description", 1)]
    with velocpy.open(path, mode="r", host="4MiB") as store:
        history = store.history("h")
        assert history.restore(0).tree["m"][1] == 1
        with pytest.raises(velocpy.errors.CorruptCheckpoint, match="key 1"):
            _ = history.restore(1).tree
        if shown:
            assert history.restore(1)["u"].shape == (4,)


def test_a_region_without_elements_whose_other_extents_are_more_than_numpy_counts(tmp_path: Path) -> None:
    path = tmp_path / "store"
    write(path, [plain([Region(b"u", b"<f8", 8, (0, 1 << 40, 1 << 40), 0, 0, library=1)])])
    with pytest.raises(velocpy.errors.InvalidType, match=r"'u'.*; safetensors may"):
        interchange.export(path, "h", 0, tmp_path / "file.npz")
    assert not list(tmp_path.glob("*.npz*"))


def test_names_that_are_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "store"
    write(path, [plain([ITEM])], history=b"\xff\xfe")
    with velocpy.open(path, mode="r", host="4MiB") as store:
        (history,) = store.histories
        assert history.name == "\udcff\udcfe"
        assert not list(history)  # no text stands for these bytes
        repr(store.histories)


def test_hostile_stores(tmp_path: Path, root: Path) -> None:
    """Random ones, asked in a process of their own; `python/tests/hostile_store.py` runs for longer."""
    seed = random.randrange(1 << 32)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(root / "python/tests/hostile_store.py"), str(tmp_path), str(seed), "6"],
        capture_output=True, text=True, timeout=240, env=os.environ, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"seed {seed}, {done.returncode}\n{done.stdout[-1000:]}\n{done.stderr[-4000:]}"
    assert int(done.stdout.split()[0]) > 0


def test_the_generator_makes_both_kinds(tmp_path: Path) -> None:
    rng = random.Random(4)
    made = [checkpoint(rng) for _ in range(200)]
    write(tmp_path / "store", made)
    damaged = {fault.key for fault in ondisk.check(tmp_path / "store").faults if fault.kind == "description"}
    assert 30 < len(damaged) < 190


@pytest.mark.parametrize("verify", ["off", "moved", "first"])
def test_a_reader_without_checksums_gets_nothing_foreign(tmp_path: Path, verify: str) -> None:
    """Beside a writer that replaces without an end."""
    path, keys, size = tmp_path / "store", 4, 40_000
    with velocpy.open(path, host="1MiB", disk="1MiB", tuning=velocpy.Tuning(checksum=verify == "off")) as writer:
        history = writer.history("h")

        def put(key: int, version: int) -> None:
            history.checkpoint(key, u=np.full(size, key << 32 | version, np.uint64).view(np.uint8)[:size])
            writer.wait("disk")

        for key in range(keys):
            put(key, 0)
        stop = threading.Event()

        def replace() -> None:
            version = 1
            while not stop.is_set():
                put(version % keys, version)
                version += 1

        thread = threading.Thread(target=replace)
        thread.start()
        told = right = 0
        got = np.zeros(size, np.uint8)
        try:
            for _ in range(15):
                with velocpy.open(path, mode="r", host="64KiB", verify=verify) as reader:
                    for key in range(keys):
                        try:
                            reader.history("h").restore(key, into={"u": got})
                        except velocpy.errors.CheckpointDropped:
                            told += 1
                            continue
                        right += 1
                        state = got.view(np.uint64)
                        assert (state == state[0]).all()
                        assert state[0] >> 32 == key
        finally:
            stop.set()
            thread.join()
    assert told + right == 15 * keys
    assert told > 0


def test_opening_leaves_nothing_behind(tmp_path: Path, run_python: RunPython) -> None:
    done = run_python(
        """
        import gc, os, sys, threading
        os.environ["VELOCPY_GC_PERCENT"] = "10"  # what is resident is then what is in use, not what Go may yet collect
        import numpy as np, velocpy
        from velocpy import ondisk
        path = sys.argv[1]

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def left():
            gc.collect()
            return [len(os.listdir("/proc/self/fd")), len(open("/proc/self/maps").readlines()), resident()]

        def opened(number):
            with velocpy.open(path, host="4MiB", disk="64MiB") as store:
                for name in "abcdefgh":
                    store.history(name)
                store.history("h").checkpoint(number % 3, u=np.zeros(5))
            with velocpy.open(path, mode="r", host="4MiB") as store:
                store.history("h").restore(number % 3)["u"].sum()

        for number in range(60):
            opened(number)
        before = left()
        for number in range(200):
            opened(number)
        after = left()
        assert after[0] <= before[0], (before, after)
        assert after[1] <= before[1] + 30, (before, after)
        assert after[2] <= before[2] + (4 << 20), (before, after)
        print(before, after)
        """,
        str(tmp_path / "store"),
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    print(done.stdout)
