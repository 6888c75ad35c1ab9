"""Arrays of every library as the shim wants them, and back.

NumPy arrays never come through here on their way in: the shim reads them itself. No framework is imported unless an
array of it was given.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, devices, jax_arrays
from .description import HOST, RAW, TORCH, Description

# The shim looks up dtype_from_text, dtype_of_region, same_dtype and torch_text in this module.
from .dtypes import dtype_from_text, dtype_of_region, dtype_text, same_dtype
from .errors import InvalidArgument, InvalidType, TierUnavailable
from .tensors import require_torch, tensor, torch_dtype, torch_text

if TYPE_CHECKING:
    import torch

__all__ = [
    "describe",
    "dtype_from_text",
    "dtype_of_region",
    "dtype_text",
    "fetched",
    "same_dtype",
    "share_memory",
    "tensor",
    "torch_text",
    "written",
]


def describe(array: Any, label: Any, stream: Any = None) -> np.ndarray[Any, Any] | Description:
    """A NumPy array that shows the same memory, or a description of the memory.

    ``stream`` is what the caller of the store named: see `velocpy.devices.describe`.

    Raises
    ------
    InvalidType
        When ``array`` is nothing that has bytes; ``label`` goes into the message.
    """
    if devices.library_of(array) == "torch" or _is_tensor(array):
        return _describe_tensor(array, label)
    if isinstance(array, np.ndarray):
        return _plain(array, label)
    if isinstance(array, np.generic):
        copied = np.asarray(array)
        copied.flags.writeable = False
        return copied
    if isinstance(array, tuple):
        return _describe_raw(array, label)
    shown = jax_arrays.on_host(array, label) if jax_arrays.is_array(array) else None
    if shown is not None:
        return shown
    on_device = devices.describe(array, label, stream)
    if on_device is not None:
        return on_device
    shown = _from_buffer(array, label)
    if shown is None:
        shown = _from_dlpack(array, label)
    if shown is None:
        raise InvalidType(
            f"region {label!r} is of type {type(array).__name__}; give an array (NumPy, torch, anything with the "
            "buffer protocol or DLPack) or a tuple (address, bytes). In a mapping or a list also None, bool, int, "
            "float, str, and dicts, lists and tuples of all these."
        )
    return shown


def _plain(array: np.ndarray[Any, Any], label: Any) -> np.ndarray[Any, Any]:
    if isinstance(array, np.ma.MaskedArray):
        raise InvalidType(
            f"region {label!r} is a masked array, whose mask would get lost; store .data and .mask as two regions."
        )
    return array


def _describe_raw(pair: tuple[Any, ...], label: Any) -> Description:
    numbers = len(pair) in (2, 3) and all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in pair)
    if not numbers:
        raise InvalidType(
            f"region {label!r} is a tuple; raw memory is (address, bytes) or (address, bytes, device), ints."
        )
    address, nbytes = int(pair[0]), int(pair[1])
    if nbytes < 0 or not 0 <= address < 1 << 64 or address + nbytes > 1 << 64:
        raise InvalidArgument(f"region {label!r} is {nbytes} bytes at {address:#x}, which no memory can be.")
    if len(pair) == 3:
        if not 0 <= int(pair[2]) < 1 << 16:
            raise InvalidArgument(f"region {label!r} lies on device {int(pair[2])}, which is no number of a device.")
        return (RAW, "|u1", address, 1, (nbytes,), (1,), True, pair, 1 + int(pair[2]), None)
    if not _core.readable(address, nbytes):
        raise InvalidArgument(
            f"region {label!r} is {nbytes} bytes at {address:#x}, and not all of that is mapped: was it freed? "
            f"If these are plain numbers, give a list: {list(pair)}."
        )
    return (RAW, "|u1", address, 1, (nbytes,), (1,), True, pair, HOST, None)


def _from_buffer(array: Any, label: Any) -> np.ndarray[Any, Any] | None:
    try:
        view = memoryview(array)
    except (TypeError, NotImplementedError):  # it has none, or says so when asked, as buffers of cuda.core do
        return None
    except MemoryError:
        raise
    except Exception as error:  # whatever a __buffer__ raises
        raise InvalidArgument(f"region {label!r} does not give out its buffer: {error}.") from error
    try:
        return np.asarray(view)
    except (ValueError, NotImplementedError, RuntimeError, TypeError):
        pass  # a format that NumPy has no word for: its bytes
    try:
        return np.frombuffer(view, dtype=np.uint8)
    except (ValueError, BufferError) as error:
        raise InvalidType(
            f"region {label!r} has a buffer of format {view.format!r} that NumPy cannot read: {error}."
        ) from error


def _from_dlpack(array: Any, label: Any) -> np.ndarray[Any, Any] | None:
    device = devices.dlpack_device(array, label)
    if device is None:
        return None
    if device[0] not in (1, 3):  # kDLCPU and pinned memory
        raise _elsewhere(label, f"a device of DLPack's type {device[0]}")
    try:
        return np.from_dlpack(array)
    except MemoryError:
        raise
    except Exception as error:  # whatever the library raises
        raise InvalidType(f"region {label!r} cannot be read through DLPack: {error}.") from error


def _elsewhere(label: Any, place: str) -> TierUnavailable:
    return TierUnavailable(
        f"region {label!r} lies on {place}; arrays of host memory and of CUDA devices can be kept. Copy it there.",
        region=label,
    )


# --- torch
# ------------------------------------------------------------------------------------------------------------------


def _is_tensor(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and isinstance(array, torch.Tensor)


def _describe_tensor(tensor: torch.Tensor, label: Any) -> Description:
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise InvalidType(f"region {label!r} is of type {type(tensor).__name__}; give its tensors, or a str.")
    if tensor.device.type == "meta":
        raise InvalidType(
            f"region {label!r} is a meta tensor, which has a shape but no memory; give a tensor with values."
        )
    if tensor.device.type not in ("cpu", "cuda"):
        raise _elsewhere(label, str(tensor.device))
    if tensor.is_quantized:
        raise InvalidType(
            f"region {label!r} is a quantized tensor; store its int_repr() as a region, scale and zero point as meta."
        )
    if tensor.layout is not torch.strided or tensor.is_nested:
        raise InvalidType(
            f"region {label!r} is a tensor without plain strides ({tensor.layout}); store the tensors it is made of."
        )
    resolved = tensor.is_conj() or tensor.is_neg()
    if resolved:
        tensor = tensor.detach().resolve_conj().resolve_neg()
    itemsize = tensor.element_size()
    try:
        address = tensor.data_ptr()
    except RuntimeError as error:
        raise InvalidType(f"region {label!r} is a tensor without memory: {error}.") from error
    strides = tuple(stride * itemsize for stride in tensor.stride())
    place = HOST if tensor.device.type == "cpu" else 1 + tensor.device.index
    return (
        TORCH,
        torch_text(tensor.dtype),
        address,
        itemsize,
        tuple(tensor.shape),
        strides,
        not resolved,
        tensor,
        place,
        None,
    )


def written(destinations: Iterable[Any]) -> None:
    """Tells autograd which tensors were written behind its back: a graph that saved one of them refuses to go on."""
    autograd = getattr(sys.modules.get("torch"), "autograd", None)
    increment = getattr(getattr(autograd, "graph", None), "increment_version", None)
    if increment is None:
        return
    for array in destinations:
        # Tensors of inference mode have no version; autograd does not save them either.
        if _is_tensor(array) and not array.is_inference():
            increment(array)


def fetched(memory: _core.LeaseMemory, region: int) -> Any:
    """A region that was in host memory, out of a lease on a device: a copy, since libraries of the host read it."""
    text, itemsize, shape, strides = memory.description(region)
    flat = memory.fetched(region)
    if memory.library(region) == TORCH:
        require_torch()
        import torch

        dtype = torch_dtype(text, itemsize)
        if flat.size == 0:
            return torch.empty(shape, dtype=dtype)
        return torch.from_numpy(flat).view(dtype).as_strided(shape, [stride // itemsize for stride in strides])
    return np.ndarray(shape, dtype_from_text(text, itemsize), flat.data, strides=strides)


# --- overlaps
# ---------------------------------------------------------------------------------------------------------------


class _Shown:
    """Memory as NumPy's array interface describes it; nothing here reads or writes it."""

    def __init__(self, address: int, itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.__array_interface__ = {
            "data": (address, True),
            "typestr": f"|V{itemsize}",
            "shape": shape,
            "strides": strides,
            "version": 3,
        }


def share_memory(
    one: tuple[int, int, tuple[int, ...], tuple[int, ...]], other: tuple[int, int, tuple[int, ...], tuple[int, ...]]
) -> bool:
    """Whether two pieces of memory (address, bytes of an element, shape, strides) certainly share bytes."""
    first, second = np.asarray(_Shown(*one)), np.asarray(_Shown(*other))
    try:
        return bool(np.shares_memory(first, second, max_work=10_000))  # type: ignore[arg-type]
    except RuntimeError:  # too much work to be sure
        return False
