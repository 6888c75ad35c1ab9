"""Arrays of every library as the shim wants them, and back.

NumPy arrays never come through here on their way in: the shim reads them itself. No framework is imported unless an
array of it was given.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, devices
from .errors import CorruptCheckpoint, InvalidArgument, InvalidType, TierUnavailable

if TYPE_CHECKING:
    import torch

NUMPY, TORCH, RAW, CUPY, CUDA = 0, 1, 2, 3, 4

#: Where host memory lies; the memory of CUDA device n is place n + 1.
HOST = 0

#: (library, dtype text, address, bytes of an element, shape, strides in bytes, writable, owner, place, stream). The
#: stream is the one in whose order the memory is used, where the array names one.
Description = tuple[int, str, int, int, tuple[int, ...], tuple[int, ...], bool, Any, int, int | None]

# torch's dtypes that NumPy has as well, so that one may be restored into the other.
_SHARED = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)


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


def require_torch() -> None:
    """Refuses where torch is missing, for an array that came from there."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise InvalidType(
            "a region was a tensor of torch, which is not installed here; restore it into an array of your own: "
            "restore(key, into=…)."
        ) from error


def tensor(memory: _core.LeaseMemory, region: int) -> torch.Tensor:
    """The region of a lease as a tensor that keeps the lease alive."""
    require_torch()
    import torch

    shown = memory.tensor(region, torch.Tensor)
    if shown is not None:
        return shown
    text, itemsize, shape, strides = memory.description(region)
    dtype = torch_dtype(text, itemsize)
    flat = memory.raw(region)
    if flat.size == 0:
        return torch.empty(shape, dtype=dtype)
    elements = torch.from_numpy(flat).view(dtype)
    return elements.as_strided(shape, [stride // itemsize for stride in strides])


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


@lru_cache(maxsize=256)
def torch_text(dtype: torch.dtype) -> str:
    """A dtype of torch as text, from which `torch_dtype` makes the same one."""
    name = str(dtype).removeprefix("torch.")
    return np.dtype(name).str if name in _SHARED else "=" + name


@lru_cache(maxsize=256)
def torch_dtype(text: str, itemsize: int) -> torch.dtype:
    """The dtype of torch that `torch_text` wrote; another size of its elements is refused."""
    require_torch()
    import torch

    name = text[1:] if text.startswith("=") else dtype_from_text(text, itemsize).name
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype) or not text.startswith(("=", "|", _NATIVE)):
        raise InvalidType(f"a region has the dtype {text!r:.80}, which torch {torch.__version__} does not know here.")
    if dtype.itemsize != itemsize:
        raise _unlike(text, itemsize)
    return dtype


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


# --- dtypes
# -----------------------------------------------------------------------------------------------------------------


def dtype_text(dtype: np.dtype[Any]) -> str:
    """A dtype as text, from which `dtype_from_text` makes an equal one.

    Examples
    --------
    >>> import numpy as np
    >>> from velocpy.arrays import dtype_text
    >>> dtype_text(np.dtype("complex64")), dtype_text(np.dtype("datetime64[ms]"))
    ('<c8', '<M8[ms]')
    """
    if dtype.hasobject or dtype.kind == "T":
        raise InvalidType(
            f"arrays of dtype {dtype} hold references, not bytes; store numbers or fixed-length texts, or pickle them."
        )
    if dtype.kind in "mM" and "[0" in dtype.str:
        raise InvalidType(f"arrays of dtype {dtype} count in units of no length; store them as numbers.")
    if dtype.names is not None:
        return json.dumps(_structure(dtype), sort_keys=True, ensure_ascii=True)
    if dtype.subdtype is not None:
        return json.dumps(_subarray(dtype))
    if dtype.type.__module__.partition(".")[0] != "numpy":
        return "=" + dtype.name
    return dtype.str


def dtype_of_region(dtype: np.dtype[Any], label: Any) -> str:
    """The same text for the shim; an error names the region."""
    try:
        return dtype_text(dtype)
    except InvalidType as error:
        raise InvalidType(f"region {label!r}: {error}") from None


def dtype_from_text(text: str, itemsize: int | None = None) -> np.dtype[Any]:
    """The dtype that `dtype_text` wrote.

    Raises
    ------
    CorruptCheckpoint
        When the text means none, or one of references, or one whose elements have not ``itemsize`` bytes.
    InvalidType
        When a library is missing that knows it.
    """
    try:
        dtype = _dtype(text)
    except InvalidType:
        raise
    except _NO_DTYPE as error:
        raise CorruptCheckpoint(f"a region has the dtype {text!r:.80}, which NumPy does not know: {error}.") from error
    if dtype.hasobject or (itemsize is not None and dtype.itemsize != itemsize):
        raise _unlike(text, itemsize)
    return dtype


#: Whatever NumPy and JSON raise for a text that is no dtype.
_NO_DTYPE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    SystemError,
    TypeError,
    ValueError,
)

#: How the byte order of this machine is written.
_NATIVE = np.dtype("f8").str[0]


def _dtype(text: str) -> np.dtype[Any]:
    if text.startswith("="):
        return _extension(text[1:])
    if text.startswith(("{", "[")):
        return _from_json(json.loads(text))
    return np.dtype(text)


def _unlike(text: str, itemsize: int | None) -> CorruptCheckpoint:
    return CorruptCheckpoint(
        f"a region has the dtype {text!r:.80}, whose elements hold references or have not {itemsize} bytes: its "
        "description is damaged. Other checkpoints are not affected; write this one again."
    )


def same_dtype(one: str, other: str) -> bool:
    """Whether two texts mean equal dtypes."""
    if one.startswith("=") or other.startswith("="):
        return one == other
    return bool(dtype_from_text(one) == dtype_from_text(other))


def _structure(dtype: np.dtype[Any]) -> dict[str, Any]:
    assert dtype.names is not None
    assert dtype.fields is not None
    fields = [dtype.fields[name] for name in dtype.names]
    return {
        "names": list(dtype.names),
        "formats": [dtype_text(field[0]) for field in fields],
        "offsets": [field[1] for field in fields],
        "titles": [_title(field[2]) if len(field) > 2 else None for field in fields],
        "itemsize": dtype.itemsize,
        "aligned": dtype.isalignedstruct,
    }


def _title(title: Any) -> str | int | None:
    plain = type(title) is int and 0 <= title < 1 << 31
    if title is None or type(title) is str or plain:
        return title  # type: ignore[no-any-return]
    raise InvalidType(
        f"a field has the title {title!r:.80}; titles that can be stored are texts and numbers from 0 up."
    )


def _subarray(dtype: np.dtype[Any]) -> list[Any]:
    assert dtype.subdtype is not None
    return [dtype_text(dtype.subdtype[0]), list(dtype.subdtype[1])]


def _from_json(described: Any) -> np.dtype[Any]:
    if isinstance(described, list):
        base, shape = described
        return np.dtype((dtype_from_text(base), tuple(shape)))
    aligned = described.pop("aligned")
    if not isinstance(aligned, bool):
        raise TypeError(f"aligned is {aligned!r:.80}")
    if all(title is None for title in described["titles"]):
        del described["titles"]
    described["formats"] = [dtype_from_text(text) for text in described["formats"]]
    try:
        dtype: np.dtype[Any] = np.dtype(described, align=aligned)
    except ValueError:  # aligned where it was written: other machines align otherwise, and the offsets say it all
        dtype = np.dtype(described)
    return dtype


def _extension(name: str) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except (ImportError, AttributeError, TypeError) as error:
        raise InvalidType(
            f"a region has the dtype {name}, which NumPy knows through the package ml_dtypes only."
        ) from error
    return dtype
