"""Leases: isolated, exact through whatever happens to their checkpoint, given back by the last reference."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from bits import random_array, same

import velocpy

MIB = 1 << 20


@pytest.fixture
def store() -> Iterator[velocpy.Store]:
    with velocpy.open(host="8MiB", disk="64MiB") as opened:
        yield opened


def held(store: velocpy.Store) -> int:
    """Bytes of the host tier that nothing may evict."""
    return int(store.stats()["tiers"]["host"]["held"])


def test_mapping(store: velocpy.Store) -> None:
    history = store.history("h")
    history.checkpoint("k", {"u": np.arange(3), "v": np.ones(2)}, meta={"t": 1.5, "tags": ["a", None]})
    lease = history.restore("k")
    assert list(lease) == ["u", "v"]
    assert len(lease) == 2
    assert "u" in lease
    assert "w" not in lease
    assert 0 not in lease
    assert lease["u"] is lease["u"]
    assert {name: array.sum() for name, array in lease.items()} == {"u": 3, "v": 2}
    with pytest.raises(KeyError):
        lease["w"]
    with pytest.raises(KeyError):
        lease[0]
    assert lease.key == "k"
    assert lease.meta == {"t": 1.5, "tags": ["a", None]}
    assert history.meta("k") == lease.meta
    assert lease == lease
    assert lease != history.restore("k")
    hash(lease)


def test_sequence(store: velocpy.Store) -> None:
    history = store.history("h")
    history.checkpoint(0, [np.arange(3), np.ones((2, 2)), np.array(7)])
    lease = history.restore(0)
    assert list(lease) == [0, 1, 2]
    assert lease[1].shape == (2, 2)
    assert lease[-1] == 7
    assert 2 in lease
    assert 3 not in lease
    for wrong in (3, -4):
        with pytest.raises(IndexError):
            lease[wrong]
    with pytest.raises((KeyError, IndexError)):
        lease["u"]


def test_read_only_and_cannot_be_made_writable(store: velocpy.Store) -> None:
    history = store.history("h")
    history.checkpoint(0, u=np.arange(5))
    lease = history.restore(0)
    assert not lease.writable
    with pytest.raises(ValueError, match="read-only"):
        lease["u"][0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        lease["u"].flags.writeable = True
    with pytest.raises(ValueError, match="WRITEABLE"):
        lease["u"][1:].flags.writeable = True


def test_last_belongs_to_the_caller(store: velocpy.Store) -> None:
    history = store.history("h")
    history.checkpoint(0, u=np.arange(5))
    other = history.restore(0)
    lease = history.restore(0, last=True)
    assert 0 not in history
    assert lease.writable
    lease["u"][:] = 9
    assert other["u"].tolist() == [0, 1, 2, 3, 4]  # another lease of the same bytes is not hurt
    with pytest.raises(velocpy.errors.CheckpointNotFound) as raised:
        history.restore(0)
    assert (raised.value.history, raised.value.key) == ("h", 0)


def test_adding_in_place_by_name(store: velocpy.Store) -> None:
    torch = pytest.importorskip("torch")
    history = store.history("h")
    history.checkpoint(0, u=np.arange(3.0), t=torch.arange(3.0))
    shared = history.restore(0)
    with pytest.raises(ValueError, match="read-only"):
        shared["u"] += 1
    with pytest.raises(velocpy.errors.LeaseWritten):
        shared["t"] += 1  # torch lets it happen
    with pytest.raises(velocpy.errors.InvalidType):
        shared["u"] = np.zeros(3)
    shared["t"].sub_(1)
    shared.release()
    own = history.restore(0, last=True)
    own["u"] += 1
    own["t"] *= 2
    assert own["u"].tolist() == [1.0, 2.0, 3.0]
    assert own["t"].tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(velocpy.errors.InvalidType):
        own["u"] = own["u"] + 1
    with pytest.raises(KeyError):
        own["none"] = 1


def test_exact_through_drop_rewrite_and_pressure(store: velocpy.Store) -> None:
    history = store.history("h")
    arrays = [random_array(3 * MIB // 8, seed=i) for i in range(2)]
    for i in range(2):
        history.checkpoint(i, u=arrays[i])
    leases = [history.restore(i) for i in range(2)]
    history.drop(0)
    history.checkpoint(1, u=np.zeros(10))
    for i in range(10, 60):
        history.checkpoint(i, u=random_array(MIB // 8, seed=i))
    for i in range(2):
        assert same(leases[i]["u"], arrays[i])
    for i in range(10, 60):
        assert same(history.restore(i)["u"], random_array(MIB // 8, seed=i))
    for i in range(2):
        assert same(leases[i]["u"], arrays[i])


def test_valid_after_close_and_after_the_store_is_gone() -> None:
    u = random_array(MIB // 8)
    store = velocpy.open(host="8MiB", disk="64MiB")
    history = store.history("h")
    history.checkpoint(0, u=u, meta=[1])
    lease = history.restore(0)
    kept = history.restore(0)["u"]
    store.close()
    assert same(lease["u"], u)
    assert lease.meta == [1]
    del store, history
    gc.collect()
    assert same(kept, u)
    lease.release()
    assert same(kept, u)


def test_arrays_outlive_their_lease(store: velocpy.Store) -> None:
    history = store.history("h")
    u = random_array(3 * MIB // 8)
    history.checkpoint(0, u=u)
    lease = history.restore(0)
    array = lease["u"][100:]
    lease.release()
    del lease
    history.drop(0)
    for i in range(1, 30):
        history.checkpoint(i, u=np.full(MIB // 8, i))
    assert same(array, u[100:])
    assert held(store) >= u.nbytes
    del array
    assert held(store) < u.nbytes


def test_given_back_by_reference_count(store: velocpy.Store) -> None:
    """No cycle keeps a lease alive: the bytes are free when the last name goes, without the collector."""
    gc.disable()
    try:
        history = store.history("h")
        history.checkpoint(0, u=np.zeros(MIB, np.uint8), meta=1)
        assert held(store) == 0
        lease = history.restore(0)
        lease["u"]
        lease.meta  # noqa: B018
        assert held(store) >= MIB
        gone = weakref.ref(lease)
        del lease
        assert gone() is None
        assert held(store) == 0
    finally:
        gc.enable()


def test_release(store: velocpy.Store) -> None:
    history = store.history("h")
    history.checkpoint(0, u=np.arange(3))
    with history.restore(0) as lease:
        u = lease["u"]
    assert lease.released
    assert u.tolist() == [0, 1, 2]
    lease.release()
    for use in (
        lambda: lease["u"],
        lambda: lease.meta,
        lambda: list(lease),
        lambda: lease.writable,
        lambda: len(lease),
    ):
        with pytest.raises(velocpy.errors.LeaseReleased):
            use()
    assert "released" in repr(lease)


def test_partial(store: velocpy.Store) -> None:
    history = store.history("h")
    u, v = random_array(5000, seed=1), random_array(7000, np.int32, seed=2)
    for i in range(300):
        history.checkpoint(i, u=u, v=v, w=np.full(3000, i))
    for i in (0, 299):  # from the disk, from memory
        lease = history.restore(i, "w")
        assert list(lease) == ["w"]
        assert (lease["w"] == i).all()
        assert "u" not in lease
        lease = history.restore(i, ["w", "u"])
        assert same(lease["u"], u)
        with pytest.raises(KeyError):
            lease["v"]
    assert list(history.restore(0, ())) == []
    for wrong in ("x", ["u", "u"], [0], 3, ["u", None]):
        with pytest.raises(velocpy.errors.InvalidArgument):
            history.restore(0, wrong)  # type: ignore[arg-type]


def test_hundreds_at_once(store: velocpy.Store) -> None:
    history = store.history("h")
    for i in range(200):
        history.checkpoint(i, u=np.full(100, i))
    leases = [history.restore(i % 200) for i in range(1000)]
    for i, lease in enumerate(leases):
        assert lease["u"][7] == i % 200


def test_released_in_any_thread(store: velocpy.Store) -> None:
    history = store.history("h")
    history.checkpoint(0, u=np.zeros(MIB, np.uint8))
    leases = [history.restore(0) for _ in range(64)]

    def release() -> None:
        while leases:
            try:
                leases.pop()
            except IndexError:
                return

    threads = [threading.Thread(target=release) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert held(store) == 0


def test_tensors(store: velocpy.Store) -> None:
    torch = pytest.importorskip("torch")
    history = store.history("h")
    history.checkpoint(0, u=torch.arange(6.0).reshape(2, 3))
    lease = history.restore(0)
    u = lease["u"]
    assert isinstance(u, torch.Tensor)
    lease.release()
    del lease
    history.drop(0)
    for i in range(1, 300):
        history.checkpoint(i, u=torch.full((20_000,), float(i)))
    assert u.tolist() == [[0, 1, 2], [3, 4, 5]]
    history.checkpoint("last", u=torch.zeros(3))
    mine = history.restore("last", last=True)["u"]
    mine += 1
    assert mine.tolist() == [1, 1, 1]


def test_tensors_hold_the_lease_until_the_last_view_has_gone(store: velocpy.Store) -> None:
    torch = pytest.importorskip("torch")
    history = store.history("h")
    history.checkpoint(0, u=torch.arange(12.0).reshape(3, 4).t(), v=torch.arange(5, dtype=torch.bfloat16))
    lease = history.restore(0)
    views = [lease["u"][1:].reshape(-1), lease["v"][::2], torch.nn.Parameter(lease["u"]) * 2]
    lease.release()
    del lease
    gc.collect()
    assert held(store) > 0
    assert views[0].tolist() == [1.0, 5.0, 9.0, 2.0, 6.0, 10.0, 3.0, 7.0, 11.0]
    assert views[1].tolist() == [0.0, 2.0, 4.0]
    views[2].sum().backward()  # autograd's own threads let go of the rest
    other = threading.Thread(target=views.clear)
    other.start()
    other.join()
    gc.collect()
    assert held(store) == 0


@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "uint16",
             "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"],
)  # fmt: skip
def test_tensors_come_back_in_their_dtype(store: velocpy.Store, name: str) -> None:
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, name)
    bits = torch.randint(0, 2 if name == "bool" else 256, (5, 3, 16), dtype=torch.uint8)
    tensor = bits.view(dtype).transpose(0, 1)
    history = store.history("h")
    history.checkpoint(0, t=tensor, whole=tensor[1, 2, 0], none=tensor[:, :0])
    with history.restore(0) as lease:
        for label, want in (("t", tensor), ("whole", tensor[1, 2, 0]), ("none", tensor[:, :0])):
            got = lease[label]
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            assert same(
                got.contiguous().reshape(-1).view(torch.uint8).numpy(),
                want.contiguous().reshape(-1).view(torch.uint8).numpy(),
            )


def test_dlpack_out_and_its_deleter_in_another_thread(store: velocpy.Store) -> None:
    torch = pytest.importorskip("torch")
    history = store.history("h")
    u = random_array(MIB // 8, np.int64)
    history.checkpoint(0, u=u)
    lease = history.restore(0, last=True)
    tensors = [torch.from_dlpack(lease["u"])]
    lease.release()
    del lease
    assert same(tensors[0].numpy(), u)
    assert held(store) >= MIB
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert held(store) == 0


def test_debug_finds_writers() -> None:
    torch = pytest.importorskip("torch")
    with velocpy.open(host="8MiB", debug=True) as store:
        history = store.history("h")
        history.checkpoint(0, u=torch.zeros(100), v=np.zeros(3))
        with history.restore(0) as lease:
            lease["u"].sum()
        with pytest.raises(velocpy.errors.LeaseWritten) as raised, history.restore(0) as lease:
            lease["u"][3] = 1
        assert raised.value.key == 0
        history.checkpoint(1, u=torch.zeros(100))
        with history.restore(1, last=True) as lease:
            lease["u"][3] = 1  # the caller's own


def test_debug_logs_writers_that_nobody_asks_about(caplog: pytest.LogCaptureFixture) -> None:
    torch = pytest.importorskip("torch")
    with velocpy.open(host="8MiB", debug=True) as store:
        history = store.history("h")
        history.checkpoint(0, u=torch.zeros(100))
        lease = history.restore(0)
        lease["u"][3] = 1
        del lease
        store.stats()
    assert any("wrote into a lease" in record.message for record in caplog.records)


def test_array_in_place_of_its_own_source(store: velocpy.Store) -> None:
    """A checkpoint made from a lease's own arrays, also onto the same key."""
    history = store.history("h")
    u = random_array(1000)
    history.checkpoint(0, u=u)
    for _ in range(20):
        lease = history.restore(0)
        history.checkpoint(0, u=lease["u"], copy=False)
    history.wait(timeout=10)
    assert same(history.restore(0)["u"], u)
