"""Arrays and streams of CUDA devices, as far as they can be told without one."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import velocpy
from velocpy import devices
from velocpy.budget import device_budgets


class Shown:
    """What has nothing but the interface."""

    def __init__(self, **interface: Any) -> None:
        whole = {"shape": (2, 3), "typestr": "<f4", "data": (0x7F0000000000, False), "version": 3}
        self.__cuda_array_interface__ = whole | interface


def test_arrays_are_described_by_their_interface() -> None:
    library, text, address, itemsize, shape, strides, writable, owner, place = devices.describe(array := Shown(), "u")
    assert (library, text, address, itemsize) == (devices.CUDA, "<f4", 0x7F0000000000, 4)
    assert (shape, strides, writable, place) == ((2, 3), (12, 4), True, 1)
    assert owner is array
    assert devices.describe(Shown(strides=(4, 8), data=(1 << 40, True)), "u")[5:7] == ((4, 8), False)


@pytest.mark.parametrize(
    ("interface", "what"), [({"stream": 0}, "stream 0"), ({"mask": object()}, "mask")], ids=["stream", "mask"]
)
def test_interfaces_that_cannot_be(interface: dict[str, Any], what: str) -> None:
    with pytest.raises(velocpy.InvalidArgument, match=what):
        devices.describe(Shown(**interface), "u")


def test_streams_by_every_name() -> None:
    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, 5

    class Torch:
        cuda_stream = 6

    class Cupy:
        ptr = 7

    assert devices.named([3, np.int64(4), Protocol(), Torch(), Cupy()]) == (3, 4, 5, 6, 7)
    for wrong in (-1, 1 << 64, 1.5, "x", True):
        with pytest.raises(velocpy.InvalidArgument):
            devices.named(wrong)


def test_the_current_stream_of_torch_by_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(is_initialized=lambda: True, current_stream=lambda n: SimpleNamespace(cuda_stream=70 + n))
    for inside in (SimpleNamespace(_cuda_getCurrentRawStream=lambda n: 70 + n), SimpleNamespace()):
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(_C=inside, cuda=cuda))
        assert devices.torch_stream()(3) == 73
        assert devices.current(2)[0] == 71
        assert devices.streams(None, [(devices.TORCH, 1), (devices.CUDA, 1)]) == (70, devices.LEGACY_STREAM)


@pytest.mark.parametrize(
    "wrong", ["12 parsecs", -1, float("nan"), 0, "0%", "101%", "x%", 1.5, True, {"gpu": 1}, {-1: 1}, {True: 1}]
)
def test_hostile_budgets(wrong: Any) -> None:
    with pytest.raises(velocpy.InvalidArgument):
        device_budgets(wrong)


def test_budgets() -> None:
    assert device_budgets(None) == []
    assert device_budgets("1GiB") == [{"ordinal": 0, "bytes": 1 << 30}]
    assert device_budgets(0.25) == device_budgets("25%") == [{"ordinal": 0, "share": 0.25}]
    assert device_budgets({"cuda:1": 7, 3: "50%"}) == [{"ordinal": 1, "bytes": 7}, {"ordinal": 3, "share": 0.5}]


def test_budgets_of_an_open_store() -> None:
    assert device_budgets(0, least=0) == [{"ordinal": 0, "bytes": 0}]
    with pytest.raises(velocpy.InvalidArgument):
        device_budgets(-1, least=0)
    with velocpy.open(host="16MiB") as store:
        with pytest.raises(velocpy.TierUnavailable, match="no device tier"):
            store.resize(device="1MiB")
        with pytest.raises(velocpy.TierUnavailable, match="device 3"):
            store._core.resize('{"devices": [{"ordinal": 3, "bytes": 1}]}', None)
    with pytest.raises(velocpy.StoreClosed):
        store.resize(device="1MiB")


def test_resize_names_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Core:
        def resize(self, budgets: str, timeout: float | None) -> int:
            asked.append((json.loads(budgets)["devices"], timeout))
            return 7

    with velocpy.open(host="16MiB") as store:
        monkeypatch.setattr(store, "_core", Core())
        store._places = (4,)
        store._config["devices"] = [{"ordinal": 3, "share": 0.5}]
        assert store.resize(device="1MiB", timeout=2.0) == 7
        assert repr(store).startswith("<Store cuda:3 1.0 MiB, ")
        store._places = (4, 1)
        store._config["devices"].append({"ordinal": 0, "bytes": 5})
        with pytest.raises(velocpy.InvalidArgument, match="name those"):
            store.resize(device="1MiB")
        assert store.resize(device={"cuda:0": "25%"}) == 7
        assert store._config["devices"] == [{"ordinal": 3, "bytes": 1 << 20}, {"ordinal": 0, "share": 0.25}]
        monkeypatch.undo()
    assert asked == [([{"ordinal": 3, "bytes": 1 << 20}], 2.0), ([{"ordinal": 0, "share": 0.25}], None)]


def test_a_device_needs_a_host_tier() -> None:
    with pytest.raises(velocpy.InvalidArgument, match="host"):
        velocpy.open(device="1GiB", host=None, disk="1GiB")
    with pytest.raises(velocpy.InvalidArgument, match="pinning"):
        velocpy.open(device="1GiB", pinning="sometimes")


def test_without_a_budget_arrays_on_a_device_are_refused() -> None:
    with velocpy.open(host="16MiB") as store:
        history = store.history("h")
        with pytest.raises(velocpy.TierUnavailable, match="device=") as refused:
            history.checkpoint(0, u=Shown())
        assert refused.value.region is not None
        assert refused.value.tier == "device"
        with pytest.raises(velocpy.TierUnavailable):
            history.checkpoint(0, u=(1 << 40, 100, 2))
        assert len(history) == 0


def test_without_a_driver_it_says_what_helps() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(velocpy.TierUnavailable, match="driver") as refused:
        velocpy.open(device="1GiB", host="64MiB")
    assert refused.value.tier == "device"
    with velocpy.open(host="64MiB") as store:  # the host tier works as ever
        store.history("h").checkpoint(0, u=np.arange(3))
