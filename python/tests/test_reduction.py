"""Histories whose checkpoints are encoded on their way to the disk."""

import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import velocpy
from velocpy import errors, ondisk

MIXED = ["<f2", "<f4", "<f8", "<c8", "<i2", "<u4", "<i8", "|u1", "|b1", ">f4", "<M8[ns]", "<U3"]


def saved(store, name="h"):
    return store.stats()["histories"][name]["reduction"]


def smooth(dtype, count, seed=0):
    """Elements that differ little from their neighbours, with NaN payloads, signed zeros and infinities among them."""
    steps = np.random.default_rng(seed).integers(-2, 3, count).cumsum()
    dtype = np.dtype(dtype)
    if dtype.kind == "U":
        return np.array(["abc"] * count, dtype)
    if dtype.kind in "Mm":
        return steps.astype(dtype)
    if dtype.kind == "b":
        return steps % 7 == 0
    array = steps.astype(dtype)
    if dtype.kind == "f" and count > 10:
        array[:4] = [-0.0, np.inf, -np.inf, np.nan]
        bits = array.view(f"{dtype.byteorder}u{dtype.itemsize}")
        bits[4] = bits[3] | 5
    return array


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("method", ["raw", "codec", "auto"])
def test_all_dtypes_come_back_bit_by_bit(tmp_path, method, durable):
    arrays = {f"a{i}": smooth(dtype, 50_000, i) for i, dtype in enumerate(MIXED)}
    arrays |= {
        "empty": np.zeros((0, 3)),
        "scalar": np.array(2.5),
        "fortran": np.asfortranarray(smooth("<f4", 60_000).reshape(200, 300)),
        "every second": smooth("<f4", 90_000)[::2],
    }
    with velocpy.open(tmp_path / "s" if durable else None, host="16MiB", disk="128MiB") as store:
        history = store.history("h", reduce=method)
        for step in range(5):
            history.checkpoint(step, arrays).wait("disk")
        if method == "codec":
            assert saved(store)["encoded"] == 5
            assert saved(store)["encoded_to"] < 0.7 * saved(store)["encoded_from"]
    with velocpy.open(tmp_path / "s" if durable else None, host="16MiB", disk="128MiB") as store:
        history = store.history("h", reduce=method)
        if not durable:
            for step in range(20):  # more than the host tier has room for
                history.checkpoint(step, arrays).wait("disk")
        for step in (4, 0, 2):
            with history.restore(step) as state:
                for name, array in arrays.items():
                    assert state[name].dtype == array.dtype
                    assert state[name].shape == array.shape
                    assert state[name].tobytes() == array.tobytes(), name


def test_tensors_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    weights = torch.randn(300, 500, generator=torch.Generator().manual_seed(1)).bfloat16()
    with velocpy.open(tmp_path / "s", host="16MiB", disk="64MiB") as store:
        store.history("h", reduce="codec").checkpoint(0, w=weights).wait("disk")
        assert saved(store)["encoded_from"] > 1.35 * saved(store)["encoded_to"]
    with velocpy.open(tmp_path / "s", host="16MiB", disk="64MiB") as store:
        assert torch.equal(store.history("h").restore(0)["w"], weights)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_mixture_of_regions_and_parts(tmp_path_factory, data):
    seed = data.draw(st.integers(0, 1 << 30))
    noise = np.random.default_rng(seed)
    arrays = {}
    for i in range(data.draw(st.integers(1, 4))):
        rows = data.draw(st.sampled_from([1, 7, 64, 3000]))
        if data.draw(st.booleans()):
            arrays[f"r{i}"] = smooth(data.draw(st.sampled_from(["<f4", "<i8", "|u1"])), rows * 128, seed + i).reshape(
                rows, 128
            )
        else:
            arrays[f"r{i}"] = noise.integers(0, 256, (rows, 128), dtype=np.uint8)
    with velocpy.open(host=64 * 1024, disk="64MiB", path=tmp_path_factory.mktemp("disk")) as store:
        history = store.history("h", reduce="codec")
        history.checkpoint(0, arrays).wait("disk")
        for name, array in arrays.items():
            first = data.draw(st.integers(0, len(array) - 1))
            part = (slice(first, data.draw(st.integers(first, len(array)))), slice(3, 100, 7))
            into = np.empty_like(array[part])
            history.restore(0, into={name: into}, parts={name: part})
            assert into.tobytes() == array[part].tobytes()
        whole = history.restore(0)
        assert all(whole[name].tobytes() == array.tobytes() for name, array in arrays.items())


def test_what_does_not_become_smaller_is_no_larger(tmp_path):
    noise = np.random.default_rng(3).integers(0, 256, 4 << 20, dtype=np.uint8)
    used = {}
    for method in ("raw", "codec", "auto"):
        with velocpy.open(tmp_path / method, host="32MiB", disk="64MiB") as store:
            history = store.history("h", reduce=method)
            for step in range(8):
                history.checkpoint(step, x=noise)
            store.wait("disk")
            used[method] = store.stats()["tiers"]["disk"]["used"]
    assert used["codec"] == used["raw"]
    assert used["auto"] <= used["raw"]  # all checkpoints are equal


def test_a_disk_holds_more_reduced_checkpoints(tmp_path):
    wave = np.sin(np.linspace(0, 60, 1 << 19)).astype("<f4")
    with velocpy.open(tmp_path / "s", host="8MiB", disk="16MiB") as store:
        history = store.history("h", reduce="codec")
        for step in range(12):  # 24 MiB
            history.checkpoint(step, u=wave + np.float32(step)).wait("disk")
        for step in reversed(range(12)):
            assert np.array_equal(history.restore(step)["u"], wave + np.float32(step))


def test_the_method_can_change(tmp_path):
    zeros = np.zeros(1 << 18)
    with velocpy.open(tmp_path / "s", host="8MiB", disk="64MiB") as store:
        history = store.history("h")
        history.checkpoint(0, u=zeros).wait("disk")
        assert store.stats()["histories"]["h"]["reduction"] is None
        assert store.history("h", reduce="codec") is history
        history.checkpoint(1, u=zeros).wait("disk")
        assert store.history("h") is history
        history.checkpoint(2, u=zeros).wait("disk")
        assert (saved(store)["method"], saved(store)["encoded"]) == ("codec", 2)
        store.history("h", reduce="raw")
        history.checkpoint(3, u=zeros).wait("disk")
        assert (saved(store)["method"], saved(store)["encoded"]) == ("raw", 2)


def test_bad_methods():
    with velocpy.open(host="1MiB") as store:
        with pytest.raises(errors.InvalidArgument, match="reduce is 'zip'; it is one of raw, codec, auto"):
            store.history("h", reduce="zip")
        store.history("h", reduce="auto").checkpoint(0, u=np.zeros(1000))  # without a disk nothing is encoded
        assert saved(store)["encoded"] == 0


def test_reading_needs_no_method_and_takes_none(tmp_path):
    with velocpy.open(tmp_path / "s", host="8MiB", disk="64MiB") as store:
        store.history("h", reduce="codec").checkpoint(0, u=np.zeros(1 << 18)).wait("disk")
    with velocpy.open(tmp_path / "s", mode="r") as store:
        assert not store.history("h").restore(0)["u"].any()
        with pytest.raises(errors.ReadOnlyStore):
            store.history("h", reduce="codec")


def velocpy_command(*arguments):
    command = [sys.executable, "-m", "velocpy", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_commands_read_encoded_checkpoints(tmp_path):
    array = smooth("<f4", 1 << 18)
    with velocpy.open(tmp_path / "s", host="8MiB", disk="64MiB") as store:
        store.history("h", reduce="codec").checkpoint(0, a=np.arange(5.0), u=array).wait("disk")
    assert velocpy_command("check", tmp_path / "s", "--read-data").returncode == 0
    assert velocpy_command("export", tmp_path / "s", "h", 0, tmp_path / "u.npz").returncode == 0
    with np.load(tmp_path / "u.npz") as exported:
        assert exported["u"].tobytes() == array.tobytes()
    shown = velocpy_command("show", tmp_path / "s", "h", 0).stdout
    entry, found = next(ondisk.checkpoints(tmp_path / "s", "h")), ondisk.describe(tmp_path / "s", "h", 0)
    assert (entry.form, found.form) == ("encoded", "encoded")
    assert entry.stored_nbytes == found.stored_nbytes == sum(extent.nbytes for extent in found.extents)
    assert found.stored_nbytes < found.nbytes / 1.5
    assert re.search(r"^on disk +\S+ KiB, encoded, 1 : [1-9.]+$", shown, re.MULTILINE)
    (data,) = (tmp_path / "s").glob("data-*")
    stored = bytearray(data.read_bytes())
    container = stored.index(b"VELOCFC\0", stored.index(b"VELOCFC\0") + 1)  # that of the second region
    stored[container + 5000] ^= 1  # behind header and tables: in the payload of a chunk
    data.write_bytes(stored)
    checked = velocpy_command("check", tmp_path / "s", "--read-data")
    assert checked.returncode == 3
    assert "u" in checked.stdout
    with velocpy.open(tmp_path / "s", mode="r") as store:
        with pytest.raises(errors.CorruptCheckpoint) as damaged:
            store.history("h").restore(0)
        assert (damaged.value.tier, damaged.value.region) == ("disk", "u")
        assert store.history("h").restore(0, regions=["a"])["a"].tolist() == [0, 1, 2, 3, 4]
