"""Arrays in the memory of a CUDA device, and the streams in whose order they are read and written.

Nothing here imports torch or CuPy: arrays of theirs are met only when the application has done so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InvalidArgument, InvalidType, TierUnavailable

if TYPE_CHECKING:
    import torch

    from . import _core

NUMPY, TORCH, RAW, CUPY, CUDA = 0, 1, 2, 3, 4

#: Streams that every CUDA context has, as ``__cuda_array_interface__`` numbers them.
LEGACY_STREAM, PER_THREAD_STREAM = 1, 2


# --- streams
# ---------------------------------------------------------------------------------------------------------------


def streams(stream: Any, concerned: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Handles of the streams of one call.

    Parameters
    ----------
    stream
        What the caller named: an int, a ``torch.cuda.Stream``, a ``cupy.cuda.Stream``, anything with
        ``__cuda_stream__``, or several of them; None for those that are current.
    concerned
        (library, place) of the arrays: a place is 1 + the number of a device.
    """
    if stream is not None:
        return named(stream)
    found: list[int] = []
    for library, place in concerned:
        found.append(_current_of(library, place - 1))
    return tuple(found)


def named(stream: Any) -> tuple[int, ...]:
    """The handles of streams that the caller named.

    Examples
    --------
    >>> from velocpy.devices import named
    >>> named(7), named([1, 2])
    ((7,), (1, 2))
    """
    if isinstance(stream, (list, tuple)) and not hasattr(stream, "__cuda_stream__"):
        return tuple(handle for one in stream for handle in named(one))
    return (_handle(stream),)


def _handle(stream: Any) -> int:
    if isinstance(stream, Integral) and not isinstance(stream, bool):
        handle = int(stream)
    elif hasattr(stream, "__cuda_stream__"):
        handle = int(stream.__cuda_stream__()[1])
    elif hasattr(stream, "cuda_stream"):
        handle = int(stream.cuda_stream)
    elif hasattr(stream, "ptr"):
        handle = int(stream.ptr)
    else:
        raise InvalidType(
            f"stream is a {type(stream).__name__}; give a handle as an int, a torch.cuda.Stream, a cupy.cuda.Stream or "
            "anything with __cuda_stream__."
        )
    if not 0 <= handle < 1 << 64:
        raise InvalidArgument(f"stream is {handle}, which is no handle.")
    return handle


def current(place: int) -> tuple[int, ...]:
    """The current streams of all libraries in use, on the device of this place: whoever reads a lease does so there."""
    found = []
    torch = sys.modules.get("torch")
    if torch is not None and getattr(torch, "cuda", None) is not None and torch.cuda.is_initialized():
        found.append(torch_stream()(place - 1))
    if "cupy" in sys.modules:
        found.append(_current_of(CUPY, place - 1))
    return tuple(found) if found else (LEGACY_STREAM,)


def torch_stream() -> Callable[[int], int]:
    """What tells the handle of torch's current stream on a device.

    Torch's own function where it has one, which takes half as long as the object around the handle.
    """
    torch = sys.modules["torch"]
    found: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", None) or _torch_stream_by_object
    return found


def _torch_stream_by_object(device: int) -> int:
    return int(sys.modules["torch"].cuda.current_stream(device).cuda_stream)


def _current_of(library: int, device: int) -> int:
    if library == TORCH:
        return torch_stream()(device)
    if library == CUPY:
        cupy = sys.modules["cupy"]
        if cupy.cuda.runtime.getDevice() == device:
            return int(cupy.cuda.get_current_stream().ptr)
        with cupy.cuda.Device(device):
            return int(cupy.cuda.get_current_stream().ptr)
    return LEGACY_STREAM


# --- arrays in
# -------------------------------------------------------------------------------------------------------------


def describe(array: Any, label: Any) -> tuple[Any, ...]:
    """The description of an array that has ``__cuda_array_interface__``: see `velocpy.arrays.Description`."""
    try:
        shown = array.__cuda_array_interface__
    except Exception as error:  # whatever the library raises for an array it does not show
        raise InvalidType(f"region {label!r} does not show its memory: {error}.") from error
    if shown.get("mask") is not None:
        raise InvalidType(f"region {label!r} has a mask, which would get lost; store the mask as a region of its own.")
    if shown.get("stream") == 0:
        raise InvalidArgument(
            f"region {label!r} names stream 0, which {type(array).__name__} may not: 1 or 2 are meant."
        )
    dtype = np.dtype(shown["typestr"])
    address, readonly = shown["data"]
    shape = tuple(int(n) for n in shown["shape"])
    strides = shown.get("strides") or _dense(shape, dtype.itemsize)
    library = CUPY if type(array).__module__.partition(".")[0] == "cupy" else CUDA
    place = 1 + _device_of(array)
    return (library, dtype.str, int(address), dtype.itemsize, shape, tuple(strides), not readonly, array, place)


def _device_of(array: Any) -> int:
    device = getattr(array, "device", None)
    number = getattr(device, "id", device)
    if isinstance(number, Integral) and not isinstance(number, bool):
        return int(number)
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[1])
    return 0


def _dense(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides, step = [], itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


# --- arrays out
# ------------------------------------------------------------------------------------------------------------


class DeviceArray:
    """Restored bytes on a CUDA device, for any library that reads ``__cuda_array_interface__``.

    It keeps its lease alive. Its stream is none: the bytes are there for the streams named at the restore, or for those
    that were current then.
    """

    __slots__ = ("__cuda_array_interface__", "__weakref__", "_memory", "device")

    def __init__(
        self,
        memory: _core.LeaseMemory,
        address: int,
        typestr: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
        readonly: bool,
    ) -> None:
        self._memory = memory
        #: Number of the device.
        self.device = memory.place - 1
        self.__cuda_array_interface__ = {
            "data": (address if 0 not in shape else 0, readonly),
            "typestr": typestr,
            "shape": shape,
            "strides": strides,
            "version": 3,
        }


def array(memory: _core.LeaseMemory, region: int) -> Any:
    """The region of a lease on a device, in the library that it came from."""
    library = memory.library(region)
    if library == TORCH:
        return _tensor(memory, region)
    text, _, shape, strides = memory.description(region)
    if library == CUPY:
        return _cupy_array(memory, region, text, shape, strides)
    return DeviceArray(memory, memory.address(region), text, shape, strides, not memory.writable)


def _tensor(memory: _core.LeaseMemory, region: int) -> torch.Tensor:
    from .arrays import require_torch, torch_dtype

    require_torch()
    import torch

    ready = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    shown = memory.tensor(region, torch.Tensor) if ready else None
    if shown is not None:
        return shown
    text, itemsize, shape, strides = memory.description(region)
    dtype, where = torch_dtype(text, itemsize), torch.device("cuda", memory.place - 1)
    if memory.nbytes(region) == 0:
        return torch.empty(shape, dtype=dtype, device=where)
    # torch reads no dtype of its own through the interface: as bytes, and then seen as what they are.
    plain = DeviceArray(memory, memory.address(region), "|u1", (memory.nbytes(region),), None, False)
    elements = torch.as_tensor(plain, device=where).view(dtype)
    return elements.as_strided(shape, [stride // itemsize for stride in strides])


def _cupy_array(
    memory: _core.LeaseMemory, region: int, text: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> Any:
    cupy = _cupy()
    size = memory.nbytes(region)
    with cupy.cuda.Device(memory.place - 1):
        if size == 0:
            return cupy.empty(shape, dtype=np.dtype(text))
        owner = cupy.cuda.UnownedMemory(memory.address(region), size, memory, memory.place - 1)
        return cupy.ndarray(shape, np.dtype(text), cupy.cuda.MemoryPointer(owner, 0), strides)


def _require_device(device: int, present: int) -> None:
    if device >= present:
        raise TierUnavailable(
            f"a region lay on device {device}, and this process has {present}; restore it into an array of your own: "
            "restore(key, into=…).",
            tier="device",
        )


def _cupy() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise InvalidType(
            "a region was an array of CuPy, which is not installed here; restore it into an array of your own: "
            "restore(key, into=…)."
        ) from error
    return cupy


def sent_home(memory: _core.LeaseMemory, region: int) -> Any:
    """A region whose array was on a device but whose bytes came to host memory: copied to where it was."""
    device, library = memory.home(region) - 1, memory.library(region)
    if library == TORCH:
        from .arrays import require_torch, tensor

        require_torch()
        import torch

        _require_device(device, torch.cuda.device_count())
        return tensor(memory, region).to(f"cuda:{device}")
    shown = memory.array(region)
    if library == CUPY:
        cupy = _cupy()
        _require_device(device, cupy.cuda.runtime.getDeviceCount())
        with cupy.cuda.Device(device):
            return cupy.asarray(shown)
    return shown
