"""Arrays of every kind, in and out, to the last bit."""

from __future__ import annotations

import array
import ctypes
import datetime
import mmap
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from bits import bits, random_array, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import velocpy

GIB = 1 << 30
MIB = 1 << 20


@pytest.fixture
def store() -> Iterator[velocpy.Store]:
    """Two megabytes of host memory: what a test writes travels through the disk."""
    with velocpy.open(host="2MiB", disk="256MiB") as opened:
        yield opened


@pytest.fixture
def history(store: velocpy.Store, request: pytest.FixtureRequest) -> Iterator[velocpy.History]:
    made = store.history(request.node.name)
    yield made
    made.clear()


def push_out(history: velocpy.History) -> None:
    """Writes enough to drive everything else out of the host tier."""
    for i in range(24):
        history.checkpoint(f"ballast {i}", b=np.full(200_000, i, np.uint8))
    for i in range(24):
        history.drop(f"ballast {i}")


BASE = random_array((6, 5, 4, 3), seed=3)

SOURCES: dict[str, Any] = {
    "contiguous": BASE,
    "fortran": np.asfortranarray(BASE),
    "transposed": BASE.transpose(2, 0, 3, 1),
    "strided": BASE[::2, 1::3, :, ::2],
    "negative": BASE[::-1, ::-2, ::-1],
    "negative axis only": BASE[:, ::-1],
    "broadcast": np.broadcast_to(BASE[:, :1], (7, 6, 5, 4, 3)),
    "expanded": BASE[:, None, :, None],
    "0-d": np.array(3.25),
    "0-d view": BASE[1, 2, 3, 1:2].reshape(()),
    "empty": np.empty((0, 3)),
    "empty inside": np.empty((3, 0, 2), np.int16),
    "one element": np.array([[[5]]], np.int8),
    "odd bytes": np.arange(13, dtype=np.uint8),
    "bool": random_array(17, bool),
    "float16": random_array(9, np.float16),
    "longdouble": np.arange(5, dtype=np.longdouble) / 3,
    "complex64": random_array((3, 4), np.complex64),
    "complex256": np.arange(3, dtype=np.clongdouble),
    "big endian": np.arange(7, dtype=">i4"),
    "datetime": np.array(["2020-02-29", "NaT"], "datetime64[D]"),
    "datetime with unit": np.array([1, 2], "datetime64[25us]"),
    "timedelta": np.array([1, -5], "timedelta64[ns]"),
    "text": np.array(["a", "äöü😀", ""]),
    "bytes": np.array([b"abc", b""]),
    "void": np.array([b"abcdefg"] * 2, "V7"),
    "no bytes each": np.zeros(4, "V0"),
    "structured": np.array([(1, 2.5, b"x"), (3, -0.0, b"yz")], [("a", "<i2"), ("b", ">f8"), ("c", "S3")]),
    "aligned": np.zeros(3, np.dtype([("a", "i1"), ("b", "f8")], align=True)),
    "offsets": np.zeros(2, {"names": ["b", "a"], "formats": ["f4", "u1"], "offsets": [8, 3], "itemsize": 20}),
    "nested": np.zeros(2, [("p", [("x", "f4"), ("y", "f4")]), ("m", "i2", (2, 3))]),
    "titles": np.zeros(2, [(("a title", "a"), "i4")]),
    "a title of zero": np.zeros(2, {"names": ["a"], "formats": ["i4"], "titles": [0]}),
    "an empty title": np.zeros(2, [(("", "a"), "i4")]),
    "record view": np.array([(1, 2)], [("a", "i4"), ("b", "i4")])["b"],
    "bfloat16": random_array(11, ml_dtypes.bfloat16),
    "float8": random_array(11, ml_dtypes.float8_e4m3fn),
    "int4": np.arange(-8, 8).astype(ml_dtypes.int4),
    "recarray": np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "unaligned": np.frombuffer(b"\0" + bytes(range(24)), np.uint8)[1:].view("<f8"),
    "read-only": np.frombuffer(bytes(range(16)), np.int32),
    "many axes": random_array((2,) * 12 + (1,) * 20, np.uint8),
    "large": random_array((301, 1007), np.float32),
    "large strided": random_array((513, 1025), np.float32)[::2, ::3],
}


@pytest.mark.parametrize("name", SOURCES)
def test_round_trip(history: velocpy.History, name: str) -> None:
    source = SOURCES[name]
    before = bits(source)
    history.checkpoint("k", {name: source})
    assert history.size("k") == len(before)
    push_out(history)
    lease = history.restore("k")
    back = lease[name]
    assert type(back) is np.ndarray
    assert same(back, np.asarray(source))
    assert bits(source) == before
    if back.size:
        into = np.empty_like(np.asarray(source))
        assert history.restore("k", into={name: into})[name] is into
        assert same(into, np.asarray(source))


def test_all_at_once(history: velocpy.History) -> None:
    history.checkpoint("k", SOURCES)
    push_out(history)
    with history.restore("k") as lease:
        assert list(lease) == list(SOURCES)
        for name, source in SOURCES.items():
            assert same(lease[name], np.asarray(source)), name


def test_order_of_axes_comes_back(history: velocpy.History) -> None:
    """What was dense in memory is captured as it lies, and shown as it lay."""
    fortran = np.asfortranarray(np.arange(12).reshape(3, 4))
    crossed = np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)
    history.checkpoint(0, f=fortran, x=crossed)
    lease = history.restore(0)
    assert lease["f"].flags.f_contiguous
    assert lease["f"].strides == fortran.strides
    assert lease["x"].strides == crossed.strides


def test_alignment(history: velocpy.History) -> None:
    history.checkpoint(0, a=np.zeros(3, np.uint8), b=np.zeros(5), c=np.zeros(100_000, np.uint8), d=np.zeros(2))
    lease = history.restore(0)
    for name in "abcd":
        assert lease[name].ctypes.data % 64 == 0
        assert lease[name].flags.aligned


def test_subclass_with_halo(history: velocpy.History) -> None:
    """Real codes restore into the inside of live arrays that are subclasses of ndarray."""

    class Field(np.ndarray):  # type: ignore[type-arg]
        pass

    whole = np.zeros((12, 14)).view(Field)
    inside = whole[2:-2, 3:-3]
    values = random_array((8, 8))
    history.checkpoint(0, u=values.view(Field))
    push_out(history)
    history.restore(0, into={"u": inside})
    assert bits(inside) == bits(values)
    assert not whole[:2].any()
    assert not whole[:, :3].any()
    assert not whole[:, -3:].any()


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a,
        lambda a: a[::2, ::-3],
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: a[:, 5:-5],
        lambda a: a.transpose()[::3],
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_into_any_strides(history: velocpy.History, view: Any, order: str) -> None:
    destination = view(np.zeros((64, 61), np.float32))
    source = np.array(random_array(destination.shape, np.float32, seed=9), order=order)
    history.checkpoint(0, u=source)
    history.restore(0, into={"u": destination})
    assert bits(destination) == bits(source)
    push_out(history)
    destination[...] = 0
    history.restore(0, into=[destination])
    assert bits(destination) == bits(source)
    destination[...] = 0
    history.restore(0, "u", into=destination)
    assert bits(destination) == bits(source)


def test_into_refuses_before_writing(history: velocpy.History) -> None:
    u, v = np.arange(12.0).reshape(3, 4), np.arange(4)
    history.checkpoint(0, u=u, v=v)
    good = np.full((3, 4), -1.0)
    frozen = np.zeros(4, int)
    frozen.flags.writeable = False
    for wrong in (
        np.zeros(5, int),
        np.zeros((2, 2), int),
        np.zeros(4, np.int32),
        np.zeros(4, ">i8"),
        np.zeros(4, float),
        frozen,
        np.broadcast_to(np.zeros(1, int), 4),
        np.lib.stride_tricks.as_strided(np.zeros(1, int), (4,), (0,)),
        b"\0" * 32,
        bytearray(32),
        (good.ctypes.data, 31),
        [0, 0, 0, 0],
        None,
        7,
    ):
        with pytest.raises(velocpy.errors.InvalidArgument):
            history.restore(0, into={"u": good, "v": wrong})
        assert (good == -1).all()
    for wrong_into in ({"x": good}, {"u": good, "x": good}, [good], [good, v, v], {}, {0: good}):
        if wrong_into == {}:
            assert history.restore(0, into=wrong_into) == {}
            continue
        with pytest.raises(velocpy.errors.InvalidArgument):
            history.restore(0, into=wrong_into)
    with pytest.raises(velocpy.errors.InvalidArgument):
        history.restore(0, ["u"], into={"v": frozen})
    assert (good == -1).all()


@pytest.mark.filterwarnings("ignore:The .u. type code is deprecated:DeprecationWarning")
def test_buffers(history: velocpy.History) -> None:
    numbers = array.array("d", [1.5, -2, float("nan")])
    sources = {
        "bytes": b"hello",
        "bytearray": bytearray(b"\0\xff"),
        "memoryview": memoryview(b"abcdef")[::2],
        "array": numbers,
        "text array": array.array("u", "hé"),
        "ctypes": (ctypes.c_int32 * 3)(1, 2, 3),
        "ctypes 2-d": ((ctypes.c_double * 2) * 3)(),
        "mmap": mmap.mmap(-1, 100),
        "scalar": np.float32(1.5),
        "date": np.datetime64(datetime.date(2020, 1, 1)),
        "nothing": b"",
    }
    history.checkpoint(0, sources)
    push_out(history)
    lease = history.restore(0)
    assert lease["bytes"].tobytes() == b"hello"
    assert lease["bytes"].dtype == np.uint8
    assert lease["bytearray"].tolist() == [0, 255]
    assert lease["memoryview"].tobytes() == b"ace"
    assert lease["array"].dtype == np.float64
    assert lease["array"].tobytes() == numbers.tobytes()
    assert lease["text array"].tobytes() == array.array("u", "hé").tobytes()
    assert lease["ctypes"].tolist() == [1, 2, 3]
    assert lease["ctypes"].dtype == np.int32
    assert lease["ctypes 2-d"].shape == (3, 2)
    assert lease["mmap"].nbytes == 100
    assert lease["scalar"].shape == ()
    assert lease["scalar"] == np.float32(1.5)
    assert lease["date"] == np.datetime64("2020-01-01")
    assert lease["nothing"].size == 0
    into = bytearray(5)
    history.restore(0, into={"bytes": into})
    assert into == b"hello"


def test_raw_memory(history: velocpy.History) -> None:
    source = random_array(1000, np.uint8)
    history.checkpoint(0, u=(source.ctypes.data, source.nbytes), empty=(0, 0))
    lease = history.restore(0)
    assert same(lease["u"], source)
    assert lease["empty"].size == 0
    into = np.zeros(1000, np.uint8)
    history.restore(0, into={"u": (into.ctypes.data, into.nbytes)})
    assert same(into, source)
    history.restore(0, "u", into=(into.ctypes.data, into.nbytes))
    history.checkpoint(1, f=np.asfortranarray(np.arange(6).reshape(2, 3)))
    image = np.zeros(6, int)
    history.restore(1, into={"f": (image.ctypes.data, 48)})
    assert image.tolist() == [0, 3, 1, 4, 2, 5]  # the memory as it lay


def test_dlpack(history: velocpy.History) -> None:
    class Exporter:
        def __init__(self, held: Any) -> None:
            self.held = held

        def __dlpack__(self, **options: Any) -> Any:
            return self.held.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.held.__dlpack_device__()

    class Elsewhere(Exporter):
        def __dlpack_device__(self) -> Any:
            return (8, 0)  # Metal

    class Liar(Exporter):
        def __dlpack_device__(self) -> Any:
            return (2, 0)  # CUDA

    class Unfinished(Exporter):
        def __buffer__(self, flags: int) -> memoryview:  # asked from Python 3.12 on
            raise NotImplementedError

    u = random_array((4, 5), np.float32)[::2]
    history.checkpoint(0, u=Unfinished(u))
    assert same(history.restore(0)["u"], u)
    history.checkpoint(0, u=Exporter(u))
    assert same(history.restore(0)["u"], u)
    with pytest.raises(velocpy.errors.TierUnavailable):
        history.checkpoint(0, u=Elsewhere(u))
    with pytest.raises(velocpy.errors.InvalidType, match="does not show its memory"):
        history.checkpoint(0, u=Liar(u))
    assert same(history.restore(0)["u"], u)


@pytest.mark.slow
def test_more_than_4_gib() -> None:
    with velocpy.open(host="5GiB") as store:
        history = store.history("h")
        u = np.zeros(4 * GIB + 12345, np.uint8)
        u[:: 1 << 20] = np.arange(len(u[:: 1 << 20])) % 251
        u[-1] = 77
        history.checkpoint(0, u=u, tail=np.arange(3))
        assert history.size(0) == u.nbytes + 24
        with history.restore(0) as lease:
            assert np.array_equal(lease["u"], u)
            assert lease["tail"].tolist() == [0, 1, 2]


# --- any array -------------------------------------------------------------------------------------------

DTYPES = st.one_of(
    hnp.scalar_dtypes(),
    hnp.byte_string_dtypes(min_len=1, max_len=5),
    hnp.unicode_string_dtypes(min_len=1, max_len=4),
    hnp.nested_dtypes(max_itemsize=64),
    st.sampled_from([np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e5m2)]),
)


def has_text(dtype: np.dtype[Any]) -> bool:
    """Whether random bytes could be no text at all."""
    if dtype.subdtype is not None:
        return has_text(dtype.subdtype[0])
    if dtype.names is not None:
        return any(has_text(dtype[name]) for name in dtype.names)
    return dtype.kind == "U"


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    dtype = draw(DTYPES)
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=7))
    if dtype.subdtype is None and not has_text(dtype):
        made = random_array(shape, dtype, seed=draw(st.integers(0, 9)))
    else:
        made = np.zeros(shape, dtype)
    axes = draw(st.permutations(range(made.ndim)))
    made = made.transpose(axes)
    if made.ndim and made.size:
        made = made[draw(hnp.basic_indices(made.shape, allow_ellipsis=False, allow_newaxis=True))]
    return np.asarray(made)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(
    st.dictionaries(st.text(max_size=8), arrays(), max_size=5),
    st.booleans(),
    st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(max_size=5)),
)
def test_any_array(store: velocpy.Store, regions: dict[str, Any], copy: bool, key: Any) -> None:
    history = store.history("any")
    ticket = history.checkpoint(key, regions, copy=copy)
    ticket.wait(timeout=30)
    history.checkpoint("ballast", b=np.zeros(300_000, np.uint8))
    lease = history.restore(key)
    assert list(lease) == list(regions)
    for name, source in regions.items():
        assert same(lease[name], source)
    into = {name: np.empty_like(source) for name, source in regions.items()}
    history.restore(key, into=into)
    for name, source in regions.items():
        assert same(into[name], source)


# --- torch -----------------------------------------------------------------------------------------------


def tensors() -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(1)
    base = torch.randn(6, 5, 4, generator=generator)
    found: dict[str, Any] = {
        "contiguous": base,
        "transposed": base.permute(2, 0, 1),
        "strided": base[::2, 1::3],
        "expanded": base[:1].expand(5, 5, 4),
        "0-d": torch.tensor(2.5),
        "empty": torch.empty(0, 3),
        "grad": torch.ones(3, requires_grad=True),
        "parameter": torch.nn.Parameter(torch.arange(4.0)),
        "conj": torch.randn(5, dtype=torch.complex64, generator=generator).conj(),
        "neg": torch.randn(5, dtype=torch.complex64, generator=generator).conj().imag,
        "real": torch.randn(5, dtype=torch.complex64, generator=generator).real,
        "channels last": torch.randn(2, 3, 4, 5, generator=generator).to(memory_format=torch.channels_last),
        "large": torch.randn(300_000, generator=generator),
    }
    raw = torch.randint(0, 256, (64,), dtype=torch.uint8, generator=generator)
    for name in sorted(vars(torch)):
        dtype = getattr(torch, name)
        if not isinstance(dtype, torch.dtype) or name.startswith(("q", "bits")):
            continue
        try:
            found[f"dtype {name}"] = (raw & 1 if dtype == torch.bool else raw).view(dtype)
        except (RuntimeError, TypeError):
            continue
    return found


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, of what is experimental
def test_tensors(history: velocpy.History) -> None:
    torch = pytest.importorskip("torch")
    sources = tensors()
    assert {"dtype bfloat16", "dtype float8_e4m3fn", "dtype complex64", "dtype bool", "dtype uint16"} <= set(sources)
    history.checkpoint(0, sources)
    push_out(history)
    lease = history.restore(0)
    for name, source in sources.items():
        back = lease[name]
        assert isinstance(back, torch.Tensor), name
        assert not back.requires_grad
        assert same(back, source), name
    assert lease["channels last"].is_contiguous(memory_format=torch.channels_last)
    into = {name: torch.zeros(source.shape, dtype=source.dtype) for name, source in sources.items()}
    history.restore(0, into=into)
    for name, source in sources.items():
        assert same(into[name], source), name


def test_a_graph_notices_that_its_tensors_were_restored_into(history: velocpy.History) -> None:
    torch = pytest.importorskip("torch")
    history.checkpoint(0, x=torch.zeros(3))
    for into in ("mapping", "sequence", "one"):
        x, w = torch.ones(3), torch.ones(3, requires_grad=True)
        y = (w * x).sum()
        history.restore(0, into={"mapping": {"x": x}, "sequence": [x], "one": x}[into])
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_a_refused_or_impossible_restore_leaves_a_graph_alone(history: velocpy.History) -> None:
    torch = pytest.importorskip("torch")
    history.checkpoint(0, x=torch.zeros(3))
    x, w = torch.ones(3), torch.ones(3, requires_grad=True)
    y = (w * x).sum()
    with pytest.raises(velocpy.errors.InvalidArgument):
        history.restore(0, into={"z": x})
    with pytest.raises(velocpy.errors.CheckpointNotFound):
        history.restore(1, into={"x": x})
    y.backward()
    assert w.grad.tolist() == [1.0, 1.0, 1.0]


def test_parameters_and_views_restored_into_have_a_new_version(history: velocpy.History) -> None:
    torch = pytest.importorskip("torch")
    history.checkpoint(0, x=torch.zeros(3))
    leaf = torch.ones(3, requires_grad=True)
    parameter = torch.nn.Parameter(torch.ones(3))
    base = torch.ones(6)
    for tensor, counted in ((leaf, leaf), (parameter, parameter), (base[1:4], base)):
        before = counted._version
        with torch.no_grad():
            history.restore(0, into={"x": tensor})
        assert counted._version > before
        assert not tensor.detach().any()
    with torch.inference_mode():
        unversioned = torch.ones(3)
    history.restore(0, into={"x": unversioned})
    assert not unversioned.any()


def test_tensors_without_memory(history: velocpy.History) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(velocpy.errors.InvalidType, match="meta tensor"):
        history.checkpoint(0, x=torch.zeros(3, device="meta"))


def test_tensors_into(history: velocpy.History) -> None:
    torch = pytest.importorskip("torch")
    u = torch.randn(8, 9)
    history.checkpoint(0, u=u)
    halo = torch.zeros(12, 13)
    history.restore(0, into={"u": halo[2:-2, 2:-2]})
    assert torch.equal(halo[2:-2, 2:-2], u)
    assert halo.count_nonzero() == halo[2:-2, 2:-2].count_nonzero()
    across = np.zeros((8, 9), np.float32)
    history.restore(0, into={"u": across})  # another library of the same dtype
    assert bits(across) == bits(u)
    weight = torch.nn.Parameter(torch.zeros(8, 9))
    history.restore(0, into={"u": weight})
    assert torch.equal(weight.detach(), u)
    for wrong in (
        torch.zeros(8, 9, dtype=torch.float64),
        torch.zeros(9, 8),
        torch.zeros(8, 9, device="meta"),
        torch.zeros(1, 9).expand(8, 9),
        torch.zeros(8, 9, dtype=torch.complex64).conj(),
        torch.zeros(8, 9).to_sparse(),
    ):
        with pytest.raises(velocpy.errors.VelocError):
            history.restore(0, into={"u": wrong})


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, of what is deprecated
def test_tensors_refused(history: velocpy.History) -> None:
    torch = pytest.importorskip("torch")
    for wrong in (
        torch.zeros(3, device="meta"),
        torch.eye(3).to_sparse(),
        torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.qint8),
        torch.nn.Linear(2, 2),
        torch.float32,
    ):
        with pytest.raises(velocpy.errors.VelocError):
            history.checkpoint(0, u=wrong)
        assert 0 not in history
    with pytest.raises(velocpy.errors.InvalidType, match="quantized"):
        history.checkpoint(0, u=torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.qint8))


def test_destinations_that_overlap_are_refused(history: velocpy.History) -> None:
    history.checkpoint(0, u=np.arange(1.0, 9.0), v=np.arange(11.0, 19.0))
    history.checkpoint(1, w=np.ones((5, 4)))
    memory = np.zeros(16)
    sliding = np.lib.stride_tricks.sliding_window_view(memory[:8], 4, writeable=True)
    touching = np.lib.stride_tricks.as_strided(memory, (5, 4), (24, 8))
    odd = np.lib.stride_tricks.as_strided(memory.view(np.uint8), (5, 4), (4, 2))
    history.checkpoint(2, w=np.ones((5, 4), np.uint8))
    for key, destination in ((1, sliding), (1, touching), (2, odd)):
        with pytest.raises(velocpy.errors.InvalidArgument, match=r"'w'.* overlap"):
            history.restore(key, into={"w": destination})
    pairs = [
        (memory[:8], memory[:8]),
        (memory[:8], memory[7:15]),
        (memory[1:9], memory[7::-1]),
        (memory[::2], memory[4:12]),
        (memory[::2], memory[::2]),
    ]
    for u, v in pairs:
        with pytest.raises(velocpy.errors.InvalidArgument, match="'u' and 'v' overlap"):
            history.restore(0, into={"v": v, "u": u})
    assert not memory.any()


def test_destinations_beside_and_between_each_other_are_not_refused(history: velocpy.History) -> None:
    u, v = np.arange(1.0, 9.0), np.arange(11.0, 19.0)
    history.checkpoint(0, u=u, v=v)
    memory = np.zeros(16)
    columns = np.zeros((8, 2), order="F")
    for into in (
        (memory[:8], memory[8:]),
        (memory[::2], memory[1::2]),
        (memory[::-2], memory[-2::-2]),
        (columns[:, 0], columns[:, 1]),
        (columns.T[1], columns.T[0]),
    ):
        history.restore(0, into={"u": into[0], "v": into[1]})
        assert same(into[0], u)
        assert same(into[1], v)
    history.checkpoint(1, a=np.ones((3, 5)), b=np.full((3, 5), 2.0), e=np.zeros((0, 5)))
    table = np.zeros((3, 10))
    history.restore(1, into={"a": table[:, :5], "b": table[:, 5:], "e": table[:0, :5]})
    assert (table == [1.0] * 5 + [2.0] * 5).all()


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_what_is_refused_as_overlapping_does_overlap(data: st.DataObject) -> None:
    itemsize = data.draw(st.sampled_from([1, 2, 8]))
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    strides = tuple(data.draw(st.integers(1, 40)) for _ in shape)
    memory = np.zeros(1 << 10, np.uint8)
    array = np.ndarray(shape, f"V{itemsize}", memory, strides=strides)
    starts = [sum(i * s for i, s in zip(index, strides, strict=True)) for index in np.ndindex(shape)]
    touched = [start + byte for start in starts for byte in range(itemsize)]
    overlaps = len(set(touched)) < len(touched)
    with velocpy.open(host="1MiB") as store:
        history = store.history("h")
        history.checkpoint(0, u=np.zeros(shape, f"V{itemsize}"))
        try:
            history.restore(0, into={"u": array})
            refused = False
        except velocpy.errors.InvalidArgument:
            refused = True
    assert not refused or overlaps


def test_a_conjugated_destination_is_called_what_it_is(history: velocpy.History) -> None:
    torch = pytest.importorskip("torch")
    history.checkpoint(0, x=torch.ones(3, dtype=torch.complex64))
    with pytest.raises(velocpy.errors.InvalidArgument, match="conjugated"):
        history.restore(0, into={"x": torch.zeros(3, dtype=torch.complex64).conj()})


def test_arrays_of_objects_are_named(history: velocpy.History) -> None:
    with pytest.raises(velocpy.errors.InvalidType, match=r"region 'things'.*dtype object"):
        history.checkpoint(0, things=np.array([object()]))
