"""Checkpoints of arrays on a CUDA device: ordered on streams, exact, and given back where they were."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import RunPython

import velocpy

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

MIB = 1 << 20


@pytest.fixture(params=[True, False], ids=["durable", "scratch"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    with velocpy.open(tmp_path, device="64MiB", host="256MiB", disk="2GiB", durable=request.param) as store:
        yield store


def noise(count: int, seed: int) -> Any:
    """Random bits, NaNs of every kind among them."""
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randint(-(2**31), 2**31 - 1, (count,), dtype=torch.int32, device="cuda", generator=generator)


def test_history_larger_than_device_and_host(store: velocpy.Store) -> None:
    history = store.history("h")
    count, elements = 120, 2 * MIB + 3
    u = torch.empty(elements, dtype=torch.int32, device="cuda")
    for i in range(count):
        u.copy_(noise(elements, i))
        history.checkpoint(i, u=u)
        u.fill_(-1)  # right behind, in the same stream
    back = torch.empty_like(u)
    for i in reversed(range(count)):
        history.restore(i, into={"u": back}, last=True)
        assert torch.equal(back, noise(elements, i)), i
        back.fill_(-2)
    tiers = store.stats()["tiers"]
    assert tiers["device"]["high_water"] > 0
    assert tiers["disk"]["written_bytes"] > 0


def test_what_streams_wait_for_is_counted() -> None:
    """A slot that another stream still reads: the capture returns at once, and the time is in the statistics."""
    u = torch.zeros(4 * MIB, dtype=torch.uint8, device="cuda")
    with velocpy.open(device=6 * MIB, host=64 * MIB) as store:
        history = store.history("h")
        history.checkpoint(0, u=u)
        store.wait()
        other = torch.cuda.Stream()
        with torch.cuda.stream(other), history.restore(0, last=True) as state:
            torch.cuda._sleep(400_000_000)  # cycles: a fifth of a second and more
            u.copy_(state["u"])
        began = time.perf_counter()
        ticket = history.checkpoint(1, u=torch.ones_like(u))
        called = time.perf_counter() - began
        ticket.wait()
        lasted = time.perf_counter() - began
        waits = store.stats()["waits_ns"]
        assert called < 0.05 < lasted
        assert waits["capture"] < 0.05e9
        assert 0.05e9 < waits["capture_on_device"] <= lasted * 1e9
        assert waits["restore_on_device"] < 0.05e9


PARTS: list[Any] = [
    np.s_[3:90, 5:50:3],
    np.s_[::2],
    np.s_[:, 7],
    np.s_[100],
    np.s_[5:5],
    np.s_[..., ::4],
    np.s_[17:18, 1000:],
    np.s_[...],
]


@pytest.mark.parametrize("away", [False, True], ids=["on the device", "below it"])
@pytest.mark.parametrize("index", PARTS, ids=str)
def test_parts(store: velocpy.Store, index: Any, away: bool) -> None:
    """Parts of a region go to arrays on the device, into a transposed one, and to host memory."""
    source = noise(127 * 1021, 5).reshape(127, 1021)
    history = store.history("h")
    history.checkpoint(0, u=source, v=source[:3])
    if away:  # fill the device with others, and let the checkpoint leave
        history.wait("host")
        for i in range(1, 30):
            history.checkpoint(i, u=noise(MIB, i))
    want = source[index]
    there, back = torch.zeros_like(want), torch.zeros(want.shape, dtype=torch.int32)
    turned = torch.zeros(want.shape[::-1], dtype=torch.int32, device="cuda").permute(tuple(reversed(range(want.ndim))))
    for array in (there, turned, back):
        history.restore(0, into={"u": array}, parts={"u": index})
        assert torch.equal(array.to("cuda"), want)
    both = {"u": torch.zeros_like(want), "v": torch.zeros_like(source[:3])}
    history.restore(0, into=both, parts={"u": index})
    assert torch.equal(both["u"], want)
    assert torch.equal(both["v"], source[:3])


def test_many_captures_in_one_call(store: velocpy.Store) -> None:
    """A thousand small tensors, more than the device holds, and in the order of the stream."""
    history = store.history("h")
    u = {i: noise(64 + 97 * (i % 500), i) for i in range(1000)}
    sources = {i: array.clone() for i, array in u.items()}
    tickets = history.checkpoint_many({i: {"u": array} for i, array in sources.items()})
    for array in sources.values():
        array.fill_(-1)  # right behind, in the same stream
    assert [ticket.key for ticket in tickets] == list(range(1000))
    for i in reversed(range(1000)):
        with history.restore(i) as state:
            assert torch.equal(state["u"], u[i]), i


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.bool, torch.int8,
        torch.uint8, torch.float8_e4m3fn,
    ],
)  # fmt: skip
def test_dtypes(store: velocpy.Store, dtype: Any) -> None:
    raw = torch.randint(0, 2 if dtype == torch.bool else 256, (4096 * 16 + 16,), dtype=torch.uint8, device="cuda")
    source = raw.view(dtype)[1:]
    history = store.history("h")
    history.checkpoint(0, x=source)
    with history.restore(0) as state:
        x = state["x"]
        assert (x.dtype, x.shape, x.device) == (source.dtype, source.shape, source.device)
        assert torch.equal(x.view(torch.uint8), source.view(torch.uint8))


@pytest.mark.parametrize(
    "shape",
    [
        lambda x: x.t(), lambda x: x[::2, 1:], lambda x: x[3:50, 5:7], lambda x: x.reshape(8, 16, -1).permute(2, 0, 1),
        lambda x: x[5:5], lambda x: x[0, 0], lambda x: x[:1].expand(7, x.shape[1]),
    ],
)  # fmt: skip
def test_strides(store: velocpy.Store, shape: Any) -> None:
    source = shape(torch.rand(128, 200, device="cuda"))
    history = store.history("h")
    history.checkpoint(0, x=source)
    with history.restore(0) as state:
        assert torch.equal(state["x"], source)
        assert state["x"].shape == source.shape
    backs = torch.zeros(source.shape[::-1], device="cuda").permute(tuple(reversed(range(source.ndim))))
    history.restore(0, into={"x": backs})
    assert torch.equal(backs, source)


def test_many_regions_in_one_checkpoint(store: velocpy.Store) -> None:
    sources = [torch.rand(n * 37 % 5000 + 1, device="cuda") for n in range(1500)]
    history = store.history("h")
    history.checkpoint(0, sources)
    kept = [s.clone() for s in sources]
    for s in sources:
        s.zero_()
    with history.restore(0) as state:
        for i, s in enumerate(kept):
            assert torch.equal(state[i], s), i


def test_side_stream_orders_capture_and_restore(store: velocpy.Store) -> None:
    history = store.history("h")
    side = torch.cuda.Stream()
    u = torch.zeros(4 * MIB, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        for i in range(20):
            torch.cuda._sleep(2_000_000)
            u.fill_(i)
            history.checkpoint(i, u=u)
            u.fill_(-1)
        back = torch.empty_like(u)
        for i in reversed(range(20)):
            history.restore(i, into={"u": back})
            assert bool((back == i).all())


def test_lease_is_the_slot_and_survives_release_until_read(store: velocpy.Store) -> None:
    history = store.history("h")
    u = torch.full((4 * MIB,), 3.0, device="cuda")
    history.checkpoint(0, u=u)
    first, second = history.restore(0), history.restore(0)
    assert first["u"].data_ptr() == second["u"].data_ptr() != u.data_ptr()
    second.release()
    first.release()
    del first, second
    side = torch.cuda.Stream()
    for round_ in range(10):
        history.checkpoint(0, u=u)
        lease = history.restore(0, last=True)
        lease.used_on(side)
        seen = torch.empty_like(u)
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)  # the reader is late
            seen.copy_(lease["u"])
        del lease
        for i in range(8):  # into the room that was given back
            history.checkpoint(1 + i, u=torch.full_like(u, -1.0))
        side.synchronize()
        assert bool((seen == 3.0).all()), round_


def test_array_outlives_lease_and_store(tmp_path: Path) -> None:
    with velocpy.open(tmp_path, device="64MiB", host="64MiB") as store:
        history = store.history("h")
        u = torch.arange(1000, device="cuda")
        history.checkpoint(0, u=u)
        array = history.restore(0)["u"]
    assert torch.equal(array, u)


def test_mixed_regions(store: velocpy.Store) -> None:
    history = store.history("h")
    here, there = np.arange(1000.0), torch.rand(5000, device="cuda")
    cpu = torch.rand(77)
    kept = there.clone()
    history.checkpoint(0, here=here, there=there, cpu=cpu)
    there.zero_()
    with history.restore(0) as state:
        assert np.array_equal(state["here"], here)
        assert torch.equal(state["there"], kept)
        assert torch.equal(state["cpu"], cpu)
        assert state["cpu"].device.type == "cpu"
    onto, back = torch.empty(1000, dtype=torch.float64, device="cuda"), np.empty(5000, np.float32)
    history.restore(0, into={"here": onto, "there": back, "cpu": torch.empty(77)})
    assert np.array_equal(onto.cpu().numpy(), here)
    assert np.array_equal(back, kept.cpu().numpy())


def test_cupy_and_raw_pointers(store: velocpy.Store) -> None:
    cupy = pytest.importorskip("cupy")
    history = store.history("h")
    u = cupy.random.rand(300, 70)
    history.checkpoint(0, u=u[::2].T)
    with history.restore(0) as state:
        assert isinstance(state["u"], cupy.ndarray)
        assert bool((state["u"] == u[::2].T).all())
    flat = torch.arange(1 << 20, dtype=torch.int64, device="cuda")
    back = torch.zeros_like(flat)
    history.checkpoint(1, u=(flat.data_ptr(), flat.nbytes, 0))
    history.restore(1, into={"u": (back.data_ptr(), back.nbytes, 0)})
    torch.cuda.synchronize()
    assert torch.equal(back, flat)


def test_capture_does_not_wait_for_the_device(store: velocpy.Store) -> None:
    history = store.history("h")
    u = torch.rand(4 * MIB, device="cuda")
    history.checkpoint(0, u=u)  # code and pools
    torch.cuda.synchronize()
    torch.cuda._sleep(2_000_000_000)  # about a second
    began = time.perf_counter()
    ticket = history.checkpoint(1, u=u)
    took = time.perf_counter() - began
    assert took < 0.2, "the call waited for the device"
    assert not ticket.captured
    ticket.wait()
    assert ticket.captured


@pytest.mark.parametrize("lent", [True, False])
def test_a_restore_does_not_wait_for_its_transfer(tmp_path: Path, lent: bool) -> None:
    """The device computes with what its only room holds when a restore from the host is asked for, and when it is
    given."""
    host = 256 * MIB
    with velocpy.open(tmp_path, device="48MiB", host=host) as store:
        while store.stats()["tiers"]["host"]["pinned_bytes"] < host:
            time.sleep(0.01)
        history = store.history("h")
        u = noise(8 * MIB, 7)
        for key in range(3):
            history.checkpoint(key, u=u + key)
            history.wait("host")
        back = torch.empty_like(u)
        for key in (1, 2):  # what has to be done once has been done
            history.restore(key, into={"u": back})
        history.wait()
        assert (history.ready(0), history.ready(2)) == (False, True)
        with history.restore(2):
            torch.cuda._sleep(2_000_000_000)
        if lent:
            with history.restore(0) as state:
                back.copy_(state["u"])
        else:
            history.restore(0, into={"u": back})
        assert not torch.cuda.current_stream().query()
        assert torch.equal(back, u)


def test_damage_on_the_way_up_is_told_by_the_next_call(run_python: RunPython) -> None:
    done = run_python(
        """
import time, torch, velocpy
HOST = 1
with velocpy.open(device="80MiB", host="1GiB") as store:
    while store.stats()["tiers"]["host"]["pinned_bytes"] < 1 << 30:
        time.sleep(0.01)
    history = store.history("h")
    u = torch.arange(4 << 20, device="cuda")
    for key in range(8):
        history.checkpoint(key, u=u, v=u + key)
        history.wait("host")
    assert not history.ready(0)
    history._core.corrupt(0, HOST, 5 << 23)
    with history.restore(7):
        torch.cuda._sleep(500_000_000)              # who reads the room that the load takes is late
    with history.restore(0) as state:
        assert torch.equal(state["u"], u) and not torch.equal(state["v"], u)
    try:
        history.wait()
    except velocpy.errors.BelatedCorruption as error:
        assert (error.history, error.key, error.region, error.tier) == ("h", 0, "v", "host"), vars(error)
    else:
        raise AssertionError("nobody told")
    history.wait()
    try:
        history.restore(0)
    except velocpy.errors.CorruptCheckpoint as error:      # known by now
        assert (error.key, error.region) == (0, "v"), vars(error)
    else:
        raise AssertionError("given again")
    with history.restore(7) as state:
        assert torch.equal(state["v"], u + 7)
print("told")
""",
        env={"VELOCPY_TEST_HOOKS": "1"},
    )
    assert (done.returncode, done.stdout) == (0, "told\n"), done.stderr


def test_copy_false_reads_the_source_itself(store: velocpy.Store) -> None:
    history = store.history("h")
    side = torch.cuda.Stream()
    kept = noise(4 * MIB + 3, 1)
    u = torch.zeros_like(kept)
    history.checkpoint("warm", u=u, copy=False).wait(timeout=30)  # code and pools
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(2_000_000_000)  # about a second
        u.copy_(kept)
        began = time.perf_counter()
        ticket = history.checkpoint(0, u=u, copy=False)
        took = time.perf_counter() - began
    assert took < 0.2, "the call waited for the device"
    assert not ticket.captured
    ticket.wait(timeout=30)
    assert ticket.captured
    assert ticket.durable("host")
    assert store.stats()["tiers"]["device"]["high_water"] == 0
    u.fill_(-1)
    back = torch.empty_like(u)
    history.restore(0, into={"u": back})
    assert torch.equal(back, kept)


def test_copy_false_of_a_long_history(store: velocpy.Store) -> None:
    history = store.history("h")
    count, ring = 100, [torch.empty(2 * MIB + 3, dtype=torch.int32, device="cuda") for _ in range(4)]
    tickets: list[velocpy.Ticket] = []
    for i in range(count):
        u = ring[i % len(ring)]
        if i >= len(ring):
            tickets[i - len(ring)].wait(timeout=30)  # its source is about to be overwritten
        u.copy_(noise(u.numel(), i))
        tickets.append(history.checkpoint(i, u=u, copy=False))
    back = torch.empty_like(ring[0])
    for i in reversed(range(count)):
        history.restore(i, into={"u": back}, last=True)
        assert torch.equal(back, noise(back.numel(), i)), i
        back.fill_(-2)
    assert store.stats()["tiers"]["disk"]["written_bytes"] > 0


def test_copy_false_keeps_all_kinds_of_sources(store: velocpy.Store) -> None:
    history = store.history("h")
    for i in range(20):
        wide, many = torch.rand(700, 900, device="cuda"), [torch.rand(n * 37 + 1, device="cuda") for n in range(100)]
        here = np.full(1000, float(i))
        sources = {
            "rows": wide[::3, 1:].t(),
            "odd": wide.view(-1)[1:],
            "temporary": wide + 1,
            "empty": wide[5:5],
            "here": here,
        }
        want = {name: x.copy() if isinstance(x, np.ndarray) else x.clone() for name, x in sources.items()}
        torch.cuda._sleep(20_000_000)
        history.checkpoint(i, {**sources, **{f"m{n}": x for n, x in enumerate(many)}}, copy=False)
        totals = [float(x.sum()) for x in many]
        del wide, many, sources, here  # what takes their memory must not be read instead
        junk = [torch.full((700, 900), -1.0, device="cuda") for _ in range(4)]
        with history.restore(i) as state:
            for name, x in want.items():
                assert np.array_equal(state[name], x) if name == "here" else torch.equal(state[name], x), (i, name)
            assert [float(state[f"m{n}"].sum()) for n in range(100)] == totals
        del junk
    history.wait(timeout=30)
    assert store._core.kept_sources() == 0


def test_copy_false_dropped_at_once(tmp_path: Path) -> None:
    with velocpy.open(tmp_path, device="64MiB", host="256MiB") as store:
        history = store.history("h")
        for i in range(30):
            torch.cuda._sleep(5_000_000)
            ticket = history.checkpoint(i % 3, u=noise(2 * MIB, i), copy=False)
            if i % 2:
                history.drop(i % 3)
                assert ticket.dropped
        back = torch.empty(2 * MIB, dtype=torch.int32, device="cuda")
        history.restore(28 % 3, into={"u": back})
        assert torch.equal(back, noise(2 * MIB, 28))
        history.wait(timeout=30)
        assert store._core.kept_sources() == 0


def test_a_capturing_stream_is_refused(store: velocpy.Store) -> None:
    history = store.history("h")
    u = torch.rand(1000, device="cuda")
    history.checkpoint(0, u=u)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        v = u * 2
        with pytest.raises(velocpy.errors.InvalidArgument, match="graph"):
            history.checkpoint(1, u=u)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(v, u * 2)
    history.checkpoint(2, u=u)


def test_no_budget_for_the_device(tmp_path: Path) -> None:
    with velocpy.open(tmp_path, host="16MiB") as store, pytest.raises(velocpy.errors.TierUnavailable, match="device"):
        store.history("h").checkpoint(0, u=torch.zeros(3, device="cuda"))


def test_larger_than_the_device_cache(tmp_path: Path) -> None:
    with velocpy.open(tmp_path, device="16MiB", host="128MiB", disk="1GiB") as store:
        history = store.history("h")
        for i, elements in enumerate((8 * MIB, 40 * MIB)):  # past the device, past the host
            u = noise(elements, i)
            history.checkpoint(i, u=u)
            kept = u.clone()
            u.zero_()
            back = torch.empty_like(u)
            history.restore(i, into={"u": back})
            assert torch.equal(back, kept), i


def test_the_cache_makes_room_for_an_allocation(tmp_path: Path) -> None:
    """An allocation that has no place beside the cache has one after a resize; every checkpoint is still exact."""
    elements, count, gib = 16 * MIB, 40, 1 << 30  # 2.5 GiB
    if torch.cuda.mem_get_info()[0] < 16 * gib:
        pytest.skip("others use the card")
    with velocpy.open(tmp_path, device="3GiB", host="4GiB") as store:
        history = store.history("h")
        u = torch.empty(elements, dtype=torch.int32, device="cuda")

        def write() -> None:
            for i in range(count):
                u.copy_(noise(elements, i))
                history.checkpoint(i, u=u)

        def read() -> None:
            for i in reversed(range(count)):
                history.restore(i, into={"u": u})
                assert torch.equal(u, noise(elements, i)), i

        write()
        lease = history.restore(count - 1)
        torch.cuda.empty_cache()
        wanted = torch.cuda.mem_get_info()[0] + gib
        held = store.resize(device="1GiB")
        assert torch.equal(lease["u"], noise(elements, count - 1))
        lease.release()
        left = store.resize(device="1GiB")
        assert left <= min(held, gib)
        torch.cuda.empty_cache()
        assert torch.cuda.mem_get_info()[0] > wanted
        large = torch.empty(wanted, dtype=torch.uint8, device="cuda").fill_(3)
        read()
        write()
        read()
        assert bool((large[::MIB] == 3).all())
        del large
        torch.cuda.empty_cache()
        assert store.resize(device="3GiB") <= gib  # more is taken when captures need it
        write()
        assert store.stats()["tiers"]["device"]["capacity"] > gib
        read()


def test_stats_tell_what_is_pinned(tmp_path: Path) -> None:
    with velocpy.open(tmp_path, device="64MiB", host="300MiB", disk="1GiB") as store:
        deadline = time.monotonic() + 60
        while (tiers := store.stats()["tiers"])["host"]["pinned_bytes"] < tiers["host"]["capacity"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert tiers["device"]["pinned_bytes"] == tiers["disk"]["pinned_bytes"] == 0


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_histories_on_two_devices(tmp_path: Path) -> None:
    budgets = {0: "64MiB", "cuda:1": "64MiB"}
    with velocpy.open(tmp_path, device=budgets, host="128MiB", disk="2GiB") as store:
        histories = [store.history("first"), store.history("second")]
        arrays = [torch.empty(2 * MIB + 5, dtype=torch.int32, device=f"cuda:{d}") for d in range(2)]
        for i in range(60):
            for d, (history, array) in enumerate(zip(histories, arrays, strict=True)):
                array.fill_(1000 * d + i)
                history.checkpoint(i, u=array)
                array.fill_(-1)
        for i in reversed(range(60)):
            for d, history in enumerate(histories):
                with history.restore(i, last=True) as state:
                    assert state["u"].device.index == d
                    assert bool((state["u"] == 1000 * d + i).all()), (d, i)
        tiers = store.stats()["tiers"]
        assert tiers["cuda:0"]["high_water"] > 0
        assert tiers["cuda:1"]["high_water"] > 0
        with pytest.raises(velocpy.errors.InvalidArgument, match="devices"):
            histories[0].checkpoint(99, a=arrays[0], b=arrays[1])


def pinned(store: velocpy.Store) -> int:
    """Bytes of the host tier that are pinned, once they are as many as the budget allows."""
    end = time.monotonic() + 60
    while True:
        tier = store.stats()["tiers"]["host"]
        if tier["pinned_bytes"] == tier["capacity"] or time.monotonic() > end:
            return int(tier["pinned_bytes"])
        time.sleep(0.01)


def test_pinned_host_memory_is_given_back_and_taken_again(tmp_path: Path) -> None:
    """Captures, flushes and restores through the device stay exact while the host tier shrinks and grows below them."""
    with velocpy.open(tmp_path, device=256 * MIB, host=1024 * MIB, disk="4GiB") as store:
        assert pinned(store) == 1024 * MIB
        history = store.history("h")
        held = {}

        def capture(keys: range) -> None:
            for key in keys:
                held[key] = noise(4 * MIB, key)
                history.checkpoint(key, u=held[key])

        capture(range(40))  # 640 MiB
        with history.restore(20) as lease:
            kept = lease["u"]
            for budget in (512, 128, 1024, 64, 1024):
                left = store.resize(host=budget * MIB)
                tier = store.stats()["tiers"]["host"]
                assert tier["capacity"] == budget * MIB
                assert tier["pinned_bytes"] <= left  # more than the budget where checkpoints are on their way
                capture(range(len(held), len(held) + 10))
                for key in range(0, len(held), 3):
                    with history.restore(key) as state:
                        assert torch.equal(state["u"], held[key]), (budget, key)
            assert torch.equal(kept, held[20])
        assert store.resize(host=64 * MIB) == 64 * MIB  # no lease holds anything beyond it
        assert store.stats()["tiers"]["host"]["pinned_bytes"] <= 64 * MIB
        assert store.resize(host=1024 * MIB) == 1024 * MIB
        assert pinned(store) == 1024 * MIB
        for key, u in held.items():
            assert torch.equal(history.restore(key, last=True)["u"], u), key
