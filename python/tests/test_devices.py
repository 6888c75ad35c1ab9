"""Arrays and streams of CUDA devices, as far as they can be told without one."""

from __future__ import annotations

import gc
import json
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from foreign import COPIED, CUDA_MANAGED, READ_ONLY, Dlpack, Interface, Seen

import velocpy
from velocpy import arrays, devices
from velocpy.budget import device_budgets


def test_arrays_are_described_by_their_interface() -> None:
    array = Interface()
    assert devices.describe(array, "u") == (
        devices.CUDA, "<f4", 0x7F0000000000, 4, (2, 3), (12, 4), True, array, 1, None,
    )  # fmt: skip
    shown = devices.describe(Interface(strides=(4, 8), data=(1 << 40, True)), "u")
    assert shown is not None
    assert shown[5:7] == ((4, 8), False)


@pytest.mark.parametrize("stream", [None, 1, 2, 0x5555, np.uint64(2**64 - 1)])
def test_interfaces_name_their_stream(stream: Any) -> None:
    for caller in (None, 77, [78, 79]):
        shown = devices.describe(Interface(stream=stream), "u", caller)
        assert shown is not None
        assert shown[9] == stream


class Angry:
    """What raises at whatever is asked."""

    def __getattr__(self, name: str) -> Any:
        raise ValueError("not now")

    def __bool__(self) -> bool:
        raise ValueError("neither")


HUGE = 1 << 70

INTERFACES = {
    "stream 0": ({"stream": 0}, "stream 0"),
    "a negative stream": ({"stream": -1}, "no handle"),
    "a huge stream": ({"stream": HUGE}, "no handle"),
    "no stream at all": ({"stream": "2"}, "a str in a stream"),
    "a flag": ({"stream": True}, "a bool in a stream"),
    "a mask": ({"mask": object()}, "mask"),
    "no typestr": ({"typestr": 4}, "typestr"),
    "an unknown typestr": ({"typestr": "<q9"}, "elements of type"),
    "no text": ({"typestr": "\0\ud800"}, "elements of type"),
    "objects": ({"typestr": "|O"}, "references"),
    "huge elements": ({"typestr": f"|V{HUGE}"}, "elements of type"),
    "no address": ({"data": None}, "data"),
    "an address alone": ({"data": (1 << 40,)}, "data"),
    "a text for an address": ({"data": ("x", False)}, "address"),
    "a negative address": ({"data": (-4096, False)}, "no memory"),
    "a huge address": ({"data": (HUGE, False)}, "no memory"),
    "the end of memory": ({"data": ((1 << 63) - 20, False)}, "no memory"),
    "a flag that is none": ({"data": (1 << 40, Angry())}, "neither"),
    "no shape": ({"shape": 6}, "shape"),
    "a negative shape": ({"shape": (2, -3)}, "shape"),
    "a huge shape": ({"shape": (HUGE, 0)}, "shape"),
    "a shape of floats": ({"shape": (2.0, 3)}, "shape"),
    "more than memory": ({"shape": (1 << 40, 1 << 40)}, "no memory"),
    "few strides": ({"strides": (4,)}, "strides"),
    "no strides": ({"strides": 4}, "strides"),
    "huge strides": ({"strides": (HUGE, 4)}, "strides"),
    "huge strides that lead nowhere": ({"strides": (HUGE, 4), "shape": (1, 3)}, "strides"),
    "strides out of memory": ({"strides": (-(1 << 50), 4)}, "no memory"),
}


@pytest.mark.parametrize(("interface", "what"), INTERFACES.values(), ids=INTERFACES)
def test_interfaces_that_cannot_be(interface: dict[str, Any], what: str) -> None:
    with velocpy.open(host="16MiB") as store:
        history = store.history("h")
        history.checkpoint("f", u=np.zeros((2, 3), np.float32))
        for refused in (
            lambda array: history.checkpoint(0, u=array),
            lambda array: history.restore("f", into={"u": array}),
        ):
            with pytest.raises(velocpy.errors.InvalidArgument, match=what) as told:
                refused(Interface(**interface))
            assert "'u'" in str(told.value)


def test_what_is_no_interface() -> None:
    class Property:
        @property
        def __cuda_array_interface__(self) -> Any:
            raise RuntimeError("no device")

    class Dictionary(dict[str, Any]):
        def get(self, name: str, default: Any = None) -> Any:
            raise ZeroDivisionError(name)

    plain, missing, angry, device = Interface(), Interface(), Interface(), Interface()
    plain.__cuda_array_interface__ = "typestr"  # type: ignore[assignment]
    del missing.__cuda_array_interface__["shape"], missing.__cuda_array_interface__["data"]
    angry.__cuda_array_interface__ = Dictionary(angry.__cuda_array_interface__)
    device.device = -3  # type: ignore[attr-defined]
    told = {
        "no device": Property(),
        "a str": plain,
        "without shape and data": missing,
        "mask": angry,
        "device -3": device,
    }
    for what, wrong in told.items():
        with pytest.raises(velocpy.errors.InvalidArgument, match=what):
            devices.describe(wrong, "u")


def test_every_step_of_an_array_may_fail() -> None:
    """Whatever the code of an array's library raises becomes an error of ours, but a Ctrl-C stays one."""

    def failing(name: str, error: type[BaseException]) -> Any:
        def fail(self: Any, *_: Any, **__: Any) -> Any:
            raise error("of its own")

        whole: dict[str, Any] = {"__dlpack__": lambda *_, **__: None, "__dlpack_device__": lambda _: (2, 0)}
        names = {**whole, name: fail if name.startswith("__dlpack") else property(fail)}
        return type("Failing", (), names)()

    for name in ("__cuda_array_interface__", "__dlpack__", "__dlpack_device__"):
        for error in (RuntimeError, TypeError, OverflowError, RecursionError, OSError, StopIteration):
            with pytest.raises(velocpy.errors.InvalidType):
                arrays.describe(failing(name, error), "u")
        with pytest.raises(KeyboardInterrupt):
            arrays.describe(failing(name, KeyboardInterrupt), "u")


def test_dlpack_is_told_the_stream_that_reads() -> None:
    for stream, told in ((None, 1), (0, 1), (1, 1), (2, 2), (77, 77), ([5, 6], 5), ([], 1)):
        array = Dlpack()
        shown = devices.describe(array, "u", stream)
        assert array.streams == [told]
        assert shown is not None
        assert shown[:7] == (devices.CUDA, "<f4", 0x7F0000000000, 4, (2, 3), (12, 4), True)
        assert shown[8:] == (1, told)
        assert array.returned == 0
        del shown
        assert array.returned == 1


@pytest.mark.parametrize("version", [None, (1, 0), (1, 7)])
def test_what_dlpack_shows(version: tuple[int, int] | None) -> None:
    for flags, writable in ((0, True), (READ_ONLY, False), (COPIED, False), (READ_ONLY | COPIED, False)):
        array = Dlpack(1 << 40, (4, 0, 2), "<c8", strides=(1, 4, 4), flags=flags, version=version, byte_offset=24)
        array.device = (CUDA_MANAGED, 3)
        array._described["device_type"], array._described["device_id"] = array.device
        shown = devices.describe(array, "u")
        assert shown is not None
        assert shown[1:6] == ("<c8", (1 << 40) + 24, 8, (4, 0, 2), (8, 32, 32))
        assert (shown[6], shown[8]) == (writable and version is not None, 4)


TENSORS = {
    "axes": ({"ndim": 65}, "65 axes"),
    "negative axes": ({"ndim": -1}, "-1 axes"),
    "no shape": ({"null": ("shape",)}, "no shape"),
    "lanes": ({"lanes": 4}, "4 lanes"),
    "few bits": ({"bits": 4}, "4 bits"),
    "no type": ({"code": 200}, "type 200"),
    "a handle": ({"code": 3, "bits": 64}, "type 3"),
    "an offset": ({"byte_offset": (1 << 64) - 1}, "no memory"),
    "an address": ({"data": (1 << 64) - 8}, "no memory"),
    "host memory": ({"device_type": 1}, "type 1"),
    "a device": ({"device_id": -1}, "device -1"),
    "version 2": ({"version": (2, 0)}, "version 2"),
    "version 0": ({"version": (0, 9)}, "version 0"),
    "a shape": ({"shape": (-2, 3)}, "shape"),
    "more than memory": ({"shape": (1 << 62, 1 << 62)}, "no array"),
    "strides": ({"strides": (1 << 62, 1)}, "strides"),
    "strides out of memory": ({"strides": (-(1 << 50), 1)}, "no memory"),
}


@pytest.mark.parametrize(("fields", "what"), TENSORS.values(), ids=TENSORS)
def test_tensors_that_cannot_be(fields: dict[str, Any], what: str) -> None:
    array = Dlpack(**fields)
    with velocpy.open(host="16MiB") as store:
        with pytest.raises(velocpy.errors.InvalidArgument, match=what) as told:
            store.history("h").checkpoint(0, u=array)
        assert "'u'" in str(told.value)
    del told
    gc.collect()
    assert array.returned == 1  # whatever was wrong: the producer has its tensor back


def test_what_is_no_capsule() -> None:
    class Wrong:
        def __init__(self, capsule: Any, device: Any = (2, 0)) -> None:
            self.capsule, self.device = capsule, device

        def __dlpack__(self, stream: int) -> Any:
            return self.capsule

        def __dlpack_device__(self) -> Any:
            return self.device

    used = Dlpack().__dlpack__(stream=1)
    assert velocpy._core.open_capsule(used)
    for capsule in (None, 5, "dltensor", object(), used):
        with pytest.raises(velocpy.errors.InvalidType, match="'u'"):
            devices.describe(Wrong(capsule), "u")
    for device in (None, 2, (2,), (2, 0, 0), ("cuda", 0), (2, None), (True, 0)):
        with pytest.raises(velocpy.errors.InvalidType, match="'u'"):
            arrays.describe(Wrong(None, device), "u")


def test_a_buffer_counts_where_dlpack_fails() -> None:
    class Confused(bytearray):
        def __dlpack__(self, **_: Any) -> Any:
            raise AssertionError("asked")

        def __dlpack_device__(self) -> Any:
            raise RuntimeError("which?")

    shown = arrays.describe(Confused(b"abc"), "u")
    assert isinstance(shown, np.ndarray)
    assert shown.tobytes() == b"abc"


def test_an_interface_without_streams_leaves_them_to_dlpack() -> None:
    class Both(Dlpack):
        __cuda_array_interface__ = Interface(version=2).__cuda_array_interface__

    class Knows(Dlpack):
        __cuda_array_interface__ = Interface(stream=None).__cuda_array_interface__

    class Refuses(Both):
        def __dlpack__(self, **_: Any) -> Any:
            raise BufferError("no words for it")

    array = Both()
    shown = devices.describe(array, "u", 9)
    assert shown is not None
    assert (array.streams, array.returned, shown[9]) == ([9], 0, 9)
    for silent in (Knows(), Refuses()):
        shown = devices.describe(silent, "u", 9)
        assert shown is not None
        assert (silent.streams, shown[9]) == ([], None)


class Memory:
    """The memory of a lease on a device, as far as a `velocpy.devices.DeviceArray` asks it."""

    place = 3

    def __init__(self, text: str = "<f4", capsule: Any = "capsule") -> None:
        self.text, self.made, self.readers = text, capsule, []

    def description(self, region: int) -> Any:
        return self.text, 4, (2, 3), (12, 4)

    def address(self, region: int) -> int:
        return 1 << 40

    def used_on(self, stream: int) -> None:
        self.readers.append(stream)

    def capsule(self, region: int, versioned: bool) -> Any:
        return self.made and (self.made, versioned)


def test_arrays_of_leases_order_their_consumers() -> None:
    for asked, reader in ((None, [1]), (1, [1]), (2, [2]), (77, [77]), (-1, [])):
        memory = Memory()
        array = devices.DeviceArray(memory, 0)  # type: ignore[arg-type]
        assert array.__dlpack_device__() == (2, 2)
        assert array.__dlpack__(stream=asked) == ("capsule", False)
        assert array.__dlpack__(stream=asked, max_version=(1, 2), dl_device=(2, 2), copy=False) == ("capsule", True)
        assert memory.readers == 2 * reader
    shown = array.__cuda_array_interface__
    assert shown == {
        "data": (1 << 40, False), "typestr": "<f4", "shape": (2, 3), "strides": (12, 4), "stream": 1, "version": 3,
    }  # fmt: skip
    assert memory.readers[0] == 1


def test_arrays_of_leases_refuse_what_they_cannot_do() -> None:
    memory = Memory()
    array = devices.DeviceArray(memory, 0)  # type: ignore[arg-type]
    for wrong in (0, -2, 1 << 64, 1.5, "1", True):
        with pytest.raises(velocpy.errors.InvalidArgument):
            array.__dlpack__(stream=wrong)  # type: ignore[arg-type]
    with pytest.raises(BufferError, match="copy"):
        array.__dlpack__(copy=True)
    for elsewhere in ((1, 0), (2, 0)):
        with pytest.raises(BufferError, match="device 2"):
            array.__dlpack__(dl_device=elsewhere)
    assert memory.readers == []
    assert not hasattr(devices.DeviceArray(Memory("=bfloat16"), 0), "__cuda_array_interface__")  # type: ignore[arg-type]
    with pytest.raises(BufferError, match="structure"):
        devices.DeviceArray(Memory("{structure", None), 0).__dlpack__()  # type: ignore[arg-type]


def test_capsules_of_leases_keep_the_memory_and_give_it_back() -> None:
    """In host memory, where NumPy consumes them; nothing else differs on a device."""

    class Region:
        def __init__(self, lease: velocpy.Lease, region: int, versioned: bool) -> None:
            self.memory, self.region, self.versioned = lease._memory, region, versioned

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **_: Any) -> Any:
            assert self.memory is not None
            return self.memory.capsule(self.region, self.versioned)

    def held() -> int:
        gc.collect()
        used: int = store.stats()["tiers"]["host"]["held"]
        return used

    wholes = [np.arange(12.0).reshape(3, 4).T, np.zeros((0, 3), np.uint16), np.ones(3, np.complex64), np.True_]
    with velocpy.open(host="16MiB") as store:
        history = store.history("h")
        history.checkpoint(0, [*wholes, np.zeros(2, "V7")])
        for versioned in (True, False):
            lease = history.restore(0)
            arrays = [np.from_dlpack(Region(lease, i, versioned)) for i in range(len(wholes))]  # type: ignore[arg-type]
            seen = Seen(lease._memory.capsule(0, versioned))  # type: ignore[union-attr]
            assert (seen.versioned, seen.flags) == (versioned, READ_ONLY if versioned else None)
            assert lease._memory.capsule(4, versioned) is None  # type: ignore[union-attr]
            lease.release()
            for array, whole in zip(arrays, wholes, strict=True):
                assert array.dtype == whole.dtype
                assert np.array_equal(array, whole)
                assert array.size == 0 or not array.flags.writeable
            assert held() > 0
            del array, arrays
            assert held() == 0
        mine = history.restore(0, last=True)
        assert Seen(mine._memory.capsule(0, True)).flags == 0  # type: ignore[union-attr]


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
        with pytest.raises(velocpy.errors.InvalidArgument):
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
    with pytest.raises(velocpy.errors.InvalidArgument):
        device_budgets(wrong)


def test_budgets() -> None:
    assert device_budgets(None) == []
    assert device_budgets("1GiB") == [{"ordinal": 0, "bytes": 1 << 30}]
    assert device_budgets(0.25) == device_budgets("25%") == [{"ordinal": 0, "share": 0.25}]
    assert device_budgets({"cuda:1": 7, 3: "50%"}) == [{"ordinal": 1, "bytes": 7}, {"ordinal": 3, "share": 0.5}]


def test_budgets_of_an_open_store() -> None:
    assert device_budgets(0, least=0) == [{"ordinal": 0, "bytes": 0}]
    with pytest.raises(velocpy.errors.InvalidArgument):
        device_budgets(-1, least=0)
    with velocpy.open(host="16MiB") as store:
        with pytest.raises(velocpy.errors.TierUnavailable, match="no device tier"):
            store.resize(device="1MiB")
        with pytest.raises(velocpy.errors.TierUnavailable, match="device 3"):
            store._core.resize('{"devices": [{"ordinal": 3, "bytes": 1}]}', None)
    with pytest.raises(velocpy.errors.StoreClosed):
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
        with pytest.raises(velocpy.errors.InvalidArgument, match="name those"):
            store.resize(device="1MiB")
        assert store.resize(device={"cuda:0": "25%"}) == 7
        assert store._config["devices"] == [{"ordinal": 3, "bytes": 1 << 20}, {"ordinal": 0, "share": 0.25}]
        monkeypatch.undo()
    assert asked == [([{"ordinal": 3, "bytes": 1 << 20}], 2.0), ([{"ordinal": 0, "share": 0.25}], None)]


def test_a_device_needs_a_host_tier() -> None:
    with pytest.raises(velocpy.errors.InvalidArgument, match="host"):
        velocpy.open(device="1GiB", host=None, disk="1GiB")
    with pytest.raises(velocpy.errors.InvalidArgument, match="pinning"):
        velocpy.open(device="1GiB", tuning=velocpy.Tuning(pinning="sometimes"))


def test_without_a_budget_arrays_on_a_device_are_refused() -> None:
    with velocpy.open(host="16MiB") as store:
        history = store.history("h")
        with pytest.raises(velocpy.errors.TierUnavailable, match="device=") as refused:
            history.checkpoint(0, u=Interface())
        assert refused.value.region is not None
        assert refused.value.tier == "device"
        with pytest.raises(velocpy.errors.TierUnavailable):
            history.checkpoint(0, u=(1 << 40, 100, 2))
        assert len(history) == 0


def test_without_a_driver_it_says_what_helps() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(velocpy.errors.TierUnavailable, match="driver") as refused:
        velocpy.open(device="1GiB", host="64MiB")
    assert refused.value.tier == "device"
    with velocpy.open(host="64MiB") as store:  # the host tier works as ever
        store.history("h").checkpoint(0, u=np.arange(3))
