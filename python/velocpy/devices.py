"""Arrays in the memory of a CUDA device, and the streams in whose order they are read and written.

Nothing here imports torch or CuPy: arrays of theirs are met only when the application has done so.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from .description import CUDA, CUPY, TORCH, Description
from .errors import InvalidArgument, InvalidType, TierUnavailable, VelocError
from .tensors import require_torch, tensor, torch_dtype

if TYPE_CHECKING:
    import torch

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
    """The current streams of all libraries in use, on the device of this place: callers read leases there."""
    found = []
    if (of_torch := _torch_in_use()) is not None:
        found.append(of_torch(place - 1))
    if "cupy" in sys.modules:
        found.append(_current_of(CUPY, place - 1))
    return tuple(found) if found else (LEGACY_STREAM,)


#: torch, once it uses CUDA in this process, which it then does until the end, and its `torch_stream`: each lease asks.
_in_use: tuple[Any, Callable[[int], int]] = (None, lambda _: LEGACY_STREAM)


def _torch_in_use() -> Callable[[int], int] | None:
    global _in_use
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if _in_use[0] is not torch:
        cuda = getattr(torch, "cuda", None)
        if cuda is None or not cuda.is_initialized():
            return None
        _in_use = (torch, torch_stream())
    return _in_use[1]


def torch_is_in_use() -> bool:
    """Whether torch uses CUDA in this process."""
    return _torch_in_use() is not None


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

#: DLPack's types of CUDA memory: plain, and managed.
_DLPACK_CUDA = (2, 13)
_MOST_DEVICES = 1 << 16

#: Addresses, extents and strides are less.
_BEYOND = 1 << 63


def library_of(array: Any) -> str:
    """Name of the package that an array's type is from."""
    module = getattr(type(array), "__module__", "")
    return module.partition(".")[0] if isinstance(module, str) else ""


def describe(array: Any, label: Any, stream: Any = None) -> Description | None:
    """The description of an array in the memory of a CUDA device; None for anything else.

    The array shows itself by ``__cuda_array_interface__``, or else by DLPack. It is used in the order of the stream
    that its interface names. An interface that says nothing of streams, as those before version 3, leaves that to
    DLPack, if the array has it: ``__dlpack__`` is told the stream in which the array will be used, and makes that one
    wait for whatever still computes the array.

    Parameters
    ----------
    label
        Goes into the text of errors.
    stream
        What the caller of the store named. DLPack is told the first of them, or else the legacy default stream.

    Raises
    ------
    InvalidType, InvalidArgument
        When the array shows something that cannot be.
    """
    refused: Exception | None = None
    try:
        shown = getattr(array, "__cuda_array_interface__", None)
    except MemoryError:
        raise
    except Exception as error:  # whatever the library raises for an array that it does not show
        shown, refused = None, error
    device = None
    if shown is None:
        with contextlib.suppress(InvalidType):  # what cannot tell its device may have a buffer all the same
            device = dlpack_device(array, label)
    try:
        if shown is not None:
            return _by_interface(array, shown, label, stream)
        if device is not None and device[0] in _DLPACK_CUDA:
            return _by_dlpack(array, label, stream)
    except (VelocError, MemoryError):
        raise
    except Exception as error:  # what the array shows runs code of its own
        raise InvalidType(f"region {label!r} does not show its memory: {error}.") from error
    if refused is not None and device is None:
        raise InvalidType(f"region {label!r} does not show its memory: {refused}.") from refused
    return None


def dlpack_device(array: Any, label: Any) -> tuple[int, int] | None:
    """What ``__dlpack_device__`` says: DLPack's type of the memory, and the number of the device; None without DLPack.

    Raises
    ------
    InvalidType
        When that is no pair of numbers.
    """
    try:
        if not hasattr(array, "__dlpack__") or not hasattr(array, "__dlpack_device__"):
            return None
        kind, number = array.__dlpack_device__()
    except MemoryError:
        raise
    except Exception as error:  # whatever the library raises
        raise InvalidType(f"region {label!r} does not tell its device through DLPack: {error}.") from error
    return _whole(kind, "the type of its device", label), _whole(number, "the number of its device", label)


def _by_interface(array: Any, shown: Any, label: Any, stream: Any) -> Description:
    """The description of an array by its ``__cuda_array_interface__``."""
    if type(shown) is not dict and not isinstance(shown, Mapping):
        raise InvalidType(f"region {label!r} has a {type(shown).__name__} for its interface, not a dict.")
    if not ("shape" in shown and "typestr" in shown and "data" in shown):
        missing = [name for name in ("shape", "typestr", "data") if name not in shown]
        raise InvalidType(f"region {label!r} has an interface without {' and '.join(missing)}.")
    if shown.get("mask") is not None:
        raise InvalidType(f"region {label!r} has a mask, which would get lost; store the mask as a region of its own.")
    named = _named_stream(shown.get("stream"), array, label)
    text, itemsize = _elements(shown["typestr"], label)
    address, readonly = _pair(shown["data"], label)
    shape = _wholes(shown["shape"], "a shape", label)
    given = shown.get("strides")
    strides = _dense(shape, itemsize) if given is None else _wholes(given, "strides", label)
    _require_memory(address, itemsize, shape, strides, label)
    library = CUPY if library_of(array) == "cupy" else CUDA
    owner = array
    if "stream" not in shown and library == CUDA and (capsule := _ordered(array, stream)) is not None:
        owner, named = (array, capsule), _consumer(stream)  # until it is used: the capsule keeps the memory from reuse
    place = 1 + _device_of(array, label)
    writable = array.writable if isinstance(array, DeviceArray) else not readonly
    return (library, text, address, itemsize, shape, strides, writable, owner, place, named)


def _by_dlpack(array: Any, label: Any, stream: Any) -> Description:
    """The description of an array that shows itself by DLPack alone."""
    consumer = _consumer(stream)
    capsule = _capsule(array, consumer)
    try:
        owner, address, kind, device, text, itemsize, shape, strides, writable = _core.open_capsule(capsule)
    except InvalidType as error:
        raise InvalidType(f"region {label!r} cannot be read through DLPack: {error}") from None
    if kind not in _DLPACK_CUDA:
        raise InvalidType(
            f"region {label!r} lies on a device of DLPack's type {kind}, and said it were on a CUDA device."
        )
    in_bytes = _dense(shape, itemsize) if strides is None else tuple(stride * itemsize for stride in strides)
    _require_memory(address, itemsize, shape, in_bytes, label)
    place = 1 + _device_number(device, label)
    return (CUDA, text, address, itemsize, shape, in_bytes, writable, (array, owner), place, consumer)


def _consumer(stream: Any) -> int:
    """The stream that DLPack is told: the first that the caller named, or the legacy default stream."""
    handles = () if stream is None else named(stream)
    return handles[0] or LEGACY_STREAM if handles else LEGACY_STREAM


def _capsule(array: Any, consumer: int) -> Any:
    try:
        return array.__dlpack__(stream=consumer, max_version=(1, 0))
    except TypeError:  # from before versions
        return array.__dlpack__(stream=consumer)


def _ordered(array: Any, stream: Any) -> Any:
    """A capsule of the array, which is ready for the stream that DLPack was told; None where it has no DLPack."""
    if not hasattr(array, "__dlpack__"):
        return None
    try:
        return _capsule(array, _consumer(stream))
    except (BufferError, NotImplementedError):  # DLPack has no words for it: the legacy default stream has to do
        return None


def _named_stream(value: Any, array: Any, label: Any) -> int | None:
    if value is None:
        return None
    handle = _whole(value, "a stream", label)
    if handle == 0:
        raise InvalidArgument(
            f"region {label!r} names stream 0, which {type(array).__name__} may not: 1 or 2 are meant."
        )
    if not 0 < handle < 1 << 64:
        raise InvalidArgument(f"region {label!r} names stream {handle}, which is no handle.")
    return handle


def _elements(typestr: Any, label: Any) -> tuple[str, int]:
    """The dtype's text and the bytes of an element."""
    if not isinstance(typestr, str):
        raise InvalidType(f"region {label!r} has a {type(typestr).__name__} for its typestr, not a str.")
    try:
        return _known_elements(typestr)
    except (TypeError, ValueError, SyntaxError) as error:
        raise InvalidType(f"region {label!r} has elements of type {typestr!r}: {error}.") from error


@lru_cache(maxsize=256)
def _known_elements(typestr: str) -> tuple[str, int]:
    dtype: np.dtype[Any] = np.dtype(typestr)
    if dtype.hasobject:
        raise TypeError("they hold references, not bytes")
    return dtype.str, dtype.itemsize


def _pair(data: Any, label: Any) -> tuple[int, bool]:
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise InvalidType(f"region {label!r} has {type(data).__name__} for its data, not an address and a flag.")
    return _whole(data[0], "an address", label), bool(data[1])


def _wholes(values: Any, what: str, label: Any) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)):
        raise InvalidType(f"region {label!r} has {type(values).__name__} for {what}, not a tuple.")
    return tuple(_whole(value, what, label) for value in values)


def _whole(value: Any, what: str, label: Any) -> int:
    if type(value) is int:
        return value
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise InvalidType(f"region {label!r} has a {type(value).__name__} in {what}, not an int.")
    return int(value)


def _require_memory(address: int, itemsize: int, shape: tuple[int, ...], strides: tuple[int, ...], label: Any) -> None:
    """Refuses shapes and strides that lead out of what addresses there are."""
    if len(strides) != len(shape):
        raise InvalidArgument(f"region {label!r} has {len(shape)} axes and {len(strides)} strides.")
    low = high = address
    inside = True
    for extent, stride in zip(shape, strides, strict=True):
        inside = inside and 0 <= extent < _BEYOND and -_BEYOND <= stride < _BEYOND
        reach = (extent - 1) * stride
        if reach < 0:
            low += reach
        else:
            high += reach
    if not inside:
        raise InvalidArgument(
            f"region {label!r} has the shape {shape} and the strides {strides}, which no array can have."
        )
    if 0 in shape:
        low = high = address
    else:
        high += itemsize
    if not 0 <= low <= high < _BEYOND:
        raise InvalidArgument(f"region {label!r} is memory from {low:#x} to {high:#x}, which no memory can be.")


def _device_of(array: Any, label: Any) -> int:
    device = getattr(array, "device", None)
    number = getattr(device, "id", device)
    if type(number) is int or (isinstance(number, Integral) and not isinstance(number, bool)):
        return _device_number(int(number), label)
    told = dlpack_device(array, label)
    return 0 if told is None else _device_number(told[1], label)


def _device_number(number: int, label: Any) -> int:
    if not 0 <= number < _MOST_DEVICES:
        raise InvalidArgument(f"region {label!r} lies on device {number}, which is no number of a device.")
    return number


def _dense(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides, step = [], itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(1, extent)
    return tuple(reversed(strides))


# --- arrays out
# ------------------------------------------------------------------------------------------------------------


class DeviceArray:
    """Restored bytes on a CUDA device, for any library that reads ``__cuda_array_interface__`` or DLPack.

    ``torch.from_dlpack``, ``torch.as_tensor``, ``cupy.asarray``, ``numba.cuda.as_cuda_array`` and
    ``jax.dlpack.from_dlpack`` make arrays of it without a copy, which keep the lease alive. DLPack tells the stream
    that the array is for: the bytes are there for that one, and it has read them before their room is written again.
    The interface names the legacy default stream, for which they are there as well, and for those that are current in
    torch and CuPy when it is read.

    Unless the lease is writable, do not write. DLPack marks the array as read-only for a consumer that asks for a
    version; ``__cuda_array_interface__`` does not, as torch takes no array that is read-only. A store opened with
    ``debug=True`` detects writes.
    """

    __slots__ = ("__weakref__", "_memory", "_region", "device")

    def __init__(self, memory: _core.LeaseMemory, region: int) -> None:
        self._memory = memory
        self._region = region
        #: Number of the device.
        self.device = memory.place - 1

    @property
    def writable(self) -> bool:
        """Whether the bytes belong to the caller alone; the interface says so in any case."""
        return self._memory.writable

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        text, _, shape, strides = self._memory.description(self._region)
        if text.startswith(("=", "{", "[")):
            raise AttributeError(f"__cuda_array_interface__ has no word for elements of type {text.lstrip('=')}.")
        for stream in {LEGACY_STREAM, *(handle or LEGACY_STREAM for handle in current(self._memory.place))}:
            self._memory.used_on(stream)
        return {
            "data": (self._memory.address(self._region) if 0 not in shape else 0, False),
            "typestr": text,
            "shape": shape,
            "strides": strides,
            "stream": LEGACY_STREAM,
            "version": 3,
        }

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule for ``stream``, as the array API numbers them: 1 and 2 the default streams, -1 for no order."""
        if copy:
            raise BufferError("a lease shows the store's memory; copy what you made of it.")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the lease lies on CUDA device {self.device}; it is not moved to {dl_device}.")
        if stream is None:
            stream = LEGACY_STREAM
        if isinstance(stream, bool) or not isinstance(stream, Integral):
            raise InvalidType(
                f"stream is a {type(stream).__name__}; DLPack wants the handle of a CUDA stream as an int."
            )
        if stream == 0 or not -1 <= stream < 1 << 64:
            raise InvalidArgument(f"stream is {stream}; the default streams are 1 and 2, and -1 is for no order.")
        if stream != -1:
            self._memory.used_on(int(stream))
        capsule = self._memory.capsule(self._region, max_version is not None and max_version[0] >= 1)
        if capsule is None:
            raise BufferError(f"DLPack has no word for elements of type {self._memory.description(self._region)[0]}.")
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_DLPACK_CUDA[0], self.device)


class _Bytes:
    """The bytes of a region, for a torch that has no other way to them."""

    def __init__(self, memory: _core.LeaseMemory, region: int) -> None:
        self._memory = memory
        self.__cuda_array_interface__ = {
            "data": (memory.address(region), False),
            "typestr": "|u1",
            "shape": (memory.nbytes(region),),
            "strides": None,
            "version": 3,
        }


def array(memory: _core.LeaseMemory, region: int) -> Any:
    """The region of a lease on a device, in the library that it came from."""
    library = memory.library(region)
    if library == TORCH:
        return _tensor(memory, region)
    if library == CUPY:
        text, _, shape, strides = memory.description(region)
        return _cupy_array(memory, region, text, shape, strides)
    return DeviceArray(memory, region)


def _tensor(memory: _core.LeaseMemory, region: int) -> torch.Tensor:
    if _torch_in_use() is not None:
        shown: torch.Tensor | None = memory.tensor(region, sys.modules["torch"].Tensor)
        if shown is not None:
            return shown
    return _tensor_of_bytes(memory, region)


def _tensor_of_bytes(memory: _core.LeaseMemory, region: int) -> torch.Tensor:
    require_torch()
    import torch

    text, itemsize, shape, strides = memory.description(region)
    dtype, where = torch_dtype(text, itemsize), torch.device("cuda", memory.place - 1)
    if memory.nbytes(region) == 0:
        return torch.empty(shape, dtype=dtype, device=where)
    # torch reads no dtype of its own through the interface: as bytes, and then seen as what they are.
    elements = torch.as_tensor(_Bytes(memory, region), device=where).view(dtype)
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
