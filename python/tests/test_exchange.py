"""Tensors that the shim reads through torch's table of functions for DLPack, and those that it must not read there."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from bits import bits

import velocpy

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, of what is experimental

#: What DLPack calls integers with and without a sign.
INT, UINT = 0, 1


@pytest.fixture
def history() -> Iterator[velocpy.History]:
    with velocpy.open(host="16MiB") as store:
        yield store.history("h")


def dtypes() -> list[Any]:
    """Every dtype of torch's, each once."""
    return list(dict.fromkeys(dtype for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)))


def filled(dtype: Any) -> Any:
    tensor = torch.empty(4, dtype=dtype)
    tensor.untyped_storage().copy_(torch.arange(1, 1 + tensor.untyped_storage().nbytes()).byte().untyped_storage())
    return tensor


def memory(tensor: Any) -> list[int]:
    return list(tensor.untyped_storage())


class Shown(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class Table(ctypes.Structure):
    """DLPack's DLPackExchangeAPI."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        *((name, ctypes.c_void_p) for name in ("older", "allocate", "to_managed", "from_managed")),
        ("show", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Shown))),
    )


def table() -> Table:
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        pytest.skip("this torch has no table: every tensor is described by Python")
    opened = ctypes.pythonapi.PyCapsule_GetPointer
    opened.restype, opened.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return Table.from_address(opened(capsule, b"dlpack_exchange_api"))


def test_torch_shows_only_integers_of_a_byte_like_others() -> None:
    """The shim asks a tensor for its dtype there alone: elsewhere DLPack's words have to mean one dtype."""
    show, alike = table().show, defaultdict(list)
    for dtype in dtypes():
        seen = Shown()
        try:
            show(filled(dtype), seen)
        except Exception:  # torch has no words for it, and the shim goes another way
            continue
        alike[seen.code, seen.bits, seen.lanes].append(dtype)
    assert len(alike) > 12
    several = {words: shown for words, shown in alike.items() if len(shown) > 1}
    assert set(several) <= {(INT, 8, 1), (UINT, 8, 1)}, several


@pytest.mark.parametrize("dtype", dtypes(), ids=str)
def test_every_dtype_comes_back(history: velocpy.History, dtype: Any) -> None:
    tensor = filled(dtype)
    if tensor.is_quantized:
        with pytest.raises(velocpy.errors.InvalidType, match="quantized"):
            history.checkpoint(0, [tensor])
        return
    for _ in range(2):  # the first of its dtype, and one more
        history.checkpoint(0, [tensor, torch.zeros(2)])
        with history.restore(0) as lease:
            assert lease[0].dtype is dtype
            assert lease[0].shape == tensor.shape
            assert memory(lease[0])[: tensor.nbytes] == memory(tensor)


NUMBERS = (torch.float32, torch.bfloat16, torch.int8, torch.uint8, torch.int64, torch.complex64)


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_negated_views_are_read_as_they_are_shown(history: velocpy.History, dtype: Any) -> None:
    plain = torch.arange(1, 9).to(dtype)
    negated = torch._neg_view(plain)
    for tensor in (negated, negated.detach(), negated[1:], negated[::3], negated.view(2, 4).t()):
        assert tensor.is_neg()
        history.checkpoint(0, [plain, tensor])
        with history.restore(0) as lease:
            assert bits(lease[0]) == bits(plain)
            assert bits(lease[1]) == bits(tensor.resolve_neg())


def test_a_tensor_that_becomes_a_negated_view(history: velocpy.History) -> None:
    negated = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
    parameter = torch.nn.Parameter(torch.tensor([7.0, 8.0]))
    for data, shown in ((parameter.data, [7.0, 8.0]), (negated, [-2.0, 4.0])):
        parameter.data = data
        history.checkpoint(0, p=parameter)
        with history.restore(0) as lease:
            assert lease["p"].tolist() == shown


def test_subclasses_are_asked_for_what_they_show(history: velocpy.History) -> None:
    class Field(torch.Tensor):  # type: ignore[misc, name-defined]
        pass

    plain = torch.arange(5.0)
    for tensor in (plain.as_subclass(Field), torch._neg_view(plain).as_subclass(Field), torch.nn.Buffer(plain)):
        history.checkpoint(0, [tensor])
        with history.restore(0) as lease:
            assert type(lease[0]) is torch.Tensor
            assert lease[0].tolist() == tensor.tolist()


def test_what_has_no_plain_memory_is_named(history: velocpy.History) -> None:
    for wrong in (torch.zeros(3, device="meta"), torch.eye(3).to_sparse(), torch.float32, torch.Size([3])):
        with pytest.raises(velocpy.errors.InvalidType, match="region 1 is"):
            history.checkpoint(0, [torch.zeros(3), wrong])
        with pytest.raises(velocpy.errors.InvalidType, match="region 'x' is"):
            history.checkpoint(0, {"x": wrong})
    assert 0 not in history


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's, of the address of a fake
def test_tensors_that_have_bytes_but_no_memory(history: velocpy.History) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    freed, whole = torch.ones(100), torch.ones(100)
    freed.untyped_storage().resize_(0)  # as sharded training does with what it gathered
    with FakeTensorMode() as mode:
        fakes = [torch.ones(100), mode.from_tensor(whole)]
    history.checkpoint("whole", [whole, whole])
    for bare in (freed, torch.nn.Parameter(freed), *fakes):
        with pytest.raises(velocpy.errors.InvalidArgument, match="region 1 has 400 bytes and no memory"):
            history.checkpoint("bare", [whole, bare])
        with pytest.raises(velocpy.errors.InvalidArgument, match="region 1 has 400 bytes and no memory"):
            history.restore("whole", into=[torch.zeros(100), bare])
        history.checkpoint("empty", [bare[:0]])
    assert "bare" not in history


def test_more_axes_than_usual(history: velocpy.History) -> None:
    crossed = torch.arange(2.0**11).view((2,) * 11).permute(*reversed(range(11)))
    for tensor in (crossed, crossed[:, 1:], crossed[..., ::2], torch.ones((1,) * 64)):
        history.checkpoint(0, [tensor])
        with history.restore(0) as lease:
            assert torch.equal(lease[0], tensor)
        back = torch.zeros_like(tensor)
        history.restore(0, into=[back])
        assert torch.equal(back, tensor)
    with pytest.raises(velocpy.errors.InvalidArgument, match="region 1 has more than 64 axes"):
        history.checkpoint(0, [crossed, torch.ones((1,) * 65)])


def test_destinations_are_named_by_number_or_name(history: velocpy.History) -> None:
    history.checkpoint("sequence", [np.zeros(3), torch.zeros(3)])
    history.checkpoint("names", a=np.zeros(3), b=torch.zeros(3))
    for key, into, name in (
        ("sequence", [np.zeros(3), torch.zeros(4)], "1"),
        ("sequence", [np.zeros(4), torch.zeros(3)], "0"),
        ("names", {"a": np.zeros(3), "b": torch.zeros(4)}, "'b'"),
        ("names", {"b": torch.zeros(3), "a": np.zeros(4)}, "'a'"),
    ):
        with pytest.raises(velocpy.errors.InvalidArgument, match=f"region {name} has the shape"):
            history.restore(key, into=into)
