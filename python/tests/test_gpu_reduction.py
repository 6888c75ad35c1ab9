"""Histories whose checkpoints a device encodes on their way to the host."""

import subprocess
import sys

import numpy as np
import pytest

import velocpy
from velocpy import ondisk

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu


def saved(store, name="h"):
    return store.stats()["histories"][name]["reduction"]


def smooth(dtype, count, seed):
    """Elements that differ little from their neighbours, with NaN payloads, signed zeros and infinities."""
    steps = torch.randint(-2, 3, (count,), generator=torch.Generator().manual_seed(seed)).cumsum(0)
    array = steps.to(dtype)
    if dtype.is_floating_point:
        array[:4] = torch.tensor([-0.0, np.inf, -np.inf, np.nan], dtype=dtype)
        array[4:5].view(torch.uint8)[0] ^= 5
    return array.cuda()


def same(a, b):
    return torch.equal(a.reshape(-1).view(torch.uint8), b.reshape(-1).view(torch.uint8))


def take_all(history, at, count):
    """Restores states and drops them, by leases and into tensors by turns, in an order of which none is the reverse."""
    for step in sorted(range(count), key=lambda step: (step % 3, -step)):
        if step % 2:
            with history.restore(step) as lease:
                assert all(same(lease[name], tensor) for name, tensor in at(step).items())
            history.drop(step)
        else:
            into = {name: torch.empty_like(tensor) for name, tensor in at(step).items()}
            history.restore(step, into=into, last=True)
            assert all(same(into[name], tensor) for name, tensor in at(step).items())


DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int32, torch.int64]


@pytest.mark.parametrize("disk", [None, "2GiB"])
@pytest.mark.parametrize("verify", ["moved", "off"])
def test_all_dtypes_come_back_bit_by_bit(tmp_path, disk, verify):
    state = {str(d): smooth(d, 1_000_003 + i, i) for i, d in enumerate(DTYPES)}
    state |= {"empty": torch.zeros(0, 3, device="cuda"), "one": torch.tensor(2.5, device="cuda")}
    with velocpy.open(
        tmp_path / "s" if disk else None, device="192MiB", host="512MiB", disk=disk, verify=verify
    ) as store:
        history = store.history("h", reduce="codec")
        for step in range(12):  # more than the device has room for
            history.checkpoint(step, {name: tensor.roll(step) for name, tensor in state.items()})
        store.wait("host")
        assert saved(store)["encoded"] == 12
        assert saved(store)["encoded_to"] < 0.7 * saved(store)["encoded_from"]
        for step in reversed(range(12)):
            if step % 2:
                with history.restore(step) as lease:
                    assert all(same(lease[name], tensor.roll(step)) for name, tensor in state.items())
            else:
                into = {name: torch.empty_like(tensor) for name, tensor in state.items()}
                history.restore(step, into=into, last=True)
                assert all(same(into[name], tensor.roll(step)) for name, tensor in state.items())
        assert saved(store)["decoded"] > 0


def related():
    """States of which each changes a few elements of most regions, none of one, and all of another."""
    state = {str(d): torch.arange(1_000_003 + i).mul(7919).to(d).cuda() for i, d in enumerate(DTYPES)}
    random = torch.Generator("cuda").manual_seed(3)
    noise = torch.randint(0, 256, (1 << 20,), dtype=torch.uint8, device="cuda", generator=random)
    state |= {"still": noise, "empty": torch.zeros(0, 3, device="cuda"), "one": torch.tensor(2.5, device="cuda")}

    def at(step):
        changed = {name: tensor.clone() for name, tensor in state.items()}
        for dtype in DTYPES:
            changed[str(dtype)][step::1009] = step
        return changed | {"whole": noise.roll(step + 1)}

    return at


@pytest.mark.parametrize("verify", ["moved", "off", "always"])
def test_states_that_are_alike_are_encoded_with_each_other(verify):
    at = related()
    with velocpy.open(device="384MiB", host="2GiB", disk=None, verify=verify) as store:
        history = store.history("h", reduce="reference")
        for step in range(40):  # more than the device has room for
            history.checkpoint(step, at(step))
            if step < 3:
                history.wait("host")
        store.wait("host")
        did = saved(store)
        assert did["differences"] > 25
        assert did["encoded_to"] < 0.25 * did["encoded_from"]
        take_all(history, at, 40)
        assert saved(store)["decoded"] > 0
        assert store.stats()["tiers"]["host"]["used"] == 0


def moving():
    """States of which each writes to a few places, and moves a part to another place. One region grows."""
    random = torch.Generator("cuda").manual_seed(4)
    noise = torch.randint(0, 256, (9_000_001,), dtype=torch.uint8, device="cuda", generator=random)

    def at(step):
        changed = noise.clone()
        for k in range(1, step + 1):
            changed[k * 7919 :: 1_000_003] = k
            changed[k << 17 : (k << 17) + 65536] = noise[(k << 16) : (k << 16) + 65536]
        return {"u": changed, "still": noise[:3_000_000], "grows": noise[: 200_000 + 5000 * step]} | {
            "empty": torch.zeros(0, 3, device="cuda"),
            "one": torch.tensor(2.5 + step, device="cuda"),
        }

    return at


@pytest.mark.parametrize("verify", ["moved", "off", "always"])
@pytest.mark.parametrize(("method", "chunk"), [("basic", 4096), ("list", 128), ("tree", 64), ("tree", None)])
def test_a_device_removes_duplicates(method, chunk, verify):
    at = moving()
    with velocpy.open(device="192MiB", host="1GiB", disk=None, verify=verify) as store:
        history = store.history("h", reduce=method, chunk=chunk)
        for step in range(40):  # more than the device has room for
            history.checkpoint(step, at(step))
        store.wait("host")
        did = saved(store)
        assert did["differences"] > 35
        assert did["encoded_to"] < 0.25 * did["encoded_from"]
        take_all(history, at, 40)
        assert saved(store)["decoded"] > 0
        assert store.stats()["tiers"]["host"]["used"] == 0


@pytest.mark.parametrize("durable", [True, False])
def test_a_disk_keeps_what_a_device_de_duplicated(tmp_path, durable):
    at, count = moving(), 30
    plain = count * sum(tensor.nbytes for tensor in at(0).values())
    with velocpy.open(tmp_path / "s", device="192MiB", host="96MiB", disk="4GiB", durable=durable) as store:
        history = store.history("h", reduce="tree", chunk=256)
        for step in range(count):
            history.checkpoint(step, at(step))
        store.wait("disk")
        assert saved(store)["differences"] > count / 2
        assert store.stats()["tiers"]["disk"]["used"] < 0.4 * plain
        for step in sorted(range(count), key=lambda step: (step % 3, -step)):
            into = {name: torch.empty_like(tensor) for name, tensor in at(step).items()}
            history.restore(step, into=into, last=step % 4 == 0)
            assert all(same(into[name], tensor) for name, tensor in at(step).items())
    if not durable:
        return
    command = [sys.executable, "-m", "velocpy", "check", "--read-data", str(tmp_path / "s")]
    assert subprocess.run(command, capture_output=True, text=True).returncode == 0
    with velocpy.open(tmp_path / "s", host="1GiB") as store:
        history = store.history("h")
        for step in set(range(count)) - set(range(0, count, 4)):
            into = {name: torch.empty_like(tensor, device="cpu") for name, tensor in at(step).items()}
            history.restore(step, into=into)
            assert all(same(into[name], tensor.cpu()) for name, tensor in at(step).items())


@pytest.mark.parametrize("durable", [True, False])
def test_a_disk_keeps_what_was_encoded_with_others(tmp_path, durable):
    at, count = related(), 30
    plain = count * sum(tensor.nbytes for tensor in at(0).values())
    with velocpy.open(tmp_path / "s", device="384MiB", host="160MiB", disk="4GiB", durable=durable) as store:
        history = store.history("h", reduce="reference")
        for step in range(count):
            history.checkpoint(step, at(step))
            if step < 3:
                history.wait("host")
        store.wait("disk")
        assert saved(store)["differences"] > count / 2
        assert store.stats()["tiers"]["disk"]["used"] < 0.4 * plain
        for step in sorted(range(count), key=lambda step: (step % 3, -step)):
            if step % 2:
                with history.restore(step) as lease:
                    assert all(same(lease[name], tensor) for name, tensor in at(step).items())
            else:
                into = {name: torch.empty_like(tensor) for name, tensor in at(step).items()}
                history.restore(step, into=into, last=step % 4 == 0)
                assert all(same(into[name], tensor) for name, tensor in at(step).items())
    if not durable:
        return
    command = [sys.executable, "-m", "velocpy", "check", "--read-data", str(tmp_path / "s")]
    assert subprocess.run(command, capture_output=True, text=True).returncode == 0
    with velocpy.open(tmp_path / "s", host="1GiB") as store:
        history = store.history("h")
        for step in set(range(count)) - set(range(0, count, 4)):
            into = {name: torch.empty_like(tensor, device="cpu") for name, tensor in at(step).items()}
            history.restore(step, into=into)
            assert all(same(into[name], tensor.cpu()) for name, tensor in at(step).items())


def test_what_does_not_become_smaller_goes_as_it_is():
    noise = torch.randint(0, 256, (40 << 20,), dtype=torch.uint8, device="cuda")
    with velocpy.open(device="192MiB", host="1GiB", disk=None) as store:
        history = store.history("h", reduce="codec")
        for step in range(12):
            history.checkpoint(step, x=noise.roll(step))
        store.wait("host")
        assert saved(store)["plain"] == 12
        assert saved(store)["encoded"] == 0
        for step in reversed(range(12)):
            with history.restore(step, last=True) as lease:
                assert same(lease["x"], noise.roll(step))


def test_many_small_regions():
    state = {f"p{i}": smooth(torch.bfloat16, 1000 + 37 * i, i) for i in range(400)}
    with velocpy.open(device="192MiB", host="1GiB", disk=None) as store:
        history = store.history("h", reduce="codec")
        for step in range(30):
            history.checkpoint(step, {name: tensor + step for name, tensor in state.items()})
        store.wait("host")
        assert saved(store)["encoded"] == 30
        for step in reversed(range(30)):
            with history.restore(step, last=True) as lease:
                assert all(same(lease[name], tensor + step) for name, tensor in state.items())


def test_a_host_holds_more_encoded_checkpoints():
    wave = torch.sin(torch.linspace(0, 60, 8 << 20, device="cuda"))
    with velocpy.open(device="256MiB", host="256MiB", disk=None) as store:
        history = store.history("h", reduce="codec")
        for step in range(14):  # 448 MiB
            history.checkpoint(step, x=wave * (1 + step / 100))
        store.wait("host")
        for step in reversed(range(14)):
            with history.restore(step, last=True) as lease:
                assert same(lease["x"], wave * (1 + step / 100))


@pytest.mark.parametrize("compress", [None, "zstd", "s2", "huff0"])
def test_encoded_by_a_device_and_opened_again(tmp_path, compress):
    state = {str(d): smooth(d, 500_003 + i, i) for i, d in enumerate(DTYPES)}
    with velocpy.open(tmp_path / "s", device="192MiB", host="64MiB", disk="2GiB") as store:
        history = store.history("h", reduce="codec", compress=compress)
        for step in range(8):
            history.checkpoint(step, {name: tensor.roll(step) for name, tensor in state.items()})
        store.wait("disk")
        assert saved(store)["encoded"] >= 8
        assert store.stats()["tiers"]["disk"]["used"] < 0.7 * saved(store)["encoded_from"]
    with velocpy.open(tmp_path / "s", device="192MiB", host="64MiB", disk="2GiB") as store:
        for step in reversed(range(8)):
            with store.history("h").restore(step) as lease:
                assert all(same(lease[name], tensor.roll(step)) for name, tensor in state.items())
    part = torch.empty(1000, dtype=torch.float32, device="cuda")
    with velocpy.open(tmp_path / "s", device="192MiB", host="64MiB", disk="2GiB", mode="r") as store:
        name = str(torch.float32)
        store.history("h").restore(3, into={name: part}, parts={name: slice(300_000, 301_000)})
        assert same(part, state[name].roll(3)[300_000:301_000])
    assert ondisk.check(tmp_path / "s", read_data=True).damaged == 0


@pytest.mark.parametrize("flush", ["lazy", "eager"])
@pytest.mark.parametrize("device", ["192MiB", "1792MiB"])
def test_small_checkpoints_are_encoded_together(device, flush):
    """They come back by themselves, and those that are dropped or do not become smaller leave the others alone."""
    random, tuning = np.random.default_rng(1), velocpy.Tuning(flush=flush)
    noise = torch.randint(0, 256, (1 << 20,), dtype=torch.uint8, device="cuda")

    def state(step):
        count = 20_000 + 977 * step % 150_000
        if step % 11 == 5:
            return {"noise": noise[: 4 * count].roll(step)}
        return {"x": smooth(DTYPES[step % len(DTYPES)], count, step), "y": torch.full((9,), step, device="cuda")}

    with velocpy.open(device=device, host="256MiB", disk=None, tuning=tuning) as store:
        history = store.history("h", reduce="codec")
        states = [state(step) for step in range(240)]
        kept = set(range(240))
        for step in range(240):
            history.checkpoint(step, states[step])
            if step % 17 == 16:
                gone = int(random.choice(sorted(kept)[:step]))
                kept -= {gone}
                history.drop(gone)
        store.wait("host")
        assert saved(store)["accumulated"] > 20
        assert saved(store)["plain"] > 0
        pushing, capacity = store.history("pushing"), store.stats()["tiers"]["device"]["capacity"]
        for key in range(capacity // (16 << 20)):  # what lies on the host need not stay on the device
            pushing.checkpoint(key, x=noise.repeat(16))
        pushing.clear()
        for step in sorted(kept, reverse=True):
            with history.restore(step) as lease:
                assert all(same(lease[name], tensor) for name, tensor in states[step].items())
